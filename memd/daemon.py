"""The process. Law: one daemon a home; it serves only while it holds the home's lock, and it always ends.

One task group: the listener, the watcher, the signals. Any of them that fails ends the daemon, and
says so; a connection never does. What is logged is the daemon's own words and the types and places of
exceptions: their texts may hold a note's. SPEC section 15.
"""

import asyncio
import faulthandler
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

import memd
import memd_client
from memd import config as configs
from memd import heap, inherited, log, paths, systemd
from memd.config import Config
from memd.lifetime import AlreadyServedError, Lease, NotHandedOverError, lifetime
from memd.live import Library
from memd.rpc import Dispatcher, trace
from memd.server import Listener, Server, SocketTakenError, is_answered, listen
from memd.systemd import HandedOverError, Reports
from memd.verbs import VERBS, Call
from memd.watcher import Watcher

LOOK_S = 55.0
"""Seconds between two looks at the stores, and at the socket's file, each promised within a minute."""
EXIT_S = 1.5
"""Seconds after a stop when the process goes whatever still runs; by then nothing unacknowledged is awaited."""
THREADS = 16
"""Threads for what blocks: each store has one at a time, so that so many can wait for other programs' locks. One
interpreter does not go faster with more, and each keeps memory of its own for good (40 of them: a fifth more in all).
"""

_SERVED = 0
_FAILED = 1
_USAGE = 2

_log = logging.getLogger(__name__)


def start() -> int:
    """Run the daemon of this environment until it is told to stop; the exit status.

    0 after a stop, or when another instance serves this home; 2 when the environment names no usable place; 1
    for every failure. What it has to say goes to standard error.
    """
    os.umask(0o077)
    inherited.put_aside()
    heap.keep_small()
    handler = log.to_stderr()
    faulthandler.enable(log.STDERR)  # a watchdog's SIGABRT shows where it hung: names of places, no values
    reports = systemd.reports(os.environ)
    try:
        sock = systemd.handed_over(os.environ)
        systemd.forget(os.environ)
        home, path, config_path = paths.home(), paths.socket_path(), paths.config_path()
    except (memd_client.BadPlace, HandedOverError) as error:
        _log.error("%s", error)
        return _USAGE
    handler.keep_short(paths.log_path())
    config = configs.load(config_path)
    logging.getLogger().setLevel(config.log_level.upper())
    try:
        lock = lifetime(home, is_answered=partial(is_answered, path), takes_over=sock is not None)
        with lock as lease, _listener(sock, path) as listener:
            _log.info("memd %s serves %s at %s", memd.__version__, home, listener.path)
            serve = partial(
                run,
                home,
                config,
                listener,
                at_stop=_exit_later,
                lease=lease,
                reports=reports,
                read_config=partial(configs.load, config_path),
            )
            anyio.run(serve, backend="asyncio")
    except NotHandedOverError as error:
        _log.error("process %s holds %s and does not finish; end it", error.pid or "unknown", home)
        return _FAILED
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


def _listener(sock: socket.socket | None, path: Path) -> Listener:
    """The listener on a socket that was handed over, else one of our own at `path`."""
    return listen(path) if sock is None else Listener(sock, owned=False)


async def run(
    home: Path,
    config: Config,
    listener: Listener,
    *,
    at_stop: Callable[[], object] = lambda: None,
    heeds_signals: bool = True,
    look_s: float = LOOK_S,
    lease: Lease | None = None,
    reports: Reports | None = None,
    read_config: Callable[[], Config] = Config,
) -> None:
    """Serve `home` on `listener` until it is told to stop, and close the listener.

    `at_stop` is called once when that happens. Signals are heard in the main thread only; SIGHUP takes what
    `read_config` gives. It ends when `lease` does not hold any more. Raises what a task of the daemon's own raised.
    """
    asyncio.get_running_loop().set_exception_handler(_report)
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    library = Library(home, config)
    runtime = library.runtime
    reports = reports or Reports()
    _take(library, config)

    def count(connections: int) -> None:
        runtime.connections = connections

    server = Server(listener, Dispatcher(VERBS, partial(Call, library)).answer, uid=os.geteuid(), count=count)
    async with anyio.create_task_group() as tasks:
        if heeds_signals:
            await tasks.start(_heed_signals, library, reports, read_config)
        tasks.start_soon(_look_around, runtime.stop, listener, lease, look_s)
        tasks.start_soon(Watcher(library, look_s).run)
        tasks.start_soon(library.history.serve)
        tasks.start_soon(_when_stopped, runtime.stop, at_stop, reports)
        if reports.watchdog_s is not None:
            tasks.start_soon(_show_life, library, reports, reports.watchdog_s / 2)
        reports.ready(_state(library))
        await server.serve(runtime.stop)
        tasks.cancel_scope.cancel()


# -- tasks ---------------------------------------------------------------------------------------------------


async def _heed_signals(
    library: Library, reports: Reports, read_config: Callable[[], Config], *, task_status: TaskStatus[None]
) -> None:
    """Do what signals ask for. However many ask for a reload, one more begins once this one is done; an end waits
    for none.
    """
    asked = asyncio.Event()

    async def reload() -> None:
        while True:
            await asked.wait()
            asked.clear()
            reports.reloading()
            _take(library, await anyio.to_thread.run_sync(read_config))
            _log.info("the config was read again")
            reports.ready(_state(library))

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reload)
            task_status.started()
            async for number in signals:
                if number == signal.SIGHUP:
                    asked.set()
                else:
                    _log.info("%s: finishing", signal.Signals(number).name)
                    library.runtime.stop.set()


def _take(library: Library, config: Config) -> None:
    """Let a config count from now on, and say what is wrong with it."""
    library.reconfigure(config)
    for finding in config.findings:
        _log.warning("%s", finding)
    logging.getLogger().setLevel(library.config.log_level.upper())


async def _look_around(stop: anyio.Event, listener: Listener, lease: Lease | None, look_s: float) -> None:
    """Stop once nobody can reach this daemon any more, or another may serve its home."""
    while True:
        await anyio.sleep(look_s)
        if not listener.is_reachable():
            _log.warning("the socket's file was removed or replaced: finishing")
            stop.set()
        if lease is not None and not lease.is_held():
            _log.warning("the home's lock was removed or replaced: finishing")
            stop.set()


async def _show_life(library: Library, reports: Reports, pause_s: float) -> None:
    """Tell the watchdog that the event loop turns."""
    while True:
        reports.alive(_state(library))
        await anyio.sleep(pause_s)


def _state(library: Library) -> str:
    """What a person sees of the daemon at the service manager's: counts, and the kinds of what is wrong."""
    runtime = library.runtime
    said = f"{library.store_count} stores, {runtime.connections} connections"
    return said + "".join(f", see memctl status: {kind}" for kind in sorted(runtime.findings))


async def _when_stopped(stop: anyio.Event, at_stop: Callable[[], object], reports: Reports) -> None:
    await stop.wait()
    reports.stopping("finishing")
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


def _report(_loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
    """What asyncio has to say of a callback that failed; its own words hold the exception's text."""
    error = context.get("exception")
    _log.error("the event loop met %s", trace(error) if isinstance(error, BaseException) else "a trouble")
