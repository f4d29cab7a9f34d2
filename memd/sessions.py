"""Session files: what of a session outlives the daemon. Law: no note text but the block that was given.

One file a session, `<home>/sessions/<id>.json`, replaced whole and synced; the newest 1,000 are kept, and directories
beside them (a host's transcripts) are never touched. A file that does not read is set aside and said, never read as
empty and written over. SPEC section 8. Blocking code.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from memd.errors import Unreadable
from memd.focus import Block
from memd.fs import Disk, NotRegularError, Seen, Stamp, is_staged
from memd.note import Scope

KEPT = 1_000
"""Session files that are kept, the newest."""
PRUNE_EVERY = 50
"""New sessions after which old files are looked for."""
FILE_MAX = 1 << 20
"""Bytes of a session file; a longer one is not ours."""

SUFFIX = ".json"
ASIDE = re.compile(r"\.bad\.\d+\Z")


class Session(msgspec.Struct, frozen=True):
    """A session as it outlives the daemon.

    `at` is the key of the repository's store it works in, `saved` the saves it had made in others when it left them,
    by their keys; what it makes now the journals say. `key` names the store that the block's repo notes are of.
    """

    id: str
    cwd: str
    depth: int
    save_cap: int | None
    read_only: bool = False
    switch: str | None = None
    transcript: str | None = None
    at: str | None = None
    saved: dict[str, int] = {}
    key: str | None = None
    block: Block | None = None


class Shown(NamedTuple):
    """Of which notes a session's block speaks, as long as its file has this stamp; `session` without the block."""

    stamp: Stamp
    session: Session
    parts: frozenset[tuple[Scope, str]]

    @classmethod
    def of(cls, session: Session, stamp: Stamp) -> "Shown":
        """What one file told."""
        parts = () if session.block is None else session.block.parts
        notes = frozenset(
            (part.scope, part.stem) for part in parts if part.scope is not None and part.stem is not None
        )
        return cls(stamp, msgspec.structs.replace(session, block=None), notes)


_decode = msgspec.json.Decoder(Session).decode
_encode = msgspec.json.Encoder().encode


class SessionFiles:
    """The directory of session files."""

    def __init__(self, directory: Path, disk: Disk | None = None) -> None:
        self.directory = directory
        self.disk = disk or Disk()
        self._written = 0
        self._shown: dict[str, Shown] = {}

    def path(self, session: str) -> Path:
        """Where a session has its file; its id is a file name (SPEC 8)."""
        return self.directory / f"{session}{SUFFIX}"

    def load(self, session: str) -> Session | None:
        """A session as it was written last; None when it never was.

        Errors: Unreadable when its file does not read; it is set aside first, bytes kept, so that the next load
        starts clean.
        """
        path = self.path(session)
        try:
            raw, _ = self.disk.read(path, FILE_MAX)
            found = _decode(raw)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (NotRegularError, msgspec.MsgspecError, RecursionError) as error:
            self.disk.replace(path, self._aside(session))
            raise Unreadable(
                "the session's file does not read; it was set aside and the session starts anew"
            ) from error
        return found if found.id == session else None

    def store(self, session: Session) -> None:
        """Write a session, durable when this returns. Errors: OSError."""
        self.disk.make_dirs(self.directory)
        self.disk.replace(self.disk.stage(self.directory, _encode(session)).path, self.path(session.id))
        self.disk.sync_dir(self.directory)
        self._written += 1
        if self._written % PRUNE_EVERY == 1:
            self.prune()

    def prune(self) -> None:
        """Remove all session files but the newest."""
        files = sorted(self.seen(), key=lambda seen: seen.stamp.mtime_ns, reverse=True)
        for seen in files[KEPT:]:
            self.disk.remove(self.directory / seen.name)

    def peek(self, file: str) -> Session | None:
        """The session that a file of the directory holds, by the file's name; None when it does not read."""
        try:
            read = self._read(file)
        except OSError:
            return None
        return None if read is None else read[0]

    def _read(self, file: str) -> tuple[Session, Stamp] | None:
        """The session that a file holds, and the stamp it was read under; None when it holds none, or is gone.

        Errors: OSError when the disk does not let it be read.
        """
        try:
            raw, stamp = self.disk.read(self.directory / file, FILE_MAX)
            return _decode(raw), stamp
        except (FileNotFoundError, NotRegularError, msgspec.MsgspecError, RecursionError):
            return None

    def purge(self, is_forgotten: Callable[[Session, Scope, str], bool]) -> list[Session]:
        """Take the parts of forgotten notes out of every block; the sessions that changed. Errors: OSError.

        What was set aside since it did not read cannot be looked into, and may hold anything: it goes. So does what a
        crash left half written; nobody may write a session meanwhile. A file that stands as it did is not read again
        for a note that its block does not speak of. One that cannot be read now fails it once all others are done:
        it may hold what was forgotten.
        """
        changed = []
        failure: OSError | None = None
        known, self._shown = self._shown, {}
        for seen in self._entries():
            if ASIDE.search(seen.name) or is_staged(seen.name):
                self.disk.remove(self.directory / seen.name)
            if not seen.name.endswith(SUFFIX):
                continue
            shown = known.get(seen.name)
            if (
                shown is None
                or shown.stamp != seen.stamp
                or any(is_forgotten(shown.session, *of) for of in shown.parts)
            ):
                try:
                    read = self._read(seen.name)
                except OSError as error:
                    failure, read = error, None
                if read is None:
                    continue
                session, stamp = read
                less = purged(session, is_forgotten)
                if less is not session:
                    self.store(less)
                    changed.append(less)
                    continue
                shown = Shown.of(session, stamp)
            self._shown[seen.name] = shown
        if failure is not None:
            raise failure
        return changed

    def seen(self) -> list[Seen]:
        """The session files there are, in name order."""
        return [entry for entry in self._entries() if entry.name.endswith(SUFFIX)]

    def _entries(self) -> list[Seen]:
        try:
            seen = self.disk.scan(self.directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [entry for entry in seen if entry.regular]

    def _aside(self, session: str) -> Path:
        number = 1
        while self.disk.stat(self.directory / f"{session}.bad.{number}") is not None:
            number += 1
        return self.directory / f"{session}.bad.{number}"


def purged(session: Session, is_forgotten: Callable[[Session, Scope, str], bool]) -> Session:
    """A session less the parts of its block whose notes are forgotten; itself when there are none."""
    block = session.block
    if block is None:
        return session
    for part in block.parts:
        if part.scope is not None and part.stem is not None and is_forgotten(session, part.scope, part.stem):
            block = block.without(part.scope, part.stem)
    return session if block is session.block else msgspec.structs.replace(session, block=block)
