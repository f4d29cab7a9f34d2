"""A real socket: whatever one client does, it is answered as SPEC section 12 says and the others feel nothing."""

import json
import logging
import os
import select
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from memd import server
from memd.protocol import CONNECTIONS_MAX, REPLY_MAX, REQUEST_MAX
from memd.rpc import LINE_TOO_LONG, Dispatcher
from memd.server import Listener, Server, SocketTakenError, listen
from support.fake_verbs import VERBS, Call, request
from support.serving import Client, Served, serving
from support.waiting import until

TOO_LONG = json.loads(LINE_TOO_LONG)


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="memd-") as name:
        yield Path(name)


@pytest.fixture
def served(directory: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Served]:
    """A server for which no conduct of a client is an error of its own."""
    with listen(directory / "s" / "memd.sock") as listener, serving(listener) as served:
        yield served
    errors = [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert errors == []


def value(reply: dict[str, dict[str, object]]) -> object:
    return reply["result"]["value"]


def assert_serves(served: Served) -> None:
    """Another client gets its answer."""
    with served.client() as other:
        assert value(other.ask(request("fake.echo", value="other"))) == "other"


# -- lines -------------------------------------------------------------------------------------------------------


def test_requests_are_answered_in_order(served: Served) -> None:
    with served.client() as client:
        client.send(*(request("fake.echo", n, value=n) for n in range(500)))
        assert [client.reply()["id"] for _ in range(500)] == list(range(500))


def test_a_slow_request_holds_up_its_own_connection_only(served: Served) -> None:
    with served.client() as client:
        client.send(request("gate.wait", 1), request("fake.echo", 2))
        served.wait_for(served.gate.entered)
        assert_serves(served)
        assert not select.select([client.sock], [], [], 0)[0]
        served.open_gate()
        assert [client.reply()["id"], client.reply()["id"]] == [1, 2]


def test_blank_lines_and_notifications_get_no_reply(served: Served) -> None:
    notification = b'{"jsonrpc":"2.0","method":"fake.echo"}'
    with served.client() as client:
        client.send(b"", b"\r", b"  ", notification, request("fake.echo", 5) + b"\r", notification)
        client.sock.shutdown(socket.SHUT_WR)
        assert client.reply()["id"] == 5
        assert client.has_ended()


def test_a_client_that_types_byte_by_byte_is_answered(served: Served) -> None:
    line = request("fake.echo", value="slow") + b"\n"
    with served.client() as client:
        for byte in line[:-1]:
            client.sock.sendall(bytes([byte]))
        assert_serves(served)
        client.sock.sendall(line[-1:])
        assert value(client.reply()) == "slow"


def test_a_request_without_a_line_end_is_answered_at_the_end(served: Served) -> None:
    with served.client() as client:
        client.sock.sendall(request("fake.echo", 1) + b"\n" + request("fake.echo", 2))
        client.sock.shutdown(socket.SHUT_WR)
        assert [client.reply()["id"], client.reply()["id"]] == [1, 2]
        assert client.has_ended()


def test_a_request_still_running_at_the_end_of_file_is_answered(served: Served) -> None:
    with served.client() as client:
        client.send(request("gate.wait", value="late"))
        client.sock.shutdown(socket.SHUT_WR)
        served.wait_for(served.gate.entered)
        assert_serves(served)
        served.open_gate()
        assert value(client.reply()) == "late"
        assert client.has_ended()


def test_a_line_that_is_no_json_leaves_the_connection_alive(served: Served) -> None:
    with served.client() as client:
        client.send(b"\xff\xfe", b"GET / HTTP/1.1", b"[" * 100_000)
        assert [client.reply()["error"]["code"] for _ in range(3)] == [-32700] * 3
        assert value(client.ask(request("fake.echo", value=1))) == 1


# -- caps --------------------------------------------------------------------------------------------------------


def padded(size: int) -> bytes:
    """A request line of `size` bytes."""
    line = request("fake.echo", "padded")
    return line + b" " * (size - len(line))


def test_a_line_as_long_as_the_cap_is_a_request(served: Served) -> None:
    with served.client() as client:
        assert client.ask(padded(REQUEST_MAX))["id"] == "padded"


@pytest.mark.parametrize("size", [REQUEST_MAX + 1, REQUEST_MAX * 5])
def test_a_longer_line_is_answered_and_drained(served: Served, size: int) -> None:
    with served.client() as client:
        client.send(request("fake.echo", 1), padded(size), request("fake.echo", 2))
        assert [client.reply().get("id") for _ in range(3)] == [1, None, 2]
    with served.client() as client:
        assert client.ask(padded(size)) == TOO_LONG
        assert value(client.ask(request("fake.echo", value=1))) == 1


def test_a_line_too_long_is_answered_before_it_ends(served: Served) -> None:
    with served.client() as client:
        client.sock.sendall(b"x" * (REQUEST_MAX + 1))
        assert client.reply() == TOO_LONG
        client.sock.sendall(b"x" * REQUEST_MAX * 3)
        client.send(b"", request("fake.echo", value=1))
        assert value(client.reply()) == 1


def test_a_line_too_long_that_never_ends_is_answered_once(served: Served) -> None:
    with served.client() as client:
        client.sock.sendall(b"x" * (REQUEST_MAX * 2))
        client.sock.shutdown(socket.SHUT_WR)
        assert client.reply() == TOO_LONG
        assert client.has_ended()


def test_a_reply_as_long_as_the_cap_arrives_whole(served: Served) -> None:
    with served.client() as client:
        client.send(request("fake.sized", size=REPLY_MAX - 1000))
        assert len(client.line()) > REPLY_MAX - 1000
        assert client.ask(request("fake.sized", size=REPLY_MAX))["error"]["code"] == -32010


# -- clients that go ---------------------------------------------------------------------------------------------


def test_a_client_that_vanishes_cancels_its_request(served: Served) -> None:
    with served.client() as client:
        client.send(request("gate.wait"), request("fake.echo"))
        served.wait_for(served.gate.entered)
    served.wait_for(served.gate.cancelled)
    assert served.gate.finished == []
    until(lambda: served.connections == 0)
    assert_serves(served)


def test_what_is_shielded_outlives_its_client(served: Served) -> None:
    with served.client() as client:
        client.send(request("gate.commit"))
        served.wait_for(served.gate.entered)
    assert_serves(served)
    served.open_gate()
    until(lambda: served.gate.finished == ["gate.commit"])
    until(lambda: served.connections == 0)


def test_a_client_that_goes_with_its_answer_unread_harms_nobody(served: Served) -> None:
    with served.client() as client:
        client.send(request("fake.sized", size=100_000))
        assert select.select([client.sock], [], [], 20)[0]
    until(lambda: served.connections == 0)
    assert_serves(served)


def test_a_client_that_goes_in_the_middle_of_a_line_harms_nobody(served: Served) -> None:
    with served.client() as client:
        client.sock.sendall(b'{"jsonrpc":"2.0","id":1,')
    with served.client():
        pass
    until(lambda: len(served.counts) >= 4 and served.connections == 0)
    assert_serves(served)


# -- clients that do not read ------------------------------------------------------------------------------------


def test_a_client_that_never_reads_blocks_itself_only(served: Served) -> None:
    with served.client(seconds=0.5) as deaf:
        line = request("fake.sized", size=1_000_000) + b" " * 10_000
        with pytest.raises(TimeoutError):
            deaf.send(*(line for _ in range(2000)))
        assert_serves(served)


def test_a_client_that_never_reads_is_dropped(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SEND_TIMEOUT_S", 0.02)
    with served.client() as deaf:
        deaf.send(request("fake.sized", size=4_000_000))
        until(lambda: served.counts == [1, 0])
        assert_serves(served)


def test_a_client_that_reads_slowly_gets_all_of_it(served: Served) -> None:
    with served.client() as slow:
        slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.send(request("fake.sized", size=1_000_000))
        assert_serves(served)
        received = b""
        while not received.endswith(b"\n"):
            received += slow.sock.recv(4096)
        assert len(received) > 1_000_000


def test_a_babbling_client_holds_nobody_up(served: Served) -> None:
    with served.client() as babbler, served.client() as other:
        babbler.sock.setblocking(False)
        told = 0
        for n in range(200):
            try:
                told += babbler.sock.send(b"blah\n" * 10_000)
            except BlockingIOError:
                babbler.sock.recv(1 << 20)
            assert other.ask(request("fake.echo", n))["id"] == n
        assert told > 100_000


# -- how many ----------------------------------------------------------------------------------------------------


def test_256_connections_are_served_at_once_and_more_wait(served: Served) -> None:
    clients = [served.client() for _ in range(300)]
    try:
        for n, client in enumerate(clients):
            client.send(request("fake.echo", n))
        for n, client in enumerate(clients[:CONNECTIONS_MAX]):
            assert client.reply()["id"] == n
        waiting = [client.sock for client in clients[CONNECTIONS_MAX:]]
        assert not select.select(waiting, [], [], 0)[0]
        assert served.connections == CONNECTIONS_MAX
        for client in clients[:CONNECTIONS_MAX]:
            client.sock.close()
        for n, client in enumerate(clients[CONNECTIONS_MAX:], CONNECTIONS_MAX):
            assert client.reply()["id"] == n
        assert max(served.counts) == CONNECTIONS_MAX
    finally:
        for client in clients:
            client.sock.close()


def test_a_server_out_of_descriptors_waits_and_goes_on(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "_ACCEPT_PAUSE_S", 0.001)
    failures = iter(range(3))
    accept = socket.socket.accept

    def failing(sock: socket.socket) -> tuple[socket.socket, object]:
        if next(failures, None) is not None:
            raise OSError(24, "Too many open files")
        return accept(sock)

    monkeypatch.setattr(socket.socket, "accept", failing)
    assert_serves(served)
    assert next(failures, None) is None
    assert caplog.text.count("cannot accept a connection") == 1  # it may be so for hours


# -- who ---------------------------------------------------------------------------------------------------------


def _connect_as_another(path: Path) -> Client:
    """Connect with another user's credentials, which the kernel notes at that moment; only root can."""
    path.parent.chmod(0o755)
    path.parent.parent.chmod(0o755)
    path.chmod(0o666)
    os.seteuid(65534)
    try:
        return Client(path)
    finally:
        os.seteuid(0)


def test_another_uid_is_dropped_without_a_byte(directory: Path) -> None:
    """As root with a real other user; else the server is told that another user is the one it serves."""
    is_root = os.geteuid() == 0
    with listen(directory / "s" / "memd.sock") as listener:
        owner = os.geteuid() if is_root else os.geteuid() + 1
        with serving(listener, uid=owner) as served:
            stranger = _connect_as_another(served.path) if is_root else served.client()
            with stranger:
                assert stranger.has_ended()
            assert served.counts == []
            if is_root:
                assert_serves(served)


# -- the socket's file -------------------------------------------------------------------------------------------


def test_the_socket_and_its_directory_are_closed_to_others(directory: Path) -> None:
    path = directory / "a" / "b" / "memd.sock"
    umask = os.umask(0)
    try:
        with listen(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    finally:
        os.umask(umask)


def test_a_dead_socket_is_taken_over(directory: Path) -> None:
    path = directory / "memd.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    with listen(path) as listener, serving(listener) as served:
        assert_serves(served)


def test_a_socket_that_answers_is_never_taken_over(directory: Path) -> None:
    path = directory / "memd.sock"
    with listen(path) as first, serving(first) as served:
        with pytest.raises(SocketTakenError):
            listen(path)
        assert_serves(served)


def test_a_socket_whose_queue_is_full_answers_too(directory: Path) -> None:
    path = directory / "memd.sock"
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(path))
        busy.listen(0)
        waiting = []
        try:
            for _ in range(5):
                sock = socket.socket(socket.AF_UNIX)
                waiting.append(sock)
                sock.setblocking(False)
                sock.connect_ex(str(path))
            with pytest.raises(SocketTakenError):
                listen(path)
        finally:
            for sock in waiting:
                sock.close()
    assert path.exists()


def _make_file(path: Path) -> None:
    path.write_text("mine")


def _make_directory(path: Path) -> None:
    path.mkdir()


def _make_link(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


@pytest.mark.parametrize("make", [_make_file, _make_directory, _make_link])
def test_what_is_no_socket_is_left_alone(directory: Path, make: Callable[[Path], None]) -> None:
    path = directory / "memd.sock"
    make(path)
    before = path.lstat()
    with pytest.raises(SocketTakenError):
        listen(path)
    assert path.lstat() == before


def test_the_socket_s_file_goes_with_its_listener(directory: Path) -> None:
    path = directory / "memd.sock"
    with listen(path) as listener:
        assert listener.is_reachable()
    assert not path.exists()
    listener.close()
    assert not path.exists()


def test_a_file_that_another_put_there_stays(directory: Path) -> None:
    path = directory / "memd.sock"
    listener = listen(path)
    path.unlink()
    assert not listener.is_reachable()
    with listen(path) as second:
        assert not listener.is_reachable()
        listener.close()
        assert second.is_reachable()


def test_a_socket_that_was_handed_over_keeps_its_file(directory: Path) -> None:
    path = directory / "memd.sock"
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    sock.listen()
    with Listener(sock, owned=False) as listener, serving(listener) as served:
        assert listener.is_reachable()
        assert_serves(served)
    assert path.exists()


# -- the stop ----------------------------------------------------------------------------------------------------


def test_a_stop_ends_the_idle_and_answers_the_busy(directory: Path) -> None:
    with listen(directory / "memd.sock") as listener, serving(listener) as served:
        with served.client() as idle, served.client() as busy:
            assert idle.ask(request("fake.echo", 1))["id"] == 1
            busy.send(request("gate.wait", 7, value="done"), request("fake.echo", 8))
            served.wait_for(served.gate.entered)
            served.stop()
            assert idle.has_ended()
            served.open_gate()
            assert value(busy.reply()) == "done"
            assert busy.reply()["id"] == 8
            assert busy.has_ended()
            with pytest.raises(FileNotFoundError):
                served.client()
        until(lambda: served.connections == 0)


def serve_until_now(listener: Listener) -> None:
    """A server that is told to stop before it has let anybody in."""

    async def serve() -> None:
        stop = anyio.Event()
        stop.set()
        await Server(listener, Dispatcher(VERBS, Call).answer, uid=os.geteuid(), count=lambda _: None).serve(stop)

    anyio.run(serve)


def test_a_stop_serves_those_who_wait_at_the_door(directory: Path) -> None:
    with listen(directory / "memd.sock") as listener, Client(listener.path) as early, Client(listener.path) as silent:
        early.send(request("fake.echo", 1), request("fake.echo", 2))
        serve_until_now(listener)
        assert [early.reply()["id"], early.reply()["id"]] == [1, 2]
        assert early.has_ended()
        assert silent.has_ended()


def test_a_door_that_is_not_ours_stays_open_with_those_who_wait(directory: Path) -> None:
    path = directory / "memd.sock"
    with listen(path) as managers, Client(path) as early:
        early.send(request("fake.echo", 1))
        serve_until_now(Listener(managers.sock.dup(), owned=False))
        assert path.exists()
        with Listener(managers.sock.dup(), owned=False) as listener, serving(listener):
            assert early.reply()["id"] == 1
        assert path.exists()


def test_a_stop_does_not_wait_for_what_never_ends(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "GRACE_S", 0)
    with listen(directory / "memd.sock") as listener, serving(listener) as served:
        with served.client() as stuck:
            stuck.send(request("gate.wait", 7))
            served.wait_for(served.gate.entered)
            served.finish(seconds=3)
            assert stuck.has_ended()
        served.wait_for(served.gate.cancelled)
