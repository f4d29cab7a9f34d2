"""Whether what is left is right. Law: the judge reads files and answers, and uses nothing that memd is made of.

What can be wrong, by the name under which a planted bug is known to be caught, and the sentence of SPEC it breaks:

- `lost`: "an acknowledged save is never lost"; nor is a later save, once all is well.
- `whole`: "every note is one of its whole versions", before or after the verb, and so its file its journal's head.
- `both`: a rename or a move leaves "both, never neither".
- `unrecorded`: "the reply leaves after the journal line is durable"; judged before anybody has recovered anything.
- `chain`: "whose journal verifies". `torn`: no whole record goes, "the torn tail is moved, bytes kept".
- `forgotten`: "`forget` leaves no copy", in any file of the home, once the note is gone.
- `objects`: every version of a live note has its text. `orphans`: "opening a store sweeps what a crash left".
- `swept`: objects that no record names go "only while the journal is there and unbroken".
- `staged`: the same sweep leaves no staged file. `lock`: "`.lock` is never unlinked".
- `rows`: after a reconcile each note has one line. `own-line`: it "keeps every other line".
- `counts`: "opening a store lowers a count that a crash left ahead of the journal"; a count behind it is allowed, and
  so is one of a note "whose first record is `adopt`".
- `modes`: "every directory memd makes is 0700, every file 0600".

What was not acknowledged may be there or not: a crash after the journal's line and before the reply keeps it. A reply
with warnings (a read that could not be counted) acknowledges only what it returned.
"""

import hashlib
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from .sweep_verbs import OWN_LINE, Notes, Verb, standing
from .sweep_world import World

NEXT: Final = "next-one"
"""The note that is saved once all is well again."""
_ROW: Final = re.compile(r"- \[[^\]]*\]\(([^/]+)\.md\)")


class BadError(Exception):
    """Something is wrong with what was left; `kind` is its name."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind, text)
        self.kind = kind

    def __str__(self) -> str:
        return ": ".join(self.args)


class Case(NamedTuple):
    """A verb on its home, and what the notes are before and after it."""

    verb: Verb
    before: Notes
    after: Notes
    has_own_line: bool
    objects: frozenset[str]
    records: Counter[tuple[str, str, str, str]]


class Left(NamedTuple):
    """What a broken run left that recovery must not change: each journal's bytes and each lock file's inode."""

    journals: Mapping[str, bytes]
    locks: Mapping[str, int]

    @classmethod
    def of(cls, stores: Mapping[str, Path]) -> "Left":
        """What stands now."""
        journals = {scope: store / "ops.jsonl" for scope, store in stores.items()}
        locks = {scope: store / ".lock" for scope, store in stores.items()}
        return cls(
            {scope: path.read_bytes() for scope, path in journals.items() if path.exists()},
            {scope: path.stat().st_ino for scope, path in locks.items() if path.exists()},
        )


def recorded(journals: Mapping[str, bytes]) -> Counter[tuple[str, str, str, str]]:
    """How often each journal holds an operation on a name by somebody."""
    lines = [(scope, line) for scope, journal in journals.items() for line in journal.splitlines()]
    found: Counter[tuple[str, str, str, str]] = Counter()
    for scope, line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        found[scope, record["op"], record["name"], record.get("by", "")] += 1
    return found


def judge_recorded(case: Case, left: Left) -> None:
    """What was acknowledged is in the journal, before anybody recovers anything."""
    absent = case.records - recorded(left.journals)
    if absent:
        raise BadError("unrecorded", f"acknowledged, and not in the journal: {sorted(absent)}")


def judge(world: World, case: Case, left: Left, *, done: bool) -> None:
    """Judge a home that was recovered and then had `NEXT` saved in it. Errors: BadError.

    `done`: the verb was acknowledged, or carried out once more.
    """
    stores = world.stores
    notes = standing(stores)
    if notes.pop(("repo", NEXT), None) is None:
        raise BadError("lost", "the save after it all")
    judge_notes(notes, case, done=done)
    names = case.before.keys() | case.after.keys()
    is_after = all(notes.get(name) == case.after.get(name) for name in names)
    if is_after and (case.before != case.after or done):
        for word in case.verb.gone:
            found = holding(world.home, word.encode())
            if found:
                raise BadError("forgotten", f"{word} is still in {found}")
    for scope, store in stores.items():
        if store.is_dir():
            judge_store(store, scope, left, case)
    judge_modes(world.home)


def judge_notes(notes: Notes, case: Case, *, done: bool) -> None:
    """Every note is one of its whole versions, and the new one when that was acknowledged."""
    for name in notes.keys() | case.before.keys() | case.after.keys():
        now, before, after = notes.get(name), case.before.get(name), case.after.get(name)
        if now == after:
            continue
        if done:
            raise BadError("lost", f"{name} is not what was acknowledged")
        if now != before:
            raise BadError("whole", f"{name} is none of its versions")
    if case.verb.name in ("move", "rename"):
        text = case.before["repo", "alpha"].partition(b"\n---\n")[2]
        if not any(text in each for each in notes.values()):
            raise BadError("both", "the note is neither here nor there")


def judge_told(told: Iterable[tuple[str, str]], notes: Notes, case: Case) -> None:
    """What some of several clients were told to be saved stands, or forgotten is gone, whatever became of others."""
    lost = sorted(name for name in told if notes.get(name) != case.after.get(name))
    if lost:
        raise BadError("lost", f"{lost} of several clients")


def judge_store(store: Path, scope: str, left: Left, case: Case) -> None:
    """One store's journal, objects, rows and counts."""
    journal = (store / "ops.jsonl").read_bytes() if (store / "ops.jsonl").exists() else b""
    judge_tail(store, left.journals.get(scope, b""), journal)
    lock = store / ".lock"
    if left.locks.get(scope, 0) not in (0, lock.stat().st_ino if lock.exists() else None):
        raise BadError("lock", f"the lock file of {scope} is another one")
    found = {path.name for path in (store / "objects").glob("*")}
    staged = [name for name in (*found, *os.listdir(store)) if name.endswith(".tmp")]  # noqa: PTH208 - names
    if staged:
        raise BadError("staged", f"{staged} in {scope}")
    if case.verb.keeps_objects:
        if scope == "repo" and not case.objects <= found:
            raise BadError("swept", "an object went while the journal was broken")
        return
    records = chained(journal)
    versions = live_versions(records)
    for name, hashes in versions.items():
        if not hashes <= found:
            raise BadError("objects", f"a version of {name} in {scope} has no object")
    orphans = found - frozenset[str]().union(*versions.values())
    if orphans:
        raise BadError("orphans", f"{len(orphans)} objects in {scope} are of no live note")
    for name in found:
        if hashlib.sha256((store / "objects" / name).read_bytes()).hexdigest() != name:
            raise BadError("objects", f"an object of {scope} is not what its name says")
    judge_heads(store, scope, records)
    judge_rows(store, scope, set(versions))
    judge_counts(store, scope, records)
    if case.has_own_line and scope == "repo" and OWN_LINE not in (store / "MEMORY.md").read_text().splitlines():
        raise BadError("own-line", "a person's line of MEMORY.md went")


def judge_tail(store: Path, before: bytes, now: bytes) -> None:
    """No whole record of the journal changed, and what was torn at its end is beside it, byte for byte."""
    whole = before[: before.rfind(b"\n") + 1]
    if not now.startswith(whole):
        raise BadError("torn", "records of the journal went")
    tail = before[len(whole) :]
    if tail and tail not in [path.read_bytes() for path in store.glob("ops.torn.*")]:
        raise BadError("torn", "the torn end of the journal is nowhere")


def chained(journal: bytes) -> list[dict[str, Any]]:
    """The records, each of which chains. Errors: BadError."""
    records = []
    digest = ""
    for number, line in enumerate(journal.splitlines(keepends=True), 1):
        try:
            record = json.loads(line)
        except ValueError:
            raise BadError("chain", f"line {number} is no record") from None
        told = record.pop("digest")
        text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = "sha256:" + hashlib.sha256((digest + text).encode()).hexdigest()
        if told != digest or not line.endswith(b"\n"):
            raise BadError("chain", f"line {number} does not chain")
        records.append(record)
    return records


def live_versions(records: list[dict[str, Any]]) -> dict[str, frozenset[str]]:
    """The hashes of every live note's versions, without their prefix."""
    versions: dict[str, frozenset[str]] = {}
    for record in records:
        name, content = record["name"], record["hash"].removeprefix("sha256:")
        if record["op"] == "forget":
            versions.pop(name, None)
        elif record["op"] != "read":
            versions[name] = versions.get(name, frozenset()) | {content}
    return versions


def judge_heads(store: Path, scope: str, records: list[dict[str, Any]]) -> None:
    """Each note file is its head, and each live head has its file."""
    heads = {record["name"]: record for record in records if record["op"] != "read"}
    live = {name: record["hash"] for name, record in heads.items() if record["op"] != "forget"}
    files = {path.stem: hashed(path) for path in store.glob("*.md") if path.name != "MEMORY.md"}
    if files != live:
        names = sorted(name for name in files.keys() | live.keys() if files.get(name) != live.get(name))
        raise BadError("whole", f"{names} in {scope}: files and journal differ")


def hashed(path: Path) -> str:
    """The hash of a file, as the journal writes it."""
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def judge_rows(store: Path, scope: str, live: set[str]) -> None:
    """Each note has one row and nobody else has."""
    text = (store / "MEMORY.md").read_text() if (store / "MEMORY.md").exists() else ""
    rows = [found[1] for found in map(_ROW.match, text.splitlines()) if found]
    if sorted(rows) != sorted(live):
        raise BadError("rows", f"MEMORY.md of {scope} lists {sorted(rows)} for {sorted(live)}")


def judge_counts(store: Path, scope: str, records: list[dict[str, Any]]) -> None:
    """No count is ahead of the journal, and none is of a forgotten note.

    A note that was adopted may be older than the journal, and so may an entry that it never had (SPEC 4).
    """
    path = store / "usage.json"
    counts = json.loads(path.read_text())["notes"] if path.exists() else {}
    for name, count in counts.items():
        ops = [record["op"] for record in records if record["name"] == name]
        first = next((op for op in ops if op not in ("read", "forget")), "adopt")
        ahead = count["saves"] > ops.count("save") or count["reads"] > ops.count("read")
        if (ahead and first != "adopt") or (ops and not (store / f"{name}.md").exists()):
            raise BadError("counts", f"usage.json of {scope} says {count} of {name}, the journal {ops}")


def judge_modes(home: Path) -> None:
    """Nobody else may read anything."""
    for path in home.rglob("*"):
        mode = path.lstat().st_mode
        if not stat.S_ISSOCK(mode) and stat.S_IMODE(mode) & 0o077:
            raise BadError("modes", f"{path.relative_to(home)} is {stat.S_IMODE(mode):o}")


def holding(home: Path, text: bytes) -> list[str]:
    """The files below a directory that hold a text."""
    return [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file() and text in path.read_bytes()]
