"""An agent's long-lived memory, for a kernel. Law: one function a verb, awaited here, blocking in `sync`.

    import memory

    await memory.start("run-7", on_entry=transcript.append)
    block = await memory.focus(prompt)
    await memory.save("Run the forge tests with -k smoke first.", type="feedback")
    page = await memory.search("forge tests")
    note = await memory.read(page["hits"][0]["name"])

Every call is made in one session: that of `start`, else the one `MEMD_SESSION` names, else one of this process's
own. It is started by the first call when nobody did, and keeps the directory it was started in: the notes are those
of that repository and the global ones. Replies are plain dicts (`memd_client.replies` has their fields); errors are
the classes of `memory.errors`. The daemon is started when none answers. SPEC 7, 8, 13.
"""

from __future__ import annotations

import atexit
import os

from memd_client import errors
from memd_client.pages import Pages, whole
from memd_client.pool import Pool
from memd_client.session import NOT_GIVEN, Caller, NotGiven, here

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

    from memd_client.replies import Block, Entries, Entry, Forgotten, Found, Index, Listed, Note, Saved, Started
    from memd_client.session import OnEntry

# `list` is left out: a star import must not take the builtin away.
__all__ = [
    "compact",
    "delete_memory",
    "errors",
    "focus",
    "forget",
    "history",
    "index",
    "list_memory",
    "read",
    "remember",
    "save",
    "search",
    "start",
    "sync",
]

_caller = Caller(Pool())
atexit.register(_caller.close)
os.register_at_fork(after_in_child=_caller.forked)


class _SyncHistory:
    """Past sessions, blocking."""

    def search(self, query: str, limit: int = 8, offset: int = 0) -> Entries:
        """See `memory.history.search`."""
        reply: Entries = _ask("history.search", _params(query=query, limit=limit, offset=offset))
        return reply

    def read(self, url: str) -> Entry:
        """See `memory.history.read`."""
        reply: Entry = _ask("history.read", _params(url=url))
        return reply


class _History:
    """Past sessions of this repository: what people and agents said, not what their tools did. SPEC 11."""

    async def search(self, query: str, limit: int = 8, offset: int = 0) -> Entries:
        """Return the entries of past sessions that share words with `query`, best first: `hits`, `total`, `notice`.

        Each hit has a `url` for `read`. While transcripts are still being read `notice` says how many were. SPEC 11.
        """
        reply: Entries = await _ask_async("history.search", _params(query=query, limit=limit, offset=offset))
        return reply

    async def read(self, url: str) -> Entry:
        """Return the whole text of the entry at a `history://` address. Raises `NotFound`. SPEC 11."""
        reply: Entry = await _ask_async("history.read", _params(url=url))
        return reply


class _Sync:
    """The same verbs, blocking, for code that has no event loop."""

    history = compact = _SyncHistory()

    def start(
        self,
        session: str | None = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        depth: int | None = None,
        resumed: bool = False,
        save_cap: int | NotGiven | None = NOT_GIVEN,
        transcript: str | os.PathLike[str] | None = None,
        on_entry: OnEntry | None = None,
    ) -> Started:
        """See `memory.start`."""
        given = _start_params(cwd, depth, resumed, save_cap, transcript)
        reply: Started = _start(session, given, on_entry)
        return reply

    def focus(self, prompt: str, dialect: str = "python", abstain: bool = True, ranker: str | None = None) -> Block:
        """See `memory.focus`."""
        params = _params(prompt=prompt, dialect=dialect, abstain=abstain, ranker=ranker)
        reply: Block = _ask("memory.focus", params)
        return reply

    def index(self, max_bytes: int = 8192) -> Index:
        """See `memory.index`."""
        reply: Index = _ask("memory.index", _params(max_bytes=max_bytes))
        return reply

    def save(self, markdown: str, *, expect: str | NotGiven | None = NOT_GIVEN, **fields: str) -> Saved:
        """See `memory.save`."""
        reply: Saved = _ask("memory.save", _save_params(markdown, expect, fields))
        return reply

    def read(self, name: str, scope: str | None = None) -> Note:
        """See `memory.read`."""
        reply: Note = _ask("memory.read", _params(name=name, scope=scope))
        return reply

    def search(
        self,
        query: str,
        limit: int = 5,
        scope: str | None = None,
        offset: int = 0,
        ranker: str | None = None,
        explain: bool = False,
    ) -> Found:
        """See `memory.search`."""
        params = _search_params(query, limit, scope, offset, ranker, explain)
        reply: Found = _ask("memory.search", params)
        return reply

    def forget(self, name: str, scope: str | None = None) -> Forgotten:
        """See `memory.forget`."""
        reply: Forgotten = _ask("memory.forget", _params(name=name, scope=scope))
        return reply

    def list(
        self,
        scope: str | None = None,
        type: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        bodies: bool = False,
    ) -> Listed:
        """See `memory.list`."""
        params = _params(scope=scope, type=type, limit=limit, offset=offset, bodies=bodies or None)
        reply: Listed = _ask("memory.list", params)
        return reply

    def list_memory(self) -> Listed:
        """See `memory.list_memory`."""
        return whole(lambda limit, offset: self.list(limit=limit, offset=offset, bodies=True))

    def delete_memory(self, name: str, scope: str) -> Forgotten:
        """See `memory.delete_memory`."""
        return self.forget(name, scope)

    def remember(self, text: str) -> str:
        """See `memory.remember`."""
        from memd_client import brief  # few calls want it

        return brief.remember(text)


sync = _Sync()
history = compact = _History()


async def start(
    session: str | None = None,
    *,
    cwd: str | os.PathLike[str] | None = None,
    depth: int | None = None,
    resumed: bool = False,
    save_cap: int | NotGiven | None = NOT_GIVEN,
    transcript: str | os.PathLike[str] | None = None,
    on_entry: OnEntry | None = None,
) -> Started:
    """Start or resume a session and make every call in it from now on; return its `lines`, `saves_left`, `block`.

    Without `session` it is the one of `MEMD_SESSION`, else one of this process's own; without `cwd` it is where the
    process is now, without `depth` `MEMD_DEPTH`, else 0. `save_cap` None is no cap. `on_entry` is given each
    `{"type": "custom", "customType": "memory", "data": pointer}` for the host's transcript, in the event loop's
    thread (of `sync`: in the caller's). Call it again for another session, or to resume one.

    Raises `Refused` (fields `cwd`, `transcript`), `InvalidParams` for an id that is none. SPEC 8, 13.
    """
    given = _start_params(cwd, depth, resumed, save_cap, transcript)
    reply: Started = await _start_async(session, given, on_entry)
    return reply


async def focus(prompt: str, dialect: str = "python", abstain: bool = True, ranker: str | None = None) -> Block:
    """Return the one block of notes that a session gets, made from its first prompt; later calls give it again.

    Put `fenced` into the prompt, or `text` where you fence it yourself; both are None for a blank prompt. `dialect`
    (`python`, `mcp`, `cli`) is how calls are spelled in it. `abstain=False` gives bodies for common words, too.
    `ranker` (`rich`, `plain`) is another than the configured one. SPEC 9.

    Raises `Refused` (field `ranker`).
    """
    params = _params(prompt=prompt, dialect=dialect, abstain=abstain, ranker=ranker)
    reply: Block = await _ask_async("memory.focus", params)
    return reply


async def index(max_bytes: int = 8192) -> Index:
    """Return the rows of all notes, at most `max_bytes`, for a kernel that shows them in every prompt. SPEC 7."""
    reply: Index = await _ask_async("memory.index", _params(max_bytes=max_bytes))
    return reply


async def save(markdown: str, *, expect: str | NotGiven | None = NOT_GIVEN, **fields: str) -> Saved:
    """Save one fact and return its name, hash and warnings.

    `markdown` is a whole note or only its body; `fields` (`name`, `description`, `type`, `scope`, …) go over its
    block. `expect` is the hash last seen, None for "must not exist", "exists" for "must exist".

    Raises `Refused` naming the field and its bound, `Conflict` when `expect` does not hold. SPEC 3, 7.
    """
    reply: Saved = await _ask_async("memory.save", _save_params(markdown, expect, fields))
    return reply


async def read(name: str, scope: str | None = None) -> Note:
    """Return a note by its name or hook, or else the closest one with a warning; the read is counted.

    Without `scope` the repository's note comes before the global one. Raises `NotFound`. SPEC 7.
    """
    reply: Note = await _ask_async("memory.read", _params(name=name, scope=scope))
    return reply


async def search(
    query: str,
    limit: int = 5,
    scope: str | None = None,
    offset: int = 0,
    ranker: str | None = None,
    explain: bool = False,
) -> Found:
    """Return the notes that share words with `query`, best first: `hits`, `total`, a `notice` when cut.

    `ranker` (`rich`, `plain`) is another than the configured one. With `explain` each hit has its `score` and what
    words of which of its fields gave it. SPEC 6, 7.

    Raises `Refused` (field `ranker`).
    """
    params = _search_params(query, limit, scope, offset, ranker, explain)
    reply: Found = await _ask_async("memory.search", params)
    return reply


async def forget(name: str, scope: str | None = None) -> Forgotten:
    """Delete a note and every version of it; return the receipt.

    Never fuzzy: `name` is its name or its hook. Raises `NotFound`. SPEC 7.
    """
    reply: Forgotten = await _ask_async("memory.forget", _params(name=name, scope=scope))
    return reply


async def list(
    scope: str | None = None,
    type: str | None = None,
    limit: int | None = None,
    offset: int = 0,
    bodies: bool = False,
) -> Listed:
    """Return every note with its hook and counts, or those of one `scope` or `type`, with `bodies` the body as well.

    Raises `TooLarge` when that passes 8 MiB: ask for pages then. SPEC 7.
    """
    params = _params(scope=scope, type=type, limit=limit, offset=offset, bodies=bodies or None)
    reply: Listed = await _ask_async("memory.list", params)
    return reply


async def list_memory() -> Listed:
    """Return every note of both stores with its body, a shadowed global one marked `shadowed`. SPEC 13.

    However many there are: what one reply cannot hold is asked for in pages.
    """
    pages = Pages()
    while pages.more:
        try:
            pages.take(await list(limit=pages.limit, offset=pages.offset, bodies=True))
        except errors.TooLarge as error:
            pages.halve(error)
    return pages.listed


async def delete_memory(name: str, scope: str) -> Forgotten:
    """Delete the note of exactly that `scope` (`repo`, `global`), all versions. Raises as `forget`. SPEC 13."""
    return await forget(name, scope)


async def remember(text: str) -> str:
    """Return the brief by which an agent derives name, hook and type of `text` and saves it. It saves nothing itself.

    Give it to the agent as a task of its own. Raises `Refused` for a blank text. SPEC 13.
    """
    return sync.remember(text)


def _params(**given: object) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _search_params(
    query: str, limit: int, scope: str | None, offset: int, ranker: str | None, explain: bool
) -> dict[str, Any]:
    # `explain` is sent only when it is wanted: a memd that is older does not know it.
    return _params(query=query, limit=limit, scope=scope, offset=offset, ranker=ranker, explain=explain or None)


def _save_params(markdown: str, expect: str | NotGiven | None, fields: dict[str, str]) -> dict[str, Any]:
    params = _params(markdown=markdown, fields=fields)
    if not isinstance(expect, NotGiven):
        params["expect"] = expect
    return params


def _start_params(
    cwd: str | os.PathLike[str] | None,
    depth: int | None,
    resumed: bool,
    save_cap: int | NotGiven | None,
    transcript: str | os.PathLike[str] | None,
) -> dict[str, Any]:
    params = _params(
        cwd=None if cwd is None else os.path.join(here(), cwd),
        depth=depth,
        resumed=resumed,
        transcript=None if transcript is None else os.path.join(here(), transcript),
    )
    if not isinstance(save_cap, NotGiven):
        params["save_cap"] = save_cap
    return params


def _start(session: str | None, given: dict[str, Any], on_entry: OnEntry | None) -> Any:
    return _caller.start(session, given, on_entry)


async def _start_async(session: str | None, given: dict[str, Any], on_entry: OnEntry | None) -> Any:
    return await _caller.start_async(session, given, on_entry)


def _ask(method: str, params: dict[str, Any]) -> Any:
    return _caller.call(method, params)


async def _ask_async(method: str, params: dict[str, Any]) -> Any:
    return await _caller.call_async(method, params)
