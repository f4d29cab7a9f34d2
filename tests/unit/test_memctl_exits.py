"""Every failure has its exit code, is said on stderr, and leaves stdout empty (SPEC 14)."""

import json
import os
from collections.abc import Iterator

import pytest

import memd_client
from memd.memctl import exits
from memd_client import errors
from memd_client.errors import BY_CODE
from support.client_home import client_home
from support.fake_daemon import FakeDaemon
from support.memctl_program import Failure, answers, memctl

CODES = {
    "refused": 4,
    "not_found": 3,
    "not_root": 4,
    "save_cap": 4,
    "unreadable": 6,
    "conflict": 4,
    "busy": 6,
    "storage": 6,
    "suspended": 4,
    "too_large": 4,
    "protocol": 5,
    "read_only": 4,
    "parse_error": 2,
    "invalid_request": 2,
    "method_not_found": 5,
    "invalid_params": 2,
    "internal_error": 6,
}


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with client_home() as env:
        yield env


def test_the_table_has_every_error_of_the_wire() -> None:
    assert {error.kind for error in BY_CODE.values()} == set(CODES)


@pytest.mark.parametrize("error", BY_CODE.values(), ids=lambda error: error.kind)
def test_each_error_of_the_wire_has_its_code(error: type[errors.MemdError]) -> None:
    assert exits.code_of(error("words")) == CODES[error.kind]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Unavailable("x"), 5),
        (errors.ConnectionLost("x"), 5),
        (errors.NoAnswer("x"), 5),
        (errors.BadReply("x"), 5),
        (errors.OtherHome("x"), 5),
        (errors.OtherOwner("x"), 5),
        (errors.BadPlace("x"), 5),
        (errors.SocketPathTooLong("/x", 200, 107), 5),
        (errors.MemdError("x", code=-32050, kind="a later kind"), 6),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_what_never_was_answered_is_no_daemon(error: errors.MemdError, code: int) -> None:
    assert exits.code_of(error) == code


@pytest.mark.parametrize("error", BY_CODE.values(), ids=lambda error: error.kind)
def test_a_run_ends_with_the_code_and_the_daemons_words(env: dict[str, str], error: type[errors.MemdError]) -> None:
    table = {"memory.stats": Failure(error.code, "memory.stats: the very words", kind=error.kind)}
    with FakeDaemon(memd_client.socket_path(env), answers(env, table)):
        ran = memctl(env, "stats")
    assert (ran.code, ran.out) == (CODES[error.kind], "")
    assert ran.err == "memctl: memory.stats: the very words\n"


def test_as_json_an_error_is_the_daemons_error(env: dict[str, str]) -> None:
    table = {"memory.save": Failure(-32006, "memory.save: not the head", kind="conflict", hash="sha256:0f")}
    with FakeDaemon(memd_client.socket_path(env), answers(env, table)):
        ran = memctl(env, "save", "--json", "--expect", "null", stdin=b"text")
    assert (ran.code, ran.out) == (4, "")
    assert json.loads(ran.err) == {
        "code": -32006,
        "message": "memory.save: not the head",
        "data": {"kind": "conflict", "hash": "sha256:0f"},
    }


def test_without_a_daemon_it_says_where_it_looked(env: dict[str, str]) -> None:
    ran = memctl(env, "list", "--no-autostart")
    assert (ran.code, ran.out) == (5, "")
    assert f"{env['MEMD_HOME']}/run/memd.sock" in ran.err


def test_a_socket_path_that_is_too_long_is_named(env: dict[str, str]) -> None:
    path = f"{env['MEMD_HOME']}/{'x' * 120}.sock"
    ran = memctl({**env, "MEMD_SOCKET": path}, "list")
    assert ran.code == 5
    assert path in ran.err
    assert str(len(os.fsencode(path))) in ran.err
    assert "MEMD_SOCKET" in ran.err


def test_a_daemon_that_vanishes_in_the_middle_is_no_daemon(env: dict[str, str]) -> None:
    with FakeDaemon(memd_client.socket_path(env), lambda _: None):
        ran = memctl(env, "reconcile")
    assert (ran.code, ran.out) == (5, "")
    assert ran.err.startswith("memctl: ")
