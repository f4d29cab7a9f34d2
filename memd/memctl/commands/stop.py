"""Stop the daemon: it finishes its writes. Returns when it is gone; fine when none runs."""

from __future__ import annotations

import os
import select
import time
from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK, STORAGE, Stop
from memd.memctl.running import running
from memd_client.errors import NoAnswer

USAGE = ""
WORDS = (0, 0)

WAIT = 10.0
"""Seconds a daemon may take to be gone; it promises 2."""
POLL = 0.02


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 6 when the daemon does not end."""
    hello = running()
    if hello is None:
        ctl.tell("memd does not run")
        return OK
    ctl.may_start = False
    process = _watched(hello["pid"])
    reply = ctl.call("daemon.stop")
    ctl.hang_up()
    wait(hello["pid"], process)
    if ctl.is_json:
        ctl.out.json(reply)
    else:
        ctl.out.line(f"memd {hello['version']} stopped · pid {hello['pid']}")
    return OK


def wait(pid: int, process: int | None) -> None:
    """Return when the daemon `pid` answers no more and has ended. Raises `Stop` when that takes too long."""
    deadline = time.monotonic() + WAIT
    while _answers(pid):
        if time.monotonic() > deadline:
            raise Stop(STORAGE, f"memd was asked to stop and still answers after {WAIT:g} s · pid {pid}")
        time.sleep(POLL)
    if process is not None:
        # Until its process ends it holds the home, and a daemon started now would find it taken.
        select.select([process], [], [], max(deadline - time.monotonic(), 0))
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
