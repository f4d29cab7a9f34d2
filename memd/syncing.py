"""Many files made durable side by side. Law: whoever asks for it may compute meanwhile, and hears of any that failed.

A thread of Python that syncs has to get the interpreter back after each file, from another that may compute for 5 ms.
The C library has threads of its own for POSIX's asynchronous calls, which wait for the disk and for nothing else.
"""

import ctypes
import errno
import os
import platform
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import ClassVar, Final

THREADS: Final = 16
"""Syncs that wait for the disk at once: the slower it is, the more of them it does in one go. The threads end after a
second without work."""

_SIGEV_NONE: Final = 1


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
    if library is None:
        return None
    _used.set()
    return _Syncs(library, fds).wait


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


_used: Final = threading.Event()
_left_behind: Final = threading.Event()
"""The library's threads are those of a parent, which it does not know: it would wait for them for ever."""


def _after_fork() -> None:
    if _used.is_set():
        _left_behind.set()
        _library.cache_clear()


os.register_at_fork(after_in_child=_after_fork)


@cache
def _library() -> ctypes.CDLL | None:
    """The C library that has the calls; None where it is none whose structures are known."""
    if _left_behind.is_set() or platform.libc_ver()[0] != "glibc" or ctypes.sizeof(ctypes.c_void_p) * 8 != 64:
        return None
    for name in (None, "librt.so.1"):  # where they were before glibc 2.34
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(name)
            library.aio_init(ctypes.byref(_Options(threads=THREADS, requests=THREADS * 8, idle_s=1)))
            return library
    return None
