"""The life of a session. Law: only the root session keeps memory, and what it was given outlives the daemon.

SPEC section 8.
"""

import stat
from pathlib import Path

from msgspec import UnsetType

from memd import paths
from memd.config import Config
from memd.errors import MemdError, NotFound, Refused, Unreadable
from memd.live import LiveSession, Place, feed
from memd.live.sessions import key_of
from memd.protocol import (
    SessionEndParams,
    SessionEndReply,
    SessionStartParams,
    SessionStartReply,
    SessionUpdateParams,
    SessionUpdateReply,
)
from memd.sessions import Session
from memd.store import Counted, CountSession
from memd.verbs.call import Call
from memd.verbs.focus import as_reply


async def start(call: Call, params: SessionStartParams) -> SessionStartReply:
    """`session.start`: a fresh session is counted, a known one resumed. Errors: Refused (fields cwd, transcript)."""
    paths.place(params.cwd)
    if params.transcript is not None:
        check_transcript(call.library.config, Path(params.transcript))
    async with call.library.sessions.starting:
        live, fresh, lines = await known_or_new(call, params)
    if live.state.depth > 0:
        return SessionStartReply(lines=(), saves_left=0)
    place = call.library.place(params.cwd)
    lines += await catch_up(call, place, params.cwd, count=fresh)
    call.library.feed.publish(feed.session_started(place.repo, params.session, lines))
    block = live.state.block
    return SessionStartReply(
        lines=tuple(lines),
        saves_left=live.left(*place),
        block=None if block is None else as_reply(block, frozen=True),
    )


async def known_or_new(call: Call, params: SessionStartParams) -> tuple[LiveSession, bool, list[str]]:
    """The session, whether it is to be counted, and what to say of its file."""
    lines = []
    here = key_of(call.library.place(params.cwd).repo)
    try:
        live = call.library.sessions.get(params.session)
    except Unreadable as error:
        live = None
        lines.append(f"session · {error.text}")
    if live is None:
        state = Session(
            id=params.session,
            cwd=params.cwd,
            depth=params.depth,
            save_cap=call.library.config.save_cap if isinstance(params.save_cap, UnsetType) else params.save_cap,
            transcript=params.transcript,
            at=here,
        )
        return await call.library.sessions.begin(state), not params.resumed, lines
    changes: dict[str, object] = {"cwd": params.cwd, "at": here}
    if not isinstance(params.save_cap, UnsetType):
        changes["save_cap"] = params.save_cap
    if params.transcript is not None:
        changes["transcript"] = params.transcript
    async with live.lock:  # a save that has begun ends where it began, and is counted there
        if live.state.at != here and live.state.depth == 0:
            changes["saved"] = live.state.saved | await saves_there(call, live)
        await call.library.sessions.put(live, changes)
    return live, False, lines


async def saves_there(call: Call, live: LiveSession) -> dict[str, int]:
    """The saves a session made where it was, by the store's key, before it goes on elsewhere.

    The store is known by its key: its repository may have been moved away meanwhile.
    """
    store = None if live.state.at is None else call.library.by_key(live.state.at)
    if store is None:
        return {}
    try:
        await call.library.open(store)
    except MemdError:
        return {}
    return {key_of(store): store.saves_of(live.state.id)}


async def catch_up(call: Call, place: Place, cwd: str, *, count: bool) -> list[str]:
    """Import, reconcile both stores, waiting for nothing, and count the session; the lines of the start's summary.

    A store that does not load is named and keeps nobody from the other.
    """
    lines = []
    try:
        if count:
            await call.write(place.repo, CountSession(), Counted)
    except MemdError as error:
        lines.append(f"memory · the session is not counted: {error.text}")
    imported = await call.library.imports.at_start(place, cwd)
    for store in place:
        try:
            await call.library.open(store)
            if store.opened:
                await store.reconcile()
        except MemdError as error:
            lines.append(f"memory · the {store.scope} store: {error.text}")
    unparsed = sum(entry.trouble is not None for store in place for entry in store.entries.values())
    counts = f"{len(place.repo.entries)} repo · {len(place.everywhere.entries)} global · {unparsed} unparsed"
    return [f"memory · {counts}", *imported, *lines]


def check_transcript(config: Config, path: Path) -> None:
    """Refuse a transcript that is no regular file under a directory of `history.roots` (field `transcript`)."""
    try:
        real = path.resolve(strict=True)
        inside = path.is_absolute() and any(real.is_relative_to(root.resolve()) for root in config.history_roots)
        if inside and stat.S_ISREG(path.lstat().st_mode):
            return
    except (OSError, ValueError, RuntimeError):
        pass
    raise Refused(
        "transcript",
        "transcript: not a regular file under a directory of history.roots; add its directory to the config",
        bound="a file under history.roots",
    )


async def update(call: Call, params: SessionUpdateParams) -> SessionUpdateReply:
    """`session.update`: the host's plan mode begins or ends. Errors: NotFound, Storage."""
    live = call.library.sessions.get(params.session)
    if live is None:
        raise NotFound("no session of that id; start it with session.start", field="session")
    async with live.lock:
        await call.library.sessions.put(live, {"read_only": params.read_only, "switch": params.switch})
    return SessionUpdateReply(read_only=params.read_only)


async def end(call: Call, params: SessionEndParams) -> SessionEndReply:
    """`session.end`: what is in memory goes, what is on disk stays for a resume."""
    return SessionEndReply(ended=call.library.sessions.end(params.session))
