"""A line in, a line out. Law: every line gets the one answer SPEC section 12 gives it, whatever it holds.

The only room that knows jsonrpcserver, and it knows no sockets. jsonrpcserver calls the method and shapes the
response; what it would do to the rest of the contract is kept from it: the line is
decoded and its envelope judged before, batches are taken apart, parameters are typed by msgspec, and no
exception of a verb reaches it. An exception's text may hold a note's: the log names types and places only.
"""

import enum
import logging
import traceback
import typing
import uuid
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic

import msgspec

from memd.errors import MemdError, Storage, TooLarge
from memd.live import Outbox
from memd.protocol import BATCH_MAX, REPLY_MAX, REQUEST_MAX, CallT, Params, Verb

with warnings.catch_warnings():
    # It reads its schema by a call that Python 3.11 and 3.12 deprecate and 3.13 took back into favour.
    warnings.simplefilter("ignore", DeprecationWarning)
    from jsonrpcserver import Error, Result, Success
    from jsonrpcserver.async_dispatcher import call as call_method
    from jsonrpcserver.dispatcher import to_response
    from jsonrpcserver.request import Request
    from jsonrpcserver.response import to_serializable_one
    from jsonrpcserver.sentinels import NOCONTEXT, NOID

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

_ECHO_MAX = 200
"""Characters of an error's text that may repeat the caller's own words: a method, a parameter's name."""
_MEMBER_SLACK = 1024
"""Bytes kept free in a batch's reply for an error of each member, its id not counted."""
_TRACE_CALLS = 20
_TRACE_ERRORS = 5

_ID_TYPES: Final = (str, int, float, type(None), type(NOID))

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_log = logging.getLogger(__name__)

# jsonrpcserver logs `str(exception)`; nothing gets as far as that, and if it ever did it must not be heard.
logging.getLogger("jsonrpcserver").addHandler(logging.NullHandler())
logging.getLogger("jsonrpcserver").propagate = False


class Dispatcher(Generic[CallT]):
    """Answers lines from a table of verbs.

    `call` makes what a verb gets as its first argument, once for each request, from the method's name and the
    outbox of the connection it came by.
    """

    def __init__(self, verbs: Mapping[str, Verb[CallT, Any, Any]], call: Callable[[str, Outbox], CallT]) -> None:
        self._methods: dict[str, Callable[..., Any]] = {name: _Method(verb, call) for name, verb in verbs.items()}

    async def answer(self, line: bytes, outbox: Outbox) -> bytes | None:
        """The reply line to one request line, with its line end; None where the wire says nothing.

        What a verb has to say later goes into `outbox`.

        Raises nothing but a cancellation, which goes into the verb and comes out of it again.
        """
        try:
            # Decoded whole and untyped, so that no byte is skipped: msgspec does not look at those it skips.
            message = _decode(line)
        except (ValueError, RecursionError):
            return _PARSE_ERROR_LINE
        if isinstance(message, list):
            return await self._batch(message, len(line), outbox)
        reply = await self._one(message, REPLY_MAX, outbox)
        return None if reply is None else reply + b"\n"

    async def _one(self, message: object, room: int, outbox: Outbox) -> bytes | None:
        """The reply to one request object in at most `room` bytes; None for a notification."""
        if not isinstance(message, dict):
            return _invalid("a request is an object")
        request_id = message.get("id", NOID)
        if type(request_id) not in _ID_TYPES:
            return _invalid("an id is a string, a number or null")
        trouble = _envelope_trouble(message)
        if trouble:
            return _invalid(trouble, None if request_id is NOID else request_id)
        name = message["method"]
        method = self._methods.get(name)
        if method is None:
            return None if request_id is NOID else _unknown(name, request_id)
        # One call at a time and by jsonrpcserver's inner function: its public entry runs each call as a task
        # of its own, where a cancellation would reach through the shield around a commit. It would also look at the
        # method's signature each time, though every method is called alike.
        request = Request(name, [(message.get("params"), outbox)], request_id)
        result = await call_method(request, NOCONTEXT, method)
        return None if request_id is NOID else _encoded(request, result, room)

    async def _batch(self, members: list[object], size: int, outbox: Outbox) -> bytes | None:
        """The reply to a batch of `size` bytes: its members judged alone, run and answered in order."""
        if not 1 <= len(members) <= BATCH_MAX:
            return _invalid(f"a batch holds 1 to {BATCH_MAX} requests") + b"\n"
        room = REPLY_MAX - size - len(members) * _MEMBER_SLACK
        replies: list[bytes] = []
        for member in members:
            reply = await self._one(member, room, outbox)
            if reply is not None:
                room -= len(reply)
                replies.append(reply)
        return b"[" + b",".join(replies) + b"]\n" if replies else None


class _Method(Generic[CallT]):
    """A verb as jsonrpcserver calls it: raw parameters and the outbox in, a result out, nothing raised."""

    __slots__ = ("_call", "_choices", "_name", "_params", "_run")

    def __init__(self, verb: Verb[CallT, Any, Any], call: Callable[[str, Outbox], CallT]) -> None:
        self._name = verb.name
        self._run = verb.run
        self._call = call
        self._params = verb.params
        self._choices = _choices(verb.params)

    async def __call__(self, asked: tuple[object, Outbox]) -> Result:
        params, outbox = asked
        if params and isinstance(params, list):
            return self._refused("all parameters by name")
        try:
            typed = msgspec.convert(params or {}, self._params)
        except msgspec.ValidationError as error:
            return self._refused(_explained(error, self._choices))
        try:
            return Success(await self._run(self._call(self._name, outbox), typed))
        except MemdError as error:
            return Error(error.code, f"{self._name}: {error.text}", error.data())
        except OSError as error:  # the disk failed where no store was told of it: as storage as any other (SPEC 4)
            if error.errno is None:  # a TimeoutError, say, which no disk raised
                return _incident(self._name, error)
            _log.error("%s: the disk failed: %s", self._name, trace(error))
            failed = Storage(f"{error.strerror or 'the disk failed'}; mend the disk and try again")
            return Error(failed.code, f"{self._name}: {failed.text}", failed.data())
        except Exception as error:  # noqa: BLE001 - the boundary: whatever a verb raises becomes a reply
            return _incident(self._name, error)

    def _refused(self, text: str) -> Result:
        return Error(INVALID_PARAMS, f"{self._name}: {text}", {"kind": "invalid_params"})


def _envelope_trouble(message: Mapping[str, object]) -> str | None:
    """What is wrong with a request's envelope, in a few words; None when nothing is."""
    if message.get("jsonrpc") != "2.0":
        return '`jsonrpc` is "2.0"'
    if not isinstance(message.get("method"), str):
        return "`method` is a string"
    if "params" in message and not isinstance(message["params"], dict | list):
        return "`params` is an object"
    return None


def _choices(params_type: type[Params]) -> dict[str, str]:
    """What each parameter with a fixed set of words may be, by msgspec's name of its place."""
    choices: dict[str, str] = {}
    for field in msgspec.structs.fields(params_type):
        for kind in (field.type, *typing.get_args(field.type)):
            if isinstance(kind, type) and issubclass(kind, enum.Enum):
                choices[f"`$.{field.encode_name}`"] = ", ".join(str(word.value) for word in kind)
    return choices


def _explained(error: msgspec.ValidationError, choices: Mapping[str, str]) -> str:
    """msgspec's text, which names the field and the bound; of an enumeration not the value, but the words."""
    text = str(error)
    if text.startswith("Invalid enum value"):
        place = text.rpartition(" - at ")[2]
        return f"Expected one of {choices.get(place, 'its words')} - at {place}"
    return text[:_ECHO_MAX]


def _incident(method: str, error: BaseException) -> Result:
    """An internal error: the caller learns its number, the log what was raised and where."""
    incident = uuid.uuid4().hex[:12]
    _log.error("incident %s in %s: %s", incident, method, trace(error))
    data = {"kind": "internal", "incident": incident}
    return Error(INTERNAL_ERROR, f"internal error (incident {incident})", data)


def trace(error: BaseException) -> str:
    """Types and places of an exception and of those it came from, on one line and without their text."""
    sites: list[str] = []
    came_from: BaseException | None = error
    while came_from is not None and len(sites) < _TRACE_ERRORS:
        sites.append(_site(came_from))
        context = None if came_from.__suppress_context__ else came_from.__context__
        came_from = came_from.__cause__ or context
    return " from ".join(sites)


def _site(error: BaseException) -> str:
    """One exception's type and calls, the raising one last; of a group also its parts'."""
    calls = [
        f"{frame.f_code.co_filename}:{line} {frame.f_code.co_qualname}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    site = f"{type(error).__module__}.{type(error).__qualname__} at {' > '.join(calls[-_TRACE_CALLS:])}"
    if isinstance(error, BaseExceptionGroup):
        site += f" of [{'; '.join(_site(part) for part in error.exceptions[:_TRACE_ERRORS])}]"
    return site


def _encoded(request: Request, result: Result, room: int) -> bytes:
    """The bytes of a result; an internal error where it is no JSON, too_large where it passes `room`.

    An error is told as it is, however little room the rest of its batch has left: `_MEMBER_SLACK` is kept for it.
    """
    try:
        answer = to_serializable_one(to_response(request, result))
        reply = _encode(answer)
    except Exception as error:  # noqa: BLE001 - a reply that cannot be written is an incident of its verb
        answer = to_serializable_one(to_response(request, _incident(request.method, error)))
        reply = _encode(answer)
    if isinstance(answer, dict) and "error" in answer:
        room = max(room, _MEMBER_SLACK + len(_encode(request.id)))
    if len(reply) <= room:
        return reply
    text = f"{request.method}: the reply would pass {REPLY_MAX} bytes; ask for less at a time"
    return _failure(TooLarge.code, text, TooLarge.kind, request.id)


def _failure(code: int, text: str, kind: str, request_id: object = None) -> bytes:
    error = {"code": code, "message": text, "data": {"kind": kind}}
    return _encode({"jsonrpc": "2.0", "error": error, "id": request_id})


def _invalid(text: str, request_id: object = None) -> bytes:
    return _failure(INVALID_REQUEST, f"invalid request: {text}", "invalid_request", request_id)


def _unknown(method: str, request_id: object) -> bytes:
    text = f"method not found: {method}"[:_ECHO_MAX]
    return _failure(METHOD_NOT_FOUND, text, "method_not_found", request_id)


_PARSE_ERROR_LINE = _failure(PARSE_ERROR, "parse error: the line is not JSON in UTF-8", "parse_error") + b"\n"
LINE_TOO_LONG = _failure(TooLarge.code, f"a line holds at most {REQUEST_MAX} bytes", TooLarge.kind) + b"\n"
"""The answer to a line over the cap, which the server drains and never decodes (SPEC section 12)."""
