"""The hooks of agents as processes. Law: events and outputs are those that each agent's own pages document.

`tests/cases/hooks/<agent>.json` holds an event of each kind and the schema of what may be written at each.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema

from support.daemon import Daemon

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases" / "hooks"
AGENTS = ("claude", "codex", "gemini", "kimi")
MOST = 8_000


def case(agent: str) -> dict[str, Any]:
    """The events and schemas of an agent."""
    read: dict[str, Any] = json.loads((CASES / f"{agent}.json").read_text())
    return read


def event(agent: str, kind: str, cwd: Path, prompt: str = "", /, **more: object) -> bytes:
    """An event as the agent writes it."""
    text = json.dumps(case(agent)["events"][kind] | more)
    for word, value in {"CWD": str(cwd), "TRANSCRIPT": str(cwd / "transcript.jsonl"), "PROMPT": prompt}.items():
        text = text.replace(json.dumps(word), json.dumps(value))
    return text.encode()


def called(daemon: Daemon, agent: str, name: str, raw: bytes, **env: str) -> str:
    """What `memctl hook` writes for an event. The test fails when the agent would not accept it."""
    done = subprocess.run(
        [sys.executable, "-m", "memd.memctl", "hook", agent, name],
        input=raw,
        capture_output=True,
        env={**daemon.env, "PYTHONPATH": f"{ROOT}", **env},
        cwd=daemon.repo,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert len(text) <= MOST
    if text:
        schema = case(agent)["outputs"][name]
        jsonschema.validate(text if schema == {"type": "string"} else json.loads(text), schema)
    return text


def context(text: str) -> str:
    """What of a hook's output the model gets; empty for none."""
    if not text.startswith("{"):
        return text
    return str(json.loads(text).get("hookSpecificOutput", {}).get("additionalContext", ""))


def hook(daemon: Daemon, agent: str, name: str, kind: str, prompt: str = "", **more: object) -> str:
    """What the model gets at an event."""
    return context(called(daemon, agent, name, event(agent, kind, daemon.repo, prompt, **more)))


def path() -> str:
    """A PATH with the programs of this environment."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
