"""What a hand does to a store's files. Law: it is taken once nothing moves, and never twice (SPEC section 5)."""

import errno
import shutil
import time
from pathlib import Path

import pytest

from memd import draft
from memd.errors import Conflict, NotFound, Storage, Suspended
from memd.fs import YOUNG_NS, Stamp
from memd.store import Author, Count, Rebuild, Rebuilt, Reconcile, Reconciled, Save, Store
from support.disks import FailingDisk, FastDisk
from support.stores import ME, Clock, Kept, check_invariants, forget, heads, objects, opened, rows, save, standing
from support.waiting import until


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A store of six notes, its clock ahead."""
    kept = opened(tmp_path / "store")
    kept.commit(*(save(name, f"The words of {name}.") for name in ("a", "b", "c", "d", "e", "f")))
    return kept


def reconciled(kept: Kept, *, accept: bool = False) -> Reconciled:
    """What a reconcile took in."""
    outcome = kept.do(Reconcile(accept))
    assert isinstance(outcome, Reconciled)
    return outcome


def test_an_edit_is_taken_once_it_is_quiet(kept: Kept) -> None:
    kept.file("a").write_text("By hand.\n")
    kept.clock.at_change_of(kept.file("a"), 0.03)
    waiting = reconciled(kept)
    assert waiting.edited == ()
    assert waiting.wait_until == pytest.approx(kept.clock() + 0.02, abs=0.001)
    assert kept.ops("a") == ["save"]
    kept.clock.at_change_of(kept.file("a"), 0.06)
    assert reconciled(kept) == Reconciled(edited=("a",))
    assert kept.ops("a") == ["save", "edit/hand"]
    assert reconciled(kept) == Reconciled()
    check_invariants(kept.directory)


def test_an_empty_file_is_taken_once_it_stayed_empty(kept: Kept) -> None:
    kept.file("a").write_text("")
    kept.clock.at_change_of(kept.file("a"), 1.9)
    assert reconciled(kept).wait_until == pytest.approx(kept.clock() + 0.1, abs=0.001)
    kept.clock.at_change_of(kept.file("a"), 2.1)
    assert reconciled(kept).edited == ("a",)
    assert kept.entries["a"].hook == ""


def test_a_new_file_is_adopted_and_listed(kept: Kept) -> None:
    kept.file("New Idea").write_text("# The new idea\n")
    assert reconciled(kept) == Reconciled(adopted=("New Idea",))
    assert rows(kept.directory)[-1] == "- [New Idea](New Idea.md) — The new idea"
    assert kept.ops("New Idea") == ["adopt/hand"]
    assert "idea" in kept.tokens["New Idea"]
    check_invariants(kept.directory)


def test_a_row_that_was_written_before_its_note_is_quiet_stays(kept: Kept) -> None:
    index = kept.directory / "MEMORY.md"
    index.write_text(index.read_text() + "- [mine](new.md): in my own words\n")
    kept.file("new").write_text("")
    kept.clock.at_change_of(kept.file("new"), 1.0)
    assert reconciled(kept).adopted == ()
    assert rows(kept.directory)[-1] == "- [mine](new.md): in my own words"
    kept.clock.at_change_of(kept.file("new"), 3.0)
    assert reconciled(kept).adopted == ("new",)
    assert rows(kept.directory)[-1] == "- [mine](new.md): in my own words"


def test_a_missing_note_waits_keeps_its_row_and_is_forgotten_with_its_objects(kept: Kept) -> None:
    kept.file("a").unlink()
    kept.clock.at_change_of(kept.directory, 1.0)
    assert reconciled(kept).wait_until == pytest.approx(kept.clock() + 1.0, abs=0.01)
    assert "a" not in kept.entries, "a file that is gone is no note at once"
    assert kept.ops("a") == ["save"]
    assert rows(kept.directory)[0].startswith("- [a](a.md)")
    kept.clock.at_change_of(kept.directory, 5.0)
    assert reconciled(kept) == Reconciled(forgotten=("a",))
    assert kept.ops("a") == ["save", "forget/hand"]
    assert not any(b"words of a." in raw for raw in objects(kept.directory).values())
    assert not rows(kept.directory)[0].startswith("- [a](a.md)")
    check_invariants(kept.directory)


def test_a_missing_note_that_comes_back_has_only_been_edited(kept: Kept) -> None:
    kept.file("a").unlink()
    kept.clock.at_change_of(kept.directory, 1.0)
    reconciled(kept)
    kept.file("a").write_text("Saved by an editor that renames.\n")
    kept.clock.fixed = None
    assert reconciled(kept) == Reconciled(edited=("a",))
    assert kept.ops("a") == ["save", "edit/hand"]
    check_invariants(kept.directory)


def test_a_missing_note_without_a_row_gets_none_while_it_is_missing(kept: Kept) -> None:
    kept.file("a").unlink()
    (kept.directory / "MEMORY.md").unlink()
    kept.clock.at_change_of(kept.directory, 1.0)
    reconciled(kept)
    assert all(not line.startswith("- [a]") for line in rows(kept.directory))
    kept.file("a").write_text("Back.\n")
    kept.clock.fixed = None
    reconciled(kept)
    assert rows(kept.directory)[-1] == "- [a](a.md) — Back."


def test_a_deletion_made_while_nobody_looked_counts_at_once(kept: Kept) -> None:
    kept.file("a").unlink()
    again = opened(kept.directory)
    assert again.ops("a") == ["save", "forget/hand"]
    check_invariants(kept.directory)


def test_a_rename_by_hand_is_an_adopt_and_a_forget_and_keeps_the_shared_object(kept: Kept) -> None:
    text = kept.file("a").read_bytes()
    kept.file("a").rename(kept.file("z"))
    assert reconciled(kept) == Reconciled(adopted=("z",), forgotten=("a",))
    assert text in objects(kept.directory).values()
    check_invariants(kept.directory)
    assert kept.store.verify() == ()


def test_three_of_six_gone_suspend_the_store_until_all_are_back(kept: Kept) -> None:
    texts = {name: kept.file(name).read_bytes() for name in "abc"}
    for name in "abc":
        kept.file(name).unlink()
    assert reconciled(kept) == Reconciled(suspended=True)
    assert {name: heads(kept.directory).is_live(name) for name in "abc"} == dict.fromkeys("abc", True)
    for request in (save("new", "New."), forget("d"), Count("d", kept.entries["d"].hash, ME)):
        with pytest.raises(Suspended, match="3 notes are gone"):
            kept.do(request)
    assert set(kept.entries) == set("abcdef"), "its notes are served from their objects"
    for name, text in texts.items():
        read = kept.store.read_now(name)
        assert read is not None
        assert read[0] == text
    assert [finding.kind for finding in kept.store.check()] == ["suspended"]
    kept.file("a").write_bytes(texts["a"])
    kept.file("b").write_bytes(texts["b"])
    assert reconciled(kept).suspended, "until nothing is missing"
    kept.file("c").write_bytes(texts["c"])
    assert reconciled(kept) == Reconciled()
    kept.saved("new", "New.")
    check_invariants(kept.directory)


def test_a_store_stays_suspended_through_a_disk_that_fails(kept: Kept) -> None:
    texts = {name: kept.file(name).read_bytes() for name in "abc"}
    for name in "abc":
        kept.file(name).unlink()
    assert reconciled(kept).suspended
    for name in "bc":
        kept.file(name).write_bytes(texts[name])
    disk = FailingDisk(errno.EIO)
    kept.use(disk)
    disk.arm(1)
    [failed] = kept.commit(Reconcile())
    assert isinstance(failed, Storage)
    assert reconciled(kept).suspended, "one is missing still"
    assert heads(kept.directory).is_live("a")


def test_the_guard_holds_before_a_save_that_nothing_reconciled_before(kept: Kept) -> None:
    for name in "abc":
        kept.file(name).unlink()
    kept.touch_directory()
    with pytest.raises(Suspended):
        kept.saved("new", "New.")
    assert not kept.file("new").exists()


def test_two_of_six_are_no_guards_business(kept: Kept) -> None:
    kept.file("a").unlink()
    kept.file("b").unlink()
    assert reconciled(kept) == Reconciled(forgotten=("a", "b"))


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_a_mark_of_a_suspended_store_that_is_not_synced_is_refused_and_made_anew(
    kept: Kept, number: int, lasting: bool
) -> None:
    text = kept.file("a").read_bytes()
    for name in "abc":
        kept.file(name).unlink()
    disk = FailingDisk(errno.EIO, lasting=lasting, calls={"fsync"})
    kept.use(disk)
    disk.arm(number)
    [failed] = kept.commit(Reconcile())
    assert isinstance(failed, Storage)
    assert kept.store.read_now("a") is not None, "its notes are served from their objects all the same"
    disk.heal()
    assert reconciled(kept).suspended
    assert (kept.directory / ".suspended").exists()
    kept.file("a").write_bytes(text)
    assert opened(kept.directory).ops("b") == ["save"], "half of them back: the rest is waited for"


def test_a_mark_that_cannot_be_taken_away_for_good_is_refused(kept: Kept) -> None:
    texts = {name: kept.file(name).read_bytes() for name in "abc"}
    for name in "abc":
        kept.file(name).unlink()
    assert reconciled(kept).suspended
    for name, text in texts.items():
        kept.file(name).write_bytes(text)
    disk = FailingDisk(errno.EIO, calls={"fsync"})
    kept.use(disk)
    disk.arm(1)
    [failed] = kept.commit(Reconcile())
    assert isinstance(failed, Storage)
    kept.saved("new", "New.")
    check_invariants(kept.directory)


def test_a_full_disk_that_takes_no_mark_is_no_reason_to_serve_less(kept: Kept) -> None:
    for name in "abc":
        kept.file(name).unlink()
    disk = FailingDisk(errno.ENOSPC, lasting=True, calls={"open"})
    kept.use(disk)
    disk.arm(1)
    assert reconciled(kept).suspended
    assert set(kept.entries) == set("abcdef")
    assert not (kept.directory / ".suspended").exists()


def test_what_a_hand_writes_in_a_suspended_store_is_taken_in(kept: Kept) -> None:
    for name in "abc":
        kept.file(name).unlink()
    kept.file("d").write_text("By hand.\n")
    kept.file("new").write_text("New, by hand.\n")
    assert reconciled(kept) == Reconciled(adopted=("new",), edited=("d",), suspended=True)
    assert kept.ops("d") == ["save", "edit/hand"]


def test_accept_carries_the_deletions_out(kept: Kept) -> None:
    for name in "abc":
        kept.file(name).unlink()
    reconciled(kept)
    assert reconciled(kept, accept=True) == Reconciled(forgotten=("a", "b", "c"))
    assert set(kept.entries) == set("def")
    kept.saved("new", "New.")
    check_invariants(kept.directory)


def test_accept_does_not_wait(kept: Kept) -> None:
    kept.file("a").unlink()
    kept.clock.at_change_of(kept.directory, 0.1)
    assert reconciled(kept, accept=True).forgotten == ("a",)


def test_rebuild_brings_the_notes_back(kept: Kept) -> None:
    texts = {name: kept.file(name).read_bytes() for name in "abcdef"}
    for name in "abcdef":
        kept.file(name).unlink()
    assert reconciled(kept).suspended
    rebuilt = kept.do(Rebuild())
    assert rebuilt == Rebuilt(live=6, restored=6, forgotten=0, differ=(), missing=(), broken_line=None)
    assert standing(kept.directory) == texts
    assert len(kept.ops()) == 6, "what is restored is no record"
    kept.saved("new", "New.")
    check_invariants(kept.directory)


def test_a_store_stays_suspended_while_rebuild_cannot_restore_a_note(kept: Kept) -> None:
    for name in "abcd":
        kept.file(name).unlink()
    assert reconciled(kept).suspended
    lost = kept.entries["a"].hash.removeprefix("sha256:")
    (kept.directory / "objects" / lost).unlink()
    rebuilt = kept.do(Rebuild())
    assert isinstance(rebuilt, Rebuilt)
    assert (rebuilt.restored, rebuilt.missing) == (3, ("a",))
    assert reconciled(kept).suspended
    assert reconciled(kept, accept=True).forgotten == ("a",)
    check_invariants(kept.directory)


def test_a_directory_that_is_gone_is_not_made_again(kept: Kept, tmp_path: Path) -> None:
    text = kept.file("a").read_bytes()
    aside = tmp_path / "aside"
    kept.directory.rename(aside)
    assert reconciled(kept) == Reconciled(suspended=True)
    for request in (save("new", "New."), forget("a"), Count("a", "sha256:" + "0" * 64, ME), Rebuild()):
        with pytest.raises(Suspended):
            kept.do(request)
    assert not kept.directory.exists()
    assert kept.entries == {}
    assert [finding.kind for finding in kept.store.check()] == ["suspended"]
    assert [finding.kind for finding in kept.store.verify()] == ["suspended"]
    assert list(kept.store.records()) == []
    assert kept.store.read_now("a") is None
    with pytest.raises(NotFound):
        kept.store.read_version("a", "sha256:" + "0" * 64)
    aside.rename(kept.directory)
    assert reconciled(kept) == Reconciled()
    assert kept.file("a").read_bytes() == text
    assert set(kept.entries) == set("abcdef")
    kept.saved("new", "New.")
    check_invariants(kept.directory)


def test_a_store_that_never_was_is_empty(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "none")
    assert kept.open().changes == []
    assert reconciled(kept) == Reconciled()
    with pytest.raises(NotFound):
        kept.do(forget("a"))
    assert kept.do(Rebuild()) == Rebuilt(live=0, restored=0, forgotten=0, differ=(), missing=(), broken_line=None)
    assert kept.store.check() == kept.store.verify() == ()
    assert not kept.directory.exists()


def test_a_forgotten_note_whose_file_is_back_is_adopted(kept: Kept) -> None:
    text = kept.file("a").read_bytes()
    kept.do(forget("a"))
    kept.file("a").write_bytes(text)
    assert reconciled(kept) == Reconciled(adopted=("a",))
    assert kept.ops("a") == ["save", "forget", "adopt/hand"]
    check_invariants(kept.directory)


def test_a_forget_of_a_note_whose_file_is_missing(kept: Kept) -> None:
    kept.file("a").unlink()
    kept.clock.at_change_of(kept.directory, 0.1)
    kept.do(forget("a"))
    assert kept.ops("a") == ["save", "forget"]
    assert not any(b"words of a." in raw for raw in objects(kept.directory).values())
    kept.clock.fixed = None
    assert reconciled(kept) == Reconciled()
    check_invariants(kept.directory)


def test_a_save_of_a_note_whose_file_is_missing_keeps_its_keys(tmp_path: Path) -> None:
    kept = opened(tmp_path / "store", clock=Clock())
    kept.do(save("a", "One.", owner="me"))
    kept.file("a").unlink()
    kept.clock.at_change_of(kept.directory, 0.1)
    saved = kept.saved("a", "Two.")
    assert saved.updated
    assert b"\nowner: me\n" in kept.file("a").read_bytes()
    assert kept.ops("a") == ["save", "save"]


def test_expect_meets_the_edit_of_a_hand(kept: Kept) -> None:
    seen = kept.entries["a"].hash
    kept.file("a").write_text("By hand.\n")
    [conflict] = kept.commit(save("a", "Stale.", expect=seen))
    assert isinstance(conflict, Conflict)
    assert conflict.hash == kept.entries["a"].hash != seen
    assert kept.file("a").read_text() == "By hand.\n"
    assert kept.ops("a") == ["save", "edit/hand"]
    kept.do(save("a", "Fresh.", expect=conflict.hash))
    assert b"By hand.\n" in objects(kept.directory).values()


def test_objects_that_are_gone_altogether_are_no_forgets(kept: Kept) -> None:
    for name in "abc":
        kept.file(name).unlink()
    shutil.rmtree(kept.directory / "objects")
    again = opened(kept.directory)
    assert reconciled(again).suspended
    assert again.ops() == ["save"] * 6


def test_a_crash_in_the_midst_of_a_forget_is_one_by_recovery(kept: Kept) -> None:
    kept.file("a").unlink()
    (kept.directory / "objects" / kept.entries["a"].hash.removeprefix("sha256:")).unlink()
    clock = Clock()
    clock.at_change_of(kept.directory, 0.1)
    again = opened(kept.directory, clock=clock)
    assert again.ops("a") == ["save", "forget/recovery"]
    check_invariants(kept.directory)


def test_a_reconcile_tells_of_what_opening_took_in(kept: Kept) -> None:
    kept.file("new").write_text("New.\n")
    again = Kept(kept.directory)
    assert reconciled(again) == Reconciled(adopted=("new",))


def test_a_restart_while_half_of_what_went_is_back_waits_for_the_rest(kept: Kept) -> None:
    texts = {name: kept.file(name).read_bytes() for name in "abc"}
    for name in "abc":
        kept.file(name).unlink()
    assert reconciled(kept).suspended
    kept.file("a").write_bytes(texts["a"])
    again = opened(kept.directory)
    assert again.ops("b") == again.ops("c") == ["save"]
    with pytest.raises(Suspended, match="2 notes are gone"):
        again.do(save("new", "New."))
    for name in "bc":
        again.file(name).write_bytes(texts[name])
    assert reconciled(again) == Reconciled()
    assert not (kept.directory / ".suspended").exists()
    again.file("c").unlink()
    last = opened(kept.directory)
    assert last.ops("c") == ["save", "forget/hand"], "one deletion made while nobody looked is believed"
    check_invariants(kept.directory)


class CutShortDisk(FastDisk):
    """A disk on which a file is emptied and written again while it is read."""

    cut: str | None = None

    def read(self, path: Path, limit: int | None = None) -> tuple[bytes, Stamp]:
        raw, stamp = super().read(path, limit)
        if path.name != self.cut:
            return raw, stamp
        path.write_bytes(raw)
        return b"", stamp


def test_a_file_that_is_written_to_while_it_is_read_is_not_taken(tmp_path: Path) -> None:
    disk = CutShortDisk()
    kept = opened(tmp_path / "store", disk=disk)
    kept.saved("a", "The words of a.")
    kept.file("a").write_text("By hand.\n")
    kept.clock.at_change_of(kept.file("a"), 5.0)
    disk.cut = "a.md"
    waiting = reconciled(kept)
    assert waiting.edited == ()
    assert waiting.wait_until is not None
    disk.cut = None
    kept.clock.at_change_of(kept.file("a"), 5.0)
    assert reconciled(kept) == Reconciled(edited=("a",))
    assert kept.file("a").read_text() == "By hand.\n"
    check_invariants(kept.directory)


def test_a_refused_save_over_a_hand_edit_leaves_the_row_that_the_edit_has(kept: Kept) -> None:
    reconciled(kept)
    kept.file("a").write_text("# a by hand\n")
    changed = kept.file("a").lstat().st_ctime_ns
    until(lambda: time.time_ns() - changed > 2 * YOUNG_NS)
    with pytest.raises(Conflict):
        kept.do(save("a", "Over it.", expect="0" * 64))
    assert kept.ops("a") == ["save", "edit/hand"]
    assert "- [a](a.md) — a by hand" in rows(kept.directory)


@pytest.mark.parametrize("made_again", [False, True])
def test_a_directory_that_went_suspends_the_store_also_where_an_empty_one_stands(
    kept: Kept, made_again: bool
) -> None:
    aside = kept.directory.rename(kept.directory.with_name("aside"))
    if made_again:
        kept.directory.mkdir()
    assert reconciled(kept).suspended
    for request in (save("new", "New."), forget("d"), Rebuild()):
        with pytest.raises(Suspended):
            kept.do(request)
    assert [finding.kind for finding in kept.store.check()] == ["suspended"]
    assert list(kept.store.records()) == []
    with pytest.raises(Suspended):
        kept.store.preview(Rebuild())
    assert not made_again or list(kept.directory.iterdir()) == [], "nothing is made in its place"
    if made_again:
        kept.directory.rmdir()
    aside.rename(kept.directory)
    assert reconciled(kept) == Reconciled()
    assert set(kept.entries) == set("abcdef")
    kept.saved("new", "New.")
    check_invariants(kept.directory)


def test_a_directory_that_was_made_again_is_a_new_store_once_a_person_says_so(kept: Kept) -> None:
    shutil.rmtree(kept.directory)
    kept.directory.mkdir()
    assert reconciled(kept).suspended
    assert reconciled(kept, accept=True) == Reconciled()
    kept.saved("new", "New.")
    assert set(kept.entries) == {"new"}
    check_invariants(kept.directory)


def test_a_store_that_lost_its_journal_alone_begins_another(kept: Kept) -> None:
    (kept.directory / "ops.jsonl").unlink()
    assert reconciled(kept).adopted == tuple("abcdef")
    check_invariants(kept.directory)


def test_a_note_that_an_editor_has_emptied_is_read_as_it_was_until_that_is_meant(kept: Kept) -> None:
    text = kept.file("a").read_bytes()
    kept.file("a").write_text("")
    kept.clock.at_change_of(kept.file("a"), 1.9)
    read = kept.store.read_now("a")
    assert read is not None
    assert (read[0], read[1].hash) == (text, kept.entries["a"].hash)
    kept.clock.at_change_of(kept.file("a"), 2.1)
    read = kept.store.read_now("a")
    assert read is not None
    assert read[0] == b""


def test_what_memd_has_just_written_is_nothing_for_the_next_slice(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    kept.commit(*(save(f"n-{number}", "Words.") for number in range(40)))
    before = kept.ops()
    assert kept.do(Reconcile(sliced=True)) == Reconciled()
    kept.file("n-39").write_bytes(kept.file("n-39").read_bytes() + b"By hand.\n")
    kept.clock.at_change_of(kept.file("n-39"), 0.06)
    assert kept.do(Reconcile(sliced=True)) == Reconciled(edited=("n-39",))
    assert kept.ops() == [*before, "edit/hand"]


def test_what_another_program_journaled_is_served_at_once(tmp_path: Path) -> None:
    ours, theirs = Store(tmp_path / "memory"), Store(tmp_path / "memory")
    ours.open()
    theirs.open()
    text = draft.draft("their words", {"name": "theirs", "type": "user", "description": "d"})
    for body in (text, draft.draft("other words", {"name": "theirs", "type": "user", "description": "d"})):
        theirs.commit([Save(body, Author())])
        committed = ours.commit([Reconcile()])
        assert [change.name for change in committed.changes] == ["theirs"]
        assert committed.journaled == ()
