"""Look through the notes on the whole screen: by scope, with their texts; search, read, delete.

Keys: up and down choose, Enter gives the text the whole screen, / searches, s shows one scope or both,
h who did what to the note, d deletes it after asking, Esc goes back, q quits. What changes elsewhere is
followed. It needs the extra: pip install 'memd[browse]'.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK, Stop, Usage
from memd.memctl.exits import USAGE as WRONG

USAGE = ""
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    if ctl.is_json:
        raise Usage("browse is a screen and has no JSON; `memctl list --json` has the notes")
    if not (ctl.out.is_terminal and sys.stdin is not None and sys.stdin.isatty()):
        raise Usage("browse needs a terminal; `memctl list` and `memctl show` do without")
    from memd.memctl.curator.source import Source
    from memd.memctl.curator.state import State

    try:
        from memd.memctl.curator import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("textual", "rich"):
            raise
        raise Stop(WRONG, "browse needs textual; install it with: pip install 'memd[browse]'") from None
    source = Source(ctl.cwd(), may_start=ctl.may_start)
    source.notes()  # what keeps the daemon from answering is said before the screen is taken
    app.run(source, State(scope=ctl.scope))
    return OK
