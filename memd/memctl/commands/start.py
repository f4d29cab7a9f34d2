"""Start the daemon if none answers. Other commands do so by themselves, unless they are told not to."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

import memd_client
from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK
from memd.memctl.running import running

USAGE = ""
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    hello, state = running(), "runs already"
    if hello is None:
        # Who types `start` means it, whatever the environment says of starts by themselves.
        env = {**os.environ, "MEMD_NO_AUTOSTART": ""}
        with memd_client.Connection(env, autostart=ctl.may_start) as connection:
            hello, state = connection.hello(), "started"
    if ctl.is_json:
        ctl.out.json(hello)
    else:
        ctl.out.line(f"memd {hello['version']} {state} · pid {hello['pid']}")
    return OK
