"""Much that is to be committed, in slices. Law: whoever writes to the same store meanwhile waits for one of them.

How long a slice takes is the machine's to say: the first is small, and each is as large as the one before allows.
"""

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

from memd.store import SLICES, next_slice

T = TypeVar("T")


def in_slices(things: Sequence[T]) -> Iterator[tuple[Sequence[T], bool]]:
    """Each slice, and whether it is the last; none of nothing. The time until the next is asked for is its own."""
    size, start = SLICES[0], 0
    while start < len(things):
        some = things[start : start + size]
        start += len(some)
        began = time.monotonic()
        yield some, start >= len(things)
        size = next_slice(size, time.monotonic() - began, len(things))
