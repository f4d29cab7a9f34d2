"""`make soak MINUTES=n`: clients at work while the daemon is killed at random. Law: what was promised is held to.

    python -m tests.faults.soak [--minutes N] [--clients N] [--seed N] [--root DIR]

Clients save, read, search, restore and forget, start sessions, and edit, create and delete files by hand; each starts
the daemon again by the client's own autostart when it is gone. Rounds have a repository each: first the daemon is
killed at random moments, then one daemon lives on undisturbed. After every kill, and now and then in the quiet part,
the world is stopped and looked at: `memory.verify` is ok, every acknowledged text is in its file or, once it was
superseded, an object, with its exact bytes, and forgotten words are nowhere under the home. Memory and descriptors of
the undisturbed daemons are told, and may not grow. At the end every repository is looked at once more, each note
through the daemon too. Exit 1 at the first broken promise; the home is then kept.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import memd_client

from .soak_client import ANSWER_S, Client
from .soak_truth import Gate, LostError, Tally, Truth, check_gone, check_store

ROUND_S = 300.0
"""Seconds that one repository is worked in."""
QUIET_PART = 0.4
"""The part of a round in which nobody is killed."""
WARM = 0.25
"""The part of an undisturbed life after which its memory is first measured."""
RSS_SLACK = 8 << 20
RSS_GROWTH = 1.15
"""How much an undisturbed daemon's memory may grow: the journal's heads hold a little for every save."""
FD_SLACK = 2


class Place(NamedTuple):
    """One round's repository and what its clients were promised there."""

    cwd: str
    store: Path
    truths: list[Truth]


class Life(NamedTuple):
    """Memory (bytes) and descriptors of one undisturbed daemon, first and last."""

    rss: tuple[int, int]
    fds: tuple[int, int]


class Soak:
    """A home, its clients and what they were promised."""

    def __init__(self, root: Path, clients: int, seed: int) -> None:
        self.root = root
        self.home = root / "home"
        (root / "user").mkdir()
        self.env = {
            "HOME": str(root / "user"),
            "MEMD_HOME": str(self.home),
            "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
        }
        if "PYTHONPATH" in os.environ:  # how a broken daemon is tried
            self.env["PYTHONPATH"] = os.environ["PYTHONPATH"]
        self.chance = random.Random(seed)
        self.gate, self.tally = Gate(), Tally()
        self.clients = [Client(number, self.env, self.gate, self.tally, seed) for number in range(clients)]
        self.connection = memd_client.Connection(self.env, timeout=ANSWER_S)
        self.places: list[Place] = []
        self.lives: list[Life] = []
        self.looks = 0
        self.begun = time.monotonic()

    # -- rounds ----------------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Work, kill and look for so long. Errors: LostError, and whatever a client met."""
        end = time.monotonic() + seconds
        rounds = max(1, round(seconds / ROUND_S))
        with self.working():
            for number in range(rounds):
                left = end - time.monotonic()
                length = left / (rounds - number)
                self.move_on(number)
                self.kill_for(length * (1 - QUIET_PART))
                self.live_for(length * QUIET_PART)
        self.look_at_all()

    @contextmanager
    def working(self) -> Iterator[None]:
        """The clients work meanwhile, once they know where."""
        try:
            yield
        finally:
            for client in self.clients:
                client.ended.set()
            for client in self.clients:
                if client.is_alive():
                    client.join(2 * ANSWER_S)

    def move_on(self, number: int) -> None:
        """Have every client work in a new repository."""
        repo = self.root / f"r{number}"
        (repo / ".git").mkdir(parents=True)
        key = f"--{str(repo.resolve())[1:].replace('/', '-')}--"
        place = Place(str(repo), self.home / "projects" / key / "memory", [Truth() for _ in self.clients])
        stores = {"repo": place.store, "global": self.home / "memory"}
        with self.gate.still():
            self.places.append(place)
            for client, truth in zip(self.clients, place.truths, strict=True):
                client.work_in(place.cwd, stores, truth)
        for client in self.clients:
            if not client.is_alive():
                client.start()

    def kill_for(self, seconds: float) -> None:
        """Kill the daemon again and again, and look after each time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.wait(min(self.chance.uniform(0.05, 4.0), end - time.monotonic()))
            self.kill()
            self.wait(self.chance.choice((0.0, 0.0, 0.3)))
            with self.gate.still():
                self.look()

    def live_for(self, seconds: float) -> None:
        """Let one daemon live, and measure it."""
        pid = self.pid()
        end = time.monotonic() + seconds
        self.wait(seconds * WARM)
        first = self.measured(pid)
        last = first
        while time.monotonic() < end:
            self.wait(min(20.0, max(0.0, end - time.monotonic())))
            last = self.measured(pid)
        life = Life((first[0], last[0]), (first[1], last[1]))
        self.lives.append(life)
        self.say(f"undisturbed: {described(life)}")
        if life.rss[1] > life.rss[0] * RSS_GROWTH + RSS_SLACK:
            raise LostError(f"an undisturbed daemon's memory grew from {life.rss[0]:,} to {life.rss[1]:,} bytes")
        if life.fds[1] > life.fds[0] + FD_SLACK:
            raise LostError(f"an undisturbed daemon's descriptors grew from {life.fds[0]} to {life.fds[1]}")

    def wait(self, seconds: float) -> None:
        """Let so much time pass. Errors: what a client met meanwhile."""
        end = time.monotonic() + seconds
        while True:
            for client in self.clients:
                if client.failure is not None:
                    raise client.failure
            if (left := end - time.monotonic()) <= 0:
                return
            time.sleep(min(left, 0.2))

    def say(self, line: str) -> None:
        """Tell where the soak is."""
        minutes = (time.monotonic() - self.begun) / 60
        sys.stdout.write(f"{minutes:6.1f} min · {line} · {self.tally.line()}\n")
        sys.stdout.flush()

    # -- the daemon ------------------------------------------------------------------------------------------

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """An answer, asked for until it comes."""
        deadline = time.monotonic() + ANSWER_S
        while True:
            try:
                return self.connection.call(method, params)
            except memd_client.Unavailable:
                self.tally.add("late starts")
                if time.monotonic() > deadline:
                    raise

    def pid(self) -> int:
        """The daemon's process."""
        pid: int = self.call("daemon.hello")["pid"]
        return pid

    def kill(self) -> None:
        """Kill the daemon where it stands; nobody, when it is not up or not ours."""
        try:
            with memd_client.connect(self.env, autostart=False, timeout=ANSWER_S) as connection:
                pid = connection.call("daemon.hello")["pid"]
            handle = os.pidfd_open(pid)
        except (memd_client.Unavailable, ProcessLookupError):
            return
        try:
            if f"MEMD_HOME={self.home}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                self.wait(self.chance.uniform(0, 0.2))
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                self.tally.add("kills")
        except ProcessLookupError:
            return
        finally:
            os.close(handle)

    def measured(self, pid: int) -> tuple[int, int]:
        """Look, then the daemon's memory in bytes and its descriptors, while nobody works."""
        with self.gate.still():
            self.look()
            if self.pid() != pid:
                raise LostError("the undisturbed daemon ended")
            fields = Path(f"/proc/{pid}/statm").read_text().split()
            return int(fields[1]) * os.sysconf("SC_PAGE_SIZE"), len(list(Path(f"/proc/{pid}/fd").iterdir()))

    # -- looking ---------------------------------------------------------------------------------------------

    def look(self) -> int:
        """Hold the round's stores against what was promised; how many acknowledged saves stand in them.

        Nobody works meanwhile. Errors: LostError.
        """
        place = self.places[-1]
        taken = self.call("memory.reconcile", cwd=place.cwd)
        if taken["repo"]["suspended"] or taken["global"]["suspended"]:
            raise LostError(f"a store is suspended: {taken}")
        findings = [
            found for found in self.call("memory.verify", cwd=place.cwd)["findings"] if found["kind"] != "torn"
        ]
        if findings:
            raise LostError(f"verify: {findings}")
        for truth in place.truths:
            for note in truth.notes.values():
                note.unseen = False
        found = self.check(place)
        gone = {word for truth in self.truths() for word in truth.gone}
        for path in (place.store, *(self.home / name for name in ("memory", "sessions", "run", "cache"))):
            check_gone(path, gone)
        self.looks += 1
        return found

    def check(self, place: Place) -> int:
        """Hold one repository's store, and the global one, against what was promised."""
        local = [note for truth in place.truths for note in truth.notes.values() if note.scope == "repo"]
        everywhere = [note for truth in self.truths() for note in truth.notes.values() if note.scope == "global"]
        return check_store(place.store, local) + check_store(self.home / "memory", everywhere)

    def truths(self) -> list[Truth]:
        """What was promised in every round."""
        return [truth for place in self.places for truth in place.truths]

    def look_at_all(self) -> None:
        """Look at every repository once more, at each note through a daemon that was just started."""
        self.kill()
        notes = [(place, note) for place in self.places for truth in place.truths for note in truth.notes.values()]
        for place, note in notes:
            shown = self.call("memory.show", cwd=place.cwd, name=note.name, scope=note.scope)
            if shown["markdown"].encode() != note.now:
                raise LostError(f"{note.name} is shown as {shown['markdown']!r}")
        found = 0
        for place in self.places:
            findings = self.call("memory.verify", cwd=place.cwd)["findings"]
            if [finding for finding in findings if finding["kind"] != "torn"]:
                raise LostError(f"verify: {findings}")
            self.check(place)
        found = sum(text.acknowledged for _, note in notes for text in note.texts)
        check_gone(self.home, {word for truth in self.truths() for word in truth.gone})
        acknowledged = self.tally.of("acknowledged saves")
        forgotten = sum(truth.forgotten_saves for truth in self.truths())
        self.say(
            f"acknowledged saves lost {acknowledged - found - forgotten} of {acknowledged:,}: {found:,} in their "
            f"file or object, {forgotten:,} forgotten and nowhere; {self.tally.of('kills'):,} kills, "
            f"{self.looks:,} looks"
        )
        if acknowledged != found + forgotten:
            raise LostError("the count of acknowledged saves")
        if not self.tally.of("kills") or not acknowledged:
            raise LostError("nothing was tried")

    def stop(self) -> None:
        """End the daemon, if one runs."""
        self.connection.close()
        with memd_client.Connection(self.env, autostart=False, timeout=ANSWER_S) as connection:
            try:
                connection.call("daemon.stop")
            except memd_client.Unavailable:
                return


def described(life: Life) -> str:
    """One life's figures."""
    return f"RSS {life.rss[0] / 2**20:.1f} → {life.rss[1] / 2**20:.1f} MiB, descriptors {life.fds[0]} → {life.fds[1]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description="Soak a real daemon.")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--root", type=Path, default=Path("/tmp"), help="where the home is made; keep it short")
    options = parser.parse_args(arguments)
    root = Path(tempfile.mkdtemp(prefix="soak-", dir=options.root))
    soak = Soak(root, options.clients, options.seed)
    sys.stdout.write(
        f"soak of {options.minutes:g} minutes, {options.clients} clients, seed {options.seed}, in {root}\n"
    )
    sys.stdout.flush()
    try:
        soak.run(options.minutes * 60)
        for life in (soak.lives[0], soak.lives[-1]):
            soak.say(described(life))
    except BaseException as error:
        soak.say(f"FAILED, {root} is kept: {error!r}")
        raise
    finally:
        soak.stop()
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
