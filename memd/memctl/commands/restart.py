"""Stop the daemon and start it again, after an upgrade say: it finishes its writes, and who calls meanwhile waits."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK
from memd.memctl.running import running, started, stopped

USAGE = ""
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code. As JSON: the new daemon's hello."""
    before = running()
    if before is not None:
        stopped(ctl, before["pid"])
    hello = started(ctl)
    if ctl.is_json:
        ctl.out.json(hello)
    else:
        ctl.out.line(f"memd {hello['version']} {'restarted' if before else 'started'} · pid {hello['pid']}")
    return OK
