"""Print the block of notes that a prompt earns: the bodies that fit it, then index lines, and what was left out.

In a session (MEMD_SESSION) it is the one block that the session gets: the first prompt earns it, later ones print it
again. As a person nothing is kept. PROMPT `-` is read from standard input. The calls in the block are spelled for
memctl unless --dialect says otherwise.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK, Usage
from memd.memctl.source import STDIN, text_of

USAGE = "PROMPT…|- [--fenced] [--plain] [--dialect cli|mcp|python]"
WORDS = (1, None)

DIALECTS = ("cli", "mcp", "python")


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--fenced", action="store_true", help="between the lines that fence it off in a prompt")
    parser.add_argument("--plain", action="store_true", help="bodies also for words that any prompt could hold")
    parser.add_argument("--dialect", choices=DIALECTS, default="cli", help="how calls are spelled in it")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    if ctl.scope is not None:
        raise Usage("a block is made from both stores; focus does not go with --scope")
    prompt = (
        text_of(ctl, STDIN, "of a longer prompt give the end, where the question is")
        if words == [STDIN]
        else " ".join(words)
    )
    reply = ctl.memory("focus", prompt=prompt, dialect=options.dialect, abstain=not options.plain)
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    block = reply["fenced" if options.fenced else "text"]
    if block is None:
        ctl.tell("a blank prompt earns nothing")
        return OK
    if reply["frozen"]:
        ctl.tell("the session has its block already; this is it")
    ctl.out.text(f"{block}\n")
    return OK
