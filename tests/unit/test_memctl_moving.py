"""Versions, names and stores that change: what is asked, what is shown first, how far an import came."""

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memd_client
from memd.memctl import progress
from memd.memctl.terminal import ErrorStream, Stream
from memd_client.errors import BY_CODE
from support.client_home import client_home
from support.fake_daemon import Answer, FakeDaemon, failure, result
from support.memctl_program import STREAMS, Failure, Ran, answers, command, memctl, memctl_env, memctl_on_terminal
from support.waiting import until

ONE = "sha256:" + "1a" * 32
TWO = "sha256:" + "2b" * 32
HERE = str(Path.cwd().resolve())
EVERY = 2**53 - 1
KEY = "--home-me-old repo--"
PAGE = 500

DIFF = f"--- {ONE[:19]}\n+++ {TWO[:19]}\n@@ -1,2 +1,2 @@\n same\n-old\tone\n+new \x1b[7m one\n"
RENAMED = {"name": "new", "scope": "repo", "hash": ONE, "was": "old", "was_scope": "repo"}
RECORDS = [
    {"at": 1, "op": "save", "name": "disk", "scope": "repo", "hash": TWO},
    {"at": 0, "op": "save", "name": "disk", "scope": "repo", "hash": ONE},
]
ARRIVED = {
    "imported": ["three", "two"],
    "updated": ["one"],
    "skipped": [
        {"file": "fence.md", "reason": "it holds the fence of a recalled block"},
        {"file": "same.md", "reason": "identical"},
    ],
    "total": 5,
}
NOTHING_NEW = {**ARRIVED, "imported": [], "updated": []}
ADOPTED = {"adopted": ["clash-2", "kept"], "renamed": {"clash": "clash-2"}, "identical": ["same"], "left": 0}
STORE = {"live": 3, "restored": 0, "forgotten": 2, "differ": [], "missing": [], "broken_line": None}
REBUILT = {"ok": True, "repo": {**STORE, "restored": 2}, "global": STORE}
COUNTS = {"adopted": 1, "edited": 0, "forgotten": 0, "suspended": False}
RECONCILED = {"repo": {**COUNTS, "forgotten": 4}, "global": COUNTS}
STORES = {
    "stores": [
        {"key": None, "scope": "global", "notes": 1, "origin_exists": None, "current": False},
        {"key": "--a--", "scope": "repo", "notes": 20, "origin_exists": True, "current": True},
        {"key": "--b--", "scope": "repo", "notes": 2, "origin_exists": True, "current": False},
        {"key": "--c--", "scope": "repo", "notes": 0, "origin_exists": False, "current": False},
        {"key": "--d--", "scope": "repo", "notes": 0, "origin_exists": None, "current": False},
        {"key": KEY, "scope": "repo", "notes": 3, "origin_exists": False, "current": False},
    ]
}

REPLIES: dict[str, Any] = {
    "memory.diff": {"name": "disk", "scope": "repo", "from": ONE, "to": TWO, "diff": DIFF},
    "memory.restore": {"name": "disk", "description": "Disks fill", "scope": "repo", "hash": ONE},
    "memory.rename": RENAMED,
    "memory.move": {**RENAMED, "name": "old", "scope": "global"},
    "memory.log": {"records": RECORDS, "total": 2},
    "memory.import": ARRIVED,
    "memory.rebuild": REBUILT,
    "memory.reconcile": RECONCILED,
    "store.list": STORES,
    "store.adopt": ADOPTED,
}


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with client_home() as env:
        yield {**env, "NO_COLOR": "1"}


@pytest.fixture
def daemon(env: dict[str, str]) -> Iterator[FakeDaemon]:
    with FakeDaemon(memd_client.socket_path(env), answers(env, REPLIES)) as daemon:
        yield daemon


def asked(daemon: FakeDaemon) -> list[tuple[str, dict[str, Any]]]:
    """The methods and parameters that were asked for, without the place."""
    return [
        (request["method"], {name: value for name, value in request["params"].items() if name != "cwd"})
        for request in daemon.requests
    ]


def against(env: dict[str, str], table: dict[str, Any], *argv: str) -> tuple[Ran, list[Any]]:
    """A run in pipes against these answers, and what it asked for."""
    with FakeDaemon(memd_client.socket_path(env), answers(env, {**REPLIES, **table})) as daemon:
        ran = memctl(env, *argv)
    return ran, asked(daemon)


def answered(env: dict[str, str], table: dict[str, Any], *argv: str, typed: str) -> tuple[Ran, list[Any]]:
    """A run on a terminal where this is typed, and what it asked for."""
    with FakeDaemon(memd_client.socket_path(env), answers(env, {**REPLIES, **table})) as daemon:
        ran = memctl_on_terminal(env, *argv, typed=typed)
    return ran, asked(daemon)


def settled(err: str) -> str:
    """What stays on a terminal of lines that were replaced: a machine may be slow enough for a progress."""
    return re.sub(r"\r[^\n]*\r", "", err)


IMPORT = ("memory.import", {"dir": HERE, "limit": PAGE})
LOOK = ("memory.import", {"dir": HERE, "limit": PAGE, "dry_run": True})
ADOPT = ("store.adopt", {"key": KEY})
LOOK_ADOPT = ("store.adopt", {"key": KEY, "dry_run": True})
ACCEPT = ("memory.reconcile", {"accept": True})
LOOK_ACCEPT = ("memory.reconcile", {"accept": True, "dry_run": True})
LOOK_REBUILD = ("memory.rebuild", {"dry_run": True})

PRINTED: list[tuple[list[str], list[Any], str, str]] = [
    (["diff", "disk"], [("memory.diff", {"name": "disk"})], DIFF, ""),
    (
        ["diff", "disk", "--from", ONE, "--to", TWO, "--scope", "repo"],
        [("memory.diff", {"name": "disk", "from": ONE, "to": TWO, "scope": "repo"})],
        DIFF,
        "",
    ),
    (
        ["diff", "disk", "--to", "2b2b2b2b"],
        [
            ("memory.log", {"name": "disk", "limit": EVERY, "reads": False}),
            ("memory.diff", {"name": "disk", "to": TWO}),
        ],
        DIFF,
        "",
    ),
    (
        ["restore", "disk", ONE[:15]],
        [
            ("memory.log", {"name": "disk", "limit": EVERY, "reads": False}),
            ("memory.restore", {"name": "disk", "hash": ONE}),
        ],
        "restored disk · repo — Disks fill\n",
        "",
    ),
    (
        ["restore", "disk", TWO, "--scope", "global"],
        [("memory.restore", {"name": "disk", "hash": TWO, "scope": "global"})],
        "restored disk · repo — Disks fill\n",
        "",
    ),
    (["rename", "old", "new"], [("memory.rename", {"name": "old", "to": "new"})], "renamed old → new · repo\n", ""),
    (
        ["rename", "old", "new", "--scope", "repo"],
        [("memory.rename", {"name": "old", "to": "new", "scope": "repo"})],
        "renamed old → new · repo\n",
        "",
    ),
    (
        ["move", "old", "global", "--scope", "repo"],
        [("memory.move", {"name": "old", "scope": "global"})],
        "moved old · repo → global\n",
        "",
    ),
    (
        ["import", "."],
        [IMPORT],
        (
            "repo: 2 imported · 1 updated · 1 skipped · 1 identical\n"
            "updated\tone\nskipped\tfence.md: it holds the fence of a recalled block\n"
        ),
        "",
    ),
    (
        ["import", ".", "--dry-run"],
        [LOOK],
        "update\tone\nskip\tfence.md: it holds the fence of a recalled block\nimport\tthree\nimport\ttwo\n",
        "2 to import · 1 to update · 1 to skip · 1 identical; nothing was done\n",
    ),
    (
        ["stores"],
        [("store.list", {})],
        (
            "store\tnotes\torigin\tmark\nglobal\t1\t-\t\n--a--\t20\tthere\tcurrent\n--b--\t2\tthere\t\n"
            f"--c--\t0\tgone\torphan\n--d--\t0\t-\t\n{KEY}\t3\tgone\torphan\n"
        ),
        f"an orphan's notes come along by this, where its repository is now:\n  memctl adopt '{KEY}'\n",
    ),
    (["stores", "--scope", "global"], [("store.list", {})], "store\tnotes\torigin\tmark\nglobal\t1\t-\t\n", ""),
    (
        ["adopt", KEY],
        [ADOPT],
        "repo: 2 adopted · 1 identical · 0 left behind\nadopted\tclash-2\twas clash\n",
        "",
    ),
    (
        ["adopt", KEY, "--dry-run"],
        [LOOK_ADOPT],
        "adopt\tclash-2\twas clash\nadopt\tkept\t\nidentical\tsame\t\n",
        "2 to adopt · 1 identical · 0 to leave behind; nothing was done\n",
    ),
    (
        ["rebuild", "--dry-run"],
        [LOOK_REBUILD],
        "repo: 3 live · 2 to restore · 2 forgotten\nglobal: 3 live · 0 to restore · 2 forgotten\n",
        "nothing was done\n",
    ),
    (
        ["reconcile", "--accept", "--dry-run"],
        [LOOK_ACCEPT],
        "repo: 1 to adopt · 0 to edit · 4 to forget\nglobal: 1 to adopt · 0 to edit · 0 to forget\n",
        "nothing was done\n",
    ),
    (
        ["reconcile", "--dry-run", "--scope", "global"],
        [("memory.reconcile", {"dry_run": True})],
        "global: 1 to adopt · 0 to edit · 0 to forget\n",
        "nothing was done\n",
    ),
]


@pytest.mark.parametrize(("argv", "requests", "out", "err"), PRINTED, ids=[" ".join(row[0]) for row in PRINTED])
def test_what_is_asked_and_printed_in_a_pipe(
    env: dict[str, str], daemon: FakeDaemon, argv: list[str], requests: list[Any], out: str, err: str
) -> None:
    ran = memctl(env, *argv)
    assert (ran.code, ran.out, ran.err) == (0, out, err)
    assert asked(daemon) == requests
    assert {request["params"]["cwd"] for request in daemon.requests} == {HERE}


JSON = [
    ["diff", "disk"],
    ["restore", "disk", ONE],
    ["rename", "old", "new"],
    ["move", "old", "global"],
    ["import", "."],
    ["import", ".", "--dry-run"],
    ["stores"],
    ["adopt", KEY],
    ["adopt", KEY, "--dry-run"],
    ["rebuild", "--dry-run"],
    ["reconcile", "--accept", "--dry-run"],
]


@pytest.mark.parametrize("argv", JSON, ids=" ".join)
def test_json_is_the_reply_as_it_is(env: dict[str, str], daemon: FakeDaemon, argv: list[str]) -> None:
    ran = memctl(env, *argv, "--json")
    assert (ran.code, json.loads(ran.out), ran.err) == (0, REPLIES[daemon.methods[-1]], "")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["diff"], "diff needs NAME"),
        (["diff", "disk", "--from", "xyz"], "xyz is not a hash"),
        (["restore", "disk"], "restore needs NAME"),
        (["restore", "disk", "newest"], "newest is not a hash"),
        (["restore", "disk", "1a1"], "1a1 is not a hash"),
        (["rename", "old"], "rename needs NAME"),
        (["move", "old", "everywhere"], "everywhere is no store; repo or global"),
        (["move", "old", "repo", "--scope", "repo"], "--scope says where the note is"),
        (["import", "no-such-directory"], "no-such-directory: No such file or directory"),
        (["import", "/dev/null"], "/dev/null: not a directory"),
        (["import", ".", "--scope", "global"], "it does not go with --scope global"),
        (["adopt", "--a--", "--scope", "global"], "it does not go with --scope global"),
        (["adopt", "--a-", "--yes"], "there is no option --a-"),
        (["adopt", "--dryrun", "--a--"], "there is no option --dryrun"),
        (["adopt", "--a--", "--b--"], "adopt takes no --b--"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_2_and_nothing_is_asked(
    env: dict[str, str], daemon: FakeDaemon, argv: list[str], says: str
) -> None:
    ran = memctl(env, *argv)
    assert (ran.code, ran.out, daemon.requests) == (2, "", [])
    assert says in ran.err.splitlines()[0]


KINDS = {
    "diff": ("not_found", "refused", "unreadable", "busy"),
    "restore": ("not_found", "suspended", "storage", "unreadable", "busy"),
    "rename": ("not_found", "refused", "suspended", "storage", "unreadable", "busy"),
    "move": ("not_found", "refused", "suspended", "storage", "unreadable", "busy"),
    "import": ("refused", "suspended", "storage", "unreadable", "busy", "internal_error"),
    "stores": ("storage", "method_not_found"),
    "adopt": ("not_found", "refused", "suspended", "storage", "unreadable", "busy"),
}
CODES = {"not_found": 3, "refused": 4, "suspended": 4, "unreadable": 6, "busy": 6, "storage": 6}
WORDS = {argv[0]: argv for argv in JSON[:4]} | {"import": JSON[4], "stores": JSON[6], "adopt": JSON[7]}


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in KINDS for kind in KINDS[name]])
def test_an_error_ends_with_its_code_and_the_daemons_words(env: dict[str, str], name: str, kind: str) -> None:
    [number] = [code for code, error in BY_CODE.items() if error.kind == kind]
    method = {"stores": "store.list", "adopt": "store.adopt"}.get(name, f"memory.{name}")
    ran, _ = against(env, {method: Failure(number, f"{method}: the words", kind=kind)}, *WORDS[name])
    assert (ran.code, ran.out) == (CODES.get(kind, 5 if kind == "method_not_found" else 6), "")
    first, *more = ran.err.splitlines()
    assert first == f"memctl: {method}: the words"
    hint = {"adopt": "try: memctl stores"}.get(name, f"try: memctl search {WORDS[name][1 % len(WORDS[name])]}")
    assert more == ([hint] if kind == "not_found" else [])


# -- versions


def test_a_diff_is_coloured_on_a_terminal_only_and_its_text_is_safe_there(env: dict[str, str]) -> None:
    colour = {**env, "NO_COLOR": ""}
    ran, _ = answered(colour, {}, "diff", "disk", typed="")
    assert ran.out.splitlines() == [
        f"\x1b[1m--- {ONE[:19]}\x1b[0m",
        f"\x1b[1m+++ {TWO[:19]}\x1b[0m",
        "\x1b[36m@@ -1,2 +1,2 @@\x1b[0m",
        " same",
        "\x1b[31m-old\tone\x1b[0m",
        "\x1b[32m+new [7m one\x1b[0m",
    ]
    plain, _ = answered(env, {}, "diff", "disk", typed="")
    assert plain.out == DIFF.replace("\x1b", "")


def test_a_diff_keeps_the_lines_that_look_like_its_own(env: dict[str, str]) -> None:
    reply = {**REPLIES["memory.diff"], "diff": "--- a\n+++ b\n@@ -1 +1 @@\n--- x\n+++ y\n"}
    ran, _ = answered({**env, "NO_COLOR": ""}, {"memory.diff": reply}, "diff", "disk", typed="")
    assert ran.out.splitlines()[3:] == ["\x1b[31m--- x\x1b[0m", "\x1b[32m+++ y\x1b[0m"]


def test_no_difference_is_said(env: dict[str, str]) -> None:
    ran, _ = against(env, {"memory.diff": {**REPLIES["memory.diff"], "diff": ""}}, "diff", "disk")
    assert (ran.code, ran.out, ran.err) == (0, "", "no difference\n")


@pytest.mark.parametrize("argv", [["restore", "disk"], ["diff", "disk", "--to"], ["diff", "disk", "--from"]], ids=str)
def test_the_beginning_of_a_hash_must_be_that_of_one_version(env: dict[str, str], argv: list[str]) -> None:
    twin = {**RECORDS[0], "hash": ONE[:40] + "f" * 31}
    table = {"memory.log": {"records": [*RECORDS, twin], "total": 3}}
    ran, requests = against(env, table, *argv, ONE[7:20])
    assert (ran.code, ran.out, [method for method, _ in requests]) == (2, "", ["memory.log"])
    assert "2 versions of disk have a hash that begins with 1a1a1a1a1a1a1" in ran.err
    ran, requests = against(env, table, *argv, "ffffffff")
    assert (ran.code, ran.out, [method for method, _ in requests]) == (3, "", ["memory.log"])
    assert "no version of disk has a hash that begins with ffffffff" in ran.err


# -- shown first, and asked

ROWS_IMPORT = "update  one\nskip    fence.md: it holds the fence of a recalled block\nimport  three\nimport  two\n"
ROWS_ADOPT = "adopt      clash-2  was clash\nadopt      kept     \nidentical  same     \n"
CASES: dict[str, tuple[list[str], Any, Any, str, str]] = {
    "import": (
        ["import", "."],
        LOOK,
        IMPORT,
        (
            f"from {HERE} into the repo store of {HERE}:\n2 to import · 1 to update · 1 to skip · 1 identical\n"
            f"{ROWS_IMPORT}Import them? [y/N] "
        ),
        "nothing was imported",
    ),
    "adopt": (
        ["adopt", KEY],
        LOOK_ADOPT,
        ADOPT,
        (
            f"from the store {KEY}, which gives them up, into the repo store of {HERE}:\n"
            f"2 to adopt · 1 identical · 0 to leave behind\n{ROWS_ADOPT}Adopt them? [y/N] "
        ),
        "nothing was adopted",
    ),
    "rebuild": (
        ["rebuild", "--scope", "global"],
        LOOK_REBUILD,
        ("memory.rebuild", {}),
        (
            "repo: 3 live · 2 to restore · 2 forgotten\nglobal: 3 live · 0 to restore · 2 forgotten\n"
            "Bring them back? [y/N] "
        ),
        "nothing was brought back",
    ),
    "reconcile": (
        ["reconcile", "--accept"],
        LOOK_ACCEPT,
        ACCEPT,
        (
            "repo: 1 to adopt · 0 to edit · 4 to forget\nglobal: 1 to adopt · 0 to edit · 0 to forget\n"
            "Forget them, with every version, for good? [y/N] "
        ),
        "nothing was forgotten",
    ),
}


def test_an_adoption_from_a_repository_that_is_still_there_says_so_before(env: dict[str, str]) -> None:
    table = {"store.adopt": {**ADOPTED, "origin_exists": True}}
    said = "warning: the repository of that store is still there; its notes are taken away from it\n"
    ran, _ = against(env, table, "adopt", KEY, "--dry-run")
    assert ran.err == f"2 to adopt · 1 identical · 0 to leave behind; nothing was done\n{said}"
    ran, _ = answered(env, table, "adopt", KEY, typed="n\n")
    assert f"{said}Adopt them? [y/N] " in settled(ran.err)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("answer", ["y\n", "Yes\n"])
def test_a_yes_does_what_was_shown(env: dict[str, str], daemon: FakeDaemon, name: str, answer: str) -> None:
    argv, look, do, shown, _ = CASES[name]
    ran = memctl_on_terminal(env, *argv, typed=answer)
    assert (ran.code, settled(ran.err)) == (0, shown)
    assert asked(daemon) == [look, *[look] * (name == "reconcile"), do]
    assert ran.out


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("answer", "line_end"), [("n\n", ""), ("\n", ""), ("\x04", "\n")], ids=["no", "empty", "end"]
)
def test_anything_else_does_nothing(
    env: dict[str, str], daemon: FakeDaemon, name: str, answer: str, line_end: str
) -> None:
    argv, look, _, shown, refusal = CASES[name]
    ran = memctl_on_terminal(env, *argv, "--json", typed=answer)
    assert (ran.code, ran.out, settled(ran.err)) == (1, "", f"{shown}{line_end}{refusal}\n")
    assert asked(daemon) == [look]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("more", [[["--yes"], STREAMS], [["-y", "--json"], STREAMS], [[], ["stdout"]]], ids=str)
def test_with_yes_or_nobody_to_ask_it_is_done_at_once(
    env: dict[str, str], daemon: FakeDaemon, name: str, more: list[Any]
) -> None:
    argv, _, do, _, _ = CASES[name]
    ran = memctl_on_terminal(env, *argv, *more[0], terminals=more[1])
    assert (ran.code, settled(ran.err)) == (0, "")
    assert asked(daemon) == [do]


@pytest.mark.parametrize("name", CASES)
def test_a_dry_run_asks_nobody(env: dict[str, str], daemon: FakeDaemon, name: str) -> None:
    argv, look, _, _, _ = CASES[name]
    ran = memctl_on_terminal(env, *argv, "--dry-run", typed="y\n")
    assert "[y/N]" not in ran.err
    assert ran.err.endswith("nothing was done\n")
    assert asked(daemon) == [look]


NOTHING_TO_DO: dict[str, dict[str, Any]] = {
    "import": {"memory.import": NOTHING_NEW},
    "adopt": {"store.adopt": {"adopted": [], "renamed": {}, "identical": [], "left": 0}},
    "rebuild": {"memory.rebuild": {"ok": True, "repo": STORE, "global": STORE}},
    "reconcile": {"memory.reconcile": {"repo": COUNTS, "global": COUNTS}},
}


@pytest.mark.parametrize("name", CASES)
def test_where_nothing_would_be_touched_nothing_is_asked(env: dict[str, str], name: str) -> None:
    argv, look, do, _, _ = CASES[name]
    ran, requests = answered(env, NOTHING_TO_DO[name], *argv, typed="")
    assert (ran.code, settled(ran.err), requests) == (0, "", [look, do])


@pytest.mark.parametrize(("what", "nothing"), [("imported", "updated"), ("updated", "imported")])
def test_one_kind_of_change_is_enough_to_ask(env: dict[str, str], what: str, nothing: str) -> None:
    reply = {**NOTHING_NEW, what: ["one"], nothing: []}
    ran, requests = answered(env, {"memory.import": reply}, "import", ".", typed="n\n")
    assert (ran.code, requests) == (1, [LOOK])


def test_a_plain_reconcile_asks_nobody(env: dict[str, str]) -> None:
    ran, requests = answered(env, {}, "reconcile", typed="")
    assert (ran.code, ran.err, requests) == (0, "", [("memory.reconcile", {})])


def test_an_error_while_it_looks_does_nothing(env: dict[str, str]) -> None:
    table = {"memory.import": Failure(-32001, "memory.import: dir: Permission denied", kind="refused")}
    ran, requests = answered(env, table, "import", ".", typed="y\n")
    assert (ran.code, ran.out, requests) == (4, "", [LOOK])
    assert settled(ran.err) == "memctl: memory.import: dir: Permission denied\n"


def test_deletions_that_became_more_while_the_person_thought_are_not_carried_out(env: dict[str, str]) -> None:
    later = {**RECONCILED, "global": {**COUNTS, "forgotten": 9}}
    ran, requests = answered(env, {"memory.reconcile": [RECONCILED, later]}, "reconcile", "--accept", typed="y\n")
    assert (ran.code, ran.out, requests) == (4, "", [LOOK_ACCEPT, LOOK_ACCEPT])
    assert "the stores were changed meanwhile; nothing was forgotten" in ran.err


def test_a_long_plan_is_cut_before_the_question(env: dict[str, str]) -> None:
    plan = {**ARRIVED, "imported": [f"n{number}" for number in range(1000)], "updated": ["mine"], "total": 1003}
    ran, _ = answered(env, {"memory.import": plan}, "import", ".", typed="n\n")
    lines = settled(ran.err).splitlines()
    assert lines[1] == "1,000 to import · 1 to update · 1 to skip · 1 identical"
    assert [line.split()[0] for line in lines[2:22]] == ["update", "skip", *["import"] * 18]
    assert lines[22] == "… and 982 more; --dry-run shows all"
    ran, _ = answered(env, {"memory.import": plan}, "import", ".", "--dry-run", typed="")
    assert len(ran.out.splitlines()) == 1002


@pytest.mark.parametrize("flags", [[], ["--json"], ["--dry-run"]], ids=str)
def test_notes_left_behind_are_1(env: dict[str, str], flags: list[str]) -> None:
    ran, _ = against(env, {"store.adopt": {**ADOPTED, "left": 2}}, "adopt", KEY, *flags)
    assert ran.code == 1
    if not flags:
        assert ran.out.startswith("repo: 2 adopted · 1 identical · 2 left behind\n")
        assert ran.err.startswith("warning: what is left behind could not be taken")
    else:
        assert "warning" not in ran.err


@pytest.mark.parametrize("key", ["----", "--a--", "--a----1234abcd", "--a---b--", "--我--", "--x=y--"])
def test_a_key_is_a_word_although_it_looks_like_an_option(env: dict[str, str], daemon: FakeDaemon, key: str) -> None:
    assert memctl(env, "--json", "adopt", key).code == 0
    assert memctl(env, "adopt", "--yes", "--", key).code == 0
    assert asked(daemon) == [("store.adopt", {"key": key})] * 2


def test_no_stores_is_said(env: dict[str, str]) -> None:
    ran, _ = against(env, {"store.list": {"stores": []}}, "stores")
    assert (ran.code, ran.out, ran.err) == (0, "", "no stores yet; the first save makes one\n")


# -- an import in pages

FILES = [f"n{number:04}.md" for number in range(1200)]


def files(env: dict[str, str], before: Callable[[dict[str, Any]], Failure | None] = lambda _: None) -> Answer:
    """The answers of a daemon that imports `FILES`; `before` each it may do something, or give an error."""

    def answer(request: dict[str, Any]) -> bytes | None:
        if request["method"] == "daemon.hello":
            return answers(env, {})(request)
        error = before(request["params"])
        if error is not None:
            return failure(request, error)
        left = [file for file in FILES if file > request["params"].get("after", "")]
        page = left[: request["params"]["limit"]]
        reply = {"imported": page[1:], "updated": [], "skipped": [{"file": page[0], "reason": "x"}]}
        more = {"next": page[-1]} if len(page) < len(left) else {}
        return result(request, {**reply, "total": len(left), **more})

    return answer


def test_pages_come_as_one_reply(env: dict[str, str], tmp_path: Path) -> None:
    with FakeDaemon(memd_client.socket_path(env), files(env)) as daemon:
        ran = memctl(env, "import", str(tmp_path), "--json")
    reply = json.loads(ran.out)
    assert (ran.code, ran.err, reply.keys()) == (0, "", {"imported", "updated", "skipped", "total"})
    assert sorted(reply["imported"] + [row["file"] for row in reply["skipped"]]) == FILES
    assert (len(reply["skipped"]), reply["total"]) == (3, 1200)
    assert [params.get("after") for _, params in asked(daemon)] == [None, "n0499.md", "n0999.md"]


def test_the_directory_is_seen_from_the_one_that_is_worked_in(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    with FakeDaemon(memd_client.socket_path(env), answers(env, REPLIES)) as daemon:
        memctl(env, "-C", str(tmp_path), "import", "link")
    [request] = daemon.requests
    assert (request["params"]["cwd"], request["params"]["dir"]) == (str(tmp_path), str(tmp_path / "kept"))


class Terminal:
    """A run of memctl whose stderr is a terminal that is read while it runs."""

    def __init__(self, env: dict[str, str], *arguments: str) -> None:
        self.ours, theirs = os.openpty()
        self.process = subprocess.Popen(
            command(*arguments), env=memctl_env(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs
        )
        os.close(theirs)
        self.err = b""

    def read(self) -> bool:
        """Whether there was more to read."""
        try:
            part = os.read(self.ours, 4096)
        except OSError:
            return False
        self.err += part
        return True

    def read_to(self, text: str) -> None:
        """Read until `text` stands there."""
        while text.encode() not in self.err:
            assert self.read(), self.err

    def close(self) -> tuple[int, str]:
        """Read to the end; the exit code and standard output."""
        while self.read():
            pass
        os.close(self.ours)
        out, _ = self.process.communicate(timeout=20)
        return self.process.returncode, out.decode()


def test_a_long_import_shows_how_far_it_is_and_leaves_no_trace_of_it(env: dict[str, str], tmp_path: Path) -> None:
    shown = {None: threading.Event(), "n0499.md": threading.Event(), "n0999.md": threading.Event()}

    def wait(params: dict[str, Any]) -> None:
        assert shown[params.get("after")].wait(20)

    with FakeDaemon(memd_client.socket_path(env), files(env, wait)):
        terminal = Terminal(env, "import", str(tmp_path))
        terminal.read_to("\rimporting the files")
        shown[None].set()
        terminal.read_to("\rimporting the files · 500 of 1,200")
        shown["n0499.md"].set()
        terminal.read_to("\rimporting the files · 1,000 of 1,200")
        shown["n0999.md"].set()
        code, out = terminal.close()
    assert (code, out.splitlines()[0]) == (0, "repo: 1,197 imported · 0 updated · 3 skipped · 0 identical")
    assert terminal.err.endswith(b"\r" + b" " * len("importing the files 1,000 of 1,200 .") + b"\r")


def test_how_far_it_is_fits_a_narrow_terminal(env: dict[str, str], tmp_path: Path) -> None:
    shown = threading.Event()

    def wait(params: dict[str, Any]) -> None:
        assert shown.wait(20)

    with FakeDaemon(memd_client.socket_path(env), files(env, wait)):
        terminal = Terminal({**env, "COLUMNS": "15"}, "import", str(tmp_path))
        terminal.read_to("\rimporting the…")
        shown.set()
        assert terminal.close()[0] == 0
    assert b"files" not in terminal.err


INTERRUPTED = [
    ([], None, "interrupted in the first 500 files; "),
    ([], "n0499.md", "interrupted after 500 of 1,200 files; "),
    (["--json"], "n0999.md", "interrupted after 1,000 of 1,200 files; "),
]
AGAIN = "run it again to go on: what is here already is passed over\n"


def interrupted(env: dict[str, str], directory: Path, at: str | None, *flags: str) -> tuple[int, bytes, bytes]:
    """An import that gets Ctrl-C while it waits for the page after `at`: exit code and outputs."""
    asked, over = threading.Event(), threading.Event()

    def hold(params: dict[str, Any]) -> None:
        if params.get("after") == at:
            asked.set()
            over.wait(20)

    with FakeDaemon(memd_client.socket_path(env), files(env, hold)):
        importing = subprocess.Popen(
            command("import", str(directory), *flags),
            env=memctl_env(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with importing:
            assert asked.wait(20)
            importing.send_signal(signal.SIGINT)
            out, err = importing.communicate(timeout=20)
        over.set()
    return importing.returncode, out, err


@pytest.mark.parametrize(("flags", "at", "says"), INTERRUPTED, ids=["first", "second", "third"])
def test_ctrl_c_says_how_far_it_came(
    env: dict[str, str], tmp_path: Path, flags: list[str], at: str | None, says: str
) -> None:
    assert interrupted(env, tmp_path, at, *flags) == (130, b"", f"{says}{AGAIN}".encode())


def test_ctrl_c_while_it_only_looks_is_quiet(env: dict[str, str], tmp_path: Path) -> None:
    assert interrupted(env, tmp_path, "n0499.md", "--dry-run") == (130, b"", b"")


def full(params: dict[str, Any]) -> Failure | None:
    """A disk that is full after the first page."""
    return Failure(-32008, "memory.import: the disk is full", kind="storage") if "after" in params else None


def test_an_import_that_fails_says_how_far_it_came(env: dict[str, str], tmp_path: Path) -> None:
    with FakeDaemon(memd_client.socket_path(env), files(env, full)):
        ran = memctl(env, "import", str(tmp_path))
        looked = memctl(env, "import", str(tmp_path), "--dry-run")
    words = "memctl: memory.import: the disk is full\n"
    assert (ran.code, ran.out) == (6, "")
    assert ran.err == f"{words}500 of 1,200 files were done before that; {AGAIN}"
    assert (looked.code, looked.out, looked.err) == (6, "", words)


# -- progress


class Screen(ErrorStream):
    """A terminal that keeps what was put on its last line."""

    def __init__(self) -> None:
        super().__init__(None, {}, Stream(None, {}))
        self.seen: list[str] = []

    def status(self, text: str) -> None:
        """Keep it."""
        self.seen.append(text)


def test_what_is_quick_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER", 3600.0)
    screen = Screen()
    with progress.Progress(screen, "one") as told:
        told.tell("two")
    assert screen.seen == []


def test_what_takes_longer_shows_the_last_word_and_every_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER", 0.0)
    screen = Screen()
    with progress.Progress(screen, "one") as told:
        until(lambda: screen.seen == ["one"])
        told.tell("two")
        told.tell("three")
    assert screen.seen == ["one", "two", "three", ""]
