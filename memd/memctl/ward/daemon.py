"""The daemon: whether one answers, which version, how it watches. Law: none is started for being looked at.

SPEC sections 5, 12 and 15.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator

import memd_client
from memd import __version__
from memd.memctl import running
from memd.memctl.ctl import Ctl
from memd.memctl.ward.finding import Finding
from memd_client import starting
from memd_client.errors import MemdError, NoAnswer, Unavailable

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

BEGINS_S = 3.0
"""Seconds within which a daemon that has just begun to answer watches, on a busy machine too."""

_LIMITS = "/proc/sys/fs/inotify"
_REMEDIES = {
    "config": "mend the config; `memctl status` names the key",
    "watching": "raise fs.inotify.max_user_watches and max_user_instances with sysctl; until then memd polls",
    "look": "make the directories readable again; memd tries each minute",
}


def look(ctl: Ctl) -> Iterator[Finding]:
    """What is wrong with the daemon, or with reaching it."""
    try:
        hello = running.running()
    except Unavailable as error:
        yield _useless(error)
        return
    if hello is None:
        yield from _absent(ctl)
        return
    if hello["version"] != __version__:
        cause = f"the daemon is memd {hello['version']}, memctl is of {__version__}"
        yield Finding("version", cause, "`memctl restart`: the daemon of before the upgrade still runs")
    try:
        status = _status(ctl)
    except MemdError as error:
        yield _useless(error)
        return
    for one in status["findings"]:
        remedy = _REMEDIES.get(one["kind"], "`memctl logs` says more")
        yield Finding(one["kind"], one["reason"], _limited(remedy) if one["kind"] == "watching" else remedy)
    if not _tells_of_watching(status):
        cause = "nothing is watched; hand edits wait for the minute's scan"
        yield Finding("watching", cause, _limited(_REMEDIES["watching"]))


def _status(ctl: Ctl) -> dict[str, Any]:
    """What the daemon says of itself, once it has begun to watch or says why it does not: it answers before that."""
    deadline = time.monotonic() + BEGINS_S
    while True:
        status = ctl.call("daemon.status")
        if _tells_of_watching(status) or time.monotonic() >= deadline:
            return status
        time.sleep(running.POLL)


def _tells_of_watching(status: dict[str, Any]) -> bool:
    """Whether it watches, or says why it does not; what else it says is no answer to that."""
    return status["watching"] or any(one["kind"] == "watching" for one in status["findings"])


def _useless(error: MemdError) -> Finding:
    """A daemon that is there and is no use. One that does not answer does not heed a restart either."""
    remedy = "`memctl restart`"
    if isinstance(error, NoAnswer):
        pid = starting.holder(memd_client.home()) or ""
        remedy = f"end its process{f' with `kill -9 {pid}`' * pid.isdecimal()}, then `memctl start`"
    return Finding("daemon", error.message, f"{remedy}, and `memctl logs` for what it said")


def _absent(ctl: Ctl) -> Iterator[Finding]:
    """No daemon: which is as it should be where systemd listens in its place."""
    if running.is_idle():
        return
    path = memd_client.socket_path()
    if os.path.lexists(path) and not stat.S_ISSOCK(os.lstat(path).st_mode):
        yield Finding("daemon", f"no daemon answers: what is at {path} is no socket", "move it away")
        return
    left = f"; the socket {path} was left behind" if os.path.lexists(path) else ""
    cause = f"no daemon answers{left}"
    yield Finding("daemon", cause, "`memctl start`; its log: `memctl logs`", mend=lambda: running.started(ctl))


def _limited(remedy: str) -> str:
    """The remedy with what the limits are, where the system tells them."""
    limits = []
    for name in ("max_user_watches", "max_user_instances"):
        try:
            with open(f"{_LIMITS}/{name}", encoding="ascii") as file:  # noqa: PTH123 - as everywhere here
                limits.append(f"{name} is {file.read().strip()}")
        except OSError:
            continue
    return f"{remedy} ({', '.join(limits)})" if limits else remedy
