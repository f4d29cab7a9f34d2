"""Whatever bytes a line holds, it gets an answer of the wire or none, and no incident is made of it."""

import json
import logging
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.rpc import Dispatcher
from support.fake_verbs import VERBS, Call, outbox, request

CODES = {-32700, -32600, -32601, -32602, -32001}
"""What a line alone can bring about with the verbs below: never -32603."""
SOUND = {name: verb for name, verb in VERBS.items() if name in ("fake.echo", "fake.placed", "fake.refused")}

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
)
names = st.sampled_from(["jsonrpc", "id", "method", "params", "cwd", "value", "limit", "x"])
words = st.sampled_from(["2.0", "1.0", *SOUND, "", "no"])
parameters = st.dictionaries(names, st.one_of(values, words), max_size=4)
envelopes = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.one_of(st.just("2.0"), values),
        "id": values,
        "method": st.one_of(words, values),
        "params": st.one_of(parameters, values),
        "x": values,
    },
)
messages = st.one_of(envelopes, st.lists(st.one_of(envelopes, values), max_size=6), values)
documents = messages.map(lambda message: json.dumps(message).encode())
damaged = st.builds(
    lambda line, at, byte: line[: at % (len(line) + 1)] + bytes([byte]) + line[at % (len(line) + 1) + 1 :],
    st.one_of(documents, st.just(request("fake.echo", value="ü"))),
    st.integers(min_value=0),
    st.integers(min_value=0, max_value=255),
)


def answer(line: bytes) -> Any:
    reply = anyio.run(Dispatcher(SOUND, Call).answer, line, outbox())
    if reply is None:
        return None
    assert reply.endswith(b"\n")
    return json.loads(reply, parse_constant=pytest.fail)


def judge(reply: Any) -> None:
    """A reply is of the wire."""
    assert set(reply) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
    assert reply["jsonrpc"] == "2.0"
    assert not isinstance(reply["id"], bool | list | dict)
    if "error" in reply:
        assert reply["error"]["code"] in CODES
        assert set(reply["error"]) == {"code", "message", "data"}
        assert len(reply["error"]["message"]) < 300


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=st.one_of(documents, damaged, st.binary(max_size=64)))
def test_any_line_has_an_answer_of_the_wire(caplog: pytest.LogCaptureFixture, line: bytes) -> None:
    replies = answer(line)
    for reply in replies if isinstance(replies, list) else [replies] if replies is not None else []:
        judge(reply)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@settings(max_examples=200, deadline=None)
@given(message=envelopes)
def test_a_sound_request_is_answered_under_its_id(message: dict[str, Any]) -> None:
    request_id = message.get("id")
    reply = answer(json.dumps(message).encode())
    if message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        assert reply["error"]["code"] == -32600
    elif "id" not in message and isinstance(message.get("params", {}), dict | list):
        assert reply is None
    elif isinstance(request_id, bool | list | dict):
        assert (reply["error"]["code"], reply["id"]) == (-32600, None)
    else:
        assert reply["id"] == request_id
