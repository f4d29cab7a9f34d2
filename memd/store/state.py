"""What a store holds, read from its directory. Law: reading changes nothing, and corrupt is never read as empty.

`State` is a cache of the directory under the lock: journal heads, note entries, MEMORY.md and usage.json. It is
read whole at opening and after a failed write, and caught up before every commit, since another process of the
first seed's kind may hold the same lock in turn (SPEC section 4).
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from memd import journal, note, secrets, tokens
from memd.errors import Unreadable
from memd.fs import Disk, NotRegularError, Seen, Stamp
from memd.journal import Heads, Record
from memd.listing import Listing
from memd.store.model import Blocked, Change, Entry, View
from memd.usage import Usage

JOURNAL = "ops.jsonl"
LISTING = "MEMORY.md"
USAGE = "usage.json"
OBJECTS = "objects"
LOCK = ".lock"

T = TypeVar("T")

YOUNG_NS = 20_000_000
"""A file changed within this of the look at it may change again under the same stamp: it is read again."""


class Cached(Generic[T]):
    """One decoded file, read again when its stamp says it changed."""

    def __init__(self, disk: Disk, path: Path, decode: Callable[[bytes], T], empty: Callable[[], T]) -> None:
        self.disk, self.path, self.decode, self.empty = disk, path, decode, empty
        self._value: T | None = None
        self._stamp: Stamp | None = None

    def get(self) -> T:
        """The file as it is now; `empty()` when it is not there.

        Errors: Unreadable when it is there and is not a regular file of the right form: never read as empty.
        """
        status = self.disk.stat(self.path)
        if status is None:
            return self.empty()
        if self._value is None or Stamp.of(status) != self._stamp:
            looked_ns = time.time_ns()
            try:
                raw, stamp = self.disk.read(self.path)
            except OSError as error:
                raise Unreadable(
                    f"{self.path.name} does not read ({reason_of(error)}); mend or move it, then run rebuild"
                ) from error
            self._value = self.decode(raw)
            self._stamp = None if stamp.ctime_ns > looked_ns - YOUNG_NS else stamp
        return self._value

    def wrote(self, value: T) -> None:
        """The file was replaced under the lock by what encodes `value`."""
        status = self.disk.stat(self.path)
        self._value, self._stamp = value, None if status is None else Stamp.of(status)


class State:
    """The directory as last read. Mutated only by whoever holds the store's lock."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self.disk = disk
        self.directory = directory
        self.heads = Heads()
        self.digest = ""
        self.lines = 0
        self.whole = 0
        self.torn = 0
        self.journal_stamp: Stamp | None = None
        self.broken_line: int | None = None
        self.broken_reason: str | None = None
        self.entries: dict[str, Entry] = {}
        self.by_slug: defaultdict[str, set[str]] = defaultdict(set)
        self.blocked: dict[str, Blocked] = {}
        self.missing: dict[str, float] = {}
        self.suspended = False
        self.scanned_ns = 0
        self.listing = Cached(disk, directory / LISTING, Listing.decode, Listing)
        self.usage = Cached(disk, directory / USAGE, Usage.decode, Usage.empty)

    # -- the journal -------------------------------------------------------------------------------------------

    def read_journal(self) -> bool:
        """Catch up with the journal; True when it holds records this state had not seen.

        Grown is read from where it ended; anything else that changed is read again whole. Errors: Unreadable
        when it is not a regular file.
        """
        path = self.directory / JOURNAL
        status = self.disk.stat(path)
        stamp = None if status is None else Stamp.of(status)
        if stamp == self.journal_stamp:
            return False
        grown = (
            stamp is not None
            and self.journal_stamp is not None
            and stamp.inode == self.journal_stamp.inode
            and stamp.size >= self.whole
            and self.torn == 0
        )
        if not grown:
            self.heads, self.digest, self.lines, self.whole = Heads(), "", 0, 0
            self.broken_line = self.broken_reason = None
        raw, stamp = self._read_journal_from(path, self.whole) if stamp else (b"", None)
        replay = journal.replay(raw, prev=self.digest, first_line=self.lines + 1, heads=self.heads)
        self.digest, self.torn = replay.digest, replay.torn_bytes
        self.whole += replay.size
        self.lines += replay.lines
        if self.broken_line is None:
            self.broken_line, self.broken_reason = replay.broken_line, replay.broken_reason
        self.journal_stamp = stamp
        return replay.count > 0 or not grown

    def all_records(self) -> list[Record]:
        """Every record of the journal file, read again."""
        if self.journal_stamp is None:
            return []
        raw, _ = self._read_journal_from(self.directory / JOURNAL, 0)
        return journal.replay(raw).records

    def _read_journal_from(self, path: Path, offset: int) -> tuple[bytes, Stamp]:
        try:
            return self.disk.read_from(path, offset)
        except NotRegularError:
            raise Unreadable(f"{JOURNAL} is not a regular file; move it away and run rebuild") from None

    def appended(self, stamp: Stamp, records: list[Record], size: int) -> None:
        """These records are durable at the journal's end, `size` bytes of them."""
        for record in records:
            self.heads.apply(record)
        self.digest = records[-1].digest
        self.lines += len(records)
        self.whole += size
        self.journal_stamp = stamp

    def merge(
        self, changes: dict[str, Change], written: dict[str, Stamp], suspended: bool, now: float
    ) -> list[Change]:
        """Take a carried-out plan over; its changes, each with the stamp its file was written under."""
        looked_ns = int(now * 1e9)
        merged = []
        for name, change in changes.items():
            entry = change.entry
            if entry is None:
                self._drop_entry(name)
            else:
                stamp = written.get(name)
                if stamp is not None and stamp.size == entry.size:
                    entry = msgspec.structs.replace(entry, stamp=stamp, looked_ns=looked_ns)
                self._set_entry(entry)
                self.missing.pop(name, None)
            merged.append(Change(name, entry, change.tokens))
        self.suspended = suspended
        return merged

    def _set_entry(self, entry: Entry) -> None:
        self.entries[entry.name] = entry
        self.by_slug[entry.slug].add(entry.name)

    def _drop_entry(self, name: str) -> None:
        entry = self.entries.pop(name, None)
        if entry is not None:
            self.by_slug[entry.slug].discard(name)

    def view(self) -> View:
        """What readers see without the lock."""
        return View(
            listing=_if_readable(self.listing),
            usage=_if_readable(self.usage),
            suspended=self.suspended,
            scanned_ns=self.scanned_ns,
            journal=self.journal_stamp,
        )

    @property
    def intact(self) -> bool:
        """Whether the journal is there and unbroken: only then may objects it does not name be swept."""
        return self.journal_stamp is not None and self.broken_line is None

    # -- notes -------------------------------------------------------------------------------------------------

    def path(self, name: str) -> Path:
        """Where the note of this name has its file."""
        return self.directory / f"{name}.md"

    def object_path(self, content_hash: str) -> Path:
        """Where the version of this hash has its object."""
        return self.directory / OBJECTS / journal.hex_of(content_hash)

    def scan(self) -> dict[str, Seen]:
        """The `.md` entries of the directory that count as notes, by name; `blocked` is what does not count."""
        self.note_scan()
        found: dict[str, Seen] = {}
        self.blocked = {}
        for seen in self.disk.scan(self.directory):
            if not note.is_note_name(seen.name):
                continue
            name = seen.name.removesuffix(".md")
            blocked = blocked_by(seen)
            if blocked is None:
                found[name] = seen
            else:
                self.blocked[name] = blocked
        return found

    def note_scan(self) -> None:
        """What the directory holds is known as of now."""
        self.scanned_ns = self.directory.stat().st_mtime_ns

    def is_scanned(self) -> bool:
        """Whether nothing was added to or removed from the directory since it was last known."""
        return self.scanned_ns == self.directory.stat().st_mtime_ns

    def look(self, name: str) -> Seen | None:
        """What stands at a note's path, without opening it; None when there is nothing."""
        status = self.disk.stat(self.path(name))
        return None if status is None else Seen.of(f"{name}.md", status)

    def read_note(self, name: str) -> tuple[bytes, Entry, list[str]] | None:
        """A note's bytes, entry and tokens from its file now; None when no such note can be read.

        A file that is there and cannot be read is put into `blocked`.
        """
        looked_ns = time.time_ns()
        try:
            raw, stamp = self.disk.read(self.path(name), note.MAX_FILE)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.blocked[name] = Blocked("unreadable", reason_of(error))
            return None
        return raw, *read_entry(name, raw, stamp, looked_ns)

    def read_object(self, content_hash: str) -> bytes | None:
        """A version's text, None when its object is not there or does not hold what its name says."""
        try:
            raw, _ = self.disk.read(self.object_path(content_hash))
        except (FileNotFoundError, NotADirectoryError, NotRegularError):
            return None
        return raw if journal.content_hash(raw) == content_hash else None

    def load_notes(self) -> Iterator[Change]:
        """Read every note anew, yielding each as it is taken into `entries`."""
        self.entries.clear()
        self.by_slug.clear()
        for name in self.scan():
            read = self.read_note(name)
            if read is not None:
                _, entry, words = read
                self._set_entry(entry)
                yield Change(name, entry, words)


def _if_readable(cached: Cached[T]) -> T | None:
    try:
        return cached.get()
    except (Unreadable, OSError):
        return None


def read_entry(name: str, raw: bytes, stamp: Stamp | None, looked_ns: int) -> tuple[Entry, list[str]]:
    """The entry and the tokens of a note's bytes."""
    parsed = note.parse(name, raw)
    text = raw.decode("utf-8", "replace")
    fence = text.find(secrets.FENCE)
    entry = Entry(
        name=name,
        slug=note.slug(name),
        hook=parsed.hook,
        type=parsed.type,
        hash=journal.content_hash(raw),
        size=len(raw),
        trouble=parsed.trouble,
        secrets=tuple((found.kind, found.line) for found in secrets.scan(text)),
        fence_line=None if fence < 0 else text.count("\n", 0, fence) + 1,
        stamp=stamp,
        looked_ns=looked_ns,
    )
    return entry, tokens.tokenize(f"{name} {parsed.hook} {parsed.body}")


def settled_stamp(entry: Entry, seen: Seen) -> bool:
    """Whether `seen` proves that the file still holds what `entry` was read from."""
    return entry.stamp == seen.stamp and seen.stamp.ctime_ns < entry.looked_ns - YOUNG_NS


def blocked_by(seen: Seen) -> Blocked | None:
    """Why a `.md` entry is no note, None when it may be one (SPEC 2)."""
    if seen.symlink:
        return Blocked("symlink", "a symlink is never followed; put the file itself here")
    if not seen.regular:
        return Blocked("unreadable", "not a regular file")
    if seen.stamp.size > note.MAX_FILE:
        return Blocked("oversize", f"{seen.stamp.size} bytes; a note has at most {note.MAX_FILE}")
    return None


def reason_of(error: OSError) -> str:
    """What went wrong, without a path."""
    return error.strerror or "cannot be read"
