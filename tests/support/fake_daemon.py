"""A daemon of a few lines, for the client's tests. Law: it answers what the test says, byte for byte.

`FakeDaemon` runs in threads of the test. Run as a script it is a process that a client starts:
`fake_daemon.py SOCKET REPORT` appends one line of JSON about itself to REPORT, then answers every request with
its own parameters until `daemon.stop` or half a minute has passed.
"""

import json
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self


def result(request: dict[str, Any], value: object) -> bytes:
    """The reply line with `value` as its result."""
    return _line({"jsonrpc": "2.0", "id": request.get("id"), "result": value})


def failure(request: dict[str, Any], error: object) -> bytes:
    """The reply line with `error` as its error member."""
    return _line({"jsonrpc": "2.0", "id": request.get("id"), "error": error})


def echo(request: dict[str, Any]) -> bytes:
    """An answer that gives the parameters back."""
    return result(request, request["params"])


def _line(message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


Answer = Callable[[dict[str, Any]], bytes | None]
"""Makes the bytes to send for a request; None closes the connection."""


class FakeDaemon:
    """Listens at `path`, keeps what it was asked in `requests`, and counts `connections` and those `alive`."""

    def __init__(self, path: str, answer: Answer = echo) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.connections = 0
        self.alive = 0
        self._is_stopping = False
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(128)
        self._run(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def methods(self) -> list[str]:
        """The methods asked for, in order."""
        return [request["method"] for request in self.requests]

    def hang_up(self) -> None:
        """Close every connection there is; new ones are let in."""
        gone, self._open = self._open, []
        for connection in gone:
            _shut(connection)

    def send_and_hang_up(self, part: bytes) -> None:
        """Send `part` on the newest connection and close it."""
        self._open[-1].sendall(part)
        self.hang_up()

    def stop(self) -> None:
        """Close everything and take the socket away. May be repeated."""
        if not self._path.exists():
            return
        self._is_stopping = True
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(str(self._path))  # no other call wakes an accept on every platform
        self._threads[0].join()
        self._path.unlink()
        self.hang_up()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._is_stopping:
                connection.close()
                return
            self.connections += 1
            self._open.append(connection)
            self._run(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        self.alive += 1
        with connection, connection.makefile("rb") as lines:
            try:
                for line in lines:
                    request = json.loads(line)
                    self.requests.append(request)
                    reply = self.answer(request)
                    if reply is None:
                        return
                    connection.sendall(reply)
            except OSError:
                return
            finally:
                self.alive -= 1


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _descriptors() -> dict[str, list[int]]:
    """Device and inode of every open descriptor, by its number."""
    found = {}
    for number in range(256):
        try:
            status = os.fstat(number)
        except OSError:
            continue
        found[str(number)] = [status.st_rdev if stat.S_ISCHR(status.st_mode) else status.st_ino]
    return found


def _main(path: str, report: str) -> None:
    signal.alarm(30)
    about = {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "session": os.getsid(0),
        "directory": str(Path.cwd()),
        "descriptors": _descriptors(),
        "environment": dict(os.environ),
    }
    with Path(report).open("a") as file:
        file.write(json.dumps(about) + "\n")
    stopped = threading.Event()

    def answer(request: dict[str, Any]) -> bytes:
        if request["method"] == "daemon.stop":
            stopped.set()
        return echo(request)

    with FakeDaemon(path, answer):
        print("listening", file=sys.stderr)  # noqa: T201 - a log is under test
        stopped.wait()


if __name__ == "__main__":
    _main(*sys.argv[1:])
