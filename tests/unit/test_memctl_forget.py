"""Forgetting: what goes is shown first, only a yes to that very text deletes, and the receipt is told."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import memd_client
from support.client_home import client_home
from support.fake_daemon import FakeDaemon
from support.memctl_program import Failure, Ran, answers, memctl, memctl_on_terminal

ONE = "sha256:" + "1a" * 32
TWO = "sha256:" + "2b" * 32
SHOWN = {"name": "disk", "scope": "global", "hash": ONE, "markdown": "text", "current": True}
NOTES = {
    "notes": [{"name": name, "scope": "global", "description": f"hook of {name}"} for name in ("a", "disk", "z")],
    "total": 3,
}
FORGOTTEN = {"name": "disk", "scope": "global", "receipt": {"versions": 2, "bytes": 1204, "left": []}}
GONE = Failure(-32002, "memory.show: no note has that name", kind="not_found")
ANNOUNCED = "disk · global — hook of disk\nwith 2 versions, for good\n"


def record(op: str, digest: str = ONE, **more: object) -> dict[str, object]:
    """A record of `memory.log`."""
    return {"at": 0, "op": op, "name": "disk", "scope": "global", "hash": digest, **more}


LOG = [
    record("save", "sha256:" + "5e" * 32, scope="repo"),
    record("read", TWO),
    record("edit", ONE, by="hand"),
    record("save", "sha256:" + "3c" * 32, name="disk-2"),
    record("save", TWO),
    record("save", ONE),
    record("forget", ONE),
    record("save", "sha256:" + "4d" * 32),
]

REPLIES: dict[str, Any] = {
    "memory.show": SHOWN,
    "memory.list": NOTES,
    "memory.log": {"records": LOG, "total": len(LOG)},
    "memory.forget": FORGOTTEN,
}


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with client_home() as env:
        yield {**env, "NO_COLOR": "1"}


@pytest.fixture
def daemon(env: dict[str, str]) -> Iterator[FakeDaemon]:
    with FakeDaemon(memd_client.socket_path(env), answers(env, REPLIES)) as daemon:
        yield daemon


def deleted(daemon: FakeDaemon) -> list[tuple[str, str | None]]:
    """Name and scope of what the daemon was asked to forget."""
    return [
        (request["params"]["name"], request["params"].get("scope"))
        for request in daemon.requests
        if request["method"] == "memory.forget"
    ]


def test_yes_answers_and_the_scope_is_the_one_that_was_shown(env: dict[str, str], daemon: FakeDaemon) -> None:
    ran = memctl(env, "forget", "The Disk", "--yes")
    assert (ran.code, ran.err) == (0, ANNOUNCED)
    assert ran.out == "forgot disk · global — 2 versions, 1,204 bytes; no copy left\n"
    assert deleted(daemon) == [("disk", "global")]
    assert daemon.requests[0]["params"]["name"] == "The Disk"
    assert "scope" not in daemon.requests[0]["params"]


def test_the_scope_that_is_wanted_is_looked_in(env: dict[str, str], daemon: FakeDaemon) -> None:
    memctl(env, "forget", "disk", "-y", "--scope", "global")
    assert daemon.requests[0]["params"]["scope"] == "global"


def test_as_json_it_is_the_reply(env: dict[str, str], daemon: FakeDaemon) -> None:
    ran = memctl(env, "forget", "disk", "--yes", "--json")
    assert json.loads(ran.out) == FORGOTTEN
    assert deleted(daemon) == [("disk", "global")]


@pytest.mark.parametrize("answer", ["y\n", "YES\n", "  yes \n"])
def test_a_yes_deletes(env: dict[str, str], daemon: FakeDaemon, answer: str) -> None:
    ran = memctl_on_terminal(env, "forget", "disk", typed=answer)
    assert (ran.code, ran.err) == (0, f"{ANNOUNCED}Forget it? [y/N] ")
    assert ran.out.startswith("forgot disk · global")
    assert deleted(daemon) == [("disk", "global")]


@pytest.mark.parametrize(
    ("answer", "line_end"),
    [("\n", ""), ("n\n", ""), ("yep\n", ""), ("\x04", "\n"), ("y\x04\x04", "\n")],
    ids=["empty", "no", "other", "end", "cut"],
)
def test_anything_else_does_not(env: dict[str, str], daemon: FakeDaemon, answer: str, line_end: str) -> None:
    ran = memctl_on_terminal(env, "forget", "disk", typed=answer)
    assert (ran.code, ran.out, deleted(daemon)) == (1, "", [])
    assert ran.err == f"{ANNOUNCED}Forget it? [y/N] {line_end}nothing was forgotten\n"


@pytest.mark.parametrize(
    "terminals", [[], ["stdin"], ["stderr"], ["stdout"], ["stdout", "stderr"], ["stdin", "stdout"]], ids=str
)
def test_without_somebody_to_ask_it_is_wrong_usage(
    env: dict[str, str], daemon: FakeDaemon, terminals: list[str]
) -> None:
    ran = memctl_on_terminal(env, "forget", "disk", typed="y\n", terminals=terminals)
    assert (ran.code, ran.out, daemon.requests) == (2, "", [])
    assert "--yes" in ran.err


def test_a_piped_receipt_does_not_keep_it_from_asking(env: dict[str, str], daemon: FakeDaemon) -> None:
    ran = memctl_on_terminal(env, "forget", "disk", typed="y\n", terminals=["stdin", "stderr"])
    assert (ran.code, deleted(daemon)) == (0, [("disk", "global")])


def run_against(env: dict[str, str], table: dict[str, Any], *argv: str) -> tuple[Ran, list[Any]]:
    """A run on a terminal where somebody types yes, and what was deleted."""
    with FakeDaemon(memd_client.socket_path(env), answers(env, {**REPLIES, **table})) as daemon:
        ran = memctl_on_terminal(env, "forget", "disk-x", *argv, typed="y\n")
    return ran, deleted(daemon)


def test_a_note_that_changed_while_the_person_thought_stays(env: dict[str, str]) -> None:
    ran, gone = run_against(env, {"memory.show": [SHOWN, {**SHOWN, "hash": TWO}]})
    assert (ran.code, ran.out, gone) == (4, "", [])
    assert "disk was changed meanwhile; nothing was forgotten" in ran.err


def test_a_note_that_went_while_the_person_thought_is_3(env: dict[str, str]) -> None:
    ran, gone = run_against(env, {"memory.show": [SHOWN, GONE]})
    assert (ran.code, ran.out, gone) == (3, "", [])


@pytest.mark.parametrize("argv", [[], ["--yes"]], ids=str)
def test_a_note_that_is_not_there_is_3(env: dict[str, str], argv: list[str]) -> None:
    ran, gone = run_against(env, {"memory.show": GONE}, *argv)
    assert (ran.code, ran.out, gone) == (3, "", [])
    assert ran.err == "memctl: memory.show: no note has that name\ntry: memctl search disk x\n"


def test_what_is_left_is_named(env: dict[str, str]) -> None:
    receipt = {"versions": 1, "bytes": 1, "left": [".disk.md.swp", "2024.json"]}
    ran, _ = run_against(env, {"memory.forget": {**FORGOTTEN, "receipt": receipt}})
    assert ran.out.splitlines() == [
        "forgot disk · global — 1 version, 1 byte; 2 files left with its text:",
        ".disk.md.swp",
        "2024.json",
    ]
