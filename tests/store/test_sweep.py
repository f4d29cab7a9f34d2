"""Every call of the disk fails, or is the last one, for every write. Law: the oracle stands outside the store.

For N = 1, 2, … until nothing fires: a write runs on a copy of the same store and is stopped at its N-th call (of
those that change the disk, when the process dies there); what is left is opened and judged (SPEC section 4,
promises; DESIGN, the four invariants).
"""

import errno
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from memd import listing, note
from memd.errors import MemdError
from memd.journal import content_hash as hashed
from memd.store import (
    Adopt,
    Adopted,
    Arrival,
    Bring,
    Brought,
    Count,
    Forgotten,
    Leave,
    Rebuild,
    Reconcile,
    Rename,
    Request,
    Restore,
    Saved,
    Sourced,
)
from memd.store.transfer import move
from support.disks import WRITING, Crash, CrashingDisk, FailingDisk, PowerCutDisk, SteppedDisk, tree
from support.stores import ME, Kept, bytes_of, check_invariants, forget, judge, opened, rows, save, standing

FIRST = save("alpha", "The first words of alpha.")
SECOND = save("alpha", "The second words of alpha.")
THIRD = save("alpha", "The third words of alpha.")
BETA = save("beta", "The words of beta.", "beta, and what it says")
OTHER = save("other", "The words of a new note.")
ALPHA_1 = bytes_of(FIRST, "alpha")
ALPHA_2 = bytes_of(SECOND, "alpha", ALPHA_1)
ALPHA_3 = bytes_of(THIRD, "alpha", ALPHA_2)
BETA_1 = bytes_of(BETA, "beta")
GAMMA = b"# gamma, by hand\n\nThe words of gamma.\n"
HAND = b"---\ndescription: alpha by hand\ntype: user\nowner: me\n---\nA hand wrote this.\n"
WORDS = "# My notes\n\nSee [the wiki](https://example.org/wiki).\n"


def prepare(directory: Path) -> None:
    """Three notes: one of two versions, one read and saved once, one adopted; and a person's words in MEMORY.md."""
    directory.mkdir()
    (directory / "MEMORY.md").write_text(WORDS)
    (directory / "gamma.md").write_bytes(GAMMA)
    kept = opened(directory)
    for request in (FIRST, BETA, SECOND):
        kept.do(request)
    kept.read("beta")


BEFORE: dict[str, bytes] = {"alpha": ALPHA_2, "beta": BETA_1, "gamma": GAMMA}


class Case(msgspec.Struct, frozen=True):
    """One write: what someone did to the files unseen, the requests, and what stands when all are answered.

    `between` are further texts a name may have when it was stopped. `kept` must not be lost, nor `torn` of the
    journal; `gone` are pieces of the texts that a forget removes, by name: of one that nobody was told of, the note
    is whole or gone entirely. Without a batch, it is opening that is stopped.
    """

    after: dict[str, bytes | None]
    batch: tuple[Request, ...] = ()
    meddle: Callable[[Path], object] = lambda directory: None
    between: dict[str, set[bytes | None]] = {}
    kept: tuple[bytes, ...] = ()
    gone: dict[str, tuple[bytes, ...]] = {}
    mend: Request | None = None
    torn: bytes = b""


TORN = b'{"at":17800'


def edited(directory: Path) -> None:
    (directory / "alpha.md").write_bytes(HAND)


def meddled(directory: Path) -> None:
    edited(directory)
    (directory / "delta.md").write_bytes(b"# delta, new\n")
    (directory / "beta.md").unlink()


def emptied(directory: Path) -> None:
    for path in directory.glob("*.md"):
        path.unlink()
    (directory / "usage.json").write_bytes(b'{"sessions": 1, "notes": ')


def littered(directory: Path) -> None:
    meddled(directory)
    (directory / ".1-2-3.tmp").write_bytes(b"half of a n")
    (directory / "objects" / ".1-2-4.tmp").write_bytes(b"half of an obj")
    (directory / "objects" / ("0" * 64)).write_bytes(b"nobody names this")
    with (directory / "ops.jsonl").open("ab") as journal:
        journal.write(TORN)


ELSEWHERE = {"alpha": b"From elsewhere.\n", "epsilon": b"Also from elsewhere.\n"}
FOREIGN = b"---\nsource: claude\n---\n\nFrom elsewhere.\n"
SOURCE = "sha256:" + "2" * 64
REFUSED = (save("alpha", "Stale.", expect=None),)
HAND_3 = bytes_of(THIRD, "alpha", HAND)

CASES = {
    "save": Case({**BEFORE, "other": bytes_of(OTHER, "other")}, (OTHER,)),
    "update": Case({**BEFORE, "alpha": ALPHA_3}, (THIRD,)),
    "update over an unseen edit": Case(
        {**BEFORE, "alpha": HAND_3}, (THIRD,), edited, {"alpha": {HAND}}, kept=(HAND,)
    ),
    "refused over an unseen edit": Case({**BEFORE, "alpha": HAND}, REFUSED, edited, kept=(HAND,)),
    "forget": Case({**BEFORE, "beta": None}, (forget("beta"),), gone={"beta": (b"words of beta",)}),
    "forget two versions": Case(
        {**BEFORE, "alpha": None}, (forget("alpha"),), gone={"alpha": (b"first words", b"second words")}
    ),
    "forget over an unseen edit": Case(
        {**BEFORE, "alpha": None},
        (forget("alpha"),),
        edited,
        {"alpha": {HAND}},
        gone={"alpha": (b"second words", b"A hand")},
    ),
    "forget all": Case(
        dict.fromkeys(BEFORE),
        tuple(map(forget, BEFORE)),
        gone={"alpha": (b"first words", b"second words"), "beta": (b"words of beta",), "gamma": (b"words of gamma",)},
    ),
    "leave all": Case(
        dict.fromkeys(BEFORE),
        (Leave(tuple((name, hashed(raw)) for name, raw in BEFORE.items()), ME),),
        gone={"alpha": (b"first words", b"second words"), "beta": (b"words of beta",), "gamma": (b"words of gamma",)},
    ),
    "counted read": Case({**BEFORE}, (Count("beta", "sha256:" + "1" * 64, ME),)),
    "reconcile": Case(
        {**BEFORE, "alpha": HAND, "beta": None, "delta": b"# delta, new\n"},
        (Reconcile(),),
        meddled,
        kept=(HAND, ALPHA_2),
    ),
    "rebuild": Case({**BEFORE}, (Rebuild(),), emptied, {name: {None} for name in BEFORE}, mend=Rebuild()),
    "open": Case(
        {**BEFORE, "alpha": HAND, "beta": None, "delta": b"# delta, new\n"},
        meddle=littered,
        kept=(HAND, ALPHA_2),
        torn=TORN,
    ),
    "rename": Case(
        {**BEFORE, "alpha": None, "alpha-two": ALPHA_2.replace(b"name: alpha", b"name: alpha-two")},
        (Rename("alpha", "Alpha Two", ME),),
        gone={"alpha": (b"first words",)},
    ),
    "restore over an unseen edit": Case(
        {**BEFORE, "alpha": ALPHA_1},
        (Restore("alpha", hashed(ALPHA_1), ME),),
        edited,
        {"alpha": {HAND}},
        kept=(HAND, ALPHA_2),
    ),
    "adopt": Case(
        {**BEFORE, "alpha": b"From elsewhere.\n", "epsilon": b"Also from elsewhere.\n"},
        (
            Adopt(
                (Arrival("alpha", b"From elsewhere.\n"), Arrival("epsilon", b"Also from elsewhere.\n")),
                ME,
                updates=True,
            ),
        ),
        kept=(ALPHA_2,),
    ),
    "bring": Case(
        {**BEFORE, "alpha-claude": FOREIGN, "epsilon": FOREIGN},
        (Bring(tuple(Sourced(name, SOURCE, hashed(FOREIGN), FOREIGN) for name in ("alpha", "epsilon")), "claude"),),
    ),
    "batch": Case(
        {**BEFORE, "alpha": ALPHA_3, "gamma": None, "other": bytes_of(OTHER, "other")},
        (OTHER, THIRD, forget("gamma"), Count("beta", "sha256:" + "1" * 64, ME), Reconcile()),
        gone={"gamma": (b"words of gamma",)},
    ),
    "batch that takes back": Case(
        {**BEFORE, "alpha": bytes_of(THIRD, "alpha"), "beta": None, "other": None},
        (OTHER, forget("other"), forget("alpha"), THIRD, BETA, forget("beta"), Rebuild()),
        between={"alpha": {None}},
        gone={"other": (b"new note",), "alpha": (b"first words",), "beta": (b"words of beta",)},
    ),
}


@pytest.fixture(scope="module")
def template(memory: Path) -> Path:
    directory = memory / "template"
    prepare(directory)
    assert standing(directory) == BEFORE
    return directory


class Stopped(NamedTuple):
    """A case whose call N was the one: the store, its disk, and what was answered; a `Crash` when nothing was."""

    kept: Kept
    disk: SteppedDisk
    outcomes: Sequence[object]

    @property
    def directory(self) -> Path:
        return self.kept.directory

    @property
    def acknowledged(self) -> bool:
        """Whether every request was answered, and by no error."""
        return not any(
            isinstance(outcome, BaseException) or (isinstance(outcome, Adopted | Brought) and outcome.refused)
            for outcome in self.outcomes
        )


def stopped(case: Case, template: Path, room: Path, make: Callable[[Path], SteppedDisk]) -> Iterator[Stopped]:
    """The case run with its call 1, 2, … being the one, each on a copy of its own, until none is."""
    for number in range(1, 1000):
        directory = room / str(number)
        shutil.copytree(template, directory)
        run = ran(case, directory, make(directory), number)
        if not run.disk.fired:
            assert run.acknowledged or case.batch == REFUSED
            return
        yield run
    raise AssertionError("the write never ends")


def ran(case: Case, directory: Path, disk: SteppedDisk, number: int) -> Stopped:
    """One run of the case, with its call `number` being the one."""
    if not case.batch:
        case.meddle(directory)
    kept = Kept(directory, disk)
    if case.batch:
        kept.open()
        case.meddle(directory)
    if isinstance(disk, PowerCutDisk):
        disk.keep()
    disk.arm(number)
    outcomes: Sequence[object]
    try:
        outcomes = kept.commit(*case.batch) if case.batch else kept.open().outcomes
    except (Crash, MemdError) as error:
        outcomes = [error]
    disk.heal()
    return Stopped(kept, disk, outcomes)


def may(case: Case, *, done: bool) -> dict[str, set[bytes | None]]:
    """The texts each name may have: what the case leaves, and when it was not `done` what stood before it too."""
    names = {*BEFORE, *case.after}
    if done:
        return {name: {case.after.get(name)} for name in names}
    return {name: {BEFORE.get(name), case.after.get(name), *case.between.get(name, ())} for name in names}


def judge_stopped(case: Case, run: Stopped) -> None:
    """Judge what a stopped case left."""
    done = run.acknowledged
    stands = standing(run.directory)
    assert case.torn in b"".join(path.read_bytes() for path in run.directory.glob("ops.*"))
    for outcome in run.outcomes:
        if isinstance(outcome, Saved) and case.after.get(outcome.entry.name) is not None:
            assert hashed(stands[outcome.entry.name]) == outcome.entry.hash
        if isinstance(outcome, Forgotten):
            assert case.after[outcome.name] is not None or outcome.name not in stands
    judge(
        run.directory,
        may(case, done=done),
        kept=case.kept,
        gone=[piece for name, pieces in case.gone.items() if done or name not in stands for piece in pieces],
        mend=case.mend,
    )
    notes = [note.parse(name, raw) for name, raw in standing(run.directory).items()]
    assert sorted(line for line in rows(run.directory) if line.startswith("- [")) == sorted(
        listing.row(each.name, each.hook) for each in notes
    ), "each row says what its note says"


@pytest.mark.parametrize("half", [False, True], ids=["between", "within"])
@pytest.mark.parametrize("name", CASES)
def test_dies_at_every_call(name: str, half: bool, template: Path, room: Path) -> None:
    case = CASES[name]
    seen = set()
    for run in stopped(case, template, room, lambda _: CrashingDisk(half=half)):
        left = tree(run.directory)
        if left not in seen:
            judge_stopped(case, run)
        seen.add(left)
    assert len(seen) > 1


@pytest.mark.parametrize("name", CASES)
def test_power_is_cut_at_every_call(name: str, template: Path, room: Path) -> None:
    case = CASES[name]
    seen = set()
    for run in stopped(case, template, room, PowerCutDisk):
        assert isinstance(run.disk, PowerCutDisk)
        run.disk.settle()
        left = tree(run.directory)
        if left not in seen:
            judge_stopped(case, run)
        seen.add(left)
    assert seen


@pytest.mark.parametrize("name", CASES)
def test_power_is_cut_after_the_answer(name: str, template: Path, room: Path) -> None:
    case = CASES[name]
    shutil.copytree(template, room / "store")
    disk = PowerCutDisk(room / "store")
    run = ran(case, room / "store", disk, 10_000)
    disk.settle()
    judge_stopped(case, run)


@pytest.mark.parametrize(
    "make", [lambda _: CrashingDisk(), PowerCutDisk, lambda _: FailingDisk()], ids=["dies", "power", "fails"]
)
def test_a_rebuild_that_is_cut_short_loses_no_note(
    make: Callable[[Path], SteppedDisk], template: Path, room: Path
) -> None:
    for run in stopped(CASES["rebuild"], template, room, make):
        if isinstance(run.disk, PowerCutDisk):
            run.disk.settle()
        kept = run.kept if isinstance(run.disk, FailingDisk) else opened(run.directory)
        kept.do(Reconcile())
        kept.do(Rebuild())
        assert standing(run.directory) == BEFORE
        check_invariants(run.directory)


@pytest.mark.parametrize(
    "name", ["update over an unseen edit", "forget two versions", "forget all", "batch", "rebuild", "open"]
)
def test_dies_again_while_it_recovers(name: str, template: Path, room: Path) -> None:
    case = CASES[name]
    seen: set[object] = set()
    judged: set[object] = set()
    for run in stopped(case, template, room, lambda _: CrashingDisk()):
        left = tree(run.directory)
        if left in seen:
            continue
        seen.add(left)
        reopening = Case(case.after, between=case.between, kept=case.kept, gone=case.gone, mend=case.mend)
        inner = room / "again"
        inner.mkdir()
        for again in stopped(reopening, run.directory, inner, lambda _: CrashingDisk()):
            after = tree(again.directory)
            if after not in judged:
                judge_stopped(case, again._replace(outcomes=run.outcomes))
            judged.add(after)
        shutil.rmtree(inner)
    assert len(judged) > len(seen) / 2


FAILURES = {
    "EIO once": lambda: FailingDisk(errno.EIO),
    "EMFILE once": lambda: FailingDisk(errno.EMFILE, calls={"open", "read", "scan", "lock"}),
    "ENOSPC from then on": lambda: FailingDisk(errno.ENOSPC, lasting=True, calls=WRITING),
    "EIO from then on": lambda: FailingDisk(errno.EIO, lasting=True),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("name", CASES)
def test_fails_at_every_call(name: str, failure: str, template: Path, room: Path) -> None:
    case = CASES[name]
    seen = set()
    for run in stopped(case, template, room, lambda _: FAILURES[failure]()):
        refused = [isinstance(outcome, MemdError) for outcome in run.outcomes]
        assert len(set(refused)) <= 1 or len(case.batch) > 1
        carries_on(case, run)
        left = tree(run.directory)
        if left not in seen:
            judge_stopped(case, run)
        seen.add(left)
    assert seen


@pytest.mark.parametrize("how", ["killed", "power cut", "failing"])
def test_a_move_that_is_stopped_leaves_the_note_in_both_stores_and_never_in_neither(
    how: str, template: Path, room: Path
) -> None:
    makes: dict[str, Callable[[Path], SteppedDisk]] = {
        "killed": lambda _: CrashingDisk(),
        "power cut": PowerCutDisk,
        "failing": lambda _: FailingDisk(),
    }
    for number in range(1, 1000):
        directory = room / str(number)
        shutil.copytree(template, directory / "a")
        opened(directory / "b").saved("other", "The words of another store.")
        disk = makes[how](directory)
        source, target = opened(directory / "a", disk), opened(directory / "b", disk)
        if isinstance(disk, PowerCutDisk):
            disk.keep()
        disk.arm(number)
        moved = False
        with suppress(Crash):
            moved = isinstance(move(source.store, target.store, "alpha", ME).outcome, Saved)
        disk.heal()
        if isinstance(disk, PowerCutDisk):
            disk.settle()
        here = judge(directory / "a", {**may(CASES["forget two versions"], done=moved)}, kept=())
        there = judge(
            directory / "b",
            {"alpha": {ALPHA_2} if moved else {ALPHA_2, None}, "other": {standing(directory / "b")["other"]}},
        )
        assert "alpha" in here.entries or "alpha" in there.entries
        if "alpha" in here.entries:
            again = move(here.store, there.store, "alpha", ME).outcome
            assert isinstance(again, Saved)
        assert "alpha" not in standing(directory / "a")
        assert standing(directory / "b")["alpha"] == ALPHA_2
        if not disk.fired:
            assert moved
            return
    raise AssertionError("the move never ends")


def carries_on(case: Case, run: Stopped) -> None:
    """The same store goes on once the disk does, and its reader has been told of everything."""
    if case.mend is not None:
        run.kept.do(case.mend)
    run.kept.do(Reconcile())
    assert {name: entry.hash for name, entry in run.kept.entries.items()} == {
        name: hashed(raw) for name, raw in standing(run.directory).items()
    }
    assert run.kept.tokens.keys() == run.kept.entries.keys()
    check_invariants(run.directory)
