"""Inputs made long: `python -m tests.fuzz.scaling TARGET`. Law: twice the bytes may take twice the time, not more.

Every seed, every input of the corpus, every word and every two words are repeated to a length and to four times that;
what takes more than `FACTOR` times as long is tried again, and is a finding when it does each time. Processor time,
the least of three: what else the machine does does not count.
"""

import itertools
import sys
import time
from collections.abc import Callable, Iterator

from . import corpus
from .corpus import tell
from .targets import TARGETS
from .worker import ROOT

SHORT = 1 << 13
"""Bytes."""
GROWTH = 4
FACTOR = 9.0
"""Four times the bytes in linear time take 4 times as long, in quadratic time 16 times: this is between."""
LEAST_S = 0.02
"""A shorter time at the larger length says nothing."""
TRIES = 3


def main(name: str) -> int:
    """Look for inputs that take too long; the exit status."""
    sys.path.insert(0, str(ROOT / "tests"))
    from . import laws

    check: Callable[[bytes], None] = getattr(laws, TARGETS[name].law)
    worst = 0.0
    slow = []
    tried = 0
    for head, unit, tail in shapes(name):
        tried += 1
        factor = grown(check, head, unit, tail)
        if factor > FACTOR:
            factor = min(factor, *(grown(check, head, unit, tail) for _ in range(TRIES)))
        worst = max(worst, factor)
        if factor > FACTOR:
            slow.append(
                f"{head!r} + {unit!r} * n + {tail!r}: {factor:.1f} times as long for {GROWTH} times the bytes"
            )
    tell(f"{name}: {tried} inputs made long, {GROWTH} times the bytes take at most {worst:.1f} times as long")
    for line in slow:
        tell(line)
    return 1 if slow else 0


def shapes(name: str) -> Iterator[tuple[bytes, bytes, bytes]]:
    """What stands before, what is repeated, and what stands behind."""
    target = TARGETS[name]
    inputs = [*target.seeds, *corpus.kept(name)]
    for data in inputs:
        yield b"", data, b""
        half = len(data) // 2
        for unit in (data[:half], data[half:]):
            if unit:
                yield data[:half], unit, data[half:]
    for word in target.words:
        yield b"", word, b""
        for seed in target.seeds[:2]:
            at = len(seed) // 2
            yield seed[:at], word, seed[at:]
    for pair in itertools.permutations(target.words, 2):
        yield b"", b"".join(pair), b""


def grown(check: Callable[[bytes], None], head: bytes, unit: bytes, tail: bytes) -> float:
    """How many times as long the long input takes; 0 when that is no time at all."""
    count = max(1, SHORT // len(unit))
    data = head + unit * (count * GROWTH) + tail
    long_s = taken(check, data)
    if long_s < LEAST_S:
        return 0.0
    return min(long_s, taken(check, data)) / taken(check, head + unit * count + tail)


def taken(check: Callable[[bytes], None], data: bytes) -> float:
    """Processor seconds of a check, the least of a few."""
    best = float("inf")
    for _ in range(2):
        began = time.process_time()
        check(data)
        best = min(best, time.process_time() - began)
    return max(best, 1e-9)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
