"""Every example of the pages is run as it stands. Law: what cannot be run is no code block.

The commands are those of this environment, in a home and a repository of their own. The Python of a page is run from
its top to its end, in one interpreter, as a reader would type it.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.client_home import client_home
from support.scripted_model import scripted

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "clients/python/README.md", "clients/anthropic_tool/README.md")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

INTERPRETER = """
import ast, asyncio, json, sys

async def main(blocks):
    names = {"__name__": "__main__"}
    for place, text in blocks:
        waiting = eval(compile(text, place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if waiting is not None:
            await waiting

asyncio.run(main(json.load(sys.stdin)))
"""


class Block(NamedTuple):
    """A code block: its page, the line it begins at, its language and its text."""

    page: str
    line: int
    language: str
    text: str


def blocks_of(page: str) -> list[Block]:
    """The code blocks of a page, in their order."""
    text = (ROOT / page).read_text()
    found = [Block(page, text.count("\n", 0, each.start(2)) + 1, each[1], each[2]) for each in FENCE.finditer(text)]
    assert len(found) * 2 == len(re.findall(r"^ *```", text, re.MULTILINE)), "a fence that is not at a line's start"
    return found


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def of(language: str, page: str = "") -> list[Block]:
    """The blocks of a language, of one page or all."""
    return [block for block in BLOCKS if block.language == language and block.page.startswith(page)]


def named(block: Block) -> str:
    """How a block is shown in a test's name."""
    return f"{block.page}:{block.line}"


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    """The environment of somebody who has just installed memd, whose daemon ends with the test."""
    with client_home() as place:
        home = Path(place["HOME"])
        (home / "repo" / ".git").mkdir(parents=True)
        env = {
            "HOME": str(home),
            "MEMD_HOME": place["MEMD_HOME"],
            "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
            "PYTHONWARNINGS": "error",
        }
        try:
            yield env
        finally:
            run(["memctl", "stop", "--no-autostart"], env)


def run(command: list[str], env: dict[str, str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    """What a program said in the repository, standard error with it."""
    return subprocess.run(
        command,
        env=env,
        cwd=Path(env["HOME"]) / "repo",
        input=stdin,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=50,
        check=False,
    )


def test_every_block_is_of_a_kind_that_is_run_here() -> None:
    assert {block.language for block in BLOCKS} == {
        "",
        "js",
        "json",
        "python",
        "sh",
    }  # js: by tests/real/test_node.py
    assert {page: len(blocks_of(page)) > 1 for page in PAGES} == dict.fromkeys(PAGES, True)


@pytest.mark.parametrize("block", of("sh"), ids=named)
def test_what_is_for_the_shell(env: dict[str, str], block: Block) -> None:
    done = run(["/bin/sh", "-euc", block.text], env)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_what_is_for_python(env: dict[str, str], page: str) -> None:
    typed = [(block.page, "\n" * (block.line - 1) + block.text) for block in of("python", page)]
    with scripted({"command": "view", "path": "/memories"}) as model:
        env |= {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none"}
        done = run([sys.executable, "-X", "dev", "-c", INTERPRETER], env, json.dumps(typed))
    assert done.returncode == 0, done.stdout
    assert "Warning" not in done.stdout


@pytest.mark.parametrize("block", of(""), ids=named)
def test_a_note_that_is_shown_is_one(env: dict[str, str], block: Block) -> None:
    done = run(["memctl", "save"], env, block.text)
    assert done.returncode == 0, done.stdout
    assert "warning" not in done.stdout
    name = done.stdout.split()[1]
    assert run(["memctl", "show", name], env).stdout == block.text


@pytest.mark.parametrize("block", of("json"), ids=named)
def test_json_that_is_shown_is_json(block: Block) -> None:
    assert isinstance(json.loads(block.text), dict)


def test_a_kernel_s_ten_lines_are_ten() -> None:
    section = (ROOT / "README.md").read_text().partition("### For a kernel\n")[2].partition("\n### ")[0]
    found = FENCE.search(section)
    assert found is not None
    assert len([line for line in found[2].splitlines() if line.strip()]) == 10
