"""Lines between sockets and `rpc`. Law: one client's conduct, whatever it is, is felt by that client alone.

A connection is one task, which runs the requests and writes the answers, in order, and a reader that the event loop
calls when something comes: asyncio's own, told of the socket once, since a task that waits anew for each request
costs a tenth of a round trip. What is read ahead is bounded, so a client that pipelines waits for itself; the reader
sees a break while a request runs. A client that closed only its sending half still gets its answers; one that is gone
has its request cancelled, and what `live` shields, a commit that has begun, is finished without it (SPEC section 12).
Idle, nothing here has a timer.
"""

import asyncio
import errno
import logging
import os
import socket
import stat
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from memd.fs import Disk
from memd.live import Outbox
from memd.protocol import CONNECTIONS_MAX, REQUEST_MAX
from memd.rpc import LINE_TOO_LONG, trace

Answer = Callable[[bytes, Outbox], Awaitable[bytes | None]]
"""`rpc.Dispatcher.answer`: a line in, a line out; what is to be said later goes into the outbox."""

SEND_TIMEOUT_S = 30.0
"""Seconds a client may leave its answer unread before it is dropped."""
GRACE_S = 1.0
"""Seconds a request that runs at the stop has to end by itself; then it is cancelled."""

_CHUNK = 1 << 16
_BACKLOG = 1024
_ACCEPT_PAUSE_S = 0.1
_log = logging.getLogger(__name__)


class SocketTakenError(Exception):
    """Somebody answers at the socket's path, or what is there is no socket."""


# -- the socket ----------------------------------------------------------------------------------------------


class Listener:
    """A listening Unix socket and the file it is reached by."""

    def __init__(self, sock: socket.socket, *, owned: bool) -> None:
        """`owned`: the file goes with the listener; False for a socket that the service manager made."""
        self.sock = sock
        self.path = Path(os.fsdecode(sock.getsockname()))
        self._owned = owned
        self._identity = _identity(self.path)
        sock.setblocking(False)

    def is_reachable(self) -> bool:
        """Whether the file at the path still leads here: it was neither removed nor replaced."""
        return self._identity is not None and _identity(self.path) == self._identity

    def hide(self) -> bool:
        """Let nobody come any more; whether those who wait at the door are ours to serve.

        The door of a service manager stays open, and its next daemon serves who waits there. May be repeated.
        """
        if self._owned and self.is_reachable():
            self.path.unlink(missing_ok=True)
        return self._owned

    def close(self) -> None:
        """Stop listening, and remove the file if it is this listener's own. May be repeated."""
        self.hide()
        self.sock.close()
        self._owned = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def listen(path: Path) -> Listener:
    """Listen at `path`, 0600, its directory made 0700. Only under the home's lifetime lock (SPEC section 15).

    A socket that refuses is what a dead daemon left, and is taken over; `SocketTakenError` for one that answers
    and for a file that is no socket. Other failures are the system's `OSError`.
    """
    Disk().make_dirs(path.parent)
    _clear(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(str(path))
        path.chmod(0o600)
        sock.listen(_BACKLOG)
        return Listener(sock, owned=True)
    except BaseException:
        sock.close()
        raise


def _clear(path: Path) -> None:
    """Remove a dead socket from `path`."""
    try:
        there = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(there.st_mode):
        raise SocketTakenError("what is at the socket's path is no socket")
    if is_answered(path):
        raise SocketTakenError("another process answers at the socket's path")
    path.unlink(missing_ok=True)


def is_answered(path: Path) -> bool:
    """Whether somebody listens at `path`, however busy; what cannot be told counts as somebody."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return probe.connect_ex(str(path)) not in (errno.ECONNREFUSED, errno.ENOENT)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        there = path.lstat()
    except OSError:
        return None
    return there.st_dev, there.st_ino


def peer_uid(sock: socket.socket) -> int:
    """The uid of the process at the other end, as the kernel noted it when that process connected."""
    if sys.platform == "linux":
        _pid, uid, _gid = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    else:  # struct xucred: its version, the uid, then groups; level 0 is SOL_LOCAL
        _version, uid = struct.unpack_from("II", sock.getsockopt(0, socket.LOCAL_PEERCRED, 76))
    return int(uid)


# -- lines ---------------------------------------------------------------------------------------------------


class LineTooLongError(Exception):
    """A request line passed `REQUEST_MAX` bytes; the rest of it is dropped as it comes."""


class Lines:
    """Bytes in, request lines out. Holds at most `REQUEST_MAX` bytes and the last chunk fed."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._is_dropping = False
        self.ended = False
        """No more bytes come: what is left without a line end is a line."""

    @property
    def is_full(self) -> bool:
        """Take what there is before more is fed."""
        return len(self._buffer) > REQUEST_MAX

    @property
    def is_empty(self) -> bool:
        """Nothing waits, not even a part of a line."""
        return not self._buffer

    def feed(self, data: bytes) -> None:
        """Add what was received."""
        self._buffer += data

    def take(self) -> bytes | None:
        """The next line without its end, blank ones left out; None when there is no whole one.

        `LineTooLongError`, once a line, as soon as it is known.
        """
        while (end := self._end()) is not None:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            if self._is_dropping:
                self._is_dropping = False
            elif len(line) > REQUEST_MAX:
                raise LineTooLongError
            elif line and not line.isspace():
                return line
        if self._is_dropping:
            self._drop()
        elif self.is_full:
            self._is_dropping = True
            self._drop()
            raise LineTooLongError
        return None

    def _end(self) -> int | None:
        """Where the next line ends; None when its end has not come."""
        end = self._buffer.find(b"\n", self._searched)
        if end >= 0:
            return end
        self._searched = len(self._buffer)
        return self._searched if self.ended and self._buffer else None

    def _drop(self) -> None:
        self._buffer.clear()
        self._searched = 0


# -- connections ---------------------------------------------------------------------------------------------


class Connection:
    """One client: its requests run and are answered in order, and what its outbox gets goes out in between.

    That begins with the reply to the request that first asked for it, so a client that never does costs no second
    task and no turn-taking.
    """

    def __init__(self, sock: socket.socket, answer: Answer) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._answer = answer
        self._lines = Lines()
        self._arrived = asyncio.Event()
        self._scope = anyio.CancelScope()
        self._outbox = Outbox(self._scope.cancel)
        self._sending = anyio.Lock()
        self._is_pushing = False
        self._is_reading = False

    async def serve(self) -> None:
        """Serve the client until it ends or breaks, then close. Raises nothing but a cancellation."""
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    await self._work(tasks)
                    tasks.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - the boundary: a failed connection is nobody else's
            _log.error("a connection failed: %s", trace(error))
        finally:
            self._outbox.end()
            self.close()

    def close(self) -> None:
        """Close the socket, whatever was to be answered. May be repeated."""
        self._stop_reading()
        self._sock.close()

    def end(self) -> None:
        """End after the answers to what was received; whoever sends from now on is told that nobody reads it.

        So the client knows of every request whether it may send it again: either it is answered or it was not sent.
        """
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RD)

    def _read(self) -> None:
        """Feed what has come; cancel the connection when it is broken."""
        try:
            data = self._sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self._stop_reading()
            self._scope.cancel()
            return
        self._lines.feed(data)
        self._arrived.set()
        if not data:
            self._lines.ended = True
            self._stop_reading()
            if self._is_gone():
                self._scope.cancel()
        elif self._lines.is_full:
            self._stop_reading()

    def _start_reading(self) -> None:
        """Have what comes read, unless all has come or what has is to be taken first. May be repeated."""
        if not (self._is_reading or self._lines.ended or self._lines.is_full):
            asyncio.get_running_loop().add_reader(self._sock, self._read)
            self._is_reading = True

    def _stop_reading(self) -> None:
        """Leave what comes where it is. May be repeated."""
        if self._is_reading:
            asyncio.get_running_loop().remove_reader(self._sock)
            self._is_reading = False

    def _is_gone(self) -> bool:
        """Whether the peer, whose sending half has ended, takes no answers either."""
        try:
            self._sock.send(b"")
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False

    async def _work(self, tasks: TaskGroup) -> None:
        """Run and answer line after line; begin to push once there is something to be pushed."""
        while True:
            try:
                line = self._lines.take()
            except LineTooLongError:
                line = b""
            self._start_reading()
            if line is None:
                if self._lines.ended:
                    return
                self._arrived.clear()
                await self._arrived.wait()
                continue
            reply = await self._answer(line, self._outbox) if line else LINE_TOO_LONG
            if reply is not None and not await self._send(reply):
                return
            if self._outbox.is_in_use and not self._is_pushing:
                self._is_pushing = True
                tasks.start_soon(self._push)
            if not self._lines.is_empty:
                await checkpoint()

    async def _push(self) -> None:
        """Send what the outbox gets, for as long as the client takes it."""
        while await self._send(await self._outbox.take()):
            pass
        self._scope.cancel()

    async def _send(self, lines: bytes) -> bool:
        """Write whole lines, none of another task between them; False when the client does not take them."""
        if not self._is_pushing:
            return await self._write(lines)
        async with self._sending:
            return await self._write(lines)

    async def _write(self, lines: bytes) -> bool:
        """Write bytes, in one call where the client keeps up; False when it does not, or is gone."""
        rest = memoryview(lines)
        while rest:
            try:
                rest = rest[self._sock.send(rest) :]
            except BlockingIOError:
                with anyio.move_on_after(SEND_TIMEOUT_S) as waiting:
                    await anyio.wait_writable(self._sock)
                if waiting.cancelled_caught:
                    return False
            except OSError:
                return False
        return True


class Server:
    """Accepts clients of one uid and serves `CONNECTIONS_MAX` of them at once; more wait."""

    def __init__(self, listener: Listener, answer: Answer, *, uid: int, count: Callable[[int], None]) -> None:
        """`uid` is whose processes may connect; `count` is told the number of connections at each change."""
        self._listener = listener
        self._answer = answer
        self._uid = uid
        self._count = count
        self._slots = anyio.Semaphore(CONNECTIONS_MAX)
        self._connections: set[Connection] = set()
        self._gone = anyio.Event()
        self._accepted = anyio.Event()
        self._is_short = False
        """What is wanted for a connection is not there; it is said once."""

    async def serve(self, stop: anyio.Event) -> None:
        """Serve until `stop` is set; then let nobody in, and give what has been asked `GRACE_S` seconds.

        After those it is cancelled; what is shielded from that is waited for.
        """
        accepting = anyio.CancelScope()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._accept_all, tasks, accepting)
                await stop.wait()
                accepting.cancel()
                await self._accepted.wait()  # it may be just about to look at the door, which must still be there
                if self._listener.hide():
                    self._admit_waiting(tasks)
                self._listener.close()
                with anyio.move_on_after(GRACE_S):
                    await self._end_all()
                tasks.cancel_scope.cancel()
        finally:
            for connection in self._connections:
                connection.close()

    async def _end_all(self) -> None:
        for connection in self._connections:
            connection.end()
        while self._connections:
            self._gone = anyio.Event()
            await self._gone.wait()

    async def _accept_all(self, tasks: TaskGroup, accepting: anyio.CancelScope) -> None:
        try:
            with accepting:
                while True:
                    await self._slots.acquire()
                    self._admit(await self._accept(), tasks)
        finally:
            self._accepted.set()

    def _admit(self, sock: socket.socket, tasks: TaskGroup) -> None:
        connection = Connection(sock, self._answer)
        self._connections.add(connection)
        self._count(len(self._connections))
        tasks.start_soon(self._serve_one, connection)

    def _admit_waiting(self, tasks: TaskGroup) -> None:
        """Serve those who came before the door was closed, as many as there is room for."""
        with suppress(OSError, anyio.WouldBlock):
            while True:
                self._slots.acquire_nowait()
                sock, _address = self._listener.sock.accept()
                if self._is_welcome(sock):
                    self._admit(sock, tasks)
                else:
                    sock.close()

    async def _accept(self) -> socket.socket:
        """The next client of our own uid; another's is dropped without a byte."""
        while True:
            await anyio.wait_readable(self._listener.sock)
            try:
                sock, _address = self._listener.sock.accept()
            except (BlockingIOError, ConnectionAbortedError):
                continue
            except OSError as error:
                # Out of descriptors or memory: those being served go on, and their end makes room.
                if not self._is_short:
                    _log.warning("cannot accept a connection: %s", error.strerror)
                self._is_short = True
                await anyio.sleep(_ACCEPT_PAUSE_S)
                continue
            self._is_short = False
            if self._is_welcome(sock):
                return sock
            sock.close()

    def _is_welcome(self, sock: socket.socket) -> bool:
        try:
            return peer_uid(sock) == self._uid
        except OSError:
            return False

    async def _serve_one(self, connection: Connection) -> None:
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)
            self._count(len(self._connections))
            self._slots.release()
            self._gone.set()
