"""What holds for any bytes at all. Law: each function here takes bytes and raises AssertionError, or nothing.

One function a room. A fuzzer calls them with what it invents, Hypothesis with what it builds, and a test with what
either of them found worth keeping. The answers that they check against are worked out here, in another way than the
rooms do it.
"""

import errno
import json
import re
import unicodedata
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from memd import config, errors, journal, note, rpc, secrets, server, tokens
from memd.listing import Listing, listed_by
from memd.live import Outbox
from memd.note import Note, NoteType
from memd.protocol import BATCH_MAX, Verb
from memd.rpc import Dispatcher
from memd.server import Lines, LineTooLongError
from memd.usage import Usage
from memd.verbs import VERBS
from support.fake_verbs import SECRET, Call, EchoParams, EchoReply, broken, broken_group, conflict, echo, refused

# -- framing ---------------------------------------------------------------------------------------------------------

LINE_CAP = 24
"""Bytes in a line, for these laws: a fuzzer would not come to a mebibyte."""
CHUNKS = 8
TOO_LONG = object()


def framing(data: bytes) -> None:
    """Lines come whole, in order, however the bytes are cut; the first eight bytes say how."""
    sizes = [1 + byte % (2 * LINE_CAP) for byte in data[:CHUNKS]] or [1]
    sent = data[CHUNKS:]
    with _set(server, REQUEST_MAX=LINE_CAP):
        got = list(_taken_in_chunks(sent, sizes))
    assert got == list(_split(sent)), (sent, sizes)


def _taken_in_chunks(sent: bytes, sizes: list[int]) -> Iterator[object]:
    lines = Lines()
    at = turn = 0
    while at < len(sent):
        size = sizes[turn % len(sizes)]
        lines.feed(sent[at : at + size])
        at, turn = at + size, turn + 1
        assert len(lines._buffer) <= LINE_CAP + size
        if lines.is_full or size % 2:  # the reader waits for room only; the worker takes when it is its turn
            yield from _take_all(lines)
            assert not lines.is_full
    yield from _take_all(lines)
    lines.ended = True
    yield from _take_all(lines)
    assert lines.is_empty


def _take_all(lines: Lines) -> Iterator[object]:
    while True:
        try:
            line = lines.take()
        except LineTooLongError:
            yield TOO_LONG
            continue
        if line is None:
            return
        yield line


def _split(sent: bytes) -> Iterator[object]:
    for line in sent.split(b"\n"):
        if len(line) > LINE_CAP:
            yield TOO_LONG
        elif line.strip():
            yield line


# -- envelope --------------------------------------------------------------------------------------------------------

REPLY_CAP = 1 << 14
"""Bytes in a reply, for these laws."""
DATA_FIELDS = {"kind", "field", "bound", "got", "hash", "incident"}
KINDS = {error.code: error.kind for error in errors.MemdError.__subclasses__()} | {
    rpc.PARSE_ERROR: "parse_error",
    rpc.INVALID_REQUEST: "invalid_request",
    rpc.METHOD_NOT_FOUND: "method_not_found",
    rpc.INVALID_PARAMS: "invalid_params",
    rpc.INTERNAL_ERROR: "internal",
}
"""Every code of SPEC 12 and its kind."""
BROKEN = {"broken", "group", "unwritable", "surrogate", "disk"}
"""The verbs that fail by themselves: no other may be answered with an incident."""
ID_TYPES = (str, int, float, type(None))
_ABSENT = object()


async def _sized(call: Call, params: EchoParams) -> EchoReply:
    """A text as long as was asked for, within reason."""
    return EchoReply(value="x" * min(params.limit, 2 * REPLY_CAP), method=call.method)


async def _unwritable(call: Call, params: EchoParams) -> EchoReply:
    return EchoReply(value=object(), method=call.method)


async def _surrogate(call: Call, params: EchoParams) -> EchoReply:
    return EchoReply(value="\udc80", method=call.method)


async def _no_disk(call: Call, params: EchoParams) -> EchoReply:
    """A disk that fails under a verb, with a number of the system's or, as a wait that ended, without one."""
    raise OSError(errno.EIO, "disk") if params.limit == 1 else TimeoutError(SECRET)


async def _nothing(call: Call, params: Any) -> EchoReply:
    """Takes the real verb's parameters, which is all that is asked of it here."""
    return EchoReply(value=None, method=call.method)


def _verbs() -> dict[str, Verb[Call, Any, Any]]:
    own: dict[str, Any] = {
        "echo": echo,
        "broken": broken,
        "group": broken_group,
        "refused": refused,
        "conflict": conflict,
        "sized": _sized,
        "unwritable": _unwritable,
        "surrogate": _surrogate,
        "disk": _no_disk,
    }
    verbs: dict[str, Verb[Call, Any, Any]] = {
        name: Verb(name, EchoParams, EchoReply, run) for name, run in own.items()
    }
    return verbs | {name: Verb(name, verb.params, EchoReply, _nothing) for name, verb in VERBS.items()}


METHODS = _verbs()
_dispatcher = Dispatcher(METHODS, Call)
_outbox = Outbox(lambda: None)


def envelope(data: bytes) -> None:
    """A line has the answer of SPEC 12, whatever it holds: JSON-RPC, under its id, an error of the table."""
    with _set(rpc, REPLY_MAX=REPLY_CAP):
        reply = _driven(_dispatcher.answer(data, _outbox))
    if reply is not None:
        assert reply.endswith(b"\n")
        assert reply.count(b"\n") == 1
        assert len(reply) <= REPLY_CAP + 2 * len(data) + 1024
        assert SECRET.encode() not in reply
    answer = None if reply is None else json.loads(reply.decode(), parse_constant=_no_constant)
    try:
        asked = json.loads(data.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        _is_error(answer, rpc.PARSE_ERROR, None)
        return
    if isinstance(answer, dict) and answer.get("error", {}).get("code") == rpc.PARSE_ERROR:
        # What JSON's grammar lets through and no text or number can hold.
        assert b"\\u" in data or re.search(rb"\d{19}|[eE]\+?\d{3}", data) or re.search(rb"[\[{]{200}", data), data
        return
    if isinstance(asked, list):
        _judge_batch(asked, answer)
    else:
        _judge_one(asked, answer)


def _judge_batch(asked: list[Any], answer: Any) -> None:
    if not 1 <= len(asked) <= BATCH_MAX:
        _is_error(answer, rpc.INVALID_REQUEST, None)
        return
    answered = [member for member in asked if not _is_notification(member)]
    if not answered:
        assert answer is None
        return
    assert isinstance(answer, list)
    assert len(answer) == len(answered)
    for member, reply in zip(answered, answer, strict=True):
        _judge_one(member, reply)


def _is_notification(message: Any) -> bool:
    return isinstance(message, dict) and "id" not in message and _is_sound(message)


def _is_sound(message: dict[str, Any]) -> bool:
    params = message.get("params", {})
    return message.get("jsonrpc") == "2.0" and type(message.get("method")) is str and isinstance(params, dict | list)


def _judge_one(asked: Any, answer: Any) -> None:
    request_id = asked.get("id", _ABSENT) if isinstance(asked, dict) else None
    if not isinstance(asked, dict) or (request_id is not _ABSENT and type(request_id) not in ID_TYPES):
        _is_error(answer, rpc.INVALID_REQUEST, None)
    elif not _is_sound(asked):
        _is_error(answer, rpc.INVALID_REQUEST, None if request_id is _ABSENT else request_id)
    elif request_id is _ABSENT:
        assert answer is None
    elif asked["method"] not in METHODS:
        _is_error(answer, rpc.METHOD_NOT_FOUND, request_id)
    elif isinstance(asked.get("params"), list) and asked["params"]:
        _is_error(answer, rpc.INVALID_PARAMS, request_id)
    elif "result" in answer:
        assert answer.keys() == {"jsonrpc", "id", "result"}
        assert answer["jsonrpc"] == "2.0"
        assert _same_id(answer["id"], request_id)
        assert answer["result"]["method"] == asked["method"]
    else:
        code = answer["error"]["code"]
        _is_error(answer, code, request_id)
        assert code != rpc.INTERNAL_ERROR or asked["method"] in BROKEN


def _is_error(answer: Any, code: int, request_id: object) -> None:
    assert answer.keys() == {"jsonrpc", "id", "error"}
    assert answer["jsonrpc"] == "2.0"
    assert _same_id(answer["id"], request_id), (answer["id"], request_id)
    error = answer["error"]
    assert error.keys() == {"code", "message", "data"}
    assert error["code"] == code, (error, code)
    assert error["data"]["kind"] == KINDS[code]
    assert error["data"].keys() <= DATA_FIELDS
    assert len(error["message"]) < 400


def _same_id(answered: object, asked: object) -> bool:
    return type(answered) is type(asked) and answered == asked


def _driven(coroutine: Coroutine[Any, Any, bytes | None]) -> bytes | None:
    """What a coroutine gives that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        reply: bytes | None = done.value
        return reply
    raise AssertionError("a verb that waits for nothing was waited for")


def _no_constant(name: str) -> object:
    raise ValueError(name)


# -- notes -----------------------------------------------------------------------------------------------------------

_KNOWN_LINE = re.compile(r"(?:name|description|type):")


def notes(data: bytes) -> None:
    """Reading never fails, loses no line it does not know, and what is rewritten reads the same from then on."""
    found = note.parse("stem", data)
    assert found.name == "stem"
    assert "\n" not in found.hook
    assert len(found.hook) <= note.MAX_HOOK
    found.hook.encode()
    found.body.encode()
    _keeps_lines(data)
    for entry in found.extra:
        note.entry_value(entry).encode()
        assert note.extra_key(entry) not in ("name", "description", "type")
        assert found.trouble is not None or not note.is_open(entry)
    if found.trouble is None:
        _rewrites_to_itself(found)
        _renames(data, found)
    else:
        assert 1 <= found.trouble.line <= 1 + data.count(b"\n") + data.count(b"\r")
    _slugs(data[:400].decode(errors="replace"))
    _slugs(2 * data.decode(errors="replace"))
    _slugs(found.hook)
    tagged = note.tagged(data, "claude")
    assert note.tagged(tagged, "claude") == tagged
    assert note.parse("stem", tagged).body == found.body


def _rewrites_to_itself(found: Note) -> None:
    bare = note.parse("stem", note.render(found.name, found.description, None, (), found.body))
    assert (bare.type, bare.extra, bare.trouble, bare.body) == (None, (), None, found.body)
    raw = _rendered(found)
    again = note.parse("stem", raw)
    assert again.trouble is None
    assert (again.hook, again.body, again.description) == (found.hook, found.body, found.description)
    assert again.type == (found.type or NoteType.USER)
    assert "\n".join(again.extra) == "\n".join(found.extra)
    assert _rendered(again) == raw


def _rendered(found: Note) -> bytes:
    return note.render(found.name, found.description, found.type or NoteType.USER, found.extra, found.body)


def _keeps_lines(data: bytes) -> None:
    """Line by line: what belongs to no known key is among the raw lines, and the body is what is after the block."""
    text = data.decode(errors="replace").removeprefix("\ufeff")
    reading = note.read(data.decode(errors="replace"))
    lines = re.sub(r"(?<!\r)\r+(?:\n|\Z)", "\n", text).split("\n")
    if lines[0].strip() != "---":
        assert reading.body == _without_blank_ends(lines)
        return
    end = next((at for at, line in enumerate(lines) if at and re.fullmatch(r"---\s*", line)), None)
    if end is None:
        assert reading.trouble is not None
        assert reading.body == _without_blank_ends(lines[1:])
        return
    assert reading.body == _without_blank_ends(lines[end + 1 :])
    block = lines[1:end]
    while block and (not block[0].strip() or block[0].lstrip()[0] == "#"):
        del block[0]
    if reading.json or (block and block[0][0] in " \t"):
        return  # JSON has no raw lines, and a block indented as a whole loses its indentation
    kept = []
    known = False
    for line in block:
        if line.strip() and line[0] not in " \t#":
            known = _KNOWN_LINE.match(line) is not None
        if not known:
            kept.append(line)
    assert "\n".join(reading.extra) == "\n".join(kept), block


def _without_blank_ends(lines: list[str]) -> str:
    said = [at for at, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[said[0] : said[-1] + 1]) if said else ""


def _renames(data: bytes, found: Note) -> None:
    raw = note.renamed(data, "another-name")
    again = note.parse("stem", raw)
    assert (again.hook, again.body, again.description) == (found.hook, found.body, found.description)
    assert (again.type, again.extra, again.trouble) == (found.type, found.extra, None)
    assert note.renamed(raw, "another-name") == raw


def _slugs(text: str) -> None:
    for slug in (note.slug(text), note.derived_slug(text)):
        assert note.slug(slug) == slug
        assert len(slug) <= note.MAX_SLUG
        assert len(slug.encode()) <= note.MAX_SLUG_BYTES
        assert slug == slug.strip("-")
        assert not slug or slug == note.RESERVED or note.is_note_name(slug + note.SUFFIX)
    plain = note.plain_or_quoted(text)
    assert text in (plain, json.loads(plain) if plain != text else text)
    if plain == text:
        assert note.read(f"---\nname: {plain}\n---\n").name == text
    if note.is_note_name(text):
        assert text.endswith(".md")
        text.encode()
        assert not any(unicodedata.category(character) == "Cc" for character in text)


# -- the store's files -----------------------------------------------------------------------------------------------


def records(data: bytes) -> None:
    """A journal reads to its end, its tail apart; what reads is written the same; heads add up."""
    heads = journal.Heads()
    found = journal.replay(data)
    told = journal.replay(data, heads=heads)
    assert found.size + found.torn_bytes == len(data)
    assert found.count == len(found.records) == told.count
    assert found.records == list(journal.records(data))
    last = found.records[-1] if found.records else None
    assert journal.last_record(data[: found.size]) == last
    assert found.digest == (last.digest if last else "")
    assert found.broken_line is None or 1 <= found.broken_line <= found.lines
    for line in data.split(b"\n"):
        record = journal.decode(line)
        assert record is None or journal.encode(record) == line + b"\n"
    middle = data.find(b"\n", len(data) // 2) + 1
    first = journal.replay(data[:middle])
    rest = journal.replay(data[middle:], first.digest, first.lines + 1)
    assert first.records + rest.records == found.records
    _add_up(heads, found.records)


def _add_up(heads: journal.Heads, applied: list[journal.Record]) -> None:
    live = list(heads.live())
    assert len(live) == heads.live_count
    planned = journal.Planned(journal.Heads())
    for record in applied:
        planned.apply(record)
    assert list(planned.live()) == live
    for name in live:
        versions = heads.versions(name)
        assert versions
        assert all(heads.held(version) for version in versions)
        assert planned.versions(name) == versions
        for version in versions:
            assert re.fullmatch(r"[0-9a-f]{64}", journal.hex_of(version))
        assert "/" not in name
    for record in applied:
        is_head = record.op in journal.HEAD_OPS and heads.head(record.name) is not None
        if is_head and journal.parse_hash(record.hash) == record.hash:
            assert heads.held(record.hash) or heads.ended(record.hash)


def usage(data: bytes) -> None:
    """Counts that do not read are unreadable; those that do come back as they went."""
    try:
        counts = Usage.decode(data)
    except errors.Unreadable:
        return
    assert counts.sessions >= 0
    for each in counts.notes.values():
        assert each.saves >= 0
        assert each.reads >= 0
    assert Usage.decode(counts.encode()) == counts
    more = counts.session_started().saved("one", 5).read("two", 6)
    assert Usage.decode(more.encode()) == more
    # Written a second time it is the bytes before with entries put in: the same as written anew.
    once_more = more.saved("two", 7).read("three", 8)
    assert Usage.decode(once_more.encode()) == once_more
    assert once_more.counts("two").reads == counts.counts("two").reads + 1
    assert "two" not in once_more.without("two").notes
    lowered = more.lowered(_HEADS)
    assert lowered.sessions == more.sessions
    for name, each in lowered.notes.items():
        assert each.saves <= more.counts(name).saves
        assert each.reads <= more.counts(name).reads
    assert Usage.decode(lowered.encode()) == lowered


def _heads() -> journal.Heads:
    """What a journal says of a note `one`: saved once, read never."""
    heads = journal.Heads()
    heads.apply(journal.Record(op="save", name="one", hash=journal.content_hash(b""), at=1))
    return heads


_HEADS = _heads()


def listing(data: bytes) -> None:
    """An index keeps the lines it does not know, lists each note once, and comes to rest."""
    try:
        index = Listing.decode(data)
    except errors.Unreadable:
        return
    assert index.encode() == data
    rows = index.rows()
    for row in rows:
        assert "/" not in row.name
        assert row.name
        assert index.lists(row.name)
    notes = {row.name: "a hook" for row in rows[::2]} | {"fresh": "of its own"}
    once = index.reconciled(notes)
    assert once.reconciled(notes) == once
    assert sorted(row.name for row in once.rows(notes)) == sorted(notes)
    assert _foreign(index, notes) == _foreign(once, notes)
    for own in (True, False):
        for stale in (True, False, None):
            mended = once.with_own_row("fresh", "mended", lambda _text, own=own: own, stale=stale)  # type: ignore[misc]
            assert _foreign(mended, notes) == _foreign(once, notes)
            assert mended.lists("fresh")
            assert own or mended == once
    fuller = index.with_row("fresh", "another hook")
    assert fuller.lists("fresh")
    assert not fuller.without("fresh").lists("fresh")
    together = one_by_one = index
    for name in (*notes, *(f"n{number}" for number in range(20))):
        together, one_by_one = together.with_row(name, "a hook"), one_by_one.with_row(name, "a hook")
        assert one_by_one.lists(name)  # for which it has to stand there
    assert together == one_by_one


def _foreign(index: Listing, notes: dict[str, str]) -> list[str]:
    lines = index.text.removeprefix("\ufeff").split("\n")
    return [line for line in (line.rstrip("\r") for line in lines) if line and listed_by(line, notes) is None]


def settings(data: bytes) -> None:
    """A config gives every key a value it can have, or the defaults; what it says of itself is short."""
    given = config.parse(data)
    standing = msgspec.structs.replace(given, findings=())
    if not given.sound:
        assert given.findings
        assert standing == config.Config(claude_import=False, kimi_import=False, sound=False)
    assert type(given.save_cap) is int
    assert type(given.settle_ms) is int
    assert type(given.lock_timeout_s) is float
    assert given.log_level in config.LOG_LEVELS
    assert set(given.history_sources) <= set(config.SOURCES)
    assert all(root.is_absolute() for root in given.history_roots)
    for finding in given.findings:
        assert finding.startswith("config: ")
        assert len(finding) < 400


# -- words and keys --------------------------------------------------------------------------------------------------


def words(data: bytes) -> None:
    """Every key-shaped run has its place, none is left behind a mask; a token is never blank."""
    text = data.decode(errors="replace")
    found = secrets.scan(text)
    for run in found:
        assert 0 <= run.start < run.end <= len(text)
        assert run.line == 1 + text.count("\n", 0, run.start)
    masked = secrets.redact(text)
    assert not secrets.scan(masked)
    assert (masked == text) == (not found)
    secrets.warn_kinds(text)
    for token in tokens.tokenize(text):
        assert token
        assert not any(character.isspace() for character in token)
        assert unicodedata.category(token[0])[0] != "M"
        assert token not in tokens.STOPWORDS
    assert len(set(tokens.query_terms(text))) == len(tokens.query_terms(text))
    assert tokens.jaccard(text, text) in (0.0, 1.0)


@contextmanager
def _set(room: object, **values: object) -> Iterator[None]:
    """A room's constants are these for a while."""
    before = {name: getattr(room, name) for name in values}
    for name, value in values.items():
        setattr(room, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(room, name, value)
