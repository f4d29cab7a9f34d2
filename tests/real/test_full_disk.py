"""A real file system that is full, has no inodes left, or turned read-only (SPEC 4): as root, on a small tmpfs."""

import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import memd_client
from support.daemon import Daemon

KIB = 1024
MIB = 1024 * KIB
SIZES = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 512 * KIB, 1024 * KIB, 4096 * KIB]


def run(*command: str) -> None:
    """A program of the system; the test fails with what it says when it does."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{command}: {done.stderr}"


@contextmanager
def small_disk(options: str) -> Iterator[Daemon]:
    """A daemon, not started, whose home is the root of a tmpfs made with these options."""
    root = Path(tempfile.mkdtemp(prefix="memd-full-", dir="/tmp"))
    daemon = Daemon(root)
    daemon.home.mkdir(mode=0o700)
    daemon.env["MEMD_SOCKET"] = str(root / "memd.sock")
    run("mount", "-t", "tmpfs", "-o", f"{options},mode=0700", "memd-test", str(daemon.home))
    try:
        yield daemon
    finally:
        daemon.close()
        run("umount", str(daemon.home))
        shutil.rmtree(root)


def fill(daemon: Daemon) -> dict[str, str]:
    """Save notes until the disk takes no more; what was acknowledged, by name."""
    kept: dict[str, str] = {}
    for number in itertools.count():
        name, body = f"note-{number}", f"The words of note {number}." * 40
        refused = refusal(daemon, name, body)
        if refused is not None:
            assert "nothing was acknowledged" in refused
            assert "disk" in refused
            return kept
        kept[name] = body
    raise AssertionError


def refusal(daemon: Daemon, name: str, body: str) -> str | None:
    """What a save is refused with for want of room; None when it was not."""
    try:
        daemon.save(name, body)
    except memd_client.Storage as error:
        return error.message
    return None


def starts(daemon: Daemon) -> bool:
    """Whether a daemon can serve this home at all; on the smallest disks it says why not, and ends."""
    try:
        daemon.start()
    except AssertionError:
        assert "No space left" in daemon.log
        return False
    return True


@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", SIZES)
def test_a_disk_that_fills_loses_nothing_and_forget_works(size: int) -> None:
    with small_disk(f"size={size}") as daemon:
        if not starts(daemon):
            assert size <= 16 * KIB
            return
        kept = fill(daemon)
        assert set(daemon.names()) >= kept.keys()
        daemon.kill()
        daemon.start()
        for name, body in kept.items():
            assert daemon.call("memory.show", name=name)["markdown"].endswith(f"\n\n{body}\n")
        assert daemon.call("memory.verify")["ok"]
        names = daemon.names()
        assert len(names) >= size // (64 * KIB)
        if not names:
            return
        reserve = daemon.home / ".reserve"
        assert reserve.exists() == (size >= MIB)
        fill_up(daemon.home / "filler")
        daemon.call("memory.forget", name=names[0])
        assert names[0] not in daemon.names()
        assert not reserve.exists()
        assert daemon.call("memory.verify")["ok"]
        assert f"]({names[0]}.md)" not in (daemon.store / "MEMORY.md").read_text()
        (daemon.home / "filler").unlink()
        for name in names[len(names) // 4 :]:
            daemon.call("memory.forget", name=name)
        daemon.save("after", "There is room again.")
        assert reserve.exists() == (size >= MIB)
        assert daemon.call("memory.verify")["ok"]


def fill_up(filler: Path) -> None:
    """Take every block the disk has left."""
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        list(map(file.write, itertools.repeat(bytes(KIB))))


def test_no_inodes_left() -> None:
    with small_disk("size=16m,nr_inodes=40") as daemon:
        daemon.start()
        kept = fill(daemon)
        assert set(daemon.names()) >= kept.keys()
        assert kept
        daemon.call("memory.forget", name=next(iter(kept)))
        assert daemon.call("memory.verify")["ok"]


def test_remounted_read_only_and_back() -> None:
    with small_disk("size=4m") as daemon:
        daemon.start()
        daemon.save("note", "words")
        # The lifetime lock is open for writing, which keeps the file system itself from turning read-only: a mount
        # over it does what a disk that failed does.
        run("mount", "--bind", str(daemon.home), str(daemon.home))
        run("mount", "-o", "remount,bind,ro", str(daemon.home))
        with pytest.raises(memd_client.Storage):
            daemon.save("other", "words")
        assert daemon.found("words") == ["note"]
        assert daemon.call("memory.read", name="note")["text"] == "words"
        run("umount", str(daemon.home))
        daemon.save("other", "words")
        assert daemon.names() == ["note", "other"]
