"""Save a line as a note: its name and its hook are made from it and shown.

The text is TEXT, or standard input. A text of one line is the hook itself; of a longer one the first
sentence is, and the whole text the body. The type is --type; on a terminal one is proposed, and what
you answer counts: y, one of the types, or anything else for no.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace

from memd.memctl.arguments import NOTE_TYPES
from memd.memctl.ctl import Ctl, given
from memd.memctl.exits import FINDING, OK, Usage
from memd.memctl.source import STDIN, text_of
from memd.memctl.terminal import BOLD, DIM

USAGE = "[TEXT…|-] [--type TYPE]"
WORDS = (0, None)

HOOK_MAX = 240
"""Characters of a hook (SPEC 3)."""

_SENTENCE = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")
# The first kind that fits: what a person says of themselves, how they want things done, where things are.
_SIGNS = (
    ("user", re.compile(r"\b(i am|i'm|i have|i use|i work|i live|my|mein|je suis)\b|我是|我的|我用", re.IGNORECASE)),
    (
        "feedback",
        re.compile(
            r"\b(always|never|do not|don't|must|prefer|instead of|avoid|please|stop|use \S+ not)\b|不要|必须|总是|别",
            re.IGNORECASE,
        ),
    ),
    (
        "reference",
        re.compile(r"https?://|\b(see|docs?|documented|runbook|dashboard|lives in|is at)\b", re.IGNORECASE),
    ),
)


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--type", choices=NOTE_TYPES, help=f"one of {', '.join(NOTE_TYPES)}; asked for without it")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 1 when the person says no."""
    text = _text(ctl, words)
    hook, body = split(text)
    kind = options.type
    if kind is None:
        if words in ([], [STDIN]) or not ctl.has_person():
            raise Usage("remember proposes a type and asks, and there is no terminal to ask on; give --type")
        kind = _asked(ctl, hook, proposed(text))
        if kind is None:
            ctl.tell("nothing was saved")
            return FINDING
    fields = given(description=hook, type=kind, scope=ctl.scope)
    reply = ctl.memory("save", markdown=body, fields=fields)
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    updated = " (updated)" if reply["updated"] else ""
    where = f" · {reply['scope']} · {reply['type']}"
    ctl.out.line("saved ", (reply["name"], BOLD), (where, DIM), f" — {reply['description']}", updated)
    for warning in reply["warnings"]:
        ctl.warn(warning)
    return OK


def split(text: str) -> tuple[str, str]:
    """The hook and the body of a text; a text that is its own hook has no body."""
    if "\n" not in text and len(text) <= HOOK_MAX:
        return text, ""
    first = _SENTENCE.split(text, maxsplit=1)[0].strip()
    if len(first) > HOOK_MAX:
        first = first[: HOOK_MAX - 1].rpartition(" ")[0] or first[: HOOK_MAX - 1]
        first += "…"
    return first, text


def proposed(text: str) -> str:
    """The type a text looks like; a project's fact where nothing says more."""
    return next((kind for kind, sign in _SIGNS if sign.search(text)), "project")


def _asked(ctl: Ctl, hook: str, kind: str) -> str | None:
    """The type the person wants; None for no note."""
    ctl.err.line((hook, BOLD))
    ctl.err.ask(f"Save it as {kind}? [y/N, or {', '.join(one for one in NOTE_TYPES if one != kind)}] ")
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        ctl.err.line()
        return None
    answer = answer.strip().lower()
    if answer in ("y", "yes"):
        return kind
    return answer if answer in NOTE_TYPES else None


def _text(ctl: Ctl, words: list[str]) -> str:
    """What is to be remembered. Raises `Usage` when that is nothing."""
    if words and words != [STDIN]:
        text = " ".join(words)
    elif sys.stdin is not None and sys.stdin.isatty():
        raise Usage("remember needs a text: TEXT, or standard input")
    else:
        text = text_of(ctl, STDIN, "a note's body holds 8,192")
    text = text.strip()
    if not text:
        raise Usage("remember needs a text, and this one is blank")
    return text
