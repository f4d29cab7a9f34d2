"""The store's types: what it holds, what it can be asked, what it answers. Law: values only, no behaviour.

A request is planned in arrival order and answered by its outcome, or by the `MemdError` that refused it alone
(SPEC section 4, "Order of a write").
"""

import msgspec

from memd.draft import Draft
from memd.errors import MemdError
from memd.forms import Words
from memd.fs import Stamp
from memd.journal import Record
from memd.listing import Listing
from memd.note import NoteType, Trouble
from memd.protocol import FindingKind
from memd.usage import Usage


class Entry(msgspec.Struct, frozen=True):
    """One note as it stands in its file: what a list, a search or a check needs without reading it again.

    `hash` names the exact bytes. `masked` is the hook as replies show it, None where that is the hook itself; kept,
    since every hit asks. `stamp` is the file's metadata those bytes were read or written under; None when something
    else touched the file in between, so that the next look reads it again. `extra` are its unknown keys, as
    `Note.extra` has them. `kept` is the stamp of the object that was written with the file; None where none was since
    the start.
    """

    name: str
    slug: str
    hook: str
    type: NoteType | None
    hash: str
    size: int
    trouble: Trouble | None
    secrets: tuple[tuple[str, int], ...]
    fence_line: int | None
    stamp: Stamp | None
    looked_ns: int
    masked: str | None = None
    extra: tuple[str, ...] = ()
    kept: Stamp | None = None


class Blocked(msgspec.Struct, frozen=True):
    """A `.md` entry that is no note: a symlink, a directory, a FIFO, a file over the bound, an unreadable one."""

    kind: FindingKind
    reason: str


class Finding(msgspec.Struct, frozen=True):
    """One thing `check` or `verify` names; `file` is a name within the store, never a path (SPEC 7)."""

    kind: FindingKind
    reason: str
    name: str | None = None
    file: str | None = None
    line: int | None = None


# -- requests ---------------------------------------------------------------------------------------------------


class Author(msgspec.Struct, frozen=True):
    """Who asks: a session, or `by` for a person and memd's own writers (SPEC 4, journal)."""

    session: str | None = None
    by: str | None = None


class Save(msgspec.Struct, frozen=True):
    """Write a draft. `expect`: UNSET for anything, None for "must not exist", "exists", or a hash."""

    draft: Draft
    author: Author
    expect: str | msgspec.UnsetType | None = msgspec.UNSET


class Forget(msgspec.Struct, frozen=True):
    """Remove the note of exactly this file stem, with every version only it holds."""

    name: str
    author: Author


class Count(msgspec.Struct, frozen=True):
    """Count and journal one read of a version."""

    name: str
    hash: str
    author: Author


class CountSession(msgspec.Struct, frozen=True):
    """Count one session; the store is made if there is none (SPEC 8)."""


class Restore(msgspec.Struct, frozen=True):
    """Make an earlier version, byte for byte, the note's text again."""

    name: str
    hash: str
    author: Author


class Rename(msgspec.Struct, frozen=True):
    """Give a note another name in the same store; its older versions go."""

    name: str
    to: str
    author: Author


class Take(msgspec.Struct, frozen=True):
    """Give a note's text as it stands, a hand edit journaled first."""

    name: str


class Put(msgspec.Struct, frozen=True):
    """Write a text under a name that nothing holds yet, as a save."""

    name: str
    raw: bytes
    author: Author


class Arrival(msgspec.Struct, frozen=True):
    """A text that comes from elsewhere; `row` is the line of MEMORY.md that listed it there, if one did."""

    name: str
    raw: bytes
    row: str | None = None


class Adopt(msgspec.Struct, frozen=True):
    """Take texts from elsewhere in, keeping their bytes. A taken name is updated, or else gets `-2`, `-3`, …"""

    arrivals: tuple[Arrival, ...]
    author: Author
    updates: bool


class Sourced(msgspec.Struct, frozen=True):
    """A note as a source has it: its name there, the hashes of its own bytes and of the tagged text that is to come.

    `raw` is that text; None while whoever asks hopes that the store has it already.
    """

    name: str
    source_hash: str
    hash: str
    raw: bytes | None = None


class Bring(msgspec.Struct, frozen=True):
    """Make the notes of a source, `by`, stand here as they are there (SPEC 10).

    `anew`: also those that were forgotten here. `held` is every name that the source still has anywhere, and the rows
    of the others are marked stale; None: no row is marked.
    """

    sources: tuple[Sourced, ...]
    by: str
    anew: bool = False
    held: frozenset[str] | None = None


class Leave(msgspec.Struct, frozen=True):
    """Forget notes, by name and hash, that are safe elsewhere; one that changed meanwhile stays."""

    notes: tuple[tuple[str, str], ...]
    author: Author


class Reconcile(msgspec.Struct, frozen=True):
    """Take in what differs from the journal (SPEC 5); `accept` carries out the deletions a guard holds back.

    One that is not `patient` is a reader's, who would rather be served what was known than wait for the lock. One
    that is `sliced` takes in, and forgets, only as many notes as others can wait for.
    """

    accept: bool = False
    patient: bool = True
    sliced: bool = False


class Rebuild(msgspec.Struct, frozen=True):
    """Restore what the journal holds and has not forgotten; recount usage; mend the index (SPEC 7)."""


Request = (
    Save | Forget | Count | CountSession | Restore | Rename | Take | Put | Adopt | Bring | Leave | Reconcile | Rebuild
)


# -- outcomes ---------------------------------------------------------------------------------------------------


class Saved(msgspec.Struct, frozen=True):
    """A save that is durable. `updated`: the name was taken before."""

    entry: Entry
    updated: bool
    warnings: tuple[str, ...]


class Forgotten(msgspec.Struct, frozen=True):
    """A forget that is durable. `texts` are the removed versions no other note holds, for the receipt's scan."""

    name: str
    hash: str
    versions: int
    size: int
    texts: tuple[bytes, ...]


class Counted(msgspec.Struct, frozen=True):
    """A read or a session that is counted."""


class Taken(msgspec.Struct, frozen=True):
    """A note's text and what is known of it."""

    entry: Entry
    raw: bytes


class Adopted(msgspec.Struct, frozen=True):
    """What became of each arrival, by its name: the name it has here; refused ones by their reason."""

    adopted: dict[str, str]
    updated: dict[str, str]
    identical: dict[str, str]
    refused: dict[str, str]

    def then(self, later: "Adopted") -> "Adopted":
        """What became of these and of later arrivals."""
        return Adopted(
            self.adopted | later.adopted,
            self.updated | later.updated,
            self.identical | later.identical,
            self.refused | later.refused,
        )


class Brought(msgspec.Struct, frozen=True):
    """What became of the notes of a source, each by its name there.

    `adopted` and `updated` give the name here. `conflicts` were changed on both sides and are left as they are,
    `forgotten` stay so, `refused` have a reason, `wanted` are to be asked for again with their text. `stale` are
    names here.
    """

    adopted: dict[str, str]
    updated: dict[str, str]
    conflicts: tuple[str, ...]
    forgotten: tuple[str, ...]
    refused: dict[str, str]
    wanted: tuple[str, ...]
    stale: tuple[str, ...]

    @classmethod
    def nothing(cls) -> "Brought":
        """What becomes of no notes."""
        return cls({}, {}, (), (), {}, (), ())

    def then(self, later: "Brought") -> "Brought":
        """What became of these and of later ones; what is stale is as it was last seen."""
        return Brought(
            self.adopted | later.adopted,
            self.updated | later.updated,
            self.conflicts + later.conflicts,
            self.forgotten + later.forgotten,
            self.refused | later.refused,
            later.wanted,
            later.stale,
        )


class Left(msgspec.Struct, frozen=True):
    """How many notes went, and how many stayed because they had changed."""

    went: int
    stayed: int


class Reconciled(msgspec.Struct, frozen=True):
    """What a reconcile took in. `wait_until` (unix seconds): when something not yet quiet will be due.

    `more`: a slice left something that can be taken in at once.
    """

    adopted: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    suspended: bool = False
    wait_until: float | None = None
    more: bool = False

    def then(self, later: "Reconciled") -> "Reconciled":
        """What this and a later reconcile took in; what holds and is waited for is the later's."""
        return Reconciled(
            adopted=self.adopted + later.adopted,
            edited=self.edited + later.edited,
            forgotten=self.forgotten + later.forgotten,
            suspended=later.suspended,
            wait_until=later.wait_until,
            more=later.more,
        )


class Rebuilt(msgspec.Struct, frozen=True):
    """What a rebuild restored and could not."""

    live: int
    restored: int
    forgotten: int
    differ: tuple[str, ...]
    missing: tuple[str, ...]
    broken_line: int | None


Outcome = Saved | Forgotten | Counted | Taken | Adopted | Brought | Left | Reconciled | Rebuilt


class Change(msgspec.Struct, frozen=True):
    """A note as it now stands, for the index; `entry` and `words` are None when it is gone."""

    name: str
    entry: Entry | None
    words: Words | None


class View(msgspec.Struct, frozen=True):
    """The store beside its notes, as readers see it without the lock. None: the file does not read.

    `scanned_ns` and `journal` are what the directory and the journal were last known by: while the disk still
    says the same, nothing was added or removed since (SPEC 5, "a watcher can go deaf").
    """

    listing: Listing | None = None
    usage: Usage | None = None
    suspended: bool = False
    scanned_ns: int = 0
    journal: Stamp | None = None


class Journaled(msgspec.Struct, frozen=True):
    """A record that is durable and counts no read.

    `replaced`: the name had a live version before. `hook` is that of the version it names, empty for a forget.
    """

    record: Record
    hook: str
    replaced: bool


class Committed(msgspec.Struct, frozen=True):
    """What a commit did: one outcome or error a request, in order, every note that changed, and the new view.

    `journaled` is what memd has written into the journal, in order, its own requests' and others' deeds alike.
    """

    outcomes: list[Outcome | MemdError]
    changes: list[Change]
    view: View
    journaled: tuple[Journaled, ...] = ()
