"""The error taxonomy of the wire. Law: one class a kind, one code a class, and no note text in any of them.

A room raises the class; the verb's name is put before the text where the reply is made (`rpc`), so a message
reads `memory.save: …` whichever room refused. SPEC sections 3 and 12.
"""

from typing import ClassVar


class MemdError(Exception):
    """A failure a caller can act on: `code` and `kind` are stable, `data()` is JSON-ready (SPEC 12)."""

    code: ClassVar[int]
    kind: ClassVar[str]

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def data(self) -> dict[str, object]:
        """What goes into `error.data`."""
        return {"kind": self.kind}


class Refused(MemdError):
    """A request that breaks a bound of SPEC 3; nothing was changed."""

    code = -32001
    kind = "refused"

    def __init__(self, field: str, text: str, *, bound: object = None, got: object = None) -> None:
        super().__init__(text)
        self.field = field
        self.bound = bound
        self.got = got

    def data(self) -> dict[str, object]:
        return {"kind": self.kind, "field": self.field, "bound": self.bound, "got": self.got}


class NotFound(MemdError):
    """No note, version, session or entry of that name; `field` "session" tells a session from the rest."""

    code = -32002
    kind = "not_found"

    def __init__(self, text: str, *, field: str | None = None) -> None:
        super().__init__(text)
        self.field = field

    def data(self) -> dict[str, object]:
        return {"kind": self.kind} if self.field is None else {"kind": self.kind, "field": self.field}


class NotRoot(MemdError):
    """The caller is a child session (depth above 0)."""

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
    """`expect` is not the head; `hash` is what the head is, None when there is none."""

    code = -32006
    kind = "conflict"

    def __init__(self, text: str, *, hash: str | None) -> None:  # noqa: A002 - the wire's word
        super().__init__(text)
        self.hash = hash

    def data(self) -> dict[str, object]:
        return {"kind": self.kind, "hash": self.hash}


class Busy(MemdError):
    """The store's lock was not had in time."""

    code = -32007
    kind = "busy"


class Storage(MemdError):
    """Disk full, read-only, an I/O error: nothing was acknowledged."""

    code = -32008
    kind = "storage"


class Suspended(MemdError):
    """The guard of SPEC 5 holds the store."""

    code = -32009
    kind = "suspended"


class TooLarge(MemdError):
    """A line over the cap; the connection lives."""

    code = -32010
    kind = "too_large"


class NoProtocol(MemdError):
    """No common protocol version."""

    code = -32011
    kind = "protocol"


class ReadOnly(MemdError):
    """The session is in its host's plan mode."""

    code = -32012
    kind = "read_only"
