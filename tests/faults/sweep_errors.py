"""One call fails, or all of its kind from there on. Law: nothing is told as done that a failed sync left open.

The same daemon goes on: once the disk is well it has to have read the store again, and to save; then it is killed
and what is there is judged. What can be wrong beside what the judge names:

- `swallowed`: "a failed sync refuses all of it"; what failed is never acknowledged. Two are no promise's: the sync of
  `.reserve`, and that of a forget's first try on a full disk, which is carried out anew in the room it makes.
- `retried`: "a failed fsync is never retried"; one of a file that was opened or written again since is another.
- `kind`: what is refused is `storage`, or `unreadable` where a file "exists but does not read".
- `reread`: "the store is re-read from disk before it serves again".
- `died`, `next`: the daemon goes on, and the next save works once the disk does.
"""

import errno
import os
from typing import Final

from .sweep_judge import NEXT, BadError, judge, judge_notes, judge_told
from .sweep_runs import Aim, Bench, Outcome, attempt, fail_on_strangers
from .sweep_trap import Answer, Op, Trap
from .sweep_verbs import Hand, standing
from .sweep_world import Daemon

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
ERRORS: Final = {
    "openat": (errno.EIO, errno.EMFILE),
    "open to write": (errno.EIO, errno.EMFILE, errno.EROFS, *_FULL),
    "write": (errno.EIO, *_FULL),
    "fsync": (errno.EIO, errno.EROFS, *_FULL),
    "fdatasync": (errno.EIO, errno.EROFS, *_FULL),
    "rename": (errno.EIO, errno.EROFS, *_FULL),
    "renameat2": (errno.EIO, errno.EROFS, *_FULL),
    "unlink": (errno.EIO, errno.EROFS),
    "mkdir": (errno.EIO, errno.EROFS, *_FULL),
    "flock": (errno.EIO, errno.ENOLCK),
    "ftruncate": (errno.EIO, errno.EROFS),
    "read": (errno.EIO,),
    "getdents64": (errno.EIO,),
    "newfstatat": (errno.EIO,),
    "statfs": (errno.EIO,),
    "statx": (errno.EIO,),
}
"""What each call fails with. A call that is not here and is made has to be put here: the sweep says so."""
KINDS: Final = frozenset({"Storage", "Unreadable"})
"""The errors a broken disk may be told as (SPEC 12)."""
SYNCS: Final = frozenset({"fsync", "fdatasync"})


def errors_of(op: Op) -> tuple[int, ...]:
    """What a call may fail with. Errors: BadError for one nobody has thought of."""
    kind = "open to write" if op.kind == "openat" and op.writes else op.kind
    if kind not in ERRORS:
        raise BadError("strange", f"no error is known for {kind}")
    return ERRORS[kind]


def faulted(bench: Bench, aim: Aim) -> Outcome:
    """Begin anew, act with the aim armed, heal the disk, save, die, start again. Errors: BadError, HangError."""
    bench.world.back_to(bench.kept)
    with bench.world.daemon(aim, looks=True) as daemon:
        daemon.drive(lambda connection: connection.call("daemon.hello"))
        aim.armed = True
        outcome = attempt(daemon, bench.act)
        aim.armed = False
        if aim.fired:
            judge_answer(bench, daemon.trap, aim, outcome)
        healed = len(daemon.trap.log)
        left = bench.left()
        go_on(bench, daemon)
        if aim.fired:
            judge_reread(bench, daemon.trap, aim, healed)
        fail_on_strangers(daemon)
        judge_told(outcome.told, standing(bench.world.stores), bench.case)
        judge_notes(without_next(bench), bench.case, done=outcome.acknowledged or bench.verb.again)
    recovered = bench.recover()
    if recovered is None:
        raise BadError("recovery", "the daemon died")
    judge(bench.world, bench.case, left, done=outcome.acknowledged or bench.verb.again)
    return outcome


def without_next(bench: Bench) -> dict[tuple[str, str], bytes]:
    """The notes that stand, less the one that was saved to see whether that works."""
    notes = standing(bench.world.stores)
    if notes.pop(("repo", NEXT), None) is None:
        raise BadError("lost", "the save on the mended disk")
    return notes


def go_on(bench: Bench, daemon: Daemon) -> None:
    """The next save works on the mended disk, and so does the verb where it may be done again.

    A store that lost its notes is suspended until they are rebuilt, and no save before that is taken (SPEC 5).
    """

    def script(connection: object) -> None:
        hand = Hand(bench.world, connection)  # type: ignore[arg-type]
        if bench.verb.mends:
            bench.verb.act(hand)
        hand.save(NEXT)
        if bench.verb.again:
            bench.verb.act(hand)
        hand.call("memory.reconcile")

    outcome = attempt(daemon, script)
    if outcome.error is not None:
        raise BadError("next", f"on the mended disk the next save is refused: {outcome.error}")


def judge_answer(bench: Bench, trap: Trap, aim: Aim, outcome: Outcome) -> None:
    """A failed sync is never acknowledged, never tried again; what is refused is refused in the right words."""
    if trap.dead:
        raise BadError("died", "the daemon ended")
    if outcome.error is not None and outcome.error not in KINDS:
        raise BadError("kind", f"told as {outcome.error}")
    failed = [op for op in aim.fired if op.kind in SYNCS and not is_spare(op)]
    for op in failed:
        later = aim.seen[op.number :]
        written = [each.kind for each in later if each.path == op.path and each.kind in ("openat", "write")]
        if any(each.kind in SYNCS and each.path == op.path for each in later) and not written:
            raise BadError("retried", f"{op.kind} of {op.path} was tried again")
    # A forget on a full disk is carried out anew, in the room it makes (SPEC 4): nothing rests on the first try.
    anew = bench.verb.name in ("forget", "forgets") and aim.fault(aim.fired[0]) in _FULL
    if failed and outcome.acknowledged and not anew:
        raise BadError("swallowed", f"acknowledged, though {failed[0].kind} of {failed[0].path} failed")


def is_spare(op: Op) -> bool:
    """Whether it is the room that is kept for a forget, which no promise rests on."""
    return os.path.basename(op.path).startswith(".reserve")  # noqa: PTH119 - a name from a trace


def judge_reread(bench: Bench, trap: Trap, aim: Aim, healed: int) -> None:
    """After a failed sync in a store, its journal and its directory are read again before the next save is told."""
    failed = [op for op in aim.fired if op.kind in SYNCS and not is_spare(op)]
    if not failed:
        return
    store = str(bench.world.stores["repo"].relative_to(bench.world.home))
    if store not in failed[0].path:
        return
    first = next(
        index
        for index, each in enumerate(trap.log)
        if isinstance(each, Op) and each.path == failed[0].path and each.kind == failed[0].kind
    )
    answer = next(index for index in range(healed, len(trap.log)) if isinstance(trap.log[index], Answer))
    between = [each for each in trap.log[first:answer] if isinstance(each, Op)]
    journal = [op for op in trap.log[:answer] if isinstance(op, Op) and op.path == f"{store}/ops.jsonl"]
    begun = any(op.kind == "openat" and op.number < failed_at(trap, first) for op in journal)
    looks = ("openat",) if begun else ("openat", "newfstatat")  # one that was not begun is looked for
    if not any(op.kind in looks and op in journal and not op.writes for op in between):
        raise BadError("reread", "the journal was not read again")
    if not any(op.kind == "getdents64" and op.path == store for op in between):
        raise BadError("reread", "the directory was not looked through again")


def failed_at(trap: Trap, index: int) -> int:
    """The number of the call at a place of the log."""
    op = trap.log[index]
    return op.number if isinstance(op, Op) else 0
