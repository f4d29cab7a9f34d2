"""Many files made durable side by side. Law: whoever asks for it may compute meanwhile, and hears of any that failed.

A thread of Python that syncs has to get the interpreter back after each file, from another that may compute for 5 ms.
GNU's C library has threads of its own for POSIX's asynchronous calls, which wait for the disk and for nothing else:
they are asked by `begin`. Where there are none, or little is to be synced, `side_by_side` has it done in Python.
"""

import ctypes
import errno
import os
import platform
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import ClassVar, Final, TypeVar

T = TypeVar("T")

SHARE: Final = 8
"""Syncs that a thread is worth: handing it over costs more than a few that were begun before."""
SYNCERS: Final = 4
"""Threads of Python that sync side by side."""
THREADS: Final = 16
"""Threads of the C library that do: the slower a disk is, the more it does in one go. They end after a second without
work."""

_SIGEV_NONE: Final = 1


def side_by_side(sync: Callable[[T], None], things: Sequence[T]) -> None:
    """Sync several things: this thread, and where there are many a few others, have a share each.

    A share ends at its first failure. Errors: the first share's that failed.
    """
    count = min(SYNCERS + 1, -(-len(things) // SHARE))
    shares = [things[first::count] for first in range(count)]
    others = [_syncers().submit(_sync_all, sync, share) for share in shares[1:]]
    try:
        for share in shares[:1]:
            _sync_all(sync, share)
    finally:
        errors = [other.exception() for other in others]
    for error in errors:
        if error is not None:
            raise error


def _sync_all(sync: Callable[[T], None], things: Sequence[T]) -> None:
    for thing in things:
        sync(thing)


@cache
def _syncers() -> ThreadPoolExecutor:
    """The threads that sync; made when there is first something to sync beside something else."""
    return ThreadPoolExecutor(SYNCERS, thread_name_prefix="sync")


# -- the C library's threads -------------------------------------------------------------------------------------


class _Event(ctypes.Structure):
    """`struct sigevent`."""

    _fields_: ClassVar = [
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("reserved", ctypes.c_char * 48),
    ]


class _Control(ctypes.Structure):
    """`struct aiocb` of GNU's C library where a pointer has 64 bits."""

    _fields_: ClassVar = [
        ("fd", ctypes.c_int),
        ("operation", ctypes.c_int),
        ("priority", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("event", _Event),
        ("own", ctypes.c_char * 32),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_char * 32),
    ]


class _Options(ctypes.Structure):
    """`struct aioinit`."""

    _fields_: ClassVar = [
        ("threads", ctypes.c_int),
        ("requests", ctypes.c_int),
        ("unused", ctypes.c_int * 4),
        ("idle_s", ctypes.c_int),
        ("reserved", ctypes.c_int),
    ]


def begin(fds: Sequence[int]) -> Callable[[], None] | None:
    """Begin to sync open files; what waits for all of them and has to be called before one is closed.

    None where the C library is another, or has no threads: nothing was begun then. What was begun raises the OSError
    of the first file that failed, after the others; none is tried again.
    """
    library = _library()
    return None if library is None else _Syncs(library, fds).wait


class _Syncs:
    """Syncs that have begun."""

    def __init__(self, library: ctypes.CDLL, fds: Sequence[int]) -> None:
        self._library = library
        self._controls = (_Control * len(fds))()
        self._begun: list[_Control] = []
        self._refused: list[int] = []
        for fd, control in zip(fds, self._controls, strict=True):
            control.fd = fd
            control.event.notify = _SIGEV_NONE
            if library.aio_fsync(os.O_SYNC, ctypes.byref(control)) == 0:
                self._begun.append(control)
            else:  # no room for one more
                self._refused.append(fd)

    def wait(self) -> None:
        """Wait for all. Errors: OSError, that of the first that failed."""
        errors = [number for number in map(self._error, self._begun) if number]
        for fd in self._refused:
            os.fsync(fd)
        if errors:
            raise OSError(errors[0], os.strerror(errors[0]))

    def _error(self, control: _Control) -> int:
        """The error number that a sync ended with, 0 for none."""
        waiting = (ctypes.c_void_p * 1)(ctypes.addressof(control))
        while (number := self._library.aio_error(ctypes.byref(control))) == errno.EINPROGRESS:
            self._library.aio_suspend(waiting, 1, None)  # a signal may end it: it is asked again
        return int(number)


@cache
def _library() -> ctypes.CDLL | None:
    """The C library that has the calls, made ready for them; None where it is none whose structures are known."""
    if _left_behind.is_set() or platform.libc_ver()[0] != "glibc" or ctypes.sizeof(ctypes.c_void_p) * 8 != 64:
        return None
    for name in (None, "librt.so.1"):  # where they were before glibc 2.34
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(name)
            library.aio_init(ctypes.byref(_Options(threads=THREADS, requests=THREADS * 8, idle_s=1)))
            return library
    return None


_left_behind: Final = threading.Event()
"""The library's threads are those of a parent, which it does not know: it would wait for them for ever."""


def _after_fork() -> None:
    """Count on no thread of the parent's in its child."""
    _syncers.cache_clear()
    if _library.cache_info().currsize:  # the parent may have used it
        _left_behind.set()
        _library.cache_clear()


os.register_at_fork(after_in_child=_after_fork)
