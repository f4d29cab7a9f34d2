"""Whether an agent has memd's MCP entry in its config. Law: it reads, and a config that it cannot read has none.

By this a block's calls are spelled for the tools, or else for `memctl`. SPEC 13.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping

from memd_client.where import user_home

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

READ_MAX = 32 * 1024 * 1024
_TABLE = re.compile(
    r"^\s*\[\s*mcp_servers\s*\.\s*[\"']?memd[\"']?\s*\]\s*(?:#.*)?$(.*?)(?=^\s*\[|\Z)", re.MULTILINE | re.DOTALL
)
_OFF = re.compile(r"^\s*enabled\s*=\s*false\b", re.MULTILINE)
_NAMED = re.compile(r'"mcpServers"\s*:\s*\{.*"memd"\s*:\s*\{', re.DOTALL)


def is_there(agent: str, cwd: str, env: Mapping[str, str]) -> bool:
    """Whether the config of `agent`, its own or that of the project at `cwd`, starts memd's MCP server."""
    home = directory(agent, env)
    match agent:
        case "claude":
            return (
                _in_json(claude_json(env), cwd)
                or _in_json(os.path.join(cwd, ".mcp.json"), cwd)
                or _has_plugin(os.path.join(home, "settings.json"))
            )
        case "codex":
            return _in_toml(os.path.join(home, "config.toml")) or _in_toml(os.path.join(cwd, ".codex", "config.toml"))
        case "gemini":
            paths = (os.path.join(home, "settings.json"), os.path.join(cwd, ".gemini", "settings.json"))
        case _:
            paths = (os.path.join(home, "mcp.json"), os.path.join(cwd, f".{os.path.basename(home)[1:]}", "mcp.json"))
    return any(_in_json(path, cwd) for path in paths)


def directory(agent: str, env: Mapping[str, str]) -> str:
    """The directory of an agent's own config, as its environment or its habit says. Raises `BadPlace`."""
    home = user_home(env)
    match agent:
        case "claude":
            return env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
        case "codex":
            return env.get("CODEX_HOME") or os.path.join(home, ".codex")
        case "gemini":
            return os.path.join(env.get("GEMINI_CLI_HOME") or home, ".gemini")
        case "kimi":
            return env.get("KIMI_CODE_HOME") or os.path.join(home, ".kimi-code")
    return os.path.join(home, f".{agent}")


def claude_json(env: Mapping[str, str]) -> str:
    """Where Claude Code keeps a user's MCP servers: beside its directory, or in the one it was given."""
    given = env.get("CLAUDE_CONFIG_DIR")
    return os.path.join(given or user_home(env), ".claude.json")


def _in_json(path: str, cwd: str) -> bool:
    text = _text(path)
    if '"memd"' not in text:
        return False
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):  # comments, perhaps
        return _NAMED.search(text) is not None
    return _is_on(config) or _is_on(_member(_member(config, "projects"), cwd))


def _is_on(config: Any) -> bool:
    server = _member(_member(config, "mcpServers"), "memd")
    return (
        isinstance(server, dict) and server.get("enabled", True) is not False and server.get("disabled") is not True
    )


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _has_plugin(path: str) -> bool:
    """Whether the plugin named memd is on, which brings the entry with it."""
    text = _text(path)
    if '"memd@' not in text:
        return False
    try:
        plugins = _member(json.loads(text), "enabledPlugins")
    except (ValueError, RecursionError):
        return False
    return isinstance(plugins, dict) and any(name.startswith("memd@") and on is True for name, on in plugins.items())


def _in_toml(path: str) -> bool:
    found = _TABLE.search(_text(path))
    return found is not None and _OFF.search(found[1]) is None


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(READ_MAX).decode(errors="replace")
    except OSError:
        return ""
