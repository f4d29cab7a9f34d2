"""MEMORY.md and usage.json through every write. Law: a person's words stay, memd's own follow the notes (SPEC 4)."""

import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.errors import Conflict, Refused
from memd.fs import Stamp
from memd.listing import Listing
from memd.store import Author, Count, Forgotten, Rebuild, Reconcile, Rename, Save, Saved
from memd.usage import Usage
from support.disks import InterferingDisk
from support.stores import (
    ME,
    Kept,
    bytes_of,
    check_invariants,
    draft,
    forget,
    holding,
    objects,
    opened,
    rows,
    save,
    usage,
)
from support.waiting import until

PERSONS = "# My notes\n\nSome words.\n- [a link](https://example.org)\n- [docs](docs/alpha.md)\n"


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A store of two notes with a person's words in its index."""
    directory = tmp_path / "store"
    directory.mkdir()
    (directory / "MEMORY.md").write_text(PERSONS)
    kept = opened(directory)
    kept.saved("alpha", "One.", "The first hook")
    kept.saved("beta", "Two.", "The second hook")
    return kept


def index(kept: Kept) -> Path:
    return kept.directory / "MEMORY.md"


def fail() -> None:
    raise OSError(errno.EIO, "it fails")


def own_rows(kept: Kept) -> list[str]:
    """The lines after the person's, which must all be there."""
    text = index(kept).read_text()
    assert text.startswith(PERSONS)
    return text.removeprefix(PERSONS).splitlines()


def test_a_save_appends_a_row_and_an_update_replaces_it_in_place(kept: Kept) -> None:
    assert own_rows(kept) == ["- [alpha](alpha.md) — The first hook", "- [beta](beta.md) — The second hook"]
    kept.saved("alpha", "One.", "Another hook")
    assert own_rows(kept) == ["- [alpha](alpha.md) — Another hook", "- [beta](beta.md) — The second hook"]


def test_a_save_replaces_a_persons_row_too(kept: Kept) -> None:
    index(kept).write_text(PERSONS + "- [alpha](alpha.md): in my words\n")
    kept.saved("alpha", "One.", "Another hook")
    assert own_rows(kept)[0] == "- [alpha](alpha.md) — Another hook"


def test_a_forget_removes_the_row_whoever_worded_it(kept: Kept) -> None:
    index(kept).write_text(PERSONS + "- [Alpha!](alpha.md): in my words\n- [beta](beta.md) — The second hook\n")
    kept.do(forget("alpha"))
    assert own_rows(kept) == ["- [beta](beta.md) — The second hook"]
    kept.do(forget("beta"))
    assert index(kept).read_text() == PERSONS


def test_a_row_that_could_not_be_mended_for_an_unreadable_index_is_mended_by_the_next_request(kept: Kept) -> None:
    (kept.directory / "alpha.md").write_text("# By hand\n")
    disk = InterferingDisk(lambda call, path: (call, path.name) == ("read", "MEMORY.md"), fail)
    kept.use(disk)
    with pytest.raises(Refused):
        kept.do(Rename("alpha", "beta", ME))
    assert (disk.times, own_rows(kept)[0]) == (0, "- [alpha](alpha.md) — The first hook")
    kept.read("beta")
    assert own_rows(kept)[0] == "- [alpha](alpha.md) — By hand"


def test_an_edit_renews_memds_own_row_and_leaves_a_persons(kept: Kept) -> None:
    index(kept).write_text(PERSONS + "- [alpha](alpha.md): in my words\n- [beta](beta.md) — The second hook\n")
    kept.file("alpha").write_text("# Alpha by hand\n")
    kept.file("beta").write_text("# Beta by hand\n")
    kept.do(Reconcile())
    assert own_rows(kept) == ["- [alpha](alpha.md): in my words", "- [beta](beta.md) — Beta by hand"]


def test_a_row_that_an_earlier_version_wrote_is_memds_own(kept: Kept) -> None:
    kept.saved("alpha", "One.", "Another hook")
    index(kept).write_text(PERSONS + "- [alpha](alpha.md) — The first hook ⚠ stale\n")
    kept.file("alpha").write_text("# Alpha by hand\n")
    kept.do(Reconcile())
    assert own_rows(kept)[0] == "- [alpha](alpha.md) — Alpha by hand ⚠ stale"


@pytest.mark.parametrize("request_", [Reconcile(), Rebuild()])
def test_reconcile_and_rebuild_mend_the_index_both_ways(kept: Kept, request_: Reconcile | Rebuild) -> None:
    index(kept).write_text(
        PERSONS
        + "- [gone](gone.md) — a note that is not there\n"
        + "- [mine](beta.md) in my own words\n"
        + "Between the rows.\n"
        + "- [beta](beta.md) — The second hook\n"
    )
    kept.do(request_)
    assert own_rows(kept) == [
        "- [mine](beta.md) in my own words",
        "Between the rows.",
        "- [alpha](alpha.md) — The first hook",
    ]


def test_rebuild_makes_a_lost_index_and_lost_counts_again(kept: Kept) -> None:
    kept.do(Count("beta", kept.entries["beta"].hash, ME))
    index(kept).unlink()
    path = kept.directory / "usage.json"
    path.write_text(json.dumps({"sessions": 7, "notes": {"beta": {"saves": 0, "reads": 9, "last": 5}}}))
    kept.do(Rebuild())
    assert rows(kept.directory) == ["- [alpha](alpha.md) — The first hook", "- [beta](beta.md) — The second hook"]
    assert json.loads(path.read_text())["sessions"] == 7
    assert {name: (n["saves"], n["reads"]) for name, n in usage(kept.directory).items()} == {
        "alpha": (1, 0),
        "beta": (1, 1),
    }


def test_rebuild_keeps_the_row_of_a_file_that_nobody_has_taken_in_yet(kept: Kept) -> None:
    kept.file("new").write_text("New.\n")
    with index(kept).open("a") as file:
        file.write("- [new](new.md) as I call it\n")
    kept.do(Rebuild())
    assert own_rows(kept)[-1] == "- [new](new.md) as I call it"
    kept.do(Reconcile())
    assert kept.ops("new") == ["adopt/hand"]
    assert own_rows(kept)[-1] == "- [new](new.md) as I call it"


def test_two_stores_that_write_in_turn_keep_every_row(kept: Kept) -> None:
    other = opened(kept.directory)
    for number in range(6):
        kept.saved(f"here-{number}", "Here.")
        other.saved(f"there-{number}", "There.")
        index(kept).write_text(index(kept).read_text() + f"A line by hand, {number}.\n")
    text = index(kept).read_text()
    assert all(f"- [{where}-{number}](" in text for number in range(6) for where in ("here", "there"))
    assert all(f"A line by hand, {number}.\n" in text for number in range(6))


@pytest.mark.parametrize("name", ["MEMORY.md", "usage.json"])
def test_what_somebody_writes_while_memd_stages_is_not_overwritten(kept: Kept, name: str) -> None:
    path = kept.directory / name

    def meddle() -> None:
        text = path.read_text()
        path.write_text(text + "One more line.\n" if name == "MEMORY.md" else text.replace(": 0", ": 5"))

    other = opened(
        kept.directory, InterferingDisk(lambda call, path: call == "fsync" and path.suffix == ".tmp", meddle, times=0)
    )
    other.disk.times = 1  # type: ignore[attr-defined]
    other.saved("gamma", "Three.")
    if name == "MEMORY.md":
        assert "One more line." in rows(kept.directory)
    else:
        assert usage(kept.directory)["alpha"]["reads"] == 5
    assert rows(kept.directory)[-1].startswith("- [gamma](gamma.md)")
    assert other.ops("gamma") == ["save"]
    assert other.store.verify() == ()


def test_counts_follow_saves_and_reads(kept: Kept) -> None:
    kept.saved("alpha", "Three.")
    kept.do(Count("alpha", kept.entries["alpha"].hash, Author(session="s-1")))
    last = int(kept.clock())
    counts = usage(kept.directory)["alpha"]
    assert (counts["saves"], counts["reads"]) == (2, 1)
    assert last - 2 <= counts["last"] <= last
    kept.do(forget("alpha"))
    assert "alpha" not in usage(kept.directory)
    kept.saved("alpha", "A new life.")
    assert usage(kept.directory)["alpha"]["saves"] == 1


@pytest.mark.parametrize(
    ("make", "counts"),
    [
        (lambda kept: kept.saved("note", "One."), (1, 0)),
        (lambda kept: (kept.file("note").write_text("By hand.\n"), kept.do(Reconcile())), (7, 7)),
    ],
    ids=["saved here", "adopted"],
)
def test_opening_lowers_counts_that_are_ahead_of_the_journal_but_not_of_what_was_adopted(
    kept: Kept, make: Callable[[Kept], object], counts: tuple[int, int]
) -> None:
    make(kept)
    path = kept.directory / "usage.json"
    whole = json.loads(path.read_text())
    whole["notes"]["note"] = {"saves": 7, "reads": 7, "last": 1_780_000_000}
    whole["notes"]["nobody"] = {"saves": 7, "reads": 7, "last": 1_780_000_000}
    path.write_text(json.dumps(whole))
    opened(kept.directory)
    found = usage(kept.directory)["note"]
    assert (found["saves"], found["reads"]) == counts
    assert "nobody" in usage(kept.directory), "an entry whose note the journal never had is older than it"


# -- two notes of the same bytes (the field report's row 17) ---------------------------------------------------------


def test_forgetting_one_of_two_notes_with_the_same_bytes_leaves_the_other_whole(kept: Kept) -> None:
    shared, own = b"Words that both notes hold.\n", b"Words that only one note held.\n"
    kept.file("one").write_bytes(shared)
    kept.file("two").write_bytes(shared)
    kept.do(Reconcile())
    kept.file("one").write_bytes(own)
    kept.do(Reconcile())
    forgotten = kept.do(forget("one"))
    assert isinstance(forgotten, Forgotten)
    assert (forgotten.versions, forgotten.texts, forgotten.size) == (2, (own,), len(own))
    assert kept.file("two").read_bytes() == shared
    assert shared in objects(kept.directory).values()
    assert holding(kept.directory, b"only one note") == []
    assert kept.store.verify() == ()
    check_invariants(kept.directory)
    kept.do(forget("two"))
    assert holding(kept.directory, b"both notes") == []


def test_both_forgotten_in_one_batch_leave_no_copy(kept: Kept) -> None:
    for name in ("one", "two"):
        kept.file(name).write_bytes(b"Words that both notes hold.\n")
    kept.do(Reconcile())
    kept.commit(forget("one"), forget("two"))
    assert holding(kept.directory, b"both notes") == []
    check_invariants(kept.directory)


def test_a_version_that_another_note_held_once_and_holds_no_more(kept: Kept) -> None:
    for name in ("one", "two"):
        kept.file(name).write_bytes(b"Words that both notes hold.\n")
    kept.do(Reconcile())
    kept.saved("two", "Its own words.")
    kept.do(forget("one"))
    assert b"Words that both notes hold.\n" in objects(kept.directory).values(), "it is a version of two"
    kept.do(forget("two"))
    assert holding(kept.directory, b"both notes") == []


def test_a_forget_answers_what_it_removed(kept: Kept) -> None:
    first = kept.file("alpha").read_bytes()
    kept.saved("alpha", "Two.")
    second = kept.file("alpha").read_bytes()
    head = kept.entries["alpha"].hash
    forgotten = kept.do(forget("alpha"))
    assert isinstance(forgotten, Forgotten)
    assert forgotten.hash == head
    assert set(forgotten.texts) == {first, second}
    assert forgotten.size == len(first) + len(second)
    assert holding(kept.directory, b"hook") != []
    assert all(b"first hook" not in path.read_bytes() for path in kept.directory.rglob("*") if path.is_file())


def test_a_save_answers_what_is_on_disk(kept: Kept) -> None:
    request = Save(draft("gamma", "Three.", "A hook"), Author(session="s-1"))
    saved = kept.do(request)
    assert isinstance(saved, Saved)
    raw = kept.file("gamma").read_bytes()
    assert raw == bytes_of(request, "gamma")
    assert (saved.entry.hash, saved.entry.hook) == (kept.entries["gamma"].hash, "A hook")
    assert (saved.entry.size, saved.updated, saved.warnings) == (len(raw), False, ())
    again = kept.do(save("gamma", "Three.", "A hook"))
    assert isinstance(again, Saved)
    assert again.updated
    assert again.entry.hash == saved.entry.hash
    assert kept.ops("gamma") == ["save", "save"]


def test_what_readers_see_is_what_the_files_hold_whoever_wrote_them(kept: Kept) -> None:
    listing, counts = kept.directory / "MEMORY.md", kept.directory / "usage.json"
    for request in (save("gamma", "Three."), Count("alpha", kept.entries["alpha"].hash, ME)):
        seen = kept.told(kept.store.commit([request])).view
        assert seen.listing == Listing(listing.read_bytes())
        assert seen.usage == Usage.decode(counts.read_bytes())
        listing.write_bytes(listing.read_bytes() + b"A person's line.\n")


def test_an_edit_that_a_refused_save_takes_in_has_its_row(kept: Kept) -> None:
    kept.file("alpha").write_bytes(b"---\ndescription: By hand\ntype: user\n---\n")  # the directory did not change
    with pytest.raises(Conflict):
        kept.do(save("alpha", "Refused.", expect=None))
    assert "- [alpha](alpha.md) — By hand" in rows(kept.directory)
    assert kept.ops("alpha")[-1] == "edit/hand"


def test_a_row_that_a_death_left_behind_says_what_its_note_says_once_the_store_is_opened(kept: Kept) -> None:
    was = (kept.directory / "MEMORY.md").read_text()
    kept.saved("alpha", "Two.", "A second hook")
    (kept.directory / "MEMORY.md").write_text(was)
    old = time.time_ns() - 10**9
    for path in kept.directory.glob("*.md"):
        os.utime(path, ns=(old, old))
    until(lambda: path_is_old(kept.file("alpha")))
    opened(kept.directory)
    assert "- [alpha](alpha.md) — A second hook" in rows(kept.directory)
    (kept.directory / "MEMORY.md").write_text("- [alpha](alpha.md) — in a person's words\n")
    opened(kept.directory)
    assert rows(kept.directory)[0] == "- [alpha](alpha.md) — in a person's words"


def path_is_old(path: Path) -> bool:
    """Whether a file was left alone for long enough that its stamp tells of the next change."""
    return Stamp.of(path.stat()).is_old(time.time_ns())
