"""Print what each store holds and how much it is used; the rates are per session.

On a terminal also when notes were written during the last weeks, and which are read most.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace

from memd.memctl.charts import bar, sparkline
from memd.memctl.ctl import EVERY, Ctl, given
from memd.memctl.exits import OK
from memd.memctl.terminal import BOLD, CYAN, DIM, Cell

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

USAGE = ""
WORDS = (0, 0)
PAGES = True

COLUMNS = ("sessions", "notes", "saves", "reads", "saves_per_session", "reads_per_session", "unparsed")
DAYS = 42
"""Days of the chart of what was written, a column each."""
MOST_READ = 5
BAR_CELLS = 20

_DAY = 86_400
_WRITES = frozenset({"save", "edit", "adopt"})


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
    if ctl.out.is_terminal:
        _written(ctl, [scope for scope, _ in ctl.per_scope(reply)])
        _read(ctl)
    return OK


def _written(ctl: Ctl, scopes: list[str]) -> None:
    """A column a day for what was written, a line a store."""
    now = time.time()
    records = ctl.memory("log", limit=EVERY, since=now - DAYS * _DAY, reads=False)["records"]
    rows: list[list[Cell]] = []
    for scope in scopes:
        ages = [int((now - one["at"]) // _DAY) for one in records if one["scope"] == scope and one["op"] in _WRITES]
        counts = [ages.count(day) for day in reversed(range(DAYS))]
        rows.append([scope, (sparkline(counts), CYAN), f"{sum(counts)} written"])
    if any(one["op"] in _WRITES for one in records):
        ctl.out.line()
        ctl.out.line((f"written, the last {DAYS} days", DIM))
        ctl.out.table(rows)


def _read(ctl: Ctl) -> None:
    """The notes that are read most."""
    notes: list[dict[str, Any]] = ctl.memory("list", **given(scope=ctl.scope))["notes"]
    most = sorted((note for note in notes if note["reads"]), key=lambda note: (-note["reads"], note["name"]))[
        :MOST_READ
    ]
    if most:
        top = most[0]["reads"]
        ctl.out.line()
        ctl.out.line(("read most", DIM))
        ctl.out.table(
            [(note["name"], BOLD), (bar(note["reads"], top, BAR_CELLS), CYAN), str(note["reads"])] for note in most
        )


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"
