"""The verbs against a running daemon: what SPEC 7 promises a caller, and what SPEC 3 refuses."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memd_client
from support.daemon import Daemon, running_daemon
from support.waiting import until

REFUSALS = json.loads((Path(__file__).parents[1] / "cases" / "refusals.json").read_text())
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"


@pytest.fixture(scope="module")
def refusing() -> Iterator[Daemon]:
    """One daemon for all refusals, which must leave it as it was."""
    with running_daemon() as running:
        running.save("there-before", "words")
        yield running


def snapshot(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, by its path within it."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_saved_note_is_a_file_a_row_a_count_and_a_record(daemon: Daemon) -> None:
    reply = daemon.save("scratch-space", "Never scratch in /tmp.", description="Build host /tmp is RAM")
    assert reply["name"] == "scratch-space"
    assert reply["scope"] == "repo"
    assert reply["updated"] is False
    assert reply["pointer"] == {"op": "save", "name": "scratch-space", "scope": "repo", "hash": reply["hash"]}
    block = 'name: scratch-space\ndescription: "Build host /tmp is RAM"\ntype: project\n'
    text = f"---\n{block}---\n\nNever scratch in /tmp.\n"
    assert (daemon.store / "scratch-space.md").read_text() == text
    assert (
        daemon.store / "MEMORY.md"
    ).read_text() == "- [scratch-space](scratch-space.md) — Build host /tmp is RAM\n"
    usage = json.loads((daemon.store / "usage.json").read_text())
    assert usage["notes"]["scratch-space"]["saves"] == 1
    record = json.loads((daemon.store / "ops.jsonl").read_text())
    assert (record["op"], record["by"], record["hash"]) == ("save", "cli", reply["hash"])
    assert (daemon.store / "objects" / reply["hash"].removeprefix("sha256:")).read_text() == text
    assert (daemon.store / ".origin").read_text() == f"{daemon.repo}\n"


def test_everything_memd_makes_is_closed_to_others(daemon: Daemon) -> None:
    daemon.save("a")
    made = [daemon.home, *daemon.home.rglob("*")]
    open_to_others = [path for path in made if path.stat().st_mode & 0o077 and not path.is_socket()]
    assert open_to_others == []
    assert daemon.socket.stat().st_mode & 0o077 == 0


def test_read_counts_and_answers_by_name_slug_label_and_hook(daemon: Daemon) -> None:
    daemon.save("deploy-steps", "Tag first.", description="How to deploy")
    for name in ("deploy-steps", "Deploy Steps", "how to DEPLOY", "deploy-steps.md"):
        reply = daemon.call("memory.read", name=name)
        assert (reply["name"], reply["text"], reply["warnings"]) == ("deploy-steps", "Tag first.", [])
    usage = json.loads((daemon.store / "usage.json").read_text())
    assert usage["notes"]["deploy-steps"]["reads"] == 4
    assert [record["op"] for record in daemon.call("memory.log")["records"]] == ["read"] * 4 + ["save"]


def test_read_of_a_name_nobody_has_opens_the_nearest_and_says_so(daemon: Daemon) -> None:
    daemon.save("deploy-steps", "Tag first, then deploy.")
    daemon.save("unrelated", "Nothing of the kind.")
    reply = daemon.call("memory.read", name="deploy the thing")
    assert reply["name"] == "deploy-steps"
    opened = "no note has that name or hook · opened deploy-steps, the closest of 1 by memory.search"
    ranking = 'memory.search("deploy the thing", limit=1) for the ranking'
    assert reply["warnings"] == [f"[{opened} · {ranking}]"]
    with pytest.raises(memd_client.NotFound):
        daemon.call("memory.read", name="zebra")
    with pytest.raises(memd_client.NotFound):
        daemon.call("memory.forget", name="deploy the thing")


def test_a_cut_search_says_how_to_get_the_rest(daemon: Daemon) -> None:
    for number in range(7):
        daemon.save(f"fact-{number}", "about whales")
    page = daemon.call("memory.search", query="whales")
    assert len(page["hits"]) == 5
    assert page["total"] == 7
    assert page["notice"] == '[5 of 7 notes · limit 5 · memory.search("whales", limit=7) for all]'
    rest = daemon.call("memory.search", query="whales", offset=5)
    assert [hit["name"] for hit in rest["hits"]] == ["fact-5", "fact-6"]
    assert "notice" not in rest


def test_both_stores_are_one_corpus_and_a_repo_note_shadows(daemon: Daemon) -> None:
    daemon.save("twin", "repo words", scope="repo")
    daemon.save("twin", "global words", scope="global")
    assert (daemon.global_store / "twin.md").exists()
    rows = daemon.call("memory.list")["notes"]
    assert [(row["name"], row["scope"], row["shadowed"]) for row in rows] == [
        ("twin", "repo", False),
        ("twin", "global", True),
    ]
    assert daemon.call("memory.read", name="twin")["text"] == "repo words"
    assert daemon.call("memory.read", name="twin", scope="global")["text"] == "global words"
    assert [hit["scope"] for hit in daemon.call("memory.search", query="words")["hits"]] == ["repo", "global"]


def test_expect_swaps_only_over_what_was_seen(daemon: Daemon) -> None:
    first = daemon.save("note", "one")
    fields = {"name": "note", "type": "project", "description": "About note"}
    with pytest.raises(memd_client.Conflict) as caught:
        daemon.call("memory.save", markdown="two", fields=fields, expect=None)
    assert caught.value.data["hash"] == first["hash"]
    with pytest.raises(memd_client.Conflict):
        daemon.call("memory.save", markdown="two", fields=fields, expect="sha256:" + "0" * 64)
    with pytest.raises(memd_client.Refused) as refused:
        daemon.call("memory.save", markdown="two", fields=fields, expect="not a hash")
    assert refused.value.data["field"] == "expect"
    bare = first["hash"].removeprefix("sha256:")
    second = daemon.call("memory.save", markdown="two", fields=fields, expect=bare)
    assert second["updated"] is True
    daemon.call("memory.save", markdown="three", fields=fields, expect="exists")
    with pytest.raises(memd_client.Conflict) as missing:
        daemon.call("memory.save", markdown="new", fields=fields | {"name": "other"}, expect="exists")
    assert missing.value.data["hash"] is None


@pytest.mark.parametrize("case", [case for case in REFUSALS if case["refused"]], ids=lambda case: case["refused"])
def test_every_refusal_names_its_field_and_changes_nothing(refusing: Daemon, case: dict[str, object]) -> None:
    before = snapshot(refusing.home)
    with pytest.raises(memd_client.Refused) as caught:
        refusing.call("memory.save", markdown=case["markdown"], fields=case["fields"])
    assert caught.value.message.startswith("memory.save: ")
    assert caught.value.data["kind"] == "refused"
    assert caught.value.data["field"] == case["refused"]
    assert {"bound", "got"} <= caught.value.data.keys()
    assert snapshot(refusing.home) == before


def test_a_hook_that_nearly_repeats_another_notes_is_saved_with_a_warning(daemon: Daemon) -> None:
    daemon.save("first", description="Never run the full suite on battery power", scope="global")
    daemon.save("unlike", description="The full story of the battery plant")
    reply = daemon.save("second", description="Never run the full test suite on battery power")
    assert [warning for warning in reply["warnings"] if "first" in warning and "global" in warning] == reply[
        "warnings"
    ]
    assert len(reply["warnings"]) == 1
    assert daemon.save("second", "again", description="Never run the full test suite on battery power")["warnings"]
    assert daemon.save("third", description="Something else entirely")["warnings"] == []


def test_show_gives_any_version_exactly(daemon: Daemon) -> None:
    first = daemon.save("note", "one")
    second = daemon.save("note", "two")
    now = daemon.call("memory.show", name="note")
    assert (now["hash"], now["current"], now["markdown"].endswith("\ntwo\n")) == (second["hash"], True, True)
    then = daemon.call("memory.show", name="note", hash=first["hash"])
    assert (then["hash"], then["current"], then["markdown"].endswith("\none\n")) == (first["hash"], False, True)
    with pytest.raises(memd_client.NotFound):
        daemon.call("memory.show", name="note", hash="0" * 64)


def test_a_key_in_a_hand_edit_is_kept_named_and_masked(daemon: Daemon) -> None:
    daemon.save("note", "words")
    (daemon.store / "note.md").write_text(f"---\ndescription: token {KEY}\ntype: user\n---\n\nuse {KEY} now\n")
    daemon.call("memory.reconcile")
    read = daemon.call("memory.read", name="note")
    assert (read["text"], read["redacted"]) == ("use [redacted] now", True)
    assert read["description"] == "token [redacted]"
    assert daemon.call("memory.search", query="token")["hits"][0]["description"] == "token [redacted]"
    assert daemon.call("memory.list", bodies=True)["notes"][0]["body"] == "use [redacted] now"
    assert KEY in daemon.call("memory.show", name="note")["markdown"]
    findings = daemon.call("memory.check")["findings"]
    assert ("secret", "note.md", 2) in {
        (finding["kind"], finding["file"], finding.get("line")) for finding in findings
    }
    assert KEY not in json.dumps(findings)
    with pytest.raises(memd_client.Refused) as caught:
        daemon.save("note", "use [redacted] now")
    assert caught.value.data["field"] == "text"


def test_check_names_what_is_wrong_by_file_and_line(daemon: Daemon) -> None:
    daemon.save("fine")
    (daemon.store / "broken.md").write_text('---\ndescription: "never ends\ntype: user\n---\n\nbody\n')
    (daemon.store / "link.md").symlink_to(daemon.store / "fine.md")
    (daemon.store / "folder.md").mkdir()
    (daemon.store / "huge.md").write_bytes(b"x" * (1 << 20) + b"y")
    daemon.call("memory.reconcile")
    findings = daemon.call("memory.check")["findings"]
    kinds = {(finding["kind"], finding.get("file"), finding.get("line")) for finding in findings}
    assert kinds == {
        ("unparsed", "broken.md", 2),
        ("symlink", "link.md", None),
        ("unreadable", "folder.md", None),
        ("oversize", "huge.md", None),
    }
    assert str(daemon.root) not in json.dumps(findings)


def test_a_reconcile_waits_for_everything_that_is_not_yet_quiet(daemon: Daemon) -> None:
    for name in ("one", "two", "three"):
        daemon.save(name)
    (daemon.store / "one.md").unlink()
    (daemon.store / "new.md").write_text("just written")
    (daemon.store / "newer.md").write_text("")
    taken = daemon.call("memory.reconcile")["repo"]
    assert (taken["adopted"], taken["forgotten"]) == (2, 1)
    assert daemon.names() == ["new", "newer", "three", "two"]


def test_a_note_that_does_not_read_leaves_the_list_of_the_others(daemon: Daemon) -> None:
    daemon.save("fine", "words")
    daemon.save("grown", "words")
    with (daemon.store / "grown.md").open("a") as file:  # in place: the directory tells nothing of it
        file.write("x" * (1 << 20))
    listed = daemon.call("memory.list", bodies=True)
    assert [(row["name"], row["body"]) for row in listed["notes"]] == [("fine", "words")]
    assert listed["total"] == 1


def test_a_listed_body_is_of_the_hash_beside_it(daemon: Daemon) -> None:
    daemon.save("note", "words")
    (daemon.store / "note.md").write_text("---\ndescription: another hook\n---\n\nother words\n")
    (row,) = daemon.call("memory.list", bodies=True)["notes"]
    shown = daemon.call("memory.show", name="note")
    assert (row["body"], row["description"], row["hash"]) == ("other words", "another hook", shown["hash"])


def test_the_notice_of_a_cut_list_tells_the_call_for_the_rest(daemon: Daemon) -> None:
    for name in ("one", "two", "three"):
        daemon.save(name)
    daemon.save("one", "again")
    notice = daemon.call("memory.list", limit=1, offset=1)["notice"]
    assert notice == "[1 of 3 notes · limit 1 · offset 2 for the page after it]"
    notice = daemon.call("memory.log", limit=1, name="one", since=1)["notice"]
    assert notice == '[1 of 2 records · limit 1 · memory.log("one", limit=2, since=1.0) for all]'
    notice = daemon.call("memory.log", limit=1)["notice"]
    assert notice == "[1 of 4 records · limit 1 · memory.log(limit=4) for all]"
    notice = daemon.call("memory.log", limit=1, scope="repo", reads=False)["notice"]
    assert notice == '[1 of 4 records · limit 1 · memory.log(limit=4, scope="repo", reads=false) for all]'


def test_a_log_may_be_of_one_store_and_leave_out_what_was_only_read(daemon: Daemon) -> None:
    daemon.save("here")
    daemon.save("everywhere", scope="global")
    daemon.call("memory.read", name="here")

    def told(**params: Any) -> list[tuple[str, str]]:
        return [(record["op"], record["name"]) for record in daemon.call("memory.log", **params)["records"]]

    assert told(scope="repo") == [("read", "here"), ("save", "here")]
    assert told(scope="global") == [("save", "everywhere")]
    assert sorted(told(reads=False)) == [("save", "everywhere"), ("save", "here")]


def test_stats_count_notes_saves_and_reads(daemon: Daemon) -> None:
    daemon.save("a")
    daemon.save("a", "again")
    daemon.save("b", scope="global")
    daemon.call("memory.read", name="a")
    stats = daemon.call("memory.stats")
    assert (stats["repo"]["notes"], stats["repo"]["saves"], stats["repo"]["reads"]) == (1, 2, 1)
    assert (stats["global"]["notes"], stats["global"]["saves"]) == (1, 1)


def test_a_rebuild_brings_back_what_was_deleted_behind_its_back(daemon: Daemon) -> None:
    for name in ("one", "two", "three", "four"):
        daemon.save(name, f"the words of {name}")
    before = {path.name: path.read_bytes() for path in daemon.store.glob("*.md")}
    for path in daemon.store.glob("*.md"):
        if path.name != "MEMORY.md":
            path.unlink()
    assert daemon.call("memory.reconcile")["repo"]["suspended"] is True
    with pytest.raises(memd_client.Suspended):
        daemon.save("five")
    assert sorted(daemon.found("words")) == ["four", "one", "three", "two"]
    assert daemon.call("memory.read", name="one")["text"] == "the words of one"
    rebuilt = daemon.call("memory.rebuild")
    assert (rebuilt["ok"], rebuilt["repo"]["restored"]) == (True, 4)
    assert {path.name: path.read_bytes() for path in daemon.store.glob("*.md")} == before
    daemon.save("five")


def test_accept_lets_the_deletions_of_a_suspended_store_happen(daemon: Daemon) -> None:
    for name in ("one", "two", "three"):
        daemon.save(name, f"the words of {name}")
        (daemon.store / f"{name}.md").unlink()
    accepted = daemon.call("memory.reconcile", accept=True)["repo"]
    assert (accepted["forgotten"], accepted["suspended"]) == (3, False)
    assert list((daemon.store / "objects").iterdir()) == []


def test_an_agent_may_not_do_what_is_a_persons(daemon: Daemon) -> None:
    persons: dict[str, dict[str, object]] = {
        "memory.rebuild": {},
        "memory.reconcile": {"accept": True},
        "memory.import": {"dir": "/"},
        "store.adopt": {"key": "any"},
    }
    with daemon.connect() as connection:
        connection.call("session.start", {"session": "root", "cwd": str(daemon.repo)})
        connection.call("session.start", {"session": "child", "cwd": str(daemon.repo), "depth": 1})
        for verb, params in persons.items():
            for session in ("root", "nobody"):
                with pytest.raises(memd_client.Refused) as caught:
                    connection.call(verb, {"session": session} | params)
                assert caught.value.data["field"] == "session"
            with pytest.raises(memd_client.NotRoot):
                connection.call(verb, {"session": "child"} | params)


@pytest.mark.parametrize("params", [{}, {"cwd": "/", "session": "s"}])
def test_a_request_names_exactly_one_place(daemon: Daemon, params: dict[str, str]) -> None:
    with daemon.connect() as connection, pytest.raises(memd_client.InvalidParams):
        connection.call("memory.list", params)


def test_a_kill_loses_nothing_that_was_acknowledged(daemon: Daemon) -> None:
    for number in range(20):
        daemon.save(f"note-{number}", "kept")
    daemon.kill()
    daemon.start()
    assert len(daemon.names()) == 20
    assert daemon.call("memory.verify") == {"ok": True, "findings": []}


def test_sigterm_ends_within_two_seconds_and_takes_its_socket(daemon: Daemon) -> None:
    daemon.save("a")
    with daemon.connect() as idle:
        idle.call("daemon.hello")
        assert daemon.terminate() == 0
    assert not daemon.socket.exists()
    daemon.start()
    assert daemon.names() == ["a"]


def test_stop_answers_and_ends(daemon: Daemon) -> None:
    with daemon.connect() as connection:
        assert connection.call("daemon.stop") == {"stopping": True}
    assert daemon.process is not None
    assert daemon.process.wait(20) == 0


def test_a_second_daemon_says_who_runs_and_leaves(daemon: Daemon) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "memd"],
        env=daemon.env,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert second.returncode == 0
    assert daemon.process is not None
    assert str(daemon.process.pid) in second.stderr
    assert daemon.answers()


def test_the_log_holds_no_note_text(daemon: Daemon) -> None:
    daemon.save("note", "the very secret words", description="hook words")
    with pytest.raises(memd_client.Refused):
        daemon.save("other", f"token {KEY}")
    daemon.call("memory.search", query="secret words")
    daemon.terminate()
    assert daemon.log
    for word in ("secret words", "hook words", KEY):
        assert word not in daemon.log


def test_a_deleted_file_is_never_served(daemon: Daemon) -> None:
    daemon.save("gone", "about the moon")
    daemon.save("stays", "about the moon")
    (daemon.store / "gone.md").unlink()
    assert daemon.found("moon") == ["stays"]
    with pytest.raises(memd_client.NotFound):
        daemon.call("memory.read", name="gone", scope="repo")
    assert daemon.names() == ["stays"]
    until(lambda: daemon.call("memory.reconcile")["repo"]["forgotten"] == 1)
    assert [record["op"] for record in daemon.call("memory.log", name="gone")["records"]] == ["forget", "save"]


def test_more_notes_than_a_reply_holds_are_listed_whole(daemon: Daemon) -> None:
    daemon.store.mkdir(parents=True)
    names = [f"n{number:02}" for number in range(11)]
    for name in names:
        (daemon.store / f"{name}.md").write_text(f"---\nname: {name}\ntype: user\n---\n\n{name}\n{'x' * 900_000}\n")
    with pytest.raises(memd_client.errors.TooLarge):
        daemon.call("memory.list", bodies=True)
    rows = "(f'{len(row[\"body\"])}-{row[\"name\"]}' for row in memory.sync.list_memory()['notes'])"
    program = f"import memory; print(*{rows})"
    told = subprocess.run(
        [sys.executable, "-c", program], env=daemon.env, cwd=daemon.repo, capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == [f"900004-{name}" for name in names]
