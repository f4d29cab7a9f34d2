"""Print what each store holds and how much it is used; the rates are per session."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK

USAGE = ""
WORDS = (0, 0)

COLUMNS = ("sessions", "notes", "saves", "reads", "saves_per_session", "reads_per_session", "unparsed")


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    reply = ctl.memory("stats")
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    rows = [["store", *(column.replace("_per_", "/") for column in COLUMNS)]]
    rows += [[scope, *(_number(store[column]) for column in COLUMNS)] for scope, store in ctl.per_scope(reply)]
    ctl.out.table(rows)
    return OK


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"
