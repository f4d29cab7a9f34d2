"""Other programs' notes, brought in at a session's start, live, and by hand. Law: nobody else waits for an import.

Directories are read in worker threads, and what is new there is committed some notes at a time, so that other writes
get their turn. Where nothing changed, nothing is read and nothing committed. SPEC section 10.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import anyio
import anyio.to_thread

from memd import note, paths, settle
from memd.errors import MemdError, Unreadable
from memd.focus import Dialect, text
from memd.importers import claude, kimi
from memd.importers.directory import Directory
from memd.importers.reading import NOTHING, Found, Left, Notes, Reader, names_in
from memd.listing import Listing
from memd.live import feed
from memd.live.pace import in_slices
from memd.live.shelves import shelf_of
from memd.live.stores import LiveStore
from memd.note import Scope
from memd.store import Bring, Brought, Sourced

if TYPE_CHECKING:
    from memd.live.library import Library, Place

Program = Literal["claude", "kimi"]

PROGRAMS: tuple[Program, ...] = ("claude", "kimi")

CWDS_MAX = 32
"""Directories of one repository that sessions were started in and that its notes are looked for under."""
GIVEN = "the given directory"


class Look(NamedTuple):
    """What a look at a program's directories found, for one store.

    `ambiguous` are slugs that may be another repository's, `watched` is where its notes are or may come to be.
    `anywhere` finds the name of every note that the program has for anybody: a blocking look at many directories.
    """

    notes: Notes
    ambiguous: tuple[str, ...] = ()
    watched: tuple[Path, ...] = ()
    anywhere: Callable[[], frozenset[str]] = frozenset


class Report(NamedTuple):
    """What one import did to one store; names are the source's, `stale` are names here."""

    program: Program
    scope: Scope
    where: str
    found: int
    imported: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    unparsed: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()

    @property
    def says_something(self) -> bool:
        """Whether there is anything to tell of: a directory that is not there is not."""
        return bool(self.found or self.stale or self.ambiguous or self.left)

    @property
    def line(self) -> str:
        """The line of SPEC 10: counts only."""
        counts = [f"{len(self.imported)} imported", f"{len(self.updated)} updated", f"{len(self.stale)} stale"]
        counts += [f"{len(self.conflicts)} conflicts"] if self.conflicts else []
        counts += [f"{len(self.ambiguous)} ambiguous"] if self.ambiguous else []
        return " · ".join((self.program, f"{self.found} notes in {self.where}", *counts))


class _Known(NamedTuple):
    """What an import came to, and everything it was decided by."""

    decided_by: tuple[object, ...]
    listing: Listing | None
    report: Report


class Imports:
    """The imports of one daemon."""

    def __init__(self, library: "Library") -> None:
        self._library = library
        self._readers = {program: Reader(program) for program in PROGRAMS}
        self._reading = {program: anyio.Lock() for program in PROGRAMS}
        self._claude = claude.Claude(Path())
        self._cwds: dict[Path, dict[str, None]] = {}
        self._known: dict[tuple[Program, Path], _Known] = {}
        self._watched: dict[tuple[Program, Path], tuple[Path, ...]] = {}

    def is_on(self, program: Program) -> bool:
        """Whether a program's notes are imported without being asked for."""
        config = self._library.config
        return config.claude_import if program == "claude" else config.kimi_import

    # -- when ------------------------------------------------------------------------------------------------

    async def at_start(self, place: "Place", cwd: str) -> list[str]:
        """Import for a session that starts; the lines of its summary, also of what failed and why. Raises nothing."""
        self._remember(place.repo, cwd)
        lines: list[str] = []
        for program in PROGRAMS:
            for store in place:
                try:
                    lines += await self._start_of(program, store)
                except MemdError as error:
                    lines.append(f"{program} · the {store.scope} store: {error.text}")
        return lines

    async def _start_of(self, program: Program, store: LiveStore) -> list[str]:
        await self._library.open(store)
        look = await self._look(program, store)
        if not self.is_on(program):
            count = len(look.notes.found)
            told = program == kimi.NAME and count > 0
            where = _where(program, store.scope, self._claude_home)
            return [f"{program} · {count} notes in {where} · not imported · memctl import-{program}"] if told else []
        self._watch(program, store, look.watched)
        report = await self._bring(program, store, look)
        return list(lines_of(store, report))

    async def by_hand(
        self, program: Program, store: LiveStore, cwd: str, directory: Path | None = None, *, dry_run: bool = False
    ) -> Report:
        """Import because a person says so: also what was forgotten here, and from a directory that they name.

        Errors: whatever the store refuses; Refused (field `dir`).
        """
        if directory is None:
            look = await self._look(program, store, cwd)
            return await self._bring(program, store, look, anew=True, dry_run=dry_run)
        notes = await anyio.to_thread.run_sync(partial(_given, program, directory))
        report = await self._bring(program, store, Look(notes), anew=True, dry_run=dry_run, marks=False)
        return report._replace(where=GIVEN)

    async def refresh(self, store: LiveStore) -> None:
        """Have the directories watched that there are for a store by now."""
        for program in PROGRAMS:
            with suppress(Unreadable):  # the look into it tells of it
                look = await self._look(program, store) if self.is_on(program) else Look(NOTHING)
                self._watch(program, store, look.watched)

    async def live(self, program: Program, store: LiveStore, names: frozenset[str] | None) -> float | None:
        """Import what changed; when to look again, in unix seconds, where something was not quiet yet."""
        if not self.is_on(program) or not (names is None or any(map(note.is_note_name, names))):
            return None
        look = await self._look(program, store)
        now, settle_s = time.time(), self._library.config.settle_ms / 1000
        waits = {name: quiet_at(found, now, settle_s) for name, found in look.notes.found.items()}
        quiet = {name: found for name, found in look.notes.found.items() if waits[name] <= now}
        await self._bring(program, store, look._replace(notes=Notes(quiet, look.notes.differ, look.notes.left)))
        return min((until for until in waits.values() if until > now), default=None)

    # -- where -----------------------------------------------------------------------------------------------

    @property
    def _claude_home(self) -> Path:
        return claude.home(self._library.config.claude_home, os.environ)

    def _remember(self, store: LiveStore, cwd: str) -> None:
        """Keep where in a repository sessions run: the latest, so many."""
        cwds = self._cwds.setdefault(store.directory, {})
        cwds.pop(cwd, None)
        cwds[cwd] = None
        while len(cwds) > CWDS_MAX:
            del cwds[next(iter(cwds))]

    async def _look(self, program: Program, store: LiveStore, *cwd: str) -> Look:
        cwds = (*self._cwds.get(store.directory, ()), *cwd)
        look = self._look_for_claude if program == "claude" else self._look_for_kimi
        async with self._reading[program]:
            try:
                return await anyio.to_thread.run_sync(look, store.scope, store.store.origin, cwds)
            except OSError as error:
                reason = error.strerror or "it fails"
                raise Unreadable(
                    f"a directory of {program}'s notes does not read ({reason}); nothing came"
                ) from error

    def _look_for_claude(self, scope: Scope, repo: Path | None, cwds: Sequence[str]) -> Look:
        home = self._claude_home
        if self._claude.home != home:
            self._claude = claude.Claude(home)
        places = claude.Places((self._claude.everywhere,), ())
        if scope is Scope.REPO:
            places = claude.Places((), ()) if repo is None else self._claude.places(repo, _still_of(repo, cwds))
        directories = tuple(self._foreign(places.directories))
        notes = self._readers["claude"].read(directories)
        return Look(notes, places.ambiguous, directories, self._claude.held)

    def _look_for_kimi(self, scope: Scope, repo: Path | None, cwds: Sequence[str]) -> Look:
        everywhere = kimi.everywhere(claude.user_home())
        own = () if repo is None else kimi.places(repo, _still_of(repo, cwds))
        own = tuple(directory for directory in own if directory not in everywhere)
        directories = tuple(self._foreign(own if scope is Scope.REPO else everywhere))
        notes = self._readers["kimi"].read(directories)
        return Look(notes, (), directories, partial(names_in, (*own, *everywhere)))

    def _foreign(self, directories: Iterable[Path]) -> Iterator[Path]:
        """These directories, but for a store of this home: its notes would come again under a new name each time."""
        home = self._library.home
        stores = [Path(os.path.realpath(path)) for path in (paths.global_store(home), paths.projects(home))]
        for directory in directories:
            real = Path(os.path.realpath(directory))
            if not any(real.is_relative_to(store) for store in stores):
                yield directory

    def _watch(self, program: Program, store: LiveStore, directories: tuple[Path, ...]) -> None:
        owner = (program, store.directory)
        before = self._watched.get(owner, ())
        if before == directories:
            return
        roots = self._library.roots
        for directory in before:
            if directory not in directories:
                roots.drop(directory, owner)
        for directory in directories:
            roots.add(directory, owner, partial(self.live, program, store))
        self._watched[owner] = directories

    # -- what ------------------------------------------------------------------------------------------------

    async def _bring(
        self,
        program: Program,
        store: LiveStore,
        look: Look,
        *,
        anew: bool = False,
        dry_run: bool = False,
        marks: bool = True,
    ) -> Report:
        """What an import does to a store, or would. Errors: whatever the store refuses."""
        key = (program, store.directory)
        held = await _held(store, program, look) if marks else None
        decided_by: tuple[object, ...] = (look.notes.print, look.notes.differ, look.notes.left, look.ambiguous, held)
        known = self._known.get(key)
        if (
            known is not None
            and not anew
            and not known.report.conflicts  # a hand may have ended them in the file itself
            and known.decided_by == (*decided_by, store.view.journal, store.view.scanned_ns)
            and known.listing is store.view.listing
        ):
            return known.report
        done = Brought.nothing()
        if held is not None or look.notes.found:
            done = await self._carry(program, store, look.notes, held, anew=anew, dry_run=dry_run)
        report = Report(
            program=program,
            scope=store.scope,
            where=_where(program, store.scope, self._claude_home),
            found=len(look.notes.found),
            imported=tuple(done.adopted.values()),
            updated=tuple(done.updated.values()),
            conflicts=(*done.conflicts, *look.notes.differ),
            stale=done.stale,
            ambiguous=look.ambiguous,
            unparsed=tuple(name for name, found in look.notes.found.items() if found.known.is_unparsed),
            left=(*look.notes.left, *(Left(f"{name}.md", reason) for name, reason in done.refused.items())),
        )
        if not dry_run and not anew:
            idle = report._replace(imported=(), updated=())
            decided_by = (*decided_by, store.view.journal, store.view.scanned_ns)
            self._known[key] = _Known(decided_by, store.view.listing, idle)
        return report

    async def _carry(
        self,
        program: Program,
        store: LiveStore,
        notes: Notes,
        held: frozenset[str] | None,
        *,
        anew: bool,
        dry_run: bool,
    ) -> Brought:
        """Commit what a look found, some notes at a time, and tell of it."""
        done = Brought.nothing()
        found = list(notes.found.values())
        try:
            for some, is_last in in_slices(found) if found else [(found, True)]:
                marks = held if is_last else None
                came = await self._commit(store, Bring(sourced(some), program, anew, marks), dry_run=dry_run)
                done = done.then(came)
                if came.wanted:
                    wanted = [notes.found[name] for name in came.wanted]
                    texts = await anyio.to_thread.run_sync(self._texts, program, wanted)
                    done = done.then(await self._commit(store, Bring(texts, program, anew, marks), dry_run=dry_run))
        finally:
            if not dry_run and (done.adopted or done.updated):
                self._library.feed.publish(feed.imported(store, len(done.adopted), len(done.updated)))
        return done

    async def _commit(self, store: LiveStore, request: Bring, *, dry_run: bool) -> Brought:
        if dry_run:
            return await store.preview(request, Brought)
        outcome = await store.write(request)
        self._library.keep(store)
        if not isinstance(outcome, Brought):
            raise TypeError(outcome)
        return outcome

    def _texts(self, program: Program, wanted: Iterable[Found]) -> tuple[Sourced, ...]:
        again = map(self._readers[program].again, wanted)
        return sourced(found for found in again if found is not None)


def sourced(found: Iterable[Found]) -> tuple[Sourced, ...]:
    """Notes as the store takes them."""
    return tuple(Sourced(one.name, one.known.source_hash, one.known.hash, one.raw) for one in found)


async def _held(store: LiveStore, program: Program, look: Look) -> frozenset[str] | None:
    """The names that the program still has, of those a look found and those that came here before.

    None where nothing ever came and nothing is there. Other directories are looked into only for names that this
    look missed.
    """
    came = await store.inspect(partial(store.store.names_from, program))
    held = frozenset(look.notes.found)
    if not came:
        return held or None
    return held if came <= held else held | (came & await anyio.to_thread.run_sync(look.anywhere))


def quiet_at(found: Found, now: float, settle_s: float) -> float:
    """When a note may be taken that its program may still be writing (SPEC 5)."""
    stamp = found.known.stamp
    return settle.quiet_at(stamp.size, stamp.ctime_ns / 1e9, now, settle_s)


def lines_of(store: LiveStore, report: Report) -> Iterator[str]:
    """The line of an import, and what a block leaves out of the store it made (SPEC 10); nothing of no notes."""
    if not report.says_something:
        return
    yield report.line
    loaded = shelf_of(store).loaded
    if loaded.bound is not None:
        yield text.load_notice(Dialect.PYTHON, len(loaded.names), loaded.total, loaded.bound)


def _still_of(repo: Path, cwds: Iterable[str]) -> list[str]:
    """Those of the directories that sessions were started in that are in the repository now."""
    return [cwd for cwd in cwds if paths.canonical_repo(Path(cwd)) == repo]


def _given(program: Program, directory: Path) -> Notes:
    """The notes of a directory that a person names. Errors: Refused (field `dir`)."""
    Directory(directory)
    return Reader(program).read((directory,))


def _where(program: Program, scope: Scope, claude_home: Path) -> str:
    """A program's directory as a line names it: no path of this machine."""
    if program == kimi.NAME:
        return "/".join(kimi.PARTS if scope is Scope.REPO else ("~", *kimi.PARTS))
    home = "~/.claude" if claude_home == claude.user_home() / ".claude" else "claude.home"
    return f"{home}/projects/…/memory" if scope is Scope.REPO else f"{home}/memory"
