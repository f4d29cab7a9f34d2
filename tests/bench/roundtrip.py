"""What a question costs over the socket, beside the least that Python can do. Law: floor and figure in turn.

The floor is a process that blocks in `recv`, looks at nothing and sends as many bytes back as the daemon's reply
has, to a question of as many bytes; one floor for each question, since they differ in length. A round is one
question to each. What jsonrpcserver has of it is measured in this process, on the daemon's own verb: the whole
of `rpc` for the line, jsonrpcserver's calls for the same request, and jsonrpcserver with its defaults.
`python -m tests.bench roundtrip` runs it alone.
"""

import asyncio
import json
import logging
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from memd.config import Config
from memd.live import Library, Outbox
from memd.protocol import HelloReply
from memd.rpc import Dispatcher
from memd.verbs import VERBS, Call

from .house import House, RawClient, ground, words
from .rows import Row, median, percentile, report, row

# After `memd.rpc`, which knows how to import it without a warning.
from jsonrpcserver import Result, Success, async_dispatch  # isort: skip
from jsonrpcserver.async_dispatcher import call as call_method  # isort: skip
from jsonrpcserver.dispatcher import to_response  # isort: skip
from jsonrpcserver.request import Request  # isort: skip
from jsonrpcserver.response import to_serializable_one  # isort: skip
from jsonrpcserver.sentinels import NOCONTEXT  # isort: skip

TIMES = 8.0
"""How many floors a round trip may cost."""

_ECHO = """
import os, socket, sys
path, size, reply = sys.argv[1], int(sys.argv[2]), b"x" * (int(sys.argv[3]) - 1) + b"\\n"
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
client, _ = listener.accept()
while True:
    left = size
    while left:
        data = client.recv(65536)
        if not data:
            sys.exit()
        left -= len(data)
    client.sendall(reply)
"""


class Size(NamedTuple):
    """How much is measured: notes in the store, rounds, of which the first `warm` are not counted."""

    notes: int
    rounds: int
    warm: int


FULL = Size(notes=1000, rounds=6000, warm=500)
QUICK = Size(notes=50, rounds=200, warm=20)


def run(quick: bool = False) -> dict[str, object]:
    """The rows of this bench, ready for JSON."""
    size = QUICK if quick else FULL
    with ground(Path("/tmp")) as root:
        house = House(root / "house")
        house.fill(size.notes)
        questions = {
            "daemon.hello": b'{"jsonrpc":"2.0","id":1,"method":"daemon.hello","params":{"protocol":1}}\n',
            "memory.search": house.line("memory.search", query=words(random.Random(8), 3)),
        }
        with house.served(), house.raw() as memd:
            rows = trips(memd, questions, root, size)
        hello = rows[0]["value"]
        assert isinstance(hello, float)
        rows += shares(house.home, questions["daemon.hello"], hello, size)
    return report("roundtrip", rows, notes=size.notes, rounds=size.rounds)


def trips(memd: RawClient, questions: dict[str, bytes], root: Path, size: Size) -> list[Row]:
    """The round trips of each question, and of as many bytes to an echo and back."""
    rows = []
    for name, line in questions.items():
        reply = memd.ask(line)
        with echo(root / f"{name}.sock", len(line), len(reply)) as floor:
            asked, echoed = in_turn(partial(memd.ask, line), partial(exchange, floor, line, len(reply)), size)
        for percent in (50, 99):
            value, least = percentile(asked, percent), percentile(echoed, percent)
            rows.append(row(f"{name}.p{percent}", value, "µs", floor=least, most_times=TIMES))
    return rows


def in_turn(one: Callable[[], object], other: Callable[[], object], size: Size) -> tuple[list[float], list[float]]:
    """The µs of each call of two functions, called in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(size.rounds):
        for call, taken in zip((one, other), times, strict=True):
            began = time.perf_counter()
            call()
            taken.append(1e6 * (time.perf_counter() - began))
    return times[0][size.warm :], times[1][size.warm :]


@contextmanager
def echo(path: Path, size: int, reply: int) -> Iterator[RawClient]:
    """A client of a blocking echo: `reply` bytes for every `size` bytes."""
    command = [sys.executable, "-c", _ECHO, os.fspath(path), str(size), str(reply)]
    process = subprocess.Popen(command)
    try:
        yield connected(path)
    finally:
        process.kill()
        process.wait()


def connected(path: Path) -> RawClient:
    """A client of a socket that is just being made."""
    while True:
        try:
            return RawClient(path)
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.001)


def exchange(client: RawClient, line: bytes, size: int) -> None:
    """Send a line and take as many bytes."""
    client.sock.sendall(line)
    while size:
        size -= len(client.sock.recv(1 << 16))


# -- jsonrpcserver's share -----------------------------------------------------------------------------------


def shares(home: Path, line: bytes, hello: float, size: Size) -> list[Row]:
    """What `rpc` and jsonrpcserver take for the line whose round trip was measured, in µs and in percent."""
    answer, ours, defaults = asyncio.run(in_process(home, line, size))
    return [
        row("rpc.answer", answer, "µs"),
        row("rpc.jsonrpcserver", ours, "µs", floor=answer),
        row("rpc.jsonrpcserver.share", 100 * ours / hello, "% of the round trip"),
        row("jsonrpcserver.defaults", defaults, "µs", floor=ours),
    ]


async def in_process(home: Path, line: bytes, size: Size) -> tuple[float, float, float]:
    """The median µs of `rpc` for a line, of jsonrpcserver in it, and of jsonrpcserver left to itself."""
    dispatcher = Dispatcher(VERBS, partial(Call, Library(home, Config())))
    answer = partial(dispatcher.answer, line, Outbox(lambda: None))
    reply = await answer()
    assert reply is not None
    result = HelloReply(**json.loads(reply)["result"])

    method = _Ready(result)
    request = Request("daemon.hello", [{}], 1)

    async def ours() -> object:
        return to_serializable_one(to_response(request, await call_method(request, NOCONTEXT, method)))

    async def hello(**_parameters: object) -> Result:
        return Success(json.loads(reply)["result"])

    async def defaults() -> object:
        return await async_dispatch(line.decode(), {"daemon.hello": hello})

    logging.getLogger("jsonrpcserver").setLevel(logging.CRITICAL)
    calls: list[Callable[[], Coroutine[Any, Any, object]]] = [answer, ours, defaults]
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(size.rounds):
        for call, taken in zip(calls, times, strict=True):
            began = time.perf_counter()
            await call()
            taken.append(1e6 * (time.perf_counter() - began))
    first, second, third = (median(taken[size.warm :]) for taken in times)
    return first, second, third


class _Ready:
    """A method with its answer at hand."""

    def __init__(self, reply: object) -> None:
        self._result = Success(reply)

    async def __call__(self, _params: object) -> Result:
        return self._result
