"""What happens in the watched directories, heard. Law: an event says where to look; only a look finds out what is.

One instance listens for all roots, since the system has few of them to give; it is made anew when the roots change or
one of them is another directory than before. It can be deaf all the same: whenever it is made anew, and about once a
minute, every root is looked at as a whole. Where the system gives no events, directories are polled. The only room
that knows watchfiles. SPEC section 5.
"""

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.abc
import anyio.to_thread
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from memd import heap
from memd.live import Library, Root

STEP_MS = 25
"""How often the listener asks whether it heard anything. A file has to be quiet for 50 ms before it is taken: until
then nothing is lost by not knowing, and each asking wakes the process.
"""
DEBOUNCE_MS = 100
"""How long events may go on before what was heard so far is told."""
GATHER_S = 0.025
"""Seconds between an event and the look: with the steps before it, a file that was written at once is then quiet."""
POLL_S = 1.0
"""Seconds between two polls of directories that have no events."""
POLL_SHARE = 0.01
"""The share of the time that polling may take; a larger store is polled less often."""
AFTER_ERROR_S = 1.0
"""Seconds between a listener that failed and the next."""

NO_EVENTS = frozenset(
    {"9p", "afs", "ceph", "cifs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs", "vboxsf", "virtiofs"}
)
"""File systems, by their names in the mount table, on which another machine's changes make no events; all of FUSE is
taken for one.
"""
_MOUNTS = "/proc/self/mounts"
_POLLED = "looked at once a second instead, for they give no events"
_LIMIT = (
    "the system's limit on watching files is reached: stores are looked at once a second instead; "
    "raise fs.inotify.max_user_watches and fs.inotify.max_user_instances"
)

Identity = tuple[int, int]
"""A directory's device and inode."""


class DeafError(Exception):
    """The system gives no listener."""


class Ground(NamedTuple):
    """What is to be listened to for a set of roots, and how things stood when that was decided.

    `listened` are the directories to listen to. `ways` are the paths of the roots and of all that leads to them: when
    one of these comes or goes, a root may have. `polled` are the roots that give no events, by why.
    """

    listened: Mapping[str, Identity]
    ways: frozenset[str]
    by_path: Mapping[str, Path]
    polled: Mapping[Path, str]


class Ears:
    """One listener on some directories, not on what is below directories in them."""

    def __init__(self, directories: Iterable[str]) -> None:
        """Blocks while it is set up. Errors: DeafError when there is none to have; FileNotFoundError."""
        self._stop = threading.Event()
        try:
            # The last argument would have it ignore that the limit is reached, too, and hear nothing.
            self._notify = RustNotify(list(directories), False, False, 0, False, False)
        except FileNotFoundError:
            raise
        except (OSError, WatchfilesRustInternalError) as error:
            raise DeafError from error

    async def hear(self) -> set[str] | None:
        """The paths of the next changes; None once it was stopped. Errors: WatchfilesRustInternalError."""
        try:
            heard = await anyio.to_thread.run_sync(
                partial(self._notify.watch, DEBOUNCE_MS, STEP_MS, 0, self._stop), abandon_on_cancel=True
            )
        except BaseException:
            self.stop()
            raise
        return {path for _, path in heard} if isinstance(heard, set) else None

    def stop(self) -> None:
        """End it; whoever listens is told within a step."""
        self._stop.set()


class Watcher:
    """Listens for a library's roots and has them looked at."""

    def __init__(self, library: Library, look_s: float) -> None:
        self.library = library
        self.roots = library.roots
        self.runtime = library.runtime
        self.look_s = look_s
        self._ground = Ground({}, frozenset(), {}, {})
        self._ears: Ears | None = None
        self._anew = anyio.Event()
        self._attended: dict[Path, anyio.CancelScope] = {}

    async def run(self) -> None:
        """Go on until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen)
            tasks.start_soon(self._look_around)
            while True:
                self._attend(tasks)
                await self.roots.changed()
                self._begin_anew()

    # -- looking ---------------------------------------------------------------------------------------------

    def _attend(self, tasks: anyio.abc.TaskGroup) -> None:
        """Have a task for each root."""
        current = self.roots.current()
        for directory in self._attended.keys() - current.keys():
            self._attended.pop(directory).cancel()
        for directory in current.keys() - self._attended.keys():
            scope = self._attended[directory] = anyio.CancelScope()
            tasks.start_soon(self._attend_root, current[directory], scope)

    async def _attend_root(self, root: Root, scope: anyio.CancelScope) -> None:
        """Look whenever there is something to look at."""
        with scope:
            while True:
                await root.noticed()
                await anyio.sleep(GATHER_S)
                await self.library.look(root)

    async def _look_around(self) -> None:
        """The look at everything, each minute; and whether what is listened to is still what is there."""
        while True:
            await anyio.sleep(self.look_s)
            ground = await anyio.to_thread.run_sync(survey, list(self.roots.current()))
            if ground.listened != self._ground.listened or self._ears is None:
                self._begin_anew()
            await self.library.rescan()
            await anyio.to_thread.run_sync(heap.give_back)

    # -- listening -------------------------------------------------------------------------------------------

    def _begin_anew(self) -> None:
        """Have another listener made."""
        self._anew.set()
        self.runtime.watching = False
        if self._ears is not None:
            self._ears.stop()

    async def _listen(self) -> None:
        """Listen, with one listener after another, and poll meanwhile what gives no events."""
        while True:
            self._anew = anyio.Event()
            roots = self.roots.current()
            self._ground = await anyio.to_thread.run_sync(survey, list(roots))
            self._ears = await self._new_ears()
            self._report()
            async with anyio.create_task_group() as tasks:
                polled = self._ground.polled if self._ears is not None else roots
                if polled:
                    tasks.start_soon(self._poll, [roots[directory] for directory in polled])
                for root in roots.values():
                    root.notice(None)
                if self._ears is None:
                    await self._anew.wait()
                else:
                    await self._hear_out(self._ears)
                tasks.cancel_scope.cancel()

    async def _new_ears(self) -> Ears | None:
        """A listener on the ground; None where there is none to be had."""
        try:
            return await anyio.to_thread.run_sync(Ears, list(self._ground.listened))
        except FileNotFoundError:
            self._begin_anew()  # it went just now
        except DeafError:
            pass
        return None

    async def _hear_out(self, ears: Ears) -> None:
        """Pass on what a listener hears, until another is needed."""
        while not self._anew.is_set():
            try:
                heard = await ears.hear()
            except WatchfilesRustInternalError:
                # It takes a name that is no Unicode for the end, and goes on saying so.
                await anyio.sleep(AFTER_ERROR_S)
                return
            if heard is None:
                return
            self._tell(heard)

    def _tell(self, heard: set[str]) -> None:
        """Have looked at what these paths are of."""
        roots = self.roots.current()
        for path in heard:
            directory, name = os.path.split(path)
            root = roots.get(self._ground.by_path.get(directory, Path()))
            if root is not None and is_notes(name):
                root.notice((name,))
                self.runtime.last_event = time.monotonic()
            if path in self._ground.ways:
                self._begin_anew()

    def _report(self) -> None:
        """Have the status say how things are watched."""
        polled = self._ground.polled
        self.runtime.watching = self._ears is not None and not polled
        self.runtime.findings.pop("watching", None)
        if self._ears is None and not self._anew.is_set():
            self.runtime.note("watching", _LIMIT)
        elif polled:
            kinds = ", ".join(sorted(set(polled.values())))
            self.runtime.note("watching", f"{len(polled)} directories ({kinds}) are {_POLLED}")

    # -- polling ---------------------------------------------------------------------------------------------

    async def _poll(self, roots: Sequence[Root]) -> None:
        """Have roots looked at whenever their notes are not what they were."""
        known: dict[Path, int | None] = {}
        while True:
            began = time.monotonic()
            now = await anyio.to_thread.run_sync(fingerprints, [root.directory for root in roots])
            pause = max(POLL_S, (time.monotonic() - began) / POLL_SHARE)
            for root in roots:
                if root.directory not in known or known[root.directory] != now[root.directory]:
                    root.notice(None)
                    self.runtime.last_event = time.monotonic()
            known = now
            await anyio.sleep(pause)


def survey(directories: Iterable[Path]) -> Ground:
    """What is to be listened to for these roots: each, and the nearest directory that holds it or what will."""
    listened: dict[str, Identity] = {}
    ways: set[str] = set()
    by_path: dict[str, Path] = {}
    polled: dict[Path, str] = {}
    mounts = list(mount_points(_MOUNTS))
    for directory in directories:
        ways.update(map(str, (directory, *directory.parents)))
        by_path[str(directory)] = by_path[os.path.realpath(directory)] = directory
        kind = file_system(os.path.realpath(directory), mounts)
        if kind is not None and (kind in NO_EVENTS or kind.startswith("fuse")):
            polled[directory] = kind
        for place in (directory, nearest(directory.parent)):
            with suppress(OSError):
                status = place.stat()
                if os.access(place, os.R_OK):  # nobody can listen to another
                    listened[str(place)] = (status.st_dev, status.st_ino)
    return Ground(listened, frozenset(ways), by_path, polled)


def nearest(directory: Path) -> Path:
    """The directory itself, or the nearest above it that is there."""
    while not is_there(directory) and directory != directory.parent:
        directory = directory.parent
    return directory


def is_there(directory: Path) -> bool:
    """Whether a directory is there; one that the disk does not tell of is looked for again with the next survey."""
    try:
        return directory.is_dir()
    except OSError:
        return False


def is_notes(name: str) -> bool:
    """Whether an entry of a watched directory can be a note or the list of them."""
    return name.endswith(".md") and not name.startswith(".")


def fingerprints(directories: Iterable[Path]) -> dict[Path, int | None]:
    """What each directory's notes are by their metadata; None for one that does not read."""
    return {directory: fingerprint(directory) for directory in directories}


def fingerprint(directory: Path) -> int | None:
    """A number that is another one once a note was added, removed or changed."""
    try:
        with os.scandir(directory) as entries:
            return hash(frozenset(_traits(entry) for entry in entries if is_notes(entry.name)))
    except OSError:
        return None


def _traits(entry: "os.DirEntry[str]") -> tuple[str, int, int, int]:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return (entry.name, 0, 0, 0)
    return (entry.name, status.st_ino, status.st_size, status.st_ctime_ns)


def mount_points(table: str) -> Iterator[tuple[str, str]]:
    """Every mount point and its file system's kind; none where there is no such table."""
    with suppress(OSError):
        for line in Path(table).read_text(errors="surrogateescape").splitlines():
            _, point, kind, *_ = line.split(" ")
            yield point.encode("utf-8", "surrogateescape").decode("unicode_escape"), kind


def file_system(path: str, mounts: Iterable[tuple[str, str]]) -> str | None:
    """The kind of the file system that a path is on; None where that is not known."""
    held = [(point, kind) for point, kind in mounts if point == "/" or f"{path}/".startswith(f"{point}/")]
    return max(held, key=lambda mount: len(mount[0]))[1] if held else None
