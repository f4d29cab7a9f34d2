"""A directory of notes. Law: its files are read as they are, and what is no note is named, never followed.

SPEC section 7, `memory.import`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from memd import note, secrets
from memd.errors import Refused, Unreadable
from memd.fs import Disk, Seen
from memd.listing import Listing

INDEX = "MEMORY.md"


class File(NamedTuple):
    """A file that may be a note: its name there, and why it is left out, None when it is not."""

    name: str
    reason: str | None


class Text(NamedTuple):
    """A note as it stands there: its stem, its bytes, and the line that lists it, if one does."""

    stem: str
    raw: bytes
    row: str | None


class Directory:
    """A directory somebody keeps notes in."""

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        """Errors: Refused (field `dir`) when it is no directory that can be read here."""
        self.path = path
        self.disk = disk or Disk()
        if not path.is_absolute():
            raise Refused("dir", "dir: not an absolute path", bound="an absolute path")
        try:
            self.seen = [seen for seen in self.disk.scan(path) if seen.name.endswith(note.SUFFIX)]
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it does not read"
            raise Refused("dir", f"dir: {reason}; name a directory of notes", bound="a directory here") from error

    def files(self) -> Iterator[File]:
        """Every `.md` file but the index, in name order."""
        for seen in self.seen:
            if seen.name.lower() != INDEX.lower():
                yield File(seen.name, why_not(seen))

    def rows(self) -> dict[str, str]:
        """The line that lists each note there; nothing where there is no index that reads."""
        try:
            raw, _ = self.disk.read(self.path / INDEX)
            listing = Listing.decode(raw)
        except (OSError, Unreadable):
            return {}
        lines = listing.text.removeprefix("\ufeff").split("\n")
        return {row.name: lines[row.index].rstrip("\r") for row in reversed(listing.rows())}

    def read_all(self, names: Sequence[str], rows: dict[str, str]) -> list[Text | str]:
        """Each file's text, or why it is left out."""
        return [self.read(name, rows) for name in names]

    def read(self, name: str, rows: dict[str, str]) -> Text | str:
        """A file's text, or why it is left out."""
        try:
            raw, _ = self.disk.read(self.path / name, note.MAX_FILE)
        except OSError as error:
            return error.strerror or "it does not read"
        if secrets.FENCE in raw.decode(errors="replace"):
            return "it holds the fence of a recalled block"
        stem = name.removesuffix(note.SUFFIX)
        return Text(stem, raw, rows.get(stem))


def why_not(seen: Seen) -> str | None:
    """Why a directory entry cannot be a note; None when it may be one (SPEC 2)."""
    if not note.is_note_name(seen.name):
        return "its name cannot be a note's"
    if seen.symlink:
        return "a symlink is never followed"
    if not seen.regular:
        return "not a regular file"
    if seen.stamp.size > note.MAX_FILE:
        return f"{seen.stamp.size} bytes; a note has at most {note.MAX_FILE}"
    return None
