"""Take in what was done by hand: new files are adopted, edits become versions, missing files are forgotten.

When many notes are gone at once the store is suspended and nothing is forgotten: `memctl rebuild`
brings the notes back, `memctl reconcile --accept` forgets them for good. On a terminal --accept shows
how many that would be and asks; --yes answers.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl import preview
from memd.memctl.ctl import SCOPES, Ctl
from memd.memctl.exits import FINDING, OK, REFUSED, Stop, Usage

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

USAGE = "[--accept] [--dry-run] [--yes]"
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--accept", action="store_true", help="carry out the deletions of a suspended store")
    preview.add_options(parser)


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 4 while a store is suspended, 1 when the person says no."""
    if options.accept and ctl.scope is not None:
        raise Usage("--accept is for both stores; it does not go with --scope")
    if options.accept and not options.dry_run and preview.is_wanted(ctl, options) and not _agreed(ctl):
        return FINDING
    asked = {"accept": options.accept, "dry_run": options.dry_run}
    reply = ctl.memory("reconcile", **{flag: True for flag, is_set in asked.items() if is_set})
    stores = dict(ctl.per_scope(reply))
    suspended = [scope for scope, store in stores.items() if store["suspended"]]
    if ctl.is_json:
        ctl.out.json(reply)
        return REFUSED if suspended else OK
    done = ("to adopt", "to edit", "to forget") if options.dry_run else ("adopted", "edited", "forgotten")
    for scope, store in stores.items():
        ctl.out.line(_counted(scope, store, *done))
    if options.dry_run:
        ctl.tell("nothing was done")
    if suspended:
        ctl.warn("many notes are gone at once, so nothing was forgotten")
        ctl.tell("bring them back:        memctl rebuild")
        ctl.tell("forget them for good:   memctl reconcile --accept")
    return REFUSED if suspended else OK


def _agreed(ctl: Ctl) -> bool:
    """Whether the person lets go of the notes that would be forgotten; none to go is none to ask about.

    Raises `Stop` when there are others by the time of the answer.
    """
    reply = ctl.memory("reconcile", accept=True, dry_run=True)
    if not any(_forgotten(reply)):
        return True
    for scope in SCOPES:
        ctl.tell(_counted(scope, reply[scope], "to adopt", "to edit", "to forget"))
    if not ctl.confirm("Forget them, with every version, for good?"):
        ctl.tell("nothing was forgotten")
        return False
    if _forgotten(ctl.memory("reconcile", accept=True, dry_run=True)) != _forgotten(reply):
        raise Stop(REFUSED, "the stores were changed meanwhile; nothing was forgotten")
    return True


def _forgotten(reply: dict[str, Any]) -> list[int]:
    return [reply[scope]["forgotten"] for scope in SCOPES]


def _counted(scope: str, store: dict[str, Any], adopted: str, edited: str, forgotten: str) -> str:
    counts = f"{store['adopted']} {adopted} · {store['edited']} {edited} · {store['forgotten']} {forgotten}"
    return f"{scope}: {counts}" + " · suspended" * bool(store["suspended"])
