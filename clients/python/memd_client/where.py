"""Where memd's things are. Law: this module alone decides, for the daemon and for every client (SPEC 1).

Every function reads the environment it is given (this process's by default) at the call, touches no file but
the runtime directory it looks at, and makes nothing.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping

from memd_client.errors import BadPlace, SocketPathTooLong

SOCKET_PATH_LIMIT = 107 if sys.platform == "linux" else 103
"""The longest socket path in bytes: what fits the address structure with its last NUL."""

RUN_USER = "/run/user"


def home(env: Mapping[str, str] = os.environ) -> str:
    """The absolute path of memd's home; nothing says that it exists.

    Raises `BadPlace` when `MEMD_HOME` is not absolute or nobody knows the user's home. SPEC 1.
    """
    given = _given(env, "MEMD_HOME")
    if given is not None:
        return given
    data = _xdg(env, "XDG_DATA_HOME")
    return os.path.join(data or os.path.join(user_home(env), ".local/share"), "memd")


def config_path(env: Mapping[str, str] = os.environ) -> str:
    """The absolute path of the config file. Raises `BadPlace` as `home` does. SPEC 1."""
    given = _given(env, "MEMD_CONFIG")
    if given is not None:
        return given
    config = _xdg(env, "XDG_CONFIG_HOME")
    return os.path.join(config or os.path.join(user_home(env), ".config"), "memd", "config.toml")


def socket_path(env: Mapping[str, str] = os.environ) -> str:
    """The absolute path of the daemon's socket.

    Raises `BadPlace` as `home` does, `SocketPathTooLong` past `SOCKET_PATH_LIMIT` bytes. SPEC 1.
    """
    path = _given(env, "MEMD_SOCKET") or _default_socket(env)
    length = len(os.fsencode(path))
    if length > SOCKET_PATH_LIMIT:
        raise SocketPathTooLong(path, length, SOCKET_PATH_LIMIT)
    return path


def log_path(env: Mapping[str, str] = os.environ) -> str:
    """The file that takes the output of a daemon a client started. SPEC 1."""
    return os.path.join(home(env), "memd.log")


def start_lock_path(env: Mapping[str, str] = os.environ) -> str:
    """The file whose lock a client holds while it starts the daemon. SPEC 1."""
    return os.path.join(home(env), ".start.lock")


def home_id(env: Mapping[str, str] = os.environ) -> str:
    """What `daemon.hello` answers as `home`: 16 hex digits of the sha256 of the home's real path. SPEC 7."""
    import hashlib  # 4 ms of OpenSSL, wanted only by those who compare homes

    return hashlib.sha256(os.fsencode(os.path.realpath(home(env)))).hexdigest()[:16]


def runtime_directory(env: Mapping[str, str] = os.environ) -> str | None:
    """The user's runtime directory while it exists, is ours and is closed to others, else None. SPEC 1."""
    for directory in (_xdg(env, "XDG_RUNTIME_DIR"), os.path.join(RUN_USER, str(os.getuid()))):
        if directory is not None and _is_ours_alone(directory):
            return directory
    return None


def user_home(env: Mapping[str, str] = os.environ) -> str:
    """The user's own home directory. Raises `BadPlace` when neither `HOME` nor the user database has it."""
    value = env.get("HOME", "")
    if os.path.isabs(value):
        return _without_last_slash(value)
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise BadPlace("HOME is not set and this user has no entry; set MEMD_HOME") from None


def _default_socket(env: Mapping[str, str]) -> str:
    runtime = None if env.get("MEMD_HOME") else runtime_directory(env)
    if runtime is not None:
        return os.path.join(runtime, "memd", "memd.sock")
    return os.path.join(home(env), "run", "memd.sock")


def _is_ours_alone(directory: str) -> bool:
    """Whether it is a directory itself (a link could be turned elsewhere), ours, and closed to others."""
    try:
        status = os.lstat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) & 0o077 == 0


def _given(env: Mapping[str, str], variable: str) -> str | None:
    """What one of memd's own variables says, `~` expanded; None when it is unset or empty.

    A relative path is an error: the daemon works in `/`, so the two sides would not mean the same place.
    """
    value = env.get(variable)
    if not value:
        return None
    path = _expanded(env, value)
    if not os.path.isabs(path):
        raise BadPlace(f"{variable} must be an absolute path (or begin with ~/), not {value!r}")
    return _without_last_slash(path)


def _expanded(env: Mapping[str, str], path: str) -> str:
    first, slash, rest = path.partition("/")
    if first == "~":
        return user_home(env) + slash + rest
    return os.path.expanduser(path)  # `~name` is in the user database, whatever `env` says


def _xdg(env: Mapping[str, str], variable: str) -> str | None:
    """An XDG base directory; None when it is unset, empty or relative, as the XDG rules have it."""
    value = env.get(variable, "")
    return _without_last_slash(value) if os.path.isabs(value) else None


def _without_last_slash(path: str) -> str:
    """A link with a slash after it would be followed by `lstat`; one path has one spelling."""
    return path.rstrip("/") or "/"
