"""What each agent's config gets. Law: a table; an entry, a hook or a permission that is there already stays as it is.

Claude Code: hooks and the tools' permission in settings.json, the entry in .claude.json. Codex: the entry in
config.toml, hooks in hooks.json. Gemini: both in settings.json. Kimi: the entry in mcp.json, hooks in config.toml.
Cursor: the entry in mcp.json. Paths and formats are those of the agents' own pages.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from memd.memctl.settings import jsonc, toml
from memd_client.where import user_home
from memd_hooks import entry

AGENTS = ("claude", "codex", "gemini", "kimi", "cursor")
PERMISSION = "mcp__memd"

_HOOKS = {
    "claude": {"SessionStart": "session-start", "UserPromptSubmit": "prompt-submit", "SessionEnd": "session-end"},
    "codex": {"SessionStart": "session-start", "UserPromptSubmit": "prompt-submit", "SessionEnd": "session-end"},
    "gemini": {
        "SessionStart": "session-start",
        "PreCompress": "session-start",
        "BeforeAgent": "prompt-submit",
        "SessionEnd": "session-end",
    },
    "kimi": {
        "SessionStart": "session-start",
        "PostCompact": "session-start",
        "UserPromptSubmit": "prompt-submit",
        "SessionEnd": "session-end",
    },
}
_TIMEOUT_S = {"session-start": 15, "prompt-submit": 10, "session-end": 3}
"""Seconds an agent waits for a hook, longer than the hook does."""
_PASSED_ON = ("MEMD_HOME", "MEMD_SOCKET", "MEMD_CONFIG")


@dataclass(frozen=True)
class Change:
    """A file of an agent's: `made` gives its text with memd, `undone` the text without; both raise ValueError.

    `holders` are the objects and lists that `made` makes where they are not there. `undone` is told which it made.
    """

    path: str
    made: Callable[[str], str]
    undone: Callable[[str, list[jsonc.Path]], str]
    holders: tuple[jsonc.Path, ...] = ()


def changes(agent: str, env: Mapping[str, str]) -> list[Change]:
    """The files of an agent that change, in the order they are shown."""
    home = os.path.join(user_home(env), ".cursor") if agent == "cursor" else entry.directory(agent, env)
    match agent:
        case "claude":
            return [_json(agent, os.path.join(home, "settings.json"), env, hooks=True, permission=True),
                    _json(agent, entry.claude_json(env), env, server=True)]  # fmt: skip
        case "codex":
            return [_toml(agent, os.path.join(home, "config.toml"), env, server=True),
                    _json(agent, os.path.join(home, "hooks.json"), env, hooks=True)]  # fmt: skip
        case "gemini":
            return [_json(agent, os.path.join(home, "settings.json"), env, hooks=True, server=True)]
        case "kimi":
            return [_json(agent, os.path.join(home, "mcp.json"), env, server=True),
                    _toml(agent, os.path.join(home, "config.toml"), env, hooks=True)]  # fmt: skip
    return [_json(agent, os.path.join(home, "mcp.json"), env, server=True)]


def memctl(env: Mapping[str, str]) -> str:
    """The path by which an agent calls memctl, whatever its PATH is."""
    typed = sys.argv[0]
    if os.path.basename(typed) == "memctl" and os.path.isfile(typed):
        return os.path.abspath(typed)
    beside = os.path.join(os.path.dirname(sys.executable), "memctl")
    return beside if os.path.isfile(beside) else shutil.which("memctl", path=env.get("PATH")) or "memctl"


def server(agent: str, env: Mapping[str, str]) -> dict[str, object]:
    """The entry that starts memd's MCP server."""
    passed = {name: env[name] for name in _PASSED_ON if env.get(name)}
    made: dict[str, object] = {"type": "stdio"} if agent == "claude" else {}
    made |= {"command": memctl(env), "args": ["mcp"]}
    return made | {"env": passed} if passed else made


def _command(agent: str, event: str, env: Mapping[str, str]) -> str:
    return f"{shlex.quote(memctl(env))} hook {agent} {event}"


def _json(agent: str, path: str, env: Mapping[str, str], **parts: bool) -> Change:
    """The change of a JSON file that gets these parts: `hooks`, `permission`, `server`."""
    hooks: list[jsonc.Path] = [("hooks", name) for name in _HOOKS[agent]] if parts.get("hooks") else []
    allowed: jsonc.Path = ("permissions", "allow")

    def made(text: str) -> str:
        text = text if text.strip() else "{}\n"
        for where in hooks:
            if not _is_hooked(jsonc.at(text, where), agent):
                text = jsonc.with_item(text, where, _group(agent, _HOOKS[agent][where[1]], env))
        if parts.get("permission") and not _holds(jsonc.at(text, allowed), PERMISSION):
            text = jsonc.with_item(text, allowed, PERMISSION)
        if parts.get("server") and jsonc.at(text, ("mcpServers", "memd")) is None:
            text = jsonc.with_member(text, ("mcpServers",), "memd", _server(agent, env))
        return text

    def undone(text: str, holders: list[jsonc.Path]) -> str:
        for where in hooks:
            text = _without_items(text, where, lambda item: _is_ours(item, agent))
        if parts.get("permission"):
            text = _without_items(text, allowed, lambda item: item == PERMISSION)
        found = jsonc.at(text, ("mcpServers", "memd")) if parts.get("server") else None
        text = text if found is None else jsonc.without(text, ("mcpServers",), found)
        for holder in sorted(holders, key=len, reverse=True):
            node = jsonc.at(text, holder)
            if node is not None and not node.inner:
                text = jsonc.without(text, holder[:-1], node)
        return text

    holders: list[jsonc.Path] = [("mcpServers",)] if parts.get("server") else []
    holders += [("permissions",), allowed] if parts.get("permission") else []
    holders += [("hooks",), *hooks] if hooks else []
    return Change(path, made, undone, tuple(holders))


_server = server


def _group(agent: str, event: str, env: Mapping[str, str]) -> dict[str, object]:
    seconds = _TIMEOUT_S[event]
    timeout = seconds * 1000 if agent == "gemini" else seconds
    hook: dict[str, object] = {"name": f"memd-{event}"} if agent == "gemini" else {}
    return {"hooks": [hook | {"type": "command", "command": _command(agent, event, env), "timeout": timeout}]}


def _is_ours(group: object, agent: str) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    commands = [each.get("command") for each in hooks if isinstance(each, dict)] if isinstance(hooks, list) else []
    return any(isinstance(one, str) and "memctl" in one and f" hook {agent} " in one for one in commands)


def _is_hooked(node: jsonc.Node | None, agent: str) -> bool:
    return node is not None and any(_is_ours(jsonc.plain(each), agent) for each in node.inner)


def _without_items(text: str, path: jsonc.Path, is_ours: Callable[[object], bool]) -> str:
    node = jsonc.at(text, path)
    for item in reversed(node.inner if node is not None and node.kind == "array" else []):
        if is_ours(jsonc.plain(item)):
            text = jsonc.without(text, path, item)
    return text


def _holds(node: jsonc.Node | None, item: str) -> bool:
    return node is not None and any(each.value == item for each in node.inner)


def _toml(agent: str, path: str, env: Mapping[str, str], *, hooks: bool = False, server: bool = False) -> Change:
    def made(text: str) -> str:
        given = toml.read(text)
        part = ""
        servers = given.get("mcp_servers")
        if server and not (isinstance(servers, dict) and "memd" in servers):
            part += _table(_server(agent, env))
        if hooks and f" hook {agent} " not in text:
            part += "".join(_hook_table(agent, name, event, env) for name, event in _HOOKS[agent].items())
        return toml.with_part(text, part) if part else text

    return Change(path, made, lambda text, _holders: toml.without_part(text))


def _table(made: dict[str, object]) -> str:
    lines = ["[mcp_servers.memd]"]
    for name, value in made.items():
        if isinstance(value, dict):
            inner = ", ".join(f"{key} = {json.dumps(each)}" for key, each in value.items())
            lines.append(f"{name} = {{ {inner} }}")
        else:
            lines.append(f"{name} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _hook_table(agent: str, name: str, event: str, env: Mapping[str, str]) -> str:
    command = json.dumps(_command(agent, event, env))
    return f'[[hooks]]\nevent = "{name}"\ncommand = {command}\ntimeout = {_TIMEOUT_S[event]}\n'
