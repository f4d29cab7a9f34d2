"""Stores as the focus room sees them, made from plain values. Law: no disk, no clock."""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from memd import forms, listing
from memd.focus import Block, Dialect, Reader, Shelf, lines_of, load, render
from memd.listing import Listing
from memd.note import NoteType, Scope, slug
from memd.snapshots import Snapshot


class Sheet(msgspec.Struct, frozen=True):
    """A note: a `Card` and its body."""

    name: str
    hook: str = ""
    body: str = ""
    type: NoteType | None = NoteType.PROJECT
    fence_line: int | None = None

    @property
    def slug(self) -> str:
        """As the store's entries have it."""
        return slug(self.name)


def shelf(
    scope: Scope,
    notes: Iterable[Sheet],
    *,
    index: str | None = None,
    last_used: Callable[[str], int] = lambda _name: 0,
) -> Shelf:
    """A store of these notes; its index lists them in their order unless its text is given."""
    sheets = {note.name: note for note in notes}
    if index is None:
        index = "".join(f"{listing.row(note.name, note.hook)}\n" for note in sheets.values())
    lines = lines_of(Listing(index.encode()), sheets)
    words = {name: forms.words(name, note.hook, note.body) for name, note in sheets.items()}
    return Shelf(scope, sheets, Snapshot.EMPTY.replace(words), lines, load(lines, last_used))


def reader(shelves: Iterable[Shelf]) -> Reader:
    """Gives the bodies of the stores' notes."""
    bodies: Mapping[tuple[Scope, str], str] = {
        (store.scope, name): card.body
        for store in shelves
        for name, card in store.notes.items()
        if isinstance(card, Sheet)
    }
    return lambda scope, name: bodies.get((scope, name))


def focus(
    prompt: str,
    *shelves: Shelf,
    read: Reader | None = None,
    dialect: Dialect = Dialect.PYTHON,
    abstain: bool = True,
    roots: Iterable[str] = (),
    there: Iterable[str] = (),
) -> Block:
    """The block of a prompt that is not blank; `there` are the paths that exist."""
    block = render(
        shelves,
        prompt,
        read or reader(shelves),
        dialect=dialect,
        abstain=abstain,
        roots=frozenset(roots),
        exists=frozenset(there).__contains__,
    )
    assert block is not None
    return block


def repo(*notes: Sheet, index: str | None = None) -> Shelf:
    """A repository's store."""
    return shelf(Scope.REPO, notes, index=index)


def everywhere(*notes: Sheet, index: str | None = None) -> Shelf:
    """The global store."""
    return shelf(Scope.GLOBAL, notes, index=index)
