"""Verbs that do nothing but what a test of the wire needs. Law: no store, no disk, no clock."""

import errno
from typing import Any

import anyio
import msgspec

from memd import errors
from memd.live import Outbox
from memd.note import NoteType
from memd.protocol import HelloParams, HelloReply, Limit, Params, PlaceParams, Reply, SearchParams, SearchReply, Verb

SECRET = "the note says the pass phrase is swordfish"
"""What an exception of a fake verb holds and nobody may see."""


class Call:
    """What every fake verb gets: the method, and the outbox of the connection it came by."""

    def __init__(self, method: str, outbox: Outbox) -> None:
        self.method = method
        self.outbox = outbox


def outbox() -> Outbox:
    """An outbox nobody takes from, for a line that comes by no connection."""
    return Outbox(lambda: None)


class Gate:
    """A verb's progress as a test sees and steers it."""

    def __init__(self) -> None:
        self.entered = anyio.Event()
        self.opened = anyio.Event()
        self.cancelled = anyio.Event()
        self.finished: list[str] = []


class EchoParams(Params, kw_only=True, frozen=True):
    """Anything in any field."""

    value: object = None
    limit: Limit = 1
    kind: NoteType | None = None


class EchoReply(Reply, kw_only=True, frozen=True):
    """What came in."""

    value: object
    method: str


class PlacedParams(PlaceParams, kw_only=True, frozen=True):
    """A place and nothing else."""


class SizeParams(Params, kw_only=True, frozen=True):
    """How many bytes a reply holds."""

    size: int


async def hello(call: Call, params: HelloParams) -> HelloReply:
    """As `daemon.hello`."""
    return HelloReply(version="0", protocol_min=1, protocol_max=1, capabilities=(), pid=1, home="0123456789abcdef")


async def echo(call: Call, params: EchoParams) -> EchoReply:
    """Gives back `value`."""
    return EchoReply(value=params.value, method=call.method)


async def placed(call: Call, params: PlacedParams) -> EchoReply:
    """Gives back the place."""
    return EchoReply(value=params.cwd or params.session, method=call.method)


async def search(call: Call, params: SearchParams) -> SearchReply:
    """Finds nothing."""
    return SearchReply(hits=(), total=0)


async def broken(call: Call, params: EchoParams) -> EchoReply:
    """Raises an exception that came from another, both with a note's text in them."""
    try:
        known: dict[str, object] = {}
        return EchoReply(value=known[SECRET], method=call.method)
    except KeyError as error:
        raise RuntimeError(f"{SECRET}: {params.value}") from error


async def broken_group(call: Call, params: EchoParams) -> EchoReply:
    """Raises a group, as a task group does."""
    raise ExceptionGroup(SECRET, [ValueError(SECRET)])


async def no_disk(call: Call, params: EchoParams) -> EchoReply:
    """Meets a disk that fails, at a path that nobody may see."""
    raise OSError(errno.EIO, "Input/output error", SECRET)


async def too_late(call: Call, params: EchoParams) -> EchoReply:
    """Raises what is an OSError to Python and has nothing to do with a disk."""
    raise TimeoutError(SECRET)


async def refused(call: Call, params: EchoParams) -> EchoReply:
    """Refuses as SPEC section 3 does."""
    raise errors.Refused("body", "the body is over 8192 bytes", bound=8192, got=9000)


async def conflict(call: Call, params: EchoParams) -> EchoReply:
    """Says what the head is."""
    raise errors.Conflict("the head is another version", hash=None)


async def sized(call: Call, params: SizeParams) -> EchoReply:
    """A text of `size` bytes."""
    return EchoReply(value="x" * params.size, method=call.method)


async def unwritable(call: Call, params: EchoParams) -> EchoReply:
    """A reply that is no JSON."""
    return EchoReply(value=Gate(), method=SECRET)


async def surrogate(call: Call, params: EchoParams) -> EchoReply:
    """A reply that is no UTF-8."""
    return EchoReply(value="\udc80", method=call.method)


def gated(gate: Gate) -> dict[str, Verb[Call, Any, Any]]:
    """`gate.wait` waits until the gate opens; `gate.commit` too, shielded as a commit is."""

    async def wait(call: Call, params: EchoParams) -> EchoReply:
        gate.entered.set()
        try:
            await gate.opened.wait()
        except BaseException:
            gate.cancelled.set()
            raise
        gate.finished.append(call.method)
        return EchoReply(value=params.value, method=call.method)

    async def commit(call: Call, params: EchoParams) -> EchoReply:
        with anyio.CancelScope(shield=True):
            await wait(call, params)
        return EchoReply(value=params.value, method=call.method)

    verbs: list[Verb[Call, Any, Any]] = [
        Verb("gate.wait", EchoParams, EchoReply, wait),
        Verb("gate.commit", EchoParams, EchoReply, commit),
    ]
    return {verb.name: verb for verb in verbs}


_ALL: list[Verb[Call, Any, Any]] = [
    Verb("daemon.hello", HelloParams, HelloReply, hello),
    Verb("memory.search", SearchParams, SearchReply, search),
    Verb("fake.echo", EchoParams, EchoReply, echo),
    Verb("fake.placed", PlacedParams, EchoReply, placed),
    Verb("fake.broken", EchoParams, EchoReply, broken),
    Verb("fake.group", EchoParams, EchoReply, broken_group),
    Verb("fake.no_disk", EchoParams, EchoReply, no_disk),
    Verb("fake.too_late", EchoParams, EchoReply, too_late),
    Verb("fake.refused", EchoParams, EchoReply, refused),
    Verb("fake.conflict", EchoParams, EchoReply, conflict),
    Verb("fake.sized", SizeParams, EchoReply, sized),
    Verb("fake.unwritable", EchoParams, EchoReply, unwritable),
    Verb("fake.surrogate", EchoParams, EchoReply, surrogate),
]
VERBS = {verb.name: verb for verb in _ALL}


def request(method: str, request_id: object = 1, **params: object) -> bytes:
    """A request line, without its line end."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return msgspec.json.encode(message)
