"""Different requests in one batch. Law: each is planned against the state the one before left (SPEC section 4)."""

from pathlib import Path

import pytest

from memd.errors import NotFound
from memd.store import Count, Counted, Forgotten, Put, Rebuild, Rebuilt, Reconcile, Reconciled, Saved
from support.stores import ME, Kept, bytes_of, check_invariants, forget, holding, objects, opened, save, standing


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A store of two notes, one of two versions."""
    kept = opened(tmp_path / "store")
    kept.saved("alpha", "One.")
    kept.saved("beta", "Two.")
    kept.saved("alpha", "Three.")
    return kept


def test_an_empty_batch_changes_nothing(kept: Kept) -> None:
    assert kept.commit() == []
    assert len(kept.ops()) == 3


def test_a_reconcile_sees_what_a_save_before_it_is_about_to_write(kept: Kept) -> None:
    outcomes = kept.commit(save("alpha", "Four."), save("new", "New."), Reconcile())
    assert [type(outcome) for outcome in outcomes] == [Saved, Saved, Reconciled]
    assert outcomes[2] == Reconciled()
    assert kept.ops("alpha") == ["save", "save", "save"]
    assert kept.ops("new") == ["save"]
    check_invariants(kept.directory)
    assert kept.store.verify() == ()


def test_a_reconcile_does_not_adopt_what_a_forget_before_it_is_about_to_remove(kept: Kept) -> None:
    outcomes = kept.commit(forget("beta"), Reconcile())
    assert outcomes[1] == Reconciled()
    assert kept.ops("beta") == ["save", "forget"]
    assert not kept.file("beta").exists()
    check_invariants(kept.directory)


def test_a_reconcile_does_not_take_the_notes_of_the_batch_for_missing(tmp_path: Path) -> None:
    kept = opened(tmp_path / "new")
    outcomes = kept.commit(*(save(name, "Words.") for name in "abcd"), Reconcile())
    assert outcomes[-1] == Reconciled()
    assert set(kept.entries) == set("abcd")
    check_invariants(kept.directory)


def test_a_save_after_a_reconcile_that_took_an_edit_in(kept: Kept) -> None:
    kept.file("alpha").write_text("By hand.\n")
    outcomes = kept.commit(Reconcile(), save("alpha", "Four."))
    assert isinstance(outcomes[1], Saved)
    assert kept.ops("alpha") == ["save", "save", "edit/hand", "save"]
    assert b"By hand.\n" in objects(kept.directory).values()
    check_invariants(kept.directory)


def test_two_reconciles_in_one_batch_take_an_edit_in_once(kept: Kept) -> None:
    kept.file("alpha").write_text("By hand.\n")
    kept.file("beta").unlink()
    outcomes = kept.commit(Reconcile(), Reconcile())
    assert outcomes[0] == Reconciled(edited=("alpha",), forgotten=("beta",))
    assert kept.ops("alpha") == ["save", "save", "edit/hand"]
    assert kept.ops("beta") == ["save", "forget/hand"]
    check_invariants(kept.directory)


def test_a_rebuild_takes_what_the_batch_writes_for_standing(kept: Kept) -> None:
    outcomes = kept.commit(save("alpha", "Four."), save("new", "New."), forget("beta"), Rebuild())
    assert outcomes[3] == Rebuilt(live=2, restored=0, forgotten=1, differ=(), missing=(), broken_line=None)
    assert standing(kept.directory).keys() == {"alpha", "new"}
    check_invariants(kept.directory)
    assert kept.store.verify() == ()


def test_a_rebuild_restores_and_later_requests_change_what_it_restored(kept: Kept) -> None:
    kept.file("alpha").unlink()
    kept.file("beta").unlink()
    outcomes = kept.commit(Rebuild(), save("alpha", "Four."), forget("beta"), Reconcile())
    assert [type(outcome) for outcome in outcomes] == [Rebuilt, Saved, Forgotten, Reconciled]
    assert kept.ops("alpha") == ["save", "save", "save"]
    assert kept.ops("beta") == ["save", "forget"]
    check_invariants(kept.directory)


def test_a_rebuild_lifts_the_guard_for_what_comes_after_it(kept: Kept) -> None:
    kept.commit(save("c", "Words."), save("d", "Words."))
    for name in ("alpha", "beta", "c", "d"):
        kept.file(name).unlink()
    kept.do(Reconcile())
    outcomes = kept.commit(Rebuild(), save("new", "New."), Reconcile())
    assert [type(outcome) for outcome in outcomes] == [Rebuilt, Saved, Reconciled]
    check_invariants(kept.directory)


def test_a_note_forgotten_and_saved_again_begins_a_new_life(kept: Kept) -> None:
    outcomes = kept.commit(forget("alpha"), save("alpha", "A new life."), Count("alpha", "sha256:" + "0" * 64, ME))
    assert [type(outcome) for outcome in outcomes] == [Forgotten, Saved, Counted]
    assert isinstance(outcomes[1], Saved)
    assert not outcomes[1].updated
    assert kept.ops("alpha") == ["save", "save", "forget", "save", "read"]
    assert holding(kept.directory, b"Three.") == []
    check_invariants(kept.directory)


def test_a_note_forgotten_and_saved_again_with_the_same_bytes_keeps_its_object(kept: Kept) -> None:
    raw = kept.file("beta").read_bytes()
    kept.commit(forget("beta"), save("beta", "Two."))
    assert kept.file("beta").read_bytes() == raw
    assert raw in objects(kept.directory).values()
    check_invariants(kept.directory)
    assert kept.store.verify() == ()


def test_a_note_saved_and_forgotten_leaves_nothing(kept: Kept) -> None:
    outcomes = kept.commit(save("new", "Never to be seen."), forget("new"))
    assert [type(outcome) for outcome in outcomes] == [Saved, Forgotten]
    assert isinstance(outcomes[1], Forgotten)
    assert outcomes[1].texts == (bytes_of(save("new", "Never to be seen."), "new"),)
    assert holding(kept.directory, b"Never to be seen") == []
    assert kept.ops("new") == ["save", "forget"]
    check_invariants(kept.directory)


def test_a_name_forgotten_and_saved_many_times_in_one_batch(kept: Kept) -> None:
    batch = [request for number in range(4) for request in (save("alpha", f"Life {number}."), forget("alpha"))]
    kept.commit(*batch, save("alpha", "The last life."))
    assert kept.ops("alpha") == ["save", "save", *["save", "forget"] * 4, "save"]
    assert holding(kept.directory, b"Life 3.") == []
    check_invariants(kept.directory)


def test_another_note_takes_over_a_version_of_one_forgotten_in_the_same_batch(kept: Kept) -> None:
    text = kept.file("beta").read_bytes()
    kept.file("copy").write_bytes(text)
    kept.commit(forget("beta"), Reconcile())
    assert kept.ops("copy") == ["adopt/hand"]
    assert text in objects(kept.directory).values()
    check_invariants(kept.directory)


def test_a_version_that_goes_and_comes_under_another_name_in_one_batch_stays(kept: Kept) -> None:
    text = kept.file("beta").read_bytes()
    outcomes = kept.commit(forget("beta"), Put("copy", text, ME))
    assert [type(outcome) for outcome in outcomes] == [Forgotten, Saved]
    assert kept.file("copy").read_bytes() == text
    assert text in objects(kept.directory).values()
    assert kept.store.verify() == ()


def test_two_forgets_of_one_note_in_one_batch(kept: Kept) -> None:
    outcomes = kept.commit(forget("beta"), forget("beta"))
    assert [type(outcome) for outcome in outcomes] == [Forgotten, NotFound]
    assert kept.ops("beta") == ["save", "forget"]


def test_a_read_is_counted_of_what_stands_by_then(kept: Kept) -> None:
    version = kept.entries["beta"].hash
    outcomes = kept.commit(Count("beta", version, ME), forget("beta"), Count("beta", version, ME))
    assert [type(outcome) for outcome in outcomes] == [Counted, Forgotten, NotFound]


def test_a_reader_is_told_of_every_change_of_a_batch_once(kept: Kept) -> None:
    committed = kept.store.commit(
        [save("alpha", "Four."), save("new", "New."), forget("beta"), save("alpha", "Five.")]
    )
    assert sorted(change.name for change in committed.changes) == ["alpha", "beta", "new"]
    kept.told(committed)
    assert kept.entries.keys() == {"alpha", "new"}
    assert "five" in kept.tokens["alpha"]
    assert kept.store.commit([]).changes == []
