"""What one hook leaves for the next, as empty files. Law: a mark that is lost costs a block, no more.

`owed`: a block was asked for and nobody knows that the agent got it; the next prompt brings it. It is set before the
daemon is asked, so that a hook which its agent killed counts too. `plan`: the daemon was told of plan mode.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from memd_client.where import home

OWED = "owed"
PLAN = "plan"


def is_set(session: str, mark: str, env: Mapping[str, str]) -> bool:
    """Whether the session has the mark."""
    return os.path.exists(_path(session, mark, env))


def put(session: str, mark: str, env: Mapping[str, str]) -> None:
    """Set the mark. Does nothing while memd has no home."""
    path = _path(session, mark, env)
    try:
        if os.path.isdir(home(env)):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return  # a full disk is no reason to keep an agent from its prompt


def take(session: str, mark: str, env: Mapping[str, str]) -> None:
    """Take the mark away, if it is there."""
    try:
        os.unlink(_path(session, mark, env))
    except OSError:
        return


def _path(session: str, mark: str, env: Mapping[str, str]) -> str:
    return os.path.join(home(env), "cache", "hooks", f"{session}.{mark}")
