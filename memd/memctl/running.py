"""The daemon from outside: whether one runs, its start, its end. Law: asking never starts one, as far as we can tell.

Where systemd listens in its place a connection would start it; there systemd is asked first.
"""

from __future__ import annotations

import os
import select
import time

import memd_client
from memd.memctl.ctl import Ctl
from memd.memctl.exits import STORAGE, Stop
from memd_client.errors import ConnectionLost, NoAnswer, Unavailable

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

_TIMEOUT = 5.0
"""Seconds that `daemon.hello` may take."""
WAIT = 10.0
"""Seconds a daemon may take to be gone; it promises 2."""
POLL = 0.02


def is_idle() -> bool:
    """Whether systemd listens at our socket and no daemon runs behind it."""
    from memd_client import systemd  # where a daemon is asked for its notes, nobody wants it

    return systemd.is_idle(os.environ, memd_client.socket_path())


def running() -> dict[str, Any] | None:
    """What `daemon.hello` answers, None when nobody does.

    Raises `Unavailable` subclasses for one that listens and is no use: another home's, one that is stuck.
    """
    if is_idle():
        return None
    with memd_client.Connection(autostart=False, timeout=_TIMEOUT) as connection:
        try:
            return connection.hello()
        except Unavailable as error:
            if type(error) in (Unavailable, ConnectionLost):
                return None
            raise


def started(ctl: Ctl) -> dict[str, Any]:
    """What `daemon.hello` of a daemon answers that is started when none runs. Raises `Unavailable`."""
    # Who types `start` means it, whatever the environment says of starts by themselves.
    env = {**os.environ, "MEMD_NO_AUTOSTART": ""}
    with memd_client.Connection(env, autostart=ctl.may_start) as connection:
        return connection.hello()


def stopped(ctl: Ctl, pid: int) -> dict[str, Any]:
    """What `daemon.stop` answers, once the daemon `pid` is gone. Raises `Stop` when that takes too long."""
    may_start, ctl.may_start = ctl.may_start, False
    process = _watched(pid)
    reply = ctl.call("daemon.stop")
    ctl.hang_up()
    ctl.may_start = may_start
    wait(pid, process)
    return reply


def wait(pid: int, process: int | None) -> None:
    """Return when the daemon `pid` answers no more and has ended. Raises `Stop` when that takes too long."""
    deadline = time.monotonic() + WAIT
    if process is not None and _ends(process):
        return  # it is not asked again: a connection would start the next one where systemd listens
    while _answers(pid):
        if time.monotonic() > deadline:
            raise Stop(STORAGE, f"memd was asked to stop and still answers after {WAIT:g} s · pid {pid}")
        time.sleep(POLL)


def _ends(process: int) -> bool:
    """Whether a process ends in time: until then it holds the home, which nobody else can have."""
    try:
        return bool(select.select([process], [], [], WAIT)[0])
    finally:
        os.close(process)


def _answers(pid: int) -> bool:
    """Whether this daemon still answers; another one at the same socket (a service manager's) is not it."""
    try:
        hello = running()
    except NoAnswer:
        return True
    return hello is not None and hello["pid"] == pid


def _watched(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, where the platform has that."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
