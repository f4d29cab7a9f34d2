"""Real git makes the repositories; memd never runs it (SPEC 1, the repo key; field rows 1 and 3)."""

import os
import subprocess
from pathlib import Path

from memd import paths
from support.claude_home import a_note, notes_of, rows, start
from support.daemon import Daemon, running_daemon


def git(directory: Path, *words: str) -> None:
    """Run git as nobody in particular, without the machine's own configuration."""
    directory.mkdir(parents=True, exist_ok=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "HOME": str(directory)}
    identity = ["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *words], cwd=directory, env=env, check=True, capture_output=True, timeout=60)


def repository(directory: Path) -> Path:
    """A repository with one commit."""
    git(directory, "init", "--quiet")
    git(directory, "commit", "--quiet", "--allow-empty", "-m", "first")
    return directory


def test_worktrees_and_subdirectories_share_one_key(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "--quiet", "../linked")
    (main / "src" / "deep").mkdir(parents=True)
    for place in (main, main / "src" / "deep", tmp_path / "linked"):
        assert paths.canonical_repo(place) == main


def test_a_bare_repositorys_worktrees_share_its_key(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(tmp_path, "clone", "--quiet", "--bare", str(main), "forge.git")
    git(tmp_path / "forge.git", "worktree", "add", "--quiet", "../one", "HEAD")
    assert paths.canonical_repo(tmp_path / "one") == tmp_path / "forge.git"
    assert paths.canonical_repo(tmp_path / "forge.git") == tmp_path / "forge.git"


def test_a_submodule_and_a_separate_git_directory_are_apart(tmp_path: Path) -> None:
    library = repository(tmp_path / "library")
    main = repository(tmp_path / "main")
    git(main, "submodule", "--quiet", "add", str(library), "vendored")
    apart = paths.canonical_repo(main / "vendored")
    assert apart == main / ".git" / "modules" / "vendored"
    git(tmp_path / "elsewhere", "init", "--quiet", "--separate-git-dir", str(tmp_path / "kept.git"))
    assert paths.canonical_repo(tmp_path / "elsewhere") == tmp_path / "kept.git"


def test_a_note_saved_in_a_worktree_outlives_it() -> None:
    with running_daemon() as daemon:
        saved_in_a_worktree(daemon)


def saved_in_a_worktree(daemon: Daemon) -> None:
    main = repository(daemon.root / "main")
    git(main, "worktree", "add", "--quiet", "../linked")
    linked = daemon.root / "linked"
    daemon.save("from-linked", "kept", cwd=linked)
    git(main, "worktree", "remove", "--force", str(linked))
    assert not linked.exists()
    assert daemon.call("memory.read", cwd=main, name="from-linked")["text"] == "kept"


def test_claudes_notes_of_a_worktree_that_git_made_outlive_it() -> None:
    with running_daemon() as daemon:
        main = repository(daemon.root / "main")
        git(main, "worktree", "add", "--quiet", "../linked")
        linked = daemon.root / "linked"
        (notes_of(daemon, linked) / "stray.md").write_text(a_note("Written in the worktree"))
        assert start(daemon, main)[1].endswith("1 imported · 0 updated · 0 stale")
        git(main, "worktree", "remove", "--force", str(linked))
        start(daemon, main)
        assert daemon.names(cwd=main) == ["stray"]
        assert rows(daemon, main) == ["- [stray](stray.md) — Written in the worktree"]
