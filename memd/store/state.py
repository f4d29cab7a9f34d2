"""What a store holds, read from its directory. Law: reading changes nothing, and corrupt is never read as empty.

`State` is a cache of the directory under the lock: journal heads, note entries, MEMORY.md and usage.json. It is
read whole at opening and after a failed write, and caught up before every commit, since another process of the
first seed's kind may hold the same lock in turn (SPEC section 4).
"""

import errno
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from memd import forms, journal, note, secrets
from memd.errors import Unreadable
from memd.forms import Words
from memd.fs import Disk, NotRegularError, Seen, Stamp
from memd.journal import Heads, Record
from memd.listing import Listing
from memd.note import Note
from memd.store.cached import Cached, Encodes, reason_of, unreadable
from memd.store.model import Blocked, Change, Entry, View
from memd.usage import Usage

JOURNAL = "ops.jsonl"
LISTING = "MEMORY.md"
USAGE = "usage.json"
OBJECTS = "objects"
LOCK = ".lock"
SUSPENDED = ".suspended"
"""The mark of a suspended store (SPEC 5, guard), so that a restart does not forget what it waits for."""

NEVER = -1
"""The time of a look through the directory that has to be taken again."""
PATHS_HELD = 256
"""Paths of notes and of objects that are kept made: one save asks for its note's five times."""

T = TypeVar("T", bound=Encodes)


class ReadNote(NamedTuple):
    """A note as it was read: its bytes, and what they say."""

    raw: bytes
    entry: Entry
    words: Words


class State:
    """The directory as last read. Mutated only by whoever holds the store's lock."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self.disk = disk
        self.directory = directory
        self.path: Callable[[str], Path] = lru_cache(PATHS_HELD)(lambda name: directory / f"{name}{note.SUFFIX}")
        """Where the note of a name has its file."""
        self.journal = directory / JOURNAL
        self.objects = directory / OBJECTS
        objects = self.objects  # and no state that holds itself: one that was read anew goes at once
        self.object_path: Callable[[str], Path] = lru_cache(PATHS_HELD)(lambda hash_: objects / journal.hex_of(hash_))
        """Where the version of a hash has its object."""
        self.heads = Heads()
        self.digest = ""
        self.lines = 0
        self.whole = 0
        self.last_line = b""
        self.torn = 0
        self.torn_is_cut_short = False
        self.journal_stamp: Stamp | None = None
        self.broken_line: int | None = None
        self.broken_reason: str | None = None
        self.unchained: str | None = None
        self.behind = False
        self.entries: dict[str, Entry] = {}
        self.by_slug: defaultdict[str, set[str]] = defaultdict(set)
        self.blocked: dict[str, Blocked] = {}
        self.missing: dict[str, float] = {}
        self.unmended: set[str] = set()
        self.suspended = False
        self.is_marked = False
        self.is_removing = False
        self.scanned_ns = 0
        self.listing = Cached(disk, directory / LISTING, Listing.decode, Listing)
        self.usage = Cached(disk, directory / USAGE, Usage.decode, Usage.empty)

    # -- the journal -------------------------------------------------------------------------------------------

    def read_journal(self, *, whole: bool = False) -> None:
        """Catch up with the journal; `behind` is set when it holds records that this state had not seen.

        A journal that grew is read from its last known record on, which has to stand there still; one that
        changed in any other way, or all of it when `whole`, is read anew. Errors: Unreadable when it is not a
        regular file, FileNotFoundError when the directory went with it; the state is then as it was.

        So an append is chained to the record the file ends in, as far as its stamp (size, times, inode) tells
        under the lock; who appends without the lock is found by `appended`.
        """
        status = self.disk.stat(self.journal)
        stamp = None if status is None else Stamp.of(status)
        if stamp == self.journal_stamp and not whole:
            return
        if stamp is None and self.heads.live_count and not self.directory.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the store's directory is gone", str(self.directory))
        digest = self.digest
        if whole or not self._read_growth(stamp):
            raw, stamp = (b"", None) if stamp is None else self._read_journal_from(0)
            self.heads, self.digest, self.lines, self.whole, self.last_line = Heads(), "", 0, 0, b""
            self.broken_line = self.broken_reason = self.unchained = None
            self._replay(raw, stamp)
        self.behind = self.behind or self.digest != digest

    def _read_growth(self, stamp: Stamp | None) -> bool:
        """Read what was added after the last known record; False when that is not all that happened."""
        known = self.journal_stamp
        if stamp is None or known is None or stamp.inode != known.inode or stamp.size <= self.whole:
            return False
        raw, stamp = self._read_journal_from(self.whole - len(self.last_line))
        if not raw.startswith(self.last_line):
            return False
        self._replay(raw[len(self.last_line) :], stamp)
        return True

    def _replay(self, raw: bytes, stamp: Stamp | None) -> None:
        replay = journal.replay(raw, prev=self.digest, first_line=self.lines + 1, heads=self.heads)
        if replay.count:
            self.last_line = raw[raw.rfind(b"\n", 0, replay.size - 1) + 1 : replay.size]
        if self.broken_line is None:
            self.broken_line, self.broken_reason = replay.broken_line, replay.broken_reason
            self.unchained = replay.unchained
        self.digest, self.torn = replay.digest, replay.torn_bytes
        self.torn_is_cut_short = journal.is_cut_short(raw[replay.size :])
        self.whole += replay.size
        self.lines += replay.lines
        self.journal_stamp = stamp

    def all_records(self) -> Iterator[Record]:
        """Every record of the journal file, which is read again at once; decoded one by one."""
        if self.journal_stamp is None:
            return iter(())
        raw, _ = self._read_journal_from(0)
        return journal.records(raw)

    def _read_journal_from(self, offset: int) -> tuple[bytes, Stamp]:
        try:
            return self.disk.read_from(self.journal, offset)
        except OSError as error:
            raise unreadable(JOURNAL, error) from error

    def appended(self, stamp: Stamp, records: list[Record], lines: list[bytes]) -> None:
        """These records are durable at the journal's end, one of `lines` each.

        A file that is longer than that was appended to without the lock: it is read anew before the next write.
        """
        for record in records:
            self.heads.apply(record)
        self.digest, self.last_line = records[-1].digest, lines[-1]
        self.lines += len(lines)
        self.whole += sum(map(len, lines))
        self.journal_stamp = stamp if stamp.size == self.whole else None

    def set_entry(self, entry: Entry) -> None:
        """Take in a note as it stands."""
        self.entries[entry.name] = entry
        self.by_slug[entry.slug].add(entry.name)

    def drop_entry(self, name: str) -> None:
        """The note does not stand any more."""
        entry = self.entries.pop(name, None)
        if entry is not None:
            self.by_slug[entry.slug].discard(name)

    def view(self) -> View:
        """What readers see without the lock, once a commit is through."""
        return View(
            listing=_if_readable(self.listing),
            usage=_if_readable(self.usage),
            suspended=self.suspended,
            scanned_ns=self.scanned_ns,
            journal=self.journal_stamp,
        )

    @property
    def intact(self) -> bool:
        """Whether the journal is there and unbroken: only then may objects it does not name be swept.

        One that ends in more than a write that was cut short is not, nor one that holds bytes and no record: whatever
        they named is lost with them.
        """
        whole = self.torn == 0 or (self.lines > 0 and self.torn_is_cut_short)
        return self.journal_stamp is not None and self.broken_line is None and whole

    # -- notes -------------------------------------------------------------------------------------------------

    def scan(self) -> dict[str, Seen]:
        """The `.md` entries of the directory that count as notes, by name; `blocked` is what does not count."""
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

    def changed_ns(self) -> int:
        """When something was last added to or removed from the directory."""
        return self.disk.changed_ns(self.directory)

    def look(self, name: str) -> Seen | None:
        """What stands at a note's path, without opening it; None when there is nothing."""
        status = self.disk.stat(self.path(name))
        return None if status is None else Seen.of(f"{name}.md", status)

    def read_note(self, name: str) -> ReadNote:
        """A note from its file now. Errors: OSError."""
        looked_ns = time.time_ns()
        raw, stamp = self.read_file(name)
        return ReadNote(raw, *read_entry(name, raw, stamp, looked_ns))

    def read_file(self, name: str) -> tuple[bytes, Stamp]:
        """What a note's file holds now, and the stamp it was read under. Errors: OSError."""
        return self.disk.read(self.path(name), note.MAX_FILE)

    def try_note(self, name: str) -> ReadNote | None:
        """A note from its file now; None when there is none, or it does not read and is put into `blocked`."""
        try:
            return self.read_note(name)
        except FileNotFoundError:
            self.blocked.pop(name, None)
        except OSError as error:
            self.blocked[name] = Blocked("unreadable", reason_of(error))
        return None

    def holds_object(self, content_hash: str, kept: Stamp | None) -> bool:
        """Whether a version's object is the one of this stamp still, and so need not be read."""
        if kept is None:
            return False
        status = self.disk.stat(self.object_path(content_hash))
        return status is not None and Stamp.of(status).is_file_of(kept)

    def read_object(self, content_hash: str) -> bytes | None:
        """A version's text, None when its object is not there or does not hold what its name says."""
        try:
            raw, _ = self.disk.read(self.object_path(content_hash))
        except (FileNotFoundError, NotADirectoryError, NotRegularError):
            return None
        return raw if journal.content_hash(raw) == content_hash else None

    def load_notes(self) -> Iterator[Change]:
        """Read every note into a fresh state, yielding each.

        Words are shared among the notes: all of them are held until they are indexed.
        """
        words: dict[str, str] = {}
        self.scanned_ns = self.changed_ns()
        for name in self.scan():
            read = self.try_note(name)
            if read is not None:
                self.set_entry(read.entry)
                yield Change(name, read.entry, read.words.shared(words))


def _if_readable(cached: Cached[T]) -> T | None:
    try:
        return cached.after_commit()
    except (Unreadable, OSError):
        return None


def read_entry(
    name: str, raw: bytes, stamp: Stamp | None, looked_ns: int, parsed: Note | None = None
) -> tuple[Entry, Words]:
    """The entry and the words of a note's bytes; `parsed` is what they say, where that is known."""
    parsed = parsed or note.parse(name, raw)
    text = raw.decode("utf-8", "replace")
    fence = text.find(secrets.FENCE)
    masked = secrets.redact(parsed.hook) if secrets.may_hold(parsed.hook) else parsed.hook
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
        masked=None if masked == parsed.hook else masked,
        extra=parsed.extra,
    )
    return entry, forms.words(name, parsed.hook, parsed.body)


def settled_stamp(entry: Entry, seen: Seen) -> bool:
    """Whether `seen` proves that the file still holds what `entry` was read from."""
    return entry.stamp == seen.stamp and seen.stamp.is_old(entry.looked_ns)


def blocked_by(seen: Seen) -> Blocked | None:
    """Why a `.md` entry is no note, None when it may be one (SPEC 2)."""
    if seen.symlink:
        return Blocked("symlink", "a symlink is never followed; put the file itself here")
    if not seen.regular:
        return Blocked("unreadable", "not a regular file")
    if seen.stamp.size > note.MAX_FILE:
        return Blocked("oversize", f"{seen.stamp.size} bytes; a note has at most {note.MAX_FILE}")
    return None
