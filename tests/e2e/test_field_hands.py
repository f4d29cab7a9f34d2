"""What people met with other tools when they edited notes by hand, each tried on a running daemon (field report)."""

import threading
from collections.abc import Iterator

import pytest

from support.daemon import Daemon
from support.hands import Pattern, vim_copying, vim_renaming
from support.waiting import until
from support.watched import EDITED, hears, journal, quick_daemon, records, texts

NOTES = 1_000


@pytest.fixture
def quick() -> Iterator[Daemon]:
    """A daemon that believes a deletion after 0.3 s."""
    with quick_daemon() as daemon:
        yield daemon


def test_row_4_lines_without_files_and_files_without_lines_are_healed(quick: Daemon) -> None:
    hears(quick, "first", "second", "third", "fourth")
    listing = quick.store / "MEMORY.md"
    (quick.store / "by-hand.md").write_text("---\nname: first\n---\n\n# Two files, one name in them\n")
    (quick.store / "first.md").write_text("---\nname: by-hand\n---\n\n# The other\n")
    lines = [line for line in listing.read_text().splitlines() if "(second.md)" not in line]
    listing.write_text("\n".join(["# My notes", *lines, "- [gone](gone.md) — nothing there", "And my words.", ""]))
    (quick.store / "third.md").unlink()
    until(lambda: journal(quick.store, "third") == ["save cli", "forget hand"])
    until(lambda: "](second.md)" in listing.read_text() and "](by-hand.md)" in listing.read_text())
    healed = listing.read_text()
    assert "(gone.md)" not in healed
    assert "(third.md)" not in healed
    assert healed.startswith("# My notes\n")
    assert "And my words.\n" in healed
    assert sorted(quick.names()) == ["by-hand", "first", "fourth", "second"]
    assert quick.call("memory.read", name="by-hand")["description"] == "Two files, one name in them"
    assert quick.call("memory.check")["ok"]


@pytest.mark.parametrize("pattern", [vim_renaming, vim_copying])
def test_row_10_a_note_edited_in_vim_is_there_before_and_after(quick: Daemon, pattern: Pattern) -> None:
    hears(quick, "edited", "other")
    path = quick.store / "edited.md"
    before = path.read_bytes()
    pattern(path, "# In vim\n")
    until(lambda: journal(quick.store, "edited") == EDITED)
    quick.call("memory.reconcile")
    assert journal(quick.store, "edited") == EDITED
    assert texts(quick.store, "edited") == [before, b"# In vim\n"]


def test_row_11_one_changed_file_hides_none_of_the_others(daemon: Daemon) -> None:
    daemon.store.mkdir(parents=True)
    for number in range(NOTES):
        (daemon.store / f"note-{number:03}.md").write_text(f"# harbour {number:03}\n")
    until(lambda: len(daemon.found("harbour")) == NOTES)
    ended = threading.Event()
    found: list[set[str]] = []

    def search() -> None:
        while not ended.is_set():
            found.append(set(daemon.found("harbour")))

    searching = threading.Thread(target=search)
    searching.start()
    try:
        (daemon.store / "note-007.md").write_text("# lighthouse\n")
        until(lambda: journal(daemon.store, "note-007") == ["adopt hand", "edit hand"])
        after = len(found)
        until(lambda: len(found) > after + 2)
    finally:
        ended.set()
        searching.join()
    others = {f"note-{number:03}" for number in range(NOTES)} - {"note-007"}
    assert all(others <= names for names in found)
    assert daemon.found("lighthouse") == ["note-007"]
    assert sum(record["op"] == "edit" for record in records(daemon.store)) == 1


def test_row_21_a_store_behind_a_symlink_works_and_a_symlink_in_it_is_left_alone(quick: Daemon) -> None:
    real = quick.root / "real"
    real.mkdir()
    quick.store.parent.mkdir(parents=True)
    quick.store.symlink_to(real)
    hears(quick, "plain", "other")
    target = quick.root / "elsewhere.md"
    target.write_text("# Not a note of the store\n")
    (real / "linked.md").symlink_to(target)
    (real / "plain.md").write_text("by hand\n")
    until(lambda: journal(real, "plain") == EDITED)
    target.write_text("# Changed\n")
    quick.save("new", "words")
    assert quick.store.is_symlink()
    assert (real / "linked.md").is_symlink()
    assert journal(real, "linked") == []
    assert sorted(quick.names()) == ["new", "other", "plain"]
    assert [(finding["kind"], finding["name"]) for finding in quick.call("memory.check")["findings"]] == [
        ("symlink", "linked")
    ]


def test_row_21_conflict_copies_are_kept_and_earn_no_body(quick: Daemon) -> None:
    hears(quick, "tides")
    copies = ["tides.sync-conflict-20260102-030405-ABCDEFG", "tides (conflicted copy)"]
    text = "---\ntype: project\n---\n\nThe harbour gauge drifts at spring tides.\n"
    for copy in copies:
        (quick.store / f"{copy}.md").write_text(text)
    until(lambda: all(journal(quick.store, copy) == ["adopt hand"] for copy in copies))
    block = quick.call("memory.focus", prompt="how far does the harbour gauge drift at spring tides")
    assert {note["name"]: note["shown"] for note in block["notes"] if note["name"] in copies}
    assert all(note["shown"] == "row" for note in block["notes"] if note["name"] in copies)
    assert set(copies) <= set(quick.names())
