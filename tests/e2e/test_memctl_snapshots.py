"""What every command prints, on a terminal of 72 cells and in a pipe, against a real daemon. SPEC section 14.

The snapshots are `snapshots/terminal.txt` and `snapshots/pipe.txt`; what differs from run to run (times, hashes,
places) stands in them as `<time>`, `<hash>`, `<root>`. `python -m tests.e2e.test_memctl_snapshots` writes them anew:
to be looked at, line by line, before they are committed.
"""

import re
import sys
from pathlib import Path

import pytest

from memd.memctl.front import COMMANDS
from support.daemon import Daemon, running_daemon
from support.memctl_program import memctl, memctl_on_terminal
from support.transcripts import claude

SNAPSHOTS = Path(__file__).parent / "snapshots"
WIDTH = 72
NOTE = "---\nname: {}\ndescription: {}\ntype: project\n---\n"

CRANE = ("save", "--type", "project", "--name", "crane", "--description")

DAY: tuple[tuple[str, ...], ...] = (
    ("list",),
    ("remember", "--type", "feedback", "Never force push to the harbour branches; open a new pull request instead"),
    (*CRANE, "The crane stalls at low tide"),
    (
        "save",
        "--type",
        "project",
        "--name",
        "crane",
        "--description",
        "The crane stalls at low tide; wait for the gauge",
    ),
    (
        "--scope",
        "global",
        "save",
        "--type",
        "user",
        "--name",
        "crane",
        "--description",
        "I steer cranes for a living",
    ),
    ("list",),
    ("--scope", "global", "list"),
    ("show", "crane"),
    ("search", "crane tide"),
    ("search", "nothing-of-the-kind"),
    ("focus", "why does the crane stall at low tide?"),
    ("index",),
    ("log", "crane"),
    ("diff", "crane"),
    ("diff", "absent"),
    ("rename", "crane", "harbour-crane"),
    ("move", "harbour-crane", "global"),
    ("import", "incoming", "--dry-run"),
    ("import", "incoming", "--yes"),
    ("import-claude", "--dry-run"),
    ("import-claude", "--yes"),
    ("import-kimi", "--dry-run"),
    ("history", "search", "lighthouse"),
    ("history", "show", "history://session-1/entry-1"),
    ("stores",),
    ("adopt", "--nowhere--"),
    ("stats",),
    ("check",),
    ("verify",),
    ("rebuild", "--dry-run"),
    ("reconcile",),
    ("doctor",),
    ("status",),
    ("version",),
    ("completion", "tcsh"),
    ("service", "reboot"),
    ("edit", "harbour-crane"),
    ("restore", "buoy", "1234"),
    ("forget", "harbour-crane", "--yes"),
    ("forget", "absent", "--yes"),
    ("lst",),
    ("start",),
    ("stop",),
    ("--no-autostart", "list"),
)
"""A day with memctl."""

ELSEWHERE = {
    "browse": "a screen of its own: test_browse.py",
    "logs": "the daemon's own words: test_memctl_commands.py",
    "hook": "events on standard input: the tests of hooks",
    "mcp": "a server on its standard streams: test_mcp.py",
    "setup": "other programs' configs: test_setup.py",
    "restart": "two daemons: test_lives.py",
}
"""The commands that are not in it, and where they are."""


def day(daemon: Daemon, *, on_terminal: bool) -> str:
    """What a day's commands print, and how they end."""
    (daemon.repo / "incoming").mkdir()
    (daemon.repo / "incoming" / "buoy.md").write_text(
        "---\nname: buoy\ndescription: The buoy is lit\ntype: project\n---\n"
    )
    session = daemon.user / ".claude" / "projects" / str(daemon.repo).translate(str.maketrans("/._", "---"))
    (session / "memory").mkdir(parents=True)
    (session / "memory" / "lamp.md").write_text(NOTE.format("lamp", "The lamp turns"))
    said = claude("user", "when is the lighthouse painted?", cwd=daemon.repo, uuid_="entry-1")
    (session / "session-1.jsonl").write_text(said)
    env = {**daemon.env, "EDITOR": "true", "PAGER": "", "COLUMNS": str(WIDTH), "MEMD_LAUNCHED": ""}
    blocks = []
    for arguments in DAY:
        if on_terminal:
            ran = memctl_on_terminal(env, "-C", str(daemon.repo), *arguments, width=WIDTH)
        else:
            ran = memctl(env, *arguments, cwd=daemon.repo)
        words = " ".join(f"'{word}'" if " " in word else word for word in arguments)
        shown = normal(daemon, ran.out).replace("\x1b", "␛"), normal(daemon, ran.err).replace("\x1b", "␛")
        errors = "".join(f"! {line}\n" for line in shown[1].splitlines())
        blocks.append(f"$ memctl {words}\n{shown[0]}{errors}[{ran.code}]\n")
    return "\n".join(blocks)


def normal(daemon: Daemon, text: str) -> str:
    """A text without what differs from run to run."""
    for pattern, stands in (
        (re.escape(str(daemon.root)), "<root>"),
        (re.escape(str(daemon.root)[1:].replace("/", "-")), "<root>"),
        (r"sha256:[0-9a-f]{64}", "<hash>"),
        (r"\b[0-9a-f]{12}\b", "<hash>"),
        (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[+-]\d{4})?", "<time>"),
        (r"\bpid(\s+)\d+", r"pid\1<pid>"),
        (r"\b[A-Z][a-z]+day, \d+ [A-Z][a-z]+ \d{4}", "<day>"),
        (r"(?<=  )\d\d:\d\d:\d\d", "<time>"),
        (r"^(up|last event|last scan)( +|\t).*", r"\1\2<span>"),
        (r"(·{41})█|(·{40})█·", "<days>"),
        (r"[ \t]+\n", "\n"),
    ):
        text = re.sub(pattern, stands, text, flags=re.MULTILINE)
    return text


def taken(*, on_terminal: bool) -> str:
    """A day with a new daemon."""
    with running_daemon() as daemon:
        return day(daemon, on_terminal=on_terminal)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("where", ["terminal", "pipe"])
def test_every_command_prints_what_it_did(where: str) -> None:
    assert taken(on_terminal=where == "terminal") == (SNAPSHOTS / f"{where}.txt").read_text()


def test_every_command_is_in_the_day_or_has_a_test_of_its_own() -> None:
    words = {next(word for word in arguments if word in COMMANDS) for arguments in DAY if {*arguments} & {*COMMANDS}}
    assert words | set(ELSEWHERE) == set(COMMANDS)


def main() -> None:
    """Write the snapshots anew."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    SNAPSHOTS.mkdir(exist_ok=True)
    for where in ("terminal", "pipe"):
        (SNAPSHOTS / f"{where}.txt").write_text(taken(on_terminal=where == "terminal"))


if __name__ == "__main__":
    main()
