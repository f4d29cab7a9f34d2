"""A merge of much of the index is done beside the saves. Law: none waits for it, and none of them is lost by it."""

import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from memd.bm25 import Scored, rank
from memd.forms import Words
from memd.live import LiveStore, stores
from memd.note import Scope
from memd.segments import Segment
from memd.snapshots import Merge, Snapshot
from memd.store import Saved, Store
from memd.tokens import query_terms, tokenize
from support.disks import FastDisk
from support.stores import Clock, forget, save

AT_ONCE = 40
SEGMENT = Merge.segment


def hits(index: Snapshot, query: str = "words") -> list[Scored]:
    return rank(query_terms(query), [index]).top()


def index_of(texts: dict[str, str]) -> Snapshot:
    return Snapshot.EMPTY.replace({name: Words(tokenize(text)) for name, text in texts.items()})


@pytest.mark.parametrize("later", [1, 7, 60], ids=lambda later: f"{later} saves later")
def test_merges_beside_saves_change_no_answer(later: int) -> None:
    texts = {f"n{at:03}": f"words {at}" for at in range(300)}
    snapshot = index_of(texts)
    under_way: list[tuple[int, Merge, Segment | None]] = []
    taken = 0
    for at in range(900):
        name = f"n{at * 7 % 400:03}"
        gone = [f"n{at * 11 % 400:03}"] if at % 3 == 0 else []
        texts = {key: text for key, text in texts.items() if key not in gone} | {name: f"words new {at}"}
        before = {id(part.segment) for part in snapshot.parts}
        snapshot = snapshot.replace({name: Words(tokenize(texts[name]))}, gone, at_once=AT_ONCE)
        fresh = [part for part in snapshot.parts if id(part.segment) not in before]
        assert all(len(part.segment.names) <= AT_ONCE for part in fresh)
        if under_way and under_way[0][0] == at:
            _, merge, segment = under_way.pop()
            merged = snapshot.merged(merge, segment)
            taken += merged is not snapshot
            assert hits(merged) == hits(snapshot)
            snapshot = merged
        if not under_way and (due := snapshot.due(AT_ONCE)) is not None:
            under_way.append((at + later, due, due.segment()))
        assert len(snapshot.parts) <= 4 + later // 30
    assert snapshot.names == sorted(texts)
    assert hits(snapshot) == hits(index_of(texts))
    assert taken > 5


def test_a_merge_of_what_is_gone_is_left() -> None:
    snapshot = index_of({f"n{at}": "words" for at in range(100)})
    half = snapshot.replace({}, snapshot.names[:60], at_once=AT_ONCE)
    due = half.due(AT_ONCE)
    assert due is not None
    whole = half.replace({})
    assert whole.merged(due, due.segment()) is whole
    assert half.merged(due, due.segment()).names == half.names
    none = half.replace({}, half.names, at_once=AT_ONCE)
    assert none.merged(due, due.segment()).names == []
    due = none.due(AT_ONCE)
    assert due is not None
    assert due.segment() is None
    assert none.merged(due, None).parts == ()


def run(directory: Path, test: Callable[[LiveStore], Awaitable[None]]) -> None:
    async def whole() -> None:
        with anyio.fail_after(30):
            await test(LiveStore(Scope.REPO, Store(directory, disk=FastDisk(), clock=Clock())))

    anyio.run(whole)


async def fill(live: LiveStore, first: int, last: int) -> None:
    async with anyio.create_task_group() as tasks:
        for at in range(first, last):
            tasks.start_soon(live.write, save(f"n{at:03}", f"Words {at}."))


class Held:
    """Merges that wait for `may`: whether one has `begun`, and one has `ended`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.may, self.ended = threading.Event(), threading.Event(), threading.Event()

        def segment(merge: Merge) -> Segment | None:
            self.begun.set()
            assert self.may.wait(20)
            self.ended.set()
            return SEGMENT(merge)

        monkeypatch.setattr(stores, "MERGE_AT_ONCE", AT_ONCE)
        monkeypatch.setattr(Merge, "segment", segment)

    async def begins(self, live: LiveStore) -> None:
        """Save notes until a merge has begun."""
        first = 0
        while not self.begun.is_set():
            await fill(live, first, first := first + 64)
            await anyio.lowlevel.checkpoint()
            assert first < 1000


def test_saves_go_on_while_the_index_is_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)

    async def test(live: LiveStore) -> None:
        await held.begins(live)
        assert isinstance(await live.write(save("n001", "Other words.")), Saved)
        await live.write(forget("n002"))
        await live.write(save("later", "Words."))
        assert "later" in live.index.names
        assert live.index.due(AT_ONCE) is not None
        held.may.set()
        while live.index.due(AT_ONCE) is not None:
            await anyio.lowlevel.checkpoint()
        assert live.index.names == sorted(live.entries)
        assert [hit.name for hit in hits(live.index, "other")] == ["n001"]
        assert "n002" not in live.index.names

    run(tmp_path, test)


def test_memd_stops_while_a_merge_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    run(tmp_path, held.begins)
    assert not held.ended.is_set()
    held.may.set()
    assert held.ended.wait(20)
