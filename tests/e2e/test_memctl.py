"""memctl against a real daemon: the first day, starting and stopping by hand, versions, arrivals and moves."""

import json
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.journal import Record, encode, records, seal
from support.client_home import client_home
from support.daemon import Daemon, running_daemon
from support.fake_daemon import FakeDaemon, result
from support.memctl_program import Ran, command, memctl, memctl_env, memctl_on_terminal


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with client_home() as env:
        try:
            yield env
        finally:
            memctl(env, "stop")


@pytest.fixture
def repo(env: dict[str, str]) -> Path:
    path = Path(env["MEMD_HOME"]).parent / "repo"
    (path / ".git").mkdir(parents=True)
    return path


def test_a_start_means_it_whatever_the_environment_says(env: dict[str, str]) -> None:
    assert memctl(env, "list").code == 5
    started = memctl(env, "start")
    assert (started.code, started.err) == (0, "")
    pid = json.loads(memctl(env, "status", "--json").out)["pid"]
    assert started.out == f"memd 0.1.0 started · pid {pid}\n"
    assert memctl(env, "start").out == f"memd 0.1.0 runs already · pid {pid}\n"


def test_after_a_stop_the_home_is_free_at_once(env: dict[str, str]) -> None:
    pids = set()
    for _ in range(5):
        assert memctl(env, "start").code == 0
        pids.add(json.loads(memctl(env, "version", "--json").out)["daemon"]["pid"])
        assert memctl(env, "stop").out.startswith("memd 0.1.0 stopped")
        assert memctl(env, "status").code == 5
    assert len(pids) == 5


def test_the_first_day(env: dict[str, str], repo: Path) -> None:
    env = {**env, "MEMD_NO_AUTOSTART": ""}
    hook = "Buildhost /tmp is RAM; never scratch there"
    saved = memctl(env, "save", "--type", "feedback", "--description", hook, stdin=b"Use /var/tmp.\n", cwd=repo)
    assert saved.out == "saved buildhost-tmp-is-ram-never · repo\n"
    name = "buildhost-tmp-is-ram-never"
    assert memctl(env, "search", "scratch", "tmp", cwd=repo).out == f"{name} · repo — {hook}\n"
    assert memctl(env, "search", "scratches", "--ranker", "plain", cwd=repo).out == ""
    explained = memctl(env, "search", "scratches", "--explain", cwd=repo).out.splitlines()
    assert [line.split()[1:] for line in explained[1:]] == [["hook", "scratches", "as", "scratch", "form"]]
    assert memctl(env, "list", cwd=repo / ".git").out == f"{name}\tfeedback\trepo\t{hook}\n"
    text = memctl(env, "show", name, cwd=repo).out
    assert text.endswith("\n---\n\nUse /var/tmp.\n")
    record = memctl(env, "log", cwd=repo).out.split("\t")
    assert record[1:5] == ["you", "save", name, "repo"]
    assert memctl(env, "show", name, "--hash", record[5][7:15], cwd=repo).out == text
    assert memctl(env, "-C", str(repo), "forget", name, "--yes").out == (
        f"forgot {name} · repo — 1 version, {len(text.encode())} bytes; no copy left\n"
    )
    assert memctl(env, "list", cwd=repo).out == ""


def test_a_save_over_another_version_is_4(env: dict[str, str], repo: Path) -> None:
    env = {**env, "MEMD_NO_AUTOSTART": ""}
    arguments = ("save", "--type", "user", "--description", "one", "--expect", "null")
    assert memctl(env, *arguments, cwd=repo).code == 0
    ran = memctl(env, *arguments, "--json", cwd=repo)
    assert (ran.code, ran.out) == (4, "")
    assert json.loads(ran.err)["data"]["kind"] == "conflict"


def test_a_hook_names_a_note_to_forget_and_the_answer_decides(env: dict[str, str], repo: Path) -> None:
    env = {**env, "MEMD_NO_AUTOSTART": "", "NO_COLOR": "1"}
    memctl(env, "save", "--name", "n", "--type", "user", "--description", "The hook", cwd=repo)
    asked = memctl_on_terminal(env, "-C", str(repo), "forget", "the hook", typed="n\n")
    assert asked.code == 1
    assert asked.err.startswith("n · repo — The hook\nwith 1 version, for good\nForget it?")
    assert memctl_on_terminal(env, "-C", str(repo), "forget", "the hook", typed="y\n").code == 0
    assert memctl(env, "show", "n", cwd=repo).code == 3


# -- versions, names and stores that change

FILES = 1200


def run(daemon: Daemon, *arguments: str, cwd: Path | None = None) -> Ran:
    """memctl in pipes, in the repository or in `cwd`."""
    return memctl(daemon.env, *arguments, cwd=cwd or daemon.repo)


def run_on_terminal(daemon: Daemon, *arguments: str, typed: str = "") -> Ran:
    """memctl on a terminal, in the repository."""
    return memctl_on_terminal({**daemon.env, "NO_COLOR": "1"}, "-C", str(daemon.repo), *arguments, typed=typed)


def ops(daemon: Daemon, name: str) -> list[tuple[str, str | None]]:
    """Who did what to a note, oldest first."""
    records = daemon.call("memory.log", name=name, limit=1000)["records"]
    return [(record["op"], record.get("by")) for record in reversed(records)]


def test_an_edit_is_seen_and_taken_back_by_what_log_prints(daemon: Daemon) -> None:
    daemon.save("disk", "Use /var/tmp.")
    daemon.save("disk", "Use /scratch.")
    on_terminal = run_on_terminal(daemon, "log", "disk").out.splitlines()
    second, first = (line.split()[-1] for line in on_terminal[1:])
    assert [line for line in run(daemon, "diff", "disk").out.splitlines()[3:] if line[0] in "+-"] == [
        "-Use /var/tmp.",
        "+Use /scratch.",
    ]
    assert run(daemon, "restore", "disk", first).out == "restored disk · repo — About disk\n"
    assert daemon.call("memory.read", name="disk")["text"] == "Use /var/tmp."
    assert ops(daemon, "disk")[:3] == [("save", "cli"), ("save", "cli"), ("save", "restore")]
    assert run(daemon, "diff", "disk", "--from", first).err == "no difference\n"
    assert "+Use /var/tmp." in run(daemon, "diff", "disk", "--from", second).out
    assert run(daemon, "restore", "disk", second).code == 0
    assert daemon.call("memory.read", name="disk")["text"] == "Use /scratch."
    assert run(daemon, "restore", "disk", "00000000").code == 3


def test_a_note_gets_another_name_and_another_store(daemon: Daemon) -> None:
    daemon.save("old", "words")
    daemon.save("taken")
    assert run(daemon, "rename", "old", "taken").code == 4
    assert run(daemon, "rename", "old", "New Name").out == "renamed old → new-name · repo\n"
    assert run(daemon, "move", "new-name", "global").out == "moved new-name · repo → global\n"
    assert run(daemon, "list", "--scope", "global").out == "new-name\tproject\tglobal\tAbout old\n"
    assert run(daemon, "move", "new-name", "global").code == 3
    missing = run(daemon, "rename", "old", "x")
    assert (missing.code, missing.err.splitlines()[-1]) == (3, "try: memctl search old")


@pytest.fixture
def kept(daemon: Daemon) -> Path:
    """A directory of so many notes that they come in three pages, and one that is none."""
    directory = daemon.root / "kept"
    directory.mkdir()
    for number in range(FILES):
        (directory / f"n{number:04}.md").write_text(f"# Hook {number}\n\nbody of {number}\n")
    (directory / "fence.md").write_text("<<<yi-external 0123\n")
    (directory / "MEMORY.md").write_text("- [Mine](n0700.md) — in my words\n")
    return directory


def store_of(directory: Path) -> dict[str, bytes]:
    """The notes of a store and their index, byte for byte."""
    return {file.name: file.read_bytes() for file in directory.glob("*.md")}


def test_a_directory_is_imported_in_pages_after_a_yes(daemon: Daemon, kept: Path) -> None:
    was = daemon.save("n0001", "what was here")["hash"]
    shown = run(daemon, "import", str(kept), "--dry-run")
    assert (shown.code, len(shown.out.splitlines())) == (0, FILES + 1)
    assert shown.out.startswith("update\tn0001\nskip\tfence.md: it holds the fence of a recalled block\n")
    assert run_on_terminal(daemon, "import", str(kept), typed="n\n").code == 1
    assert daemon.names() == ["n0001"]
    done = run_on_terminal(daemon, "import", str(kept), typed="y\n")
    assert (done.code, done.out.splitlines()) == (
        0,
        [
            f"repo: {FILES - 1:,} imported · 1 updated · 1 skipped · 0 identical",
            "updated  n0001",
            "skipped  fence.md: it holds the fence of a recalled block",
        ],
    )
    assert store_of(daemon.store).keys() == {file.name for file in kept.iterdir()} - {"fence.md"}
    assert all((daemon.store / file.name).read_bytes() == file.read_bytes() for file in kept.glob("n*.md"))
    assert "- [Mine](n0700.md) — in my words" in (daemon.store / "MEMORY.md").read_text().splitlines()
    assert run(daemon, "restore", "n0001", was).code == 0
    assert daemon.call("memory.read", name="n0001")["text"] == "what was here"
    assert run(daemon, "verify").code == 0


@pytest.mark.parametrize("is_carried_out", [False, True], ids=["before", "after"])
def test_an_import_whose_memctl_dies_in_the_middle_is_run_again(
    daemon: Daemon, kept: Path, is_carried_out: bool
) -> None:
    """It dies while it waits for the second page, which the daemon gets or does not get."""
    waits, over = threading.Event(), threading.Event()

    def between(request: dict[str, Any]) -> bytes:
        with daemon.connect() as connection:
            if "after" not in request["params"]:
                return result(request, connection.call(request["method"], request["params"]))
            reply = connection.call(request["method"], request["params"]) if is_carried_out else {}
        waits.set()
        assert over.wait(20)
        return result(request, reply)

    env = {**daemon.env, "MEMD_SOCKET": str(daemon.home / "run" / "between.sock")}
    with FakeDaemon(env["MEMD_SOCKET"], between):
        importing = subprocess.Popen(command("import", str(kept)), env=memctl_env(env), cwd=daemon.repo)
        assert waits.wait(20)
        importing.kill()
        importing.wait(20)
        over.set()
    there = 1000 if is_carried_out else 500
    assert len(daemon.names()) == there - 1
    again = run(daemon, "import", str(kept), "--json")
    reply = json.loads(again.out)
    assert (again.code, len(reply["imported"]), reply["updated"], reply["total"]) == (
        0,
        FILES + 1 - there,
        [],
        FILES + 1,
    )
    other = daemon.root / "other"
    (other / ".git").mkdir(parents=True)
    assert run(daemon, "import", str(kept), cwd=other).out.startswith(f"repo: {FILES:,} imported · ")
    assert store_of(daemon.store) == store_of(daemon.store_of(other))
    assert {tuple(ops(daemon, f"n{number:04}")) for number in (0, 498, 499, 998, 999, 1199)} == {
        (("adopt", "import"),)
    }
    assert len(daemon.call("memory.log", limit=10000)["records"]) == FILES
    assert run(daemon, "verify").code == 0


def test_the_notes_of_a_moved_repository_come_along(daemon: Daemon) -> None:
    daemon.save("kept", "words of kept")
    daemon.save("clash", "from the old place")
    moved = daemon.root / "moved here"
    shutil.move(daemon.repo, moved)
    daemon.save("clash", "from the new place", cwd=moved)
    listed = run(daemon, "stores", cwd=moved)
    rows = [line.split("\t") for line in listed.out.splitlines()]
    assert [row[1:] for row in rows] == [
        ["notes", "origin", "mark"],
        ["1", "there", "current"],
        ["2", "gone", "orphan"],
    ]
    hint = shlex.split(listed.err.splitlines()[-1])
    assert hint[:2] == ["memctl", "adopt"]
    assert run(daemon, *hint[1:], "--dry-run", cwd=moved).out == "adopt\tclash-2\twas clash\nadopt\tkept\t\n"
    assert daemon.names(cwd=moved) == ["clash"]
    adopted = run(daemon, *hint[1:], cwd=moved)
    assert (adopted.code, adopted.err) == (0, "")
    assert adopted.out == "repo: 2 adopted · 0 identical · 0 left behind\nadopted\tclash-2\twas clash\n"
    assert run(daemon, "show", "clash-2", cwd=moved).out.endswith("\nfrom the old place\n")
    after = run(daemon, "stores", cwd=moved)
    assert (after.out.splitlines()[-1].split("\t")[1:], after.err) == (["0", "gone", "orphan"], "")
    own = after.out.splitlines()[1].split("\t")[0]
    assert run(daemon, "adopt", own, cwd=moved).code == 4
    assert run(daemon, "adopt", "--nobody--", cwd=moved).code == 3


def test_what_touches_many_notes_asks_a_person_first(daemon: Daemon) -> None:
    names = [f"n{number}" for number in range(4)]
    for name in names:
        daemon.save(name, f"words of {name}")
    for name in names:
        (daemon.store / f"{name}.md").unlink()
    assert run(daemon, "reconcile").code == 4
    asked = run_on_terminal(daemon, "rebuild", typed="n\n")
    assert (asked.code, "repo: 4 live · 4 to restore · 0 forgotten" in asked.err) == (1, True)
    asked = run_on_terminal(daemon, "reconcile", "--accept", typed="\n")
    assert (asked.code, "repo: 0 to adopt · 0 to edit · 4 to forget" in asked.err) == (1, True)
    assert list(daemon.store.glob("n*.md")) == []
    assert {tuple(ops(daemon, name)) for name in names} == {(("save", "cli"),)}
    assert run_on_terminal(daemon, "rebuild", typed="y\n").code == 0
    assert daemon.names() == names
    for name in names:
        (daemon.store / f"{name}.md").unlink()
    assert run_on_terminal(daemon, "reconcile", "--accept", typed="y\n").code == 0
    assert {tuple(ops(daemon, name)) for name in names} == {(("save", "cli"), ("forget", "hand"))}


def test_a_journal_too_long_for_one_answer_keeps_nobody_from_it() -> None:
    with running_daemon() as daemon:
        said = daemon.save("often", "A note that agents read all day.")
        daemon.terminate()
        journal = daemon.store / "ops.jsonl"
        *_, last = records(journal.read_bytes())
        lines = []
        for _ in range(40_000):
            last = seal(Record("read", "often", said["hash"], last.at, by="cli"), last.digest)
            lines.append(encode(last))
        with journal.open("ab") as stream:
            stream.write(b"".join(lines))
        daemon.start()
        logged = memctl(daemon.env, "log", "--scope", "repo", "--limit", "2", cwd=daemon.repo)
        assert (logged.code, [row.split("\t")[2] for row in logged.out.splitlines()]) == (0, ["read", "read"])
        assert memctl_on_terminal({**daemon.env, "NO_COLOR": "1"}, "-C", str(daemon.repo), "stats").code == 0
        beginning = said["hash"].removeprefix("sha256:")[:8]
        assert memctl(daemon.env, "show", "often", "--hash", beginning, cwd=daemon.repo).code == 0
        asked = memctl_on_terminal(daemon.env, "-C", str(daemon.repo), "forget", "often", typed="y\n")
        assert (asked.code, daemon.names()) == (0, [])
