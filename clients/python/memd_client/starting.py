"""Starting the daemon. Law: one client starts it, the others wait, and it holds nothing of the client's.

Imported when nobody answers. Under the start lock: look again, start `memd.socket` by systemd where it is
installed for our socket, else spawn the daemon detached; then wait for it to answer. SPEC 13, "Autostart".
"""

from __future__ import annotations

import fcntl
import importlib.machinery
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from memd_client import systemd
from memd_client.errors import Unavailable
from memd_client.where import home, log_path, start_lock_path
from memd_client.wire import POLL, Wire, knock

WAIT = 3.0
"""Seconds a started daemon may take to answer."""
TURN_WAIT = 2 * WAIT
"""Seconds to wait for another client that starts it: as long as systemd and a daemon may take together."""

LOG_LIMIT = 512 * 1024
"""A log longer than this is cut before a start, so that a run of the daemon has as much again under 1 MiB."""
LOG_KEPT = 256 * 1024

OF_OUR_UNIT = frozenset(
    {"LISTEN_FDNAMES", "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"}
)
"""Variables by which a service manager speaks to this process; a daemon must not answer in its name."""


def start(env: Mapping[str, str], path: str, command: Sequence[str] | None = None) -> Wire:
    """A wire to the daemon at `path`, started by `command` if nobody else starts it first.

    Raises `Unavailable`, saying why and where its log is. Leaves no descriptor, child or zombie behind.
    """
    try:
        make_private(home(env))
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        lock = _open_private(start_lock_path(env), flags)
        try:
            return _start_in_turn(env, path, lock, command)
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # a process forked meanwhile holds the descriptor too
            os.close(lock)
    except OSError as error:
        raise Unavailable(f"no memd answers at {path} and starting it failed: {error}") from error


def make_private(directory: str) -> None:
    """Make a directory and what is missing above it, each 0700."""
    if os.path.isdir(directory):
        return
    make_private(os.path.dirname(directory))
    try:
        os.mkdir(directory, 0o700)
        os.chmod(directory, 0o700)  # a umask may have taken more from it than it gives to others
    except FileExistsError:
        if not os.path.isdir(directory):
            raise


def trim_log(descriptor: int) -> None:
    """Cut a log over `LOG_LIMIT` bytes to its last whole lines within `LOG_KEPT`, in place.

    `descriptor` is open for reading and in append mode; others may have it open so, too.
    """
    size = os.fstat(descriptor).st_size
    if size <= LOG_LIMIT:
        return
    tail = os.pread(descriptor, LOG_KEPT, size - LOG_KEPT)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, tail[tail.find(b"\n") + 1 :])


def find_command(env: Mapping[str, str]) -> list[str]:
    """The command that runs the daemon: this Python's memd, else the one on PATH. Raises `Unavailable`."""
    if sys.executable and _is_memd_installed():
        return [sys.executable, "-P", "-m", "memd"]  # -P: the daemon's directory is /, not a place of modules
    script = shutil.which("memd", path=env.get("PATH"))
    if script is None:
        raise Unavailable(
            "no memd answers and none is installed: neither this Python nor PATH has it; `pip install memd`"
        )
    return [os.path.abspath(script)]


def _start_in_turn(env: Mapping[str, str], path: str, lock: int, command: Sequence[str] | None) -> Wire:
    wire = _answer_or_turn(path, lock)
    if wire is None:
        wire = _answer_by_systemd(env, path)
    if wire is None:
        _spawn(env, find_command(env) if command is None else command)
        wire = _wait_for_answer(path)
    if wire is None:
        raise Unavailable(_why(env, path))
    return wire


def _why(env: Mapping[str, str], path: str) -> str:
    """What keeps a daemon that was started from answering, as far as it shows."""
    if os.path.lexists(path) and not stat.S_ISSOCK(os.lstat(path).st_mode):
        return f"no memd can answer at {path}: what is there is no socket; move it away"
    pid = holder(home(env))
    if pid is not None:
        return (
            f"memd serves {home(env)} (process {pid}) and does not answer at {path}: it has another MEMD_SOCKET,"
            f" or its socket's file was removed, and then it ends within a minute; end it to go on now"
        )
    return f"memd was started but does not answer at {path} after {WAIT:g} s; its log should say why: {log_path(env)}"


def holder(directory: str) -> str | None:
    """The process that a home's lifetime lock names, None where nobody holds it."""
    try:
        lock = os.open(os.path.join(directory, ".daemon.lock"), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(lock, 20).decode(errors="replace").strip() or "unknown"
    finally:
        os.close(lock)
    return None


def _answer(path: str) -> Wire | None:
    try:
        return knock(path)
    except (FileNotFoundError, ConnectionRefusedError):
        return None


def _wait_for_answer(path: str) -> Wire | None:
    deadline = time.monotonic() + WAIT
    while (wire := _answer(path)) is None and time.monotonic() < deadline:
        time.sleep(POLL)
    return wire


def _answer_or_turn(path: str, lock: int) -> Wire | None:
    """A wire when somebody answers; None when nobody does and the start lock is ours."""
    deadline = time.monotonic() + TURN_WAIT
    while True:
        is_our_turn = _try_lock(lock)
        wire = _answer(path)
        if wire is not None or is_our_turn:
            return wire
        if time.monotonic() > deadline:
            raise Unavailable(f"another client is starting memd, and nobody answers at {path} yet")
        time.sleep(POLL)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _spawn(env: Mapping[str, str], command: Sequence[str]) -> None:
    """Run `command` detached: a session of its own, nobody's child, our log for its output.

    The shell in between ends at once, so that the daemon belongs to init and never becomes a zombie of a
    long-lived client, which would look alive to whoever asks for its pid.
    """
    log = _open_private(log_path(env), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
    try:
        trim_log(log)
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={name: value for name, value in env.items() if name not in OF_OUR_UNIT},
            start_new_session=True,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"starting memd failed: {error}") from error
    finally:
        os.close(log)


def _is_memd_installed() -> bool:
    """Whether a Python started elsewhere finds memd as we do: the current directory does not count."""
    places = [place for place in sys.path if os.path.isabs(place)]
    spec = importlib.machinery.PathFinder.find_spec("memd", places)
    return spec is not None and spec.origin is not None


def _answer_by_systemd(env: Mapping[str, str], path: str) -> Wire | None:
    """A wire to what systemd has at `path`; None where it has no `memd.socket` for it, or that does not come up."""
    if not systemd.is_installed(env, path) or not systemd.do(env, "start", systemd.SOCKET):
        return None
    # A unit that was up stays as it is, also when its file has been removed under it.
    return _answer(path) or (_answer(path) if systemd.do(env, "restart", systemd.SOCKET) else None)


def _open_private(path: str, flags: int) -> int:
    """A descriptor of a file that is 0600, whatever the umask is and whoever made it before."""
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor
