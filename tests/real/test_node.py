"""The Node client with the real Node: its own tests, what a package holds, what its page shows (SPEC 13)."""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from support.daemon import Daemon, daemon_home

ROOT = Path(__file__).parents[2]
NODE = ROOT / "clients" / "node"
BIN = sysconfig.get_path("scripts")
FENCE = re.compile(r"^```js\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(command: list[str], env: dict[str, str], cwd: Path, stdin: str | None = None) -> str:
    """A program's standard output; the test fails when it does."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        env=env | {"PATH": path},
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(600)
def test_its_own_tests_pass() -> None:
    said = run(["node", "--test", "test/"], {"HOME": os.environ["HOME"], "MEMD_BIN": BIN}, NODE)
    assert re.search(r"^# fail 0$", said, re.MULTILINE)
    assert re.search(r"^# (skipped|todo|cancelled) [1-9]", said, re.MULTILINE) is None
    passed = re.search(r"^# pass (\d+)$", said, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) > 70


def test_a_typescript_program_is_checked_by_its_types() -> None:
    tools = Path(sys.prefix) / "node" / "node_modules"
    flags = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext"]
    types = ["--typeRoots", str(tools / "@types"), "--types", "node"]
    program = str(ROOT / "tests" / "real" / "node_types.mts")
    run([str(tools / ".bin" / "tsc"), *flags, *types, program], {"HOME": os.environ["HOME"]}, ROOT)


def installed(place: Daemon) -> Path:
    """A project that has the package as npm packs it."""
    project = place.repo
    (packed,) = json.loads(run(["npm", "pack", "--json", "--pack-destination", str(place.root)], place.env, NODE))
    held = {file["path"] for file in packed["files"]}
    assert {"index.d.ts", "README.md", "LICENSE", "package.json", "src/index.js"} <= held
    assert [name for name in held if name.startswith("test")] == []
    (project / "package.json").write_text('{"name": "project", "private": true, "type": "module"}')
    tarball = place.root / packed["filename"]
    run(["npm", "install", "--offline", "--no-audit", "--no-fund", str(tarball)], place.env, project)
    return project


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", ["README.md", "clients/node/README.md"])
def test_what_the_pages_show_runs_from_a_clean_home(page: str) -> None:
    blocks = FENCE.findall((ROOT / page).read_text())
    assert blocks
    with daemon_home() as place:
        del place.env["PYTHONPATH"]
        project = installed(place)
        try:
            for block in blocks:
                run(["node", "--input-type=module"], place.env, project, block)
        finally:
            run(["memctl", "stop", "--no-autostart"], place.env, project)
