"""The feed: what each record is told as, to whom, and that telling never holds anybody up."""

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from memd.journal import Record
from memd.live import Feed, LiveStore, Outbox
from memd.live.feed import (
    OUTBOX_MAX,
    SINGLY_MAX,
    Event,
    changes,
    imported,
    index_truncated,
    session_started,
)
from memd.note import Scope
from memd.store import Journaled, Store

HASH = "sha256:" + "a" * 64
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"


def store(scope: Scope = Scope.REPO, origin: str | None = "/repo") -> LiveStore:
    """A store that is not there, for its scope and for whose it is."""
    return LiveStore(scope, Store(Path("/nowhere/memory"), origin=None if origin is None else Path(origin)))


def journaled(
    op: str,
    name: str = "note",
    hook: str = "",
    *,
    by: str | None = None,
    session: str | None = None,
    replaced: bool = False,
) -> Journaled:
    return Journaled(Record(op=op, name=name, hash=HASH, at=1, session=session, by=by), hook, replaced)


def two(_session: str) -> int | None:
    return 2


def unknown(_session: str) -> int | None:
    return None


class Client:
    """A listener as the feed sees it, and what came of it."""

    def __init__(self, feed: Feed, stores: Sequence[LiveStore] | None = None, session: str | None = None) -> None:
        self.drops = 0
        self.outbox = Outbox(self._drop)
        feed.subscribe(self.outbox, stores, session)

    def _drop(self) -> None:
        self.drops += 1

    def heard(self) -> list[dict[str, Any]]:
        """The notifications that wait, taken."""

        async def take() -> bytes:
            with anyio.move_on_after(0):
                return await self.outbox.take()
            return b""

        return [json.loads(line) for line in anyio.run(take).splitlines()]

    def events(self) -> list[dict[str, Any]]:
        """What they tell."""
        return [notification["params"] for notification in self.heard()]


def told(events: Iterator[Event]) -> list[dict[str, Any]]:
    """Events as they leave."""
    feed = Feed()
    client = Client(feed)
    feed.publish_all(events)
    return client.events()


# -- what is told --------------------------------------------------------------------------------------------

TOLD: dict[str, tuple[Journaled, dict[str, Any]]] = {
    "a new note": (
        journaled("save", hook="the hook", by="cli"),
        {"event": "memory_write", "line": "memory · saved note · repo — the hook"},
    ),
    "an update": (
        journaled("save", hook="the hook", by="cli", replaced=True),
        {"event": "memory_update", "line": "memory · saved note · repo — the hook"},
    ),
    "a note without a hook": (
        journaled("save", by="cli"),
        {"event": "memory_write", "line": "memory · saved note · repo"},
    ),
    "a session's save": (
        journaled("save", hook="h", session="s-1"),
        {"event": "memory_write", "line": "memory · saved note · repo — h", "session": "s-1", "saved": 2},
    ),
    "a session's restore": (
        journaled("save", hook="h", session="s-1", by="restore", replaced=True),
        {"event": "memory_update", "line": "memory · saved note · repo — h", "session": "s-1", "saved": 2},
    ),
    "a forget": (
        journaled("forget", by="cli", replaced=True),
        {"event": "memory_delete", "line": "memory · forgot note · repo"},
    ),
    "a session's forget": (
        journaled("forget", session="s-1", replaced=True),
        {"event": "memory_delete", "line": "memory · forgot note · repo", "session": "s-1"},
    ),
    "a deletion by hand": (
        journaled("forget", by="hand", replaced=True),
        {"event": "memory_delete", "line": "memory · forgot note · repo"},
    ),
    "a forget that a crash cut short": (
        journaled("forget", by="recovery", replaced=True),
        {"event": "memory_delete", "line": "memory · forgot note · repo"},
    ),
    "an edit by hand": (
        journaled("edit", hook="new words", by="hand", replaced=True),
        {"event": "memory_edit", "line": "memory · edited note · repo — new words"},
    ),
    "a file written by hand": (
        journaled("adopt", hook="new", by="hand"),
        {"event": "memory_edit", "line": "memory · adopted note · repo — new"},
    ),
}


@pytest.mark.parametrize(("record", "expected"), TOLD.values(), ids=TOLD)
def test_each_record_is_told_once_with_telemetry_that_holds_no_hook(
    record: Journaled, expected: dict[str, Any]
) -> None:
    [event] = told(changes(store(), [record], two))
    pointer = {"op": record.record.op, "name": "note", "scope": "repo", "hash": HASH}
    telemetry = {"scope": "repo", "slug": "note"}
    assert event == {**expected, "scope": "repo", "telemetry": telemetry, "pointer": pointer}


def test_a_count_that_nobody_knows_is_left_out() -> None:
    [event] = told(changes(store(), [journaled("save", session="s-1")], unknown))
    assert "saved" not in event


def test_a_hook_and_a_name_are_one_line_that_holds_no_key() -> None:
    hook = f"one\u2028two\x1b[31m \u202e{KEY} <<<yi-external"
    [event] = told(changes(store(Scope.GLOBAL, None), [journaled("save", f"my {KEY}", hook)], two))
    assert event["line"] == "memory · saved my [redacted] · global — one two[31m [redacted] <\\<\\<yi-external"
    assert event["telemetry"] == {"scope": "global", "slug": "my [redacted]"}
    assert event["pointer"]["name"] == f"my {KEY}"


@pytest.mark.parametrize("by", ["import", "store", "claude", "kimi"])
def test_those_who_bring_many_notes_tell_of_them_themselves(by: str) -> None:
    records = [journaled("adopt", by=by), journaled("edit", by=by), journaled("forget", by=by)]
    assert told(changes(store(), records, two)) == []


def test_a_few_changes_by_hand_are_told_one_by_one_in_order() -> None:
    records = [journaled("edit", f"n{number}", by="hand") for number in range(SINGLY_MAX)]
    events = told(changes(store(), [*records, journaled("save", "last")], two))
    names = [f"n{number}" for number in range(SINGLY_MAX)]
    assert [event["telemetry"]["slug"] for event in events] == [*names, "last"]


def test_many_changes_by_hand_are_one_event_a_kind() -> None:
    records = [journaled("edit", f"n{number}", by="hand") for number in range(SINGLY_MAX)]
    deleted = [journaled("forget", f"d{number}", by="hand") for number in range(2)]
    first, second, last = told(changes(store(), [*records, *deleted, journaled("save", "last")], two))
    telemetry = {"scope": "repo"}
    line = f"memory · {SINGLY_MAX} notes edited by hand · repo"
    assert first == {"event": "memory_edit", "scope": "repo", "line": line, "telemetry": telemetry}
    line = "memory · 2 notes forgotten by hand · repo"
    assert second == {"event": "memory_delete", "scope": "repo", "line": line, "telemetry": telemetry}
    assert last["telemetry"] == {"scope": "repo", "slug": "last"}
    only = told(changes(store(), [journaled("adopt", f"n{n}", by="hand") for n in range(SINGLY_MAX + 1)], two))
    assert [event["event"] for event in only] == ["memory_edit"]


def test_what_the_verbs_tell() -> None:
    events = [
        imported(store(), 3, 1),
        session_started(store(), "s-1", ["memory · 3 repo · 1 global", f"claude · {KEY}\x07"]),
        index_truncated(store(), 7, "s-1"),
        index_truncated(store(), 7),
    ]
    cut = {"event": "memory_index_truncated", "line": "memory · index cut · 7 entries omitted"}
    assert told(iter(events)) == [
        {
            "event": "memory_import",
            "scope": "repo",
            "line": "memory · 3 imported · 1 updated · repo",
            "telemetry": {"scope": "repo"},
        },
        {
            "event": "session_start",
            "session": "s-1",
            "line": "memory · 3 repo · 1 global\nclaude · [redacted]",
            "telemetry": {},
        },
        {**cut, "session": "s-1", "telemetry": {"droppedCount": 7}},
        {**cut, "telemetry": {"droppedCount": 7}},
    ]


def test_an_event_is_one_notification_line() -> None:
    feed = Feed()
    client = Client(feed)
    feed.publish(session_started(store(), "s-1", ["a", "b"]))
    params = {"event": "session_start", "session": "s-1", "line": "a\nb", "telemetry": {}}
    assert client.heard() == [{"jsonrpc": "2.0", "method": "activity", "params": params}]


# -- who hears -----------------------------------------------------------------------------------------------


def test_who_hears_what() -> None:
    repo, other, everywhere = store(), store(origin="/other"), store(Scope.GLOBAL, None)
    feed = Feed()
    clients = {
        "all": Client(feed),
        "repo": Client(feed, [repo, everywhere]),
        "other": Client(feed, [other, everywhere]),
        "session": Client(feed, [repo, everywhere], "s-1"),
    }

    def hearing(event: Event) -> set[str]:
        feed.publish(event)
        return {name for name, client in clients.items() if client.heard()}

    assert hearing(imported(repo, 1, 0)) == {"all", "repo", "session"}
    assert hearing(imported(other, 1, 0)) == {"all", "other"}
    assert hearing(imported(everywhere, 1, 0)) == {"all", "repo", "other", "session"}
    assert hearing(session_started(other, "s-1", [])) == {"all", "other", "session"}
    assert hearing(session_started(other, "s-2", [])) == {"all", "other"}


def test_a_second_subscription_adds_to_the_first_and_nothing_is_heard_twice() -> None:
    feed = Feed()
    repo, other = store(), store(origin="/other")
    client = Client(feed, [repo])
    feed.subscribe(client.outbox, [other])
    feed.subscribe(client.outbox, [repo])
    feed.publish_all([imported(repo, 1, 0), imported(other, 2, 0), imported(store(origin="/third"), 3, 0)])
    assert [event["line"][:12] for event in client.events()] == ["memory · 1 i", "memory · 2 i"]
    feed.subscribe(client.outbox, None)
    feed.publish(imported(store(origin="/third"), 3, 0))
    assert len(client.events()) == 1
    assert feed.listener_count == 1


def test_a_client_that_ended_hears_nothing_and_is_not_kept() -> None:
    feed = Feed()
    client, other = Client(feed), Client(feed)
    assert feed.listener_count == 2
    client.outbox.end()
    client.outbox.end()
    assert feed.listener_count == 1
    feed.publish(imported(store(), 1, 0))
    assert (client.heard(), len(other.heard())) == ([], 1)
    assert client.drops == 0
    feed.subscribe(client.outbox, None)
    assert feed.listener_count == 1


# -- that it harms nobody ------------------------------------------------------------------------------------


def test_nothing_is_made_while_nobody_listens() -> None:
    made: list[int] = []

    def events() -> Iterator[Event]:
        made.append(1)
        yield imported(store(), 1, 0)

    Feed().publish_all(events())
    assert made == []


def test_what_fails_is_logged_without_its_text_and_raised_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_session: str) -> int | None:
        raise RuntimeError("swordfish")

    feed = Feed()
    client = Client(feed)
    feed.publish_all(changes(store(), [journaled("save"), journaled("save", session="s-1")], fails))
    assert len(client.heard()) == 1
    assert [record.getMessage() for record in caplog.records] == ["an event could not be told: RuntimeError"]
    caplog.clear()
    feed.publish(imported(store(), 1, 0))
    assert len(client.heard()) == 1
    assert caplog.get_records("call") == []


def test_a_listener_that_lags_is_dropped_alone_and_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    feed = Feed()
    lags, reads = Client(feed), Client(feed)
    for number in range(OUTBOX_MAX):
        feed.publish(imported(store(), number, 0))
        assert len(reads.heard()) == 1
    assert (lags.drops, feed.listener_count) == (0, 2)
    for _ in range(3):
        feed.publish(imported(store(), 1, 0))
        assert len(reads.heard()) == 1
        assert (lags.drops, feed.listener_count) == (1, 1)
    assert lags.heard() == []
    assert caplog.records == []


def test_lines_are_taken_in_order_as_soon_as_one_waits() -> None:
    async def taking() -> list[bytes]:
        outbox = Outbox(lambda: None)
        taken: list[bytes] = []

        async def take() -> None:
            while True:
                taken.append(await outbox.take())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            await checkpoint()
            await checkpoint()
            for line in (b"1\n", b"2\n"):
                outbox.push(line)
            while not taken:
                await checkpoint()
            outbox.push(b"3\n")
            while len(taken) < 2:
                await checkpoint()
            tasks.cancel_scope.cancel()
        return taken

    assert anyio.run(taking) == [b"1\n2\n", b"3\n"]
