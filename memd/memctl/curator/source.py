"""What the curator asks the daemon. Law: a delete is of the very text it was asked about.

One connection for calls, used by one thread at a time; another that listens. SPEC sections 7 and 14.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import memd_client
from memd.memctl.curator.state import Key, Note
from memd_client.errors import ConnectionLost, MemdError, NoAnswer, NotFound

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

EVERY = (1 << 53) - 1
LISTENS_S = 1.0
"""Seconds after which a listener looks whether it is still wanted."""


class Source:
    """The stores of a directory, as the daemon tells of them."""

    def __init__(self, directory: str, *, may_start: bool) -> None:
        self.directory = directory
        self.may_start = may_start
        self._lock = threading.Lock()
        self._connection: memd_client.Connection | None = None

    def notes(self) -> list[Note]:
        """Every note of both stores. Raises the client's errors."""
        return [Note.of(row) for row in self._call("memory.list")["notes"]]

    def found(self, query: str) -> list[Key]:
        """The notes that share a word with a query, best first."""
        hits = self._call("memory.search", query=query, limit=EVERY)["hits"]
        return [(hit["scope"], hit["name"]) for hit in hits]

    def text(self, note: Note) -> str:
        """The exact text of the version of a note that is shown; of an older one by its hash."""
        shown = self._call("memory.show", name=note.name, scope=note.scope, hash=note.hash)
        return str(shown["markdown"])

    def history(self, note: Note) -> list[dict[str, Any]]:
        """The journal's records of a note, newest first."""
        records = self._call("memory.log", name=note.name, limit=EVERY)["records"]
        return [record for record in records if record["scope"] == note.scope]

    def forget(self, note: Note) -> dict[str, Any] | None:
        """Forget a note if it still has the text that was asked about; the receipt, None where it has not."""
        try:
            now = self._call("memory.show", name=note.name, scope=note.scope)
        except NotFound:
            return None
        if (now["name"], now["hash"]) != (note.name, note.hash):
            return None
        receipt: dict[str, Any] = self._call("memory.forget", name=note.name, scope=note.scope)["receipt"]
        return receipt

    def listen(self, tell: Callable[[], object], is_wanted: Callable[[], bool]) -> None:
        """Call `tell` for every change of the stores until it is not wanted any more. Never raises."""
        while is_wanted():
            try:
                with (
                    memd_client.Connection(os.environ, autostart=False) as connection,
                    connection.activity(cwd=self.directory, timeout=LISTENS_S) as activity,
                ):
                    tell()  # what happened while nobody listened
                    self._heard(activity, tell, is_wanted)
            except MemdError:
                threading.Event().wait(LISTENS_S)

    def close(self) -> None:
        """Hang up."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @staticmethod
    def _heard(activity: Any, tell: Callable[[], object], is_wanted: Callable[[], bool]) -> None:
        while is_wanted():
            try:
                next(activity)
            except NoAnswer:
                continue
            except ConnectionLost:
                return
            tell()

    def _call(self, method: str, **params: object) -> dict[str, Any]:
        with self._lock:
            if self._connection is None:
                self._connection = memd_client.Connection(os.environ, autostart=self.may_start)
            return self._connection.call(method, {"cwd": self.directory, **params})
