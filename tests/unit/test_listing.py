"""MEMORY.md line by line: which lines are rows, and that nobody's words are lost."""

import pytest

from memd.errors import Unreadable
from memd.listing import STALE, Listing, Row, _own_spans, listed_by, row


def of(text: str) -> Listing:
    """The listing of a text."""
    return Listing(text.encode())


LINES = [
    # line, the note it lists
    ("- [a](a.md) — hook", "a"),
    ("- [a](a.md)", "a"),
    ("- [A label](a.md) - hook", "a"),
    ("- [a](a.md) — see [b](b.md)", "a"),
    ("- [Other](a.md) — see [b](b.md)", "a"),
    ("- [a](a.md)\r\n", "a"),
    ("\ufeff- [a](a.md)\n", "a"),
    ("- [我喜欢 pnpm](我喜欢-pnpm.md)", "我喜欢-pnpm"),
    ("- [a](with space.md)", "with space"),
    ("- [](a.md)", "a"),
    ("- [ ] todo, see [a](a.md)", "a"),
    # (, ) and ] in a stem are written as they are
    ("- [a(1)](a(1).md) — hook", "a(1)"),
    ("- [x](a(1).md)", "a(1)"),
    ("- [a]b](a]b.md)", "a]b"),
    ("- [x](a]b.md)", "a]b"),
    ("- [a](b](a](b.md)", "a](b"),
    ("- [a.md)b](a.md)b.md)", "a.md)b"),
    # links that are no note's
    ("- [web](http://x/a.md)", None),
    ("- [web](http://x/a.md) and [b](b.md)", "b"),
    ("- [sub](sub/a.md)", None),
    ("- [see](other) [b](b.md)", "b"),
    ("- [top](MEMORY.md)", None),
    ("- [hidden](.a.md)", None),
    ("- [memory](memory.md)", None),
    ("- [.a](.a.md)", None),
    ("- [a/b](a/b.md)", None),
    ("- [nothing](.md)", None),
    ("- [a](a.MD)", None),
    ("- [a](a.txt)", None),
    ("- [a] (a.md)", None),
    # lines that do not begin as a row
    (" - [a](a.md)", None),
    ("* [a](a.md)", None),
    ("-  [a](a.md)", None),
    ("[a](a.md)", None),
    ("# - [a](a.md)", None),
    ("", None),
    ("- [", None),
]


@pytest.mark.parametrize(("line", "name"), LINES, ids=[line for line, _ in LINES])
def test_which_note_a_line_lists(line: str, name: str | None) -> None:
    assert listed_by(line) == name


def test_a_line_with_two_readings_lists_the_note_there_is() -> None:
    line = "- [Label](we](ird.md)"
    assert listed_by(line) == "ird"
    assert listed_by(line, {"we](ird"}) == "we](ird"
    assert listed_by(line, {"we](ird", "ird"}) == "ird"
    assert listed_by("- [Label](a.md)b.md)", {"a.md)b"}) == "a.md)b"
    assert listed_by("- [a](a.md)](a](a.md).md)", {"a](a.md)"}) == "a](a.md)"
    assert listed_by("- [Label](gone.md) — see [b](b.md)", {"b"}) == "gone"
    assert listed_by("- [gone](gone.md) — see [b](b.md)", {"b"}) == "gone"


def test_a_stem_may_be_as_long_as_a_file_name() -> None:
    name = "x" * 251
    assert listed_by(row(name, "h")) == name
    assert listed_by(f"- [L]({name}.md)") == name
    odd = "x" * 120 + "](" + "y" * 120
    assert listed_by(row(odd, "h")) == odd
    assert listed_by(f"- [L]({odd}.md)", {odd}) == odd


@pytest.mark.parametrize("part", ["](", ".md)", "](a.md)", "](/.md)", "- [a", "](a/b.md)](", "x](x"])
def test_a_line_of_many_links_is_read_in_no_time(part: str) -> None:
    line = "- [" + part * (200_000 // len(part))
    listed_by(line, {"zz"})
    listed_by(line + "](a.md)", {"zz"})


@pytest.mark.parametrize(
    ("name", "hook", "line"),
    [
        ("a", "when x, do y", "- [a](a.md) — when x, do y"),
        ("a", "", "- [a](a.md)"),
        ("a", "  ", "- [a](a.md)"),
        ("a(1)]", "h", "- [a(1)]](a(1)].md) — h"),
        ("a", "two\nlines\r\nand\u2028a\x85b\x1b[1m", "- [a](a.md) — two lines  and a b [1m"),
        ("a", "é 日本  語", "- [a](a.md) — é 日本  語"),
        (
            "a",
            "0\x1f1\x7f2\x9f3\u20284\u20295\xa06~7\u20278\u202a9",
            "- [a](a.md) — 0 1 2 3 4 5\xa06~7\u20278\u202a9",
        ),
    ],
)
def test_a_row(name: str, hook: str, line: str) -> None:
    assert row(name, hook) == line


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        ("- [a](a.md) — hook", ("a", "hook", False)),
        ("- [A label](a.md): hook", ("A label", "hook", False)),
        ("- [A label](a.md) - a-b — c", ("A label", "a-b — c", False)),
        ("- [a](a.md)", ("a", "", False)),
        ("- [a](a.md) hook", ("a", "hook", False)),
        (f"- [a](a.md) — hook{STALE}", ("a", "hook", True)),
        (f"- [a](a.md) — hook {STALE}", ("a", "hook", True)),
        ("- [a](a.md) — — hook", ("a", "— hook", False)),
        (f"- [a](a.md){STALE}  \r\n", ("a", "", True)),
        ("\ufeff- [L](a.md) – hook  ", ("L", "hook", False)),
        ("- [L](x/y.md) or [M](a.md) z", ("L](x/y.md) or [M", "z", False)),
    ],
)
def test_what_a_row_says(line: str, parsed: tuple[str, str, bool]) -> None:
    assert of(line).rows() == [Row(0, "a", *parsed)]


def test_the_bytes_are_kept() -> None:
    raw = "\ufeff# Mine\r\n\r\n- [a](a.md)\r\nlast\rline\x0b\x0c\u2028\x85 — no end".encode()
    assert Listing.decode(raw).encode() == raw
    assert [each.index for each in Listing.decode(raw).rows()] == [2]


@pytest.mark.parametrize("raw", [b"\xff", b"- [a](a.md)\xc3\n", b"\xed\xa0\x80"])
def test_what_is_not_utf8_is_refused(raw: bytes) -> None:
    with pytest.raises(Unreadable, match=r"MEMORY\.md"):
        Listing.decode(raw)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", "- [a](a.md) — new\n"),
        ("words", "words\n- [a](a.md) — new\n"),
        ("words\n", "words\n- [a](a.md) — new\n"),
        ("words\r\n", "words\r\n- [a](a.md) — new\r\n"),
        ("one\r\ntwo", "one\r\ntwo\r\n- [a](a.md) — new\r\n"),
        ("\ufeff", "\ufeff- [a](a.md) — new\n"),
        ("x\n- [a](a.md) — old\ny\n", "x\n- [a](a.md) — new\ny\n"),
        ("- [a](a.md) — old", "- [a](a.md) — new"),
        ("\ufeff- [Mine](a.md)\r\ny", "\ufeff- [a](a.md) — new\r\ny"),
        ("- [b](b.md) — see [a](a.md)\n", "- [b](b.md) — see [a](a.md)\n- [a](a.md) — new\n"),
        ("mentions ](a.md)\n", "mentions ](a.md)\n- [a](a.md) — new\n"),
        ("- [aa](aa.md)\n- [x](a.md)\n- [y](a.md)\n", "- [aa](aa.md)\n- [a](a.md) — new\n- [y](a.md)\n"),
    ],
)
def test_a_save_replaces_the_row_in_place_or_appends_one(text: str, after: str) -> None:
    assert of(text).with_row("a", "new").text == after


def test_a_row_that_is_to_stay_stays() -> None:
    listing = of("- [Mine](a.md) — words\n")
    assert listing.with_row("a", "new", replace=False) == listing
    assert listing.with_row("b", "new", replace=False).text == "- [Mine](a.md) — words\n- [b](b.md) — new\n"


def test_whether_a_note_is_listed() -> None:
    listing = Listing("x ](b.md)\n- [Mine](a.md) — see [b](b.md)\n".encode())
    assert listing.lists("a")
    assert not listing.lists("b")


def test_a_line_is_appended_as_it_is() -> None:
    assert Listing(b"x\r\ny").with_lines({"a": "- [Mine](a.md) \n"}).text == "x\r\ny\r\n- [Mine](a.md) \r\n"
    assert Listing().with_lines({"a": "words"}).text == "words\n"
    given = {"a": "- [Other](a.md)", "b": "- [b](b.md) — B"}
    assert Listing(b"- [Mine](a.md)\n").with_lines(given).text == "- [Mine](a.md)\n- [b](b.md) \u2014 B\n"
    assert Listing(b"[x](a.md)\n").with_lines({"a": "- [a](a.md)"}).text == "[x](a.md)\n- [a](a.md)\n"


def test_without_a_note() -> None:
    listing = of("x\n- [a](a.md)\n- [b](b.md) — [a](a.md)\n- [Mine](a.md) — words\n](a.md)")
    assert listing.without("a").text == "x\n- [b](b.md) — [a](a.md)\n](a.md)"
    assert listing.without("c") == listing
    assert of("\ufeff- [a](a.md)\nx").without("a").text == "\ufeffx"
    assert of("x\n- [a](a.md)").without("a").text == "x\n"


RECONCILED = [
    ("", "- [a](a.md) — A\n- [b](b.md)\n"),
    ("# Mine\n\n- [gone](gone.md)\nx", "# Mine\n\nx\n- [a](a.md) — A\n- [b](b.md)\n"),
    ("- [a](a.md)\r\n- [b](b.md)\nno end", "- [a](a.md)\r\n- [b](b.md)\nno end"),
    ("- [b](b.md)\n- [L](a.md) — mine\n", "- [b](b.md)\n- [L](a.md) — mine\n"),
    ("- [a](a.md) — A\n- [again](a.md)\n", "- [a](a.md) — A\n- [b](b.md)\n"),
    ("\ufeff- [gone](gone.md)\r\nx\r\n", "\ufeffx\r\n- [a](a.md) — A\r\n- [b](b.md)\r\n"),
    (
        "- [kept](kept.md)\n- [kept](kept.md)\n",
        "- [kept](kept.md)\n- [kept](kept.md)\n- [a](a.md) — A\n- [b](b.md)\n",
    ),
]


@pytest.mark.parametrize(("text", "after"), RECONCILED)
def test_reconciled(text: str, after: str) -> None:
    notes = {"a": "A", "b": ""}
    assert of(text).reconciled(notes, keep={"kept"}).text == after
    assert of(after).reconciled(notes, keep={"kept"}).text == after


OWN = "- [a](a.md) — old"


@pytest.mark.parametrize(
    ("line", "stale", "after"),
    [
        (OWN, False, "- [a](a.md) — new"),
        (OWN, True, f"- [a](a.md) — new{STALE}"),
        (OWN, None, "- [a](a.md) — new"),
        (f"{OWN}{STALE}", False, "- [a](a.md) — new"),
        (f"{OWN}{STALE}", True, f"- [a](a.md) — new{STALE}"),
        (f"{OWN}{STALE}", None, f"- [a](a.md) — new{STALE}"),
        ("- [a](a.md) — old!", True, "- [a](a.md) — old!"),
        ("- [Mine](a.md) — old", False, "- [Mine](a.md) — old"),
        (f"- [Mine](a.md) — old{STALE}", False, f"- [Mine](a.md) — old{STALE}"),
        ("- [b](b.md) — old", False, "- [b](b.md) — old"),
    ],
)
def test_only_a_row_of_memds_own_is_rewritten(line: str, stale: bool | None, after: str) -> None:
    listing = of(f"x\n{line}\r\n{line}")
    assert listing.with_own_row("a", "new", OWN.__eq__, stale=stale).text == f"x\n{after}\r\n{after}"


def test_a_hook_that_ends_like_the_mark_is_no_mark() -> None:
    own = row("a", f"old{STALE}")
    listing = of(own).with_own_row("a", "new", own.__eq__)
    assert listing.text == "- [a](a.md) — new"


MANY = "# Notes\n\n- [a](a.md) — one\r\n- [b](b.md)\n- [a](a.md) — again\nwords\n- [x](x.md)"


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        (MANY, ["a", "b", "c"], {"a": "- [a](a.md) — one\r\n", "b": "- [b](b.md)\n"}),
        (MANY, ["x", "y"], {"x": "- [x](x.md)"}),
        ("", ["a"], {}),
        (f"\ufeff{MANY}", ["b"], {"b": "- [b](b.md)\n"}),
        # what may be read in several ways is left to be looked at line by line
        (MANY, ["a", "c]d"], None),
        (MANY, ["a", "see.md)x"], None),
        (f"- [Mine](b.md)\n{MANY}", ["a", "b"], None),
        (f"see [b](b.md)\n{MANY}", ["a", "b"], None),
        ("\ufeff- [a](a.md)\n", ["a"], None),
        # a label that no note can have decides nothing
        ("- [a/b](a/b.md) [b](b.md)\n", ["b"], None),
        ("- [Memory](Memory.md) [b](b.md)\n", ["b"], None),
        ("- [.a](.a.md) [b](b.md)\n", ["b"], None),
        (f"- [{256 * 'a'}]({256 * 'a'}.md) [b](b.md)\n", ["b"], None),
        ("- [memory-b](memory-b.md)\n", ["memory-b"], {"memory-b": "- [memory-b](memory-b.md)\n"}),
        (f"- [Mine](b.md)\n{MANY}", ["a"], {"a": "- [a](a.md) — one\r\n"}),
    ],
)
def test_where_the_rows_of_many_notes_stand(text: str, names: list[str], found: dict[str, str] | None) -> None:
    raw = text.encode()
    spans = _own_spans(raw, names)
    lines = None if spans is None else {name: raw[slice(*span)].decode() for name, span in spans.items()}
    assert lines == found


def test_many_rows_are_put_in_together() -> None:
    listing = of(MANY)
    for number in range(100):
        listing = listing.with_row(f"n{number}", "new").with_row("b", f"turn {number}")
    added = "".join(f"\n- [n{number}](n{number}.md) — new" for number in range(100))
    assert listing.text == MANY.replace("(b.md)", "(b.md) — turn 99") + added + "\n"
    assert listing.lists("n99")
    assert not listing.lists("n100")
    assert listing.without("n7") != listing
