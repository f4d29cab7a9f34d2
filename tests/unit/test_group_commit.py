"""Who commits what waits, and when. Law: nobody waits for a few who were answered, nor for one that gave up.

SPEC section 4, group commit. A real store; a commit begins when it is handed to its thread, and ends when a test lets
it.
"""

import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.lowlevel
import pytest

from memd.fs import nothing
from memd.live import LiveStore, stores
from memd.note import Scope
from memd.store import Committed, Request, Saved, Store
from memd.store.write import Beside
from support.disks import FastDisk
from support.stores import Clock, save

T = TypeVar("T")


class Gate:
    """A store whose commits wait for a test, and break when they are `to_break`; `log` tells what began and who was
    answered, in the loop's order.
    """

    def __init__(self, directory: Path) -> None:
        self.log: list[str] = []
        self.may = threading.Semaphore(0)
        self.to_break = threading.Semaphore(0)
        self.store = Store(directory, disk=FastDisk(), clock=Clock())
        self.live = LiveStore(Scope.REPO, self.store)
        self._commit = self.store.commit
        self.store.commit = self.commit  # type: ignore[method-assign]

    def commit(self, batch: Sequence[Request], beside: Beside = nothing) -> Committed:
        """A commit, once it may."""
        assert self.may.acquire(timeout=20)
        if self.to_break.acquire(blocking=False):
            raise ZeroDivisionError
        return self._commit(batch, beside)

    async def in_thread(self, commit: Callable[[], T]) -> T:
        """What `stores.in_thread` does, and a line that says so."""
        self.log.append("begins")
        return await IN_THREAD(commit)

    async def write(self, name: str) -> None:
        """Save a note; a line for its answer."""
        try:
            assert isinstance(await self.live.write(save(name, "Words.")), Saved)
            self.log.append(name)
        except (RuntimeError, ZeroDivisionError) as error:
            self.log.append(f"{name}: {type(error).__name__}")

    async def reaches(self, begun: int, waiting: int) -> None:
        """Wait until so many commits have begun and so many requests wait."""
        while (self.log.count("begins"), len(self.live.waiting)) != (begun, waiting):
            await anyio.lowlevel.checkpoint()


IN_THREAD = stores.in_thread


def run(directory: Path, test: Callable[[Gate], Awaitable[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        gate = Gate(directory)
        monkeypatch.setattr(stores, "in_thread", gate.in_thread)
        with anyio.fail_after(20):
            await test(gate)

    anyio.run(whole)


def test_a_commit_begins_before_those_go_on_that_the_last_one_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(gate: Gate) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gate.write, "a")
            await gate.reaches(begun=1, waiting=0)
            for name in ("b", "c", "d"):
                tasks.start_soon(gate.write, name)
            await gate.reaches(begun=1, waiting=3)
            gate.may.release()
            await gate.reaches(begun=2, waiting=0)
            tasks.start_soon(gate.write, "e")
            await gate.reaches(begun=2, waiting=1)
            gate.may.release(2)
        assert gate.log == ["begins", "a", "begins", "b", "begins", "c", "d", "e"]

    run(tmp_path, test, monkeypatch)


def test_after_a_commit_of_many_those_who_ask_again_share_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(gate: Gate) -> None:
        names = [f"note-{number}" for number in range(2 * stores.MANY)]

        async def twice(name: str) -> None:
            await gate.write(name)
            for _ in range(names.index(name)):  # one asks after the other
                await anyio.lowlevel.checkpoint()
            await gate.write(name)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gate.write, "a")
            await gate.reaches(begun=1, waiting=0)
            for name in names:
                tasks.start_soon(twice, name)
            await gate.reaches(begun=1, waiting=len(names))
            gate.may.release()
            await gate.reaches(begun=2, waiting=0)
            tasks.start_soon(gate.write, "b")
            await gate.reaches(begun=2, waiting=1)
            gate.may.release()
            await gate.reaches(begun=3, waiting=0)
            gate.may.release()
        assert gate.log == ["begins", "a", "begins", *names, "begins", "b", *names]

    run(tmp_path, test, monkeypatch)


def test_after_a_commit_of_many_one_that_came_meanwhile_waits_for_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(gate: Gate) -> None:
        names = [f"note-{number}" for number in range(stores.MANY)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gate.write, "a")
            await gate.reaches(begun=1, waiting=0)
            for name in names:
                tasks.start_soon(gate.write, name)
            await gate.reaches(begun=1, waiting=len(names))
            gate.may.release()
            await gate.reaches(begun=2, waiting=0)
            tasks.start_soon(gate.write, "b")
            await gate.reaches(begun=2, waiting=1)
            gate.may.release(2)
        assert gate.log == ["begins", "a", "begins", *names, "begins", "b"]

    run(tmp_path, test, monkeypatch)


def test_one_that_gives_up_while_the_store_is_held_leaves_the_commit_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(gate: Gate) -> None:
        gate.may.release()
        async with anyio.create_task_group() as tasks, gate.live.lock, anyio.create_task_group() as impatient:
            impatient.start_soon(gate.write, "a")
            await gate.reaches(begun=0, waiting=1)
            tasks.start_soon(gate.write, "b")
            await gate.reaches(begun=0, waiting=2)
            impatient.cancel_scope.cancel()
        assert gate.log == ["begins", "b"]
        assert set(gate.live.entries) == {"b"}

    run(tmp_path, test, monkeypatch)


def test_one_that_gives_up_just_when_its_turn_comes_leaves_the_commit_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(gate: Gate) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gate.write, "a")
            await gate.reaches(begun=1, waiting=0)
            async with anyio.create_task_group() as impatient:
                impatient.start_soon(gate.write, "b")
                await gate.reaches(begun=1, waiting=1)
                tasks.start_soon(gate.write, "c")
                await gate.reaches(begun=1, waiting=2)
                wake = stores.Waiter.wake

                def wakes(waiter: stores.Waiter) -> None:
                    wake(waiter)
                    impatient.cancel_scope.cancel()

                monkeypatch.setattr(stores.Waiter, "wake", wakes)
                gate.may.release(2)
        assert gate.log == ["begins", "a", "begins", "c"]
        assert set(gate.live.entries) == {"a", "c"}

    run(tmp_path, test, monkeypatch)


def test_a_commit_that_breaks_is_an_error_of_all_it_carried_and_of_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(gate: Gate) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gate.write, "a")
            await gate.reaches(begun=1, waiting=0)
            for name in ("b", "c"):
                tasks.start_soon(gate.write, name)
            await gate.reaches(begun=1, waiting=2)
            gate.may.release()
            await gate.reaches(begun=2, waiting=0)
            tasks.start_soon(gate.write, "d")
            await gate.reaches(begun=2, waiting=1)
            gate.to_break.release()
            gate.may.release(2)
        assert gate.log[3:] == ["b: ZeroDivisionError", "begins", "c: RuntimeError", "d"]

    run(tmp_path, test, monkeypatch)


def test_what_differs_only_while_a_commit_is_half_way_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(gate: Gate) -> None:
        seen: list[bool] = []

        def differs(_names: frozenset[str]) -> bool:
            seen.append(gate.live.lock.locked())
            return len(seen) == 1

        monkeypatch.setattr(gate.store, "may_differ", differs)
        assert await gate.live.look(frozenset({"a.md"})) is None
        assert (seen, gate.log) == ([False, True], [])

    run(tmp_path, test, monkeypatch)
