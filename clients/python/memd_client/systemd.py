"""The user's systemd, as far as memd's units are in it. Law: it is asked with `systemctl --user`, never waited for.

A unit counts only when its socket is the one that this environment's clients look for; another's is none of ours.
Imported when nobody answers, and by memctl where a person asks about the daemon itself. SPEC 13 and 15.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping

from memd_client.where import runtime_directory, user_home

SOCKET = "memd.socket"
SERVICE = "memd.service"

WAIT = 3.0
"""Seconds systemd may take for an answer that waits for no daemon."""

UNIT_DIRECTORIES = (
    "/etc/systemd/user",
    "/run/systemd/user",
    "/usr/local/lib/systemd/user",
    "/usr/lib/systemd/user",
)


def is_installed(env: Mapping[str, str], path: str) -> bool:
    """Whether a `memd.socket` of this user listens at `path`, or would if it were started."""
    unit = next(filter(os.path.isfile, _unit_files(env)), None)
    return unit is not None and path in listens_at(env, unit)


def is_idle(env: Mapping[str, str], path: str) -> bool:
    """Whether systemd listens at `path` and no daemon runs: whoever connects there starts one."""
    if not is_installed(env, path):
        return False
    states = ask(env, "is-active", SOCKET, SERVICE)
    return states is not None and states.split() in (["active", "inactive"], ["active", "failed"])


def do(env: Mapping[str, str], *words: str) -> bool:
    """Whether `systemctl --user` did what it was told."""
    ran = run(env, *words)
    return ran is not None and ran.returncode == 0


def ask(env: Mapping[str, str], *words: str) -> str | None:
    """What `systemctl --user` answers, None when there is none or it takes too long."""
    ran = run(env, *words)
    return None if ran is None else ran.stdout


def run(env: Mapping[str, str], *words: str, timeout: float | None = None) -> subprocess.CompletedProcess[str] | None:
    """`systemctl --user` run to its end; None when there is none, or it is not there in `timeout` seconds."""
    program = shutil.which("systemctl", path=env.get("PATH")) or "/usr/bin/systemctl"
    runtime = runtime_directory(env)  # systemctl finds its manager by this one variable, which cron and su leave out
    try:
        return subprocess.run(
            [program, "--user", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env={**env, "XDG_RUNTIME_DIR": runtime} if runtime else dict(env),
            timeout=WAIT if timeout is None else timeout,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def own_directory(env: Mapping[str, str]) -> str:
    """Where a user's own units are written."""
    return next(_own_directories(env))


def listens_at(env: Mapping[str, str], unit: str) -> list[str]:
    """The paths a socket unit listens at, what `%t`, `%h` and `%%` stand for put in."""
    with open(unit, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    meant = {"t": runtime_directory(env) or "", "h": user_home(env), "%": "%"}
    return [
        re.sub("%(.)", lambda found: meant.get(found[1], found[0]), value)
        for value in re.findall(r"^\s*ListenStream\s*=\s*(.*?)\s*$", text, re.MULTILINE)
    ]


def _unit_files(env: Mapping[str, str]) -> Iterator[str]:
    """Where a user's `memd.socket` may be, the user's own first."""
    for directory in (*_own_directories(env), *UNIT_DIRECTORIES):
        yield os.path.join(directory, SOCKET)


def _own_directories(env: Mapping[str, str]) -> Iterator[str]:
    user = user_home(env)
    for variable, default in (("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share")):
        base = env.get(variable, "")
        yield os.path.join(base if os.path.isabs(base) else os.path.join(user, default), "systemd/user")
