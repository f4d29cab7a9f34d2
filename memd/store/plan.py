"""A batch as it will be written. Law: planning reads and decides, and writes nothing.

Each request is planned against the state the one before left (SPEC 4, "Order of a write"); what refuses raises
before it has touched the plan, so a refused request drops out alone. `write` then carries the whole plan out.
"""

import time
from collections.abc import Mapping

from memd import journal, note
from memd.errors import Refused
from memd.forms import Words
from memd.fs import Stamp
from memd.journal import Planned, Record
from memd.listing import Listing
from memd.note import Note
from memd.store.cached import Working, unreadable
from memd.store.model import Author, Blocked, Change, Entry, Journaled
from memd.store.state import ReadNote, State, blocked_by, read_entry, settled_stamp
from memd.usage import Usage

BY_HAND = Author(by="hand")


class TooSoonError(Exception):
    """A request would begin a new life of a note whose old one this plan ends: the end has to be durable first.

    Else a crash among the removed objects would leave a live note, its file anew, with versions that are no objects.
    """


class Plan:
    """What a batch will write: objects, files, rows, counts and records, in one working copy.

    `files` holds the bytes of each note file that is to be written, None for one that is to go, and `found` the
    stamp that stood there when the plan looked. `taken` names what a hand has written and the plan journals,
    `waiting` what is there and cannot be taken yet, `unmended` whose rows are not yet what they should be. `slice` is
    how many notes it takes in, and forgets, at most. `frees_first`: the disk is full, what goes makes the room for
    what is written. `restores`: files are put back whose records stand already. `overtaken`: a hand wrote where the
    plan did, after the last look at it.
    """

    def __init__(self, state: State, now: float) -> None:
        self.state = state
        self.now = now
        self.heads = Planned(state.heads)
        self.digest = state.digest
        self.records: list[Record] = []
        self.journaled: list[Journaled] = []
        self.objects: dict[str, bytes] = {}
        self.files: dict[str, bytes | None] = {}
        self.found: dict[str, Stamp | None] = {}
        self.purged: dict[str, None] = {}
        self.dropped: set[str] = set()
        self.changes: dict[str, Change] = {}
        self.taken: set[str] = set()
        self.missing = dict(state.missing)
        self.unmended = set(state.unmended)
        self.waiting: set[str] = set()
        self.suspended = state.suspended
        self.scanned_ns = state.scanned_ns
        self.behind = state.behind
        self.slice: int | None = None
        self.retired_usage = False
        self.frees_first = False
        self.restores = False
        self.overtaken = False
        self.listing_file = Working(state.listing)
        self.usage_file = Working(state.usage)
        self.own_files: tuple[Working[Listing] | Working[Usage], ...] = (self.listing_file, self.usage_file)

    # -- what stands, the plan applied ---------------------------------------------------------------------------

    def is_scanned(self) -> bool:
        """Whether nothing was added to or removed from the directory since it was last looked through."""
        return self.scanned_ns == self.state.changed_ns()

    def entry(self, name: str) -> Entry | None:
        """The note's entry as this plan leaves it; None when there is none."""
        change = self.changes.get(name)
        return self.state.entries.get(name) if change is None else change.entry

    def stands(self, name: str) -> bool:
        """Whether there is such a note as this plan leaves it; a live one whose file is missing counts."""
        return self.entry(name) is not None or self.heads.is_live(name)

    def head_hash(self, name: str) -> str | None:
        """The hash of the live head; None for a name the journal does not hold, or has forgotten."""
        head = self.heads.head(name)
        return None if head is None or head.op == journal.FORGET else head.hash

    def version(self, content_hash: str) -> bytes | None:
        """A version's text, as planned or from its object; None when there is none."""
        planned = self.objects.get(content_hash)
        return planned if planned is not None else self.state.read_object(content_hash)

    @property
    def listing(self) -> Listing:
        """MEMORY.md as this plan leaves it. Errors: Unreadable."""
        return self.listing_file.get()

    @listing.setter
    def listing(self, changed: Listing) -> None:
        self.listing_file.set(changed)

    @property
    def usage(self) -> Usage:
        """usage.json as this plan leaves it. Errors: Unreadable."""
        return self.usage_file.get()

    @usage.setter
    def usage(self, changed: Usage) -> None:
        self.usage_file.set(changed)

    @property
    def keeps_old_text(self) -> bool:
        """Whether an object is planned of what a file that is to be written or removed holds."""
        heads = (self.state.heads.head(name) for name in self.files)
        return any(head is not None and head.hash in self.objects for head in heads)

    # -- steps every request is made of ----------------------------------------------------------------------------

    def retire_usage(self) -> None:
        """Set a usage.json that does not parse aside and begin an empty one."""
        self.retired_usage = True
        self.usage_file.base = None
        self.usage = Usage.empty()

    def record(
        self, op: str, name: str, content_hash: str, author: Author, extra: Mapping[str, object] = journal.NOTHING
    ) -> Record:
        """Append one sealed record, with what else it is to say."""
        unsealed = Record(
            op=op,
            name=name,
            hash=content_hash,
            at=int(self.now),
            session=author.session,
            by=author.by,
            extra=extra,
        )
        sealed = journal.seal(unsealed, self.digest)
        self.digest = sealed.digest
        self.records.append(sealed)
        if op != journal.READ:
            entry = self.entry(name)
            hook = "" if entry is None else entry.hook
            self.journaled.append(Journaled(sealed, hook, self.head_hash(name) is not None))
        self.heads.apply(sealed)
        return sealed

    def put(
        self,
        op: str,
        name: str,
        raw: bytes,
        author: Author,
        extra: Mapping[str, object] = journal.NOTHING,
        *,
        parsed: Note | None = None,
    ) -> Entry:
        """Write `raw` as the note's file and as a version. Errors: TooSoonError.

        `extra` is for its record; `parsed` is what `raw` says, where that is known.
        """
        self._begin(name)
        entry = self.write(name, raw, parsed)
        self._version(op, name, raw, entry.hash, author, extra)
        return entry

    def write(self, name: str, raw: bytes, parsed: Note | None = None) -> Entry:
        """Write `raw` as the note's file."""
        entry, words = read_entry(name, raw, None, 0, parsed)
        self.files[name] = raw
        self._stand(entry, words)
        return entry

    def drop(self, name: str, author: Author) -> tuple[str, ...]:
        """Remove every version that no other note holds, and journal it; returns those hashes, the head's first.

        That order makes a crash between two of them one that opening knows for a forget: file and head are gone.
        """
        head = self.head_hash(name)
        versions = dict.fromkeys((*([] if head is None else [head]), *self.heads.versions(name)))
        self.changes[name] = Change(name, None, None)
        self.missing.pop(name, None)
        self.dropped.add(name)
        if head is not None:
            self.record(journal.FORGET, name, head, author)
        removed = tuple(version for version in versions if not self.heads.shared(version, besides=name))
        self.purged.update(dict.fromkeys(removed))
        return removed

    def take(self, name: str) -> Entry | None:
        """Take in what the note's file holds now, whoever wrote it; its entry, None when there is no file.

        A version the journal does not know becomes an object and an `adopt` or `edit` record, before anything
        may replace it. Errors: Refused (field `name`) when what holds the name is no note; Unreadable; TooSoonError.
        """
        if name in self.files:
            return self.entry(name)
        seen = self.state.look(name)
        self.found[name] = None if seen is None else seen.stamp
        if seen is None:
            if name in self.state.entries:
                self.changes[name] = Change(name, None, None)
            return None
        refuse_blocked(name, blocked_by(seen))
        known = self.entry(name)
        is_head = known is not None and self.head_hash(name) == known.hash
        if known is not None and is_head and settled_stamp(known, seen):
            return known
        looked_ns = time.time_ns()
        try:
            raw, stamp = self.state.read_file(name)
        except FileNotFoundError:
            return None  # it went just now, which `write` finds out by what was `found`
        except OSError as error:
            raise unreadable(f"{name}.md", error) from error
        if known is not None and is_head and (known.stamp, known.hash) == (stamp, journal.content_hash(raw)):
            self.found[name] = stamp
            return known  # memd's own write, too young for its stamp to tell
        return self.take_in(name, ReadNote(raw, *read_entry(name, raw, stamp, looked_ns)))

    def take_in(self, name: str, read: ReadNote) -> Entry:
        """Take in what the note's file was read to hold. Errors: TooSoonError."""
        self._begin(name)
        self.found[name] = read.entry.stamp
        self._stand(read.entry, read.words)
        head = self.head_hash(name)
        if head != read.entry.hash:
            self.taken.add(name)
            self._version("adopt" if head is None else "edit", name, read.raw, read.entry.hash, BY_HAND)
        return read.entry

    def _begin(self, name: str) -> None:
        if name in self.dropped:
            raise TooSoonError(name)

    def _stand(self, entry: Entry, words: Words) -> None:
        self.changes[entry.name] = Change(entry.name, entry, words)
        self.missing.pop(entry.name, None)

    def _version(
        self,
        op: str,
        name: str,
        raw: bytes,
        content_hash: str,
        author: Author,
        extra: Mapping[str, object] = journal.NOTHING,
    ) -> None:
        self.objects[content_hash] = raw
        self.record(op, name, content_hash, author, extra)
        self.purged.pop(content_hash, None)

    def twin(self, given: str, slug: str) -> str | None:
        """The note a given name means: the stem that equals it, else one that slugs to the same (SPEC 2)."""
        for candidate in (given, slug):
            if self.stands(candidate) or candidate in self.waiting:
                return candidate
        alike = set(self.state.by_slug.get(slug, ()))
        alike.update(name for name, change in self.changes.items() if change.entry and change.entry.slug == slug)
        alike.update(name for name in self.missing if note.slug(name) == slug)
        standing = {name for name in alike if self.stands(name)}
        return min(standing | {name for name in self.waiting if note.slug(name) == slug}, default=None)


def refuse_blocked(name: str, blocked: Blocked | None) -> None:
    """Raise Refused (field `name`) when something that is no note holds the name."""
    if blocked is None:
        return
    raise Refused(
        "name",
        f"name: what stands at {name}.md is not a note ({blocked.kind}: {blocked.reason}); "
        "choose another name or move it away",
        bound="a regular file",
        got=blocked.kind,
    )
