"""Print what is wrong with the notes, one `path:line: reason` each; exits 1 if there is anything.

The path is the scope and the file's name in its store. Nothing is changed and no note is blocked by
what is found here.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl import findings
from memd.memctl.ctl import Ctl

USAGE = ""
WORDS = (0, 0)
PAGES = True


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    return findings.report(ctl, ctl.memory("check"))
