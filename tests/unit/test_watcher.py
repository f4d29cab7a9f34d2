"""The register of watched directories and the watcher on it, with real directories and no daemon around them."""

import errno
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from memd import watcher
from memd.config import Config
from memd.errors import Storage
from memd.live import Library, Root, Roots
from memd.watcher import Watcher, file_system, fingerprint, mount_points, nearest, survey

Names = frozenset[str] | None


class Looks:
    """A look that tells what it was called with, and answers what it was given to."""

    def __init__(self, *answers: float | Exception | None) -> None:
        self.answers = list(answers)
        self.calls: list[Names] = []
        self._called = anyio.Event()

    async def __call__(self, names: Names) -> float | None:
        self.calls.append(names)
        self._called.set()
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def until(self, holds: Callable[[list[Names]], bool]) -> None:
        """Return once it was called so."""
        while not holds(self.calls):
            self._called = anyio.Event()
            await self._called.wait()


def watched(home: Path, test: Callable[[Library], Awaitable[None]], look_s: float = 1000.0) -> None:
    """Run a test while a watcher listens for a library's roots."""

    async def both() -> None:
        library = Library(home, Config())
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(Watcher(library, look_s).run)
                await test(library)
                tasks.cancel_scope.cancel()

    anyio.run(both)


def everything_first(calls: list[Names]) -> bool:
    return None in calls


def test_a_new_root_is_looked_at_as_a_whole_and_then_after_what_happens_there(tmp_path: Path) -> None:
    async def test(library: Library) -> None:
        looks = Looks()
        library.roots.add(tmp_path / "there", "me", looks)
        await looks.until(everything_first)
        looks.calls.clear()
        (tmp_path / "there" / "note.md").write_text("a note")
        await looks.until(bool)

    (tmp_path / "there").mkdir()
    watched(tmp_path / "home", test)


def test_what_is_heard_tells_the_names_of_notes_alone(tmp_path: Path) -> None:
    async def test() -> None:
        library, looks = Library(tmp_path / "home", Config()), Looks()
        library.roots.add(tmp_path, "me", looks)
        root = library.roots.current()[tmp_path]
        await root.look()
        listening = Watcher(library, 1000.0)
        listening._ground = survey([tmp_path])
        heard = ("note.md", "MEMORY.md", ".note.md.swp", ".hidden.md", "note.md~", "4913", "usage.json")
        listening._tell({str(tmp_path / name) for name in heard} | {"/elsewhere/other.md"})
        await root.look()
        listening._tell({str(tmp_path / ".lock")})
        await root.look()
        assert looks.calls == [None, frozenset({"note.md", "MEMORY.md"})]
        assert library.runtime.last_event is not None

    anyio.run(test)


@pytest.mark.parametrize("steps", [("deep/er",), ("deep", "deep/er")])
def test_a_root_that_is_not_there_yet_is_heard_once_it_is(tmp_path: Path, steps: tuple[str, ...]) -> None:
    async def test(library: Library) -> None:
        looks = Looks()
        root = tmp_path / "deep" / "er"
        library.roots.add(root, "me", looks)
        await looks.until(everything_first)
        for step in steps:
            (tmp_path / step).mkdir(parents=True)
        (root / "first.md").write_text("a note")
        await looks.until(lambda calls: len(calls) > 1)
        while str(root) not in survey([root]).listened or not library.runtime.watching:
            await anyio.lowlevel.checkpoint()
        (root / "second.md").write_text("a note")
        await looks.until(lambda calls: calls[-1] is None or "second.md" in calls[-1])

    watched(tmp_path / "home", test)


def test_a_dropped_root_is_looked_at_no_more(tmp_path: Path) -> None:
    async def test(library: Library) -> None:
        gone, stays = Looks(), Looks()
        library.roots.add(tmp_path, "gone", gone)
        library.roots.add(tmp_path, "stays", stays)
        await stays.until(everything_first)
        library.roots.drop(tmp_path, "gone")
        library.roots.drop(tmp_path, "never was")
        library.roots.drop(tmp_path / "nowhere", "gone")
        gone.calls.clear()
        stays.calls.clear()
        (tmp_path / "note.md").write_text("a note")
        await stays.until(bool)
        assert gone.calls == []
        library.roots.drop(tmp_path, "stays")
        assert library.roots.current() == {}

    watched(tmp_path / "home", test)


def test_a_look_that_wants_to_be_called_again_is_though_nothing_happens(tmp_path: Path) -> None:
    async def test(library: Library) -> None:
        until = time.time() + 0.2
        looks = Looks(*[until] * 2)
        library.roots.add(tmp_path, "me", looks)
        await looks.until(lambda calls: len(calls) >= 3)
        assert time.time() >= until
        assert looks.calls == [None] * 3

    watched(tmp_path / "home", test)


def test_the_rescan_looks_at_every_root(tmp_path: Path) -> None:
    async def test(library: Library) -> None:
        looks = Looks()
        library.roots.add(tmp_path / "nowhere" / "at" / "all", "me", looks)
        await looks.until(lambda calls: len(calls) > 3)
        assert library.runtime.last_scan is not None

    watched(tmp_path / "home", test, look_s=0.05)


def test_a_look_that_fails_is_a_finding_until_it_does_not_and_keeps_no_other_from_looking(tmp_path: Path) -> None:
    async def test() -> None:
        library = Library(tmp_path / "home", Config())
        fails, other = Looks(Storage("the disk is gone"), OSError(5, "Input/output error", "/secret/path")), Looks()
        library.roots.add(tmp_path, "fails", fails)
        library.roots.add(tmp_path, "other", other)
        root = library.roots.current()[tmp_path]
        for reason in ("the disk is gone", "Input/output error"):
            root.notice(None)
            await library.look(root)
            assert library.runtime.findings["look"].endswith(reason)
        assert other.calls == [None, None]
        root.notice(["a.md"])
        await library.look(root)
        assert "look" not in library.runtime.findings
        assert other.calls[-1] == frozenset({"a.md"})

    anyio.run(test)


def test_a_look_at_some_names_forgets_no_time_that_another_asked_for() -> None:
    async def test() -> None:
        root, looks = Root(Path("/nowhere")), Looks(time.time() + 0.1, None)
        root.add("me", looks)
        await root.look()
        root.notice(["a.md"])
        await root.look()
        await root.look()
        assert looks.calls == [None, frozenset({"a.md"})], "nothing was noticed for a third"
        with anyio.fail_after(20):
            await root.noticed()
        await root.look()
        assert looks.calls[-1] is None

    anyio.run(test)


def test_adding_an_owner_again_changes_nothing_but_the_look() -> None:
    async def test() -> None:
        roots, first, second = Roots(), Looks(), Looks()
        roots.add(Path("/nowhere"), "me", first)
        root = roots.current()[Path("/nowhere")]
        await root.look()
        roots.add(Path("/nowhere"), "me", second)
        await root.look()
        assert (len(first.calls), len(second.calls)) == (1, 0)

    anyio.run(test)


def test_the_nearest_directory_and_the_way_to_a_root_are_listened_to(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    ground = survey([tmp_path / "there", tmp_path / "not" / "yet"])
    assert set(ground.listened) == {str(tmp_path / "there"), str(tmp_path)}
    assert {str(tmp_path / "not"), str(tmp_path / "not" / "yet"), str(tmp_path / "there")} <= ground.ways
    assert nearest(tmp_path / "not" / "yet") == tmp_path


def test_a_directory_that_the_disk_does_not_tell_of_is_not_listened_to_and_ends_no_survey(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sick = tmp_path / "sick"
    sick.mkdir()
    stat = Path.stat

    def failing(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path == sick:
            raise OSError(errno.EIO, "Input/output error")
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", failing)
    assert set(survey([sick / "below"]).listened) == {str(tmp_path)}
    assert set(survey([sick]).listened) == {str(tmp_path)}
    monkeypatch.undo()
    assert set(survey([sick]).listened) == {str(sick), str(tmp_path)}


def test_what_is_on_a_file_system_without_events_is_polled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mounts"
    far = tmp_path / "far away"
    written = str(far).replace(" ", "\\040")
    table.write_text(
        f"/dev/root / ext4 rw 0 0\nhost:/x {written} nfs4 rw 0 0\nhost:/y {written}er fuse.sshfs rw 0 0\n"
    )
    mounts = list(mount_points(str(table)))
    assert file_system(str(far / "memory"), mounts) == "nfs4"
    assert file_system(f"{far}er/memory", mounts) == "fuse.sshfs"
    assert file_system(str(tmp_path), mounts) == "ext4"
    assert list(mount_points(str(tmp_path / "no table"))) == []
    assert file_system("/x", []) is None
    monkeypatch.setattr(watcher, "_MOUNTS", str(table))
    assert survey([tmp_path, far, Path(f"{far}er")]).polled == {far: "nfs4", Path(f"{far}er"): "fuse.sshfs"}


def test_a_fingerprint_is_another_once_a_note_is(tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    seen = [fingerprint(tmp_path)]
    note.write_text("a")
    seen.append(fingerprint(tmp_path))
    note.write_text("ab")
    seen.append(fingerprint(tmp_path))
    assert len(set(seen)) == 3
    note.unlink()
    assert fingerprint(tmp_path) == seen[0]
    before = fingerprint(tmp_path)
    (tmp_path / "usage.json").write_text("{}")
    assert fingerprint(tmp_path) == before
    assert fingerprint(tmp_path / "nowhere") is None
