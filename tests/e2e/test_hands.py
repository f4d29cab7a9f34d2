"""A person's files in a running daemon: what a hand writes is journaled within a moment, once; nothing is lost."""

from collections.abc import Iterator

import pytest

import memd_client
from support.daemon import Daemon, running_daemon
from support.hands import PATTERNS, Pattern
from support.waiting import until
from support.watched import AS_SAVED, EDITED, hears, journal, quick_daemon, status, texts


@pytest.fixture(scope="module")
def house() -> Iterator[Daemon]:
    """One daemon for tests that each have notes of their own."""
    with running_daemon() as running:
        hears(running, "first")
        yield running


@pytest.fixture
def quick() -> Iterator[Daemon]:
    """A daemon that believes a deletion after 0.3 s."""
    with quick_daemon() as daemon:
        yield daemon


def test_status_tells_when_the_last_event_and_the_last_scan_were(house: Daemon) -> None:
    house.save("status", "words")
    (house.store / "status.md").write_text("by hand\n")
    until(lambda: journal(house.store, "status") == EDITED)
    told = status(house)
    assert 0 <= told["last_event_s"] <= told["uptime_s"]
    assert told["findings"] == []


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.__name__)
def test_a_save_by_any_program_is_one_edit(house: Daemon, pattern: Pattern) -> None:
    name = f"by-{pattern.__name__}".replace("_", "-")
    house.save(name, "As it was.")
    before = (house.store / f"{name}.md").read_text()
    pattern(house.store / f"{name}.md", f"{before}And by hand.\n")
    until(lambda: journal(house.store, name) == EDITED)
    house.call("memory.reconcile")
    assert journal(house.store, name) == EDITED
    assert texts(house.store, name) == [before.encode(), f"{before}And by hand.\n".encode()]
    assert house.found(name)[0] == name
    assert house.call("memory.verify")["ok"]


def test_the_log_tells_a_hand_from_an_agent(house: Daemon) -> None:
    with house.connect() as connection:
        connection.call("session.start", {"session": "run-1", "cwd": str(house.repo)})
        fields = {"name": "told-apart", "type": "project", "description": "by an agent"}
        connection.call("memory.save", {"session": "run-1", "markdown": "x", "fields": fields})
    (house.store / "told-apart.md").write_text("by hand\n")
    until(lambda: journal(house.store, "told-apart") == ["save run-1", "edit hand"])
    edited, saved = house.call("memory.log", name="told-apart")["records"]
    assert (edited["op"], edited["by"]) == ("edit", "hand")
    assert (saved["op"], saved["session"]) == ("save", "run-1")


def test_a_conflict_copy_is_a_note_of_its_own(house: Daemon) -> None:
    house.save("shared", "Ours.")
    note = house.store / "shared.md"
    copy = "shared.sync-conflict-20260102-030405-ABCDEFG"
    note.rename(house.store / f"{copy}.md")
    note.write_text("Theirs.\n")
    until(lambda: journal(house.store, "shared") == EDITED and journal(house.store, copy) == ["adopt hand"])
    house.call("memory.reconcile")
    assert journal(house.store, "shared") == EDITED
    assert house.call("memory.verify")["ok"]


def test_a_deletion_is_a_forget_by_hand_once_it_has_lasted(quick: Daemon) -> None:
    hears(quick, "stays", "goes")
    text = (quick.store / "goes.md").read_bytes()
    (quick.store / "goes.md").unlink()
    until(lambda: journal(quick.store, "goes") == ["save cli", "forget hand"])
    assert not any(path.read_bytes() == text for path in (quick.store / "objects").iterdir())
    assert quick.names() == ["stays"]
    (quick.store / "goes.md").write_bytes(text)
    until(lambda: journal(quick.store, "goes") == ["save cli", "forget hand", "adopt hand"])


def test_a_note_that_is_back_with_the_same_bytes_was_never_gone(house: Daemon) -> None:
    house.save("back", "The same.")
    path = house.store / "back.md"
    text = path.read_bytes()
    path.unlink()
    until(lambda: "back" not in house.names())
    path.write_bytes(text)
    until(lambda: "back" in house.names())
    house.call("memory.reconcile")
    assert journal(house.store, "back") == AS_SAVED


def test_a_file_that_stays_empty_is_an_edit(quick: Daemon) -> None:
    hears(quick, "emptied")
    (quick.store / "emptied.md").write_text("")
    until(lambda: journal(quick.store, "emptied") == EDITED)
    assert texts(quick.store, "emptied")[-1] == b""


def test_a_rename_by_hand_is_a_forget_and_an_adopt(quick: Daemon) -> None:
    hears(quick, "old-name", "other")
    (quick.store / "old-name.md").rename(quick.store / "new-name.md")
    until(lambda: journal(quick.store, "new-name") == ["adopt hand"])
    until(lambda: journal(quick.store, "old-name") == ["save cli", "forget hand"])
    assert texts(quick.store, "new-name")
    assert quick.call("memory.verify")["ok"]


def test_the_list_is_mended_when_a_hand_cuts_a_line(house: Daemon) -> None:
    house.save("listed", "words")
    listing = house.store / "MEMORY.md"
    lines = listing.read_text().splitlines(keepends=True)
    listing.write_text("".join(line for line in lines if "listed.md" not in line) + "My own words.\n")
    until(lambda: "](listed.md)" in listing.read_text())
    assert "My own words.\n" in listing.read_text()


def test_a_file_that_grows_while_it_is_read_ends_as_its_whole_text(house: Daemon) -> None:
    house.save("growing", "words")
    whole = b""
    with (house.store / "growing.md").open("wb", buffering=0) as file:
        for number in range(3000):
            line = f"line {number} of a file that grows\n".encode()
            whole += line
            file.write(line)
    until(lambda: texts(house.store, "growing")[-1] == whole)
    assert all(whole.startswith(text) for text in texts(house.store, "growing")[1:])
    assert "forget hand" not in journal(house.store, "growing")


def test_one_name_in_two_unicode_forms_is_two_files_and_none_is_lost(quick: Daemon) -> None:
    hears(quick, "plain")
    composed, apart = "caf\u00e9", "cafe\u0301"
    (quick.store / f"{composed}.md").write_text("composed\n")
    (quick.store / f"{apart}.md").write_text("apart\n")
    until(lambda: [journal(quick.store, name) for name in (composed, apart)] == [["adopt hand"]] * 2)
    (quick.store / f"{apart}.md").write_text("apart, edited\n")
    until(lambda: journal(quick.store, apart) == ["adopt hand", "edit hand"])
    (quick.store / f"{composed}.md").unlink()
    until(lambda: journal(quick.store, composed) == ["adopt hand", "forget hand"])
    quick.call("memory.reconcile")
    assert journal(quick.store, apart) == ["adopt hand", "edit hand"]
    assert (quick.store / f"{apart}.md").read_text() == "apart, edited\n"


def test_a_name_that_is_no_unicode_deafens_nobody(house: Daemon) -> None:
    house.save("beside", "words")
    strange = bytes(house.store) + b"/\xff\xfe.md"
    with open(strange, "wb") as file:  # noqa: PTH123 - a path of bytes
        file.write(b"what is this\n")
    (house.store / "beside.md").write_text("by hand\n")
    until(lambda: journal(house.store, "beside") == EDITED)


def test_stores_that_are_opened_later_are_heard_too(house: Daemon) -> None:
    others = [house.root / f"repo-{number}" for number in range(3)]
    for repo in others:
        (repo / ".git").mkdir(parents=True)
        house.save("there", "words", cwd=repo)
    for repo in others:
        (house.store_of(repo) / "there.md").write_text("by hand\n")
    house.call(
        "memory.save", markdown="x", fields={"name": "g", "type": "user", "description": "g", "scope": "global"}
    )
    (house.global_store / "g.md").write_text("by hand\n")
    until(lambda: all(journal(house.store_of(repo), "there") == EDITED for repo in others))
    until(lambda: journal(house.global_store, "g") == EDITED)


@pytest.mark.parametrize("again", ["renamed", "copied", "linked"])
def test_a_store_that_is_taken_away_and_brought_back_is_suspended_meanwhile_and_heard_again(
    quick: Daemon, again: str
) -> None:
    hears(quick, "a", "b", "c")
    aside = quick.root / "aside"
    quick.store.rename(aside)
    with pytest.raises(memd_client.Suspended):
        quick.save("new", "words")
    assert not quick.store.exists()
    if again == "renamed":
        aside.rename(quick.store)
    elif again == "linked":
        quick.store.symlink_to(aside)
    else:
        quick.store.mkdir()
        for directory in (quick.store, quick.store / "objects"):
            directory.mkdir(exist_ok=True)
        for path in sorted(path for path in aside.rglob("*") if path.is_file()):
            # Whole at once, as rsync copies: half a journal, to which memd adds its own, would be a broken one.
            copy = path.with_name(f"{path.name}.copy")
            copy.write_bytes(path.read_bytes())
            copy.rename(quick.store / path.relative_to(aside))
    until(lambda: sorted(quick.names()) == ["a", "b", "c"])
    until(lambda: bool(status(quick)["watching"]))
    (quick.store / "a.md").write_text("by hand\n")
    until(lambda: journal(quick.store, "a") == EDITED)
    quick.save("new", "words")
    assert all("forget" not in op for name in "abc" for op in journal(quick.store, name))
    assert quick.call("memory.verify")["ok"]


def test_an_empty_directory_in_a_stores_place_is_not_taken_for_the_store(quick: Daemon) -> None:
    hears(quick, "a", "b", "c")
    quick.store.rename(quick.root / "aside")
    quick.store.mkdir()
    with pytest.raises(memd_client.Suspended):
        quick.save("new", "words")
    assert list(quick.store.iterdir()) == []
    quick.store.rmdir()
    (quick.root / "aside").rename(quick.store)
    until(lambda: sorted(quick.names()) == ["a", "b", "c"])
    quick.save("new", "words")


def test_many_notes_that_go_at_once_suspend_the_store_until_they_are_back(quick: Daemon) -> None:
    names = [f"note-{number:02}" for number in range(12)]
    hears(quick, *names)
    aside = quick.root / "aside"
    aside.mkdir()
    for name in names[:8]:
        (quick.store / f"{name}.md").rename(aside / f"{name}.md")
    with pytest.raises(memd_client.Suspended):
        quick.save("new", "words")
    assert sorted(quick.names()) == names, "served from their objects"
    for name in names[:8]:
        (aside / f"{name}.md").rename(quick.store / f"{name}.md")
    until(lambda: quick.call("memory.reconcile")["repo"]["suspended"] is False)
    quick.save("new", "words")
    assert all(journal(quick.store, name) == AS_SAVED for name in names)


def test_many_notes_that_went_are_forgotten_when_a_person_says_so(quick: Daemon) -> None:
    names = [f"note-{number:02}" for number in range(12)]
    hears(quick, *names)
    for name in names[:8]:
        (quick.store / f"{name}.md").unlink()
    assert quick.call("memory.reconcile")["repo"]["suspended"]
    assert quick.call("memory.reconcile", accept=True)["repo"]["forgotten"] == 8
    assert sorted(quick.names()) == names[8:]
