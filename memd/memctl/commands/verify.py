"""Check the journal's chain, every version's object and every note against them, changing nothing.

Prints one `path:line: reason` each and exits 1 if there is anything. `memctl rebuild` mends what can be.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl import findings
from memd.memctl.ctl import Ctl

USAGE = ""
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    return findings.report(ctl, ctl.memory("verify"))
