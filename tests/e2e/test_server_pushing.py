"""What a connection's outbox gets goes out between its replies: whole lines, none before it was asked for."""

import socket
from collections.abc import Awaitable, Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from memd import server
from memd.live import Outbox
from memd.live.feed import OUTBOX_MAX
from memd.server import Connection

BIG = b"r" * 4_000_000


class Talk:
    """A connection in the test's own loop, and its client's end."""

    def __init__(self) -> None:
        self.near, far = socket.socketpair(socket.AF_UNIX)
        self.near.setblocking(False)
        self.outbox: Outbox | None = None
        self.left = 0
        self.going = anyio.Event()
        self.go_on = anyio.Event()
        self.connection = Connection(far, self.answer)

    async def answer(self, line: bytes, outbox: Outbox) -> bytes | None:
        """`listen` puts the outbox into use and two lines in; `wait` waits for `go_on`; `big` answers much."""
        if line == b"listen":
            outbox.use(self.leave)
            self.outbox = outbox
            self.push(b"1", b"2")
            for _ in range(5):
                await checkpoint()
        if line == b"wait":
            self.going.set()
            await self.go_on.wait()
        return (BIG if line == b"big" else line) + b"\n"

    def leave(self) -> None:
        self.left += 1

    def push(self, *lines: bytes) -> None:
        assert self.outbox is not None
        for line in lines:
            self.outbox.push(line + b"\n")

    async def send(self, *lines: bytes) -> None:
        for line in lines:
            self.near.send(line + b"\n")
        await checkpoint()

    async def receive(self, count: int) -> list[bytes]:
        """So many lines; fewer at the end of the stream."""
        received = b""
        while received.count(b"\n") < count:
            await anyio.wait_readable(self.near)
            data = self.near.recv(1 << 20)
            if not data:
                break
            received += data
        assert not received or received.endswith(b"\n")
        return received.splitlines()


def talk(with_it: Callable[[Talk], Awaitable[None]]) -> Talk:
    """Serve a connection while `with_it` is its client, then close the client's end and wait for the server's."""

    async def run() -> Talk:
        it = Talk()
        with it.near, anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(it.connection.serve)
                await with_it(it)
                it.near.close()
        return it

    return anyio.run(run)


def test_what_is_pushed_before_the_reply_comes_after_it() -> None:
    async def client(it: Talk) -> None:
        await it.send(b"listen")
        assert await it.receive(3) == [b"listen", b"1", b"2"]

    assert talk(client).left == 1


def test_lines_come_while_nothing_runs_and_while_a_request_runs() -> None:
    async def client(it: Talk) -> None:
        await it.send(b"listen")
        await it.receive(3)
        it.push(b"3")
        assert await it.receive(1) == [b"3"]
        await it.send(b"wait")
        await it.going.wait()
        it.push(b"4")
        assert await it.receive(1) == [b"4"]
        it.go_on.set()
        assert await it.receive(1) == [b"wait"]
        await it.send(b"a", b"listen", b"b")
        assert sorted(await it.receive(5)) == [b"1", b"2", b"a", b"b", b"listen"]

    assert talk(client).left == 1


def test_however_much_is_asked_one_task_pushes() -> None:
    async def client(it: Talk) -> None:
        await it.send(b"listen")
        await it.receive(3)
        tasks = len(anyio.get_running_tasks())
        await it.send(b"a", b"listen", b"b")
        await it.receive(5)
        assert len(anyio.get_running_tasks()) == tasks

    assert talk(client).left == 1


def test_a_line_waits_for_the_end_of_a_reply_that_is_half_sent() -> None:
    async def client(it: Talk) -> None:
        await it.send(b"listen")
        await it.receive(3)
        await it.send(b"big")
        await anyio.wait_readable(it.near)
        for number in range(100):
            it.push(b"%d" % number)
            await checkpoint()
        await it.send(b"last")
        lines = await it.receive(102)
        assert lines[0] == BIG
        assert [line for line in lines[1:] if line != b"last"] == [b"%d" % number for number in range(100)]
        assert b"last" in lines

    assert talk(client).left == 1


def test_a_reply_waits_for_the_end_of_lines_that_are_half_sent() -> None:
    async def client(it: Talk) -> None:
        await it.send(b"listen")
        await it.receive(3)
        it.push(*(b"x" * 10_000 for _ in range(100)))
        await anyio.wait_readable(it.near)
        await it.send(b"a")
        for _ in range(10):
            await checkpoint()
        assert set(await it.receive(101)) == {b"x" * 10_000, b"a"}

    assert talk(client).left == 1


def test_a_client_that_does_not_read_is_dropped_when_too_much_waits() -> None:
    async def client(it: Talk) -> None:
        await it.send(b"listen")
        await it.receive(3)
        it.push(b"x" * 1_000_000)
        await anyio.wait_readable(it.near)
        it.push(*(b"y" for _ in range(OUTBOX_MAX)))
        assert it.left == 0
        it.push(b"y")
        assert it.left == 1
        received = b""
        while data := await read(it.near):
            received += data
        assert 0 < len(received) < 1_000_000

    assert talk(client).left == 1


async def read(sock: socket.socket) -> bytes:
    """What comes next; empty at the end."""
    await anyio.wait_readable(sock)
    return sock.recv(1 << 20)


def test_a_client_that_does_not_read_is_dropped_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SEND_TIMEOUT_S", 0.02)

    async def client(it: Talk) -> None:
        await it.send(b"listen")
        await it.receive(3)
        it.push(b"x" * 1_000_000)
        while not it.left:
            await checkpoint()

    assert talk(client).left == 1


def test_a_client_that_vanishes_leaves_while_it_listens() -> None:
    async def client(it: Talk) -> None:
        await it.send(b"listen")
        await it.receive(3)
        it.near.close()
        while not it.left:
            await checkpoint()
        it.push(b"nobody")

    assert talk(client).left == 1


def test_the_end_of_file_ends_listening_after_the_last_answer() -> None:
    async def client(it: Talk) -> None:
        await it.send(b"listen", b"a")
        it.near.shutdown(socket.SHUT_WR)
        lines = await it.receive(5)
        assert lines[0] == b"listen"
        assert b"a" in lines

    assert talk(client).left == 1


def test_an_end_by_the_server_ends_listening() -> None:
    async def client(it: Talk) -> None:
        await it.send(b"listen")
        await it.receive(3)
        it.connection.end()
        assert await it.receive(1) == []

    assert talk(client).left == 1
