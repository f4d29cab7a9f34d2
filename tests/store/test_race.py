"""Someone writes at the same moment. Law: no byte of theirs is lost, and what memd answers is true (SPEC section 4).

The meddling comes right before a call of the disk, any call up to the rename that would overwrite it.
"""

import itertools
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from memd import fs
from memd.errors import Busy, Conflict, NotFound
from memd.store import Forgotten, Rebuild, Reconcile, Rename, Request, Saved
from support.disks import FastDisk, InterferingDisk
from support.stores import ME, Kept, check_invariants, forget, holding, objects, opened, rows, save, standing

HAND = b"By a hand that was faster.\n"


@pytest.fixture(autouse=True)
def young(monkeypatch: pytest.MonkeyPatch) -> None:
    """No stamp is ever trusted, so that the calls a request makes are the same each time."""
    monkeypatch.setattr(fs.Stamp, "is_old", lambda _stamp, _looked_ns: False)


@pytest.fixture
def directory(room: Path) -> Path:
    """A store of two notes."""
    kept = opened(room / "store")
    kept.saved("alpha", "One.")
    kept.saved("beta", "Two.")
    return kept.directory


def replaced(path: Path) -> None:
    """What an editor does that writes beside the file and renames."""
    fresh = path.with_name("editor.swp")
    fresh.write_bytes(HAND)
    fresh.rename(path)


def rewritten(path: Path) -> None:
    """What an editor does that writes the file in place."""
    path.write_bytes(HAND)


def test_an_edit_before_any_call_of_a_save_is_an_object_or_stands(directory: Path, room: Path) -> None:
    calls = steps_of(directory, save("alpha", "Two."))
    last = max(number for number, step in enumerate(calls) if step == ("rename", "alpha.md"))
    for number in range(last + 1):
        at = fresh_copy(directory, room / f"save-{number}")
        kept = meddled(at, number, partial(replaced, at / "alpha.md"))
        kept.do(save("alpha", "Two."))
        kept.do(Reconcile())
        assert HAND in objects(at).values(), calls[number]
        assert kept.ops("alpha") in (["save", "edit/hand", "save"], ["save", "save", "edit/hand"])
        check_invariants(at)


def test_an_edit_after_the_rename_is_seen_by_the_next_look(directory: Path, room: Path) -> None:
    calls = steps_of(directory, save("alpha", "Two."))
    first = max(number for number, step in enumerate(calls) if step == ("rename", "alpha.md")) + 1
    for number in range(first, len(calls)):
        for edit in (replaced, rewritten):
            at = fresh_copy(directory, room / f"{edit.__name__}-{number}")
            kept = meddled(at, number, partial(edit, at / "alpha.md"))
            kept.do(save("alpha", "Two."))
            kept.do(Reconcile())
            assert (at / "alpha.md").read_bytes() == HAND, calls[number]
            assert kept.ops("alpha") == ["save", "save", "edit/hand"]
            assert kept.entries["alpha"].hook == HAND.decode().strip()
            check_invariants(at)


def test_an_edit_of_the_same_length_after_the_rename_is_seen(directory: Path, room: Path) -> None:
    calls = steps_of(directory, save("alpha", "Two."))
    first = max(number for number, step in enumerate(calls) if step == ("rename", "alpha.md")) + 1
    for number in range(first, len(calls)):
        at = fresh_copy(directory, room / str(number))

        def swap(path: Path = at / "alpha.md") -> None:
            path.write_bytes(path.read_bytes().replace(b"Two.", b"Own."))

        kept = meddled(at, number, swap)
        kept.do(save("alpha", "Two."))
        kept.do(Reconcile())
        assert kept.ops("alpha") == ["save", "save", "edit/hand"], calls[number]


def test_an_edit_after_the_rename_is_seen_by_its_stamp_alone(
    directory: Path, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fs, "YOUNG_NS", -3600 * 10**9)  # every stamp is old enough to be trusted
    calls = steps_of(directory, save("alpha", "Two."))
    first = max(number for number, step in enumerate(calls) if step == ("rename", "alpha.md")) + 1
    for number in range(first, len(calls)):
        at = fresh_copy(directory, room / str(number))

        def swap(path: Path = at / "alpha.md") -> None:
            path.write_bytes(path.read_bytes().replace(b"Two.", b"Own."))
            os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))

        kept = meddled(at, number, swap)
        kept.do(save("alpha", "Two."))
        kept.do(Reconcile())
        assert kept.ops("alpha") == ["save", "save", "edit/hand"], calls[number]


def test_a_directory_that_changed_before_memd_wrote_is_looked_through_again(directory: Path) -> None:
    kept = opened(directory)

    def add() -> None:
        (directory / "new.md").write_bytes(HAND)
        kept.touch_directory()

    kept.use(InterferingDisk(lambda call, _: call == "read", add))
    kept.saved("alpha", "Two.")
    assert kept.ops("new") == []
    kept.saved("beta", "Two.")
    assert kept.ops("new") == ["adopt/hand"]


def test_a_plan_given_up_removes_no_object_that_a_note_holds(directory: Path) -> None:
    path = directory / "alpha.md"
    kept = opened(directory)
    head = kept.entries["alpha"].hash
    kept.use(InterferingDisk(lambda call, _: call == "fsync", lambda: replaced(path)))
    [outcome] = kept.commit(save("alpha", "One.", expect=head))  # the same bytes once more
    assert isinstance(outcome, Conflict)
    assert path.read_bytes() == HAND
    assert kept.store.verify() == ()
    check_invariants(directory)


def test_an_edit_before_any_call_of_a_forget_goes_with_the_note_or_stands(directory: Path, room: Path) -> None:
    calls = steps_of(directory, forget("alpha"))
    last = calls.index(("unlink", "alpha.md"))
    for number in range(last):
        at = fresh_copy(directory, room / f"forget-{number}")
        kept = meddled(at, number, partial(replaced, at / "alpha.md"))
        assert isinstance(kept.do(forget("alpha")), Forgotten)
        kept.do(Reconcile())
        assert standing(at).keys() == {"beta"}
        assert holding(at, HAND.strip()) == [], calls[number]
        assert holding(at, b"One.") == []
        check_invariants(at)


def test_a_new_note_that_a_hand_makes_at_the_same_moment(directory: Path, room: Path) -> None:
    calls = steps_of(directory, save("new", "New."))
    last = calls.index(("rename", "new.md"))
    for number in range(last):
        at = fresh_copy(directory, room / str(number))
        kept = meddled(at, number, partial(replaced, at / "new.md"))
        kept.do(save("new", "New."))
        assert HAND in objects(at).values(), calls[number]
        assert kept.ops("new") == ["adopt/hand", "save"]
        assert b"New." in (at / "new.md").read_bytes()
        check_invariants(at)


def test_a_new_note_that_must_not_exist_and_does_by_now(directory: Path) -> None:
    kept = opened(directory)
    kept.use(InterferingDisk(lambda call, _: call == "fsync", lambda: replaced(directory / "new.md")))
    [outcome] = kept.commit(save("new", "New.", expect=None))
    assert isinstance(outcome, Conflict)
    assert (directory / "new.md").read_bytes() == HAND
    assert kept.ops("new") == ["adopt/hand"]
    check_invariants(directory)


def test_a_note_that_goes_at_the_same_moment_is_saved_all_the_same(directory: Path, room: Path) -> None:
    calls = steps_of(directory, save("alpha", "Two."))
    last = max(number for number, step in enumerate(calls) if step == ("rename", "alpha.md"))
    for number in range(last):
        at = fresh_copy(directory, room / str(number))
        kept = meddled(at, number, (at / "alpha.md").unlink)
        saved = kept.do(save("alpha", "Two."))
        assert isinstance(saved, Saved)
        assert b"Two." in (at / "alpha.md").read_bytes()
        check_invariants(at)


def test_a_note_that_goes_at_the_same_moment_is_forgotten_once(directory: Path, room: Path) -> None:
    calls = steps_of(directory, forget("alpha"))
    for number in range(calls.index(("unlink", "alpha.md")) + 1):
        at = fresh_copy(directory, room / str(number))
        kept = meddled(at, number, (at / "alpha.md").unlink)
        [outcome] = kept.commit(forget("alpha"))
        assert isinstance(outcome, Forgotten | NotFound)
        assert kept.ops("alpha") in (["save", "forget"], ["save", "forget/hand"])
        check_invariants(at)


def test_a_rebuild_does_not_overwrite_what_came_back_meanwhile(directory: Path, room: Path) -> None:
    rename = ("rename", "alpha.md")
    for number in itertools.count():
        at = fresh_copy(directory, room / str(number))
        kept = opened(at)
        (at / "alpha.md").unlink()
        # Each run's own rename ends it, so it is the same whichever calls this one makes.
        disk = InterferingDisk(partial(comes_first, number, rename, kept), partial(replaced, at / "alpha.md"))
        kept.use(disk)
        kept.do(Rebuild())
        if disk.times:
            break  # the rename itself is the moment that is left
        assert (at / "alpha.md").read_bytes() == HAND, disk.log[number]
    assert number > 10
    assert b"One." in (at / "alpha.md").read_bytes()


def test_a_plan_that_is_given_up_leaves_no_text_behind(directory: Path) -> None:
    first, second = b"The first edit.\n", b"The second edit.\n"
    path = directory / "alpha.md"
    kept = opened(directory)
    path.write_bytes(first)
    kept.use(InterferingDisk(lambda call, _: call == "fsync", lambda: path.write_bytes(second)))
    kept.saved("alpha", "Two.")
    assert kept.ops("alpha") in (["save", "edit/hand", "save"], ["save", "edit/hand", "edit/hand", "save"])
    check_invariants(directory)
    kept.do(forget("alpha"))
    assert holding(directory, b"edit.") == []


def test_a_note_that_never_holds_still_is_busy_and_loses_nothing(directory: Path) -> None:
    numbers = iter(range(10_000))
    path = directory / "alpha.md"
    disk = InterferingDisk(
        lambda call, _: call == "fsync", lambda: path.write_bytes(b"Edit %d.\n" % next(numbers)), times=10_000
    )
    kept = opened(directory, disk)
    [outcome] = kept.commit(save("alpha", "Two."))
    assert isinstance(outcome, Busy)
    disk.times = 0
    stands = path.read_bytes()
    kept.do(Reconcile())
    assert path.read_bytes() == stands
    assert kept.ops("alpha")[-1] == "edit/hand"
    check_invariants(directory)
    kept.saved("alpha", "Three.")


# -- how -------------------------------------------------------------------------------------------------------------


def fresh_copy(directory: Path, at: Path) -> Path:
    """A copy of a store."""
    (at / "objects").mkdir(parents=True)
    for path in directory.rglob("*"):
        if path.is_file():
            (at / path.relative_to(directory)).write_bytes(path.read_bytes())
    return at


def steps_of(directory: Path, request: Request) -> list[tuple[str, str]]:
    """The calls a request makes on a copy of the store, in order."""
    kept = opened(fresh_copy(directory, directory.with_name("steps")))
    disk = FastDisk()
    kept.use(disk)
    kept.do(request)
    return disk.log


def meddled(directory: Path, number: int, meddle: Callable[[], object]) -> Kept:
    """A store, open, into which someone meddles right before the call of that number from now."""
    kept = opened(directory)
    disk = InterferingDisk(lambda *_: len(disk.log) == number + 1, meddle)
    kept.use(disk)
    return kept


def comes_first(number: int, last: tuple[str, str], kept: Kept, _call: str, _path: Path) -> bool:
    """Whether the call of that number is being made, before the call `last`."""
    assert isinstance(kept.disk, FastDisk)
    return len(kept.disk.log) == number + 1 and last not in kept.disk.log


def test_a_hand_that_writes_the_index_after_the_last_look_comes_after_the_save(directory: Path) -> None:
    def write() -> None:
        (directory / "new").write_text("In my words.\n")
        (directory / "new").replace(directory / "MEMORY.md")

    kept = opened(directory, InterferingDisk(lambda *step: is_step(step, "rename", "MEMORY.md"), write))
    kept.do(save("alpha", "Three.", "Third"))
    assert rows(directory) == ["In my words."]
    kept.do(Reconcile())
    assert sorted(rows(directory)[1:]) == ["- [alpha](alpha.md) — Third", "- [beta](beta.md) — what beta says"]


@pytest.mark.parametrize("going", [forget("alpha"), Rename("alpha", "omega", ME)], ids=["forget", "rename"])
def test_a_hand_that_writes_as_its_note_goes_has_a_new_note(directory: Path, going: Request) -> None:
    meddle = partial(replaced, directory / "alpha.md")
    kept = opened(directory, InterferingDisk(lambda *step: is_step(step, "unlink", "alpha.md"), meddle))
    kept.do(going)
    kept.do(Reconcile())
    assert kept.file("alpha").read_bytes() == HAND
    assert [op.partition("/")[0] for op in kept.ops("alpha")] == ["save", "forget", "adopt"]
    check_invariants(directory)


def is_step(step: tuple[str, Path], call: str, name: str) -> bool:
    """Whether a step is this call of this file."""
    return (step[0], step[1].name) == (call, name)
