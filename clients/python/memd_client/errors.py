"""What can go wrong, seen from a client. Law: one class a kind, each a `MemdError` in the daemon's words.

What the daemon answers keeps its code, its message and its `data` (SPEC 12). What never reached a daemon has
code 0. Everything that means "nobody answered" is an `Unavailable`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any


class MemdError(Exception):
    """A call that failed: `code` and `kind` are stable, `message` is for people, `data` is the wire's."""

    code: int = 0
    kind: str = "unknown"

    def __init__(
        self,
        message: str,
        data: dict[str, Any] | None = None,
        *,
        code: int | None = None,
        kind: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.data: dict[str, Any] = data if data is not None else {}
        if code is not None:
            self.code = code
        if kind is not None:
            self.kind = kind


class Refused(MemdError):
    """A bound of SPEC 3 is broken; `data` names `field`, `bound` and `got`. Nothing was changed."""

    code = -32001
    kind = "refused"


class NotFound(MemdError):
    """No note, version, session or entry of that name."""

    code = -32002
    kind = "not_found"


class NotRoot(MemdError):
    """The session is a child's: only the root keeps memory."""

    code = -32003
    kind = "not_root"


class SaveCap(MemdError):
    """The session's saves are spent."""

    code = -32004
    kind = "save_cap"


class Unreadable(MemdError):
    """A store file exists but does not read; nothing was changed."""

    code = -32005
    kind = "unreadable"


class Conflict(MemdError):
    """`expect` is not the head; `data["hash"]` is what the head is, None when there is none."""

    code = -32006
    kind = "conflict"


class Busy(MemdError):
    """The store's lock was not had in time; the same call may succeed later."""

    code = -32007
    kind = "busy"


class Storage(MemdError):
    """Disk full, read-only, an I/O error: nothing was acknowledged."""

    code = -32008
    kind = "storage"


class Suspended(MemdError):
    """Many notes are gone from the store at once: no write until a person has looked (SPEC 5)."""

    code = -32009
    kind = "suspended"


class TooLarge(MemdError):
    """A request over 1 MiB or a reply over 8 MiB."""

    code = -32010
    kind = "too_large"


class NoProtocol(MemdError):
    """Client and daemon have no protocol version in common."""

    code = -32011
    kind = "protocol"


class ReadOnly(MemdError):
    """The session is in its host's plan mode."""

    code = -32012
    kind = "read_only"


class ParseError(MemdError):
    """The daemon could not read the request as JSON."""

    code = -32700
    kind = "parse_error"


class InvalidRequest(MemdError):
    """The request is JSON but no JSON-RPC request."""

    code = -32600
    kind = "invalid_request"


class MethodNotFound(MemdError):
    """The daemon has no verb of that name (an older memd, perhaps)."""

    code = -32601
    kind = "method_not_found"


class InvalidParams(MemdError):
    """A parameter is unknown, missing, of another type or out of range."""

    code = -32602
    kind = "invalid_params"


class InternalError(MemdError):
    """The daemon failed; the message's incident id finds the reason in its log."""

    code = -32603
    kind = "internal_error"


class Unavailable(MemdError):
    """Nobody answers, and starting a daemon was not allowed or did not help."""

    kind = "unavailable"


class ConnectionLost(Unavailable):
    """The connection broke before the answer; whether a write was carried out is not known."""

    kind = "connection_lost"


class NoAnswer(Unavailable):
    """The daemon did not answer in time; whether a write was carried out is not known."""

    kind = "no_answer"


class BadReply(Unavailable):
    """What came back is no JSON-RPC reply: whoever listens there is not memd."""

    kind = "bad_reply"


class OtherHome(Unavailable):
    """The daemon that answers serves another home than this environment names."""

    kind = "other_home"


class OtherOwner(Unavailable):
    """Another user listens at the socket's path; nothing was sent."""

    kind = "other_owner"


class BadPlace(MemdError):
    """The environment names a place that cannot be used (SPEC 1)."""

    kind = "bad_place"


class SocketPathTooLong(BadPlace):
    """The socket's path does not fit a Unix socket address; `path`, `length` and `limit` in bytes."""

    kind = "socket_path_too_long"

    def __init__(self, path: str, length: int, limit: int) -> None:
        super().__init__(
            f"the socket path {path} is {length} bytes long, over this platform's {limit};"
            " set MEMD_SOCKET to a shorter one"
        )
        self.path = path
        self.length = length
        self.limit = limit

    def __reduce__(self) -> tuple[type[SocketPathTooLong], tuple[str, int, int]]:
        return type(self), (self.path, self.length, self.limit)


BY_CODE: dict[int, type[MemdError]] = {
    error.code: error
    for error in (
        Refused,
        NotFound,
        NotRoot,
        SaveCap,
        Unreadable,
        Conflict,
        Busy,
        Storage,
        Suspended,
        TooLarge,
        NoProtocol,
        ReadOnly,
        ParseError,
        InvalidRequest,
        MethodNotFound,
        InvalidParams,
        InternalError,
    )
}
"""The class of every code of SPEC 12."""


def from_reply(error: object) -> MemdError:
    """The exception for a reply's `error` member, ready to raise; `BadReply` when it is no error object."""
    if not isinstance(error, dict):
        return BadReply(f"the daemon's error is no object: {error!r:.80}")
    code, message, data = error.get("code"), error.get("message"), error.get("data")
    if not isinstance(code, int) or not isinstance(message, str):
        return BadReply(f"the daemon's error has no code or no message: {error!r:.80}")
    data = data if isinstance(data, dict) else {}
    known = BY_CODE.get(code)
    if known is not None:
        return known(message, data)
    kind = data.get("kind")
    return MemdError(message, data, code=code, kind=kind if isinstance(kind, str) else None)
