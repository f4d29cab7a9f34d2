"""What each command asks the daemon, prints and ends with."""

import json
import os
import select
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memd_client
from memd import __version__
from memd.memctl import running
from memd.memctl.arguments import moment
from memd.memctl.ctl import Ctl
from memd.memctl.exits import Stop
from memd.memctl.terminal import ErrorStream, Stream
from support.client_home import client_home
from support.fake_daemon import FakeDaemon, result
from support.memctl_program import HELLO, Failure, Ran, answers, memctl, memctl_on_terminal

ONE = "sha256:" + "1a" * 32
TWO = "sha256:" + "2b" * 32
HERE = str(Path.cwd().resolve())
EVERY = 2**53 - 1


def note(name: str, hook: str, **more: object) -> dict[str, object]:
    """A row of `memory.list`."""
    row: dict[str, object] = {"name": name, "scope": "repo", "type": "user", "description": hook, "hash": ONE}
    return {**row, "unparsed": False, "shadowed": False, **more}


def record(at: int, op: str, name: str = "disk", **more: object) -> dict[str, object]:
    """A record of `memory.log`."""
    return {"at": at, "op": op, "name": name, "scope": "repo", "hash": ONE, "digest": ONE, **more}


def found(reason: str, **more: object) -> dict[str, object]:
    """A finding."""
    return {"kind": "unparsed", "scope": "repo", "reason": reason, **more}


LONG = "A hook that is a good deal longer than a terminal of eighty cells, which a pipe must get in full"
STORE = {"live": 3, "restored": 1, "forgotten": 2, "differ": [], "missing": [], "broken_line": None}
COUNTS = {"adopted": 1, "edited": 2, "forgotten": 0, "suspended": False}
STATS = {"sessions": 4, "notes": 3, "saves": 6, "reads": 1, "unparsed": 0}
SAVED = {"name": "disk-full", "scope": "repo", "updated": False, "warnings": [], "hash": ONE}
SHOWN = {"name": "disk", "scope": "repo", "hash": ONE, "markdown": "the text\n", "current": True}
TROUBLES = [
    found("the block never closes", name="x", file="x.md", line=1),
    found("not a regular file", file="y.md", scope="global", kind="symlink"),
    found("the store is suspended", kind="suspended"),
]

REPLIES: dict[str, Any] = {
    "memory.list": {
        "notes": [
            note("disk-full", LONG, type="feedback"),
            note("pnpm", "Use pnpm", scope="global", shadowed=True),
            note("broken", "A first line", type=None, unparsed=True),
            note("plain", "", type=None),
        ],
        "total": 4,
    },
    "memory.show": SHOWN,
    "memory.search": {
        "hits": [{"name": "disk", "description": "Disks fill", "scope": "repo"}],
        "total": 1,
    },
    "memory.save": SAVED,
    "memory.log": {
        "records": [
            record(90061, "forget", by="hand"),
            record(7200, "read", session="run-7"),
            record(3600, "read"),
            record(0, "save", by="cli", scope="global"),
        ],
        "total": 4,
    },
    "memory.stats": {
        "repo": {**STATS, "saves_per_session": 1.5, "reads_per_session": 0.25},
        "global": {**STATS, "saves_per_session": 0.0, "reads_per_session": 1 / 3},
    },
    "memory.check": {"ok": False, "findings": TROUBLES},
    "memory.verify": {"ok": True, "findings": []},
    "memory.rebuild": {
        "ok": False,
        "repo": {**STORE, "differ": ["edited"], "missing": ["lost"], "broken_line": 7},
        "global": STORE,
    },
    "memory.reconcile": {"repo": COUNTS, "global": {**COUNTS, "adopted": 0}},
    "daemon.status": {
        "version": "0.1.0",
        "pid": 4242,
        "uptime_s": 93784.2,
        "stores": 2,
        "watching": False,
        "last_event_s": None,
        "last_scan_s": 59.9,
        "connections": 1,
        "findings": [{"kind": "config", "reason": "line 3 does not parse"}],
    },
}


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with client_home() as env:
        yield env


@pytest.fixture
def daemon(env: dict[str, str]) -> Iterator[FakeDaemon]:
    with FakeDaemon(memd_client.socket_path(env), answers(env, REPLIES)) as daemon:
        yield daemon


def against(env: dict[str, str], table: dict[str, Any], *argv: str, stdin: bytes = b"") -> tuple[Ran, list[Any]]:
    """A run in pipes against the answers of `table`, and the methods and parameters it asked for."""
    with FakeDaemon(memd_client.socket_path(env), answers(env, table)) as daemon:
        ran = memctl(env, *argv, stdin=stdin)
    return ran, [(request["method"], request["params"]) for request in daemon.requests]


PRINTED = [
    (
        ["list"],
        ("memory.list", {}),
        0,
        (
            f"disk-full\tfeedback\trepo\t{LONG}\n"
            "pnpm\tuser\tglobal shadowed\tUse pnpm\nbroken\tunparsed\trepo\tA first line\nplain\t-\trepo\t\n"
        ),
    ),
    (
        ["list", "--type", "user", "--limit", "9", "--scope", "global"],
        ("memory.list", {"type": "user", "limit": 9, "scope": "global"}),
        0,
        None,
    ),
    (["show", "disk"], ("memory.show", {"name": "disk"}), 0, "the text\n"),
    (
        ["show", "disk", "--hash", TWO, "--scope", "repo"],
        ("memory.show", {"name": "disk", "hash": TWO, "scope": "repo"}),
        0,
        None,
    ),
    (
        ["search", "disk", "full"],
        ("memory.search", {"query": "disk full", "limit": EVERY}),
        0,
        "disk · repo — Disks fill\n",
    ),
    (["search", "disk", "--limit", "2"], ("memory.search", {"query": "disk", "limit": 2}), 0, None),
    (["save"], ("memory.save", {"markdown": "", "fields": {}}), 0, "saved disk-full · repo\n"),
    (
        ["log"],
        ("memory.log", {"limit": 50}),
        0,
        (
            f"1970-01-02T01:01:01+0000\thand\tforget\tdisk\trepo\t{ONE}\n"
            f"1970-01-01T02:00:00+0000\trun-7\tread\tdisk\trepo\t{ONE}\n"
            f"1970-01-01T01:00:00+0000\t-\tread\tdisk\trepo\t{ONE}\n"
            f"1970-01-01T00:00:00+0000\tyou\tsave\tdisk\tglobal\t{ONE}\n"
        ),
    ),
    (
        ["log", "disk", "--limit", "4", "--since", "1970-01-01T00:00:05"],
        ("memory.log", {"name": "disk", "limit": 4, "since": 5.0}),
        0,
        None,
    ),
    (
        ["stats"],
        ("memory.stats", {}),
        0,
        (
            "store\tsessions\tnotes\tsaves\treads\tsaves/session\treads/session\tunparsed\n"
            "repo\t4\t3\t6\t1\t1.50\t0.25\t0\nglobal\t4\t3\t6\t1\t0.00\t0.33\t0\n"
        ),
    ),
    (
        ["check"],
        ("memory.check", {}),
        1,
        "repo/x.md:1: the block never closes\nglobal/y.md:1: not a regular file\nrepo:1: the store is suspended\n",
    ),
    (["check", "--scope", "global"], ("memory.check", {}), 1, "global/y.md:1: not a regular file\n"),
    (
        ["rebuild"],
        ("memory.rebuild", {}),
        1,
        (
            "repo: 3 live · 1 restored · 2 forgotten\n"
            "repo/edited.md: differs from the journal's last version\n"
            "repo/lost.md: a version has no object\n"
            "repo/ops.jsonl:7: the journal is broken here\n"
            "global: 3 live · 1 restored · 2 forgotten\n"
        ),
    ),
    (["rebuild", "--scope", "global"], ("memory.rebuild", {}), 0, "global: 3 live · 1 restored · 2 forgotten\n"),
    (
        ["reconcile"],
        ("memory.reconcile", {}),
        0,
        "repo: 1 adopted · 2 edited · 0 forgotten\nglobal: 0 adopted · 2 edited · 0 forgotten\n",
    ),
    (["reconcile", "--accept"], ("memory.reconcile", {"accept": True}), 0, None),
]


@pytest.mark.parametrize(("argv", "asked", "code", "out"), PRINTED, ids=[" ".join(row[0]) for row in PRINTED])
def test_what_is_asked_and_printed(
    env: dict[str, str], argv: list[str], asked: tuple[str, dict[str, Any]], code: int, out: str | None
) -> None:
    ran, requests = against(env, REPLIES, *argv)
    assert requests == [(asked[0], {"cwd": HERE, **asked[1]})]
    assert (ran.code, ran.err) == (code, "")
    assert out is None or ran.out == out


AS_IS = ["list", "show", "search", "save", "log", "stats", "check", "verify", "rebuild", "reconcile", "status"]


@pytest.mark.parametrize("command", AS_IS)
def test_json_is_the_reply_as_it_is(env: dict[str, str], daemon: FakeDaemon, command: str) -> None:
    words = ["disk"] if command in {"show", "search"} else []
    ran = memctl(env, command, *words, "--json")
    assert json.loads(ran.out) == REPLIES[daemon.methods[-1]]
    assert ran.err == ""
    assert ran.code == (1 if command in {"check", "rebuild"} else 0)


@pytest.mark.usefixtures("daemon")
def test_json_of_one_scope_has_its_findings_only(env: dict[str, str]) -> None:
    assert json.loads(memctl(env, "check", "--json", "--scope", "global").out)["findings"] == [TROUBLES[1]]


@pytest.mark.parametrize(
    ("argv", "reply", "says"),
    [
        (["list"], {"notes": [], "total": 0}, "no notes here; `memctl save --help` says how to save one"),
        (["list", "--limit", "1"], {"notes": [note("a", "b")], "total": 7}, "1 of 7 notes"),
        (["search", "x"], {"hits": [], "total": 0}, "no note shares a word with this; `memctl list` prints them all"),
        (["search", "x", "--limit", "1"], {**REPLIES["memory.search"], "total": 7}, "1 of 7 notes"),
        (["log"], {"records": [], "total": 0}, "no records"),
        (["verify"], {"ok": True, "findings": []}, "no findings"),
        (["check", "--scope", "global"], {"ok": False, "findings": [found("x")]}, "no findings"),
        (["log"], {"records": [record(0, "save")], "total": 7}, "1 of 7 records; --limit 7 for all"),
        (["save"], {**SAVED, "warnings": ["a", "b"]}, "warning: a\nwarning: b"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_said_about_the_data_goes_to_stderr(
    env: dict[str, str], argv: list[str], reply: dict[str, Any], says: str
) -> None:
    ran, _ = against(env, {f"memory.{argv[0]}": reply}, *argv)
    assert (ran.code, ran.err) == (0, f"{says}\n")
    assert says not in ran.out


# -- show


def test_a_note_that_is_not_there_is_3_and_search_is_suggested(env: dict[str, str]) -> None:
    table = {"memory.show": Failure(-32002, "memory.show: no note is named tmp_is-ram", kind="not_found")}
    ran, _ = against(env, table, "show", "tmp_is-ram;x")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "memctl: memory.show: no note is named tmp_is-ram\ntry: memctl search tmp is ram x\n"
    assert against(env, table, "show", "…")[0].err.endswith("try: memctl list\n")


@pytest.mark.parametrize(
    ("given", "code", "last", "says"),
    [
        ("2b2b", 0, "memory.show", ""),
        ("sha256:2b2b", 0, "memory.show", ""),
        ("ffff", 3, "memory.log", "no version of disk has a hash that begins with ffff"),
        ("1a1a", 2, "memory.log", "2 versions of disk have a hash that begins with 1a1a"),
    ],
)
def test_the_beginning_of_a_hash_is_enough(env: dict[str, str], given: str, code: int, last: str, says: str) -> None:
    records = [
        record(3, "read"),
        record(2, "save"),
        record(1, "save", hash=ONE.replace("1a", "1a1b", 1).replace("1a1b", "1a1a1b", 1)),
        record(0, "save", hash=TWO),
    ]
    table = {"memory.log": {"records": records, "total": 4}, "memory.show": SHOWN}
    ran, requests = against(env, table, "show", "disk", "--hash", given)
    assert (ran.code, requests[-1][0]) == (code, last)
    assert says in ran.err
    if code == 0:
        assert requests[0] == ("memory.log", {"cwd": HERE, "name": "disk", "limit": EVERY, "reads": False})
        assert requests[1][1]["hash"] == TWO


def test_a_hash_is_looked_for_in_the_scope_that_is_wanted(env: dict[str, str]) -> None:
    records = [record(1, "save", scope="global", hash=TWO)]
    table = {"memory.log": {"records": records, "total": 1}, "memory.show": SHOWN}
    assert against(env, table, "show", "disk", "--hash", "2b2b", "--scope", "repo")[0].code == 3
    assert against(env, table, "show", "disk", "--hash", "2b2b", "--scope", "global")[0].code == 0


# -- save


def saved(env: dict[str, str], *argv: str, stdin: bytes = b"") -> dict[str, Any]:
    """The parameters of the save that these arguments made."""
    ran, [(_, params)] = against(env, {"memory.save": SAVED}, "save", *argv, stdin=stdin)
    assert ran.code == 0
    return dict(params)


def test_a_save_sends_its_text_and_its_fields(env: dict[str, str]) -> None:
    params = saved(
        env,
        *("--name", "disk full", "--description", "Disks fill", "--type", "feedback", "--scope", "global"),
        *("--field", "seen=2024=05", "--field", "empty="),
        stdin="Größe\r\n".encode(),
    )
    assert params == {
        "cwd": HERE,
        "markdown": "Größe\r\n",
        "fields": {
            "seen": "2024=05",
            "empty": "",
            "name": "disk full",
            "description": "Disks fill",
            "type": "feedback",
            "scope": "global",
        },
    }


@pytest.mark.parametrize(
    ("given", "expect"), [("null", None), ("exists", "exists"), (ONE, ONE), (ONE[7:], ONE[7:])], ids=str
)
def test_what_is_expected_is_passed_on(env: dict[str, str], given: str, expect: str | None) -> None:
    params = saved(env, "--expect", given)
    assert "expect" in params
    assert params["expect"] == expect
    assert "expect" not in saved(env)


def test_a_text_comes_from_the_file_seen_from_the_directory(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "note.md").write_bytes(b"in a file\n")
    assert saved(env, "-C", str(tmp_path), "note.md", stdin=b"not this")["markdown"] == "in a file\n"
    assert saved(env, str(tmp_path / "note.md"))["markdown"] == "in a file\n"
    assert saved(env, "-", stdin=b"this")["markdown"] == "this"


def test_an_update_says_so(env: dict[str, str]) -> None:
    ran, _ = against(env, {"memory.save": {**SAVED, "updated": True}}, "save")
    assert ran.out == "saved disk-full · repo (updated)\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [(b"a\xff", "standard input: not UTF-8 at byte 2"), (b"x" * (2**20 + 1), "over 1,048,576 bytes")],
    ids=["bytes", "long"],
)
def test_what_is_no_note_is_refused_here(env: dict[str, str], text: bytes, says: str) -> None:
    ran, requests = against(env, {}, "save", stdin=text)
    assert (ran.code, ran.out, requests) == (4, "", [])
    assert says in ran.err


def test_on_a_terminal_a_save_needs_a_text_or_a_description(env: dict[str, str], daemon: FakeDaemon) -> None:
    ran = memctl_on_terminal(env, "save", "--type", "user")
    assert (ran.code, ran.out, daemon.requests) == (2, "", [])
    assert "save needs a text" in ran.err
    assert memctl_on_terminal(env, "save", "--description", "x").code == 0
    assert memctl_on_terminal(env, "save", "-", typed="typed\n\x04").code == 0
    assert [request["params"]["markdown"] for request in daemon.requests] == ["", "typed\n"]


# -- log


def test_a_log_on_a_terminal_reads_like_a_history(env: dict[str, str]) -> None:
    day = 86_400
    records = [
        record(day + 60, "save", session="s" * 40),
        record(day, "edit", by="hand"),
        record(1, "save", by="restore"),
        record(0, "adopt", by="claude"),
    ]
    table = {"memory.log": {"records": records, "total": 4}}
    with FakeDaemon(memd_client.socket_path(env), answers(env, table)):
        ran = memctl_on_terminal({**env, "NO_COLOR": "1"}, "log", width=100)
    assert ran.out.splitlines() == [
        "Friday, 2 January 1970",
        f"  00:01:00  {'s' * 19}…  saved     disk  repo  1a1a1a1a1a1a",
        "  00:00:00  by hand               edited    disk  repo  1a1a1a1a1a1a",
        "Thursday, 1 January 1970",
        "  00:00:01  you                   restored  disk  repo  1a1a1a1a1a1a",
        "  00:00:00  Claude                took in   disk  repo  1a1a1a1a1a1a",
    ]


def test_a_log_in_a_pipe_has_the_words_of_the_journal(env: dict[str, str]) -> None:
    records = [record(0, "edit", by="hand"), record(0, "save", by="cli"), record(0, "save", session="s", by="cli")]
    ran, _ = against(env, {"memory.log": {"records": records, "total": 3}}, "log")
    rows = [line.split("\t") for line in ran.out.splitlines()]
    assert [row[1:3] for row in rows] == [["hand", "edit"], ["you", "save"], ["s", "save"]]
    assert all(row[0] == "1970-01-01T00:00:00+0000" and row[5].startswith("sha256:") for row in rows)


def test_a_log_of_one_store_asks_for_no_more_than_it_shows(env: dict[str, str]) -> None:
    table = {"memory.log": {"records": [], "total": 0}}
    _, [(method, params)] = against(env, table, "log", "--scope", "repo", "--limit", "3", "--json")
    assert (method, params) == ("memory.log", {"cwd": HERE, "limit": 3, "scope": "repo"})


def test_times_are_read_in_every_form() -> None:
    now = time.time()
    for text, seconds in [("90s", 90), ("30m", 1800), ("2h", 7200), ("3d", 259200), ("1w", 604800)]:
        assert moment(text) == pytest.approx(now - seconds, abs=5)
    assert moment("1700000000") == 1_700_000_000
    assert moment("2024-05-01T12:00:00+00:00") == 1_714_564_800
    assert moment("2024-05-01") == time.mktime((2024, 5, 1, 0, 0, 0, 0, 0, -1))


# -- reconcile


def test_a_suspended_store_is_4_and_the_ways_out_are_named(env: dict[str, str]) -> None:
    table = {"memory.reconcile": {"repo": {**COUNTS, "suspended": True}, "global": COUNTS}}
    ran, _ = against(env, table, "reconcile")
    assert ran.code == 4
    assert ran.out.startswith("repo: 1 adopted · 2 edited · 0 forgotten · suspended\nglobal: ")
    assert "memctl rebuild" in ran.err
    assert "memctl reconcile --accept" in ran.err
    assert against(env, table, "reconcile", "--json")[0].code == 4
    assert against(env, table, "reconcile", "--scope", "global")[0].code == 0


# -- rebuild


@pytest.mark.parametrize(
    ("more", "code"),
    [({}, 0), ({"differ": ["x"]}, 0), ({"missing": ["x"]}, 1), ({"broken_line": 1}, 1)],
    ids=["whole", "differs", "missing", "broken"],
)
@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_a_rebuild_is_1_for_what_it_could_not_bring_back(
    env: dict[str, str], more: dict[str, object], code: int, flags: list[str]
) -> None:
    table = {"memory.rebuild": {"ok": not code, "repo": STORE, "global": {**STORE, **more}}}
    assert against(env, table, "rebuild", *flags)[0].code == code


# -- the daemon


@pytest.mark.parametrize(
    ("method", "timeout"),
    [
        ("memory.search", 30.0),
        ("memory.rebuild", None),
        ("memory.reconcile", None),
        ("memory.import", None),
        ("store.adopt", None),
    ],
)
def test_only_for_a_whole_store_is_waited_without_end(
    monkeypatch: pytest.MonkeyPatch, method: str, timeout: float | None
) -> None:
    made: list[dict[str, object]] = []

    class Connection:
        def __init__(self, **how: object) -> None:
            made.append(how)

        def call(self, method: str, params: object) -> dict[str, object]:
            return {"method": method, "params": params}

        def close(self) -> None:
            made.append({"closed": True})

    monkeypatch.setattr(memd_client, "Connection", Connection)
    out = Stream(None, {})
    with Ctl(out, ErrorStream(None, {}, out), directory=None, scope=None, is_json=False, may_start=False) as ctl:
        assert ctl.call(method) == {"method": method, "params": None}
    assert made == [{"autostart": False, "timeout": timeout}, {"closed": True}]


@pytest.mark.usefixtures("daemon")
def test_a_status_is_lines(env: dict[str, str]) -> None:
    ran = memctl(env, "status")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "memd\t0.1.0",
        "pid\t4242",
        "up\t1 d 2 h",
        "stores\t2",
        "connections\t1",
        "watching\tno",
        "last event\tnever",
        "last scan\t59 s ago",
        "finding\tconfig: line 3 does not parse",
    ]


def test_a_version_is_that_of_both(env: dict[str, str], daemon: FakeDaemon) -> None:
    ran = memctl(env, "version")
    assert (ran.code, ran.out, ran.err) == (0, f"memctl {__version__}\nmemd 0.1.0 · pid 4242\n", "")
    assert memctl(env, "--version").out == ran.out
    reply = json.loads(memctl(env, "version", "--json").out)
    assert reply["version"] == __version__
    assert reply["daemon"]["pid"] == 4242
    assert set(daemon.methods) == {"daemon.hello"}


def test_a_version_without_a_daemon_is_that_of_memctl(env: dict[str, str]) -> None:
    ran = memctl({**env, "MEMD_NO_AUTOSTART": ""}, "version")
    assert (ran.code, ran.out, ran.err) == (0, f"memctl {__version__}\n", "memd does not run\n")
    assert json.loads(memctl(env, "version", "--json").out) == {"version": __version__, "daemon": None}
    assert not Path(env["MEMD_HOME"]).exists()


def test_another_version_is_told(env: dict[str, str]) -> None:
    other = {"daemon.hello": {**HELLO, "version": "9.9", "home": memd_client.home_id(env)}}
    ran, _ = against(env, other, "version")
    assert ran.out.endswith("memd 9.9 · pid 4242\n")
    assert ran.err.startswith("warning: the daemon that runs is of another version")


@pytest.mark.parametrize("command", ["status", "stop"])
def test_neither_starts_a_daemon(env: dict[str, str], command: str) -> None:
    ran = memctl({**env, "MEMD_NO_AUTOSTART": ""}, command)
    assert ran.code == (5 if command == "status" else 0)
    assert ran.out == ""
    assert not Path(env["MEMD_HOME"]).exists()


@pytest.mark.usefixtures("daemon")
def test_a_start_finds_the_one_that_runs(env: dict[str, str]) -> None:
    ran = memctl(env, "start")
    assert (ran.code, ran.out) == (0, "memd 0.1.0 runs already · pid 4242\n")
    assert json.loads(memctl(env, "start", "--json").out)["pid"] == 4242


def test_a_start_that_must_not_start_is_5(env: dict[str, str]) -> None:
    ran = memctl(env, "start", "--no-autostart")
    assert (ran.code, ran.out) == (5, "")


def test_a_stop_waits_until_nobody_answers(env: dict[str, str]) -> None:
    hello = {**HELLO, "home": memd_client.home_id(env), "pid": 2**22 + 1}
    left = 3
    methods: list[str] = []

    def answer(request: dict[str, Any]) -> bytes | None:
        nonlocal left
        methods.append(request["method"])
        if "daemon.stop" not in methods:
            return result(request, hello)
        if request["method"] == "daemon.stop":
            return result(request, {"stopping": True})
        left -= 1
        return result(request, hello if left > 0 else {**hello, "pid": 1})

    with FakeDaemon(memd_client.socket_path(env), answer):
        ran = memctl(env, "stop")
    assert (ran.code, ran.out) == (0, f"memd 0.1.0 stopped · pid {2**22 + 1}\n")
    assert methods == ["daemon.hello", "daemon.stop", "daemon.hello", "daemon.hello", "daemon.hello"]


@pytest.mark.parametrize("command", ["start", "stop", "version"])
def test_a_daemon_of_another_home_is_left_alone(env: dict[str, str], command: str) -> None:
    ran, requests = against(env, {"daemon.hello": {**HELLO, "home": "0" * 16}}, command)
    assert (ran.code, ran.out) == (5, "")
    assert "another home" in ran.err
    assert {method for method, _ in requests} == {"daemon.hello"}


def test_one_that_goes_while_it_is_asked_does_not_run(env: dict[str, str]) -> None:
    with FakeDaemon(memd_client.socket_path(env), lambda _: None):
        assert memctl(env, "version").err == "memd does not run\n"


def test_a_stop_waits_for_the_process_too(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()
    os.close(theirs)
    waited: list[object] = []

    def ends(watched: list[int], *_: object) -> tuple[list[int], list[int], list[int]]:
        waited.append(watched)
        return watched, [], []

    monkeypatch.setattr(running, "running", lambda: None)
    monkeypatch.setattr(select, "select", ends)
    running.wait(4242, ours)
    assert waited == [[ours]]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(ours)


def test_a_stop_that_takes_too_long_is_6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "running", lambda: {**HELLO})
    monkeypatch.setattr(running, "WAIT", 0.0)
    with pytest.raises(Stop, match="still answers after 0 s · pid 4242") as caught:
        running.wait(4242, None)
    assert caught.value.code == 6


def test_a_stop_is_done_when_the_socket_is_gone(env: dict[str, str]) -> None:
    hello = {**HELLO, "home": memd_client.home_id(env), "pid": 2**22 + 1}
    path = Path(memd_client.socket_path(env))

    def answer(request: dict[str, Any]) -> bytes | None:
        if request["method"] == "daemon.hello":
            return result(request, hello)
        path.rename(path.with_suffix(".gone"))
        return result(request, {"stopping": True})

    with FakeDaemon(str(path), answer):
        ran = memctl(env, "stop", "--json")
        path.with_suffix(".gone").rename(path)
    assert (ran.code, json.loads(ran.out)) == (0, {"stopping": True})
