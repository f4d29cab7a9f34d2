"""Print what changed in a note, as a unified diff: its last change, or from one version to another.

`memctl log NAME` prints the hashes; the beginning of one is enough. Without --to it ends at the current
text, without --from it begins at the version before that end.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.arguments import short_hash
from memd.memctl.ctl import Ctl, given
from memd.memctl.exits import OK
from memd.memctl.terminal import BOLD, CYAN, GREEN, RED
from memd.memctl.versions import whole

USAGE = "NAME [--from HASH] [--to HASH]"
WORDS = (1, 1)
PAGES = True

HEADER_LINES = 2
"""Lines that name the two versions."""

_STYLES = {"+": GREEN, "-": RED, "@": CYAN}


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--from", dest="before", type=short_hash, metavar="HASH", help="the version to begin at")
    parser.add_argument("--to", type=short_hash, metavar="HASH", help="the version to end at")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, which is no other when there is a difference."""
    [name] = words
    ends = given(**{"from": options.before, "to": options.to})
    versions = {end: whole(ctl, name, str(beginning)) for end, beginning in ends.items()}
    reply = ctl.note("diff", name, **versions, **given(scope=ctl.scope))
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    if not reply["diff"]:
        ctl.tell("no difference")
        return OK
    for number, line in enumerate(reply["diff"].removesuffix("\n").split("\n")):
        style = BOLD if number < HEADER_LINES else _STYLES.get(line[:1], "")
        ctl.out.text(f"{line}\n", style)
    return OK
