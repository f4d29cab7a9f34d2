"""Renames by which nothing is overwritten. Law: what stood at a path is somewhere afterwards, whoever put it there.

Linux and macOS have a call for each; where there is none, or a file system does not know it, that is said, and the
caller does with a plain rename.
"""

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

_DARWIN = sys.platform == "darwin"
_SWAP, _NEW = (2, 4) if _DARWIN else (2, 1)
_AT_CWD = -100
_UNKNOWN = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


def swap(one: Path, other: Path) -> bool:
    """Have two files change places, in one step; False where the system cannot. Errors: OSError."""
    return _rename(one, other, _SWAP)


def rename_new(source: Path, path: Path) -> bool:
    """Rename to a path at which nothing stands; False where the system cannot. Errors: FileExistsError, OSError."""
    return _rename(source, path, _NEW)


def _rename(source: Path, path: Path, flags: int) -> bool:
    call = _call()
    if call is None:
        return False
    if call(os.fsencode(source), os.fsencode(path), flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNKNOWN:
        return False
    raise OSError(number, os.strerror(number), str(path))


@cache
def _call() -> Callable[[bytes, bytes, int], int] | None:
    """The system's call; None where it has none."""
    library = ctypes.CDLL(None, use_errno=True)
    try:
        function = library.renamex_np if _DARWIN else library.renameat2
    except AttributeError:
        return None
    if _DARWIN:
        function.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint)
        return lambda source, path, flags: int(function(source, path, flags))
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return lambda source, path, flags: int(function(_AT_CWD, source, _AT_CWD, path, flags))
