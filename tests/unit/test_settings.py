"""Configs of agents, edited in place: what is not memd's keeps its bytes. SPEC section 14, `setup`."""

import json
import tomllib
from pathlib import Path

import pytest

from memd.memctl.settings import files, jsonc, plan, toml

SHAPES = {
    "empty": "{}",
    "empty and ended": "{}\n",
    "one line": '{"model": "opus", "x": [1, 2]}\n',
    "two spaces": '{\n  "model": "opus",\n  "x": {\n    "y": []\n  }\n}\n',
    "four spaces": '{\n    "model": "opus"\n}\n',
    "tabs": '{\n\t"model": "opus"\n}',
    "line ends of Windows": '{\r\n  "model": "opus"\r\n}\r\n',
    "comments": '// mine\n{\n  // one\n  "model": "opus", // the best\n  /* last */ "x": 1 // no more\n}\n// end\n',
    "comment at the end": '{\n  "model": "opus"\n  // "hooks": {}\n}\n',
    "trailing comma": '{\n  "model": "opus",\n}\n',
    "foreign hooks": json.dumps(
        {
            "hooks": {
                "SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "echo hi"}]}],
                "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
            },
            "permissions": {"allow": ["Bash(git *)"], "deny": ["Read(.env)"]},
        },
        indent=2,
    ),
    "empty holders": '{\n  "hooks": {},\n  "permissions": {"allow": [], "deny": []},\n  "mcpServers": {\n  }\n}\n',
    "other scripts": '{\n  "名": "✓ \\u00e9 //no comment /* nor */",\n  "ü": {"hooks": null}\n}\n',
    "foreign servers": '{"numStartups": 3, "mcpServers": {"gh": {"command": "gh-mcp", "env": {"TOKEN": "x"}}}}',
}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A person's home, with memd's beside it."""
    return {"HOME": str(tmp_path), "MEMD_HOME": str(tmp_path / "memd"), "PATH": ""}


def set_up(agent: str, env: dict[str, str]) -> list[files.Edit]:
    """Set an agent up; what was changed."""
    edits = files.wanted(agent, env)
    files.keep(agent, edits, env)
    files.carry_out(edits)
    return edits


def undo(agent: str, env: dict[str, str]) -> None:
    """Take it away again."""
    files.carry_out(files.unwanted(agent, env))
    files.let_go(agent, env)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("agent", plan.AGENTS)
def test_a_setup_adds_and_its_undo_gives_the_same_bytes(env: dict[str, str], agent: str, shape: str) -> None:
    paths = [Path(change.path) for change in plan.changes(agent, env)]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = SHAPES[shape] if path.suffix == ".json" else f'# {shape}\nmodel = "k3"\n\n[tui]\nx = 1'
        path.write_bytes(text.encode())
    before = {path: path.read_bytes() for path in paths}
    set_up(agent, env)
    for path in paths:
        text = path.read_bytes().decode()
        assert "memctl" in text
        if path.suffix == ".toml":
            assert tomllib.loads(text)["model"] == "k3"
            assert text.startswith(before[path].decode())
            continue
        old, new = jsonc.plain(jsonc.parse(before[path].decode())), jsonc.plain(jsonc.parse(text))
        assert list(new)[: len(old)] == list(old)
        kept = [line for line in before[path].decode().splitlines() if "//" in line or "/*" in line]
        assert all(line.strip().split("//")[-1].strip() in text for line in kept)
    assert files.wanted(agent, env) == []  # once is enough
    undo(agent, env)
    assert {path: path.read_bytes() for path in paths} == before
    assert files.unwanted(agent, env) == []


@pytest.mark.parametrize("agent", plan.AGENTS)
def test_files_that_were_not_there_go_again(env: dict[str, str], agent: str) -> None:
    made = set_up(agent, env)
    for edit in made:
        assert Path(edit.path).stat().st_mode & 0o777 == 0o600
    undo(agent, env)
    assert [edit.path for edit in made if Path(edit.path).exists()] == []


def test_claude_gets_hooks_the_entry_and_the_permission(env: dict[str, str]) -> None:
    set_up("claude", env)
    home = Path(env["HOME"])
    settings = json.loads((home / ".claude" / "settings.json").read_text())
    assert set(settings["hooks"]) == {"SessionStart", "UserPromptSubmit", "SessionEnd"}
    ((hook,),) = [group["hooks"] for group in settings["hooks"]["UserPromptSubmit"]]
    assert hook["command"].endswith("memctl hook claude prompt-submit")
    assert settings["permissions"]["allow"] == ["mcp__memd"]
    server = json.loads((home / ".claude.json").read_text())["mcpServers"]["memd"]
    assert (server["type"], server["args"], server["env"]) == ("stdio", ["mcp"], {"MEMD_HOME": env["MEMD_HOME"]})


def test_codex_and_kimi_get_toml_that_says_so(env: dict[str, str]) -> None:
    set_up("codex", env)
    set_up("kimi", env)
    home = Path(env["HOME"])
    server = tomllib.loads((home / ".codex" / "config.toml").read_text())["mcp_servers"]["memd"]
    assert server["args"] == ["mcp"]
    assert server["env"] == {"MEMD_HOME": env["MEMD_HOME"]}
    hooks = tomllib.loads((home / ".kimi-code" / "config.toml").read_text())["hooks"]
    assert [hook["event"] for hook in hooks] == ["SessionStart", "PostCompact", "UserPromptSubmit", "SessionEnd"]
    assert all(set(hook) <= {"event", "matcher", "command", "timeout", "fail_mode"} for hook in hooks)


def test_what_an_agent_wrote_since_stays_when_it_is_undone(env: dict[str, str]) -> None:
    path = Path(env["HOME"]) / ".claude.json"
    path.write_text('{\n  "numStartups": 3,\n  "mcpServers": {\n    "gh": {}\n  }\n}\n')
    set_up("claude", env)
    config = json.loads(path.read_text())
    config["numStartups"] = 4
    config["mcpServers"]["later"] = {"command": "x"}
    path.write_text(json.dumps(config, indent=2) + "\n")
    undo("claude", env)
    assert json.loads(path.read_text()) == {"numStartups": 4, "mcpServers": {"gh": {}, "later": {"command": "x"}}}


def test_what_the_setup_made_to_hold_its_entry_goes_from_a_rewritten_file_too(env: dict[str, str]) -> None:
    path = Path(env["HOME"]) / ".claude.json"
    path.write_text('{\n  "primaryApiKey": "s3cret"\n}\n')
    set_up("claude", env)
    assert "s3cret" not in (Path(env["MEMD_HOME"]) / "setup" / "claude.json").read_text()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"numStartups": 4}, indent=4))
    undo("claude", env)
    assert path.read_text() == json.dumps({"primaryApiKey": "s3cret", "numStartups": 4}, indent=4)


def test_no_copy_of_a_config_is_kept_where_none_is_needed(env: dict[str, str]) -> None:
    (Path(env["HOME"]) / ".claude.json").write_text(SHAPES["foreign servers"].replace('"x"', '"s3cret"'))
    set_up("claude", env)
    assert "s3cret" not in (Path(env["MEMD_HOME"]) / "setup" / "claude.json").read_text()


def test_an_entry_of_that_name_stays_as_it_is(env: dict[str, str]) -> None:
    path = Path(env["HOME"]) / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"memd": {"command": "mine"}}}')
    assert files.wanted("cursor", env) == []


def test_a_config_behind_a_link_is_written_where_it_is(env: dict[str, str]) -> None:
    home = Path(env["HOME"])
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "mcp.json").write_text("{}\n")
    (home / "dotfiles" / "mcp.json").chmod(0o640)
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").symlink_to(home / "dotfiles" / "mcp.json")
    set_up("cursor", env)
    assert (home / ".cursor" / "mcp.json").is_symlink()
    assert "memd" in (home / "dotfiles" / "mcp.json").read_text()
    assert (home / "dotfiles" / "mcp.json").stat().st_mode & 0o777 == 0o640


BROKEN = [
    "{",
    '{"a": }',
    "[1, 2",
    '{"a": 1} x',
    '{"hooks": [], "permissions": 3}',
    "{'a': 1}",
    "[" * 5000,
    '{"a": 01}',
]


@pytest.mark.parametrize("text", [*BROKEN, "\udcff"])
def test_what_cannot_be_read_is_left_alone(env: dict[str, str], text: str) -> None:
    path = Path(env["HOME"]) / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(files.LeftAlone):
        files.wanted("claude", env)


def test_toml_that_does_not_parse_or_would_not_is_left_alone(env: dict[str, str]) -> None:
    path = Path(env["HOME"]) / ".kimi-code" / "config.toml"
    path.parent.mkdir()
    for text in ["a = ", "hooks = []\n"]:
        path.write_text(text)
        with pytest.raises(files.LeftAlone):
            files.wanted("kimi", env)
    with pytest.raises(toml.UnreadableError):
        toml.with_part("x = 1\n", "x = 2\n")


def test_a_file_that_changed_since_it_was_shown_is_left_alone(env: dict[str, str]) -> None:
    path = Path(env["HOME"]) / ".cursor" / "mcp.json"
    edits = files.wanted("cursor", env)
    path.parent.mkdir()
    path.write_text('{"mcpServers": {}}')
    with pytest.raises(files.LeftAlone, match="changed meanwhile"):
        files.carry_out(edits)
    assert path.read_text() == '{"mcpServers": {}}'
