"""A home of Claude Code, made by hand. Law: it is written as Claude Code writes it, and read by the daemon only."""

import json
import re
from pathlib import Path

from support.daemon import Daemon

_numbers = iter(range(1_000_000))


def slug(path: Path) -> str:
    """The name that Claude Code gives a path of ASCII letters."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(path))


def a_repo(daemon: Daemon, name: str = "") -> Path:
    """A repository that no other test uses."""
    repo = daemon.root / (name or f"repo{next(_numbers)}")
    (repo / ".git").mkdir(parents=True)
    return repo


def notes_of(daemon: Daemon, path: Path) -> Path:
    """The directory of Claude's notes for a path, there from now on."""
    directory = daemon.user / ".claude" / "projects" / slug(path) / "memory"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def transcript(daemon: Daemon, slug_of: Path, cwd: Path | str, name: str = "one") -> None:
    """A transcript in the directory of a path that says it was written in `cwd`."""
    directory = daemon.user / ".claude" / "projects" / slug(slug_of)
    directory.mkdir(parents=True, exist_ok=True)
    lines = [{"type": "summary", "summary": "x"}, {"type": "user", "cwd": str(cwd), "message": {"content": "hello"}}]
    (directory / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def worktree(repo: Path, path: Path) -> Path:
    """A linked worktree, as git lays it out."""
    admin = repo / ".git" / "worktrees" / path.name
    admin.mkdir(parents=True)
    path.mkdir(parents=True)
    (path / ".git").write_text(f"gitdir: {admin}\n")
    (admin / "gitdir").write_text(f"{path}/.git\n")
    (admin / "commondir").write_text("../..\n")
    return path


def a_note(words: str) -> str:
    """A note as Claude Code writes it."""
    return f"---\nname: x\ndescription: {words}\nmetadata: \n  node_type: memory\n  type: feedback\n---\n\n{words}.\n"


def start(daemon: Daemon, cwd: Path) -> list[str]:
    """The lines of a fresh session's start."""
    with daemon.connect() as connection:
        session = f"s{next(_numbers)}"
        lines: list[str] = connection.call("session.start", {"session": session, "cwd": str(cwd)})["lines"]
    return lines


def counts(lines: list[str], program: str = "claude") -> list[str]:
    """What an import's lines count, without what comes before."""
    return [line.partition(" · ")[2] for line in lines if line.startswith(program)]


def log(daemon: Daemon, repo: Path, name: str) -> list[tuple[str, str | None]]:
    """Who did what to a note, oldest first."""
    records = daemon.call("memory.log", cwd=repo, name=name, limit=1000)["records"]
    return [(record["op"], record.get("by") or record.get("session")) for record in reversed(records)]


def text(daemon: Daemon, repo: Path, name: str) -> str:
    """A note's file in a repository's store."""
    return (daemon.store_of(repo) / f"{name}.md").read_text()


def rows(daemon: Daemon, repo: Path) -> list[str]:
    """The lines of a repository's MEMORY.md."""
    return (daemon.store_of(repo) / "MEMORY.md").read_text().splitlines()
