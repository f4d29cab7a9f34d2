"""The curator and the doctor in a real terminal, as a person sees them. SPEC section 14."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import Daemon, running_daemon
from support.memctl_program import command, memctl_env
from support.waiting import until


class Screen:
    """A terminal of 90 by 20 in which a program runs."""

    def __init__(self, daemon: Daemon, directory: Path) -> None:
        self._tmux = ["tmux", "-f", "/dev/null", "-S", str(directory / "tmux")]
        self._env = {**memctl_env(daemon.env), "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        self._directory = daemon.repo
        self._do("new-session", "-d", "-x", "90", "-y", "20", "sh")

    def runs(self, *arguments: str) -> None:
        """Type a memctl command; how it ends is shown after it."""
        line = shlex.join([str(word) for word in command(*arguments)])
        self.types(f"clear; {line}; echo ended with $?", "Enter")

    def types(self, *keys: str) -> None:
        """Press keys, named as tmux names them."""
        self._do("send-keys", *keys)

    def resizes(self, width: int, height: int) -> None:
        """Another size of the window."""
        self._do("resize-window", "-x", str(width), "-y", str(height))

    @property
    def lines(self) -> list[str]:
        """What is seen, line by line."""
        return [line.rstrip() for line in self._do("capture-pane", "-p").splitlines()]

    def shows(self, *texts: str) -> bool:
        """Whether all of them are seen."""
        seen = "\n".join(self.lines)
        return all(text in seen for text in texts)

    def close(self) -> None:
        """End it, whatever runs in it."""
        self._do("kill-server")

    def _do(self, *words: str) -> str:
        ran = subprocess.run(
            [*self._tmux, *words], env=self._env, cwd=self._directory, capture_output=True, text=True, check=True
        )
        return ran.stdout


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with running_daemon() as daemon:
        daemon.save("crane", "It stalls at low tide.", description="The crane stalls at low tide")
        daemon.save("lamp", "It is lit at dusk.", description="The lamp is lit at dusk")
        daemon.save("lamp", "Elsewhere it is not.", scope="global", description="No lamp anywhere else")
        yield daemon


@pytest.fixture
def screen(daemon: Daemon, tmp_path: Path) -> Iterator[Screen]:
    screen = Screen(daemon, tmp_path)
    yield screen
    screen.close()


def test_the_curator_on_a_screen(daemon: Daemon, screen: Screen) -> None:
    screen.runs("browse")
    until(lambda: screen.shows("It stalls at low tide.", "history", "delete", "quit"))
    left = [line[:45].rstrip() for line in screen.lines[:5]]
    assert left == [
        "repo · 2",
        "  crane  The crane stalls at low tide",
        "  lamp  The lamp is lit at dusk",
        "global · 1",
        "  lamp shadowed by repo  No lamp anywhere el…",
    ]
    screen.types("Down", "Down")
    until(lambda: screen.shows("Elsewhere it is not."))
    screen.types("s")
    until(lambda: screen.shows("scope: repo") and not screen.shows("global · 1"))
    screen.types("Escape")
    until(lambda: screen.shows("global · 1"))
    screen.types("/")
    until(lambda: screen.shows("search names, hooks and bodies") and not screen.shows("delete"))
    screen.types(*"dusk", "Enter")
    until(lambda: screen.shows("repo · 1", "It is lit at dusk.") and not screen.shows("crane"))
    screen.resizes(70, 16)
    until(lambda: screen.shows("repo · 1", "delete"))
    screen.types("d")
    until(lambda: screen.shows("Forget this note and every version of it?"))
    screen.types("y")
    until(lambda: screen.shows("forgot lamp · repo — 1 version; no copy left"))
    daemon.kill()
    daemon.start()
    daemon.save("weir", "New.")
    screen.types("Escape")
    until(lambda: screen.shows("weir"))
    screen.types("q")
    until(lambda: screen.shows("ended with 0"))
    screen.runs("list")
    until(lambda: screen.shows("crane", "weir", "ended with 0"))


def test_a_curator_that_is_killed_leaves_a_terminal_that_can_be_used(screen: Screen) -> None:
    screen.runs("browse")
    until(lambda: screen.shows("It stalls at low tide."))
    pids = subprocess.run(["pgrep", "-f", "memd.memctl browse"], capture_output=True, text=True, check=True).stdout
    pid = next(int(pid) for pid in pids.split() if _is_under(int(pid), screen))
    os.kill(pid, 15)
    until(lambda: screen.shows("ended with"))
    screen.types("echo still $((40 + 2))", "Enter")
    until(lambda: screen.shows("still 42"))


def _is_under(pid: int, screen: Screen) -> bool:
    """Whether a process is of this screen's daemon."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return screen._env["MEMD_HOME"].encode() in environ


def test_the_doctor_on_a_screen(daemon: Daemon, screen: Screen) -> None:
    screen.runs("doctor")
    until(lambda: screen.shows("claude-memory: 0 found", "all is well", "ended with 0"))
    (daemon.store / "open.md").write_text("---\nname: open\nno end\n")
    until(lambda: "open" in daemon.names())
    screen.runs("doctor")
    until(lambda: screen.shows("1. unparsed: repo/open.md:1:", "`memctl edit open`", "ended with 1"))
