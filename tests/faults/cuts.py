"""Power cuts, all that are legal. Law: each distinct state is recovered by memd and judged from outside.

`python -m tests.faults.cuts [--jobs N] [--verb NAME] [--model NAME] [--budget N] [--at STATE]`; ends with one line.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from memd import draft
from memd.fs import Disk
from memd.store import Author, Rebuild, Reconcile, Request, Save, Saved, Store

from .cuts_model import MODELS, State, Step, Tree, states, steps_of, tree_of
from .sweep_judge import NEXT, BadError, Left, judge, judge_notes, judge_recorded, judge_told
from .sweep_runs import Aim, Bench, attempt, die, report
from .sweep_tasks import carried_out
from .sweep_trap import Answer
from .sweep_verbs import standing, verbs
from .sweep_world import World, a_world

BUDGET: Final = 512
"""States tried after each step, where there are more."""
LEAST: Final = 30_000
MANY: Final = 3
AHEAD_S: Final = 60.0
SLICES: Final = 2


class NoWaitDisk(Disk):
    """A disk whose syncs are not waited for: what recovers is judged, not cut again."""

    syncs_aside = False

    def sync(self, fd: int, path: Path) -> None:
        """Nothing."""


class Task(NamedTuple):
    """The states of one verb under one model, every `SLICES`-th from `part` on, or the one asked for."""

    verb: str
    model: str
    part: int
    budget: int
    at: str | None = None


class Result(NamedTuple):
    """How many distinct states there were, and what was bad."""

    distinct: int
    bad: list[str]


class Recorded(NamedTuple):
    """A run: the home before it, its steps, and the lines the clients were told, the verb's own answer last."""

    tree: Tree
    steps: list[Step]
    answers: list[bytes]

    def told(self, count: int, clients: Iterable[str]) -> frozenset[tuple[str, str]]:
        """Which of the notes of several clients were acknowledged by so many lines."""
        lines = b"".join(self.answers[:count])
        return frozenset(("repo", name) for name in clients if b'"name":"%s"' % name.encode() in lines)


def record(bench: Bench) -> Recorded:
    """The verb once, with every byte it writes."""
    world = bench.world
    world.back_to(bench.kept)
    tree = tree_of(world.home)
    aim = Aim(0, die)
    with world.daemon(aim, keep_data=True) as daemon:
        daemon.drive(lambda connection: connection.call("daemon.hello"))
        outcome = attempt(daemon, bench.act)
        log = list(daemon.trap.log)
    if not outcome.acknowledged:
        raise BadError("clean", f"{bench.verb.name} fails while it is recorded: {outcome}")
    return Recorded(tree, steps_of(log, tree), [entry.line for entry in log if isinstance(entry, Answer)])


def recover(world: World, case_name: str) -> None:
    """Open the stores of a home as a daemon would, mend what the verb mends, and save. Errors: BadError."""
    clock = lambda: time.time() + AHEAD_S  # noqa: E731 - whatever stands is quiet by then
    opened = {}
    for scope, directory in world.stores.items():
        origin = world.repo if scope == "repo" else None
        store = opened[scope] = Store(directory, origin=origin, disk=NoWaitDisk(), clock=clock)
        store.open()
    me = Author(by="cli")
    first: list[Request] = [Rebuild()] if case_name == "rebuild" else []
    given = draft.draft("What comes next.", {"name": NEXT, "type": "project", "description": "What comes next"})
    for scope, store in opened.items():
        wanted: list[Request] = [*first, Reconcile(), *([Save(given, me)] if scope == "repo" else [])]
        if scope == "global" and not store.directory.is_dir():
            continue
        for request in wanted:
            (outcome,) = store.commit([request]).outcomes
            if isinstance(outcome, Exception) or (isinstance(request, Save) and not isinstance(outcome, Saved)):
                raise BadError("next", f"{type(request).__name__} in {scope}: {outcome}")


def put(tree: Tree, home: Path) -> None:
    """Make a home of a tree."""
    shutil.rmtree(home)
    home.mkdir(mode=0o700)
    for path in sorted(tree):
        if path.endswith("/"):
            (home / path).mkdir(mode=0o700)
    for path, data in tree.items():
        if not path.endswith("/"):
            fd = os.open(home / path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(fd, data)
            os.close(fd)


def carry_out(task: Task) -> Result:
    """Cut one run in every way the model allows."""
    (verb,) = [verb for verb in verbs(MANY) if verb.name == task.verb]
    with a_world("c") as world:
        try:
            return cut_all(Bench(world, verb), task)
        except Exception as error:  # noqa: BLE001 - with nothing cut; it is bad, and no end of the sweep
            return Result(0, [report(world, error, f"--verb {task.verb} --model {task.model}", "cuts")])


def lost(task: Task) -> Result:
    """What is told of a part whose process ended."""
    text = f"BAD a process ended in the middle of --verb {task.verb} --model {task.model}, part {task.part}"
    sys.stderr.write(text + "\n")
    return Result(0, [text])


def cut_all(bench: Bench, task: Task, *, stop_at_first: bool = False) -> Result:
    """Every distinct state of a task, recovered and judged."""
    recorded = record(bench)
    seen: set[tuple[bool, frozenset[tuple[str, str]], int]] = set()
    bad: list[str] = []
    count = 0
    for state in states(task.model, recorded.steps, recorded.tree, task.budget, at=task.at):
        done, told = state.told == len(recorded.answers), recorded.told(state.told, bench.verb.clients)
        key = (done, told, hash(tuple(sorted(state.tree.items()))))
        if key in seen:
            continue
        seen.add(key)
        if task.at is None and not stop_at_first and len(seen) % SLICES != task.part:
            continue
        count += 1
        try:
            cut(bench, state, told, done=done)
        except Exception as error:  # noqa: BLE001 - what nobody has thought of is bad, too
            if stop_at_first:
                return Result(count, [f"BAD {error}"])
            bad.append(tell(bench, task, state, error))
    return Result(count, bad)


def cut(bench: Bench, state: State, told: frozenset[tuple[str, str]], *, done: bool) -> None:
    """Recover one state and judge it. Errors: BadError."""
    world = bench.world
    put(state.tree, world.home)
    left = Left.of(world.stores)
    if done:
        judge_recorded(bench.case, left)
    try:
        recover(world, bench.verb.name)
    except Exception as error:
        raise BadError("recovery", f"{type(error).__name__}: {error}") from error
    notes = standing(world.stores)
    notes.pop(("repo", NEXT), None)
    judge_told(told, notes, bench.case)
    judge_notes(notes, bench.case, done=done)
    judge(world, bench.case, left, done=done)


def tell(bench: Bench, task: Task, state: State, error: BaseException) -> str:
    """What was bad, with the state it came of."""
    kept = Path(tempfile.mkdtemp(prefix="memd-bad-"))
    (kept / "home").mkdir()
    put(state.tree, kept / "home")
    again = f"--verb {task.verb} --model {task.model} --budget {task.budget} --at {state.name}"
    text = f"BAD {error}\n    files: {kept}\n    again: python -m tests.faults.cuts {again}"
    sys.stderr.write(text + "\n")
    return text


def main() -> int:
    """Cut; 1 when any state was bad or there were too few."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.cuts", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--verb", action="append")
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--at")
    arguments = parser.parse_args()
    names = arguments.verb or [verb.name for verb in verbs(1)]
    slices = range(1 if arguments.at else SLICES)
    models = arguments.model or MODELS
    tasks = [Task(n, m, part, arguments.budget, arguments.at) for n in names for m in models for part in slices]
    began = time.monotonic()
    results = []
    for task, result in carried_out(carry_out, tasks, arguments.jobs, lost):
        results.append(result)
        told = f"{result.distinct} states, bad={len(result.bad)}"
        sys.stderr.write(f"  cuts {task.verb} {task.model} {task.part}: {told}\n")
    count, bad = sum(result.distinct for result in results), sum(len(result.bad) for result in results)
    least = LEAST if arguments.verb is None and arguments.model is None and arguments.budget == BUDGET else 1
    sys.stdout.write(
        f"cuts: {count} distinct crash states, bad={bad} verbs={len(names)} models={','.join(models)} "
        f"at_least={least} secs={time.monotonic() - began:.0f}\n"
    )
    return 0 if count >= least and not bad else 1


if __name__ == "__main__":
    sys.exit(main())
