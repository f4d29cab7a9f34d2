"""The block a prompt earns, and the whole index. Law: a session gets one block, and the same bytes ever after.

SPEC sections 7 (`memory.index`) and 9 (`memory.focus`).
"""

from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio.to_thread

from memd import note, paths
from memd.errors import MemdError
from memd.focus import Block, Shelf, render, render_index
from memd.live import Library, LiveSession, LiveStore, Place, feed
from memd.live.sessions import key_of
from memd.live.shelves import last_used, shelf_of
from memd.note import Scope
from memd.protocol import FocusNote, FocusParams, FocusReply, IndexParams, IndexReply
from memd.sessions import Session
from memd.verbs.call import Call
from memd.verbs.ranking import chosen

NOTHING = FocusReply(text=None, fenced=None, notes=(), total=0, budget=0, frozen=False)
"""The reply to a blank prompt, which spends nothing."""


async def focus(call: Call, params: FocusParams) -> FocusReply:
    """`memory.focus`: the one block a session gets; with `cwd` a block, and nothing is frozen."""
    session = call.session(params)
    if session is None:
        block = await rendered(call, params)
        return NOTHING if block is None else as_reply(block, frozen=False)
    async with session.lock:
        await catch_up(call, session)
        if session.state.block is not None:
            return as_reply(session.state.block, frozen=True)
        block = await rendered(call, params)
        if block is None:
            return NOTHING
        return as_reply(await freeze(call, session, block), frozen=False)


async def catch_up(call: Call, session: LiveSession) -> None:
    """See what was forgotten since, in the stores a session's block is of: its part goes before it is shown again."""
    if session.state.block is None:
        return
    repo = None if session.state.key is None else call.library.by_key(session.state.key)
    for store in (call.library.everywhere, *([] if repo is None else [repo])):
        with suppress(MemdError):
            await call.library.open(store)


async def freeze(call: Call, session: LiveSession, block: Block) -> Block:
    """Make a block the session's for good, less what was forgotten while it was rendered. Errors: Storage."""
    place = call.library.place(session.state.cwd)

    def is_forgotten(_session: Session, scope: Scope, stem: str) -> bool:
        return place.store(scope).has_forgotten(stem)

    await call.library.sessions.put(session, {"block": block, "key": key_of(place.repo)}, is_forgotten)
    return session.state.block or block


async def rendered(call: Call, params: FocusParams) -> Block | None:
    """The block of a prompt over the caller's stores; None for a blank prompt."""
    place = call.place(params)
    live = call.session(params)
    cwd = Path(params.cwd or "" if live is None else live.state.cwd)
    ranker = chosen(call, params.ranker)
    shelves = [await shelf(call.library, store) for store in place]
    return await anyio.to_thread.run_sync(partial(render_here, shelves, place, cwd, params, ranker))


async def shelf(library: Library, store: LiveStore) -> Shelf:
    """A store for a block; one that does not load is named there, and the other still serves."""
    try:
        await library.open(store)
    except MemdError as error:
        return Shelf(scope=store.scope, failed=error.text)
    return shelf_of(store)


def render_here(shelves: list[Shelf], place: Place, cwd: Path, params: FocusParams, ranker: str) -> Block | None:
    """Render a block, reading the few bodies it shows and the repository's root; blocking."""
    root = paths.checkout(cwd)
    return render(
        shelves,
        params.prompt,
        partial(body_of, place),
        dialect=params.dialect,
        abstain=params.abstain,
        ranker=ranker,
        roots=paths.names_in(root),
        exists=partial(paths.stands_in, root),
    )


def body_of(place: Place, scope: Scope, stem: str) -> str | None:
    """A note's body as it stands; None when the note is gone or does not read."""
    try:
        read = place.store(scope).store.read_now(stem)
    except MemdError:
        return None
    return None if read is None else note.parse(stem, read[0]).body


def as_reply(block: Block, *, frozen: bool) -> FocusReply:
    """A block as the wire has it."""
    return FocusReply(
        text=block.text,
        fenced=block.fenced,
        notes=tuple(
            FocusNote(
                name=shown.name,
                scope=shown.scope,
                type=shown.type,
                score=shown.score,
                shown=shown.shown,
                cut=shown.cut,
            )
            for shown in block.notes
        ),
        total=block.total,
        budget=block.budget,
        frozen=frozen,
        redacted=block.redacted,
    )


async def index(call: Call, params: IndexParams) -> IndexReply:
    """`memory.index`: both stores' rows, for a kernel that shows them in every prompt."""
    place = call.place(params)
    await call.library.opened(place)
    shelves = [shelf_of(store) for store in place]
    usage = {store.scope: store.view.usage for store in place}
    made = await anyio.to_thread.run_sync(
        render_index, shelves, lambda scope, name: last_used(usage[scope], name), params.max_bytes
    )
    if made.dropped:
        call.library.feed.publish(feed.index_truncated(place.repo, made.dropped, params.session))
    return IndexReply(text=made.text, fenced=made.fenced, dropped=made.dropped, redacted=made.redacted)
