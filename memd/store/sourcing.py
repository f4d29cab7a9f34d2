"""Notes of a source, brought here. Law: a text that a hand, a person or an agent gave a note here is never replaced.

Claude Code and Kimi Code keep notes of their own; each stands here as the source has it, tagged, for as long as
nobody edits it here. The journal says which note came from where: its record holds `source_hash`, and `source_name`
where the note's name here is another. SPEC section 10.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import NamedTuple

from memd import journal, note
from memd.errors import MemdError, Refused, Unreadable
from memd.journal import SOURCE_HASH, SOURCE_NAME, Heads, Record
from memd.listing import STALE, row
from memd.store import moving
from memd.store.model import Author, Bring, Brought, Entry, Sourced
from memd.store.plan import Plan
from memd.store.rows import OwnRow

LONGEST_NAME = 255
"""Bytes a file's name may have."""
NO_WILL = frozenset({"rename", "store"})
"""Writers whose forget says nothing against a note: it went on elsewhere."""


class Target(NamedTuple):
    """The note that a source's note is here, or is to be: `brought` says what came last, None for one yet to come.

    `is_ours`: it stands and came from this source. `is_forgotten`: it was here, and somebody let it go.
    """

    name: str
    is_ours: bool
    brought: Record | None
    is_forgotten: bool


def bring(plan: Plan, request: Bring) -> Brought:
    """Plan what becomes of each note of a source; each that cannot be taken is named and left out."""
    done = Done(request)
    for source in request.sources:
        try:
            bring_one(plan, source, done)
        except MemdError as error:
            done.refused[source.name] = error.text
    if done.lines:
        plan.listing = plan.listing.with_lines(done.lines)
    stale = () if request.held is None else mark_stale(plan, request.by, request.held)
    return done.outcome(stale)


class Done:
    """What is planned so far, and the lines of MEMORY.md for when all are planned."""

    def __init__(self, request: Bring) -> None:
        self.by = request.by
        self.anew = request.anew
        self.author = Author(by=request.by)
        self.adopted: dict[str, str] = {}
        self.updated: dict[str, str] = {}
        self.conflicts: list[str] = []
        self.forgotten: list[str] = []
        self.refused: dict[str, str] = {}
        self.wanted: list[str] = []
        self.lines: dict[str, str] = {}

    def outcome(self, stale: tuple[str, ...]) -> Brought:
        """The whole of it."""
        conflicts, forgotten, wanted = map(tuple, (self.conflicts, self.forgotten, self.wanted))
        return Brought(self.adopted, self.updated, conflicts, forgotten, self.refused, wanted, stale)


def bring_one(plan: Plan, source: Sourced, done: Done) -> None:
    """Plan one note. Errors: Refused when something that is no note has its name, Unreadable, TooSoonError."""
    target = find(plan, source, done.by)
    if target.is_ours:
        update(plan, source, target, done)
    elif target.is_forgotten and not done.anew:
        done.forgotten.append(source.name)
    elif source.raw is None or done.wanted:  # a new one comes after those before it: rows are in the source's order
        done.wanted.append(source.name)
    else:
        _ = plan.listing  # it must read, or nothing is taken
        entry = plan.put("adopt", target.name, source.raw, done.author, said_of(source, target.name))
        done.lines[target.name] = row(target.name, entry.hook)
        done.adopted[source.name] = target.name


def update(plan: Plan, source: Sourced, target: Target, done: Done) -> None:
    """Plan what becomes of a note that came from this source before."""
    entry = plan.take(target.name)
    brought = target.brought
    known = None if brought is None else brought.extra.get(SOURCE_HASH)
    if entry is None and not done.anew:
        done.forgotten.append(source.name)  # its file is gone and soon it is forgotten: writing it would undo that
    elif entry is not None and entry.hash == source.hash:
        if known != source.source_hash:  # a crash before the record, or a hand that made both sides equal
            plan.record("edit", target.name, entry.hash, done.author, said_of(source, target.name))
    elif entry is not None and known == source.source_hash:
        pass  # edited here alone
    elif entry is not None and is_edited(plan, entry, brought):
        done.conflicts.append(source.name)
    elif source.raw is None:
        done.wanted.append(source.name)
    else:
        listing = plan.listing
        renewed = plan.put("edit", target.name, source.raw, done.author, said_of(source, target.name))
        own = OwnRow(plan, target.name)
        plan.listing = listing.with_own_row(target.name, renewed.hook, own, stale=False)
        done.updated[source.name] = target.name


def find(plan: Plan, source: Sourced, by: str) -> Target:
    """The note that a source's note is here, else the first free name for it (SPEC 10)."""
    free: str | None = None
    is_forgotten = is_let_go(plan, source.name)
    for name in names_for(source.name, by):
        brought, once = plan.heads.brought(name), plan.heads.once_brought(name)
        if brought is not None and is_of(brought, name, source.name, by):
            return Target(name, True, brought, False)
        is_forgotten = is_forgotten or (once is not None and is_of(once, name, source.name, by))
        entry = plan.take(name)
        if entry is not None and brought is None and entry.hash == source.hash:
            return Target(name, True, None, False)
        if entry is None and not plan.heads.is_live(name):
            free = free or name
            if name != source.name:
                break
    if plan.heads.brought(source.name) is None and is_tagged(plan, source.name, by):
        return Target(source.name, True, None, False)
    if free is None:
        raise Refused("name", "name: too long to get another one beside the note that has it", got=source.name)
    return Target(free, False, None, is_forgotten)


def names_from(heads: Heads, by: str) -> frozenset[str]:
    """The name there of every live note that came from a source."""
    every = heads.every_brought()
    return frozenset(str(brought.extra.get(SOURCE_NAME, name)) for name, brought in every if brought.by == by)


def names_for(stem: str, by: str) -> Iterator[str]:
    """The names a source's note can have here, the likeliest first."""
    yield stem
    for number in count(1):
        name = f"{stem}-{by}" if number == 1 else f"{stem}-{by}-{number}"
        if len(f"{name}{note.SUFFIX}".encode()) > LONGEST_NAME:
            return
        yield name


def is_of(brought: Record, name: str, stem: str, by: str) -> bool:
    """Whether a record of the note `name` says that it came from a source's note `stem`."""
    return brought.by == by and brought.extra.get(SOURCE_NAME, name) == stem


def said_of(source: Sourced, name: str) -> dict[str, object]:
    """What a record says of where its text came from."""
    said: dict[str, object] = {SOURCE_HASH: source.source_hash}
    return said if name == source.name else {**said, SOURCE_NAME: source.name}


def is_let_go(plan: Plan, name: str) -> bool:
    """Whether somebody has forgotten a note of this name and nobody made one since, whoever had written it.

    A journal of the first seed's host does not say which notes it had imported.
    """
    head = plan.heads.head(name)
    return head is not None and head.op == journal.FORGET and head.by not in NO_WILL


def is_tagged(plan: Plan, name: str, by: str) -> bool:
    """Whether a note that stands says itself that it came from this source: another host may have brought it."""
    entry = plan.take(name)
    if entry is None:
        return False
    extra = note.parse(name, moving.text_of(plan, entry)).extra
    return any(note.extra_key(raw) == "source" and note.entry_value(raw) == by for raw in extra)


def is_edited(plan: Plan, entry: Entry, brought: Record | None) -> bool:
    """Whether somebody here has given a note its text since it came; without a record of that, by who wrote last."""
    if brought is not None:
        return entry.hash != brought.hash
    head = plan.heads.head(entry.name)
    is_first = plan.heads.versions(entry.name) == (entry.hash,) and plan.heads.first_op(entry.name) == "adopt"
    return not is_first and (head is None or head.by is not None or head.session is not None)


def mark_stale(plan: Plan, by: str, held: frozenset[str]) -> tuple[str, ...]:
    """Mark the rows of the notes that the source has nowhere any more, and of no others; the names of those notes."""
    notes = {
        name: brought.extra.get(SOURCE_NAME, name) not in held
        for name, brought in plan.heads.every_brought()
        if brought.by == by and plan.entry(name) is not None
    }
    stale = tuple(sorted(name for name, is_stale in notes.items() if is_stale))
    with suppress(Unreadable):
        if stale or STALE in plan.listing.text:
            mark_rows(plan, notes)
    return stale


def mark_rows(plan: Plan, notes: dict[str, bool]) -> None:
    """Give each of these notes' rows that is memd's own the mark it is to have. Errors: Unreadable."""
    for listed in plan.listing.rows(notes):
        entry = plan.entry(listed.name)
        is_stale = notes.get(listed.name)
        if entry is not None and is_stale is not None and listed.stale != is_stale:
            own = OwnRow(plan, listed.name)
            plan.listing = plan.listing.with_own_row(listed.name, entry.hook, own, stale=is_stale)
