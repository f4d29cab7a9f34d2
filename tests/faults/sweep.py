"""The sweeps over a live daemon's calls. Law: a sweep that broke nothing, or not what it says, has failed.

`python -m tests.faults.sweep [kills|recoveries|errors …] [--jobs N] [--verb NAME [--at PLACE]]`; each sweep ends with
one line of counts, and a failure names the command that repeats it alone.
"""

import argparse
import errno
import itertools
import os
import shlex
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from .sweep_errors import errors_of, faulted
from .sweep_runs import CHANGES, Aim, Bench, NthAim, about_of, die, report, shape
from .sweep_tasks import carried_out
from .sweep_trap import Die, Op
from .sweep_verbs import verbs
from .sweep_world import World, a_world

MANY: Final = {"kills": 60, "recoveries": 3, "errors": 3}
"""Notes that the verbs of many notes take."""
SLICES: Final = 4
"""Parts that a verb's points are dealt to."""
LEAST: Final = {"kills": 2000, "recoveries": 500, "errors": 1500}
"""Distinct places that each sweep must have broken."""
MISSED: Final = 0.02
"""The share of the places that a run may not come to: threads take turns, and a batch may hold more or fewer."""
TRIES: Final = 3
"""Runs that tell what there is to break, and runs until a place that none came to counts as missed."""


class Task(NamedTuple):
    """One part of a sweep: every `SLICES`-th point of a verb, from `slice` on; or the one place asked for."""

    sweep: str
    verb: str
    slice: int
    at: str | None = None

    def takes(self, number: int, at: str) -> bool:
        """Whether a point is this task's."""
        return at == self.at if self.at is not None else number % SLICES == self.slice


Place = tuple[str, ...]


class Tally:
    """What a task has broken: the places, those of them where something was bad, and what a run did not come to."""

    def __init__(self, task: Task, bench: Bench) -> None:
        self.task, self.bench = task, bench
        self.places: set[Place] = set()
        self.bad_places: set[Place] = set()
        self.bad: list[str] = []
        self.missed = 0
        self._latest: list[Place] = []

    @contextmanager
    def case(self, at: str) -> Iterator[None]:
        """One broken run; what is bad is kept and told, and so is the place where it was."""
        self._latest.clear()
        try:
            yield
        except Exception as error:  # noqa: BLE001 - what nobody has thought of is bad, and no end of the sweep
            command = f"{self.task.sweep} --verb {self.task.verb} --at {shlex.quote(at)}"
            self.bad.append(report(self.bench.world, error, command))
            self.bad_places.update(self._latest)

    def add(self, kind: str, *which: str) -> None:
        """A place was broken: this kind of call, by its number among its kind, or by what it is about."""
        place = (self.task.verb, kind, *which)
        self.places.add(place)
        self._latest.append(place)


def kills(tally: Tally) -> None:
    """The daemon dies before each call, and in the middle of each write, until there is none left."""
    bench = tally.bench
    for number in itertools.count(1):
        at = str(number)
        if not (tally.task.takes(number, at) or tally.task.takes(number, f"{at}h")):
            if number > len(bench.calls) + SLICES:
                return
            continue
        aim = Aim(number, die)
        with tally.case(at):
            outcome = bench.broken(aim)
            if not aim.fired:
                return
            tally.add(*numbered(aim.fired[0]))
            left = bench.left()
            bench.recover_and_judge(outcome, left)
        if aim.fired and aim.fired[0].kind == "write":
            half_of(tally, number)


def half_of(tally: Tally, number: int) -> None:
    """The daemon dies in the middle of the call of that number, where that is a write: threads take turns, so that it
    may be another one at the next try.
    """
    at = f"{number}h"
    for _ in range(TRIES):
        half = Aim(number, lambda op: Die(half=True) if op.kind == "write" else 0)
        with tally.case(at):
            outcome = tally.bench.broken(half)
            if half.fired:
                tally.add(*numbered(half.fired[0]), "half")
                left = tally.bench.left()
                tally.bench.recover_and_judge(outcome, left)
        if half.fired:
            return
    tally.missed += 1


def recoveries(tally: Tally) -> None:
    """The daemon dies at each call of a recovery that has something to do, and another daemon recovers that.

    A recovery that mends the same in the same order as another is the same, whatever its threads look at meanwhile.
    """
    bench, world = tally.bench, tally.bench.world
    known: set[tuple[str, ...]] = set()
    met: set[frozenset[tuple[tuple[str, int | bytes], int]]] = set()
    for number in itertools.count(1):
        aim = Aim(number, die)
        outcome = bench.broken(aim)
        if not aim.fired:
            return
        stands = standing_shape(world)
        if stands in met:
            continue
        met.add(stands)
        left = bench.left()
        broken = world.keep("broken")
        clean = Aim(0, die)
        bench.recover(clean)
        steps = tuple(f"{op.kind} {shape(op.path)}" for op in clean.seen if mends(op))
        if steps in known or not steps:
            continue
        known.add(steps)
        for inner in range(1, sum(op.kind in CHANGES for op in clean.seen) + SLICES):
            at = f"{number}.{inner}"
            if not tally.task.takes(inner, at):
                continue
            with tally.case(at):
                world.back_to(broken)
                left_again = bench.left()
                dying = Aim(inner, die)
                if bench.recover(dying) is not None:
                    break
                tally.add(*numbered(dying.fired[0]), str(number))
                again = bench.left()
                kept_whole = again._replace(locks=left_again.locks, journals=left.journals)
                bench.recover_and_judge(outcome, kept_whole)


def standing_shape(world: World) -> frozenset[tuple[tuple[str, int | bytes], int]]:
    """What a run left, without what chance and the clock have put into it: a recovery does the same with the same."""
    files: Counter[tuple[str, int | bytes]] = Counter()
    for path in world.home.rglob("*"):
        if path.is_file():
            held = path.read_bytes() if path.suffix == ".md" else path.stat().st_size
            files[shape(str(path.relative_to(world.home))), held] += 1
    return frozenset(files.items())


def numbered(op: Op) -> tuple[str, str]:
    """A call's kind, and its number among its kind."""
    return op.kind, str(op.nth)


def mends(op: Op) -> bool:
    """Whether a call of a recovery changes a store."""
    return "memory/" in op.path and op.kind in ("write", "rename", "renameat2", "unlink", "ftruncate")


def errors(tally: Tally) -> None:
    """Each call fails once, and from then on, with each error it can have.

    A call is known by its kind, by the file it is on and by how often that was before: what its number is among all
    calls is for the threads to settle. Those count that come in every run: how often the watcher looks is for time.
    """
    bench = tally.bench
    runs = [learned(bench) for _ in range(TRIES)]
    sure = Counter(map(about_of, runs[0]))
    for run in runs[1:]:
        sure &= Counter(map(about_of, run))
    counts: Counter[tuple[str, str]] = Counter()
    for op in runs[0]:
        about = about_of(op)
        counts[about] += 1
        nth = counts[about]
        if op.path.startswith("run/") or nth > sure[about]:
            continue
        for error, lasting in itertools.product(errors_of(op), (False, True)):
            at = f"{':'.join(about)}:{nth}:{errno.errorcode[error]}:{'on' if lasting else 'once'}"
            if tally.task.takes(zlib.crc32(at.encode()), at):
                with tally.case(at):
                    fail_at(tally, lambda: NthAim(about, nth, error, lasting=lasting), at)  # noqa: B023 - called at once


def learned(bench: Bench) -> list[Op]:
    """The calls of a run in which none fails."""
    aim = Aim(0, die)
    faulted(bench, aim)
    return aim.seen


def fail_at(tally: Tally, aimed: Callable[[], NthAim], at: str) -> None:
    """One fault, tried again where no run came to it. Errors: BadError, HangError."""
    for _ in range(TRIES):
        aim = aimed()
        try:
            faulted(tally.bench, aim)
        finally:
            if aim.fired:
                tally.add(*at.split(":"))
        if aim.fired:
            return
    tally.missed += 1


SWEEPS: Final = {"kills": kills, "recoveries": recoveries, "errors": errors}


class Result(NamedTuple):
    """What one task gave."""

    places: set[Place]
    bad_places: set[Place]
    bad: list[str]
    missed: int


def carry_out(task: Task) -> Result:
    """Do one part of a sweep in this process."""
    (verb,) = [verb for verb in verbs(MANY[task.sweep]) if verb.name == task.verb]
    with a_world() as world:
        try:
            tally = Tally(task, Bench(world, verb))
        except Exception as error:  # noqa: BLE001 - as below
            return Result(set(), set(), [report(world, error, f"{task.sweep} --verb {task.verb}")], 0)
        try:
            SWEEPS[task.sweep](tally)
        except Exception as error:  # noqa: BLE001 - with nothing broken: no place is to blame
            tally.bad.append(report(world, error, f"{task.sweep} --verb {task.verb}"))
        return Result(tally.places, tally.bad_places, tally.bad, tally.missed)


def lost(task: Task) -> Result:
    """What is told of a part whose process ended."""
    text = f"BAD a process ended in the middle of {task.sweep} --verb {task.verb}, part {task.slice}"
    sys.stderr.write(text + "\n")
    return Result(set(), set(), [text], 0)


def main() -> int:
    """Sweep; 1 when anything was bad or too little was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.sweep", description=__doc__)
    parser.add_argument("sweeps", nargs="*", default=sorted(SWEEPS), choices=[[], *SWEEPS])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--verb", action="append")
    parser.add_argument("--at")
    parser.add_argument("--parts", type=int, default=SLICES, help=f"how many of {SLICES} parts of the points")
    arguments = parser.parse_args()
    names = arguments.verb or [verb.name for verb in verbs(1)]
    good = True
    for sweep in arguments.sweeps:
        slices = range(1 if arguments.at else arguments.parts)
        tasks = [Task(sweep, name, part, arguments.at) for name in names for part in slices]
        good &= run(sweep, tasks, arguments.jobs, whole=arguments.verb is None)
    return 0 if good else 1


def run(sweep: str, tasks: list[Task], jobs: int, *, whole: bool) -> bool:
    """One sweep and its line of counts; whether all was good, and enough."""
    began = time.monotonic()
    results = []
    for task, result in carried_out(carry_out, tasks, jobs, lost):
        results.append(result)
        sys.stderr.write(
            f"  {sweep} {task.verb} {task.slice}: {len(result.places) - len(result.bad_places)}/"
            f"{len(result.places)} bad={len(result.bad)} missed={result.missed}\n"
        )
    places = set[Place]().union(*(result.places for result in results))
    good = places - set[Place]().union(*(result.bad_places for result in results))
    bad = sum(len(result.bad) for result in results)
    missed = sum(result.missed for result in results)
    least = LEAST[sweep] if whole else 1
    enough, few = len(places) >= least, missed <= MISSED * len(places)
    sys.stdout.write(
        f"{sweep}: {len(good)}/{len(places)} distinct places good, bad={bad} missed={missed} "
        f"verbs={len({task.verb for task in tasks})} at_least={least} secs={time.monotonic() - began:.0f}\n"
    )
    if not enough:
        sys.stdout.write(f"{sweep}: too little was broken\n")
    if not few:
        sys.stdout.write(f"{sweep}: too many places that no run came to\n")
    return enough and few and not bad


if __name__ == "__main__":
    sys.exit(main())
