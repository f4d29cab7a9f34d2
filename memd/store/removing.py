"""What a commit is about to remove, told on disk. Law: the mark counts for the journal's end it names, and no other.

A commit may remove so many notes that the guard of SPEC 5 would take what a crash leaves of it for a loss: the store
would be suspended until a person came. So their names are durable before the first file goes. Opening reads them and
finishes what had begun; once the commit's records stand, the journal ends otherwise and the mark says nothing.
"""

from contextlib import suppress

import msgspec

from memd import settle
from memd.store.plan import Plan
from memd.store.state import State

REMOVING = ".removing"


class Mark(msgspec.Struct, frozen=True):
    """The names a commit removes, and the digest of the journal's last record before it."""

    digest: str
    names: list[str]


def begin(plan: Plan) -> None:
    """Leave the mark where the guard would hold for what a crash may leave of this plan. Errors: OSError.

    On a full disk there is none: what goes has to make the room for what is written.
    """
    state, disk = plan.state, plan.state.disk
    gone = {name for name, raw in plan.files.items() if raw is None and state.heads.is_live(name)}
    missing, live = len(gone | plan.missing.keys()), state.heads.live_count
    if plan.frees_first or not gone or not settle.guard(missing, live, directory_gone=False, suspended=False):
        return
    raw = msgspec.json.encode(Mark(state.digest, sorted(gone)))
    disk.replace(disk.stage(state.directory, raw).path, state.directory / REMOVING)
    state.is_removing = True
    disk.sync_dir(state.directory)


def begun(state: State) -> frozenset[str]:
    """The names that a commit had begun to remove when it was cut short. Errors: OSError."""
    try:
        raw, _ = state.disk.read(state.directory / REMOVING)
    except FileNotFoundError:
        return frozenset()
    state.is_removing = True
    with suppress(msgspec.MsgspecError):
        mark = msgspec.json.decode(raw, type=Mark)
        if mark.digest == state.digest:
            return frozenset(mark.names)
    return frozenset()


def end(state: State) -> None:
    """Take the mark away; one that stays says nothing, and goes with the next commit."""
    if state.is_removing:
        with suppress(OSError):
            state.disk.remove(state.directory / REMOVING)
            state.is_removing = False
