"""Import of another program's notes. Law: what would come is shown first where a person can answer.

SPEC sections 10 and 14: `import-claude` and `import-kimi` differ in whose notes they bring, and in nothing else.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from memd.memctl import preview
from memd.memctl.ctl import Ctl, given
from memd.memctl.exits import FINDING, OK
from memd.memctl.progress import Progress
from memd.memctl.terminal import BOLD, Cell

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any


def bring(ctl: Ctl, options: Namespace, program: str, directory: str | None = None) -> int:
    """Run the import; gives its exit code, 1 when the person says no."""
    if not options.dry_run and preview.is_wanted(ctl, options) and not _agreed(ctl, program, directory):
        return FINDING
    reply = _asked(ctl, program, directory, dry_run=options.dry_run)
    if ctl.is_json:
        ctl.out.json(reply)
    elif options.dry_run:
        ctl.out.table(_plan(reply))
        ctl.tell(f"{_planned(reply)}; nothing was done")
    else:
        for line in reply["lines"]:
            ctl.out.line(line)
        ctl.out.table(_told(reply))
        if not reply["lines"]:
            ctl.tell("there are no such notes for this directory")
    return OK


def _agreed(ctl: Ctl, program: str, directory: str | None) -> bool:
    """Whether the person wants what would be done; where that is nothing there is nothing to ask."""
    reply = _asked(ctl, program, directory, dry_run=True)
    if not (reply["imported"] or reply["updated"]):
        return True
    ctl.tell(f"into the stores of {ctl.cwd()}:")
    ctl.tell(_planned(reply))
    preview.show(ctl, _plan(reply))
    if ctl.confirm("Import them?"):
        return True
    ctl.tell("nothing was imported")
    return False


def _asked(ctl: Ctl, program: str, directory: str | None, *, dry_run: bool) -> dict[str, Any]:
    doing = "looking at" if dry_run else "importing"
    with Progress(ctl.err, f"{doing} the notes"):
        return ctl.memory(f"import_{program}", **given(dir=directory, scope=ctl.scope, dry_run=dry_run or None))


def _planned(reply: dict[str, Any]) -> str:
    counts = f"{len(reply['imported']):,} to import · {len(reply['updated']):,} to update"
    return f"{counts} · {reply['found']:,} there"


def _plan(reply: dict[str, Any]) -> Iterator[list[Cell]]:
    """A row for each note, those first that a person should look at."""
    yield from _named("update", reply["updated"])
    yield from _told(reply)
    yield from _named("import", reply["imported"])


def _told(reply: dict[str, Any]) -> Iterator[list[Cell]]:
    """A row for each note or directory that did not simply come."""
    yield from _named("conflict", reply["conflicts"])
    yield from _named("ambiguous", reply["ambiguous"])
    for skipped in reply["skipped"]:
        yield ["skipped", f"{skipped['file']}: {skipped['reason']}"]
    yield from _named("stale", reply["stale"])
    yield from _named("unparsed", reply["unparsed"])


def _named(what: str, names: list[str]) -> Iterator[list[Cell]]:
    for name in names:
        yield [what, (name, BOLD)]
