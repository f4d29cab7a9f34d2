"""Files that are no notes, or do not read. Law: they are named, left alone, and hold up nothing else."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.errors import Busy, MemdError, Refused, Storage, Unreadable
from memd.fs import Disk
from memd.store import Finding, Forgotten, Rebuild, Rebuilt, Reconcile, Reconciled, Store
from support.disks import WRITING, FailingDisk, FastDisk
from support.stores import Clock, Kept, forget, objects, opened, rows, save, standing, usage


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A store of two notes."""
    kept = opened(tmp_path / "store")
    kept.saved("alpha", "The words of alpha.")
    kept.saved("beta", "The words of beta.")
    return kept


def kinds(findings: tuple[Finding, ...]) -> set[tuple[str, str | None]]:
    """Each finding's kind and file."""
    return {(finding.kind, finding.file) for finding in findings}


def symlink(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def broken_symlink(path: Path) -> None:
    path.symlink_to("nowhere")


def directory(path: Path) -> None:
    path.mkdir()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def huge(path: Path) -> None:
    path.write_bytes(b"x" * ((1 << 20) + 1))


BLOCKING: list[tuple[Callable[[Path], None], str]] = [
    (symlink, "symlink"),
    (broken_symlink, "symlink"),
    (directory, "unreadable"),
    (fifo, "unreadable"),
    (huge, "oversize"),
]


@pytest.mark.parametrize(("make", "kind"), BLOCKING)
def test_what_is_no_note_is_named_and_left_alone(kept: Kept, make: Callable[[Path], None], kind: str) -> None:
    path = kept.file("odd")
    make(path)
    before = path.lstat()
    assert kept.do(Reconcile()) == Reconciled()
    assert "odd" not in kept.entries
    assert kinds(kept.store.check()) == {(kind, "odd.md")}
    assert kept.store.verify() == ()
    with pytest.raises(Refused, match="not a note") as refusal:
        kept.saved("odd", "New.")
    assert refusal.value.field == "name"
    with pytest.raises(MemdError):
        kept.do(forget("odd"))
    kept.saved("other", "The store goes on.")
    kept.do(Rebuild())
    assert path.lstat() == before
    assert opened(kept.directory).entries.keys() == {"alpha", "beta", "other"}


@pytest.mark.parametrize(("make", "kind"), BLOCKING)
def test_a_note_that_was_replaced_by_such_a_thing_is_not_forgotten(
    kept: Kept, make: Callable[[Path], None], kind: str
) -> None:
    text = kept.file("alpha").read_bytes()
    kept.file("alpha").unlink()
    make(kept.file("alpha"))
    assert kept.do(Reconcile()) == Reconciled()
    assert "alpha" not in kept.entries
    assert kinds(kept.store.check()) == {(kind, "alpha.md")}
    assert rows(kept.directory)[0].startswith("- [alpha](alpha.md)")
    assert kinds(kept.store.verify()) == {(kind, "alpha.md")}
    rebuilt = kept.do(Rebuild())
    assert isinstance(rebuilt, Rebuilt)
    assert rebuilt.restored == 0
    with pytest.raises(Refused):
        kept.saved("alpha", "New.")
    path = kept.file("alpha")
    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    path.write_bytes(text)
    kept.do(Reconcile())
    assert kept.entries.keys() == {"alpha", "beta"}
    assert kept.store.verify() == ()


@pytest.mark.parametrize("raw", [b"\0" * 500, b"---\nname: \xff\n---\n\xfe\xfe", b"\xef\xbb\xbf", b"---\r\n---\r\n"])
def test_a_note_of_any_bytes_is_a_note(kept: Kept, raw: bytes) -> None:
    kept.file("odd").write_bytes(raw)
    assert kept.do(Reconcile()) == Reconciled(adopted=("odd",))
    assert kept.file("odd").read_bytes() == raw
    assert raw in objects(kept.directory).values()
    assert kept.store.verify() == ()
    kept.saved("odd", "Better.")
    assert raw in objects(kept.directory).values()


def test_a_note_that_does_not_read_is_named_and_the_others_are_served(tmp_path: Path) -> None:
    template = tmp_path / "store"
    opened(template).commit(save("alpha", "A."), save("beta", "B."))
    kept = Kept(template, Unreadables("alpha.md"))
    kept.open()
    assert kept.entries.keys() == {"beta"}
    assert kinds(kept.store.check()) == {("unreadable", "alpha.md")}
    assert kinds(kept.store.verify()) == {("unreadable", "alpha.md")}
    assert kept.ops() == ["save", "save"]
    for request in (save("alpha", "New."), forget("alpha")):
        with pytest.raises(Unreadable):
            kept.do(request)
    with pytest.raises(Unreadable):
        kept.store.read_now("alpha")
    rebuilt = kept.do(Rebuild())
    assert isinstance(rebuilt, Rebuilt)
    assert rebuilt.restored == 0
    kept.saved("gamma", "C.")
    assert [line[:10] for line in rows(template)] == ["- [alpha](", "- [beta](b", "- [gamma]("]
    opened(template)
    assert opened(template).store.verify() == ()


class Unreadables(FastDisk):
    """Does not read the files of these names."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def step(self, call: str, path: Path) -> None:
        super().step(call, path)
        if call == "read" and path.name in self.names:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


# -- usage.json and MEMORY.md ----------------------------------------------------------------------------------------

CORRUPT_USAGE = [b"", b"{", b"\0" * 100, b"[]", b'{"sessions": 1}', b'{"sessions": -1, "notes": {}}', b"\xff\xfe"]


@pytest.mark.parametrize("raw", CORRUPT_USAGE)
def test_usage_that_does_not_parse_is_refused_and_never_read_as_empty(kept: Kept, raw: bytes) -> None:
    path = kept.directory / "usage.json"
    path.write_bytes(raw)
    before = standing(kept.directory)
    for request in (save("new", "New."), save("alpha", "New."), forget("beta")):
        with pytest.raises(Unreadable, match="usage"):
            kept.do(request)
    assert standing(kept.directory) == before
    assert path.read_bytes() == raw
    assert kinds(kept.store.check()) == {("unreadable", "usage.json")}
    kept.file("hand").write_text("By hand.\n")
    assert kept.do(Reconcile()) == Reconciled(adopted=("hand",)), "what a hand does goes on being taken in"
    kept.do(Rebuild())
    assert (kept.directory / "usage.bad.1").read_bytes() == raw
    assert usage(kept.directory)["alpha"]["saves"] == 1
    assert kept.store.check() == ()
    kept.saved("new", "New.")


def test_usage_that_is_a_directory(kept: Kept) -> None:
    (kept.directory / "usage.json").unlink()
    (kept.directory / "usage.json").mkdir()
    with pytest.raises(Unreadable):
        kept.saved("new", "New.")
    kept.do(Rebuild())
    assert (kept.directory / "usage.bad.1").is_dir()
    assert usage(kept.directory)["alpha"]["saves"] == 1


def test_a_second_corrupt_usage_does_not_replace_the_first(kept: Kept) -> None:
    for number in (1, 2):
        (kept.directory / "usage.json").write_bytes(b"bad %d" % number)
        kept.do(Rebuild())
    assert (kept.directory / "usage.bad.1").read_bytes() == b"bad 1"
    assert (kept.directory / "usage.bad.2").read_bytes() == b"bad 2"


def not_utf8(path: Path) -> None:
    path.write_bytes(b"- [alpha](alpha.md) \xff\n")


@pytest.mark.parametrize("make", [not_utf8, symlink, directory, fifo])
def test_an_index_that_does_not_read_is_refused_and_left_alone(kept: Kept, make: Callable[[Path], None]) -> None:
    path = kept.directory / "MEMORY.md"
    path.unlink()
    make(path)
    status = path.lstat()
    for request in (save("new", "New."), forget("beta")):
        with pytest.raises(Unreadable, match="MEMORY"):
            kept.do(request)
    assert kinds(kept.store.check()) == {("unreadable", "MEMORY.md")}
    kept.file("hand").write_text("By hand.\n")
    kept.file("beta").unlink()
    assert kept.do(Reconcile()) == Reconciled(adopted=("hand",), forgotten=("beta",))
    kept.do(Rebuild())
    assert path.lstat() == status
    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    kept.do(Reconcile())
    assert [line[:9] for line in rows(kept.directory)] == ["- [alpha]", "- [hand]("]
    assert "beta" not in usage(kept.directory)


def test_a_forget_by_hand_leaves_no_counts_behind_when_they_do_not_read_meanwhile(kept: Kept) -> None:
    path = kept.directory / "usage.json"
    counts = path.read_bytes()
    path.write_bytes(b"{")
    kept.file("beta").unlink()
    kept.do(Reconcile())
    path.write_bytes(counts)
    kept.do(Reconcile())
    assert usage(kept.directory).keys() == {"alpha"}


# -- objects ---------------------------------------------------------------------------------------------------------


def test_an_object_that_is_gone_or_holds_something_else_is_named_and_made_again_from_the_file(kept: Kept) -> None:
    for name, damage in (("alpha", Path.unlink), ("beta", lambda path: path.write_bytes(b"else"))):
        damage(kept.directory / "objects" / kept.entries[name].hash.removeprefix("sha256:"))
    assert {(finding.kind, finding.name) for finding in kept.store.verify()} == {
        ("missing_object", "alpha"),
        ("missing_object", "beta"),
    }
    rebuilt = kept.do(Rebuild())
    assert isinstance(rebuilt, Rebuilt)
    assert rebuilt.missing == ("alpha", "beta")
    assert kept.store.verify() == ()
    rebuilt = kept.do(Rebuild())
    assert isinstance(rebuilt, Rebuilt)
    assert rebuilt.missing == ()


def test_an_earlier_version_that_is_gone_stays_named(kept: Kept) -> None:
    first = kept.entries["alpha"].hash
    kept.saved("alpha", "Second.")
    (kept.directory / "objects" / first.removeprefix("sha256:")).unlink()
    for _ in range(2):
        rebuilt = kept.do(Rebuild())
        assert isinstance(rebuilt, Rebuilt)
        assert rebuilt.missing == ("alpha",)
    [finding] = kept.store.verify()
    assert "earlier" in finding.reason
    forgotten = kept.do(forget("alpha"))
    assert isinstance(forgotten, Forgotten)
    assert forgotten.versions == 2
    assert kept.store.verify() == ()


def test_what_differs_is_named_by_rebuild_and_verify_and_not_touched(kept: Kept) -> None:
    kept.file("alpha").write_text("By hand.\n")
    assert [(finding.kind, finding.file) for finding in kept.store.verify()] == [("differs", "alpha.md")]
    rebuilt = kept.do(Rebuild())
    assert isinstance(rebuilt, Rebuilt)
    assert rebuilt.differ == ("alpha",)
    assert kept.file("alpha").read_text() == "By hand.\n"
    assert kept.ops("alpha") == ["save"]


def test_verify_changes_nothing_and_hides_nothing_from_the_next_reconcile(kept: Kept) -> None:
    kept.file("alpha").unlink()
    kept.file("new").write_text("New.\n")
    kept.touch_directory()
    before = {path: path.read_bytes() for path in kept.directory.rglob("*") if path.is_file()}
    assert kinds(kept.store.verify()) == {("differs", "alpha.md")}
    assert {path: path.read_bytes() for path in kept.directory.rglob("*") if path.is_file()} == before
    kept.saved("beta", "Two.")
    assert kept.ops("new") == ["adopt/hand"]
    assert kept.ops("alpha") == ["save", "forget/hand"]


# -- the lock --------------------------------------------------------------------------------------------------------


def test_a_lock_held_elsewhere_is_busy_and_changes_nothing(kept: Kept) -> None:
    with Disk().locked(kept.directory / ".lock", 1.0):
        for request in (save("new", "New."), forget("beta"), Reconcile()):
            with pytest.raises(Busy):
                kept.do(request)
        with pytest.raises(Busy):
            kept.store.check()
        opened = Store(kept.directory, lock_timeout=0.01).open()
        assert {change.name for change in opened.changes} >= {"alpha", "beta"}, "what stands there is served"
        read = kept.store.read_now("alpha")
        assert read is not None, "a text is read without the lock"
    kept.saved("new", "New.")


def test_a_lock_that_is_no_file_is_storage(kept: Kept) -> None:
    (kept.directory / ".lock").unlink()
    (kept.directory / ".lock").mkdir()
    with pytest.raises(Storage):
        kept.saved("new", "New.")
    read = kept.store.read_now("alpha")
    assert read is not None


# -- disks that cannot be written to ---------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_where_nothing_can_be_written_the_notes_are_served_as_they_stand(kept: Kept, error: int) -> None:
    kept.file("alpha").write_text("By hand.\n")
    disk = FailingDisk(error, lasting=True, calls=WRITING | {"lock"})
    disk.arm(1)
    other = Kept(kept.directory, disk)
    other.open()
    assert other.entries.keys() == {"alpha", "beta"}
    read = other.store.read_now("alpha")
    assert read is not None
    assert read[0] == b"By hand.\n"
    with pytest.raises(Storage):
        other.saved("new", "New.")
    disk.heal()
    other.saved("new", "New.")
    assert other.ops("alpha") == ["save", "edit/hand"]
    assert other.entries["alpha"].hook == "By hand."


def test_a_read_only_store_is_still_looked_at(kept: Kept) -> None:
    disk = FailingDisk(errno.EROFS, lasting=True, calls=WRITING | {"lock"})
    disk.arm(1)
    other = Kept(kept.directory, disk)
    other.open()
    kept.saved("alpha", "Two.")
    assert [record.name for record in other.store.records()] == ["alpha", "beta", "alpha"]
    assert other.store.verify() == other.store.check() == ()
    assert other.store.read_version("alpha", kept.entries["alpha"].hash)


def test_a_store_behind_a_symlink_works(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    kept = opened(tmp_path / "link")
    kept.saved("alpha", "The words of alpha.")
    assert (tmp_path / "real" / "alpha.md").is_file()
    kept.file("new").write_text("New.\n")
    assert kept.do(Reconcile()) == Reconciled(adopted=("new",))
    assert opened(tmp_path / "link").store.verify() == ()


def test_what_memd_makes_is_closed_to_others(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "home" / "projects" / "key" / "memory", origin=tmp_path)
    kept.saved("alpha", "The words of alpha.")
    made = [tmp_path / "home", *(tmp_path / "home").rglob("*")]
    assert {oct(path.stat().st_mode & 0o777) for path in made if path.is_dir()} == {"0o700"}
    assert {oct(path.stat().st_mode & 0o777) for path in made if path.is_file()} == {"0o600"}


def test_a_store_is_whose_opens_it_first(tmp_path: Path) -> None:
    kept = opened(tmp_path / "store", origin=Path("/one"))
    kept.saved("alpha", "A.")
    assert (tmp_path / "store" / ".origin").read_bytes() == b"/one\n"
    opened(tmp_path / "store", origin=Path("/two"))
    assert (tmp_path / "store" / ".origin").read_bytes() == b"/one\n"


def test_a_clock_that_is_set_back_keeps_nothing_waiting_for_long(kept: Kept) -> None:
    kept.file("alpha").write_text("By hand.\n")
    clock = Clock(-3600)
    other = opened(kept.directory, clock=clock)
    assert other.ops("alpha") == ["save", "edit/hand"]
