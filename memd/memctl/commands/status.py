"""Print how the daemon is. Exits 5 when none runs: it is not started for this."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import NO_DAEMON, OK, Stop
from memd.memctl.running import is_idle
from memd.memctl.terminal import BOLD, YELLOW, Cell

USAGE = ""
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    ctl.may_start = False
    if is_idle():
        raise Stop(NO_DAEMON, "memd does not run; systemd listens in its place, and the next call starts it")
    status = ctl.call("daemon.status")
    if ctl.is_json:
        ctl.out.json(status)
        return OK
    rows: list[list[Cell]] = [
        ["memd", (status["version"], BOLD)],
        ["pid", str(status["pid"])],
        ["up", _span(status["uptime_s"])],
        ["stores", str(status["stores"])],
        ["connections", str(status["connections"])],
        ["watching", "yes" if status["watching"] else "no"],
        ["last event", _ago(status["last_event_s"])],
        ["last scan", _ago(status["last_scan_s"])],
    ]
    rows += [["finding", (f"{one['kind']}: {one['reason']}", YELLOW)] for one in status["findings"]]
    ctl.out.table(rows)
    return OK


def _ago(seconds: float | None) -> str:
    return "never" if seconds is None else f"{_span(seconds)} ago"


def _span(seconds: float) -> str:
    """A span of time in its two largest units."""
    left = int(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, left = divmod(left, size)
        if number or (unit == "s" and not parts):
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])
