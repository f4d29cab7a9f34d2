"""Where transcripts are and whose they are. Law: a name says nothing; whose a transcript is, its own `cwd` tells.

Three sources: the first seed's sessions under the home, Claude Code's projects, and the files that kernels named.
Directories below a source's root are never symlinks, nor are files. SPEC section 11. Blocking code.
"""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from memd import paths
from memd.fs import Disk, Seen, Stamp
from memd.history.formats import Header
from memd.history.transcript import head, stem

SUFFIX = ".jsonl"
QUIET_NS = 2_000_000_000
"""Nanoseconds after its last change when a directory's listing holds until the next: clocks of disks are coarse."""

CWD_MAX = 4096
"""Characters of a path that a session can have run in; what is longer is nobody's, and would be walked for hours."""


class Named(NamedTuple):
    """What a session's file tells: where it ran, the key of its store, and the transcript its kernel named."""

    session: str
    cwd: str
    at: str | None
    child: bool
    transcript: Path | None


class Sources(msgspec.Struct, frozen=True):
    """The places to look in: a root that is None is not asked for."""

    seed: Path | None
    claude: Path | None
    named: bool
    roots: tuple[Path, ...] = ()
    sessions: Mapping[str, Named] = {}


class Found(NamedTuple):
    """A transcript as its head tells of it; `status` is the file's."""

    path: Path
    status: os.stat_result
    session: str
    cwd: str | None
    at: str | None
    child: bool


class Whose(NamedTuple):
    """A repository as transcripts may belong to it: its canonical path and the key of its store."""

    repo: Path
    key: str


class Catalog:
    """Every transcript there is, and what its head tells, which is looked at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listings: dict[Path, tuple[int, list[Path]]] = {}
        self._heads: dict[Path, tuple[Stamp, Header]] = {}
        self._unread: set[Path] = set()

    @property
    def unread(self) -> int:
        """How many directories and files could not be read when they were last looked for."""
        return len(self._unread)

    def files(self, sources: Sources) -> list[Found]:
        """The transcripts of the sources, each once, by path."""
        with self._lock:
            return self._files(sources)

    def _files(self, sources: Sources) -> list[Found]:
        self._unread = set()
        owners = {named.transcript: named for named in sources.sessions.values() if named.transcript is not None}
        paths_ = set(self._below(sources.seed)) | set(self._below(sources.claude))
        if sources.named:
            paths_ |= {path for path in owners if _inside(path, sources.roots)}
        self._heads = {path: known for path, known in self._heads.items() if path in paths_}
        found = (self._found(path, owners.get(path), sources.sessions) for path in sorted(paths_))
        return [transcript for transcript in found if transcript is not None]

    def _found(self, path: Path, owner: Named | None, sessions: Mapping[str, Named]) -> Found | None:
        seen = _regular(path)
        if seen is None:
            return None
        header = self._head(path, seen)
        if header is None:
            self._unread.add(path)
            return None
        session = header.session or (stem(path) if owner is None else owner.session)
        known = owner or sessions.get(session)
        return Found(
            path=path,
            status=seen,
            session=session,
            cwd=header.cwd or (None if known is None else known.cwd),
            at=None if known is None else known.at,
            child=header.child or (known is not None and known.child),
        )

    def _head(self, path: Path, seen: os.stat_result) -> Header | None:
        """What a file's head tells, looked at again only when the file changed: another may stand in its place."""
        stamp = Stamp.of(seen)
        known = self._heads.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        header = head(path)
        if header is not None:
            self._heads[path] = (stamp, header)
        return header

    def _below(self, root: Path | None) -> Iterator[Path]:
        """The transcripts in the directories of a root."""
        if root is None:
            return
        for directory in self._listed(root) or ():
            if not (directory.regular or directory.symlink):
                yield from self._in(root / directory.name)

    def _in(self, directory: Path) -> list[Path]:
        try:
            changed = directory.stat().st_mtime_ns
        except OSError:
            return []
        then, files = self._listings.get(directory, (0, []))
        if then == changed:
            return files
        listed = self._listed(directory)
        if listed is None:
            return []
        files = [directory / seen.name for seen in listed if seen.regular and seen.name.endswith(SUFFIX)]
        if time.time_ns() - changed > QUIET_NS:
            self._listings[directory] = (changed, files)
        return files

    def _listed(self, directory: Path) -> list[Seen] | None:
        """What stands in a directory, nothing where there is none; None where it does not read, which is noted."""
        try:
            return Disk().scan(directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError:
            self._unread.add(directory)
            return None


def belonging(files: list[Found], whose: Whose) -> tuple[list[Found], int]:
    """The transcripts of a repository's root sessions, and how many directories are of a repository nobody knows."""
    judged: dict[str, bool | None] = {}
    ours: list[Found] = []
    lost: set[Path] = set()
    for found in files:
        if found.child:
            continue
        if found.cwd is None:
            continue
        if found.cwd not in judged:
            judged[found.cwd] = belongs(found.cwd, whose.repo)
        verdict = judged[found.cwd]
        if verdict is None and found.at is not None:
            verdict = found.at == whose.key
        if verdict is None:
            lost.add(found.path.parent)
        elif verdict:
            ours.append(found)
    return ours, len(lost)


def belongs(cwd: str, repo: Path) -> bool | None:
    """Whether a session that ran in `cwd` ran in this repository; None where the checkout is gone and nobody knows.

    A directory that is there is judged as every caller's is. One that is gone lies in the repository around it.
    """
    if not cwd.startswith("/") or "\0" in cwd or len(cwd) > CWD_MAX:
        return False
    here = Path(cwd)
    around = paths.canonical_repo(here)
    if around == repo:
        return True
    if os.path.isdir(here):  # noqa: PTH112 - pathlib's raises for a name that is too long, or not ours to look at
        return False
    real = Path(os.path.realpath(here))
    if around != real:
        return False  # another repository is around it
    return True if real.is_relative_to(repo) else None


def _inside(path: Path, roots: tuple[Path, ...]) -> bool:
    """Whether a named file still lies under a directory of `history.roots`."""
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(root)) for root in roots)


def _regular(path: Path) -> os.stat_result | None:
    try:
        seen = path.lstat()
    except (OSError, ValueError):
        return None
    return seen if Seen.of(path.name, seen).regular else None
