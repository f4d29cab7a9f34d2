"""What a command works with. Law: it reaches the daemon, the outputs and the person through its `Ctl` only.

A person works on both stores of a directory: a call that names a place carries `cwd`. Under `MEMD_SESSION` an agent
types, and it carries `session`, which is started when the daemon does not know it (SPEC sections 7 and 14).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import memd_client
from memd.memctl.exits import Usage
from memd.memctl.terminal import YELLOW, ErrorStream, Stream
from memd_client.errors import NotFound

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from memd_client.session import Session

SCOPES = ("repo", "global")
EVERY = (1 << 53) - 1
"""The largest `limit` the wire takes: no list is cut."""

_PATIENT = frozenset(
    {
        "memory.check",
        "memory.import",
        "memory.import_claude",
        "memory.import_kimi",
        "memory.rebuild",
        "memory.reconcile",
        "memory.verify",
        "store.adopt",
    }
)
"""Verbs that read a whole store: a person waits for them as long as they take."""
_TIMEOUT = 30.0
"""Seconds any other answer may take."""


def given(**params: object) -> dict[str, object]:
    """The parameters that were given, that is, are not None."""
    return {key: value for key, value in params.items() if value is not None}


class Ctl:
    """One run of a command: its outputs, its place and its connection. A context manager."""

    def __init__(
        self,
        out: Stream,
        err: ErrorStream,
        *,
        directory: str | None,
        scope: str | None,
        is_json: bool,
        may_start: bool,
    ) -> None:
        self.out = out
        self.err = err
        self.directory = directory
        self.scope = scope
        self.is_json = is_json
        self.may_start = may_start
        self._connection: memd_client.Connection | None = None
        self._session: Session | None = None

    def __enter__(self) -> Ctl:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()

    def memory(self, verb: str, **params: object) -> dict[str, Any]:
        """The reply of `memory.<verb>` on the stores of the place. Raises the client's errors and `Usage`."""
        return self.placed(f"memory.{verb}", **params)

    def placed(self, method: str, **params: object) -> dict[str, Any]:
        """The reply of `method` in the session of `MEMD_SESSION`, else on this directory's stores."""
        if not os.environ.get("MEMD_SESSION"):
            return self.call(method, {"cwd": self.cwd(), **params})
        if self._session is None:
            from memd_client.session import of_environment  # a person does without

            self._session = of_environment(os.environ, self.call, self.cwd)
        return self._session.call(method, params)

    def note(self, verb: str, name: str, **params: object) -> dict[str, Any]:
        """The reply of `memory.<verb>` on the note `name`; an error that there is none says what to try."""
        try:
            return self.memory(verb, name=name, **params)
        except NotFound as error:
            error.add_note(self.search_hint(name))
            raise

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The reply of `method`. Raises the client's errors."""
        if self._connection is None:
            self._connection = memd_client.Connection(
                autostart=self.may_start, timeout=None if method in _PATIENT else _TIMEOUT
            )
        return self._connection.call(method, params)

    def hang_up(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def cwd(self) -> str:
        """The real path of the directory the command works in. Raises `Usage` when it is none."""
        return _real(self.directory or ".", "the current directory" if self.directory is None else self.directory)

    def at(self, directory: str) -> str:
        """The real path of a directory, its path taken from the directory of `-C`. Raises `Usage` when it is none."""
        return _real(os.path.join(self.directory or "", directory), directory)  # noqa: PTH118 - as below

    def open(self, path: str) -> BinaryIO:
        """A file to read, its path taken from the directory of `-C`. Raises OSError."""
        where = os.path.join(self.directory or "", path)  # noqa: PTH118 - as below
        return open(where, "rb")  # noqa: PTH123 - as below

    def search_hint(self, name: str) -> str:
        """What to try when there is no note of that name."""
        words = "".join(one if one.isalnum() else " " for one in name).split()
        return f"try: memctl search {' '.join(words)}" if words else "try: memctl list"

    def per_scope(self, reply: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The stores of a reply that has one row for each, those that `--scope` wants."""
        return ((scope, reply[scope]) for scope in SCOPES if self.scope in (None, scope))

    def tell(self, text: str) -> None:
        """Say something about the data on stderr."""
        self.err.line(text)

    def warn(self, text: str) -> None:
        """Say on stderr what a person should know before the data is trusted."""
        self.err.line(("warning: ", YELLOW), text)

    def has_person(self) -> bool:
        """Whether somebody can be asked: they see stderr and type on stdin."""
        return sys.stdin is not None and sys.stdin.isatty() and self.err.is_terminal

    def confirm(self, question: str) -> bool:
        """Ask; only a line of `y` or `yes` is a yes. To be called while `has_person`."""
        self.err.ask(f"{question} [y/N] ")
        answer = sys.stdin.readline()
        if answer.endswith("\n"):
            return answer.strip().lower() in {"y", "yes"}
        self.err.line()
        return False


def _real(directory: str, what: str) -> str:
    """The real path of a directory that an error calls `what`. Raises `Usage`."""
    try:
        path = os.path.realpath(directory, strict=True)
    except OSError as error:
        raise Usage(f"{what}: {error.strerror}") from None
    if not os.path.isdir(path):  # noqa: PTH112 - pathlib costs 6 ms, a third of a run
        raise Usage(f"{what}: not a directory")
    return path
