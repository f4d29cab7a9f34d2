"""Print the journal of both stores, newest first: when, who, what, which note, and the version's hash.

Who is a session's id, `you` for memctl, `hand` for an editor, or another writer's name. In a pipe the
columns are split by tabs, times carry their zone and hashes are whole.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace

from memd.memctl.arguments import HASH_PREFIX, count, moment
from memd.memctl.ctl import EVERY, Ctl, given
from memd.memctl.exits import OK
from memd.memctl.layout import cut
from memd.memctl.terminal import BOLD, DIM, Cell

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

USAGE = "[NAME] [--limit N] [--since TIME]"
WORDS = (0, 1)
PAGES = True

WHO_CELLS = 20
HASH_DIGITS = 12


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--limit", type=count, default=50, metavar="N", help="the newest N (50 without this)")
    parser.add_argument("--since", type=moment, metavar="TIME", help="2024-05-01, 2024-05-01T12:00, 30m, 2h, 3d, 1w")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    name = words[0] if words else None
    # The verb merges both stores; of one store only, any of its records may be the one that is wanted.
    limit = options.limit if ctl.scope is None else EVERY
    reply = ctl.memory("log", **given(name=name, limit=limit, since=options.since))
    if ctl.scope is not None:
        records = [one for one in reply["records"] if one["scope"] == ctl.scope]
        reply = {**reply, "records": records[: options.limit], "total": len(records)}
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    row = _row if ctl.out.is_terminal else _whole_row
    ctl.out.table(map(row, reply["records"]))
    if not reply["records"]:
        ctl.tell("no records")
    elif len(reply["records"]) < reply["total"]:
        ctl.tell(f"{len(reply['records'])} of {reply['total']} records; --limit {reply['total']} for all")
    return OK


def _row(record: dict[str, Any]) -> list[Cell]:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record["at"]))
    digits = record["hash"].removeprefix(HASH_PREFIX)[:HASH_DIGITS]
    return [(at, DIM), cut(_who(record), WHO_CELLS), *_what(record), (digits, DIM)]


def _whole_row(record: dict[str, Any]) -> list[Cell]:
    at = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(record["at"]))
    return [at, _who(record), *_what(record), record["hash"]]


def _what(record: dict[str, Any]) -> list[Cell]:
    return [record["op"], (record["name"], BOLD), record["scope"]]


def _who(record: dict[str, Any]) -> str:
    by = record.get("by")
    who = record.get("session") or by or "-"
    return "you" if by == "cli" else str(who)
