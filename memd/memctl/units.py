"""The units of systemd. Law: what is installed is the files of `systemd/`, this user's program and places put in.

Here is text only: nothing is read but those two files, nothing written, nobody asked. SPEC 15.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

MARK = "# Written by `memctl service install`"
"""How a unit of ours begins; one that begins otherwise is somebody else's."""

PASSED = ("MEMD_HOME", "MEMD_SOCKET", "MEMD_CONFIG", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR")
"""Variables that say where things are: the service gets those that whoever installs it has."""

SANDBOX = ("PrivateUsers", "ProtectSystem", "ProtectHome", "ReadWritePaths")
"""What needs namespaces of the user's own, which some systems refuse."""

_ACCEPTED = re.compile(r"""[^'"\\\x00-\x1f\x7f]+""")
_PLAIN = re.compile(r"[A-Za-z0-9_./@+=:,-]+")


def socket_unit(path: str, runtime: str | None) -> str:
    """The text of `memd.socket`, which listens at `path`; the runtime directory is written as systemd's `%t`."""
    inside = runtime is not None and path.startswith(f"{runtime}/")
    shown = f"%t{_specified(path[len(runtime or '') :])}" if inside else _specified(path)
    return _with(_template("memd.socket"), {"ListenStream": [shown]})


def service_unit(
    command: Sequence[str], writable: Iterable[str], env: Mapping[str, str], *, sandboxed: bool = True
) -> str:
    """The text of `memd.service`, which runs `command` and may write below `writable`, and nowhere else."""
    settings = {
        "ExecStart": [":" + " ".join(map(_quoted, _startable(command)))],  # the colon: a $ in a path is a $
        "ReadWritePaths": list(map(_quoted, writable)),
        "Environment": [_quoted(f"{name}={env[name]}") for name in PASSED if _counts(env, name)],
    }
    if not sandboxed:
        settings |= {name: [] for name in SANDBOX}
    return _with(_template("memd.service"), settings)


def _startable(command: Sequence[str]) -> list[str]:
    """The command with a program that systemd takes: of no other it wants a name without quotes and backslashes."""
    return list(command) if _ACCEPTED.fullmatch(command[0]) else ["/bin/sh", "-c", 'exec "$0" "$@"', *command]


def is_ours(text: str) -> bool:
    """Whether a unit's text is one that `memctl service install` wrote."""
    return text.startswith(MARK)


def _template(name: str) -> str:
    """A file of `systemd/`: in a wheel it lies beside this module, in the source tree at the top."""
    here = os.path.dirname(__file__)  # noqa: PTH120 - pathlib costs 6 ms, a third of a run
    for directory in ("systemd", "../../systemd"):
        path = f"{here}/{directory}/{name}"
        if os.path.isfile(path):  # noqa: PTH113 - as above
            with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as above
                return file.read()
    raise FileNotFoundError(f"memd was installed without its {name}")


def _with(text: str, settings: Mapping[str, Sequence[str]]) -> str:
    """The unit with each setting's line replaced by one for each value; no value, no line."""
    lines: list[str] = []
    for line in text.splitlines():
        name = line.partition("=")[0]
        lines += [f"{name}={value}" for value in settings[name]] if name in settings else [line]
    return "\n".join(lines) + "\n"


def _counts(env: Mapping[str, str], name: str) -> bool:
    """Whether a variable says something: an empty one does not, nor a relative one of XDG's."""
    value = env.get(name, "")
    return os.path.isabs(value) if name.startswith("XDG_") else bool(value)  # noqa: PTH117 - as above


def _specified(text: str) -> str:
    """A value in which systemd finds no specifier."""
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    """A word as systemd reads it back."""
    if _PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{_specified(escaped)}"'
