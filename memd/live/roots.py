"""The directories that are watched. Law: an event says where to look, never what happened (SPEC section 5).

Whoever wants to hear of a directory registers it here, with the function that looks into it. The watcher, some floors
up, waits on this and has the looks called: after an event, when a look asked to be called again, and about once a
minute whether anything was heard or not. A look therefore finds out by itself what has changed; mostly nothing has.
"""

import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from pathlib import Path

import anyio

Look = Callable[[frozenset[str] | None], Awaitable[float | None]]
"""Looks into a directory: at its entries of these names, or at everything when None. The names end in `.md`
and do not begin with a dot, and may be of what is no note or is there no more; they only say where to begin.

It answers when it wants to be called again, in unix seconds, although nothing more may be heard (something there was
not yet quiet); None when it does not. It is never called twice at a time for one root, and may take its time: other
roots do not wait for it. A `MemdError` or OSError that it raises becomes a finding of the daemon, and it is called
again later.
"""

CLOCK_S = 0.005
"""Seconds a wait goes on past its end, so that the wall clock a look reads is past it too."""
AGAIN_MAX_S = 60.0
"""Seconds after which a look that wants to be called again is, whatever the wall clock did meanwhile."""


class Root:
    """One watched directory: who looks into it, and what is to be looked at next."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._looks: dict[Hashable, Look] = {}
        self._names: set[str] = set()
        self._everything = False
        self._noticed = anyio.Event()
        self._due: float | None = None
        self._looking = anyio.Lock()

    def notice(self, names: Iterable[str] | None) -> None:
        """Something may have changed: entries of these names, or anything when None."""
        if names is None:
            self._everything = True
        else:
            self._names.update(names)
        self._noticed.set()

    async def noticed(self) -> None:
        """Return once there is something to look at: something was noticed, or a look wanted to be called again."""
        while not self._noticed.is_set():
            pause = AGAIN_MAX_S if self._due is None else self._due - anyio.current_time()
            with anyio.move_on_after(pause):
                await self._noticed.wait()
            if self._due is not None and self._due <= anyio.current_time():
                self.notice(None)

    async def look(self) -> None:
        """Have everybody look at what was noticed, if anything was. Errors: those of the first look that failed."""
        async with self._looking:
            if not self._noticed.is_set():
                return
            names = None if self._everything else frozenset(self._names)
            self._names, self._everything, self._noticed = set(), False, anyio.Event()
            if names is None:
                self._due = None
            failed: Exception | None = None
            for look in list(self._looks.values()):
                try:
                    self._look_again(await look(names))
                except Exception as error:  # noqa: BLE001 - the others look all the same; it is raised after them
                    failed = failed or error
            if failed is not None:
                raise failed

    def _look_again(self, until: float | None) -> None:
        """Note when a look wants to be called again; kept on a clock that nobody sets."""
        if until is not None:
            pause = min(max(0.0, until - time.time()) + CLOCK_S, AGAIN_MAX_S)
            due = anyio.current_time() + pause
            self._due = due if self._due is None else min(due, self._due)

    def retry(self, seconds: float) -> None:
        """Look at everything again in so many seconds, since a look failed."""
        self._look_again(time.time() + seconds)

    def add(self, owner: Hashable, look: Look) -> None:
        """Have an owner's look called, from now on instead of one it gave before."""
        is_new = owner not in self._looks
        self._looks[owner] = look
        if is_new:
            self.notice(None)

    def drop(self, owner: Hashable) -> bool:
        """Let an owner's look go; whether nobody looks any more."""
        self._looks.pop(owner, None)
        return not self._looks


class Roots:
    """Every watched directory of a daemon, `Library.roots`: opened stores are in it, importers add theirs.

        library.roots.add(directory, owner, look)   # an owner is any hashable, say ("claude", store.directory)
        library.roots.drop(directory, owner)

    A directory need not exist: it is picked up when it appears, at the latest by the minute's look. Only its own
    `.md` entries are watched, not what is below directories in it. Several owners may look into one directory; an
    owner has one look a directory, and to add it again costs nothing. A root is looked at as a whole once an owner
    was added.
    """

    def __init__(self) -> None:
        self._roots: dict[Path, Root] = {}
        self._changed = anyio.Event()

    def add(self, directory: Path, owner: Hashable, look: Look) -> None:
        """Watch a directory, by its absolute path, for an owner."""
        root = self._roots.get(directory)
        if root is None:
            root = self._roots[directory] = Root(directory)
            self._changed.set()
        root.add(owner, look)

    def drop(self, directory: Path, owner: Hashable) -> None:
        """Stop watching a directory for an owner; nothing happens where it was not watched."""
        root = self._roots.get(directory)
        if root is not None and root.drop(owner):
            del self._roots[directory]
            self._changed.set()

    def current(self) -> dict[Path, Root]:
        """Every root, by its directory."""
        return dict(self._roots)

    def notice_all(self) -> None:
        """Have every root looked at as a whole."""
        for root in self._roots.values():
            root.notice(None)

    async def changed(self) -> None:
        """Return once a root was added or dropped since the last time this returned."""
        await self._changed.wait()
        self._changed = anyio.Event()
