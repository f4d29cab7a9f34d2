"""Bytes in, request lines out: one table, read whole, byte by byte and in pieces."""

from collections.abc import Iterator

import pytest

from memd.protocol import REQUEST_MAX
from memd.server import Lines, LineTooLongError

CAP = b"x" * REQUEST_MAX
TOO_LONG = "too long"

CASES: dict[str, tuple[bytes, list[bytes | str]]] = {
    "nothing": (b"", []),
    "a line": (b"a\n", [b"a"]),
    "two lines": (b"a\nb\n", [b"a", b"b"]),
    "blank lines are ignored": (b"\n\na\n\n \t\n\r\nb\n\n", [b"a", b"b"]),
    "a carriage return is white space": (b"a\r\n", [b"a\r"]),
    "the last line needs no end": (b"a\nb", [b"a", b"b"]),
    "white space at the end is no line": (b"a\n  ", [b"a"]),
    "a byte of 0 is a byte": (b"\0\n", [b"\0"]),
    "a line as long as the cap": (CAP + b"\nb\n", [CAP, b"b"]),
    "a line over the cap": (CAP + b"x\nb\n", [TOO_LONG, b"b"]),
    "a line far over the cap": (CAP * 3 + b"\nb\n", [TOO_LONG, b"b"]),
    "white space over the cap": (b" " * (REQUEST_MAX + 1) + b"\nb\n", [TOO_LONG, b"b"]),
    "two lines over the cap": (CAP + b"x\n" + CAP + b"x\nb", [TOO_LONG, TOO_LONG, b"b"]),
    "a line over the cap at the end": (b"a\n" + CAP + b"x", [b"a", TOO_LONG]),
    "a last line as long as the cap": (CAP, [CAP]),
}
SHORT = [name for name, (data, _) in CASES.items() if len(data) < 100]


def taken(lines: Lines) -> Iterator[bytes | str]:
    """Everything there is to take."""
    while True:
        try:
            line = lines.take()
        except LineTooLongError:
            yield TOO_LONG
            continue
        if line is None:
            return
        yield line


def read(data: bytes, size: int) -> list[bytes | str]:
    """What comes of `data` in pieces of `size` bytes, taken when it must be and at the end."""
    lines = Lines()
    got: list[bytes | str] = []
    for start in range(0, len(data), size):
        lines.feed(data[start : start + size])
        if lines.is_full:
            got += taken(lines)
            assert not lines.is_full
    got += taken(lines)
    lines.ended = True
    got += taken(lines)
    assert lines.is_empty
    return got


@pytest.mark.parametrize("size", [1 << 16, 65_537, 1 << 19, 1 << 30])
@pytest.mark.parametrize(("data", "expected"), CASES.values(), ids=CASES.keys())
def test_lines_come_whole_and_in_order(data: bytes, expected: list[bytes | str], size: int) -> None:
    assert read(data, size) == expected


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("name", SHORT)
def test_lines_come_byte_by_byte(name: str, size: int) -> None:
    data, expected = CASES[name]
    assert read(data, size) == expected


def test_a_line_too_long_is_known_before_its_end_comes() -> None:
    lines = Lines()
    lines.feed(CAP + b"x")
    with pytest.raises(LineTooLongError):
        lines.take()
    assert lines.is_empty


def test_the_rest_of_a_line_too_long_is_held_no_longer_than_a_chunk() -> None:
    lines = Lines()
    lines.feed(CAP + b"x")
    assert list(taken(lines)) == [TOO_LONG]
    for _ in range(100):
        lines.feed(b"x" * 65_536)
        assert lines.take() is None
        assert lines.is_empty
    lines.feed(b"x\nb\n")
    assert list(taken(lines)) == [b"b"]


def test_a_part_of_a_line_waits_for_the_rest() -> None:
    lines = Lines()
    lines.feed(b'{"a"')
    assert lines.take() is None
    assert not lines.is_empty
    lines.feed(b":1}\n")
    assert lines.take() == b'{"a":1}'
    assert lines.is_empty
