"""Real programs write a note's file: each save is one edit by hand, no forget, no lost version (SPEC section 5)."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.daemon import Daemon, running_daemon
from support.waiting import until
from support.watched import EDITED, hears, journal, texts

LINE = "By hand in a terminal."


def run(*command: str, cwd: Path | None = None) -> None:
    """A program; the test fails with what it says when it does."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | {"TERM": "xterm"}
    done = subprocess.run(command, cwd=cwd, env=env, check=False, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


class Terminal:
    """A program in a terminal of its own, and a person at its keyboard."""

    def __init__(self, socket: Path, command: list[str]) -> None:
        self.socket = socket
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "250", "-y", "30", *command)

    def press(self, *keys: str) -> None:
        """Press keys by their names, one after another."""
        self._tmux("send-keys", *keys)

    def write(self, text: str) -> None:
        """Type a text, and see it stand there."""
        self._tmux("send-keys", "-l", text)
        self.sees(text)

    def sees(self, text: str) -> None:
        """Wait until the screen shows a text."""
        until(lambda: text in self.screen())

    def screen(self) -> str:
        """What the screen shows; nothing once the program has ended."""
        return self._tmux("capture-pane", "-p", check=False)

    def has_ended(self) -> bool:
        """Whether the program has ended."""
        return "no server running" in self._tmux("list-sessions", check=False)

    def _tmux(self, *words: str, check: bool = True) -> str:
        command = ["tmux", "-S", str(self.socket), *words]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=50)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@contextmanager
def terminal(daemon: Daemon, *command: str) -> Iterator[Terminal]:
    """A program in a terminal; it has to end by itself."""
    shown = Terminal(daemon.root / "tmux", ["env", f"HOME={daemon.user}", *command])
    try:
        yield shown
        until(shown.has_ended)
    finally:
        subprocess.run(["tmux", "-S", str(shown.socket), "kill-server"], check=False, capture_output=True)


@pytest.fixture(scope="module")
def house() -> Iterator[Daemon]:
    """One daemon for every editor; each has a note of its own."""
    with running_daemon() as running:
        hears(running, "first")
        yield running


def is_one_edit(daemon: Daemon, name: str, edit: Callable[[Path], None]) -> None:
    """What an editor does to a note adds one line, and is journaled as one edit that holds both texts."""
    daemon.save(name, "As it was.")
    path = daemon.store / f"{name}.md"
    before = path.read_bytes()
    edit(path)
    assert path.read_bytes() != before
    until(lambda: journal(daemon.store, name) == EDITED)
    daemon.call("memory.reconcile")
    assert journal(daemon.store, name) == EDITED
    assert texts(daemon.store, name) == [before, path.read_bytes()]
    assert daemon.call("memory.verify")["ok"]


@pytest.mark.parametrize("backupcopy", ["no", "yes", "auto"])
def test_vim_in_a_terminal(house: Daemon, backupcopy: str) -> None:
    def edit(path: Path) -> None:
        setting = f"set backupcopy={backupcopy} writebackup"
        with terminal(house, "vim", "-u", "NONE", "-c", setting, str(path)) as shown:
            shown.sees("As it was.")
            shown.press("G", "o")
            shown.write(LINE)
            shown.press("Escape")
            shown.press(":wq", "Enter")

    is_one_edit(house, f"vim-{backupcopy}", edit)


def test_vim_with_a_backup_that_stays(house: Daemon) -> None:
    def edit(path: Path) -> None:
        run(
            "vim",
            "-u",
            "NONE",
            "-es",
            "-c",
            "set backup backupcopy=no",
            "-c",
            f"$put ='{LINE}'",
            "-c",
            "wq",
            str(path),
        )

    is_one_edit(house, "vim-backup", edit)


@pytest.mark.parametrize("options", [[], ["--backup"]])
def test_nano_in_a_terminal(house: Daemon, options: list[str]) -> None:
    def edit(path: Path) -> None:
        with terminal(house, "nano", "--ignorercfiles", *options, str(path)) as shown:
            shown.sees("As it was.")
            shown.write(LINE)
            shown.press("C-o")
            shown.sees("File Name to Write")
            shown.press("Enter")
            shown.sees("Wrote ")
            shown.press("C-x")

    is_one_edit(house, f"nano{len(options)}", edit)


def test_emacs_in_a_terminal(house: Daemon) -> None:
    def edit(path: Path) -> None:
        with terminal(house, "emacs", "-nw", "-Q", str(path)) as shown:
            shown.sees("As it was.")
            shown.press("M->")
            shown.write(LINE)
            shown.press("C-x", "C-s")
            shown.sees("Wrote ")
            shown.press("C-x", "C-c")

    is_one_edit(house, "emacs", edit)


@pytest.mark.parametrize("copying", ["nil", "t"])
def test_emacs_in_a_script(house: Daemon, copying: str) -> None:
    def edit(path: Path) -> None:
        save = (
            f'(progn (setq backup-by-copying {copying}) (goto-char (point-max)) (insert "{LINE}\\n") (save-buffer))'
        )
        run("emacs", "-Q", "--batch", str(path), "--eval", save)

    is_one_edit(house, f"emacs-{copying}", edit)


def test_sed(house: Daemon) -> None:
    is_one_edit(house, "sed", lambda path: run("sed", "-i", "s/As it was/As it is/", str(path)))


@pytest.mark.parametrize("option", ["--times", "--inplace", "--delay-updates"])
def test_rsync(house: Daemon, option: str) -> None:
    def edit(path: Path) -> None:
        source = house.root / f"rsync{option}"
        source.mkdir()
        (source / path.name).write_text(f"{path.read_text()}{LINE}\n")
        run("rsync", "--recursive", "--ignore-times", option, f"{source}/", f"{path.parent}/")

    is_one_edit(house, f"rsync-{option.removeprefix('--')}", edit)
