"""The log: standard error, a line a record. Law: the daemon's own words, never a note's or an exception's text.

Each line has its priority in front, as the service manager reads it. A log that is `<home>/memd.log` is kept under
1 MiB here, since nobody rotates it. SPEC section 15.
"""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from memd.rpc import trace
from memd_client import starting

STDERR: Final = 2
LINE_MAX = 4096
"""Characters of one record; the rest is cut, so that a log stays within its bound."""

_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class LogLine(logging.Formatter):
    """One record, one line, its priority in front as the service manager reads it; no exception's text."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1]:
            text += f": {trace(record.exc_info[1])}"
        return f"<{_PRIORITIES.get(record.levelno, 5)}>{' '.join(text.splitlines())}"[:LINE_MAX]


class LogFile(logging.Handler):
    """Standard error; cut to its last lines when it is the log that nobody else keeps short.

    A line that does not go out, on a full disk say, is nobody's trouble, and does not wait to be tried again: what
    Python keeps for its own stream would have the process end with a failure.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LogLine())
        self.descriptor: int | None = None

    def keep_short(self, log: Path) -> None:
        """From now on, if standard error is that file."""
        try:
            if os.path.samestat(os.fstat(STDERR), log.stat()):
                self.descriptor = STDERR
        except OSError:
            self.descriptor = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        line = f"{self.format(record)}\n".encode(errors="backslashreplace")
        with suppress(OSError):
            os.write(STDERR, line)
        if self.descriptor is not None:
            try:
                starting.trim_log(self.descriptor)
            except OSError:  # it cannot be read or cut: then it is at least not asked again
                self.descriptor = None


def to_stderr() -> LogFile:
    """Have everything that is logged written to standard error, from the level info on."""
    handler = LogFile()
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    return handler
