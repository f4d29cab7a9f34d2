"""`memctl setup` as a person runs it, and a plugin for Claude Code: what they write works. SPEC section 14."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from memd_hooks import entry
from support.client_home import client_home
from support.daemon import Daemon
from support.hooks import context, event, path
from support.memctl_program import memctl, memctl_on_terminal

PLUGIN = Path(__file__).parents[2] / "clients" / "claude-plugin"


def test_it_shows_the_change_and_asks(tmp_path: Path) -> None:
    with client_home() as env:
        config = Path(env["HOME"]) / ".cursor" / "mcp.json"
        config.parent.mkdir(parents=True)
        config.write_text('{\n  "mcpServers": {}\n}\n')
        shown = memctl(env, "setup", "cursor", "--print")
        assert shown.code == 0
        assert '+    "memd": {' in shown.out
        no = memctl_on_terminal(env, "setup", "cursor", typed="n\n")
        assert no.code == 1
        assert '+    "memd": {' in no.err
        assert config.read_text() == '{\n  "mcpServers": {}\n}\n'
        assert memctl(env, "setup", "cursor").code == 2  # nobody can be asked
        yes = memctl_on_terminal(env, "setup", "cursor", typed="y\n")
        assert (yes.code, "memd" in config.read_text()) == (0, True)
        assert "there already" in memctl(env, "setup", "cursor", "--yes").err
        assert memctl(env, "setup", "cursor", "--undo", "--yes").code == 0
        assert config.read_text() == '{\n  "mcpServers": {}\n}\n'
        assert "nothing of memd's" in memctl(env, "setup", "cursor", "--undo", "--yes").err
        assert memctl(env, "setup", "emacs").code == 2
        config.write_text("{ broken")
        left = memctl(env, "setup", "cursor", "--yes")
        assert left.code == 4
        assert "nothing was changed" in left.err
        assert config.read_text() == "{ broken"


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "kimi"])
def test_what_it_writes_works(daemon: Daemon, agent: str) -> None:
    daemon.save("forge-tests", "Use -k smoke first.", description="Forge tests: smoke first")
    assert memctl(daemon.env, "setup", agent, "--yes").code == 0
    assert entry.is_there(agent, str(daemon.repo), daemon.env)
    home = Path(entry.directory(agent, daemon.env))
    text = "".join(file.read_text() for file in home.iterdir())
    command = next(line for line in text.replace("\\", "").split('"') if line.endswith(f"hook {agent} prompt-submit"))
    raw = event(agent, "prompt", daemon.repo, "How do the forge tests run?")
    done = subprocess.run(
        ["sh", "-c", command], input=raw, env=daemon.env, cwd=daemon.repo, capture_output=True, check=True
    )
    block = context(done.stdout.decode())
    assert "Use -k smoke first." in block
    assert "memory_read(name=" in block
    assert memctl(daemon.env, "setup", agent, "--undo", "--yes").code == 0
    assert not entry.is_there(agent, str(daemon.repo), daemon.env)


def test_the_plugin_names_commands_that_are_there(daemon: Daemon) -> None:
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    market = json.loads((PLUGIN / ".claude-plugin" / "marketplace.json").read_text())
    assert [each["name"] for each in market["plugins"]] == [manifest["name"]] == ["memd"]
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
    kinds = {"SessionStart": "startup", "UserPromptSubmit": "prompt", "SessionEnd": "end"}
    assert set(hooks) == set(kinds)
    for name, ((hook,),) in {name: [group["hooks"] for group in groups] for name, groups in hooks.items()}.items():
        raw = event("claude", kinds[name], daemon.repo, "x")
        env = {**daemon.env, "PATH": path()}
        done = subprocess.run(shlex.split(hook["command"]), input=raw, env=env, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
    server = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["memd"]
    assert (server["command"], server["args"]) == ("memctl", ["mcp"])
