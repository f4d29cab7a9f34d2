"""An agent's long-lived memory, for a kernel. Law: one function a verb, awaited here, blocking in `sync`.

    import memory

    await memory.save("Run the forge tests with -k smoke first.", type="feedback")
    page = await memory.search("forge tests")
    note = await memory.read(page["hits"][0]["name"])

Replies are plain dicts (`memd_client.replies` has their fields); errors are the classes of `memory.errors`. The
notes are those of the current directory's repository and the global ones. The daemon is started when none
answers. SPEC 7, 13.
"""

from __future__ import annotations

import atexit
import os

from memd_client import errors
from memd_client.pool import Pool

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

    from memd_client.replies import Forgotten, Found, Listed, Note, Saved

# `list` is left out: a star import must not take the builtin away.
__all__ = ["errors", "forget", "read", "save", "search", "sync"]


class _NotGiven:
    """What `expect` is when nobody gave one; None is given: the note must not exist."""

    def __repr__(self) -> str:
        return "NOT_GIVEN"


_NOT_GIVEN = _NotGiven()
_pool = Pool()
atexit.register(_pool.close)


class _Sync:
    """The same verbs, blocking, for code that has no event loop."""

    def save(self, markdown: str, *, expect: str | _NotGiven | None = _NOT_GIVEN, **fields: str) -> Saved:
        """See `memory.save`."""
        reply: Saved = _ask("memory.save", _save_params(markdown, expect, fields))
        return reply

    def read(self, name: str, scope: str | None = None) -> Note:
        """See `memory.read`."""
        reply: Note = _ask("memory.read", _params(name=name, scope=scope))
        return reply

    def search(self, query: str, limit: int = 5, scope: str | None = None, offset: int = 0) -> Found:
        """See `memory.search`."""
        params = _params(query=query, limit=limit, scope=scope, offset=offset)
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
    ) -> Listed:
        """See `memory.list`."""
        params = _params(scope=scope, type=type, limit=limit, offset=offset)
        reply: Listed = _ask("memory.list", params)
        return reply


sync = _Sync()


async def save(markdown: str, *, expect: str | _NotGiven | None = _NOT_GIVEN, **fields: str) -> Saved:
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


async def search(query: str, limit: int = 5, scope: str | None = None, offset: int = 0) -> Found:
    """Return the notes that share words with `query`, best first: `hits`, `total`, a `notice` when cut. SPEC 6, 7."""
    params = _params(query=query, limit=limit, scope=scope, offset=offset)
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
) -> Listed:
    """Return every note with its hook and counts, or those of one `scope` or `type`. SPEC 7."""
    params = _params(scope=scope, type=type, limit=limit, offset=offset)
    reply: Listed = await _ask_async("memory.list", params)
    return reply


def _place() -> dict[str, Any]:
    """The parameters that say whose memory is meant; the one place that decides it."""
    try:
        return {"cwd": os.getcwd()}
    except FileNotFoundError:
        data = {"kind": "refused", "field": "cwd", "bound": "a directory", "got": None}
        raise errors.Refused("memory: the current directory is gone", data) from None


def _params(**given: object) -> dict[str, Any]:
    return _place() | {name: value for name, value in given.items() if value is not None}


def _save_params(markdown: str, expect: str | _NotGiven | None, fields: dict[str, str]) -> dict[str, Any]:
    params = _params(markdown=markdown, fields=fields)
    if not isinstance(expect, _NotGiven):
        params["expect"] = expect
    return params


def _ask(method: str, params: dict[str, Any]) -> Any:
    return _pool.call(method, params)


async def _ask_async(method: str, params: dict[str, Any]) -> Any:
    return await _pool.call_async(method, params)
