"""Chance histories of a store, with deaths and failures in between, against a plain dictionary.

Law: what was answered is so, what was not is whole or undone, and a forgotten text is nowhere (SPEC section 4).
"""

import errno
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memd.errors import MemdError
from memd.store import Forget, Forgotten, Rebuild, Reconcile, Request, Save, Saved
from support.disks import WRITING, Crash, CrashingDisk, FailingDisk, FastDisk, PowerCutDisk, SteppedDisk
from support.stores import ME, bytes_of, check_invariants, forget, holding, objects, opened, save, standing

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")


DISKS: tuple[Callable[[Path], FastDisk], ...] = (
    lambda _: FastDisk(),
    lambda _: FastDisk(),
    lambda _: CrashingDisk(),
    lambda _: CrashingDisk(half=True),
    lambda _: FailingDisk(errno.ENOSPC, calls=WRITING),
    lambda _: FailingDisk(errno.ENOSPC, calls=WRITING, lasting=True),
    lambda _: FailingDisk(errno.EIO),
    PowerCutDisk,
)


class World:
    """A store and what is right of it: each note's texts, oldest first, and texts that must be nowhere."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.directory = directory
        self.chance = chance
        self.kept = opened(directory)
        self.texts: dict[str, list[bytes]] = {}
        self.gone: list[bytes] = []
        self.number = 0

    def word(self) -> str:
        """A word that no other text holds."""
        self.number += 1
        return f"word{self.number}x"

    def step(self) -> None:
        """Let something happen."""
        self.chance.choice((self.request, self.request, self.batch, self.hand, self.rest, self.neighbour))()
        self.check()

    def hand(self) -> None:
        """Someone edits, adds, removes or renames a file."""
        name = self.chance.choice(NAMES)
        path = self.kept.file(name)
        stands = name in self.texts
        match self.chance.choice(("edit", "remove", "rename")):
            case "edit":
                path.write_text(f"By hand, {self.word()}.\n")
                if self.chance.random() < 0.5:
                    self.run([save(name, f"Saved over it, {self.word()}.")], {name: path.read_bytes()})
                    return
                self.texts.setdefault(name, []).append(path.read_bytes())
            case "remove" if stands and len(self.texts) != 1:
                path.unlink()
                self.forgotten(name)
            case "rename" if stands:
                other = self.chance.choice(NAMES)
                if other not in self.texts:
                    raw = path.read_bytes()
                    path.rename(self.kept.file(other))
                    self.forgotten(name)
                    self.texts[other] = [raw]
        self.kept.touch_directory()
        self.kept.do(Reconcile())

    def rest(self) -> None:
        """The store is opened anew, by the next process."""
        self.kept = opened(self.directory)

    def neighbour(self) -> None:
        """Another process of our kind writes in turn."""
        ours, self.kept = self.kept, opened(self.directory)
        self.run([self.one()], {})
        self.kept = ours
        self.kept.do(Reconcile())

    def request(self) -> None:
        """One request."""
        self.run([self.one()], {})

    def batch(self) -> None:
        """Several requests at once."""
        self.run([self.one() for _ in range(self.chance.randint(2, 4))], {})

    def one(self) -> Request:
        name = self.chance.choice(NAMES)
        kind = self.chance.random()
        if kind < 0.6:
            return save(name, f"Saved, {self.word()}.")
        return forget(name) if kind < 0.9 else self.chance.choice((Reconcile(), Rebuild()))

    def run(self, requests: list[Request], unseen: dict[str, bytes]) -> None:
        """Commit requests, perhaps on a disk that stops half-way; `unseen` are texts a hand has just written."""
        before = {name: texts[-1] for name, texts in self.texts.items()}
        for name, raw in unseen.items():
            self.texts.setdefault(name, []).append(raw)
        disk = self.chance.choice(DISKS)(self.directory)
        self.kept.use(disk)
        if isinstance(disk, SteppedDisk):
            disk.arm(self.chance.randint(1, 60))
        try:
            outcomes = self.kept.commit(*requests)
        except Crash:
            if isinstance(disk, PowerCutDisk):
                disk.settle()
            self.kept = opened(self.directory)
            self.kept.do(Reconcile(accept=True))  # many forgets cut short at once are for a person to decide
            outcomes = []
        else:
            self.kept.use(FastDisk())
            self.kept.do(Reconcile())
        if isinstance(disk, PowerCutDisk):
            disk.close()
        if outcomes and not any(map(is_disks, outcomes)):
            self.answered(requests, outcomes)
        else:
            self.stopped(requests, before | unseen)

    def answered(self, requests: list[Request], outcomes: Sequence[object]) -> None:
        """Everything was answered, so it is so."""
        for request, outcome in zip(requests, outcomes, strict=True):
            if isinstance(outcome, Saved) and isinstance(request, Save):
                name = outcome.entry.name
                self.texts.setdefault(name, []).append(bytes_of(request, name))
            elif isinstance(outcome, Forgotten):
                self.forgotten(outcome.name)

    def stopped(self, requests: list[Request], before: dict[str, bytes]) -> None:
        """Nobody was told anything: each note is as it was or as it was to be, whole; take what stands."""
        stands = standing(self.directory)
        for name in NAMES:
            words = words_for(requests, name)
            now = stands.get(name)
            asked = Forget(name, ME) in requests
            fresh = now is not None and any(word in now for word in words)
            assert fresh or now == before.get(name) or (now is None and asked), name
            if now is None:
                if name in self.texts:
                    self.forgotten(name)
            elif asked and fresh:
                self.texts[name] = [now]
            elif self.texts.setdefault(name, [now])[-1] != now:
                self.texts[name].append(now)

    def forgotten(self, name: str) -> None:
        """The note is gone, and so are the texts that no other note has."""
        texts = self.texts.pop(name, [])
        others = {text for kept in self.texts.values() for text in kept}
        self.gone += [text for text in texts if text not in others]

    def check(self) -> None:
        """What is on disk, and what a reader was told, is what is right."""
        stands = standing(self.directory)
        assert stands == {name: texts[-1] for name, texts in self.texts.items()}
        assert {name: entry.size for name, entry in self.kept.entries.items()} == {
            name: len(raw) for name, raw in stands.items()
        }
        there = set(objects(self.directory).values())
        assert all(text in there for texts in self.texts.values() for text in texts)
        standing_texts = {text for texts in self.texts.values() for text in texts}
        for text in self.gone:
            if text not in standing_texts:
                assert holding(self.directory, text.strip().splitlines()[-1]) == []
        check_invariants(self.directory)
        assert {finding.kind for finding in self.kept.store.verify()} <= {"torn"}


def is_disks(outcome: object) -> bool:
    """Whether a request failed for the disk's sake and not for its own."""
    return isinstance(outcome, MemdError) and outcome.kind in ("storage", "unreadable")


def words_for(requests: list[Request], name: str) -> list[bytes]:
    """The bodies that requests would save under a name."""
    saves = [request for request in requests if isinstance(request, Save)]
    return [request.draft.body.encode() for request in saves if request.draft.slug == name]


@pytest.mark.parametrize("seed", range(10))
def test_whatever_happens_the_store_is_right(seed: int, room: Path) -> None:
    world = World(room / "store", random.Random(seed))
    for _ in range(25):
        world.step()
