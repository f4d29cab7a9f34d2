"""Print the journal of both stores, newest first: when, who, what, which note, and the version's hash.

Who is a session's id, `you` for memctl, `by hand` for an editor, or another writer's name; a terminal
has a heading for each day. In a pipe the columns are split by tabs, who and what are the journal's own
words, times carry their zone and hashes are whole.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator

from memd.memctl.arguments import HASH_PREFIX, count, moment
from memd.memctl.ctl import Ctl, given
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

_WRITERS = {
    **dict.fromkeys(("cli", "restore", "rename"), "you"),
    "hand": "by hand",
    "claude": "Claude",
    "kimi": "Kimi",
    "import": "an import",
    "store": "an adoption",
    "recovery": "a recovery",
}
"""Whom the journal names in a record without a session (SPEC 4)."""
_DONE = {"save": "saved", "edit": "edited", "adopt": "took in", "forget": "forgot", "read": "read"}
_DONE_BY = {"restore": {**_DONE, "save": "restored"}, "rename": {**_DONE, "save": "named", "forget": "unnamed"}}


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--limit", type=count, default=50, metavar="N", help="the newest N (50 without this)")
    parser.add_argument("--since", type=moment, metavar="TIME", help="2024-05-01, 2024-05-01T12:00, 30m, 2h, 3d, 1w")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    name = words[0] if words else None
    reply = ctl.memory("log", **given(name=name, limit=options.limit, since=options.since, scope=ctl.scope))
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    ctl.out.table(_days(reply["records"]) if ctl.out.is_terminal else map(_whole_row, reply["records"]))
    if not reply["records"]:
        ctl.tell("no records")
    elif len(reply["records"]) < reply["total"]:
        ctl.tell(f"{len(reply['records'])} of {reply['total']} records; --limit {reply['total']} for all")
    return OK


def _days(records: Iterable[dict[str, Any]]) -> Iterator[list[Cell]]:
    """The rows of a history, those of a day under it."""
    before = None
    for record in records:
        at = time.localtime(record["at"])
        if before != (before := at[:3]):
            yield [(f"{time.strftime('%A', at)}, {at.tm_mday} {time.strftime('%B %Y', at)}", BOLD)]
        digits = record["hash"].removeprefix(HASH_PREFIX)[:HASH_DIGITS]
        clock = time.strftime("  %H:%M:%S", at)
        what = _DONE_BY.get(record.get("by") or "", _DONE).get(record["op"], record["op"])
        yield [
            (clock, DIM),
            cut(_who(record), WHO_CELLS),
            what,
            (record["name"], BOLD),
            record["scope"],
            (digits, DIM),
        ]


def _whole_row(record: dict[str, Any]) -> list[Cell]:
    at = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(record["at"]))
    by = record.get("by")
    who = "you" if by == "cli" and not record.get("session") else record.get("session") or by or "-"
    return [at, str(who), record["op"], (record["name"], BOLD), record["scope"], record["hash"]]


def _who(record: dict[str, Any]) -> str:
    """Who wrote a record, as a person would say it."""
    by = record.get("by") or "-"
    return str(record.get("session") or _WRITERS.get(by, by))
