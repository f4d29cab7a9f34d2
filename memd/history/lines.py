"""A file line by line. Law: a file is never held whole, however long a line of it is.

A file that grows is read from where it ended: each line says where the next reading begins. SPEC section 11.
"""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

LINE_MAX = 4 << 20
"""Bytes of a line that is read; a longer one is passed over."""
CHUNK = 1 << 18
"""Bytes read at a time."""


class Span(NamedTuple):
    """A line and where it lies; `raw` is None for one that is too long, and has no line end in it."""

    start: int
    end: int
    raw: bytes | None
    whole: bool


def read_lines(stream: BinaryIO, offset: int, most: int | None = None) -> Iterator[Span]:
    """The lines from `offset` on, blank ones left out; the last has `whole` False where no line end follows it yet.

    With `most` no more than about so many bytes are read. Errors: OSError.
    """
    stream.seek(offset)
    held = b""
    start = offset  # of `held`, or of the line that is too long to be held
    dropped = 0  # bytes of that line passed over so far
    while (most is None or stream.tell() - offset < most) and (chunk := stream.read(CHUNK)):
        *ended, rest = (held + chunk).split(b"\n") if not dropped else chunk.split(b"\n")
        for raw in ended:
            end = start + dropped + len(raw) + 1
            if dropped or raw.strip():
                yield Span(start, end, None if dropped or len(raw) > LINE_MAX else raw, whole=True)
            start, dropped = end, 0
        held = rest
        if dropped or len(held) > LINE_MAX:
            dropped += len(held)
            held = b""
    if dropped or held.strip():
        yield Span(start, start + dropped + len(held), None if dropped else held, whole=False)
