"""The pure decision of a save: every refusal and its words, the overlay, the warnings, what an update keeps."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from memd import draft as drafts
from memd import note
from memd.draft import Draft, compose, draft
from memd.errors import Refused

CASES = Path(__file__).parent.parent / "cases"
REFUSALS: list[dict[str, Any]] = json.loads((CASES / "refusals.json").read_text("utf-8"))
NOTES: list[dict[str, Any]] = json.loads((CASES / "notes.json").read_text("utf-8"))
SLUGS: list[dict[str, Any]] = json.loads((CASES / "slugs.json").read_text("utf-8"))

KEY = "ghp_q1W2e3R4t5Y6u7I8o9P0a1S2"


def text(*lines: str, body: str = "Body.") -> str:
    return "\n".join(("---", "description: A fact", "type: project", *lines, "---", "", body, ""))


def refusal(markdown: str, **fields: object) -> Refused:
    with pytest.raises(Refused) as caught:
        draft(markdown, fields)
    return caught.value


def updated(made: Draft, old: str) -> str:
    return compose(made, "a", old.encode())[1].decode()


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: str(case["refused"]))
def test_refuses_the_case(case: dict[str, Any]) -> None:
    if case["refused"] is None:
        draft(case["markdown"], case["fields"])
        return
    with pytest.raises(Refused) as caught:
        draft(case["markdown"], case["fields"])
    assert caught.value.field == case["refused"]
    if "kind" in case:
        assert case["kind"] in caught.value.text
        assert caught.value.got == case["kind"]


@pytest.mark.parametrize(
    "case", [c for c in NOTES if "canonical" in c and "text" in c], ids=lambda case: case["stem"]
)
def test_saves_the_case_in_canonical_form(case: dict[str, Any]) -> None:
    fields = {"name": case["stem"]}
    if case["canonical"] is None:
        with pytest.raises(Refused):
            draft(case["text"], fields)
        return
    found, raw = compose(draft(case["text"], fields), case["stem"], case["text"].encode())
    assert raw.decode() == case["canonical"]
    assert found == note.parse(case["stem"], raw)


def test_a_note_that_is_not_utf8_can_be_saved_over() -> None:
    (case,) = (case for case in NOTES if "base64" in case)
    _, raw = compose(draft(text(), {}), "a", base64.b64decode(case["base64"]))
    assert note.parse("a", raw).trouble is None


@pytest.mark.parametrize("case", [c for c in SLUGS if "text" in c], ids=lambda case: str(case)[:40])
def test_names_the_case(case: dict[str, Any]) -> None:
    if case["refused"]:
        assert refusal(text(), name=case["text"]).field == "name"
        return
    made = draft(text(), {"name": case["text"]})
    assert (made.slug, made.derived, made.given) == (case["slug"], False, case["text"].strip())


@pytest.mark.parametrize("case", [c for c in SLUGS if "description" in c], ids=lambda case: str(case)[:40])
def test_derives_the_case(case: dict[str, Any]) -> None:
    made = draft("Body.", {"type": "user", "description": case["description"]})
    assert (made.slug, made.derived, made.given) == (case["slug"], True, None)


@pytest.mark.parametrize(
    ("markdown", "fields", "field", "bound", "got"),
    [
        ("", {"type": "user"}, "description", 240, 0),
        ("#\n", {"type": "user"}, "description", 240, 0),
        ("x", {"type": "user", "description": "a\r\nb\nc"}, "description", 1, 3),
        ("x", {"type": "user", "description": "a\rb"}, "description", 1, 2),
        ("x", {"type": "user", "description": "x" * 241}, "description", 240, 241),
        ("x" * 241, {"type": "user"}, "description", 240, 241),
        ("x", {"type": "user", "description": drafts.PLACEHOLDER}, "description", 240, "placeholder"),
        ("x", {}, "type", ["user", "feedback", "project", "reference"], None),
        ("x", {"type": "note"}, "type", ["user", "feedback", "project", "reference"], "note"),
        (text(), {"scope": "team"}, "scope", ["repo", "global"], "team"),
        (text(), {"scope": ""}, "scope", ["repo", "global"], None),
        (text("scope: team"), {}, "scope", ["repo", "global"], "team"),
        (text(), {"name": "MEMORY"}, "name", "not memory", None),
        (text(), {"name": ""}, "name", "a letter or digit", None),
        (text("name: '!!!'"), {}, "name", "a letter or digit", None),
        (text(body="é" * 4097), {}, "body", 8192, 8194),
        ("---\na: 1\n", {}, "frontmatter", "a block that parses", "line 1"),
        ("---\na: 1\nb: 'x\n---\n", {}, "frontmatter", "a block that parses", "line 3"),
        (text(), {"tags": 3}, "fields", "text", "int"),
        (text(), {"name": None}, "fields", "text", "NoneType"),
        (text(), {"a key": "x"}, "fields", "[A-Za-z0-9_-]+", None),
        (text(), {"": "x"}, "fields", "[A-Za-z0-9_-]+", None),
        (text(body="\ud800"), {}, "text", "UTF-8", "surrogate"),
        (text(), {"x": "\udfff"}, "text", "UTF-8", "surrogate"),
        (text(body="<<<yi-external"), {}, "text", "no <<<yi-external", "fence"),
        (text(body=KEY), {}, "text", "nothing key-shaped", "ghp_"),
    ],
)
def test_names_the_field_the_bound_and_what_was_got(
    markdown: str, fields: dict[str, object], field: str, bound: object, got: object
) -> None:
    refused = refusal(markdown, **fields)
    assert (refused.field, refused.bound, refused.got) == (field, bound, got)
    named = {"frontmatter": "frontmatter", "fields": "field"}.get(field, field)
    assert named in refused.text
    assert ";" in refused.text  # what is wrong; what to do


def test_bounds_are_reached() -> None:
    made = draft(text(body="é" * 4096), {"description": "é" * 240})
    assert (len(made.description), len(made.body.encode())) == (240, 8192)


@pytest.mark.parametrize("kind", ["<secret>", "sk", "a b", f"{KEY}"])
def test_a_value_is_shown_only_when_it_is_a_short_word(kind: str) -> None:
    refused = refusal(text(), type=kind)
    assert refused.got == ("sk" if kind == "sk" else None)
    assert kind not in refused.text or kind == "sk"


@pytest.mark.parametrize(
    ("markdown", "fields", "place"),
    [
        (text(body=f"one\ntwo {KEY}"), {}, "line 7"),
        (text(), {"description": KEY}, "the field description"),
        (text(), {"note": KEY}, "a field"),
        (text(), {KEY: "x"}, "a field"),
        (text(), {KEY[:12]: KEY}, "a field"),
        ("x", {"type": "user", "description": f"-{KEY} a"}, None),
        (
            '---\ndescription: "\\u0067hp_q1W2e3R4t5Y6u7I8o9P0a1S2"\ntype: user\n---\n',
            {},
            "an escaped value",
        ),
        (
            '---\n{"type": "user", "description": "d", "x": "\\u003c<<yi-external"}\n---\n',
            {},
            "an escaped value",
        ),
    ],
)
def test_names_the_place_of_a_key_and_never_the_value(
    markdown: str, fields: dict[str, str], place: str | None
) -> None:
    if place is None:
        draft(markdown, fields)
        return
    refused = refusal(markdown, **fields)
    assert refused.field == "text"
    assert place in refused.text
    assert KEY[:12] not in refused.text
    assert KEY[4:] not in refused.text + str(refused.data())


def test_no_refusal_shows_the_notes_words() -> None:
    word = "xylophone"
    for markdown, fields in [
        (f"---\n{word}: '{word}\n---\n{word}", {}),
        (f"---\n{word}: {word}\n", {}),
        (word, {"type": f"{word} {word}"}),
        (word, {"type": "user", "description": f"{word}\n{word}"}),
        (word, {"type": "user", "name": "memory"}),
        (word, {"type": "user", "scope": f"{word}-{word}"}),
        (word, {f"{word} {word}": word}),
        (f"{word} <<<yi-external {word}", {"type": "user"}),
        (f"{word} {KEY}", {"type": "user"}),
        (word * 1000, {"type": "user", "description": "d"}),
    ]:
        refused = refusal(markdown, **fields)
        assert word not in refused.text + str(refused.data())


# ---------------------------------------------------------------- the overlay


def test_fields_overlay_the_block() -> None:
    made = draft(
        text("name: one", "scope: repo", "a: 1", "a: 2", "b: 3"),
        {"name": "two", "type": "user", "description": " other ", "scope": "global", "a": "x", "c": "z"},
    )
    assert (made.given, made.slug, made.type, made.description) == ("two", "two", "user", "other")
    assert made.scope == "global"
    assert made.extra == ("a: x", "b: 3", "c: z")


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("claude", "x: claude"),
        ("two words", "x: two words"),
        ("a: b", 'x: "a: b"'),
        ("true", 'x: "true"'),
        ("0.8", 'x: "0.8"'),
        ("", 'x: ""'),
        ("a\nb", 'x: "a\\nb"'),
        ("---\nevil: 1", 'x: "---\\nevil: 1"'),
        ("[a]", 'x: "[a]"'),
    ],
)
def test_an_unknown_field_is_plain_or_json(value: str, line: str) -> None:
    assert draft(text(), {"x": value}).extra == (line,)


@pytest.mark.parametrize("lines", [["scope: global"], ["scope: repo", "scope: 'global'"]])
def test_scope_picks_the_store_and_is_not_written(lines: list[str]) -> None:
    made = draft(text(*lines), {})
    assert made.scope == "global"
    assert made.extra == ()


def test_scope_is_repo_by_default() -> None:
    assert draft(text(), {}).scope == "repo"
    assert draft(text("scope:"), {}).scope == "repo"


@pytest.mark.parametrize("line", ["name:", 'name: ""', "name: '  '", "name: ~"])
def test_an_empty_name_in_the_block_is_none(line: str) -> None:
    made = draft(text(line), {})
    assert (made.given, made.derived, made.slug) == (None, True, "a-fact")


# ---------------------------------------------------------------- warnings


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("names", "name"),
        ("Name", "name"),
        ("nmae", "name"),
        ("descripton", "description"),
        ("desc", None),
        ("typ", "type"),
        ("date", "name"),
        ("scop", "scope"),
        ("tags", None),
        ("title", None),
        ("source", None),
        ("metadata", None),
        ("node_type", None),
        ("TYPE", None),
        ("t", None),
    ],
)
def test_a_key_within_two_edits_is_kept_and_named(key: str, near: str | None) -> None:
    for made in (draft(text(f"{key}: x", f"{key}: y"), {}), draft(text(), {key: "x"})):
        assert made.extra[0] == f"{key}: x"
        if near is None:
            assert made.warnings == ()
            continue
        (warning,) = made.warnings
        assert f"`{key}`" in warning
        assert f"`{near}`" in warning


@pytest.mark.parametrize(
    ("markdown", "word"),
    [
        ('---\n{"description": "d", "type": "user"}\n---\n', "JSON"),
        ("---\ntype: user\n---\n# First\n", "first line"),
        (text(body="sk-1234-fix-flaky-upload"), "sk-"),
        (text(body="ghp_abc123"), "ghp_"),
    ],
)
def test_warns(markdown: str, word: str) -> None:
    (warning,) = draft(markdown, {}).warnings
    assert word in warning


def test_the_description_comes_from_the_body() -> None:
    assert draft("## First\n\nmore", {"type": "user"}).description == "First"
    assert draft("First", {"type": "user", "description": " "}).description == "First"


# ---------------------------------------------------------------- updates


def test_an_update_keeps_the_old_unknown_keys() -> None:
    old = text("source: claude", "a: old", "a: older", "odd words", "scope: global")
    made = draft(text("a: new"), {"name": "a"})
    assert updated(made, old) == (
        '---\nname: a\ndescription: "A fact"\ntype: project\na: new\nsource: claude\nodd words\n---\n\nBody.\n'
    )


def test_an_update_repeats_no_odd_line() -> None:
    old = text("odd words", "a: 1")
    assert updated(draft(old, {"name": "a"}), old).count("odd words") == 1


def test_an_update_drops_the_key_that_spoilt_the_block() -> None:
    old = text("title: 'open", "a: 1", "b:", '  "x')
    found, _ = compose(draft(text(), {}), "a", old.encode())
    assert (found.trouble, found.extra) == (None, ("a: 1", 'b:\n  "x'))


@pytest.mark.parametrize("old", [None, "", "---\nnever: closed\n"])
def test_there_may_be_nothing_to_keep(old: str | None) -> None:
    found, raw = compose(draft(text(), {}), "a", None if old is None else old.encode())
    assert (found.extra, found.hook, found.body) == ((), "A fact", "Body.")
    assert raw == b'---\nname: a\ndescription: "A fact"\ntype: project\n---\n\nBody.\n'


MASKED = [
    text(body="the key is [redacted]"),
    text("x: '[redacted]'"),
    text('x: "a"', body="b [redacted] c"),
]


@pytest.mark.parametrize("masked", MASKED)
def test_the_mask_is_not_saved_over_the_words(masked: str) -> None:
    made = draft(masked, {})
    assert made.masked
    with pytest.raises(Refused) as caught:
        updated(made, text(body=KEY))
    assert caught.value.field == "text"
    assert KEY not in caught.value.text
    assert "[redacted]" in updated(made, text(body="no key"))
    assert compose(made, "a", None)[0].trouble is None


def test_a_text_without_the_mask_may_replace_a_key() -> None:
    made = draft(text(), {"description": "A fact"})
    assert not made.masked
    assert KEY not in updated(made, text(body=KEY))


def test_a_note_over_the_file_cap_is_refused() -> None:
    old = text("x: " + "y" * (note.MAX_FILE - 100))
    with pytest.raises(Refused) as caught:
        updated(draft(text("z: " + "y" * 200), {}), old)
    assert (caught.value.field, caught.value.bound) == ("text", note.MAX_FILE)
