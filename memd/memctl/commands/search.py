"""Print every note that shares a word with WORDS, best first: name, scope and hook.

Words are looked for in names, hooks and bodies. `memctl show NAME` prints a note's text. On a terminal
the best 50 are followed by those words of yours that they hold. With --explain what gave a note its score
follows it, whose sum it is: how much, the field, the word, and the form that was found if it was another.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.arguments import count
from memd.memctl.ctl import EVERY, Ctl, given
from memd.memctl.exits import OK
from memd.memctl.terminal import BOLD, DIM

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

USAGE = "WORDS… [--limit N] [--explain] [--ranker plain|rich]"
WORDS = (1, None)
PAGES = True

TOLD = 50
"""Hits whose words are told on a terminal: more than a screen, and few enough to be read at once."""
_UNSAID = frozenset({"name", "character"})
"""What is no word of a query: that the note was meant by its name, a character of a pair that counts by itself."""


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--limit", type=count, default=EVERY, metavar="N", help="the best N only")
    parser.add_argument("--explain", action="store_true", help="say which words of which field gave a note its score")
    parser.add_argument("--ranker", choices=("plain", "rich"), help="rank by this one, not by the configured one")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    asked = given(query=" ".join(words), limit=options.limit, scope=ctl.scope, ranker=options.ranker)
    if options.explain:
        asked["explain"] = True
    reply = ctl.memory("search", **asked) if ctl.is_json or not ctl.out.is_terminal else _told(ctl, asked)
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    for hit in reply["hits"]:
        matched = "" if options.explain or not ctl.out.is_terminal else _matched(hit)
        ctl.out.line((hit["name"], BOLD), (f" · {hit['scope']}", DIM), f" — {hit['description']}", (matched, DIM))
        for gave in hit.get("explain", ()) if options.explain else ():
            found = f" as {gave['form']}" if "form" in gave else ""
            ctl.out.line(
                f"  {gave['score']:8.3f}  {gave['field']:<4}  {gave['word']}{found}", (f"  {gave['kind']}", DIM)
            )
    if not reply["hits"]:
        ctl.tell("no note shares a word with this; `memctl list` prints them all")
    elif len(reply["hits"]) < reply["total"]:
        ctl.tell(f"{len(reply['hits'])} of {reply['total']} notes")
    return OK


def _told(ctl: Ctl, asked: dict[str, Any]) -> dict[str, Any]:
    """The reply in which the best hits say what they were found by: each costs the daemon a look at its text."""
    if asked.get("explain"):
        return ctl.memory("search", **asked)
    limit = asked["limit"]
    best = ctl.memory("search", **{**asked, "limit": min(limit, TOLD), "explain": True})
    if limit <= TOLD or best["total"] <= TOLD:
        return best
    rest = ctl.memory("search", **{**asked, "limit": limit - TOLD, "offset": TOLD})
    return {**rest, "hits": [*best["hits"], *rest["hits"]]}


def _matched(hit: dict[str, Any]) -> str:
    """The words of the query that a hit holds, best first, as the end of its line."""
    words = dict.fromkeys(gave["word"] for gave in hit.get("explain", ()) if gave["kind"] not in _UNSAID)
    return f" · {', '.join(words)}" if words else ""
