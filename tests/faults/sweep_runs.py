"""One verb on one home, broken at one call. Law: every run begins with the same files, and ends before the judge.

`Bench` prepares a home once, learns what the verb makes of it in peace, and then breaks it as often as it is asked.
"""

import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import memd_client

from .sweep_judge import NEXT, BadError, Case, Left, judge, judge_notes, judge_recorded, judge_told, recorded
from .sweep_trap import CHANGING, Die, Op, Verdict
from .sweep_verbs import OWN_LINE, Hand, Notes, Verb, standing
from .sweep_world import Daemon, World

CHANGES = frozenset(CHANGING.values())
Fault = Callable[[Op], Verdict]


class Aim:
    """Lets a fault happen at the call `number` from the arming on, and `lasting`: at every later one of its kind.

    `fired` holds the calls it happened to, by their numbers from the arming on.
    """

    def __init__(self, number: int, fault: Fault, *, lasting: bool = False, armed: bool = False) -> None:
        self.number, self.fault, self.lasting, self.armed = number, fault, lasting, armed
        self.seen: list[Op] = []
        self.fired: list[Op] = []
        self._counts: Counter[str] = Counter()

    def __call__(self, op: Op) -> Verdict:
        if not self.armed:
            return 0
        self._counts[op.kind] += 1
        op = op._replace(number=len(self.seen) + 1, nth=self._counts[op.kind])
        self.seen.append(op)
        again = self.lasting and self.fired and op.kind == self.fired[0].kind
        if not self.is_aimed_at(op) and not again:
            return 0
        verdict = self.fault(op)
        if verdict:
            self.fired.append(op)
        return verdict

    def is_aimed_at(self, op: Op) -> bool:
        """Whether this call is the one; asked once for each."""
        return op.number == self.number


class NthAim(Aim):
    """Fails the `nth` call of a kind on a file, and `lasting`: every later one of the kind on any file."""

    def __init__(self, about: tuple[str, str], nth: int, error: int, *, lasting: bool) -> None:
        super().__init__(nth, lambda _op: error, lasting=lasting)
        self.about = about
        self._come = 0

    def is_aimed_at(self, op: Op) -> bool:
        """Whether this call is the one."""
        if about_of(op) != self.about:
            return False
        self._come += 1
        return self._come == self.number


class Outcome(NamedTuple):
    """What the client was told: a reply, an error's kind, or nothing because the daemon died.

    `told` are the notes whose saves were acknowledged to some of several clients, whatever became of the others.
    """

    reply: dict[str, Any] | None
    error: str | None
    told: frozenset[tuple[str, str]]

    @property
    def acknowledged(self) -> bool:
        """Whether it was told that the verb was carried out, with nothing left out."""
        return self.reply is not None and not self.reply.get("warnings")


class Bench:
    """A verb, its home, and the case the judge holds against."""

    def __init__(self, world: World, verb: Verb) -> None:
        self.world, self.verb = world, verb
        mutation, world.mutation = world.mutation, None
        for tree in world.trees:
            shutil.rmtree(tree)
            tree.mkdir(mode=0o700)
        world.run(lambda connection: verb.prepare(Hand(world, connection)))
        verb.by_hand(world)
        self.kept = world.keep("begin")
        before = standing(world.stores)
        clean = Aim(0, die, armed=True)
        with world.daemon(clean) as daemon:
            outcome = attempt(daemon, self.act)
            fail_on_strangers(daemon)
        if not outcome.acknowledged:
            raise BadError("clean", f"{verb.name} fails with nothing broken: {outcome}")
        self.calls = [op for op in clean.seen if op.kind in CHANGES]
        after, records = standing(world.stores), recorded(Left.of(world.stores).journals)
        if not verb.expect(before, after):
            raise BadError("clean", f"{verb.name} does not do what is expected of it")
        store = world.stores["repo"]
        listing = self.kept / store.relative_to(world.root) / "MEMORY.md"
        objects = frozenset(path.name for path in (self.kept / store.relative_to(world.root) / "objects").glob("*"))
        self.case = Case(verb, before, after, listing.exists() and OWN_LINE in listing.read_text(), objects, records)
        world.mutation = mutation

    def act(self, connection: memd_client.Connection) -> Any:
        """What the verb answers."""
        return self.verb.act(Hand(self.world, connection))

    def broken(self, aim: Aim) -> Outcome:
        """Begin anew and act, with the aim armed for the act; the daemon is dead after it."""
        self.world.back_to(self.kept)
        with self.world.daemon(aim) as daemon:
            daemon.drive(lambda connection: connection.call("daemon.hello"))
            aim.armed = True
            outcome = attempt(daemon, self.act)
            fail_on_strangers(daemon)
        return outcome

    def recover(self, aim: Aim | None = None) -> tuple[Notes, bool] | None:
        """Start again and open the stores; what stands then, and whether the verb was done once more.

        None when the daemon died of the aim.
        """
        with self.world.daemon(aim or Aim(0, die)) as daemon:
            if aim is not None:
                aim.armed = True
            daemon.drive(lambda connection: Hand(self.world, connection).call("memory.list"))
            if daemon.trap.dead:
                return None
            if aim is not None:
                aim.armed = False
            notes = standing(self.world.stores)
            try:
                daemon.drive(self._go_on)
            except memd_client.MemdError as error:
                raise BadError("next", f"after the crash it is refused: {type(error).__name__}") from error
            fail_on_strangers(daemon)
        return notes, self.verb.again

    def _go_on(self, connection: memd_client.Connection) -> None:
        hand = Hand(self.world, connection)
        if self.verb.again:
            self.verb.act(hand)
        hand.call("memory.reconcile")
        hand.save(NEXT)

    def recover_and_judge(self, outcome: Outcome, left: Left) -> None:
        """Judge what was left, and what a recovery makes of it. Errors: BadError."""
        if outcome.acknowledged:
            judge_recorded(self.case, left)
        recovered = self.recover()
        if recovered is None:
            raise BadError("recovery", "the daemon died")
        notes, again = recovered
        judge_told(outcome.told, notes, self.case)
        judge_notes(notes, self.case, done=outcome.acknowledged)
        judge(self.world, self.case, left, done=outcome.acknowledged or again)

    def left(self) -> Left:
        """What stands now that recovery must keep."""
        return Left.of(self.world.stores)


def shape(path: str) -> str:
    """A path without what chance has put into it."""
    return re.sub(r"\.[0-9]+-[0-9a-f]+-[0-9]+\.tmp|[0-9a-f]{64}|(?<=projects/)[^/]+", "*", path)


def about_of(op: Op) -> tuple[str, str]:
    """A call's kind, and the file it is on in every run."""
    return op.kind, shape(op.path)


def die(_op: Op) -> Verdict:
    """The fault of a kill."""
    return Die()


def attempt(daemon: Daemon, act: Callable[[memd_client.Connection], Any]) -> Outcome:
    """What a client was told. Errors: HangError."""
    told = daemon.world.told
    told.clear()
    try:
        reply, error = daemon.drive(act), None
    except memd_client.MemdError as raised:
        reply, error = None, type(raised).__name__
    return Outcome(reply, error, frozenset(told))


def fail_on_strangers(daemon: Daemon) -> None:
    """Errors: BadError when the daemon made a call that no sweep knows."""
    if daemon.trap.strange:
        raise BadError("strange", f"calls that no sweep knows: {sorted(set(daemon.trap.strange))}")


def report(world: World, error: BaseException, command: str, module: str = "sweep") -> str:
    """What went wrong, where its files are kept and how to see it again."""
    kept = Path(tempfile.mkdtemp(prefix="memd-bad-"))
    shutil.copytree(
        world.home, kept / "home", ignore=lambda _, names: [name for name in names if name.endswith(".sock")]
    )
    shutil.copyfile(world.root / "log", kept / "log")
    again = f"python -m tests.faults.{module} {command}"
    text = f"BAD {type(error).__name__} {error}\n    files: {kept}\n    again: {again}"
    sys.stderr.write(text + "\n")
    return text
