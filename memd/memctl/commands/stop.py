"""Stop the daemon: it finishes its writes. Returns when it is gone; fine when none runs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK
from memd.memctl.running import is_idle, running, stopped

USAGE = ""
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 6 when the daemon does not end."""
    hello = running()
    if hello is None:
        ctl.tell("memd does not run")
        return OK
    reply = stopped(ctl, hello["pid"])
    if ctl.is_json:
        ctl.out.json(reply)
    else:
        ctl.out.line(f"memd {hello['version']} stopped · pid {hello['pid']}")
    if is_idle():
        ctl.tell("systemd listens on: the next call starts memd again; `memctl service uninstall` ends that")
    return OK
