"""Torn and flipped journals: a journal's bytes are not what was written. Law: nothing of it is believed.

    python -m tests.faults.journals [--every N] [--jobs N]

One store with everything a journal can hold; its journal is cut at every byte, each byte is flipped by several masks,
and it is harmed as disks, editors and sync tools do. Each harmed store is opened, looked at, written to and opened
again. Then: no file and no object has changed but those that only records after a cut named; a harm is told by
`verify`, or what followed the last whole record is set aside, bytes kept; what is appended chains; the texts stand.
usage.json and MEMORY.md are cut and flipped likewise: what does not read is refused and left as it is, never read as
empty and written over; a rebuild keeps a usage.json that does not parse and counts anew, and every note has its row.
`--every N` takes each N-th byte. Exit 1 when a store is not as promised.
"""

import argparse
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from memd import journal
from memd.errors import MemdError
from memd.store import Adopt, Arrival, Author, Rebuild, Rebuilt, Reconcile, Rename, Restore, Saved
from support.stores import ME, Kept, forget, opened, save, standing

from .sweep_tasks import carried_out

MASKS = (0x01, 0x02, 0x20, 0x80, 0xFF)
"""The bits that are flipped: a neighbouring digit, another letter, the case, no ASCII, everything."""
JOURNAL = "ops.jsonl"
MEMORY = Path("/dev/shm")
"""A file system in memory, where the machine has one: a sweep is about order and makes many small files."""
PARTS = 40
"""Parts that the harms of a file are dealt to."""
TOLD = 10
"""After how many parts it is told how far the sweep is."""
FILES = (JOURNAL, "usage.json", "MEMORY.md")


LISTS = re.compile(r"- \[.*?\]\(([^/]+?)\.md\)")
"""A line that lists a note; of several links the first counts."""


class Harm(NamedTuple):
    """A journal that is not what was written.

    `told`: whether the journal alone tells. `cut`: what a write that was cut short leaves, or a shorter history:
    then only what is still named has to be there.
    """

    name: str
    raw: bytes
    told: bool = True
    cut: bool = False


def made(directory: Path) -> Path:
    """A store with everything a journal can hold."""
    kept = opened(directory)
    for text in ("One.", "Two.", "Three."):
        kept.saved("alpha", text)
    kept.saved("我喜欢-pnpm", "Kein npm, naß.", "我喜欢 pnpm")
    kept.saved("beta", "Soon forgotten.")
    kept.read("alpha")
    kept.do(save("gamma", "By an agent.", author=Author(session="s-1")))
    kept.do(Rename("gamma", "delta", ME))
    kept.do(forget("beta"))
    kept.file("by-hand").write_text("Written by hand.\n")
    kept.touch_directory()
    kept.do(Reconcile())
    kept.do(Adopt((Arrival("imported", b"# Ports\n\n8080 is taken.\n"),), Author(by="import"), updates=True))
    kept.saved("delta", "Once more.")
    first = kept.store.texts("alpha")[0]
    kept.do(Restore("alpha", first, Author(by="restore")))
    kept.saved("beta", "A second life.")
    kept.saved("alpha", "Four.")
    kept.saved("alpha", "Five.")
    kept.read("by-hand")
    return directory


def cuts(raw: bytes, every: int) -> Iterator[Harm]:
    """The journal cut at every byte, or each N-th; between two records nothing in it tells."""
    for at in range(1, len(raw), every):
        yield Harm(f"cut at {at}", raw[:at], told=at > 0 and not raw[:at].endswith(b"\n"), cut=True)
    for at in (at + 1 for at, byte in enumerate(raw) if byte == 0x0A):
        yield Harm(f"cut at {at}", raw[:at], told=False, cut=True)


def flips(raw: bytes, every: int) -> Iterator[Harm]:
    """Each byte, or each N-th, flipped by several masks."""
    for at in range(0, len(raw), every):
        for mask in MASKS:
            yield Harm(f"byte {at} ^ {mask:#x}", raw[:at] + bytes([raw[at] ^ mask]) + raw[at + 1 :])
    for at in (at for at, byte in enumerate(raw) if byte == 0x0A):
        yield Harm(f"line end {at} ^ 0x2a", raw[:at] + b" " + raw[at + 1 :])


def accidents(raw: bytes) -> Iterator[Harm]:
    """What disks, editors and sync tools do."""
    lines = raw.splitlines(keepends=True)
    yield Harm("garbage after the last record", raw + b"\x07garbage")
    yield Harm("a line of garbage after the last record", raw + b"garbage\n")
    yield Harm("NULs after the last record", raw + bytes(4096))
    yield Harm("an empty line after the last record", raw + b"\n")
    yield Harm("half a record after the last", raw + lines[-1][:100])
    yield Harm("the last record without its line end", raw[:-1])
    yield Harm("NULs in place of the last record", raw[: -len(lines[-1])] + bytes(len(lines[-1])))
    yield Harm("NULs in the middle", raw[:1000] + bytes(512) + raw[1512:])
    yield Harm("NULs in front", bytes(512) + raw[512:])
    yield Harm("CRLF", raw.replace(b"\n", b"\r\n"))
    yield Harm("CRLF on one line", lines[0] + lines[1].replace(b"\n", b"\r\n") + b"".join(lines[2:]))
    yield Harm("a BOM", b"\xef\xbb\xbf" + raw)
    yield Harm("a line twice", b"".join((*lines[:3], lines[2], *lines[3:])))
    yield Harm("the last line twice", raw + lines[-1])
    yield Harm("all of it twice", raw + raw)
    yield Harm("a line missing", b"".join((*lines[:3], *lines[4:])))
    yield Harm("the first line missing", b"".join(lines[1:]))
    yield Harm("two lines swapped", b"".join((*lines[:3], lines[4], lines[3], *lines[5:])))
    yield Harm("the last two lines swapped", b"".join((*lines[:-2], lines[-1], lines[-2])))
    yield Harm("an empty line in the middle", b"".join((*lines[:3], b"\n", *lines[3:])))
    yield Harm("another program's line in the middle", b"".join((*lines[:3], b"<<<<<<< HEAD\n", *lines[3:])))
    yield Harm("nothing but garbage", bytes(1000))
    yield Harm("nothing but one line of garbage", b"garbage\n")
    yield Harm("nothing but a BOM", b"\xef\xbb\xbf")
    yield Harm("nothing", b"", told=False)


class Judge:
    """A store that is harmed again and again, each time as it was made."""

    def __init__(self, room: Path, ready: Path | None = None) -> None:
        """`ready` is a store that is made already, for one of several processes that harm copies of it."""
        self.made = ready or made(room / "made")
        self.raw = (self.made / JOURNAL).read_bytes()
        self.directory = room / "store"

    def judge(self, harm: Harm) -> None:
        """Hold a store with this journal against what was promised. Errors: AssertionError."""
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.copytree(self.made, self.directory)
        (self.directory / JOURNAL).write_bytes(harm.raw)
        before = journal.replay(harm.raw)
        self.judge_told(harm)
        kept = opened(self.directory)
        kept.do(Reconcile())
        self.judge_kept(harm, before)
        outcome = kept.do(save("afterwards", "It goes on."))
        assert isinstance(outcome, Saved)
        self.judge_kept(harm, before)
        self.judge_journal(harm, before)
        again = opened(self.directory)
        again.do(Reconcile())
        self.judge_kept(harm, before)
        self.judge_rebuilt(again, before)

    def judge_told(self, harm: Harm) -> None:
        """`verify` of a store that nobody has written to names a journal that tells."""
        if harm.told:
            looking = Kept(self.directory)
            looking.store.state.read_journal()
            kinds = {finding.kind for finding in looking.store.verify()}
            assert kinds & {"broken_chain", "torn"}, "nobody is told"

    def judge_kept(self, harm: Harm, before: journal.Replay) -> None:
        """Every note stands as it did, and so does every object that may not go."""
        was = standing(self.made)
        now = standing(self.directory)
        now.pop("afterwards", None)
        assert now == was, "a note changed"
        for name in self.must_stay(harm, before):
            path = self.directory / "objects" / name
            assert path.is_file(), f"a version of {self.owner(name)} is gone"
            assert path.read_bytes() == (self.made / "objects" / name).read_bytes()

    def must_stay(self, harm: Harm, before: journal.Replay) -> set[str]:
        """The objects that have to be there: all, but after a cut those that are still named."""
        every = {path.name for path in (self.made / "objects").iterdir()}
        if not harm.cut:
            return every
        named = {record.hash.removeprefix("sha256:") for record in before.records}
        texts = {journal.content_hash(raw).removeprefix("sha256:") for raw in standing(self.made).values()}
        return every & (named | texts)

    def owner(self, name: str) -> set[str]:
        """Whose version an object is."""
        return {record.name for record in journal.replay(self.raw).records if record.hash.endswith(name)}

    def judge_journal(self, harm: Harm, before: journal.Replay) -> None:
        """What was there is there, what was torn is beside it, and what came after chains."""
        now = (self.directory / JOURNAL).read_bytes()
        torn = b"".join(path.read_bytes() for path in sorted(self.directory.glob("ops.torn.*")))
        assert now.startswith(harm.raw[: before.size])
        assert torn == harm.raw[before.size :], "the torn tail's bytes"
        after = journal.replay(now)
        assert after.torn_bytes == 0
        assert after.broken_line == before.broken_line
        assert journal.replay(now[before.size :], prev=before.digest).broken_line is None, "what came after chains"

    def judge_rebuilt(self, kept: Kept, before: journal.Replay) -> None:
        """A rebuild names a broken line, and brings nothing else back or away."""
        rebuilt = kept.do(Rebuild())
        assert isinstance(rebuilt, Rebuilt)
        assert rebuilt.broken_line == before.broken_line


class OwnJudge:
    """The store of a `Judge`, its usage.json or MEMORY.md harmed."""

    def __init__(self, judge: Judge, file: str) -> None:
        self.judge_, self.file = judge, file
        self.raw = (judge.made / file).read_bytes()
        self.directory = judge.directory

    def judge(self, harm: Harm) -> None:
        """Hold a store with this file against what was promised. Errors: AssertionError."""
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.copytree(self.judge_.made, self.directory)
        path = self.directory / self.file
        path.write_bytes(harm.raw)
        kept = opened(self.directory)
        opening = path.read_bytes()
        [outcome] = kept.commit(save("afterwards", "It goes on."))
        if isinstance(outcome, MemdError):
            assert outcome.kind == "unreadable", outcome.kind
            assert path.read_bytes() == harm.raw, "what does not read is left as it is"
            assert {finding.file for finding in kept.store.check()} == {self.file}, "and told"
            assert standing(self.directory) == standing(self.judge_.made)
            if self.file == "MEMORY.md":
                return
            kept.do(Rebuild())
            assert (self.directory / "usage.bad.1").read_bytes() == harm.raw
            assert json.loads(path.read_bytes())["notes"] == json.loads(self.raw)["notes"]
            return
        assert {name: raw for name, raw in standing(self.directory).items() if name != "afterwards"} == standing(
            self.judge_.made
        )
        if self.file == "MEMORY.md":
            self.judge_lines(opening)

    def judge_lines(self, opening: bytes) -> None:
        """Every note has one line that lists it, and every line that lists none is there."""
        now = (self.directory / self.file).read_bytes().decode("utf-8-sig").split("\n")
        listed = [row[1] for row in map(LISTS.match, now) if row is not None]
        assert sorted(listed) == sorted(standing(self.directory)), "one line lists a note"
        others = [line for line in opening.decode("utf-8-sig").split("\n") if LISTS.match(line) is None]
        assert [line for line in others if line not in now] == [], "a person's line is gone"


def harms(raw: bytes, every: int = 1) -> Iterator[Harm]:
    """Every harm there is, accidents first."""
    yield from accidents(raw)
    yield from cuts(raw, every)
    yield from flips(raw, every)


def own_harms(raw: bytes, every: int = 1) -> Iterator[Harm]:
    """The same for a file that is no journal; what an editor might save in its place."""
    yield Harm("nothing", b"")
    yield Harm("NULs", bytes(len(raw)))
    yield Harm("garbage", b"\xff\xfe\x00garbage")
    yield Harm("CRLF", raw.replace(b"\n", b"\r\n"))
    yield Harm("a BOM", b"\xef\xbb\xbf" + raw)
    yield Harm("twice", raw + raw)
    yield Harm("another file", b"[1, 2]\n")
    yield from cuts(raw, every)
    yield from flips(raw, every)


class Part(NamedTuple):
    """Every `PARTS`-th harm of one file of a made store, from `part` on."""

    made: Path
    file: str
    part: int
    every: int


class Done(NamedTuple):
    """How many harms of each kind were judged, and what was bad."""

    counts: Counter[str]
    bad: list[str]


def carry_out(part: Part) -> Done:
    """Judge a part of the harms, in a room of this process's own."""
    with tempfile.TemporaryDirectory(prefix=f"{part.part}-", dir=part.made.parent) as room:
        of_journal = Judge(Path(room), part.made)
        judge = of_journal if part.file == JOURNAL else OwnJudge(of_journal, part.file)
        every = (harms if part.file == JOURNAL else own_harms)(judge.raw, part.every)
        return judged(part.file, judge, itertools.islice(every, part.part, None, PARTS))


def lost(part: Part) -> Done:
    """What is told of a part whose process ended."""
    return Done(Counter(), [f"bad: {part.file}, a process ended in the middle of part {part.part}\n"])


def judged(file: str, judge: Judge | OwnJudge, some: Iterator[Harm]) -> Done:
    """What became of some harms; whatever a store raises is bad, too."""
    counts: Counter[str] = Counter()
    bad = []
    for harm in some:
        counts[{"cut": "cuts", "byte": "flips", "line": "flips"}.get(harm.name.split()[0], "accidents")] += 1
        try:
            judge.judge(harm)
        except Exception as error:  # noqa: BLE001 - what a harmed store raises is what is looked for
            bad.append(f"bad: {file}, {harm.name}: {type(error).__name__} {str(error).splitlines()[:1]}\n")
    return Done(counts, bad)


def main(arguments: Sequence[str] | None = None) -> int:
    """Harm the journal in every way; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.journals")
    parser.add_argument("--every", type=int, default=1, help="take each N-th byte")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    room = Path(tempfile.mkdtemp(prefix="memd-journals-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        ready = made(room / "made")
        swept = [sweep(ready, file, options.every, options.jobs) for file in FILES]
    finally:
        shutil.rmtree(room)
    return 0 if all(swept) else 1


def sweep(ready: Path, file: str, every: int, jobs: int) -> bool:
    """Judge every harm of one file and tell how many there were; whether there were some, and none bad."""
    began = time.monotonic()
    counts: Counter[str] = Counter()
    bad = 0
    parts = [Part(ready, file, part, every) for part in range(PARTS)]
    for number, (_, done) in enumerate(carried_out(carry_out, parts, jobs, lost), 1):
        counts += done.counts
        bad += len(done.bad)
        sys.stdout.writelines(done.bad)
        sys.stdout.flush()
        if number % TOLD == 0:
            sys.stderr.write(f"  {file}: {number}/{PARTS} of it, {counts.total()} harms, bad={bad}\n")
    told = ", ".join(f"{kind} {counts[kind]:,}" for kind in ("cuts", "flips", "accidents"))
    size = (ready / file).stat().st_size
    sys.stdout.write(f"{file}: {size} bytes; {told}; bad {bad}; secs={time.monotonic() - began:.0f}\n")
    sys.stdout.flush()
    return bad == 0 and all(counts[kind] for kind in ("cuts", "flips", "accidents"))


if __name__ == "__main__":
    sys.exit(main())
