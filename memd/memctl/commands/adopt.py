"""Bring the notes of another store into this repository's: those of a repository that was moved or renamed.

KEY is the store's, as `memctl stores` prints it. A note whose name is taken here comes as `NAME-2`. When
all are safe here the other store gives them up, with their earlier versions; where its repository is still
there, that is said. On a terminal it shows what it would do and asks; --yes answers. Exits 1 when notes were
left behind.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from memd.memctl import preview
from memd.memctl.ctl import Ctl, given
from memd.memctl.exits import FINDING, OK, Usage
from memd.memctl.terminal import BOLD, Cell
from memd_client.errors import NotFound

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

USAGE = "KEY [--dry-run] [--yes]"
WORDS = (1, 1)


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    preview.add_options(parser)


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 1 when the person says no or a note was left behind."""
    if ctl.scope == "global":
        raise Usage("adopt is into the repo store; it does not go with --scope global")
    [key] = words
    if not options.dry_run and preview.is_wanted(ctl, options) and not _agreed(ctl, key):
        return FINDING
    reply = _adopted(ctl, key, dry_run=options.dry_run)
    if ctl.is_json:
        ctl.out.json(reply)
    elif options.dry_run:
        ctl.out.table(_plan(reply))
        ctl.tell(f"{_planned(reply)}; nothing was done")
        _warn(ctl, reply)
    else:
        ctl.out.line(f"repo: {_counted(reply, 'adopted', 'left behind')}")
        ctl.out.table(["adopted", (here, BOLD), f"was {there}"] for there, here in reply["renamed"].items())
        if reply["left"]:
            ctl.warn("what is left behind could not be taken, or was changed meanwhile; run it again")
    return FINDING if reply["left"] else OK


def _agreed(ctl: Ctl, key: str) -> bool:
    """Whether the person wants what would be done; where that is nothing there is nothing to ask."""
    reply = _adopted(ctl, key, dry_run=True)
    if not (reply["adopted"] or reply["identical"]):
        return True
    ctl.tell(f"from the store {key}, which gives them up, into the repo store of {ctl.cwd()}:")
    ctl.tell(_planned(reply))
    preview.show(ctl, _plan(reply))
    _warn(ctl, reply)
    if ctl.confirm("Adopt them?"):
        return True
    ctl.tell("nothing was adopted")
    return False


def _adopted(ctl: Ctl, key: str, *, dry_run: bool) -> dict[str, Any]:
    """What an adoption does, or would. An error that there is no such store says how to find one."""
    try:
        return ctl.placed("store.adopt", **given(key=key, dry_run=dry_run or None))
    except NotFound as error:
        error.add_note("try: memctl stores")
        raise


def _warn(ctl: Ctl, reply: dict[str, Any]) -> None:
    """Say that the notes are somebody else's still: those of a repository that was neither moved nor renamed."""
    if reply.get("origin_exists"):
        ctl.warn("the repository of that store is still there; its notes are taken away from it")


def _planned(reply: dict[str, Any]) -> str:
    return _counted(reply, "to adopt", "to leave behind")


def _counted(reply: dict[str, Any], adopted: str, left: str) -> str:
    same = len(reply["identical"])
    return f"{len(reply['adopted']):,} {adopted} · {same:,} identical · {reply['left']:,} {left}"


def _plan(reply: dict[str, Any]) -> Iterator[list[Cell]]:
    """A row for each note, those first that get another name."""
    was = {here: there for there, here in reply["renamed"].items()}
    for name in sorted(reply["adopted"], key=lambda name: name not in was):
        yield ["adopt", (name, BOLD), f"was {was[name]}" if name in was else ""]
    for name in reply["identical"]:
        yield ["identical", (name, BOLD), ""]
