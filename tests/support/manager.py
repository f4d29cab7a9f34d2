"""A service manager as small as can be: it hands a socket over, and hears reports. SPEC section 15.

Law: what a daemon gets from it is what systemd gives, byte for byte."""

import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from support.daemon import Daemon
from support.waiting import until

EXEC = """
import os, sys
count, sockets, command = sys.argv[1], [int(fd) for fd in sys.argv[2].split(",") if fd], sys.argv[3:]
for at, fd in enumerate(sockets):
    os.dup2(fd, 3 + at)
os.environ |= {"LISTEN_FDS": count, "LISTEN_PID": os.environ.get("LISTEN_PID") or str(os.getpid())}
os.execv(command[0], command)
"""


class Reported:
    """What a daemon told its manager, in order."""

    def __init__(self, sock: socket.socket, address: str) -> None:
        self.address = address
        self.lines: list[str] = []
        self._sock = sock

    def hear(self) -> list[str]:
        """Every line that has come by now."""
        while True:
            try:
                self.lines += self._sock.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self.lines

    def wait_for(self, line: str, times: int = 1) -> None:
        """Return once a line has come so often."""
        until(lambda: self.hear().count(line) >= times)


@contextmanager
def listening_for_reports(address: str) -> Iterator[Reported]:
    """An address for `NOTIFY_SOCKET`; one that begins with `@` has no file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("\0" + address[1:] if address.startswith("@") else address)
        sock.setblocking(False)
        yield Reported(sock, address)


def take_door(path: Path) -> socket.socket:
    """A socket that listens at `path`, whatever was there: as systemd takes it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    sock.listen(64)
    return sock


def activated(
    daemon: Daemon, *socks: socket.socket, count: str | None = None, **variables: str
) -> "subprocess.Popen[bytes]":
    """The daemon's process, started with these sockets handed over."""
    given: Sequence[str] = [str(sock.fileno()) for sock in socks]
    with (daemon.root / "stderr").open("ab") as log:
        daemon.process = subprocess.Popen(
            [sys.executable, "-c", EXEC, count or str(len(socks)), ",".join(given), *daemon.command],
            env={**daemon.env, **variables},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stderr=log,
            pass_fds=[sock.fileno() for sock in socks],
        )
    return daemon.process


def held_files(pid: int) -> list[str]:
    """What a process has open, as the kernel names it."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it closed that one meanwhile
            found.append(str(link.readlink()))
    return found
