"""The disk as a store uses it: whole reads, staged writes, durable appends, locks. Law: no policy lives here.

Every primitive announces itself through `Disk.step` before it acts, so a test can make call N fail, or stop
the world there, for every N (the crash seam). Errors are the operating system's own (`OSError`); a failed sync is
never tried again here or above (SPEC section 4). Plain read, write and fsync only: no sendfile, no copy_file_range.
"""

import errno
import itertools
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self, TypeVar

import portalocker

from memd import swaps, syncing

T = TypeVar("T")

LOCK_POLL_S = 0.002
"""How often a held lock is asked for again, in seconds; flock has no wait with a deadline."""

YOUNG_NS = 20_000_000
"""A file changed within this of the look at it may change again under the same stamp: it is read again."""

# O_NONBLOCK: a FIFO that stands where a file is wanted is an error and not a wait.
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_READ_FLAGS = os.O_RDONLY | _FLAGS
_STAGE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS
_APPEND_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _FLAGS
_NOT_REGULAR = frozenset({errno.ELOOP, errno.EMLINK, errno.ENXIO})
"""What opening a symlink, a FIFO without a reader or a socket fails with; which of them depends on the system."""
_ELSEWHERE = frozenset({errno.EXDEV, errno.ENOTDIR})
"""What a rename into another directory fails with that is on another file system, or is none."""
_CHUNK = 1 << 16
_stage_numbers = itertools.count()
_counting = threading.Lock()


class Stamp(NamedTuple):
    """What a file's metadata says of its content: equal stamps, taken late enough, mean equal bytes."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """The stamp of one `stat` answer."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def is_old(self, looked_ns: int) -> bool:
        """Whether the stamp of a file that was looked at then tells of the next write to it.

        So it does where the file was left alone long enough before; and where it got its name, or what else changes
        `ctime_ns` alone, a tick of the clock after it was last written: whoever writes later writes after that tick.
        """
        return self.ctime_ns < looked_ns - YOUNG_NS or self.mtime_ns < self.ctime_ns

    def is_file_of(self, other: "Stamp") -> bool:
        """Whether both are of one file that nobody wrote to in between; a rename changes `ctime_ns` alone."""
        return (self.size, self.mtime_ns, self.inode) == (other.size, other.mtime_ns, other.inode)


class Staged(NamedTuple):
    """A file that waits to be renamed into place, and its stamp."""

    path: Path
    stamp: Stamp


class Seen(NamedTuple):
    """One directory entry: its name, whether it is a regular file or a symlink, and its stamp."""

    name: str
    regular: bool
    symlink: bool
    stamp: Stamp

    @classmethod
    def of(cls, name: str, status: os.stat_result) -> "Seen":
        """The entry of one `stat` answer that followed no symlink."""
        mode = status.st_mode
        return cls(name, stat.S_ISREG(mode), stat.S_ISLNK(mode), Stamp.of(status))


class NotRegularError(OSError):
    """The path is a directory, a FIFO, a device or a symlink where a regular file is wanted."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "not a regular file", str(path))


class LockTimeoutError(Exception):
    """The lock was not had in time."""


def nothing(*_given: object) -> None:
    """What is done when there is nothing to be done."""


def is_staged(name: str) -> bool:
    """Whether a file is one that was being written: a dot first, `.tmp` last (SPEC 1)."""
    return name.startswith(".") and name.endswith(".tmp")


def staged_name() -> str:
    """A name that no other file has, of one that is being written or is about to go."""
    return f".{os.getpid()}-{time.time_ns():x}-{next(_stage_numbers)}.tmp"


class Disk:
    """The primitives. Tests subclass it: `step` may raise, `write` stop half-way, `sync` keep what is durable."""

    syncs_aside = True
    """Whether the system's own threads may sync many files: `sync` is not asked then."""

    def step(self, call: str, path: Path) -> None:
        """Called before each primitive acts; the real disk does nothing here."""

    # -- reading -------------------------------------------------------------------------------------------

    def read(self, path: Path, limit: int | None = None) -> tuple[bytes, Stamp]:
        """A regular file's bytes and the stamp they were read under.

        Never follows a symlink and never waits on a FIFO. A file over `limit` bytes, or one that is not
        regular, is `NotRegularError`; a missing one `FileNotFoundError`.
        """
        self.step("read", path)
        with _opened(path, _READ_FLAGS) as fd:
            status = _regular(fd, path)
            if limit is not None and status.st_size > limit:
                raise NotRegularError(path)
            return _read_all(fd, status.st_size), Stamp.of(status)

    def read_from(self, path: Path, offset: int) -> tuple[bytes, Stamp]:
        """The bytes of a regular file from `offset` on, and its stamp. Errors as `read`."""
        self.step("read", path)
        with _opened(path, _READ_FLAGS) as fd:
            status = _regular(fd, path)
            os.lseek(fd, offset, os.SEEK_SET)
            return _read_all(fd, max(0, status.st_size - offset)), Stamp.of(status)

    @contextmanager
    def opened(self, path: Path) -> Iterator[BinaryIO]:
        """A regular file to be read piece by piece. Errors as `read`."""
        self.step("read", path)
        with _opened(path, _READ_FLAGS) as fd:
            _regular(fd, path)
            with os.fdopen(fd, "rb", closefd=False) as stream:
                yield stream

    def stat(self, path: Path) -> os.stat_result | None:
        """What the path is, a symlink not followed; None when there is nothing."""
        self.step("stat", path)
        try:
            return path.lstat()
        except FileNotFoundError:
            return None

    def changed_ns(self, directory: Path) -> int:
        """When an entry was last added to or removed from a directory, which may be behind a symlink."""
        self.step("stat", directory)
        return directory.stat().st_mtime_ns

    def scan(self, directory: Path) -> list[Seen]:
        """Every entry of a directory, in name order, without opening one."""
        self.step("scan", directory)
        found = []
        with os.scandir(directory) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    found.append(Seen.of(entry.name, entry.stat(follow_symlinks=False)))
        found.sort()
        return found

    def free(self, directory: Path) -> int:
        """Bytes that the file system of a directory has left for us."""
        self.step("statvfs", directory)
        status = os.statvfs(directory)
        return status.f_bavail * status.f_frsize

    # -- writing -------------------------------------------------------------------------------------------

    def stage(self, directory: Path, data: bytes) -> Staged:
        """A new synced file in `directory` that holds `data`, ready to be renamed into place."""
        with self.staging() as staging:
            staged = staging.add(directory, data)
            staging.sync()
        return staged

    def staging(self) -> "Staging":
        """Several files to be staged side by side and synced together."""
        return Staging(self)

    def replacing(self) -> "Replacing":
        """Several files to be replaced, without waiting for what they held to be freed."""
        return Replacing(self)

    def replace(self, source: Path, path: Path) -> None:
        """Rename a file over `path`, atomically."""
        self.step("rename", path)
        source.replace(path)

    def put(self, staged: Path, path: Path, found: Stamp | None) -> bool:
        """Rename a file over the one that was `found` at `path`, None for none; whether it stands there then.

        What somebody else put there since stays, and the file goes: none is overwritten that nobody looked at. So it
        is where the system has the calls for it; elsewhere whoever writes between the last look and this is not seen.
        """
        self.step("rename", path)
        if found is None:
            try:
                if swaps.rename_new(staged, path):
                    return True
            except FileExistsError:
                self.remove(staged)
                return False
        else:
            with suppress(FileNotFoundError):  # it went just now
                if swaps.swap(staged, path):
                    return self._is_what_was_found(staged, path, found)
        staged.replace(path)
        return True

    def _is_what_was_found(self, aside: Path, path: Path, found: Stamp) -> bool:
        """Whether what stood at the path is what was found there: else it goes back. The other file goes."""
        foreseen = Stamp.of(aside.lstat()).is_file_of(found)
        if not foreseen:
            swaps.swap(aside, path)
        self.remove(aside)
        return foreseen

    def take_away(self, path: Path, found: Stamp | None, room: Path) -> bool:
        """Unlink the file that was `found` at `path`; False when something else stood there: that stays.

        It is looked at in another directory, `room`, before it goes.
        """
        self.step("unlink", path)
        try:
            aside = _moved_aside(path, room)
        except FileNotFoundError:
            return True
        foreseen = found is not None and Stamp.of(aside.lstat()).is_file_of(found)
        if not foreseen:
            with suppress(FileExistsError):  # somebody wrote there again: that is the latest
                if not swaps.rename_new(aside, path):
                    aside.replace(path)
                return False
        self.remove(aside)
        return foreseen

    def remove(self, path: Path) -> bool:
        """Unlink a file; False when it was not there."""
        self.step("unlink", path)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        return True

    def append(self, path: Path, data: bytes) -> Stamp:
        """Add `data` at a file's end and sync it; the file's stamp after it."""
        self.step("open", path)
        with _opened(path, _APPEND_FLAGS) as fd:
            _regular(fd, path)
            self.step("write", path)
            self.write(fd, data)
            self.step("fsync", path)
            self.sync(fd, path)
            return Stamp.of(os.fstat(fd))

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file to `size` bytes and sync it."""
        self.step("open", path)
        with _opened(path, os.O_WRONLY | _FLAGS) as fd:
            self.step("truncate", path)
            os.ftruncate(fd, size)
            self.step("fsync", path)
            self.sync(fd, path)

    def sync_dir(self, *directories: Path) -> None:
        """Make the renames, creations and removals of directories durable, of several side by side."""
        for directory in directories:
            self.step("fsync", directory)
        syncing.side_by_side(self._sync_dir, directories)

    def _sync_dir(self, directory: Path) -> None:
        with _opened(directory, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY) as fd:
            self.sync(fd, directory)

    def make_dirs(self, directory: Path) -> bool:
        """Make a directory, 0700, and its missing parents, each durable; False when it was there."""
        if directory.is_dir():
            return False
        if not directory.parent.is_dir():
            self.make_dirs(directory.parent)
        self.step("mkdir", directory)
        directory.mkdir(mode=0o700, exist_ok=True)
        self.sync_dir(directory.parent)
        return True

    def write(self, fd: int, data: bytes) -> None:
        """All of `data`; a short write goes on where it stopped."""
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    def sync(self, fd: int, path: Path) -> None:
        """Make what was written to an open file, or the entries of an open directory, durable."""
        os.fsync(fd)

    def sync_all(self, opened: Sequence[tuple[Path, int]], meanwhile: Callable[[], None]) -> None:
        """Make what was written to open files durable, and do something `meanwhile`.

        It is done beside the syncs where there are many and the system has threads of its own for them, else after.
        """
        wait = None
        if self.syncs_aside and len(opened) >= syncing.SHARE:
            wait = syncing.begin([fd for _, fd in opened])
        if wait is None:
            syncing.side_by_side(lambda each: self.sync(each[1], each[0]), opened)
            meanwhile()
            return
        try:
            meanwhile()
        finally:
            wait()

    # -- locking -------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self, path: Path, timeout: float) -> Iterator[None]:
        """Hold the exclusive flock on `path`, waiting at most `timeout` seconds (`LockTimeoutError` then).

        The file is made if missing, never cut, never unlinked; its inode is looked at again once the lock is
        had, since a lock on a file that was replaced meanwhile excludes nobody.
        """
        deadline = time.monotonic() + timeout
        while True:
            self.step("lock", path)
            fd = _open_quietly(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                _flock(fd, deadline)
                if _same_file(fd, path):
                    break
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
        try:
            yield
        finally:
            os.close(fd)


class Replacing:
    """Small files being replaced, each held until the end, when a thread lets go of them and nobody waits for it.

    A file system frees a file that nothing names or holds within the call that replaced it, and one that is mounted
    with `discard` and has no journal tells the device each time: 0.07 to 3 ms a file, where the rename takes 0.02.
    """

    HELD_MAX = 128
    """Files held at once, by all: whoever comes when there are more waits for the system to free theirs."""
    SIZE_MAX = 1 << 16
    """Bytes of a file that is held: room is not kept from a disk that has little."""

    held_by_all = 0
    """Files that are held now."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self._held: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        if self._held:
            _releaser().submit(_release, self._held)

    def replace(self, source: Path, path: Path) -> None:
        """Rename a file over `path`, atomically."""
        self._hold(path)
        self.disk.replace(source, path)

    def put(self, staged: Path, path: Path, found: Stamp | None) -> bool:
        """Rename a file over the one that was `found`, None for none: see `Disk.put`."""
        if found is not None and found.size <= self.SIZE_MAX:
            self._hold(path)
        return self.disk.put(staged, path, found)

    def _hold(self, path: Path) -> None:
        held = _hold(path) if Replacing.held_by_all < self.HELD_MAX else None
        if held is not None:
            self._held.append(held)
            with _counting:
                Replacing.held_by_all += 1


class Staging:
    """Files being staged. The system begins to write each out as soon as it is there, and all are synced at the end,
    when most of that is done: a caller waits for about one sync, not for one a file, and a file system with a journal
    commits it once for all.
    """

    OPEN_MAX = 160
    """Files held open at once, those of a commit of 64 saves; more are synced on the way."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self._open: list[tuple[Path, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        _close_all([fd for _, fd in self._open])
        self._open = []

    def add(self, directory: Path, data: bytes) -> Staged:
        """A new file in `directory` that holds `data`; durable, but for its name, after `sync`."""
        return self._write(directory / staged_name(), data)

    def add_at(self, path: Path, data: bytes) -> Staged:
        """The same at `path` itself, where nothing stands there; for a name that no reader knows yet."""
        try:
            return self._write(path, data)
        except FileExistsError:
            return self.add_beside(path, data)

    def add_beside(self, path: Path, data: bytes) -> Staged:
        """The same in the directory of `path`, which it is to be renamed to."""
        return self.add(path.parent, data)

    def _write(self, path: Path, data: bytes) -> Staged:
        if len(self._open) >= self.OPEN_MAX:
            self.sync()
        self.disk.step("open", path)
        fd = _open_quietly(path, _STAGE_FLAGS)
        self._open.append((path, fd))
        self.disk.step("write", path)
        self.disk.write(fd, data)
        _begin_to_sync(fd)
        return Staged(path, Stamp.of(os.fstat(fd)))

    def sync(self, meanwhile: Callable[[], None] = nothing) -> None:
        """Sync every file added since the last time, and do something `meanwhile`, which must not fail."""
        for path, _ in self._open:
            self.disk.step("fsync", path)
        self.disk.sync_all(self._open, meanwhile)
        _close_all([fd for _, fd in self._open])
        self._open = []


def _begin_to_sync(fd: int) -> None:
    """Have the system write a file out, waiting for nothing; that it does not is no failure, the sync will tell.

    To say that its pages are not needed any more does that on Linux, and keeps those that are not written yet.
    """
    if sys.platform != "darwin":
        with suppress(OSError):
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def _hold(path: Path) -> int | None:
    """Keep what stands at a path from being freed with its name; None where that cannot be or is not worth it."""
    if sys.platform != "linux":
        return None
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    if os.fstat(fd).st_size <= Replacing.SIZE_MAX:
        return fd
    os.close(fd)
    return None


def _release(held: Sequence[int]) -> None:
    _close_all(held)
    with _counting:
        Replacing.held_by_all -= len(held)


def _close_all(fds: Iterable[int]) -> None:
    """Close files, neighbours in one call: after each a thread would have to wait for the interpreter."""
    left = sorted(fds, reverse=True)
    while left:
        begin = left.pop()
        end = begin + 1
        while left and left[-1] == end:
            end = left.pop() + 1
        os.closerange(begin, end)


@cache
def _releaser() -> ThreadPoolExecutor:
    """The thread that lets go of what was replaced; made when there is first something to let go of."""
    return ThreadPoolExecutor(1, thread_name_prefix="release")


os.register_at_fork(after_in_child=_releaser.cache_clear)  # it has none of its parent's threads


def _moved_aside(path: Path, room: Path) -> Path:
    """Where a file is that was moved to another directory, or beside its place where that cannot be."""
    aside = room / staged_name()
    try:
        return path.rename(aside)
    except OSError as error:
        if error.errno not in _ELSEWHERE:
            raise
    return path.rename(path.with_name(aside.name))


def _flock(fd: int, deadline: float) -> None:
    """Take the flock of an open file before `deadline` (monotonic seconds)."""
    while True:
        try:
            portalocker.lock(fd, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.exceptions.AlreadyLocked:
            if time.monotonic() >= deadline:
                raise LockTimeoutError from None
            time.sleep(LOCK_POLL_S)
        except portalocker.exceptions.LockException as error:
            raise OSError(errno.ENOLCK, "the file system gives no lock") from error
        else:
            return


def _same_file(fd: int, path: Path) -> bool:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(fd), there)


def _open_quietly(path: Path, flags: int) -> int:
    """Open or make a file, 0600, that no other user may read."""
    return os.open(path, flags, 0o600)


def _regular(fd: int, path: Path) -> os.stat_result:
    """What an open file is, if it is a regular one. Errors: NotRegularError."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularError(path)
    return status


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    try:
        fd = _open_quietly(path, flags)
    except OSError as error:
        if error.errno in _NOT_REGULAR:
            raise NotRegularError(path) from error
        raise
    try:
        yield fd
    finally:
        os.close(fd)


def _read_all(fd: int, expected: int) -> bytes:
    """Everything from the file's position to its end; it may have grown past what `fstat` said.

    The end is where a read that asked for more got just what `fstat` said, or else where one gets nothing.
    """
    raw = os.read(fd, expected + 1)
    if len(raw) == expected:
        return raw
    parts = [raw]
    while raw:
        raw = os.read(fd, _CHUNK)
        parts.append(raw)
    return b"".join(parts)
