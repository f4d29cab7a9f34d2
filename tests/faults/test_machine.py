"""`machine.World`, driven by Hypothesis and by chance, and that it tells. Law: a model that never differs is none."""

import json
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from memd import fs
from memd.store import plan, sweep, write
from support.disks import FastDisk

from .journals import MEMORY
from .machine import NAMES, SIDES, Death, World, emptied
from .machine_histories import History

sides = st.sampled_from(SIDES)
names = st.sampled_from(NAMES)
looks = st.sampled_from(("look", "save", "opening"))
deaths = (
    st.none()
    | st.builds(Death, st.integers(1, 25), st.just(False))
    | st.builds(Death, st.integers(1, 6), st.just(True))
)
"""When the process dies in a write, if it does."""


class Machine(RuleBasedStateMachine):
    """Every way in which a note changes, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.room = Path(tempfile.mkdtemp(prefix="memd-machine-", dir=MEMORY if MEMORY.is_dir() else None))
        self.world = World(self.room)

    def teardown(self) -> None:
        try:
            self.world.rebuild_all()
            self.world.check()
        finally:
            shutil.rmtree(self.room)

    @rule(side=sides, name=names, death=deaths)
    def save(self, side: str, name: str, death: Death | None) -> None:
        self.world.save(side, name, death)

    @rule(side=sides, name=names, death=deaths)
    def forget(self, side: str, name: str, death: Death | None) -> None:
        self.world.forget(side, name, death)

    @rule(side=sides, name=names, which=st.integers(0, 5), death=deaths)
    def restore(self, side: str, name: str, which: int, death: Death | None) -> None:
        self.world.restore(side, name, which, death)

    @rule(side=sides, name=names, to=names, death=deaths)
    def rename(self, side: str, name: str, to: str, death: Death | None) -> None:
        self.world.rename(side, name, to, death)

    @rule(side=sides, name=names, death=deaths)
    def move(self, side: str, name: str, death: Death | None) -> None:
        self.world.move(side, name, death)

    @rule(side=sides, name=names, death=deaths, updates=st.booleans())
    def arrive(self, side: str, name: str, death: Death | None, updates: bool) -> None:
        self.world.arrive(side, name, death, updates=updates)

    @rule(side=sides, name=names, death=deaths)
    def read(self, side: str, name: str, death: Death | None) -> None:
        self.world.read(side, name, death)

    @rule(side=sides, death=deaths)
    def rebuild(self, side: str, death: Death | None) -> None:
        self.world.rebuild(side, death)

    @rule(side=sides, death=deaths)
    def reconcile(self, side: str, death: Death | None) -> None:
        self.world.reconcile(side, death)

    @rule(side=sides)
    def reopen(self, side: str) -> None:
        self.world.reopen(side)

    @rule(side=sides, name=names, seen=looks)
    def write_by_hand(self, side: str, name: str, seen: str) -> None:
        self.world.write_by_hand(side, name, seen)

    @rule(side=sides, name=names, seen=looks)
    def delete_by_hand(self, side: str, name: str, seen: str) -> None:
        self.world.delete_by_hand(side, name, seen)

    @rule(side=sides, name=names)
    def save_elsewhere(self, side: str, name: str) -> None:
        self.world.save_elsewhere(side, name)

    @rule(side=sides, name=names)
    def forget_elsewhere(self, side: str, name: str) -> None:
        self.world.forget_elsewhere(side, name)

    @rule(side=sides, name=names)
    def read_elsewhere(self, side: str, name: str) -> None:
        self.world.read_elsewhere(side, name)

    @invariant()
    def holds(self) -> None:
        self.world.check()


QUICK = settings(
    max_examples=20,
    stateful_step_count=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def test_any_order_of_anything() -> None:
    run_state_machine_as_test(Machine, settings=QUICK)


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory in memory, where the machine has one."""
    directory = Path(tempfile.mkdtemp(prefix="memd-machine-", dir=MEMORY if MEMORY.is_dir() else None))
    yield directory
    shutil.rmtree(directory)


def test_chance_histories_are_rebuilt_byte_for_byte(root: Path) -> None:
    deaths = files = 0
    for seed in range(40):
        history = History(emptied(root / "world"), seed)
        files += history.run(14)
        deaths += history.world.deaths
    assert files
    assert deaths


# -- that it tells -------------------------------------------------------------------------------------------------


def told(root: Path, histories: int = 60) -> bool:
    """Whether a store that breaks a promise is told of, by one of so many histories."""
    for seed in range(histories):
        try:
            History(emptied(root / "world"), seed).run(14)
        except (AssertionError, FileNotFoundError, KeyError, json.JSONDecodeError):  # a file that is half there, too
            return True
    return False


def test_an_object_left_by_a_forget_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "remove_objects", lambda _: None)
    assert told(root)


def test_a_reply_before_the_journal_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = FastDisk.append

    def append(disk: FastDisk, path: Path, data: bytes) -> fs.Stamp:
        """Nothing, one time in four: the process died before it wrote the line that it had promised."""
        return real(disk, path, b"" if chance.random() < 0.25 else data)

    chance = random.Random(1)
    monkeypatch.setattr(FastDisk, "append", append)
    assert told(root)


def test_a_torn_tail_that_is_dropped_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "set_torn_aside", lambda _: None)
    assert told(root)


def test_a_file_written_in_place_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(disk: fs.Disk, source: Path, path: Path) -> None:
        disk.step("open", path)
        with path.open("wb") as file:
            disk.step("write", path)
            disk.write(file.fileno(), source.read_bytes())
        disk.remove(source)

    monkeypatch.setattr(fs.Disk, "replace", replace)
    assert told(root, 300)


def test_a_text_that_is_no_object_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = plan.Plan.take_in

    def take_in(of: plan.Plan, name: str, read: object) -> object:
        entry = real(of, name, read)  # type: ignore[arg-type]
        of.objects.pop(entry.hash, None)
        return entry

    monkeypatch.setattr(plan.Plan, "take_in", take_in)
    assert told(root)


def test_a_sweep_that_does_nothing_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "is_left_over", lambda *_: False)
    assert told(root, 300)
