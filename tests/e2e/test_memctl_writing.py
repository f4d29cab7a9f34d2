"""`remember` and `edit` against a real daemon and a real editor process; completion in a real shell. SPEC 14."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.memctl.commands.completion import NAMING, flags_of
from memd.memctl.commands.remember import HOOK_MAX, proposed, split
from memd.memctl.front import COMMANDS, module_name
from support.daemon import Daemon, running_daemon
from support.memctl_program import ROOT, memctl, memctl_env, memctl_on_terminal
from support.waiting import until

KEY = "ghp_" + "a1B2" * 9


@pytest.fixture(scope="module")
def served() -> Iterator[Daemon]:
    with running_daemon() as daemon:
        yield daemon


@pytest.fixture
def daemon(served: Daemon, request: pytest.FixtureRequest) -> Daemon:
    """The daemon, and a repository of the test's own."""
    served.repo = served.root / request.node.name.replace("[", "-").replace("]", "")
    (served.repo / ".git").mkdir(parents=True)
    served.env["NO_COLOR"] = "1"
    return served


def editing(daemon: Daemon, tmp_path: Path, *steps: str) -> dict[str, str]:
    """The environment in which an editor takes one step each time it is opened; `text` is what it finds."""
    script = tmp_path / "an editor.py"
    script.write_text(
        "import sys, pathlib\n"
        f"log = pathlib.Path({str(tmp_path / 'opened')!r})\n"
        "file = pathlib.Path(sys.argv[-1])\n"
        "text = file.read_text()\n"
        "opened = log.read_text().count('\\0') if log.exists() else 0\n"
        "log.write_text((log.read_text() if opened else '') + text + '\\0')\n"
        f"exec({list(steps)!r}[opened])\n"
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    return {**daemon.env, "VISUAL": "", "EDITOR": f"'{sys.executable}' -P '{script}'", "TMPDIR": str(temporary)}


def opened(tmp_path: Path) -> list[str]:
    """The text each time the editor was opened."""
    return (tmp_path / "opened").read_text().split("\0")[:-1]


def text_of(daemon: Daemon, name: str) -> str:
    shown: str = daemon.call("memory.show", name=name)["markdown"]
    return shown


# -- remember


def test_a_line_becomes_a_note(daemon: Daemon) -> None:
    ran = memctl(daemon.env, "remember", "--type", "feedback", "never", "push", "to", "main", cwd=daemon.repo)
    assert (ran.code, ran.out) == (0, "saved never-push-to-main · repo · feedback — never push to main\n")
    assert daemon.call("memory.read", name="never-push-to-main")["text"] == ""


def test_a_longer_text_keeps_all_its_words(daemon: Daemon) -> None:
    text = b"The crane stalls at low tide. Wait for the gauge.\nThen start it again.\n"
    ran = memctl(daemon.env, "remember", "--type", "project", "--json", stdin=text, cwd=daemon.repo)
    reply = json.loads(ran.out)
    assert (reply["description"], reply["type"]) == ("The crane stalls at low tide.", "project")
    assert daemon.call("memory.read", name=reply["name"])["text"] == text.decode().strip()


def test_a_person_says_what_type_it_is(daemon: Daemon) -> None:
    env = {**daemon.env, "MEMD_SESSION": ""}
    asked = "Save it as project? [y/N, or user, feedback, reference] "
    repo = ("-C", str(daemon.repo))
    no = memctl_on_terminal(env, *repo, "remember", "The gauge reads zero at noon", typed="n\n")
    assert (no.code, no.out, no.err) == (1, "", f"The gauge reads zero at noon\n{asked}nothing was saved\n")
    yes = memctl_on_terminal(env, *repo, "remember", "The gauge reads zero at noon", typed="y\n")
    assert (yes.code, yes.out) == (
        0,
        "saved the-gauge-reads-zero-at · repo · project — The gauge reads zero at noon\n",
    )
    other = memctl_on_terminal(env, *repo, "--scope", "global", "remember", "Ebb is at six", typed="reference\n")
    assert other.out == "saved ebb-is-at-six · global · reference — Ebb is at six\n"
    closed = memctl_on_terminal(env, *repo, "remember", "Ebb is at seven", typed="\x04")
    assert closed.code == 1


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "said"),
    [
        (("remember", "no type given"), b"", 2, "give --type"),
        (("remember",), b"from a pipe", 2, "give --type"),
        (("remember", "--type", "user"), b"  \n", 2, "blank"),
        (("remember", "--type", "fact", "x"), b"", 2, "--type"),
        (("remember", "--type", "user", f"my token is {KEY}"), b"", 4, "ghp_"),
        (("remember", "--type", "user"), b"\xff\xfe", 4, "not UTF-8"),
    ],
)
def test_what_cannot_be_remembered(
    daemon: Daemon, arguments: tuple[str, ...], stdin: bytes, code: int, said: str
) -> None:
    ran = memctl(daemon.env, *arguments, stdin=stdin, cwd=daemon.repo)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert KEY not in ran.err
    assert daemon.names() == [] or daemon.names() == ["ebb-is-at-six"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I use fish and vim", "user"),
        ("My editor is helix", "user"),
        ("Never commit generated files", "feedback"),
        ("use pnpm instead of npm", "feedback"),
        ("提交前必须运行测试", "feedback"),
        ("The runbook is in docs/ops.md", "reference"),
        ("Grafana: https://grafana.example/d/1", "reference"),
        ("The forge runs on port 8080", "project"),
    ],
)
def test_a_type_is_proposed_by_its_words(text: str, kind: str) -> None:
    assert proposed(text) == kind


@pytest.mark.parametrize(
    ("text", "hook", "body"),
    [
        ("one line", "one line", ""),
        ("x" * HOOK_MAX, "x" * HOOK_MAX, ""),
        ("First. Second.\nThird.", "First.", "First. Second.\nThird."),
        ("第一句。第二句。\n第三句", "第一句。", "第一句。第二句。\n第三句"),
        ("y" * 300, "y" * (HOOK_MAX - 1) + "…", "y" * 300),
        ("word " * 60 + "end", ("word " * 47).strip() + "…", "word " * 60 + "end"),
    ],
)
def test_the_hook_of_a_text(text: str, hook: str, body: str) -> None:
    assert split(text) == (hook, body)
    assert len(hook) <= HOOK_MAX


# -- edit


def test_an_edit_is_a_new_version(daemon: Daemon, tmp_path: Path) -> None:
    daemon.save("crane", "It stalls.")
    env = editing(daemon, tmp_path, "file.write_text(text.replace('stalls', 'runs'))")
    ran = memctl(env, "edit", "crane", cwd=daemon.repo)
    assert (ran.code, ran.out, ran.err) == (0, "saved crane · repo\n", "")
    assert text_of(daemon, "crane").endswith("It runs.\n")
    assert daemon.call("memory.log", name="crane")["records"][0]["by"] == "cli"
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("step", ["pass", "file.write_text('')", "file.write_text(' \\n')", "file.unlink()"])
def test_unchanged_or_emptied_is_nothing(daemon: Daemon, tmp_path: Path, step: str) -> None:
    daemon.save("crane", "It stalls.")
    before = text_of(daemon, "crane")
    ran = memctl(editing(daemon, tmp_path, step), "edit", "crane", cwd=daemon.repo)
    assert (ran.code, ran.out, ran.err) == (0, "", "nothing was changed\n")
    assert text_of(daemon, "crane") == before
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_hand_written_note_that_was_only_looked_at_keeps_its_bytes(daemon: Daemon, tmp_path: Path) -> None:
    daemon.save("crane")
    raw = b"\xef\xbb\xbf---\r\ntype: user\r\ndescription: It stalls\r\n---\r\nAt low tide.\r\n"
    file = daemon.store_of(daemon.repo) / "hand.md"
    file.write_bytes(raw)
    until(lambda: "hand" in daemon.names())
    ran = memctl(editing(daemon, tmp_path, "pass"), "edit", "hand", cwd=daemon.repo)
    assert (ran.code, ran.err) == (0, "nothing was changed\n")
    assert file.read_bytes() == raw


def test_a_refused_text_is_opened_again_with_the_reason(daemon: Daemon, tmp_path: Path) -> None:
    daemon.save("crane", "It stalls.")
    env = editing(
        daemon,
        tmp_path,
        f"file.write_text(text + {KEY!r})",
        f"file.write_text(text.replace({KEY!r}, 'and creaks'))",
    )
    ran = memctl_on_terminal(env, "-C", str(daemon.repo), "edit", "crane")
    assert ran.code == 0
    first, again = opened(tmp_path)
    reason, _, rest = again.partition("\n")
    assert reason.startswith("<!-- memctl: memory.save: ")
    assert "ghp_" in reason
    assert KEY not in reason
    assert rest == first + KEY
    assert text_of(daemon, "crane").endswith("It stalls.\nand creaks\n")


def kept_in(said: str, tmp_path: Path) -> str:
    """The text in the file that an error names."""
    path = Path(said.rsplit(" in ", 1)[1].strip())
    assert path.is_relative_to(tmp_path / "tmp")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    return path.read_text()


def test_a_refused_text_is_kept_where_nobody_can_be_asked(daemon: Daemon, tmp_path: Path) -> None:
    daemon.save("crane", "It stalls.")
    before = text_of(daemon, "crane")
    ran = memctl(editing(daemon, tmp_path, f"file.write_text(text + {KEY!r})"), "edit", "crane", cwd=daemon.repo)
    assert (ran.code, ran.out) == (4, "")
    assert KEY not in ran.err
    assert kept_in(ran.err, tmp_path) == before + KEY
    assert text_of(daemon, "crane") == before


def test_a_note_changed_meanwhile_is_not_overwritten(daemon: Daemon, tmp_path: Path) -> None:
    daemon.save("crane", "It stalls.")
    note = daemon.store_of(daemon.repo) / "crane.md"
    change = f"pathlib.Path({str(note)!r}).write_text(text.replace('stalls', 'was mended'))"
    ran = memctl(
        editing(daemon, tmp_path, f"{change}; file.write_text(text.replace('stalls', 'runs'))"),
        "edit",
        "crane",
        cwd=daemon.repo,
    )
    assert ran.code == 4
    assert "changed meanwhile" in ran.err
    assert kept_in(ran.err, tmp_path).endswith("It runs.\n")
    assert text_of(daemon, "crane").endswith("It was mended.\n")


def test_an_editor_that_fails_saves_nothing(daemon: Daemon, tmp_path: Path) -> None:
    daemon.save("crane", "It stalls.")
    before = text_of(daemon, "crane")
    step = "file.write_text(text + 'half'); sys.exit(3)"
    ran = memctl(editing(daemon, tmp_path, step), "edit", "crane", cwd=daemon.repo)
    assert ran.code == 4
    assert "ended with 3" in ran.err
    assert kept_in(ran.err, tmp_path) == before + "half"
    missing = memctl({**daemon.env, "EDITOR": "no-such-editor-here"}, "edit", "crane", cwd=daemon.repo)
    assert "no-such-editor-here" in missing.err
    assert "set EDITOR" in missing.err
    assert text_of(daemon, "crane") == before
    assert memctl(daemon.env, "edit", "absent", cwd=daemon.repo).code == 3


def test_an_editor_that_spoils_the_text_again_and_again_is_not_asked_for_ever(daemon: Daemon, tmp_path: Path) -> None:
    daemon.save("crane", "It stalls.")
    before = text_of(daemon, "crane")
    spoils = f"file.write_text(text.replace('{KEY}', '').rstrip() + '{KEY}')"
    ran = memctl_on_terminal(editing(daemon, tmp_path, spoils, spoils), "-C", str(daemon.repo), "edit", "crane")
    assert ran.code == 4
    assert kept_in(ran.err, tmp_path) == before.rstrip() + KEY
    assert text_of(daemon, "crane") == before


def test_ctrl_c_at_an_editor_is_its_own_business(daemon: Daemon, tmp_path: Path) -> None:
    daemon.save("crane", "It stalls.")
    interrupts = (
        "import os, signal; signal.signal(signal.SIGINT, signal.SIG_IGN); os.kill(os.getppid(), signal.SIGINT); "
        "file.write_text(text.replace('stalls', 'runs'))"
    )
    ran = memctl(editing(daemon, tmp_path, interrupts), "edit", "crane", cwd=daemon.repo)
    assert (ran.code, ran.err) == (0, "")
    assert text_of(daemon, "crane").endswith("It runs.\n")


def test_an_editor_that_is_no_command_line_is_wrong_usage(daemon: Daemon) -> None:
    daemon.save("crane")
    ran = memctl({**daemon.env, "EDITOR": "vim 'x"}, "edit", "crane", cwd=daemon.repo)
    assert (ran.code, ran.out) == (2, "")
    assert "EDITOR: no closing quotation" in ran.err


# -- completion


def completed(env: dict[str, str], cwd: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    script = (
        'source <("$MEMCTL_PYTHON" -m memd.memctl completion bash)\n'
        'memctl() { "$MEMCTL_PYTHON" -m memd.memctl "$@"; }\n'
        'COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))\n'
        '_memctl; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    bash = shutil.which("bash")
    assert bash is not None
    ran = subprocess.run(
        [bash, "--norc", "-c", script, "bash", "memctl", *words],
        env={**memctl_env(env), "MEMCTL_PYTHON": sys.executable},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stderr == ""
    return ran.stdout.split()


def test_bash_completes_commands_options_and_live_names(daemon: Daemon) -> None:
    daemon.save("crane")
    daemon.save("cradle")
    assert completed(daemon.env, daemon.repo, "comp") == ["completion"]
    assert set(completed(daemon.env, daemon.repo, "")) == set(COMMANDS)
    assert completed(daemon.env, daemon.repo, "save", "--ty") == ["--type"]
    assert completed(daemon.env, daemon.repo, "--scope", "g") == ["global"]
    assert sorted(completed(daemon.env, daemon.repo, "show", "cra")) == ["cradle", "crane"]
    daemon.call("memory.forget", name="cradle")
    assert completed(daemon.env, daemon.repo, "--json", "edit", "cra") == ["crane"]


def test_a_name_is_never_run_by_the_shell(daemon: Daemon) -> None:
    daemon.save("crane")
    for name in ("dollar$(touch RAN)x", "tick`touch RAN`x", "-dash"):
        (daemon.store_of(daemon.repo) / f"{name}.md").write_text("---\nname: x\ndescription: odd\n---\nbody\n")
    daemon.call("memory.reconcile")
    assert completed(daemon.env, daemon.repo, "show", "doll") == ["dollar\\$\\(touch\\", "RAN\\)x"]
    assert completed(daemon.env, daemon.repo, "show", "tick") == ["tick\\`touch\\", "RAN\\`x"]
    assert completed(daemon.env, daemon.repo, "show", "-d") == []
    assert completed(daemon.env, daemon.repo, "show", "--", "-d") == ["-dash"]
    assert not list(daemon.repo.glob("RAN*"))


def test_without_a_daemon_no_name_is_offered_and_nothing_said(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "MEMD_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    env["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "clients" / "python")))
    assert completed(env, tmp_path, "show", "") == []
    assert memctl(env, "completion", "names").err == ""
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_in_each_script(tmp_path: Path, shell: str) -> None:
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "clients" / "python")}
    script = memctl(env, "completion", shell).out
    assert "@" not in script.replace("$@", "").replace("[@]", "")
    for command in COMMANDS:
        assert command in script
        for flag, _ in flags_of(command):
            assert (f"-l {flag[2:]}" if shell == "fish" else flag) in script


def test_the_commands_that_take_a_name_complete_it() -> None:
    from importlib import import_module

    taking = {name for name in COMMANDS if import_module(module_name(name)).USAGE.lstrip("[").startswith("NAME")}
    assert taking == set(NAMING)


def test_there_is_no_completion_for_another_shell(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "clients" / "python")}
    ran = memctl(env, "completion", "tcsh")
    assert (ran.code, ran.out) == (2, "")
