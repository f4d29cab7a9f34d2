"""The process. Law: one daemon a home; it serves only while it holds the home's lock, and it always ends.

One task group: the listener, the signals, the minute's look around. Any of them that fails ends the daemon, and
says so; a connection never does. What is logged is the daemon's own words and the types and places of
exceptions: their texts may hold a note's. SPEC section 15.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import anyio

import memd
import memd_client
from memd import config as configs
from memd import paths
from memd.config import Config
from memd.fs import Disk, LockTimeoutError
from memd.live import Library
from memd.rpc import Dispatcher, trace
from memd.server import Listener, Server, SocketTakenError, listen
from memd.verbs import VERBS, Call

LOOK_S = 55.0
"""Seconds between two looks at the stores and at the socket's file, each promised within a minute."""
EXIT_S = 1.5
"""Seconds after a stop when the process goes whatever still runs; by then nothing unacknowledged is awaited."""

_SERVED = 0
_FAILED = 1
_USAGE = 2

_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}
_log = logging.getLogger(__name__)


class AlreadyServedError(Exception):
    """Another daemon holds the home's lock; `pid` is what it wrote there, None when that does not read."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(pid)
        self.pid = pid


def start() -> int:
    """Run the daemon of this environment until it is told to stop; the exit status.

    0 after a stop, or when another instance serves this home; 2 when the environment names no usable place; 1
    for every failure. What it has to say goes to standard error.
    """
    os.umask(0o077)
    _log_to_stderr()
    try:
        home, path, config = paths.home(), paths.socket_path(), configs.load(paths.config_path())
    except memd_client.BadPlace as error:
        _log.error("%s", error)
        return _USAGE
    logging.getLogger().setLevel(config.log_level.upper())
    try:
        with lifetime(home), listen(path) as listener:
            _log.info("memd %s serves %s at %s", memd.__version__, home, path)
            anyio.run(partial(run, home, config, listener, at_stop=_exit_later), backend="asyncio")
    except AlreadyServedError as error:
        _log.info("memd already serves %s: process %s", home, error.pid or "unknown")
    except SocketTakenError as error:
        _log.error("%s: %s", error, path)
        return _FAILED
    except OSError as error:
        _log.error("cannot serve %s: %s at %s", home, error.strerror, trace(error))
        return _FAILED
    except Exception as error:  # noqa: BLE001 - the last boundary: the log may not have the exception's text
        _log.critical("memd failed: %s", trace(error))
        return _FAILED
    return _SERVED


async def run(
    home: Path,
    config: Config,
    listener: Listener,
    *,
    at_stop: Callable[[], object] = lambda: None,
    heeds_signals: bool = True,
    look_s: float = LOOK_S,
) -> None:
    """Serve `home` on `listener` until it is told to stop, and close the listener.

    `at_stop` is called once when that happens. Signals are heard in the main thread only. Raises what a task
    of the daemon's own raised.
    """
    asyncio.get_running_loop().set_exception_handler(_report)
    library = Library(home, config)
    runtime = library.runtime
    for finding in config.findings:
        _log.warning("%s", finding)
    if config.findings:
        runtime.note("config", "; ".join(config.findings))

    def count(connections: int) -> None:
        runtime.connections = connections

    server = Server(listener, Dispatcher(VERBS, partial(Call, library)).answer, uid=os.geteuid(), count=count)
    async with anyio.create_task_group() as tasks:
        if heeds_signals:
            tasks.start_soon(_heed_signals, runtime.stop)
        tasks.start_soon(_look_around, library, listener, look_s)
        tasks.start_soon(_when_stopped, runtime.stop, at_stop)
        await server.serve(runtime.stop)
        tasks.cancel_scope.cancel()


@contextmanager
def lifetime(home: Path) -> Iterator[None]:
    """Hold the lock that makes this process the daemon of `home`, which is made, 0700, when it is not there.

    `AlreadyServedError` when another process holds it.
    """
    disk = Disk()
    disk.make_dirs(home)
    lock = home / ".daemon.lock"
    with ExitStack() as held:
        try:
            held.enter_context(disk.locked(lock, 0))
        except LockTimeoutError:
            raise AlreadyServedError(_pid_in(lock)) from None
        lock.write_text(f"{os.getpid()}\n")
        yield


def _pid_in(lock: Path) -> int | None:
    try:
        return int(lock.read_text())
    except (OSError, ValueError):
        return None


# -- tasks ---------------------------------------------------------------------------------------------------


async def _heed_signals(stop: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            _log.info("%s: finishing", signal.Signals(number).name)
            stop.set()


async def _look_around(library: Library, listener: Listener, look_s: float) -> None:
    """Rescan the stores; stop once nobody can reach this daemon any more."""
    while True:
        await anyio.sleep(look_s)
        if not listener.is_reachable():
            _log.warning("the socket's file was removed or replaced: finishing")
            library.runtime.stop.set()
        await library.rescan()


async def _when_stopped(stop: anyio.Event, at_stop: Callable[[], object]) -> None:
    await stop.wait()
    at_stop()


def _exit_later() -> None:
    """End the process in `EXIT_S` seconds if it has not ended by itself.

    A worker thread that hangs in a system call can neither be cancelled nor left behind otherwise. What it was
    writing was not acknowledged, and the store opens after it as after a crash.
    """
    timer = threading.Timer(EXIT_S, _exit_now)
    timer.daemon = True
    timer.start()


def _exit_now() -> None:
    _log.error("a write does not end: exiting without it")
    logging.shutdown()
    os._exit(_FAILED)


# -- the log -------------------------------------------------------------------------------------------------


class LogLine(logging.Formatter):
    """One record, one line, its priority in front as the service manager reads it; no exception's text."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1]:
            text += f": {trace(record.exc_info[1])}"
        return f"<{_PRIORITIES.get(record.levelno, 5)}>{' '.join(text.splitlines())}"


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLine())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)


def _report(_loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
    """What asyncio has to say of a callback that failed; its own words hold the exception's text."""
    error = context.get("exception")
    _log.error("the event loop met %s", trace(error) if isinstance(error, BaseException) else "a trouble")
