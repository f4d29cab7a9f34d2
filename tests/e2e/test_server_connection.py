"""One connection on a socket pair, in the test's own event loop: turns, and the boundary where a failure ends."""

import logging
import socket
from collections.abc import Callable, Coroutine
from itertools import pairwise

import anyio
import pytest
from anyio.lowlevel import checkpoint

from memd.live import Outbox
from memd.server import Answer, Connection
from support.fake_verbs import SECRET

LINES = 1000


async def _serve(answer: Answer, sent: bytes, beside: Callable[[], Coroutine[None, None, None]]) -> bytes:
    """What a connection answers to `sent` before the end of file, with `beside` run at the same time."""
    near, far = socket.socketpair(socket.AF_UNIX)
    with near, far:
        near.sendall(sent)
        near.shutdown(socket.SHUT_WR)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beside)
            await Connection(far, answer).serve()
            tasks.cancel_scope.cancel()
        near.setblocking(False)
        received = b""
        while data := near.recv(1 << 16):
            received += data
        return received


async def _nothing() -> None:
    pass


def test_a_client_with_much_to_say_leaves_others_their_turns() -> None:
    answered = 0
    seen: list[int] = []

    async def answer(line: bytes, _outbox: Outbox) -> None:
        nonlocal answered
        answered += 1

    async def other() -> None:
        while True:
            seen.append(answered)
            await checkpoint()

    anyio.run(_serve, answer, b"a\n" * LINES, other)
    assert answered == LINES
    assert max(after - before for before, after in pairwise(seen)) <= 2


def test_a_failure_ends_at_its_connection_and_its_text_stays_there(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(line: bytes, _outbox: Outbox) -> bytes:
        if line == b"bad":
            raise RuntimeError(SECRET)
        return line + b"\n"

    with caplog.at_level(logging.INFO):
        assert anyio.run(_serve, answer, b"good\nbad\ngood\n", _nothing) == b"good\n"
    [record] = caplog.records
    assert "a connection failed: " in record.getMessage()
    assert "builtins.RuntimeError" in record.getMessage()
    assert SECRET not in caplog.text


def test_a_connection_that_is_ended_answers_what_was_sent_and_takes_no_more() -> None:
    async def answer(line: bytes, _outbox: Outbox) -> bytes:
        return line + b"\n"

    async def ended() -> bytes:
        near, far = socket.socketpair(socket.AF_UNIX)
        with near:
            near.sendall(b"a\n")
            connection = Connection(far, answer)
            connection.end()
            with pytest.raises(BrokenPipeError):
                near.sendall(b"b\n")
            await connection.serve()
            return near.recv(100)

    assert anyio.run(ended) == b"a\n"
