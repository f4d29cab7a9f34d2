"""A throwaway home with a repository, notes and a daemon. Law: it lies on the file system that is to be measured.

A bench of saves on a file system in memory measures nothing: the default place is `/var/tmp`, which outlives a
restart and so is on a disk. ext4 without a journal makes new files slowly, up to 1 ms each instead of 0.01, for
minutes after many were deleted nearby: each directory of a bench is put into a block group of its own, and
nothing is removed before the end.
"""

import fcntl
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Self

import msgspec

from memd import draft, paths
from memd.errors import MemdError
from memd.fs import Disk
from memd.settle import SETTLE
from memd.store import Author, Outcome, Request, Save, Store
from memd_client import Connection

PLACE = Path("/var/tmp")
STARTS_WITHIN_S = 20.0

_GET_FLAGS = 0x80086601
_SET_FLAGS = 0x40086602
_TOP_DIRECTORY = 0x20000
_PERSON = Author(by="cli")
_LOOK_S = 0.0005
_BATCH = 64
_NOT_OURS = ("CLAUDE", "MEMD_", "PYTHON", "XDG_")
_SYLLABLES = ("ba", "co", "di", "fer", "gan", "ho", "jin", "ka", "lom", "mi", "nu", "pel", "qua", "ro", "sta", "tri")


def words(chance: random.Random, count: int) -> str:
    """Words of a vocabulary of 4,096, the first of them far more frequent than the last, as in any prose."""
    return " ".join(_word(int(4096 ** chance.random())) for _ in range(count))


def question(chance: random.Random) -> str:
    """Three words to search for that one note in thirty or so has one of."""
    return " ".join(_word(chance.randrange(500, 4096)) for _ in range(3))


def _word(number: int) -> str:
    return _SYLLABLES[number % 16] + _SYLLABLES[number // 16 % 16] + _SYLLABLES[number // 256 % 16]


def saves(chance: random.Random, prefix: str, count: int) -> Iterator[Save]:
    """Requests that save so many notes of 40 to 120 words, named `<prefix>-<number>`."""
    for number in range(count):
        yield Save(draft.draft(words(chance, chance.randint(40, 120)), fields(chance, f"{prefix}-{number}")), _PERSON)


def fields(chance: random.Random, name: str) -> dict[str, object]:
    """The fields of a note to be saved under this name."""
    return {"name": name, "type": "project", "description": words(chance, 8)}


def fill(store: Store, chance: random.Random, count: int) -> None:
    """Put so many notes into a store, `note-0` and so on."""
    committed(store, saves(chance, "note", count))


def committed(store: Store, requests: Iterable[Request]) -> list[Outcome]:
    """What many requests did to a store. RuntimeError for one that is refused."""
    done: list[Outcome] = []
    left = iter(requests)
    while batch := list(islice(left, _BATCH)):
        outcomes = store.commit(batch).outcomes
        refused = [outcome for outcome in outcomes if isinstance(outcome, MemdError)]
        if refused:
            raise RuntimeError(f"a request of the bench was refused: {refused[0]}")
        done += [outcome for outcome in outcomes if not isinstance(outcome, MemdError)]
    return done


def note_files(chance: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """The names and texts of so many notes of 40 to 120 words, as a save writes them."""
    for number in range(count):
        name = f"note-{number}"
        head = f'---\nname: {name}\ndescription: "{words(chance, 8)}"\ntype: project\n---\n\n'
        yield name, f"{head}{words(chance, chance.randint(40, 120))}\n".encode()


class Unsynced(Disk):
    """A disk that waits for nothing: what a bench builds before it measures need not outlive a crash."""

    syncs_aside = False

    def sync(self, fd: int, path: Path) -> None:
        """Nothing."""


class House:
    """A home and one repository in a directory; `env` is the environment of everything that runs there."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.home = root / "home"
        self.repo = root / "harbour"
        (self.repo / ".git").mkdir(parents=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(_NOT_OURS)}
        self.env = {**kept, "HOME": str(root), "MEMD_HOME": str(self.home), "MEMD_NO_AUTOSTART": "1"}
        self.socket = self.home / "run" / "memd.sock"
        self.log = root / "memd.log"
        self.store = paths.repo_store(self.home, paths.key(self.repo))

    def fill(self, count: int) -> None:
        """Put so many notes into the repository's store. Not while a daemon runs here."""
        self.home.mkdir(mode=0o700)
        fill(Store(self.store, origin=self.repo), random.Random(1), count)

    def strew(self, count: int) -> None:
        """Put so many note files into the repository's store, by hand as it were; the first opening takes them in.

        100,000 saves would write MEMORY.md and usage.json anew again and again. Not while a daemon runs here.
        """
        self.store.mkdir(mode=0o700, parents=True)
        for name, text in note_files(random.Random(1), count):
            (self.store / f"{name}.md").write_bytes(text)
        Store(self.store, origin=self.repo, disk=Unsynced(), clock=lambda: time.time() + SETTLE).open()

    def spawn(self) -> subprocess.Popen[bytes]:
        """A daemon of this home, as a client would spawn it; it may not answer yet."""
        with self.log.open("ab") as log:
            command = [sys.executable, "-P", "-m", "memd"]
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)

    @contextmanager
    def served(self) -> Iterator[int]:
        """While the daemon of this home answers: its process id."""
        daemon = self.spawn()
        try:
            self.raw(daemon).close()
            yield daemon.pid
        finally:
            end(daemon)

    def raw(self, daemon: subprocess.Popen[bytes] | None = None) -> "RawClient":
        """A client of the daemon; where one was just spawned, as soon as it answers.

        RuntimeError with what it logged when it ended instead.
        """
        deadline = time.monotonic() + (STARTS_WITHIN_S if daemon else 0)
        while True:
            try:
                return RawClient(self.socket)
            except (FileNotFoundError, ConnectionRefusedError):
                if daemon and daemon.poll() is not None:
                    raise RuntimeError(f"the daemon ended: {self.log.read_text()[-1000:]}") from None
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_LOOK_S)

    def client(self) -> Connection:
        """The blocking client."""
        return Connection(self.env)

    def line(self, method: str, **params: object) -> bytes:
        """A request line, sent from this house's repository."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"cwd": str(self.repo), **params}}
        return msgspec.json.encode(request) + b"\n"


class RawClient:
    """A client that costs next to nothing: prepared lines out, lines in."""

    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.connect(str(path))
        except OSError:
            self.sock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self.sock.close()

    def ask(self, line: bytes) -> bytes:
        """The reply to a request line. RuntimeError when it is an error, or there is none."""
        self.sock.sendall(line)
        reply = self.sock.recv(1 << 16)
        while not reply.endswith(b"\n"):
            more = self.sock.recv(1 << 16)
            if not more:
                raise RuntimeError("the daemon hung up")
            reply += more
        return checked(reply)


def checked(reply: bytes) -> bytes:
    """A whole reply that is a result. RuntimeError when not: a bench of refusals measures something else."""
    if b'"result"' not in reply[:40] or not reply.endswith(b"\n"):
        raise RuntimeError(f"the daemon refused: {reply[:300]!r}")
    return reply


def end(daemon: subprocess.Popen[bytes]) -> None:
    """Stop a daemon and wait until it is gone."""
    if daemon.poll() is None:
        daemon.send_signal(signal.SIGTERM)
    daemon.wait(STARTS_WITHIN_S)


def run_program(command: list[str], env: Mapping[str, str]) -> float:
    """The seconds a program takes from being spawned to having ended. RuntimeError when it fails."""
    nowhere = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    began = time.perf_counter()
    pid = os.posix_spawn(command[0], command, env, file_actions=nowhere)
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise RuntimeError(f"{command} ended with status {status}")
    return seconds


def resident_mb(pid: int) -> float:
    """The resident memory of a process, in MB of 1,000,000 bytes."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        kilobytes = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:")).split()[1]
    else:
        asked = ["ps", "-o", "rss=", "-p", str(pid)]
        kilobytes = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    return int(kilobytes) * 1024 / 1e6


def file_system(directory: Path) -> str:
    """What a directory is on, as the mount table calls it; `unknown` where there is no such table."""
    table = Path("/proc/self/mounts")
    if not table.exists():
        return "unknown"
    mounts = [line.split()[:3] for line in table.read_text().splitlines()]
    held = [(point, kind) for _, point, kind in mounts if directory.resolve().is_relative_to(point)]
    point, kind = max(held, key=lambda mount: len(mount[0]))
    return f"{kind} at {point}"


@contextmanager
def ground(place: Path = PLACE) -> Iterator[Path]:
    """A new directory in `place`, removed at the end; what is made in it is spread over the disk."""
    with tempfile.TemporaryDirectory(prefix="memd-bench-", dir=place) as directory:
        with suppress(OSError):  # only file systems with block groups know what this is
            _spread(directory)
        yield Path(directory)


def plot(root: Path, name: str) -> Path:
    """A new directory in `ground`; ext4 chooses its place by its name, which is new each time."""
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=root))


def _spread(directory: str) -> None:
    """Say to ext4 that the directories in this one have nothing to do with each other, as `chattr +T` does."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        (flags,) = struct.unpack("l", fcntl.ioctl(fd, _GET_FLAGS, struct.pack("l", 0)))
        fcntl.ioctl(fd, _SET_FLAGS, struct.pack("l", flags | _TOP_DIRECTORY))
    finally:
        os.close(fd)
