"""Many files synced side by side, by the C library's own threads where it has them."""

import ctypes
import errno
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd import syncing
from memd.fs import Disk, nothing
from memd.syncing import SHARE

COUNT = 3 * syncing.THREADS


class Calls:
    """A C library whose syncs end when they are asked after, each in its way."""

    def __init__(self, *, refused: frozenset[int] = frozenset(), failed: dict[int, int] | None = None) -> None:
        self.refused, self.failed = refused, failed or {}
        self.begun: list[int] = []
        self.asked: dict[int, int] = {}
        self.suspended = 0

    def aio_fsync(self, _how: int, control: Any) -> int:
        fd = control._obj.fd
        if fd in self.refused:
            return -1
        self.begun.append(fd)
        return 0

    def aio_error(self, control: Any) -> int:
        fd = control._obj.fd
        self.asked[fd] = self.asked.get(fd, 0) + 1
        return errno.EINPROGRESS if self.asked[fd] < 3 else self.failed.get(fd, 0)

    def aio_suspend(self, _controls: Any, _count: int, _timeout: None) -> int:
        self.suspended += 1
        return -1  # a signal came


def waiting(fds: list[int]) -> Callable[[], None]:
    wait = syncing.begin(fds)
    assert wait is not None
    return wait


def with_calls(monkeypatch: pytest.MonkeyPatch, calls: Calls | None) -> None:
    monkeypatch.setattr(syncing, "_library", lambda: calls)


def synced(opened: list[tuple[Path, int]]) -> None:
    """Sync open files as a disk does, by whatever threads this system has for it."""
    Disk().sync_all(opened, nothing)


def test_the_structures_are_those_of_glibc_which_alone_is_asked() -> None:
    assert (syncing._library() is not None) == (platform.libc_ver()[0] == "glibc")
    assert ctypes.sizeof(syncing._Control) == 168
    assert syncing._Control.offset.offset == 128
    assert ctypes.sizeof(syncing._Options) == 32


def test_files_are_synced_by_the_system(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(COUNT)]
    opened = [(path, os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)) for path in paths]
    try:
        for _, fd in opened:
            os.write(fd, b"text")
        synced(opened)
    finally:
        for _, fd in opened:
            os.close(fd)
    assert {path.read_bytes() for path in paths} == {b"text"}


@pytest.mark.parametrize("at", [0, COUNT // 2, COUNT - 1])
def test_one_that_fails_is_heard_wherever_it_is(tmp_path: Path, at: int) -> None:
    paths = [tmp_path / str(number) for number in range(COUNT)]
    opened = [(path, os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)) for path in paths]
    read, write = os.pipe()  # what no sync is for
    try:
        opened.insert(at, (tmp_path, write))
        with pytest.raises(OSError, match="Invalid argument") as error:
            synced(opened)
        assert error.value.errno == errno.EINVAL
    finally:
        for fd in (read, *(fd for _, fd in opened)):
            os.close(fd)


def test_each_is_waited_for_though_signals_come_and_one_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(failed={5: errno.EIO, 7: errno.ENOSPC})
    with_calls(monkeypatch, calls)
    with pytest.raises(OSError, match="Input/output error"):
        waiting([3, 5, 7, 9])()
    assert calls.begun == [3, 5, 7, 9]
    assert calls.asked == {3: 3, 5: 3, 7: 3, 9: 3}
    assert calls.suspended == 8


def test_what_the_library_has_no_room_for_is_synced_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with_calls(monkeypatch, Calls(refused=frozenset({5, 9})))
    wait = waiting([3, 5, 7, 9])
    assert synced == []
    wait()
    assert synced == [5, 9]


FORKS = """
import os, sys, warnings
from pathlib import Path
from memd.fs import Disk, nothing

warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads, which is what this is about


def stage(prefix: str) -> None:
    with Disk().staging() as staging, Disk().replacing() as replacing:
        staged = [staging.add(Path(sys.argv[1]), b"text") for _ in range(int(sys.argv[2]))]
        staging.sync()
        for number, each in enumerate(staged):
            replacing.replace(each.path, Path(sys.argv[1]) / f"{prefix}{number}")


stage("a")
child = os.fork()
stage("b" if child else "c")
if child:
    sys.exit(os.waitpid(child, 0)[1])
"""


def test_a_child_of_a_fork_waits_for_no_thread_of_its_parent(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKS, str(tmp_path), str(COUNT)], check=True, timeout=60)
    assert len(list(tmp_path.iterdir())) == 3 * COUNT


def test_none_is_begun_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    with_calls(monkeypatch, None)
    assert syncing.begin([0]) is None


@pytest.mark.parametrize("count", [1, SHARE - 1, SHARE, COUNT])
@pytest.mark.parametrize("has_threads", [True, False])
def test_a_disk_syncs_all_and_does_what_is_to_be_done_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, has_threads: bool
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    calls = Calls()
    with_calls(monkeypatch, calls if has_threads else None)
    done: list[list[int]] = []
    with Disk().staging() as staging:
        for number in range(count):
            staging.add(tmp_path, b"%d" % number)
        staging.sync(lambda: done.append([*calls.asked]))
    assert len(done) == 1
    beside = has_threads and count >= SHARE
    assert (len(synced), len(calls.begun)) == ((0, count) if beside else (count, 0))
    assert done == [[]], "before anything is waited for"
    assert len(calls.asked) == len(calls.begun), "each is waited for before it is closed"


def test_what_fails_meanwhile_leaves_no_sync_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls()
    with_calls(monkeypatch, calls)

    def fail() -> None:
        raise ZeroDivisionError

    with Disk().staging() as staging:
        for number in range(SHARE):
            staging.add(tmp_path, b"%d" % number)
        with pytest.raises(ZeroDivisionError):
            staging.sync(fail)
    assert len(calls.asked) == SHARE
