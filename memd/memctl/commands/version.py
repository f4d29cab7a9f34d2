"""Print the version of memctl, and that of the daemon when one runs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd import __version__
from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK
from memd.memctl.running import running

USAGE = ""
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code. As JSON: `version`, and `daemon`, which is its hello or null."""
    hello = running()
    if ctl.is_json:
        ctl.out.json({"version": __version__, "daemon": hello})
        return OK
    ctl.out.line(f"memctl {__version__}")
    if hello is None:
        ctl.tell("memd does not run")
        return OK
    ctl.out.line(f"memd {hello['version']} · pid {hello['pid']}")
    if hello["version"] != __version__:
        ctl.warn("the daemon that runs is of another version; `memctl stop` ends it")
    return OK
