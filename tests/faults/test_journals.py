"""The sweep over torn and flipped journals, a part of it, and that it tells. Law: one that cannot fail is none."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from memd import journal
from memd.store import cached, state, sweep, write
from support.stores import heads, objects, opened, standing

from .journals import JOURNAL, MEMORY, Harm, Judge, OwnJudge, accidents, cuts, flips, own_harms


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """A judge and the store it harms, in memory where the machine has one."""
    room = Path(tempfile.mkdtemp(dir=MEMORY)) if MEMORY.is_dir() else tmp_path_factory.mktemp("journals")
    yield Judge(room)
    shutil.rmtree(room)


def test_the_journal_holds_everything_that_one_can(judge: Judge) -> None:
    records = journal.replay(judge.raw).records
    assert {record.op for record in records} == {"save", "adopt", "forget", "read"}
    assert {record.by for record in records} == {"cli", "hand", "import", "restore", None}
    assert len(records) >= 15


def test_every_accident(judge: Judge) -> None:
    for harm in accidents(judge.raw):
        judge.judge(harm)


def test_a_cut_in_every_record_and_between_all(judge: Judge) -> None:
    for harm in cuts(judge.raw, 41):
        judge.judge(harm)


def test_a_cut_between_two_records_is_no_damage_that_is_told_and_what_it_takes_is_known(judge: Judge) -> None:
    lines = judge.raw.splitlines(keepends=True)
    for count in range(1, len(lines)):
        shutil.rmtree(judge.directory, ignore_errors=True)
        shutil.copytree(judge.made, judge.directory)
        (judge.directory / JOURNAL).write_bytes(b"".join(lines[:count]))
        kept = opened(judge.directory)
        assert {finding.kind for finding in kept.store.verify()} <= {"missing_object"}, "neither torn nor broken"
        assert not list(judge.directory.glob("ops.torn.*"))
        assert standing(judge.directory) == standing(judge.made), "every text stands"
        told = {each.rpartition("/")[0] or each for each in kept.ops()[count:]}
        assert told <= {"edit", "adopt", "forget"}, "taken in anew, or forgotten again"
        known = heads(judge.directory)
        named = {version for name in known.live() for version in known.versions(name)}
        assert set(objects(judge.directory)) <= named, "versions that only what was cut named are swept"


def test_a_journal_without_a_record_is_told_and_no_version_goes(judge: Judge) -> None:
    shutil.rmtree(judge.directory, ignore_errors=True)
    shutil.copytree(judge.made, judge.directory)
    (judge.directory / JOURNAL).write_bytes(b"")
    before = objects(judge.directory)
    kept = opened(judge.directory)
    kept.saved("afterwards", "It goes on.")
    assert (judge.directory / "ops.torn.1").read_bytes() == b""
    assert before.items() <= objects(opened(judge.directory).directory).items()


def test_a_flip_in_every_record(judge: Judge) -> None:
    for harm in flips(judge.raw, 97):
        judge.judge(harm)


@pytest.mark.parametrize("file", ["usage.json", "MEMORY.md"])
def test_counts_and_index_harmed_likewise(judge: Judge, file: str) -> None:
    own = OwnJudge(judge, file)
    for harm in own_harms(own.raw, 23):
        own.judge(harm)


def test_a_corrupt_file_that_is_read_as_empty_is_told(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    own = OwnJudge(judge, "usage.json")
    monkeypatch.setattr(cached.Cached, "get", lambda of: of.empty())
    assert told(own, own_harms(own.raw, 23))


def test_every_flip_of_every_byte_is_told(judge: Judge) -> None:
    for at, byte in enumerate(judge.raw):
        for mask in (0x01, 0x20, 0xFF):
            replay = journal.replay(judge.raw[:at] + bytes([byte ^ mask]) + judge.raw[at + 1 :])
            assert replay.broken_line is not None or replay.torn_bytes, f"byte {at} ^ {mask:#x}"


def told(judge: Judge | OwnJudge, harms: Iterator[Harm]) -> bool:
    """Whether a store that breaks a promise is told of."""
    for harm in harms:
        try:
            judge.judge(harm)
        except AssertionError:
            return True
    return False


def test_a_sweep_on_a_broken_journal_is_told(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state.State, "intact", True)
    assert told(judge, accidents(judge.raw))


def test_a_torn_tail_that_is_dropped_is_told(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(of: state.State) -> None:
        os.truncate(of.journal, of.whole)
        of.torn = 0

    monkeypatch.setattr(write, "set_torn_aside", drop)
    assert told(judge, islice(accidents(judge.raw), 3))


def test_texts_of_forgotten_records_only_are_told(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "damaged_ns", lambda _: 0)
    assert told(judge, accidents(judge.raw))


def test_a_chain_that_nobody_looks_at_is_told(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_chains", lambda *_: True)
    assert told(judge, accidents(judge.raw))
