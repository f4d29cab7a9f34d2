"""Power cuts of real file systems. Law: what the disk has at that call is all there is; the journal replays it.

`python -m tests.faults.cuts_disks [ext4 xfs …] [--least N] [--verb NAME [--at CALL]]`. A file system in a loop
device is shut down without flushing anything, right before the N-th call of a daemon that changes it; the daemon
dies, the file system is mounted anew, which replays its log, and what is there is recovered and judged. Needs root,
loop devices and mkfs.
"""

import argparse
import ctypes
import fcntl
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from .sweep_judge import Left
from .sweep_runs import CHANGES, Aim, Bench, Outcome, attempt, die, report
from .sweep_trap import Die, Op, Verdict
from .sweep_verbs import verbs
from .sweep_world import MEMORY, World

SHUT_DOWN: Final = 0x8004587D
WITHOUT_FLUSH: Final = 2
SIZES: Final = {"ext4": 64 << 20, "xfs": 320 << 20}
"""Bytes of each file system: the least that its mkfs makes with a journal."""
NEW_MOUNTS: Final = 0x20000
PRIVATE: Final = 1 << 18
RECURSIVELY: Final = 1 << 14
LEAST: Final = 50
VERBS: Final = ("first-save", "update", "forget", "move", "import")
UNMOUNTS: Final = 200


class Disk(NamedTuple):
    """A file system in a file."""

    kind: str
    image: Path
    at: Path

    def make(self) -> None:
        """Make it anew."""
        with self.image.open("wb") as image:
            image.truncate(SIZES[self.kind])
        force = "-F" if self.kind == "ext4" else "-f"
        subprocess.run([f"mkfs.{self.kind}", "-q", force, str(self.image)], check=True)
        self.at.mkdir()

    def mount(self) -> None:
        """Mount it, which replays what its log holds."""
        subprocess.run(["mount", "-t", self.kind, "-o", "loop", str(self.image), str(self.at)], check=True)

    def unmount(self) -> None:
        """Unmount it, as soon as nobody holds anything of it."""
        pause = threading.Event()
        for _ in range(UNMOUNTS):
            if subprocess.run(["umount", str(self.at)], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return
            pause.wait(0.02)
        raise RuntimeError("the file system stays busy")

    def cut(self) -> None:
        """Shut it down; what was not written by now never is."""
        fd = os.open(self.at, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUT_DOWN, struct.pack("I", WITHOUT_FLUSH))
        finally:
            os.close(fd)

    def settle(self) -> None:
        """Make all that stands now durable."""
        fd = os.open(self.at, os.O_RDONLY)
        try:
            ctypes.CDLL(None).syncfs(fd)
        finally:
            os.close(fd)


@contextmanager
def a_disk(kind: str) -> Iterator[Disk]:
    """A file system that goes after it; it is not mounted."""
    with tempfile.TemporaryDirectory(prefix="memd-disk-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        disk = Disk(kind, Path(name) / "image", Path(name) / "at")
        disk.make()
        yield disk


def cut_short(bench: Bench, disk: Disk, number: int) -> tuple[Aim, Outcome]:
    """Begin anew, act, and cut the power right before the call of that number; mounted again after it."""
    world = bench.world

    def power_off(_op: Op) -> Verdict:
        disk.cut()
        return Die()

    aim = Aim(number, power_off)
    world.back_to(bench.kept)
    with world.daemon(aim) as daemon:
        daemon.drive(lambda connection: connection.call("daemon.hello"))
        disk.settle()
        aim.armed = True
        outcome = attempt(daemon, bench.act)
        if not aim.fired:
            disk.cut()  # the power goes right after the answer
    disk.unmount()
    disk.mount()
    return aim, outcome


def sweep(disk: Disk, least: int, names: Sequence[str], at: int | None) -> tuple[int, int]:
    """Cut at each call that changes something, verb after verb; how many cuts there were, and how many were bad."""
    cuts = bad = 0
    for name in names:
        (verb,) = [verb for verb in verbs(2) if verb.name == name]
        bench = Bench(World(disk.at / name), verb)
        learn = Aim(0, die)
        bench.broken(learn)
        changing = [number for number, op in enumerate(learn.seen, 1) if op.kind in CHANGES and changes(op)]
        for number in (*changing, len(learn.seen) + 100) if at is None else (at,):
            try:
                _aim, outcome = cut_short(bench, disk, number)
                cuts += 1
                bench.recover_and_judge(outcome, Left.of(bench.world.stores))
            except Exception as error:  # noqa: BLE001 - what nobody has thought of is bad, and no end of the sweep
                bad += 1
                report(bench.world, error, f"{disk.kind} --verb {name} --at {number}", "cuts_disks")
        if cuts >= least:
            break
    return cuts, bad


def changes(op: Op) -> bool:
    """Whether a call changes the file system or makes a change durable."""
    return op.writes if op.kind == "openat" else op.kind not in ("flock", "bind", "chmod")


def be_alone() -> None:
    """Have mounts of this process's own: a file system lives on in any other process's copy of them."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(NEW_MOUNTS) or library.mount(b"none", b"/", None, PRIVATE | RECURSIVELY, None):
        raise OSError(ctypes.get_errno(), "no mounts of one's own")


def main() -> int:
    """Cut; 1 when anything was bad or too little was cut."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.cuts_disks", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=sorted(SIZES))
    parser.add_argument("--least", type=int, default=LEAST)
    parser.add_argument("--verb", action="append", choices=VERBS)
    parser.add_argument("--at", type=int)
    arguments = parser.parse_args()
    least = arguments.least if arguments.at is None else 1
    good = True
    be_alone()
    for kind in arguments.kinds:
        began = time.monotonic()
        with a_disk(kind) as disk:
            disk.mount()
            try:
                cuts, bad = sweep(disk, least, arguments.verb or VERBS, arguments.at)
            finally:
                disk.unmount()
        sys.stdout.write(
            f"{kind}: {cuts} power cuts, bad={bad} at_least={least} secs={time.monotonic() - began:.0f}\n"
        )
        sys.stdout.flush()
        good &= cuts >= least and not bad
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
