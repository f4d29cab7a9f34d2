"""Real shells complete memctl's words: whatever a note's name holds, the command gets exactly it. SPEC section 14."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.daemon import Daemon, running_daemon
from support.memctl_program import memctl_env
from support.waiting import until

SHELLS = ("bash", "zsh", "fish")
ODD = {
    "crane": "cra",
    "with space": "with",
    "it's": "it",
    'quo"ted': "quo",
    "dollar$(touch RAN)x": "doll",
    "tick`touch RAN`x": "tick",
    "star*x": "star",
    "semi;x": "semi",
    "back\\slash": "back",
    "colon:x": "col",
    "umlaut-ü": "uml",
}
"""The names of notes, and how far each is typed."""

MEMCTL = """\
#!{python}
import json, os, sys
if sys.argv[1:2] == ["completion"]:
    os.execv({python!r}, [{python!r}, "-m", "memd.memctl", *sys.argv[1:]])
with open({heard!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
"""
STARTS = {
    "bash": ["bash", "--noprofile", "--rcfile", "{rc}", "-i"],
    "zsh": ["zsh", "-i"],
    "fish": ["fish", "--no-config", "--init-command", "source {rc}"],
}
RCS = {
    "bash": 'source <(memctl completion bash); PS1="ready> "\n',
    "zsh": "autoload -U compinit; compinit -u -D; source <(memctl completion zsh); PS1='ready> '\n",
    "fish": "memctl completion fish | source; function fish_prompt; echo -n 'ready> '; end\n",
}


class Shell:
    """A shell in a terminal; `memctl` there writes down what it is given."""

    def __init__(self, daemon: Daemon, name: str) -> None:
        self.socket = daemon.root / f"tmux-{name}"
        self.heard = daemon.root / f"heard-{name}"
        self.heard.touch()
        where = daemon.root / f"bin-{name}"
        where.mkdir()
        program = where / "memctl"
        program.write_text(MEMCTL.format(python=sys.executable, heard=str(self.heard)))
        program.chmod(0o755)
        rc = where / ".zshrc"
        rc.write_text(RCS[name])
        found = shutil.which(name)
        assert found is not None
        env = {
            **memctl_env(daemon.env),
            "ZDOTDIR": str(where),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
        }
        env["PATH"] = f"{where}:{env.get('PATH', '/usr/bin:/bin')}"
        start = [word.format(rc=rc) for word in STARTS[name]]
        words = ["env", "-i", *(f"{key}={value}" for key, value in env.items()), found, *start[1:]]
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50", "-c", str(daemon.repo), *words)
        until(lambda: "ready>" in self._tmux("capture-pane", "-p"))

    def completes(self, text: str) -> list[str]:
        """Type a text, press Tab and Enter: what memctl is given then."""
        before = self.heard.read_text()
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Tab", "Enter")
        until(lambda: self.heard.read_text() != before)
        words: list[str] = json.loads(self.heard.read_text().splitlines()[-1])
        return words

    def close(self) -> None:
        """End the terminal and all in it."""
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-u", "-S", str(self.socket), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=50).stdout


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running_daemon() as daemon:
        daemon.save("seed")
        store = daemon.store_of(daemon.repo)
        for name in (*ODD, "-dash"):
            (store / f"{name}.md").write_text("---\nname: x\ndescription: odd\ntype: project\n---\nbody\n")
        daemon.call("memory.reconcile")
        listed = {row["name"] for row in daemon.call("memory.list")["notes"]}
        assert listed >= {*ODD, "-dash"}
        yield daemon


@pytest.fixture(scope="module", params=SHELLS)
def shell(daemon: Daemon, request: pytest.FixtureRequest) -> Iterator[Shell]:
    shell = Shell(daemon, request.param)
    yield shell
    shell.close()


@pytest.mark.parametrize("name", ODD)
def test_the_command_gets_the_name_that_was_completed(daemon: Daemon, shell: Shell, name: str) -> None:
    assert shell.completes(f"memctl show {ODD[name]}") == ["show", name]
    assert not list(daemon.repo.glob("RAN*"))


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ("memctl resto", ["restore"]),
        ("memctl save --typ", ["save", "--type"]),
        ("memctl --json edit cra", ["--json", "edit", "crane"]),
        ("memctl show -- -da", ["show", "--", "-dash"]),
        ("memctl show zzz", ["show", "zzz"]),
    ],
)
def test_commands_options_and_names_after_options(shell: Shell, typed: str, given: list[str]) -> None:
    assert shell.completes(typed) == given


def test_a_quote_that_was_begun_is_gone_on_with(daemon: Daemon, shell: Shell) -> None:
    assert shell.completes('memctl show "dol') == ["show", "dollar$(touch RAN)x"]
    assert shell.completes("memctl show 'it") == ["show", "it's"]
    assert not list(daemon.repo.glob("RAN*"))
