"""The files around the daemon: the socket's path, the home, who may read it, the config. Law: no daemon is needed.

SPEC sections 1 and 15.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

import memd_client
from memd.memctl.ward.finding import Finding
from memd_client.errors import BadPlace

SHOWN = 3
"""Paths named in one finding; more are counted."""


def look() -> Iterator[Finding]:
    """What is wrong with the places."""
    try:
        home = memd_client.home()
        memd_client.socket_path()
    except BadPlace as error:
        yield Finding("socket", error.message, "set MEMD_SOCKET to a short absolute path, or mend the variable named")
        return
    yield from _home(home)
    yield from _config(memd_client.config_path())


def _home(home: str) -> Iterator[Finding]:
    try:
        status = os.lstat(home)
    except FileNotFoundError:
        return  # the first start makes it
    except OSError as error:
        yield Finding("home", f"{home}: {error.strerror}", "make the directory above it readable")
        return
    if stat.S_ISLNK(status.st_mode):
        status = os.stat(home)  # noqa: PTH116 - pathlib costs 6 ms, a third of a run
    if not stat.S_ISDIR(status.st_mode):
        yield Finding("home", f"{home} is no directory", "move it away, or set MEMD_HOME")
        return
    if status.st_uid != os.geteuid():
        yield Finding("home", f"{home} belongs to another user", f"chown -R {os.geteuid()} {home}, or set MEMD_HOME")
        return
    if not os.access(home, os.W_OK | os.X_OK):
        yield Finding("home", f"{home} cannot be written to", "make it writable, or set MEMD_HOME to another place")
    open_ = list(_open_to_others(home))
    if open_:
        yield Finding(
            "permissions",
            f"others may read or write {_listed(open_)}",
            f"chmod -R go= {home}",
            mend=lambda: _close(open_),
        )


def _open_to_others(home: str) -> Iterator[str]:
    """What others may do something with, symlinks not followed. Below a home that is closed they get to nothing,
    and an editor writes as it is used to.
    """
    if not os.stat(home).st_mode & 0o077:  # noqa: PTH116 - as above
        return
    yield home
    for directory, directories, files in os.walk(home):
        for name in (*directories, *files):
            path = f"{directory}/{name}"
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                continue
            if not stat.S_ISLNK(mode) and mode & 0o077:
                yield path


def _close(paths: list[str]) -> None:
    """Leave to ourselves what we may do with them, and nothing to others."""
    for path in paths:
        os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) & 0o700)  # noqa: PTH101 - as above


def _config(path: str) -> Iterator[Finding]:
    """What keeps the config from being read at all; what is wrong in it, a daemon says."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            raw = file.read(1 << 20)
    except FileNotFoundError:
        return
    except OSError as error:
        yield Finding("config", f"{path}: {error.strerror}", "make it a file that you may read, or remove it")
        return
    import tomllib  # a config is rare

    try:
        tomllib.loads(raw.decode())
    except ValueError as error:
        yield Finding("config", f"{path} does not parse: {error}", "mend that line; until then defaults count")


def _listed(paths: list[str]) -> str:
    shown = ", ".join(paths[:SHOWN])
    return shown if len(paths) <= SHOWN else f"{shown} and {len(paths) - SHOWN} more"
