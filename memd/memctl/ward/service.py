"""systemd's units: whether they fit the memd that looks. Law: who has not installed them is not told to.

SPEC section 15.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from memd.memctl import units
from memd.memctl.ward.finding import Finding
from memd_client import systemd


def look() -> Iterator[Finding]:
    """What is wrong with the units."""
    for unit in (systemd.SOCKET, systemd.SERVICE):
        path = f"{systemd.own_directory(os.environ)}/{unit}"
        try:
            with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs 6 ms, a third of a run
                text = file.read()
        except OSError:
            continue
        if not units.is_ours(text):
            continue
        program = _program(text)
        if program is not None and not os.access(program, os.X_OK):
            yield Finding("service", f"{unit} runs {program}, which is not there", "`memctl service install` again")


def _program(text: str) -> str | None:
    """The program that a unit runs; None for one that runs none."""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name == "ExecStart":
            words = shlex.split(value.lstrip("-:@+!"))
            return words[0].replace("%%", "%") if words else None
    return None
