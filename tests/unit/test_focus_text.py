"""What of a note may stand in a block: sanitizing, the fence, cuts, calls."""

import pytest

from memd.focus import text
from memd.focus.text import Dialect
from memd.note import Scope

FENCE = "<<<end-yi-external 0123456789abcdef>>>"


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        ("a\x00b\x1b[31mc\x7fd\x9be", "ab[31mcde"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("a\r\nb\rc", "a\nbc"),
        ("safe \u202etxt.exe\u202c \u2066x\u2069", "safe txt.exe x"),
        ("\U000e0041\U000e0042hidden", "hidden"),
        ("half \ud83d of a pair", "half  of a pair"),
        ("مرحبا \u200fعربي", "مرحبا \u200fعربي"),
        ("👩\u200d💻 < << a<b", "👩\u200d💻 < << a<b"),
        ("<<<", "<\\<\\<"),
        ("<<<<<", "<\\<\\<\\<\\<"),
        (FENCE, "<\\<\\<end-yi-external 0123456789abcdef>>>"),
        ("<\u202e<\x00<yi", "<\\<\\<yi"),
        ("<\u200b<\u200d<\ufeff<yi", "<\\<\\<\\<yi"),
        ("<\u200b< \u200b<", "<\u200b< \u200b<"),
        ("<\\<\\<", "<\\<\\<"),
    ],
)
def test_sanitizing(given: str, clean: str) -> None:
    assert text.body(given) == clean
    assert text.body(clean) == clean


@pytest.mark.parametrize(
    ("given", "clean"),
    [(" a\n\tb\u2028c\u0085d ", "a b c d"), ("a\r\nb", "a b"), ("\n", ""), ("<<\n<", "<< <")],
)
def test_a_line_stays_one(given: str, clean: str) -> None:
    assert text.line(given) == clean


def test_keys_are_masked_also_those_that_only_stripping_joins() -> None:
    key = "ghp_" + "a1b2c3d4e5f6g7h8i9j0k1l2"
    assert text.body(f"x {key} y") == "x [redacted] y"
    assert text.line(f"x {key[:12]}\u202e{key[12:]} y") == "x [redacted] y"


@pytest.mark.parametrize(
    ("given", "size", "kept"),
    [("abc", 3, "abc"), ("abc", 2, "ab"), ("añb", 2, "a"), ("宽宽", 5, "宽"), ("😀", 3, ""), ("", 0, "")],
)
def test_a_cut_ends_at_a_characters_edge(given: str, size: int, kept: str) -> None:
    assert text.cut(given, size) == kept


@pytest.mark.parametrize(
    ("dialect", "name", "call"),
    [
        (Dialect.PYTHON, "a", 'await memory.read("a")'),
        (Dialect.PYTHON, '我 "x"\\', 'await memory.read("我 \\"x\\"\\\\")'),
        (Dialect.MCP, "a", 'memory_read(name="a")'),
        (Dialect.CLI, "a-b_c.d", "memctl show a-b_c.d"),
        (Dialect.CLI, "it's $HOME", "memctl show 'it'\\''s $HOME'"),
        (Dialect.CLI, "-x", "memctl show -- '-x'"),
    ],
)
def test_a_call_names_the_note_as_its_reader_reads_names(dialect: Dialect, name: str, call: str) -> None:
    assert text.read_call(dialect, name) == call


def test_a_failed_stores_reason_is_one_short_clean_line() -> None:
    notice = text.failed_notice(Scope.REPO, "a\nb <<<yi-external " + "x" * 500)
    assert notice.startswith("[the repo store did not load: a b <\\<\\<yi-external x")
    assert len(notice.encode()) < 200
