"""Waiting for a condition. Law: a test never sleeps for a time that somebody guessed."""

import threading
import time
from collections.abc import Callable


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Return as soon as `condition` holds. Raises AssertionError when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        pause.wait(0.005)
