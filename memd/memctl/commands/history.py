"""Look into the past sessions of this repository: what people and agents said, not what their tools did.

`search` prints the entries that share a word with WORDS, best first, each with its address; `show` prints the
whole text at an address. Read are memd's own, Claude Code's, and the transcripts that kernels named.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.arguments import count
from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK, Usage
from memd.memctl.terminal import BOLD, DIM

USAGE = "search WORDS… [--limit N] [--offset N] | show ADDRESS"
WORDS = (1, None)
PAGES = True


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--limit", type=count, default=8, metavar="N", help="entries of a page (8 without this)")
    parser.add_argument("--offset", type=count, default=0, metavar="N", help="leave out the best N")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    match words:
        case ["search", _, *_]:
            return _search(ctl, options, " ".join(words[1:]))
        case ["show", address]:
            return _show(ctl, address)
    raise Usage("history needs `search WORDS` or `show ADDRESS`")


def _search(ctl: Ctl, options: Namespace, query: str) -> int:
    reply = ctl.placed("history.search", query=query, limit=options.limit, offset=options.offset)
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    for hit in reply["hits"]:
        ctl.out.line((hit["url"], BOLD), (f" · {hit['type']}", DIM), f" — {hit['snippet']}")
    reached = options.offset + len(reply["hits"])
    if not reply["hits"]:
        ctl.tell("no entry of a past session shares a word with this")
    elif reached < reply["total"]:
        ctl.tell(f"{len(reply['hits'])} of {reply['total']} entries; --offset {reached} for the next")
    for line in reply.get("notice", "").splitlines():
        if "read so far" in line or "not searched" in line:
            ctl.tell(line.strip("[]"))
    return OK


def _show(ctl: Ctl, address: str) -> int:
    reply = ctl.placed("history.read", url=address)
    if ctl.is_json:
        ctl.out.json(reply)
    else:
        ctl.out.text(reply["text"] + "\n")
    return OK
