"""Exit codes. Law: an error becomes a number here and nowhere else (SPEC section 14)."""

from __future__ import annotations

from memd_client import errors

OK = 0
FINDING = 1
USAGE = 2
NOT_FOUND = 3
REFUSED = 4
NO_DAEMON = 5
STORAGE = 6
INTERRUPTED = 130
READER_GONE = 141
"""What a shell shows for a program that a closed pipe ended."""

_BY_KIND = {
    "refused": REFUSED,
    "not_found": NOT_FOUND,
    "not_root": REFUSED,
    "save_cap": REFUSED,
    "unreadable": STORAGE,
    "conflict": REFUSED,
    "busy": STORAGE,
    "storage": STORAGE,
    "suspended": REFUSED,
    "too_large": REFUSED,
    "protocol": NO_DAEMON,  # there is no daemon that this memctl can talk to
    "read_only": REFUSED,
    "parse_error": USAGE,
    "invalid_request": USAGE,
    "method_not_found": NO_DAEMON,  # the daemon that runs is older than this memctl
    "invalid_params": USAGE,
}


class Stop(Exception):  # noqa: N818 - it ends a command; the code says whether that is an error
    """Ends the command with exit code `code`; `text` is for stderr."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Usage(Stop):
    """The command line is wrong."""

    def __init__(self, text: str) -> None:
        super().__init__(USAGE, text)


def code_of(error: errors.MemdError) -> int:
    """The exit code of what the daemon answered, or of what kept the client from asking it."""
    if isinstance(error, errors.Unavailable | errors.BadPlace):
        return NO_DAEMON
    return _BY_KIND.get(error.kind, STORAGE)
