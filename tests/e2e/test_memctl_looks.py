"""How memctl looks on a terminal: what goes through a pager, charts, and nothing of it in a pipe. SPEC section 14."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import Daemon, running_daemon
from support.memctl_program import memctl, memctl_on_terminal


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running_daemon() as daemon:
        for number in range(30):
            daemon.save(f"note-{number:02}", f"Body {number}.")
        for _ in range(3):
            daemon.call("memory.read", name="note-07")
        daemon.call("memory.read", name="note-08")
        yield daemon


def pager(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """A pager that keeps what it was given and how it was told to behave."""
    script, kept = tmp_path / "pager.py", tmp_path / "kept"
    script.write_text(
        "import os, pathlib, sys\n"
        f"pathlib.Path({str(kept)!r}).write_text(os.environ['LESS'] + '\\n' + sys.stdin.read())\n"
    )
    return {"PAGER": f"'{sys.executable}' -P '{script}'"}, kept


def test_what_a_screen_cannot_hold_goes_through_the_pager(daemon: Daemon, tmp_path: Path) -> None:
    env, kept = pager(tmp_path)
    ran = memctl_on_terminal({**daemon.env, **env}, "-C", str(daemon.repo), "list")
    assert (ran.code, ran.out) == (0, "")
    told, *lines = kept.read_text().splitlines()
    assert (told, len(lines)) == ("FRX", 30)
    assert "\x1b[1mnote-00\x1b[0m" in lines[0]
    kept.unlink()
    few = memctl_on_terminal({**daemon.env, **env}, "-C", str(daemon.repo), "list", "--limit", "5")
    assert len(few.out.splitlines()) == 5
    assert not kept.exists()


@pytest.mark.parametrize("pager_", ["", "cat", "no-such-pager-here", "false", "less '", "exit 3", "   "])
def test_without_a_pager_all_of_it_is_written(daemon: Daemon, pager_: str) -> None:
    ran = memctl_on_terminal({**daemon.env, "PAGER": pager_}, "-C", str(daemon.repo), "list")
    assert len(ran.out.splitlines()) == 30


def test_a_pager_is_a_line_for_the_shell_and_may_stop_early(daemon: Daemon) -> None:
    repo = ("-C", str(daemon.repo))
    ran = memctl_on_terminal({**daemon.env, "PAGER": "tail -n +3 | head -n 4; exit 0"}, *repo, "list")
    assert (ran.code, len(ran.out.splitlines())) == (0, 4)
    quits = memctl_on_terminal({**daemon.env, "PAGER": "true"}, *repo, "list")
    assert (quits.code, quits.out, quits.err) == (0, "", "")


def test_a_search_on_a_terminal_tells_the_words_that_matched() -> None:
    with running_daemon() as daemon:
        tells_the_words(daemon)


def tells_the_words(daemon: Daemon) -> None:
    repo = ("-C", str(daemon.repo))
    for number in range(60):
        daemon.save(f"crane-{number:02}", "The gauge." if number < 30 else "It stalls.")
    env = {**daemon.env, "PAGER": "", "COLUMNS": "200"}
    lines = memctl_on_terminal(env, *repo, "search", "stalled gauges cranes").out.splitlines()
    assert len(lines) == 60
    assert all(
        line.endswith(("\x1b[2m · gauges, cranes\x1b[0m", "\x1b[2m · stalled, cranes\x1b[0m")) for line in lines[:50]
    )
    assert not any("gauges" in line or "stalled" in line for line in lines[50:])
    assert len({line.split("\x1b[0m")[0] for line in lines}) == 60
    piped = memctl(env, "search", "stalled gauges cranes", cwd=daemon.repo).out
    assert "gauges" not in piped
    assert len(piped.splitlines()) == 60


def test_a_pipe_and_whoever_cannot_answer_get_no_pager(daemon: Daemon, tmp_path: Path) -> None:
    env, kept = pager(tmp_path)
    assert len(memctl({**daemon.env, **env}, "list", cwd=daemon.repo).out.splitlines()) == 30
    half = memctl_on_terminal({**daemon.env, **env}, "-C", str(daemon.repo), "list", terminals=("stdout", "stderr"))
    assert len(half.out.splitlines()) == 30
    assert not kept.exists()


def test_stats_draws_what_was_written_and_read(daemon: Daemon) -> None:
    env = {**daemon.env, "NO_COLOR": "1"}
    ran = memctl_on_terminal(env, "-C", str(daemon.repo), "stats", width=100)
    lines = [line.rstrip() for line in ran.out.splitlines()]
    written = lines.index("written, the last 42 days")
    assert re.fullmatch(r"repo +·{41}█ +30 written", lines[written + 1])
    assert re.fullmatch(r"global +·{42} +0 written", lines[written + 2])
    read = lines.index("read most")
    assert re.fullmatch(r"note-07 +█{20} +3", lines[read + 1])
    assert re.fullmatch(r"note-08 +█{6}▋? *1", re.sub(r"▊|▋", "▋", lines[read + 2]))
    piped = memctl(env, "stats", cwd=daemon.repo).out
    assert len(piped.splitlines()) == 3
    assert not set(piped) & set("▁█·")


def test_colour_is_for_terminals_that_want_it(daemon: Daemon) -> None:
    repo = ("-C", str(daemon.repo))
    assert "\x1b[1m" in memctl_on_terminal(daemon.env, *repo, "list", "--limit", "1").out
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in memctl_on_terminal({**daemon.env, **env}, *repo, "list", "--limit", "1").out
    assert "\x1b" not in memctl(daemon.env, "list", cwd=daemon.repo).out


class Reader:
    """Somebody who knows `memctl --help` and what it leads to, and nothing else."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.help = memctl(daemon.env, "--help").out

    def types(self, command: str, *arguments: str, stdin: bytes = b"", **env: str) -> str:
        """What a command prints that the help names, with options that the command's help names."""
        assert re.search(rf"^  {command} ", self.help, re.MULTILINE)
        told = memctl(self.daemon.env, command, "--help").out
        assert all(re.search(rf"{option}\b", told) for option in arguments if option.startswith("--"))
        ran = memctl({**self.daemon.env, **env}, command, *arguments, stdin=stdin, cwd=self.daemon.repo)
        assert ran.code == 0, ran.err
        return ran.out


def test_the_help_alone_gets_a_note_saved_found_edited_restored_and_forgotten(daemon: Daemon, tmp_path: Path) -> None:
    reader = Reader(daemon)
    assert "memctl COMMAND --help" in reader.help
    line = "Deploys go out on Tuesdays"
    reader.types(
        "save", "--type", "project", "--name", "deploys", "--description", line, stdin=b"Never on Fridays.\n"
    )
    assert reader.types("search", "deploys", "Tuesdays").startswith("deploys · repo")
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import pathlib, sys\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "file.write_text(file.read_text().replace('Fridays', 'holidays'))\n"
    )
    reader.types("edit", "deploys", EDITOR=f"'{sys.executable}' -P '{editor}'")
    assert "Never on holidays." in reader.types("show", "deploys")
    first = reader.types("log", "deploys").splitlines()[-1].split()[-1]
    reader.types("restore", "deploys", first)
    assert "Never on Fridays." in reader.types("show", "deploys")
    assert reader.types("forget", "deploys", "--yes").startswith("forgot deploys · repo — 2 versions")
