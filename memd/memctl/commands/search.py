"""Print every note that shares a word with WORDS, best first: name, scope and hook.

Words are looked for in names, hooks and bodies. `memctl show NAME` prints a note's text. With --explain what gave
a note its score follows it, whose sum it is: how much, the field, the word, and the form that was found if it was
another.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.arguments import count
from memd.memctl.ctl import EVERY, Ctl, given
from memd.memctl.exits import OK
from memd.memctl.terminal import BOLD, DIM

USAGE = "WORDS… [--limit N] [--explain] [--ranker plain|rich]"
WORDS = (1, None)
PAGES = True


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
    reply = ctl.memory("search", **asked)
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    for hit in reply["hits"]:
        ctl.out.line((hit["name"], BOLD), (f" · {hit['scope']}", DIM), f" — {hit['description']}")
        for gave in hit.get("explain", ()):
            found = f" as {gave['form']}" if "form" in gave else ""
            ctl.out.line(
                f"  {gave['score']:8.3f}  {gave['field']:<4}  {gave['word']}{found}", (f"  {gave['kind']}", DIM)
            )
    if not reply["hits"]:
        ctl.tell("no note shares a word with this; `memctl list` prints them all")
    elif len(reply["hits"]) < reply["total"]:
        ctl.tell(f"{len(reply['hits'])} of {reply['total']} notes")
    return OK
