"""Listening over a socket. Law: an event is given once, in order, whatever else crosses the wire."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

import memd_client
from support.client_home import client_home
from support.fake_daemon import FakeDaemon, echo, failure, result
from support.waiting import until


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with client_home() as variables:
        yield variables | {"MEMD_NO_AUTOSTART": "1"}


@pytest.fixture
def daemon(env: dict[str, str]) -> Iterator[FakeDaemon]:
    with FakeDaemon(memd_client.socket_path(env)) as fake:
        yield fake


def news(line: str, method: str = "activity") -> bytes:
    """A notification line."""
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": {"line": line}}).encode() + b"\n"


def telling(*events: str, after: bytes = b"") -> Any:
    """An answer to a subscription, with events behind it in one piece."""

    def answer(request: dict[str, Any]) -> bytes:
        if request["method"] != "activity.subscribe":
            return echo(request)
        return result(request, {"subscribed": True}) + b"".join(map(news, events)) + after

    return answer


def test_events_are_given_in_order(daemon: FakeDaemon, env: dict[str, str]) -> None:
    daemon.answer = telling("a", "b", "c")
    with memd_client.connect(env) as memd, memd.activity(cwd="/repo", timeout=20) as events:
        assert [event["line"] for event in islice(events, 3)] == ["a", "b", "c"]
    assert [request["params"] for request in daemon.requests] == [{"cwd": "/repo"}]


@pytest.mark.parametrize(
    ("given", "params"),
    [({}, {}), ({"cwd": "/a"}, {"cwd": "/a"}), ({"session": "s"}, {"session": "s"})],
)
def test_only_what_was_given_is_asked(
    daemon: FakeDaemon, env: dict[str, str], given: dict[str, Any], params: dict[str, str]
) -> None:
    daemon.answer = telling("a")
    with memd_client.connect(env) as memd, memd.activity(**given, timeout=20) as events:
        next(events)
    assert daemon.requests[0]["params"] == params


def test_calls_go_on_beside_it(daemon: FakeDaemon, env: dict[str, str]) -> None:
    daemon.answer = telling("a", "b")
    with memd_client.connect(env) as memd, memd.activity(timeout=20) as events:
        assert next(events)["line"] == "a"
        assert memd.call("memory.list", {"limit": 1}) == {"limit": 1}
        assert next(events)["line"] == "b"
    assert daemon.connections == 2


def test_what_is_no_activity_is_passed_over(daemon: FakeDaemon, env: dict[str, str]) -> None:
    others = news("x", "other") + b'{"jsonrpc":"2.0","method":"activity"}\n{"jsonrpc":"2.0","id":9,"result":{}}\n'
    daemon.answer = telling(after=others + news("a"))
    with memd_client.connect(env) as memd, memd.activity(timeout=20) as events:
        assert next(events)["line"] == "a"


def test_an_event_cut_in_pieces_is_one(daemon: FakeDaemon, env: dict[str, str]) -> None:
    whole = news("late")
    daemon.answer = telling("a", after=whole[:10])
    with memd_client.connect(env) as memd, memd.activity(timeout=0.05) as events:
        assert next(events)["line"] == "a"
        with pytest.raises(memd_client.NoAnswer, match=r"^no activity within 0\.05 s$"):
            next(events)
        daemon.send_and_hang_up(whole[10:])
        assert next(events)["line"] == "late"


def test_an_end_is_said(daemon: FakeDaemon, env: dict[str, str]) -> None:
    daemon.answer = telling("a")
    with memd_client.connect(env) as memd, memd.activity(timeout=20) as events:
        next(events)
        daemon.hang_up()
        with pytest.raises(memd_client.ConnectionLost):
            next(events)
        with pytest.raises(memd_client.ConnectionLost):
            next(events)


def test_a_refusal_is_raised_and_nothing_stays_open(daemon: FakeDaemon, env: dict[str, str]) -> None:
    error = {"code": -32002, "message": "activity.subscribe: no session", "data": {"kind": "not_found"}}
    daemon.answer = lambda request: failure(request, error) if "session" in request["params"] else echo(request)
    with memd_client.connect(env) as memd:
        memd.call("memory.list")
        with pytest.raises(memd_client.NotFound):
            memd.activity(session="gone")
        until(lambda: daemon.alive == 1)
        assert memd.call("memory.list") == {}


def test_closing_it_ends_the_connection(daemon: FakeDaemon, env: dict[str, str]) -> None:
    daemon.answer = telling()
    with memd_client.connect(env) as memd:
        memd.call("memory.list")
        events = memd.activity()
        assert daemon.alive == 2
        events.close()
        events.close()
        until(lambda: daemon.alive == 1)
