"""Which file a save goes to. Law: no twin files, and no note under a name that another note has (SPEC 2 and 3)."""

from pathlib import Path

import msgspec
import pytest

from memd.errors import Conflict, MemdError, Refused, Unreadable
from memd.store import Forgotten, Reconcile, Saved
from support.stores import Kept, check_invariants, forget, opened, save, standing


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """An empty store."""
    return opened(tmp_path / "store")


def test_a_name_that_slugs_to_a_standing_one_updates_that(kept: Kept) -> None:
    kept.file("feedback_tmp").write_text("By hand.\n")
    kept.do(Reconcile())
    for given in ("feedback_tmp", "feedback-tmp", "Feedback TMP"):
        saved = kept.saved(given, f"As {given}.")
        assert (saved.entry.name, saved.updated) == ("feedback_tmp", True)
    assert standing(kept.directory).keys() == {"feedback_tmp"}


def test_a_stem_that_equals_the_given_name_comes_before_one_that_slugs_alike(kept: Kept) -> None:
    for stem in ("a b", "A-B"):
        kept.file(stem).write_text(f"{stem}\n")
    kept.do(Reconcile())
    assert kept.saved("a b", "One.").entry.name == "a b"
    assert kept.saved("A-B", "Two.").entry.name == "A-B"
    assert kept.saved("a-b", "Three.").entry.name == "A-B", "the first by name"


def test_twins_meet_within_one_batch(kept: Kept) -> None:
    outcomes = kept.commit(save("Some Name", "One."), save("some_name", "Two."))
    assert [isinstance(outcome, Saved) and outcome.entry.name for outcome in outcomes] == ["some-name", "some-name"]
    assert standing(kept.directory).keys() == {"some-name"}


def test_a_file_that_nobody_has_taken_in_yet_is_no_free_name(kept: Kept) -> None:
    kept.saved("other", "Other.")
    kept.file("some-note").write_text("# A hand was faster\n")
    kept.clock.at_change_of(kept.file("some-note"), 0.01)
    saved = kept.saved(None, "Body.", "some note")
    assert saved.entry.name == "some-note-2"
    assert kept.file("some-note").read_text() == "# A hand was faster\n"
    kept.clock.fixed = None
    kept.do(Reconcile())
    check_invariants(kept.directory)


def test_a_derived_name_that_is_free_is_taken(kept: Kept) -> None:
    saved = kept.saved(None, "Body.", "one two three four five six")
    assert saved.entry.name == "one-two-three-four-five"
    assert saved.warnings == ()


def test_a_derived_name_with_the_same_hook_updates(kept: Kept) -> None:
    kept.saved(None, "Body.", "one two three four five six")
    saved = kept.saved(None, "Another body.", "one two three four five six")
    assert (saved.entry.name, saved.updated, saved.warnings) == ("one-two-three-four-five", True, ())


def test_a_derived_name_of_another_hook_gets_a_number_and_a_warning_that_names_the_other(kept: Kept) -> None:
    hooks = [f"one two three four five {word}" for word in ("six", "seven", "eight")]
    names = []
    for hook in hooks:
        saved = kept.saved(None, "Body.", hook)
        names.append(saved.entry.name)
        assert ("one-two-three-four-five" in "".join(saved.warnings)) == (len(names) > 1)
    assert names == ["one-two-three-four-five", "one-two-three-four-five-2", "one-two-three-four-five-3"]
    assert [kept.saved(None, "Again.", hook).entry.name for hook in hooks] == names
    check_invariants(kept.directory)


def test_derived_names_are_told_apart_within_one_batch(kept: Kept) -> None:
    outcomes = kept.commit(
        *(save(None, "Body.", f"one two three four five {word}") for word in ("six", "seven", "six"))
    )
    names = [outcome.entry.name for outcome in outcomes if isinstance(outcome, Saved)]
    assert names == ["one-two-three-four-five", "one-two-three-four-five-2", "one-two-three-four-five"]


def test_a_derived_name_of_a_note_forgotten_in_the_same_batch_is_free(kept: Kept) -> None:
    kept.saved(None, "Body.", "one two three four five six")
    outcomes = kept.commit(forget("one-two-three-four-five"), save(None, "New.", "one two three four five seven"))
    assert isinstance(outcomes[0], Forgotten)
    assert isinstance(outcomes[1], Saved)
    assert (outcomes[1].entry.name, outcomes[1].updated) == ("one-two-three-four-five", False)
    assert kept.ops("one-two-three-four-five") == ["save", "forget", "save"]
    check_invariants(kept.directory)


def test_a_numbered_name_stays_within_the_bounds(kept: Kept) -> None:
    hook = " ".join(["日本語の長い名前" * 8] * 5)[:230]
    names = [kept.saved(None, "Body.", f"{hook} {word}").entry.name for word in ("一", "二", "三")]
    assert len(set(names)) == 3
    assert all(len(name) <= 80 and len(name.encode()) <= 200 for name in names)
    assert names[1].endswith("-2")


def test_a_derived_name_whose_file_is_no_note_gets_a_number(kept: Kept) -> None:
    kept.file("one-two").mkdir()
    assert kept.saved(None, "Body.", "one two").entry.name == "one-two-2"


def test_a_given_name_whose_file_is_no_note_is_refused(kept: Kept) -> None:
    kept.file("one-two").mkdir()
    with pytest.raises(Refused) as refusal:
        kept.saved("one two", "Body.")
    assert refusal.value.field == "name"
    assert kept.ops() == []


def test_expect(kept: Kept) -> None:
    def refusal(expect: str | None) -> str | type[Saved] | None:
        [outcome] = kept.commit(save("note", "Words.", expect=expect))
        if isinstance(outcome, Conflict):
            return outcome.hash
        assert isinstance(outcome, Saved)
        return Saved

    nothing = "sha256:" + "0" * 64
    assert refusal("exists") is None
    assert refusal(nothing) is None
    assert kept.ops() == []
    assert refusal(None) is Saved
    head = kept.entries["note"].hash
    assert refusal(None) == head
    assert refusal(nothing) == head
    assert refusal(nothing.removeprefix("sha256:")) == head
    assert refusal("exists") is Saved
    assert refusal(head) is Saved
    assert refusal(head.removeprefix("sha256:")) is Saved
    kept.do(forget("note"))
    assert refusal(head) is None
    assert refusal("exists") is None
    assert refusal(None) is Saved
    check_invariants(kept.directory)


def test_only_the_first_of_a_batch_may_expect_that_there_is_nothing(kept: Kept) -> None:
    outcomes = kept.commit(*(save("note", f"Words {number}.", expect=None) for number in range(3)))
    assert [type(outcome) for outcome in outcomes] == [Saved, Conflict, Conflict]
    assert b"Words 0." in kept.file("note").read_bytes()


def test_a_refused_request_drops_out_of_its_batch_alone(kept: Kept) -> None:
    kept.saved("beta", "One.")
    outcomes = kept.commit(
        save("alpha", "One."), save("beta", "Two.", expect=None), forget("nobody"), save("gamma", "Three.")
    )
    assert [isinstance(outcome, MemdError) for outcome in outcomes] == [False, True, True, False]
    assert standing(kept.directory).keys() == {"alpha", "beta", "gamma"}
    assert b"One." in kept.file("beta").read_bytes()
    assert len(kept.ops()) == 3
    check_invariants(kept.directory)


def test_a_refusal_comes_before_an_unreadable_file_and_that_before_a_conflict(kept: Kept) -> None:
    kept.file("note").write_text("password: ghp_0123456789abcdefghij0123\n")
    kept.do(Reconcile())
    masked = save("note", "password: [redacted]", expect=None)
    assert isinstance(kept.commit(masked)[0], Refused)
    (kept.directory / "usage.json").write_text("{")
    assert isinstance(kept.commit(masked)[0], Refused)
    assert isinstance(kept.commit(save("note", "Words.", expect=None))[0], Unreadable)
    (kept.directory / "usage.json").unlink()
    assert isinstance(kept.commit(save("note", "Words.", expect=None))[0], Conflict)
    assert kept.file("note").read_text().startswith("password: ghp_")


def test_a_draft_without_expect_says_nothing_of_the_head(kept: Kept) -> None:
    assert save("note", "Words.").expect is msgspec.UNSET
    kept.saved("note", "One.")
    kept.saved("note", "Two.")
    assert kept.ops() == ["save", "save"]


def test_an_update_keeps_unknown_keys_and_a_new_life_does_not(kept: Kept) -> None:
    kept.do(save("note", "One.", owner="me"))
    kept.saved("note", "Two.")
    assert b"owner: me" in kept.file("note").read_bytes()
    kept.do(forget("note"))
    kept.saved("note", "Three.")
    assert b"owner" not in kept.file("note").read_bytes()
