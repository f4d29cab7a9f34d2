"""What a verb gets of its caller. Law: a verb finds its place here and nowhere else.

SPEC section 7: exactly one of `session` and `cwd`, which `protocol` has made sure of.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from memd import journal, secrets
from memd.errors import NotFound, NotRoot, ReadOnly, Refused, SaveCap
from memd.live import Library, LiveSession, LiveStore, Outbox, Place
from memd.note import Scope
from memd.protocol import PlaceParams
from memd.store import Author, Entry, Outcome, Request

T = TypeVar("T", bound=Outcome)

PERSON = Author(by="cli")
"""Who a caller is that names a directory: a person (SPEC 4, journal)."""


class Call:
    """One request on its way: the library it works on, the method it named, and its connection's outbox."""

    __slots__ = ("library", "method", "outbox")

    def __init__(self, library: Library, method: str, outbox: Outbox) -> None:
        self.library = library
        self.method = method
        self.outbox = outbox

    def session(self, params: PlaceParams) -> LiveSession | None:
        """The session that calls, None for a person.

        Errors: NotFound for one that was not started, NotRoot for a child (SPEC 8), Unreadable.
        """
        if params.session is None:
            return None
        live = self.library.sessions.get(params.session)
        if live is None:
            raise NotFound("no session of that id; start it with session.start", field="session")
        if live.state.depth > 0:
            raise NotRoot("only the root session keeps memory; the parent puts what a child needs in its task")
        return live

    def place(self, params: PlaceParams) -> Place:
        """The caller's two stores. Errors: as `session`; Refused (field `cwd`)."""
        live = self.session(params)
        return self.library.place(params.cwd or "" if live is None else live.state.cwd)

    async def stores(self, params: PlaceParams, scope: Scope | None = None) -> list[LiveStore]:
        """The caller's stores, of one scope or both, opened and caught up with the disk."""
        return await self.library.opened(self.place(params), scope)

    def check_writable(self, params: PlaceParams) -> None:
        """Refuse a session in its host's plan mode. Errors: as `session`; ReadOnly, naming the host's switch."""
        live = self.session(params)
        if live is not None and live.state.read_only:
            way_out = f"leave it with {live.state.switch}" if live.state.switch else "leave it and try again"
            raise ReadOnly(f"the session is in its host's plan mode, where no note changes; {way_out}")

    def person_only(self, params: PlaceParams) -> None:
        """Refuse an agent: these verbs are a person's (SPEC 7). Errors: NotRoot, Refused (field `session`)."""
        with suppress(NotFound):
            self.session(params)
        if params.session is not None:
            raise Refused("session", "session: this verb is a person's; a person calls it with cwd", bound="cwd")

    @asynccontextmanager
    async def one_save(self, params: PlaceParams) -> AsyncIterator[LiveSession | None]:
        """Leave for one save, held against the session's other calls. Errors: as `stores`; SaveCap (SPEC 8)."""
        live = self.session(params)
        if live is None:
            yield None
            return
        async with live.lock:
            used, cap = live.used(*await self.opened(params)), live.state.save_cap
            if cap is not None and used >= cap:
                raise SaveCap(f"at most {cap} saves per session; this is save {used + 1}")
            yield live

    async def opened(self, params: PlaceParams) -> Place:
        """The caller's place, both stores opened. Errors: as `stores`."""
        place = self.place(params)
        await self.library.opened(place)
        return place

    async def write(self, store: LiveStore, request: Request, kind: type[T]) -> T:
        """What a request did to a store, once durable; `kind` is the outcome it has."""
        outcome = await store.write(request)
        self.library.keep(store)
        if not isinstance(outcome, kind):
            raise TypeError(kind)
        return outcome


def author(params: PlaceParams, by: str | None = None) -> Author:
    """Whom the journal names: a session, or a person; `by` is the verb that writes in their name (SPEC 4)."""
    return Author(session=params.session, by=by or (None if params.session else PERSON.by))


def asked_hash(field: str, text: str) -> str:
    """A hash a caller gave, with its prefix. Errors: Refused (that field)."""
    parsed = journal.parse_hash(text)
    if parsed is None:
        bound = "sha256:<64 hex>"
        raise Refused(field, f"{field}: 64 hex digits, with or without sha256:", bound=bound, got=len(text))
    return parsed


def printable(name: str) -> str:
    """A file's name as a reply can hold it: bytes that are not UTF-8 are written out."""
    return name.encode(errors="backslashreplace").decode()


def shown_hook(entry: Entry) -> tuple[str, bool]:
    """A note's hook as a reply may hold it, and whether anything was masked."""
    return (entry.hook, False) if entry.masked is None else (entry.masked, True)


def shown(text: str) -> tuple[str, bool]:
    """A note's words as a reply may hold them: key-shaped runs masked, and whether any was (SPEC 3)."""
    masked = secrets.redact(text)
    return masked, masked != text
