"""Line in, line out: what SPEC section 12 says of every kind of line."""

import json
import logging
from typing import Any

import anyio
import pytest

from memd.live import Outbox
from memd.protocol import BATCH_MAX, NUMBER_MAX, REPLY_MAX
from memd.rpc import LINE_TOO_LONG, Dispatcher
from support.fake_verbs import SECRET, VERBS, Call, outbox, request

NO_REPLY = None
BIG = 123456789012345678901234567890


def answer(line: bytes) -> Any:
    """The decoded reply to one line; None where there is none."""
    reply = anyio.run(Dispatcher(VERBS, Call).answer, line, outbox())
    if reply is None:
        return None
    assert reply.endswith(b"\n")
    assert reply.count(b"\n") == 1
    return json.loads(reply)


def error(code: int, kind: str, text: str, request_id: object = None, **more: object) -> dict[str, object]:
    data = {"kind": kind, **more}
    return {"jsonrpc": "2.0", "error": {"code": code, "message": text, "data": data}, "id": request_id}


def invalid(text: str, request_id: object = None) -> dict[str, object]:
    return error(-32600, "invalid_request", f"invalid request: {text}", request_id)


def bad_params(method: str, text: str) -> dict[str, object]:
    return error(-32602, "invalid_params", f"{method}: {text}", 1)


def done(value: object, request_id: object = 1, method: str = "fake.echo") -> dict[str, object]:
    return {"jsonrpc": "2.0", "result": {"value": value, "method": method}, "id": request_id}


PARSE_ERROR = error(-32700, "parse_error", "parse error: the line is not JSON in UTF-8")
ONE_PLACE = "a request names its place by exactly one of `session` and `cwd`"
ID_TEXT = "an id is a string, a number or null"
BATCH_TEXT = f"a batch holds 1 to {BATCH_MAX} requests"

NOT_JSON: dict[str, bytes] = {
    "nothing": b"",
    "a word": b"hello",
    "cut short": b'{"jsonrpc":"2.0","id":1,"method":"fake.echo"',
    "two values": b"{} {}",
    "a trailing comma": b'{"jsonrpc":"2.0","id":1,"method":"fake.echo",}',
    "single quotes": b"{'jsonrpc':'2.0'}",
    "a byte order mark": b"\xef\xbb\xbf" + request("fake.echo"),
    "a raw control character": b'{"jsonrpc":"2.0","id":1,"method":"fake.\x01echo"}',
    "a lone surrogate": b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","params":{"value":"\\ud800"}}',
    "invalid UTF-8 in a method": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    "invalid UTF-8 in a parameter": b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","params":{"value":"\xff"}}',
    "invalid UTF-8 in a key": b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","params":{"\xff":1}}',
    "invalid UTF-8 in what nobody reads": b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","x":["\xff"]}',
    "invalid UTF-8 of an unknown method": b'{"jsonrpc":"2.0","id":1,"method":"no","params":{"a":"\xc3\x28"}}',
    "an encoded surrogate": b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","params":{"value":"\xed\xa0\x80"}}',
    "NaN as an id": b'{"jsonrpc":"2.0","id":NaN,"method":"fake.echo"}',
    "NaN as a parameter": b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","params":{"value":NaN}}',
    "Infinity": b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","params":{"value":-Infinity}}',
    "a number past every float": b'{"jsonrpc":"2.0","id":1e400,"method":"fake.echo"}',
    "a number of 5,000 digits": b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"fake.echo"}',
    "100,000 open brackets": b"[" * 100_000,
    "100,000 open objects": b'{"a":' * 100_000,
    "deep parameters": b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","params":{"value":'
    + b"[" * 50_000
    + b"]" * 50_000
    + b"}}",
}

CASES: dict[str, tuple[bytes, object]] = {
    # -- ids
    "a number": (request("fake.echo", 7, value=1), done(1, 7)),
    "zero": (request("fake.echo", 0, value=1), done(1, 0)),
    "a negative number": (request("fake.echo", -7, value=1), done(1, -7)),
    "a big number": (request("fake.echo", BIG, value=1), done(1, BIG)),
    "a fraction": (request("fake.echo", 1.5, value=1), done(1, 1.5)),
    "a string": (request("fake.echo", "ü\n", value=1), done(1, "ü\n")),
    "an empty string": (request("fake.echo", "", value=1), done(1, "")),
    "null is an id": (request("fake.echo", None, value=1), done(1, None)),
    "true is none": (request("fake.echo", True), invalid(ID_TEXT)),
    "a list is none": (request("fake.echo", [1]), invalid(ID_TEXT)),
    "an object is none": (request("fake.echo", {"a": 1}), invalid(ID_TEXT)),
    # -- the envelope
    "no jsonrpc": (b'{"id":1,"method":"fake.echo"}', invalid('`jsonrpc` is "2.0"', 1)),
    "jsonrpc 1.0": (b'{"jsonrpc":"1.0","id":1,"method":"fake.echo"}', invalid('`jsonrpc` is "2.0"', 1)),
    "jsonrpc 2": (b'{"jsonrpc":2.0,"id":"a","method":"fake.echo"}', invalid('`jsonrpc` is "2.0"', "a")),
    "an invalid request without an id": (b'{"method":"fake.echo"}', invalid('`jsonrpc` is "2.0"')),
    "no method": (b'{"jsonrpc":"2.0","id":1}', invalid("`method` is a string", 1)),
    "a method that is a number": (b'{"jsonrpc":"2.0","id":1,"method":5}', invalid("`method` is a string", 1)),
    "params null": (
        b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","params":null}',
        invalid("`params` is an object", 1),
    ),
    "params a string": (
        b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","params":"a"}',
        invalid("`params` is an object", 1),
    ),
    "an empty object": (b"{}", invalid('`jsonrpc` is "2.0"')),
    "a string line": (b'"hello"', invalid("a request is an object")),
    "a number line": (b"5", invalid("a request is an object")),
    "null": (b"null", invalid("a request is an object")),
    "no params": (b'{"jsonrpc":"2.0","id":1,"method":"fake.echo"}', done(None)),
    "a line end": (request("fake.echo", value=1) + b"\r\n", done(1)),
    "a member nobody knows": (b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","meta":{}}', done(None)),
    "a key given twice: the last counts": (
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"fake.echo","params":{"value":1,"value":2}}',
        done(2, 2),
    ),
    # -- parameters
    "every text comes back": (request("fake.echo", value="ü\u2028\x7f\U0001f600"), done("ü\u2028\x7f\U0001f600")),
    "an unknown method": (
        request("memory.sav"),
        error(-32601, "method_not_found", "method not found: memory.sav", 1),
    ),
    "an unknown method with a long name": (
        request("x" * 1000),
        error(-32601, "method_not_found", ("method not found: " + "x" * 1000)[:200], 1),
    ),
    "an unknown method by position": (
        b'{"jsonrpc":"2.0","id":1,"method":"no","params":[1]}',
        error(-32601, "method_not_found", "method not found: no", 1),
    ),
    "by position": (
        b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","params":[1]}',
        bad_params("fake.echo", "all parameters by name"),
    ),
    "no parameter by position": (b'{"jsonrpc":"2.0","id":1,"method":"fake.echo","params":[]}', done(None)),
    "an unknown parameter": (
        request("fake.echo", valeu=1),
        bad_params("fake.echo", "Object contains unknown field `valeu`"),
    ),
    "an unknown parameter with a long name": (
        request("fake.echo", **{"x" * 1000: 1}),
        bad_params("fake.echo", ("Object contains unknown field `" + "x" * 1000)[:200]),
    ),
    "a parameter that is missing": (
        request("memory.search", cwd="/"),
        bad_params("memory.search", "Object missing required field `query`"),
    ),
    "a parameter of another type": (
        request("memory.search", cwd="/", query=5),
        bad_params("memory.search", "Expected `str`, got `int` - at `$.query`"),
    ),
    "a number for a flag": (
        request("memory.search", cwd="/", query="a", limit=True),
        bad_params("memory.search", "Expected `int`, got `bool` - at `$.limit`"),
    ),
    "a limit of 0": (
        request("memory.search", cwd="/", query="a", limit=0),
        bad_params("memory.search", "Expected `int` >= 1 - at `$.limit`"),
    ),
    "a limit past every list": (
        request("memory.search", cwd="/", query="a", limit=BIG),
        bad_params("memory.search", f"Expected `int` <= {NUMBER_MAX} - at `$.limit`"),
    ),
    "an offset of -1": (
        request("memory.search", cwd="/", query="a", offset=-1),
        bad_params("memory.search", "Expected `int` >= 0 - at `$.offset`"),
    ),
    "a scope that is none": (
        request("memory.search", cwd="/", query="a", scope="swordfish"),
        bad_params("memory.search", "Expected one of repo, global - at `$.scope`"),
    ),
    "a type that is none": (
        request("fake.echo", kind="swordfish"),
        bad_params("fake.echo", "Expected one of user, feedback, project, reference - at `$.kind`"),
    ),
    "no place": (request("fake.placed"), bad_params("fake.placed", ONE_PLACE)),
    "two places": (request("fake.placed", cwd="/", session="s"), bad_params("fake.placed", ONE_PLACE)),
    "a person's place": (request("fake.placed", cwd="/tmp"), done("/tmp", method="fake.placed")),
    "an agent's place": (
        request("fake.placed", session="s", cwd=None),
        done("s", method="fake.placed"),
    ),
    "a place where none belongs": (
        request("daemon.hello", cwd="/"),
        bad_params("daemon.hello", "Object contains unknown field `cwd`"),
    ),
    # -- errors of verbs
    "refused": (
        request("fake.refused", "r"),
        error(
            -32001,
            "refused",
            "fake.refused: the body is over 8192 bytes",
            "r",
            field="body",
            bound=8192,
            got=9000,
        ),
    ),
    "null in an error's data is written": (
        request("fake.conflict"),
        error(-32006, "conflict", "fake.conflict: the head is another version", 1, hash=None),
    ),
    # -- notifications
    "a notification": (b'{"jsonrpc":"2.0","method":"fake.echo","params":{"value":1}}', NO_REPLY),
    "a notification nobody knows": (b'{"jsonrpc":"2.0","method":"no"}', NO_REPLY),
    "a notification with bad parameters": (b'{"jsonrpc":"2.0","method":"fake.echo","params":{"x":1}}', NO_REPLY),
    "a notification that is refused": (b'{"jsonrpc":"2.0","method":"fake.refused"}', NO_REPLY),
    "a notification that fails": (b'{"jsonrpc":"2.0","method":"fake.broken"}', NO_REPLY),
    "a notification whose reply is no JSON": (b'{"jsonrpc":"2.0","method":"fake.unwritable"}', NO_REPLY),
    # -- batches
    "an empty batch": (b"[]", invalid(BATCH_TEXT)),
    "a full batch": (
        b"[" + b",".join(request("fake.echo", n, value=n) for n in range(BATCH_MAX)) + b"]",
        [done(n, n) for n in range(BATCH_MAX)],
    ),
    "a batch too large, as a whole": (
        b"[" + b",".join(request("fake.echo", n) for n in range(BATCH_MAX + 1)) + b"]",
        invalid(BATCH_TEXT),
    ),
    "a batch of one": (b"[" + request("fake.echo", value=1) + b"]", [done(1)]),
    "each member judged alone": (
        b"[1,[],"
        + request("fake.echo", 2, value=2)
        + b',{"id":3},'
        + request("memory.search", 1, cwd="/")
        + b',{"jsonrpc":"2.0","method":"fake.echo"},'
        + request("fake.echo", 4, value=4)
        + b"]",
        [
            invalid("a request is an object"),
            invalid("a request is an object"),
            done(2, 2),
            invalid('`jsonrpc` is "2.0"', 3),
            bad_params("memory.search", "Object missing required field `query`"),
            done(4, 4),
        ],
    ),
    "a batch of notifications": (
        b'[{"jsonrpc":"2.0","method":"fake.echo"},{"jsonrpc":"2.0","method":"no"}]',
        NO_REPLY,
    ),
    "a member that is no JSON spoils the line": (b"[" + request("fake.echo") + b",{]", PARSE_ERROR),
}


@pytest.mark.parametrize(("line", "reply"), CASES.values(), ids=CASES.keys())
def test_a_line_has_one_answer(line: bytes, reply: object) -> None:
    assert answer(line) == reply


@pytest.mark.parametrize("line", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_what_is_no_json_in_utf8_is_a_parse_error(line: bytes) -> None:
    assert answer(line) == PARSE_ERROR


def test_a_reply_is_compact_and_leaves_out_what_is_optional() -> None:
    reply = anyio.run(Dispatcher(VERBS, Call).answer, request("memory.search", "a", cwd="/", query="x"), outbox())
    assert reply == b'{"jsonrpc":"2.0","result":{"hits":[],"total":0},"id":"a"}\n'


def test_a_line_too_long_is_named() -> None:
    assert json.loads(LINE_TOO_LONG) == error(-32010, "too_large", "a line holds at most 1048576 bytes")
    assert LINE_TOO_LONG.endswith(b"\n")


# -- the cap of a reply ----------------------------------------------------------------------------------------

FRAME = len(json.dumps(done("", 1, "fake.sized"), separators=(",", ":")))
TOO_LARGE = f"fake.sized: the reply would pass {REPLY_MAX} bytes; ask for less at a time"


def test_a_reply_as_long_as_the_cap_is_sent() -> None:
    reply = anyio.run(Dispatcher(VERBS, Call).answer, request("fake.sized", size=REPLY_MAX - FRAME), outbox())
    assert reply is not None
    assert len(reply) == REPLY_MAX + 1


def test_a_longer_reply_becomes_an_error() -> None:
    line = request("fake.sized", size=REPLY_MAX - FRAME + 1)
    assert answer(line) == error(-32010, "too_large", TOO_LARGE, 1)


def test_the_replies_of_a_batch_keep_the_cap_together() -> None:
    members = [request("fake.sized", n, size=REPLY_MAX // 3) for n in range(3)]
    members += [request("fake.echo", n, value=n) for n in range(3, BATCH_MAX)]
    line = b"[" + b",".join(members) + b"]"
    replies = answer(line)
    assert [reply["id"] for reply in replies] == list(range(BATCH_MAX))
    assert [("result" in reply) for reply in replies[:4]] == [True, True, False, True]
    assert replies[2] == error(-32010, "too_large", TOO_LARGE, 2)
    assert len(json.dumps(replies)) < REPLY_MAX


def test_a_reply_that_leaves_no_room_for_the_rest_of_its_batch_is_too_large() -> None:
    ids = ["é" * 7000 + str(n) for n in range(BATCH_MAX)]
    sizes = [REPLY_MAX - 14_000 - FRAME - 100] + [1] * (BATCH_MAX - 1)
    members = [request("fake.sized", name, size=size) for name, size in zip(ids, sizes, strict=True)]
    reply = anyio.run(Dispatcher(VERBS, Call).answer, b"[" + b",".join(members) + b"]", outbox())
    assert reply is not None
    assert len(reply) <= REPLY_MAX + 1
    replies = json.loads(reply)
    assert [member["id"] for member in replies] == ids
    assert ["error" in member for member in replies] == [True] + [False] * (BATCH_MAX - 1)


def test_an_error_is_told_as_it_is_however_little_room_is_left_for_it() -> None:
    """Found by the fuzzer: behind a long reply an error said that its own reply would be too large."""
    wrong = b'{"jsonrpc":"2.0","id":"last","method":"fake.echo","params":[1]}'

    def batch(size: int) -> bytes:
        return b"[" + request("fake.sized", 1, size=size) + b"," + wrong + b"]"

    size = REPLY_MAX - len(batch(REPLY_MAX)) - 2 * 1024 - FRAME - 10  # ten bytes are left, and the slack
    first, last = answer(batch(size))
    assert "result" in first
    assert (last["id"], last["error"]["data"]["kind"]) == ("last", "invalid_params")


# -- what must not leak ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", ["fake.broken", "fake.group", "fake.too_late", "fake.unwritable", "fake.surrogate"]
)
def test_an_exception_becomes_an_incident_whose_text_nobody_sees(
    method: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        reply = answer(request(method, 9, value="swordfish"))
    incident = reply["error"]["data"]["incident"]
    text = f"internal error (incident {incident})"
    assert reply == error(-32603, "internal", text, 9, incident=incident)
    [record] = [record for record in caplog.records if record.name != "asyncio"]
    message = record.getMessage()
    assert record.levelname == "ERROR"
    assert f"incident {incident} in {method}: " in message
    assert "swordfish" not in message + str(capfd.readouterr())
    assert record.exc_info is None


def test_a_disk_that_fails_a_verb_is_storage_and_its_path_is_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    text = "fake.no_disk: Input/output error; mend the disk and try again"
    assert answer(request("fake.no_disk")) == error(-32008, "storage", text, 1)
    [record] = [record for record in caplog.records if record.name == "memd.rpc"]
    assert "builtins.OSError at " in record.getMessage()
    assert SECRET not in record.getMessage()


def test_two_incidents_have_two_numbers() -> None:
    replies = answer(b"[" + request("fake.broken") + b"," + request("fake.broken") + b"]")
    assert replies[0]["error"]["data"]["incident"] != replies[1]["error"]["data"]["incident"]


def test_an_incident_s_log_names_types_and_places(caplog: pytest.LogCaptureFixture) -> None:
    answer(request("fake.broken"))
    answer(request("fake.group"))
    first, second = (record.getMessage() for record in caplog.records if record.name == "memd.rpc")
    assert "builtins.RuntimeError at " in first
    assert " broken from builtins.KeyError at " in first
    assert "fake_verbs.py:" in first
    assert "builtins.ExceptionGroup at " in second
    assert " of [builtins.ValueError at " in second


def test_a_line_that_is_no_json_is_not_repeated() -> None:
    assert SECRET not in json.dumps(answer(b'{"' + SECRET.encode()))


# -- order and cancellation ------------------------------------------------------------------------------------


def test_a_call_of_the_table_s_first_argument_is_made_for_each_request() -> None:
    made: list[str] = []
    ours = outbox()

    def call(method: str, outbox: Outbox) -> Call:
        assert outbox is ours
        made.append(method)
        return Call(method, outbox)

    async def both() -> None:
        dispatcher = Dispatcher(VERBS, call)
        await dispatcher.answer(b"[" + request("fake.echo") + b"," + request("fake.placed", cwd="/") + b"]", ours)
        await dispatcher.answer(request("fake.echo"), ours)

    anyio.run(both)
    assert made == ["fake.echo", "fake.placed", "fake.echo"]
