"""Kimi Code's notes: a repository's own are looked at by a person first (SPEC 10)."""

from pathlib import Path

import pytest

from support.claude_home import a_note, a_repo, counts, log, rows, start, text, worktree
from support.daemon import Daemon, daemon_home
from support.waiting import until

HERE = "notes in .kimi-code/memory"


def kimi_of(top: Path) -> Path:
    """The directory of Kimi's notes in a tree, there from now on."""
    directory = top / ".kimi-code" / "memory"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def test_they_are_told_of_and_come_by_hand(daemon: Daemon) -> None:
    repo = daemon.repo
    (kimi_of(repo) / "tea.md").write_text(a_note("Tea at four"))
    tree = worktree(repo, daemon.root / "tree")
    (kimi_of(tree) / "tea.md").write_text(a_note("Tea at six"))
    (kimi_of(tree) / "cup.md").write_text(a_note("Cups are blue"))
    (kimi_of(daemon.user) / "tabs.md").write_text(a_note("Tabs, not spaces"))
    told = [f"2 {HERE} · not imported · memctl import-kimi"]
    everywhere = ["1 notes in ~/.kimi-code/memory · not imported · memctl import-kimi"]
    assert counts(start(daemon, repo), "kimi") == told + everywhere
    assert daemon.names() == []
    seen = daemon.call("memory.import_kimi", dry_run=True)
    assert seen["imported"] == ["tea", "cup", "tabs"]
    assert daemon.names() == []
    reply = daemon.call("memory.import_kimi")
    assert counts(reply["lines"], "kimi") == [
        f"2 {HERE} · 2 imported · 0 updated · 0 stale · 1 conflicts",
        "1 notes in ~/.kimi-code/memory · 1 imported · 0 updated · 0 stale",
    ]
    assert text(daemon, repo, "tea") == a_note("Tea at four").replace("---\n", "---\nsource: kimi\n", 1)
    assert (daemon.global_store / "tabs.md").read_text().startswith("---\nsource: kimi\n")
    assert log(daemon, repo, "cup") == [("adopt", "kimi")]
    assert counts(start(daemon, repo), "kimi") == told + everywhere
    (kimi_of(repo) / "tea.md").unlink()
    (kimi_of(tree) / "cup.md").unlink()
    reply = daemon.call("memory.import_kimi", scope="repo")
    assert (reply["updated"], reply["stale"]) == (["tea"], ["cup"])
    assert rows(daemon, repo) == ["- [tea](tea.md) — Tea at six", "- [cup](cup.md) — Cups are blue ⚠ stale"]


def test_outside_a_repository_they_are_in_the_directory_itself(daemon: Daemon) -> None:
    plain = daemon.root / "plain"
    (kimi_of(plain) / "tea.md").write_text(a_note("Tea at four"))
    assert daemon.call("memory.import_kimi", cwd=plain)["imported"] == ["tea"]


def test_in_the_persons_home_they_are_for_everywhere_alone(daemon: Daemon) -> None:
    (kimi_of(daemon.user) / "tabs.md").write_text(a_note("Tabs, not spaces"))
    assert daemon.call("memory.import_kimi", cwd=daemon.user)["imported"] == ["tabs"]
    assert [row["scope"] for row in daemon.call("memory.list", cwd=daemon.user)["notes"]] == ["global"]


@pytest.mark.parametrize("link", [".kimi-code", ".kimi-code/memory", ".kimi-code/memory/tea.md"])
def test_no_part_of_the_way_may_be_a_symlink(daemon: Daemon, link: str) -> None:
    (kimi_of(daemon.root / "elsewhere") / "tea.md").write_text(a_note("Tea at four"))
    path = daemon.repo / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(daemon.root / "elsewhere" / link)
    assert start(daemon, daemon.repo) == ["memory · 0 repo · 0 global · 0 unparsed"]
    assert daemon.call("memory.import_kimi")["imported"] == []


def test_both_programs_have_a_note_of_one_name(daemon: Daemon) -> None:
    repo = a_repo(daemon)
    claude = daemon.user / ".claude" / "projects" / "".join(c if c.isalnum() else "-" for c in str(repo)) / "memory"
    claude.mkdir(parents=True)
    (claude / "tea.md").write_text(a_note("Claude's"))
    (kimi_of(repo) / "tea.md").write_text(a_note("Kimi's"))
    for verb in ("memory.import_claude", "memory.import_kimi"):
        assert len(daemon.call(verb, cwd=repo)["imported"]) == 1
        assert daemon.call(verb, cwd=repo)["imported"] == []
    assert log(daemon, repo, "tea") == [("adopt", "claude")]
    assert log(daemon, repo, "tea-kimi") == [("adopt", "kimi")]


def test_they_come_by_themselves_while_the_config_says_so() -> None:
    with daemon_home() as daemon:
        daemon.env["MEMD_CONFIG"] = str(daemon.root / "config.toml")
        (daemon.root / "config.toml").write_text("kimi.import = true\n")
        daemon.start()
        repo, memory = daemon.repo, kimi_of(daemon.repo)
        (memory / "tea.md").write_text(a_note("Tea at four"))
        assert counts(start(daemon, repo), "kimi") == [f"1 {HERE} · 1 imported · 0 updated · 0 stale"]
        (memory / "cup.md").write_text(a_note("Cups are blue"))
        until(lambda: log(daemon, repo, "cup") == [("adopt", "kimi")])
        daemon.call("memory.forget", name="tea")
        (memory / "tea.md").write_text(a_note("Tea at five"))
        assert counts(start(daemon, repo), "kimi") == [f"2 {HERE} · 0 imported · 0 updated · 0 stale"]
        assert daemon.names() == ["cup"]
