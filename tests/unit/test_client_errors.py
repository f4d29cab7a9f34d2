"""The client's exceptions. Law: the table of SPEC 12, and the daemon's own taxonomy, class by class."""

import pickle
from pathlib import Path

import pytest

import memd_client
from memd import errors as daemon_errors
from memd_client import errors

README = Path(memd_client.__file__).parents[1] / "README.md"

KINDS = [
    (-32001, "refused", memd_client.Refused),
    (-32002, "not_found", memd_client.NotFound),
    (-32003, "not_root", memd_client.NotRoot),
    (-32004, "save_cap", memd_client.SaveCap),
    (-32005, "unreadable", memd_client.Unreadable),
    (-32006, "conflict", memd_client.Conflict),
    (-32007, "busy", memd_client.Busy),
    (-32008, "storage", memd_client.Storage),
    (-32009, "suspended", memd_client.Suspended),
    (-32010, "too_large", memd_client.TooLarge),
    (-32011, "protocol", memd_client.NoProtocol),
    (-32012, "read_only", memd_client.ReadOnly),
]

STANDARD = [
    (-32700, memd_client.ParseError),
    (-32600, memd_client.InvalidRequest),
    (-32601, memd_client.MethodNotFound),
    (-32602, memd_client.InvalidParams),
    (-32603, memd_client.InternalError),
]


@pytest.mark.parametrize(("code", "kind", "expected"), KINDS)
def test_a_kind_of_memds_own(code: int, kind: str, expected: type[errors.MemdError]) -> None:
    data = {"kind": kind, "more": 1}
    error = errors.from_reply({"code": code, "message": "memory.save: no", "data": data})
    assert type(error) is expected
    assert (error.code, error.kind, error.message, error.data) == (
        code,
        kind,
        "memory.save: no",
        data,
    )
    assert str(error) == "memory.save: no"


@pytest.mark.parametrize(("code", "expected"), STANDARD)
def test_a_standard_error(code: int, expected: type[errors.MemdError]) -> None:
    error = errors.from_reply({"code": code, "message": "no"})
    assert type(error) is expected
    assert (error.code, error.message, error.data) == (code, "no", {})


def test_the_daemon_raises_no_kind_the_client_does_not_know() -> None:
    theirs = {kind.code: kind.kind for kind in daemon_errors.MemdError.__subclasses__()}
    ours = {code: kind.kind for code, kind in errors.BY_CODE.items() if code > -32100}
    assert {code: kind for code, kind, _ in KINDS} == theirs
    assert theirs.items() <= ours.items()


def test_a_code_of_a_later_memd_keeps_what_it_says() -> None:
    error = errors.from_reply({"code": -32099, "message": "later", "data": {"kind": "new"}})
    assert type(error) is errors.MemdError
    assert (error.code, error.kind, error.message) == (-32099, "new", "later")
    assert errors.from_reply({"code": -32099, "message": "later", "data": 5}).kind == "unknown"


@pytest.mark.parametrize("broken", ["text", 5, [], {}, {"code": -32001}, {"code": "-32001", "message": "no"}])
def test_an_error_that_is_none(broken: object) -> None:
    assert type(errors.from_reply(broken)) is errors.BadReply


@pytest.mark.parametrize(
    "error",
    [
        errors.Conflict("moved", {"kind": "conflict", "hash": None}),
        errors.MemdError("later", code=-32099, kind="new"),
        errors.SocketPathTooLong("/s", 200, 107),
    ],
)
def test_errors_cross_processes(error: errors.MemdError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)


def test_nobody_answers_is_one_class() -> None:
    for kind in (errors.ConnectionLost, errors.NoAnswer, errors.BadReply, errors.OtherHome, errors.OtherOwner):
        assert issubclass(kind, errors.Unavailable)


def test_the_readme_has_every_error() -> None:
    rows = README.read_text(encoding="utf-8").splitlines()
    found = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in found if issubclass(kind, errors.MemdError)]
    kinds.remove(errors.MemdError)
    assert len(kinds) == 25
    for kind in kinds:
        row = f"| `{kind.__name__}` | {kind.code} | `{kind.kind}` |"
        assert any(line.startswith(row) for line in rows), row
