"""Versions, names and stores that change: diff, restore, rename, move, import, store.list, store.adopt (SPEC 7)."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import memd_client
from memd.journal import content_hash
from support.daemon import Daemon
from support.waiting import until

BLOCK = '<<<yi-external 0123 source="memory" trust="untrusted">>>\nx\n<<<end-yi-external 0123>>>\n'
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"


def ops(daemon: Daemon, name: str) -> list[tuple[str, str | None]]:
    """Who did what to a note, oldest first."""
    records = daemon.call("memory.log", name=name, limit=1000)["records"]
    return [(record["op"], record.get("by")) for record in reversed(records)]


def copies(daemon: Daemon, text: str) -> list[str]:
    """The files under the home that hold a text."""
    return [path.name for path in daemon.home.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


# -- versions ------------------------------------------------------------------------------------------------


def test_diff_shows_the_last_change_or_any(daemon: Daemon) -> None:
    first = daemon.save("note", "one\ntwo")
    second = daemon.save("note", "one\nthree")
    third = daemon.save("note", "one\nfour")
    last = daemon.call("memory.diff", name="note")
    assert (last["from"], last["to"]) == (second["hash"], third["hash"])
    assert [line for line in last["diff"].splitlines() if line[:1] in "+-"][2:] == ["-three", "+four"]
    any_two = daemon.call("memory.diff", name="note", **{"from": first["hash"], "to": second["hash"]})
    assert [line for line in any_two["diff"].splitlines() if line[:1] in "+-"][2:] == ["-two", "+three"]
    assert daemon.call("memory.diff", name="note", **{"from": first["hash"], "to": first["hash"]})["diff"] == ""
    only = daemon.call("memory.diff", name="note", to=first["hash"])
    assert only["from"] == ""
    assert "+two" in only["diff"].splitlines()
    with pytest.raises(memd_client.NotFound):
        daemon.call("memory.diff", name="note", to="0" * 64)
    with pytest.raises(memd_client.Refused) as caught:
        daemon.call("memory.diff", name="note", to="short")
    assert caught.value.data["field"] == "to"


def test_diff_without_hashes_shows_the_last_change_whatever_came_before(daemon: Daemon) -> None:
    a = daemon.save("note", "a")["hash"]
    b = daemon.save("note", "b")["hash"]
    assert daemon.save("note", "a")["hash"] == a
    again = daemon.call("memory.diff", name="note")
    assert (again["from"], again["to"]) == (b, a)
    c = daemon.save("note", "c")["hash"]
    daemon.call("memory.restore", name="note", hash=b)
    restored = daemon.call("memory.diff", name="note")
    assert (restored["from"], restored["to"]) == (c, b)
    daemon.call("memory.restore", name="note", hash=b)
    assert daemon.call("memory.diff", name="note")["from"] == c
    assert daemon.call("memory.diff", name="note", to=c)["from"] == a
    daemon.call("memory.forget", name="note")
    daemon.save("note", "a")
    assert daemon.call("memory.diff", name="note")["from"] == ""


def test_diff_of_a_hand_edit_that_is_not_taken_in_yet_names_what_it_shows(daemon: Daemon) -> None:
    first = daemon.save("note", "one")["hash"]
    was = (daemon.store / "note.md").read_bytes()
    second = daemon.save("note", "two")["hash"]
    by_hand = b"# By hand\n\nthree\n"
    for raw in (by_hand, was):
        (daemon.store / "note.md").write_bytes(raw)
        shown = daemon.call("memory.diff", name="note")
        assert shown["to"] == content_hash(raw)
        assert shown["from"] in {second, content_hash(by_hand)} - {shown["to"]}
        assert "+" + raw.decode().splitlines()[-1] in shown["diff"].splitlines()
        exact = daemon.call("memory.diff", name="note", **{"from": first, "to": second})
        assert [line for line in exact["diff"].splitlines() if line[:1] in "+-"][2:] == ["-one", "+two"]
        assert daemon.call("memory.diff", name="note", **{"from": first, "to": shown["to"]})["to"] == shown["to"]
    (daemon.store / "note.md").write_bytes(b"")  # shown as it was until it has stayed empty for two seconds
    emptied = daemon.call("memory.diff", name="note")
    assert emptied["to"] in {second, content_hash(by_hand), content_hash(was)}  # the last that was taken in
    assert emptied["diff"] == daemon.call("memory.diff", name="note", to=emptied["to"])["diff"]
    until(lambda: daemon.call("memory.diff", name="note")["to"] == content_hash(b""))
    emptied = daemon.call("memory.diff", name="note")
    assert "+" not in [line[:1] for line in emptied["diff"].splitlines()[2:]]
    assert emptied["diff"] == daemon.call("memory.diff", name="note", to=emptied["to"])["diff"]


def test_restore_writes_the_exact_bytes_back(daemon: Daemon) -> None:
    daemon.save("seed")
    odd = b"# By hand\r\n\r\nOdd   bytes, no last line end"
    (daemon.store / "odd.md").write_bytes(odd)
    daemon.call("memory.reconcile")
    was = daemon.call("memory.show", name="odd")["hash"]
    daemon.save("odd", "Tidied.")
    reply = daemon.call("memory.restore", name="odd", hash=was)
    assert reply["hash"] == was
    assert (daemon.store / "odd.md").read_bytes() == odd
    assert ops(daemon, "odd") == [("adopt", "hand"), ("save", "cli"), ("save", "restore")]
    assert "- [odd](odd.md) — By hand" in (daemon.store / "MEMORY.md").read_text().splitlines()
    daemon.call("memory.forget", name="odd")
    with pytest.raises(memd_client.NotFound):
        daemon.call("memory.restore", name="odd", hash=was)
    assert daemon.call("memory.verify") == {"ok": True, "findings": []}


# -- names and stores ----------------------------------------------------------------------------------------


def test_rename_keeps_the_text_and_drops_the_old_name(daemon: Daemon) -> None:
    daemon.save("old-name", "First words, long gone.")
    daemon.save("old-name", "The words that stay.", aliases="kept")
    reply = daemon.call("memory.rename", name="old-name", to="New Name")
    assert (reply["name"], reply["was"]) == ("new-name", "old-name")
    text = (daemon.store / "new-name.md").read_text()
    assert text.startswith("---\nname: new-name\n")
    assert "aliases: kept" in text
    assert daemon.names() == ["new-name"]
    assert ops(daemon, "new-name") == [("save", "rename")]
    assert ops(daemon, "old-name")[-1] == ("forget", "rename")
    assert copies(daemon, "First words, long gone.") == []
    rows = (daemon.store / "MEMORY.md").read_text().splitlines()
    assert rows == ["- [new-name](new-name.md) — About old-name"]
    assert daemon.call("memory.verify") == {"ok": True, "findings": []}


def test_rename_changes_the_name_line_only(daemon: Daemon) -> None:
    daemon.save("seed")
    hand = "---\r\ndescription: by hand\r\nname: old\r\n# a comment\r\ntype: user\r\n---\r\n\r\nname: not this\r\n"
    (daemon.store / "old.md").write_bytes(hand.encode())
    daemon.call("memory.reconcile")
    daemon.call("memory.rename", name="old", to="new")
    expected = hand.replace("name: old", "name: new").encode()
    assert (daemon.store / "new.md").read_bytes() == expected


@pytest.mark.parametrize("to", ["taken", "Taken!", "memory", "!!!", "", "mine"])
def test_rename_takes_over_no_other_note(daemon: Daemon, to: str) -> None:
    daemon.save("taken", "of another")
    daemon.save("mine", "mine")
    with pytest.raises(memd_client.Refused) as caught:
        daemon.call("memory.rename", name="mine", to=to)
    assert caught.value.data["field"] == "to"
    assert daemon.call("memory.read", name="taken")["text"] == "of another"
    assert daemon.call("memory.read", name="mine")["text"] == "mine"


def test_a_twin_may_be_renamed_to_its_slug(daemon: Daemon) -> None:
    daemon.save("seed")
    (daemon.store / "feedback_tmp.md").write_text("# A hook\n")
    daemon.call("memory.reconcile")
    assert daemon.call("memory.rename", name="feedback_tmp", to="feedback-tmp")["name"] == "feedback-tmp"
    assert daemon.names() == ["feedback-tmp", "seed"]


def test_move_takes_a_note_to_the_other_store_and_leaves_no_copy(daemon: Daemon) -> None:
    daemon.save("note", "An earlier version.")
    saved = daemon.save("note", "Good everywhere.")
    reply = daemon.call("memory.move", name="note", scope="global")
    assert (reply["scope"], reply["was_scope"], reply["hash"]) == ("global", "repo", saved["hash"])
    assert (daemon.global_store / "note.md").exists()
    assert [path.name for path in (daemon.store / "objects").iterdir()] == []
    assert daemon.names() == ["note"]
    assert sorted(copies(daemon, "Good everywhere.")) == sorted(["note.md", saved["hash"].removeprefix("sha256:")])
    assert daemon.call("memory.move", name="note", scope="repo")["scope"] == "repo"
    assert daemon.call("memory.verify") == {"ok": True, "findings": []}


def test_move_takes_over_no_note_of_the_other_store(daemon: Daemon) -> None:
    daemon.save("note", "of the repo")
    daemon.save("note", "of everywhere", scope="global")
    with pytest.raises(memd_client.Refused):
        daemon.call("memory.move", name="note", scope="global")
    assert daemon.call("memory.read", name="note")["text"] == "of the repo"
    with pytest.raises(memd_client.NotFound):
        daemon.call("memory.move", name="nobody", scope="global")


def test_a_move_that_was_cut_short_can_be_made_again(daemon: Daemon) -> None:
    saved = daemon.save("note", "Good everywhere.")
    other = daemon.save("note", "Good everywhere.", scope="global")
    assert saved["hash"] == other["hash"]
    reply = daemon.call("memory.move", name="note", scope="global")
    assert (reply["scope"], reply["was_scope"], reply["hash"]) == ("global", "repo", saved["hash"])
    assert not (daemon.store / "note.md").exists()
    assert (daemon.global_store / "note.md").exists()
    assert daemon.call("memory.verify") == {"ok": True, "findings": []}


def test_what_refuses_first(daemon: Daemon) -> None:
    with daemon.connect() as connection:
        connection.call("session.start", {"session": "child", "cwd": str(daemon.repo), "depth": 1})
        connection.call("session.start", {"session": "root", "cwd": str(daemon.repo), "save_cap": 0})
        for verb, params in (("rebuild", {}), ("reconcile", {"accept": True}), ("import", {"dir": "/nowhere"})):
            with pytest.raises(memd_client.NotRoot):
                connection.call(f"memory.{verb}", {"session": "child"} | params)
            with pytest.raises(memd_client.Refused) as caught:
                connection.call(f"memory.{verb}", {"session": "root"} | params)
            assert caught.value.data["field"] == "session"
        for verb, params in (("restore", {"hash": "0" * 64}), ("rename", {"to": "x"}), ("move", {"scope": "global"})):
            with pytest.raises(memd_client.SaveCap):
                connection.call(f"memory.{verb}", {"session": "root", "name": "nobody"} | params)
            with pytest.raises(memd_client.Refused):
                connection.call(f"memory.{verb}", {"session": "root", "name": " "} | params)


def test_these_verbs_name_notes_exactly(daemon: Daemon) -> None:
    daemon.save("deploy-steps", "words", description="How to deploy")
    asked: list[tuple[str, dict[str, object]]] = [
        ("diff", {}),
        ("restore", {"hash": "0" * 64}),
        ("rename", {"to": "x"}),
        ("move", {"scope": "global"}),
    ]
    for verb, params in asked:
        with daemon.connect() as connection, pytest.raises(memd_client.NotFound):
            connection.call(f"memory.{verb}", {"cwd": str(daemon.repo), "name": "How to deploy"} | params)


# -- import --------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(daemon: Daemon) -> Path:
    """A directory of notes that somebody kept, with what such directories hold."""
    directory = daemon.root / "kept"
    directory.mkdir()
    (directory / "one.md").write_text("---\ndescription: The first\ntype: user\n---\n\nwords of one\n")
    (directory / "two_b.md").write_bytes(b"# Two\r\n\r\nwords of two\r\n")
    (directory / "two-b.md").write_text("# Another two\n\nwords of the other two\n")
    (directory / "secret.md").write_text(f"token {KEY}\n")
    (directory / "fence.md").write_text(BLOCK)
    (directory / "link.md").symlink_to(directory / "one.md")
    os.mkfifo(directory / "pipe.md")
    (directory / "huge.md").write_bytes(b"x" * (2 << 20))
    (directory / "notes.txt").write_text("no note\n")
    (directory / "MEMORY.md").write_text("# Mine\n\n- [The first one](one.md) — in my words\n- [gone](gone.md)\n")
    return directory


def test_import_copies_what_is_a_note_and_names_what_is_not(daemon: Daemon, kept: Path) -> None:
    daemon.save("one", "what was here")
    reply = daemon.call("memory.import", dir=str(kept))
    assert sorted(reply["imported"]) == ["secret", "two-b", "two_b"]
    assert reply["updated"] == ["one"]
    assert {row["file"] for row in reply["skipped"]} == {"fence.md", "link.md", "pipe.md", "huge.md"}
    for name in ("one", "two_b", "two-b", "secret"):
        assert (daemon.store / f"{name}.md").read_bytes() == (kept / f"{name}.md").read_bytes()
    assert ops(daemon, "two_b") == [("adopt", "import")]
    assert ops(daemon, "one") == [("save", "cli"), ("edit", "import")]
    assert "what was here" in daemon.call("memory.diff", name="one")["diff"]
    assert [finding["kind"] for finding in daemon.call("memory.check")["findings"]] == ["secret"]
    again = daemon.call("memory.import", dir=str(kept))
    assert (again["imported"], again["updated"]) == ([], [])
    assert daemon.call("memory.verify")["ok"]


def test_import_takes_the_index_lines_along(daemon: Daemon, kept: Path) -> None:
    daemon.call("memory.import", dir=str(kept))
    rows = (daemon.store / "MEMORY.md").read_text().splitlines()
    assert "- [The first one](one.md) — in my words" in rows
    assert not any("gone" in row for row in rows)
    daemon.call("memory.reconcile")
    assert (daemon.store / "MEMORY.md").read_text().splitlines() == rows


def test_import_can_be_looked_at_first_and_taken_back(daemon: Daemon, kept: Path) -> None:
    was = daemon.save("one", "what was here")["hash"]
    looked = daemon.call("memory.import", dir=str(kept), dry_run=True)
    assert daemon.names() == ["one"]
    done = daemon.call("memory.import", dir=str(kept))
    assert (looked["imported"], looked["updated"]) == (done["imported"], done["updated"])
    daemon.call("memory.restore", name="one", hash=was)
    assert daemon.call("memory.read", name="one")["text"] == "what was here"


def test_import_into_a_repository_without_a_store_can_be_looked_at_first(daemon: Daemon, kept: Path) -> None:
    looked = daemon.call("memory.import", dir=str(kept), dry_run=True)
    assert not daemon.store.exists()
    assert looked["imported"] == daemon.call("memory.import", dir=str(kept))["imported"]


def test_a_name_that_is_not_utf8_spoils_no_import_and_no_list_of_stores(daemon: Daemon, kept: Path) -> None:
    odd = os.fsencode(kept) + b"/odd-\xff.md"
    Path(os.fsdecode(odd)).write_text("words\n")
    daemon.save("one")
    Path(os.fsdecode(os.fsencode(daemon.home) + b"/projects/--odd-\xff--/memory")).mkdir(parents=True)
    reply = daemon.call("memory.import", dir=str(kept))
    assert "odd-\\udcff.md" in {row["file"] for row in reply["skipped"]}
    assert "two_b" in reply["imported"]
    with daemon.connect() as connection:
        keys = [row.get("key") for row in connection.call("store.list")["stores"]]
    assert "--odd-\\udcff--" in keys


def test_diff_splits_lines_where_the_file_does(daemon: Daemon) -> None:
    daemon.save("note", "one\x0cstill one\u2028and on\ntwo")
    daemon.save("note", "one\x0cstill one\u2028and on\nthree")
    diff = daemon.call("memory.diff", name="note")["diff"]
    assert "No newline" not in diff
    assert [line for line in diff.split("\n") if line[:1] in ("+", "-")][2:] == ["-two", "+three"]


def test_import_in_pages_is_the_import_in_one(daemon: Daemon, kept: Path) -> None:
    imported: list[str] = []
    after: str | None = None
    while True:
        page = daemon.call("memory.import", dir=str(kept), limit=2, after=after)
        imported += page["imported"]
        after = page.get("next")
        if after is None:
            break
    assert sorted(imported) == ["one", "secret", "two-b", "two_b"]


@pytest.mark.parametrize("directory", ["relative", "/nowhere", "/dev/null", "/\0", "/nowhere\0"])
def test_import_of_what_is_no_directory_is_refused_without_a_path(daemon: Daemon, directory: str) -> None:
    with pytest.raises(memd_client.Refused) as caught:
        daemon.call("memory.import", dir=directory)
    assert caught.value.data["field"] == "dir"
    assert "nowhere" not in caught.value.message


# -- stores --------------------------------------------------------------------------------------------------


def test_a_moved_repository_gets_its_notes_back(daemon: Daemon) -> None:
    daemon.save("kept", "words of kept")
    daemon.save("clash", "from the old place")
    daemon.save("same", "the same in both")
    old = daemon.store
    moved = daemon.root / "moved"
    shutil.move(daemon.repo, moved)
    daemon.save("clash", "from the new place", cwd=moved)
    daemon.save("same", "the same in both", cwd=moved)
    with daemon.connect() as connection:
        rows = connection.call("store.list", {"cwd": str(moved)})["stores"]
    orphan = next(row for row in rows if not row["current"] and row["scope"] == "repo")
    assert (orphan["notes"], orphan["origin_exists"]) == (3, False)
    looked = daemon.call("store.adopt", cwd=moved, key=orphan["key"], dry_run=True)
    assert len(daemon.names(cwd=moved)) == 2
    reply = daemon.call("store.adopt", cwd=moved, key=orphan["key"])
    assert looked["adopted"] == reply["adopted"] == ["clash-2", "kept"]
    assert (looked["origin_exists"], reply["origin_exists"]) == (False, False)
    assert (reply["renamed"], reply["identical"], reply["left"]) == ({"clash": "clash-2"}, ["same"], 0)
    assert daemon.call("memory.read", cwd=moved, name="clash-2")["text"] == "from the old place"
    assert [path.name for path in old.glob("*.md") if path.name != "MEMORY.md"] == []
    assert list((old / "objects").iterdir()) == []
    records = daemon.call("memory.log", cwd=moved, name="kept")["records"]
    assert [(record["op"], record["by"]) for record in records] == [("adopt", "store")]
    daemon.call("memory.forget", cwd=moved, name="kept")
    assert copies(daemon, "words of kept") == []
    assert daemon.call("memory.verify", cwd=moved)["ok"]


def test_a_repository_that_is_still_there_is_told_of(daemon: Daemon) -> None:
    daemon.save("kept")
    other = daemon.root / "other"
    (other / ".git").mkdir(parents=True)
    for dry_run in (True, False):
        assert daemon.call("store.adopt", cwd=other, key=daemon.store.parent.name, dry_run=dry_run)["origin_exists"]
    assert daemon.names() == []
    assert daemon.names(cwd=other) == ["kept"]


def test_two_stores_that_adopt_each_other_at_once_lose_nothing(daemon: Daemon) -> None:
    other = daemon.root / "other"
    (other / ".git").mkdir(parents=True)
    for number in range(10):
        for place in (daemon.repo, other):
            daemon.save(f"n{number}", "the same in both", cwd=place)
    keys = {daemon.repo: daemon.store.parent.name, other: daemon.store_of(other).parent.name}
    pairs = [(daemon.repo, keys[other]), (other, keys[daemon.repo])]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda pair: daemon.call("store.adopt", cwd=pair[0], key=pair[1]), pairs))
    assert len({*daemon.names(), *daemon.names(cwd=other)}) == 10


@pytest.mark.parametrize("key", ["nobody", "..", ".", "", "a/b", "../../etc", "\0"])
def test_a_store_that_is_not_there_is_not_found(daemon: Daemon, key: str) -> None:
    daemon.save("here")
    with pytest.raises(memd_client.NotFound):
        daemon.call("store.adopt", key=key)


def test_a_repository_does_not_adopt_its_own_store(daemon: Daemon) -> None:
    daemon.save("here")
    with pytest.raises(memd_client.Refused):
        daemon.call("store.adopt", key=daemon.store.parent.name)
    assert daemon.names() == ["here"]


# -- row 7: nothing cleans up behind a person's back -----------------------------------------------------------


def test_row_7_what_touches_many_notes_is_shown_first_and_journaled_note_by_note(daemon: Daemon, kept: Path) -> None:
    for number in range(4):
        daemon.save(f"n{number}", f"words of n{number}")
    for number in range(4):
        (daemon.store / f"n{number}.md").unlink()
    until((daemon.store / ".suspended").exists)
    before = {path.name: path.read_bytes() for path in daemon.store.iterdir() if path.is_file()}
    assert daemon.call("memory.rebuild", dry_run=True)["repo"]["restored"] == 4
    assert daemon.call("memory.reconcile", accept=True, dry_run=True)["repo"]["forgotten"] == 4
    assert {path.name: path.read_bytes() for path in daemon.store.iterdir() if path.is_file()} == before
    assert daemon.call("memory.rebuild")["repo"]["restored"] == 4
    daemon.call("memory.import", dir=str(kept))
    for number in range(4):
        (daemon.store / f"n{number}.md").unlink()
    daemon.call("memory.reconcile", accept=True)
    for number in range(4):
        assert ops(daemon, f"n{number}") == [("save", "cli"), ("forget", "hand")]
    for name in ("one", "two_b", "two-b", "secret"):
        assert ops(daemon, name) == [("adopt", "import")]


# -- rpc.discover --------------------------------------------------------------------------------------------


def test_the_openrpc_document_describes_every_verb_and_what_it_answers(daemon: Daemon) -> None:
    with daemon.connect() as connection:
        document = connection.call("rpc.discover")
    methods = {method["name"]: method for method in document["methods"]}
    assert {"memory.save", "memory.diff", "store.adopt", "daemon.hello"} <= methods.keys()
    schemas = document["components"]["schemas"]
    daemon.save("note", "one")
    daemon.save("note", "two")
    asked: dict[str, dict[str, object]] = {
        "memory.search": {"query": "one"},
        "memory.read": {"name": "note"},
        "memory.list": {"bodies": True},
        "memory.log": {},
        "memory.show": {"name": "note"},
        "memory.diff": {"name": "note"},
        "memory.stats": {},
        "memory.check": {},
        "memory.verify": {},
        "memory.reconcile": {},
        "memory.rebuild": {},
        "memory.rename": {"name": "note", "to": "renamed"},
        "memory.move": {"name": "renamed", "scope": "global"},
        "memory.forget": {"name": "renamed"},
    }
    for name, params in asked.items():
        with daemon.connect() as connection:
            reply = connection.call(name, {"cwd": str(daemon.repo)} | params)
        schema = schemas[methods[name]["result"]["schema"]["$ref"].rpartition("/")[2]]
        assert set(schema["required"]) <= reply.keys() <= schema["properties"].keys(), name
        assert {param["name"] for param in methods[name]["params"]} >= params.keys()
