"""Sessions in the running daemon. Law: one lock a session, so that no two calls pass its cap or give it two blocks.

A block is purged of a forgotten note before the forget is answered; what a crash kept from that is found when the
store is opened next. SPEC section 8.
"""

from collections.abc import Callable, Collection
from pathlib import Path
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
import msgspec

from memd.errors import Storage
from memd.live.stores import LiveStore
from memd.note import Scope
from memd.sessions import Session, SessionFiles, purged

Forgotten = Callable[[Session, Scope, str], bool]
"""Whether the note of a part of a session's block is forgotten, by scope and file stem."""

HELD_MAX = 1_000
"""Sessions held in memory; more begin with reading their files."""


class LiveSession:
    """A session that somebody uses: its state, and the lock under which that changes."""

    def __init__(self, state: Session) -> None:
        self.state = state
        self.lock = anyio.Lock()

    def used(self, repo: LiveStore, everywhere: LiveStore) -> int:
        """Saves made by now: what the journals of its place say, and what was made in other repositories."""
        key = key_of(repo)
        elsewhere = sum(count for other, count in self.state.saved.items() if other not in (key, ""))
        return elsewhere + repo.saves_of(self.state.id) + everywhere.saves_of(self.state.id)

    def left(self, repo: LiveStore, everywhere: LiveStore) -> int | None:
        """Saves it may still make; None for any number."""
        cap = self.state.save_cap
        return None if cap is None else max(0, cap - self.used(repo, everywhere))


class LiveSessions:
    """The sessions of a home."""

    def __init__(self, directory: Path) -> None:
        self.files = SessionFiles(directory)
        self.starting = anyio.Lock()
        self._writing = anyio.Lock()
        self._held: dict[str, LiveSession] = {}
        # Whoever still uses a session that was let go must not meet a second one beside it, with a lock of its own.
        self._known: WeakValueDictionary[str, LiveSession] = WeakValueDictionary()

    def get(self, session: str) -> LiveSession | None:
        """A session that was started, from its file if need be; None when it never was. Errors: Unreadable."""
        live = self._known.get(session)
        if live is None:
            state = self.files.load(session)
            live = None if state is None else LiveSession(state)
        return None if live is None else self._hold(live)

    async def put(self, live: LiveSession, changes: dict[str, object], is_forgotten: Forgotten | None = None) -> None:
        """Change a session's state, durably, less what `is_forgotten` says of its block by now.

        Errors: Storage, and then nothing changed.
        """
        async with self._writing:
            state = msgspec.structs.replace(live.state, **changes)
            if is_forgotten is not None:
                state = purged(state, is_forgotten)
            await self._write(state)
            live.state = state

    async def begin(self, state: Session) -> LiveSession:
        """Hold a new session. Errors: Storage."""
        async with self._writing:
            await self._write(state)
        return self._hold(LiveSession(state))

    def end(self, session: str) -> bool:
        """Let go of what is in memory; whether there was anything."""
        return self._held.pop(session, None) is not None

    async def forget(self, store: LiveStore, names: Collection[str]) -> None:
        """Purge every block of these notes of a store. Errors: Storage."""
        gone = set(names)

        def is_forgotten(session: Session, scope: Scope, stem: str) -> bool:
            return scope is store.scope and stem in gone and (scope is Scope.GLOBAL or session.key == key_of(store))

        await self._purge(is_forgotten)

    async def catch_up(self, store: LiveStore) -> None:
        """Purge what the store forgot while no daemon looked, or before one died. Errors: Storage."""

        def is_forgotten(session: Session, scope: Scope, stem: str) -> bool:
            of_store = scope is store.scope and (scope is Scope.GLOBAL or session.key == key_of(store))
            return of_store and store.has_forgotten(stem)

        await self._purge(is_forgotten)

    async def _purge(self, is_forgotten: Forgotten) -> None:
        # No write of a state that was taken before may come after; a session may be read from its file meanwhile.
        async with self._writing:
            self._purge_known(is_forgotten)
            try:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self.files.purge, is_forgotten)
            except OSError as error:
                raise failed(error) from error
            finally:
                self._purge_known(is_forgotten)

    def _purge_known(self, is_forgotten: Forgotten) -> None:
        for live in self._known.values():
            live.state = purged(live.state, is_forgotten)

    async def _write(self, state: Session) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.files.store, state)
        except OSError as error:
            raise failed(error) from error

    def _hold(self, live: LiveSession) -> LiveSession:
        if len(self._held) >= HELD_MAX and live.state.id not in self._held:
            for name in list(self._held)[: HELD_MAX // 10]:
                del self._held[name]
        self._held[live.state.id] = self._known[live.state.id] = live
        return live


def key_of(repo: LiveStore) -> str:
    """The key of a repository's store: the name of its project directory."""
    return repo.directory.parent.name


def failed(error: OSError) -> Storage:
    """The `storage` error of a session file that could not be written."""
    return Storage(f"{error.strerror or 'the disk failed'}: the session's file was not written; mend the disk")
