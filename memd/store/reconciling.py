"""What differs from the journal, taken in. Law: one pure decision a name (`settle`), and no second recovery path.

Opening, the watcher, `memory.reconcile` and the look after a failed write all end here (SPEC sections 4 and 5).
"""

import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from memd import settle
from memd.errors import Refused, Unreadable
from memd.fs import Seen
from memd.journal import content_hash
from memd.store import rows
from memd.store.model import Author, Change, Reconcile, Reconciled
from memd.store.plan import BY_HAND, Plan
from memd.store.state import NEVER, ReadNote, read_entry, settled_stamp

BY_RECOVERY = Author(by="recovery")
COMPARED = 16
"""Files that are only compared with what they held, for each that a slice takes in: that costs so much less."""


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
    taken = take_seen(plan, seen, settle_s)
    forgotten = Forgotten([], False) if suspended else forget_gone(plan, gone, settle_s, taken.waits, request)
    rows.mend(plan, every=begun is not None)
    mend_counts(plan, lower=begun is not None)
    plan.behind = False
    more = taken.more or forgotten.more
    if taken.waits or more:
        plan.scanned_ns = NEVER  # what waits changes nothing more in the directory: only another look finds it quiet
    return Reconciled(
        adopted=tuple(taken.adopted),
        edited=tuple(taken.edited),
        forgotten=tuple(forgotten.names),
        suspended=suspended,
        wait_until=min(taken.waits, default=None),
        more=more,
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


class TakenIn(NamedTuple):
    """Names adopted and edited, times to wait for, and whether the slice left some that need not wait."""

    adopted: list[str]
    edited: list[str]
    waits: list[float]
    more: bool


def take_seen(plan: Plan, seen: dict[str, Seen], settle_s: float) -> TakenIn:
    """Take in each file that differs from its head and is quiet, a slice at most."""
    adopted: list[str] = []
    edited: list[str] = []
    waits: list[float] = []
    looked = compared = 0
    more = False
    for name, found in seen.items():
        if name in plan.files or is_known(plan, name, found):
            continue
        if plan.slice is None or compared < plan.slice * COMPARED:
            compared += 1
            if still_holds(plan, name, found):
                continue
        until = None if is_of_another(plan, name) else unread_until(plan, name, found, settle_s)
        if until is not None or (plan.slice is not None and looked >= plan.slice):
            plan.waiting.add(name)
            more = more or until is None
            waits += [] if until is None else [until]
            continue
        read = plan.state.try_note(name)
        if read is None:
            continue
        decision = decided(plan, name, read, settle_s)
        if isinstance(decision, settle.Wait):
            waits.append(decision.until)
            plan.waiting.add(name)
            continue
        if isinstance(decision, settle.Adopt | settle.Edit):
            (adopted if isinstance(decision, settle.Adopt) else edited).append(name)
        looked += 1
        plan.take_in(name, read)
    return TakenIn(adopted, edited, waits, more)


def decided(plan: Plan, name: str, read: ReadNote, settle_s: float) -> settle.Decision:
    """What is to be done about a note as it was read; one that was written to meanwhile is not quiet."""
    stamp = read.entry.stamp
    now = plan.state.look(name)
    if stamp is None or now is None or now.stamp != stamp:
        return settle.Wait(plan.now + settle.QUIET)
    on_disk = settle.Seen(read.entry.hash, read.entry.size, stamp.ctime_ns / 1e9)
    return settle.settle(plan.heads.head(name), on_disk, None, plan.now, settle=settle_s)


def is_of_another(plan: Plan, name: str) -> bool:
    """Whether the journal names a version of a note that is not served yet: who wrote it had done with the file."""
    known, head = plan.entry(name), plan.head_hash(name)
    return head is not None and (known is None or known.hash != head)


def is_known(plan: Plan, name: str, found: Seen) -> bool:
    """Whether a note's file still holds its head."""
    known = plan.entry(name)
    return known is not None and settled_stamp(known, found) and known.hash == plan.head_hash(name)


def still_holds(plan: Plan, name: str, found: Seen) -> bool:
    """Whether a file that was looked at too soon for its stamp to tell holds its head all the same: its bytes say so.

    So it is with what memd has just written. A slice that counted those would leave more of them than it took for as
    long as clients save, and the next would follow at once.
    """
    known = plan.entry(name)
    if known is None or known.stamp != found.stamp or known.hash != plan.head_hash(name):
        return False
    looked_ns = time.time_ns()
    try:
        raw, stamp = plan.state.read_file(name)
    except OSError:
        return False  # whoever reads it next says why
    if stamp != found.stamp or content_hash(raw) != known.hash:
        return False
    if name not in plan.changes:
        plan.state.set_entry(msgspec.structs.replace(known, looked_ns=looked_ns))
    return True


def unread_until(plan: Plan, name: str, found: Seen, settle_s: float) -> float | None:
    """Until when a file need not be read, since it changed and is not quiet; None for one that has to be.

    A thousand files that are just being written are not read at each look that finds them unready.
    """
    known = plan.entry(name)
    if known is not None and known.stamp == found.stamp:
        return None
    until = settle.quiet_at(found.stamp.size, found.stamp.ctime_ns / 1e9, plan.now, settle_s)
    return until if until > plan.now else None


def take_first(plan: Plan, names: Iterable[str]) -> None:
    """Plan to take in what a hand has written under these names, and nothing else."""
    for name in sorted(names):
        with suppress(Refused, Unreadable):  # it changed again: the next plan meets it
            plan.take(name)
    rows.renew(plan)


class Forgotten(NamedTuple):
    """Names forgotten, and whether the slice left some that need not wait."""

    names: list[str]
    more: bool


def forget_gone(
    plan: Plan, gone: Iterable[str], settle_s: float, waits: list[float], request: Reconcile
) -> Forgotten:
    """Journal the deletions that stayed for `settle_s`, or all where they are accepted; the others' times go to
    `waits`.

    None is believed of a name whose head does not chain: perhaps the name is what was damaged, and no file had it.
    """
    forgotten: list[str] = []
    for name in gone:
        head = plan.heads.head(name)
        if head is not None and head.digest == plan.state.unchained and not request.accept:
            continue
        decision = settle.settle(plan.heads.head(name), None, plan.missing[name], plan.now, settle=settle_s)
        if isinstance(decision, settle.Wait) and not request.accept:
            waits.append(decision.until)
            continue
        if plan.slice is not None and len(forgotten) >= plan.slice:
            return Forgotten(forgotten, True)
        plan.drop(name, BY_HAND)
        forgotten.append(name)
    return Forgotten(forgotten, False)


def mend_counts(plan: Plan, *, lower: bool) -> None:
    """Drop the counts of forgotten notes, and `lower` those that a crash left ahead; not where they do not read."""
    with suppress(Unreadable):
        if lower:
            plan.usage = plan.usage.lowered(plan.heads)
        plan.usage = plan.usage.without(*(name for name in plan.usage.notes if plan.heads.is_forgotten(name)))
