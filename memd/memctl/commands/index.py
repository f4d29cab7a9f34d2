"""Print a row for every note, both stores in one, as a prompt may carry it.

A global note whose name a repo note has is left out. What does not fit --max-bytes goes from the least recently used
on, and the last line says how many.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.arguments import count
from memd.memctl.ctl import Ctl, given
from memd.memctl.exits import OK, Usage

USAGE = "[--max-bytes N] [--fenced]"
WORDS = (0, 0)
PAGES = True


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--max-bytes", type=count, metavar="N", help="at most N bytes of text (8192 without this)")
    parser.add_argument("--fenced", action="store_true", help="between the lines that fence it off in a prompt")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    if ctl.scope is not None:
        raise Usage("the index is of both stores; `memctl list` takes --scope")
    reply = ctl.memory("index", **given(max_bytes=options.max_bytes))
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    text = reply["fenced" if options.fenced else "text"]
    if text is None:
        ctl.tell("no notes here; `memctl save --help` says how to save one")
        return OK
    ctl.out.text(f"{text}\n")
    return OK
