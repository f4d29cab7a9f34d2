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

from memd import paths
from memd.errors import Busy, MemdError, NotFound, Storage, Suspended
from memd.fs import Disk, LockTimeoutError
from memd.journal import Record
from memd.settle import SETTLE
from memd.store import checking, rebuilding, reconciling, saving, sweep, write
from memd.store.model import (
    Change,
    Committed,
    Count,
    Entry,
    Finding,
    Forget,
    Outcome,
    Rebuild,
    Rebuilt,
    Reconcile,
    Reconciled,
    Request,
    Save,
    View,
)
from memd.store.plan import Plan
from memd.store.state import LOCK, State, read_entry

T = TypeVar("T")

COUNT_WAIT_S = 1.0
"""How long a read waits to be counted."""
REPLANS = 8
"""How often a batch is planned again because someone else wrote between look and rename."""

_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class Store:
    """The notes of one directory, and the only thing that writes there.

    `origin` is the canonical path the store belongs to, written down when the store is first opened (SPEC 1).
    `lock_timeout` and `settle_s` are seconds; `clock` gives unix seconds. A store whose directory is not there
    is empty, and made by the first save.
    """

    def __init__(
        self,
        directory: Path,
        *,
        origin: Path | None = None,
        disk: Disk | None = None,
        lock_timeout: float = 10.0,
        settle_s: float = SETTLE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.directory = directory
        self.origin = origin
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
            return Committed([], [], View())
        try:
            with self._locked():
                return self._committed([], self._load()[0])
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise storage(error) from error
            self.state = State(self.disk, self.directory)
            self.state.read_journal()
            return self._committed([], list(self.state.load_notes()))

    def _load(self) -> tuple[list[Change], Reconciled]:
        """Read everything, sweep and reconcile, under the lock: every note, as changes, and what was taken in.

        What went since the last load comes as a change too.
        """
        self.loaded = False
        before = self.state
        state = self.state = State(self.disk, self.directory)
        state.missing, state.suspended = before.missing, before.suspended
        self._claim()
        state.read_journal()
        sweep.sweep(state)
        changes = {change.name: change for change in state.load_notes()}
        plan = Plan(state, self.clock())
        taken = reconciling.reconcile(plan, Reconcile(), self.settle_s, opening=True)
        changes |= {change.name: change for change in self._carry_out(plan)}
        for name in before.entries:
            changes.setdefault(name, Change(name, None, None))
        self.loaded = True
        return list(changes.values()), taken

    def _claim(self) -> None:
        """Write down whom a store without `.origin` belongs to."""
        path = paths.origin_file(self.directory)
        if self.origin is None:
            return
        status = self.disk.stat(path)
        if status is None or status.st_size <= 1:
            self.disk.replace(self.disk.stage(self.directory, paths.origin_text(self.origin)), path)
            self.disk.sync_dir(self.directory)

    # -- writing ---------------------------------------------------------------------------------------------

    def commit(self, batch: Sequence[Request]) -> Committed:
        """Plan every request in order, write them all at once, and answer each (SPEC 4, group commit).

        A request that refuses drops out alone; when the disk fails, all are refused with `storage` and the
        store is read again before it serves the next.
        """
        try:
            if not self.directory.is_dir():
                held = self.state.heads.live_count
                if held or not any(isinstance(request, Save) for request in batch):
                    return self._nowhere(batch, held)
                self.disk.make_dirs(self.directory)
            with self._locked(patience := self._patience(batch)):
                return self._commit(batch)
        except LockTimeoutError:
            return self._committed([busy(patience)] * len(batch), [])
        except MemdError as error:
            return self._committed([error] * len(batch), [])
        except OSError as error:
            self.loaded = False
            return self._committed([storage(error)] * len(batch), self._reload())

    def _commit(self, batch: Sequence[Request]) -> Committed:
        changes: dict[str, Change] = {}
        taken = Reconciled()
        if not self.loaded:
            loaded, taken = self._load()
            changes |= {change.name: change for change in loaded}
        for _ in range(REPLANS):
            foreign = self.state.read_journal()
            plan = Plan(self.state, self.clock())
            if foreign:
                taken = taken.then(reconciling.reconcile(plan, Reconcile(), self.settle_s))
            outcomes = [self._plan(plan, request) for request in batch]
            outcomes = [taken.then(done) if isinstance(done, Reconciled) else done for done in outcomes]
            try:
                changes |= {change.name: change for change in self._carry_out(plan)}
            except write.InterferenceError:
                continue
            return self._committed(outcomes, list(changes.values()))
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
        known = self.state.is_scanned()
        written = write.carry_out(plan)
        if known:
            self.state.note_scan()
        return self.state.merge(plan.changes, written, plan.suspended, self.clock())

    def _committed(self, outcomes: Sequence[Outcome | MemdError], changes: list[Change]) -> Committed:
        return Committed(list(outcomes), changes, self.state.view())

    def _reload(self) -> list[Change]:
        """Look at the disk again after a failed write, if it lets us; else the next write does."""
        try:
            with self._locked():
                return self._load()[0]
        except (OSError, LockTimeoutError, MemdError):
            return []

    def _nowhere(self, batch: Sequence[Request], held: int) -> Committed:
        """Answer a batch while there is no directory: none is made where one with notes was taken away (SPEC 5)."""
        self.loaded = False
        self.state.suspended = bool(held)
        gone = [Change(name, None, None) for name in self.state.entries]
        return self._committed([nowhere(request, held) for request in batch], gone)

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
            raise busy(self.lock_timeout) from None
        except OSError as error:
            if error.errno in _READ_ONLY:
                return look(self.state)
            raise storage(error) from error

    def read_now(self, name: str) -> tuple[bytes, Entry] | None:
        """A note's bytes and entry as they stand: its file, or while the store is suspended its head's object.

        Takes no lock: a note file is replaced whole. None when there is neither.
        """
        read = self.state.read_note(name)
        if read is not None:
            return read[0], read[1]
        head = self.state.heads.head(name)
        raw = self.state.read_object(head.hash) if self.state.suspended and head is not None else None
        return None if raw is None else (raw, read_entry(name, raw, None, 0)[0])

    def read_version(self, name: str, content_hash: str) -> bytes:
        """The text of one version of a note, from its object. Errors: NotFound, Busy, Unreadable, Storage."""

        def look(state: State) -> bytes:
            raw = state.read_object(content_hash) if content_hash in state.heads.versions(name) else None
            if raw is None:
                raise NotFound("the note has no version of that hash; memory.log lists them")
            return raw

        return self.inspect(look)

    def records(self) -> list[Record]:
        """Every record of the journal, in append order. Errors: Busy, Unreadable, Storage."""
        return self.inspect(lambda state: state.all_records())

    def check(self) -> tuple[Finding, ...]:
        """Every trouble of the store's files (SPEC 7)."""
        return self.inspect(checking.check)

    def verify(self) -> tuple[Finding, ...]:
        """What rebuild would name, changing nothing (SPEC 7)."""
        return self.inspect(rebuilding.verify)

    def _patience(self, batch: Sequence[Request]) -> float:
        """Seconds to wait for the lock: a read goes out uncounted rather than wait as long as a write (SPEC 7)."""
        counts = all(isinstance(request, Count) for request in batch)
        return min(COUNT_WAIT_S, self.lock_timeout) if counts else self.lock_timeout

    @contextmanager
    def _locked(self, timeout: float | None = None) -> Iterator[None]:
        with self.disk.locked(self.directory / LOCK, self.lock_timeout if timeout is None else timeout):
            yield


def nowhere(request: Request, held: int) -> Outcome | MemdError:
    """What a request comes to where there is no directory; `held` is how many notes there were."""
    match request:
        case Reconcile():
            return Reconciled(suspended=bool(held))
        case Rebuild() if not held:
            return Rebuilt(live=0, restored=0, forgotten=0, differ=(), missing=(), broken_line=None, findings=())
        case Forget() | Count() if not held:
            return NotFound(f"no note is named {request.name}")
    return suspended(held)


def busy(waited: float) -> Busy:
    """The error of a lock that was not had in `waited` seconds."""
    return Busy(f"another process held the store's lock for {waited:g} s; try again")


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
