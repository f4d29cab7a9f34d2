"""The rule of abstain, part by part, and how ordinary words are."""

import pytest

from memd.focus import Shelf, words
from memd.focus.evidence import Rule
from memd.note import NoteType
from support.shelves import Sheet, everywhere, focus, repo

FILLER = [
    Sheet(f"filler-{at}", f"Slate {at} of the roof", f"Tiles {at} are laid in rows of {at}.") for at in range(20)
]
COMMON = [
    Sheet("fix-me", "Can you help me fix this", "Please look at it again and tell me what you think, thanks."),
    Sheet("继续", "继续做下去", "谢谢，辛苦了，看一下有没有问题。"),
    Sheet("hallo", "Guten Morgen, bitte weiter", "Bonjour, merci, hola, gracias, привет, спасибо."),
]


def bodies(prompt: str, *notes: Sheet) -> list[str]:
    return [note.name for note in focus(prompt, repo(*notes, *FILLER)).notes if note.shown == "body"]


@pytest.mark.parametrize(
    "prompt",
    [
        "hi", "hello there!", "thanks", "continue", "go on", "ok", "yes please", "try again", "👍", "🎉🎉", "...",
        "?", "can you help me fix this", "good morning", "what do you think?", "that's not what i asked for",
        "继续", "谢谢", "你好", "帮我看一下有没有问题", "guten morgen", "bonjour", "hola, gracias", "привет",
    ],
)  # fmt: skip
def test_greetings_and_small_talk_earn_no_body(prompt: str) -> None:
    """Row 14 of the field report, also where notes hold those very words."""
    assert bodies(prompt, *COMMON) == []


@pytest.mark.parametrize(
    ("word", "weight"),
    [
        ("please", 0), ("looked", 0), ("trying", 0), ("x", 0), ("的", 0), ("我看", 0), ("谢谢", 0), ("спасибо", 0),
        ("12", 0.3), ("2024", 0.3), ("tests", 0.3), ("caching", 0.3), ("queries", 0.3), ("部署", 0.3), ("的单", 0),
        ("です", 0), ("ふり", 0.3), ("9090", 1), ("0.6", 1), ("pgbouncer", 1), ("src/main.py", 1), ("订单", 1),
        ("饿", 0), ("カード", 1), ("배포", 1), ("naïve", 1), ("asking", 0), ("using", 0),
    ],
)  # fmt: skip
def test_how_ordinary_a_word_is(word: str, weight: float) -> None:
    assert words.weight(word) == weight


@pytest.mark.parametrize(
    "forms",
    [
        ("retry", "retries", "retried"),
        ("gauge", "gauges"),
        ("stop", "stopping", "stopped", "stops"),
        ("pass", "passing"),
    ],
)
def test_the_forms_of_a_word_are_one(forms: tuple[str, ...]) -> None:
    assert len({words.stem(form) for form in forms}) == 1


def test_what_has_no_endings_is_its_own_form() -> None:
    for word in ("src/files", "订单s", "is", "used"):
        assert words.stem(word) in {word, "us"}
    assert words.stem("src/files") == "src/files"


def test_one_unique_word_is_enough_and_one_work_word_is_not() -> None:
    note = Sheet("pool", "Connections", "pgbouncer in front of the database")
    assert bodies("why pgbouncer?", note) == ["pool"]
    assert bodies("why a database?", note) == []
    assert bodies("what is with the connections?", note) == ["pool"]


def test_a_word_that_many_notes_hold_is_not_enough() -> None:
    many = [Sheet(f"tide-{at}", f"Sluice {at}", f"the harbour, berth {at}") for at in range(15)]
    assert bodies("the harbour", *many) == []
    assert bodies("the harbour and the crane", *many, Sheet("crane", "x", "the harbour's crane")) == ["crane"]


def test_the_hook_says_it_in_any_form() -> None:
    body = Sheet("a", "Something", "the migration of a schema")
    hook = Sheet("a", "Migrations are written by hand", "the schema")
    assert bodies("write a migration", body) == []
    assert bodies("write a migration", hook) == []  # another form alone is no scored note
    assert bodies("write a schema migration", hook) == ["a"]


def test_a_path_stands_for_its_pieces() -> None:
    note = Sheet("look", "Look", "the sluice, look")
    assert bodies("look", note) == []
    assert bodies("look at tools/sluice/main.go", note) == ["look"]
    assert bodies("look at tools/py", Sheet("look", "Look", "some py, look")) == []  # too short a piece


def test_a_piece_is_half_a_word() -> None:
    note = Sheet("look", "Look", "the sluice, look " + "and stand there " * 12)
    assert bodies("look at the sluice", note) == ["look"]
    assert bodies("look at tools/sluice/main.go", note) == []


def test_a_note_that_only_a_piece_matches_is_no_scored_note() -> None:
    other = Sheet("b", "Slipway", "grease the slipway")
    assert bodies("slipway: tools/sluice/main.go", Sheet("a", "The sluice", "sluice"), other) == ["b"]


def test_a_piece_of_what_was_typed_beside_a_paste_was_typed() -> None:
    note = Sheet("look", "The sluice", "sluice, look")
    paste = " ".join(f"row{at} item{at * 7}" for at in range(120))
    assert bodies(f"{paste} look tools/sluice/main.go", note) == ["look"]
    assert bodies(f"look tools/sluice/main.go {paste}", note) == ["look"]
    assert bodies(f"{paste} tools/sluice/main.go {paste} look", note) == []


def test_the_type_in_a_notes_name_says_nothing() -> None:
    assert bodies("give me feedback, look", Sheet("feedback-look", "Look", "look")) == []


def test_a_note_far_below_one_without_evidence_earns_none() -> None:
    common = Sheet("often", "Please look again", "could you look again and tell me what you think about the place")
    slight = Sheet("zinc", "Metals", "zinc " + " ".join(f"word{at}" for at in range(150)))
    assert bodies("zinc", common, slight) == ["zinc"]
    assert bodies("look again please, tell me what you think about zinc", common, slight) == []


def test_one_word_of_a_long_paste_is_chance() -> None:
    note = Sheet("valve", "The valve", "turn it slowly", NoteType.FEEDBACK)
    paste = [f"row{at} item{at * 7}" for at in range(120)]
    assert bodies(" ".join([*paste, "valve", *paste[:40]]), note) == []
    assert bodies(" ".join([*paste, "valve"]), note) == ["valve"]
    assert bodies(" ".join(["valve", *paste]), note) == ["valve"]


def test_beside_a_paste_more_evidence_is_asked_for() -> None:
    note = Sheet("turning", "Crank it", "the valve " + "and then wait " * 9)
    paste = " ".join(f"row{at} item{at * 7}" for at in range(120))
    assert bodies("valve", note) == ["turning"]
    assert bodies(f"{paste} valve", note) == []
    assert bodies(f"{paste} crank the valve", note) == ["turning"]


def test_the_bound_does_not_hang_on_the_size_of_the_store() -> None:
    note = Sheet("pool", "Waiting", "the connections wait in pgbouncer for a while")
    for count in (0, 1, 5, 300):
        filler = [Sheet(f"f{at}", f"Slate {at}", f"Some tiles {at} lie there in rows.") for at in range(count)]
        block = focus("pgbouncer", repo(note, *filler))
        assert [shown.name for shown in block.notes if shown.shown == "body"] == ["pool"]


def test_a_global_note_can_fit() -> None:
    block = focus("qemu segfault", repo(*FILLER), everywhere(Sheet("arm", "Laptop is arm64", "qemu is slow")))
    assert [note.name for note in block.notes if note.shown == "body"] == ["arm"]


def test_nothing_of_an_empty_place() -> None:
    assert focus("pgbouncer", Shelf(repo().scope)).notes == ()


def test_the_rule_is_what_the_evaluation_chose() -> None:
    assert Rule() == Rule(least=0.45, close=0.5, hook=0.5, chance=1.5)
