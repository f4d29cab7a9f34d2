"""The journal as a file that others write too. Law: what is torn is kept, what is broken is named, and it goes on."""

import errno
import os
from pathlib import Path

import pytest

from memd import journal
from memd.errors import Storage, Unreadable
from memd.journal import Record, content_hash
from memd.store import Count, Rebuild, Rebuilt, Reconcile, Reconciled, Saved
from support.disks import FailingDisk, FastDisk
from support.stores import ME, Kept, check_invariants, forget, heads, holding, objects, opened, records, save


@pytest.fixture
def kept(room: Path) -> Kept:
    """A store of two notes, one of two versions."""
    kept = opened(room / "store")
    kept.saved("alpha", "One.")
    kept.saved("beta", "Two.")
    kept.saved("alpha", "Three.")
    return kept


def ops(kept: Kept) -> Path:
    return kept.directory / "ops.jsonl"


def torn_aside(kept: Kept) -> list[bytes]:
    """What was set aside, in order."""
    return [path.read_bytes() for path in sorted(kept.directory.glob("ops.torn.*"))]


def foreign(kept: Kept, *parts: tuple[str, str, str]) -> None:
    """What a process of the first seed's kind writes under the lock: a record of (op, name, hash) each."""
    whole = ops(kept).read_bytes()
    last = journal.last_record(whole)
    digest = "" if last is None else last.digest
    with kept.disk.locked(kept.directory / ".lock", 1.0), ops(kept).open("ab") as file:
        for op, name, version in parts:
            sealed = journal.seal(Record(op, name, version, 1_780_000_000), digest)
            digest = sealed.digest
            file.write(journal.encode(sealed))


# -- torn ------------------------------------------------------------------------------------------------------------


def test_torn_at_every_byte_of_the_last_record_nothing_is_lost_and_the_tail_is_kept(kept: Kept) -> None:
    whole = ops(kept).read_bytes()
    last = whole[whole.rindex(b"\n", 0, -1) + 1 :]
    start = len(whole) - len(last)
    for cut in range(start, len(whole)):
        for path in kept.directory.glob("ops.torn.*"):
            path.unlink()
        ops(kept).write_bytes(whole[:cut])
        again = opened(kept.directory)
        tail = whole[start:cut]
        assert again.ops()[:2] == ["save", "save"]
        assert again.ops("alpha")[-1] == "edit/hand", "the file is not its head, so it is taken in"
        assert torn_aside(again) == ([tail] if tail else [])
        assert {finding.kind for finding in again.store.check()} == ({"torn"} if tail else set())
        assert again.store.verify() == ()
        check_invariants(kept.directory)


@pytest.mark.parametrize(
    "tail", [b"\0" * 4096, b"garbage", b"garbage\n", b"\n", b"{}\n", b'{"at":1', b"\xff\xfe\n\n"]
)
def test_garbage_after_the_last_record_is_named_and_set_aside_by_the_next_write(kept: Kept, tail: bytes) -> None:
    with ops(kept).open("ab") as file:
        file.write(tail)
    for store in (kept, opened(kept.directory)):
        assert [finding.kind for finding in store.store.verify()] == ["torn"]
        assert store.ops() == ["save", "save", "save"]
    kept.saved("gamma", "Four.")
    assert torn_aside(kept) == [tail]
    assert kept.ops() == ["save", "save", "save", "save"]
    assert [finding.file for finding in kept.store.check()] == ["ops.torn.1"]
    assert kept.store.verify() == ()
    check_invariants(kept.directory)


def test_each_tail_has_a_file_of_its_own(kept: Kept) -> None:
    for number in (1, 2, 3):
        with ops(kept).open("ab") as file:
            file.write(b"tail %d" % number)
        kept.saved("gamma", f"Number {number}.")
    assert torn_aside(kept) == [b"tail 1", b"tail 2", b"tail 3"]


def test_reading_alone_sets_nothing_aside(kept: Kept) -> None:
    with ops(kept).open("ab") as file:
        file.write(b"tail")
    again = opened(kept.directory)
    again.store.verify()
    again.store.records()
    assert torn_aside(kept) == []
    assert ops(kept).read_bytes().endswith(b"tail")


# -- broken ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flip", ["a letter of a name", "a digit of a hash", "a brace"])
def test_a_flip_in_the_middle_is_named_and_all_goes_on(kept: Kept, flip: str) -> None:
    raw = bytearray(ops(kept).read_bytes())
    at = {
        "a letter of a name": raw.index(b'"name":"beta"') + 8,
        "a digit of a hash": raw.index(b'"hash":"sha256:', raw.index(b"\n")) + 20,
        "a brace": raw.index(b"\n") + 1,
    }[flip]
    raw[at] ^= 1
    ops(kept).write_bytes(raw)
    line = 2
    for store in (kept, opened(kept.directory)):
        findings = [finding for finding in store.store.verify() if finding.kind == "broken_chain"]
        assert [(finding.file, finding.line) for finding in findings] == [("ops.jsonl", line)]
        assert len(journal.replay(ops(kept).read_bytes()).records) >= 2
        rebuilt = store.do(Rebuild())
        assert isinstance(rebuilt, Rebuilt)
        assert rebuilt.broken_line == line
        outcome = store.do(save("gamma", "Four."))
        assert isinstance(outcome, Saved)
    replay = journal.replay(ops(kept).read_bytes())
    assert (replay.broken_line, replay.torn_bytes) == (line, 0)
    assert kept.file("beta").read_bytes().endswith(b"\n\nTwo.\n")


def test_a_flip_under_a_running_store_is_found_by_verify(kept: Kept) -> None:
    raw = bytearray(ops(kept).read_bytes())
    raw[raw.index(b'"op"')] ^= 1
    with ops(kept).open("r+b") as file:
        file.write(raw)
    foreign(kept, ("read", "beta", "sha256:" + "0" * 64))
    assert [finding.kind for finding in kept.store.verify()].count("broken_chain") == 1


def test_a_broken_journal_sweeps_no_object_it_does_not_name(kept: Kept) -> None:
    stray = kept.directory / "objects" / ("0" * 64)
    stray.write_bytes(b"perhaps the text of a record that is broken")
    raw = bytearray(ops(kept).read_bytes())
    raw[0] ^= 1
    ops(kept).write_bytes(raw)
    opened(kept.directory)
    assert stray.exists()


def test_a_journal_that_holds_nothing_but_garbage_sweeps_no_object(kept: Kept) -> None:
    before = objects(kept.directory)
    ops(kept).write_bytes(b"\0" * 1000)
    again = opened(kept.directory)
    assert objects(kept.directory).items() >= before.items()
    assert again.ops() == ["adopt/hand", "adopt/hand"]
    assert torn_aside(again) == [b"\0" * 1000]


def test_a_journal_that_is_gone_is_begun_again_and_sweeps_no_object(kept: Kept) -> None:
    before = objects(kept.directory)
    ops(kept).unlink()
    kept.do(Reconcile())
    assert kept.ops() == ["adopt/hand", "adopt/hand"]
    assert objects(kept.directory) == before
    assert kept.store.verify() == ()


@pytest.mark.parametrize("kind", ["directory", "symlink"])
def test_a_journal_that_is_no_file_refuses_everything_and_changes_nothing(kept: Kept, kind: str) -> None:
    raw = ops(kept).read_bytes()
    aside = kept.directory.with_name("aside")
    ops(kept).rename(aside)
    if kind == "directory":
        ops(kept).mkdir()
    else:
        ops(kept).symlink_to(aside)
    before = {path: path.read_bytes() for path in kept.directory.rglob("*.md")}
    for request in (save("gamma", "Four."), forget("alpha"), Reconcile(), Rebuild()):
        with pytest.raises(Unreadable):
            kept.do(request)
    with pytest.raises(Unreadable):
        opened(kept.directory)
    assert {path: path.read_bytes() for path in kept.directory.rglob("*.md")} == before
    assert aside.read_bytes() == raw
    ops(kept).rmdir() if kind == "directory" else ops(kept).unlink()
    aside.rename(ops(kept))
    kept.saved("gamma", "Four.")
    assert kept.ops() == ["save"] * 4
    check_invariants(kept.directory)


def test_a_flipped_operation_loses_no_version_that_a_read_names(kept: Kept) -> None:
    kept.read("alpha")
    kept.saved("alpha", "Five.")
    before = objects(kept.directory)
    raw = ops(kept).read_bytes()
    ops(kept).write_bytes(raw.replace(b'"op":"save"', b'"op":"rave"', 3).replace(b'"op":"rave"', b'"op":"save"', 2))
    for _ in range(2):
        again = opened(kept.directory)
        assert objects(kept.directory).items() >= before.items()
        assert [finding.line for finding in again.store.check() if finding.kind == "broken_chain"] == [3]


def test_a_flipped_name_is_no_note_that_a_hand_deleted(kept: Kept) -> None:
    kept.saved("alpha", "Five.")
    before = objects(kept.directory)
    ops(kept).write_bytes(ops(kept).read_bytes().replace(b'"name":"alpha"', b'"name":"alpho"', 1))
    again = opened(kept.directory)
    again.do(Reconcile())
    assert objects(kept.directory).items() >= before.items()
    assert ("differs", "alpho") in {(finding.kind, finding.name) for finding in again.store.verify()}
    again.do(Reconcile(accept=True))
    assert ("differs", "alpho") not in {(finding.kind, finding.name) for finding in again.store.verify()}


def test_two_last_records_that_became_one_line_lose_no_version(kept: Kept) -> None:
    kept.saved("alpha", "Five.")
    before = objects(kept.directory)
    lines = ops(kept).read_bytes().splitlines(keepends=True)
    ops(kept).write_bytes(b"".join(lines[:-2]) + lines[-2].replace(b"\n", b" ") + lines[-1])
    for _ in range(3):
        again = opened(kept.directory)
        again.saved("gamma", "Four.")
        assert objects(kept.directory).items() >= before.items()
    assert torn_aside(again) == [lines[-2].replace(b"\n", b" ") + lines[-1]]


@pytest.mark.parametrize("lost", ["gone", "emptied", "garbage", "a BOM"])
def test_texts_that_a_lost_journal_named_stay_until_somebody_has_looked(kept: Kept, lost: str) -> None:
    before = objects(kept.directory)
    for path in (kept.directory / "objects").iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    if lost == "gone":
        ops(kept).unlink()
    else:
        ops(kept).write_bytes({"emptied": b"", "garbage": bytes(1000), "a BOM": b"\xef\xbb\xbf"}[lost])
    for _ in range(3):
        again = opened(kept.directory)
        again.saved("gamma", "Four.")
        assert objects(kept.directory).items() >= before.items()
        assert [finding.file for finding in again.store.check()] == ["ops.torn.1"]
    (kept.directory / "ops.torn.1").unlink()
    again = opened(kept.directory)
    assert len(objects(kept.directory)) == 3
    assert again.store.verify() == again.store.check() == ()


def test_what_a_crash_left_before_the_first_record_goes(room: Path) -> None:
    objects_ = room / "store" / "objects"
    objects_.mkdir(parents=True)
    (room / "store" / "ops.jsonl").touch()
    os.utime(room / "store" / "ops.jsonl", (1_700_000_000, 1_700_000_000))
    (objects_ / ("0" * 64)).write_bytes(b"never acknowledged")
    opened(room / "store").saved("alpha", "One.")
    assert holding(room / "store", b"never acknowledged") == []
    assert torn_aside(opened(room / "store")) == []


# -- a journal that others write to ----------------------------------------------------------------------------------


def test_a_foreign_save_is_caught_up_with(kept: Kept) -> None:
    raw = b"---\nname: delta\ndescription: From elsewhere\ntype: user\n---\n\nHi.\n"
    kept.file("delta").write_bytes(raw)
    (kept.directory / "objects" / content_hash(raw).removeprefix("sha256:")).write_bytes(raw)
    foreign(kept, ("save", "delta", content_hash(raw)))
    kept.saved("gamma", "Four.")
    assert kept.entries["delta"].hook == "From elsewhere"
    assert kept.ops() == ["save", "save", "save", "save", "save"]
    check_invariants(kept.directory)
    assert kept.store.verify() == ()


def test_a_foreign_update_is_no_hand_edit(kept: Kept) -> None:
    raw = b"---\ndescription: Elsewhere\n---\n"
    kept.file("beta").write_bytes(raw)
    (kept.directory / "objects" / content_hash(raw).removeprefix("sha256:")).write_bytes(raw)
    foreign(kept, ("save", "beta", content_hash(raw)))
    assert kept.do(Reconcile()) == Reconciled()
    assert kept.entries["beta"].hook == "Elsewhere"
    assert kept.ops("beta") == ["save", "save"]


def test_a_foreign_forget_is_caught_up_with(kept: Kept) -> None:
    version = kept.entries["beta"].hash
    kept.file("beta").unlink()
    (kept.directory / "objects" / version.removeprefix("sha256:")).unlink()
    foreign(kept, ("forget", "beta", version))
    kept.do(Reconcile())
    assert kept.entries.keys() == {"alpha"}
    assert kept.ops("beta") == ["save", "forget"]
    check_invariants(kept.directory)


def test_what_looks_at_the_journal_does_not_hide_it_from_the_next_write(kept: Kept) -> None:
    raw = b"From elsewhere.\n"
    kept.file("beta").write_bytes(raw)
    (kept.directory / "objects" / content_hash(raw).removeprefix("sha256:")).write_bytes(raw)
    foreign(kept, ("save", "beta", content_hash(raw)))
    kept.store.check()
    assert len(list(kept.store.records())) == 4
    kept.saved("gamma", "Four.")
    assert kept.entries["beta"].hook == "From elsewhere."


def test_two_stores_in_turn_chain_to_each_other(kept: Kept) -> None:
    other = opened(kept.directory)
    for number in range(5):
        kept.saved("alpha", f"Here, {number}.")
        other.saved("beta", f"There, {number}.")
    assert len(records(kept.directory)) == 13
    kept.do(Reconcile())
    assert kept.entries["beta"].hash == other.entries["beta"].hash
    check_invariants(kept.directory)
    assert kept.store.verify() == other.store.verify() == ()


def test_a_journal_that_was_replaced_is_read_anew(kept: Kept) -> None:
    short = ops(kept).read_bytes().splitlines(keepends=True)[0]
    ops(kept).unlink()
    ops(kept).write_bytes(short)
    kept.saved("gamma", "Four.")
    assert [record.name for record in records(kept.directory)] == ["alpha", "alpha", "beta", "gamma"]
    assert kept.ops() == ["save", "edit/hand", "adopt/hand", "save"]
    opened(kept.directory)
    check_invariants(kept.directory)


def test_a_journal_that_was_rewritten_in_place_and_grew_is_read_anew(kept: Kept) -> None:
    lines = ops(kept).read_bytes().splitlines(keepends=True)
    with ops(kept).open("r+b") as file:
        file.write(lines[0])
        last = journal.decode(lines[0].rstrip())
        assert last is not None
        for number in range(4):
            last = journal.seal(Record("read", "alpha", last.hash, number), last.digest)
            file.write(journal.encode(last))
    kept.saved("gamma", "Four.")
    assert [record.op for record in records(kept.directory)][:5] == ["save", "read", "read", "read", "read"]
    assert kept.store.verify() == ()


def test_what_somebody_appends_without_the_lock_breaks_the_chain_once_and_is_named(kept: Kept) -> None:
    class Meddled(FastDisk):
        def write(self, fd: int, data: bytes) -> None:
            if data.startswith(b'{"at"'):
                with ops(kept).open("ab") as file:
                    file.write(b"not under the lock\n")
            super().write(fd, data)

    other = opened(kept.directory, Meddled())
    other.saved("gamma", "Four.")
    other.use(FastDisk())
    other.saved("delta", "Five.")
    assert [finding.line for finding in other.store.check()] == [4]
    kept.saved("epsilon", "Six.")
    replay = journal.replay(ops(kept).read_bytes())
    assert (replay.broken_line, replay.count, replay.torn_bytes) == (4, 6, 0)


def test_unknown_operations_and_keys_survive_and_are_no_heads(kept: Kept) -> None:
    foreign(kept, ("starred", "beta", "sha256:" + "0" * 64))
    kept.saved("gamma", "Four.")
    assert kept.ops("beta") == ["save", "starred"]
    head = heads(kept.directory).head("beta")
    assert head is not None
    assert head.op == "save"
    assert kept.store.verify() == ()


# -- failing appends -------------------------------------------------------------------------------------------------


def test_a_failed_sync_of_the_journal_refuses_the_batch_and_is_not_tried_again(kept: Kept) -> None:
    class Unsynced(FailingDisk):
        def step(self, call: str, path: Path) -> None:
            if call == "fsync" and path.name == "ops.jsonl":
                super().step(call, path)
            else:
                FastDisk.step(self, call, path)

    disk = Unsynced(errno.EIO)
    other = opened(kept.directory, disk)
    disk.arm(1)
    disk.log.clear()
    outcomes = other.commit(save("gamma", "Four."), forget("beta"), Count("alpha", other.entries["alpha"].hash, ME))
    assert [type(outcome) for outcome in outcomes] == [Storage, Storage, Storage]
    failed = disk.log.index(("fsync", "ops.jsonl"))
    after = disk.log[failed + 1 :]
    assert ("lock", ".lock") in after, "the store is read again"
    assert ("read", "ops.jsonl") in after
    other.saved("delta", "Five.")
    check_invariants(kept.directory)
    assert other.store.verify() == ()
    assert set(other.entries) == set(heads(kept.directory).live())


def test_an_append_cut_short_leaves_a_tail_that_the_next_one_sets_aside(kept: Kept) -> None:
    class Full(FastDisk):
        full = True

        def write(self, fd: int, data: bytes) -> None:
            if self.full and data.startswith(b'{"at"'):
                super().write(fd, data[:50])
                raise OSError(errno.ENOSPC, "No space left on device")
            super().write(fd, data)

    disk = Full()
    other = opened(kept.directory, disk)
    with pytest.raises(Storage, match="No space left"):
        other.saved("gamma", "Four.")
    disk.full = False
    other.saved("delta", "Five.")
    assert all(len(tail) == 50 for tail in torn_aside(other))
    assert torn_aside(other)
    assert other.store.verify() == ()
    check_invariants(kept.directory)


def test_the_journal_never_holds_a_body(kept: Kept) -> None:
    kept.saved("gamma", "A very private sentence.")
    kept.do(forget("gamma"))
    assert holding(kept.directory, b"private sentence") == []
