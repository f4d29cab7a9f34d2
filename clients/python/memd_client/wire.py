"""One socket to a daemon. Law: one request at a time, and a socket that broke is never used again.

JSON-RPC 2.0, one object a line (SPEC 12). Whatever interrupts an exchange, even Ctrl-C, closes the socket: an
answer that nobody waited for must not be taken for the next one's.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

from memd_client.errors import (
    BadReply,
    ConnectionLost,
    InvalidParams,
    MemdError,
    NoAnswer,
    OtherOwner,
    TooLarge,
    Unavailable,
    from_reply,
)

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

MAX_REQUEST = 1024 * 1024
MAX_REPLY = 8 * 1024 * 1024
CHUNK = 64 * 1024
DOOR_TIMEOUT = 30.0
"""Seconds to wait for a daemon whose queue of new connections is full."""
LOOK = 30.0
"""Seconds after which a call without a time limit looks whether the daemon is still alive."""
POLL = 0.01
"""Seconds between two looks at something that gives no sign when it changes."""


class NotSent(ConnectionLost):
    """The connection had ended before the request was sent: it was not carried out, and may be sent again."""


class Wire:
    """A connected socket and the lines that cross it. Not for two threads at once."""

    def __init__(self, sock: socket.socket, path: str) -> None:
        self.path = path
        self._sock = sock
        self._pid = os.getpid()
        self._last_id = 0
        self._buffer = bytearray()  # what was read beyond the last line

    def is_usable(self) -> bool:
        """Whether a request may be sent: made by this process, and nothing, not even an end, waits in it."""
        if self._sock.fileno() < 0 or self._pid != os.getpid() or self._buffer:
            return False
        try:
            self._sock.settimeout(0)
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Close this process's end. May be repeated; a forked parent's connection lives on."""
        self._sock.close()

    def call(self, method: str, params: dict[str, Any], timeout: float | None) -> dict[str, Any]:
        """The result of one request; `timeout` in seconds covers all of it, None waits while the daemon is alive.

        Raises the daemon's error as its class; `InvalidParams` or `TooLarge` for what cannot be sent; and
        `ConnectionLost`, `NoAnswer` or `BadReply`. SPEC 12.
        """
        self._last_id += 1
        reply = self._exchange(method, params, self._last_id, timeout)
        if reply.get("error") is not None:
            raise from_reply(reply["error"])
        result = reply.get("result")
        if not isinstance(result, dict):
            raise BadReply(f"{method}: the answer is no object")
        return result

    def notify(self, method: str, params: dict[str, Any], timeout: float | None) -> None:
        """Send a request that gets no answer. Raises as `call` does."""
        self._exchange(method, params, None, timeout)

    def notified(self, method: str, timeout: float | None) -> Any:
        """The parameters of the next notification of `method`; all else that comes is passed over.

        Raises TimeoutError after `timeout` seconds, after which it may be asked again; OSError when the connection
        broke; and `BadReply`.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            message = _decode(self._line(deadline))
            params = message.get("params")
            if message.get("method") == method and isinstance(params, dict):
                return params

    def _exchange(
        self, method: str, params: dict[str, Any], number: int | None, timeout: float | None
    ) -> dict[str, Any]:
        line = _encode(method, params, number)
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            self._wait_until(deadline, LOOK)
            self._send(line)
            return {} if number is None else self._reply(number, deadline)
        except BaseException as error:
            self.close()
            if isinstance(error, NotSent):
                raise
            if isinstance(error, TimeoutError):
                how_long = f"within {timeout:g} s" if timeout is not None else f"and it answers nobody for {LOOK:g} s"
                raise NoAnswer(
                    f"{method}: no answer from {self.path} {how_long};"
                    " memd may be stopped or stuck: `memctl doctor` names its process"
                ) from None
            if isinstance(error, OSError):
                raise ConnectionLost(f"{method}: the connection to {self.path} broke: {error}") from error
            raise

    def _send(self, line: bytes) -> None:
        """Send a whole request. Raises `NotSent` when not a byte of it went out: the daemon is on its way out."""
        try:
            sent = self._sock.send(line)
        except BrokenPipeError as error:
            raise NotSent(f"the daemon at {self.path} takes no requests any more") from error
        if sent < len(line):
            self._sock.sendall(line[sent:])

    def _reply(self, number: int, deadline: float | None) -> dict[str, Any]:
        """The reply to request `number`; notifications are passed over. An error without an id is ours."""
        while True:
            message = _decode(self._line(deadline, looks=deadline is None))
            if "method" in message:
                continue
            answered = message.get("id")
            if answered == number or (answered is None and "error" in message):
                return message
            raise BadReply(f"an answer to request {answered!r:.80} came instead of one to {number}")

    def _line(self, deadline: float | None, *, looks: bool = False) -> bytes:
        """The next line without its end; one that `looks` is not waited for once the daemon answers nobody."""
        seen = 0
        while (end := self._buffer.find(b"\n", seen)) < 0:
            seen = len(self._buffer)
            if seen > MAX_REPLY:
                raise BadReply(f"a reply of more than {MAX_REPLY} bytes")
            self._wait_until(deadline, LOOK if looks else None)
            try:
                chunk = self._sock.recv(CHUNK)
            except TimeoutError:
                if looks and is_alive(self.path):
                    continue
                raise
            if not chunk:
                raise ConnectionResetError("it closed before the answer")
            self._buffer += chunk
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _wait_until(self, deadline: float | None, else_s: float | None) -> None:
        """Bound the next socket operation, by `else_s` seconds where there is no deadline.

        Raises TimeoutError when the time is already over.
        """
        if deadline is None:
            self._sock.settimeout(else_s)
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)


def knock(path: str) -> Wire:
    """A wire to whoever listens at `path`.

    Raises FileNotFoundError or ConnectionRefusedError when nobody does, `NoAnswer` when the queue before the
    door stays full, `OtherOwner` when another user listens, and `Unavailable` for a socket this user cannot use.
    """
    deadline = time.monotonic() + DOOR_TIMEOUT
    while time.monotonic() < deadline:
        try:
            return Wire(_of_ours(_connected(path), path), path)
        except (FileNotFoundError, ConnectionRefusedError):
            raise
        except BlockingIOError:
            time.sleep(POLL)
        except OSError as error:
            raise Unavailable(f"cannot connect to {path}: {error.strerror}") from error
    raise NoAnswer(f"memd at {path} let nobody in for {DOOR_TIMEOUT:g} s")


def is_alive(path: str) -> bool:
    """Whether a daemon at `path` answers a hello within `LOOK` seconds, with an error even."""
    try:
        wire = knock(path)
        try:
            wire.call("daemon.hello", {}, LOOK)
        finally:
            wire.close()
    except MemdError as error:
        return not isinstance(error, Unavailable)
    except OSError:
        return False
    return True


def _connected(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(DOOR_TIMEOUT)
        sock.connect(path)
    except BaseException:
        sock.close()
        raise
    return sock


def _of_ours(sock: socket.socket, path: str) -> socket.socket:
    """The socket, unless another user listens at its other end: what an agent learned is not told to strangers.

    Root may: it listens for us where the system's own service manager does, and nothing is hidden from it anyway.
    """
    owner = _peer_uid(sock)
    if owner in (os.geteuid(), 0, None):
        return sock
    sock.close()
    raise OtherOwner(
        f"{path} is served by another user (uid {owner}); nothing was sent."
        " Set MEMD_SOCKET to a path in a directory of your own"
    )


def _peer_uid(sock: socket.socket) -> int | None:
    """The uid that listens at the other end, as the kernel noted it; None where no system call tells."""
    if sys.platform == "linux":
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)  # pid, uid, gid
    elif sys.platform == "darwin":
        credentials = sock.getsockopt(0, socket.LOCAL_PEERCRED, 76)  # a version, the uid, groups
    else:
        return None
    return int.from_bytes(credentials[4:8], sys.byteorder)


def _encode(method: str, params: dict[str, Any], number: int | None) -> bytes:
    request: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        request["id"] = number
    text = json.dumps(request, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        line = text.encode() + b"\n"
    except UnicodeEncodeError as error:
        raise InvalidParams(f"{method}: text that is not Unicode: {error}") from None
    if len(line) > MAX_REQUEST:
        raise TooLarge(f"{method}: a request of {len(line)} bytes, over {MAX_REQUEST}; nothing was sent")
    return line


def _decode(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise BadReply(f"a reply that is not JSON: {line[:80]!r}") from None
    if not isinstance(message, dict):
        raise BadReply(f"a reply that is no object: {line[:80]!r}")
    return message
