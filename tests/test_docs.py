"""What a user can meet is written where a user looks. Law: the code says what there is, the pages name it all."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from memd import config, errors, protocol, rpc
from memd.memctl import front
from memd.verbs import VERBS, Call

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MAN = (ROOT / "memd" / "memctl" / "memctl.1").read_text()

ROOMS = {path.stem for path in (ROOT / "memd").glob("[a-z]*") if path.is_dir() or path.suffix == ".py"}


def rows(first_cell: str) -> str:
    """The README's table rows whose first cells match."""
    return "\n".join(line for line in README.splitlines() if re.match(first_cell, line))


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_every_verb_is_in_the_readme_with_its_parameters_and_reply(
    verb: protocol.Verb[Call, Any, Any],
) -> None:
    row = rows(rf"\| .*`{re.escape(verb.name)}`")
    assert row
    taken = set(verb.params.__struct_encode_fields__) - ({"session", "cwd"} if verb.place else set())
    assert {name for name in taken if name not in row} == set()
    given = set(verb.reply.__struct_encode_fields__) - {"redacted", "repo", "global", "saved", "saves_left"}
    assert {name for name in given if name not in row} == set()


@pytest.mark.parametrize("error", errors.MemdError.__subclasses__(), ids=lambda error: error.kind)
def test_every_error_is_in_the_readme(error: type[errors.MemdError]) -> None:
    assert re.search(rf"^\| {error.code} \| `{error.kind}` \| `{error.__name__}` \|", README, re.MULTILINE)


@pytest.mark.parametrize(
    "code",
    [rpc.PARSE_ERROR, rpc.INVALID_REQUEST, rpc.METHOD_NOT_FOUND, rpc.INVALID_PARAMS, rpc.INTERNAL_ERROR],
)
def test_every_standard_error_is_in_the_readme(code: int) -> None:
    assert f"{code} `" in README


@pytest.mark.parametrize(
    "field", [name for name in config.Config.__struct_fields__ if name not in ("findings", "sound")]
)
def test_every_config_key_is_in_the_readme_with_its_default(field: str) -> None:
    table, _, key = field.partition("_")
    dotted = f"{table}.{key}" if table in ("claude", "kimi", "search", "history") else field
    assert rows(rf"\| `{re.escape(dotted)}` \| ")


@pytest.mark.parametrize("kind", get_args(protocol.FindingKind))
def test_every_finding_is_in_the_readme(kind: str) -> None:
    assert f"`{kind}`" in README


@pytest.mark.parametrize("command", front.COMMANDS)
def test_every_command_is_in_the_readme_and_the_man_page(command: str) -> None:
    assert re.search(rf"^\| .*`{command}\b", README, re.MULTILINE)
    in_man = re.escape(command.replace("-", r"\-"))
    assert re.search(rf"^\.SS .*\b{in_man}\b", MAN, re.MULTILINE)


@pytest.mark.parametrize(
    "variable",
    [
        "MEMD_HOME",
        "MEMD_CONFIG",
        "MEMD_SOCKET",
        "MEMD_NO_AUTOSTART",
        "MEMD_SESSION",
        "MEMD_DEPTH",
        "XDG_DATA_HOME",
    ],
)
def test_every_variable_is_in_the_readme(variable: str) -> None:
    assert variable in README.partition("## Where things are")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    "room", sorted(path.stem for path in (ROOT / "memd").iterdir() if path.suffix == ".py" or path.is_dir())
)
def test_every_room_is_in_the_tour(room: str) -> None:
    tour = README.partition("## Tour of the code")[2]
    assert room.startswith("__") or f"`{room}`" in tour or f"memd/{room}" in tour


PROMISES = README.partition("## What memd promises")[2].partition("\n## ")[0]


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(tests/[^`]+)`", PROMISES))))
def test_every_test_that_proves_a_promise_is_there(named: str) -> None:
    file, _, test = named.partition("::")
    text = (ROOT / file).read_text()
    assert not test or f"\ndef {test}(" in text


def test_every_promise_names_a_test() -> None:
    promises = [line for line in PROMISES.splitlines() if line.startswith("| ")][1:]
    assert len(promises) > 10
    assert [line for line in promises if "`tests/" not in line.rpartition(" | ")[2]] == []
