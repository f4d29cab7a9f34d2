"""What a screen cannot hold goes through a pager. Law: nothing is lost by it: without one, all of it is written.

`$PAGER` is taken, else less; an empty one, or `cat`, is none. less shows colours and leaves the text where it was.
SPEC section 14.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from memd.memctl.layout import cells_in

LESS = "FRX"
"""What less is told where the person does not tell it: to end on one screen, to show colours, to leave the text."""

_STYLES = re.compile(r"\x1b\[[0-9;]*m")


def paged(data: bytes, descriptor: int, width: int, env: Mapping[str, str]) -> bool:
    """Show text in the person's pager if the terminal cannot hold it; False where it is to be written instead."""
    command = env.get("PAGER", "less").strip()
    if command in ("", "cat") or env.get("TERM") == "dumb" or _fits(data, descriptor, width):
        return False
    # A person's own is a line for the shell, as man and git take it.
    words = ["/bin/sh", "-c", command] if "PAGER" in env else [command]
    try:
        pager = subprocess.Popen(words, stdin=subprocess.PIPE, env={"LESS": LESS, **env})  # noqa: S603 - the person's
    except OSError:
        return False
    with uninterrupted():  # Ctrl-C is the pager's own business: it ends when it wants to
        pager.communicate(data)
    # One that fails may have shown nothing; one that was killed was so by somebody who sees it.
    return pager.returncode <= 0 or pager.returncode > _SIGNALLED


_SIGNALLED = 128
"""What a shell adds to the signal that ended its command."""


@contextmanager
def uninterrupted() -> Iterator[None]:
    """While it lasts Ctrl-C ends the program that has the terminal, and not the one that waits for it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _fits(data: bytes, descriptor: int, width: int) -> bool:
    """Whether a terminal holds a text and the prompt after it, lines that are too long for one counted as several."""
    try:
        height = os.get_terminal_size(descriptor).lines
    except OSError:
        return True
    left = height - 1
    for line in _STYLES.sub("", data.decode(errors="replace")).splitlines():
        left -= max(1, -(-cells_in(line) // width))
        if left < 0:
            return False
    return True
