"""Past sessions in a real daemon: 200 transcripts of 5 MiB. Law: while they are read, others are asked all the time.

    python -m tests.bench history

Transcripts are spelled as Claude Code spells them; about a seventh of the bytes is what people and agents said, the
rest what tools gave back. The first question starts the reading; until it is done `daemon.hello` is asked in turn
on a connection of its own. Then come questions, each of a few words that some entries hold; an entry is added to a
transcript and asked for; and the daemon is started anew, to see what the first question costs from the cache.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from .house import PLACE, House, RawClient, end, file_system, ground, plot, question, resident_mb, words
from .rows import Row, median, percentile, report, row

HELLO_MS = 50.0
SEARCH_MS = 20.0
GROWN_S = 2.0
RESIDENT_MB = 250.0
PAUSE_S = 0.002
GIVES_UP_S = 600.0

_HELLO = b'{"jsonrpc":"2.0","id":1,"method":"daemon.hello"}\n'
_STATUS = b'{"jsonrpc":"2.0","id":1,"method":"daemon.status"}\n'


class Size(NamedTuple):
    """How much is measured: transcripts, bytes of each, questions."""

    transcripts: int
    size: int
    rounds: int


FULL = Size(transcripts=200, size=5 << 20, rounds=100)
QUICK = Size(transcripts=4, size=1 << 16, rounds=5)


def run(quick: bool = False, place: Path = PLACE) -> dict[str, object]:
    """The rows of this bench, ready for JSON, measured in a directory of `place`."""
    with ground(place) as root:
        return measure(root, QUICK if quick else FULL)


def measure(root: Path, size: Size) -> dict[str, object]:
    """The rows, measured in `root`."""
    house = House(plot(root, "history"))
    house.home.mkdir(mode=0o700)
    claude = root / "claude"
    house.env["CLAUDE_CONFIG_DIR"] = str(claude)
    files = list(write(claude / "projects" / "-harbour", house.repo, size))
    daemon = house.spawn()
    try:
        with house.raw(daemon) as client:
            rows = [*first(house, client), *later(house, client, size), grown(house, client, files[-1])]
            rows.append(row("history.resident", resident_mb(daemon.pid), "MB", most=RESIDENT_MB))
    finally:
        end(daemon)
    rows.append(restarted(house))
    return report("history", rows, file_system=file_system(root), transcripts=size.transcripts, bytes=size.size)


def first(house: House, client: RawClient) -> Iterator[Row]:
    """The first question, how long the reading takes, and what a hello costs meanwhile."""
    begun = time.perf_counter()
    client.ask(house.line("history.search", query="harbour"))
    answered = time.perf_counter() - begun
    waits: list[float] = []
    while not is_read(client):
        if time.perf_counter() - begun > GIVES_UP_S:
            raise RuntimeError("the transcripts were not read in time")
        for _ in range(50):
            start = time.perf_counter()
            client.ask(_HELLO)
            waits.append((time.perf_counter() - start) * 1e3)
            time.sleep(PAUSE_S)
    yield row("history.first.answer", answered, "s")
    yield row("history.first.read", time.perf_counter() - begun, "s")
    yield row("history.hello.p99", percentile(waits or [0.0], 99), "ms", most=HELLO_MS)


def is_read(client: RawClient) -> bool:
    """Whether all that was asked for is read."""
    history = msgspec.json.decode(client.ask(_STATUS))["result"]["history"]
    read, transcripts = int(history["read"]), int(history["transcripts"])
    return read == transcripts > 0


def later(house: House, client: RawClient, size: Size) -> Iterator[Row]:
    """Questions of a corpus that is read."""
    chance = random.Random(2)
    took = []
    for _ in range(size.rounds):
        line = house.line("history.search", query=question(chance))
        start = time.perf_counter()
        client.ask(line)
        took.append((time.perf_counter() - start) * 1e3)
    yield row("history.search.p50", median(took), "ms", most=SEARCH_MS)
    yield row("history.search.p99", percentile(took, 99), "ms")


def grown(house: House, client: RawClient, file: Path) -> Row:
    """How long after it was written an entry is found."""
    with file.open("ab") as stream:
        stream.write(said("assistant", "the oystercatcher nests on the roof", house.repo, "grown"))
    start = time.perf_counter()
    while b"grown" not in client.ask(house.line("history.search", query="oystercatcher")):
        if time.perf_counter() - start > GIVES_UP_S:
            raise RuntimeError("what was added is not found")
    return row("history.grown", time.perf_counter() - start, "s", most=GROWN_S)


def restarted(house: House) -> Row:
    """The first question to the next daemon, which finds everything counted."""
    daemon = house.spawn()
    try:
        with house.raw(daemon) as client:
            start = time.perf_counter()
            client.ask(house.line("history.search", query="harbour"))
            while not is_read(client):
                time.sleep(PAUSE_S)
            return row("history.restarted.read", time.perf_counter() - start, "s")
    finally:
        end(daemon)


def write(directory: Path, repo: Path, size: Size) -> Iterator[Path]:
    """The transcripts, each of at least so many bytes."""
    directory.mkdir(parents=True)
    chance = random.Random(1)
    tools = words(chance, 100_000)
    for number in range(size.transcripts):
        path = directory / f"session-{number:03}.jsonl"
        written = 0
        with path.open("wb") as stream:
            while written < size.size:
                written += stream.write(_line(chance, repo, tools, f"{number}-{written}"))
        yield path


def _line(chance: random.Random, repo: Path, tools: str, uuid: str) -> bytes:
    kind = chance.random()
    if kind < 0.15:
        return said("user", words(chance, chance.randint(5, 80)), repo, uuid)
    if kind < 0.4:
        return said("assistant", words(chance, chance.randint(10, 120)), repo, uuid)
    start = chance.randrange(len(tools) - 8_000)
    result = {"type": "tool_result", "content": tools[start : start + chance.randint(500, 8_000)]}
    return said("user", [result], repo, uuid)


def said(kind: str, content: object, repo: Path, uuid: str) -> bytes:
    """A line of a transcript."""
    line = {"type": kind, "uuid": uuid, "cwd": str(repo), "message": {"role": kind, "content": content}}
    return msgspec.json.encode(line) + b"\n"
