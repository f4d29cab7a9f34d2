"""Whether a daemon runs. Law: asking never starts one."""

from __future__ import annotations

import memd_client
from memd_client.errors import ConnectionLost, Unavailable

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

_TIMEOUT = 5.0
"""Seconds that `daemon.hello` may take."""


def running() -> dict[str, Any] | None:
    """What `daemon.hello` answers, None when nobody does.

    Raises `Unavailable` subclasses for one that listens and is no use: another home's, one that is stuck.
    """
    with memd_client.Connection(autostart=False, timeout=_TIMEOUT) as connection:
        try:
            return connection.hello()
        except Unavailable as error:
            if type(error) in (Unavailable, ConnectionLost):
                return None
            raise
