"""What happens to the notes, as the server passes it on. Law: a listener that hears nothing harms nobody.

A thread of its own waits on the daemon's activity; it starts no daemon, and asks again after a while, or when a call
has found one. Whoever was not heard meanwhile is made good by one change of the whole list. SPEC 7, 13.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

import memd_client
from memd_client.errors import MemdError
from memd_client.session import here

LIST_CHANGES = frozenset({"memory_write", "memory_delete", "memory_edit", "memory_import"})
NOTE_CHANGES = frozenset({"memory_write", "memory_update", "memory_delete", "memory_edit", "memory_import"})
WAIT_S = 30.0
"""Seconds after which a daemon that was not there is looked for again."""


class Listener:
    """Tells `tell(is_list, note)` of each change: whether the list changed, and which note (scope, name), if one."""

    def __init__(self, tell: Callable[[bool, tuple[str, str] | None], object]) -> None:
        self._tell = tell
        self._found = Event()
        self._is_over = False

    def start(self) -> None:
        """Listen from now on, while the process lives."""
        Thread(target=self._run, name="changes", daemon=True).start()

    def found(self) -> None:
        """A daemon answers: if nobody is heard yet, listen to it."""
        self._found.set()

    def close(self) -> None:
        """Tell nothing any more."""
        self._is_over = True
        self._found.set()

    def _run(self) -> None:
        is_first = True
        while not self._is_over:
            self._found.clear()
            try:
                with memd_client.Connection(autostart=False) as connection:
                    self._hear(connection, is_first)
            except (MemdError, OSError):
                pass  # it went away, or is not there
            is_first = False
            self._found.wait(WAIT_S)

    def _hear(self, connection: memd_client.Connection, is_first: bool) -> None:
        with connection.activity(cwd=here()) as activity:
            if not is_first:
                self._tell(True, None)
            for event in activity:
                if self._is_over:
                    return
                kind, pointer = event["event"], event.get("pointer")
                note = (pointer["scope"], pointer["name"]) if pointer else None
                if kind in NOTE_CHANGES:
                    self._tell(kind in LIST_CHANGES, note)
