"""A real socket with a server behind it, in a thread of the test. Law: what is waited for is a condition."""

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from memd.protocol import Verb
from memd.rpc import Dispatcher
from memd.server import Listener, Server
from support.fake_verbs import VERBS, Call, Gate, gated


class Client:
    """A client as plain as can be: bytes out, lines in."""

    def __init__(self, path: Path, seconds: float = 20.0) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(seconds)
        self._received = b""
        try:
            self.sock.connect(str(path))
        except OSError:
            self.sock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sock.close()

    def send(self, *lines: bytes) -> None:
        """Send lines, each with a line end, in one call."""
        self.sock.sendall(b"".join(line + b"\n" for line in lines))

    def line(self) -> bytes:
        """The next line, its end taken off; empty at the end of the stream."""
        while b"\n" not in self._received:
            data = self.sock.recv(1 << 16)
            if not data:
                rest, self._received = self._received, b""
                return rest
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line

    def reply(self) -> Any:
        """The next line, decoded."""
        return json.loads(self.line())

    def ask(self, line: bytes) -> Any:
        """The reply to one line."""
        self.send(line)
        return self.reply()

    def has_ended(self) -> bool:
        """Whether the server closed the connection, with nothing left to read."""
        try:
            return self.line() == b""
        except ConnectionResetError:
            return True


class Served:
    """A server with fake verbs, and the gate its `gate.*` verbs wait at."""

    def __init__(self, portal: BlockingPortal, listener: Listener, uid: int) -> None:
        self.path = listener.path
        self.gate = portal.call(Gate)
        self.counts: list[int] = []
        """The number of connections after each change."""
        self._portal = portal
        self._stop = portal.call(anyio.Event)
        verbs: Mapping[str, Verb[Call, Any, Any]] = {**VERBS, **gated(self.gate)}
        server = Server(listener, Dispatcher(verbs, Call).answer, uid=uid, count=self.counts.append)
        self._running = portal.start_task_soon(server.serve, self._stop)

    def client(self, seconds: float = 20.0) -> Client:
        """A connected client."""
        return Client(self.path, seconds)

    def wait_for(self, event: anyio.Event) -> None:
        """Return once an event of the gate has happened."""

        async def wait() -> None:
            with anyio.fail_after(20):
                await event.wait()

        self._portal.call(wait)

    def open_gate(self) -> None:
        """Let the verbs at the gate go on."""
        self._portal.call(self.gate.opened.set)

    @property
    def connections(self) -> int:
        """How many connections are being served."""
        return self.counts[-1] if self.counts else 0

    def stop(self) -> None:
        """Tell the server to stop."""
        self._portal.call(self._stop.set)

    def finish(self, seconds: float = 20.0) -> None:
        """Stop the server and return once it has ended. Raises what it raised, TimeoutError after `seconds`."""
        self.stop()
        self._running.result(seconds)


@contextmanager
def serving(listener: Listener, *, uid: int | None = None) -> Iterator[Served]:
    """A server on `listener` for `uid`, the test's own by default; it is finished at the end in any case."""
    with start_blocking_portal("asyncio") as portal:
        served = Served(portal, listener, os.geteuid() if uid is None else uid)
        try:
            yield served
        finally:
            served.finish()
