"""Ten planted bugs, each caught by the check that is there for it. Law: a check that catches nothing proves nothing.

`python -m tests.faults.mutants [NAME …]`. Each bug is planted in a daemon's process after its fork, as a change of
what memd does, and the harness that is to catch it runs at the places where it can. What it catches must be what the
bug breaks; and the same run without the bug must be good.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from memd import fs
from memd.store import write
from memd.store.state import State

from .cuts import Task as CutTask
from .cuts import cut_all
from .sweep_errors import faulted
from .sweep_judge import BadError
from .sweep_runs import Aim, Bench, die
from .sweep_trap import Die, Op
from .sweep_verbs import verbs
from .sweep_world import Mutation, World, a_world

Hunt = Callable[[Bench], str | None]
"""Looks for something bad; the name of what it found, None when all was good."""


class Mutant(NamedTuple):
    """A planted bug: the verb that meets it, who is to catch it, and the names it may be caught under."""

    name: str
    plant: Mutation
    verb: str
    hunt: Hunt
    caught_as: frozenset[str]


# -- the bugs ----------------------------------------------------------------------------------------------------


def set_on(owner: object, name: str, value: object) -> None:
    """Plant a change in this process."""
    setattr(owner, name, value)


def set_sync(sync: Callable[[fs.Disk, int, Path], None]) -> None:
    """Have every file synced in this way, many at once too."""
    set_on(fs.Disk, "sync", sync)
    set_on(fs.Disk, "syncs_aside", False)


def no_sync_of_the_file() -> None:
    """Nothing but directories is synced."""
    whole = fs.Disk.sync
    set_sync(lambda disk, fd, path: whole(disk, fd, path) if path.is_dir() else None)


def no_sync_of_the_directory() -> None:
    """Names are left to the system."""
    set_on(fs.Disk, "sync_dir", lambda _disk, *_directories: None)


def reply_before_the_journal() -> None:
    """A line is written once the store is used next: the answer does not wait for it."""
    whole, locked = fs.Disk.append, fs.Disk.locked
    late: list[tuple[Path, bytes]] = []

    def append(disk: fs.Disk, path: Path, data: bytes) -> fs.Stamp:
        if not data or path.name != "ops.jsonl":
            return whole(disk, path, data)
        late.append((path, data))
        return fs.Stamp.of(path.stat())

    def lock(disk: fs.Disk, path: Path, timeout: float) -> Any:
        while late:
            whole(disk, *late.pop(0))
        return locked(disk, path, timeout)

    set_on(fs.Disk, "append", append)
    set_on(fs.Disk, "locked", lock)


def a_swallowed_sync_error() -> None:
    """A sync that fails is taken for one that did not."""

    def sync(_disk: fs.Disk, fd: int, _path: Path) -> None:
        try:
            os.fsync(fd)
        except OSError:
            return

    set_sync(sync)


def an_object_left_by_forget() -> None:
    """A forget removes the note's file and no version."""
    set_on(write, "remove_objects", lambda _plan: None)


def a_retried_sync() -> None:
    """A sync that fails is made once more."""

    def sync(_disk: fs.Disk, fd: int, _path: Path) -> None:
        try:
            os.fsync(fd)
        except OSError:
            os.fsync(fd)

    set_sync(sync)


def an_unlinked_lock_file() -> None:
    """The lock file is taken away with the lock."""
    locked = fs.Disk.locked

    class Held:
        def __init__(self, path: Path, held: Any) -> None:
            self.path, self.held = path, held

        def __enter__(self) -> None:
            self.held.__enter__()

        def __exit__(self, *raised: object) -> None:
            if self.path.name == ".lock":
                self.path.unlink(missing_ok=True)
            self.held.__exit__(*raised)

    set_on(fs.Disk, "locked", lambda disk, path, timeout: Held(path, locked(disk, path, timeout)))


def a_torn_tail_dropped() -> None:
    """What follows the last whole record is cut off and kept nowhere."""

    def drop(state: State) -> None:
        state.disk.truncate(state.journal, state.whole)
        state.torn = 0

    set_on(write, "set_torn_aside", drop)


def a_half_written_rename() -> None:
    """A file is put in place by writing over the old one."""

    def replace(_disk: fs.Disk, source: Path, path: Path) -> None:
        data = source.read_bytes()
        with path.open("wb", buffering=0) as stream:
            stream.write(data[: len(data) // 2])
            stream.write(data[len(data) // 2 :])
        source.unlink()

    set_on(fs.Disk, "replace", replace)


def a_sweep_on_a_broken_journal() -> None:
    """Objects that no record names go although the journal is broken."""
    set_on(State, "intact", property(lambda _state: True))


# -- the hunts ---------------------------------------------------------------------------------------------------


def caught(look: Callable[[], object]) -> str | None:
    """The name of what was bad."""
    try:
        look()
    except BadError as error:
        return error.kind
    return None


def by_cuts(bench: Bench) -> str | None:
    """Power is cut in every way after the answer, and before it."""
    found = cut_all(bench, CutTask(bench.verb.name, "strict", 0, 24), stop_at_first=True).bad
    return found[0].split()[1].rstrip(":") if found else None


def by_kills(kinds: Iterable[str], *, half: bool = False, answered: bool = False) -> Hunt:
    """The daemon dies before each call of these kinds, or in the middle of it, or once it has answered."""
    wanted = frozenset(kinds)

    def hunt(bench: Bench) -> str | None:
        numbers = [0] if answered else [
            number for number, op in enumerate(armed_calls(bench), 1) if op.kind in wanted and "memory/" in op.path
        ]  # fmt: skip
        for number in numbers:
            aim = Aim(number, (lambda _op: Die(half=True)) if half else die)
            outcome = bench.broken(aim)
            left = bench.left()
            kind = caught(lambda: bench.recover_and_judge(outcome, left))  # noqa: B023 - called at once
            if kind is not None:
                return kind
        return None

    return hunt


def armed_calls(bench: Bench) -> list[Op]:
    """The calls of the act."""
    aim = Aim(0, die)
    bench.broken(aim)
    return aim.seen


def by_errors(bench: Bench) -> str | None:
    """Each sync fails once."""
    for number, op in enumerate(armed_with_looks(bench), 1):
        if op.kind == "fsync" and "memory" in op.path:
            aim = Aim(number, lambda each: 5 if each.kind == "fsync" else 0)
            kind = caught(lambda: faulted(bench, aim))  # noqa: B023 - called at once
            if kind is not None:
                return kind
    return None


def armed_with_looks(bench: Bench) -> list[Op]:
    """The calls of the act, those that only look too."""
    aim = Aim(0, die)
    faulted(bench, aim)
    return aim.seen


def by_a_look_at_once(bench: Bench) -> str | None:
    """What a forget was told to have removed is looked for before any daemon starts again."""
    outcome = bench.broken(Aim(0, die))
    words = bench.verb.gone
    held = [path for path in bench.world.home.rglob("*") if path.is_file()]
    texts = b"\0".join(path.read_bytes() for path in held)
    return "forgotten" if outcome.acknowledged and any(word.encode() in texts for word in words) else None


TRIES: Final = 5
"""Hunts for one bug: a thread of the daemon that looks just then may hide it, or show another side of it."""
LOST: Final = frozenset({"whole", "lost", "objects", "unrecorded"})
"""What a power cut does where a sync is missing."""
MUTANTS: Final = (
    Mutant("no-file-sync", no_sync_of_the_file, "update", by_cuts, LOST),
    Mutant("no-directory-sync", no_sync_of_the_directory, "save", by_cuts, LOST),
    Mutant(
        "reply-first", reply_before_the_journal, "update", by_kills((), answered=True), frozenset({"unrecorded"}),
    ),
    Mutant("swallowed-sync", a_swallowed_sync_error, "save", by_errors, frozenset({"swallowed"})),
    Mutant("object-left", an_object_left_by_forget, "forget", by_a_look_at_once, frozenset({"forgotten"})),
    Mutant("retried-sync", a_retried_sync, "save", by_errors, frozenset({"retried"})),
    Mutant("unlinked-lock", an_unlinked_lock_file, "save", by_kills(("rename",)), frozenset({"lock"})),
    Mutant("dropped-tail", a_torn_tail_dropped, "save", by_kills(("write",), half=True), frozenset({"torn"})),
    Mutant(
        "half-rename", a_half_written_rename, "update", by_kills(("write",)), frozenset({"whole", "objects", "next"}),
    ),
    Mutant("swept-on-broken", a_sweep_on_a_broken_journal, "on-broken", by_kills(("flock",)), frozenset({"swept"})),
)  # fmt: skip


def catch(world: World, mutant: Mutant) -> tuple[bool, str]:
    """Run one mutant's hunt without it and with it; whether it was caught as it should be, and how."""
    (verb,) = [verb for verb in verbs(2) if verb.name == mutant.verb]
    bench = Bench(world, verb)
    found = mutant.hunt(bench)
    if found is not None:
        return False, f"without the bug there is {found}"
    world.mutation = mutant.plant
    try:
        for _ in range(TRIES):
            found = mutant.hunt(bench)
            if found in mutant.caught_as:
                return True, f"caught as {found}"
    finally:
        world.mutation = None
    return False, "nobody noticed" if found is None else f"caught as {found}"


def main() -> int:
    """Plant every bug; 1 when one was not caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", default=[mutant.name for mutant in MUTANTS])
    names = parser.parse_args().names
    chosen = [mutant for mutant in MUTANTS if mutant.name in names]
    began, good = time.monotonic(), 0
    for mutant in chosen:
        with a_world("m") as world:
            caught_right, says = catch(world, mutant)
        good += caught_right
        sys.stdout.write(f"  {mutant.name}: {says}\n")
        sys.stdout.flush()
    sys.stdout.write(f"mutants: {good}/{len(chosen)} secs={time.monotonic() - began:.0f}\n")
    return 0 if chosen and good == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
