"""Disks that fail, die, forget what was not synced, or let someone in. Law: the code under test is the real one.

Each is a `memd.fs.Disk`: its steps are counted from `arm` on, and at call N something happens. The files are real;
only the wait for the hardware is left out, which no test here depends on.
"""

import errno
import os
import shutil
from collections.abc import Callable, Container, Iterable
from pathlib import Path

from memd.fs import Disk

READING = frozenset({"read", "stat", "scan"})
WRITING = frozenset({"open", "write", "fsync", "rename", "unlink", "truncate", "mkdir"})
EVERY = READING | WRITING | {"lock"}
"""The calls that `memd.fs.Disk` announces."""


class Crash(BaseException):
    """The process died here; nothing of it may run on."""


class FastDisk(Disk):
    """A disk that does not wait for the hardware; `log` holds each step as (call, the file's name)."""

    syncs_aside = False

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []

    def step(self, call: str, path: Path) -> None:
        self.log.append((call, path.name))

    def sync(self, fd: int, path: Path) -> None:
        """Nothing: a process that dies loses nothing that it has written."""


class SteppedDisk(FastDisk):
    """Counts steps once armed, those of `calls` or all; `at` is called for the N-th, and after it while `lasting`."""

    def __init__(self, *, lasting: bool = False, calls: Container[str] = EVERY) -> None:
        super().__init__()
        self.lasting, self.calls = lasting, calls
        self.left: int | None = None
        self.fired = 0

    def arm(self, number: int) -> None:
        """Let the step `number` from now (1: the next) be the one."""
        self.left = number

    def heal(self) -> None:
        """Let nothing happen any more."""
        self.left = None

    def step(self, call: str, path: Path) -> None:
        super().step(call, path)
        if self.left is None or call not in self.calls:
            return
        self.left -= 1
        if self.left == 0 or (self.left < 0 and self.lasting):
            self.fired += 1
            self.at(call, path)

    def at(self, call: str, path: Path) -> None:
        """What happens at the step that was armed for."""
        raise NotImplementedError


class FailingDisk(SteppedDisk):
    """Fails with `error` at step N; of a write that fails, half the bytes are on disk."""

    def __init__(self, error: int = errno.EIO, *, lasting: bool = False, calls: Container[str] = EVERY) -> None:
        super().__init__(lasting=lasting, calls=calls)
        self.error = error
        self._halve = False

    def at(self, call: str, path: Path) -> None:
        if call != "write":
            raise OSError(self.error, os.strerror(self.error), str(path))
        self._halve = True

    def write(self, fd: int, data: bytes) -> None:
        if not self._halve:
            super().write(fd, data)
            return
        self._halve = False
        super().write(fd, data[: len(data) // 2])
        raise OSError(self.error, os.strerror(self.error))


class CrashingDisk(SteppedDisk):
    """The process dies at step N of those that change the disk: that step and every later one is not taken.

    Before a step that only looks it would leave the same as before the next one that changes something. `half`: it
    dies in its N-th write, of which half the bytes are on disk.
    """

    def __init__(self, *, half: bool = False) -> None:
        super().__init__(calls={"write"} if half else WRITING)
        self.half = half
        self._dead = False

    def step(self, call: str, path: Path) -> None:
        if self._dead:
            raise Crash(call)
        super().step(call, path)

    def at(self, call: str, path: Path) -> None:
        self._dead = True
        if not self.half:
            raise Crash(f"{call} {path.name}")

    def write(self, fd: int, data: bytes) -> None:
        super().write(fd, data[: len(data) // 2] if self._dead else data)
        if self._dead:
            raise Crash("write")


class PowerCutDisk(CrashingDisk):
    """Dies at step N together with the machine: of what was not synced, nothing is there afterwards.

    `settle` writes what is. What stood when the disk was made is durable.
    """

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.entries: dict[int, dict[str, int]] = {}
        self.contents: dict[int, bytes] = {}
        self._held: list[int] = []
        self.keep()

    def sync(self, fd: int, path: Path) -> None:
        inode = os.fstat(fd).st_ino
        if path.is_dir():
            self.entries[inode] = self._entries(path)
        else:
            self.contents[inode] = path.read_bytes()

    def keep(self) -> None:
        """Take all that stands now for durable."""
        self._keep_all(self.root)

    def settle(self) -> None:
        """Make the root what the machine finds when it is on again."""
        found = self.root.with_name(self.root.name + ".after")
        self._restore(self.root.stat().st_ino, found)
        shutil.rmtree(self.root)
        found.rename(self.root)
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        for fd in self._held:
            os.close(fd)
        self._held.clear()

    def _keep_all(self, directory: Path) -> None:
        self.entries[directory.stat().st_ino] = self._entries(directory)
        for path in directory.iterdir():
            if path.is_dir():
                self._keep_all(path)
            elif path.is_file():
                self.contents[path.stat().st_ino] = path.read_bytes()

    def _entries(self, directory: Path) -> dict[str, int]:
        """A directory's names and inodes, each held open so that its number is not given to another file."""
        found = {}
        for path in directory.iterdir():
            self._held.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            inode = found[path.name] = path.stat().st_ino
            if path.is_dir():
                self.entries.setdefault(inode, {})
        return found

    def _restore(self, inode: int, path: Path) -> None:
        if inode not in self.entries:
            path.write_bytes(self.contents.get(inode, b""))
            return
        path.mkdir()
        for name, below in self.entries[inode].items():
            self._restore(below, path / name)


class InterferingDisk(FastDisk):
    """Calls `meddle` once, right before the first step for which `when` holds."""

    def __init__(self, when: Callable[[str, Path], bool], meddle: Callable[[], object], times: int = 1) -> None:
        super().__init__()
        self.when, self.meddle, self.times = when, meddle, times

    def step(self, call: str, path: Path) -> None:
        super().step(call, path)
        if self.times and self.when(call, path):
            self.times -= 1
            self.meddle()


def tree(root: Path) -> frozenset[tuple[str, bytes]]:
    """Every file below a directory with its bytes; a staged one by its bytes alone, since its name is chance."""
    return frozenset(
        (name_in(root, path), path.read_bytes()) for path in below(root) if path.is_file() and not path.is_symlink()
    )


def name_in(root: Path, path: Path) -> str:
    """A file's name within `root`, without what chance has put into it."""
    return "staged" if path.name.endswith(".tmp") else str(path.relative_to(root))


def below(root: Path) -> Iterable[Path]:
    """Every path below a directory."""
    return sorted(root.rglob("*"))
