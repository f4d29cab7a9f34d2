"""One store on disk. Law: a note changes by `Store.commit`, and by nothing else.

Blocking code for a worker thread; `live` gives it an async lock and a waiting list. Every call that touches the
directory holds the store's flock, so that other processes of the first seed's kind can share it (SPEC section 4).
"""

import errno
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from memd import note, paths, settle
from memd.errors import Busy, MemdError, NotFound, Storage
from memd.fs import Disk, LockTimeoutError, NotRegularError, nothing
from memd.journal import FORGET, HEAD_OPS, Record, content_hash
from memd.settle import SETTLE
from memd.store import checking, rebuilding, reconciling, removing, rows, sourcing, sweep, write
from memd.store.cached import unreadable
from memd.store.model import (
    Change,
    Committed,
    Count,
    Entry,
    Finding,
    Forget,
    Journaled,
    Outcome,
    Rebuild,
    Reconcile,
    Reconciled,
    Request,
)
from memd.store.plan import Plan, TooSoonError
from memd.store.planning import lets_go, makes_store, nowhere, plan_request, suspended
from memd.store.reserve import Reserve
from memd.store.state import LISTING, LOCK, SUSPENDED, USAGE, State, read_entry, settled_stamp

T = TypeVar("T")

COUNT_WAIT_S = 1.0
"""How long a read waits to be counted, and a store for its lock when it is opened."""
READER_WAIT_S = 0.1
"""How long a reader waits for what changed behind memd's back to be taken in."""
SLICE_S = 0.04
"""How long taking a slice in should take: whoever waits for the lock waits about that long."""
SLICES = (16, 256)
"""The fewest and the most notes of a slice."""
SLICES_MAX = 64
"""Slices that all of a store's notes are taken in with at most: each looks through the whole directory."""
ASIDE = 8
"""Notes that a request which is no reconcile takes in on its way."""
REPLANS = 8
"""How often a batch is planned again because someone else wrote between look and rename."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class Planned(NamedTuple):
    """What became of the first requests of a batch, all that was taken in by then, and how many notes there are."""

    outcomes: list[Outcome | MemdError]
    taken: Reconciled
    there: int


class Store:
    """The notes of one directory, and the only thing that writes there.

    `origin` is the canonical path the store belongs to, written down when the store is first opened (SPEC 1).
    `reserve` is the file given up so that a forget works on a full disk (SPEC 4).
    `lock_timeout` and `settle_s` are seconds; `clock` gives unix seconds. A store whose directory is not there
    is empty, and made by the first save.
    """

    def __init__(
        self,
        directory: Path,
        *,
        origin: Path | None = None,
        reserve: Path | None = None,
        disk: Disk | None = None,
        lock_timeout: float = 10.0,
        settle_s: float = SETTLE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.directory = directory
        self.origin = origin
        self.disk = disk or Disk()
        self.reserve = None if reserve is None else Reserve(reserve, self.disk)
        self.lock_timeout = lock_timeout
        self.settle_s = settle_s
        self.clock = clock
        self.state = State(self.disk, directory)
        self.loaded = False
        self._untold: dict[str, Change] = {}
        self._journaled: list[Journaled] = []
        self._frees_first = False
        self._removing: set[str] = set()
        self._slice = SLICES[0]

    # -- opening ---------------------------------------------------------------------------------------------

    def open(self) -> Committed:
        """Read the store, sweep what a crash left, take in what differs; every note, as changes.

        Where the disk does not let memd write, or another process has the lock, the notes are read and served as
        they stand, and the next write opens the store again. Errors: Unreadable, and Storage when they cannot be
        read either.
        """
        if self.directory.is_dir():
            try:
                with self._locked(min(COUNT_WAIT_S, self.lock_timeout)):
                    self._load()
            except (Busy, OSError):
                self._read_unlocked()
        return self._committed([])

    def _read_unlocked(self) -> None:
        try:
            self._read()
        except OSError as error:
            raise storage(error) from error

    def _load(self) -> Reconciled:
        """Read everything, sweep and reconcile, under the lock; what was taken in."""
        begun = self._removing
        self._read()
        begun = begun | removing.begun(self.state)
        self._claim()
        if sweep.is_rebuild_cut_short(self.state):
            self._carry(rebuilding.compare)
        sweep.sweep(self.state)
        taken = self._carry(lambda plan: reconciling.reconcile(plan, Reconcile(), self.settle_s, begun))
        removing.end(self.state)
        return taken

    def _read(self) -> None:
        """Read everything as it stands; what went since the last time is a change too."""
        self.loaded = False
        before = self.state
        state = State(self.disk, self.directory)
        state.is_marked = self.disk.stat(self.directory / SUSPENDED) is not None
        state.missing, state.suspended = before.missing, before.suspended or state.is_marked
        state.read_journal()
        changes = {change.name: change for change in state.load_notes()}
        self._untold.update({name: Change(name, None, None) for name in before.entries if name not in changes})
        self._untold.update(changes)
        self.state = state

    def _claim(self) -> None:
        """Write down whom a store without `.origin` belongs to."""
        path = paths.origin_file(self.directory)
        if self.origin is None:
            return
        status = self.disk.stat(path)
        if status is None or status.st_size <= 1:
            self.disk.replace(self.disk.stage(self.directory, paths.origin_text(self.origin)).path, path)
            self.disk.sync_dir(self.directory)

    # -- writing ---------------------------------------------------------------------------------------------

    def commit(self, batch: Sequence[Request], beside: write.Beside = nothing) -> Committed:
        """Plan every request in order, write them all at once, and answer each (SPEC 4, group commit).

        `beside` gets the changes, by name, before they are durable, and those of a plan that is given up, too. A
        request that refuses drops out alone; when the disk fails, all are refused with `storage` and the store is
        read again before it serves the next.
        """
        outcomes: list[Outcome | MemdError] = []
        try:
            held = self.state.heads.live_count
            if self._is_taken_away() and not (self.directory.is_dir() and any(map(lets_go, batch))):
                return self._committed(self._nowhere(batch, held))
            if not self.directory.is_dir():
                if held or not any(map(makes_store, batch)):
                    return self._committed(self._nowhere(batch, held))
                self.disk.make_dirs(self.directory)
            with self._locked(self._patience(batch)):
                self._commit(batch, outcomes, beside)
        except MemdError as error:
            outcomes += [error] * (len(batch) - len(outcomes))
        except OSError as error:
            begun = self._removing
            self.reload()
            rest = batch[len(outcomes) :]
            if error.errno in _FULL and any(isinstance(request, Forget) for request in rest):
                outcomes += self._forget_when_full(rest, begun, storage(error))
            outcomes += [storage(error)] * (len(batch) - len(outcomes))
        return self._committed(outcomes)

    def _forget_when_full(
        self, batch: Sequence[Request], begun: set[str], full: Storage
    ) -> list[Outcome | MemdError]:
        """Carry a batch's forgets out, in the room the reserve leaves or else in what they free themselves.

        All else waits for a disk that has room.
        """
        self._frees_first = self.reserve is None or not self.reserve.give_up()
        try:
            return self._forget_alone(batch, begun, full)
        finally:
            self._frees_first = False

    def _forget_alone(self, batch: Sequence[Request], begun: set[str], full: Storage) -> list[Outcome | MemdError]:
        """The outcome of each of the batch's forgets, and `full` for all else.

        So it is for a note that the first try had `begun` to remove and that is gone since: nobody was told.
        """
        forgotten: list[Outcome | MemdError] = []
        gone = {name for name in begun if not self.state.heads.is_live(name)}
        forgets = [request for request in batch if isinstance(request, Forget) and request.name not in gone]
        try:
            with self._locked():
                self._commit(forgets, forgotten)
        except MemdError as error:
            forgotten += [error] * (len(forgets) - len(forgotten))
        except OSError as error:
            self.reload()
            forgotten += [storage(error)] * (len(forgets) - len(forgotten))
        answers = dict(zip(map(id, forgets), forgotten, strict=True))
        return [answers.get(id(request), full) for request in batch]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the store's lock for `commit_held`, its directory made. Errors: Busy, Suspended, OSError."""
        if self._is_taken_away():
            raise suspended(self.state.heads.live_count)
        if not self.directory.is_dir():
            self.disk.make_dirs(self.directory)
        with self._locked():
            yield

    def commit_held(self, batch: Sequence[Request]) -> list[Outcome | MemdError]:
        """What became of each request, the lock being held. Errors: Busy, Unreadable, OSError."""
        outcomes: list[Outcome | MemdError] = []
        self._commit(batch, outcomes)
        return outcomes

    def told(self) -> Committed:
        """Every change since the last answer."""
        return self._committed([])

    def _commit(
        self, batch: Sequence[Request], outcomes: list[Outcome | MemdError], beside: write.Beside = nothing
    ) -> None:
        """Carry the batch out, in one plan unless a request has to wait for one before it; `outcomes` grows.

        A reconcile tells of all that this call has taken in before it too.
        """
        taken = Reconciled() if self.loaded else self._load()
        while len(outcomes) < len(batch):
            rest = batch[len(outcomes) :]
            whole = any(isinstance(request, Rebuild) for request in rest)
            began = time.monotonic()
            planned = self._carry(partial(self._planned, batch=rest, taken=taken), beside, whole=whole)
            if planned.taken.more:
                self._slice = next_slice(self._slice, time.monotonic() - began, planned.there)
            outcomes += planned.outcomes
            taken = planned.taken

    def _carry(self, make: Callable[[Plan], T], beside: write.Beside = nothing, *, whole: bool = False) -> T:
        """Make a plan on the latest state and carry it out; what `make` answered.

        A hand edit that the plan is to replace is journaled by itself first: the object alone would be one that no
        record names, and swept after a crash. `whole`: from the journal read anew. Errors: Busy when others keep
        changing what it writes.
        """
        for _ in range(REPLANS):
            self.state.read_journal(whole=whole)
            plan = Plan(self.state, self.clock())
            answer = make(plan)
            unseen = plan.taken & plan.files.keys()
            if unseen:
                plan = Plan(self.state, self.clock())
                reconciling.take_first(plan, unseen)
            if self._carry_out(plan, beside) and not unseen:
                return answer
        raise Busy("another program keeps writing these notes; try again")

    def _carry_out(self, plan: Plan, beside: write.Beside) -> bool:
        """Write a plan; False when someone else wrote meanwhile and it was given up."""
        plan.frees_first = self._frees_first
        self.loaded = False  # whatever stops the writing half-way: the disk has to be read again
        self._removing = {name for name, raw in plan.files.items() if raw is None}
        try:
            changes = write.carry_out(plan, beside)
        except write.InterferenceError:
            return False
        self.loaded = True
        self._removing = set()
        self._untold.update({change.name: change for change in changes})
        self._journaled += plan.journaled
        if plan.records and self.reserve is not None:
            self.reserve.renew(self._rewrite_size())
        return True

    def _rewrite_size(self) -> int:
        """Bytes of the files that a forget writes anew."""
        files = (self.directory / LISTING, self.directory / USAGE)
        return sum(status.st_size for file in files if (status := self.disk.stat(file)) is not None)

    def _planned(self, plan: Plan, batch: Sequence[Request], taken: Reconciled) -> Planned:
        """Plan the requests in order, up to one that comes too soon."""
        if not isinstance(batch[0], Reconcile | Rebuild) and (plan.behind or not plan.is_scanned()):
            plan.slice = ASIDE
            taken = taken.then(reconciling.reconcile(plan, Reconcile(), self.settle_s))
        outcomes = []
        reconciled: set[Reconcile] = set()
        for request in batch:
            plan.slice = self._slice if isinstance(request, Reconcile) and request.sliced else None
            outcome = taken if request in reconciled else self._plan(plan, request)
            if outcome is None:
                break
            if isinstance(request, Reconcile) and isinstance(outcome, Reconciled) and request not in reconciled:
                outcome = taken = taken.then(outcome)
                reconciled.add(request)
            outcomes.append(outcome)
        if plan.taken or plan.unmended:
            rows.renew(plan)  # a request that took a hand edit in and was refused leaves the row to us
        return Planned(outcomes, taken, len(self.state.entries) + len(plan.waiting))

    def _plan(self, plan: Plan, request: Request) -> Outcome | MemdError | None:
        """What becomes of one request, None for one that comes too soon."""
        try:
            return plan_request(plan, request, self.settle_s)
        except MemdError as error:
            return error
        except TooSoonError:
            return None

    def _committed(self, outcomes: Sequence[Outcome | MemdError]) -> Committed:
        """These outcomes, with every change and every record that no answer has told yet."""
        view = self.state.view()  # first: if this raises, what is untold stays so
        changes, self._untold = list(self._untold.values()), {}
        journaled, self._journaled = tuple(self._journaled), []
        return Committed(list(outcomes), changes, view, journaled)

    def reload(self) -> None:
        """Look at the disk again after a failed write, if it lets us; else the next write does."""
        self.loaded = False
        with suppress(OSError, MemdError):
            if self._is_taken_away():
                return
            with self._locked():
                self._load()

    def _is_there(self) -> bool:
        """Whether there is a directory, and it is still the store's."""
        return self.directory.is_dir() and not self._is_taken_away()

    def _is_taken_away(self) -> bool:
        """Whether the store is gone that there was: its directory, or its journal with so many notes that the guard
        holds. So it is when a directory was unmounted or made again; a store that lost its journal alone is not.
        """
        heads = self.state.heads
        if heads.live_count == 0:
            return False
        if not self.directory.is_dir():
            return True
        if self.state.journal_stamp is None or self.disk.stat(self.state.journal) is not None:
            return False
        there = {seen.name for seen in self.disk.scan(self.directory)}
        gone = sum(f"{name}.md" not in there for name in heads.live())
        return settle.guard(gone, heads.live_count, directory_gone=gone == heads.live_count, suspended=False)

    def _nowhere(self, batch: Sequence[Request], held: int) -> list[Outcome | MemdError]:
        """Answer a batch while there is no directory: none is made where one with notes was taken away (SPEC 5)."""
        self.loaded = False
        self.state.suspended = bool(held)
        self._untold.update({name: Change(name, None, None) for name in self.state.entries})
        return [nowhere(request, held) for request in batch]

    # -- reading ---------------------------------------------------------------------------------------------

    def read_now(self, name: str) -> tuple[bytes, Entry] | None:
        """A note's bytes and entry as they stand: its file; its head's object while the store is suspended, and
        while an editor has emptied the file to write it anew.

        Takes no lock: a note file is replaced whole. None when there is neither. Errors: Unreadable, Storage.
        """
        try:
            read = self.state.read_note(name)
        except (FileNotFoundError, NotRegularError):
            return self._read_head(name) if self.state.suspended else None
        except OSError as error:
            raise unread(name, error) from error
        if not read.raw and self._was_just_emptied(read.entry):
            return self._read_head(name) or (read.raw, read.entry)
        return read.raw, read.entry

    def _read_head(self, name: str) -> tuple[bytes, Entry] | None:
        """The text of a note's head and its entry, from its object; None where there is none."""
        head = self.state.heads.head(name)
        raw = None if head is None or head.op == FORGET else self.state.read_object(head.hash)
        return None if raw is None else (raw, read_entry(name, raw, None, 0)[0])

    def _was_just_emptied(self, entry: Entry) -> bool:
        """Whether an empty file may not mean to be (SPEC 5)."""
        now = self.clock()
        changed = now if entry.stamp is None else entry.stamp.ctime_ns / 1e9
        return settle.quiet_at(entry.size, changed, now, self.settle_s) > now

    def may_differ(self, files: Iterable[str]) -> bool:
        """Whether any of these files of the directory holds something else than memd knows it to; takes no lock."""
        return self.state.suspended or any(map(self._may_differ, files))

    def _may_differ(self, file: str) -> bool:
        if file == LISTING:
            return not self.state.listing.holds()
        if not note.is_note_name(file):
            return False
        name = file.removesuffix(".md")
        known, seen = self.state.entries.get(name), self.state.look(name)
        if seen is None or known is None:
            return seen is not None or known is not None or self.state.heads.is_live(name)
        if settled_stamp(known, seen):
            return False
        try:
            return content_hash(self.state.read_file(name)[0]) != known.hash
        except OSError:
            return True

    def read_version(self, name: str, content_hash: str) -> bytes:
        """The text of one version of a note, from its object. Errors: NotFound, Busy, Unreadable, Storage."""

        def look(state: State) -> bytes | None:
            return state.read_object(content_hash) if content_hash in state.heads.versions(name) else None

        raw = self._inspect(look, None)
        if raw is None:
            raise NotFound("the note has no version of that hash; memory.log lists them")
        return raw

    def records(self) -> Iterator[Record]:
        """Every record of the journal, in append order; no lock, since what is there does not change.

        It is read at once, and decoded as it is asked for. Errors: Unreadable, Storage.
        """
        try:
            return self.state.all_records() if self._is_there() else iter(())
        except OSError as error:
            raise storage(error) from error

    def check(self) -> tuple[Finding, ...]:
        """Every trouble of the store's files (SPEC 7). Errors: Busy, Unreadable, Storage."""
        return self._inspect(checking.check, self._gone())

    def verify(self) -> tuple[Finding, ...]:
        """What rebuild would name, changing nothing (SPEC 7). Errors: Busy, Unreadable, Storage."""

        def look(state: State) -> tuple[Finding, ...]:
            state.read_journal(whole=True)
            return rebuilding.verify(Plan(state, self.clock()))

        return self._inspect(look, self._gone())

    def names_from(self, source: str) -> frozenset[str]:
        """The name there of every note that came from a source and is live here, as last read (SPEC 10)."""
        return sourcing.names_from(self.state.heads, source)

    def texts(self, name: str) -> list[str]:
        """The hash of every text a note had in its current life, one it had again too, in the journal's order.

        Errors: as `records`.
        """
        texts: list[str] = []
        for record in self.records():
            if record.name == name and record.op == FORGET:
                texts.clear()
            elif record.name == name and record.op in HEAD_OPS:
                texts.append(record.hash)
        return texts

    def preview(self, request: Request) -> Outcome:
        """What a request would do now, doing nothing. Errors: whatever would refuse it."""
        if not self._is_there():
            return self._preview_nowhere(request)

        def look(state: State) -> Outcome:
            plan = Plan(state, self.clock())
            if plan.behind or not plan.is_scanned():
                reconciling.reconcile(plan, Reconcile(), self.settle_s)
            return plan_request(plan, request, self.settle_s)

        with self._looking():
            self.state.read_journal()
            return look(self.state)

    def _preview_nowhere(self, request: Request) -> Outcome:
        """What a request would do where there is no directory yet, or none any more."""
        held = self.state.heads.live_count
        if makes_store(request) and not held:
            return plan_request(Plan(self.state, self.clock()), request, self.settle_s)
        outcome = nowhere(request, held)
        if isinstance(outcome, MemdError):
            raise outcome
        return outcome

    def _inspect(self, look: Callable[[State], T], nowhere: T) -> T:
        """What `look` finds in the state, caught up with the journal and held still by the lock if it can be had.

        `nowhere` is the answer while there is no directory. Errors: Busy, Unreadable, Storage.
        """
        if not self._is_there():
            return nowhere
        with self._looking():
            self.state.read_journal()
            return look(self.state)

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Hold the lock, where a disk that nobody can write to lets us have one. Errors: Busy, Storage."""
        try:
            with ExitStack() as stack:
                try:
                    stack.enter_context(self._locked())
                except OSError as error:
                    if error.errno not in _READ_ONLY:
                        raise
                yield
        except OSError as error:
            raise storage(error) from error

    def _gone(self) -> tuple[Finding, ...]:
        """The finding of a store whose directory was taken away."""
        held = self.state.heads.live_count
        reason = f"the store's directory is gone, with its {held} notes; put it back"
        return (Finding("suspended", reason),) if held else ()

    def _patience(self, batch: Sequence[Request]) -> float:
        """Seconds to wait for the lock: a read goes out uncounted rather than wait as long as a write (SPEC 7)."""
        if not all(map(is_readers, batch)):
            return self.lock_timeout
        looks = all(isinstance(request, Reconcile) for request in batch)
        return min(READER_WAIT_S if looks else COUNT_WAIT_S, self.lock_timeout)

    @contextmanager
    def _locked(self, timeout: float | None = None) -> Iterator[None]:
        """Hold the store's lock, had within `timeout` seconds or the usual. Errors: Busy, OSError."""
        patience = self.lock_timeout if timeout is None else timeout
        try:
            with self.disk.locked(self.directory / LOCK, patience):
                yield
        except LockTimeoutError:
            raise Busy(f"another process held the store's lock for {patience:g} s; try again") from None


def next_slice(size: int, took: float, there: int) -> int:
    """How many notes to take in next, when `size` of them took so many seconds, in a store of so many."""
    fewest, most = max(SLICES[0], there // SLICES_MAX), SLICES[1]
    if took > SLICE_S:
        size //= 2
    elif took < SLICE_S / 2:
        size *= 2
    return max(fewest, min(most, size))


def is_readers(request: Request) -> bool:
    """Whether a request is a reader's, who would rather be answered than wait for the lock."""
    return isinstance(request, Count) or (isinstance(request, Reconcile) and not request.patient)


def unread(name: str, error: OSError) -> MemdError:
    """The error of a note's file that did not read: `storage` where the machine is at fault, not the file."""
    try:
        return unreadable(f"{name}.md", error)
    except OSError:
        return storage(error)


def storage(error: OSError) -> Storage:
    """The `storage` error of an operating-system failure: its words, no path."""
    reason = error.strerror or "the disk failed"
    return Storage(f"{reason}: nothing was acknowledged; mend the disk and try again")
