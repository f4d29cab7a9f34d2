"""Laws of note text: reading never fails, canonical text comes back, other YAML readers agree, slugs are fixed."""

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memd import note
from memd.note import Note, NoteType, reading

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# What trips readers: indicators, quotes, escapes, line ends of every kind, marks, controls.
TRICKY = st.sampled_from(
    list(":#[]{}&*!>|'\"%@`-?,\\~=<\t \u0085\u2028\u2029\ufeff\x00\x7f\x1b\u200d\u0301é数😀aZ09_.\xa0")
)
WORDS = st.sampled_from(
    ["true", "no", "null", "~", "123", "1e3", "0x1f", "2024-01-01", "1:30", "- ", ": ", " #", "yes"]
)
LINE = st.lists(st.one_of(TRICKY, WORDS, st.characters(exclude_categories=["Cs"]))).map("".join)
ONE_LINE = LINE.map(lambda text: text.replace("\n", " ").replace("\r", " "))
NAME = ONE_LINE.filter(bool)

BLOCK_LINE = st.one_of(
    st.sampled_from(
        [
            "---",
            "--- ",
            " ---",
            "",
            "  ",
            "# c",
            "- a",
            "-",
            "odd",
            "a: 1",
            "a:",
            "  b: c",
            "\tt: u",
            # and the keys that mean something, whole and broken
            "name: x",
            "description: d",
            'description: "d"',
            'description: "',
            "description: >",
            "type: user",
            "type:",
            "metadata:",
            "  type: project",
            "metadata: {type: user}",
            "{",
            "}",
            '{"a": 1}',
            "x: 'y",
        ]
    ),
    LINE,
)
TEXT = st.lists(BLOCK_LINE, max_size=12).map("\n".join)
ANY_TEXT = st.builds(
    lambda start, lines, end: start + lines + end,
    st.sampled_from(["", "---\n", "\ufeff---\r\n", "  --- \n"]),
    TEXT,
    st.sampled_from(["", "\n---\n", "\r\n---\r\n\r\nbody\r\n", "\n--- \n\n\nb\n\n", "\r"]),
)


def bytes_of(found: Note) -> bytes:
    kind = found.type or NoteType.USER  # no save goes without one
    return note.render(found.name, found.description, kind, found.extra, found.body)


@QUICK
@given(st.binary(max_size=300))
def test_any_bytes_read(raw: bytes) -> None:
    found = note.parse("stem", raw)
    assert found.name == "stem"
    assert "\n" not in found.hook
    assert len(found.hook) <= note.MAX_HOOK
    found.body.encode()


@QUICK
@given(ANY_TEXT)
@example("---\n  a: 1\n---\n")
@example("---\n  ---\n  x\ntype: user\n---\n")
@example("---\n# c\n---\n")
@example("---\n# c")
@example("---\ntype: lesson\nmetadata: {type: user}\n---\n")
@example("a\r\r\nb\r")
def test_a_rewritten_note_reads_the_same_and_rewrites_to_its_own_bytes(text: str) -> None:
    found = note.parse("stem", text.encode())
    if found.trouble is not None:
        return  # it keeps its file untouched
    raw = bytes_of(found)
    again = note.parse("stem", raw)
    assert again.trouble is None
    assert (again.hook, again.body, again.description) == (found.hook, found.body, found.description)
    assert again.type == (found.type or NoteType.USER)
    assert "\n".join(again.extra) == "\n".join(found.extra)
    assert bytes_of(again) == raw
    assert found.body == "" or (found.body.split("\n")[0].strip() and found.body.split("\n")[-1].strip())


@QUICK
@given(NAME, LINE, st.sampled_from(NoteType), LINE)
@example("yes", "- a: b # c", NoteType.USER, "")
@example("a\u2028b", "\u0085", NoteType.USER, "b")
@example("1_000", "x\ry", NoteType.USER, "b")
@example("a ", "'", NoteType.USER, "b")
def test_other_yaml_readers_give_the_same_strings(name: str, description: str, kind: NoteType, body: str) -> None:
    raw = note.render(name, description, kind, ("x: 1",), body.strip())
    _, block, rest = raw.decode().split("---\n", 2)
    assert yaml.safe_load(block) == {
        "name": name,
        "description": description,
        "type": kind.value,
        "x": 1,
    }
    assert "\r" not in block
    assert rest == "" or rest.startswith("\n")
    read = note.read(raw.decode())
    assert (read.description, read.type) == (description, kind.value)
    assert read.name == name.strip()


@QUICK
@given(st.text(max_size=400))
@example("Ｊ̌")
@example("İ")
@example("ΑΣ σ")
@example("x" * 79 + " y")
def test_a_slug_is_its_own_slug_and_a_good_stem(text: str) -> None:
    slug = note.slug(text)
    assert note.slug(slug) == slug
    assert len(slug) <= note.MAX_SLUG
    assert len(slug.encode()) <= note.MAX_SLUG_BYTES
    assert slug == slug.strip("-")
    assert "--" not in slug
    assert not slug or slug == note.RESERVED or note.is_note_name(slug + note.SUFFIX)


@QUICK
@given(st.text("abc-_ .é", max_size=200))
def test_long_gaps_and_cuts_do_not_change_what_is_left(text: str) -> None:
    """Against the plain wording: a run of anything else is one dash, ends trimmed, cut at the last dash."""
    plain = "-".join("".join(c if c.isalpha() else " " for c in text).split())
    slug = note.slug(text)
    if len(plain) <= note.MAX_SLUG:
        assert slug == plain
    else:
        assert plain.startswith(slug)
        assert plain[len(slug)] == "-" or "-" not in plain[: note.MAX_SLUG]


class _Never:
    """Matches nothing."""

    def match(self, _text: str) -> None:
        """Nothing."""


@QUICK
@given(
    st.one_of(NAME, st.sampled_from(["a", "null", "true", "x.y-z", "no"])),
    st.one_of(LINE, st.sampled_from(["It's so", " spaced ", "a: b # c", ""])),
    st.sampled_from(["user", "lesson", "null", "", "- user"]),
    st.one_of(LINE, TEXT),
)
def test_a_block_as_memd_writes_it_reads_as_any_other(name: str, description: str, kind: str, body: str) -> None:
    text = f'---\nname: {name}\ndescription: "{description}"\ntype: {kind}\n---\n{body}'
    found = reading.read(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "_PLAIN", _Never())
        assert reading.read(text) == found
