"""Past sessions in the running daemon. Law: reading them holds up nobody, and a search says how far it has come.

One worker reads, in a thread, the corpora that somebody asked about; a question waits a moment for it and is then
answered from what was read. A reading that fails is told to whoever asked, and ends nothing else. The corpora asked
last are kept. SPEC section 11.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread

from memd.config import Config
from memd.fs import Stamp
from memd.history import Cache, Catalog, Corpus, Entry, Named, Page, Progress, Sources, Whose
from memd.importers import claude
from memd.live.sessions import LiveSessions, key_of
from memd.live.stores import LiveStore

WAIT_S = 1.5
"""Seconds a question waits for what is new; it is answered from what was read by then."""
HELD_MAX = 4
"""Repositories whose sessions are held in memory; the others' wait on disk, counted."""


class Answer(NamedTuple):
    """A page, and how far the reading was when it was made."""

    page: Page
    progress: Progress


class Reading:
    """A reading that was asked for; once it is `done`, `failure` says what ended it before its end."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.failure: Exception | None = None


class LiveHistory:
    """The past sessions of a home's repositories."""

    def __init__(self, home: Path, sessions: LiveSessions, config: Callable[[], Config]) -> None:
        self._home = home
        self._config = config
        self._known = KnownSessions(sessions)
        self._catalog = Catalog()
        self._cache = Cache(home / "cache" / "history")
        self._corpora: OrderedDict[Path, Corpus] = OrderedDict()
        self._asked: dict[Path, Reading] = {}
        self._wake = anyio.Event()
        self._is_swept = False

    async def search(self, store: LiveStore, query: str, limit: int, offset: int, ranker: str) -> Answer:
        """A page of the past sessions of a store's repository, by a ranker. Errors: what reading raised."""
        corpus = self._corpus(store)
        reading = self._ask(corpus)
        with anyio.move_on_after(WAIT_S):
            await reading.done.wait()
        if reading.failure is not None:
            raise reading.failure
        page = await anyio.to_thread.run_sync(partial(corpus.search, query, limit, offset, ranker=ranker))
        return Answer(page, corpus.progress)

    async def read(self, store: LiveStore, url: str) -> tuple[str, Entry] | None:
        """The session and the entry at an address, of a store's repository only; None when there is none."""
        corpus = self._corpus(store)
        return await anyio.to_thread.run_sync(lambda: corpus.read(self._sources(), url))

    @property
    def progress(self) -> Progress:
        """How far the reading of all held corpora is."""
        each = [corpus.progress for corpus in self._corpora.values()]
        return Progress(*(sum(column) for column in zip(*each, strict=True))) if each else Progress(0, 0, 0)

    async def serve(self) -> None:
        """Read what is asked for, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            while self._asked:
                repo, reading = next(iter(self._asked.items()))
                corpus = self._corpora.get(repo)
                if corpus is not None:
                    try:
                        await self._catch_up(corpus)
                    except Exception as error:  # noqa: BLE001 - whoever asked is told, as of any verb's failure
                        reading.failure = error
                self._asked.pop(repo, None)
                reading.done.set()

    async def _catch_up(self, corpus: Corpus) -> None:
        with _until_left() as is_stopped:
            refresh = partial(self._refresh, corpus, is_stopped)
            await anyio.to_thread.run_sync(refresh, abandon_on_cancel=True)

    def _refresh(self, corpus: Corpus, is_stopped: Callable[[], bool]) -> None:
        sources = self._sources()
        corpus.refresh(sources, is_stopped)
        if not self._is_swept and not is_stopped():
            self._is_swept = True
            with suppress(OSError):
                self._cache.keep([found.path for found in self._catalog.files(sources)])

    def _ask(self, corpus: Corpus) -> Reading:
        """Have a corpus caught up with the disk."""
        repo = corpus.whose.repo
        if repo not in self._asked:
            self._asked[repo] = Reading()
            self._wake.set()
        return self._asked[repo]

    def _corpus(self, store: LiveStore) -> Corpus:
        repo = store.store.origin or store.directory  # a store that nobody claimed has no sessions
        corpus = self._corpora.get(repo)
        if corpus is None:
            corpus = self._corpora[repo] = Corpus(Whose(repo, key_of(store)), self._catalog, self._cache)
        self._corpora.move_to_end(repo)
        while len(self._corpora) > HELD_MAX:
            self._corpora.popitem(last=False)
        return corpus

    def _sources(self) -> Sources:
        config = self._config()
        wanted = config.history_sources
        return Sources(
            seed=self._home / "sessions" if "sessions" in wanted else None,
            claude=_claude_projects(config) if "claude" in wanted else None,
            named="transcripts" in wanted,
            roots=config.history_roots,
            sessions=self._known.all(),
        )


class KnownSessions:
    """What the session files tell of where a session ran; a file is read again only when it changed."""

    def __init__(self, sessions: LiveSessions) -> None:
        self._sessions = sessions
        self._read: dict[str, tuple[Stamp, Named | None]] = {}

    def all(self) -> dict[str, Named]:
        """Every session whose file reads, by its id."""
        read: dict[str, tuple[Stamp, Named | None]] = {}
        for seen in self._sessions.files.seen():
            known = self._read.get(seen.name)
            if known is None or known[0] != seen.stamp:
                known = seen.stamp, self._of(seen.name)
            read[seen.name] = known
        self._read = read
        return {named.session: named for _, named in read.values() if named is not None}

    def _of(self, name: str) -> Named | None:
        state = self._sessions.files.peek(name)
        if state is None:
            return None
        return Named(
            session=state.id,
            cwd=state.cwd,
            at=state.at,
            child=state.depth > 0,
            transcript=None if state.transcript is None else Path(state.transcript),
        )


@contextmanager
def _until_left() -> Iterator[Callable[[], bool]]:
    """What says to a thread whether whoever waits for it has gone."""
    flag = threading.Event()
    try:
        yield flag.is_set
    finally:
        flag.set()


def _claude_projects(config: Config) -> Path | None:
    """Where Claude Code keeps its transcripts; None where nobody's home is known."""
    try:
        return claude.home(config.claude_home, os.environ) / "projects"
    except RuntimeError:
        return None
