"""A file cut into lines: the same whatever the pieces it is read in. SPEC section 11."""

import io
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.history import lines
from memd.history.lines import LINE_MAX, Span, read_lines


class Counting(io.BytesIO):
    """A stream that remembers the longest piece anybody asked for."""

    asked = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.asked = max(self.asked, size if size is not None and size >= 0 else LINE_MAX * 100)
        return super().read(size)


def cut(stream: BinaryIO, offset: int = 0) -> list[Span]:
    return list(read_lines(stream, offset))


PARTS = st.lists(st.sampled_from([b"", b" ", b"a", b"bc", b"\r", b'{"x":1}']))


@given(data=PARTS.map(b"\n".join), offset=st.integers(0, 3), piece=st.integers(1, 7))
def test_lines_are_those_of_the_bytes(data: bytes, offset: int, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK", piece)
        found = cut(io.BytesIO(data), offset)
    at = offset
    expected = []
    for line in io.BytesIO(data[offset:]):
        raw = line.removesuffix(b"\n")
        if raw.strip():
            expected.append(Span(at, at + len(line), raw, whole=line.endswith(b"\n")))
        at += len(line)
    assert found == expected


@pytest.mark.parametrize("ended", [True, False])
def test_a_line_that_is_too_long_is_never_held(ended: bool) -> None:
    huge = b"x" * (LINE_MAX + 1)
    data = b"a\n" + huge + (b"\nb\n" if ended else b"")
    stream = Counting(data)
    found = cut(stream)
    assert found[0] == Span(0, 2, b"a", whole=True)
    end = 2 + len(huge) + ended
    assert found[1] == Span(2, end, None, whole=ended)
    assert found[2:] == ([Span(end, end + 2, b"b", whole=True)] if ended else [])
    assert stream.asked <= lines.CHUNK


def test_a_line_of_just_the_longest_is_read() -> None:
    assert cut(io.BytesIO(b"x" * LINE_MAX + b"\n")) == [Span(0, LINE_MAX + 1, b"x" * LINE_MAX, whole=True)]
