"""What a verb gets of its caller. Law: a verb finds its place here and nowhere else.

SPEC section 7: exactly one of `session` and `cwd`, which `protocol` has made sure of.
"""

from typing import TypeVar

from memd import journal, secrets
from memd.errors import NotFound, Refused
from memd.live import Library, LiveStore, Place
from memd.note import Scope
from memd.protocol import PlaceParams
from memd.store import Author, Outcome, Request

T = TypeVar("T", bound=Outcome)

PERSON = Author(by="cli")
"""Who a caller is that names a directory: a person (SPEC 4, journal)."""


class Call:
    """One request on its way: the library it works on, and the method it named."""

    __slots__ = ("library", "method")

    def __init__(self, library: Library, method: str) -> None:
        self.library = library
        self.method = method

    def place(self, params: PlaceParams) -> Place:
        """The caller's two stores. Errors: Refused (field `cwd`), NotFound for a session that was not started."""
        if params.cwd is None:
            raise NotFound("no session of that id; start it with session.start")
        return self.library.place(params.cwd)

    async def stores(self, params: PlaceParams, scope: Scope | None = None) -> list[LiveStore]:
        """The caller's stores, of one scope or both, opened and caught up with the disk."""
        return await self.library.opened(self.place(params), scope)

    async def write(self, store: LiveStore, request: Request, kind: type[T]) -> T:
        """What a request did to a store, once durable; `kind` is the outcome it has."""
        outcome = await store.write(request)
        self.library.keep(store)
        if not isinstance(outcome, kind):
            raise TypeError(kind)
        return outcome


def person_only(params: PlaceParams) -> None:
    """Refuse an agent (field `session`): these verbs are a person's (SPEC 7)."""
    if params.session is not None:
        raise Refused("session", "session: this verb is a person's; a person calls it with cwd", bound="cwd")


def asked_hash(field: str, text: str) -> str:
    """A hash a caller gave, with its prefix. Errors: Refused (that field)."""
    parsed = journal.parse_hash(text)
    if parsed is None:
        bound = "sha256:<64 hex>"
        raise Refused(field, f"{field}: 64 hex digits, with or without sha256:", bound=bound, got=len(text))
    return parsed


def shown(text: str) -> tuple[str, bool]:
    """A note's words as a reply may hold them: key-shaped runs masked, and whether any was (SPEC 3)."""
    masked = secrets.redact(text)
    return masked, masked != text
