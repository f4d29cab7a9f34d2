"""One daemon a home. Law: who holds the home's lock is its daemon; nobody else serves it, and nobody waits for ever.

The lock's file names its holder's process. A successor that the service manager started asks the holder to finish and
waits for its lock; any other comes too late while somebody answers, and waits only for one that is on its way out or
on its way in. SPEC section 15.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from memd.fs import Disk, LockTimeoutError

PATIENCE_S = 2.5
"""Seconds to wait for a holder that answers nobody: one that stops is gone within two."""
HANDOVER_S = 5.0
"""Seconds the holder has to finish once a successor asked it to."""

_POLL_S = 0.01


class AlreadyServedError(Exception):
    """Another daemon holds the home's lock; `pid` is what it wrote there, None when that does not read."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(pid)
        self.pid = pid


class NotHandedOverError(AlreadyServedError):
    """The other daemon was asked to finish and did not, or could not be asked."""


class Lease:
    """The lock on a home, as long as its file is the one that was locked."""

    def __init__(self, lock: Path) -> None:
        self._lock = lock
        self._identity = _identity(lock)

    def is_held(self) -> bool:
        """Whether the lock still keeps others out: its file was neither removed nor replaced."""
        return self._identity is not None and _identity(self._lock) == self._identity


@contextmanager
def lifetime(
    home: Path, *, is_answered: Callable[[], bool] = lambda: True, takes_over: bool = False
) -> Iterator[Lease]:
    """Hold the lock that makes this process the daemon of `home`, which is made, 0700, when it is not there.

    `is_answered` says whether somebody answers at the socket; while nobody does, the lock is waited for. With
    `takes_over` the holder is told to finish. `AlreadyServedError` when another process keeps the lock.
    """
    disk = Disk()
    disk.make_dirs(home)
    lock = home / ".daemon.lock"
    with ExitStack() as held:
        try:
            held.enter_context(disk.locked(lock, 0))
        except LockTimeoutError:
            if takes_over:
                _take_over(disk, lock, held)
            else:
                _wait(disk, lock, held, is_answered)
        _sign(lock)
        yield Lease(lock)


def _sign(lock: Path) -> None:
    """Write this process's number over the last holder's: in place, since a full disk may have no room for another.

    A holder that cannot be named serves all the same.
    """
    with suppress(OSError), lock.open("r+b", buffering=0) as file:
        file.truncate(file.write(b"%d\n" % os.getpid()))


def _wait(disk: Disk, lock: Path, held: ExitStack, is_answered: Callable[[], bool]) -> None:
    """Have the lock, unless somebody answers or `PATIENCE_S` is over."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_answered() and time.monotonic() < deadline:
        with suppress(LockTimeoutError):
            held.enter_context(disk.locked(lock, _POLL_S))
            return
    raise AlreadyServedError(_pid_in(lock))


def _take_over(disk: Disk, lock: Path, held: ExitStack) -> None:
    """Have the lock after the holder, which is told to finish."""
    deadline = time.monotonic() + HANDOVER_S
    asked: set[int] = set()
    while time.monotonic() < deadline:
        pid = _pid_in(lock)  # read anew: a holder writes it a moment after it has the lock
        if pid is not None and pid not in asked and _is_holder(pid, lock):
            asked.add(pid)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)
        with suppress(LockTimeoutError):
            held.enter_context(disk.locked(lock, _POLL_S))
            return
    raise NotHandedOverError(_pid_in(lock))


def _pid_in(lock: Path) -> int | None:
    try:
        return int(lock.read_text())
    except (OSError, ValueError):
        return None


def _is_holder(pid: int, lock: Path) -> bool:
    """Whether the kernel, where it tells, has the lock as that process's: what the file says may be a dead one's."""
    try:
        inode = lock.stat().st_ino
        table = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return True
    held = (line.split() for line in table)
    return any(row[1] == "FLOCK" and row[4] == str(pid) and row[5].endswith(f":{inode}") for row in held)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        there = path.lstat()
    except OSError:
        return None
    return there.st_dev, there.st_ino
