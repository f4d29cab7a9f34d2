"""Notes of another program, as they stand in its directories. Law: a file is read once for each time it changes.

What was read is remembered by the file's stamp, so that a look at a thousand notes that nobody touched opens none of
them. Nothing is written. SPEC section 10.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from memd import journal, note
from memd.fs import Disk, Seen, Stamp
from memd.importers.directory import why_not


class Known(msgspec.Struct, frozen=True):
    """What a file was read to hold: the hashes of its bytes and of its tagged text, and whether that is unparsed."""

    stamp: Stamp
    looked_ns: int
    source_hash: str
    hash: str
    is_unparsed: bool
    is_too_long: bool


class Found(msgspec.Struct, frozen=True):
    """A note there, by the stem of its file; `raw` is its tagged text where it was read just now."""

    name: str
    path: Path
    known: Known
    raw: bytes | None


class Left(msgspec.Struct, frozen=True):
    """A file that cannot be taken: its name and why."""

    file: str
    reason: str


class Notes(msgspec.Struct, frozen=True):
    """The notes of some directories: of one name the first directory's. `differ` names those that another directory
    has otherwise, once for each. `left` is what looks like a note and cannot be taken.
    """

    found: dict[str, Found]
    differ: tuple[str, ...]
    left: tuple[Left, ...]

    @property
    def print(self) -> tuple[tuple[str, str], ...]:
        """What tells these notes from any others."""
        return tuple((name, one.known.source_hash) for name, one in self.found.items())


NOTHING = Notes({}, (), ())


class Reader:
    """Reads the notes of one program, tagged with its name. For one thread at a time."""

    def __init__(self, source: str, disk: Disk | None = None) -> None:
        self.source = source
        self.disk = disk or Disk()
        self._known: dict[Path, dict[str, Known]] = {}

    def read(self, directories: Iterable[Path]) -> Notes:
        """The notes of these directories, in their order; one that is not there has none.

        Errors: OSError for one that is there and does not read: its notes are not gone.
        """
        found: dict[str, Found] = {}
        differ: list[str] = []
        left: list[Left] = []
        for directory in directories:
            for one in self._read(directory):
                if isinstance(one, Left):
                    left.append(one)
                elif (first := found.setdefault(one.name, one)) is not one:
                    differ += [one.name] if first.known.source_hash != one.known.source_hash else []
        return Notes(found, tuple(differ), tuple(left))

    def again(self, found: Found) -> Found | None:
        """A note with its text, as it is now; None when it cannot be taken any more."""
        try:
            return self._open(found.name, found.path)
        except OSError:
            return None

    def _read(self, directory: Path) -> Iterator[Found | Left]:
        known = self._known.pop(directory, {})
        now: dict[str, Known] = {}
        for seen in self._scan(directory):
            reason = why_not(seen)
            if reason is not None:
                yield Left(seen.name, reason)
                continue
            name = seen.name.removesuffix(note.SUFFIX)
            try:
                one = self._look(name, directory / seen.name, seen, known.get(name))
            except OSError as error:
                yield Left(seen.name, error.strerror or "it does not read")
                continue
            now[name] = one.known
            if one.known.is_too_long:
                yield Left(seen.name, f"tagged it has over {note.MAX_FILE} bytes")
            else:
                yield one
        if now:
            self._known[directory] = now

    def _scan(self, directory: Path) -> list[Seen]:
        try:
            entries = self.disk.scan(directory)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return []
        return [seen for seen in entries if note.is_note_name(seen.name)]

    def _look(self, name: str, path: Path, seen: Seen, known: Known | None) -> Found:
        if known is not None and known.stamp == seen.stamp and seen.stamp.is_old(known.looked_ns):
            return Found(name, path, known, None)
        return self._open(name, path)

    def _open(self, name: str, path: Path) -> Found:
        """A note, read now. Errors: OSError."""
        looked_ns = time.time_ns()
        raw, stamp = self.disk.read(path, note.MAX_FILE)
        tagged = note.tagged(raw, self.source)
        known = Known(
            stamp,
            looked_ns,
            journal.content_hash(raw),
            journal.content_hash(tagged),
            note.parse(name, tagged).trouble is not None,
            len(tagged) > note.MAX_FILE,
        )
        return Found(name, path, known, tagged)


def names_in(directories: Iterable[Path]) -> frozenset[str]:
    """The name of every note that one of these directories holds; no file is opened."""
    names: set[str] = set()
    for directory in directories:
        with suppress(OSError, ValueError):
            names.update(_names(directory))
    return frozenset(names)


def _names(directory: Path) -> Iterator[str]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if note.is_note_name(entry.name) and entry.is_file(follow_symlinks=False):
                yield entry.name.removesuffix(note.SUFFIX)
