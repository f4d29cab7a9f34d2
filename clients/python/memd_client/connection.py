"""The client's connection. Law: a read is retried once when the daemon went away; a write never is.

A connection opens by itself, starting the daemon when nobody answers (SPEC 13), and opens again when it finds
its socket ended: after a daemon's restart, or in a forked child. Only reads and what had not been sent go to
the new socket; of a write that was sent nobody can know whether it was carried out.

A client refuses a daemon of another home. A socket inside the home proves it; only for one outside
(`MEMD_SOCKET`, or the one in the runtime directory) does opening ask `daemon.hello`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from memd_client.errors import ConnectionLost, OtherHome, Unavailable
from memd_client.where import home, home_id, log_path, socket_path
from memd_client.wire import NotSent, Wire, knock

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    from memd_client.listening import Activity

TIMEOUT = 30.0
"""Seconds an answer may take."""

PROTOCOL = 1

READS = frozenset(
    {
        "daemon.hello",
        "daemon.status",
        "history.read",
        "history.search",
        "memory.check",
        "memory.diff",
        "memory.index",
        "memory.list",
        "memory.log",
        "memory.read",
        "memory.search",
        "memory.show",
        "memory.stats",
        "memory.verify",
        "rpc.discover",
        "store.list",
    }
)
"""The verbs that may be sent twice. `memory.focus` joins them when it freezes nothing."""


class Connection:
    """Calls to one daemon, one at a time; not for two threads at once. A context manager.

    It opens at the first call. `timeout` is in seconds for each call, None waits while the daemon lives; with
    `autostart=False` (or `MEMD_NO_AUTOSTART=1`) a daemon that is not there is `Unavailable`.
    """

    def __init__(
        self,
        env: Mapping[str, str] = os.environ,
        *,
        autostart: bool = True,
        timeout: float | None = TIMEOUT,
        check_home: bool = True,
    ) -> None:
        self._env = env
        self._autostart = autostart
        self._timeout = timeout
        self._check_home = check_home
        self._wire: Wire | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> None:
        """Make sure that a daemon answers. Raises `Unavailable` or `BadPlace`."""
        self._usable_wire()

    def close(self) -> None:
        """Close the socket. May be repeated; a later call opens again."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of `method`, as the daemon's JSON object (SPEC 7).

        Raises one class of `memd_client.errors` per kind of error: `Refused`, `NotFound`, …; `Unavailable`
        when nobody answers, its subclass `ConnectionLost` or `NoAnswer` when an answer stayed away.
        """
        params = {} if params is None else params
        wire = self._usable_wire()
        try:
            return wire.call(method, params, self._timeout)
        except ConnectionLost as lost:
            if not isinstance(lost, NotSent) and not is_read(method, params):
                raise ConnectionLost(f"{lost.message}; it may have been carried out all the same") from lost
        return self._usable_wire().call(method, params, self._timeout)

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send `method` and want no answer. Raises `Unavailable` as `call` does."""
        self._usable_wire().notify(method, {} if params is None else params, self._timeout)

    def activity(
        self, *, cwd: str | None = None, session: str | None = None, timeout: float | None = None
    ) -> Activity:
        """What happens from now on in one place, or everywhere: `for event in memd.activity(cwd=…): …`.

        It goes over a connection of its own, so this one's calls and it do not wait for each other. `timeout` is
        in seconds for each event. Raises as `call` does; close it, or use it as a context manager.
        """
        from memd_client.listening import Activity  # most callers never listen

        params = {"cwd": cwd, "session": session}
        wire = self._new_wire()
        try:
            given = {name: value for name, value in params.items() if value is not None}
            wire.call("activity.subscribe", given, self._timeout)
        except BaseException:
            wire.close()
            raise
        return Activity(wire, timeout)

    def hello(self, *, check_home: bool = True) -> dict[str, Any]:
        """What `daemon.hello` answers: version, protocols, capabilities, pid, home (SPEC 7).

        Raises `NoProtocol`, and `OtherHome` when the daemon serves another home and `check_home` is true.
        """
        answer = self.call("daemon.hello", {"protocol": PROTOCOL})
        if check_home:
            self._refuse_other_home(answer)
        return answer

    def _usable_wire(self) -> Wire:
        wire = self._wire
        if wire is not None and wire.path == socket_path(self._env) and wire.is_usable():
            return wire
        self.close()
        try:
            self._wire = self._new_wire()
        except ConnectionLost:  # it was let in by a daemon that then went away; nothing of ours was sent yet
            self._wire = self._new_wire()
        return self._wire

    def _new_wire(self) -> Wire:
        wire = reach(self._env, autostart=self._autostart)
        if not self._check_home or wire.path.startswith(home(self._env) + "/"):
            return wire
        try:
            self._refuse_other_home(wire.call("daemon.hello", {"protocol": PROTOCOL}, self._timeout))
        except BaseException:
            wire.close()
            raise
        return wire

    def _refuse_other_home(self, answer: dict[str, Any]) -> None:
        if answer.get("home") != home_id(self._env):
            raise OtherHome(
                f"the daemon at {socket_path(self._env)} serves another home than {home(self._env)};"
                " give each home a socket of its own (MEMD_HOME alone does)"
            )


def connect(
    env: Mapping[str, str] = os.environ,
    *,
    autostart: bool = True,
    timeout: float | None = TIMEOUT,
    check_home: bool = True,
) -> Connection:
    """An open `Connection`; `with connect() as c: c.call("memory.search", {…})`. Raises `Unavailable`."""
    connection = Connection(env, autostart=autostart, timeout=timeout, check_home=check_home)
    connection.open()
    return connection


def is_read(method: str, params: Mapping[str, object]) -> bool:
    """Whether sending the request twice does no harm."""
    return method in READS or (method == "memory.focus" and "session" not in params)


def reach(env: Mapping[str, str], *, autostart: bool) -> Wire:
    """A wire to the daemon, which is started when nobody answers and `autostart` allows it.

    Raises `Unavailable`, saying why and what to do, and `BadPlace`. SPEC 13.
    """
    path = socket_path(env)
    try:
        return knock(path)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        reason = error.strerror
    if not autostart or env.get("MEMD_NO_AUTOSTART", "") not in {"", "0"}:
        raise Unavailable(
            f"no memd answers at {path} ({reason}) and starting one is switched off;"
            f" start it with `memctl start` or `memd`; its log: {log_path(env)}"
        )
    from memd_client import starting  # wanted once in a daemon's life

    return starting.start(env, path)
