"""Many lives of a daemon on one home: racing starts, ends of every kind. Law: what is left over is looked for.

The short forms are tests, the long ones `make races` and `make cycles`.
"""

import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import memd
import memd_client
from support.daemon import Daemon, processes
from support.waiting import until

ROOT = Path(__file__).parents[2]
NO_DAEMON = 5


def is_free(lock: Path) -> bool:
    """Whether nobody holds a lock; one that is not there is free."""
    if not lock.exists():
        return True
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def left_over(daemon: Daemon) -> list[str]:
    """What of a daemon that has ended is still there; nothing should be."""
    found = [f"process {pid}" for pid in processes(daemon.home)]
    found += [f"socket {daemon.socket}"] if os.path.lexists(daemon.socket) else []
    found += [f"lock {name}" for name in (".daemon.lock", ".start.lock") if not is_free(daemon.home / name)]
    return found


# -- races ---------------------------------------------------------------------------------------------------------


def race(daemon: Daemon, racers: int, instances: int = 2) -> int:
    """One round: clients that start a daemon all at once, daemons started by hand among them. One serves them all.

    Then it is stopped, and nothing is left over. Gives how many calls waited in vain for a daemon that was on its way
    (SPEC 13 gives it 3 seconds, which a machine that does much else may need for 50 processes) and were made again.
    """
    ready, go = os.pipe()
    told, tell = os.pipe()
    children = [_racer(daemon, ready, go, told, tell) for _ in range(racers)]
    quiet = subprocess.DEVNULL
    by_hand = [
        subprocess.Popen(daemon.command, env=daemon.env, cwd="/", stdin=quiet, stdout=quiet, stderr=quiet)
        for _ in range(instances)
    ]
    os.close(ready)
    os.close(tell)
    os.close(go)  # they wait for this end
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    with os.fdopen(told, "rb") as answers:
        said = answers.read().split()
    pids = {int(word) for word in said if word != b"late"}
    assert codes == [0] * racers, codes
    assert len(said) - said.count(b"late") == racers
    assert len(pids) == 1, f"{len(pids)} daemons answered"
    until(lambda: processes(daemon.home) == [*pids], 60)
    with daemon.connect() as connection:
        connection.call("daemon.stop")
    assert {process.wait(60) for process in by_hand} <= {0}
    until(lambda: left_over(daemon) == [], 60)
    return said.count(b"late")


def _racer(daemon: Daemon, ready: int, go: int, told: int, tell: int) -> int:
    """A child that waits for the start, calls, and tells which process answered."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.close(go)
        os.close(told)
        os.read(ready, 1)
        os.close(ready)
        for _ in range(10):
            try:
                with memd_client.connect(daemon.env) as connection:
                    os.write(tell, b"%d\n" % connection.hello()["pid"])
            except memd_client.Unavailable:
                os.write(tell, b"late\n")
            else:
                code = 0
                break
    finally:
        os._exit(code)


# -- cycles --------------------------------------------------------------------------------------------------------


class Cycles:
    """One home through starts, stops, kills and upgrades; every note it acknowledged is there at the end."""

    def __init__(self, daemon: Daemon, seed: int) -> None:
        self.daemon = daemon
        self.random = random.Random(seed)
        self.saved: list[str] = []
        self.counts: dict[str, int] = {}
        self.installs = [self._install("0.1.1"), self._install("0.1.2")]

    def turn(self) -> None:
        """Start it in some way, save a note, end it in some way; after a clean end nothing may be left over."""
        self._choose(self._by_client, self._by_memctl, self._by_hand)()
        name = f"note-{len(self.saved)}"
        self.daemon.save(name, "words of a life")
        self.saved.append(name)
        ways = [self._stop, self._terminate, self._kill, self._upgrade]
        self._choose(*ways)()

    def check(self) -> None:
        """Everything that was acknowledged is there, and the journal is whole."""
        self._by_client()
        assert sorted(self.daemon.names()) == sorted(self.saved)
        assert self.daemon.call("memory.verify") == {"ok": True, "findings": []}
        self._stop()

    def _choose(self, *ways: Callable[[], None]) -> Callable[[], None]:
        way = self.random.choice(ways)
        self.counts[way.__name__] = self.counts.get(way.__name__, 0) + 1
        return way

    def _by_client(self) -> None:
        with memd_client.connect(self.daemon.env) as connection:
            connection.hello()

    def _by_memctl(self) -> None:
        self._memctl("start")

    def _by_hand(self) -> None:
        self.daemon.start()

    def _stop(self) -> None:
        self._memctl("stop")
        self._is_clean()

    def _terminate(self) -> None:
        os.kill(self._pid(), signal.SIGTERM)
        self._is_clean()

    def _kill(self) -> None:
        """A killed daemon leaves its socket's file, and nothing else; the next one takes it over."""
        os.kill(self._pid(), signal.SIGKILL)
        self._reap()
        until(lambda: left_over(self.daemon) == [f"socket {self.daemon.socket}"], 30)
        self._by_client()
        self._stop()

    def _upgrade(self) -> None:
        """Another version's memctl restarts it: the new daemon is of that version, and the only one."""
        tree, version = self.random.choice(self.installs)
        said = self._memctl("restart", tree=tree)
        assert said.startswith((f"memd {version} restarted", f"memd {version} started")), said
        self._reap()
        assert len(processes(self.daemon.home)) == 1
        self._stop()

    def _is_clean(self) -> None:
        self._reap()
        until(lambda: left_over(self.daemon) == [], 30)

    def _reap(self) -> None:
        if self.daemon.process is not None:
            self.daemon.process.wait(30)
            self.daemon.process = None

    def _pid(self) -> int:
        with self.daemon.connect() as connection:
            return int(connection.hello()["pid"])

    def _memctl(self, word: str, *, tree: Path | None = None) -> str:
        """What a memctl says, of the tree under test or of another install."""
        path = f"{tree}{os.pathsep}{tree}/clients/python" if tree else f"{ROOT}{os.pathsep}{ROOT}/clients/python"
        done = subprocess.run(
            [sys.executable, "-P", "-m", "memd.memctl", word],
            env={**self.daemon.env, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode == NO_DAEMON and word != "stop":
            # It was started and is not up within the 3 seconds of SPEC 13: the machine does much else.
            self.counts["late"] = self.counts.get("late", 0) + 1
            return self._memctl(word, tree=tree)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _install(self, version: str) -> tuple[Path, str]:
        """A copy of the programs that says it is of another version."""
        tree = self.daemon.root / version
        for part in ("memd", "clients/python/memd_client"):
            shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        init = tree / "memd" / "__init__.py"
        init.write_text(init.read_text().replace(memd.__version__, version))
        return tree, version
