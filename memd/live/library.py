"""The open stores of one home. Law: one `LiveStore` a directory, so that one lock and one index serve it.

SPEC section 1: a place is the repository's store, found from the caller's `cwd`, and the global one.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
import msgspec

import memd_client
from memd import note, paths
from memd.config import Config
from memd.errors import MemdError
from memd.fs import Disk
from memd.live.feed import Feed, changes
from memd.live.history import LiveHistory
from memd.live.imports import Imports
from memd.live.roots import Root, Roots
from memd.live.runtime import Runtime
from memd.live.sessions import LiveSessions
from memd.live.stores import LiveStore
from memd.note import Scope
from memd.store import Author, Journaled, Saved, Store, transfer

PLACES_MAX = 256
"""Places remembered; a daemon that served more begins anew."""
RETRY_S = 10.0
"""Seconds after which a directory that could not be looked into is looked into again."""


class Place(NamedTuple):
    """Where a caller is: the two stores it sees, in the order they are searched."""

    repo: LiveStore
    everywhere: LiveStore

    def stores(self, scope: Scope | None = None) -> list[LiveStore]:
        """The stores of one scope, or both in store order."""
        return [store for store in self if scope is None or store.scope is scope]

    def store(self, scope: Scope) -> LiveStore:
        """The store of a scope."""
        return self.repo if scope is Scope.REPO else self.everywhere


class KnownPlace(NamedTuple):
    """A place that was found, and what its being found rests on."""

    ways: tuple[str, ...]
    evidence: list[tuple[int, int, int]] | None
    place: Place


class StoreFacts(NamedTuple):
    """A store as its directory tells of it; `key` is None for the global one, `origin` for one nobody claimed."""

    key: str | None
    directory: Path
    origin: Path | None

    @property
    def origin_exists(self) -> bool | None:
        """Whether the path the store belongs to is still there; None where nobody has claimed it."""
        return None if self.origin is None else self.origin.exists()

    @property
    def notes(self) -> int:
        """How many notes it holds."""
        return count_notes(self.directory)


class Library:
    """Every store the daemon has opened, by directory.

    A store that was never more than looked for is let go with its last user, so that callers in many
    directories cost nothing.
    """

    def __init__(self, home: Path, config: Config, runtime: Runtime | None = None) -> None:
        self.home = home
        self.home_id = memd_client.home_id({**os.environ, "MEMD_HOME": str(home)})
        self.config = config
        self.runtime = runtime or Runtime()
        self.feed = Feed()
        self.roots = Roots()
        self._failing: dict[Path, str] = {}
        self._opened: dict[Path, LiveStore] = {}
        self._known: WeakValueDictionary[Path, LiveStore] = WeakValueDictionary()
        self._of_repo: WeakValueDictionary[Path, LiveStore] = WeakValueDictionary()
        self._places: dict[str, KnownPlace] = {}
        self.sessions = LiveSessions(home / "sessions")
        self.history = LiveHistory(home, self.sessions, lambda: self.config)
        self.adopting = anyio.Lock()
        self.imports = Imports(self)
        self._everywhere = self._at(paths.global_store(home), Scope.GLOBAL, None)

    def reconfigure(self, config: Config) -> None:
        """Let a config count from now on; of one that is not sound only that nothing is imported (SPEC 15)."""
        if not config.sound:
            kept = {"claude_import": False, "kimi_import": False, "findings": config.findings, "sound": False}
            config = msgspec.structs.replace(self.config, **kept)
        self.config = config
        for store in self._known.values():
            store.store.lock_timeout = config.lock_timeout_s
            store.store.settle_s = config.settle_ms / 1000
        self.roots.notice_all()  # what comes in by itself may be another thing now
        if config.findings:
            self.runtime.note("config", "; ".join(config.findings))
        else:
            self.runtime.clear("config")

    @property
    def everywhere(self) -> LiveStore:
        """The global store."""
        return self._everywhere

    def place(self, cwd: str) -> Place:
        """The stores a caller in `cwd` sees, none of them opened by this. Errors: Refused (field `cwd`).

        Every request asks, and nearly every one from where one asked before: what the answer was decided by is
        looked at again, not decided again.
        """
        known = self._places.get(cwd)
        if known is not None and known.evidence is not None and paths.evidence(known.ways) == known.evidence:
            return known.place
        repo = paths.canonical_repo(paths.place(cwd))
        place = Place(self._repo(repo), self._everywhere)
        if place.repo.opened:
            if len(self._places) >= PLACES_MAX:
                self._places.clear()
            ways = paths.ways(cwd, repo)
            self._places[cwd] = KnownPlace(ways, paths.evidence(ways), place)
        return place

    async def opened(self, place: Place, scope: Scope | None = None) -> list[LiveStore]:
        """The stores of a place, opened and caught up with the disk. Errors: Busy, Unreadable, Storage."""
        stores = place.stores(scope)
        for store in stores:
            await self.open(store)
        return stores

    async def open(self, store: LiveStore) -> None:
        """Open one store and catch up with the disk. Errors: Busy, Unreadable, Storage."""
        await store.ready()
        self.keep(store)

    def keep(self, store: LiveStore) -> None:
        """Hold on to a store once there is something of it."""
        if store.opened:
            self._opened[store.directory] = store
            self.roots.add(store.directory, store.directory, store.look)

    async def move(self, source: LiveStore, target: LiveStore, name: str, author: Author) -> Saved:
        """Move a note between two stores, both held from first to last, locked in path order so that no two moves
        wait for each other. Errors: whatever refuses it; then the note is where it was.
        """
        first, second = sorted((source, target), key=lambda store: store.directory)
        async with first.lock, second.lock:
            with anyio.CancelScope(shield=True):
                moved = await anyio.to_thread.run_sync(transfer.move, source.store, target.store, name, author)
            target.apply(moved.target)
            source.apply(moved.source)
        self.keep(target)
        await source.let_go()
        if isinstance(moved.outcome, MemdError):
            raise moved.outcome
        return moved.outcome

    def survey(self) -> list[StoreFacts]:
        """Every store under the home, the global one first; a blocking look at the directories."""
        found = [StoreFacts(None, paths.global_store(self.home), None)]
        for key in sorted(entry.name for entry in directories(paths.projects(self.home))):
            directory = paths.repo_store(self.home, key)
            if directory.is_dir():
                found.append(StoreFacts(key, directory, paths.origin_of(directory)))
        return [facts for facts in found if facts.directory.is_dir()]

    def by_key(self, key: str) -> LiveStore | None:
        """The repository store of a key; None when this home has none."""
        if not paths.is_key(key):
            return None
        directory = paths.repo_store(self.home, key)
        return self._at(directory, Scope.REPO, paths.origin_of(directory)) if directory.is_dir() else None

    async def rescan(self) -> None:
        """Look at every root as a whole, since events can be missed (SPEC 5), also at those there are since."""
        for store in list(self._opened.values()):
            await self.imports.refresh(store)
        for root in self.roots.current().values():
            root.notice(None)
            await self.look(root)
        self.runtime.last_scan = time.monotonic()

    async def look(self, root: Root) -> None:
        """Look at what was noticed of one root. A look that fails is a finding until it does not, and tried again."""
        try:
            await root.look()
        except (MemdError, OSError) as error:
            self._failing[root.directory] = (
                error.text if isinstance(error, MemdError) else error.strerror or "it fails"
            )
            root.retry(RETRY_S)
        else:
            self._failing.pop(root.directory, None)
        self.runtime.findings.pop("look", None)
        for reason in self._failing.values():
            self.runtime.note("look", f"{len(self._failing)} watched directories could not be looked into: {reason}")

    @property
    def store_count(self) -> int:
        """How many stores are open."""
        return len(self._opened)

    def _tell(self, store: LiveStore, journaled: Sequence[Journaled]) -> None:
        """Tell whoever listens what became durable in a store."""
        self.feed.publish_all(changes(store, journaled, self._saves_of))

    def _saves_of(self, session: str) -> int | None:
        """How many saves a session has made by now; None where that cannot be told."""
        with suppress(MemdError, OSError):
            live = self.sessions.get(session)
            return None if live is None else live.used(*self.place(live.state.cwd))
        return None

    def _repo(self, repo: Path) -> LiveStore:
        """The store of a canonical path; which one that is, is settled once it is open: `.origin` says so."""
        store = self._of_repo.get(repo)
        if store is not None and store.opened and store.directory.is_dir():
            return store
        directory = paths.repo_store(self.home, paths.key_in(self.home, repo))
        known = self._known.get(directory)
        if known is not None and known.store.origin != repo:
            # The other path has been asked for and has not written its `.origin` yet.
            directory = paths.repo_store(self.home, paths.key_when_taken(repo))
        store = self._of_repo[repo] = self._at(directory, Scope.REPO, repo)
        return store

    def _at(self, directory: Path, scope: Scope, origin: Path | None) -> LiveStore:
        store = self._known.get(directory)
        if store is None:
            blocking = Store(
                directory,
                origin=origin,
                reserve=self.home / ".reserve",
                lock_timeout=self.config.lock_timeout_s,
                settle_s=self.config.settle_ms / 1000,
            )
            store = self._known[directory] = LiveStore(scope, blocking, self.sessions, self._tell)
        return store


def directories(path: Path) -> Iterator[Path]:
    """The directories in a directory; none when it is not there."""
    if path.is_dir():
        yield from (entry for entry in path.iterdir() if entry.is_dir())


def count_notes(directory: Path) -> int:
    """How many files of a store are notes."""
    return sum(note.is_note_name(seen.name) and seen.regular for seen in Disk().scan(directory))
