"""The session a connection's calls are made in. Law: the agent's own where that can be known, and started once.

It is the one that `MEMD_SESSION` names; else the one that the hook of the same agent noted, looked up at each call,
since an agent begins a new one when its conversation is cleared; else one of this process's own. So the hook and the
tools share one cap and are counted once. SPEC 8, 13.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from threading import Lock
from typing import Any

from memd_client import agents
from memd_client.pool import Pool
from memd_client.session import Session, here, of_environment, own_id


class Belonging:
    """The session of one connection. For any thread."""

    def __init__(self, pool: Pool, env: Mapping[str, str] = os.environ) -> None:
        self._pool = pool
        self._env = env
        self._own_id = own_id()
        self._lock = Lock()
        self._sessions: dict[str, Session] = {}

    def call(self, verb: str, params: dict[str, Any]) -> dict[str, Any]:
        """What the daemon answers in this session. Raises as `memd_client`'s calls do."""
        return self._session().call(verb, params)

    def close(self) -> None:
        """Let the daemon let go of a session of this process's own, and hang up."""
        if self._own_id in self._sessions:
            self._pool.tell("session.end", {"session": self._own_id})
        self._pool.close()

    def _session(self) -> Session:
        given = self._env.get("MEMD_SESSION")
        noted = None if given else agents.session(self._env)
        name = given or noted or self._own_id
        with self._lock:
            if name not in self._sessions:
                of = of_environment({**self._env, "MEMD_SESSION": name}, self._pool.call, here)
                self._sessions[name] = of
            return self._sessions[name]
