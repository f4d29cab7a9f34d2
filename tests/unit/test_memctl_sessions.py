"""memctl for an agent: the block, the index, and every command in the session that MEMD_SESSION names."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memd_client
from support.client_home import client_home
from support.fake_daemon import FakeDaemon
from support.memctl_program import Failure, Ran, answers, memctl, memctl_on_terminal

HERE = str(Path.cwd().resolve())
BLOCK = {
    "text": "# Memory\n\n\x1bthe block",
    "fenced": "<<<\n# Memory\n>>>",
    "notes": [],
    "total": 0,
    "budget": 2400,
    "frozen": False,
}
BLANK = {**BLOCK, "text": None, "fenced": None}
INDEX = {"text": "- [a](a.md) — b", "fenced": "<<<\n- [a](a.md) — b\n>>>", "dropped": 0}
EMPTY = {"text": None, "fenced": None, "dropped": 0}
NOTHING = {"notes": [], "total": 0}
STARTED = {"lines": [], "saves_left": 3}
UNKNOWN = Failure(-32002, "no session", kind="not_found", field="session")
PERSONS = Failure(-32001, "a person's", kind="refused", field="session", bound="cwd", got=None)
COUNTS = {"adopted": 0, "edited": 0, "forgotten": 0, "suspended": False}


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with client_home() as env:
        yield env


def against(env: dict[str, str], table: dict[str, Any], *argv: str, stdin: bytes = b"") -> tuple[Ran, list[Any]]:
    """A run in pipes against the answers of `table`, and the methods and parameters it asked for."""
    with FakeDaemon(memd_client.socket_path(env), answers(env, table)) as daemon:
        ran = memctl(env, *argv, stdin=stdin)
    return ran, [(request["method"], request["params"]) for request in daemon.requests]


ASKED = {"prompt": "why is it flaky?", "dialect": "cli", "abstain": True}

FOCUS = [
    (["why", "is", "it", "flaky?"], b"", ASKED, BLOCK["text"]),
    (["why is it flaky?", "--fenced"], b"", ASKED, BLOCK["fenced"]),
    (["--plain", "why is it", "flaky?"], b"", {**ASKED, "abstain": False}, BLOCK["text"]),
    (["--dialect", "mcp", "why is it flaky?"], b"", {**ASKED, "dialect": "mcp"}, BLOCK["text"]),
    (["-"], "why? 注\n".encode(), {**ASKED, "prompt": "why? 注\n"}, BLOCK["text"]),
    (["--", "-", "x"], b"", {**ASKED, "prompt": "- x"}, BLOCK["text"]),
]


@pytest.mark.parametrize(("argv", "stdin", "asked", "out"), FOCUS)
def test_focus_prints_the_block(
    env: dict[str, str], argv: list[str], stdin: bytes, asked: dict[str, object], out: str
) -> None:
    ran, requests = against(env, {"memory.focus": BLOCK}, "focus", *argv, stdin=stdin)
    assert (ran.code, ran.out, ran.err) == (0, f"{out}\n", "")
    assert requests == [("memory.focus", {"cwd": HERE, **asked})]


def test_focus_on_a_terminal_holds_nothing_a_terminal_obeys(env: dict[str, str]) -> None:
    with FakeDaemon(memd_client.socket_path(env), answers(env, {"memory.focus": BLOCK})):
        ran = memctl_on_terminal(env, "focus", "x")
    assert ran.out == "# Memory\n\nthe block\n"


def test_a_block_that_was_given_before_says_so(env: dict[str, str]) -> None:
    ran, _ = against(env | {"MEMD_SESSION": "s"}, {"memory.focus": {**BLOCK, "frozen": True}}, "focus", "x")
    assert ran.out == f"{BLOCK['text']}\n"
    assert "has its block already" in ran.err


@pytest.mark.parametrize("options", [[], ["--fenced"]])
def test_a_blank_prompt_prints_nothing_and_says_why(env: dict[str, str], options: list[str]) -> None:
    ran, _ = against(env, {"memory.focus": BLANK}, "focus", " ", *options)
    assert (ran.code, ran.out, ran.err) == (0, "", "a blank prompt earns nothing\n")


@pytest.mark.parametrize(
    ("argv", "stdin", "code", "complaint"),
    [
        (["focus"], b"", 2, "focus needs PROMPT"),
        (["focus", "x", "--dialect", "perl"], b"", 2, "perl"),
        (["focus", "x", "--scope", "repo"], b"", 2, "both stores"),
        (["index", "--scope", "global"], b"", 2, "both stores"),
        (["index", "x"], b"", 2, "takes no x"),
        (["index", "--max-bytes", "0"], b"", 2, "from 1 on"),
        (["focus", "-"], b"\xff", 4, "not UTF-8"),
        (["focus", "-"], b"x" * (2**20 + 1), 4, "give the end"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_sent(
    env: dict[str, str], argv: list[str], stdin: bytes, code: int, complaint: str
) -> None:
    ran, requests = against(env, {}, *argv, stdin=stdin)
    assert (ran.code, ran.out, requests) == (code, "", [])
    assert complaint in ran.err


@pytest.mark.parametrize(
    ("argv", "asked", "reply", "out", "err"),
    [
        ([], {}, INDEX, f"{INDEX['text']}\n", ""),
        (["--max-bytes", "600", "--fenced"], {"max_bytes": 600}, INDEX, f"{INDEX['fenced']}\n", ""),
        ([], {}, EMPTY, "", "no notes here; `memctl save --help` says how to save one\n"),
    ],
)
def test_index_prints_the_rows(
    env: dict[str, str], argv: list[str], asked: dict[str, object], reply: dict[str, object], out: str, err: str
) -> None:
    ran, requests = against(env, {"memory.index": reply}, "index", *argv)
    assert (ran.code, ran.out, ran.err) == (0, out, err)
    assert requests == [("memory.index", {"cwd": HERE, **asked})]


@pytest.mark.parametrize(("command", "reply"), [("focus", BLANK), ("index", INDEX)])
def test_the_reply_as_json(env: dict[str, str], command: str, reply: dict[str, object]) -> None:
    ran, _ = against(env, {f"memory.{command}": reply}, "--json", command, *["x"] * (command == "focus"))
    assert json.loads(ran.out) == reply


# ---------------------------------------------------------------- MEMD_SESSION


@pytest.mark.parametrize(
    ("argv", "method"),
    [
        (["list"], "memory.list"),
        (["search", "x"], "memory.search"),
        (["show", "x"], "memory.show"),
        (["focus", "x"], "memory.focus"),
        (["index"], "memory.index"),
        (["stats"], "memory.stats"),
        (["log"], "memory.log"),
        (["check"], "memory.check"),
        (["save", "--type", "user", "--description", "d"], "memory.save"),
        (["rename", "x", "y"], "memory.rename"),
        (["move", "x", "global"], "memory.move"),
        (["forget", "x", "--yes"], "memory.show"),
        (["reconcile"], "memory.reconcile"),
        (["import", "."], "memory.import"),
        (["adopt", "--x--"], "store.adopt"),
        (["rebuild"], "memory.rebuild"),
        (["reconcile", "--accept"], "memory.reconcile"),
    ],
)
def test_in_a_session_every_command_names_it_and_no_directory(
    env: dict[str, str], argv: list[str], method: str
) -> None:
    ran, requests = against(env | {"MEMD_SESSION": "run-1"}, {method: PERSONS}, *argv)
    assert (ran.code, ran.out) == (4, "")
    [(asked, params)] = requests
    assert asked == method
    assert params["session"] == "run-1"
    assert "cwd" not in params


def test_a_session_nobody_started_is_started_where_memctl_is_and_the_command_goes_on(
    env: dict[str, str], tmp_path: Path
) -> None:
    env |= {"MEMD_SESSION": "run-1", "MEMD_DEPTH": "1"}
    table = {"memory.list": [UNKNOWN, NOTHING], "session.start": STARTED}
    ran, requests = against(env, table, "list", "-C", str(tmp_path))
    assert (ran.code, ran.out) == (0, "")
    asked = {"session": "run-1"}
    start = {"session": "run-1", "depth": 1, "cwd": str(tmp_path.resolve())}
    assert requests == [("memory.list", asked), ("session.start", start), ("memory.list", asked)]


def test_a_session_that_is_known_is_not_started_and_keeps_its_directory(env: dict[str, str]) -> None:
    ran, requests = against(env | {"MEMD_SESSION": "run-1"}, {"memory.list": NOTHING}, "list", "-C", "/")
    assert ran.code == 0
    assert requests == [("memory.list", {"session": "run-1"})]


def test_an_empty_session_is_a_person(env: dict[str, str]) -> None:
    _, requests = against(env | {"MEMD_SESSION": "", "MEMD_DEPTH": "x"}, {"memory.list": NOTHING}, "list")
    assert requests == [("memory.list", {"cwd": HERE})]


def test_a_depth_that_is_none_is_wrong_usage(env: dict[str, str]) -> None:
    ran, requests = against(env | {"MEMD_SESSION": "run-1", "MEMD_DEPTH": "x"}, {}, "list")
    assert (ran.code, requests) == (2, [])
    assert "MEMD_DEPTH" in ran.err


def test_a_child_is_told_who_keeps_memory(env: dict[str, str]) -> None:
    refused = Failure(-32003, "memory.list: only the root session keeps memory", kind="not_root")
    ran, _ = against(env | {"MEMD_SESSION": "child"}, {"memory.list": refused}, "list")
    assert (ran.code, ran.err) == (4, "memctl: memory.list: only the root session keeps memory\n")
