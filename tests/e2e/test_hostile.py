"""Clients that mean no good to a real daemon, and that belong to its user: each harms itself at most (SPEC 12)."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from memd.protocol import CONNECTIONS_MAX, REPLY_MAX
from support.daemon import Daemon
from support.fake_verbs import request
from support.serving import Client
from support.waiting import until

HALF = b'{"jsonrpc":"2.0","id":1,"method":"daemon.hello"'


@contextmanager
def clients(daemon: Daemon, count: int) -> Iterator[list[Client]]:
    """So many connections."""
    with ExitStack() as open_ones:
        yield [open_ones.enter_context(Client(daemon.socket)) for _ in range(count)]


def connections(client: Client) -> int:
    count: int = client.ask(request("daemon.status"))["result"]["connections"]
    return count


def memory_kb(daemon: Daemon) -> int:
    assert daemon.process is not None
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def test_256_are_served_and_the_next_waits_until_one_goes(daemon: Daemon) -> None:
    with clients(daemon, CONNECTIONS_MAX) as served:
        assert all(client.ask(request("daemon.hello"))["id"] == 1 for client in served)
        with Client(daemon.socket) as waiting:
            waiting.send(request("daemon.hello", "late"))
            assert connections(served[0]) == CONNECTIONS_MAX
            waiting.sock.settimeout(0)
            with pytest.raises(BlockingIOError):
                waiting.sock.recv(1)
            waiting.sock.settimeout(20)
            served[-1].sock.close()
            assert waiting.reply()["id"] == "late"


def test_many_that_never_end_their_line_hold_up_nobody(daemon: Daemon) -> None:
    with clients(daemon, CONNECTIONS_MAX - 1) as slow:
        for client in slow:
            client.sock.sendall(HALF)
        daemon.save("meanwhile", "words")
        assert daemon.found("words") == ["meanwhile"]
        for client in slow:
            client.sock.sendall(b"}\n")
        assert all(client.reply()["result"]["home"] for client in slow)


def test_clients_that_never_read_hold_little_memory_and_nobody_else(daemon: Daemon) -> None:
    body = "The quartz is slow. " * 400
    for number in range(40):
        daemon.save(f"note-{number}", body)
    line = request("memory.list", cwd=str(daemon.repo), bodies=True)
    with Client(daemon.socket) as client:
        client.send(line)
        size = len(client.line())
    assert 300_000 < size < REPLY_MAX
    before = memory_kb(daemon)
    with clients(daemon, 30) as deaf:
        for client in deaf:
            client.send(*([line] * 100))  # 30 x 100 x 300 KB, if anybody kept them
        with Client(daemon.socket) as other:
            until(lambda: connections(other) == 31)
            for number in range(20):
                assert other.ask(request("daemon.hello", number))["id"] == number
        assert memory_kb(daemon) - before < 30 * 4 * size / 1024
    with Client(daemon.socket) as other:
        until(lambda: connections(other) == 1)


ODD: list[tuple[bytes, int | None]] = [
    (request("daemon.hello", "x" * 100_000), None),
    (request("daemon.hello", -1.5), None),
    (request("daemon.hello", 1 << 62), None),
    (request("daemon.hello", None), None),
    (request("daemon.hello", True), -32600),
    (request("daemon.hello", {"a": 1}), -32600),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"daemon.hello"}', -32700),
    (b'{"jsonrpc":"2.0","id":1e999,"method":"daemon.hello"}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"memory.save","method":"daemon.hello"}', None),
    (b'{"jsonrpc":"2.0","id":1,"method":"daemon.hello","params":{"protocol":%s}}' % (b"9" * 4000), -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"daemon.hello","params":{"protocol":1e300}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"daemon.hello","params":{"protocol":1,"protocol":"x"}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"daemon.hello","params":{"client":"\xff"}}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"daemon.hello","params":{"client":"\\ud800"}}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"daemon.hello","params":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001, -32700),
    (b"[" * 500_000, -32700),
    (b"[" + b"1," * 64 + b"1]", -32600),
    (b"[]", -32600),
    (b"\0" * 1000, -32700),
    (b"\xef\xbb\xbf" + request("daemon.hello"), -32700),
]


@pytest.fixture(scope="module")
def shared(titled: Daemon) -> Daemon:
    """One daemon for the whole table."""
    return titled


@pytest.mark.parametrize(("line", "code"), ODD, ids=[f"{line[:70]!r}" for line, _ in ODD])
def test_an_odd_line_has_its_answer_and_the_next_one_too(shared: Daemon, line: bytes, code: int | None) -> None:
    with Client(shared.socket) as client:
        reply = client.ask(line)
        assert reply.get("error", {}).get("code") == code
        assert client.ask(request("daemon.hello", "next"))["id"] == "next"
    assert "<3>" not in shared.log


def test_a_batch_of_64_of_the_largest_replies_is_one_line_of_at_most_the_cap(daemon: Daemon) -> None:
    for number in range(40):
        daemon.save(f"note-{number}", "The quartz is slow. " * 400)
    one = {"jsonrpc": "2.0", "id": 1, "method": "memory.list", "params": {"cwd": str(daemon.repo), "bodies": True}}
    with Client(daemon.socket) as client:
        client.send(json.dumps([{**one, "id": number} for number in range(64)]).encode())
        line = client.line()
        replies: list[dict[str, Any]] = json.loads(line)
        assert len(line) <= REPLY_MAX
        assert [reply["id"] for reply in replies] == list(range(64))
        assert {reply.get("error", {}).get("code") for reply in replies} == {None, -32010}


def test_a_client_that_stops_sending_in_a_batch_harms_nobody(daemon: Daemon) -> None:
    with Client(daemon.socket) as client:
        client.sock.sendall(b"[" + request("daemon.hello") + b",")
        client.sock.shutdown(socket.SHUT_WR)
        assert client.reply()["error"]["code"] == -32700
        assert client.has_ended()
    daemon.save("after", "words")
