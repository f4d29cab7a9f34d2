"""Connections that threads and tasks share. Law: a call has a connection to itself, and no await blocks the loop.

An awaited call runs in a thread of asyncio's own, so that it works in whatever loop a kernel runs and several
awaits go on at once, each over a connection of its own. No lock guards the idle connections, since a deque's ends
need none: a process forked at any instant finds nothing locked, and its connections open anew.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping

from memd_client.connection import TIMEOUT, Connection
from memd_client.errors import Unavailable

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

KEPT = 4
"""Idle connections kept open; the daemon has 256 for all its clients."""

BRIEF = 0.1
"""Seconds that `tell` may wait for room in a socket."""


class _Line(Connection):
    """A connection of the pool."""

    def tell(self, method: str, params: dict[str, Any]) -> bool:
        """Send what wants no answer, if the socket is open; whether it was sent."""
        if self._wire is None or not self._wire.is_usable():
            return False
        try:
            self._wire.notify(method, params, BRIEF)
        except Unavailable:
            return False
        return True


class Pool:
    """As many connections as calls go on at once, opened when wanted. For any thread. SPEC 13."""

    def __init__(
        self,
        env: Mapping[str, str] = os.environ,
        *,
        autostart: bool = True,
        timeout: float | None = TIMEOUT,
    ) -> None:
        self._env = env
        self._autostart = autostart
        self._timeout = timeout
        self._idle: deque[_Line] = deque()

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """What `Connection.call` gives, and its errors; blocks this thread."""
        connection = self._taken()
        try:
            return connection.call(method, params)
        finally:
            self._put_back(connection)

    async def call_async(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """What `call` gives, without blocking the event loop (asyncio's).

        Cancelling the await does not call the request back: a write that was sent is carried out.
        """
        import asyncio  # 40 ms, and whoever awaits has paid them

        return await asyncio.to_thread(self.call, method, params)

    def tell(self, method: str, params: dict[str, Any]) -> bool:
        """Send what wants no answer over a connection that is open and idle, if there is one; whether it was sent.

        It starts no daemon, opens nothing and waits for nobody.
        """
        while self._idle:
            connection = self._taken()
            if connection.tell(method, params):
                self._put_back(connection)
                return True
            connection.close()
        return False

    def close(self) -> None:
        """Close the idle connections. May be repeated; a later call opens anew."""
        while self._idle:
            self._idle.pop().close()

    def _taken(self) -> _Line:
        try:
            return self._idle.pop()
        except IndexError:
            return _Line(self._env, autostart=self._autostart, timeout=self._timeout)

    def _put_back(self, connection: _Line) -> None:
        if len(self._idle) < KEPT:
            self._idle.append(connection)
        else:
            connection.close()
