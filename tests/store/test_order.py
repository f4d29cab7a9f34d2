"""The order of a write, call by call. Law: nothing is promised before what it rests on is durable (SPEC 4)."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memd import fs
from memd.draft import draft
from memd.errors import Refused, Storage
from memd.fs import Stamp
from memd.store import Reconcile, Rename, Save
from memd.usage import Usage
from support.disks import Crash, CrashingDisk, FailingDisk, FastDisk
from support.stores import ME, Kept, check_invariants, forget, holding, opened, save
from support.waiting import until


class Log(FastDisk):
    """Keeps the calls that write, each as `call what`: an object, a note, a directory or a file by its name."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self.calls: list[str] = []
        self.staged: dict[str, str] = {}

    def step(self, call: str, path: Path) -> None:
        super().step(call, path)
        if call in ("fsync", "rename", "unlink", "truncate", "mkdir"):
            self.calls.append(f"{call} {self.what(path)}")

    def what(self, path: Path) -> str:
        if path == self.directory:
            return "store"
        if path.suffix == ".tmp":
            return f"staged {path.parent.name}"
        return "object" if path.parent.name == "objects" else path.name


class Slow(FastDisk):
    """A disk on which the clock ticks while anything is synced."""

    def sync(self, fd: int, path: Path) -> None:
        if path.suffix == ".tmp":
            written, probe = os.fstat(fd).st_mtime_ns, path.with_name(".probe.tmp")
            until(lambda: ticked(probe) > written)
            probe.unlink()


def ticked(path: Path) -> int:
    """What the disk's clock says now."""
    path.write_bytes(b"")
    return path.stat().st_mtime_ns


@pytest.fixture
def kept(room: Path) -> Kept:
    """A store of one note of two versions, its calls from now on logged."""
    kept = opened(room / "store", Log(room / "store"))
    kept.saved("alpha", "One.")
    kept.saved("alpha", "Two.")
    calls(kept).clear()
    return kept


def calls(kept: Kept) -> list[str]:
    """What the store has asked of the disk."""
    assert isinstance(kept.disk, Log)
    return kept.disk.calls


def test_a_save_syncs_what_it_renames_and_the_directories_before_the_journal(kept: Kept) -> None:
    kept.saved("beta", "Three.")
    assert calls(kept) == [
        "fsync object",
        "fsync staged store",
        "fsync staged store",
        "fsync staged store",
        "rename beta.md",
        "rename MEMORY.md",
        "unlink staged store",
        "rename usage.json",
        "fsync objects",
        "fsync store",
        "fsync ops.jsonl",
    ]


def test_the_first_save_makes_its_names_durable_before_it_writes_the_journal(room: Path) -> None:
    log = Log(room / "store")
    kept = Kept(room / "store", log)
    kept.saved("alpha", "One.")
    assert log.calls == [
        "mkdir store",
        f"fsync {room.name}",
        "fsync ops.jsonl",
        "fsync store",
        "mkdir objects",
        "fsync store",
        "fsync object",
        "fsync staged store",
        "fsync staged store",
        "fsync staged store",
        "rename alpha.md",
        "rename MEMORY.md",
        "rename usage.json",
        "fsync objects",
        "fsync store",
        "fsync ops.jsonl",
    ]


def test_a_forget_removes_file_row_count_and_objects_and_only_then_says_so(kept: Kept) -> None:
    kept.do(forget("alpha"))
    assert calls(kept) == [
        "fsync staged store",
        "fsync staged store",
        "unlink alpha.md",
        "unlink staged objects",
        "rename MEMORY.md",
        "unlink staged store",
        "rename usage.json",
        "fsync store",
        "unlink object",
        "unlink object",
        "fsync objects",
        "fsync ops.jsonl",
    ]


def test_a_forget_removes_the_heads_object_first(kept: Kept) -> None:
    head = kept.entries["alpha"].hash.removeprefix("sha256:")
    kept.do(forget("alpha"))
    removed = [name for call, name in kept.disk.log if call == "unlink" and len(name) == 64]  # type: ignore[attr-defined]
    assert removed[0] == head


def test_a_hand_edit_is_an_object_and_journaled_before_it_is_replaced(kept: Kept) -> None:
    kept.file("alpha").write_text("By hand.\n")
    kept.saved("alpha", "Three.")
    done = calls(kept)
    assert done.count("fsync ops.jsonl") == 2
    assert done.index("fsync object") < done.index("fsync objects") < done.index("fsync ops.jsonl")
    assert done.index("fsync ops.jsonl") < done.index("rename alpha.md")
    assert kept.ops("alpha") == ["save", "save", "edit/hand", "save"]


def test_a_hand_edit_is_taken_in_before_a_forget_too(kept: Kept) -> None:
    kept.file("alpha").write_text("By hand.\n")
    kept.do(forget("alpha"))
    assert calls(kept).index("fsync ops.jsonl") < calls(kept).index("unlink alpha.md")
    assert kept.ops("alpha") == ["save", "save", "edit/hand", "forget"]


def test_a_version_that_lost_its_object_gets_one_before_it_is_replaced(kept: Kept) -> None:
    head = kept.entries["alpha"].hash.removeprefix("sha256:")
    (kept.directory / "objects" / head).unlink()
    kept.saved("alpha", "Three.")
    done = calls(kept)
    assert done.count("fsync object") == 2
    assert done.index("fsync objects") < done.index("rename alpha.md")
    assert kept.store.verify() == ()


def test_an_object_that_is_there_already_is_replaced_like_any_other_file(kept: Kept) -> None:
    text = kept.file("alpha").read_bytes()
    (path,) = [path for path in (kept.directory / "objects").iterdir() if path.read_bytes() == text]
    path.write_bytes(text[:-4])  # what a disk has spoilt
    kept.saved("alpha", "Three.")
    calls(kept).clear()
    kept.saved("alpha", "Two.")
    done = calls(kept)
    assert (done.count("fsync staged objects"), done.count("rename object")) == (1, 1)
    assert path.read_bytes() == text
    assert kept.store.verify() == ()


def test_what_is_written_at_an_objects_place_and_never_journaled_is_swept(room: Path) -> None:
    disk = FailingDisk(errno.EIO, calls={"fsync"})
    kept = opened(room / "store", disk)
    kept.saved("alpha", "One.")
    disk.arm(1)
    with pytest.raises(Storage):
        kept.saved("beta", "Never kept.")
    disk.heal()
    assert holding(kept.directory, b"Never kept.") == []
    kept.saved("beta", "Kept.")
    check_invariants(kept.directory)


@pytest.fixture
def broken(room: Path) -> Path:
    """A store whose journal has a line that does not read: of an object that no record names nothing is known."""
    kept = opened(room / "store")
    kept.saved("alpha", "One.")
    kept.saved("alpha", "Two.")
    first, second = (kept.directory / "ops.jsonl").read_bytes().splitlines(keepends=True)
    (kept.directory / "ops.jsonl").write_bytes(first[:20] + b"\n" + second)
    return kept.directory


@pytest.mark.parametrize(("call", "error"), [("write", errno.ENOSPC), ("fsync", errno.EIO)])
def test_what_is_refused_beside_a_broken_journal_leaves_no_object(broken: Path, call: str, error: int) -> None:
    disk = FailingDisk(error, calls={call})
    kept = opened(broken, disk)
    disk.arm(1)
    with pytest.raises(Storage):
        kept.saved("beta", "Never kept." * 9)
    disk.heal()
    assert holding(broken, b"Never kept.") == []
    kept.saved("beta", "Kept.")
    assert kept.file("beta").read_bytes() == (broken / "objects" / kept.entries["beta"].hash[7:]).read_bytes()


def test_what_a_crash_cuts_short_beside_a_broken_journal_is_no_object(broken: Path) -> None:
    disk = CrashingDisk(half=True)
    kept = opened(broken, disk)
    disk.arm(1)
    with pytest.raises(Crash):
        kept.saved("beta", "Never kept." * 9)
    opened(broken)
    assert holding(broken, b"Never kept.") == []


def test_a_version_that_goes_again_in_its_batch_is_no_object_in_between(kept: Kept) -> None:
    kept.commit(save("new", "Never to be seen."), forget("new"))
    assert "fsync object" not in calls(kept)


def test_a_reader_knows_the_file_that_was_written_by_its_stamp(kept: Kept) -> None:
    kept.saved("beta", "Three.")
    assert kept.entries["beta"].stamp == Stamp.of(kept.file("beta").lstat())


def test_what_memd_wrote_itself_is_not_decoded_again(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []

    def decode(raw: bytes) -> Usage:
        decoded.append(raw)
        return Usage.decode(raw)

    monkeypatch.setattr(kept.store.state.usage, "decode", decode)
    for number in range(4):
        kept.saved("beta", f"Number {number}.")
    assert decoded == []


def test_a_batch_is_one_commit(kept: Kept) -> None:
    kept.commit(*(save(f"note-{number}", f"Number {number}.") for number in range(10)))
    done = calls(kept)
    assert done.count("fsync ops.jsonl") == done.count("fsync store") == done.count("fsync objects") == 1
    assert done.count("rename MEMORY.md") == 1
    staged = [at for at, call in enumerate(done) if call in ("fsync object", "fsync staged store")]
    assert len(staged) == 22
    assert max(staged) < min(at for at, call in enumerate(done) if call.startswith("rename"))


def test_a_reconcile_that_finds_nothing_writes_nothing(kept: Kept) -> None:
    kept.do(Reconcile())
    assert calls(kept) == []


def test_a_save_asks_no_more_of_the_disk_when_there_are_more_notes(room: Path) -> None:
    kept = opened(room / "store")
    counts = []
    for size in (10, 300):
        kept.commit(*(save(f"note-{number}", "One.") for number in range(size)))
        kept.do(Reconcile())
        disk = kept.disk
        assert isinstance(disk, FastDisk)
        disk.log.clear()
        kept.saved("note-7", f"Of {size}.")
        counts.append(sum(call != "read" for call, _ in disk.log))  # a young file is read once more
    assert counts[0] == counts[1]


def test_a_reconcile_reads_no_note_whose_stamp_is_the_same_and_old(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = opened(room / "store")
    kept.commit(*(save(f"note-{number}", "One.") for number in range(30)))
    kept.do(Reconcile())
    disk = kept.disk
    assert isinstance(disk, FastDisk)
    monkeypatch.setattr(fs, "YOUNG_NS", -3600 * 10**9)
    kept.do(Reconcile())
    assert [name for call, name in disk.log if call == "read"]
    disk.log.clear()
    kept.do(Reconcile())
    assert [name for call, name in disk.log if call == "read"] == []


def test_a_reconcile_reads_a_note_that_was_written_just_before_it_was_looked_at(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = opened(room / "store")
    kept.file("alpha").write_text("In its place, by hand: its content and its name are of one time.\n")
    disk = kept.disk
    assert isinstance(disk, FastDisk)
    monkeypatch.setattr(fs, "YOUNG_NS", 3600 * 10**9)
    kept.do(Reconcile())
    disk.log.clear()
    kept.do(Reconcile())
    assert ("read", "alpha.md") in disk.log


def test_what_memd_put_in_place_a_tick_after_it_wrote_it_is_read_neither_by_a_reconcile_nor_by_the_next_save(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Slow()
    kept = opened(room / "store", disk)
    monkeypatch.setattr(fs, "YOUNG_NS", 3600 * 10**9)
    kept.saved("alpha", "One.")
    disk.log.clear()
    kept.do(Reconcile())
    kept.saved("alpha", "Two.")
    assert [name for call, name in disk.log if call == "read" and name not in ("MEMORY.md", "usage.json")] == []
    with kept.file("alpha").open("r+") as file:
        file.write("By")  # of the same length, in the same file
    kept.saved("alpha", "Three.")
    assert kept.ops("alpha") == ["save", "save", "edit/hand", "save"]
    check_invariants(kept.directory)


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[::-1])])
def test_a_text_whose_object_is_not_the_one_that_was_written_is_an_object_again_before_it_is_replaced(
    room: Path, spoil: Callable[[Path], object]
) -> None:
    kept = opened(room / "store", Slow())
    kept.saved("alpha", "One.")
    text = kept.file("alpha").read_bytes()
    (object_path,) = (kept.directory / "objects").iterdir()
    spoil(object_path)
    kept.saved("alpha", "Two.")
    assert object_path.read_bytes() == text
    check_invariants(kept.directory)


def test_a_save_of_a_note_that_need_not_be_read_keeps_its_unknown_keys_and_finds_what_a_mask_stands_for(
    room: Path,
) -> None:
    disk = Slow()
    kept = opened(room / "store", disk)
    kept.commit(Save(draft("One.", {"name": "alpha", "type": "user", "description": "One", "owner": "Ann"}), ME))
    disk.log.clear()
    kept.saved("alpha", "Two.")
    assert "read" not in {call for call, name in disk.log if name not in ("MEMORY.md", "usage.json")}
    assert "\nowner: Ann\n" in kept.file("alpha").read_text()
    key = "ghp_" + "a1" * 12
    kept.file("alpha").write_text(f"---\ntoken: {key}\n---\n")
    kept.do(Reconcile())
    (refused,) = kept.commit(save("alpha", "[redacted]"))
    assert isinstance(refused, Refused)


def test_a_renamed_text_stands_for_good_before_its_old_name_goes(kept: Kept) -> None:
    kept.saved("alpha", "One.")
    disk = FastDisk()
    kept.use(disk)
    kept.do(Rename("alpha", "omega", ME))
    between = disk.log[disk.log.index(("rename", "omega.md")) : disk.log.index(("unlink", "alpha.md"))]
    assert ("fsync", kept.directory.name) in between, "the power may keep the removal and not the rename"
