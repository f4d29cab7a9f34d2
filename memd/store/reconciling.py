"""What differs from the journal, taken in. Law: one pure decision a name (`settle`), and no second recovery path.

Opening, the watcher, `memory.reconcile` and the look after a failed write all end here (SPEC sections 4 and 5).
"""

from collections.abc import Collection, Iterable
from contextlib import suppress

from memd import settle
from memd.errors import Unreadable
from memd.fs import Seen
from memd.store.model import Author, Change, Reconcile, Reconciled
from memd.store.plan import BY_HAND, Plan
from memd.store.state import read_entry, settled_stamp

BY_RECOVERY = Author(by="recovery")


def reconcile(plan: Plan, request: Reconcile, settle_s: float, *, opening: bool = False) -> Reconciled:
    """Plan one reconcile over every note. Errors: none of its own; what cannot be read stays as it is.

    At `opening`, a live head with neither file nor object is what a crash inside forget left, and is journaled
    as one.
    """
    seen = plan.state.scan()
    gone = note_missing(plan, seen)
    if opening:
        gone = recover_forgets(plan, gone)
    suspended = not request.accept and settle.guard(
        missing=len(gone),
        live=plan.heads.live_count,
        directory_gone=False,
        suspended=plan.state.suspended,
    )
    plan.suspended = suspended
    set_gone(plan, seen, keep=gone if suspended else ())
    adopted, edited, waits = take_seen(plan, seen, settle_s)
    forgotten = [] if suspended else forget_gone(plan, gone, settle_s, waits, at_once=request.accept)
    plan.mend_rows()
    if opening:
        lower_counts(plan)
    return Reconciled(
        adopted=tuple(adopted),
        edited=tuple(edited),
        forgotten=tuple(forgotten),
        suspended=suspended,
        wait_until=min(waits, default=None),
    )


def note_missing(plan: Plan, seen: dict[str, Seen]) -> list[str]:
    """The live names whose file is gone, in name order; since when each is missing is kept in the state."""
    state = plan.state
    gone = sorted(name for name in plan.heads.live() if name not in seen and name not in state.blocked)
    changed = state.scanned_ns / 1e9
    state.missing = {name: settle.missing_since(state.missing.get(name), changed, plan.now) for name in gone}
    return gone


def set_gone(plan: Plan, seen: dict[str, Seen], keep: Collection[str]) -> None:
    """Take notes without a file out of what is served, but for those a suspended store serves from objects."""
    for name in plan.state.entries:
        if name not in seen and name not in keep:
            plan.changes[name] = Change(name, None, None)
    for name in keep:
        head = plan.head_hash(name)
        if name not in plan.state.entries and head is not None:
            raw = plan.state.read_object(head)
            if raw is not None:
                plan.changes[name] = Change(name, *read_entry(name, raw, None, 0))


def recover_forgets(plan: Plan, gone: list[str]) -> list[str]:
    """Finish the forgets a crash cut short; the names that are missing for another reason."""
    left = []
    for name in gone:
        head = plan.head_hash(name)
        if head is not None and plan.state.read_object(head) is None:
            drop_leniently(plan, name, BY_RECOVERY)
            plan.state.missing.pop(name, None)
        else:
            left.append(name)
    return left


def take_seen(plan: Plan, seen: dict[str, Seen], settle_s: float) -> tuple[list[str], list[str], list[float]]:
    """Take in each file that differs from its head and is quiet: names adopted, edited, and times to wait for."""
    adopted: list[str] = []
    edited: list[str] = []
    waits: list[float] = []
    for name, found in seen.items():
        known, head = plan.state.entries.get(name), plan.heads.head(name)
        if known is not None and known.hash == plan.head_hash(name) and settled_stamp(known, found):
            continue
        read = plan.state.read_note(name)
        if read is None:
            continue
        entry, stamp = read[1], read[1].stamp or found.stamp
        on_disk = settle.Seen(entry.hash, entry.size, stamp.ctime_ns / 1e9)
        decision = settle.settle(head, on_disk, None, plan.now, settle=settle_s)
        match decision:
            case settle.Wait(until=until):
                waits.append(until)
                continue
            case settle.Adopt():
                adopted.append(name)
            case settle.Edit():
                edited.append(name)
            case _:
                pass
        plan.take_in(name, *read)
    return adopted, edited, waits


def forget_gone(plan: Plan, gone: Iterable[str], settle_s: float, waits: list[float], *, at_once: bool) -> list[str]:
    """Journal the deletions that stayed for `settle_s`; the others' times go to `waits`."""
    forgotten = []
    for name in gone:
        since = plan.state.missing[name]
        decision = settle.settle(plan.heads.head(name), None, since, plan.now, settle=settle_s)
        if isinstance(decision, settle.Wait) and not at_once:
            waits.append(decision.until)
            continue
        drop_leniently(plan, name, BY_HAND)
        forgotten.append(name)
    return forgotten


def drop_leniently(plan: Plan, name: str, author: Author) -> None:
    """Forget a note though MEMORY.md or usage.json does not read: they are mended once they do."""
    try:
        plan.drop(name, author)
    except Unreadable:
        plan.drop_versions(name, author)


def lower_counts(plan: Plan) -> None:
    """Bring counts that a crash left ahead of the journal down to it, where they can be read."""
    with suppress(Unreadable):
        plan.usage = plan.usage.lowered(plan.heads)
