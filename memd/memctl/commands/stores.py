"""List every store of this home: its key, how many notes it holds, and whether what it belongs to is there.

The store of the directory you are in is `current`. An `orphan` belongs to a repository that was moved,
renamed or deleted: `memctl adopt KEY`, in the place it has now, brings its notes there.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK
from memd.memctl.terminal import BOLD, YELLOW, Cell

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

USAGE = ""
WORDS = (0, 0)
PAGES = True

ORIGINS = {True: "there", False: "gone", None: "-"}


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    reply = ctl.call("store.list", {"cwd": ctl.cwd()})
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    stores = [store for store in reply["stores"] if ctl.scope in (None, store["scope"])]
    if not stores:
        ctl.tell("no stores yet; the first save makes one")
        return OK
    ctl.out.table([["store", "notes", "origin", "mark"], *map(_row, stores)])
    orphans = [store["key"] for store in stores if _is_orphan(store) and store["notes"]]
    if orphans:
        import shlex

        ctl.tell("an orphan's notes come along by this, where its repository is now:")
        for key in orphans:
            ctl.tell(f"  memctl adopt {shlex.quote(key)}")
    return OK


def _row(store: dict[str, Any]) -> list[Cell]:
    mark: Cell = ("orphan", YELLOW) if _is_orphan(store) else "current" if store["current"] else ""
    return [(store["key"] or store["scope"], BOLD), str(store["notes"]), ORIGINS[store["origin_exists"]], mark]


def _is_orphan(store: dict[str, Any]) -> bool:
    return store["origin_exists"] is False
