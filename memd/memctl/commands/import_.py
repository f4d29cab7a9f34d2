"""Copy the notes of a directory into this repository's store, each as it is, byte for byte.

A note whose name is taken here is updated; the text it had stays a version (`memctl restore`). What is
here already is passed over, so an import can be run again; what is no note, or holds a recalled block,
is skipped and named. On a terminal it shows what it would do and asks; --yes answers.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from memd.memctl import preview
from memd.memctl.ctl import Ctl, given
from memd.memctl.exits import FINDING, OK, Usage
from memd.memctl.progress import Progress
from memd.memctl.terminal import BOLD, Cell
from memd_client.errors import MemdError

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

USAGE = "DIR [--dry-run] [--yes]"
WORDS = (1, 1)

PAGE = 500
"""Files a call: enough that their syncs are shared, few enough that it shows how far it is."""

AGAIN = "run it again to go on: what is here already is passed over"


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    preview.add_options(parser)


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 1 when the person says no."""
    if ctl.scope == "global":
        raise Usage("import is into the repo store; it does not go with --scope global")
    directory = ctl.at(words[0])
    if not options.dry_run and preview.is_wanted(ctl, options) and not _agreed(ctl, directory):
        return FINDING
    reply = _in_pages(ctl, directory, "looking at" if options.dry_run else "importing", dry_run=options.dry_run)
    if ctl.is_json:
        ctl.out.json(reply)
    elif options.dry_run:
        ctl.out.table(_plan(reply))
        ctl.tell(f"{_planned(reply)}; nothing was done")
    else:
        ctl.out.line(f"repo: {_counted(reply, 'imported', 'updated', 'skipped')}")
        ctl.out.table(_told(reply))
    return OK


def _agreed(ctl: Ctl, directory: str) -> bool:
    """Whether the person wants what would be done; where that is nothing there is nothing to ask."""
    reply = _in_pages(ctl, directory, "looking at", dry_run=True)
    if not (reply["imported"] or reply["updated"]):
        return True
    ctl.tell(f"from {directory} into the repo store of {ctl.cwd()}:")
    ctl.tell(_planned(reply))
    preview.show(ctl, _plan(reply))
    if ctl.confirm("Import them?"):
        return True
    ctl.tell("nothing was imported")
    return False


def _in_pages(ctl: Ctl, directory: str, doing: str, *, dry_run: bool) -> dict[str, Any]:
    """The replies of all pages as one. An import that does not come to its end says how far it came."""
    whole: dict[str, Any] = {"imported": [], "updated": [], "skipped": [], "total": 0}
    done, after = 0, None
    asked = given(dir=directory, limit=PAGE, dry_run=dry_run or None)
    try:
        with Progress(ctl.err, f"{doing} the files") as progress:
            while True:
                page = ctl.memory("import", **asked, **given(after=after))
                for key in ("imported", "updated", "skipped"):
                    whole[key] += page[key]
                whole["total"] = done + page["total"]
                after = page.get("next")
                if after is None:
                    return whole
                done += PAGE
                progress.tell(f"{doing} the files · {done:,} of {whole['total']:,}")
    except KeyboardInterrupt:
        if not dry_run:
            where = f"after {done:,} of {whole['total']:,} files" if done else f"in the first {PAGE:,} files"
            ctl.tell(f"interrupted {where}; {AGAIN}")
        raise
    except MemdError as error:
        if done and not dry_run:
            error.add_note(f"{done:,} of {whole['total']:,} files were done before that; {AGAIN}")
        raise


def _planned(reply: dict[str, Any]) -> str:
    return _counted(reply, "to import", "to update", "to skip")


def _counted(reply: dict[str, Any], imported: str, updated: str, skipped: str) -> str:
    same = sum(map(_is_identical, reply["skipped"]))
    return (
        f"{len(reply['imported']):,} {imported} · {len(reply['updated']):,} {updated}"
        f" · {len(reply['skipped']) - same:,} {skipped} · {same:,} identical"
    )


def _plan(reply: dict[str, Any]) -> Iterator[list[Cell]]:
    """A row for each file, those first that a person should look at."""
    yield from _named("update", reply["updated"])
    yield from _skips("skip", reply)
    yield from _named("import", reply["imported"])


def _told(reply: dict[str, Any]) -> Iterator[list[Cell]]:
    """A row for each file that is more than a note that came."""
    yield from _named("updated", reply["updated"])
    yield from _skips("skipped", reply)


def _named(what: str, names: list[str]) -> Iterator[list[Cell]]:
    for name in names:
        yield [what, (name, BOLD)]


def _skips(what: str, reply: dict[str, Any]) -> Iterator[list[Cell]]:
    for skipped in reply["skipped"]:
        if not _is_identical(skipped):
            yield [what, f"{skipped['file']}: {skipped['reason']}"]


def _is_identical(skipped: dict[str, Any]) -> bool:
    return bool(skipped["reason"] == "identical")
