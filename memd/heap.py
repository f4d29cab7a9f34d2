"""The heap. Law: memory that memd no longer uses goes back to the system.

A crowd is served by many threads, and the C library keeps for each of them what it once had: after ten minutes of
crowds a daemon of 60 MB stays at 120 and grows on. What is free is given back at each minute's look.
"""

import sys
from collections.abc import Callable
from functools import cache


def give_back() -> bool:
    """Return free pages to the system, a few milliseconds' work; False where there are none or no call for it."""
    trim = _trim()
    return trim is not None and trim(0) != 0


@cache
def _trim() -> Callable[[int], int] | None:
    if sys.platform != "linux":
        return None
    import ctypes  # 4 ms, and first wanted a minute after the start

    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library than GNU's
        return None
