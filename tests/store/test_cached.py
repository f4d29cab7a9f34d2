"""A decoded file beside the file. Law: a stamp that may be of two contents is not trusted."""

import errno
import os
import time
from pathlib import Path

import pytest

from memd.errors import Unreadable
from memd.fs import Disk, Stamp
from memd.listing import Listing
from memd.store.cached import Cached, Working


class OneStamp(Disk):
    """A file whose stamp never changes, whatever it holds: what a clock that ticks slowly shows."""

    def __init__(self, age_s: float) -> None:
        changed = time.time_ns() - int(age_s * 1e9)
        self.stamp = Stamp(1, changed, changed, 1)
        self.raw = b"one\n"
        self.reads = 0

    def stat(self, path: Path) -> os.stat_result | None:
        fields: list[float] = [0o100600, self.stamp.inode, 0, 1, 0, 0, self.stamp.size, 0, 0, 0]
        seconds = self.stamp.ctime_ns / 1e9
        exact = {"st_mtime_ns": self.stamp.mtime_ns, "st_ctime_ns": self.stamp.ctime_ns}
        return os.stat_result([*fields[:7], seconds, seconds, seconds], exact)

    def read(self, path: Path, limit: int | None = None) -> tuple[bytes, Stamp]:
        self.reads += 1
        return self.raw, self.stamp


def cached(disk: Disk) -> Cached[Listing]:
    return Cached(disk, Path("MEMORY.md"), Listing.decode, Listing)


def test_the_fake_has_the_stamp_it_says() -> None:
    disk = OneStamp(10)
    status = disk.stat(Path("x"))
    assert status is not None
    assert Stamp.of(status) == disk.stamp


def test_a_file_with_an_old_stamp_is_read_once() -> None:
    disk = OneStamp(10)
    file = cached(disk)
    assert file.get() == file.get() == Listing(b"one\n")
    assert disk.reads == 1


def test_a_file_that_changed_just_before_it_was_read_is_read_again() -> None:
    disk = OneStamp(0)
    file = cached(disk)
    assert file.get() == Listing(b"one\n")
    disk.raw = b"two\n"
    assert file.get() == Listing(b"two\n")


def test_a_file_that_was_written_is_looked_at_before_it_is_believed() -> None:
    disk = OneStamp(10)
    file = cached(disk)
    file.get()
    file.wrote(b"mine\n", Listing(b"mine\n"))
    disk.raw = b"theirs\n"
    assert file.get() == Listing(b"theirs\n")


def test_a_file_that_went_is_empty_and_is_read_anew_when_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_bytes(b"one\n")
    file = Cached(Disk(), path, Listing.decode, Listing)
    assert file.get() == Listing(b"one\n")
    assert file.is_untouched()
    path.unlink()
    assert not file.is_untouched()
    assert file.get() == Listing()
    assert file.is_untouched()
    path.write_bytes(b"two\n")
    assert not file.is_untouched()
    assert file.get() == Listing(b"two\n")


def test_a_file_that_stopped_to_read_is_never_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_bytes(b"one\n")
    file = Cached(Disk(), path, Listing.decode, Listing)
    file.get()
    path.write_bytes(b"\xff\n")
    for _ in range(3):
        with pytest.raises(Unreadable):
            file.get()


@pytest.mark.parametrize(
    ("error", "raised"), [(errno.EACCES, Unreadable), (errno.EIO, Unreadable), (errno.EMFILE, OSError)]
)
def test_only_the_files_own_trouble_makes_it_unreadable(tmp_path: Path, error: int, raised: type[Exception]) -> None:
    class Failing(Disk):
        def step(self, call: str, path: Path) -> None:
            if call == "read":
                raise OSError(error, os.strerror(error))

    path = tmp_path / "MEMORY.md"
    path.write_bytes(b"one\n")
    with pytest.raises(raised, match=os.strerror(error)):
        Cached(Failing(), path, Listing.decode, Listing).get()


def test_a_working_copy_says_what_changed(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_bytes(b"one\n")
    working = Working(Cached(Disk(), path, Listing.decode, Listing))
    assert working.changed() is None
    assert working.get() == Listing(b"one\n")
    assert working.changed() is None
    working.set(Listing(b"one\n"))
    assert working.changed() is None
    working.set(Listing(b"two\n"))
    assert working.changed() == b"two\n"
    assert working.is_foreseen()
    path.write_bytes(b"three\n")
    assert not working.is_foreseen()
