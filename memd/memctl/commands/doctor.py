"""Look at everything memd needs and say what is wrong, why, and what mends it; exits 1 if anything is.

The places and their permissions, the config, the service, the daemon and how it watches, the stores of
this directory, Claude Code's notes. No daemon is started for it: one that is not there is a finding, and
what needs none is looked at all the same. --fix mends what is safe to mend, which loses nothing: open
permissions, lines of MEMORY.md that a note has lost or lacks, a daemon that does not run.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from memd.memctl.ctl import Ctl
from memd.memctl.exits import FINDING, OK, Stop
from memd.memctl.progress import Progress
from memd.memctl.terminal import BOLD, DIM, GREEN, YELLOW
from memd.memctl.ward import daemon, places, service, stores
from memd.memctl.ward.finding import Finding, Row
from memd_client.errors import MemdError

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

USAGE = "[--fix]"
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--fix", action="store_true", help="mend what is safe to mend")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    may_start, ctl.may_start = ctl.may_start, False
    findings, rows = look(ctl)
    mended: list[Finding] = []
    if options.fix:
        ctl.may_start = may_start
        mended = list(mend(findings))
        ctl.may_start = False
        findings, rows = look(ctl)
    if ctl.is_json:
        ctl.out.json(report(findings, rows, mended))
    else:
        show(ctl, findings, rows, mended)
    return FINDING if findings else OK


def look(ctl: Ctl) -> tuple[list[Finding], list[Row]]:
    """Everything that is wrong, and what is told in any case."""
    found = [*places.look(), *service.look()]
    row = Row("claude-memory", "not looked at: no daemon answers", {})
    if any(one.kind in ("socket", "home") for one in found):
        return found, [row]
    absent = list(daemon.look(ctl))
    found += absent
    if not any(one.kind == "daemon" for one in absent):
        try:
            with Progress(ctl.err, "looking at the stores"):
                found += stores.look(ctl)
                row, more = stores.claude(ctl)
            found += more
        except (MemdError, Stop) as error:
            text = error.message if isinstance(error, MemdError) else error.text
            found.append(Finding("stores", text, "mend that, then look again"))
    return found, [row]


def mend(findings: list[Finding]) -> Iterator[Finding]:
    """Mend what may be mended, each way once; what was."""
    done = set()
    for one in findings:
        if one.mend is None or one.kind in done:
            continue
        done.add(one.kind)
        try:
            one.mend()
        except (MemdError, Stop, OSError):
            continue  # it is found again, with its remedy
        yield one


def report(findings: list[Finding], rows: list[Row], mended: list[Finding]) -> dict[str, Any]:
    """What was found as JSON."""
    return {
        "ok": not findings,
        "findings": [
            {
                "number": number,
                "kind": one.kind,
                "cause": one.cause,
                "remedy": one.remedy,
                "fixable": one.mend is not None,
            }
            for number, one in enumerate(findings, 1)
        ],
        "fixed": [{"kind": one.kind, "cause": one.cause} for one in mended],
        "rows": {row.name: row.counts for row in rows},
    }


def show(ctl: Ctl, findings: list[Finding], rows: list[Row], mended: list[Finding]) -> None:
    """What was found for a person."""
    for one in mended:
        ctl.out.line(("mended ", GREEN), (one.kind, BOLD), f": {one.cause}")
    for number, one in enumerate(findings, 1):
        ctl.out.line((f"{number}. ", DIM), (one.kind, YELLOW), f": {one.cause}")
        ctl.out.line(f"   {one.remedy}")
    for row in rows:
        ctl.out.line((row.name, BOLD), f": {row.says}")
    if not findings:
        ctl.out.line(("all is well", GREEN))
    elif any(one.mend is not None for one in findings):
        ctl.tell("`memctl doctor --fix` mends what is safe to mend")
