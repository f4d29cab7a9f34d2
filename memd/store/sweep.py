"""What a crash left behind, removed. Law: nothing goes that a live note's versions or a whole journal need.

SPEC section 4: staged files, objects of forgotten notes and, only while the journal is there and unbroken, objects
no record names. Texts that were there before a journal was damaged, or begun anew, are no crash's: what named them
may be what was lost. They stay until somebody has looked, and has deleted the `ops.torn.<n>` that tells of it.
"""

import re

from memd import journal
from memd.fs import Seen, is_staged
from memd.store.state import State

TORN = re.compile(r"ops\.torn\.\d+")
_OBJECT = re.compile(r"[0-9a-f]{64}")


def sweep(state: State) -> None:
    """Remove the leftovers of writes that never ended; run under the lock, before anything is written."""
    disk = state.disk
    for seen in disk.scan(state.directory):
        if is_staged(seen.name) and seen.regular:
            disk.remove(state.directory / seen.name)
    objects = state.objects
    if disk.stat(objects) is None:
        return
    since = damaged_ns(state)
    removed = 0
    for seen in disk.scan(objects):
        if seen.regular and (is_staged(seen.name) or is_left_over(state, seen, since)):
            removed += disk.remove(objects / seen.name)
    if removed:
        disk.sync_dir(objects)


def is_left_over(state: State, seen: Seen, since: int) -> bool:
    """Whether an object is no live note's version, and known to be none: an older one than `since` is not."""
    if not _OBJECT.fullmatch(seen.name):
        return False
    version = journal.HASH_PREFIX + seen.name
    if state.heads.held(version):
        return False
    return state.heads.ended(version) or (state.intact and seen.stamp.mtime_ns >= since)


def is_rebuild_cut_short(state: State) -> bool:
    """Whether a staged file holds what a live note's head says, and nothing stands at the note's path.

    A rebuild leaves that when it dies among its renames. The notes it had not come to are missing as if a hand had
    deleted them, and with the others back too few of them for the guard: the rebuild has to be finished first.
    """
    staged = [seen for seen in state.disk.scan(state.directory) if is_staged(seen.name) and seen.regular]
    if not staged:
        return False
    missing = {name for name in state.heads.live() if name not in state.entries and state.look(name) is None}
    texts = {head.hash for name in missing if (head := state.heads.head(name)) is not None}
    return any(journal.content_hash(state.disk.read(state.directory / seen.name)[0]) in texts for seen in staged)


def damaged_ns(state: State) -> int:
    """When the journal was last damaged, as far as what was set aside tells; 0 when it never was.

    A journal without a record, made before any object, is one that was emptied where older objects stand.
    """
    times = [
        seen.stamp.mtime_ns
        for seen in state.disk.scan(state.directory)
        if seen.regular and TORN.fullmatch(seen.name) and not is_cut_short(state, seen)
    ]
    if state.journal_stamp is not None and not state.lines:
        times.append(state.journal_stamp.mtime_ns)
    return max(times, default=0)


def is_cut_short(state: State, seen: Seen) -> bool:
    """Whether what was set aside is the beginning of a write that a crash cut short."""
    return journal.is_cut_short(state.disk.read(state.directory / seen.name)[0])
