"""`memctl mcp` driven by the official client: tools, resources, prompts, errors, sessions. SPEC section 13."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated

from memd_client import agents
from support.daemon import Daemon
from support.mcp_agent import agent, called, connected, refused
from support.memctl_program import memctl
from support.transcripts import claude
from support.waiting import until

TOOLS = {
    "memory_save": (False, False, False),
    "memory_read": (True, False, True),
    "memory_search": (True, False, True),
    "memory_list": (True, False, True),
    "memory_forget": (False, True, True),
    "memory_focus": (True, False, True),
    "history_search": (True, False, True),
}
"""Each tool, whether it reads only, whether it destroys, whether twice is once."""


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_do_what_the_verbs_do(daemon: Daemon, mode: str) -> None:
    async def work(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == set(TOOLS)
        for name, hints in TOOLS.items():
            tool, said = tools[name], tools[name].annotations
            assert said is not None
            assert (said.read_only_hint, said.destructive_hint, said.idempotent_hint) == hints
            assert said.open_world_hint is False
            assert tool.title
            assert tool.output_schema is not None
            assert tool.input_schema["type"] == "object"
        fields = {"type": "feedback", "description": "Forge tests"}
        saved = await called(client, "memory_save", markdown="Use -k smoke.", **fields)
        assert (saved["name"], saved["saves_left"]) == ("forge-tests", 2)
        assert (await called(client, "memory_search", query="forge"))["hits"][0]["name"] == "forge-tests"
        assert (await called(client, "memory_read", name="forge-tests"))["text"] == "Use -k smoke."
        (row,) = (await called(client, "memory_list", scope=None))["notes"]
        assert row["name"] == "forge-tests"
        assert "Use -k smoke." in (await called(client, "memory_focus", prompt="how do the forge tests run"))["text"]
        again = await called(client, "memory_save", markdown="Use -j1.", expect=saved["hash"], **fields)
        assert again["updated"] is True
        gone = await called(client, "memory_forget", name="forge-tests")
        assert gone["receipt"]["versions"] == 2
        assert (await called(client, "history_search", query="forge"))["total"] == 0

    agent(daemon, work, mode=mode)
    assert daemon.names() == []


def test_what_memd_refuses_is_the_tools_error_in_the_daemons_words(daemon: Daemon) -> None:
    daemon.save("taken", "text")

    async def work(client: Client) -> None:
        text = await refused(client, "memory_save", markdown="x", type="diary", description="d")
        assert text.startswith("memory.save: ")
        assert "user, feedback, project, reference" in text
        assert "must not exist" in await refused(client, "memory_save", markdown="x", name="taken", type="user",
                                       description="d", expect=None)  # fmt: skip
        assert "memory_read: there is no argument nmae" in await refused(client, "memory_read", nmae="taken")
        assert "name is missing" in await refused(client, "memory_forget")
        assert "offset" in await refused(client, "memory_read", name="taken", offset=-1)
        assert "limit" in await refused(client, "memory_search", query="x", limit=0)
        assert await refused(client, "memory_forget", name="no-such-note")
        for count in range(3):
            await called(client, "memory_save", markdown="x", type="user", description=f"Fact number {count}")
        text = await refused(client, "memory_save", markdown="x", type="user", description="One fact more")
        assert text == "memory.save: at most 3 saves per session; this is save 4"
        with pytest.raises(MCPError, match="there is no tool memory_burn"):
            await client.session.call_tool("memory_burn", {})

    agent(daemon, work)


def test_notes_are_resources_and_their_changes_are_told(daemon: Daemon) -> None:
    daemon.save("first", "The first text.")
    daemon.save("über/uns".replace("/", "-"), "Everywhere.", scope="global")

    async def work(client: Client) -> None:
        listed = {each.uri: each for each in (await client.list_resources()).resources}
        assert set(listed) == {"memory://repo/first", "memory://global/%C3%BCber-uns"}
        assert listed["memory://repo/first"].description == "About first"
        for uri, text in [
            ("memory://repo/first", "The first text."),
            ("memory://global/%C3%BCber-uns", "Everywhere."),
        ]:
            (content,) = (await client.read_resource(uri)).contents
            assert text in content.text  # type: ignore[union-attr]
            assert content.mime_type == "text/markdown"
        templates = (await client.list_resource_templates()).resource_templates
        assert "memory://{scope}/{name}" in [each.uri_template for each in templates]
        for uri in ["memory://repo/none", "memory://elsewhere/first", "memory://repo/", "file:///etc/passwd"]:
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        async with client.listen(
            resources_list_changed=True, resource_subscriptions=["memory://repo/first"]
        ) as changes:
            seen: list[Any] = []
            await anyio.to_thread.run_sync(lambda: daemon.save("first", "Another text."))
            await anyio.to_thread.run_sync(lambda: daemon.save("second"))
            async for event in changes:
                seen.append(event)
                if ResourcesListChanged() in seen and ResourceUpdated(uri="memory://repo/first") in seen:
                    break

    agent(daemon, work)


def test_an_older_client_is_told_of_changes_too(daemon: Daemon) -> None:
    news: list[Any] = []
    daemon.save("first")

    async def work(client: Client) -> None:
        assert client.server_capabilities.resources is not None
        assert client.server_capabilities.resources.list_changed
        with pytest.warns(MCPDeprecationWarning):  # as old as this client plays
            await client.subscribe_resource("memory://repo/first")
        await client.list_resources()
        while not {"notifications/resources/list_changed", "notifications/resources/updated"} <= {
            each.method for each in news
        }:
            await anyio.to_thread.run_sync(lambda: daemon.save("first", f"text {len(news)}"))
            await anyio.to_thread.run_sync(lambda: daemon.save(f"more-{len(news)}-x"))
            await anyio.sleep(0.05)

    agent(daemon, work, mode="legacy", news=news)


def test_the_prompts_name_calls_that_are_there(daemon: Daemon) -> None:
    async def work(client: Client) -> None:
        listed = {each.name: each for each in (await client.list_prompts()).prompts}
        assert set(listed) == {"remember", "recall"}
        for name in listed:
            result = await client.get_prompt(name, {"text": "the forge needs -j1"})
            (message,) = result.messages
            text = message.content.text  # type: ignore[union-attr]
            assert text.endswith("the forge needs -j1")
            assert set(re.findall(r"\b((?:memory|history)_\w+)\(", text)) <= set(TOOLS)
            assert "await" not in text
            assert "memory." not in text
        with pytest.raises(MCPError, match="nothing to remember"):
            await client.get_prompt("remember", {"text": "  "})
        with pytest.raises(MCPError, match="no prompt"):
            await client.get_prompt("burn", {"text": "x"})

    agent(daemon, work)


def test_every_call_that_a_block_names_works_as_typed(daemon: Daemon) -> None:
    for number in range(12):
        daemon.save(f"forge-{number}", "Forge tests. " + "long words here " * 120)

    async def work(client: Client) -> None:
        text = (await called(client, "memory_focus", prompt="the forge tests"))["text"]
        calls = set(re.findall(r"\b(\w+)\((\w+)=(\"[^\"]*\")(?:, (scope)=(\"\w+\"))?\)", text))
        assert {call[0] for call in calls} == {"memory_read", "memory_search", "memory_forget"}
        for tool, first, value, second, scope in sorted(calls):
            arguments = {first: json.loads(value)} | ({second: json.loads(scope)} if second else {})
            if arguments == {"name": "name"}:  # the header's stand-in
                arguments = {"name": "forge-11" if tool == "memory_forget" else "forge-0"}
            await called(client, tool, **arguments)
        page = await called(client, "memory_search", query="forge tests", limit=2)
        (notice,) = re.findall(r"memory_search\(query=\"forge tests\", limit=(\d+)\)", page["notice"])
        assert len((await called(client, "memory_search", query="forge tests", limit=int(notice)))["hits"]) == int(
            notice
        )

    agent(daemon, work)


def test_what_is_long_comes_in_pages_that_name_the_next(daemon: Daemon) -> None:
    long = "".join(f'line {number} \\ "quoted"\n' for number in range(9_000))
    (daemon.store / "long.md").parent.mkdir(parents=True, exist_ok=True)
    daemon.save("short")
    (daemon.store / "long.md").write_text(f"---\nname: long\ndescription: long\n---\n\n{long}")
    for number in range(420):
        hook = f"Note {number} " + "with a hook that is as long as hooks may be " * 5
        (daemon.store / f"note-{number:03}.md").write_text(f"---\ndescription: {hook[:239]}\n---\n\nbody\n")
    until(lambda: len(daemon.names()) == 422)

    async def work(client: Client) -> None:
        text, arguments = "", {"name": "long"}
        while True:
            result = await client.call_tool("memory_read", arguments)
            page: Any = result.structured_content
            assert len(result.content[0].text) <= 100_000  # type: ignore[union-attr]
            text += page["text"]
            if "notice" not in page:
                break
            arguments = _arguments(page["notice"], "memory_read")
        assert text == long.strip("\n")
        names: list[str] = []
        arguments = {}
        while True:
            result = await client.call_tool("memory_list", arguments)
            page = result.structured_content
            assert len(result.content[0].text) <= 100_000  # type: ignore[union-attr]
            names += [note["name"] for note in page["notes"]]
            if "notice" not in page:
                break
            arguments = _arguments(page["notice"], "memory_list")
        assert len(names) == len(set(names)) == 422

    agent(daemon, work)


def _arguments(notice: str, tool: str) -> dict[str, Any]:
    """The arguments of the call that a notice names."""
    (given,) = re.findall(rf"{tool}\((.*)\) for", notice)
    return {name: json.loads(value) for name, value in re.findall(r"(\w+)=(\"[^\"]*\"|\d+)", given)}


def test_an_entry_that_history_finds_is_a_resource(daemon: Daemon) -> None:
    slug = re.sub("[^A-Za-z0-9]", "-", str(daemon.repo))
    path = daemon.user / ".claude" / "projects" / slug / "past.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(claude("user", "The zebra build " + "is slow " * 60, cwd=daemon.repo, uuid_="entry-1"))

    async def work(client: Client) -> None:
        page: dict[str, Any] = {"hits": []}
        while not page["hits"]:
            page = await called(client, "history_search", query="zebra")
        (hit,) = page["hits"]
        assert hit["cut"]
        assert f"the resource {hit['url']}" in page["notice"]
        (content,) = (await client.read_resource(hit["url"])).contents
        assert content.text.count("is slow") == 60  # type: ignore[union-attr]

    agent(daemon, work)


def test_two_agents_at_once_have_a_session_each_and_outlive_the_daemon(daemon: Daemon) -> None:
    async def saves(client: Client, name: str) -> None:
        for count in range(2):
            await called(client, "memory_save", markdown="x", type="user", description=f"{name} {count}")

    async def work(first: Client) -> None:
        async with connected(daemon) as second:
            async with anyio.create_task_group() as both:
                both.start_soon(saves, first, "Zebra")
                both.start_soon(saves, second, "Lemon")
            daemon.kill()
            assert (await called(first, "memory_list"))["total"] == 4  # it starts another daemon
            last = await called(second, "memory_save", markdown="x", type="user", description="Last")
            assert last["saves_left"] == 0

    agent(daemon, work)
    memctl(daemon.env, "stop")
    until(lambda: not daemon.socket.exists())


def test_the_session_is_that_of_the_environment_and_a_child_keeps_no_memory(daemon: Daemon) -> None:
    async def root(client: Client) -> None:
        await called(client, "memory_save", markdown="x", type="user", description="Of the root")

    async def child(client: Client) -> None:
        assert "only the root session keeps memory" in await refused(client, "memory_list")

    agent(daemon, root, MEMD_SESSION="run-7")
    (record,) = daemon.call("memory.log")["records"]
    assert record["session"] == "run-7"
    agent(daemon, child, MEMD_SESSION="run-7.1", MEMD_DEPTH="1")


def test_the_session_is_the_one_that_the_agents_hook_noted(daemon: Daemon) -> None:
    async def work(client: Client) -> None:
        await called(client, "memory_save", markdown="x", type="user", description="Before the hook")
        note = [sys.executable, "-c", "from memd_client import agents; agents.note('hooked-1')"]
        await anyio.run_process(["sh", "-c", '"$@"; true', "sh", *note], env=daemon.env)
        await called(client, "memory_save", markdown="x", type="user", description="After the hook")

    agent(daemon, work)
    after, before = daemon.call("memory.log")["records"]
    assert after["session"] == "hooked-1"
    assert before["session"].startswith("py-")
    gone = [sys.executable, "-c", "from memd_client import agents; agents.forget('hooked-1')"]
    subprocess.run(gone, env=daemon.env, check=True)
    assert agents.session(daemon.env) is None


def test_without_the_extra_it_says_what_to_install(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'mcp'\", name='mcp')\n"
    )
    env = daemon.env | {"PYTHONPATH": str(tmp_path)}
    done = memctl(env, "mcp", cwd=daemon.repo)
    assert done.code == 2
    assert "pip install 'memd[mcp]'" in done.err
    assert done.out == ""
