"""A home that daemons live and die in. Law: the daemon is memd's own, over its socket; only its birth is cheap.

This process has imported memd and forks: the child runs `memd.daemon.start` in the environment of the world, under a
trap. The client is `memd_client`, in a thread, while this thread answers the daemon's calls.
"""

import gc
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import memd.daemon
import memd_client

from .sweep_trap import HangError, Judge, Trap, accept, enter, go_on

MEMORY: Final = Path("/dev/shm")
ANSWER_S: Final = 60.0
"""Seconds without any progress that count as a hang; what is waited for takes less than one."""

CONFIG: Final = "settle_ms = 60\n[claude]\nimport = false\n"
Mutation = Callable[[], None]
Script = Callable[[memd_client.Connection], Any]


class World:
    """One directory with a home, a repository and a directory to import from, always at the same path.

    `told` are the notes, by scope and name, that clients of a verb of several were told to have been saved.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.repo = root / "repo"
        self.notes = root / "notes"
        self.trees = (self.home, self.notes)
        self.mutation: Mutation | None = None
        self.told: set[tuple[str, str]] = set()
        for directory in (self.repo / ".git", root / "user", self.home, self.notes):
            directory.mkdir(parents=True)
        self.home.chmod(0o700)
        (root / "config.toml").write_text(CONFIG)
        self.env = {
            "HOME": str(root / "user"),
            "MEMD_HOME": str(self.home),
            "MEMD_CONFIG": str(root / "config.toml"),
            "PATH": os.environ["PATH"],
        }

    @property
    def stores(self) -> dict[str, Path]:
        """The directory of each store, by scope."""
        key = f"--{str(self.repo)[1:].replace('/', '-')}--"
        return {"repo": self.home / "projects" / key / "memory", "global": self.home / "memory"}

    def keep(self, name: str) -> Path:
        """A copy of all that a daemon could change, to go back to."""
        kept = self.root / f"kept-{name}"
        shutil.rmtree(kept, ignore_errors=True)
        for tree in self.trees:
            copy(tree, kept / tree.name)
        return kept

    def back_to(self, kept: Path) -> None:
        """Make the world what it was when it was kept."""
        for tree in self.trees:
            empty(tree)
            copy(kept / tree.name, tree)

    def daemon(self, judge: Judge = go_on, *, looks: bool = False, keep_data: bool = False) -> "Daemon":
        """A daemon that begins to start."""
        return Daemon(self, judge, looks=looks, keep_data=keep_data)

    def run(self, script: Script) -> Any:
        """What a script makes of a daemon that nothing happens to; the daemon is killed after it."""
        with self.daemon() as daemon:
            return daemon.drive(script)

    def connect(self) -> memd_client.Connection:
        """A connection that never starts a daemon. Errors: Unavailable. What hangs is for the trap to say."""
        return memd_client.connect(autostart=False, env=self.env, timeout=100 * ANSWER_S)


class Daemon:
    """A forked daemon under a trap. A context manager: it is dead after it."""

    def __init__(self, world: World, judge: Judge, *, looks: bool, keep_data: bool) -> None:
        self.world = world
        mine, its = socket.socketpair()
        with mine, its:
            self.pid = os.fork()
            if self.pid == 0:
                _be_daemon(world, its, looks=looks)
            try:
                listener = accept(mine)
            except ValueError:
                os.waitpid(self.pid, 0)
                raise RuntimeError("no trap: this system does not allow a seccomp listener") from None
        self.trap = Trap(self.pid, listener, world.home, judge, keep_data=keep_data)
        self.ended = False
        self.refused = ""

    def __enter__(self) -> "Daemon":
        return self

    def __exit__(self, *_raised: object) -> None:
        self.kill()

    def drive(self, script: Script) -> Any:
        """What a client's script returned, None when the daemon died; raises what the script raised.

        Errors: HangError when neither happens.
        """
        answers: list[Any] = []
        raised: list[BaseException] = []
        done, told = os.pipe()

        def client() -> None:
            try:
                with self._reach() as connection:
                    answers.append(script(connection))
            except BaseException as error:  # noqa: BLE001 - handed on to the caller
                raised.append(error)
            finally:
                os.close(told)

        thread = threading.Thread(target=client)
        thread.start()
        hangs = True
        try:
            self.trap.pump(done, ANSWER_S)
            hangs = False
        except HangError as error:
            raise HangError(f"{error}; the client: {self.refused or 'connected'}") from None
        finally:
            if hangs or self.trap.dead:
                self.kill()
            thread.join()
            os.close(done)
        if raised and not (self.trap.dead and isinstance(raised[0], memd_client.Unavailable)):
            raise raised[0]
        return answers[0] if answers else None

    def _reach(self) -> memd_client.Connection:
        """A connection, once the daemon listens; that it never does is for the trap to say. Errors: Unavailable."""
        pause = threading.Event()
        while True:
            try:
                return self.world.connect()
            except memd_client.Unavailable as error:
                self.refused = str(error)
                if self.trap.dead or self.ended:
                    raise
                pause.wait(0.002)

    def kill(self) -> None:
        """End it as a crash does. May be repeated."""
        if not self.ended:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.trap.close()
            self.trap.dead = self.ended = True


def _be_daemon(world: World, parent: socket.socket, *, looks: bool) -> None:
    """Become the daemon of a world; never returns."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.environ.clear()
        os.environ.update(world.env)
        os.chdir("/")
        log = os.open(world.root / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if world.mutation is not None:
            world.mutation()
        enter(parent, looks=looks)
        parent.close()
        memd.daemon.start()
    finally:
        os._exit(1)


def copy(source: Path, target: Path) -> None:
    """A copy of a tree; sockets are left out."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.scandir(source) as entries:
        for entry in entries:
            path = target / entry.name
            if entry.is_dir(follow_symlinks=False):
                copy(Path(entry.path), path)
            elif entry.is_file(follow_symlinks=False):
                data = Path(entry.path).read_bytes()
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.write(fd, data)
                os.close(fd)


def empty(tree: Path) -> None:
    """Remove what is in a directory."""
    for entry in list(os.scandir(tree)):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            Path(entry.path).unlink()


@contextmanager
def a_world(name: str = "w", parent: Path = MEMORY) -> Iterator[World]:
    """A world in memory that goes after it."""
    gc.freeze()
    root = Path(tempfile.mkdtemp(prefix=f"memd-{name}-", dir=parent if parent.is_dir() else None))
    try:
        yield World(root)
    finally:
        shutil.rmtree(root)
