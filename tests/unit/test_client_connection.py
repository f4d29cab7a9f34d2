"""Calls over a socket. Law: every way a daemon can answer, stay silent or go away has one outcome."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memd_client
from memd_client import wire as wires
from memd_client.connection import is_read
from support.client_home import client_home
from support.fake_daemon import Answer, FakeDaemon, echo, failure, result
from support.waiting import until


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with client_home() as variables:
        yield variables | {"MEMD_NO_AUTOSTART": "1"}


@pytest.fixture
def daemon(env: dict[str, str]) -> Iterator[FakeDaemon]:
    with FakeDaemon(memd_client.socket_path(env)) as fake:
        yield fake


def first_then(first: bytes | None, then: Answer = echo) -> Answer:
    """An answer that is `first` once, and `then` ever after."""
    firsts = [first]
    return lambda request: firsts.pop() if firsts else then(request)


def test_a_request_is_one_json_rpc_line(daemon: FakeDaemon, env: dict[str, str]) -> None:
    with memd_client.connect(env) as memd:
        assert memd.call("memory.search", {"query": "naïve 注\n"}) == {"query": "naïve 注\n"}
        assert memd.call("daemon.status") == {}
    assert daemon.requests == [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "memory.search",
            "params": {"query": "naïve 注\n"},
        },
        {"jsonrpc": "2.0", "id": 2, "method": "daemon.status", "params": {}},
    ]
    assert daemon.connections == 1


def test_an_error_is_raised_and_the_connection_lives(daemon: FakeDaemon, env: dict[str, str]) -> None:
    data = {"kind": "refused", "field": "type", "bound": None, "got": "x"}
    error = {"code": -32001, "message": "memory.save: type", "data": data}
    daemon.answer = lambda request: failure(request, error) if request["method"] == "memory.save" else echo(request)
    with memd_client.connect(env) as memd:
        with pytest.raises(memd_client.Refused, match=r"^memory\.save: type$") as caught:
            memd.call("memory.save", {})
        assert caught.value.data == data
        assert memd.call("memory.list", {"limit": 1}) == {"limit": 1}
    assert daemon.connections == 1


def test_an_error_without_an_id_answers_the_request(daemon: FakeDaemon, env: dict[str, str]) -> None:
    daemon.answer = lambda _: failure({}, {"code": -32700, "message": "no JSON"})
    with memd_client.connect(env) as memd, pytest.raises(memd_client.ParseError):
        memd.call("memory.list")


def test_a_notification_between_is_passed_over(daemon: FakeDaemon, env: dict[str, str]) -> None:
    news = json.dumps({"jsonrpc": "2.0", "method": "activity", "params": {}}).encode() + b"\n"
    daemon.answer = lambda request: news + echo(request)
    with memd_client.connect(env) as memd:
        assert memd.call("memory.list", {"limit": 1}) == {"limit": 1}


def test_a_reply_that_comes_byte_by_byte(env: dict[str, str]) -> None:
    ours, theirs = socket.socketpair()
    wire = wires.Wire(ours, "a pair")
    reply = result({"id": 1}, {"text": "注"})

    def dribble() -> None:
        theirs.recv(4096)
        for byte in reply:
            theirs.sendall(bytes([byte]))

    with theirs:
        thread = threading.Thread(target=dribble)
        thread.start()
        assert wire.call("memory.read", {}, 10) == {"text": "注"}
        thread.join()
        wire.close()


def test_a_reply_of_eight_mebibytes(daemon: FakeDaemon, env: dict[str, str]) -> None:
    frame = len(result({"id": 1}, {"text": ""})) - 1
    text = "x" * (wires.MAX_REPLY - frame)
    daemon.answer = lambda request: result(request, {"text": text})
    with memd_client.connect(env) as memd:
        assert memd.call("memory.read") == {"text": text}


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_reply_over_eight_mebibytes_is_none(daemon: FakeDaemon, env: dict[str, str], end: bytes) -> None:
    chunk = wires.CHUNK
    daemon.answer = lambda _: b"x" * (wires.MAX_REPLY + chunk) + end
    with (
        memd_client.connect(env) as memd,
        pytest.raises(memd_client.BadReply, match=f"more than {wires.MAX_REPLY}"),
    ):
        memd.call("memory.read")


@pytest.mark.parametrize(
    "reply",
    [
        b"\n",
        b"hello\n",
        b"\xff\xfe{}\n",
        b"[]\n",
        b"5\n",
        b"[" * 100_000 + b"\n",
        b'{"jsonrpc": "2.0", "id": 1}\n',
        b'{"jsonrpc": "2.0", "id": 1, "result": [1]}\n',
        b'{"jsonrpc": "2.0", "id": 1, "error": "no"}\n',
        b'{"jsonrpc": "2.0", "id": 7, "result": {}}\n',
        b'{"jsonrpc": "2.0", "id": null, "result": {}}\n',
    ],
)
def test_what_is_no_reply(daemon: FakeDaemon, env: dict[str, str], reply: bytes) -> None:
    daemon.answer = first_then(reply)
    with memd_client.connect(env) as memd:
        with pytest.raises(memd_client.BadReply):
            memd.call("memory.list")
        assert memd.call("memory.list", {"limit": 2}) == {"limit": 2}
    assert daemon.methods == ["memory.list"] * 2, "asked again only by the second call"


def test_what_comes_after_a_reply_is_not_taken_for_the_next(daemon: FakeDaemon, env: dict[str, str]) -> None:
    daemon.answer = first_then(result({"id": 1}, {"n": 1}) + result({"id": 2}, {"n": "stale"}))
    with memd_client.connect(env) as memd:
        assert memd.call("memory.save") == {"n": 1}
        assert memd.call("memory.save", {"n": 2}) == {"n": 2}


@pytest.mark.parametrize("reply", [None, b'{"jsonrpc": "2.0", "id": 1, "resu'])
def test_a_read_is_retried_once_when_the_connection_breaks(
    daemon: FakeDaemon, env: dict[str, str], reply: bytes | None
) -> None:
    daemon.answer = cut_after(daemon, reply)
    with memd_client.connect(env) as memd:
        assert memd.call("memory.search", {"query": "x"}) == {"query": "x"}
    assert daemon.methods == ["memory.search"] * 2
    assert daemon.connections == 2


@pytest.mark.parametrize("reply", [None, b'{"jsonrpc": "2.0", "id": 1, "resu'])
def test_a_write_is_never_retried(daemon: FakeDaemon, env: dict[str, str], reply: bytes | None) -> None:
    daemon.answer = cut_after(daemon, reply)
    with memd_client.connect(env) as memd:
        with pytest.raises(memd_client.ConnectionLost, match=r"^memory\.save: .*may have been carried"):
            memd.call("memory.save", {"markdown": "x"})
        assert daemon.methods == ["memory.save"]
        assert memd.call("memory.save", {"markdown": "y"}) == {"markdown": "y"}
    assert daemon.methods == ["memory.save"] * 2


def test_a_write_that_never_went_out_is_sent_to_the_next_daemon(
    daemon: FakeDaemon, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with memd_client.connect(env) as memd:
        memd.call("memory.list")
        wire = memd._wire
        assert wire is not None
        daemon.hang_up()
        until(lambda: not wire.is_usable())
        # It ends between this look and the sending.
        monkeypatch.setattr(wire, "is_usable", lambda: wire._sock.fileno() >= 0)
        assert memd.call("memory.save", {"markdown": "x"}) == {"markdown": "x"}
    assert daemon.methods == ["memory.list", "memory.save"]
    assert daemon.connections == 2


def cut_after(daemon: FakeDaemon, reply: bytes | None) -> Answer:
    """Send `reply` for the first request and break the connection; answer every other."""
    seen: list[object] = []

    def answer(request: dict[str, Any]) -> bytes | None:
        seen.append(request)
        if len(seen) > 1:
            return echo(request)
        if reply is not None:
            daemon.send_and_hang_up(reply)
        return None

    return answer


def test_a_read_is_not_retried_twice(daemon: FakeDaemon, env: dict[str, str]) -> None:
    daemon.answer = lambda _: None
    with memd_client.connect(env) as memd, pytest.raises(memd_client.ConnectionLost):
        memd.call("memory.search", {"query": "x"})
    assert daemon.methods == ["memory.search"] * 2


def test_what_may_be_sent_twice() -> None:
    assert is_read("memory.read", {"session": "s"})
    assert is_read("history.read", {})
    assert is_read("daemon.hello", {})
    assert is_read("memory.focus", {"cwd": "/"})
    assert not is_read("memory.focus", {"session": "s"})
    for write in (
        "memory.save",
        "memory.forget",
        "memory.restore",
        "memory.rename",
        "memory.move",
        "memory.rebuild",
        "memory.reconcile",
        "memory.import",
        "memory.import_claude",
        "session.start",
        "session.update",
        "session.end",
        "store.adopt",
        "daemon.stop",
        "activity.subscribe",
    ):
        assert not is_read(write, {}), write


def test_a_write_goes_through_after_a_restart_that_was_over(daemon: FakeDaemon, env: dict[str, str]) -> None:
    with memd_client.connect(env) as memd:
        memd.call("memory.save", {"n": 1})
        daemon.stop()
        with FakeDaemon(memd_client.socket_path(env)) as again:
            assert memd.call("memory.save", {"n": 2}) == {"n": 2}
            assert again.methods == ["memory.save"]


def test_a_daemon_that_went_away_for_good_is_unavailable(daemon: FakeDaemon, env: dict[str, str]) -> None:
    with memd_client.connect(env) as memd:
        memd.call("memory.list")
        daemon.stop()
        with pytest.raises(memd_client.Unavailable) as caught:
            memd.call("memory.list")
    assert type(caught.value) is memd_client.Unavailable


def test_no_answer_in_time(daemon: FakeDaemon, env: dict[str, str]) -> None:
    daemon.answer = lambda _: b""
    with memd_client.connect(env, timeout=0.05) as memd:
        with pytest.raises(memd_client.NoAnswer, match=r"memory\.list: .* within 0\.05 s"):
            memd.call("memory.list")
        daemon.answer = echo
        assert memd.call("memory.list", {"limit": 2}) == {"limit": 2}
    assert daemon.connections == 2, "a late answer must have no one to reach"


def test_the_time_is_for_the_whole_answer(env: dict[str, str]) -> None:
    ours, theirs = socket.socketpair()
    wire = wires.Wire(ours, "a pair")
    ended = threading.Event()

    def dribble() -> None:
        while not ended.wait(0.01):
            theirs.sendall(b" ")

    with theirs:
        thread = threading.Thread(target=dribble)
        thread.start()
        with pytest.raises(memd_client.NoAnswer):
            wire.call("memory.list", {}, 0.1)
        ended.set()
        thread.join()


def test_no_time_at_all_is_no_answer(env: dict[str, str]) -> None:
    ours, theirs = socket.socketpair()
    wire = wires.Wire(ours, "a pair")
    with theirs, pytest.raises(memd_client.NoAnswer):
        wire.call("memory.list", {}, 0)


def test_an_answer_may_take_for_ever(daemon: FakeDaemon, env: dict[str, str]) -> None:
    with memd_client.connect(env, timeout=None) as memd:
        assert memd.call("memory.list", {"limit": 1}) == {"limit": 1}


def test_a_daemon_that_reads_nothing_is_no_answer(env: dict[str, str]) -> None:
    ours, theirs = socket.socketpair()
    wire = wires.Wire(ours, "a pair")
    with theirs, pytest.raises(memd_client.NoAnswer):
        wire.call("memory.save", {"markdown": "x" * (wires.MAX_REQUEST - 200)}, 0.05)


def test_an_interrupted_call_leaves_no_answer_behind(
    daemon: FakeDaemon, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        until(lambda: len(daemon.requests) == 1)
        raise KeyboardInterrupt

    with memd_client.connect(env) as memd:
        with monkeypatch.context() as patch:
            patch.setattr(wires.Wire, "_reply", interrupt)
            with pytest.raises(KeyboardInterrupt):
                memd.call("memory.save", {"n": 1})
        assert memd.call("memory.save", {"n": 2}) == {"n": 2}
    assert daemon.connections == 2


def test_a_request_over_a_mebibyte_is_not_sent(daemon: FakeDaemon, env: dict[str, str]) -> None:
    with memd_client.connect(env) as memd:
        with pytest.raises(memd_client.TooLarge, match=r"^memory\.save: a request of 1\d+ bytes"):
            memd.call("memory.save", {"markdown": "é" * (wires.MAX_REQUEST // 2)})
        assert memd.call("memory.list", {"limit": 1}) == {"limit": 1}
    assert daemon.methods == ["memory.list"]


def test_a_request_of_a_mebibyte_is(daemon: FakeDaemon, env: dict[str, str]) -> None:
    frame = b'{"jsonrpc":"2.0","method":"memory.save","params":{"text":""},"id":1}\n'
    text = "x" * (wires.MAX_REQUEST - len(frame))
    with memd_client.connect(env) as memd:
        assert memd.call("memory.save", {"text": text}) == {"text": text}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("\udc80", memd_client.InvalidParams),
        (float("nan"), ValueError),
        (object(), TypeError),
    ],
)
def test_what_no_json_can_hold_is_not_sent(
    daemon: FakeDaemon, env: dict[str, str], value: object, error: type[Exception]
) -> None:
    with memd_client.connect(env) as memd:
        with pytest.raises(error):
            memd.call("memory.list", {"scope": value})
        memd.call("memory.stats")
    assert daemon.methods == ["memory.stats"]
    assert daemon.connections == 1


def test_a_notification_gets_no_answer(daemon: FakeDaemon, env: dict[str, str]) -> None:
    daemon.answer = lambda request: echo(request) if "id" in request else b""
    with memd_client.connect(env) as memd:
        memd.notify("daemon.stop")
        assert memd.call("memory.list", {"limit": 1}) == {"limit": 1}
    assert daemon.requests[0] == {"jsonrpc": "2.0", "method": "daemon.stop", "params": {}}


def test_close_may_be_repeated_and_a_call_opens_again(daemon: FakeDaemon, env: dict[str, str]) -> None:
    memd = memd_client.Connection(env)
    memd.close()
    for number in (1, 2):
        assert memd.call("memory.list", {"limit": number}) == {"limit": number}
        memd.close()
        memd.close()
    assert daemon.connections == 2


def test_another_home_is_another_daemon(daemon: FakeDaemon, env: dict[str, str]) -> None:
    variables = dict(env)
    other = env | {"MEMD_HOME": env["MEMD_HOME"] + "2"}
    with (
        FakeDaemon(memd_client.socket_path(other)) as second,
        memd_client.connect(variables) as memd,
    ):
        memd.call("memory.list")
        variables |= other
        memd.call("memory.stats")
        assert (daemon.methods, second.methods) == (["memory.list"], ["memory.stats"])


# Which home a daemon serves


def test_a_socket_in_the_home_needs_no_hello(daemon: FakeDaemon, env: dict[str, str]) -> None:
    with memd_client.connect(env) as memd:
        memd.call("memory.list")
    assert daemon.methods == ["memory.list"]


def test_a_socket_elsewhere_is_asked_for_its_home(env: dict[str, str]) -> None:
    env["MEMD_SOCKET"] = env["MEMD_HOME"] + ".sock"  # beside the home, its name the home's and more
    with FakeDaemon(env["MEMD_SOCKET"]) as daemon:
        daemon.answer = lambda request: result(request, {"home": memd_client.home_id(env)})
        with memd_client.connect(env) as memd:
            memd.call("memory.list")
            memd.call("memory.list")
            assert daemon.methods == ["daemon.hello", "memory.list", "memory.list"]
            assert daemon.requests[0]["params"] == {"protocol": 1}
            daemon.hang_up()
            memd.call("memory.list")
            assert daemon.methods[3:] == ["daemon.hello", "memory.list"]


def test_a_daemon_of_another_home_is_refused(env: dict[str, str]) -> None:
    env["MEMD_SOCKET"] = env["MEMD_HOME"] + ".sock"
    with FakeDaemon(env["MEMD_SOCKET"]) as daemon:
        daemon.answer = lambda request: result(request, {"home": "0" * 16, "version": "1"})
        with pytest.raises(memd_client.OtherHome) as caught:
            memd_client.connect(env)
        assert env["MEMD_HOME"] in caught.value.message
        assert env["MEMD_SOCKET"] in caught.value.message
        with memd_client.connect(env, check_home=False) as memd:
            assert memd.hello(check_home=False)["version"] == "1"
            with pytest.raises(memd_client.OtherHome):
                memd.hello()


def test_a_call_without_a_limit_waits_while_the_daemon_answers_others(
    daemon: FakeDaemon, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires, "LOOK", 0.05)

    def slow(request: dict[str, Any]) -> bytes:
        if request["method"] == "memory.check":
            until(lambda: daemon.methods.count("daemon.hello") >= 3)
        return echo(request)

    daemon.answer = slow
    with memd_client.connect(env, timeout=None) as memd:
        assert memd.call("memory.check", {"x": 1}) == {"x": 1}


def test_a_call_without_a_limit_ends_when_the_daemon_answers_nobody(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires, "LOOK", 0.05)
    path = Path(memd_client.socket_path(env))
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(path))
        mute.listen()  # as a daemon that was stopped: the kernel lets in whoever comes
        with (
            memd_client.connect(env, timeout=None) as memd,
            pytest.raises(memd_client.NoAnswer, match="answers nobody"),
        ):
            memd.call("memory.check")


def test_an_answer_of_any_kind_is_a_sign_of_life(daemon: FakeDaemon, env: dict[str, str]) -> None:
    path = memd_client.socket_path(env)
    daemon.answer = lambda request: failure(request, {"code": -32011, "message": "no"})
    assert wires.is_alive(path)
    daemon.answer = lambda _request: None
    assert not wires.is_alive(path)
    daemon.stop()
    assert not wires.is_alive(path)


def test_a_socket_of_another_user_is_refused_before_a_byte_is_sent(
    daemon: FakeDaemon, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires, "_peer_uid", lambda _sock: os.geteuid() + 1)
    with pytest.raises(memd_client.OtherOwner) as caught:
        memd_client.connect(env)
    for word in (str(os.geteuid() + 1), "MEMD_SOCKET", memd_client.socket_path(env)):
        assert word in caught.value.message
    until(lambda: (daemon.connections, daemon.alive) == (1, 0))
    assert daemon.requests == []


@pytest.mark.parametrize("owner", [0, None])
def test_a_socket_of_roots_or_of_nobody_knows_whom_is_used(
    daemon: FakeDaemon, env: dict[str, str], monkeypatch: pytest.MonkeyPatch, owner: int | None
) -> None:
    monkeypatch.setattr(wires, "_peer_uid", lambda _sock: owner)
    with memd_client.connect(env) as memd:
        memd.call("memory.list")
    assert daemon.methods == ["memory.list"]


def test_the_kernel_tells_who_listens() -> None:
    near, far = socket.socketpair(socket.AF_UNIX)
    with near, far:
        assert wires._peer_uid(near) == os.geteuid()


def test_a_daemon_without_our_protocol_is_refused(env: dict[str, str]) -> None:
    env["MEMD_SOCKET"] = env["MEMD_HOME"] + ".sock"
    with FakeDaemon(env["MEMD_SOCKET"]) as daemon:
        daemon.answer = lambda request: failure(request, {"code": -32011, "message": "no"})
        with pytest.raises(memd_client.NoProtocol):
            memd_client.connect(env)


def test_a_write_goes_through_when_only_the_hello_was_lost(env: dict[str, str]) -> None:
    env["MEMD_SOCKET"] = env["MEMD_HOME"] + ".sock"
    with FakeDaemon(env["MEMD_SOCKET"]) as daemon:
        home = memd_client.home_id(env)
        daemon.answer = first_then(None, lambda request: result(request, {"home": home}))
        with memd_client.connect(env) as memd:
            memd.call("memory.save")
        assert daemon.methods == ["daemon.hello", "daemon.hello", "memory.save"]


# Nobody there


@pytest.mark.parametrize("switch", ["1", "yes"])
def test_nobody_answers_and_nothing_may_be_started(env: dict[str, str], switch: str) -> None:
    env["MEMD_NO_AUTOSTART"] = switch
    with pytest.raises(memd_client.Unavailable) as caught:
        memd_client.connect(env)
    for part in ("memctl start", env["MEMD_HOME"] + "/run/memd.sock", env["MEMD_HOME"] + "/memd.log"):
        assert part in caught.value.message
    assert not Path(env["MEMD_HOME"]).exists(), "looking makes nothing"


def test_autostart_may_be_switched_off_by_the_caller(env: dict[str, str]) -> None:
    del env["MEMD_NO_AUTOSTART"]
    with pytest.raises(memd_client.Unavailable, match="switched off"):
        memd_client.connect(env, autostart=False)


def test_a_socket_nobody_listens_at_is_nobody(env: dict[str, str]) -> None:
    path = Path(memd_client.socket_path(env))
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with pytest.raises(memd_client.Unavailable, match="switched off"):
        memd_client.connect(env)


def test_a_place_that_cannot_hold_a_socket_is_no_reason_to_start(env: dict[str, str]) -> None:
    del env["MEMD_NO_AUTOSTART"]
    Path(env["MEMD_HOME"]).touch()
    with pytest.raises(memd_client.Unavailable, match=r"cannot connect to .*: Not a directory"):
        memd_client.connect(env)


def test_a_full_queue_is_waited_for(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []
    real = wires._connected

    def crowded(path: str) -> socket.socket:
        attempts.append(path)
        if len(attempts) < 4:
            raise BlockingIOError
        return real(path)

    monkeypatch.setattr(wires, "_connected", crowded)
    with FakeDaemon(memd_client.socket_path(env)), memd_client.connect(env) as memd:
        assert memd.call("memory.list", {"limit": 1}) == {"limit": 1}
    assert len(attempts) == 4


def test_a_queue_that_stays_full_is_no_answer(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def crowded(path: str) -> socket.socket:
        raise BlockingIOError

    monkeypatch.setattr(wires, "DOOR_TIMEOUT", 0.05)
    monkeypatch.setattr(wires, "_connected", crowded)
    with pytest.raises(memd_client.NoAnswer, match="let nobody in"):
        memd_client.connect(env)


# Forks

FORKED = """
import os, sys, memd_client

memd = memd_client.connect()
memd.call("memory.list", {"who": "parent, before"})
child = os.fork()
if child == 0:
    assert memd.call("memory.save", {"who": "child"}) == {"who": "child"}
    memd.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert memd.call("memory.save", {"who": "parent, after"}) == {"who": "parent, after"}
"""


def test_a_forked_child_has_a_connection_of_its_own(daemon: FakeDaemon, env: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-c", FORKED], env=env, check=True, timeout=30)
    assert [request["params"]["who"] for request in daemon.requests] == [
        "parent, before",
        "child",
        "parent, after",
    ]
    assert [request["id"] for request in daemon.requests] == [1, 1, 2]
    assert daemon.connections == 2


def test_the_environment_of_the_process_is_the_default(
    daemon: FakeDaemon, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMD_HOME", env["MEMD_HOME"])
    monkeypatch.delenv("MEMD_SOCKET", raising=False)
    with memd_client.connect(autostart=False) as memd:
        assert memd.call("memory.list", {"limit": 1}) == {"limit": 1}
