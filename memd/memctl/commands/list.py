"""List the notes of both stores: name, type, scope, hook.

On a terminal the hook is cut to the width; in a pipe the columns are split by tabs and nothing is
cut. A global note whose name a repo note has is `shadowed`: `show` opens the repo note unless
--scope global is given. An `unparsed` note is one that `memctl check` has something to say about.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.arguments import NOTE_TYPES, count
from memd.memctl.ctl import Ctl, given
from memd.memctl.exits import OK
from memd.memctl.terminal import BOLD, DIM, YELLOW, Cell
from memd_client import pages

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

USAGE = "[--type TYPE] [--limit N]"
WORDS = (0, 0)
PAGES = True


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--type", choices=NOTE_TYPES, help="only notes of this type")
    parser.add_argument("--limit", type=count, metavar="N", help="at most N notes")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    reply = _listed(ctl, options.limit, **given(type=options.type, scope=ctl.scope))
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    ctl.out.table(map(_row, reply["notes"]))
    if not reply["total"]:
        ctl.tell("no notes here; `memctl save --help` says how to save one")
    elif len(reply["notes"]) < reply["total"]:
        ctl.tell(f"{len(reply['notes'])} of {reply['total']} notes")
    return OK


def _listed(ctl: Ctl, limit: int | None, **params: object) -> Mapping[str, Any]:
    """The reply; all of it in pages where one would be too large."""
    if limit is not None:
        return ctl.memory("list", limit=limit, **params)

    def ask(limit: int | None, offset: int) -> Any:
        return ctl.memory("list", **given(limit=limit, offset=offset or None), **params)

    return pages.whole(ask)


def _row(note: dict[str, Any]) -> list[Cell]:
    kind: Cell = ("unparsed", YELLOW) if note["unparsed"] else note["type"] or "-"
    scope = note["scope"] + " shadowed" * note["shadowed"]
    return [(note["name"], BOLD), kind, (scope, DIM), note["description"]]
