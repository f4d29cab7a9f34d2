"""Bring back every note that the journal holds and has not forgotten; recount the usage, mend the index.

A note's file that is there is never touched: one that differs from the journal's last version is named.
On a terminal it shows what it would bring back and asks; --yes answers. Exits 1 when a version's object
is missing or the journal's chain is broken.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from memd.memctl import preview
from memd.memctl.ctl import SCOPES, Ctl
from memd.memctl.exits import FINDING, OK
from memd.memctl.terminal import YELLOW

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

USAGE = "[--dry-run] [--yes]"
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    preview.add_options(parser)


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 1 also when the person says no."""
    if not options.dry_run and preview.is_wanted(ctl, options) and not _agreed(ctl):
        return FINDING
    reply = ctl.memory("rebuild", **({"dry_run": True} if options.dry_run else {}))
    stores = dict(ctl.per_scope(reply))
    is_bad = any(store["missing"] or store["broken_line"] is not None for store in stores.values())
    if ctl.is_json:
        ctl.out.json(reply)
        return FINDING if is_bad else OK
    for scope, store in stores.items():
        ctl.out.line(_counted(scope, store, "to restore" if options.dry_run else "restored"))
        for trouble in _troubles(scope, store):
            ctl.out.line((trouble, YELLOW))
    if options.dry_run:
        ctl.tell("nothing was done")
    return FINDING if is_bad else OK


def _agreed(ctl: Ctl) -> bool:
    """Whether the person wants the notes back that would come, in both stores; none to come is none to ask about."""
    reply = ctl.memory("rebuild", dry_run=True)
    if not any(reply[scope]["restored"] for scope in SCOPES):
        return True
    for scope in SCOPES:
        ctl.tell(_counted(scope, reply[scope], "to restore"))
    if ctl.confirm("Bring them back?"):
        return True
    ctl.tell("nothing was brought back")
    return False


def _counted(scope: str, store: dict[str, Any], restored: str) -> str:
    return f"{scope}: {store['live']} live · {store['restored']} {restored} · {store['forgotten']} forgotten"


def _troubles(scope: str, store: dict[str, Any]) -> Iterator[str]:
    for name in store["differ"]:
        yield f"{scope}/{name}.md: differs from the journal's last version"
    for name in store["missing"]:
        yield f"{scope}/{name}.md: a version has no object"
    if store["broken_line"] is not None:
        yield f"{scope}/ops.jsonl:{store['broken_line']}: the journal is broken here"
