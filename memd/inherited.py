"""What a process has of its starter. Law: who starts the daemon does not decide how it runs.

A client starts it from inside anything: with signals blocked that end a daemon, with few descriptors, without
standard streams. Nothing of that may reach beyond the start. SPEC sections 13 and 15.
"""

import os
import resource
import signal
from contextlib import suppress

DESCRIPTORS = 4096
"""What a daemon that serves 256 connections and many stores may want, where the system lets it."""


def put_aside() -> None:
    """Hear every signal, have three standard streams, and as many descriptors as this user may have.

    A stream that was closed is the null device: the next file that is opened would stand in its place otherwise.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it takes the lowest that is free: this one
            os.set_inheritable(descriptor, True)
    _raise(resource.RLIMIT_NOFILE, DESCRIPTORS)


def _raise(limit: int, wanted: int) -> None:
    """Bring a soft limit up to what is wanted, as far as the hard one goes."""
    soft, hard = resource.getrlimit(limit)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # some systems have bounds of their own beside the hard one
            resource.setrlimit(limit, (most, hard))
