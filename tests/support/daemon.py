"""A real daemon on a throwaway home. Law: a process of its own, reached only through its socket and its files."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import memd_client
from support.waiting import until


def processes(home: Path) -> list[int]:
    """The processes that run memd for a home, whoever started them."""
    wanted = f"MEMD_HOME={home}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if entry.name.isdecimal() and b"memd" in words and wanted in (entry / "environ").read_bytes() + b"\0":
                found.append(int(entry.name))
        except OSError:
            continue
    return found


class Daemon:
    """One home under a short path, a repository beside it, and the daemon that serves it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.repo = root / "repo"
        self.user = root / "user"
        for directory in (self.repo / ".git", self.user):
            directory.mkdir(parents=True, exist_ok=True)
        self.env = {
            "HOME": str(self.user),
            "MEMD_HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(memd_client.__file__).parents[1]),
            "PYTHONWARNINGS": "error",
        }
        self.command = [sys.executable, "-m", "memd"]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self.process is not None and self.process.poll() is None

    @property
    def socket(self) -> Path:
        """The daemon's socket."""
        return Path(memd_client.socket_path(self.env))

    @property
    def store(self) -> Path:
        """The directory of the repository's store."""
        return self.store_of(self.repo)

    @property
    def global_store(self) -> Path:
        """The directory of the global store."""
        return self.home / "memory"

    @property
    def log(self) -> str:
        """What the daemon wrote to standard error."""
        path = self.root / "stderr"
        return path.read_text() if path.exists() else ""

    def store_of(self, canonical: Path) -> Path:
        """The directory of the store of a canonical path whose key nobody else holds."""
        return self.home / "projects" / f"--{str(canonical)[1:].replace('/', '-')}--" / "memory"

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self.root / "stderr").open("ab") as log:
            self.process = subprocess.Popen(self.command, env=self.env, cwd="/", stdin=subprocess.DEVNULL, stderr=log)
        until(self.answers)

    def answers(self) -> bool:
        """Whether the daemon answers; fails the test when the process has ended."""
        assert self.process is not None
        assert self.process.poll() is None, f"the daemon ended: {self.log}"
        try:
            with self.connect() as connection:
                connection.call("daemon.hello")
        except memd_client.Unavailable:
            return False
        return True

    def connect(self) -> memd_client.Connection:
        """A new connection, never one that starts a daemon."""
        return memd_client.connect(autostart=False, env=self.env)

    def call(self, method: str, *, cwd: Path | None = None, **params: object) -> dict[str, Any]:
        """One call from the repository, or from `cwd`."""
        with self.connect() as connection:
            return connection.call(method, {"cwd": str(cwd or self.repo), **params})

    def save(self, name: str, body: str = "", *, cwd: Path | None = None, **fields: str) -> dict[str, Any]:
        """Save a note of the type project; its description is made from its name."""
        given = {"name": name, "type": "project", "description": f"About {name}"} | fields
        return self.call("memory.save", cwd=cwd, markdown=body, fields=given)

    def names(self, *, cwd: Path | None = None) -> list[str]:
        """The names of every note that is listed."""
        return [row["name"] for row in self.call("memory.list", cwd=cwd)["notes"]]

    def found(self, query: str, *, cwd: Path | None = None) -> list[str]:
        """The names a search finds, best first."""
        return [hit["name"] for hit in self.call("memory.search", cwd=cwd, query=query, limit=1000)["hits"]]

    def kill(self) -> None:
        """End it as a crash does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(20)

    def terminate(self) -> int:
        """End it as the service manager does; its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def close(self) -> None:
        """End whatever runs, a daemon that a client started included."""
        if self.is_running:
            self.kill()
        for pid in processes(self.home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: processes(self.home) == [])


@contextmanager
def daemon_home() -> Iterator[Daemon]:
    """A daemon that is not started yet; it ends and its home goes with the test."""
    root = Path(tempfile.mkdtemp(prefix="memd-e2e-", dir="/tmp"))
    daemon = Daemon(root)
    try:
        yield daemon
    finally:
        daemon.close()
        shutil.rmtree(root)


@contextmanager
def running_daemon() -> Iterator[Daemon]:
    """A daemon that answers."""
    with daemon_home() as daemon:
        daemon.start()
        yield daemon
