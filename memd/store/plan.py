"""A batch as it will be written. Law: planning reads and decides, and writes nothing.

Each request is planned against the state the one before left (SPEC 4, "Order of a write"); what refuses raises
before it has touched the plan, so a refused request drops out alone. `write` then carries the whole plan out.
"""

from collections.abc import Iterator
from contextlib import suppress

from memd import journal, listing, note
from memd.errors import Refused, Unreadable
from memd.fs import Stamp
from memd.journal import Planned, Record
from memd.listing import Listing
from memd.store.model import Author, Blocked, Change, Entry
from memd.store.state import State, blocked_by, read_entry, settled_stamp
from memd.usage import Usage

BY_HAND = Author(by="hand")


class Plan:
    """What a batch will write: objects, files, rows, counts and records, in one working copy."""

    def __init__(self, state: State, now: float) -> None:
        self.state = state
        self.now = now
        self.heads = Planned(state.heads)
        self.digest = state.digest
        self.records: list[Record] = []
        self.objects: dict[str, bytes] = {}
        self.files: dict[str, bytes | None] = {}
        self.found: dict[str, Stamp | None] = {}
        self.purged: dict[str, None] = {}
        self.changes: dict[str, Change] = {}
        self.retired_usage = False
        self.suspended = state.suspended
        self._listing: Listing | None = None
        self._usage: Usage | None = None

    # -- what stands, the plan applied ---------------------------------------------------------------------------

    def entry(self, name: str) -> Entry | None:
        """The note's entry as this plan leaves it; None when there is none."""
        change = self.changes.get(name)
        return self.state.entries.get(name) if change is None else change.entry

    def head_hash(self, name: str) -> str | None:
        """The hash of the live head; None for a name the journal does not hold, or has forgotten."""
        head = self.heads.head(name)
        return None if head is None or head.op == journal.FORGET else head.hash

    def names(self) -> Iterator[str]:
        """Every name that is a note as this plan leaves it, a live one with its file missing too."""
        for name in self.state.entries:
            if self.entry(name) is not None:
                yield name
        for name, change in self.changes.items():
            if change.entry is not None and name not in self.state.entries:
                yield name
        for name in self.state.missing:
            if self.heads.is_live(name) and self.entry(name) is None:
                yield name

    @property
    def listing(self) -> Listing:
        """MEMORY.md as this plan leaves it. Errors: Unreadable."""
        if self._listing is None:
            self._listing = self.state.listing.get()
        return self._listing

    @listing.setter
    def listing(self, changed: Listing) -> None:
        self._listing = changed

    @property
    def usage(self) -> Usage:
        """usage.json as this plan leaves it. Errors: Unreadable."""
        if self._usage is None:
            self._usage = self.state.usage.get()
        return self._usage

    @usage.setter
    def usage(self, changed: Usage) -> None:
        self._usage = changed

    def new_listing(self) -> Listing | None:
        """The rows to write, None when they stay as they are."""
        changed = self._listing is not None and self._listing != self.state.listing.get()
        return self._listing if changed else None

    def new_usage(self) -> Usage | None:
        """The counts to write, None when they stay as they are."""
        if self.retired_usage:
            return self._usage
        changed = self._usage is not None and self._usage != self.state.usage.get()
        return self._usage if changed else None

    # -- steps every request is made of ----------------------------------------------------------------------------

    @property
    def replaces_hand_edit(self) -> bool:
        """Whether a version that only a file held until now is about to be replaced or removed."""
        return any(record.op in ("edit", "adopt") and record.name in self.files for record in self.records)

    def retire_usage(self) -> None:
        """Set a usage.json that does not parse aside and begin an empty one."""
        self.retired_usage = True
        self.usage = Usage.empty()

    def record(self, op: str, name: str, content_hash: str, author: Author) -> Record:
        """Append one sealed record."""
        unsealed = Record(
            op=op,
            name=name,
            hash=content_hash,
            at=int(self.now),
            session=author.session,
            by=author.by,
        )
        sealed = journal.seal(unsealed, self.digest)
        self.digest = sealed.digest
        self.records.append(sealed)
        self.heads.apply(sealed)
        return sealed

    def put(self, op: str, name: str, raw: bytes, author: Author) -> Entry:
        """Write `raw` as the note's file and as a version."""
        entry, words = read_entry(name, raw, None, 0)
        self.files[name] = raw
        self.changes[name] = Change(name, entry, words)
        self._version(op, name, raw, entry.hash, author)
        return entry

    def drop(self, name: str, author: Author) -> tuple[str, ...]:
        """Remove the note: file, row, counts and every version no other note holds. Returns those hashes."""
        self.listing = self.listing.without(name)
        self.usage = self.usage.without(name)
        return self.drop_versions(name, author)

    def drop_versions(self, name: str, author: Author) -> tuple[str, ...]:
        """Remove the note's file and versions, leaving row and counts for when their files can be read."""
        head = self.head_hash(name)
        versions = self.heads.versions(name)
        self.changes[name] = Change(name, None, None)
        if head is not None:
            self.record("forget", name, head, author)
        removed = tuple(version for version in versions if not self.heads.shared(version, besides=name))
        self.purged.update(dict.fromkeys(removed))
        return removed

    def take(self, name: str) -> Entry | None:
        """Take in what the note's file holds now, whoever wrote it; its entry, None when there is no file.

        A version the journal does not know becomes an object and an `adopt` or `edit` record, before anything
        may replace it. Errors: Refused (field `name`) when what holds the name is no note; Unreadable.
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
        if known is not None and settled_stamp(known, seen) and self.head_hash(name) == known.hash:
            return known
        return self.take_read(name)

    def take_read(self, name: str) -> Entry | None:
        """Read the note's file and take it in as `take` does."""
        read = self.state.read_note(name)
        if read is None:
            if name in self.state.blocked:
                raise Unreadable(f"the file of {name} does not read ({self.state.blocked[name].reason})")
            return None
        return self.take_in(name, *read)

    def take_in(self, name: str, raw: bytes, entry: Entry, words: list[str]) -> Entry:
        """Take in what the note's file was read to hold."""
        self.found[name] = entry.stamp
        self.changes[name] = Change(name, entry, words)
        head = self.head_hash(name)
        if head != entry.hash:
            self._version("adopt" if head is None else "edit", name, raw, entry.hash, BY_HAND)
        return entry

    def _version(self, op: str, name: str, raw: bytes, content_hash: str, author: Author) -> None:
        self.objects[content_hash] = raw
        self.record(op, name, content_hash, author)
        self.purged.pop(content_hash, None)

    def twin(self, given: str, slug: str) -> str | None:
        """The note a given name means: the stem that equals it, else one that slugs to the same (SPEC 2)."""
        for candidate in (given, slug):
            if self.stands(candidate):
                return candidate
        alike = set(self.state.by_slug.get(slug, ()))
        alike.update(name for name, change in self.changes.items() if change.entry and change.entry.slug == slug)
        alike.update(name for name in self.state.missing if note.slug(name) == slug)
        return min((name for name in alike if self.stands(name)), default=None)

    def stands(self, name: str) -> bool:
        """Whether there is such a note as this plan leaves it; a live one whose file is missing counts."""
        return self.entry(name) is not None or (name in self.state.missing and self.heads.is_live(name))

    # -- rows ------------------------------------------------------------------------------------------------------

    def mend_rows(self) -> None:
        """Bring MEMORY.md to what stands, and memd's own rows to the notes' hooks; not where it does not read."""
        with suppress(Unreadable):
            mended = self.listing.reconciled(self.hooks(), keep=self.state.blocked)
            for name, change in self.changes.items():
                if change.entry is not None:
                    mended = mended.with_own_row(name, change.entry.hook, OwnRow(self, name))
            self.listing = mended

    def hooks(self) -> dict[str, str]:
        """The hook of every note that stands, by name, in name order."""
        found = {}
        for name in sorted(self.names()):
            entry = self.entry(name)
            found[name] = "" if entry is None else entry.hook
        return found


class OwnRow:
    """Whether a row is memd's own: it equals the row of any version of the note (SPEC 4, MEMORY.md)."""

    def __init__(self, plan: Plan, name: str) -> None:
        self.plan, self.name = plan, name

    def __call__(self, line: str) -> bool:
        return any(line == listing.row(self.name, hook) for hook in self._hooks())

    def _hooks(self) -> Iterator[str]:
        known = self.plan.state.entries.get(self.name)
        if known is not None:
            yield known.hook
        for version in reversed(self.plan.heads.versions(self.name)):
            raw = self.plan.objects.get(version) or self.plan.state.read_object(version)
            if raw is not None:
                yield note.parse(self.name, raw).hook


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
