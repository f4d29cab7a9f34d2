"""What is shown and what is chosen. Law: the choice is always a note that is shown, or none where none is.

No screen and no daemon: notes come in, rows go out. SPEC section 14.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

SCOPES = ("repo", "global")
FILTERS: tuple[str | None, ...] = (None, *SCOPES)

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

Key = tuple[str, str]
"""A note's scope and name."""


@dataclass(frozen=True)
class Note:
    """A note as the list shows it; `hash` is the version that is shown."""

    scope: str
    name: str
    type: str | None
    hook: str
    hash: str
    saves: int
    reads: int
    is_shadowed: bool

    @property
    def key(self) -> Key:
        """What tells it from every other."""
        return self.scope, self.name

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Note:
        """The note of a row of `memory.list`."""
        return cls(
            scope=row["scope"],
            name=row["name"],
            type=row["type"],
            hook=row["description"],
            hash=row["hash"],
            saves=row["saves"],
            reads=row["reads"],
            is_shadowed=bool(row.get("shadowed")),
        )


@dataclass(frozen=True)
class Line:
    """A line of the list: a scope's heading, with how many notes it has, or a note."""

    scope: str
    count: int = 0
    note: Note | None = None


@dataclass(frozen=True)
class State:
    """Everything the screen shows. Each change gives a new one, whose choice is right again."""

    notes: tuple[Note, ...] = ()
    scope: str | None = None
    query: str = ""
    found: tuple[Key, ...] | None = None  # the notes a search found, best first; None while nothing is searched
    chosen: Key | None = None
    lines: tuple[Line, ...] = field(default=())

    @property
    def note(self) -> Note | None:
        """The note that is chosen."""
        return next(
            (line.note for line in self.lines if line.note is not None and line.note.key == self.chosen), None
        )

    @property
    def place(self) -> int:
        """The line of the choice; 0 where nothing is chosen."""
        chosen = (at for at, line in enumerate(self.lines) if line.note is not None and line.note.key == self.chosen)
        return next(chosen, 0)

    def with_notes(self, notes: Iterable[Note]) -> State:
        """The same view of what the stores hold now."""
        return replace(self, notes=tuple(notes))._settled(self)

    def with_scope(self, scope: str | None) -> State:
        """Only the notes of a scope, or of both."""
        return replace(self, scope=scope)._settled(self)

    def next_scope(self) -> State:
        """Both scopes, then each."""
        return self.with_scope(FILTERS[(FILTERS.index(self.scope) + 1) % len(FILTERS)])

    def with_query(self, query: str, found: Sequence[Key] | None) -> State:
        """Only what a search found; None for everything."""
        return replace(self, query=query, found=None if found is None else tuple(found))._settled(self)

    def moved(self, by: int) -> State:
        """The choice so many notes further down, or up; it stops at the ends."""
        shown = [line.note.key for line in self.lines if line.note is not None]
        if not shown:
            return self
        at = shown.index(self.chosen) if self.chosen in shown else 0
        return replace(self, chosen=shown[max(0, min(len(shown) - 1, at + by))])

    def choosing(self, key: Key) -> State:
        """The choice on a note that is shown; the same where it is not."""
        return replace(self, chosen=key) if any(line.note and line.note.key == key for line in self.lines) else self

    def _settled(self, before: State) -> State:
        """The lines made anew, and the choice on one of them: itself, else what took its place."""
        lines = tuple(self._lines())
        shown = [line.note.key for line in lines if line.note is not None]
        chosen = self.chosen
        if chosen not in shown:
            place = sum(line.note is not None for line in before.lines[: before.place])
            chosen = shown[min(place, len(shown) - 1)] if shown else None
        return replace(self, lines=lines, chosen=chosen)

    def _lines(self) -> Iterable[Line]:
        rank = None if self.found is None else {key: at for at, key in enumerate(self.found)}
        for scope in SCOPES:
            if self.scope not in (None, scope):
                continue
            notes = [note for note in self.notes if note.scope == scope and (rank is None or note.key in rank)]
            if rank is not None:
                notes.sort(key=lambda note: rank[note.key])
            if notes or self.found is None:
                yield Line(scope, count=len(notes))
                yield from (Line(scope, note=note) for note in notes)
