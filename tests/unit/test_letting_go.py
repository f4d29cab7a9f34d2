"""Forgotten notes go from wherever else their text is kept. Law: no forget is answered before, and none is missed.

SPEC section 8: a block is purged of a forgotten note. A real store, and a keeper that takes as long as a test wants.
"""

import errno
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest

from memd.errors import MemdError, Storage
from memd.focus.block import Block, Part
from memd.live import LiveStore
from memd.live.sessions import LiveSession, LiveSessions
from memd.note import Scope
from memd.sessions import Session, SessionFiles
from memd.store import Forgotten, Reconcile, Store
from support.disks import FailingDisk, FastDisk
from support.stores import Clock, forget, save


class Keeper:
    """Keeps copies; lets go of them once it may, if it can."""

    def __init__(self) -> None:
        self.may = anyio.Event()
        self.asked = anyio.Event()
        self.gone: list[str] = []
        self.errors: list[MemdError] = []

    async def forget(self, _store: LiveStore, names: Collection[str]) -> None:
        self.asked.set()
        await self.may.wait()
        if self.errors:
            raise self.errors.pop()
        self.gone += sorted(names)

    async def catch_up(self, _store: LiveStore) -> None:
        return


Test = Callable[[LiveStore, Keeper], Awaitable[None]]


def run(directory: Path, test: Test) -> None:
    """Run a test on an open store of two notes and its keeper."""

    async def whole() -> None:
        keeper = Keeper()
        store = LiveStore(Scope.REPO, Store(directory, disk=FastDisk(), clock=Clock()), keeper)
        for name in ("alpha", "beta"):
            await store.write(save(name, "Words."))
        with anyio.fail_after(20):
            await test(store, keeper)

    anyio.run(whole)


def test_whoever_waited_in_the_same_commit_waits_for_it_too(tmp_path: Path) -> None:
    async def test(store: LiveStore, keeper: Keeper) -> None:
        answered: list[str] = []

        async def write(name: str) -> None:
            assert isinstance(await store.write(forget(name)), Forgotten)
            answered.append(name)

        async with anyio.create_task_group() as tasks:
            for name in ("alpha", "beta"):
                tasks.start_soon(write, name)
            await keeper.asked.wait()
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            assert answered == []
            keeper.may.set()
        assert sorted(answered) == sorted(keeper.gone) == ["alpha", "beta"]

    run(tmp_path, test)


def test_what_a_reader_would_not_wait_for_is_done_by_the_next_write(tmp_path: Path) -> None:
    async def test(store: LiveStore, keeper: Keeper) -> None:
        (tmp_path / "alpha.md").unlink()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(store.write, Reconcile(patient=False)))
            await keeper.asked.wait()
            tasks.cancel_scope.cancel()
        assert keeper.gone == []
        keeper.may.set()
        await store.write(save("gamma", "Words."))
        assert keeper.gone == ["alpha"]

    run(tmp_path, test)


@pytest.mark.parametrize("failures", [1, 2])
def test_what_could_not_be_written_is_tried_again(tmp_path: Path, failures: int) -> None:
    async def test(store: LiveStore, keeper: Keeper) -> None:
        keeper.errors = [Storage("full")] * failures
        keeper.may.set()
        await store.write(forget("alpha"))
        for number in range(failures):
            assert keeper.gone == []
            await store.write(save("gamma", f"Words, {number}."))
        assert keeper.gone == ["alpha"]

    run(tmp_path, test)


class ReadMeanwhile(SessionFiles):
    """Session files of which one is read by somebody just before they are purged."""

    read: Callable[[], object] = staticmethod(lambda: None)

    def purge(self, is_forgotten: Callable[[Session, Scope, str], bool]) -> list[Session]:
        anyio.from_thread.run_sync(self.read)
        return super().purge(is_forgotten)


def test_a_session_that_is_read_while_blocks_are_purged_puts_nothing_back(tmp_path: Path) -> None:
    async def whole() -> None:
        sessions = LiveSessions(tmp_path / "sessions")
        files = sessions.files = ReadMeanwhile(tmp_path / "sessions", FastDisk())
        block = Block((Part("Words of alpha.", Scope.GLOBAL, "alpha"),), (), 1, 2400, redacted=False)
        files.store(Session("s", "/", 0, None, block=block))
        held: list[LiveSession | None] = []
        files.read = lambda: held.append(sessions.get("s"))
        store = LiveStore(Scope.GLOBAL, Store(tmp_path / "memory", disk=FastDisk(), clock=Clock()), sessions)
        await store.write(save("alpha", "Words of alpha."))
        await store.write(forget("alpha"))
        [live] = held
        assert live is not None
        await sessions.put(live, {"read_only": True})
        assert "Words of alpha" not in files.path("s").read_text()

    anyio.run(whole)


def block_of(stem: str) -> Block:
    """A block that speaks of one note."""
    return Block((Part(f"Words of {stem}.", Scope.GLOBAL, stem),), (), 1, 2400, redacted=False)


def test_only_files_that_may_hold_a_forgotten_note_are_read_again(tmp_path: Path) -> None:
    disk = FastDisk()
    files = SessionFiles(tmp_path / "sessions", disk)

    def purged_of(*stems: str) -> tuple[list[str], list[str]]:
        """The sessions that changed, and the files that were read for it."""
        disk.log.clear()
        changed = files.purge(lambda _session, _scope, stem: stem in stems)
        return [session.id for session in changed], [name for call, name in disk.log if call == "read"]

    for session, stem in (("a", "alpha"), ("b", "beta"), ("c", "alpha")):
        files.store(Session(session, "/", 0, None, block=block_of(stem)))
    files.store(Session("d", "/", 0, None))
    everyone = ["a.json", "b.json", "c.json", "d.json"]
    assert purged_of("gamma") == ([], everyone)
    assert purged_of("gamma") == ([], [])
    files.store(Session("b", "/", 0, None, block=block_of("delta")))
    files.store(Session("e", "/", 0, None, block=block_of("beta")))
    assert purged_of("beta") == (["e"], ["b.json", "e.json"]), "what was written since is read again"
    files.path("d").unlink()
    assert purged_of("alpha") == (["a", "c"], ["a.json", "c.json", "e.json"])
    texts = b"".join(path.read_bytes() for path in files.directory.iterdir())
    assert (b"Words of alpha" in texts, b"Words of beta" in texts, b"Words of delta" in texts) == (False, False, True)
    assert purged_of("delta") == (["b"], ["a.json", "b.json", "c.json"])
    assert purged_of("delta") == ([], ["b.json"])


def test_a_file_that_did_not_read_is_looked_into_again(tmp_path: Path) -> None:
    disk = FailingDisk(errno.EIO, calls={"read"})
    files = SessionFiles(tmp_path / "sessions", disk)
    files.store(Session("a", "/", 0, None, block=block_of("alpha")))
    disk.arm(1)
    with pytest.raises(OSError, match="Input/output error"):  # whoever forgets is told, and asks again
        files.purge(lambda _session, _scope, stem: stem == "alpha")
    [changed] = files.purge(lambda _session, _scope, stem: stem == "alpha")
    assert changed.id == "a"
    assert b"Words of alpha" not in files.path("a").read_bytes()


class Sick(FastDisk):
    """A disk that has nothing left to open one file with, while it is sick."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.is_sick = True

    def step(self, call: str, path: Path) -> None:
        """Fail the reading of that file."""
        super().step(call, path)
        if self.is_sick and (call, path.name) == ("read", self.name):
            raise OSError(errno.EMFILE, "Too many open files")


def test_a_session_that_cannot_be_read_while_blocks_are_purged_is_purged_later(tmp_path: Path) -> None:
    async def whole() -> None:
        disk = Sick("b.json")
        sessions = LiveSessions(tmp_path / "sessions")
        files = sessions.files = SessionFiles(tmp_path / "sessions", disk)
        for session in ("a", "b", "c"):
            files.store(Session(session, "/", 0, None, block=block_of("alpha")))
        store = LiveStore(Scope.GLOBAL, Store(tmp_path / "memory", disk=FastDisk(), clock=Clock()), sessions)
        await store.write(save("alpha", "Words of alpha."))
        await store.write(forget("alpha"))
        holding = [path.name for path in files.directory.iterdir() if b"Words of alpha" in path.read_bytes()]
        assert holding == ["b.json"]
        disk.is_sick = False
        await store.write(save("beta", "Words of beta."))
        assert not any(b"Words of alpha" in path.read_bytes() for path in files.directory.iterdir())

    anyio.run(whole)
