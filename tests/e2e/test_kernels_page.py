"""The page that maps other hosts' memories to memd's is run line by line against a real daemon (SPEC 13)."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from memd.memctl import front
from memd.protocol.replies import ActivityKind
from support.daemon import Daemon, running_daemon

PAGE = (Path(__file__).parents[2] / "clients" / "python" / "KERNELS.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in PAGE.splitlines()
    if re.match(r"\| (?!there)", line)
]
CALL = re.compile(r"`(\(?await .*?)`(, .*)?")
CALLS = [row for row in ROWS if len(row) == 2 and CALL.fullmatch(row[1])]
REFUSALS = [row for row in ROWS if len(row) == 3]
COMMANDS = [row[1].strip("`") for row in ROWS if len(row) == 2 and row[1].startswith("`memctl ")]

BEFORE = {
    None: 'await memory.start("page", save_cap=None)',
    ", in a child session": 'await memory.start("page.1", depth=1)',
    ", after three": 'await memory.start("page-1", save_cap=0)',
    ", after `session.update` with `read_only`": (
        'await memory.start("page-2")\n'
        "with memd_client.connect() as memd:\n"
        '    memd.call("session.update", {"session": "page-2", "read_only": True})'
    ),
}

INTERPRETER = """
import ast, asyncio, json, sys
import memd_client, memory

async def told(text):
    try:
        code = compile(text, text, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        return {"gave": await eval(code, {"memory": memory})}
    except memory.errors.MemdError as error:
        return {"raised": type(error).__name__, "field": error.data.get("field"), "message": error.message}

async def main():
    for before, text in json.load(sys.stdin):
        made = eval(compile(before, before, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {**globals()})
        if made is not None:
            await made
        print(json.dumps(await told(text)))

asyncio.run(main())
"""


def typed(daemon: Daemon, lines: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """What came of each line, typed in a kernel after another one."""
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETER],
        env=daemon.env | {"MEMD_NO_AUTOSTART": "1"},
        cwd=daemon.repo,
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def host() -> Iterator[Daemon]:
    """A daemon whose repository has the notes and the past session that the page speaks of."""
    with running_daemon() as daemon:
        for name in ("forge-tests", "scratch", "old"):
            daemon.save(name, f"The forge of {name}.")
        (daemon.store / "linked.md").symlink_to(daemon.store / "old.md")
        sessions = daemon.home / "sessions" / "--repo--"
        sessions.mkdir(parents=True)
        entries = [
            {"kind": "header", "version": 4, "id": "host-1", "createdAt": 1, "cwd": str(daemon.repo)},
            {
                "kind": "entry",
                "type": "message",
                "id": "m1",
                "message": {"role": "user", "content": "Mend the forge"},
            },
        ]
        (sessions / "1_host-1.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        yield daemon


def test_the_page_is_read() -> None:
    assert len(CALLS) > 18
    assert len(REFUSALS) > 16
    assert len(COMMANDS) > 9
    assert len(CALLS) + len(REFUSALS) + len(COMMANDS) == len(ROWS)


def test_every_call_of_the_page_works_as_it_stands(host: Daemon) -> None:
    calls = [call[1] for row in CALLS if (call := CALL.fullmatch(row[1]))]
    start = BEFORE[None]
    told = typed(host, [(start, call) for call in calls])
    assert {call: answer for call, answer in zip(calls, told, strict=True) if "raised" in answer} == {}
    gave = dict(zip(calls, (answer["gave"] for answer in told), strict=True))
    assert [hit["url"] for hit in gave['await memory.compact.search("forge")']["hits"]] == ["history://host-1/m1"]
    assert all("body" in row for row in gave["await memory.list_memory()"]["notes"])
    assert gave['(await memory.index(max_bytes=8192))["fenced"]'].startswith("<<<yi-external")


@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_every_refusal_of_the_page_is_what_it_says(host: Daemon, row: list[str]) -> None:
    call = CALL.fullmatch(row[2])
    wanted = re.fullmatch(r"`(\w+)`(?:, field `(\w+)`)?", row[1])
    assert call is not None
    assert wanted is not None
    (told,) = typed(host, [(BEFORE[call[2]], call[1])])
    assert told.get("raised") == wanted[1], told
    assert wanted[2] in (None, told["field"])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_is_one(command: str) -> None:
    assert command.split()[1] in front.COMMANDS


def test_the_page_names_each_event_of_the_second_host() -> None:
    named = set(re.findall(r"`(memory_\w+)`", PAGE))
    assert named == {"memory_write", "memory_update", "memory_delete", "memory_index_truncated"}
    assert named <= set(get_args(ActivityKind))
