"""One store in the running daemon. Law: between a commit's return and `apply` nothing awaits.

Writes wait in a list; one of them, the leader, takes the lock and commits all that wait, in a worker thread, shielded
from cancellation, and the others find their outcome set: that is the group commit. The next leader is woken before
those that were answered, so that their answers leave while its commit runs; but where many were, it lets them ask
again first, and all share its commit. Readers take no lock: entries, index and view change only in `apply`, on the
event loop, all at once (SPEC section 4).
"""

import asyncio
import os
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread

from memd.errors import MemdError, NotFound
from memd.forms import Words
from memd.fs import Stamp
from memd.note import Scope
from memd.snapshots import Merge, Snapshot
from memd.store import (
    JOURNAL,
    READER_WAIT_S,
    Change,
    Committed,
    Entry,
    Journaled,
    Outcome,
    Reconcile,
    Reconciled,
    Request,
    Store,
    View,
    is_readers,
)

T = TypeVar("T")

BY_HAND = "hand"
"""Who the journal says wrote what nobody wrote through memd."""
BATCH_MAX = 64
"""Requests one commit carries at most; it bounds what a failed sync refuses and how long a first waiter waits."""
MERGE_AT_ONCE = 250
"""Notes that are merged at most in the index while a save waits, some 5 ms; more are beside commits."""
MANY = 4
"""Requests of a commit after which the next lets those come first who ask again."""
TURNS = 4
"""Turns of the event loop in which nobody comes, after which nobody is waited for."""
COMMITS_MAX = 40
"""Stores that commit at once at most; one may wait long for a lock that another process holds."""


class Waiter:
    """One request on its way to a commit, and what became of it; `woken` once it has its outcome, or is to lead."""

    __slots__ = ("outcome", "request", "woken")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.outcome: Outcome | MemdError | None = None
        self.woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(self) -> None:
        """Let its task go on, unless that was cancelled."""
        if not self.woken.done():
            self.woken.set_result(None)


def is_hurried(waiter: Waiter) -> bool:
    """Whether a waiting request is a reader's, who gives up on the lock sooner than a write does."""
    return is_readers(waiter.request)


async def in_thread(commit: Callable[[], T]) -> T:
    """What a commit gives, from a thread that begins before any other task of the loop goes on.

    anyio's own would let all of them go first: those that were answered by the last commit, whose next requests take
    the loop as long as a commit takes.
    """
    return await asyncio.get_running_loop().run_in_executor(_committers(), commit)


@cache
def _committers() -> ThreadPoolExecutor:
    """The threads that commit; made when there is first something to commit."""
    return ThreadPoolExecutor(COMMITS_MAX, thread_name_prefix="commit")


class Keepers(Protocol):
    """Who keeps copies of notes outside the stores, and has to let them go."""

    async def forget(self, store: "LiveStore", names: Collection[str]) -> None:
        """Let go of these notes of a store, before anybody is told that they are forgotten."""

    async def catch_up(self, store: "LiveStore") -> None:
        """Let go of what a store that was just opened has forgotten."""


Tell = Callable[["LiveStore", Sequence[Journaled]], None]
"""Hears what became durable in a store."""


class LiveStore:
    """A store, its warm index and its write queue."""

    def __init__(
        self, scope: Scope, store: Store, keepers: "Keepers | None" = None, tell: "Tell | None" = None
    ) -> None:
        """`tell` hears what each commit has put into the journal; it must neither wait nor raise."""
        self.scope = scope
        self.store = store
        self.keepers = keepers
        self._tell = tell
        self.forgotten: set[str] = set()
        self._caught_up = False
        self._letting_go = anyio.Lock()
        self._root = os.fspath(store.directory)
        self.entries: dict[str, Entry] = {}
        self.index = Snapshot.EMPTY
        self.view = View()
        self.opened = False
        self.is_slicing = False
        self._untold: list[Journaled] = []
        self.lock = anyio.Lock(fast_acquire=True)
        self.waiting: list[Waiter] = []
        self._leader: Waiter | None = None
        self._merging: asyncio.Task[None] | None = None
        self._is_busy = False

    @property
    def directory(self) -> Path:
        """Where the store is."""
        return self.store.directory

    # -- writing ---------------------------------------------------------------------------------------------

    async def write(self, request: Request) -> Outcome:
        """What a request did, once it is durable. Errors: whatever refused it (SPEC 3, "Order of refusals").

        A caller that is cancelled while it waits takes its request back; one whose commit has begun is heard
        when it ends.
        """
        waiter = Waiter(request)
        self.waiting.append(waiter)
        if self._leader is None:
            self._leader = waiter
        try:
            if self._leader is not waiter:
                await waiter.woken
            if waiter.outcome is None and self._leader is waiter:
                if self._is_busy:
                    await self._gather()
                async with self.lock:
                    await self._commit_waiting(waiter)
        finally:
            if waiter in self.waiting:
                self.waiting.remove(waiter)
            if self._leader is waiter:
                self._lead_next()
        await self.let_go()
        if isinstance(waiter.outcome, MemdError):
            raise waiter.outcome
        if waiter.outcome is None:
            raise RuntimeError("a commit left a request without an outcome")
        return waiter.outcome

    def _lead_next(self) -> None:
        """Have the one that has waited longest commit what waits by now, if anything does."""
        self._leader = next(iter(self.waiting), None)
        if self._leader is not None:
            self._leader.wake()

    async def _gather(self) -> None:
        """Let those come who are about to, as long as each few turns of the event loop bring somebody.

        Who was just answered asks again: a commit that runs meanwhile has to share the interpreter with the loop at
        each call to the system, which costs both more than to do one after the other.
        """
        turns = 0
        while turns < TURNS and len(self.waiting) < BATCH_MAX:
            before = len(self.waiting)
            await asyncio.sleep(0)
            turns = 0 if len(self.waiting) > before else turns + 1

    async def _commit_waiting(self, first: Waiter) -> None:
        """Commit what waits: everything, or only what readers wait for when the leader is one.

        A reader gives up long before a save gives up on the lock, and its commit, once begun, cannot be given up:
        so it must not begin a save's.
        """
        mine = [waiter for waiter in self.waiting if not is_hurried(first) or is_hurried(waiter)]
        batch = mine[:BATCH_MAX]
        self._is_busy = len(batch) >= MANY
        taken = set(batch)
        self.waiting = [waiter for waiter in self.waiting if waiter not in taken]
        requests = [waiter.request for waiter in batch]
        try:
            with anyio.CancelScope(shield=True):
                committed, index = await in_thread(partial(self._commit, requests))
            self.apply(committed, index)
            self._merge_if_due()
            for waiter, outcome in zip(batch, committed.outcomes, strict=True):
                waiter.outcome = outcome
        finally:
            self._lead_next()  # first of all: it begins while these go on
            for waiter in batch:
                waiter.wake()

    def _commit(self, requests: Sequence[Request]) -> tuple[Committed, Snapshot]:
        """What a commit did, and the index with it, made while the disk was waited for; blocking, for whoever holds
        the lock.
        """
        ahead = Ahead(self.index)
        committed = self.store.commit(requests, ahead.take)
        return committed, ahead.settled(committed)

    def _merge_if_due(self) -> None:
        """Have merged what the commits left apart in the index, in a thread, while others go on."""
        if self._merging is None and (merge := self.index.due(MERGE_AT_ONCE)) is not None:
            self._merging = asyncio.create_task(self._merge(merge))

    async def _merge(self, merge: Merge) -> None:
        try:
            segment = await anyio.to_thread.run_sync(merge.segment)
            async with self.lock:  # a commit that runs makes its index of the one it began with
                self.index = self.index.merged(merge, segment)
        finally:
            self._merging = None
        self._merge_if_due()

    def apply(self, committed: Committed, index: Snapshot | None = None) -> None:
        """Take a commit's changes over into what readers see, with the index that was made of them if it was.

        No await here, ever.
        """
        for change in committed.changes:
            if change.entry is None:
                self.entries.pop(change.name, None)
                if self.has_forgotten(change.name):
                    self.forgotten.add(change.name)
                continue
            self.entries[change.name] = change.entry
        self.index = index_with(self.index, committed.changes) if index is None else index
        self.view = committed.view
        self.opened = self.opened or bool(self.entries) or self.view.journal is not None
        journaled = committed.journaled
        if self.is_slicing or any(isinstance(outcome, Reconciled) and outcome.more for outcome in committed.outcomes):
            self._untold += [each for each in journaled if each.record.by == BY_HAND]
            journaled = tuple(each for each in journaled if each.record.by != BY_HAND)
        self._tell_of(journaled)

    def _tell_of(self, journaled: Sequence[Journaled]) -> None:
        if journaled and self._tell is not None:
            self._tell(self, journaled)

    async def let_go(self) -> None:
        """Have forgotten notes go from wherever else their text is kept.

        Whoever comes while that is done waits until it is: the forget may be theirs. What cannot be written now, or
        whose writer would wait no longer, is tried again at the next write; a forget's receipt names it meanwhile.
        """
        with suppress(MemdError):
            await self._catch_up()
        if self.keepers is None or not (self.forgotten or self._letting_go.locked()):
            return
        async with self._letting_go:
            names, self.forgotten = self.forgotten, set()
            try:
                if names:
                    await self.keepers.forget(self, names)
            except BaseException as error:
                self.forgotten |= names
                if not isinstance(error, MemdError):
                    raise

    def keeps(self, name: str) -> bool:
        """Whether the journal holds a note, whatever stands in its file's place."""
        return self.store.state.heads.is_live(name)

    def has_forgotten(self, name: str) -> bool:
        """Whether the journal has forgotten a note and has it not again."""
        return self.store.state.heads.is_forgotten(name)

    def saves_of(self, session: str) -> int:
        """How many saves a session has made in this store."""
        return self.store.state.heads.session_saves(session)

    # -- reading ---------------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Open the store if it is not, and take in what was added or removed behind its back.

        Errors: Busy, Unreadable, Storage at the first opening; later ones leave what was served before.
        """
        if self.opened:
            if self.is_stale():
                await self.try_reconcile()
        elif self.is_there():
            async with self.lock:
                if not self.opened:
                    await self._open()
            await self._catch_up()

    async def _catch_up(self) -> None:
        """Once a store is open, by a look or by a write, have go what it forgot before. Errors: Storage."""
        if self.keepers is None or not self.opened or self._caught_up:
            return
        if self.store.state.heads.forgotten_count:
            await self.keepers.catch_up(self)
        self._caught_up = True

    async def _open(self) -> None:
        with anyio.CancelScope(shield=True):
            committed, index = await anyio.to_thread.run_sync(self._load)
        self.apply(committed, index)

    def _load(self) -> tuple[Committed, Snapshot]:
        """What opening found, and the index of it; blocking: it takes seconds for 100,000 notes."""
        committed = self.store.open()
        return committed, index_with(self.index, committed.changes)

    async def reconcile(self, *, accept: bool = False) -> Reconciled:
        """Take in what differs, now; much of it in slices, so that others write in between, and told of at once.

        Errors: as `write`.
        """
        taken = Reconciled(more=True)
        try:
            while taken.more:
                outcome = await self.write(Reconcile(accept, sliced=True))
                if not isinstance(outcome, Reconciled):
                    raise TypeError(outcome)
                taken = taken.then(outcome)
                self.is_slicing = taken.more
        finally:
            self.is_slicing = False
            untold, self._untold = self._untold, []
            self._tell_of(untold)
        return taken

    async def look(self, names: frozenset[str] | None) -> float | None:
        """Take in what differs, after something was noticed; when there may be more to take. Errors: as `write`.

        Of memd's own writes it hears, too: those are known by the few files that are named.
        """
        if names is not None:
            differs = partial(self.store.may_differ, names)
            # A commit that is half-way differs too: only what still does when none runs is somebody else's.
            if not await anyio.to_thread.run_sync(differs) or not await self.inspect(differs):
                return None
        return (await self.reconcile()).wait_until

    async def try_reconcile(self) -> None:
        """Take in what differs if the disk allows it and nobody holds the lock for long, for a reader.

        What was served before goes on being served.
        """
        if self.is_slicing:
            return  # much is being taken in; a reader would wait for it again and again
        with suppress(MemdError), anyio.move_on_after(READER_WAIT_S):
            await self.write(Reconcile(patient=False, sliced=True))

    async def inspect(self, look: Callable[[], T]) -> T:
        """What a blocking look at the store finds, in a worker thread while no commit runs."""
        async with self.lock:
            return await anyio.to_thread.run_sync(look)

    def is_there(self) -> bool:
        """Whether there is a directory; without a path object, since every search of a lone store asks.

        Errors: OSError of a disk that does not say: a store is never taken for none because of it.
        """
        status = status_of(self._root)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def is_stale(self) -> bool:
        """Whether the directory or the journal may have changed behind memd's back: two stats.

        A suspended store is looked at every time, since its files may be back, under the stamps they had.
        """
        if self.view.suspended:
            return True
        try:
            if os.stat(self._root).st_mtime_ns != self.view.scanned_ns:
                return True
            return Stamp.of(os.lstat(f"{self._root}/{JOURNAL}")) != self.view.journal
        except OSError:
            return self.view.journal is not None or bool(self.entries)

    def serves(self, entry: Entry) -> bool:
        """Whether a note can be shown now: its file is there, or the store is suspended and serves its object.

        Errors: as `stamp`.
        """
        return self.view.suspended or self.stamp(entry.name) is not None

    def stands(self, name: str) -> bool:
        """Whether anything at all stands at the note's path. Errors: as `stamp`."""
        return status_of(f"{self._root}/{name}.md", follow=False) is not None

    def stamp(self, name: str) -> Stamp | None:
        """What the note's file is now; None when there is none.

        Errors: OSError of a disk that does not say: a note is never taken for gone because of it.
        """
        status = status_of(f"{self._root}/{name}.md", follow=False)
        return Stamp.of(status) if status is not None and stat.S_ISREG(status.st_mode) else None

    async def current(self, entry: Entry) -> tuple[bytes, Entry]:
        """A note's bytes and entry as they stand now, a suspended store's from its object; an edit is taken in first.

        Errors: NotFound when the note went.
        """
        read = await anyio.to_thread.run_sync(self.store.read_now, entry.name)
        if read is None:
            raise NotFound("the note's file is gone")
        raw, now = read
        if now.hash != entry.hash:
            await self.try_reconcile()
        return raw, now

    async def version_before(self, entry: Entry, content_hash: str | None = None) -> str | None:
        """The hash of the text that a version last replaced, or the note as it stands did; None for the first.

        A text the journal does not have yet replaces its head.
        """
        texts = await anyio.to_thread.run_sync(self.store.texts, entry.name)
        if content_hash in texts:
            while texts[-1] != content_hash:
                texts.pop()
        return next((text for text in reversed(texts) if text != (content_hash or entry.hash)), None)

    async def text_of(self, entry: Entry, content_hash: str) -> bytes:
        """The text of one version, from the note's file when only that has it. Errors: NotFound."""
        try:
            return await self.version(entry.name, content_hash)
        except NotFound:
            raw, now = await self.current(entry)
            if now.hash != content_hash:
                raise
            return raw

    async def preview(self, request: Request, kind: type[T]) -> T:
        """What a request would do now, doing nothing. Errors: whatever would refuse it."""
        outcome = await self.inspect(partial(self.store.preview, request))
        if not isinstance(outcome, kind):
            raise TypeError(kind)
        return outcome

    async def version(self, name: str, content_hash: str) -> bytes:
        """One version's text. Errors: NotFound when the note has no such version or its object is gone."""
        return await self.inspect(partial(self.store.read_version, name, content_hash))


class Ahead:
    """The index as a commit will leave it, made before that is known to be durable."""

    def __init__(self, index: Snapshot) -> None:
        self._before = self._index = index
        self._taken: dict[str, Words | None] = {}

    def take(self, changes: Mapping[str, Change]) -> None:
        """Take in what a plan is about to change."""
        self._index = index_with(self._index, changes.values())
        self._taken.update((name, change.words) for name, change in changes.items())

    def settled(self, committed: Committed) -> Snapshot:
        """The index with what the commit did; made anew where that is not just what was taken in."""
        done = {change.name: change.words for change in committed.changes}
        as_taken = done.keys() == self._taken.keys() and all(done[name] is self._taken[name] for name in done)
        return self._index if as_taken else index_with(self._before, committed.changes)


def index_with(index: Snapshot, changes: Collection[Change]) -> Snapshot:
    """An index with what a commit changed."""
    put = {change.name: change.words for change in changes if change.words is not None}
    gone = [change.name for change in changes if change.entry is None]
    return index.replace(put, gone, at_once=MERGE_AT_ONCE) if put or gone else index


def status_of(path: str, *, follow: bool = True) -> os.stat_result | None:
    """What a path is; None when there is nothing. Errors: OSError of a disk that does not say."""
    try:
        return os.stat(path, follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None
