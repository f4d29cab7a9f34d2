"""Text that is given as a file or on standard input. Law: what is no text is refused before anything is sent."""

from __future__ import annotations

import sys

from memd.memctl.ctl import Ctl
from memd.memctl.exits import REFUSED, Stop, Usage

STDIN = "-"
READ_MAX = 1 << 20
"""Bytes read of a text; no request is longer."""


def text_of(ctl: Ctl, source: str, bound: str) -> str:
    """The text of a file, `-` for standard input; `bound` is said of one that is too long.

    Raises `Usage` where it does not read, `Stop` when it is no text.
    """
    shown = "standard input" if source == STDIN else source
    try:
        raw = _read(ctl, source)
    except OSError as error:
        raise Usage(f"{shown}: {error.strerror}") from None
    if len(raw) > READ_MAX:
        raise Stop(REFUSED, f"{shown}: over {READ_MAX:,} bytes; {bound}")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Stop(REFUSED, f"{shown}: not UTF-8 at byte {error.start + 1}") from None


def _read(ctl: Ctl, source: str) -> bytes:
    """The bytes of a source, at most one more than a text may have. Raises OSError."""
    if source != STDIN:
        with ctl.open(source) as file:
            return file.read(READ_MAX + 1)
    return b"" if sys.stdin is None else sys.stdin.buffer.read(READ_MAX + 1)
