"""The whole index for every prompt, the second seed's way. Law: never past its bytes, and the cut is named.

Rendered from the notes as they are now, not from MEMORY.md; a repo note hides the global note of its name.
Pure. SPEC section 7, `memory.index`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import Final

import msgspec

from memd import listing, secrets
from memd.focus import text
from memd.focus.block import Shelf
from memd.focus.names import Names
from memd.focus.text import size
from memd.note import Scope

MAX_BYTES: Final = 8_192


class Index(msgspec.Struct, frozen=True):
    """A rendered index: `text` None when there are no notes; `dropped` rows did not fit."""

    text: str | None
    dropped: int
    redacted: bool = False

    @property
    def fenced(self) -> str | None:
        """The text between its fence lines."""
        return None if self.text is None else text.fenced(self.text)


def render_index(
    shelves: Sequence[Shelf], last_used: Callable[[Scope, str], int], max_bytes: int = MAX_BYTES
) -> Index:
    """The rows of both stores, by scope and name, in at most `max_bytes` of text (SPEC 7).

    `last_used` gives a note's last use in unix seconds, 0 for never: the least recently used rows go first, of
    those used alike the last in order. Where not even the cut's own line fits, the text is empty.
    """
    visible = [
        (at, name)
        for at, shelf in enumerate(shelves)
        for name in sorted(shelf.notes)
        if not any(name in earlier.notes for earlier in shelves[:at])
    ]
    if not visible:
        return Index(None, 0)
    recent = sorted(visible, key=lambda note: -last_used(shelves[note[0]].scope, note[1]))
    order = list(_rows(shelves, recent, max_bytes))
    fitting = _fitting(order, [shelf.scope for shelf in shelves], len(visible), max_bytes)
    kept = sorted(order[:fitting], key=lambda row: (row.at, row.name))
    out: list[str] = []
    for at, group in groupby(kept, key=lambda row: row.at):
        out += [_heading(shelves[at].scope), *(row.line for row in group)]
    dropped = len(visible) - len(kept)
    if dropped and (kept or size(_marker(dropped)) <= max_bytes):
        out.append(_marker(dropped))
    return Index("\n".join(out), dropped, any(row.redacted for row in kept))


class _Row(msgspec.Struct, frozen=True):
    """A note's row as it is shown; `at`: its store's place."""

    at: int
    name: str
    line: str
    redacted: bool


def _rows(shelves: Sequence[Shelf], notes: Iterable[tuple[int, str]], most: int) -> Iterator[_Row]:
    """The rows of these notes, as far as a call can name them, until they are more than `most` bytes."""
    names = Names([shelf.notes for shelf in shelves])
    used = 0
    for at, name in notes:
        shown = names.shown(at, name)
        if shown is None:
            continue
        hook = shelves[at].notes[name].hook
        line = text.line(listing.row(shown, hook))
        yield _Row(at, name, line, redacted=bool(secrets.scan(hook)))
        used += size(line) + 1
        if used > most:
            return


def _fitting(order: Sequence[_Row], scopes: Sequence[Scope], notes: int, max_bytes: int) -> int:
    """How many of the rows, taken in this order, fit together with their headings and the line for the rest."""
    headings: set[int] = set()
    costs = []
    for row in order:
        heading = 0 if row.at in headings else size(_heading(scopes[row.at])) + 1
        costs.append(size(row.line) + 1 + heading)
        headings.add(row.at)
    whole = list(accumulate(costs, initial=-1))  # the last line has no line end
    for count in range(len(order), 0, -1):
        left = notes - count
        if whole[count] + (size(_marker(left)) + 1 if left else 0) <= max_bytes:
            return count
    return 0


def _heading(scope: Scope) -> str:
    return f"## {scope.value}"


def _marker(dropped: int) -> str:
    return f"<!-- truncated: {dropped} entries omitted -->"
