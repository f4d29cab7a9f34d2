"""What differs from the journal, taken in. Law: one pure decision a name (`settle`), and no second recovery path.

Opening, the watcher, `memory.reconcile` and the look after a failed write all end here (SPEC sections 4 and 5).
"""

from collections.abc import Collection, Iterable
from contextlib import suppress

from memd import settle
from memd.errors import Refused, Unreadable
from memd.fs import Seen
from memd.store import rows
from memd.store.model import Author, Change, Reconcile, Reconciled
from memd.store.plan import BY_HAND, Plan
from memd.store.state import read_entry, settled_stamp

BY_RECOVERY = Author(by="recovery")
NEVER = -1
"""The time of a look through the directory that has to be taken again."""


def reconcile(plan: Plan, request: Reconcile, settle_s: float, begun: Collection[str] | None = None) -> Reconciled:
    """Plan one reconcile over every note. Errors: none of its own; what cannot be read stays as it is.

    What the plan is about to write already stands. At opening, and after a failed write, `begun` is not None but
    the names that this process had begun to remove: of those, and of a live head with neither file nor object, a
    forget was cut short; it is finished.
    """
    plan.scanned_ns = plan.state.changed_ns()
    seen = plan.state.scan()
    gone = note_missing(plan, seen)
    if begun is not None:
        gone = recover_forgets(plan, gone, begun)
    suspended = not request.accept and settle.guard(
        missing=len(gone),
        live=plan.heads.live_count,
        directory_gone=False,
        suspended=plan.suspended,
    )
    plan.suspended = suspended
    set_gone(plan, seen, keep=gone if suspended else ())
    adopted, edited, waits = take_seen(plan, seen, settle_s)
    forgotten = [] if suspended else forget_gone(plan, gone, settle_s, waits, at_once=request.accept)
    rows.mend(plan)
    mend_counts(plan, lower=begun is not None)
    plan.behind = False
    if waits:
        plan.scanned_ns = NEVER  # what waits changes nothing more in the directory: only another look finds it quiet
    return Reconciled(
        adopted=tuple(adopted),
        edited=tuple(edited),
        forgotten=tuple(forgotten),
        suspended=suspended,
        wait_until=min(waits, default=None),
    )


def note_missing(plan: Plan, seen: dict[str, Seen]) -> list[str]:
    """The live names whose file is gone, in name order; the plan keeps since when each is missing."""
    there = (seen, plan.state.blocked, plan.files)
    gone = sorted(name for name in plan.heads.live() if not any(name in names for names in there))
    changed = plan.state.changed_ns() / 1e9
    plan.missing = {name: settle.missing_since(plan.missing.get(name), changed, plan.now) for name in gone}
    return gone


def set_gone(plan: Plan, seen: dict[str, Seen], keep: Collection[str]) -> None:
    """Take notes without a file out of what is served, but for those a suspended store serves from objects."""
    for name in plan.state.entries:
        if name not in seen and name not in keep and name not in plan.files:
            plan.changes[name] = Change(name, None, None)
    for name in keep:
        head = plan.head_hash(name)
        raw = None if head is None or plan.entry(name) is not None else plan.version(head)
        if raw is not None:
            plan.changes[name] = Change(name, *read_entry(name, raw, None, 0))


def recover_forgets(plan: Plan, gone: list[str], begun: Collection[str]) -> list[str]:
    """Finish the forgets that were cut short; the names that are missing for another reason.

    A forget leaves the directory of the objects where it is: with that gone too, something else happened.
    """
    if plan.state.disk.stat(plan.state.objects) is None:
        return gone
    left = []
    for name in gone:
        head = plan.head_hash(name)
        if name in begun or (head is not None and plan.state.read_object(head) is None):
            plan.drop(name, BY_RECOVERY)
        else:
            left.append(name)
    return left


def take_seen(plan: Plan, seen: dict[str, Seen], settle_s: float) -> tuple[list[str], list[str], list[float]]:
    """Take in each file that differs from its head and is quiet: names adopted, edited, and times to wait for."""
    adopted: list[str] = []
    edited: list[str] = []
    waits: list[float] = []
    for name, found in seen.items():
        if name in plan.files:
            continue
        known = plan.entry(name)
        if known is not None and settled_stamp(known, found) and known.hash == plan.head_hash(name):
            continue
        read = plan.state.try_note(name)
        if read is None:
            continue
        on_disk = settle.Seen(read.entry.hash, read.entry.size, (read.entry.stamp or found.stamp).ctime_ns / 1e9)
        decision = settle.settle(plan.heads.head(name), on_disk, None, plan.now, settle=settle_s)
        match decision:
            case settle.Wait(until=until):
                waits.append(until)
                plan.waiting.add(name)
                continue
            case settle.Adopt():
                adopted.append(name)
            case settle.Edit():
                edited.append(name)
            case _:
                pass
        plan.take_in(name, read)
    return adopted, edited, waits


def take_first(plan: Plan, names: Iterable[str]) -> None:
    """Plan to take in what a hand has written under these names, and nothing else."""
    for name in sorted(names):
        with suppress(Refused, Unreadable):  # it changed again: the next plan meets it
            plan.take(name)
    with suppress(Unreadable):
        plan.listing = rows.renewed(plan, plan.listing)


def forget_gone(plan: Plan, gone: Iterable[str], settle_s: float, waits: list[float], *, at_once: bool) -> list[str]:
    """Journal the deletions that stayed for `settle_s`; the others' times go to `waits`."""
    forgotten = []
    for name in gone:
        decision = settle.settle(plan.heads.head(name), None, plan.missing[name], plan.now, settle=settle_s)
        if isinstance(decision, settle.Wait) and not at_once:
            waits.append(decision.until)
            continue
        plan.drop(name, BY_HAND)
        forgotten.append(name)
    return forgotten


def mend_counts(plan: Plan, *, lower: bool) -> None:
    """Drop the counts of forgotten notes, and `lower` those that a crash left ahead; not where they do not read."""
    with suppress(Unreadable):
        if lower:
            plan.usage = plan.usage.lowered(plan.heads)
        for name in [name for name in plan.usage.notes if plan.heads.is_forgotten(name)]:
            plan.usage = plan.usage.without(name)
