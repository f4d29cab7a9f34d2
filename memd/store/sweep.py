"""What a crash left behind, removed. Law: nothing goes that a live note's versions or a whole journal need.

SPEC section 4: staged files, objects of forgotten notes and, only while the journal is there and unbroken, objects
no record names.
"""

import re

from memd import journal
from memd.fs import is_staged
from memd.store.state import State

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
    removed = 0
    for seen in disk.scan(objects):
        if seen.regular and (is_staged(seen.name) or is_left_over(state, seen.name)):
            removed += disk.remove(objects / seen.name)
    if removed:
        disk.sync_dir(objects)


def is_left_over(state: State, file: str) -> bool:
    """Whether an object is no live note's version, and known to be none."""
    if not _OBJECT.fullmatch(file):
        return False
    version = journal.HASH_PREFIX + file
    if state.heads.shared(version, besides=""):
        return False
    return state.heads.named(version) or state.intact
