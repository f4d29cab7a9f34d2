"""The ranker `rich`: what is found by it, what comes first, and that what is explained is the score."""

import random

import pytest

from memd import bm25, forms
from memd.bm25 import Ranking, explain
from memd.snapshots import Snapshot
from memd.tokens import query_terms

Note = tuple[str, str, str]  # name, hook, body

FILLER: list[Note] = [(f"filler-{at}", "nothing of note", f"words {at} more words") for at in range(100)]


def index(*notes: Note) -> Snapshot:
    return Snapshot.EMPTY.replace({name: forms.words(name, hook, body) for name, hook, body in notes})


def search(query: str, *snapshots: Snapshot) -> Ranking:
    return bm25.rich(forms.query(query), snapshots)


def names(query: str, *notes: Note) -> list[str]:
    return [hit.name for hit in search(query, index(*notes)).top()]


@pytest.mark.parametrize("spare", [[], FILLER], ids=["tail", "segment"])
@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("forge", "run scripts/forge_pr.py first"),
        ("scripts/forge_pr.py", "the forge scripts"),
        ("retry", "it retries thrice"),
        ("migrations", "never migrate by hand"),
        ("render block", "see renderBlock"),
        ("renderBlock", "how a block is rendered"),
        ("http server", "class HTTPServer"),
        ("file name", "the filename is cut"),
        ("заметка", "удаление заметками не занимается"),
        ("数据", "数据库"),
        ("据", "数据库"),
        ("2.8.3", "pinned to 2.8.3"),
    ],
)
def test_a_form_of_a_word_finds_the_note(query: str, body: str, spare: list[Note]) -> None:
    right = ("right", "", body)
    assert names(query, *spare, ("other", "", "quite another matter"), right)[:1] == ["right"]


@pytest.mark.parametrize("spare", [[], FILLER], ids=["tail", "segment"])
def test_a_word_spelled_as_another_words_form_is_no_match(spare: list[Note]) -> None:
    """`aliases` has the form `alias`, the word `alias` another."""
    assert names("aliases", *spare, ("other", "", "an alias"), ("right", "", "aliases")) == ["right"]
    assert names("aliases", *spare, ("other", "", "an alias")) == []


FIRST: list[tuple[str, Note, Note]] = [
    ("retries", ("b", "", "it retries so"), ("a", "", "it retried so")),
    ("deploy", ("b", "Deploy on Fridays", "never do so then"), ("a", "Never do so then", "deploy on Fridays")),
    ("deploy", ("deploy", "x1", "y1"), ("another", "x1", "deploy")),
    ("forge_pr.py", ("b", "", "it is forge_pr.py " + "padding " * 400), ("a", "", "forge pr py forge pr py forge")),
    ("release flow", ("release-flow", "", "padding " * 400), ("a", "Release flow", "release flow release flow")),
    (
        "What says release-flow here",
        ("release-flow", "", "padding " * 400),
        ("a", "Release flow", "release flow says"),
    ),
    ("Release_Flow", ("release_flow", "", "padding " * 400), ("a", "Release flow", "release flow release flow")),
    ("数据", ("b", "", "数据很多"), ("a", "", "据数很多")),
]


@pytest.mark.parametrize("spare", [[], FILLER], ids=["tail", "segment"])
@pytest.mark.parametrize(("query", "one", "other"), FIRST, ids=[query for query, _, _ in FIRST])
def test_the_nearer_note_comes_first(query: str, one: Note, other: Note, spare: list[Note]) -> None:
    assert names(query, *spare, one, other)[:2] == [one[0], other[0]]


def test_a_note_that_has_an_identifier_is_before_all_that_have_its_parts() -> None:
    parts = [(f"n{at}", "forge pr py", "forge pr py " * (at + 1)) for at in range(60)]
    whole = ("whole", "", "padding " * 900 + "forge_pr.py")
    assert names("forge_pr.py", *parts, whole)[0] == "whole"


def test_a_note_that_is_meant_is_before_all_others_and_still_one_hit() -> None:
    notes = [(f"n{at}", "release flow", "release flow " * (at + 1)) for at in range(60)]
    ranking = search("release flow", index(*notes, ("release-flow", "", "padding")))
    best, second = ranking.top(2)
    assert best.name == "release-flow"
    assert best.score > ranking.most > second.score
    assert ranking.total == 61


def test_a_meant_note_that_went_is_no_hit() -> None:
    notes = index(*FILLER, ("release-flow", "", "padding"), ("other", "release flow", ""))
    assert [hit.name for hit in search("release flow", notes.replace({}, ["release-flow"])).top()] == ["other"]


def test_a_word_in_many_notes_is_asked_for_by_its_form_alone() -> None:
    few = index(*FILLER[:40], *(("same" + name, "", f"retries {body}") for name, _, body in FILLER[:60]))
    many = index(*FILLER, *(("same" + name, "", f"retries {body}") for name, _, body in FILLER), ("x", "", "retried"))
    some = index(*FILLER, ("y", "", "retries"), ("x", "", "retried"))
    assert [one.asked.kind for one in search("retries", few).weights] == ["form"]
    assert [one.asked.kind for one in search("retries", many).weights] == ["form"]
    assert [one.asked.kind for one in search("retries", some).weights] == ["word", "form"]


def test_a_part_that_many_notes_hold_is_not_asked_for() -> None:
    notes = [(f"n{at}", "", f"setup{at} py") for at in range(100)]
    ranking = search("forge_setup.py", index(*notes, ("right", "", "forge")))
    assert [one.asked.key for one in ranking.weights] == ["forg"]
    assert [hit.name for hit in ranking.top()] == ["right"]
    assert search("py", index(*notes)).total == 100


def test_two_snapshots_are_one_corpus() -> None:
    notes = [("a", "Retries", "forge_pr.py"), ("b", "", "retried"), ("c", "forge", ""), ("d", "", "renderBlock")]
    apart = search("retry the forge block", index(*notes[:2]), index(*notes[2:]))
    together = search("retry the forge block", index(*notes))
    assert [(hit.name, hit.score) for hit in apart.top()] == [(hit.name, hit.score) for hit in together.top()]


EXPLAINED = [
    "retries of the forge_pr.py",
    "render block",
    "数据库 retried",
    "release-flow rendered",
    "据",
    "nothing",
    "2.8.3 filename",
]
NOTES: list[Note] = [
    *FILLER,
    ("release-flow", "Retries in forge_pr.py", "renderBlock retries. 数据库 2.8.3"),
    ("b", "block 数据", "retried by forge, the file name, rendered"),
]


@pytest.mark.parametrize("query", EXPLAINED)
@pytest.mark.parametrize("ranker", ["plain", "rich"])
def test_what_is_explained_sums_up_to_the_score(query: str, ranker: str) -> None:
    snapshot = index(*random.Random(1).sample(NOTES, len(NOTES)))
    ranking = search(query, snapshot) if ranker == "rich" else bm25.rank(query_terms(query), [snapshot])
    texts = {note[0]: forms.words(*note) for note in NOTES}
    assert ranking.total
    for hit in ranking.top():
        gave = explain(ranking, hit.name, texts[hit.name])
        assert sum(one.score for one in gave) == pytest.approx(hit.score, abs=1e-9, rel=0)
        assert [one.score for one in gave] == sorted((one.score for one in gave), reverse=True)
        assert all(one.score > 0 for one in gave)


def test_what_is_explained_names_word_field_and_form() -> None:
    snapshot = index(*NOTES)
    ranking = search("retried release-flow", snapshot)
    gave = explain(ranking, "release-flow", forms.words(*NOTES[100]))
    told = {(one.word, one.kind, one.field, one.form) for one in gave}
    assert {
        ("release-flow", "name", "name", None),
        ("release-flow", "word", "name", None),
        ("release", "part", "name", "releas"),
        ("retried", "form", "hook", "retri"),
        ("retried", "form", "body", "retri"),
    } <= told
    assert gave[0].kind == "name"
    assert not any(one.kind == "word" and one.word == "retried" for one in gave)
    hook, body = (
        next(one.score for one in gave if one.form == "retri" and one.field == field) for field in ("hook", "body")
    )
    assert hook == pytest.approx(forms.HOOK * body / 1)


def test_the_parts_of_a_ranking_add_up_to_it() -> None:
    snapshots = [index(*NOTES), index(("z", "retries", "of forge_pr.py"))]
    ranking = search("retries of the forge_pr.py block", *snapshots)
    halves = ranking.weights[::2], ranking.weights[1::2]
    one, other = (bm25.part_of(ranking, half, snapshots) for half in halves)
    assert one.pieces == other.pieces == ranking.pieces
    assert (one.scores + other.scores).tolist() == pytest.approx(ranking.scores.tolist(), abs=1e-9, rel=0)
    assert bm25.part_of(ranking, ranking.weights, snapshots).scores.tolist() == ranking.scores.tolist()
