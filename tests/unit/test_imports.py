"""What the imports of a daemon watch, and how little they do where nothing changed (SPEC 10)."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from memd import settle
from memd.config import Config
from memd.importers.claude import slugs
from memd.live import Library
from support.claude_home import a_note
from support.waiting import until


class Here:
    """A home, a repository and a home of Claude's, in one process."""

    def __init__(self, root: Path) -> None:
        self.repo = root / "repo"
        (self.repo / ".git").mkdir(parents=True)
        self.claude = root / "claude"
        self.library = Library(root / "home", Config(claude_home=self.claude))

    def memory(self, path: Path) -> Path:
        """The directory of Claude's notes for a path."""
        return self.claude / "projects" / slugs(str(path))[0] / "memory"

    def write(self, path: Path, name: str, words: str) -> None:
        """Have Claude write a note."""
        self.memory(path).mkdir(parents=True, exist_ok=True)
        (self.memory(path) / f"{name}.md").write_text(a_note(words))

    async def start(self) -> list[str]:
        """A session's start, as far as the import goes."""
        return await self.library.imports.at_start(self.library.place(str(self.repo)), str(self.repo))

    def names(self) -> list[str]:
        """The notes of the repository."""
        return sorted(self.library.place(str(self.repo)).repo.entries)


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def in_a_loop(test: Callable[[], Awaitable[None]]) -> None:
    """Run it as the daemon runs what it does."""
    anyio.run(test, backend="asyncio")


def test_a_worktree_that_appears_later_is_found_by_the_minutes_look(here: Here) -> None:
    async def run() -> None:
        here.write(here.repo, "tea", "Tea at four")
        await here.start()
        tree = here.repo.parent / "tree"
        admin = here.repo / ".git" / "worktrees" / "tree"
        admin.mkdir(parents=True)
        (admin / "gitdir").write_text(f"{tree}/.git\n")
        here.write(tree, "cup", "Cups are blue")
        assert here.memory(tree) not in here.library.roots.current()
        await here.library.rescan()
        assert here.memory(tree) in here.library.roots.current()
        with anyio.fail_after(20):
            while here.names() != ["cup", "tea"]:  # it is taken once it is quiet
                await here.library.rescan()
        (admin / "gitdir").unlink()
        await here.library.rescan()
        assert here.memory(tree) not in here.library.roots.current()
        assert here.names() == ["cup", "tea"]

    in_a_loop(run)


def test_nothing_is_watched_any_more_once_the_config_says_so(here: Here) -> None:
    async def run() -> None:
        here.write(here.repo, "tea", "Tea at four")
        await here.start()
        assert here.memory(here.repo) in here.library.roots.current()
        here.library.reconfigure(Config(claude_home=here.claude, claude_import=False))
        here.write(here.repo, "cup", "Cups are blue")
        until(lambda: time.time() > (here.memory(here.repo) / "cup.md").stat().st_ctime + settle.QUIET)
        await here.library.rescan()
        assert here.memory(here.repo) not in here.library.roots.current()
        assert here.names() == ["tea"]

    in_a_loop(run)


def test_where_nothing_changed_nothing_is_committed(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        here.write(here.repo, "tea", "Tea at four")
        first = await here.start()
        store = here.library.place(str(here.repo)).repo

        async def commit(request: object) -> None:
            raise AssertionError(request)

        monkeypatch.setattr(store, "write", commit)
        assert await here.start() == [first[0].replace("1 imported", "0 imported")]

    in_a_loop(run)


def test_a_conflict_is_over_as_soon_as_a_hand_ends_it_in_the_file(here: Here) -> None:
    async def run() -> None:
        here.write(here.repo, "tea", "Tea at four")
        await here.start()
        store = here.library.place(str(here.repo)).repo
        mine, imported = store.directory / "tea.md", (store.directory / "tea.md").read_bytes()
        mine.write_text("# Mine\n")
        here.write(here.repo, "tea", "Tea at five")
        assert (await here.start())[0].endswith("1 conflicts")
        mine.write_bytes(imported)
        assert (await here.start())[0].endswith("0 imported · 1 updated · 0 stale")

    in_a_loop(run)


def test_a_directory_that_does_not_read_says_so_and_marks_nothing(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        here.write(here.repo, "tea", "Tea at four")
        await here.start()
        reader = here.library.imports._readers["claude"]

        def closed(directory: Path) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(reader, "_scan", closed)
        lines = await here.start()
        assert lines[0] == (
            "claude · the repo store: a directory of claude's notes does not read (Permission denied); nothing came"
        )
        await here.library.rescan()
        assert "does not read" in here.library.runtime.findings["look"]
        listing = here.library.place(str(here.repo)).repo.view.listing
        assert listing is not None
        assert "stale" not in listing.text

    in_a_loop(run)
