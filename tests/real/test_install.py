"""memd as a stranger installs it: a wheel, an environment of its own, the two programs and the client."""

import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import Daemon, daemon_home

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the programs of an environment that has only memd's wheel and what it needs."""
    place = tmp_path_factory.mktemp("installed")
    run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(place / "wheel"), str(ROOT)]
    )
    (wheel,) = (place / "wheel").iterdir()
    venv.create(place / "venv", with_pip=True)
    programs = place / "venv" / "bin"
    run([str(programs / "python"), "-m", "pip", "install", "--quiet", str(wheel)])
    return programs


@pytest.fixture
def place() -> Iterator[Daemon]:
    """A home nobody serves yet."""
    with daemon_home() as daemon:
        del daemon.env["PYTHONPATH"]
        yield daemon


def run(command: list[str], *, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """A program's output; the test fails when it does."""
    done = subprocess.run(
        command,
        env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"} if env is None else env,
        cwd=cwd,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(600)
def test_the_installed_programs_save_and_find_a_note(installed: Path, place: Daemon) -> None:
    memctl = str(installed / "memctl")
    typed = ["save", "--type", "user", "--description", "Ports of the dev stack", "/dev/null"]
    assert "ports-of-the-dev-stack" in run([memctl, *typed], env=place.env, cwd=place.repo)
    assert "ports-of-the-dev-stack" in run([memctl, "search", "ports"], env=place.env, cwd=place.repo)
    script = "import memory; print(memory.sync.read('ports-of-the-dev-stack')['hash'][:7])"
    assert run([str(installed / "python"), "-c", script], env=place.env, cwd=place.repo) == "sha256:\n"
    script = "import importlib.util; print(importlib.util.find_spec('memd_anthropic').origin)"
    assert "memd_anthropic" in run([str(installed / "python"), "-c", script], env=place.env, cwd=place.repo)
    run([memctl, "stop"], env=place.env, cwd=place.repo)
    assert not place.socket.exists()
    assert (installed.parent / "share" / "man" / "man1" / "memctl.1").is_file()  # where `man` looks beside a PATH


@pytest.mark.timeout(600)
def test_the_client_alone_needs_nothing_of_memd(tmp_path: Path, installed: Path, place: Daemon) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    run([python, "-m", "pip", "install", "--quiet", str(ROOT / "clients" / "python")])
    env = place.env | {"PATH": f"{installed}{os.pathsep}{place.env['PATH']}"}
    script = "import memory; print(memory.sync.save('words', type='user', description='A fact')['name'])"
    assert run([python, "-c", script], env=env, cwd=place.repo) == "a-fact\n"
    run([str(installed / "memctl"), "stop"], env=env, cwd=place.repo)
