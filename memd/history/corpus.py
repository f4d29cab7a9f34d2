"""One repository's past sessions, ranked. Law: what was read so far is searched, and how far that is, is said.

Reading goes on in one thread while searches go on in others: the corpus is one tuple, swapped whole. An entry that
two files hold, since a session was resumed into a new one, counts once. SPEC section 11. Blocking code.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

import msgspec

from memd import forms, postings
from memd.fs import Disk, Stamp
from memd.history import formats
from memd.history.cache import Cache
from memd.history.formats import Kind
from memd.history.lines import read_lines
from memd.history.snippet import Snippet, snippet
from memd.history.sources import Catalog, Found, Sources, Whose, belonging
from memd.history.transcript import Entry, Transcript, entry_at, read_on, unnamed
from memd.postings import Shelf
from memd.tokens import query_terms

SMALL = 256
"""Entries of a transcript up to which it is ranked together with others: each shelf costs a search its share."""
SCHEME = "history://"


class Hit(NamedTuple):
    """An entry that was found, as it is shown."""

    session: str
    entry: str
    kind: Kind
    snippet: Snippet

    @property
    def url(self) -> str:
        """The address under which the whole entry is read."""
        return address(self.session, self.entry)


class Page(NamedTuple):
    """Some hits of `total`. Not searched: `lost` directories of a repository nobody knows, and what was `unread`."""

    hits: list[Hit]
    total: int
    lost: int
    unread: int


class Progress(NamedTuple):
    """How far the reading is: transcripts read whole of those there are, and lines that were passed over."""

    read: int
    transcripts: int
    skipped: int


class _Shelved(NamedTuple):
    """A shelf and the transcripts whose entries lie in it, in order, each with the place of its first."""

    shelf: Shelf
    members: tuple[tuple[int, Transcript], ...]

    def at(self, place: int) -> tuple[Transcript, int]:
        """The transcript of a place, and the entry's place in it."""
        first, transcript = next(member for member in reversed(self.members) if member[0] <= place)
        return transcript, place - first


class _State(msgspec.Struct, frozen=True, eq=False):
    """Everything a search needs, at one moment."""

    transcripts: Mapping[Path, Transcript] = {}
    sessions: Mapping[Path, str] = {}
    shelves: tuple[_Shelved, ...] = ()
    struck: Mapping[int, frozenset[int]] = {}
    wanted: int = 0
    read: int = 0
    lost: int = 0
    unread: int = 0


class Corpus:
    """The past sessions of one repository."""

    def __init__(self, whose: Whose, catalog: Catalog, cache: Cache) -> None:
        self.whose = whose
        self._catalog = catalog
        self._cache = cache
        self._state = _State()

    @property
    def progress(self) -> Progress:
        """How far the reading is."""
        state = self._state
        skipped = sum(transcript.skipped for transcript in state.transcripts.values())
        return Progress(state.read, state.wanted, skipped)

    def refresh(self, sources: Sources, stop: Callable[[], bool] = lambda: False) -> None:
        """Read what is new, file by file; a search meanwhile finds what was read. Never raises for a file."""
        ours, lost = belonging(self._catalog.files(sources), self.whose)
        unread = self._catalog.unread
        ours.sort(key=lambda found: found.status.st_mtime_ns)
        known = dict(self._state.transcripts)
        transcripts = {found.path: known[found.path] for found in ours if found.path in known}
        sessions = {found.path: found.session for found in ours}
        fresh = {found.path for found in ours if _is_read(transcripts.get(found.path), found)}
        if len(fresh) == len(ours) and transcripts.keys() == known.keys() and sessions == self._state.sessions:
            counts = {"wanted": len(ours), "read": len(ours), "lost": lost, "unread": unread}
            self._state = msgspec.structs.replace(self._state, **counts)
            return

        def publish() -> None:
            newest = [transcripts[found.path] for found in reversed(ours) if found.path in transcripts]
            assembled = _assembled(newest, sessions, wanted=len(ours), read=len(fresh), lost=lost)
            self._state = msgspec.structs.replace(assembled, unread=unread)

        publish()
        due = len(fresh) + _PUBLISH_EVERY
        for found in reversed(ours):  # the newest first: it is what is asked for
            if stop():
                return
            if found.path in fresh:
                continue
            before = transcripts.get(found.path) or self._cache.load(found.path) or Transcript(found.path)
            for grown in self._read(before, stop):
                transcripts[found.path] = grown
                if grown.stamp is None:
                    publish()
            fresh.add(found.path)
            if len(fresh) >= due:
                publish()
                due = len(fresh) + max(_PUBLISH_EVERY, len(fresh) // 4)
        publish()

    def search(self, query: str, limit: int, offset: int = 0, *, ranker: str = "plain") -> Page:
        """A page of what was read so far, best first by a ranker; of two alike the newer first (SPEC 6)."""
        state = self._state
        is_rich = ranker == "rich"
        asked = forms.query(query).asked if is_rich else tuple(forms.plain(query_terms(query)))
        shelves = [shelved.shelf for shelved in state.shelves]
        ranking = postings.rank(asked, shelves, state.struck, is_rich=is_rich)
        hits: list[Hit] = []
        gone = 0
        while len(hits) < limit:
            page = ranking.top(limit - len(hits), offset)
            if not page:
                break
            offset += len(page)
            for at, place, _ in page:
                transcript, row = state.shelves[at].at(place)
                entry = _read_entry(transcript, row)
                if entry is None:
                    gone += 1
                    continue
                session = state.sessions[transcript.path]
                hits.append(Hit(session, entry.id, entry.kind, snippet(entry.text, asked)))
        return Page(hits, ranking.total - gone, state.lost, state.unread)

    def read(self, sources: Sources, url: str) -> tuple[str, Entry] | None:
        """The session and the entry at an address, of this repository only; None when there is none."""
        named = split(url)
        if named is None:
            return None
        session, entry = named
        ours, _ = belonging(self._catalog.files(sources), self.whose)
        for found in ours:
            if found.session == session:
                said = next((said for said in _entries(found.path) if said.id == entry), None)
                if said is not None:
                    return session, said
        return None

    def _read(self, before: Transcript, stop: Callable[[], bool]) -> Iterator[Transcript]:
        """What a file holds, slice by slice; a file that does not read is passed over this time."""
        last = before
        try:
            for last in read_on(before, stop):
                yield last
        except OSError:
            return
        if last is not before and last.stamp is not None:
            with suppress(OSError):
                self._cache.store(last)
        elif last is before:
            yield before


# Files, or a quarter more than there are: putting the shelves in order costs as much as there is on them, and for
# thousands of small files it would be done hundreds of times.
_PUBLISH_EVERY = 8


def address(session: str, entry: str) -> str:
    """The address of an entry."""
    return f"{SCHEME}{quote(session, safe='')}/{quote(entry, safe='')}"


def split(url: str) -> tuple[str, str] | None:
    """The session and the entry that an address names; None for what is no address."""
    if not url.startswith(SCHEME):
        return None
    session, slash, entry = url.removeprefix(SCHEME).partition("/")
    return (unquote(session), unquote(entry)) if slash and session and entry else None


def _is_read(known: Transcript | None, found: Found) -> bool:
    return known is not None and known.stamp == Stamp.of(found.status)


def _read_entry(transcript: Transcript, place: int) -> Entry | None:
    try:
        return entry_at(transcript, place)
    except OSError:
        return None


def _entries(path: Path) -> Iterator[Entry]:
    """The entries of a file, read from its start. Never raises."""
    with suppress(OSError), Disk().opened(path) as stream:
        for span in read_lines(stream, 0):
            said = None if span.raw is None else formats.parse(span.raw).said
            if said is not None:
                yield Entry(said.id or unnamed(span.start, said.text), said.kind, said.text)


def _assembled(
    newest: Sequence[Transcript], sessions: Mapping[Path, str], *, wanted: int, read: int, lost: int
) -> _State:
    """What is searched: the newest first, small ones on one shelf. Of an entry that several hold, one counts."""
    small = [transcript for transcript in newest if len(transcript.columns) <= SMALL]
    shelves = [_shelved([transcript]) for transcript in newest if len(transcript.columns) > SMALL]
    if small:
        shelves.append(_shelved(small))
    columns = [[transcript.columns for _, transcript in shelved.members] for shelved in shelves]
    struck = postings.repeated([[(held.ids, held.marks) for held in members] for members in columns])
    return _State(
        transcripts={transcript.path: transcript for transcript in newest},
        sessions=sessions,
        shelves=tuple(shelves),
        struck=struck,
        wanted=wanted,
        read=read,
        lost=lost,
    )


def _shelved(transcripts: Sequence[Transcript]) -> _Shelved:
    members = []
    first = 0
    for transcript in transcripts:
        members.append((first, transcript))
        first += len(transcript.columns)
    return _Shelved(postings.merge([transcript.shelf for transcript in transcripts]), tuple(members))
