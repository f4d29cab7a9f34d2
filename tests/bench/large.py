"""A store of 100,000 notes: what a search costs, and the memory that notes take. Law: all of it in a daemon.

The notes are strewn into the store and taken in by an opening that is not measured. Then a daemon for each size
answers its first search, by which it has opened the store, and is weighed. A question has 1, 3 or 12 words of
a vocabulary of 4,096, the frequent ones more often; its time is that of the round trip over the socket, so that what
it took inside the daemon is less. `python -m tests.bench large` runs it alone.
"""

import random
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

from .house import PLACE, House, file_system, ground, plot, resident_mb, words
from .rows import Row, median, percentile, report, row
from .saving import timed

P50_MS = 10.0
TERMS = (1, 3, 12)
FULL = (1_000, 10_000, 100_000)
QUICK = (50, 100, 200)


def run(quick: bool = False, place: Path = PLACE) -> dict[str, object]:
    """The rows of this bench, ready for JSON, measured in a directory of `place`."""
    with ground(place) as root:
        return measure(root, QUICK if quick else FULL, 20 if quick else 200)


def measure(root: Path, sizes: tuple[int, ...], questions: int) -> dict[str, object]:
    """The rows, measured in `root`."""
    rows: list[Row] = []
    weights: dict[int, float] = {}
    for notes in sizes:
        house = House(plot(root, f"{notes}"))
        house.strew(notes)
        with house.served() as pid, house.raw() as client:
            opened = timed(partial(client.ask, question(house, 1, 0)))
            weights[notes] = resident_mb(pid)
            rows.append(row(f"large.open.{notes}", opened / 1000, "s"))
            rows.append(row(f"large.resident.{notes}", weights[notes], "MB"))
            if notes == max(sizes):
                for terms in TERMS:
                    lines = [question(house, terms, number) for number in range(questions)]
                    times = [timed(partial(client.ask, line)) for line in lines]
                    rows.append(row(f"large.search.p50.{terms}", median(times), "ms", most=P50_MS))
                    rows.append(row(f"large.search.p99.{terms}", percentile(times, 99), "ms"))
    rows += growth(weights)
    return report("large", rows, notes=max(sizes), file_system=file_system(root))


def question(house: House, terms: int, number: int) -> bytes:
    """A search for so many words."""
    return house.line("memory.search", query=words(random.Random(1000 * terms + number), terms))


def growth(weights: dict[int, float]) -> Iterator[Row]:
    """What 1,000 notes more weigh, from each size to the next."""
    sizes = sorted(weights)
    for fewer, more in pairwise(sizes):
        grown = 1000 * (weights[more] - weights[fewer]) / (more - fewer)
        yield row(f"large.growth.{more}", grown, "MB per 1,000 notes")
