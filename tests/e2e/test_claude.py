"""Claude Code's notes, brought into a running daemon's stores (SPEC 10)."""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import memd_client
from memd.journal import content_hash
from support.claude_home import a_note, a_repo, counts, log, notes_of, rows, start, text, transcript, worktree
from support.daemon import Daemon, daemon_home, running_daemon
from support.memctl_program import memctl
from support.waiting import until

WHERE = "notes in ~/.claude/projects/…/memory"
QUIET = f"1 {WHERE} · 0 imported · 0 updated · 0 stale"


def settled(lines: list[str]) -> list[str]:
    """What an import's lines count, but for what came: a change may have come live before the start."""
    return [re.sub(r" · \d+ imported · \d+ updated", "", line) for line in counts(lines)]


@pytest.fixture(scope="module")
def shared() -> Iterator[Daemon]:
    """One daemon for the tests that have a repository of their own."""
    with running_daemon() as running:
        yield running


# -- what comes ----------------------------------------------------------------------------------------------


def test_a_note_comes_tagged_at_a_start_and_not_again(shared: Daemon) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    (memory / "tea.md").write_text(a_note("Tea at four, see [[cups]]"))
    (memory / "MEMORY.md").write_text("# Mine\n\nProse.\n- [Gone](gone.md) — nothing\n- [Tea](tea.md) — tea\n")
    assert counts(start(shared, repo)) == [f"1 {WHERE} · 1 imported · 0 updated · 0 stale"]
    assert text(shared, repo, "tea") == a_note("Tea at four, see [[cups]]").replace(
        "---\n", "---\nsource: claude\n", 1
    )
    assert rows(shared, repo) == ["- [tea](tea.md) — Tea at four, see [[cups]]"]
    assert counts(start(shared, repo)) == [QUIET]
    (record,) = shared.call("memory.log", cwd=repo)["records"]
    assert (record["op"], record["by"], record["name"]) == ("adopt", "claude", "tea")
    assert record["source_hash"] == content_hash((memory / "tea.md").read_bytes())
    (note,) = shared.call("memory.list", cwd=repo)["notes"]
    assert (note["type"], note["unparsed"]) == ("feedback", False)


def test_a_changed_source_updates_and_the_text_it_had_stays_a_version(shared: Daemon) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    (memory / "tea.md").write_text(a_note("Tea at four"))
    start(shared, repo)
    (memory / "tea.md").write_text(a_note("Tea at five"))
    assert settled(start(shared, repo)) == [f"1 {WHERE} · 0 stale"]
    assert log(shared, repo, "tea") == [("adopt", "claude"), ("edit", "claude")]
    assert rows(shared, repo) == ["- [tea](tea.md) — Tea at five"]
    first = shared.call("memory.log", cwd=repo, name="tea")["records"][-1]["hash"]
    assert "four" in shared.call("memory.show", cwd=repo, name="tea", hash=first)["markdown"]
    assert shared.call("memory.verify", cwd=repo)["ok"]


def test_the_notes_for_everywhere_go_to_the_global_store() -> None:
    with running_daemon() as daemon:
        everywhere = daemon.user / ".claude" / "memory"
        everywhere.mkdir(parents=True)
        (everywhere / "tabs.md").write_text(a_note("Tabs, not spaces"))
        lines = start(daemon, daemon.repo)
        assert lines == [
            "memory · 0 repo · 1 global · 0 unparsed",
            "claude · 1 notes in ~/.claude/memory · 1 imported · 0 updated · 0 stale",
        ]
        assert (daemon.global_store / "tabs.md").read_text().startswith("---\nsource: claude\n")


def test_nothing_is_said_where_there_is_nothing(shared: Daemon) -> None:
    assert start(shared, a_repo(shared)) == ["memory · 0 repo · 0 global · 0 unparsed"]


def test_every_shape_comes_with_its_bytes(shared: Daemon) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    shapes = {
        "flat": b"---\nname: flat\ndescription: Flat\ntype: user\n---\n\nx\n",
        "crlf": b"---\r\nname: crlf\r\ndescription: Ends\r\n---\r\n\r\nx\r\n",
        "bare": b"# No block\n\nx\n",
        "unclosed": b"---\nname: unclosed\ndescription: Never\n\nx\n",
        "nameless": b'---\nname: ""\ndescription: None\n---\nx\n',
        "doubled": b"---\nname: a\n---\n---\nname: b\n---\nx\n",
        "latin": b"---\nname: latin\ndescription: caf\xe9\n---\nx\n",
        "json": b'---\n{"name": "json", "description": "Braces"}\n---\nx\n',
        "README": b"# Read me\n",
        "empty": b"",
        "fenced": b'<<<yi-external 0 source="memory" trust="untrusted">>>\nx\n<<<end-yi-external 0>>>\n',
    }
    for name, raw in shapes.items():
        (memory / f"{name}.md").write_bytes(raw)
    (memory / "nested").mkdir()
    (memory / "nested" / "below.md").write_text("# Below\n")
    (memory / "flat.md.bak").write_text("# Old\n")
    (memory / ".hidden.md").write_text("# Hidden\n")
    (memory / "linked.md").symlink_to(memory / "flat.md")
    reply = shared.call("memory.import_claude", cwd=repo)
    assert set(reply["imported"]) == set(shapes)
    assert set(reply["unparsed"]) == {"unclosed", "latin"}
    assert reply["skipped"] == [{"file": "linked.md", "reason": "a symlink is never followed"}]
    store = shared.store_of(repo)
    assert (store / "unclosed.md").read_bytes() == shapes["unclosed"]
    assert (store / "latin.md").read_bytes() == b"---\nsource: claude\n" + shapes["latin"][4:]
    assert (store / "crlf.md").read_bytes() == b"---\r\nsource: claude\r\n" + shapes["crlf"][5:]
    assert (store / "bare.md").read_bytes() == b"---\nsource: claude\n---\n\n" + shapes["bare"]
    assert (store / "json.md").read_bytes() == shapes["json"].replace(b"{", b'{"source": "claude", ')
    assert shared.call("memory.import_claude", cwd=repo)["imported"] == []
    findings = shared.call("memory.check", cwd=repo)["findings"]
    assert sorted((each["kind"], each["name"]) for each in findings) == [
        ("fence", "fenced"),
        ("unparsed", "latin"),
        ("unparsed", "unclosed"),
    ]


def test_claudes_own_files_stay_as_they_are(shared: Daemon) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    (memory / "a.md").write_text(a_note("One"))
    (memory / "MEMORY.md").write_text("- [a](a.md)\n")

    def there() -> list[tuple[str, int, bytes]]:
        files = sorted(path for path in memory.rglob("*") if path.is_file())
        return [(path.name, path.stat().st_mtime_ns, path.read_bytes()) for path in files]

    before = there()
    start(shared, repo)
    shared.save("a", "mine", cwd=repo)
    shared.call("memory.forget", cwd=repo, name="a")
    shared.call("memory.import_claude", cwd=repo)
    assert there() == before


# -- both sides ----------------------------------------------------------------------------------------------


def test_edited_on_both_sides_is_a_conflict_and_both_texts_survive(shared: Daemon) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    (memory / "tea.md").write_text(a_note("Tea at four"))
    start(shared, repo)
    mine = shared.store_of(repo) / "tea.md"
    mine.write_text("# Mine: coffee\n")
    shared.call("memory.reconcile", cwd=repo)
    assert counts(start(shared, repo)) == [QUIET]  # edited here alone
    (memory / "tea.md").write_text(a_note("Tea at five"))
    for _ in range(2):
        assert counts(start(shared, repo)) == [f"{QUIET} · 1 conflicts"]
    assert mine.read_text() == "# Mine: coffee\n"
    assert "five" in (memory / "tea.md").read_text()
    assert shared.call("memory.import_claude", cwd=repo)["conflicts"] == ["tea"]
    (memory / "tea.md").write_text(a_note("Tea at four"))
    assert counts(start(shared, repo)) == [QUIET]
    assert log(shared, repo, "tea") == [("adopt", "claude"), ("edit", "hand")]


def test_a_save_here_is_an_edit_here(shared: Daemon) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    (memory / "tea.md").write_text(a_note("Tea at four"))
    start(shared, repo)
    shared.save("tea", "coffee", cwd=repo)
    (memory / "tea.md").write_text(a_note("Tea at five"))
    assert counts(start(shared, repo)) == [f"{QUIET} · 1 conflicts"]
    assert "coffee" in text(shared, repo, "tea")


def test_an_edit_that_nobody_has_taken_in_yet_is_not_overwritten(shared: Daemon) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    (memory / "tea.md").write_text(a_note("Tea at four"))
    start(shared, repo)
    (shared.store_of(repo) / "tea.md").write_text("# In this second\n")
    (memory / "tea.md").write_text(a_note("Tea at five"))
    assert counts(start(shared, repo)) == [f"{QUIET} · 1 conflicts"]
    assert text(shared, repo, "tea") == "# In this second\n"


def test_a_conflict_that_was_made_equal_is_over(shared: Daemon) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    (memory / "tea.md").write_text(a_note("Tea at four"))
    start(shared, repo)
    (shared.store_of(repo) / "tea.md").write_text("# Mine\n")
    (memory / "tea.md").write_text(a_note("Tea at five"))
    assert counts(start(shared, repo)) == [f"{QUIET} · 1 conflicts"]
    tagged = a_note("Tea at five").replace("---\n", "---\nsource: claude\n", 1)
    (shared.store_of(repo) / "tea.md").write_text(tagged)
    assert counts(start(shared, repo)) == [QUIET]
    (memory / "tea.md").write_text(a_note("Tea at six"))
    assert settled(start(shared, repo)) == [f"1 {WHERE} · 0 stale"]


def test_a_name_that_another_note_has_gets_claudes_behind_it(shared: Daemon) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    shared.save("cup", "mine", cwd=repo)
    (memory / "cup.md").write_text(a_note("Theirs"))
    assert counts(start(shared, repo)) == [f"1 {WHERE} · 1 imported · 0 updated · 0 stale"]
    assert set(shared.names(cwd=repo)) == {"cup", "cup-claude"}
    (memory / "cup.md").write_text(a_note("Theirs anew"))
    assert settled(start(shared, repo)) == [f"1 {WHERE} · 0 stale"]
    assert "anew" in text(shared, repo, "cup-claude")
    (memory / "cup.md").unlink()
    assert counts(start(shared, repo)) == [f"0 {WHERE} · 0 imported · 0 updated · 1 stale"]
    assert rows(shared, repo)[1].endswith("Theirs anew ⚠ stale")
    (memory / "cup.md").write_text(a_note("Theirs anew"))
    shared.call("memory.forget", cwd=repo, name="cup-claude")
    shared.call("memory.forget", cwd=repo, name="cup")
    assert counts(start(shared, repo)) == [QUIET]
    assert shared.names(cwd=repo) == []
    assert shared.call("memory.verify", cwd=repo)["ok"]


def test_a_note_and_one_that_has_the_name_it_would_get(shared: Daemon) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    shared.save("tea", "mine", cwd=repo)
    (memory / "tea.md").write_text(a_note("Theirs"))
    start(shared, repo)
    (memory / "tea-claude.md").write_text(a_note("Another of theirs"))
    start(shared, repo)
    before = {name: text(shared, repo, name) for name in shared.names(cwd=repo)}
    assert set(before) == {"tea", "tea-claude", "tea-claude-claude"}
    assert settled(start(shared, repo)) == [f"2 {WHERE} · 0 stale"]
    assert {name: text(shared, repo, name) for name in before} == before


# -- forgotten and stale -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["verb", "hand", "saved again", "renamed"])
def test_forgotten_here_stays_so_until_a_person_asks(shared: Daemon, way: str) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    (memory / "tea.md").write_text(a_note("Tea at four"))
    start(shared, repo)
    if way == "hand":
        (shared.store_of(repo) / "tea.md").unlink()
        until(lambda: ("forget", "hand") in log(shared, repo, "tea"))
    elif way == "renamed":
        shared.call("memory.rename", cwd=repo, name="tea", to="my-tea")
    else:
        shared.call("memory.forget", cwd=repo, name="tea")
    if way == "saved again":
        shared.save("tea", "in my words", cwd=repo)
    names = shared.names(cwd=repo)
    assert counts(start(shared, repo)) == [QUIET]
    (memory / "tea.md").write_text(a_note("Tea at five"))
    assert counts(start(shared, repo)) == [QUIET]
    assert shared.names(cwd=repo) == names
    expected = "tea-claude" if way == "saved again" else "tea"
    assert shared.call("memory.import_claude", cwd=repo)["imported"] == [expected]
    assert "five" in text(shared, repo, expected)
    assert counts(start(shared, repo)) == [QUIET]


def test_a_source_that_is_gone_marks_the_row_and_its_return_clears_it(shared: Daemon) -> None:
    repo, other = a_repo(shared), a_repo(shared)
    memory = notes_of(shared, repo)
    for name in ("pot", "lid"):
        (memory / f"{name}.md").write_text(a_note("Tea at four"))
    start(shared, repo)
    listing = shared.store_of(repo) / "MEMORY.md"
    row = "- [my words](lid.md) - and mine alone"
    listing.write_text(listing.read_text().replace("- [lid](lid.md) — Tea at four", row))
    shutil.rmtree(memory)
    assert counts(start(shared, repo)) == [f"0 {WHERE} · 0 imported · 0 updated · 2 stale"]
    assert rows(shared, repo) == [row, "- [pot](pot.md) — Tea at four ⚠ stale"]
    assert set(shared.names(cwd=repo)) == {"pot", "lid"}
    (notes_of(shared, other) / "pot.md").write_text(a_note("Of another repository"))
    assert counts(start(shared, repo)) == [f"0 {WHERE} · 0 imported · 0 updated · 1 stale"]
    assert rows(shared, repo) == [row, "- [pot](pot.md) — Tea at four"]
    shutil.rmtree(notes_of(shared, other))
    start(shared, repo)
    assert rows(shared, repo)[1].endswith("⚠ stale")
    shared.call("memory.rebuild", cwd=repo)
    assert rows(shared, repo)[1].endswith("⚠ stale")
    for name in ("pot", "lid"):
        notes_of(shared, repo).joinpath(f"{name}.md").write_text(a_note("Tea at five"))
    assert settled(start(shared, repo)) == [f"2 {WHERE} · 0 stale"]
    assert rows(shared, repo) == [row, "- [pot](pot.md) — Tea at five"]


# -- whose they are ------------------------------------------------------------------------------------------


def test_a_worktrees_notes_reach_the_repositorys_store_and_outlive_it(shared: Daemon) -> None:
    repo = a_repo(shared)
    tree = worktree(repo, shared.root / f"{repo.name}-tree")
    (notes_of(shared, tree) / "from-tree.md").write_text(a_note("Written in the worktree"))
    (notes_of(shared, repo) / "from-main.md").write_text(a_note("Written in the main checkout"))
    assert counts(start(shared, tree)) == [f"2 {WHERE} · 2 imported · 0 updated · 0 stale"]
    assert set(shared.names(cwd=repo)) == {"from-main", "from-tree"}
    shutil.rmtree(tree)
    shutil.rmtree(repo / ".git" / "worktrees")
    assert settled(start(shared, repo)) == [f"1 {WHERE} · 0 stale"]
    assert set(shared.names(cwd=repo)) == {"from-main", "from-tree"}
    assert not any(row.endswith("⚠ stale") for row in rows(shared, repo))


def test_of_one_name_in_many_directories_the_first_comes_and_the_others_are_conflicts(shared: Daemon) -> None:
    repo = a_repo(shared)
    trees = [worktree(repo, shared.root / f"{repo.name}-{name}") for name in ("b", "a")]
    below = repo / "below"
    below.mkdir()
    for number, path in enumerate((below, *trees)):
        (notes_of(shared, path) / "tea.md").write_text(a_note(f"Tea {number}"))
        (notes_of(shared, path) / "same.md").write_text(a_note("Same"))
    assert counts(start(shared, below)) == [f"2 {WHERE} · 2 imported · 0 updated · 0 stale · 2 conflicts"]
    assert "Tea 2" in text(shared, repo, "tea")
    (notes_of(shared, repo) / "tea.md").write_text(a_note("Tea of the main checkout"))
    assert settled(start(shared, below)) == [f"2 {WHERE} · 0 stale · 3 conflicts"]
    assert "main checkout" in text(shared, repo, "tea")


def test_a_path_too_long_for_a_slug_is_found_by_its_beginning(shared: Daemon) -> None:
    repo = a_repo(shared, "x" * 120 + "/" + "y" * 120)
    memory = notes_of(shared, Path(f"{str(repo)[:200]}-1abc9z"))
    (memory / "tea.md").write_text(a_note("Tea at four"))
    assert counts(start(shared, repo)) == [f"1 {WHERE} · 1 imported · 0 updated · 0 stale"]


def test_the_directory_of_claudes_settings_counts_but_never_a_store() -> None:
    with running_daemon() as daemon:
        own = daemon.root / "own"
        own.mkdir()
        (own / "tea.md").write_text(a_note("Tea at four"))
        settings = daemon.user / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(f'{{"autoMemoryDirectory": "{own}"}}')
        start(daemon, daemon.repo)
        daemon.save("mine", "words")
        settings.write_text(f'{{"autoMemoryDirectory": "{daemon.store}"}}')
        start(daemon, daemon.repo)
        assert daemon.names() == ["mine", "tea"]
        settings.write_text('{"autoMemoryDirectory": ["not", "a", "path"]}')
        start(daemon, daemon.repo)
        settings.write_text("not json")
        assert counts(start(daemon, daemon.repo)) == [f"0 {WHERE} · 0 imported · 0 updated · 1 stale"]


# -- when ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", ["claude.import = false\n", "claude.import = [broken\n"])
def test_nothing_comes_by_itself_while_it_is_off_or_the_config_does_not_parse(config: str) -> None:
    with daemon_home() as daemon:
        daemon.env["MEMD_CONFIG"] = str(daemon.root / "config.toml")
        (daemon.root / "config.toml").write_text(config)
        daemon.start()
        (notes_of(daemon, daemon.repo) / "tea.md").write_text(a_note("Tea at four"))
        assert counts(start(daemon, daemon.repo)) == []
        assert daemon.names() == []
        assert daemon.call("memory.import_claude")["imported"] == ["tea"]
        (notes_of(daemon, daemon.repo) / "tea.md").write_text(a_note("Tea at five"))
        assert counts(start(daemon, daemon.repo)) == []
        reply = daemon.call("memory.import_claude")
        assert (reply["updated"], counts(reply["lines"])) == (
            ["tea"],
            [f"1 {WHERE} · 0 imported · 1 updated · 0 stale"],
        )
        assert daemon.call("memory.import_claude")["updated"] == []


def test_the_config_says_where_claudes_home_is() -> None:
    with daemon_home() as daemon:
        daemon.env["MEMD_CONFIG"] = str(daemon.root / "config.toml")
        daemon.env["CLAUDE_CONFIG_DIR"] = str(daemon.root / "by-environment")
        daemon.start()
        (notes_of(daemon, daemon.repo) / "tea.md").write_text(a_note("Tea at four"))
        (daemon.user / ".claude").rename(daemon.root / "by-environment")
        assert daemon.call("memory.import_claude", dry_run=True)["imported"] == ["tea"]
        (daemon.root / "by-environment").rename(daemon.root / "by-config")
        assert daemon.call("memory.import_claude", dry_run=True)["imported"] == []
        daemon.terminate()
        (daemon.root / "config.toml").write_text(f'claude.home = "{daemon.root}/by-config"\n')
        daemon.start()
        reply = daemon.call("memory.import_claude")
        assert reply["imported"] == ["tea"]
        assert str(daemon.root) not in str(reply)


def test_what_was_written_while_it_was_off_is_here_once_it_is_on() -> None:
    with daemon_home() as daemon:
        config = daemon.root / "config.toml"
        daemon.env["MEMD_CONFIG"] = str(config)
        daemon.start()
        assert daemon.process is not None
        memory = notes_of(daemon, daemon.repo)
        (memory / "tea.md").write_text(a_note("Tea at four"))
        start(daemon, daemon.repo)
        config.write_text("claude.import = false\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: daemon.log.count("read again") == 1)
        (memory / "jug.md").write_text(a_note("The jug is full"))
        assert counts(start(daemon, daemon.repo)) == []
        assert not (daemon.store / "jug.md").exists()
        config.write_text("")
        daemon.process.send_signal(signal.SIGHUP)
        until((daemon.store / "jug.md").exists)


def test_what_claude_writes_is_here_while_a_session_runs(shared: Daemon) -> None:
    repo = a_repo(shared)
    start(shared, repo)
    memory = notes_of(shared, repo)  # it appears later
    (memory / "jug.md").write_text(a_note("Tea at four"))
    until(lambda: log(shared, repo, "jug") == [("adopt", "claude")])
    (memory / "jug.md").write_text(a_note("Tea at five"))
    until(lambda: log(shared, repo, "jug") == [("adopt", "claude"), ("edit", "claude")])
    assert "five" in text(shared, repo, "jug")
    (memory / "jug.md").unlink()
    until(lambda: rows(shared, repo) == ["- [jug](jug.md) — Tea at five ⚠ stale"])
    (memory / "jug.md").write_text(a_note("Tea at five"))
    until(lambda: rows(shared, repo) == ["- [jug](jug.md) — Tea at five"])
    assert len(log(shared, repo, "jug")) == 2


# -- by hand -------------------------------------------------------------------------------------------------


def test_it_is_a_persons_verb_and_can_be_looked_at_first(shared: Daemon) -> None:
    repo = a_repo(shared)
    (notes_of(shared, repo) / "tea.md").write_text(a_note("Tea at four"))
    with shared.connect() as connection:
        connection.call("session.start", {"session": "agent", "cwd": str(a_repo(shared))})
        for verb in ("memory.import_claude", "memory.import_kimi"):
            with pytest.raises(memd_client.Refused) as caught:
                connection.call(verb, {"session": "agent"})
            assert caught.value.data["field"] == "session"
    seen = shared.call("memory.import_claude", cwd=repo, dry_run=True)
    assert (seen["imported"], seen["found"]) == (["tea"], 1)
    assert not shared.store_of(repo).exists()
    assert shared.call("memory.import_claude", cwd=repo, scope="global")["imported"] == []
    done = shared.call("memory.import_claude", cwd=repo)
    assert (done["imported"], done["lines"]) == (["tea"], [f"claude · 1 {WHERE} · 1 imported · 0 updated · 0 stale"])
    for wrong in ({"dir": "relative"}, {"dir": str(repo / "nowhere")}, {"dir": str(repo), "scope": "global"}):
        with pytest.raises(memd_client.Refused):
            shared.call("memory.import_claude", cwd=repo, **wrong)


def test_many_notes_come_whole_and_at_once(shared: Daemon) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    for number in range(300):
        (memory / f"n{number}.md").write_text(a_note(f"Number {number}"))
    lines = start(shared, repo)
    assert lines[1:] == [
        f"claude · 300 {WHERE} · 300 imported · 0 updated · 0 stale",
        '[… 200 of 300 notes loaded (LOAD_LINES 200); the rest: await memory.search("words")]',
    ]
    assert shared.call("memory.verify", cwd=repo)["ok"]
    with shared.connect() as connection:
        records = connection.call("memory.log", {"cwd": str(repo), "limit": 1000})["total"]
    os.utime(memory / "n7.md")
    assert counts(start(shared, repo)) == [f"300 {WHERE} · 0 imported · 0 updated · 0 stale"]
    assert shared.call("memory.log", cwd=repo)["total"] == records


def test_the_log_tells_who_wrote(shared: Daemon) -> None:
    repo = a_repo(shared)
    (notes_of(shared, repo) / "by-claude.md").write_text(a_note("Claude's"))
    (repo / ".kimi-code" / "memory").mkdir(parents=True)
    (repo / ".kimi-code" / "memory" / "by-kimi.md").write_text(a_note("Kimi's"))
    start(shared, repo)
    assert memctl(shared.env, "import-kimi", cwd=repo).code == 0
    assert memctl(shared.env, "save", "--type", "user", "--description", "By me", cwd=repo).code == 0
    agent = {**shared.env, "MEMD_SESSION": "run-7"}
    assert memctl(agent, "save", "--type", "user", "--description", "By an agent", cwd=repo).code == 0
    (shared.store_of(repo) / "by-hand.md").write_text("# By hand\n")
    shared.call("memory.reconcile", cwd=repo)
    who = {}
    for line in memctl(shared.env, "log", cwd=repo).out.splitlines():
        _, writer, _, name, *_ = line.split("\t")
        who[name] = writer
    assert who == {
        "by-claude": "claude",
        "by-kimi": "kimi",
        "by-me": "you",
        "by-an-agent": "run-7",
        "by-hand": "hand",
    }


def test_memctl_takes_an_ambiguous_directory_that_a_person_names(shared: Daemon) -> None:
    repo = a_repo(shared)
    memory = notes_of(shared, repo)
    (memory / "tea.md").write_text(a_note("Tea at four"))
    transcript(shared, repo, "/somewhere/else")
    ran = memctl(shared.env, "import-claude", cwd=repo)
    assert (
        ran.out
        == f"claude · 0 {WHERE} · 0 imported · 0 updated · 0 stale · 1 ambiguous\nambiguous\t{memory.parent.name}\n"
    )
    ran = memctl(shared.env, "import-claude", "--dir", str(memory), cwd=repo)
    assert ran.out == "claude · 1 notes in the given directory · 1 imported · 0 updated · 0 stale\n"
    assert log(shared, repo, "tea") == [("adopt", "claude")]
    assert counts(start(shared, repo)) == [f"0 {WHERE} · 0 imported · 0 updated · 0 stale · 1 ambiguous"]


def test_a_store_that_takes_nothing_keeps_no_session_from_starting(shared: Daemon) -> None:
    repo = a_repo(shared)
    for number in range(4):
        shared.save(f"n{number}", "words", cwd=repo)
    for number in range(4):
        (shared.store_of(repo) / f"n{number}.md").rename(repo / f"n{number}.md")
    (notes_of(shared, repo) / "tea.md").write_text(a_note("Tea at four"))
    lines = start(shared, repo)
    assert [line for line in lines if line.startswith("claude · the repo store: 4 notes are gone")]
    for number in range(4):
        (repo / f"n{number}.md").rename(shared.store_of(repo) / f"n{number}.md")
    start(shared, repo)
    assert "tea" in shared.names(cwd=repo)
