"""Note text both ways: the table of cases, and the corners the contract names."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from memd import note
from memd.note import NoteType

CASES = Path(__file__).parent.parent / "cases"
NOTES: list[dict[str, Any]] = json.loads((CASES / "notes.json").read_text("utf-8"))
SLUGS: list[dict[str, Any]] = json.loads((CASES / "slugs.json").read_text("utf-8"))


def raw_of(case: dict[str, Any]) -> bytes:
    if "base64" in case:
        return base64.b64decode(case["base64"])
    text: str = case["text"]
    return text.encode()


def block(*lines: str, body: str = "Body text.") -> note.Note:
    text = "\n".join(("---", *lines, "---", "", body, ""))
    return note.parse("stem", text.encode())


def rendered(found: note.Note) -> bytes:
    return note.render(found.name, found.description, found.type, found.extra, found.body)


@pytest.mark.parametrize("case", NOTES, ids=lambda case: case["stem"])
def test_reads_the_case(case: dict[str, Any]) -> None:
    found = note.parse(case["stem"], raw_of(case))
    trouble = found.trouble and {"line": found.trouble.line, "about": found.trouble.about}
    assert found.name == case["stem"]
    assert found.hook == case["hook"]
    assert found.type == case["type"]
    assert found.body == case["body"]
    assert trouble == case["unparsed"]


@pytest.mark.parametrize("case", [case for case in NOTES if case.get("canonical")], ids=lambda case: case["stem"])
def test_canonical_text_renders_to_its_own_bytes(case: dict[str, Any]) -> None:
    canonical = case["canonical"].encode()
    found = note.parse(case["stem"], canonical)
    assert found.trouble is None
    assert rendered(found) == canonical


@pytest.mark.parametrize("case", SLUGS, ids=lambda case: str(case)[:40])
def test_slug_of_the_case(case: dict[str, Any]) -> None:
    if "text" in case:
        assert note.slug(case["text"]) == case["slug"]
    else:
        assert note.derived_slug(case["description"]) == case["slug"]
    assert note.slug(case["slug"]) == case["slug"]


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("feedback_tmp", "feedback-tmp"),
        ("a" + " " * 5000 + "b", "a-b"),
        ("Ｊ̌", "ǰ"),  # a letter and a mark that compose once lower-cased
        ("二〇二四", "二〇二四"),
        ("≠ equal", "equal"),
        ("x-" * 39 + "yz-tail", "x-" * 39 + "yz"),  # the cut falls on the dash: the whole word stays
        ("x-" * 39 + "yzz-tail", "x-" * 38 + "x"),
        ("數" * 60 + "-" + "數" * 10, "數" * 60),
    ],
)
def test_slug(text: str, slug: str) -> None:
    assert note.slug(text) == slug


@pytest.mark.parametrize(
    ("filename", "is_note"),
    [
        ("a.md", True),
        ("我喜欢-pnpm.md", True),
        ("a b (conflicted copy).md", True),
        ("my-memory.md", True),
        ("a.md.md", True),
        ("MEMORY.md", False),
        ("Memory.md", False),
        (".md", False),
        (".hidden.md", False),
        ("a.MD", False),
        ("a.txt", False),
        ("a\nb.md", False),
        ("a\x7fb.md", False),
        ("a\x85b.md", False),
        ("a\udcffb.md", False),
    ],
)
def test_is_note_name(filename: str, is_note: bool) -> None:
    assert note.is_note_name(filename) is is_note


@pytest.mark.parametrize(
    ("value", "description"),
    [
        ("plain words", "plain words"),
        ("", ""),
        ("~", ""),
        ("null", ""),
        ('""', ""),
        ("'a' b", "'a' b"),
        ('"a" # b', '"a" # b'),
        ('"a"   ', "a"),
        ("{flow: map}", "{flow: map}"),
        ("[flow, list]", "[flow, list]"),
        ("> not a header", "> not a header"),
        (">-", ""),
        ("|\n  one\n  two", "one\ntwo"),
        ("|2\n  one\n    two", "one\n  two"),
        (">+\n  one\n  two\n\n  three\n", "one two\nthree"),
        (">\n  one\n    more\n  two", "one\n  more two"),
        ("\n  below\n  and on", "below and on"),
        ('\n  "quoted below"', "quoted below"),
        ("a\n# comment\n  b", "a b"),
        ("a\n  # comment\n  b", "a b"),
        ('"a\n  # text\n  b"', "a # text b"),
        ('"a\\\n  \\ b"', "a b"),
        ('"a\n\n  b"', "a\nb"),
        (r'"\ud83d\ude00 \ud83d \x41 \U0001F600 \q C:\dir"', "😀 \ufffd A 😀 \\q C:\\dir"),
        (r'"\udbff\udfff"', "\U0010ffff"),
        (r'"\"\\\/\b\f\n\r\t"', '"\\/\b\f\n\r\t'),
        (r'"ends in \\"', "ends in \\"),
    ],
)
def test_description_as_given(value: str, description: str) -> None:
    found = block(f"description: {value}", "type: user")
    assert found.trouble is None
    assert found.description == description
    assert found.type == "user"


def test_a_hook_of_several_lines_is_one() -> None:
    found = block("description: |", "  one", "", "  two", "type: user")
    assert (found.description, found.hook) == ("one\n\ntwo", "one two")


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (["type: user"], "user"),
        (["type: 'user'"], "user"),
        (["type: User"], None),
        (["type: lesson", "metadata:", "  type: user"], None),
        (["type:", "metadata:", "  type: user"], "user"),
        (["metadata:", "  # one", "", "  node_type: memory", "  type: project"], "project"),
        (["metadata:", "  deep:", "    type: project"], None),
        (["metadata:", "  {type: project}"], "project"),
        (["metadata: {a: {type: user}, b: [x, type: user], 'type': \"project\"}"], "project"),
        (["metadata: {", "  note: it's, type: project", "  }"], "project"),
        (['metadata: {"type":"project"}'], "project"),
        (["metadata: {type: user, type: project}"], "project"),
        (["metadata: {type: user"], None),
        (["metadata: {type: user}, {type: project}"], "user"),
        (["metadata: words"], None),
        (["metadata:", "  type: user", "metadata:", "  type: project"], "project"),
    ],
)
def test_type_at_the_top_or_in_metadata(lines: list[str], kind: str | None) -> None:
    assert block("description: d", *lines).type == kind


@pytest.mark.parametrize(
    ("lines", "extra"),
    [
        (["a: 1", "", "# c", "  x", "b: 2"], ("a: 1\n\n# c\n  x", "b: 2")),
        (["a: 1", "a: 2"], ("a: 1", "a: 2")),
        (["tags:", "- one", "- two", "b: 1"], ("tags:\n- one\n- two", "b: 1")),
        (["odd words", "  more", "a:1"], ("odd words\n  more", "a:1")),
        (["# only a comment"], ()),
        (["# c", "", "  # c", "a: 1"], ("a: 1",)),
        (["type: user", "- a"], ("- a",)),
        (["scope: repo"], ("scope: repo",)),
        (["clé: x"], ("clé: x",)),
    ],
)
def test_unknown_keys_stay_as_raw_lines(lines: list[str], extra: tuple[str, ...]) -> None:
    found = block(*lines)
    assert found.extra == extra
    assert note.parse("stem", rendered(found)).extra == extra


def test_an_indented_block_is_a_block() -> None:
    found = block("  description: d", "  metadata:", "    type: user", "  odd", "x: 1")
    assert (found.description, found.type) == ("d", NoteType.USER)
    assert found.extra == ("metadata:\n  type: user", "odd", "x: 1")


def test_an_indented_line_never_joins_the_key_before_it() -> None:
    found = block("  ---", "  words", "type: user")
    again = note.parse("stem", rendered(found))
    assert (again.type, again.body, again.trouble) == (NoteType.USER, "Body text.", None)


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (['title: "open'], 2),
        (["a: 1", "", "# c", "description: 'open", "type: user"], 5),
        (["# c", 'description: "open', "type: user"], 3),
        (["description:", '  "open'], 2),
        (['description: "first is open', "description: second"], 2),
        (['description: "ends in \\"'], 2),
    ],
)
def test_an_open_quote_is_named_by_its_keys_line(lines: list[str], line: int) -> None:
    found = block(*lines)
    assert found.trouble is not None
    assert (found.trouble.line, found.trouble.about) == (line, "quote")
    assert (found.hook, found.type) == ("Body text.", None)


def test_not_utf8_is_named_by_the_bad_bytes_line() -> None:
    found = note.parse("a", b"---\ndescription: d\ntype: user\nx: \xff\n---\nb\xfe\n")
    assert found.trouble == note.Trouble(4, "utf-8", "not UTF-8: byte 0xff")
    assert (found.hook, found.body, found.type) == ("b\ufffd", "b\ufffd", None)


@pytest.mark.parametrize(
    ("raw", "about"),
    [(b"---\na: \xff\n", "block"), (b"---\na: \xff\nb: 'x\n---\n", "utf-8")],
)
def test_of_two_troubles_the_first_line_counts(raw: bytes, about: str) -> None:
    found = note.parse("a", raw)
    assert found.trouble is not None
    assert found.trouble.about == about


def test_line_ends() -> None:
    found = note.parse("a", b"---\r\r\ndescription: d\r\n---\r\none\rtwo\r\n\r\nthree\r")
    assert (found.description, found.body) == ("d", "one\rtwo\n\nthree")


@pytest.mark.parametrize(
    ("body", "hook"),
    [
        ("#\n\n## Real", "Real"),
        ("#hash", "hash"),
        ("#", ""),
        ("   indented", "indented"),
        ("> quoted", "> quoted"),
    ],
)
def test_hook_from_the_body(body: str, hook: str) -> None:
    assert note.parse("a", body.encode()).hook == hook


def test_json_block() -> None:
    found = block(
        '{"name": "x", "description": "d\\ud800", "a": 1, "a": [0.5, null], "odd key": {"b": "\\u2028"},',
        '"metadata": {"type": "project"}, "scope": "global"}',
    )
    assert (found.description, found.type) == ("d\ufffd", NoteType.PROJECT)
    assert found.extra == (
        "a: 1",
        "a: [0.5, null]",
        '"odd key": {"b": "\\u2028"}',
        'metadata: {"type": "project"}',
        'scope: "global"',
    )


@pytest.mark.parametrize("text", ["{not json}", '{"a": NaN}', '{"a": 1e999}', "{" * 50000 + "}"])
def test_what_only_looks_like_json_is_kept(text: str) -> None:
    assert block(text).extra == (text,)


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "buildhost-tmp-is-ram",
        "feedback_snake",
        "我喜欢-pnpm",
        "हिन्दी",
        "3d-printing",
        "2024-01-01-notes",
        "release 1.2",
        "a.b",
        "x (conflicted copy)",
        "v1",
        "e3",
        "nullable",
    ],
)
def test_a_name_that_stands_plain(name: str) -> None:
    assert note.plain_or_quoted(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "true",
        "Yes",
        "NO",
        "on",
        "off",
        "null",
        "y",
        "N",
        "~",
        "123",
        "1_000",
        "0x1f",
        "0o7",
        "0b1",
        "1e3",
        "1e-3",
        "2024-01-01",
        "2024-1-1",
        "1:30",
        "1.5",
        "0.8",
        "a: b",
        "a #b",
        "a:",
        "- a",
        "-1",
        "-",
        "?",
        "a ",
        " a",
        "a\tb",
        "[a]",
        "{a}",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "'a'",
        '"a"',
        "%a",
        "@a",
        "`a`",
        "=",
        "<<",
        ".inf",
        "a\u2028b",
        "a\x00b",
        "a\u200db",
        "#a",
        "_",
    ],
)
def test_a_name_that_is_quoted(name: str) -> None:
    assert note.plain_or_quoted(name) == note.quote(name)


def test_quote_escapes_what_some_reader_takes_for_a_line_end_or_for_nothing() -> None:
    text = 'é"\\\n\x00\x7f\x85\u2028\u2029\ufeff\uffff😀'
    quoted = note.quote(text)
    assert quoted == r'"é\"\\\n\u0000\u007f\u0085\u2028\u2029\ufeff\uffff😀"'
    assert json.loads(quoted) == text


@pytest.mark.parametrize("mark", [*":#[]{}&*!>|'\"%@`?-,~", ": ", " #", "- ", "? "])
@pytest.mark.parametrize("around", ["{}", "{} x", "x {} y", "x{}y", "x {}", "x{}", "1{}2"])
def test_marks_in_a_name_or_hook_come_back_in_other_readers_too(mark: str, around: str) -> None:
    text = around.format(mark)
    raw = note.render(text, text, NoteType.USER, (), "Body.")
    block = yaml.safe_load(raw.decode().split("---\n")[1])
    assert (block["name"], block["description"]) == (text, text)
    assert note.parse("stem", raw).description == text
    assert rendered(note.parse(text, raw)) == raw


def test_render_without_a_type_or_body() -> None:
    assert note.render("a", "d", None, ("x: 1",), "") == b'---\nname: a\ndescription: "d"\nx: 1\n---\n'


M = note.MAX_FILE
WORST = {
    "keys": b"---\n" + b"a:1\n" * (M // 4) + b"---\n",
    "quotes": b"---\n" + b'a:"1\n' * (M // 5) + b"---\n",
    "items": b"---\na:\n" + b"- \n" * (M // 3) + b"---\n",
    "fold": b"---\ndescription:\n" + b" a\n" * (M // 3) + b"---\n",
    "backslashes": b'---\ndescription: "' + b"\\" * M + b"\n---\n",
    "flow": b"---\nmetadata: {" + b"a:'\"" * (M // 4) + b"\n---\n",
    "json": b"---\n" + b'{"a":' * (M // 5) + b"}\n---\n",
    "returns": b"\r" * M + b"x",
    "spaces": b" " * M + b"x",
    "hashes": b"#\n" * (M // 2),
    "fences": b"---\n" + b"--- x\n" * (M // 6),
    "indents": b"---\n" + b" a:1\n" * (M // 5) + b"---\n",
    "bytes": b"\xff" * M,
}


@pytest.mark.parametrize("case", WORST)
def test_a_mebibyte_of_anything_is_read_at_once(case: str) -> None:
    start = time.perf_counter()
    note.parse("a", WORST[case])
    # A text that took the square of its length would need hours; this only has to tell the two apart.
    assert time.perf_counter() - start < 5


def test_a_name_of_marks_is_slugged_at_once() -> None:
    start = time.perf_counter()
    note.slug("\u0301\u0316" * 500_000)
    assert time.perf_counter() - start < 5


# ---------------------------------------------------------------- the tag of a source

TAGGED = [
    (b"", b"---\nsource: claude\n---\n"),
    (b"plain", b"---\nsource: claude\n---\n\nplain"),
    (b"plain\r\nmore\r\n", b"---\r\nsource: claude\r\n---\r\n\r\nplain\r\nmore\r\n"),
    (b"---\nname: a\n---\nx", b"---\nsource: claude\nname: a\n---\nx"),
    (b"---\r\nname: a\r\n---\r\nx", b"---\r\nsource: claude\r\nname: a\r\n---\r\nx"),
    (b"--- \n---\nx", b"--- \nsource: claude\n---\nx"),
    (b"\xef\xbb\xbf---\nname: a\n---\n", b"\xef\xbb\xbf---\nsource: claude\nname: a\n---\n"),
    (b"\xef\xbb\xbfplain", b"\xef\xbb\xbf---\nsource: claude\n---\n\nplain"),
    (b"---\n  name: a\n  type: user\n---\n", b"---\n  source: claude\n  name: a\n  type: user\n---\n"),
    (b"---\n# c\n\n name: a\n---\n", b"---\n# c\n\n source: claude\n name: a\n---\n"),
    (b"---\nname: a\nnever closes\n", b"---\nname: a\nnever closes\n"),
    (b"---\nsource: claude\nname: a\n---\n", b"---\nsource: claude\nname: a\n---\n"),
    (b"---\nsource: other\n---\n", b"---\nsource: claude\nsource: other\n---\n"),
    (b"---\nname: a\nsource: claude\n---\n", b"---\nsource: claude\nname: a\nsource: claude\n---\n"),
    (b'---\n{"name": "a"}\n---\nx', b'---\n{"source": "claude", "name": "a"}\n---\nx'),
    (b'---\n{\n "name": "a"\n}\n---\nx', b'---\n{"source": "claude", \n "name": "a"\n}\n---\nx'),
    (b"---\n{}\n---\nx", b'---\n{"source": "claude"}\n---\nx'),
    (b'---\n{"source": "claude", "name": "a"}\n---\n', b'---\n{"source": "claude", "name": "a"}\n---\n'),
    (b"---\n{not json}\n---\nx", b"---\nsource: claude\n{not json}\n---\nx"),
    (b"---\nname: caf\xe9\n---\n\xff", b"---\nsource: claude\nname: caf\xe9\n---\n\xff"),
]


@pytest.mark.parametrize(("raw", "expected"), TAGGED)
def test_a_source_is_the_first_key_and_every_other_byte_stays(raw: bytes, expected: bytes) -> None:
    assert note.tagged(raw, "claude") == expected
    assert note.tagged(expected, "claude") == expected


@pytest.mark.parametrize("raw", [raw for raw, _ in TAGGED])
def test_a_tag_changes_nothing_that_is_read(raw: bytes) -> None:
    plain, tagged = note.parse("x", raw), note.parse("x", note.tagged(raw, "claude"))
    assert (tagged.hook, tagged.type, tagged.body) == (plain.hook, plain.type, plain.body)
    assert (tagged.trouble is None) == (plain.trouble is None)
    kept = [entry for entry in plain.extra if note.extra_key(entry) != "source"]
    assert [entry for entry in tagged.extra if note.extra_key(entry) != "source"] == kept
    assert tagged.trouble or any(note.entry_value(entry) == "claude" for entry in tagged.extra)
