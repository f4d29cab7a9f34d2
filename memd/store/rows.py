"""MEMORY.md brought to what stands. Law: memd rewrites its own rows and drops dead ones; every other line stays.

SPEC section 4, MEMORY.md.
"""

from collections.abc import Iterator
from contextlib import suppress

from memd import listing, note
from memd.errors import Unreadable
from memd.listing import Listing
from memd.store.plan import Plan


def mend(plan: Plan) -> None:
    """Give each note that stands its row, memd's own rows the notes' hooks; nothing where the file does not read.

    A note that is missing or not yet taken in keeps the row it has, and gets none.
    """
    keep = {*plan.state.blocked, *plan.waiting, *plan.missing}
    with suppress(Unreadable):
        plan.listing = renewed(plan, plan.listing.reconciled(hooks(plan), keep))


def renewed(plan: Plan, rows: Listing) -> Listing:
    """The rows with memd's own of each changed note made to say its hook."""
    lines = set(rows.text.splitlines()) if plan.changes else ()
    for name, change in plan.changes.items():
        if change.entry is not None and listing.row(name, change.entry.hook) not in lines:
            rows = rows.with_own_row(name, change.entry.hook, OwnRow(plan, name))
    return rows


def hooks(plan: Plan) -> dict[str, str]:
    """The hook of every note that stands, by name, in name order."""
    found = {name: entry.hook for name, entry in plan.state.entries.items() if name not in plan.changes}
    found.update({name: change.entry.hook for name, change in plan.changes.items() if change.entry is not None})
    return dict(sorted(found.items()))


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
            raw = self.plan.version(version)
            if raw is not None:
                yield note.parse(self.name, raw).hook
