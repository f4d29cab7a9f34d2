"""The heap. Law: memory that memd no longer uses goes back to the system.

A crowd is served by many threads, and the C library keeps for each of them what it once had: after ten minutes of
crowds a daemon of 60 MB stays at 120 and grows on. Threads share a few arenas, since one interpreter lets one of them
work at a time anyway, and what is free is given back at each minute's look.
"""

import ctypes  # numpy has imported it already
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final

_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2


def keep_small() -> bool:
    """Let the threads to come share arenas; False where there are none or no call for it."""
    option = _library("mallopt")
    return option is not None and option(_M_ARENA_MAX, _ARENAS) != 0


def give_back() -> bool:
    """Return free pages to the system, a few milliseconds' work; False where there are none or no call for it."""
    trim = _library("malloc_trim")
    return trim is not None and trim(0) != 0


@cache
def _library(call: str) -> Callable[..., Any] | None:
    """A call of the C library, None where it has none of that name."""
    if sys.platform != "linux":
        return None
    try:
        return getattr(ctypes.CDLL(None), call)  # type: ignore[no-any-return]
    except (OSError, AttributeError):  # another C library than GNU's
        return None
