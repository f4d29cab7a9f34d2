"""What a hand writes, until the journal has it. Law: nobody tells the daemon; it hears by itself.

An edit's time begins when its last byte is written and ends when the journal has grown. Idle is the processor time
of a daemon with so many stores opened and listened to, of which none changes. Then notes are dropped into a store,
one after another as a checkout does, while three clients ask again and again: one saves there, one searches there,
one lists another store. `python -m tests.bench live` runs it alone.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from .house import PLACE, House, fields, file_system, ground, note_files, plot, words
from .rows import Row, median, percentile, report, row
from .whole import others

P50_MS, P99_MS = 150.0, 500.0
IDLE_PERCENT = 0.5
DROPPED_S = 10.0
OTHERS_MS = 250.0

_LOOK_S = 0.0005
_STATUS = b'{"jsonrpc":"2.0","id":1,"method":"daemon.status","params":{}}\n'


class Size(NamedTuple):
    """How much is measured: edits, stores and the seconds they are left alone, and notes dropped at once."""

    edits: int
    stores: int
    idle_s: float
    dropped: int


FULL = Size(edits=200, stores=20, idle_s=20.0, dropped=1_000)
QUICK = Size(edits=5, stores=3, idle_s=0.2, dropped=20)


def run(quick: bool = False, place: Path = PLACE) -> dict[str, object]:
    """The rows of this bench, ready for JSON, measured in a directory of `place`."""
    with ground(place) as root:
        return measure(root, QUICK if quick else FULL)


def measure(root: Path, size: Size) -> dict[str, object]:
    """The rows, measured in `root`."""
    house = House(plot(root, "live"))
    house.fill(50)
    rows: list[Row] = []
    with house.served() as pid:
        for number in range(size.stores - 1):
            save_elsewhere(house, number)
        listened(house, size.stores)
        rows += edited(house, size.edits)
        rows.append(idle(pid, size))
        rows += dropped(house, size.dropped)
    return report("live", rows, stores=size.stores, file_system=file_system(root))


def save_elsewhere(house: House, number: int) -> None:
    """A note in a repository of its own, so that its store is opened."""
    repo = other_repo(house, number)
    (repo / ".git").mkdir(parents=True)
    given = fields(random.Random(number), "first")
    with house.raw() as client:
        client.ask(house.line("memory.save", cwd=str(repo), markdown="A note.", fields=given))


def other_repo(house: House, number: int) -> Path:
    """The directory of another repository."""
    return house.repo.with_name(f"quay-{number}")


def listened(house: House, stores: int) -> None:
    """Open the first store, and wait until all are listened to."""
    with house.raw() as client:
        client.ask(house.line("memory.list", limit=1))
        wait(lambda: is_listened(client.ask(_STATUS), stores))


def is_listened(reply: bytes, stores: int) -> bool:
    """Whether a status says that so many stores are listened to."""
    status = msgspec.json.decode(reply)["result"]
    return bool(status["watching"]) and status["stores"] >= stores


def wait(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return as soon as something holds. RuntimeError when it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("waited in vain")
        time.sleep(_LOOK_S)


def edited(house: House, count: int) -> Iterator[Row]:
    """Milliseconds from a hand's last byte to the journal's line."""
    journal = house.store / "ops.jsonl"
    chance = random.Random(2)
    times = []
    for number in range(count):
        path = house.store / f"note-{number % 50}.md"
        text, size = f"{words(chance, 60)} {number}\n", journal.stat().st_size
        path.write_text(text)
        began = time.perf_counter()
        wait(lambda size=size: journal.stat().st_size > size)  # type: ignore[misc]
        times.append((time.perf_counter() - began) * 1000)
        time.sleep(chance.uniform(0, 0.02))  # a hand keeps no step with the listener
    yield row("live.edit.p50", median(times), "ms", most=P50_MS)
    yield row("live.edit.p99", percentile(times, 99), "ms", most=P99_MS)


def idle(pid: int, size: Size) -> Row:
    """Percent of a core that a daemon takes which has nothing to do."""
    time.sleep(min(3.0, size.idle_s))
    before, began = processor_s(pid), time.monotonic()
    time.sleep(size.idle_s)
    percent = 100 * (processor_s(pid) - before) / (time.monotonic() - began)
    return row(f"live.idle.{size.stores}", percent, "% of a core", most=IDLE_PERCENT)


def processor_s(pid: int) -> float:
    """Seconds of processor time that a process has taken, all its threads together, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def dropped(house: House, count: int) -> Iterator[Row]:
    """Seconds until many notes are journaled, from the first one's writing on, and what others waited at most."""
    texts = list(note_files(random.Random(3), count))
    save = house.line("memory.save", markdown="Saved meanwhile.", fields=fields(random.Random(4), "meanwhile"))
    search = house.line("memory.search", query=words(random.Random(5), 3))
    elsewhere = house.line("memory.list", cwd=str(other_repo(house, 0)), limit=5)
    journal = house.store / "ops.jsonl"
    with ExitStack() as asking:
        waited = {
            "save": asking.enter_context(others(house, save)),
            "search": asking.enter_context(others(house, search)),
            "elsewhere": asking.enter_context(others(house, elsewhere)),
        }
        began = time.perf_counter()
        for name, text in texts:
            (house.store / f"dropped-{name}.md").write_bytes(text)
        wait(lambda: journal.read_bytes().count(b'"name":"dropped-') >= count)
        seconds = time.perf_counter() - began
    yield row(f"live.dropped.{count}", seconds, "s", most=DROPPED_S)
    for name, times in waited.items():
        yield row(f"live.dropped.{name}", max(times), "ms", most=OTHERS_MS)
