"""Every system call of a daemon that touches its files stops here first. Law: what is not known fails the run.

The daemon's process gives its parent a seccomp listener, so that each call of every thread waits for an answer: go
on, fail with this error, or die here. The order of the answers is one order over all threads. Calls known to touch
no file pass without a stop; every other is told apart by what it names, and one that would change a file below the
root in a way that this table does not know is kept in `strange`. Linux on x86-64; needs nothing but Python.
"""

import array
import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self

# -- the calls ---------------------------------------------------------------------------------------------------

CHANGING: Final = {
    1: "write", 18: "pwrite64", 20: "writev",
    2: "open", 257: "openat", 437: "openat2", 85: "creat",
    73: "flock", 74: "fsync", 75: "fdatasync", 76: "truncate", 77: "ftruncate",
    82: "rename", 264: "renameat", 316: "renameat2",
    83: "mkdir", 258: "mkdirat", 84: "rmdir", 87: "unlink", 263: "unlinkat",
    49: "bind", 90: "chmod", 91: "fchmod", 268: "fchmodat",
}  # fmt: skip
"""What is swept."""
LOOKING: Final = {
    0: "read", 17: "pread64", 217: "getdents64", 262: "newfstatat", 5: "fstat", 4: "stat", 6: "lstat", 332: "statx",
    137: "statfs", 138: "fstatfs",
}  # fmt: skip
"""What is swept for errors as well."""
REPLYING: Final = 44
"""sendto: how an answer leaves."""
FOREIGN: Final = {
    9: "mmap", 40: "sendfile", 86: "link", 88: "symlink", 92: "chown", 93: "fchown", 94: "lchown", 132: "utime",
    133: "mknod", 162: "sync", 188: "setxattr", 189: "lsetxattr", 190: "fsetxattr", 197: "removexattr",
    198: "lremovexattr", 199: "fremovexattr", 235: "utimes", 259: "mknodat", 260: "fchownat", 261: "futimesat",
    265: "linkat", 266: "symlinkat", 275: "splice", 276: "tee", 277: "sync_file_range", 278: "vmsplice",
    280: "utimensat", 285: "fallocate", 296: "pwritev", 306: "syncfs", 326: "copy_file_range", 328: "pwritev2",
    425: "io_uring_setup", 452: "fchmodat2",
}  # fmt: skip
"""Other ways to change a file. A store that takes to one has to be swept at it: the run fails till it is."""
HARMLESS: Final = frozenset({
    3, 7, 8, 10, 11, 12, 13, 14, 15, 16, 19, 21, 22, 23, 24, 25, 27, 28, 32, 33, 34, 35, 39, 41, 42, 43, 45, 46, 47,
    48, 50, 51, 52, 53, 54, 55, 56, 57, 58, 60, 61, 62, 63, 72, 79, 80, 81, 89, 95, 96, 97, 98, 99, 100, 102, 104,
    107, 108, 110, 111, 118, 120, 127, 128, 131, 143, 144, 145, 157, 158, 160, 186, 200, 202, 203, 204, 213, 218, 219,
    221, 228, 229, 230, 231, 232, 233, 234, 247, 253, 254, 255, 267, 269, 270, 271, 273, 274, 281, 283, 284, 286, 287,
    288, 289, 290, 291, 292, 293, 294, 295, 299, 302, 307, 309, 318, 324, 327, 334, 424, 434, 435, 436, 439, 441,
    449,
})  # fmt: skip
"""Memory, threads, clocks, signals, sockets, and looks at files that change none."""

_AT_FDCWD: Final = -100
_ACCESS: Final = 3
_BY_FD: Final = frozenset({0, 1, 5, 17, 18, 20, 73, 74, 75, 77, 91, 217, 138})
_AT: Final = frozenset({257, 437, 258, 263, 262, 332, 268})
_MAP_SHARED: Final = 1


class Op(NamedTuple):
    """One call on a file below the root. `number` counts all, `nth` those of its kind, both from 1.

    `path` and `to` are relative to the root. `data` is what a write writes, `offset` where: None for the end.
    """

    number: int
    kind: str
    nth: int
    path: str
    to: str
    flags: int
    data: bytes
    offset: int | None
    tid: int
    fd: int

    @property
    def writes(self) -> bool:
        """Whether an open could change something."""
        return bool(self.flags & (_ACCESS | os.O_CREAT | os.O_TRUNC))


class Answer(NamedTuple):
    """A line that the daemon is about to send."""

    line: bytes


class Die(NamedTuple):
    """The daemon dies before the call; `half` of a write is made before that."""

    half: bool = False


Verdict = Die | int
"""Die, the errno the call fails with, or 0: go on."""
Judge = Callable[[Op], Verdict]


def go_on(_op: Op) -> Verdict:
    """Let every call be made."""
    return 0


class HangError(Exception):
    """Nothing happened for too long; tells in which system call each thread of the daemon was."""

    @classmethod
    def of(cls, pid: int) -> Self:
        """What a daemon's threads are at."""
        return cls(
            "; ".join(path.read_text().strip() for path in sorted(Path(f"/proc/{pid}/task").glob("*/syscall")))
        )


def is_at_work(pid: int) -> bool:
    """Whether a thread of a process runs, or would as soon as it is given a processor or its disk answers."""
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):  # it ended just now
            if path.read_text().rpartition(")")[2].split()[0] in "RD":
                return True
    return False


class Trap:
    """The parent's side: answers the calls of one daemon.

    `log` holds every Op, and every Answer, in order. `strange` names calls outside the tables.
    """

    def __init__(self, pid: int, listener: int, root: Path, judge: Judge = go_on, *, keep_data: bool = False) -> None:
        self.pid, self.listener, self.judge, self.keep_data = pid, listener, judge, keep_data
        self.root = os.fsencode(root) + b"/"
        self.log: list[Op | Answer] = []
        self.counts: Counter[str] = Counter()
        self.strange: list[str] = []
        self.dead = False
        self._number = 0
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)

    def close(self) -> None:
        """Let go of the listener; a daemon that still runs would have its calls fail."""
        os.close(self.listener)
        os.close(self._memory)

    def pump(self, done: int, seconds: float) -> None:
        """Answer calls until `done` can be read, or the daemon is dead.

        Errors: HangError after `seconds` in which the daemon made no call and had no thread that waits for a
        processor or a disk: how much of a machine it gets is not for it to say. After twenty times as long it hangs
        whatever it does.
        """
        latest = time.monotonic() + 20 * seconds
        deadline = time.monotonic() + seconds
        self._poll.register(done, select.POLLIN)
        try:
            while True:
                ready = dict(self._poll.poll(200))
                if ready.get(self.listener, 0) & select.POLLIN:
                    self._answer_one()
                    deadline = min(latest, time.monotonic() + seconds)
                elif ready.get(self.listener, 0):
                    self.dead = True
                if done in ready or (self.dead and self.listener in ready and done in dict(self._poll.poll(2000))):
                    return
                if time.monotonic() > deadline:
                    if time.monotonic() > latest or not is_at_work(self.pid):
                        raise HangError.of(self.pid)
                    deadline = min(latest, time.monotonic() + seconds)
        finally:
            self._poll.unregister(done)

    def _answer_one(self) -> None:
        buffer = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self.listener, _RECV, buffer, True)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):
                return
            raise
        found = _NOTIFICATION.unpack(buffer)
        identity, tid, number, arguments = found[0], found[1], found[3], found[6:]
        verdict = self._verdict(tid, number, arguments)
        if isinstance(verdict, Die):
            os.kill(self.pid, signal.SIGKILL)
            self.dead = True
            return
        response = _RESPONSE.pack(identity, 0, -verdict, 0 if verdict else _CONTINUE)
        try:
            fcntl.ioctl(self.listener, _SEND, bytearray(response), True)
        except OSError as error:
            if error.errno != errno.ENOENT:  # it died meanwhile
                raise

    def _verdict(self, tid: int, number: int, arguments: tuple[int, ...]) -> Verdict:
        try:
            if number == REPLYING:
                line = self._bytes(arguments[1], min(arguments[2], 1 << 20))
                if line.startswith((b"{", b"[")):
                    self.log.append(Answer(line))
                return 0
            kind = CHANGING.get(number) or LOOKING.get(number)
            if kind is None:
                self._look_at_stranger(tid, number, arguments)
                return 0
            op = self._op(tid, number, kind, arguments)
            if op is None:
                return 0
        except ProcessLookupError:
            return 0
        self.log.append(op)
        verdict = self.judge(op)
        if isinstance(verdict, Die) and verdict.half:
            self._write_half(op, arguments)
        return verdict

    def _op(self, tid: int, number: int, kind: str, arguments: tuple[int, ...]) -> Op | None:
        path, to, flags, data, offset, fd = b"", b"", 0, b"", None, -1
        if number in _BY_FD:
            fd = _signed(arguments[0])
            path = self._of_fd(tid, fd)
        elif number == 49:
            raw = self._bytes(arguments[1], arguments[2])
            path = raw[2:].rstrip(b"\0")
        elif number in (82, 264, 316):
            at = (0, 1) if number == 82 else (1, 3)
            path = self._path(tid, arguments[at[0]], _AT_FDCWD if number == 82 else arguments[0])
            to = self._path(tid, arguments[at[1]], _AT_FDCWD if number == 82 else arguments[2])
        elif number in _AT:
            path = self._path(tid, arguments[1], arguments[0])
        else:
            path = self._path(tid, arguments[0], _AT_FDCWD)
        if not self._is_below(path) and not self._is_below(to):
            return None
        if kind == "openat":
            flags = arguments[2]
        elif kind == "open":
            flags = arguments[1]
        elif kind == "renameat2":
            flags = arguments[4]
        elif kind == "ftruncate":
            offset = arguments[1]
        elif kind in ("write", "pwrite64") and self.keep_data:
            data = self._bytes(arguments[1], arguments[2])
            offset = arguments[3] if kind == "pwrite64" else self._position(tid, fd)
        self._number += 1
        self.counts[kind] += 1
        return Op(
            self._number,
            kind,
            self.counts[kind],
            self._relative(path),
            self._relative(to),
            flags,
            data,
            offset,
            tid,
            fd,
        )

    def _look_at_stranger(self, tid: int, number: int, arguments: tuple[int, ...]) -> None:
        name = FOREIGN.get(number)
        if name is None:
            self.strange.append(f"system call {number}")
        elif name == "mmap":
            fd = _signed(arguments[4])
            shared = arguments[3] & _MAP_SHARED and arguments[2] & 2
            if shared and fd >= 0 and self._is_below(self._of_fd(tid, fd)):
                self.strange.append("mmap, shared and writable")
        else:
            self.strange.append(name)

    # -- what the arguments name -------------------------------------------------------------------------------

    def _bytes(self, address: int, size: int) -> bytes:
        try:
            return os.pread(self._memory, size, address)
        except OSError as error:
            raise ProcessLookupError from error

    def _path(self, tid: int, address: int, directory: int) -> bytes:
        raw = self._bytes(address, 4096 - address % 4096)
        if b"\0" not in raw:
            raw += self._bytes(address + len(raw), 4096)
        name = raw.partition(b"\0")[0]
        if name.startswith(b"/"):
            return os.path.normpath(name)
        fd = _signed(directory)
        base = self._link(f"/proc/{tid}/cwd") if fd == _AT_FDCWD else self._of_fd(tid, fd)
        return os.path.normpath(os.path.join(base, name)) if name else base  # noqa: PTH118 - bytes

    def _of_fd(self, tid: int, fd: int) -> bytes:
        return self._link(f"/proc/{tid}/fd/{fd}")

    def _link(self, path: str) -> bytes:
        try:
            return os.readlink(os.fsencode(path))  # noqa: PTH115 - bytes
        except OSError:
            return b""

    def _position(self, tid: int, fd: int) -> int | None:
        """Where a write goes; None for the end of the file."""
        facts = dict(line.split(":\t", 1) for line in Path(f"/proc/{tid}/fdinfo/{fd}").read_text().splitlines()[:2])
        return None if int(facts["flags"], 8) & os.O_APPEND else int(facts["pos"])

    def _is_below(self, path: bytes) -> bool:
        """Whether a path is the root or below it."""
        return (path + b"/").startswith(self.root)

    def _relative(self, path: bytes) -> str:
        return (
            os.fsdecode((path + b"/").removeprefix(self.root).rstrip(b"/"))
            if self._is_below(path)
            else os.fsdecode(path)
        )

    def _write_half(self, op: Op, arguments: tuple[int, ...]) -> None:
        """Do the first half of a write on the daemon's own descriptor."""
        data = self._bytes(arguments[1], arguments[2])
        with open(f"/proc/{op.tid}/fd/{op.fd}", "r+b", buffering=0) as stream:  # noqa: PTH123 - a link of the kernel's
            stream.seek(0, os.SEEK_END)
            stream.write(data[: len(data) // 2])


def _signed(number: int) -> int:
    return ctypes.c_int(number & 0xFFFFFFFF).value


# -- the daemon's side -------------------------------------------------------------------------------------------

_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
_RESPONSE: Final = struct.Struct("=QqiI")
_RECV: Final = (3 << 30) | (_NOTIFICATION.size << 16) | (0x21 << 8)
_SEND: Final = (3 << 30) | (_RESPONSE.size << 16) | (0x21 << 8) | 1
_CONTINUE: Final = 1

_LOAD, _EQUAL, _RETURN, _AND = 0x20, 0x15, 0x06, 0x54
_ALLOW, _NOTIFY, _KILL = 0x7FFF0000, 0x7FC00000, 0x80000000
_X86_64: Final = 0xC000003E
_FLAGS_OF_MMAP: Final = 16 + 8 * 3


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("size", ctypes.c_ushort), ("code", ctypes.POINTER(_Instruction)))


def enter(parent: socket.socket, *, looks: bool) -> None:
    """Have every call of this process from now on wait for the parent, who is sent the listener.

    `looks`: those that only look at files too. Errors: OSError where the system does not allow it.
    """
    passing = sorted(HARMLESS if looks else HARMLESS | LOOKING.keys())
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _X86_64), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    for number in passing:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    steps += [  # an mmap that is not shared changes no file
        (_EQUAL, 0, 4, 9),
        (_LOAD, 0, 0, _FLAGS_OF_MMAP),
        (_AND, 0, 0, _MAP_SHARED),
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _NOTIFY),
    ]
    code = (_Instruction * len(steps))(*(_Instruction(*step) for step in steps))
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(38, 1, 0, 0, 0)
    listener = library.syscall(317, 1, 1 << 3, ctypes.byref(_Program(len(steps), code)))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "no seccomp listener")
    socket.send_fds(parent, [b"."], [listener])
    parent.recv(1)
    library.syscall(3, listener)


def accept(child: socket.socket) -> int:
    """The listener that a child sent."""
    _, (listener,), _, _ = socket.recv_fds(child, 1, 1)
    child.send(b".")
    return listener


def is_possible() -> bool:
    """Whether this machine is one the trap knows."""
    return os.uname().machine == "x86_64" and array.array("P").itemsize == 8
