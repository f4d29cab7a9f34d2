"""Take in what was done by hand: new files are adopted, edits become versions, missing files are forgotten.

When many notes are gone at once the store is suspended and nothing is forgotten: `memctl rebuild`
brings the notes back, `memctl reconcile --accept` forgets them for good.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK, REFUSED, Usage

USAGE = "[--accept]"
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--accept", action="store_true", help="carry out the deletions of a suspended store")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 4 while a store is suspended."""
    if options.accept and ctl.scope is not None:
        raise Usage("--accept is for both stores; it does not go with --scope")
    reply = ctl.memory("reconcile", **({"accept": True} if options.accept else {}))
    stores = dict(ctl.per_scope(reply))
    suspended = [scope for scope, store in stores.items() if store["suspended"]]
    if ctl.is_json:
        ctl.out.json(reply)
        return REFUSED if suspended else OK
    for scope, store in stores.items():
        ctl.out.line(
            f"{scope}: {store['adopted']} adopted · {store['edited']} edited · {store['forgotten']} forgotten"
            + " · suspended" * store["suspended"]
        )
    if suspended:
        ctl.warn("many notes are gone at once, so nothing was forgotten")
        ctl.tell("bring them back:        memctl rebuild")
        ctl.tell("forget them for good:   memctl reconcile --accept")
    return REFUSED if suspended else OK
