"""The sweeps over a live daemon's calls. Law: a sweep that broke nothing, or not what it says, has failed.

`python -m tests.faults.sweep [kills|recoveries|errors …] [--jobs N] [--verb NAME [--at PLACE]]`; each sweep ends with
one line of counts, and a failure names the command that repeats it alone.
"""

import argparse
import errno
import itertools
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Final, NamedTuple

from .sweep_errors import errors_of, faulted
from .sweep_judge import BadError
from .sweep_runs import CHANGES, Aim, Bench, die, report
from .sweep_trap import Die, HangError, Op
from .sweep_verbs import verbs
from .sweep_world import a_world

MANY: Final = {"kills": 60, "recoveries": 3, "errors": 3}
"""Notes that the verbs of many notes take."""
SLICES: Final = 4
"""Parts that a verb's points are dealt to."""
ONCE: Final = frozenset({"newfstatat", "statfs", "statx"})
"""Calls that fail once and not from then on: there are hundreds of them, and a file that has no status has failed."""
LEAST: Final = {"kills": 2000, "recoveries": 500, "errors": 1500}
"""Distinct places that each sweep must have broken."""


class Task(NamedTuple):
    """One part of a sweep: every `SLICES`-th point of a verb, from `slice` on; or the one place asked for."""

    sweep: str
    verb: str
    slice: int
    at: str | None = None

    def takes(self, number: int, at: str) -> bool:
        """Whether a point is this task's."""
        return at == self.at if self.at is not None else number % SLICES == self.slice


class Tally:
    """What a task has broken: the places, what was bad of them, and the points that a run did not come to."""

    def __init__(self, task: Task, bench: Bench) -> None:
        self.task, self.bench = task, bench
        self.places: set[tuple[str, ...]] = set()
        self.bad: list[str] = []
        self.missed = 0

    @contextmanager
    def case(self, at: str) -> Iterator[None]:
        """One broken run; what is bad is kept and told."""
        try:
            yield
        except (BadError, HangError, AssertionError) as error:
            command = f"{self.task.sweep} --verb {self.task.verb} --at {at}"
            self.bad.append(report(self.bench.world, error, command))

    def add(self, op: Op, *more: str) -> None:
        """A place was broken: this call, by its number among its kind."""
        self.places.add((self.task.verb, op.kind, str(op.nth), *more))


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
            tally.add(aim.fired[0])
            left = bench.left()
            bench.judge_after(outcome, left, bench.recover())
        if aim.fired and aim.fired[0].kind == "write":
            half = Aim(number, lambda op: Die(half=True) if op.kind == "write" else 0)
            with tally.case(f"{at}h"):
                outcome = bench.broken(half)
                if not half.fired:
                    tally.missed += 1
                    continue
                tally.add(half.fired[0], "half")
                left = bench.left()
                bench.judge_after(outcome, left, bench.recover())


def recoveries(tally: Tally) -> None:
    """The daemon dies at each call of a recovery that has something to do, and another daemon recovers that."""
    bench, world = tally.bench, tally.bench.world
    known: set[tuple[str, ...]] = set()
    for number in itertools.count(1):
        aim = Aim(number, die)
        outcome = bench.broken(aim)
        if not aim.fired:
            return
        left = bench.left()
        broken = world.keep("broken")
        clean = Aim(0, die)
        bench.recover(clean)
        steps = tuple(f"{op.kind} {shape(op.path)}" for op in clean.seen if op.kind in CHANGES)
        if steps in known or not any(mends(op) for op in clean.seen):
            continue
        known.add(steps)
        for inner in range(1, len(steps) + SLICES):
            at = f"{number}.{inner}"
            if not tally.task.takes(inner, at):
                continue
            with tally.case(at):
                world.back_to(broken)
                left_again = bench.left()
                dying = Aim(inner, die)
                if bench.recover(dying) is not None:
                    break
                tally.add(dying.fired[0], str(number))
                again = bench.left()
                kept_whole = again._replace(locks=left_again.locks, journals=left.journals)
                bench.judge_after(outcome, kept_whole, bench.recover())


def mends(op: Op) -> bool:
    """Whether a call of a recovery changes a store."""
    return "memory/" in op.path and op.kind in ("write", "rename", "unlink", "ftruncate")


def shape(path: str) -> str:
    """A path without what chance has put into it."""
    return re.sub(r"\.[0-9]+-[0-9a-f]+-[0-9]+\.tmp|[0-9a-f]{64}", "*", path)


def errors(tally: Tally) -> None:
    """Each call fails once, and from then on, with each error it can have."""
    bench = tally.bench
    learn = Aim(0, die)
    faulted(bench, learn)
    for number, op in enumerate(learn.seen, 1):
        if op.path.startswith("run/"):
            continue
        for error, lasting in itertools.product(errors_of(op), (False,) if op.kind in ONCE else (False, True)):
            name = errno.errorcode[error]
            at = f"{number}.{name}{'.on' if lasting else ''}"
            if not tally.task.takes(number, at):
                continue
            aim = Aim(number, give(error, op.kind), lasting=lasting)
            with tally.case(at):
                faulted(bench, aim)
                if aim.fired:
                    tally.add(aim.fired[0], name, "on" if lasting else "once")
                else:
                    tally.missed += 1


def give(error: int, kind: str) -> Callable[[Op], int]:
    """The fault that a call of a kind fails with."""
    return lambda op: error if op.kind == kind else 0


SWEEPS: Final = {"kills": kills, "recoveries": recoveries, "errors": errors}


class Result(NamedTuple):
    """What one task gave."""

    places: set[tuple[str, ...]]
    bad: list[str]
    missed: int


def carry_out(task: Task) -> Result:
    """Do one part of a sweep in this process."""
    (verb,) = [verb for verb in verbs(MANY[task.sweep]) if verb.name == task.verb]
    with a_world() as world:
        tally = Tally(task, Bench(world, verb))
        SWEEPS[task.sweep](tally)
        return Result(tally.places, tally.bad, tally.missed)


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
        good &= run(sweep, tasks, arguments.jobs, whole=arguments.verb is None and arguments.parts == SLICES)
    return 0 if good else 1


def run(sweep: str, tasks: list[Task], jobs: int, *, whole: bool) -> bool:
    """One sweep and its line of counts; whether all was good, and enough."""
    began = time.monotonic()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        results = list(pool.map(carry_out, tasks))
    places = set().union(*(result.places for result in results))
    bad = sum(len(result.bad) for result in results)
    missed = sum(result.missed for result in results)
    least = LEAST[sweep] if whole else 1
    enough = len(places) >= least
    sys.stdout.write(
        f"{sweep}: {len(places) - bad}/{len(places)} distinct places good, bad={bad} missed={missed} "
        f"verbs={len({task.verb for task in tasks})} at_least={least} secs={time.monotonic() - began:.0f}\n"
    )
    if not enough:
        sys.stdout.write(f"{sweep}: too little was broken\n")
    return enough and not bad


if __name__ == "__main__":
    sys.exit(main())
