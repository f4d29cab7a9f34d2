"""Terminal and pipe: what a note's text may do to either, colour, width, and readers that go away (SPEC 14)."""

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import memd_client
from support.client_home import client_home
from support.fake_daemon import FakeDaemon, result
from support.memctl_program import Failure, Ran, answers, command, memctl, memctl_env, memctl_on_terminal

HASH = "sha256:" + "0f" * 32
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
EVIL = "red \x1b[31m bell \x07 back \x08 del \x7f csi \x9b1m nul \x00 ret \r rtl " + BIDI + " end"
FORBIDDEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{BIDI}]")


def note(name: str = "a-note", **more: object) -> dict[str, object]:
    """A row of `memory.list`."""
    row: dict[str, object] = {"name": name, "scope": "repo", "type": "user", "description": "a hook", "hash": HASH}
    return {**row, "unparsed": False, "shadowed": False, **more}


REPLIES: dict[str, Any] = {
    "memory.list": {"notes": [note(EVIL, description=EVIL)], "total": 1},
    "memory.search": {"hits": [{"name": EVIL, "description": EVIL, "scope": "repo"}], "total": 1},
    "memory.show": {"name": "x", "scope": "repo", "hash": HASH, "markdown": f"{EVIL}\n\ttab\r\nend", "current": True},
    "memory.log": {
        "records": [{"at": 0, "op": "save", "name": EVIL, "scope": "repo", "hash": HASH, "session": EVIL}],
        "total": 1,
    },
    "memory.save": {"name": EVIL, "scope": "repo", "updated": False, "warnings": [EVIL]},
    "memory.check": {"ok": False, "findings": [{"kind": "x", "scope": "repo", "file": EVIL, "reason": EVIL}]},
    "memory.forget": {"name": EVIL, "scope": "repo", "receipt": {"versions": 1, "bytes": 2, "left": [EVIL]}},
    "memory.stats": Failure(-32008, EVIL, kind="storage"),
}

SHOWING = [
    ["list"],
    ["search", "x"],
    ["show", "x"],
    ["log"],
    ["save", "--description", "x"],
    ["check"],
    ["forget", "x", "--yes"],
    ["stats"],
]


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with client_home() as env:
        yield env


@pytest.fixture
def daemon(env: dict[str, str]) -> Iterator[FakeDaemon]:
    with FakeDaemon(memd_client.socket_path(env), answers(env, REPLIES)) as daemon:
        yield daemon


def without_colour(text: str) -> str:
    """The text without the colours that memctl itself gives."""
    return re.sub(r"\x1b\[(0|1|2|31|33)m", "", text)


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("argv", SHOWING, ids=" ".join)
@pytest.mark.parametrize("colour", [{}, {"NO_COLOR": "1"}], ids=["colour", "plain"])
def test_no_control_character_of_a_note_reaches_a_terminal(
    env: dict[str, str], argv: list[str], colour: dict[str, str]
) -> None:
    ran = memctl_on_terminal({**env, **colour}, *argv, width=400)
    both = without_colour(ran.out + ran.err) if not colour else ran.out + ran.err
    assert FORBIDDEN.search(both) is None
    assert "red [31m bell  back  del  csi 1m nul " in both  # what is left of it is text


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("argv", SHOWING, ids=" ".join)
def test_a_pipe_gets_the_exact_characters(env: dict[str, str], argv: list[str]) -> None:
    ran = memctl(env, *argv)
    assert EVIL in ran.out + ran.err


@pytest.mark.usefixtures("daemon")
def test_json_keeps_them_as_escapes_on_a_terminal(env: dict[str, str]) -> None:
    ran = memctl_on_terminal(env, "list", "--json")
    assert FORBIDDEN.search(ran.out) is None
    assert json.loads(ran.out) == REPLIES["memory.list"]
    failed = memctl_on_terminal(env, "stats", "--json")
    assert FORBIDDEN.search(failed.err) is None
    assert json.loads(failed.err)["message"] == EVIL


@pytest.mark.usefixtures("daemon")
def test_json_is_one_line_in_a_pipe_and_several_on_a_terminal(env: dict[str, str]) -> None:
    assert memctl(env, "list", "--json").out.count("\n") == 1
    assert memctl_on_terminal(env, "list", "--json").out.count("\n") > 5


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("no end", "no end\n"),
        ("\ttab\n", "\ttab\n"),
        ("", ""),
        ("雪 – ❄\n", "雪 – ❄\n"),
    ],
)
def test_a_shown_text_is_exact_in_a_pipe_and_ends_its_line_on_a_terminal(
    env: dict[str, str], text: str, shown: str
) -> None:
    reply = {"memory.show": {"name": "x", "scope": "repo", "hash": HASH, "markdown": text, "current": True}}
    with FakeDaemon(memd_client.socket_path(env), answers(env, reply)):
        assert memctl(env, "show", "x").raw_out == text.encode()
        assert memctl_on_terminal(env, "show", "x").out == shown


def listed(env: dict[str, str], *, width: int = 80) -> Ran:
    """`memctl list` of two notes on a terminal."""
    rows = [
        note("buildhost-tmp-is-ram", description="Buildhost /tmp is RAM; never scratch there", type="feedback"),
        note("我喜欢-pnpm", scope="global", type=None, unparsed=True, shadowed=True, description="我喜欢 " * 20),
    ]
    with FakeDaemon(memd_client.socket_path(env), answers(env, {"memory.list": {"notes": rows, "total": 2}})):
        return memctl_on_terminal(env, "list", width=width)


def test_a_list_on_a_terminal_is_aligned_cut_and_coloured(env: dict[str, str]) -> None:
    ran = listed(env)
    assert "\x1b[1mbuildhost-tmp-is-ram\x1b[0m" in ran.out
    assert without_colour(ran.out).splitlines() == [
        "buildhost-tmp-is-ram  feedback  repo             Buildhost /tmp is RAM; never s…",
        "我喜欢-pnpm           unparsed  global shadowed  我喜欢 我喜欢 我喜欢 我喜欢 我…",
    ]


def test_a_narrow_terminal_keeps_the_names(env: dict[str, str]) -> None:
    assert without_colour(listed(env, width=30).out).splitlines() == [
        "buildhost-tmp-is-ram  feedbac…",
        "我喜欢-pnpm  unparsed  global…",
    ]


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_no_colour_where_it_is_not_wanted(env: dict[str, str], more: dict[str, str]) -> None:
    assert "\x1b" not in listed({**env, **more}).out


def test_an_empty_no_color_is_none(env: dict[str, str]) -> None:
    assert "\x1b" in listed({**env, "NO_COLOR": ""}).out


def test_columns_goes_before_the_terminals_width(env: dict[str, str]) -> None:
    assert max(map(len, without_colour(listed({**env, "COLUMNS": "50"}).out).splitlines())) <= 50
    assert listed({**env, "COLUMNS": "wide"}).out == listed(env).out


def test_a_terminal_of_no_width_counts_as_80(env: dict[str, str]) -> None:
    assert listed(env, width=0).out == listed(env, width=80).out


@pytest.mark.usefixtures("daemon")
def test_each_stream_is_judged_by_itself(env: dict[str, str]) -> None:
    only_out = memctl_on_terminal(env, "list", terminals=["stdout"])
    only_err = memctl_on_terminal(env, "list", terminals=["stderr"])
    assert FORBIDDEN.search(without_colour(only_out.out)) is None
    assert EVIL in only_err.out
    assert "\x1b[31mmemctl: \x1b[0m" in memctl_on_terminal(env, "stats", terminals=["stderr"]).err
    assert memctl_on_terminal(env, "stats", terminals=["stdout"]).err == f"memctl: {EVIL}\n"


@pytest.mark.usefixtures("daemon")
def test_a_terminal_that_knows_only_ascii_gets_question_marks(env: dict[str, str]) -> None:
    ran = memctl_on_terminal({**env, "PYTHONIOENCODING": "ascii"}, "search", "x", "--scope", "repo")
    assert ran.code == 0
    assert b" ? repo ? red" in without_colour(ran.out).encode()


@pytest.mark.usefixtures("daemon")
def test_a_pipe_gets_utf_8_whatever_the_locale_says(env: dict[str, str]) -> None:
    latin = {**env, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    assert memctl(latin, "search", "x").out == f"{EVIL} · repo — {EVIL}\n"


def test_what_is_said_about_the_data_comes_after_it(env: dict[str, str]) -> None:
    reply = {"memory.list": {"notes": [note()], "total": 7}}
    with FakeDaemon(memd_client.socket_path(env), answers(env, reply)):
        done = subprocess.run(
            command("list"), env=memctl_env(env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
        )
    assert done.stdout == b"a-note\tuser\trepo\ta hook\n1 of 7 notes\n"


def test_a_reader_that_went_away_is_quiet(env: dict[str, str]) -> None:
    notes = [note(f"note-{number}") for number in range(10_000)]
    with FakeDaemon(memd_client.socket_path(env), answers(env, {"memory.list": {"notes": notes, "total": 10_000}})):
        listing = subprocess.Popen(
            command("list"), env=memctl_env(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with listing:
            assert listing.stdout is not None
            assert listing.stderr is not None
            assert listing.stdout.readline() == b"note-0\tuser\trepo\ta hook\n"
            listing.stdout.close()
            assert listing.stderr.read() == b""
    assert listing.returncode == 141


@pytest.mark.usefixtures("daemon")
def test_a_full_disk_behind_the_output_is_told(env: dict[str, str]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        done = subprocess.run(command("list"), env=memctl_env(env), stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 6
    assert done.stderr == b"memctl: cannot write the output: No space left on device\n"


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize(
    ("closed", "code", "err"),
    [(">&-", 6, b"memctl: cannot write the output: it is closed\n"), ("2>&-", 0, b""), ("2>/dev/full", 0, b"")],
)
def test_closed_outputs(env: dict[str, str], closed: str, code: int, err: bytes) -> None:
    shell = ["/bin/sh", "-c", f'"$@" {closed}', "sh", *command("save", "--description", "x")]
    done = subprocess.run(shell, env=memctl_env(env), input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (code, err)


@pytest.mark.usefixtures("daemon")
def test_a_closed_stdin_is_an_empty_text(env: dict[str, str], daemon: FakeDaemon) -> None:
    shell = ["/bin/sh", "-c", '"$@" <&-', "sh", *command("save", "--description", "x")]
    assert subprocess.run(shell, env=memctl_env(env), capture_output=True, check=False).returncode == 0
    assert daemon.requests[0]["params"]["markdown"] == ""


def test_ctrl_c_is_quiet(env: dict[str, str]) -> None:
    asked, over = threading.Event(), threading.Event()

    def answer(request: dict[str, Any]) -> bytes:
        asked.set()
        over.wait(20)
        return result(request, {"hits": [], "total": 0})

    with FakeDaemon(memd_client.socket_path(env), answer):
        waiting = subprocess.Popen(
            command("search", "x"), env=memctl_env(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with waiting:
            assert asked.wait(20)
            os.kill(waiting.pid, signal.SIGINT)
            out, err = waiting.communicate(timeout=20)
        over.set()
    assert (waiting.returncode, out, err) == (130, b"", b"")
