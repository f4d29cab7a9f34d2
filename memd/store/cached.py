"""One decoded file of a store, as it is and as a plan leaves it. Law: corrupt is never read as empty.

MEMORY.md and usage.json are read again when they may have changed, and never overwritten when they have (SPEC
section 4).
"""

import errno
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from memd.errors import Unreadable
from memd.fs import Disk, Stamp


class Encodes(Protocol):
    """What a file can hold."""

    def encode(self) -> bytes: ...


T = TypeVar("T", bound=Encodes)

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What an open fails with when the process or the machine has run out of something."""


class Cached(Generic[T]):
    """One decoded file, read again when its stamp says that it changed, or is too young to say."""

    def __init__(self, disk: Disk, path: Path, decode: Callable[[bytes], T], empty: Callable[[], T]) -> None:
        self.disk, self.path, self.decode, self.empty = disk, path, decode, empty
        self._known: tuple[bytes, T] | None = None
        self._stamp: Stamp | None = None
        self._settled = False
        self._untold = False

    def get(self) -> T:
        """The file as it is now; `empty()` when it is not there.

        Errors: Unreadable when it is there and is not a regular file of the right form: never read as empty.
        """
        stamp = self._look()
        if stamp is None:
            self._known = self._stamp = None
            return self.empty()
        if self._known is None or stamp != self._stamp or not self._settled:
            self._known = self._read()
        return self._known[1]

    def after_commit(self) -> T:
        """The file as this commit left it, not read back where it wrote it itself. Errors: as `get`."""
        if self._untold and self._known is not None:
            self._untold = False
            return self._known[1]
        return self.get()

    def is_untouched(self) -> bool:
        """Whether the file still is what the last `get` saw."""
        return self._look() == self._stamp

    def holds(self) -> bool:
        """Whether the file's bytes are those that were last read or written."""
        known = self._known
        try:
            return known is not None and self.disk.read(self.path)[0] == known[0]
        except OSError:
            return False

    @property
    def stamp(self) -> Stamp | None:
        """The stamp the file was last read under; None when there was none."""
        return self._stamp

    def wrote(self, raw: bytes, value: T) -> None:
        """The file was replaced by `raw`, which encodes `value`; the next `get` sees whether it still holds it."""
        self._known, self._settled, self._untold = (raw, value), False, True

    def _look(self) -> Stamp | None:
        status = self.disk.stat(self.path)
        return None if status is None else Stamp.of(status)

    def _read(self) -> tuple[bytes, T]:
        known, self._known = self._known, None
        looked_ns = time.time_ns()
        try:
            raw, self._stamp = self.disk.read(self.path)
        except OSError as error:
            raise unreadable(self.path.name, error) from error
        self._settled = self._stamp.is_old(looked_ns)
        return known if known is not None and known[0] == raw else (raw, self.decode(raw))


class Working(Generic[T]):
    """A cached file as a plan leaves it; read when it is first asked for."""

    def __init__(self, cached: Cached[T]) -> None:
        self.cached = cached
        self.base: T | None = None
        self._value: T | None = None

    def get(self) -> T:
        """What the file will hold. Errors: Unreadable."""
        if self._value is None:
            self.base = self._value = self.cached.get()
        return self._value

    def set(self, value: T) -> None:
        """Have the file hold this."""
        self._value = value

    def changed(self) -> bytes | None:
        """The bytes that are to be written, None when the file stays as it is."""
        value = self._value
        return None if value is None or value is self.base or value == self.base else value.encode()

    @property
    def found(self) -> Stamp | None:
        """What the plan found the file to be; None for no file, and where it is moved aside."""
        return None if self.base is None else self.cached.stamp

    def is_foreseen(self) -> bool:
        """Whether the file still is what the plan was made from, or is to be moved aside unread."""
        return self.base is None or self.cached.is_untouched()

    def wrote(self, raw: bytes) -> None:
        """The file was replaced by the bytes of `changed`."""
        if self._value is not None:
            self.cached.wrote(raw, self._value)
            self.base = self._value


def reason_of(error: OSError) -> str:
    """Why a file does not read, without a path. Errors: the same OSError when the file is not what is at fault."""
    if error.errno in _EXHAUSTED:
        raise error
    return error.strerror or "cannot be read"


def unreadable(file: str, error: OSError) -> Unreadable:
    """The `unreadable` error of a store's file. Errors: as `reason_of`."""
    return Unreadable(f"{file} does not read ({reason_of(error)}); mend or move it, nothing was changed")
