"""A process of clients: `python -m tests.load.clients`, orders as JSON on standard input, a report on its output.

Law: every client knows what it may be answered, and says so when it is answered anything else. Most work; of each
sixteen one is slow, one silent, one deaf, one babbles and one vanishes.
"""

import json
import random
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import memd_client
from memd.protocol import REQUEST_MAX

from .asks import Place, ask

PATIENCE_S = 60.0
"""Seconds a client waits for an answer: above them the daemon has left it alone."""
FAULTS_MAX = 20


class Report:
    """What the clients of a process met: milliseconds by verb, asked-for errors by kind, faults in words."""

    def __init__(self) -> None:
        self.took: dict[str, list[float]] = {}
        self.asked_for: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.faults: list[str] = []
        self._lock = threading.Lock()

    def fault(self, text: str) -> None:
        """Note what should not have been."""
        with self._lock:
            if len(self.faults) < FAULTS_MAX:
                self.faults.append(text)

    def answered(self, method: str, seconds: float, kind: str | None) -> None:
        """Note an answer."""
        with self._lock:
            self.took.setdefault(method, []).append(round(1000 * seconds, 3))
            if kind is not None:
                self.asked_for[kind] += 1


class Client:
    """One client, until `end` (monotonic seconds)."""

    def __init__(self, env: dict[str, str], place: Place, seed: int, end: float, report: Report) -> None:
        self.env = env
        self.place = place
        self.chance = random.Random(seed)
        self.end = end
        self.report = report

    @property
    def is_over(self) -> bool:
        """Whether it is time to go."""
        return time.monotonic() >= self.end

    def connected(self) -> socket.socket:
        """A socket to the daemon; where the queue before its door is full, it is tried again, as a client does."""
        while True:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(PATIENCE_S)
            try:
                sock.connect(memd_client.socket_path(self.env))
            except BlockingIOError:
                sock.close()
                _pause(0.01)
            else:
                return sock

    def line(self) -> bytes:
        """A request as it crosses the wire."""
        method, params, _ = ask(self.chance, self.place)
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return json.dumps(message).encode() + b"\n"


def work(client: Client) -> None:
    """Ask one thing after the other, as an agent's process does."""
    with memd_client.Connection(client.env, autostart=False, timeout=PATIENCE_S) as connection:
        while not client.is_over:
            method, params, may = ask(client.chance, client.place)
            began = time.monotonic()
            kind = None
            try:
                connection.call(method, params)
            except memd_client.MemdError as error:
                kind = error.kind
                if kind not in may:
                    client.report.fault(f"{method} {params}: {error.kind}: {error.message}"[:400])
            client.report.answered(method, time.monotonic() - began, kind)
            if method == "activity.subscribe":
                connection.close()  # one that goes on to be told things and does not read them is dropped


def crawl(client: Client) -> None:
    """Send a request byte by byte, and read the answer in small pieces."""
    with client.connected() as sock:
        request = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "memory.list",
            "params": {"cwd": str(client.place.repo), "bodies": True},
        }
        while not client.is_over:
            for byte in json.dumps(request).encode() + b"\n":
                sock.sendall(bytes([byte]))
                _pause(0.002)
            data = b""
            while not data.endswith(b"\n"):
                data = sock.recv(512)
                if not data:
                    client.report.fault("a slow client was dropped")
                    return
                _pause(0.001)
            client.report.done["slow"] += 1


def keep_silent(client: Client) -> None:
    """Connect, say nothing for a while, go."""
    while not client.is_over:
        with client.connected():
            _pause(min(5.0, max(0.0, client.end - time.monotonic())))
        client.report.done["silent"] += 1


def turn_deaf(client: Client) -> None:
    """Ask for much and read nothing of it."""
    while not client.is_over:
        with client.connected() as sock:
            sock.settimeout(1.0)
            request = {"jsonrpc": "2.0", "id": 1, "method": "rpc.discover", "params": {}}
            line = json.dumps(request).encode() + b"\n"
            try:
                while not client.is_over:
                    sock.sendall(line * 100)
            except TimeoutError:
                client.report.done["deaf"] += 1


def babble(client: Client) -> None:
    """Send what is no request: noise, lines over the cap, halves of lines."""
    while not client.is_over:
        with client.connected() as sock, sock.makefile("rb") as lines:
            for code, line in (
                (-32700, bytes(client.chance.randrange(1, 256) for _ in range(200)).replace(b"\n", b"") + b"}\n"),
                (-32010, b"x" * (REQUEST_MAX + 1) + b"\n"),
                (-32600, b'{"jsonrpc":"2.0","id":[]}\n'),
                (-32601, b'{"jsonrpc":"2.0","id":1,"method":"memory.gossip"}\n'),
                (-32602, b'{"jsonrpc":"2.0","id":1,"method":"memory.search","params":{"cwd":"/","query":7}}\n'),
            ):
                sock.sendall(line)
                answer = json.loads(lines.readline() or b"{}")
                if answer.get("error", {}).get("code") != code:
                    client.report.fault(f"babble of {line[:60]!r} was answered {str(answer)[:200]}")
                client.report.done["babble"] += 1
            half = client.line()
            sock.sendall(half[: len(half) // 2])


def vanish(client: Client) -> None:
    """Ask, and go before the answer."""
    while not client.is_over:
        with client.connected() as sock:
            sock.sendall(client.line() * client.chance.randrange(1, 4))
            client.report.done["vanished"] += 1
        _pause(0.1)


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


_ODD: tuple[Callable[[Client], None], ...] = (crawl, keep_silent, turn_deaf, babble, vanish)
SIXTEEN: tuple[Callable[[Client], None], ...] = (*_ODD, *(work,) * (16 - len(_ODD)))


def main(orders: dict[str, Any]) -> dict[str, Any]:
    """Run clients as ordered; what they met."""
    report = Report()
    end = time.monotonic() + orders["seconds"]
    threads = []
    for number in orders["clients"]:
        repos = orders["repos"]
        place = Place(
            Path(repos[number % len(repos)]), Path(orders["notes"]), f"load-{orders['phase']}-{number}", orders["key"]
        )
        client = Client(orders["env"], place, orders["seed"] + number, end, report)
        threads.append(threading.Thread(target=_run, args=(SIXTEEN[number % 16], client)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"took": report.took, "asked_for": report.asked_for, "done": report.done, "faults": report.faults}


def _run(role: Callable[[Client], None], client: Client) -> None:
    try:
        role(client)
    except Exception as error:  # noqa: BLE001 - whatever stops a client before its time is a fault to be told
        client.report.fault(f"{role.__name__} ended: {error!r}"[:400])


if __name__ == "__main__":
    json.dump(main(json.load(sys.stdin)), sys.stdout)
