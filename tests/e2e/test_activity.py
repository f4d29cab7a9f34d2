"""The activity feed of a real daemon: a line an event, to those who asked, and nobody's conduct holds up a save."""

import json
import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

import memd_client
from memd.config import Config
from memd.live import Library
from memd.live.feed import SINGLY_MAX
from memd.rpc import Dispatcher
from memd.server import Server, listen
from memd.verbs import VERBS, Call
from memd_client.listening import Activity
from memd_client.replies import Event
from support.daemon import Daemon
from support.fake_verbs import request
from support.serving import Client
from support.waiting import until

SECONDS = 20.0
BODY = "The words of the body, that nobody may hear."
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"


@contextmanager
def listening(daemon: Daemon, **where: str) -> Iterator[Activity]:
    """A listener that gives up on an event that does not come."""
    with daemon.connect() as connection, connection.activity(**where, timeout=SECONDS) as events:
        yield events


def told(events: Activity, count: int) -> list[Event]:
    """The next so many events."""
    return list(islice(events, count))


def heard(events: Activity, daemon: Daemon) -> list[Event]:
    """All that was told by now, and is heard: up to a note that is saved for that alone."""
    daemon.save("last-of-all", scope="global")
    until_last: list[Event] = []
    for event in events:
        if event["telemetry"].get("slug") == "last-of-all":
            return until_last
        until_last.append(event)
    raise AssertionError("it ended")


def write(daemon: Daemon, name: str, hook: str, body: str = BODY) -> None:
    """Write a note as a hand does."""
    (daemon.store / f"{name}.md").write_text(f"---\ndescription: {hook}\ntype: project\n---\n\n{body}\n")


# -- what is told --------------------------------------------------------------------------------------------


def test_a_day_is_told_a_line_an_event_and_no_body(daemon: Daemon) -> None:
    with listening(daemon) as events:
        first = daemon.save("note", BODY, description="the hook")
        second = daemon.save("note", BODY + " More.", description="the hook")
        restored = daemon.call("memory.restore", name="note", hash=first["hash"])
        everywhere = daemon.save("wide", BODY, scope="global", description=f"a hook with {KEY[:3]}")
        renamed = daemon.call("memory.rename", name="note", to="other")
        moved = daemon.call("memory.move", name="other", scope="global")
        forgotten = daemon.call("memory.forget", name="wide")
        got = told(events, 9)
    rows = [
        ("memory_write", "memory · saved note · repo — the hook", "repo", "note", first["pointer"]),
        ("memory_update", "memory · saved note · repo — the hook", "repo", "note", second["pointer"]),
        ("memory_update", "memory · saved note · repo — the hook", "repo", "note", restored["pointer"]),
        ("memory_write", "memory · saved wide · global — a hook with ghp", "global", "wide", everywhere["pointer"]),
        ("memory_write", "memory · saved other · repo — the hook", "repo", "other", renamed["pointer"]),
        ("memory_delete", "memory · forgot note · repo", "repo", "note", None),
        ("memory_write", "memory · saved other · global — the hook", "global", "other", moved["pointer"]),
        ("memory_delete", "memory · forgot other · repo", "repo", "other", None),
        ("memory_delete", "memory · forgot wide · global", "global", "wide", forgotten["pointer"]),
    ]
    for event, (kind, line, scope, slug, pointer) in zip(got, rows, strict=True):
        assert (event["event"], event["line"]) == (kind, line)
        assert event["scope"] == scope
        assert event["telemetry"] == {"scope": scope, "slug": slug}
        assert pointer in (None, event["pointer"])
        assert "session" not in event
        assert "saved" not in event
    assert "body" not in json.dumps(got)


def test_what_changes_no_note_tells_nothing(daemon: Daemon) -> None:
    daemon.save("note", BODY)
    with listening(daemon) as events:
        daemon.call("memory.read", name="note")
        daemon.call("memory.search", query="note")
        daemon.call("memory.list")
        daemon.call("memory.reconcile")
        with pytest.raises(memd_client.Refused):
            daemon.save("note", BODY, type="none")
        with pytest.raises(memd_client.Conflict):
            daemon.call("memory.save", markdown="x", fields={"name": "note", "type": "user"}, expect=None)
        with pytest.raises(memd_client.NotFound):
            daemon.call("memory.forget", name="absent")
        assert heard(events, daemon) == []


def test_hands_are_heard_whoever_takes_their_work_in(daemon: Daemon) -> None:
    daemon.save("seed", BODY)
    with listening(daemon, cwd=str(daemon.repo)) as events:
        write(daemon, "by-hand", f"leaked {KEY}")
        daemon.call("memory.reconcile")
        write(daemon, "by-hand", "edited words")
        daemon.call("memory.reconcile")
        write(daemon, "by-hand", "edited before a save")
        saved = daemon.save("by-hand", BODY, description="saved over it")
        (daemon.store / "by-hand.md").unlink()
        daemon.call("memory.reconcile")
        got = told(events, 5)
    assert [(event["event"], event["line"]) for event in got] == [
        ("memory_edit", "memory · adopted by-hand · repo — leaked [redacted]"),
        ("memory_edit", "memory · edited by-hand · repo — edited words"),
        ("memory_edit", "memory · edited by-hand · repo — edited before a save"),
        ("memory_update", "memory · saved by-hand · repo — saved over it"),
        ("memory_delete", "memory · forgot by-hand · repo"),
    ]
    assert [event["pointer"]["op"] for event in got] == ["adopt", "edit", "edit", "save", "forget"]
    assert got[3]["pointer"] == saved["pointer"]
    assert {json.dumps(event["telemetry"], sort_keys=True) for event in got} == {
        '{"scope": "repo", "slug": "by-hand"}'
    }
    assert "body" not in json.dumps(got)


def test_what_hands_did_while_no_daemon_ran_is_heard_when_the_store_is_opened_for_the_listener(
    daemon: Daemon,
) -> None:
    daemon.save("seed", BODY)
    daemon.terminate()
    write(daemon, "meanwhile", "written while it was down")
    daemon.start()
    with listening(daemon, cwd=str(daemon.repo)) as events:
        assert next(events)["line"] == "memory · adopted meanwhile · repo — written while it was down"


def test_many_changes_by_hand_are_few_events(daemon: Daemon) -> None:
    many = 5 * SINGLY_MAX  # taken in by a few commits, as the files get quiet
    daemon.save("seed", BODY)
    assert daemon.process is not None
    with listening(daemon) as events:
        daemon.process.send_signal(signal.SIGSTOP)  # or it takes them in one by one, as fast as they are written
        for number in range(many):
            write(daemon, f"note-{number}", "one of many")
        daemon.process.send_signal(signal.SIGCONT)
        daemon.call("memory.reconcile")
        got = heard(events, daemon)
    together = [event for event in got if "slug" not in event["telemetry"]]
    assert {event["event"] for event in got} == {"memory_edit"}
    assert [event["telemetry"] for event in together] == [{"scope": "repo"}] * len(together)
    assert sum(int(event["line"].split()[2]) for event in together) + len(got) - len(together) == many
    assert together


def test_an_import_is_one_event(daemon: Daemon) -> None:
    source = daemon.root / "source"
    source.mkdir()
    for name in ("a", "b", "c"):
        (source / f"{name}.md").write_text(f"---\ndescription: about {name}\ntype: user\n---\n\n{BODY}\n")
    daemon.save("c", "Older words.")
    with listening(daemon) as events:
        daemon.call("memory.import", dir=str(source), dry_run=True)
        daemon.call("memory.import", dir=str(source))
        daemon.call("memory.import", dir=str(source))
        got = heard(events, daemon)
    line = "memory · 2 imported · 1 updated · repo"
    assert got == [{"event": "memory_import", "scope": "repo", "line": line, "telemetry": {"scope": "repo"}}]


def test_an_adopted_store_is_one_event(daemon: Daemon) -> None:
    old = daemon.root / "old"
    (old / ".git").mkdir(parents=True)
    for name in ("a", "b"):
        daemon.save(name, BODY, cwd=old)
    daemon.save("seed", BODY)
    key = daemon.store_of(old).parent.name
    with listening(daemon) as events:
        daemon.call("store.adopt", key=key, dry_run=True)
        daemon.call("store.adopt", key=key)
        got = heard(events, daemon)
    line = "memory · 2 imported · 0 updated · repo"
    assert got == [{"event": "memory_import", "scope": "repo", "line": line, "telemetry": {"scope": "repo"}}]


# -- who hears -----------------------------------------------------------------------------------------------


def test_a_directory_s_listener_hears_its_repository_and_the_global_store(daemon: Daemon) -> None:
    other = daemon.root / "other"
    inside = daemon.repo / "src"
    (other / ".git").mkdir(parents=True)
    inside.mkdir()
    with (
        listening(daemon) as everything,
        listening(daemon, cwd=str(inside)) as here,
        listening(daemon, cwd=str(other)) as there,
    ):
        daemon.save("mine")
        daemon.save("theirs", cwd=other)
        daemon.save("wide", scope="global")
        slugs = [[event["telemetry"]["slug"] for event in heard(events, daemon)] for events in (everything, here)]
        assert slugs == [["mine", "theirs", "wide"], ["mine", "wide"]]
        assert [event["telemetry"]["slug"] for event in told(there, 2)] == ["theirs", "wide"]


def test_a_session_s_listener_hears_its_place_and_how_many_saves_it_has_made(daemon: Daemon) -> None:
    other = daemon.root / "other"
    (other / ".git").mkdir(parents=True)
    with daemon.connect() as agent:
        agent.call("session.start", {"session": "s-1", "cwd": str(daemon.repo)})
        agent.call("session.start", {"session": "s-2", "cwd": str(other)})
        with listening(daemon, session="s-1") as events:
            for name, session in (("a", "s-1"), ("b", "s-2"), ("c", "s-1")):
                scope = "global" if name == "c" else "repo"
                fields = {"name": name, "type": "user", "description": "d", "scope": scope}
                agent.call("memory.save", {"session": session, "markdown": BODY, "fields": fields})
            daemon.save("d")
            agent.call("memory.forget", {"session": "s-1", "name": "d"})
            got = told(events, 4)
            agent.call("session.start", {"session": "s-1", "cwd": str(other)})
            fields = {"name": "e", "type": "user", "description": "d"}
            agent.call("memory.save", {"session": "s-1", "markdown": BODY, "fields": fields})
            got += told(events, 2)
    rows = [(event["telemetry"].get("slug"), event.get("session"), event.get("saved")) for event in got]
    there = [(None, "s-1", None), ("e", "s-1", 3)]
    assert rows == [("a", "s-1", 1), ("c", "s-1", 2), ("d", None, None), ("d", "s-1", None), *there]


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"cwd": "/no/such/place"}, memd_client.Refused),
        ({"session": "nobody"}, memd_client.NotFound),
        ({"session": "a", "cwd": "/"}, memd_client.InvalidParams),
        ({"session": "../a"}, memd_client.InvalidParams),
    ],
)
def test_a_place_that_is_none_is_refused(
    daemon: Daemon, params: dict[str, Any], kind: type[memd_client.MemdError]
) -> None:
    with daemon.connect() as connection, pytest.raises(kind):
        connection.activity(**params)


def test_a_store_that_does_not_read_can_be_listened_to(daemon: Daemon) -> None:
    daemon.save("note", BODY)
    daemon.terminate()
    journal = daemon.store / "ops.jsonl"
    journal.rename(daemon.store / "ops.kept")
    journal.mkdir()
    daemon.start()
    with listening(daemon, cwd=str(daemon.repo)) as events:
        with pytest.raises(memd_client.MemdError):
            daemon.save("refused")
        assert heard(events, daemon) == []


# -- the wire ------------------------------------------------------------------------------------------------


def test_requests_on_a_connection_that_listens_go_on_being_answered(daemon: Daemon) -> None:
    def save(number: int) -> bytes:
        fields = {"name": f"n{number}", "type": "user", "description": "d"}
        return request("memory.save", number, cwd=str(daemon.repo), markdown="", fields=fields)

    with Client(daemon.socket) as client:
        assert client.ask(request("activity.subscribe", "s"))["result"] == {"subscribed": True}
        client.send(*(save(number) for number in range(20)))
        lines = [client.reply() for _ in range(40)]
    assert [line["id"] for line in lines if "id" in line] == list(range(20))
    notifications = [line for line in lines if "id" not in line]
    assert {(line["jsonrpc"], line["method"]) for line in notifications} == {("2.0", "activity")}
    assert [line["params"]["telemetry"]["slug"] for line in notifications] == [f"n{n}" for n in range(20)]


def test_a_batch_is_answered_before_what_it_made_happen_is_told(daemon: Daemon) -> None:
    fields = {"name": "n", "type": "user", "description": "d"}
    members = [
        request("activity.subscribe", 1, cwd=str(daemon.repo)),
        request("memory.save", 2, cwd=str(daemon.repo), markdown="", fields=fields),
    ]
    with Client(daemon.socket) as client:
        client.send(b"[" + b",".join(members) + b"]")
        assert [reply["id"] for reply in client.reply()] == [1, 2]
        assert client.reply()["params"]["telemetry"]["slug"] == "n"


def test_a_subscription_that_wants_no_reply_gets_its_events(daemon: Daemon) -> None:
    with Client(daemon.socket) as client:
        client.send(b'{"jsonrpc":"2.0","method":"activity.subscribe"}')
        assert "result" in client.ask(request("daemon.hello"))
        daemon.save("n")
        assert client.reply()["params"]["telemetry"]["slug"] == "n"


# -- listeners that misbehave --------------------------------------------------------------------------------


def connections(daemon: Daemon) -> int:
    """How many connections the daemon serves, the one that asks counted."""
    with daemon.connect() as connection:
        served: int = connection.call("daemon.status")["connections"]
        return served


def test_a_listener_that_never_reads_is_dropped_while_saves_go_on(daemon: Daemon) -> None:
    daemon.save("seed")
    long = "ü" * 240
    with Client(daemon.socket) as deaf, listening(daemon) as events:
        assert "result" in deaf.ask(request("activity.subscribe"))
        with_both = connections(daemon)
        rounds = 0
        while connections(daemon) == with_both:
            rounds += 1
            assert rounds < 200, "it is never dropped"
            for number in range(SINGLY_MAX):
                write(daemon, f"note-{number}", f"{rounds} {long}")
            daemon.call("memory.reconcile")
            assert daemon.save(f"round-{rounds}")["updated"] is False
            count = len(told(events, SINGLY_MAX + 1))
            assert count == SINGLY_MAX + 1
        assert connections(daemon) == with_both - 1
        lines = list(iter(deaf.line, b""))
        assert all(json.loads(line)["method"] == "activity" for line in lines[:-1])
        daemon.save("after")
        assert next(events)["telemetry"]["slug"] == "after"


@contextmanager
def library() -> Iterator[tuple[Library, Path]]:
    """A library served in this process, and the socket."""
    with tempfile.TemporaryDirectory(prefix="memd-", dir="/tmp") as name:
        home = Path(name) / "home"
        (Path(name) / "repo" / ".git").mkdir(parents=True)
        with listen(home / "run" / "memd.sock") as listener, start_blocking_portal("asyncio") as portal:
            served = portal.call(partial(Library, home, Config()))
            dispatcher = Dispatcher(VERBS, partial(Call, served))
            server = Server(listener, dispatcher.answer, uid=os.geteuid(), count=lambda _: None)
            stop = portal.call(anyio.Event)
            running = portal.start_task_soon(server.serve, stop)
            try:
                yield served, listener.path
            finally:
                portal.call(stop.set)
                running.result(SECONDS)


def subscribed(path: Path, *wheres: dict[str, str]) -> Client:
    """A client that listens."""
    client = Client(path)
    for where in wheres or ({},):
        assert "result" in client.ask(request("activity.subscribe", **where))
    return client


def test_no_subscription_outlives_its_connection() -> None:
    with library() as (served, path):
        repo = {"cwd": str(path.parents[2] / "repo")}
        clients: Sequence[Client] = [subscribed(path), subscribed(path, repo, repo, {}), subscribed(path, repo)]
        assert served.feed.listener_count == 3
        clients[0].sock.close()
        until(lambda: served.feed.listener_count == 2)
        clients[1].sock.shutdown(1)
        until(lambda: served.feed.listener_count == 1)
        with Client(path) as other:
            fields: dict[str, Any] = {"name": "n", "type": "user", "description": "d"}
            assert "result" in other.ask(request("memory.save", **repo, markdown="", fields=fields))
        assert clients[2].reply()["params"]["telemetry"]["slug"] == "n"
        clients[2].sock.close()
        until(lambda: served.feed.listener_count == 0)
        clients[1].sock.close()
