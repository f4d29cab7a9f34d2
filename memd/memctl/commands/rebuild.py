"""Bring back every note that the journal holds and has not forgotten; recount the usage, mend the index.

A note's file that is there is never touched: one that differs from the journal's last version is named.
Exits 1 when a version's object is missing or the journal's chain is broken.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from memd.memctl.ctl import Ctl
from memd.memctl.exits import FINDING, OK
from memd.memctl.terminal import YELLOW

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

USAGE = ""
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    reply = ctl.memory("rebuild")
    stores = dict(ctl.per_scope(reply))
    is_bad = any(store["missing"] or store["broken_line"] is not None for store in stores.values())
    if ctl.is_json:
        ctl.out.json(reply)
        return FINDING if is_bad else OK
    for scope, store in stores.items():
        ctl.out.line(f"{scope}: {store['live']} live · {store['restored']} restored · {store['forgotten']} forgotten")
        for trouble in _troubles(scope, store):
            ctl.out.line((trouble, YELLOW))
    return FINDING if is_bad else OK


def _troubles(scope: str, store: dict[str, Any]) -> Iterator[str]:
    for name in store["differ"]:
        yield f"{scope}/{name}.md: differs from the journal's last version"
    for name in store["missing"]:
        yield f"{scope}/{name}.md: a version has no object"
    if store["broken_line"] is not None:
        yield f"{scope}/ops.jsonl:{store['broken_line']}: the journal is broken here"
