"""What a store does after trouble it cannot name. Law: it trusts nothing it has not read since."""

import errno
from pathlib import Path

import pytest

from memd.errors import Storage, Suspended
from memd.store import Forgotten, Reconcile, Request
from support.disks import WRITING, FailingDisk, FastDisk
from support.stores import Kept, check_invariants, forget, holding, opened, save, standing


class BugError(Exception):
    """An error that is neither the disk's nor memd's own."""


class Buggy(FastDisk):
    """Raises a `BugError` at the N-th step from now."""

    left = 0

    def step(self, call: str, path: Path) -> None:
        super().step(call, path)
        self.left -= 1
        if self.left == 0:
            raise BugError(call)


@pytest.mark.parametrize("request_", [save("alpha", "Three."), forget("alpha"), Reconcile()])
def test_a_bug_in_the_midst_of_a_write_is_heard_and_the_store_read_again(request_: Request, room: Path) -> None:
    for number in range(1, 200):
        directory = room / str(number)
        kept = opened(directory)
        kept.commit(save("alpha", "One."), save("beta", "Two."))
        kept.file("new").write_text("By hand.\n")
        disk = Buggy()
        kept.use(disk)
        disk.left = number
        try:
            kept.commit(request_)
        except BugError:
            goes_on(kept)
        else:
            assert number > 20
            return
    raise AssertionError


def goes_on(kept: Kept) -> None:
    """The same store serves and writes what is right."""
    kept.do(Reconcile())
    kept.saved("gamma", "Four.")
    check_invariants(kept.directory)
    assert kept.store.verify() == ()
    assert kept.entries.keys() == {path.stem for path in kept.directory.glob("*.md")} - {"MEMORY"}


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_forgets_of_a_whole_store_that_fail_half_way_do_not_suspend_it(error: int, room: Path) -> None:
    names = ("alpha", "beta", "gamma")
    for number in range(1, 200):
        kept = opened(room / str(number))
        kept.commit(*(save(name, f"The words of {name}.") for name in names))
        disk = FailingDisk(error, calls=WRITING)
        kept.use(disk)
        disk.arm(number)
        outcomes = kept.commit(*map(forget, names))
        if not disk.fired:
            return
        for name, outcome in zip(names, outcomes, strict=True):
            assert isinstance(outcome, Forgotten | Storage), "what was there is not answered as not found"
            if isinstance(outcome, Forgotten) or name not in kept.entries:
                assert holding(kept.directory, f"words of {name}.".encode()) == []
        kept.do(Reconcile())
        assert not kept.store.state.suspended
        assert kept.entries.keys() == standing(kept.directory).keys()
        check_invariants(kept.directory)
        kept.saved("delta", "The store goes on.")
        assert kept.store.verify() == ()
    raise AssertionError


class Taken(FastDisk):
    """The directory is taken away before the N-th step from now."""

    def __init__(self, directory: Path, number: int) -> None:
        super().__init__()
        self.directory, self.left = directory, number

    def step(self, call: str, path: Path) -> None:
        super().step(call, path)
        self.left -= 1
        if self.left == 0:
            self.directory.rename(self.directory.with_name("aside"))


@pytest.mark.parametrize("number", range(1, 9))
def test_a_store_whose_directory_is_taken_away_while_it_is_looked_at_is_not_begun_anew(
    number: int, room: Path
) -> None:
    kept = opened(room / "store")
    kept.commit(save("alpha", "One."), save("beta", "Two."), save("gamma", "Three."))
    disk = Taken(kept.directory, number)
    kept.use(disk)
    kept.commit(Reconcile())
    assert disk.left <= 0
    (refused,) = kept.commit(save("new", "Words."))
    assert isinstance(refused, Suspended | Storage)
    assert not kept.directory.exists()
    kept.directory.with_name("aside").rename(kept.directory)
    kept.do(Reconcile())
    goes_on(kept)
