"""Print what the daemon said of itself: from systemd's journal where it is a service, else from its file."""

from __future__ import annotations

import os
import shutil
import subprocess
from argparse import ArgumentParser, Namespace

import memd_client
from memd.memctl.arguments import count
from memd.memctl.ctl import Ctl
from memd.memctl.exits import FINDING, OK, Stop
from memd_client import systemd
from memd_client.where import log_path

USAGE = "[-n N] [-f]"
WORDS = (0, 0)

LINES = 50


def options(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("-n", "--lines", type=count, default=LINES, metavar="N", help=f"how many ({LINES})")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is said from now on")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 1 when there is no log."""
    path = log_path()
    program = shutil.which("journalctl")
    if program and systemd.is_installed(os.environ, memd_client.socket_path()):
        ctl.tell(f"the journal of {systemd.SERVICE}:")
        command = [program, "--user", f"--unit={systemd.SERVICE}", "--no-pager", "--output=short-iso"]
        return _show(ctl, [*command, f"--lines={options.lines}", *(["--follow"] if options.follow else [])])
    if not os.path.exists(path):  # noqa: PTH110 - pathlib costs 6 ms, a third of a run
        raise Stop(FINDING, f"there is no {path}: no client has started a daemon; one that you start says it to you")
    ctl.tell(f"{path}:")
    return _show(ctl, ["tail", "-n", str(options.lines), *(["-F"] if options.follow else []), "--", path])


def _show(ctl: Ctl, command: list[str]) -> int:
    """Hand on a program's lines as they come."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:  # noqa: S603 - ours
        assert process.stdout is not None  # noqa: S101 - it was asked for
        try:
            for line in process.stdout:
                ctl.out.line(line.decode(errors="replace").rstrip("\n"))
                ctl.out.flush()
        except BaseException:
            process.terminate()
            raise
    return OK if process.returncode == 0 else FINDING
