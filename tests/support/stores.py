"""Stores for tests, and the judge of what is left of one. Law: what is right is told from outside the store.

A test says what it was promised: the bytes a name may have, texts that must not be lost, texts that must be gone.
The judge opens what is there with a healthy disk and holds it against the promises of SPEC 4 and DESIGN's invariants.
"""

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from memd import draft as drafting
from memd import journal
from memd.errors import MemdError
from memd.fs import Disk
from memd.live.stores import Ahead, index_with
from memd.snapshots import Snapshot
from memd.store import (
    Author,
    Change,
    Committed,
    Count,
    Entry,
    Forget,
    Outcome,
    Reconcile,
    Request,
    Save,
    Saved,
    Store,
)
from support.disks import FastDisk

ME = Author(by="cli")
ROW = re.compile(r"- \[[^\]]*\]\(([^/]+)\.md\)")
AHEAD = 60.0
"""Seconds that a test's clock is ahead: whatever was done before is quiet and settled."""


class Clock:
    """Unix seconds: the real time and some, or the time it was set to."""

    def __init__(self, ahead: float = AHEAD) -> None:
        self.ahead = ahead
        self.fixed: float | None = None

    def __call__(self) -> float:
        return time.time() + self.ahead if self.fixed is None else self.fixed

    def at_change_of(self, path: Path, after: float) -> None:
        """Stop the clock so long after a file's last change."""
        self.fixed = path.lstat().st_ctime_ns / 1e9 + after


def draft(name: str | None, text: str, hook: str | None = None, **fields: str) -> drafting.Draft:
    """A draft that may be saved; without a name it is derived from the hook."""
    named = {} if name is None else {"name": name}
    return drafting.draft(text, {"description": hook or f"what {name} says", "type": "project", **named, **fields})


def save(
    name: str | None,
    text: str,
    hook: str | None = None,
    expect: str | msgspec.UnsetType | None = msgspec.UNSET,
    author: Author = ME,
    **fields: str,
) -> Save:
    """The request to save such a draft."""
    return Save(draft(name, text, hook, **fields), author, expect)


def forget(name: str) -> Forget:
    """The request to forget a note."""
    return Forget(name, ME)


def bytes_of(request: Save, name: str, old: bytes | None = None) -> bytes:
    """What a save writes under a name over an old text."""
    return drafting.compose(request.draft, name, old)[1]


class Kept:
    """A store with what a reader beside it has been told: the changes of every answer, applied."""

    def __init__(self, directory: Path, disk: Disk | None = None, clock: Clock | None = None, **more: object) -> None:
        self.directory = directory
        self.clock = clock or Clock()
        self.disk = disk or FastDisk()
        self.store = Store(directory, disk=self.disk, clock=self.clock, lock_timeout=0.05, **more)  # type: ignore[arg-type]
        self.entries: dict[str, Entry] = {}
        self.tokens: dict[str, Sequence[str]] = {}
        self.index = Snapshot.EMPTY

    def use(self, disk: Disk) -> None:
        """Go on with another disk."""
        state = self.store.state
        self.disk = self.store.disk = state.disk = state.listing.disk = state.usage.disk = disk

    def open(self) -> Committed:
        """Open the store."""
        return self.told(self.store.open())

    def commit(self, *batch: Request) -> list[Outcome | MemdError]:
        """Commit a batch; one outcome or error a request.

        An index is made beside it as the daemon makes one, whatever comes between: it holds what stands.
        """
        ahead = Ahead(self.index)
        committed = self.store.commit(batch, ahead.take)
        index = ahead.settled(committed)
        self.told(committed)
        assert index.names == self.index.names == sorted(self.tokens)
        assert index.tokens == self.index.tokens == sum(map(len, self.tokens.values()))
        return committed.outcomes

    def do(self, request: Request) -> Outcome:
        """Commit one request and raise what refused it."""
        [outcome] = self.commit(request)
        if isinstance(outcome, MemdError):
            raise outcome
        return outcome

    def saved(self, name: str | None, text: str, hook: str | None = None) -> Saved:
        """Save a note."""
        outcome = self.do(save(name, text, hook))
        assert isinstance(outcome, Saved)
        return outcome

    def read(self, name: str) -> None:
        """Count a read of a note."""
        self.do(Count(name, self.entries[name].hash, ME))

    def told(self, committed: Committed) -> Committed:
        """Apply the changes of an answer, as whoever serves the notes does."""
        for change in committed.changes:
            self._apply(change)
        self.index = index_with(self.index, committed.changes)
        return committed

    def _apply(self, change: Change) -> None:
        if change.entry is None:
            self.entries.pop(change.name, None)
            self.tokens.pop(change.name, None)
            return
        self.entries[change.name] = change.entry
        if change.words is not None:
            self.tokens[change.name] = change.words.tokens

    def touch_directory(self) -> None:
        """Let the directory say that it changed, also on a file system whose clock ticks slowly."""
        now = self.directory.stat().st_mtime_ns
        os.utime(self.directory, ns=(now, now + 1))

    def file(self, name: str) -> Path:
        """Where a note's file is."""
        return self.directory / f"{name}.md"

    def ops(self, name: str | None = None) -> list[str]:
        """The journal's operations, of one name or all, in order, each with who did it: `save`, `edit/hand`."""
        return [
            f"{record.op}/{record.by}" if record.by not in (None, "cli") else record.op
            for record in records(self.directory)
            if name in (None, record.name)
        ]


def opened(directory: Path, disk: Disk | None = None, clock: Clock | None = None, **more: object) -> Kept:
    """An open store on a directory, made if it is not there."""
    directory.mkdir(exist_ok=True)
    kept = Kept(directory, disk, clock, **more)
    kept.open()
    return kept


# -- what is on disk, read by nothing of the store ------------------------------------------------------------------


def records(directory: Path) -> list[journal.Record]:
    """The records of a store's journal, which must be whole and chained."""
    path = directory / "ops.jsonl"
    replay = journal.replay(path.read_bytes() if path.exists() else b"")
    assert replay.broken_line is None, replay.broken_reason
    return replay.records


def heads(directory: Path) -> journal.Heads:
    """What they add up to."""
    found = journal.Heads()
    for record in records(directory):
        found.apply(record)
    return found


def standing(directory: Path) -> dict[str, bytes]:
    """The bytes of every note file."""
    return {
        path.stem: path.read_bytes()
        for path in sorted(directory.glob("*.md"))
        if path.name != "MEMORY.md" and path.is_file() and not path.is_symlink()
    }


def objects(directory: Path) -> dict[str, bytes]:
    """The bytes of every object, by the hash that its name is."""
    return {
        journal.HASH_PREFIX + path.name: path.read_bytes()
        for path in sorted((directory / "objects").glob("*"))
        if not path.name.startswith(".")
    }


def rows(directory: Path) -> list[str]:
    """The lines of MEMORY.md."""
    path = directory / "MEMORY.md"
    return path.read_text().splitlines() if path.exists() else []


def usage(directory: Path) -> dict[str, dict[str, int]]:
    """The counts of usage.json."""
    path = directory / "usage.json"
    notes: dict[str, dict[str, int]] = json.loads(path.read_text())["notes"] if path.exists() else {}
    return notes


def holding(directory: Path, text: bytes) -> list[str]:
    """The files below a directory that hold a text."""
    return [path.name for path in sorted(directory.rglob("*")) if path.is_file() and text in path.read_bytes()]


# -- the judge -------------------------------------------------------------------------------------------------------


def check_invariants(directory: Path) -> None:
    """What holds of a store whenever nothing runs in it and it has been opened since."""
    known = heads(directory)
    found = objects(directory)
    live = set(known.live())
    named = {version for name in live for version in known.versions(name)}
    assert set(found) == named, "an object for each version of a live note, and no other"
    assert all(journal.content_hash(raw) == version for version, raw in found.items())
    staged = [path.name for path in directory.rglob("*") if path.name.endswith(".tmp")]
    assert not staged
    for name, raw in standing(directory).items():
        head = known.head(name)
        assert head is not None
        assert head.hash == journal.content_hash(raw), f"{name} is not its head"
    assert set(standing(directory)) == live
    listed = [row[1] for row in map(ROW.match, rows(directory)) if row is not None]
    assert sorted(listed) == sorted(live), "a row for each note"
    for name, counts in usage(directory).items():
        assert known.is_live(name), name
        if known.first_op(name) != "adopt":
            assert counts["saves"] <= known.saves(name), name
            assert counts["reads"] <= known.reads(name), name


def judge(
    directory: Path,
    may: Mapping[str, set[bytes | None]],
    *,
    kept: Sequence[bytes] = (),
    gone: Sequence[bytes] = (),
    mend: Request | None = None,
) -> Kept:
    """Open a store after trouble and hold it against what was promised; the store, open.

    `mend` is what a person would do first. `may`: for each name the texts its note may have now, None for no note.
    `kept`: texts that must be there, in a file or an object. `gone`: pieces of text that no file may hold.
    """
    after = opened(directory)
    if mend is not None:
        after.do(mend)
    assert not after.store.check() or {finding.kind for finding in after.store.check()} <= {"torn"}
    after.do(Reconcile())
    stands = standing(directory)
    for name, texts in may.items():
        assert stands.get(name) in texts, f"{name} holds something else"
    assert set(stands) <= set(may), "a note nobody made"
    check_invariants(directory)
    assert after.store.verify() == () or {finding.kind for finding in after.store.verify()} == {"torn"}
    assert {name: entry.hash for name, entry in after.entries.items()} == {
        name: journal.content_hash(raw) for name, raw in stands.items()
    }
    there = set(stands.values()) | set(objects(directory).values())
    assert all(text in there for text in kept), "a text is lost"
    for text in gone:
        assert holding(directory, text) == []
    after.saved("afterwards", "The store goes on.")
    check_invariants(directory)
    assert after.store.verify() == ()
    again = opened(directory)
    assert again.store.verify() == ()
    check_invariants(directory)
    return after
