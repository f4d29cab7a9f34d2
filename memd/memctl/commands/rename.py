"""Give a note another name, in the same store. Its text stays; its earlier versions go with the old name.

A name that another note has is refused.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl, given
from memd.memctl.exits import OK
from memd.memctl.terminal import BOLD, DIM

USAGE = "NAME TO"
WORDS = (2, 2)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    name, to = words
    reply = ctl.note("rename", name, to=to, **given(scope=ctl.scope))
    if ctl.is_json:
        ctl.out.json(reply)
    else:
        ctl.out.line("renamed ", reply["was"], " → ", (reply["name"], BOLD), (f" · {reply['scope']}", DIM))
    return OK
