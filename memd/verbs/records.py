"""List, log and stats. Law: what is counted and journaled, told; nothing here counts or journals.

SPEC section 7.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from heapq import merge

import anyio.to_thread

from memd import note
from memd.errors import NotFound, Unreadable
from memd.journal import Record
from memd.live import LiveStore
from memd.note import Scope
from memd.protocol import (
    ListParams,
    ListReply,
    LogParams,
    LogRecord,
    LogReply,
    NoteRow,
    PlaceParams,
    StatsReply,
    StoreStats,
)
from memd.store import Entry
from memd.usage import Counts, Usage
from memd.verbs import lookup, ranking
from memd.verbs.call import Call, shown, shown_hook


async def list_notes(call: Call, params: ListParams) -> ListReply:
    """`memory.list`: the notes of the stores, repo first, by name. A global note a repo note hides is `shadowed`."""
    place = call.place(params)
    stores = await call.library.opened(place)
    found = [
        (store, entry)
        for store in place.stores(params.scope)
        for _, entry in sorted(store.entries.items())
        if params.type is None or entry.type is params.type
    ]
    end = len(found) if params.limit is None else params.offset + params.limit
    page = found[params.offset : end]
    notes: list[NoteRow] = []
    for store, entry in page:
        with suppress(NotFound, Unreadable):  # it went while the list was made: no row, and no reason to fail
            notes.append(await as_row(store, entry, stores, params))
    total = len(found) - len(page) + len(notes)
    cut = f"[{len(notes)} of {total} notes · limit {params.limit} · offset {end} for the page after it]"
    return ListReply(notes=tuple(notes), total=total, notice=cut if end < len(found) else None)


async def as_row(store: LiveStore, entry: Entry, stores: list[LiveStore], params: ListParams) -> NoteRow:
    """A note as a list shows it."""
    raw, entry = await store.current(entry) if params.bodies or params.texts else (b"", entry)
    counts = counts_of(store, entry.name)
    hook, masked = shown_hook(entry)
    body = text = None
    if params.bodies:
        body, body_masked = shown(note.parse(entry.name, raw).body)
        masked = masked or body_masked
    if params.texts:
        text, text_masked = shown(raw.decode(errors="replace"))
        masked = masked or text_masked
    shadowed = store.scope is Scope.GLOBAL and entry.name in stores[0].entries
    return NoteRow(
        name=entry.name,
        scope=store.scope,
        type=entry.type,
        description=hook,
        hash=entry.hash,
        saves=counts.saves,
        reads=counts.reads,
        last=counts.last or None,
        unparsed=entry.trouble is not None,
        shadowed=shadowed,
        body=body,
        markdown=text,
        redacted=masked,
    )


def counts_of(store: LiveStore, name: str) -> Counts:
    """A note's counts; zeros while usage.json does not read."""
    return (store.view.usage or Usage.empty()).counts(name)


async def log(call: Call, params: LogParams) -> LogReply:
    """`memory.log`: the journal records of both stores, or of one, newest first.

    Each store's append order holds; the two are merged by the running maximum of `at`, so that a clock that
    was set back never reorders a store.
    """
    stores = await call.stores(params, params.scope)
    names = None if params.name is None else wanted_names(stores, params.name)
    total, page = await anyio.to_thread.run_sync(partial(newest, stores, names, params))
    words = "" if params.name is None else f"{ranking.quoted(params.name)}, "
    since = "" if params.since is None else f", since={params.since}"
    scope = "" if params.scope is None else f', scope="{params.scope}"'
    reads = "" if params.reads else ", reads=false"
    again = f"memory.log({words}limit={total}{since}{scope}{reads})"
    cut = f"[{len(page)} of {total} records · limit {params.limit} · {again} for all]"
    return LogReply(records=page, total=total, notice=cut if len(page) < total else None)


def newest(stores: list[LiveStore], names: set[str] | None, params: LogParams) -> tuple[int, tuple[LogRecord, ...]]:
    """How many records a log is about, and the newest of them as it shows them; blocking.

    No more of them are held at once: a journal may have hundreds of thousands.
    """
    streams = [timed(store.scope, store.store.records()) for store in stores if store.opened]
    total = 0
    kept: deque[tuple[Scope, Record]] = deque(maxlen=params.limit)
    for _, scope, record in merge(*streams, key=lambda timed: timed[0]):
        if is_wanted(record, names, params):
            total += 1
            kept.append((scope, record))
    return total, tuple(as_logged(scope, record) for scope, record in reversed(kept))


def wanted_names(stores: list[LiveStore], name: str) -> set[str]:
    """The stems a name can mean: itself where it stands, else what slugs to the same, forgotten or not."""
    if any(name in store.entries for store in stores):
        return {name}
    return {name, note.slug(name), *(stem for store in stores for stem in lookup.stems(store, name))}


def timed(scope: Scope, records: Iterable[Record]) -> Iterator[tuple[int, Scope, Record]]:
    """A store's records in append order, each with the latest time up to it."""
    latest = 0
    for record in records:
        latest = max(latest, record.at)
        yield latest, scope, record


def as_logged(scope: Scope, record: Record) -> LogRecord:
    """A record as a log shows it."""
    source = record.extra.get("source_hash")
    return LogRecord(
        at=record.at,
        op=record.op,
        name=record.name,
        hash=record.hash,
        digest=record.digest,
        scope=scope,
        session=record.session,
        by=record.by,
        source_hash=source if isinstance(source, str) else None,
    )


def is_wanted(record: Record, names: set[str] | None, params: LogParams) -> bool:
    """Whether a log that asks for these names, from its time on, with reads or without, shows the record."""
    if record.op == "read" and not params.reads:
        return False
    return (names is None or record.name in names) and (params.since is None or record.at >= params.since)


async def stats(call: Call, params: PlaceParams) -> StatsReply:
    """`memory.stats`, of both stores."""
    repo, everywhere = await call.stores(params)
    return StatsReply(repo=store_stats(repo), global_=store_stats(everywhere))


def store_stats(store: LiveStore) -> StoreStats:
    """One store's counts and its rates a session."""
    usage = store.view.usage or Usage.empty()
    saves = sum(counts.saves for counts in usage.notes.values())
    reads = sum(counts.reads for counts in usage.notes.values())
    return StoreStats(
        sessions=usage.sessions,
        notes=len(store.entries),
        saves=saves,
        reads=reads,
        saves_per_session=saves / usage.sessions if usage.sessions else 0.0,
        reads_per_session=reads / usage.sessions if usage.sessions else 0.0,
        unparsed=sum(entry.trouble is not None for entry in store.entries.values()),
    )
