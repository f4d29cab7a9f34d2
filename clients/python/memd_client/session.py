"""The session that calls are made in. Law: it is started once, by the call that needs it first, and never twice.

`Session` is one session over any way to call; `Caller` decides which one a process calls in. A process that was
told of none has one of its own, and a forked child another. SPEC 8, 13.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock  # threading would cost 1 ms
from collections.abc import Callable, Mapping

from memd_client.errors import ConnectionLost, InvalidParams, NotFound, Refused

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    import asyncio
    from typing import Any

    from memd_client.pool import Pool

    Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
    """Sends a method and its parameters and gives the result, as `Connection.call` does."""
    OnEntry = Callable[[dict[str, Any]], object]
    """Takes an entry for the host's transcript."""

_REPEATABLE = frozenset({"memory.focus", "session.end", "session.start", "session.update"})
"""No reads, and yet sent again when the connection broke: done twice they leave what once leaves."""


class NotGiven:
    """What an option is that nobody gave, where None says something; its one value is `NOT_GIVEN`."""

    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_GIVEN = NotGiven()


class Session:
    """One session's calls. For any thread.

    `given` is what `session.start` is told beside the directory, which `directory` gives once, at the first start.
    With `is_host_s` the host may have started the session: then it is started only when the daemon does not know it,
    since a start would take it to another directory.
    """

    def __init__(
        self,
        ask: Ask,
        given: dict[str, Any],
        directory: Callable[[], str],
        *,
        is_host_s: bool,
        on_entry: OnEntry | None = None,
    ) -> None:
        self.id: str = given["session"]
        self.starts = 0
        self._ask = ask
        self._given = given
        self._directory = directory
        self._is_host_s = is_host_s
        self._on_entry = on_entry
        self._lock = allocate_lock()

    def start(self) -> dict[str, Any]:
        """Start or resume it; what `session.start` answers. Raises as `call` does."""
        with self._lock:
            return self._start()

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a verb in this session, which is started if nobody did. Raises as `Connection.call` does."""
        if not self._is_host_s:
            self._start_unless(0)
        seen = self.starts
        params = {"session": self.id, **params}
        try:
            return self._sent(method, params)
        except NotFound as error:
            if error.data.get("field") != "session":
                raise
        self._start_unless(seen)
        return self._sent(method, params)

    def hand_on(self, reply: dict[str, Any]) -> None:
        """Give the host the entry of a reply that has a pointer. What the host's callback raises is shown, no more.

        The note is written by now: a host that cannot append to its transcript must not make an agent save again.
        """
        pointer = reply.get("pointer")
        if pointer is None or self._on_entry is None:
            return
        try:
            self._on_entry({"type": "custom", "customType": "memory", "data": pointer})
        except Exception as error:  # noqa: BLE001 - it is the host's own code
            sys.excepthook(type(error), error, error.__traceback__)

    def forked(self) -> None:
        """Be usable in a forked child: the thread that held the lock may not be there."""
        self._lock = allocate_lock()

    def _start_unless(self, seen: int) -> None:
        """Start it, unless somebody did since it had been started `seen` times."""
        if self.starts > seen:
            return
        with self._lock:
            if self.starts == seen:
                self._start()

    def _start(self) -> dict[str, Any]:
        if "cwd" not in self._given:
            self._given["cwd"] = self._directory()
        answer = self._sent("session.start", self._given)
        self.starts += 1
        return answer

    def _sent(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._ask(method, params)
        except ConnectionLost:
            if method not in _REPEATABLE:
                raise
        return self._ask(method, params)


class Caller:
    """The session of this process: that of the last `start`, else `MEMD_SESSION`, else its own. For any thread.

    Which one is decided at the first call, or anew by `start`. `forked` is to be called in a forked child, `close`
    at the end.
    """

    def __init__(self, pool: Pool, env: Mapping[str, str] = os.environ) -> None:
        self._pool = pool
        self._env = env
        self._lock = allocate_lock()
        self._session: Session | None = None
        self._own: Session | None = None

    def start(self, session: str | None, given: dict[str, Any], on_entry: OnEntry | None) -> dict[str, Any]:
        """Start or resume a session and call in it from now on; what `session.start` answers.

        When it fails it stays this process's session, and the next call tries again. Raises as `Connection.call`.
        """
        with self._lock:
            chosen = self._chosen(session, given, on_entry=on_entry, is_host_s=False)
        return chosen.start()

    async def start_async(
        self, session: str | None, given: dict[str, Any], on_entry: OnEntry | None
    ) -> dict[str, Any]:
        """What `start` gives, without blocking the event loop."""
        import asyncio  # 40 ms, and whoever awaits has paid them

        return await asyncio.to_thread(self.start, session, given, on_entry)

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a verb in this process's session. Raises as `Connection.call` does."""
        session = self._current()
        reply = session.call(method, params)
        session.hand_on(reply)
        return reply

    async def call_async(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """What `call` gives, without blocking the event loop (asyncio's), in whose thread the host gets its entry.

        Cancelling the await does not call the request back: what was sent is carried out, and the host is told.
        """
        import asyncio  # 40 ms, and whoever awaits has paid them

        session = self._current()
        is_given_up = False

        def ask() -> dict[str, Any]:
            return {} if is_given_up else session.call(method, params)

        def hand_on(done: asyncio.Future[dict[str, Any]]) -> None:
            if not done.cancelled() and done.exception() is None:
                session.hand_on(done.result())

        asked = asyncio.get_running_loop().run_in_executor(None, ask)
        asked.add_done_callback(hand_on)
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            is_given_up = True
            raise

    def forked(self) -> None:
        """Be usable in a forked child, which is another process: it does not keep a session of the parent's own."""
        self._lock = allocate_lock()
        if self._session is self._own:
            self._session = None
        elif self._session is not None:
            self._session.forked()
        self._own = None

    def close(self) -> None:
        """Let the daemon let go of the session of the process's own, and close the connections. Waits for nothing."""
        if self._own is not None:
            self._pool.tell("session.end", {"session": self._own.id})
        self._pool.close()

    def _current(self) -> Session:
        with self._lock:
            if self._session is not None:
                return self._session
            return self._chosen(None, {}, on_entry=None, is_host_s=True)

    def _chosen(
        self, session: str | None, given: dict[str, Any], *, on_entry: OnEntry | None, is_host_s: bool
    ) -> Session:
        """Make a session this process's: the one that is named, else the environment's, else its own."""
        if "depth" not in given:
            given["depth"] = _depth(self._env)
        given["session"] = session or self._env.get("MEMD_SESSION")
        is_own = not given["session"]
        if is_own:
            given["session"] = own_id() if self._own is None else self._own.id
        self._session = Session(self._pool.call, given, here, is_host_s=is_host_s and not is_own, on_entry=on_entry)
        if is_own:
            self._own = self._session
        return self._session


def of_environment(env: Mapping[str, str], ask: Ask, directory: Callable[[], str]) -> Session:
    """The session that `MEMD_SESSION` names, `MEMD_DEPTH` deep. Raises `InvalidParams` for a depth that is none."""
    return Session(ask, {"session": env["MEMD_SESSION"], "depth": _depth(env)}, directory, is_host_s=True)


def own_id() -> str:
    """An id nobody else has, for the session of a process that was told of none."""
    return f"py-{os.getpid()}-{os.urandom(6).hex()}"


def here() -> str:
    """The current directory. Raises `Refused` (field `cwd`) when it is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        data = {"kind": "refused", "field": "cwd", "bound": "a directory", "got": None}
        raise Refused("session.start: the current directory is gone", data) from None


def _depth(env: Mapping[str, str]) -> int:
    """How deep below the root this process is, by `MEMD_DEPTH`. Raises `InvalidParams`: no child passes as a root."""
    text = env.get("MEMD_DEPTH") or "0"
    if text.isdecimal() and len(text) < 16:
        return int(text)
    raise InvalidParams(f"MEMD_DEPTH is no whole number from 0 on: {text!r:.80}")
