"""memd behind the official SDK's memory tool: a model's commands come in by its tool runner (SPEC 13)."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic.lib.tools import ToolError

from memd_anthropic import AsyncMemoryTool, MemoryTool
from support.daemon import Daemon, running_daemon
from support.scripted_model import scripted

ASKED: dict[str, Any] = {
    "model": "scripted",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "Remember."}],
}
LISTING = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:\n"


class Tool(MemoryTool):
    """The tool with commands as keywords."""

    def ok(self, command: str, path: str | None = None, **given: object) -> str:
        """The answer to a command that does what it says."""
        answer = self.call({"command": command, **given} | ({} if path is None else {"path": path}))
        assert isinstance(answer, str)
        return answer

    def fails(self, command: str, path: str | None = None, **given: object) -> str:
        """The error of one that does not."""
        with pytest.raises(ToolError) as caught:
            self.ok(command, path, **given)
        assert isinstance(caught.value.content, str)
        return caught.value.content

    def text(self, path: str) -> str:
        """A file's text, its line numbers taken off."""
        lines = self.ok("view", path).split("\n")[1:]
        return "\n".join(line.partition("\t")[2] for line in lines) + "\n"


@pytest.fixture(scope="module")
def serving() -> Iterator[Daemon]:
    """One daemon for all of these tests."""
    with running_daemon() as running:
        yield running


@pytest.fixture
def daemon(serving: Daemon, request: pytest.FixtureRequest) -> Daemon:
    """The daemon, running, with a repository of the test's own and nothing in the global store."""
    if not serving.is_running:
        serving.start()
    serving.repo = serving.root / f"repo-{request.node.name}"
    (serving.repo / ".git").mkdir(parents=True)
    for row in serving.call("memory.list", scope="global")["notes"]:
        serving.call("memory.forget", name=row["name"], scope="global")
    return serving


@pytest.fixture
def tool(daemon: Daemon) -> Iterator[Tool]:
    """The tool over a real daemon that is not started anew."""
    made = Tool(cwd=daemon.repo, env=daemon.env | {"MEMD_NO_AUTOSTART": "1"})
    yield made
    made.close()


SCRIPT: list[dict[str, object]] = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/progress.md", "file_text": "# Progress\n- parser done\n"},
    {"command": "create", "path": "/memories/progress.md", "file_text": "again"},
    {"command": "str_replace", "path": "/memories/progress.md", "old_str": "parser", "new_str": "lexer"},
    {"command": "str_replace", "path": "/memories/progress.md", "old_str": "compiler", "new_str": "linker"},
    {"command": "insert", "path": "/memories/progress.md", "insert_line": 9, "insert_text": "- parser next\n"},
    {"command": "insert", "path": "/memories/progress.md", "insert_line": 90, "insert_text": "x"},
    {"command": "view", "path": "/memories/progress.md", "view_range": [8, -1]},
    {"command": "rename", "old_path": "/memories/progress.md", "new_path": "/memories/repo/build-state.md"},
    {"command": "view", "path": "/memories/progress.md"},
    {"command": "view", "path": "/memories/../../etc/passwd"},
    {"command": "create", "path": "/memories/key.txt", "file_text": "sk-" + "a1" * 20},
    {"command": "delete", "path": "/memories/repo/build-state.md"},
    {"command": "delete", "path": "/memories/repo/build-state.md"},
]
RESULTS = [
    (LISTING.format("/memories") + "0B\t/memories\n0B\t/memories/global/\n0B\t/memories/repo/", False),
    ("File created successfully at: /memories/progress.md", False),
    ("Error: File /memories/progress.md already exists", True),
    ("The memory file has been edited.\n     7\t\n     8\t# Progress\n     9\t- lexer done", False),
    (
        "No replacement was performed, old_str `compiler` did not appear verbatim in /memories/progress.md.",
        True,
    ),
    ("The file /memories/progress.md has been edited.", False),
    (
        (
            "Error: Invalid `insert_line` parameter: 90. It should be within the range of lines of the file: [1, 10]"
            " (the note's block begins at line 1, its body at line 7)"
        ),
        True,
    ),
    (
        (
            "Here's the content of /memories/progress.md with line numbers:\n"
            "     8\t# Progress\n     9\t- lexer done\n    10\t- parser next"
        ),
        False,
    ),
    ("Successfully renamed /memories/progress.md to /memories/repo/build-state.md", False),
    ("The path /memories/progress.md does not exist. Please provide a valid path.", True),
    ("Error: Path /memories/../../etc/passwd would escape /memories directory, or has a part that is no name", True),
    (
        (
            "Error: memory.save: the text holds something key-shaped (sk-) in line 1;"
            " keys are never kept: say where the key is found instead"
        ),
        True,
    ),
    ("Successfully deleted /memories/repo/build-state.md", False),
    ("Error: The path /memories/repo/build-state.md does not exist", True),
]
JOURNAL = ["save", "save", "save", "read", "save", "save", "forget", "forget"]


def journaled(daemon: Daemon) -> list[str]:
    """What was done to notes, oldest first, all of it by the tool's session."""
    records = [record for record in daemon.call("memory.log")["records"] if record["scope"] == "repo"]
    assert len({record["session"] for record in records}) == 1
    assert records[0]["session"].startswith("tool-")
    return [record["op"] for record in reversed(records)]


def test_the_sdk_s_runner_drives_it(daemon: Daemon) -> None:
    with scripted(*SCRIPT) as model, anthropic.Anthropic(api_key="none", base_url=model.url) as client:
        tool = MemoryTool(cwd=daemon.repo, env=daemon.env)
        last = client.beta.messages.tool_runner(**ASKED, tools=[tool]).until_done()
        tool.close()
    assert last.stop_reason == "end_turn"
    assert model.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert model.results == RESULTS
    assert journaled(daemon) == JOURNAL


def test_the_sdk_s_asynchronous_runner_drives_it(daemon: Daemon) -> None:
    async def drive(url: str) -> str:
        async with anthropic.AsyncAnthropic(api_key="none", base_url=url) as client:
            tool = AsyncMemoryTool(cwd=daemon.repo, env=daemon.env)
            last = await client.beta.messages.tool_runner(**ASKED, tools=[tool]).until_done()
            tool.close()
            return str(last.stop_reason)

    with scripted(*SCRIPT) as model:
        assert asyncio.run(drive(model.url)) == "end_turn"
    assert model.results == RESULTS
    assert journaled(daemon) == JOURNAL


def test_a_file_is_the_whole_note(daemon: Daemon, tool: Tool) -> None:
    text = '---\nname: tides\ndescription: "When the tide turns"\ntype: reference\nsource: pilot\n---\n\nAsk.\n'
    assert tool.ok("create", "/memories/global/tides.md", file_text=text) == (
        "File created successfully at: /memories/global/tides.md"
    )
    assert tool.text("/memories/global/tides.md") == text
    assert daemon.call("memory.show", name="tides")["markdown"] == text
    tool.ok("str_replace", "/memories/global/tides.md", old_str="type: reference", new_str="type: user")
    assert daemon.call("memory.read", name="tides")["type"] == "user"
    assert (daemon.global_store / "tides.md").read_text() == text.replace("reference", "user")


def test_a_note_of_anybody_s_is_seen(daemon: Daemon, tool: Tool) -> None:
    daemon.save("wind", "Knots.")
    daemon.save("wind", "Beaufort.", scope="global")
    listing = tool.ok("view", "/memories")
    assert [line.partition("\t")[2] for line in listing.split("\n")[1:]] == [
        "/memories",
        "/memories/global/",
        "/memories/global/wind.md",
        "/memories/repo/",
        "/memories/repo/wind.md",
    ]
    assert "Knots." in tool.text("/memories/repo/wind.md")
    assert "Beaufort." in tool.text("/memories/global/wind.md")
    assert daemon.call("memory.list", scope="repo")["notes"][0]["reads"] == 1


def test_a_text_without_a_block_is_of_type_project_and_seen_where_it_was_made(daemon: Daemon, tool: Tool) -> None:
    for path, text in (("/memories/notes/todo.txt", "\n# To do\n- tar"), ("/memories/empty", "")):
        assert tool.ok("create", path, file_text=text) == f"File created successfully at: {path}"
    rows = {row["name"]: (row["type"], row["description"]) for row in daemon.call("memory.list")["notes"]}
    assert rows == {"notes-todo-txt": ("project", "To do"), "empty": ("project", "empty")}
    assert 'path: "/memories/notes/todo.txt"' in tool.text("/memories/notes/todo.txt")
    assert "/memories/notes/todo.txt" in tool.ok("view", "/memories/notes")
    daemon.call("memory.rename", name="notes-todo-txt", to="chores")
    assert "- tar" in tool.text("/memories/notes/todo.txt")
    assert tool.fails("create", "/memories/notes/todo.txt", file_text="x") == (
        "Error: File /memories/notes/todo.txt already exists"
    )


def test_the_hook_of_a_bare_text_follows_its_first_line(daemon: Daemon, tool: Tool) -> None:
    tool.ok("create", "/memories/state", file_text="# parser open\nparser next")
    assert "in lines: 3, 8, 9." in tool.fails("str_replace", "/memories/state", old_str="parser", new_str="lexer")
    tool.ok("str_replace", "/memories/state", old_str="parser open", new_str="lexer done")
    assert daemon.call("memory.list")["notes"][0]["description"] == "lexer done"
    tool.ok("str_replace", "/memories/state", old_str='description: "lexer done"', new_str='description: "State"')
    tool.ok("str_replace", "/memories/state", old_str="lexer", new_str="linker")
    assert daemon.call("memory.list")["notes"][0]["description"] == "State"


def test_two_paths_of_one_slug_are_two_notes(daemon: Daemon, tool: Tool) -> None:
    daemon.save("a-b", "A note that was here before.")
    tool.ok("create", "/memories/a/b", file_text="one")
    tool.ok("create", "/memories/a.b", file_text="two")
    assert tool.text("/memories/a/b").endswith("\none\n")
    assert tool.text("/memories/a.b").endswith("\ntwo\n")
    assert tool.text("/memories/repo/a-b.md").endswith("\nA note that was here before.\n")
    assert len(daemon.names()) == 3


def test_a_hook_is_no_path(daemon: Daemon, tool: Tool) -> None:
    daemon.save("wind", description="gauge")
    assert "does not exist" in tool.fails("view", "/memories/repo/gauge.md")
    assert "does not exist" in tool.fails("delete", "/memories/repo/gauge.md")
    assert tool.ok("create", "/memories/repo/gauge.md", file_text="mine").endswith("/memories/repo/gauge.md")
    assert sorted(daemon.names()) == ["gauge", "wind"]


def test_a_name_that_is_slugged_is_told(tool: Tool) -> None:
    assert tool.ok("create", "/memories/repo/Forge Tests.md", file_text="x") == (
        "File created successfully at: /memories/repo/forge-tests.md"
    )
    assert "\nx\n" in tool.text("/memories/repo/Forge Tests.md")


def test_files_and_directories_are_not_the_same(tool: Tool) -> None:
    tool.ok("create", "/memories/d/f", file_text="x")
    assert tool.fails("create", "/memories/d", file_text="x") == "Error: File /memories/d already exists"
    assert tool.fails("create", "/memories/d/f/g", file_text="x") == "Error: /memories/d/f is a file, not a directory"
    assert tool.fails("create", "/memories/repo", file_text="x") == "Error: File /memories/repo already exists"
    missing = "The path /memories/d does not exist"
    assert missing in tool.fails("str_replace", "/memories/d", old_str="x", new_str="y")
    assert missing in tool.fails("insert", "/memories/d", insert_line=1, insert_text="y")


def test_a_directory_is_renamed_and_deleted_whole(daemon: Daemon, tool: Tool) -> None:
    for name in ("a", "b/c"):
        tool.ok("create", f"/memories/old/{name}", file_text=name)
    daemon.save("stays")
    assert tool.fails("rename", old_path="/memories/old", new_path="/memories/old/in") == (
        "Error: The destination /memories/old/in lies in /memories/old"
    )
    assert tool.fails("rename", old_path="/memories/old", new_path="/memories/repo") == (
        "Error: The destination /memories/repo already exists"
    )
    assert tool.ok("rename", old_path="/memories/old", new_path="/memories/new") == (
        "Successfully renamed /memories/old to /memories/new"
    )
    assert tool.text("/memories/new/b/c").endswith("\nb/c\n")
    assert sorted(daemon.names()) == ["new-a", "new-b-c", "stays"]
    assert tool.ok("delete", "/memories/new") == "Successfully deleted /memories/new"
    assert daemon.names() == ["stays"]
    for root in ("/memories", "/memories/repo", "/memories/global/"):
        assert "directory itself" in tool.fails("delete", root)
        assert "directory itself" in tool.fails("rename", old_path=root, new_path="/memories/x")


def test_a_rename_between_the_stores_keeps_the_text(daemon: Daemon, tool: Tool) -> None:
    daemon.save("wind", "Knots.")
    tool.ok("rename", old_path="/memories/repo/wind.md", new_path="/memories/global/gauge.md")
    tool.ok("rename", old_path="/memories/global/gauge.md", new_path="/memories/units/wind.txt")
    assert tool.text("/memories/units/wind.txt").endswith("\nKnots.\n")
    tool.ok("rename", old_path="/memories/units/wind.txt", new_path="/memories/global/units.md")
    (row,) = daemon.call("memory.list")["notes"]
    assert (row["name"], row["scope"]) == ("units", "global")
    daemon.save("units", "Other.")
    assert tool.fails("rename", old_path="/memories/repo/units.md", new_path="/memories/global/units.md") == (
        "Error: The destination /memories/global/units.md already exists"
    )


def test_an_edit_by_somebody_else_is_not_overwritten(
    daemon: Daemon, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool.ok("create", "/memories/log.txt", file_text="one\ntwo\n")
    session = tool._commands.session
    plain = session.call

    def meanwhile(verb: str, params: dict[str, Any]) -> dict[str, Any]:
        """Somebody edits the note by hand between the tool's look and its save, once."""
        if verb == "memory.save":
            monkeypatch.setattr(session, "call", plain)
            note = daemon.store / "log-txt.md"
            note.write_text(note.read_text() + "by hand\n")
        return plain(verb, params)

    monkeypatch.setattr(session, "call", meanwhile)
    tool.ok("str_replace", "/memories/log.txt", old_str="one", new_str="1")
    assert tool.text("/memories/log.txt").endswith("\n1\ntwo\nby hand\n")
    monkeypatch.setattr(session, "call", meanwhile)
    assert tool.fails("insert", "/memories/log.txt", insert_line=8, insert_text="lost?") == (
        "Error: /memories/log.txt was changed by somebody else meanwhile; view it and make the change again"
    )
    assert tool.text("/memories/log.txt").endswith("\n1\ntwo\nby hand\nby hand\n")


def test_no_cap_but_a_given_one(daemon: Daemon, tool: Tool) -> None:
    for number in range(5):
        tool.ok("create", f"/memories/{number}.txt", file_text=f"fact {number}")
    capped = Tool(cwd=daemon.repo, env=daemon.env, save_cap=1)
    capped.ok("create", "/memories/repo/first.md", file_text="x")
    assert capped.fails("create", "/memories/repo/second.md", file_text="y") == (
        "Error: memory.save: at most 1 saves per session; this is save 2"
    )
    capped.close()


def test_a_session_of_the_host_s_is_used_as_it_is(daemon: Daemon) -> None:
    with daemon.connect() as connection:
        connection.call("session.start", {"session": "tool-run-7", "cwd": str(daemon.repo), "save_cap": 2})
    entries: list[dict[str, Any]] = []
    tool = Tool("tool-run-7", cwd=daemon.root, env=daemon.env, on_entry=entries.append)
    for name in ("a", "b"):
        tool.ok("create", f"/memories/repo/{name}.md", file_text=name)
    assert "at most 2 saves" in tool.fails("create", "/memories/repo/c.md", file_text="c")
    tool.close()
    assert sorted(daemon.names()) == ["a", "b"]
    assert [entry["data"]["name"] for entry in entries] == ["a", "b"]


def test_what_a_model_leaves_out_is_named(tool: Tool) -> None:
    tool.ok("create", "/memories/x", file_text="one two")
    assert tool.fails("create", "/memories/y") == "Error: the parameter `file_text` is missing, or no text"
    assert tool.fails("view") == "Error: the parameter `path` is missing, or no text"
    assert "`insert_line`" in tool.fails("insert", "/memories/x", insert_text="y")
    assert tool.ok("str_replace", "/memories/x", old_str="one ").startswith("The memory file has been edited.")
    assert tool.text("/memories/x").endswith("\ntwo\n")
    assert "did not appear" in tool.fails("str_replace", "/memories/x", old_str="", new_str="y")
    assert "Invalid `view_range`" in tool.fails("view", "/memories/x", view_range=[3, 2])


def test_a_daemon_that_is_not_there_is_told_without_a_path(daemon: Daemon, tool: Tool) -> None:
    daemon.kill()
    said = tool.fails("view", "/memories")
    assert "memory cannot be reached" in said
    assert str(daemon.root) not in said


def test_a_long_directory_comes_in_pages(daemon: Daemon, tool: Tool) -> None:
    daemon.store.mkdir(parents=True, exist_ok=True)
    for number in range(1003):
        (daemon.store / f"n{number:04}.md").write_text("---\ntype: user\n---\n\nx\n")
    first = tool.ok("view", "/memories/repo").split("\n")
    assert len(first) == 1003
    assert first[-1] == "[1-1000 of 1003 entries · view_range [1001, -1] for the next]"
    rest = tool.ok("view", "/memories/repo", view_range=[1001, -1]).split("\n")
    assert [line.rpartition("/")[2] for line in rest[2:]] == ["n1000.md", "n1001.md", "n1002.md"]


def test_a_list_with_texts_masks_what_a_session_may_not_see(daemon: Daemon) -> None:
    daemon.save("note", "words")
    (daemon.store / "note.md").write_text("---\ntype: user\n---\n\nuse sk-" + "a1" * 20 + " now\n")
    daemon.call("memory.reconcile")
    (row,) = daemon.call("memory.list", texts=True)["notes"]
    assert json.dumps(row["markdown"]) == json.dumps("---\ntype: user\n---\n\nuse [redacted] now\n")
    assert row["redacted"] is True
