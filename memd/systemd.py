"""The service manager: what it hands over, what it is told. Law: its whole protocol is here, and no other's trouble.

Nothing of it is needed: without its variables a daemon listens by itself and the reports go nowhere. They never wait
and never raise, since a manager that is stuck must not stop what it manages. SPEC section 15.
"""

import os
import socket
import stat
import time
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Final

FIRST_FD: Final = 3
"""The descriptor of the first socket that is handed over."""

_VARIABLES: Final = (
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
)


class HandedOverError(Exception):
    """What was handed over is not one listening Unix socket with a path; the text says what it is."""


class Reports:
    """What the manager is told of the daemon's life: one datagram each."""

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        """`watchdog_s`: the seconds after which a daemon that gave no sign of life is killed, None for never."""
        self._address = "\0" + address[1:] if address and address.startswith("@") else address
        self.watchdog_s = watchdog_s
        self._status = ""

    def ready(self, status: str) -> None:
        """The daemon listens, or has read its config again."""
        self._tell("READY=1", *self._news(status))

    def reloading(self) -> None:
        """The config is read again; `ready` follows."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str) -> None:
        """The end has begun."""
        self._tell("STOPPING=1", *self._news(status))

    def alive(self, status: str) -> None:
        """A sign of life for the watchdog."""
        self._tell("WATCHDOG=1", *self._news(status))

    def _news(self, status: str) -> tuple[str, ...]:
        """The line that a person sees, where it is another one than last."""
        if status == self._status:
            return ()
        self._status = status
        return (f"STATUS={' '.join(status.split())}",)

    def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto("\n".join(lines).encode(), self._address)


def reports(env: Mapping[str, str]) -> Reports:
    """The way to the manager of this process; one that tells nobody where there is none."""
    address = env.get("NOTIFY_SOCKET") or None
    watched = env.get("WATCHDOG_USEC", "")
    is_ours = env.get("WATCHDOG_PID") in (None, "", str(os.getpid()))
    microseconds = int(watched) if is_ours and watched.isdecimal() else 0
    return Reports(address, microseconds / 1e6 or None)


def handed_over(env: Mapping[str, str]) -> socket.socket | None:
    """The listening socket that the manager made for this process, None when it made none.

    `HandedOverError` for anything but exactly one Unix stream socket that listens at a path.
    """
    if env.get("LISTEN_PID") != str(os.getpid()):
        return None
    number = env.get("LISTEN_FDS", "")
    if number != "1":
        raise HandedOverError(f"{number or 'no number of'} sockets were handed over; memd takes one ListenStream=")
    try:
        is_socket = stat.S_ISSOCK(os.fstat(FIRST_FD).st_mode)
    except OSError as error:
        raise HandedOverError(f"the socket that was handed over does not open: {error.strerror}") from None
    if not is_socket:
        raise HandedOverError("what was handed over is no socket; memd takes a ListenStream=")
    os.set_inheritable(FIRST_FD, False)
    sock = socket.socket(fileno=FIRST_FD)
    try:
        _check(sock)
    except BaseException:
        sock.close()
        raise
    return sock


def forget(env: MutableMapping[str, str]) -> None:
    """Take out what was meant for this process alone, so that no other answers in its name."""
    for name in _VARIABLES:
        env.pop(name, None)


def _check(sock: socket.socket) -> None:
    if sock.family != socket.AF_UNIX:
        raise HandedOverError("a network socket was handed over; memd serves a Unix socket only")
    if sock.type != socket.SOCK_STREAM:
        raise HandedOverError("a datagram socket was handed over; memd takes a ListenStream=")
    if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise HandedOverError("a connection was handed over; memd takes the socket that listens: Accept=no")
    address = os.fsdecode(sock.getsockname())
    if not address.startswith("/"):
        raise HandedOverError("a socket without a path was handed over; clients look for a file")
