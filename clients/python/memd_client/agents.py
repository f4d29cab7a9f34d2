"""Which agent a process belongs to. Law: a hint beside the daemon's files, written by a hook; a wrong one is worse
than none.

An agent starts its hooks and its MCP servers, as a rule through a shell. So both find it as the nearest of their
ancestors that is no shell; the hook notes there which session that process runs, and `memctl mcp` works in it. A note
is known by the process's number and start time, so that a number used again means nobody. SPEC 13.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from memd_client.where import home

_SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
_DEEPEST = 8
"""Shells that may stand between an agent and what it starts."""
_KEPT = 64
"""Notes of processes that are gone are looked for once there are so many."""


def note(session: str, env: Mapping[str, str] = os.environ) -> None:
    """Say that the agent which started this process runs `session` now. Does nothing where memd has no home yet."""
    name = _agent()
    if name is None or not os.path.isdir(home(env)):
        return
    directory = _directory(env)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    _let_go(directory)
    path = os.path.join(directory, name)
    staged = f"{path}.{os.getpid()}.tmp"
    with open(staged, "w", encoding="utf-8", opener=_private) as file:
        file.write(session)
    os.replace(staged, path)


def session(env: Mapping[str, str] = os.environ) -> str | None:
    """The session of the agent that started this process, as its hook noted it; None where nobody did."""
    name = _agent()
    if name is None:
        return None
    try:
        with open(os.path.join(_directory(env), name), encoding="utf-8") as file:
            return file.read(256) or None
    except (OSError, UnicodeDecodeError):
        return None


def forget(ended: str, env: Mapping[str, str] = os.environ) -> None:
    """Take the note away again, if it is of this session."""
    if session(env) == ended:
        os.unlink(os.path.join(_directory(env), _agent() or ""))


def _directory(env: Mapping[str, str]) -> str:
    return os.path.join(home(env), "cache", "agents")


def _agent() -> str | None:
    """The name of the note for the nearest ancestor that is no shell; None where there is none."""
    pid = os.getppid()
    for _ in range(_DEEPEST):
        if pid <= 1:
            return None
        found = _process(pid)
        if found is None:  # not Linux, or gone: only the parent itself is known
            return f"{pid}" if pid == os.getppid() and not os.path.isdir("/proc/self") else None
        name, parent, started = found
        if name not in _SHELLS:
            return f"{pid}-{started}"
        pid = parent
    return None


def _process(pid: int) -> tuple[str, int, str] | None:
    """A process's short name, its parent and when it started, as Linux tells; None where nobody tells."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode(errors="replace")
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return name, int(fields[1]), fields[19]


def _let_go(directory: str) -> None:
    """Remove the notes of processes that are gone, once there are many."""
    names = os.listdir(directory)
    if len(names) < _KEPT:
        return
    for name in names:
        pid = name.partition("-")[0]
        if pid.isdecimal() and not _is_there(int(pid)):
            os.unlink(os.path.join(directory, name))


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
