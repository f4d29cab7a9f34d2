"""One store on disk. Law: a note changes by `Store.commit`, and by nothing else.

Blocking code for a worker thread; `live` gives it an async lock and a waiting list. Every call that touches the
directory holds the store's flock, so that other processes of the first seed's kind can share it (SPEC section 4).
"""

import errno
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from memd.errors import Busy, MemdError, Storage, Suspended
from memd.fs import Disk, LockTimeoutError
from memd.settle import SETTLE
from memd.store import rebuilding, reconciling, saving, sweep, write
from memd.store.model import (
    Change,
    Committed,
    Count,
    Finding,
    Forget,
    Outcome,
    Rebuild,
    Reconcile,
    Request,
    Save,
)
from memd.store.plan import Plan
from memd.store.state import LOCK, State

T = TypeVar("T")

REPLANS = 8
"""How often a batch is planned again because someone else wrote between look and rename."""

_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class Store:
    """The notes of one directory, and the only thing that writes there.

    `lock_timeout` and `settle_s` are seconds; `clock` gives unix seconds. A store whose directory is not there
    is empty, and made by the first save.
    """

    def __init__(
        self,
        directory: Path,
        *,
        disk: Disk | None = None,
        lock_timeout: float = 10.0,
        settle_s: float = SETTLE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.directory = directory
        self.disk = disk or Disk()
        self.lock_timeout = lock_timeout
        self.settle_s = settle_s
        self.clock = clock
        self.state = State(self.disk, directory)
        self.loaded = False

    # -- opening ---------------------------------------------------------------------------------------------

    def open(self) -> Committed:
        """Read the store, sweep what a crash left, take in what differs; every note, as changes.

        Where the disk does not let memd write, the notes are read and served as they stand, and the next write
        opens the store again. Errors: Busy, Unreadable, Storage.
        """
        if not self.directory.is_dir():
            return Committed([], [])
        try:
            with self._locked():
                return Committed([], self._load())
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise storage(error) from error
            self.state = State(self.disk, self.directory)
            self.state.read_journal()
            return Committed([], list(self.state.load_notes()))

    def _load(self) -> list[Change]:
        """Read everything, sweep and reconcile, under the lock; what is gone since the last load comes as a change."""
        self.loaded = False
        before = self.state
        state = self.state = State(self.disk, self.directory)
        state.missing, state.suspended = before.missing, before.suspended
        state.read_journal()
        sweep.sweep(state)
        changes = {change.name: change for change in state.load_notes()}
        plan = Plan(state, self.clock())
        reconciling.reconcile(plan, Reconcile(), self.settle_s, opening=True)
        changes |= {change.name: change for change in self._carry_out(plan)}
        for name in before.entries:
            changes.setdefault(name, Change(name, None, None))
        self.loaded = True
        return list(changes.values())

    # -- writing ---------------------------------------------------------------------------------------------

    def commit(self, batch: Sequence[Request]) -> Committed:
        """Plan every request in order, write them all at once, and answer each (SPEC 4, group commit).

        A request that refuses drops out alone; when the disk fails, all are refused with `storage` and the
        store is read again before it serves the next.
        """
        try:
            if not self.directory.is_dir():
                self._make_directory()
            with self._locked():
                return self._commit(batch)
        except LockTimeoutError:
            busy = Busy(f"another process held the store's lock for {self.lock_timeout:g} s; try again")
            return Committed([busy] * len(batch), [])
        except MemdError as error:
            return Committed([error] * len(batch), [])
        except OSError as error:
            self.loaded = False
            return Committed([storage(error)] * len(batch), self._reload())

    def _commit(self, batch: Sequence[Request]) -> Committed:
        changes: dict[str, Change] = {}
        if not self.loaded:
            changes |= {change.name: change for change in self._load()}
        for _ in range(REPLANS):
            foreign = self.state.read_journal()
            plan = Plan(self.state, self.clock())
            if foreign:
                reconciling.reconcile(plan, Reconcile(), self.settle_s)
            outcomes = [self._plan(plan, request) for request in batch]
            try:
                changes |= {change.name: change for change in self._carry_out(plan)}
            except write.InterferenceError:
                continue
            return Committed(outcomes, list(changes.values()))
        raise Busy("another program keeps writing these notes; try again")

    def _plan(self, plan: Plan, request: Request) -> Outcome | MemdError:
        try:
            return self._plan_one(plan, request)
        except MemdError as error:
            return error

    def _plan_one(self, plan: Plan, request: Request) -> Outcome:
        match request:
            case Reconcile():
                return reconciling.reconcile(plan, request, self.settle_s)
            case Rebuild():
                return rebuilding.rebuild(plan)
        if plan.suspended:
            raise suspended(len(self.state.missing))
        match request:
            case Save():
                return saving.save(plan, request)
            case Forget():
                return saving.forget(plan, request)
            case Count():
                return saving.count(plan, request)

    def _carry_out(self, plan: Plan) -> list[Change]:
        written = write.carry_out(plan)
        return self.state.merge(plan.changes, written, plan.suspended, self.clock())

    def _reload(self) -> list[Change]:
        """Look at the disk again after a failed write, if it lets us; else the next write does."""
        try:
            with self._locked():
                return self._load()
        except (OSError, LockTimeoutError, MemdError):
            return []

    def _make_directory(self) -> None:
        """Make the store's directory, unless it held notes and was taken away (SPEC 5, guard)."""
        if self.state.heads.live_count:
            self.state.suspended = True
            raise suspended(self.state.heads.live_count)
        self.disk.make_dirs(self.directory)
        self.loaded = False

    # -- reading ---------------------------------------------------------------------------------------------

    def inspect(self, look: Callable[[State], T]) -> T:
        """What `look` finds in the state, caught up with the disk and held still by the lock.

        Errors: Busy, Unreadable, Storage.
        """
        try:
            with self._locked():
                self.state.read_journal()
                return look(self.state)
        except LockTimeoutError:
            raise Busy(f"another process held the store's lock for {self.lock_timeout:g} s; try again") from None
        except OSError as error:
            if error.errno in _READ_ONLY:
                return look(self.state)
            raise storage(error) from error

    def verify(self) -> tuple[Finding, ...]:
        """What rebuild would name, changing nothing (SPEC 7)."""
        return self.inspect(rebuilding.verify)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self.disk.locked(self.directory / LOCK, self.lock_timeout):
            yield


def storage(error: OSError) -> Storage:
    """The `storage` error of an operating-system failure: its words, no path."""
    reason = error.strerror or "the disk failed"
    return Storage(f"{reason}: nothing was acknowledged; mend the disk and try again")


def suspended(missing: int) -> Suspended:
    """The guard's refusal, with its remedies (SPEC 5)."""
    return Suspended(
        f"{missing} notes are gone from the store at once, so it is suspended; "
        "`memctl rebuild` brings them back, `memctl reconcile --accept` lets them go"
    )
