"""The disk's primitives. Law: every one can be made to fail, none follows a symlink or waits on a FIFO."""

import errno
import fcntl
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import portalocker
import pytest

from memd import fs, syncing
from memd.fs import YOUNG_NS, Disk, LockTimeoutError, NotRegularError, Replacing, Seen, Stamp
from support.disks import EVERY, FailingDisk, FastDisk
from support.waiting import until


def at(path: Path, data: bytes = b"") -> Path:
    """A file that holds `data`."""
    path.write_bytes(data)
    return path


# -- reading ---------------------------------------------------------------------------------------------------------


def test_read_gives_the_bytes_and_the_stamp_of_the_file(tmp_path: Path) -> None:
    path = at(tmp_path / "a", b"some bytes")
    assert Disk().read(path) == (b"some bytes", Stamp.of(path.stat()))
    assert Disk().read(at(tmp_path / "empty"))[0] == b""


def test_read_takes_what_was_added_since_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = at(tmp_path / "a", b"x" * 10)
    fstat = os.fstat

    def grown(fd: int) -> os.stat_result:
        found = fstat(fd)
        with path.open("ab") as file:
            file.write(b"y" * 100)
        return found

    monkeypatch.setattr(os, "fstat", grown)
    raw, stamp = Disk().read(path)
    assert (len(raw), stamp.size) == (110, 10)


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    path = at(tmp_path / "a", b"x" * 11)
    assert Disk().read(path, 11)[0] == b"x" * 11
    with pytest.raises(NotRegularError):
        Disk().read(path, 10)


def test_read_from_an_offset(tmp_path: Path) -> None:
    path = at(tmp_path / "a", b"0123456789")
    assert [Disk().read_from(path, offset)[0] for offset in (0, 4, 10, 99)] == [b"0123456789", b"456789", b"", b""]


def open_files() -> int:
    """How many files this process holds open."""
    return sum(1 for _ in Path("/dev/fd").iterdir())


def to_symlink(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def to_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, to_symlink, to_socket])
def test_what_is_no_file_is_neither_read_nor_appended_to(tmp_path: Path, make: Callable[[Path], object]) -> None:
    path = tmp_path / "odd"
    make(path)
    before = path.lstat()
    for call in (
        lambda: Disk().read(path),
        lambda: Disk().read_from(path, 0),
        lambda: Disk().append(path, b"x"),
    ):
        with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
            call()
    assert path.lstat() == before


def test_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none"
    with pytest.raises(FileNotFoundError):
        Disk().read(path)
    assert Disk().stat(path) is None
    assert Disk().remove(path) is False
    with pytest.raises(FileNotFoundError):
        Disk().scan(path)


def test_a_scan_opens_nothing_follows_nothing_and_is_in_order(tmp_path: Path) -> None:
    at(tmp_path / "b", b"12")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "c").mkdir()
    os.mkfifo(tmp_path / "d")
    found = Disk().scan(tmp_path)
    assert [(seen.name, seen.regular, seen.symlink) for seen in found] == [
        ("a", False, True),
        ("b", True, False),
        ("c", False, False),
        ("d", False, False),
    ]
    assert found[1] == Seen.of("b", (tmp_path / "b").stat())


def test_a_stamp_knows_its_file_again_after_a_rename_and_not_after_a_write(tmp_path: Path) -> None:
    path = at(tmp_path / "a", b"12")
    os.utime(path, ns=(1, 1))
    before = Stamp.of(path.stat())
    path.rename(tmp_path / "b")
    assert before.is_file_of(Stamp.of((tmp_path / "b").stat()))
    at(tmp_path / "b", b"21")
    assert not before.is_file_of(Stamp.of((tmp_path / "b").stat()))
    at(tmp_path / "c", b"12")
    os.utime(tmp_path / "c", ns=(1, 1))
    assert not before.is_file_of(Stamp.of((tmp_path / "c").stat()))


# -- writing ---------------------------------------------------------------------------------------------------------


def test_a_staged_file_is_closed_to_others_hidden_and_known_by_its_stamp(tmp_path: Path) -> None:
    staged = Disk().stage(tmp_path, b"data")
    assert staged.path.read_bytes() == b"data"
    assert staged.path.name.startswith(".")
    assert staged.path.name.endswith(".tmp")
    assert staged.path.stat().st_mode & 0o777 == 0o600
    Disk().replace(staged.path, at(tmp_path / "a", b"old"))
    assert (tmp_path / "a").read_bytes() == b"data"
    assert staged.stamp.is_file_of(Stamp.of((tmp_path / "a").stat()))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_is_written_is_synced_and_nothing_else(tmp_path: Path) -> None:
    class Synced(Disk):
        syncs_aside = False

        def __init__(self) -> None:
            self.synced: list[tuple[Path, bool]] = []

        def sync(self, fd: int, path: Path) -> None:
            self.synced.append((path, os.path.samestat(os.fstat(fd), path.stat())))

    disk = Synced()
    staged = disk.stage(tmp_path, b"data")
    disk.append(tmp_path / "log", b"one\ntwo")
    disk.truncate(tmp_path / "log", 4)
    (tmp_path / "objects").mkdir()
    disk.sync_dir(tmp_path, tmp_path / "objects")
    disk.replace(staged.path, tmp_path / "a")
    disk.read(tmp_path / "a")
    log = tmp_path / "log"
    assert disk.synced[:3] == [(staged.path, True), (log, True), (log, True)]
    assert sorted(disk.synced[3:]) == [(tmp_path, True), (tmp_path / "objects", True)]


def test_many_files_are_staged_together_and_none_is_left_open(tmp_path: Path) -> None:
    count = fs.Staging.OPEN_MAX * 2 + 3
    disk = FastDisk()
    before = open_files()
    with disk.staging() as staging:
        staged = [staging.add(tmp_path, b"%d" % number) for number in range(count)]
        staging.sync()
    assert [path.read_bytes() for path, _ in staged] == [b"%d" % number for number in range(count)]
    assert [call for call, _ in disk.log].count("fsync") == count
    assert open_files() == before


def test_staging_that_fails_leaves_no_file_open(tmp_path: Path) -> None:
    before = open_files()
    disk = FailingDisk(errno.ENOSPC, calls={"write"})
    disk.arm(2)
    with disk.staging() as staging:
        staging.add(tmp_path, b"one")
        with pytest.raises(OSError, match="No space"):
            staging.add(tmp_path, b"two")
    assert open_files() == before


@pytest.mark.parametrize("count", [6, 3 * syncing.SHARE])
def test_a_sync_that_fails_is_heard_whichever_file_it_was(tmp_path: Path, count: int) -> None:
    class Failing(Disk):
        syncs_aside = False

        def __init__(self, bad: int) -> None:
            self.bad = bad
            self.synced: list[Path] = []

        def sync(self, fd: int, path: Path) -> None:
            self.synced.append(path)
            if path.read_bytes() == b"%d" % self.bad:
                raise OSError(errno.EIO, "Input/output error")

    for bad in range(count):
        disk = Failing(bad)
        with disk.staging() as staging:
            staged = [staging.add(tmp_path, b"%d" % number).path for number in range(count)]
            with pytest.raises(OSError, match="Input/output"):
                staging.sync()
        assert len(disk.synced) == len(set(disk.synced)), "never tried again"
        assert staged[bad] in disk.synced


def test_what_the_system_does_not_begin_early_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def refuse(fd: int, _offset: int, _length: int, _advice: int) -> None:
        begun.append(fd)
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "posix_fadvise", refuse, raising=False)
    assert Disk().stage(tmp_path, b"data").path.read_bytes() == b"data"
    assert len(begun) == (sys.platform != "darwin")


@pytest.mark.parametrize(("size", "room", "kept"), [(9, 128, 1), (1 << 16, 128, 1), (1 << 16 | 1, 128, 0), (9, 0, 0)])
def test_what_is_replaced_is_held_until_nobody_waits_and_not_left_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, room: int, kept: int
) -> None:
    monkeypatch.setattr(Replacing, "HELD_MAX", room)
    path = at(tmp_path / "a", b"x" * size)
    with Disk().replacing() as replacing:
        replacing.replace(at(tmp_path / "b", b"new"), path)
        replacing.replace(at(tmp_path / "c", b"first"), tmp_path / "d")
        assert (path.read_bytes(), (tmp_path / "d").read_bytes()) == (b"new", b"first")
        assert Replacing.held_by_all == (kept if sys.platform == "linux" else 0)
    until(lambda: Replacing.held_by_all == 0)
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "d"]


def test_a_rename_that_fails_leaves_nothing_held(tmp_path: Path) -> None:
    disk = FailingDisk(errno.ENOSPC)
    disk.arm(1)
    with pytest.raises(OSError, match="No space"), disk.replacing() as replacing:
        replacing.replace(at(tmp_path / "b", b"new"), at(tmp_path / "a", b"old"))
    until(lambda: Replacing.held_by_all == 0)
    assert (tmp_path / "a").read_bytes() == b"old"


def test_append_adds_at_the_end_and_makes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    Disk().append(path, b"one\n")
    stamp = Disk().append(path, b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"
    assert stamp == Stamp.of(path.stat())
    assert path.stat().st_mode & 0o777 == 0o600


def test_truncate(tmp_path: Path) -> None:
    path = at(tmp_path / "log", b"one\ntwo")
    Disk().truncate(path, 4)
    assert path.read_bytes() == b"one\n"


def test_a_short_write_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:3])))
    assert Disk().stage(tmp_path, b"0123456789").path.read_bytes() == b"0123456789"


def test_directories_are_made_with_their_parents_closed_and_each_synced(tmp_path: Path) -> None:
    disk = FastDisk()
    assert disk.make_dirs(tmp_path / "a" / "b" / "c") is True
    assert disk.make_dirs(tmp_path / "a" / "b" / "c") is False
    assert disk.log == [
        ("mkdir", "a"),
        ("fsync", tmp_path.name),
        ("mkdir", "b"),
        ("fsync", "a"),
        ("mkdir", "c"),
        ("fsync", "b"),
    ]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_each_call_can_be_made_to_fail_and_announces_itself_first(tmp_path: Path) -> None:
    def everything(disk: Disk, room: Path) -> None:
        disk.make_dirs(room / "made")
        disk.scan(room)
        disk.changed_ns(room)
        with disk.locked(room / ".lock", 1.0):
            staged = disk.stage(room, b"data")
        disk.replace(staged.path, room / "a")
        disk.append(room / "a", b"more")
        disk.read(room / "a")
        disk.read_from(room / "a", 2)
        disk.truncate(room / "a", 2)
        disk.stat(room / "a")
        disk.remove(room / "a")
        disk.sync_dir(room, room / "made")

    log = FastDisk()
    (tmp_path / "all").mkdir()
    everything(log, tmp_path / "all")
    assert {call for call, _ in log.log} == EVERY
    for number in range(1, len(log.log) + 1):
        room = tmp_path / str(number)
        room.mkdir()
        disk = FailingDisk(errno.EIO)
        disk.arm(number)
        with pytest.raises(OSError, match="Input/output"):
            everything(disk, room)
        assert len(disk.log) == number


# -- locking ---------------------------------------------------------------------------------------------------------


def test_a_lock_excludes_until_it_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with Disk().locked(path, 0.0):
        with pytest.raises(LockTimeoutError), Disk().locked(path, 0.0):
            pass
        assert path.stat().st_mode & 0o777 == 0o600
    with Disk().locked(path, 0.0):
        pass


def test_a_lock_that_another_flock_holds_is_waited_for(tmp_path: Path) -> None:
    path = at(tmp_path / ".lock", b"kept")
    waiting, let_go, had = threading.Event(), threading.Event(), threading.Event()

    class Watched(Disk):
        def step(self, call: str, path: Path) -> None:
            waiting.set()

    def wait() -> None:
        with Watched().locked(path, 20.0):
            assert let_go.is_set()
            had.set()

    with path.open() as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        thread = threading.Thread(target=wait)
        thread.start()
        assert waiting.wait(20)
        let_go.set()
        fcntl.flock(holder, fcntl.LOCK_UN)
    thread.join(20)
    assert had.is_set()
    assert path.read_bytes() == b"kept", "a lock file is never cut"


def test_a_lock_on_a_file_that_was_replaced_meanwhile_is_no_lock(tmp_path: Path) -> None:
    path = at(tmp_path / ".lock")

    class Replaced(FastDisk):
        def step(self, call: str, path: Path) -> None:
            super().step(call, path)
            if len(self.log) == 2:
                assert path.read_bytes() == b"new"

    disk = Replaced()
    lock = portalocker.lock

    def late(fd: int, flags: portalocker.LockFlags) -> None:
        lock(fd, flags)
        if len(disk.log) == 1:
            path.unlink()
            at(path, b"new")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portalocker, "lock", late)
        with disk.locked(path, 1.0), pytest.raises(LockTimeoutError), Disk().locked(path, 0.0):
            pass
    assert disk.log == [("lock", ".lock"), ("lock", ".lock")]


def test_a_lock_is_let_go_when_what_it_was_for_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Disk().locked(tmp_path / ".lock", 0.0):
        raise ZeroDivisionError
    with Disk().locked(tmp_path / ".lock", 0.0):
        pass


def test_a_file_system_without_locks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(fd: int, flags: portalocker.LockFlags) -> None:
        raise portalocker.exceptions.LockException(OSError(errno.EOPNOTSUPP, "Operation not supported"))

    monkeypatch.setattr(portalocker, "lock", none)
    with pytest.raises(OSError, match="no lock") as error, Disk().locked(tmp_path / ".lock", 1.0):
        pass
    assert error.value.errno == errno.ENOLCK


@pytest.mark.parametrize("make", [Path.mkdir, to_symlink])
def test_a_lock_that_is_no_file_is_an_error(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / ".lock")
    with pytest.raises(OSError, match="lock"), Disk().locked(tmp_path / ".lock", 1.0):
        pass


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_what_is_made_is_ours_alone_whatever_the_umask_is(tmp_path: Path, umask: int) -> None:
    disk = Disk()
    before = os.umask(umask)
    try:
        disk.make_dirs(tmp_path / "a" / "b")
        staged = disk.stage(tmp_path / "a", b"words").path
        disk.append(tmp_path / "a" / "journal", b"words")
        with disk.locked(tmp_path / "a" / ".lock", 0):
            pass
    finally:
        os.umask(before)
    made = [staged, *(tmp_path / "a").rglob("*")]
    assert len(made) == 5
    assert {path.stat().st_mode & 0o777 for path in made} == {0o600, 0o700}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}


def test_what_goes_is_looked_at_beside_its_place_where_the_room_is_none(tmp_path: Path) -> None:
    path, room = at(tmp_path / "a", b"old"), at(tmp_path / "room", b"no directory")
    found = Stamp.of(path.lstat())
    assert Disk().take_away(path, found, room)
    path = at(tmp_path / "a", b"another")
    assert not Disk().take_away(path, found, room)
    assert path.read_bytes() == b"another"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "room"]
    assert Disk().take_away(tmp_path / "b", found, room)


@pytest.mark.parametrize(
    ("mtime", "ctime", "looked", "tells"),
    [(9, 9, 10 + YOUNG_NS, True), (9, 9, 9 + YOUNG_NS, False), (8, 9, 9, True), (10, 9, 9, False)],
)
def test_a_stamp_tells_of_the_next_write_when_it_is_old_or_was_named_after_the_last(
    mtime: int, ctime: int, looked: int, *, tells: bool
) -> None:
    assert Stamp(1, mtime, ctime, 7).is_old(looked) is tells
