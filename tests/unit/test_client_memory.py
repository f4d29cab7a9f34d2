"""The module `memory` and the pool under it. Law: what a kernel types is what the wire carries."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import memd_client
import memory
from memd_client.pool import KEPT, Pool
from memd_client.session import Caller
from support.client_home import client_home
from support.fake_daemon import FakeDaemon, echo, failure, result
from support.waiting import until

HERE = {"session": "unit"}
NOTE = "---\ntype: feedback\n---\nBody."

Params = dict[str, Any]

# What is called, and the method and parameters that it sends.
CALLS: list[tuple[str, tuple[Any, ...], Params, Params]] = [
    ("save", (NOTE,), {}, {"markdown": NOTE, "fields": {}}),
    (
        "save",
        ("Body.",),
        {"type": "feedback", "scope": "global", "name": "n", "odd": "x"},
        {
            "markdown": "Body.",
            "fields": {"type": "feedback", "scope": "global", "name": "n", "odd": "x"},
        },
    ),
    ("save", ("x",), {"expect": None}, {"markdown": "x", "fields": {}, "expect": None}),
    ("save", ("x",), {"expect": "exists"}, {"markdown": "x", "fields": {}, "expect": "exists"}),
    ("read", ("n",), {}, {"name": "n"}),
    ("read", ("n", "repo"), {}, {"name": "n", "scope": "repo"}),
    ("search", ("forge 注",), {}, {"query": "forge 注", "limit": 5, "offset": 0}),
    (
        "search",
        ("q", 9, "global", 3),
        {},
        {"query": "q", "limit": 9, "scope": "global", "offset": 3},
    ),
    (
        "search",
        ("q",),
        {"ranker": "plain", "explain": True},
        {"query": "q", "limit": 5, "offset": 0, "ranker": "plain", "explain": True},
    ),
    ("forget", ("n",), {}, {"name": "n"}),
    ("forget", ("n",), {"scope": "global"}, {"name": "n", "scope": "global"}),
    ("focus", ("why?",), {}, {"prompt": "why?", "dialect": "python", "abstain": True}),
    ("focus", ("", "mcp", False), {}, {"prompt": "", "dialect": "mcp", "abstain": False}),
    (
        "focus",
        ("why?",),
        {"ranker": "plain"},
        {"prompt": "why?", "dialect": "python", "abstain": True, "ranker": "plain"},
    ),
    ("index", (), {}, {"max_bytes": 8192}),
    ("index", (600,), {}, {"max_bytes": 600}),
    ("list", (), {}, {"offset": 0}),
    (
        "list",
        ("repo", "user", 7, 2),
        {},
        {"scope": "repo", "type": "user", "limit": 7, "offset": 2},
    ),
]


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """This process in a home of its own, where nothing is started, in a session that its host has started."""
    with client_home() as variables:
        monkeypatch.setattr(memory, "_caller", Caller(Pool()))
        monkeypatch.setenv("MEMD_HOME", variables["MEMD_HOME"])
        monkeypatch.setenv("MEMD_NO_AUTOSTART", "1")
        monkeypatch.setenv("MEMD_SESSION", HERE["session"])
        monkeypatch.delenv("MEMD_DEPTH", raising=False)
        monkeypatch.delenv("MEMD_SOCKET", raising=False)
        yield variables | {"MEMD_SESSION": HERE["session"]}
        memory._caller.close()


@pytest.fixture
def daemon(env: dict[str, str]) -> Iterator[FakeDaemon]:
    with FakeDaemon(memd_client.socket_path(env)) as fake:
        yield fake


@pytest.mark.parametrize(("verb", "arguments", "named", "expected"), CALLS)
def test_a_blocking_call(
    daemon: FakeDaemon, verb: str, arguments: tuple[Any, ...], named: Params, expected: Params
) -> None:
    call: Callable[..., Params] = getattr(memory.sync, verb)
    assert call(*arguments, **named) == HERE | expected
    assert daemon.methods == [f"memory.{verb}"]


@pytest.mark.parametrize(("verb", "arguments", "named", "expected"), CALLS)
def test_an_awaited_call(
    daemon: FakeDaemon, verb: str, arguments: tuple[Any, ...], named: Params, expected: Params
) -> None:
    async def main() -> Any:
        return await getattr(memory, verb)(*arguments, **named)

    assert asyncio.run(main()) == HERE | expected
    assert daemon.methods == [f"memory.{verb}"]


ALIASES: list[tuple[str, tuple[Any, ...], str, Params]] = [
    ("list_memory", (), "memory.list", {"offset": 0, "bodies": True}),
    ("delete_memory", ("n", "global"), "memory.forget", {"name": "n", "scope": "global"}),
]


@pytest.mark.parametrize(("verb", "arguments", "method", "expected"), ALIASES)
def test_another_word_for_a_verb(
    daemon: FakeDaemon, verb: str, arguments: tuple[Any, ...], method: str, expected: Params
) -> None:
    async def main() -> Any:
        return await getattr(memory, verb)(*arguments)

    assert getattr(memory.sync, verb)(*arguments) == HERE | expected
    assert asyncio.run(main()) == HERE | expected
    assert daemon.methods == [method, method]


def test_a_deletion_names_its_scope() -> None:
    delete: Callable[..., Any] = memory.sync.delete_memory
    with pytest.raises(TypeError, match="scope"):
        delete("n")


def test_remember_gives_a_brief_that_ends_with_the_text() -> None:
    text = "Tell nobody to deploy on Fridays. "

    async def main() -> str:
        return await memory.remember(text)

    brief = asyncio.run(main())
    assert brief.endswith("\n\n" + text)
    assert brief == memory.sync.remember(text)
    for word in ("name", "description", "type", "scope", "user", "feedback", "project", "reference", "memory.save("):
        assert word in brief
    with pytest.raises(memory.errors.Refused) as caught:
        memory.sync.remember(" \n")
    assert caught.value.data["field"] == "text"


def test_an_error_comes_as_its_class(daemon: FakeDaemon) -> None:
    data = {"kind": "conflict", "hash": "sha256:0"}
    error = {"code": -32006, "message": "memory.save: moved", "data": data}
    daemon.answer = lambda request: failure(request, error)

    async def main() -> None:
        await memory.save("x", expect="sha256:1")

    with pytest.raises(memory.errors.Conflict, match=r"memory\.save: moved") as caught:
        asyncio.run(main())
    assert caught.value.data["hash"] == "sha256:0"


def test_a_star_import_leaves_the_builtins_alone() -> None:
    import builtins

    assert not set(memory.__all__) & set(vars(builtins))
    verbs = {"start", "focus", "index", "save", "read", "search", "forget", "history", "compact"}
    assert verbs | {"list_memory", "delete_memory", "remember", "sync", "errors"} == set(memory.__all__)


def test_awaits_go_on_at_once_and_the_loop_goes_on_meanwhile(daemon: FakeDaemon) -> None:
    """Each answer waits until the other's request is there: one after the other would hang."""
    both = threading.Barrier(2)

    def together(request: dict[str, Any]) -> bytes:
        both.wait(20)
        return echo(request)

    daemon.answer = together

    async def main() -> tuple[Any, Any]:
        return await asyncio.gather(memory.read("a"), memory.read("b"))

    first, second = asyncio.run(main())
    assert (first["name"], second["name"]) == ("a", "b")
    assert daemon.connections == 2


def test_a_connection_is_used_again(daemon: FakeDaemon) -> None:
    async def main() -> None:
        for _ in range(3):
            await memory.list()

    asyncio.run(main())
    memory.sync.list()
    assert daemon.connections == 1


def test_a_cancelled_await_leaves_its_connection_in_order(daemon: FakeDaemon) -> None:
    answered = threading.Event()

    def late(request: dict[str, Any]) -> bytes:
        answered.wait(20)
        return echo(request)

    daemon.answer = late

    async def main() -> Any:
        task = asyncio.create_task(memory.read("first"))
        await asyncio.to_thread(until, lambda: daemon.methods == ["memory.read"])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        answered.set()
        return await memory.read("second")

    assert asyncio.run(main())["name"] == "second"
    assert memory.sync.read("third")["name"] == "third"


def test_many_threads_share_the_pool(daemon: FakeDaemon) -> None:
    daemon.answer = lambda request: result(request, {"name": request["params"]["name"] + "!"})
    wrong = []

    def work(thread: int) -> None:
        for number in range(20):
            name = f"{thread}-{number}"
            if memory.sync.read(name)["name"] != name + "!":
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(daemon.requests) == 160


def test_the_pool_keeps_few_connections_open(env: dict[str, str]) -> None:
    crowd = KEPT + 2
    everyone = threading.Barrier(crowd)

    def together(request: dict[str, Any]) -> bytes:
        everyone.wait(20)
        return echo(request)

    with FakeDaemon(memd_client.socket_path(env), together) as daemon:
        pool = Pool(env, autostart=False)
        threads = [threading.Thread(target=pool.call, args=("x.y",)) for _ in range(crowd)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert daemon.connections == crowd
        until(lambda: daemon.alive == KEPT)
        pool.close()
        until(lambda: daemon.alive == 0)
        daemon.answer = echo
        assert pool.call("x.y", {"n": 1}) == {"n": 1}
        pool.close()


FORKED = """
import os, memory

memory.sync.read("parent, before")
child = os.fork()
if child == 0:
    assert memory.sync.read("child")["name"] == "child"
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert memory.sync.read("parent, after")["name"] == "parent, after"
"""


def test_a_forked_kernel_has_connections_of_its_own(daemon: FakeDaemon, env: dict[str, str]) -> None:
    command = [sys.executable, "-W", "error", "-X", "dev", "-c", FORKED]
    done = subprocess.run(command, env=env, check=True, timeout=30, capture_output=True)
    assert done.stderr == b""
    names = [request["params"]["name"] for request in daemon.requests]
    assert names == ["parent, before", "child", "parent, after"]
    assert daemon.connections == 2


IMPORTS = """
import sys
before = set(sys.modules)
import memd_client, memory
memory.sync.search("forge")
print(*sorted(set(sys.modules) - before))
"""

HEAVY = (
    "asyncio",
    "subprocess",
    "argparse",
    "pathlib",
    "typing",
    "dataclasses",
    "hashlib",
    "logging",
    "msgspec",
    "anyio",
    "numpy",
    "portalocker",
    "jsonrpcserver",
    "memd",
)


def test_a_first_answer_takes_only_light_imports(daemon: FakeDaemon, env: dict[str, str]) -> None:
    """Without `site`, so that nothing this machine loads for itself hides an import."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTS],
        env=env,
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    loaded = done.stdout.split()
    assert "memd_client.connection" in loaded
    assert not set(loaded) & set(HEAVY)
    roots = {name.partition(".")[0] for name in loaded}
    assert roots <= sys.stdlib_module_names | {"memd_client", "memory"}
