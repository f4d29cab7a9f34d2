"""Bring back a version of a note: its exact text becomes the note's text again, as a new save.

`memctl log NAME` prints the hashes; the beginning of one is enough. The text that stands now stays a
version, so a restore can be taken back by another. A note that was forgotten has no versions.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace

from memd.memctl.arguments import short_hash
from memd.memctl.ctl import Ctl, given
from memd.memctl.exits import OK, Usage
from memd.memctl.terminal import BOLD, DIM
from memd.memctl.versions import whole

USAGE = "NAME HASH"
WORDS = (2, 2)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    name, beginning = words
    try:
        version = whole(ctl, name, short_hash(beginning))
    except ArgumentTypeError as error:
        raise Usage(str(error)) from None
    reply = ctl.note("restore", name, hash=version, **given(scope=ctl.scope))
    if ctl.is_json:
        ctl.out.json(reply)
    else:
        ctl.out.line("restored ", (reply["name"], BOLD), (f" · {reply['scope']}", DIM), f" — {reply['description']}")
    return OK
