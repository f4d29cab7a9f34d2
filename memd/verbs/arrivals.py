"""Import of a directory, and the stores of a home. Law: a person's verbs; each note arrives by itself, journaled.

SPEC section 7: `memory.import`, `store.list`, `store.adopt`.
"""

from pathlib import Path

import anyio.to_thread

from memd.errors import NotFound, Refused
from memd.importers.directory import Directory, Text
from memd.live import LiveStore
from memd.live.feed import imported
from memd.live.pace import in_slices
from memd.note import Scope
from memd.protocol import (
    ImportParams,
    ImportReply,
    Skipped,
    StoreAdoptParams,
    StoreAdoptReply,
    StoreListParams,
    StoreListReply,
    StoreRow,
)
from memd.store import Adopt, Adopted, Arrival, Author, Leave, Left
from memd.verbs.call import Call, printable

BY_IMPORT = Author(by="import")
BY_STORE = Author(by="store")


async def import_notes(call: Call, params: ImportParams) -> ImportReply:
    """`memory.import`: copies of a directory's notes, into the repository's store. A person's verb."""
    call.person_only(params)
    (store,) = await call.stores(params, Scope.REPO)
    source = await anyio.to_thread.run_sync(Directory, Path(params.dir))
    files = [file for file in source.files() if params.after is None or file.name > params.after]
    page = files if params.limit is None else files[: params.limit]
    skipped = [Skipped(file=printable(file.name), reason=file.reason) for file in page if file.reason is not None]
    done = Adopted({}, {}, {}, {})
    rows = await anyio.to_thread.run_sync(source.rows)
    try:
        for names, _ in in_slices([file.name for file in page if file.reason is None]):
            texts = await anyio.to_thread.run_sync(source.read_all, names, rows)
            read = zip(names, texts, strict=True)
            skipped += [Skipped(file=name, reason=text) for name, text in read if isinstance(text, str)]
            arrivals = tuple(Arrival(*text) for text in texts if isinstance(text, Text))
            request = Adopt(arrivals, BY_IMPORT, updates=True)
            done = done.then(await arrive(call, store, request, dry_run=params.dry_run))
    finally:
        if not params.dry_run:
            tell(call, store, done)
    skipped += [Skipped(file=f"{name}.md", reason="identical") for name in done.identical]
    skipped += [Skipped(file=f"{name}.md", reason=reason) for name, reason in done.refused.items()]
    return ImportReply(
        imported=tuple(done.adopted.values()),
        updated=tuple(done.updated.values()),
        skipped=tuple(sorted(skipped, key=lambda left_out: left_out.file)),
        total=len(files),
        next=printable(page[-1].name) if len(page) < len(files) else None,
    )


async def arrive(call: Call, store: LiveStore, request: Adopt, *, dry_run: bool) -> Adopted:
    """What becomes of some arrivals, or would."""
    if dry_run:
        return await store.preview(request, Adopted)
    return await call.write(store, request, Adopted)


def tell(call: Call, store: LiveStore, done: Adopted) -> None:
    """Tell the feed what arrived in a call, also in one that failed half-way; nothing when nothing did."""
    if done.adopted or done.updated:
        call.library.feed.publish(imported(store, len(done.adopted), len(done.updated)))


async def list_stores(call: Call, params: StoreListParams) -> StoreListReply:
    """`store.list`: every store under the home, whose it is and whether that is still there."""
    here = None if params.cwd is None else call.library.place(params.cwd).repo.directory
    rows = await anyio.to_thread.run_sync(call.library.survey)
    return StoreListReply(
        stores=tuple(
            StoreRow(
                key=None if row.key is None else printable(row.key),
                scope=Scope.GLOBAL if row.key is None else Scope.REPO,
                notes=row.notes,
                origin_exists=row.origin_exists,
                current=row.directory == here,
            )
            for row in rows
        )
    )


async def adopt_store(call: Call, params: StoreAdoptParams) -> StoreAdoptReply:
    """`store.adopt`: the notes of a moved repository's store come into the caller's. A person's verb.

    When all are durable here they are forgotten there, so that a later forget leaves no copy.
    """
    call.person_only(params)
    async with call.library.adopting:  # two stores that adopt each other at once would each count on the other's copy
        return await adopt_from(call, params)


async def adopt_from(call: Call, params: StoreAdoptParams) -> StoreAdoptReply:
    """Take the notes in, and have them go where they were once they are durable here."""
    (target,) = await call.stores(params, Scope.REPO)
    source = call.library.by_key(params.key)
    if source is None:
        raise NotFound("no store of this home has that key; store.list tells them")
    if source is target:
        raise Refused("key", "key: that is this repository's own store", bound="another store", got=params.key)
    origin = source.store.origin
    origin_exists = None if origin is None else await anyio.to_thread.run_sync(origin.exists)
    await source.ready()
    notes = sorted(source.entries.values(), key=lambda entry: entry.name)
    done = Adopted({}, {}, {}, {})
    safe: list[tuple[str, str]] = []
    try:
        for some, _ in in_slices(notes):
            texts = [(entry.name, *await source.current(entry)) for entry in some]
            arrivals = tuple(Arrival(name, raw) for name, raw, _ in texts)
            came = await arrive(call, target, Adopt(arrivals, BY_STORE, updates=False), dry_run=params.dry_run)
            done = done.then(came)
            safe += [(name, entry.hash) for name, _, entry in texts if name not in came.refused]
    finally:
        if not params.dry_run:
            tell(call, target, done)
    left = len(notes) - len(safe)
    if safe and not params.dry_run:
        left += (await call.write(source, Leave(tuple(safe), BY_STORE), Left)).stayed
    return StoreAdoptReply(
        adopted=tuple(done.adopted.values()),
        renamed={name: here for name, here in done.adopted.items() if name != here},
        identical=tuple(done.identical.values()),
        left=left,
        origin_exists=origin_exists,
    )
