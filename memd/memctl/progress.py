"""How far a long command is. Law: it is told on a terminal only, from half a second on, and goes at the end."""

from __future__ import annotations

import threading

from memd.memctl.terminal import ErrorStream

AFTER = 0.5
"""Seconds that a command may take without a word."""


class Progress:
    """A context manager: while it runs, stderr's last line holds what it was told last."""

    def __init__(self, err: ErrorStream, text: str) -> None:
        self._err = err
        self._text = text
        self._is_shown = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(AFTER, self._begin)
        self._timer.daemon = True

    def __enter__(self) -> Progress:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.tell("")

    def tell(self, text: str) -> None:
        """Say how far it is."""
        with self._lock:
            self._text = text
            if self._is_shown:
                self._err.status(text)

    def _begin(self) -> None:
        with self._lock:
            self._is_shown = True
            if self._text:
                self._err.status(self._text)
