"""Another program's notes by hand: what is asked, what is shown first, what is said (SPEC 10 and 14)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memd_client
from support.client_home import client_home
from support.fake_daemon import FakeDaemon
from support.memctl_program import Ran, answers, memctl, memctl_on_terminal

HERE = str(Path.cwd().resolve())
LINE = (
    "claude · 4 notes in ~/.claude/projects/…/memory · 2 imported · 1 updated · 1 stale · 1 conflicts · 1 ambiguous"
)
CAME: dict[str, Any] = {
    "imported": ["three", "two"],
    "updated": ["one"],
    "skipped": [{"file": "link.md", "reason": "a symlink is never followed"}],
    "found": 4,
    "stale": ["old"],
    "conflicts": ["both"],
    "ambiguous": ["-a-b"],
    "unparsed": ["odd"],
    "lines": [LINE],
}
NOTHING: dict[str, Any] = {key: 0 if key == "found" else [] for key in CAME}
TOLD = "conflict\tboth\nambiguous\t-a-b\nskipped\tlink.md: a symlink is never followed\nstale\told\nunparsed\todd\n"
PLAN = "2 to import · 1 to update · 4 there"


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with client_home() as env:
        yield {**env, "NO_COLOR": "1"}


def asked(daemon: FakeDaemon) -> list[tuple[str, dict[str, Any]]]:
    """The methods and parameters that were asked for, without the place."""
    return [
        (request["method"], {name: value for name, value in request["params"].items() if name != "cwd"})
        for request in daemon.requests
    ]


def in_pipes(env: dict[str, str], reply: dict[str, Any], *argv: str) -> tuple[Ran, list[Any]]:
    """A run in pipes, and what it asked for."""
    table = {"memory.import_claude": reply, "memory.import_kimi": reply}
    with FakeDaemon(memd_client.socket_path(env), answers(env, table)) as daemon:
        ran = memctl(env, *argv)
    return ran, asked(daemon)


def on_terminal(env: dict[str, str], reply: dict[str, Any], *argv: str, typed: str) -> tuple[Ran, list[Any]]:
    """A run on a terminal where this is typed, and what it asked for."""
    table = {"memory.import_claude": reply, "memory.import_kimi": reply}
    with FakeDaemon(memd_client.socket_path(env), answers(env, table)) as daemon:
        ran = memctl_on_terminal(env, *argv, typed=typed)
    return ran, asked(daemon)


@pytest.mark.parametrize("program", ["claude", "kimi"])
def test_without_a_terminal_nobody_is_asked(env: dict[str, str], program: str) -> None:
    ran, requests = in_pipes(env, CAME, f"import-{program}")
    assert requests == [(f"memory.import_{program}", {})]
    assert (ran.code, ran.out, ran.err) == (0, f"{LINE}\n{TOLD}", "")


@pytest.mark.parametrize("program", ["claude", "kimi"])
def test_a_dry_run_only_shows(env: dict[str, str], program: str) -> None:
    ran, requests = in_pipes(env, CAME, f"import-{program}", "--dry-run", "--scope", "repo")
    assert requests == [(f"memory.import_{program}", {"dry_run": True, "scope": "repo"})]
    assert ran.out == f"update\tone\n{TOLD}import\tthree\nimport\ttwo\n"
    assert (ran.code, ran.err) == (0, f"{PLAN}; nothing was done\n")


def test_a_directory_can_be_named(env: dict[str, str], tmp_path: Path) -> None:
    _, requests = in_pipes(env, CAME, "-C", str(tmp_path.parent), "import-claude", "--dir", tmp_path.name)
    assert requests == [("memory.import_claude", {"dir": str(tmp_path.resolve())})]
    wrong = in_pipes(env, CAME, "import-claude", "--dir", HERE, "--scope", "global")
    assert (wrong[0].code, wrong[1]) == (2, [])
    assert in_pipes(env, CAME, "import-kimi", "--dir", HERE)[0].code == 2


def test_where_there_is_nothing_it_says_so(env: dict[str, str]) -> None:
    ran, _ = in_pipes(env, NOTHING, "import-claude")
    assert (ran.code, ran.out, ran.err) == (0, "", "there are no such notes for this directory\n")


def test_json_is_the_reply(env: dict[str, str]) -> None:
    ran, _ = in_pipes(env, CAME, "import-claude", "--json")
    assert json.loads(ran.out) == CAME


@pytest.mark.parametrize(("typed", "code", "times"), [("y\n", 0, 2), ("n\n", 1, 1), ("\n", 1, 1)])
def test_on_a_terminal_it_is_shown_first(env: dict[str, str], typed: str, code: int, times: int) -> None:
    ran, requests = on_terminal(env, CAME, "import-claude", typed=typed)
    assert ran.code == code
    assert requests == [("memory.import_claude", {"dry_run": True}), ("memory.import_claude", {})][:times]
    assert PLAN in ran.err
    assert "Import them? [y/N]" in ran.err
    assert ("nothing was imported" in ran.err) == (code == 1)


@pytest.mark.parametrize(("reply", "argv"), [(NOTHING, ()), (CAME, ("--yes",))])
def test_nobody_is_asked_for_nothing_or_who_said_yes(
    env: dict[str, str], reply: dict[str, Any], argv: tuple[str, ...]
) -> None:
    ran, requests = on_terminal(env, reply, "import-kimi", *argv, typed="")
    assert ran.code == 0
    assert requests[-1] == ("memory.import_kimi", {})
    assert "[y/N]" not in ran.err
