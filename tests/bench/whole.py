"""What touches a whole store: an import, a rebuild, an opening. Law: all through the daemon, while others ask, too.

The floor of the import is the same files written into a directory, each with its fsync, and no more: an import also
writes each text as an object. Whoever else asks meanwhile is a client that says `daemon.hello` again and again; the
rows `….others` tell what it waited at most. A rebuild is measured of a store in which nothing is wrong and of one
whose note files are all gone. The journal that is opened has a save for each note and reads and saves of it, to so
many records; opening is the first answer of a daemon that runs. `python -m tests.bench whole` runs it alone.
"""

import json
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from memd.store import Author, Count, Saved, Store

from .house import PLACE, House, Unsynced, committed, file_system, ground, note_files, plot, saves, words
from .rows import Row, median, report, row
from .saving import timed

REBUILD_S = 10.0
OPEN_S = 1.0

_HELLO = b'{"jsonrpc":"2.0","id":1,"method":"daemon.hello","params":{"protocol":1}}\n'
_READER = Author(session="bench")
_READS = 4
_PAUSE_S = 0.005


class Size(NamedTuple):
    """How much is measured: notes imported and rebuilt; notes and records of the journal, and how often it opens."""

    notes: int
    journaled_notes: int
    records: int
    openings: int


FULL = Size(notes=10_000, journaled_notes=2_000, records=100_000, openings=3)
QUICK = Size(notes=200, journaled_notes=50, records=500, openings=1)


def run(quick: bool = False, place: Path = PLACE) -> dict[str, object]:
    """The rows of this bench, ready for JSON, measured in a directory of `place`."""
    with ground(place) as root:
        return measure(root, QUICK if quick else FULL)


def measure(root: Path, size: Size) -> dict[str, object]:
    """The rows, measured in `root`."""
    rows = [*imported_and_rebuilt(root, size), *opened(root, size)]
    return report("whole", rows, notes=size.notes, records=size.records, file_system=file_system(root))


# -- import and rebuild -----------------------------------------------------------------------------------------


def imported_and_rebuilt(root: Path, size: Size) -> Iterator[Row]:
    """An import of a directory in one call, and the rebuilds of what came of it."""
    house = House(plot(root, "importing"))
    texts = dict(note_files(random.Random(1), size.notes))
    source, floor = plot(root, "source"), plot(root, "floor")
    for name, text in texts.items():
        (source / f"{name}.md").write_bytes(text)
    with house.served():
        least = timed(partial(written, texts, floor)) / 1000
        yield from called(house, f"import.{size.notes}", least, dir=str(source))
        yield from called(house, f"rebuild.{size.notes}", None)
        gone = plot(root, "gone")
        for path in house.store.glob("note-*.md"):
            path.rename(gone / path.name)  # deleted, they would slow the disk down
        yield from called(house, f"rebuild.{size.notes}.gone", None)
    standing = sum(1 for _ in house.store.glob("note-*.md"))
    if standing != size.notes:
        raise RuntimeError(f"{standing} of {size.notes} notes stand at the end")


def written(texts: dict[str, bytes], directory: Path) -> None:
    """Each text in a file of its own, synced before the next is begun."""
    for name, text in texts.items():
        fd = os.open(directory / f"{name}.md", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, text)
        os.fsync(fd)
        os.close(fd)


def called(house: House, name: str, floor: float | None, **params: object) -> Iterator[Row]:
    """The seconds of one call of `memory.<verb>`, the first word of the name, and what others waited meanwhile."""
    verb = name.partition(".")[0]
    line = house.line(f"memory.{verb}", **params)
    with house.raw() as client, others(house) as waited:
        seconds = timed(partial(client.ask, line)) / 1000
    yield row(name, seconds, "s", floor=floor, most=REBUILD_S if verb == "rebuild" else None)
    yield row(f"{name}.others", max(waited), "ms")


@contextmanager
def others(house: House, line: bytes = _HELLO) -> Iterator[list[float]]:
    """While another client asks, `daemon.hello` or what `line` asks: the milliseconds it waited for each answer."""
    waited: list[float] = []
    ended = threading.Event()

    def ask() -> None:
        with house.raw() as client:
            while not ended.is_set():
                waited.append(timed(partial(client.ask, line)))
                ended.wait(_PAUSE_S)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield waited
    finally:
        ended.set()
        asking.join()


# -- opening ----------------------------------------------------------------------------------------------------


def opened(root: Path, size: Size) -> Iterator[Row]:
    """A store with a long journal, opened by daemons that just started."""
    house = House(plot(root, "opening"))
    live(house, size)
    question = house.line("memory.search", query=words(random.Random(4), 3))
    taken = []
    for _ in range(size.openings):
        with house.served(), house.raw() as client:
            taken.append(timed(partial(client.ask, question)) / 1000)
    yield row(f"open.{size.records}", median(taken), "s", most=OPEN_S)
    with house.served(), house.raw() as client, others(house) as waited:
        client.ask(question)
    yield row(f"open.{size.records}.others", max(waited), "ms")
    with house.served(), house.raw() as client:
        log = house.line("memory.log", limit=20)
        total = json.loads(client.ask(log))["result"]["total"]
        yield row(f"log.{size.records}", timed(partial(client.ask, log)), "ms")
    if total != size.records:
        raise RuntimeError(f"the journal has {total} records")


def live(house: House, size: Size) -> None:
    """Give a store its notes and years of use, round after round: each note is saved once and read four times."""
    chance = random.Random(1)
    house.home.mkdir(mode=0o700)
    store = Store(house.store, origin=house.repo, disk=Unsynced())
    for _ in range(size.records // (size.journaled_notes * (1 + _READS))):
        saved = committed(store, saves(chance, "note", size.journaled_notes))
        entries = [outcome.entry for outcome in saved if isinstance(outcome, Saved)]
        committed(store, (Count(entry.name, entry.hash, _READER) for entry in entries for _ in range(_READS)))
