"""Save a note: a new one, or a new version of the one of that name.

The text comes from FILE, or from standard input. It is the body alone, or a whole note with a block
of name, description and type before it; the options go over what the block says. A note needs a
description (its hook: one line that says when the note matters) and a type. Without a name the first
words of the description make one. On a terminal, with --description and no FILE, the note has no body.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from memd.memctl.arguments import NOTE_TYPES, expectation, pair
from memd.memctl.ctl import Ctl, given
from memd.memctl.exits import OK, Usage
from memd.memctl.source import STDIN, text_of
from memd.memctl.terminal import BOLD, DIM

USAGE = "[FILE|-] [--name NAME] [--description LINE] [--type TYPE] [--field KEY=VALUE]… [--expect HASH]"
WORDS = (0, 1)


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--name", help="the note's name; an existing one is updated")
    parser.add_argument("--description", metavar="LINE", help="the hook, at most 240 characters")
    parser.add_argument("--type", help=f"one of {', '.join(NOTE_TYPES)}")
    parser.add_argument("--field", type=pair, action="append", default=[], metavar="KEY=VALUE", help="any other key")
    parser.add_argument(
        "--expect",
        type=expectation,
        default=Ellipsis,
        metavar="HASH",
        help="save only over this version; `null`: only a new note, `exists`: only over a note",
    )


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    fields = dict(options.field) | given(
        name=options.name,
        description=options.description,
        type=options.type,
        scope=ctl.scope,
    )
    expect = {} if options.expect is Ellipsis else {"expect": options.expect}
    reply = ctl.memory("save", markdown=_text(ctl, options, words), fields=fields, **expect)
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    updated = " (updated)" if reply["updated"] else ""
    ctl.out.line("saved ", (reply["name"], BOLD), (f" · {reply['scope']}", DIM), updated)
    for warning in reply["warnings"]:
        ctl.warn(warning)
    return OK


def _text(ctl: Ctl, options: Namespace, words: list[str]) -> str:
    """The text to save. Raises `Stop` when there is none, or it is no text."""
    if not words and sys.stdin is not None and sys.stdin.isatty():
        if options.description is None:
            raise Usage("save needs a text: a FILE, standard input, or --description for a note without a body")
        return ""
    return text_of(ctl, words[0] if words else STDIN, "a note's body holds 8,192")
