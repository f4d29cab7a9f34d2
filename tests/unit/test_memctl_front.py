"""The command line: where the word may stand, what is refused before anything is sent, and the help."""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import memd_client
from memd.memctl import front
from memd.memctl.front import COMMANDS, split
from support.client_home import client_home
from support.fake_daemon import FakeDaemon
from support.memctl_program import ROOT, answers, memctl, memctl_env

NOTHING = {"notes": [], "total": 0}
NO_HITS = {"hits": [], "total": 0}


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with client_home() as env:
        yield env


@pytest.fixture
def daemon(env: dict[str, str]) -> Iterator[FakeDaemon]:
    table = {"memory.list": NOTHING, "memory.search": NO_HITS, "memory.check": {"ok": True, "findings": []}}
    with FakeDaemon(memd_client.socket_path(env), answers(env, table)) as daemon:
        yield daemon


@pytest.mark.parametrize(
    ("argv", "word", "rest"),
    [
        ([], None, []),
        (["list"], "list", []),
        (["--json", "list", "--limit", "3"], "list", ["--json", "--limit", "3"]),
        (["-C", "list", "show", "x"], "show", ["-C", "list", "x"]),
        (["-Clist", "show"], "show", ["-Clist"]),
        (["--scope", "repo", "check"], "check", ["--scope", "repo"]),
        (["--scope=repo", "check"], "check", ["--scope=repo"]),
        (["--no-autostart", "-h", "stop"], "stop", ["--no-autostart", "-h"]),
        (["--type", "user"], None, ["--type", "user"]),
        (["--", "show"], None, ["--", "show"]),
        (["-C"], None, ["-C"]),
    ],
)
def test_the_word_is_found_among_the_options(argv: list[str], word: str | None, rest: list[str]) -> None:
    assert split(argv) == (word, rest)


@pytest.mark.parametrize(
    "argv",
    [
        ["--scope", "global", "--json", "search", "disk", "full"],
        ["search", "--scope", "global", "disk", "--json", "full"],
        ["search", "disk", "full", "--json", "--scope=global"],
        ["--json", "search", "--scope", "global", "--", "disk", "full"],
    ],
    ids=" ".join,
)
def test_options_go_before_between_and_after(env: dict[str, str], daemon: FakeDaemon, argv: list[str]) -> None:
    ran = memctl(env, *argv)
    assert (ran.code, json.loads(ran.out)) == (0, NO_HITS)
    [request] = daemon.requests
    assert request["params"]["query"] == "disk full"
    assert request["params"]["scope"] == "global"


def test_words_after_two_dashes_are_words(env: dict[str, str], daemon: FakeDaemon) -> None:
    assert memctl(env, "search", "--", "--limit", "-x").code == 0
    assert daemon.requests[0]["params"]["query"] == "--limit -x"


@pytest.mark.parametrize("argv", [[], ["--json"], ["--type", "user"], ["list"]], ids=" ".join)
def test_without_a_word_it_lists(env: dict[str, str], daemon: FakeDaemon, argv: list[str]) -> None:
    assert memctl(env, *argv).code == 0
    assert daemon.methods == ["memory.list"]


def test_the_place_is_the_real_directory(env: dict[str, str], daemon: FakeDaemon, tmp_path: Path) -> None:
    (tmp_path / "ünter").mkdir()
    (tmp_path / "link").symlink_to("ünter")
    memctl(env, "list", cwd=tmp_path)
    memctl(env, "list", "-C", "link", cwd=tmp_path)
    memctl(env, "-C", str(tmp_path / "link"), "check", cwd=Path("/"))
    places = [request["params"]["cwd"] for request in daemon.requests]
    real = str(tmp_path.resolve())
    assert places == [real, f"{real}/ünter", f"{real}/ünter"]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["serch", "x"], "did you mean search?"),
        (["xyzzy"], "there is no command xyzzy"),
        (["help", "xyzzy"], "there is no command xyzzy"),
        (["search"], "search needs WORDS"),
        (["show"], "show needs NAME"),
        (["show", "a", "b"], "show takes no b"),
        (["list", "x"], "list takes no x"),
        (["list", "--limit", "0"], "0 is not a number from 1 on"),
        (["list", "--limit", "many"], "many is not a number from 1 on"),
        (["list", "--limit"], "expected one argument"),
        (["list", "--lim", "3"], "there is no option --lim"),
        (["list", "--type", "fact"], "invalid choice: 'fact'"),
        (["list", "--scope", "all"], "invalid choice: 'all'"),
        (["search", "-x"], "there is no option -x; words that begin with a dash go after --"),
        (["-C", "/nowhere/at/all", "list"], "/nowhere/at/all: No such file or directory"),
        (["-C", "/dev/null", "list"], "/dev/null: not a directory"),
        (["save", "--field", "x"], "x is not KEY=VALUE"),
        (["save", "--expect", "12345678"], "only the beginning of a hash"),
        (["save", "--expect", "newest"], "newest is not a hash"),
        (["save", "no-such-file.md"], "no-such-file.md: No such file or directory"),
        (["save", "/"], "/: Is a directory"),
        (["show", "x", "--hash", "xyz"], "xyz is not a hash"),
        (["log", "--since", "lately"], "lately is no time"),
        (["log", "--since", "9" * 400], "is no time"),
        (["reconcile", "--accept", "--scope", "repo"], "--accept is for both stores"),
        (["forget", "x"], "--yes answers"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_wrong_usage_is_2_and_nothing_is_asked(
    env: dict[str, str], daemon: FakeDaemon, argv: list[str], says: str
) -> None:
    ran = memctl(env, *argv)
    assert (ran.code, ran.out, daemon.requests) == (2, "", [])
    first, second = ran.err.splitlines()
    assert first.startswith("memctl: ")
    assert says in first
    assert second.startswith("try: memctl ")


def test_a_directory_that_is_gone_is_wrong_usage(env: dict[str, str], daemon: FakeDaemon, tmp_path: Path) -> None:
    script = f"import os, sys; os.rmdir({str(tmp_path / 'gone')!r}); from memd.memctl import main; sys.exit(main())"
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path / "gone",
        env=memctl_env(env),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"memctl: the current directory: No such file")
    assert daemon.requests == []


def test_an_argument_that_is_not_utf_8_is_wrong_usage(env: dict[str, str], daemon: FakeDaemon) -> None:
    ran = memctl(env, "search", b"caf\xe9")
    assert (ran.code, ran.out, daemon.requests) == (2, "", [])
    assert "not Unicode" in ran.err


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["help"], ["--json", "--help"]], ids=" ".join)
def test_help_needs_no_daemon_and_names_every_command(env: dict[str, str], argv: list[str]) -> None:
    ran = memctl(env, *argv)
    assert (ran.code, ran.err) == (0, "")
    for command, summary in COMMANDS.items():
        assert f"  {command} " in ran.out
        assert summary in ran.out
    examples = ran.out.partition("examples:")[2]
    assert all(f"memctl {word} " in examples for word in ("save", "search", "show", "forget"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_of_its_own(env: dict[str, str], command: str) -> None:
    ran = memctl(env, command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"usage: memctl {command}")
    assert "--no-autostart" in ran.out
    assert memctl(env, "help", command).out == ran.out


def test_the_manual_has_every_command_and_option() -> None:
    manual = (ROOT / "memd/memctl/memctl.1").read_text().replace("\\-", "-")
    for command in COMMANDS:
        assert f'\n.SS "{command}' in manual
        module = import_module(front.module_name(command))
        parser = front.Parser(add_help=False)
        module.options(parser)
        for option in parser.format_help().split():
            if option.startswith("--"):
                assert option.rstrip(",") in manual
    for code in range(7):
        assert f"\n.B {code}\n" in manual


HEAVY = {
    "anyio",
    "asyncio",
    "dataclasses",
    "difflib",
    "getpass",
    "hashlib",
    "importlib.metadata",
    "importlib.util",
    "inspect",
    "logging",
    "msgspec",
    "multiprocessing",
    "numpy",
    "pathlib",
    "portalocker",
    "random",
    "shutil",
    "subprocess",
    "tempfile",
    "textwrap",
    "typing",
    "urllib",
    "watchfiles",
    "jsonrpcserver",
    "memd.protocol",
    "memd.paths",
    "memd.errors",
    "datetime",
    "unicodedata",
}


def test_a_search_imports_nothing_heavy(env: dict[str, str], daemon: FakeDaemon) -> None:
    script = "import sys; from memd.memctl import main; main(); sys.stderr.write(' '.join(sys.modules))"
    done = _python(env, script, "search", "disk")
    started = set(_python(env, "import sys; sys.stderr.write(' '.join(sys.modules))").stderr.split())
    assert set(done.stderr.split()) & HEAVY - started == set()
    assert daemon.methods == ["memory.search"]


def _python(env: dict[str, str], script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=memctl_env(env), capture_output=True, text=True, check=True)
