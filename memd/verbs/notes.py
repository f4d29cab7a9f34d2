"""Save, read, show and forget one note. Law: a reply holds no path, and no key-shaped run but where SPEC 3 says so.

SPEC section 7.
"""

import math
from collections.abc import Iterator
from itertools import islice

import anyio
from msgspec import UNSET

from memd import draft, note, snapshots
from memd.alike import NEAR
from memd.errors import MemdError, NotFound
from memd.live import LiveStore
from memd.protocol import (
    ForgetReply,
    NameParams,
    Pointer,
    ReadReply,
    Receipt,
    SaveParams,
    SaveReply,
    ShowParams,
    ShowReply,
)
from memd.store import Author, Count, Counted, Entry, Forget, Forgotten, Save, Saved
from memd.store.saving import check_hash
from memd.store.store import COUNT_WAIT_S
from memd.tokens import jaccard, may_share, tokenize
from memd.verbs import lookup, ranking, receipt
from memd.verbs.call import Call, asked_hash, author, shown, shown_hook

NEAR_TOLD = 5
"""Notes a warning is given for."""


async def save(call: Call, params: SaveParams) -> SaveReply:
    """`memory.save`. Errors in the order of SPEC 3: refused, suspended, busy, unreadable, conflict, storage."""
    call.check_writable(params)
    drafted = draft.draft(params.markdown, params.fields)
    check_hash(params.expect)
    async with call.one_save(params) as session:
        place = call.place(params)
        store = place.store(drafted.scope)
        saved = await call.write(store, Save(drafted, author(params), params.expect), Saved)
    entry = saved.entry
    alike = islice(near([each for each in place if each.opened], store, entry), NEAR_TOLD)
    hook, masked = shown_hook(entry)
    return SaveReply(
        name=entry.name,
        description=hook,
        type=drafted.type,
        scope=store.scope,
        updated=saved.updated,
        hash=entry.hash,
        warnings=(*saved.warnings, *alike),
        pointer=Pointer(op="save", name=entry.name, scope=store.scope, hash=entry.hash),
        saved=UNSET if session is None else session.used(*place),
        saves_left=UNSET if session is None else session.left(*place),
        redacted=masked,
    )


def near(stores: list[LiveStore], mine: LiveStore, entry: Entry) -> Iterator[str]:
    """A warning for each note whose hook nearly repeats this one's, in any open store (SPEC 3, "beyond").

    The save is durable by now: nothing here waits or fails. Two hooks that say the same share at least that part of
    either's words, so only notes whose name and hook may hold so many of this one's are compared.
    """
    words = set(tokenize(entry.hook))
    least = max(1, math.ceil(NEAR * len(words)))
    for store in stores:
        for name in snapshots.hooked(store.index, words, least):
            other = store.entries.get(name)
            if other is None or (store, name) == (mine, entry.name) or not may_share(words, other.hook, least):
                continue
            if jaccard(entry.hook, other.hook) < NEAR or not is_served(store, other):
                continue
            yield f"nearly the same hook as {name} ({store.scope}); update one note instead of keeping two"


def is_served(store: LiveStore, entry: Entry) -> bool:
    """Whether a note can be shown now, as far as the disk tells."""
    try:
        return store.serves(entry)
    except OSError:
        return False


async def read(call: Call, params: NameParams) -> ReadReply:
    """`memory.read`. Errors: NotFound when both stores hold nothing near; the failures of opening a store."""
    stores = await call.stores(params, params.scope)
    found = lookup.named(stores, params.name) or lookup.called(stores, params.name)
    warnings: list[str] = []
    if found is None:
        # SPEC 7: "failing both in both stores", and only where the caller looked.
        found, warning = nearest(stores, params.name, ranking.chosen(call, None))
        warnings.append(warning)
    store, entry = found
    raw, entry = await store.current(entry)
    parsed = note.parse(entry.name, raw)
    pointer, trouble = await count(call, store, entry, author(params))
    warnings.extend(trouble)
    text, text_masked = shown(parsed.body)
    hook, hook_masked = shown_hook(entry)
    return ReadReply(
        name=entry.name,
        description=hook,
        type=entry.type,
        scope=store.scope,
        text=text,
        hash=entry.hash,
        warnings=tuple(warnings),
        pointer=pointer,
        redacted=text_masked or hook_masked,
    )


def nearest(stores: list[LiveStore], name: str, ranker: str) -> tuple[tuple[LiveStore, Entry], str]:
    """The best search hit for a name nobody has, and the warning that says so. Errors: NotFound."""
    ranked = ranking.Ranked(stores, name, ranker)
    hit = next(ranked.served(1), None)
    if hit is None:
        raise NotFound("no note has that name or hook, and none shares a word with it")
    words = ranking.quoted(name)
    warning = (
        f"[no note has that name or hook · opened {hit.entry.name}, the closest of {ranked.total} by memory.search"
        f" · memory.search({words}, limit={ranked.total}) for the ranking]"
    )
    return (hit.store, hit.entry), warning


async def count(call: Call, store: LiveStore, entry: Entry, reader: Author) -> tuple[Pointer | None, list[str]]:
    """Count the read: its pointer, or a warning why it could not be counted."""
    try:
        with anyio.fail_after(COUNT_WAIT_S):
            await call.write(store, Count(entry.name, entry.hash, reader), Counted)
    except TimeoutError:
        return None, ["the read was not counted: the store's lock was not had in time"]
    except MemdError as error:
        return None, [f"the read was not counted: {error.text}"]
    return Pointer(op="read", name=entry.name, scope=store.scope, hash=entry.hash), []


async def show(call: Call, params: ShowParams) -> ShowReply:
    """`memory.show`: one version's exact text; a person (`cwd`) sees it unmasked. Errors: NotFound, Unreadable."""
    asked = None if params.hash is None else asked_hash("hash", params.hash)
    stores = await call.stores(params, params.scope)
    store, entry = lookup.find(stores, params.name)
    if asked is None:
        raw, entry = await store.current(entry)
        wanted = entry.hash
    else:
        wanted = asked
        raw = await store.version(entry.name, wanted)
    text = raw.decode(errors="replace")
    masked, was_masked = (text, False) if params.session is None else shown(text)
    return ShowReply(
        name=entry.name,
        scope=store.scope,
        hash=wanted,
        markdown=masked,
        current=wanted == entry.hash,
        redacted=was_masked,
    )


async def forget(call: Call, params: NameParams) -> ForgetReply:
    """`memory.forget`: the note, its row, its counts and every version only it held. Errors: NotFound."""
    call.check_writable(params)
    stores = await call.stores(params, params.scope)
    store, stem = forgettable(stores, params.name)
    forgotten = await call.write(store, Forget(stem, author(params)), Forgotten)
    left = await anyio.to_thread.run_sync(receipt.scan, call.library.home, forgotten.texts)
    return ForgetReply(
        name=forgotten.name,
        scope=store.scope,
        receipt=Receipt(versions=forgotten.versions, bytes=forgotten.size, left=left),
        pointer=Pointer(op="forget", name=forgotten.name, scope=store.scope, hash=forgotten.hash),
    )


def forgettable(stores: list[LiveStore], name: str) -> tuple[LiveStore, str]:
    """The store and stem of the note to forget, one whose file is no note any more too. Errors: NotFound."""
    try:
        store, entry = lookup.find(stores, name)
    except NotFound:
        found = lookup.kept(stores, name)
        if found is None:
            raise
        return found
    return store, entry.name
