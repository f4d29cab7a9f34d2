"""Two stores and a dictionary that says what is in them. Law: what is right is told from outside the store.

`World` has a method for every way in which a note changes: the writing verbs, hands, another program that shares
the store, deaths, reopenings, rebuilds. The dictionary holds, store by store, each note's texts of its life, oldest
first; each text has a word that no other has, so that a forgotten one can be looked for in every file. A write during
which the process dies leaves each note it touches as it was or as it was to be, a rename or a move both or one, never
none.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from memd import listing, note
from memd.errors import MemdError
from memd.store import Adopt, Arrival, Author, Count, Rebuild, Rebuilt, Reconcile, Rename, Request, Restore, transfer
from support.disks import Crash, CrashingDisk, FastDisk
from support.stores import ME, check_invariants, forget, holding, objects, opened, rows, save, standing

from .soak_truth import saved_text

NAMES = ("alpha", "beta", "gamma", "delta", "我喜欢-pnpm")
SIDES = ("repo", "global")
NO_COUNTS = b'{"sessions": 0, "notes": {}}'
"""What a usage.json says that is not there."""
WORD = re.compile(rb"zq\d+z")


class Death(NamedTuple):
    """When the process dies in a write: at its N-th step that changes the disk, or half-way in its N-th write."""

    step: int
    half: bool


class Side:
    """One of the two stores, and what it must hold: each note's texts, oldest first, the last one its file's."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.kept = opened(directory)
        self.texts: dict[str, list[bytes]] = {}

    def life(self, name: str) -> tuple[bytes, ...]:
        """The texts of a note, none of one that is not there."""
        return tuple(self.texts.get(name, ()))

    def put(self, name: str, raw: bytes) -> None:
        """A note has another text, or one of its own again."""
        texts = self.texts.setdefault(name, [])
        if raw in texts:
            texts.remove(raw)
        texts.append(raw)

    def file(self, name: str) -> Path:
        """Where a note has its file."""
        return self.directory / f"{name}.md"


Touched = dict[tuple[str, str], set[tuple[bytes, ...]]]
"""For each store and name that a write touches, the texts it may have afterwards, if it may."""


class World:
    """The stores and the dictionary."""

    def __init__(self, root: Path) -> None:
        self.sides = {side: Side(root / side) for side in SIDES}
        self.gone: set[bytes] = set()
        self.number = 0
        self.deaths = 0

    # -- verbs -----------------------------------------------------------------------------------------------------

    def save(self, side: str, name: str, death: Death | None = None) -> None:
        """`memory.save`, of a new note or over one that is there."""
        hook, body = f"what {name} says, {self.word()}", "It is as it is."
        raw = saved_text(name, hook, body)
        self.commit(side, save(name, body, hook), {name: (*self.sides[side].life(name), raw)}, death)

    def forget(self, side: str, name: str, death: Death | None = None) -> None:
        """`memory.forget`."""
        if name in self.sides[side].texts:
            self.commit(side, forget(name), {name: ()}, death)

    def restore(self, side: str, name: str, which: int, death: Death | None = None) -> None:
        """`memory.restore` of one of a note's texts."""
        life = self.sides[side].life(name)
        if not life:
            return
        old = life[which % len(life)]
        version = hashed(old)
        after = (*(text for text in life if text != old), old)
        self.commit(side, Restore(name, version, Author(by="restore")), {name: after}, death)

    def rename(self, side: str, name: str, to: str, death: Death | None = None) -> None:
        """`memory.rename`: the older texts go, the name line changes."""
        here = self.sides[side]
        if name not in here.texts or to in here.texts:
            return
        raw = self.renamed(here.texts[name][-1], name, to)
        self.commit(side, Rename(name, to, ME), {to: (raw,), name: ()}, death, never_none=True)

    def move(self, side: str, name: str, death: Death | None = None) -> None:
        """`memory.move` to the other store: the older texts go."""
        other = SIDES[side == SIDES[0]]
        here, there = self.sides[side], self.sides[other]
        if name not in here.texts or name in there.texts:
            return
        raw = here.texts[name][-1]
        after = {(other, name): (raw,), (side, name): ()}

        def run() -> None:
            moved = transfer.move(here.kept.store, there.kept.store, name, ME)
            here.kept.told(moved.source)
            there.kept.told(moved.target)
            assert not isinstance(moved.outcome, MemdError), moved.outcome

        self.carry_out(run, after, death, never_none=True)

    def arrive(self, side: str, name: str, death: Death | None = None, *, updates: bool) -> None:
        """An import, which updates a taken name, or an adopted store's note, which gets a free one."""
        raw = f"# {name}\n\nFrom elsewhere, {self.word()}.\n".encode()
        here = self.sides[side]
        if updates:
            target, after = name, (*here.life(name), raw)
        else:
            free = (name, *(f"{name}-{number}" for number in range(2, 50)))
            target, after = next(each for each in free if each not in here.texts), (raw,)
        by = Author(by="import" if updates else "store")
        self.commit(side, Adopt((Arrival(name, raw),), by, updates), {target: after}, death)

    def read(self, side: str, name: str, death: Death | None = None) -> None:
        """A counted `memory.read`."""
        life = self.sides[side].life(name)
        if life:
            self.commit(side, Count(name, hashed(life[-1]), ME), {name: life}, death)

    def rebuild(self, side: str, death: Death | None = None) -> None:
        """`memory.rebuild`, which finds nothing to do."""
        self.commit(side, Rebuild(), {}, death)

    def reconcile(self, side: str, death: Death | None = None) -> None:
        """`memory.reconcile`."""
        self.commit(side, Reconcile(), {}, death)

    def reopen(self, side: str) -> None:
        """The next process opens the store."""
        here = self.sides[side]
        here.kept = opened(here.directory)

    # -- hands -----------------------------------------------------------------------------------------------------

    def write_by_hand(self, side: str, name: str, seen: str) -> None:
        """A hand edits a note's file or makes one; whoever comes next takes it in: a save, a look, an opening."""
        here = self.sides[side]
        raw = f"By hand, {self.word()}.\n".encode()
        here.file(name).write_bytes(raw)
        here.kept.touch_directory()
        here.put(name, raw)
        self.be_seen(side, name, seen)

    def delete_by_hand(self, side: str, name: str, seen: str) -> None:
        """A hand deletes a note, never so many that the guard would not believe it."""
        here = self.sides[side]
        if name not in here.texts:
            return
        here.file(name).unlink()
        here.kept.touch_directory()
        self.let_go(here.texts.pop(name))
        self.be_seen(side, name, "look" if seen == "save" else seen)

    def be_seen(self, side: str, name: str, seen: str) -> None:
        """What a hand did is taken in."""
        if seen == "save":
            self.save(side, name)
        elif seen == "opening":
            self.reopen(side)
        else:
            self.sides[side].kept.do(Reconcile())

    # -- another program -------------------------------------------------------------------------------------------

    def save_elsewhere(self, side: str, name: str) -> None:
        """Another program of the first seed's kind saves under the lock."""
        hook = f"what {name} says, {self.word()}"
        raw = saved_text(name, hook, "It is as they say.")
        other = Foreigner(self.sides[side].directory)
        with other.lock():
            other.save(name, hook, raw)
        self.sides[side].put(name, raw)

    def forget_elsewhere(self, side: str, name: str) -> None:
        """Another program forgets under the lock."""
        here = self.sides[side]
        if name not in here.texts:
            return
        others = {text for each, texts in here.texts.items() for text in texts if each != name}
        other = Foreigner(here.directory)
        with other.lock():
            other.forget(name, [text for text in here.texts[name] if text not in others])
        self.let_go(here.texts.pop(name))

    def read_elsewhere(self, side: str, name: str) -> None:
        """Another program counts a read under the lock."""
        if name in self.sides[side].texts:
            other = Foreigner(self.sides[side].directory)
            with other.lock():
                other.read(name, self.sides[side].texts[name][-1])

    # -- how -------------------------------------------------------------------------------------------------------

    def word(self) -> str:
        """A word that no other text holds."""
        self.number += 1
        return f"zq{self.number}z"

    def renamed(self, raw: bytes, name: str, to: str) -> bytes:
        """A text under another name: a saved one says its name in one line."""
        return raw.replace(f"---\nname: {name}\n".encode(), f"---\nname: {to}\n".encode(), 1)

    def commit(
        self,
        side: str,
        request: Request,
        after: dict[str, tuple[bytes, ...]],
        death: Death | None,
        *,
        never_none: bool = False,
    ) -> None:
        """Commit one request to a store."""
        kept = self.sides[side].kept
        wanted = {(side, name): life for name, life in after.items()}
        self.carry_out(lambda: kept.do(request), wanted, death, never_none=never_none)

    def carry_out(
        self,
        run: Callable[[], object],
        after: dict[tuple[str, str], tuple[bytes, ...]],
        death: Death | None,
        *,
        never_none: bool = False,
    ) -> None:
        """Run a write, which may be the process's last; then the dictionary is what it must be."""
        before = {touched: self.sides[touched[0]].life(touched[1]) for touched in after}
        if not self.dies(run, death):
            for (side, name), life in after.items():
                self.become(side, name, life)
            return
        self.deaths += 1
        stands = {touched: standing(self.sides[touched[0]].directory).get(touched[1]) for touched in after}
        assert not never_none or any(stands.values()), "neither the old nor the new is there"
        for (side, name), life in after.items():
            now = stands[side, name]
            may = {was[-1] if was else None: was for was in (before[side, name], life)}
            assert now in may, f"{name} is {now!r} and none of {list(may)}"
            for text in {*life} - {*may[now]}:
                self.gone |= set(WORD.findall(text))
            self.become(side, name, may[now])

    def dies(self, run: Callable[[], object], death: Death | None) -> bool:
        """Run a write in a process that may die; whether it did, and another has opened what it left."""
        if death is None:
            run()
            return False
        disk = CrashingDisk(half=death.half)
        disk.arm(death.step)
        for side in self.sides.values():
            side.kept.use(disk)
        try:
            run()
        except Crash:
            for side in self.sides.values():
                side.kept = opened(side.directory)
                side.kept.do(
                    Reconcile(accept=True)
                )  # a forget cut short with few notes left is for a person to decide
            return True
        for side in self.sides.values():
            side.kept.use(FastDisk())
        return False

    def become(self, side: str, name: str, life: tuple[bytes, ...]) -> None:
        """A note has these texts now."""
        here = self.sides[side]
        was = here.texts.pop(name, [])
        if life:
            here.texts[name] = list(life)
        self.let_go([text for text in was if text not in life])

    def let_go(self, texts: list[bytes]) -> None:
        """Texts of a note's life are over; those that no other note has are nowhere."""
        for text in texts:
            self.gone |= set(WORD.findall(text))

    # -- judging ---------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """What is on disk is what is right."""
        left = {
            word
            for side in self.sides.values()
            for texts in side.texts.values()
            for text in texts
            for word in WORD.findall(text)
        }
        for side in self.sides.values():
            side.kept.do(Reconcile())
            stands, must = standing(side.directory), {name: texts[-1] for name, texts in side.texts.items()}
            assert stands == must, f"{stands} and not {must}"
            found = set(objects(side.directory).values())
            assert found == {text for texts in side.texts.values() for text in texts}, "an object a version, no other"
            told = {name: entry.hash for name, entry in side.kept.entries.items()}
            assert told == {name: hashed(texts[-1]) for name, texts in side.texts.items()}
            check_invariants(side.directory)
            notes = [note.parse(name, texts[-1]) for name, texts in side.texts.items()]
            said = sorted(listing.row(each.name, each.hook) for each in notes)
            assert sorted(rows(side.directory)) == said, "each row says what its note says"
            assert {finding.kind for finding in side.kept.store.verify()} <= {"torn"}
            for word in self.gone - left:
                assert holding(side.directory, word) == []

    def rebuild_all(self) -> int:
        """Take note files, MEMORY.md and usage.json away and have them made again: the same bytes; how many files.

        The order in which usage.json names the notes is no part of it, nor is a time that a death left ahead.
        """
        count = 0
        for side in self.sides.values():
            rebuilt = side.kept.do(Rebuild())
            before = shown(side.directory)
            for name in before:
                (side.directory / name).unlink()
            rebuilt = side.kept.do(Rebuild())
            assert isinstance(rebuilt, Rebuilt)
            assert (rebuilt.restored, rebuilt.missing, rebuilt.differ) == (len(side.texts), (), ())
            after = shown(side.directory)
            counts = [json.loads(files.pop("usage.json", NO_COUNTS)) for files in (before, after)]
            assert after == before, f"{after} and not {before}"
            assert counts[0] == counts[1], f"{counts}"
            count += len(after)
        return count


def shown(directory: Path) -> dict[str, bytes]:
    """What people see of a store, byte for byte; an empty MEMORY.md is as good as none."""
    names = [path.name for path in directory.iterdir() if path.suffix == ".md" or path.name == "usage.json"]
    found = {name: (directory / name).read_bytes() for name in names}
    return {name: raw for name, raw in found.items() if raw or name != "MEMORY.md"}


def hashed(raw: bytes) -> str:
    """The hash of a text."""
    return "sha256:" + hashlib.sha256(raw).hexdigest()


class Foreigner:
    """A program of the first seed's kind: nothing of memd, the same lock, the same order of a write."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def lock(self) -> "Lock":
        """The store's lock."""
        return Lock(self.directory / ".lock")

    def save(self, name: str, hook: str, raw: bytes) -> None:
        """Object, file, row, count, line."""
        (self.directory / "objects").mkdir(exist_ok=True)
        self._replace(f"objects/{hashed(raw).removeprefix('sha256:')}", raw)
        self._replace(f"{name}.md", raw)
        rows, row = self._rows(), f"- [{name}]({name}.md) — {hook}"
        places = [at for at, line in enumerate(rows) if f"]({name}.md)" in line]
        if places:
            rows[places[0]] = row
        else:
            rows.append(row)
        self._write_rows(rows)
        self._count(name, "saves")
        self._append("save", name, hashed(raw))

    def forget(self, name: str, texts: list[bytes]) -> None:
        """File, row, count, objects, line."""
        now = hashed((self.directory / f"{name}.md").read_bytes())
        (self.directory / f"{name}.md").unlink()
        self._write_rows([line for line in self._rows() if f"]({name}.md)" not in line])
        usage = self._usage()
        usage["notes"].pop(name, None)
        self._write_usage(usage)
        for text in texts:
            (self.directory / "objects" / hashed(text).removeprefix("sha256:")).unlink()
        self._append("forget", name, now)

    def read(self, name: str, raw: bytes) -> None:
        """Count, line."""
        self._count(name, "reads")
        self._append("read", name, hashed(raw))

    def _count(self, name: str, what: str) -> None:
        usage = self._usage()
        counts = usage["notes"].setdefault(name, {"saves": 0, "reads": 0, "last": 0})
        counts[what] += 1
        counts["last"] = 1_780_000_000
        self._write_usage(usage)

    def _append(self, op: str, name: str, version: str) -> None:
        path = self.directory / "ops.jsonl"
        raw = path.read_bytes() if path.exists() else b""
        whole = raw.rfind(b"\n") + 1
        if whole < len(raw):  # a write that was cut short, and nobody has written since
            number = len(list(self.directory.glob("ops.torn.*"))) + 1
            self._replace(f"ops.torn.{number}", raw[whole:])
            os.truncate(path, whole)
        lines = raw[:whole].splitlines()
        prev = json.loads(lines[-1])["digest"] if lines else ""
        record = {"at": 1_780_000_000, "by": "cli", "hash": version, "name": name, "op": op}
        record["digest"] = hashed(prev.encode() + canonical(record))
        with path.open("ab") as file:
            file.write(canonical(record) + b"\n")

    def _rows(self) -> list[str]:
        path = self.directory / "MEMORY.md"
        return path.read_text().splitlines() if path.exists() else []

    def _write_rows(self, rows: list[str]) -> None:
        self._replace("MEMORY.md", "".join(f"{row}\n" for row in rows).encode())

    def _usage(self) -> dict[str, dict[str, dict[str, int]]]:
        path = self.directory / "usage.json"
        usage: dict[str, dict[str, dict[str, int]]] = (
            json.loads(path.read_bytes()) if path.exists() else {"sessions": 0, "notes": {}}  # type: ignore[dict-item]
        )
        return usage

    def _write_usage(self, usage: dict[str, dict[str, dict[str, int]]]) -> None:
        self._replace("usage.json", json.dumps(usage, ensure_ascii=False, indent=2).encode() + b"\n")

    def _replace(self, name: str, raw: bytes) -> None:
        staged = self.directory / ".foreign.tmp"
        staged.write_bytes(raw)
        staged.replace(self.directory / name)


class Lock:
    """An exclusive flock on a file that is made when it is missing and never cut."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        self.file = self.path.open("ab")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_raised: object) -> None:
        self.file.close()


def canonical(record: dict[str, object] | dict[str, int | str]) -> bytes:
    """Canonical JSON."""
    return json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def emptied(directory: Path) -> Path:
    """An empty directory in place of what is there."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory
