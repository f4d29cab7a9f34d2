"""What a durable save costs, beside one append and fdatasync on the same file system. Law: the disk is real.

A save is four files staged and synced, two directories and a journal: `save.files` writes them in the order of SPEC
section 4 one after the other and without memd, which is what the disk asks for by itself. Each kind of save is taken
turn by turn with the floor: through the daemon by the blocking client, and in process by `Store.commit`. Of a commit
of many saves the rows tell what one of them takes, of the files of one what it takes to stage them together, each
beside the same one after the other. Then saves a second with 1, 8, 32 and 64 clients, which send prepared lines from
one process that does nothing else: one loop over all their sockets, so that what is measured with 64 is memd and not
64 clients, and the same loop with 1. How much more 64 get depends on the disk, too: with `--dir` it is measured on
any. A file system with a journal syncs a batch for little more than one save; one without, where a sync costs 0.1
ms, leaves memd's own work as the bound. A loop-mounted image of ext4 has syncs of some 0.4 ms, one that lies in
another some 0.8.
`python -m tests.bench saving` runs it alone.
"""

import os
import random
import selectors
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from memd.fs import Disk
from memd.store import Save, Saved, Store

from .house import PLACE, House, checked, fields, file_system, fill, ground, plot, saves, words
from .rows import Row, median, percentile, report, row

TIMES = 12.0
"""How many appends a save may cost."""
CLIENTS = (1, 8, 32, 64)
GAINS = {32: 3.0, 64: 6.0}
"""How many times more saves a second so many clients must get than one."""
BATCHES = (8, 64)
FILES = 4
"""Files that a save stages."""

_APPENDED = b"x" * 299 + b"\n"
_CHUNK = 1 << 16

Action = Callable[[], object]
T = TypeVar("T")


class Size(NamedTuple):
    """How much is measured: notes in the store, turns, and for the rates rounds of so many seconds."""

    notes: int
    more_notes: int
    turns: int
    rounds: int
    seconds: float


FULL = Size(notes=1000, more_notes=10_000, turns=60, rounds=3, seconds=1.5)
QUICK = Size(notes=100, more_notes=1000, turns=10, rounds=1, seconds=0.3)


def run(quick: bool = False, place: Path = PLACE) -> dict[str, object]:
    """The rows of this bench, ready for JSON, measured in a directory of `place`."""
    with ground(place) as root:
        return measure(root, QUICK if quick else FULL)


def measure(root: Path, size: Size) -> dict[str, object]:
    """The rows, measured in `root`."""
    one, many = House(plot(root, "one")), House(plot(root, "many"))
    one.fill(size.notes)
    many.fill(size.notes)
    with floor(root) as append:
        with one.served():
            rows = through_daemon(one, append, size)
        rows += compared("save.files", Files(plot(root, "files"), one.store).save, [*range(size.turns)], append, None)
        rows += in_process(plot(root, "store"), append, size.notes, size.turns)
        rows += in_batches(plot(root, "batches"), size)
        rows += staged(plot(root, "staged"), size)
        rows += in_process(plot(root, "larger"), append, size.more_notes, size.turns, suffix=f".{size.more_notes}")
    with many.served():
        rows += rates(many, size)
    return report("saving", rows, notes=size.notes, file_system=file_system(root))


# -- one save ----------------------------------------------------------------------------------------------------


@contextmanager
def floor(directory: Path) -> Iterator[Action]:
    """One append of 300 bytes and an fdatasync, to a file that stays open."""
    fd = os.open(directory / "floor", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def append() -> None:
        os.write(fd, _APPENDED)
        os.fdatasync(fd)

    try:
        yield append
    finally:
        os.close(fd)


class Files:
    """The files of a save, written without memd; the index and the counters as long as those of `store`."""

    def __init__(self, directory: Path, store: Path) -> None:
        self._directory = directory
        self._objects = directory / "objects"
        self._objects.mkdir()
        self._listing = (store / "MEMORY.md").read_bytes()
        self._usage = (store / "usage.json").read_bytes()

    def save(self, number: int) -> None:
        """Object, note, MEMORY.md, usage.json and journal, each durable before the next is named."""
        note = f"note {number} ".encode() * 100
        placed(note, self._objects / f"{number}")
        synced(self._objects)
        placed(note, self._directory / f"{number}.md")
        placed(self._listing, self._directory / "MEMORY.md")
        placed(self._usage, self._directory / "usage.json")
        synced(self._directory)
        fd = os.open(self._directory / "ops.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, _APPENDED)
        os.fsync(fd)
        os.close(fd)


def placed(data: bytes, path: Path) -> None:
    """Stage a file, sync it and rename it into place."""
    staged = f"{path}.tmp"
    fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    os.rename(staged, path)  # noqa: PTH104 - a floor makes no path objects


def synced(directory: Path) -> None:
    """Sync a directory."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def through_daemon(house: House, append: Action, size: Size) -> list[Row]:
    """Saves of new notes, and of notes that are there, by the blocking client."""
    chance = random.Random(2)

    def asked(name: str) -> dict[str, object]:
        return {"markdown": words(chance, 80), "fields": fields(chance, name), "cwd": str(house.repo)}

    with house.client() as client:
        client.open()
        new = [asked(f"new-{turn}") for turn in range(size.turns)]
        old = [asked(f"note-{turn % size.notes}") for turn in range(size.turns)]
        save = partial(client.call, "memory.save")
        return [*compared("save.new", save, new, append), *compared("save.old", save, old, append)]


def in_process(directory: Path, append: Action, notes: int, turns: int, suffix: str = "") -> list[Row]:
    """`Store.commit` of one new note, without daemon and wire."""
    store = Store(directory)
    fill(store, random.Random(1), notes)

    def commit(request: Save) -> None:
        (outcome,) = store.commit([request]).outcomes
        if not isinstance(outcome, Saved):
            raise TypeError(outcome)

    return compared(f"save.commit{suffix}", commit, list(saves(random.Random(3), "new", turns)), append, None)


def in_batches(directory: Path, size: Size) -> list[Row]:
    """What one save takes of a commit of so many, beside a commit of one, taken turn by turn."""
    store = Store(directory)
    fill(store, random.Random(1), size.notes)
    turns = max(size.turns // 4, 2)
    requests = saves(random.Random(3), "new", turns * sum((1, *BATCHES)))
    taken: dict[int, list[float]] = {count: [] for count in (1, *BATCHES)}
    for _ in range(turns):
        for count, times in taken.items():
            batch = list(islice(requests, count))
            times.append(timed(partial(store.commit, batch)) / count)
    alone = median(taken[1])
    return [row(f"save.batch.{count}", median(taken[count]), "ms", floor=alone) for count in BATCHES]


def staged(directory: Path, size: Size) -> list[Row]:
    """As many new files as a save has, staged together and one after the other, taken turn by turn."""
    disk = Disk()
    texts = [_APPENDED] * FILES

    def together() -> None:
        with disk.staging() as staging:
            for text in texts:
                staging.add(directory, text)
            staging.sync()

    def in_turn() -> None:
        for text in texts:
            with disk.staging() as staging:
                staging.add(directory, text)
                staging.sync()

    taken = [(timed(together), timed(in_turn)) for _ in range(size.turns)]
    beside, alone = zip(*taken, strict=True)
    return [row("save.syncs.p50", median(beside), "ms", floor=median(alone))]


def compared(
    name: str, save: Callable[[T], object], given: list[T], append: Action, most_times: float | None = TIMES
) -> list[Row]:
    """The rows of saves that were taken turn by turn with the floor."""
    taken, appended = [], []
    for one in given:
        appended.append(timed(append))
        taken.append(timed(partial(save, one)))
    return [
        row(f"{name}.p50", median(taken), "ms", floor=median(appended), most_times=most_times),
        row(f"{name}.p90", percentile(taken, 90), "ms", floor=percentile(appended, 90)),
    ]


def timed(action: Action) -> float:
    """The milliseconds of one action."""
    began = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - began)


# -- many clients ------------------------------------------------------------------------------------------------


def rates(house: House, size: Size) -> list[Row]:
    """Saves a second by the number of clients, each number in every round."""
    taken: dict[int, list[float]] = {count: [] for count in CLIENTS}
    for round_number in range(size.rounds):
        for count in CLIENTS:
            lines = prepared(house, size, count, round_number)
            taken[count].append(rate(house, lines, size.seconds))
    gains = {count: median(here / one for here, one in zip(taken[count], taken[1], strict=True)) for count in CLIENTS}
    return list(rate_rows({count: median(each) for count, each in taken.items()}, gains))


def rate_rows(taken: Mapping[int, float], gains: Mapping[int, float]) -> Iterator[Row]:
    """A row for each number of clients; the ratio is the median of the rounds' own."""
    for count, each in taken.items():
        alone = each / gains[count] if count > 1 else None
        yield row(f"save.rate.{count}", each, "saves/s", floor=alone, least_times=GAINS.get(count))


def prepared(house: House, size: Size, clients: int, round_number: int) -> list[Iterator[bytes]]:
    """For each client lines that never end: new texts for notes of its own, which are there."""
    notes = max(size.notes, clients)
    return [lines_of(house, range(number, notes, clients), round_number) for number in range(clients)]


def lines_of(house: House, notes: range, round_number: int) -> Iterator[bytes]:
    """Save lines of one client; a text differs in its first word from every one before."""
    chance = random.Random(notes.start)
    body = words(chance, 80)
    for turn, number in enumerate(cycle(notes)):
        text = f"{round_number}x{notes.step}x{turn} {body}"
        yield house.line("memory.save", markdown=text, fields=fields(chance, f"note-{number}"))


def rate(house: House, clients: list[Iterator[bytes]], seconds: float) -> float:
    """Saves a second of clients that each send their next line when the last is answered.

    None is sent once the time is over, and all that were sent are waited for: they are answered many at once.
    """
    answered, waiting = 0, len(clients)
    with ExitStack() as held, selectors.DefaultSelector() as selector:
        for lines in clients:
            client = held.enter_context(house.raw())
            selector.register(client.sock, selectors.EVENT_READ, (client.sock, lines))
            client.sock.sendall(next(lines))
        began = time.perf_counter()
        while waiting:
            for key, _ in selector.select():
                sock, lines = key.data
                checked(sock.recv(_CHUNK))
                answered += 1
                if time.perf_counter() < began + seconds:
                    sock.sendall(next(lines))
                else:
                    waiting -= 1
        return answered / (time.perf_counter() - began)
