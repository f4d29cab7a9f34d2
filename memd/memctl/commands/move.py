"""Move a note to the other store: to `repo`, or to `global`. Its text stays; its earlier versions go.

Where the other store has a note of that name it is refused; rename one of the two first.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import SCOPES, Ctl
from memd.memctl.exits import OK, Usage
from memd.memctl.terminal import BOLD, DIM

USAGE = "NAME repo|global"
WORDS = (2, 2)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    name, scope = words
    if scope not in SCOPES:
        raise Usage(f"{scope} is no store; repo or global")
    if scope == ctl.scope:
        raise Usage(f"--scope says where the note is, and it is to go to {scope}")
    reply = ctl.note("move", name, scope=scope)
    if ctl.is_json:
        ctl.out.json(reply)
    else:
        ctl.out.line("moved ", (reply["name"], BOLD), (f" · {reply['was_scope']} → {reply['scope']}", DIM))
    return OK
