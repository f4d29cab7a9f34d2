"""MEMORY.md brought to what stands. Law: memd rewrites its own rows and drops dead ones; every other line stays.

SPEC section 4, MEMORY.md.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from memd import listing, note
from memd.errors import Unreadable
from memd.listing import Listing
from memd.store.plan import Plan


def mend(plan: Plan, *, every: bool = False) -> None:
    """Give each note that stands its row, memd's own rows the notes' hooks; nothing where the file does not read.

    A note that is missing or not yet taken in keeps the row it has, and gets none. `every`: the rows of notes that
    did not change are looked at too, since what failed or died may have left them as they were.
    """
    keep = {*plan.state.blocked, *plan.waiting, *plan.missing}
    stand = hooks(plan)
    due = stand if every else owed(plan)
    plan.unmended = set(due)
    with suppress(Unreadable):
        rows = plan.listing.reconciled(stand, keep)
        plan.listing = renewed(plan, rows, due)
        plan.unmended = set()


def renew(plan: Plan) -> None:
    """Make memd's own rows say the hooks of the notes that the plan changes; where the file does not read, the next
    plan owes it.
    """
    due = owed(plan)
    plan.unmended = set(due)
    with suppress(Unreadable):
        plan.listing = renewed(plan, plan.listing, due)
        plan.unmended = set()


def owed(plan: Plan) -> dict[str, str]:
    """The hook of every note whose row may not say it: those that the plan changes, and those that an earlier plan
    left, since the file did not read then.
    """
    left = {name: entry.hook for name in sorted(plan.unmended) if (entry := plan.entry(name)) is not None}
    return {**left, **changed(plan)}


def changed(plan: Plan) -> dict[str, str]:
    """The hook of every note that the plan changes, by name."""
    return {name: change.entry.hook for name, change in plan.changes.items() if change.entry is not None}


def renewed(plan: Plan, rows: Listing, hooks: Mapping[str, str]) -> Listing:
    """The rows with memd's own of these notes made to say their hooks."""
    lines = set(rows.text.splitlines()) if hooks else ()
    for name, hook in hooks.items():
        if listing.row(name, hook) not in lines:
            rows = rows.with_own_row(name, hook, OwnRow(plan, name))
    return rows


def hooks(plan: Plan) -> dict[str, str]:
    """The hook of every note that stands, by name, in the order in which the journal has them; then by name."""
    found = {name: entry.hook for name, entry in plan.state.entries.items() if name not in plan.changes}
    found.update(changed(plan))
    known = [name for name in plan.heads.live() if name in found]
    return {name: found[name] for name in (*known, *sorted(found.keys() - known))}


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
