"""Bring Claude Code's notes here now: those of this repository into the repo store, its notes for
everywhere into the global one, each tagged `source: claude`. It works whether `claude.import` is on
or not, and also brings back what was forgotten here. Nothing is written in Claude's own directories.

A note that was edited on both sides is a conflict and stays as it is here. A directory that may be
another repository's is ambiguous: look into it, and name it with --dir if it is this one's.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl import preview, programs
from memd.memctl.ctl import Ctl
from memd.memctl.exits import Usage

USAGE = "[--dir DIR] [--dry-run] [--yes]"
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--dir", metavar="DIR", help="only the notes in DIR, into the repo store")
    preview.add_options(parser)


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 1 when the person says no."""
    if options.dir is not None and ctl.scope == "global":
        raise Usage("--dir is into the repo store; it does not go with --scope global")
    return programs.bring(ctl, options, "claude", None if options.dir is None else ctl.at(options.dir))
