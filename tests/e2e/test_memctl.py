"""memctl against a real daemon: what a stranger does on the first day, and starting and stopping by hand."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.client_home import client_home
from support.memctl_program import memctl, memctl_on_terminal


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with client_home() as env:
        try:
            yield env
        finally:
            memctl(env, "stop")


@pytest.fixture
def repo(env: dict[str, str]) -> Path:
    path = Path(env["MEMD_HOME"]).parent / "repo"
    (path / ".git").mkdir(parents=True)
    return path


def test_a_start_means_it_whatever_the_environment_says(env: dict[str, str]) -> None:
    assert memctl(env, "list").code == 5
    started = memctl(env, "start")
    assert (started.code, started.err) == (0, "")
    pid = json.loads(memctl(env, "status", "--json").out)["pid"]
    assert started.out == f"memd 0.1.0 started · pid {pid}\n"
    assert memctl(env, "start").out == f"memd 0.1.0 runs already · pid {pid}\n"


def test_after_a_stop_the_home_is_free_at_once(env: dict[str, str]) -> None:
    pids = set()
    for _ in range(5):
        assert memctl(env, "start").code == 0
        pids.add(json.loads(memctl(env, "version", "--json").out)["daemon"]["pid"])
        assert memctl(env, "stop").out.startswith("memd 0.1.0 stopped")
        assert memctl(env, "status").code == 5
    assert len(pids) == 5


def test_the_first_day(env: dict[str, str], repo: Path) -> None:
    env = {**env, "MEMD_NO_AUTOSTART": ""}
    hook = "Buildhost /tmp is RAM; never scratch there"
    saved = memctl(env, "save", "--type", "feedback", "--description", hook, stdin=b"Use /var/tmp.\n", cwd=repo)
    assert saved.out == "saved buildhost-tmp-is-ram-never · repo\n"
    name = "buildhost-tmp-is-ram-never"
    assert memctl(env, "search", "scratch", "tmp", cwd=repo).out == f"{name} · repo — {hook}\n"
    assert memctl(env, "list", cwd=repo / ".git").out == f"{name}\tfeedback\trepo\t{hook}\n"
    text = memctl(env, "show", name, cwd=repo).out
    assert text.endswith("\n---\n\nUse /var/tmp.\n")
    record = memctl(env, "log", cwd=repo).out.split("\t")
    assert record[1:5] == ["you", "save", name, "repo"]
    assert memctl(env, "show", name, "--hash", record[5][7:15], cwd=repo).out == text
    assert memctl(env, "-C", str(repo), "forget", name, "--yes").out == (
        f"forgot {name} · repo — 1 version, {len(text.encode())} bytes; no copy left\n"
    )
    assert memctl(env, "list", cwd=repo).out == ""


def test_a_save_over_another_version_is_4(env: dict[str, str], repo: Path) -> None:
    env = {**env, "MEMD_NO_AUTOSTART": ""}
    arguments = ("save", "--type", "user", "--description", "one", "--expect", "null")
    assert memctl(env, *arguments, cwd=repo).code == 0
    ran = memctl(env, *arguments, "--json", cwd=repo)
    assert (ran.code, ran.out) == (4, "")
    assert json.loads(ran.err)["data"]["kind"] == "conflict"


def test_a_hook_names_a_note_to_forget_and_the_answer_decides(env: dict[str, str], repo: Path) -> None:
    env = {**env, "MEMD_NO_AUTOSTART": "", "NO_COLOR": "1"}
    memctl(env, "save", "--name", "n", "--type", "user", "--description", "The hook", cwd=repo)
    asked = memctl_on_terminal(env, "-C", str(repo), "forget", "the hook", typed="n\n")
    assert asked.code == 1
    assert asked.err.startswith("n · repo — The hook\nwith 1 version, for good\nForget it?")
    assert memctl_on_terminal(env, "-C", str(repo), "forget", "the hook", typed="y\n").code == 0
    assert memctl(env, "show", "n", cwd=repo).code == 3
