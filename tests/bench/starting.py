"""What a start costs: of `memctl search`, beside a bare interpreter, and of the daemon. Law: both caches are warm.

The interpreter is the one that runs the bench; programs are taken in turn, after a run of each that is not
counted. A cold start runs from the daemon's spawning to the answer of the first `memory.search`, and the
resident memory is what the daemon has then. `python -m tests.bench starting` runs it alone.
"""

import random
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import NamedTuple

from .house import PLACE, House, end, file_system, ground, plot, question, resident_mb, run_program, words
from .rows import Row, median, percentile, report, row

TIMES = 3.0
"""How many bare interpreters a `memctl search` may cost."""
START_S = 0.5
RESIDENT_MB = 80.0

_BARE = [sys.executable, "-c", "pass"]
_IMPORTS = [sys.executable, "-c", "import memd.daemon"]


class Size(NamedTuple):
    """How much is measured: notes in the store, runs of each program, and starts of the daemon."""

    notes: int
    runs: int
    starts: int


FULL = Size(notes=1000, runs=40, starts=9)
QUICK = Size(notes=100, runs=5, starts=2)


def run(quick: bool = False, place: Path = PLACE) -> dict[str, object]:
    """The rows of this bench, ready for JSON, measured in a directory of `place`."""
    with ground(place) as root:
        return measure(root, QUICK if quick else FULL)


def measure(root: Path, size: Size) -> dict[str, object]:
    """The rows, measured in `root`."""
    house = House(plot(root, "served"))
    house.fill(size.notes)
    rows = [*cold_starts(house, size), *commands(house, size)]
    return report("starting", rows, notes=size.notes, file_system=file_system(root))


def commands(house: House, size: Size) -> list[Row]:
    """`memctl search` against a daemon that runs, as a person types it; it prints every hit.

    Of the two questions one is for words that few notes hold, the other, without a bound, for those that most do.
    """
    search = [str(Path(sysconfig.get_path("scripts")) / "memctl"), "-C", str(house.repo), "search"]
    chance = random.Random(4)
    programs = [_BARE, [*search, *question(chance).split()], [*search, *words(chance, 3).split()]]
    with house.served():
        runs = [[1000 * run_program(program, house.env) for program in programs] for _ in range(size.runs + 1)]
    bare, some, most = zip(*runs[1:], strict=True)
    return [
        row("memctl.search.p50", median(some), "ms", floor=median(bare), most_times=TIMES),
        row("memctl.search.p90", percentile(some, 90), "ms", floor=percentile(bare, 90)),
        row("memctl.search.most.p50", median(most), "ms", floor=median(bare)),
    ]


def cold_starts(house: House, size: Size) -> list[Row]:
    """The daemon's starts, in turn with a program that only imports what it imports."""
    imported: list[float] = []
    started: list[float] = []
    resident: list[float] = []
    for _ in range(size.starts + 1):
        imported.append(run_program(_IMPORTS, house.env))
        seconds, megabytes = cold_start(house)
        started.append(seconds)
        resident.append(megabytes)
    return [
        row("start.p50", median(started[1:]), "s", floor=median(imported[1:]), most=START_S),
        row("start.max", max(started[1:]), "s"),
        row("start.resident", max(resident), "MB", most=RESIDENT_MB),
    ]


def cold_start(house: House) -> tuple[float, float]:
    """The seconds from the spawning to the first answer, and the resident memory at that moment."""
    line = house.line("memory.search", query=question(random.Random(4)))
    began = time.perf_counter()
    daemon: subprocess.Popen[bytes] = house.spawn()
    try:
        with house.raw(daemon) as client:
            client.ask(line)
        return time.perf_counter() - began, resident_mb(daemon.pid)
    finally:
        end(daemon)
