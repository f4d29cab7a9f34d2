"""Bring Kimi Code's notes here now: those in `.kimi-code/memory` of this repository's worktrees into the
repo store, those of `~/.kimi-code/memory` into the global one, each tagged `source: kimi`. A
repository's own notes come with a clone and may be anyone's words: look at them first (--dry-run).
They come by themselves only while `kimi.import` is true.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl import preview, programs
from memd.memctl.ctl import Ctl

USAGE = "[--dry-run] [--yes]"
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    preview.add_options(parser)


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 1 when the person says no."""
    return programs.bring(ctl, options, "kimi")
