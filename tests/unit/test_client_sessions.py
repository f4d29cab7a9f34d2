"""The session a process calls in. Law: whoever calls first starts it, once; no fork goes on as its parent."""

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import memd_client
import memory
from memd_client.pool import Pool
from memd_client.session import Caller, own_id
from support.client_home import client_home
from support.fake_daemon import FakeDaemon, failure, result
from support.waiting import until

ID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
POINTER = {"op": "save", "name": "n", "scope": "repo", "hash": "sha256:0"}
ENTRY = {"type": "custom", "customType": "memory", "data": POINTER}
UNKNOWN = {"code": -32002, "message": "no session", "data": {"kind": "not_found", "field": "session"}}
NO_NOTE = {"code": -32002, "message": "no note", "data": {"kind": "not_found"}}


class Sessions:
    """A daemon's answers: it knows the sessions that were started, and a save and a read have a pointer."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    def __call__(self, request: dict[str, Any]) -> bytes:
        method, params = request["method"], request["params"]
        if method == "session.start":
            self.known.add(params["session"])
            return result(request, {"lines": ["memory"], "saves_left": 3})
        if params["session"] not in self.known:
            return failure(request, UNKNOWN)
        if params.get("name") == "nothing":
            return failure(request, NO_NOTE)
        more = {"pointer": POINTER} if method in ("memory.save", "memory.read") else {}
        return result(request, params | more)


@pytest.fixture
def sessions() -> Sessions:
    return Sessions()


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """This process in a home of its own, as if it had just imported `memory`; no session is named."""
    with client_home() as variables:
        monkeypatch.setattr(memory, "_caller", Caller(Pool()))
        monkeypatch.setenv("MEMD_HOME", variables["MEMD_HOME"])
        monkeypatch.setenv("MEMD_NO_AUTOSTART", "1")
        for name in ("MEMD_SESSION", "MEMD_DEPTH", "MEMD_SOCKET"):
            monkeypatch.delenv(name, raising=False)
        yield variables | {"MEMD_NO_AUTOSTART": "1"}
        memory._caller.close()


@pytest.fixture
def daemon(env: dict[str, str], sessions: Sessions) -> Iterator[FakeDaemon]:
    with FakeDaemon(memd_client.socket_path(env), sessions) as fake:
        yield fake


def starts(daemon: FakeDaemon) -> list[dict[str, Any]]:
    """The parameters of every `session.start`."""
    return [request["params"] for request in daemon.requests if request["method"] == "session.start"]


def ran(script: str, env: dict[str, str], **more: str) -> str:
    """What a kernel of its own process prints; it must end well, and without a word on stderr."""
    command = [sys.executable, "-W", "error", "-X", "dev", "-c", script]
    done = subprocess.run(command, env=env | more, timeout=30, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# ---------------------------------------------------------------- which session


def test_without_a_word_of_it_the_first_call_starts_one_of_the_process_s_own(daemon: FakeDaemon) -> None:
    memory.sync.search("q")
    asyncio.run(memory.search("q"))
    assert daemon.methods == ["session.start", "memory.search", "memory.search"]
    [start] = starts(daemon)
    assert ID.fullmatch(start["session"])
    assert f"-{os.getpid()}-" in start["session"]
    assert start == {"session": start["session"], "cwd": str(Path.cwd()), "depth": 0}
    assert {request["params"]["session"] for request in daemon.requests} == {start["session"]}
    assert "cwd" not in daemon.requests[1]["params"]


def test_an_own_id_is_nobody_else_s_and_fits_the_wire() -> None:
    ids = {own_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(ID.fullmatch(each) and len(each) <= 128 for each in ids)


def test_a_host_s_session_is_started_only_when_the_daemon_does_not_know_it(
    daemon: FakeDaemon, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start would take it to another directory."""
    monkeypatch.setenv("MEMD_SESSION", "host-1")
    monkeypatch.setenv("MEMD_DEPTH", "2")
    sessions.known.add("host-1")
    memory.sync.search("q")
    assert daemon.methods == ["memory.search"]
    sessions.known.clear()
    assert memory.sync.search("q")["session"] == "host-1"  # type: ignore[typeddict-item]  # the fake gives it back
    assert daemon.methods[1:] == ["memory.search", "session.start", "memory.search"]
    assert starts(daemon) == [{"session": "host-1", "cwd": str(Path.cwd()), "depth": 2}]


@pytest.mark.parametrize("empty", ["MEMD_SESSION", "MEMD_DEPTH"])
def test_an_empty_variable_says_nothing(daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    monkeypatch.setenv(empty, "")
    memory.sync.search("q")
    [start] = starts(daemon)
    assert (start["session"][:3], start["depth"]) == ("py-", 0)


@pytest.mark.parametrize("depth", ["one", "-1", "1.5", "²", "9" * 20, " 1"])
def test_a_depth_that_is_none_is_refused_and_no_child_passes_as_a_root(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, depth: str
) -> None:
    monkeypatch.setenv("MEMD_DEPTH", depth)
    for _ in range(2):
        with pytest.raises(memory.errors.InvalidParams, match="MEMD_DEPTH"):
            memory.sync.search("q")
    assert daemon.requests == []


def test_a_start_says_all_that_is_given_and_no_more(daemon: FakeDaemon, tmp_path: Path) -> None:
    reply = memory.sync.start("run-1")
    assert reply == {"lines": ["memory"], "saves_left": 3}
    memory.sync.start("run-2", cwd=tmp_path, depth=1, resumed=True, save_cap=None, transcript=tmp_path / "t.jsonl")
    memory.sync.start("run-3", cwd="sub", save_cap=7, transcript="t.jsonl")
    here = str(Path.cwd())
    assert starts(daemon) == [
        {"session": "run-1", "cwd": here, "depth": 0, "resumed": False},
        {
            "session": "run-2",
            "cwd": str(tmp_path),
            "depth": 1,
            "resumed": True,
            "save_cap": None,
            "transcript": str(tmp_path / "t.jsonl"),
        },
        {
            "session": "run-3",
            "cwd": f"{here}/sub",
            "depth": 0,
            "resumed": False,
            "save_cap": 7,
            "transcript": f"{here}/t.jsonl",
        },
    ]


def test_an_awaited_start_is_the_same(daemon: FakeDaemon) -> None:
    async def main() -> Any:
        return await memory.start("run-1", depth=3, save_cap=0)

    assert asyncio.run(main()) == {"lines": ["memory"], "saves_left": 3}
    assert starts(daemon)[0].items() >= {"session": "run-1", "depth": 3, "save_cap": 0}.items()


def test_after_a_start_every_call_is_made_in_it_until_another(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMD_SESSION", "host-1")
    memory.sync.start("run-1")
    memory.sync.search("q")
    memory.sync.start("run-2")
    memory.sync.search("q")
    memory.sync.start()
    memory.sync.search("q")
    named = [request["params"]["session"] for request in daemon.requests]
    assert named == ["run-1", "run-1", "run-2", "run-2", "host-1", "host-1"]


def test_a_start_without_a_name_keeps_the_process_s_own(daemon: FakeDaemon) -> None:
    memory.sync.search("q")
    memory.sync.start(resumed=True)
    memory.sync.search("q")
    assert len({request["params"]["session"] for request in daemon.requests}) == 1
    assert len(starts(daemon)) == 2


def test_a_session_keeps_the_directory_it_was_started_in(
    daemon: FakeDaemon, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = str(Path.cwd())
    memory.sync.search("q")
    monkeypatch.chdir(tmp_path)
    sessions.known.clear()
    memory.sync.search("q")
    assert [start["cwd"] for start in starts(daemon)] == [here, here]


def test_a_directory_that_is_gone_is_refused_and_the_next_call_looks_again(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(memory.errors.Refused) as caught:
        memory.sync.list()
    assert caught.value.data["field"] == "cwd"
    assert daemon.requests == []
    monkeypatch.chdir(tmp_path)
    memory.sync.list()
    assert starts(daemon)[0]["cwd"] == str(tmp_path)


def test_a_start_that_failed_is_tried_again_and_no_other_session_takes_its_place(daemon: FakeDaemon) -> None:
    answer = daemon.answer
    daemon.answer = lambda request: failure(request, {"code": -32008, "message": "full", "data": {"kind": "storage"}})
    for attempt in (lambda: memory.sync.start("run-1", save_cap=9), lambda: memory.sync.search("q")):
        with pytest.raises(memory.errors.Storage):
            attempt()
    daemon.answer = answer
    memory.sync.search("q")
    assert [start["session"] for start in starts(daemon)] == ["run-1"] * 3
    assert starts(daemon)[-1]["save_cap"] == 9


# ---------------------------------------------------------------- once


def test_first_calls_at_once_start_it_once(daemon: FakeDaemon, sessions: Sessions) -> None:
    crowd = threading.Barrier(8)

    def work() -> None:
        crowd.wait(20)
        memory.sync.search("q")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(starts(daemon)) == 1
    assert len(daemon.requests) == 9


def test_first_awaits_at_once_start_it_once_and_the_loop_goes_on_meanwhile(
    daemon: FakeDaemon, sessions: Sessions
) -> None:
    started = threading.Event()

    def late(request: dict[str, Any]) -> bytes:
        if request["method"] == "session.start":
            started.wait(20)
        return sessions(request)

    daemon.answer = late

    async def main() -> list[Any]:
        calls = [asyncio.create_task(memory.search(f"q{number}")) for number in range(8)]
        await asyncio.to_thread(until, lambda: daemon.methods == ["session.start"])
        started.set()
        return await asyncio.gather(*calls)

    assert [reply["query"] for reply in asyncio.run(main())] == [f"q{number}" for number in range(8)]
    assert len(starts(daemon)) == 1


def test_when_the_daemon_has_lost_it_all_that_notice_at_once_start_it_once_again(
    daemon: FakeDaemon, sessions: Sessions
) -> None:
    memory.sync.search("q")
    everyone = threading.Barrier(4)

    def lost(request: dict[str, Any]) -> bytes:
        if request["method"] != "session.start" and not sessions.known:
            everyone.wait(20)
            return failure(request, UNKNOWN)
        return sessions(request)

    sessions.known.clear()
    daemon.answer = lost
    threads = [threading.Thread(target=memory.sync.search, args=("q",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(starts(daemon)) == 2
    assert len(daemon.requests) == 2 + 4 + 1 + 4


def test_a_session_that_stays_unknown_is_an_error_after_one_start(daemon: FakeDaemon, sessions: Sessions) -> None:
    def deaf(request: dict[str, Any]) -> bytes:
        return result(request, {}) if request["method"] == "session.start" else failure(request, UNKNOWN)

    daemon.answer = deaf
    with pytest.raises(memory.errors.NotFound):
        memory.sync.search("q")
    assert daemon.methods == ["session.start", "memory.search", "session.start", "memory.search"]


def test_a_note_that_is_not_found_starts_nothing(daemon: FakeDaemon) -> None:
    memory.sync.start("run-1")
    with pytest.raises(memory.errors.NotFound, match="no note"):
        memory.sync.read("nothing")
    assert daemon.methods == ["session.start", "memory.read"]


@pytest.mark.parametrize(
    ("call", "is_repeated"),
    [
        (lambda: memory.sync.focus("p"), True),
        (lambda: memory.sync.start("run-1"), True),
        (lambda: memory.sync.search("q"), True),
        (lambda: memory.sync.save("x"), False),
        (lambda: memory.sync.forget("x"), False),
    ],
)
def test_what_leaves_the_same_when_done_twice_is_sent_again(
    daemon: FakeDaemon, sessions: Sessions, call: Any, is_repeated: bool
) -> None:
    memory.sync.start("run-1")
    broken: list[str] = []

    def once(request: dict[str, Any]) -> bytes | None:
        if not broken:
            broken.append(request["method"])
            return None
        return sessions(request)

    daemon.answer = once
    if is_repeated:
        call()
    else:
        with pytest.raises(memory.errors.ConnectionLost):
            call()
    assert daemon.methods[1:] == broken * (2 if is_repeated else 1)


# ---------------------------------------------------------------- the host's transcript


def test_the_host_gets_an_entry_for_every_reply_with_a_pointer(daemon: FakeDaemon) -> None:
    entries: list[dict[str, Any]] = []
    memory.sync.start("run-1", on_entry=entries.append)
    memory.sync.search("q")
    assert entries == []
    memory.sync.save("x")
    assert entries == [ENTRY]
    memory.sync.read("n")
    assert entries == [ENTRY, ENTRY]
    memory.sync.start("run-2")
    memory.sync.save("x")
    assert entries == [ENTRY, ENTRY]


def test_an_awaited_call_hands_its_entry_on_in_the_loop_s_thread_before_it_returns(daemon: FakeDaemon) -> None:
    threads: list[int] = []

    async def main() -> list[int]:
        await memory.start("run-1", on_entry=lambda entry: threads.append(threading.get_ident()))
        await memory.save("x")
        return [*threads]

    assert asyncio.run(main()) == [threading.get_ident()]


def test_a_cancelled_await_whose_save_was_carried_out_still_gives_its_entry(
    daemon: FakeDaemon, sessions: Sessions
) -> None:
    answered = threading.Event()

    def late(request: dict[str, Any]) -> bytes:
        if request["method"] == "memory.save":
            answered.wait(20)
        return sessions(request)

    daemon.answer = late
    entries: list[dict[str, Any]] = []

    async def main() -> None:
        handed_on = asyncio.Event()

        def on_entry(entry: dict[str, Any]) -> None:
            entries.append(entry)
            handed_on.set()

        await memory.start("run-1", on_entry=on_entry)
        task = asyncio.create_task(memory.save("x"))
        await asyncio.to_thread(until, lambda: "memory.save" in daemon.methods)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert entries == []
        answered.set()
        await asyncio.wait_for(handed_on.wait(), 20)

    asyncio.run(main())
    assert entries == [ENTRY]


def test_a_cancelled_await_that_was_not_sent_yet_is_not_sent(daemon: FakeDaemon, sessions: Sessions) -> None:
    answered = threading.Event()

    def late(request: dict[str, Any]) -> bytes:
        if request["method"] == "memory.search":
            answered.wait(20)
        return sessions(request)

    daemon.answer = late

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        await memory.start("run-1")
        first = asyncio.create_task(memory.search("q"))
        second = asyncio.create_task(memory.save("x"))
        await asyncio.sleep(0)  # both are asked for by now
        until(lambda: "memory.search" in daemon.methods)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        answered.set()
        await first
        await memory.read("n")

    asyncio.run(main())
    assert daemon.methods == ["session.start", "memory.search", "memory.read"]


@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_host_that_cannot_take_an_entry_fails_no_save(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, is_awaited: bool
) -> None:
    shown: list[BaseException] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, traceback: shown.append(error))
    full = OSError("the transcript's disk is full")

    def on_entry(entry: dict[str, Any]) -> None:
        raise full

    memory.sync.start("run-1", on_entry=on_entry)
    reply: Any = asyncio.run(memory.save("x")) if is_awaited else memory.sync.save("x")
    assert reply["pointer"] == POINTER
    assert shown == [full]


# ---------------------------------------------------------------- processes

FORKED = """
import os, memory

{before}
child = os.fork()
memory.sync.search("child" if child == 0 else "parent")
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
memory.sync.search("parent, later")
"""

OWN = 'memory.sync.search("parent, before")'
TOLD = 'memory.sync.start("run-1")'


def by_query(daemon: FakeDaemon) -> dict[str, str]:
    """The session of every search, by its words."""
    return {
        request["params"]["query"]: request["params"]["session"]
        for request in daemon.requests
        if request["method"] == "memory.search"
    }


def test_a_forked_child_has_a_session_of_its_own(daemon: FakeDaemon, env: dict[str, str]) -> None:
    ran(FORKED.format(before=OWN), env)
    named = by_query(daemon)
    assert named["parent"] == named["parent, before"] == named["parent, later"] != named["child"]
    assert len(starts(daemon)) == 2


def test_a_child_forked_before_the_first_call_has_one_too(daemon: FakeDaemon, env: dict[str, str]) -> None:
    ran(FORKED.format(before=""), env)
    named = by_query(daemon)
    assert named["parent"] == named["parent, later"] != named["child"]


@pytest.mark.parametrize("before", [OWN, TOLD])
def test_a_forked_child_stays_in_the_session_that_a_host_named(
    daemon: FakeDaemon, env: dict[str, str], before: str
) -> None:
    ran(FORKED.format(before=before), env, MEMD_SESSION="run-1")
    assert set(by_query(daemon).values()) == {"run-1"}


HELD = """
import os, threading, memory

memory.sync.start("run-1")
memory._caller._lock.acquire()
memory._caller._session._lock.acquire()
child = os.fork()
if child == 0:
    memory._caller._session.starts = 0  # as if it had been forked in the midst of the start
    memory.sync.search("child")
    memory.sync.start("run-2")
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_a_child_forked_while_a_thread_starts_a_session_waits_for_nobody(
    daemon: FakeDaemon, env: dict[str, str]
) -> None:
    ran(HELD, env)
    assert [start["session"] for start in starts(daemon)] == ["run-1", "run-1", "run-2"]


LEFT = """
import os
from memd_client.pool import Pool

pool = Pool()
pool.call("x.y", {"session": "-"})
child = os.fork()
if child == 0:
    os._exit(pool.tell("x.y", {"session": "-"}))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert pool.tell("x.y", {"session": "-"})
pool.close()
"""


def test_a_forked_child_tells_nothing_over_its_parent_s_connection(
    daemon: FakeDaemon, env: dict[str, str], sessions: Sessions
) -> None:
    sessions.known.add("-")
    ran(LEFT, env)


def test_at_its_end_a_process_lets_go_of_its_own_session_only(daemon: FakeDaemon, env: dict[str, str]) -> None:
    def ended() -> list[str]:
        return [request["params"]["session"] for request in daemon.requests if request["method"] == "session.end"]

    ran("import memory\n" + TOLD + "\nmemory.sync.search('q')", env)
    ran("import memory\nmemory.sync.search('q')", env, MEMD_SESSION="run-1")
    ran("import memory", env)
    ran("import memory\n" + OWN, env)
    until(lambda: len(ended()) == 1)
    assert ended() == [starts(daemon)[-1]["session"]]
    assert "id" not in next(request for request in daemon.requests if request["method"] == "session.end")


def test_an_end_waits_for_no_daemon_and_starts_none(daemon: FakeDaemon, env: dict[str, str]) -> None:
    stopped = """
import memory, sys
memory.sync.search("q")
print("ready", flush=True)
sys.stdin.readline()
"""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", stopped],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        daemon.stop()
        _, complaint = process.communicate("\n", timeout=20)
    assert (process.returncode, complaint) == (0, "")
    assert "session.end" not in daemon.methods
