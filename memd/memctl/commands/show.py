"""Print one note's exact text: the current one, or the version of a hash.

NAME is a note's name, as `list` and `search` print it. `memctl log NAME` prints the hashes; the
beginning of one is enough.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.arguments import short_hash
from memd.memctl.ctl import Ctl, given
from memd.memctl.exits import OK
from memd.memctl.versions import whole

USAGE = "NAME [--hash HASH]"
WORDS = (1, 1)
PAGES = True


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--hash", type=short_hash, help="this version of the note")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    [name] = words
    version = None if options.hash is None else whole(ctl, name, options.hash)
    reply = ctl.note("show", name, **given(hash=version, scope=ctl.scope))
    if ctl.is_json:
        ctl.out.json(reply)
    else:
        ctl.out.text(reply["markdown"])
    return OK
