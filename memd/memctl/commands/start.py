"""Start the daemon if none answers: by systemd where its service is installed. Other commands do so by themselves."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK
from memd.memctl.running import running, started

USAGE = ""
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    hello, state = running(), "runs already"
    if hello is None:
        hello, state = started(ctl), "started"
    if ctl.is_json:
        ctl.out.json(hello)
    else:
        ctl.out.line(f"memd {hello['version']} {state} · pid {hello['pid']}")
    return OK
