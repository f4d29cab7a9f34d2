"""What a store does after trouble it cannot name. Law: it trusts nothing it has not read since."""

from pathlib import Path

import pytest

from memd.store import Reconcile, Request
from support.disks import FastDisk
from support.stores import Kept, check_invariants, forget, opened, save


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
