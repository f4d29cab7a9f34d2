"""What a command would do, before it does it. Law: whoever can answer is asked, nobody else is.

SPEC section 14: what touches more than one note is shown first where a person runs it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from itertools import islice

from memd.memctl.ctl import Ctl
from memd.memctl.terminal import Cell

ROWS = 20
"""Rows shown before a question; the question is to stay on the screen with them."""


def add_options(parser: ArgumentParser) -> None:
    """The options of a command that can be looked at first."""
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def is_wanted(ctl: Ctl, options: Namespace) -> bool:
    """Whether the command is to show what it would do and to ask."""
    return not options.yes and ctl.has_person()


def show(ctl: Ctl, rows: Iterable[Sequence[Cell]]) -> None:
    """Write the first rows of what would be done on stderr, and how many more there are."""
    left = iter(rows)
    ctl.err.table(islice(left, ROWS))
    more = sum(1 for _ in left)
    if more:
        ctl.tell(f"… and {more:,} more; --dry-run shows all")
