"""Diff, restore, rename and move. Law: a note is named exactly here, by its name or slug, and its bytes are kept.

SPEC section 7.
"""

import difflib
import re

from memd import note
from memd.errors import NotFound, Refused
from memd.live import LiveStore
from memd.protocol import (
    DiffParams,
    DiffReply,
    MoveParams,
    Pointer,
    RenameParams,
    RenameReply,
    RestoreParams,
    RestoreReply,
)
from memd.store import Entry, Rename, Restore, Saved
from memd.store.moving import new_name
from memd.verbs import lookup
from memd.verbs.call import Call, asked_hash, author, shown, shown_hook


async def diff(call: Call, params: DiffParams) -> DiffReply:
    """`memory.diff`: two versions' texts, line by line; without hashes, the last change. Errors: NotFound."""
    call.session(params)
    check_name(params.name)
    to = None if params.to is None else asked_hash("to", params.to)
    before = None if params.from_ is None else asked_hash("from", params.from_)
    store, entry = exactly(await call.stores(params, params.scope), params.name)
    if to is None:
        new, entry = await store.current(entry)
    else:
        new = await store.text_of(entry, to)
    if before is None:
        before = await store.version_before(entry, to)
    to = to or entry.hash
    old = b"" if before is None else await store.text_of(entry, before)
    lines = unified(old.decode(errors="replace"), new.decode(errors="replace"), before or "nothing", to)
    shows, masked = (lines, False) if params.session is None else shown(lines)
    return DiffReply(name=entry.name, scope=store.scope, from_=before or "", to=to, diff=shows, redacted=masked)


def unified(old: str, new: str, old_name: str, new_name: str) -> str:
    """The unified diff of two texts; a last line without a line end says so, as diff does."""
    lines = difflib.unified_diff(in_lines(old), in_lines(new), old_name[:19], new_name[:19])
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def in_lines(text: str) -> list[str]:
    """A text's lines with their ends: only a line feed ends one, as in the file."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


async def restore(call: Call, params: RestoreParams) -> RestoreReply:
    """`memory.restore`: an old version's exact bytes, as a save. Errors: NotFound, Suspended."""
    call.check_writable(params)
    check_name(params.name)
    wanted = asked_hash("hash", params.hash)
    async with call.one_save(params):
        store, entry = exactly(await call.stores(params, params.scope), params.name)
        saved = await call.write(store, Restore(entry.name, wanted, author(params, "restore")), Saved)
    hook, masked = shown_hook(saved.entry)
    return RestoreReply(
        name=saved.entry.name,
        description=hook,
        scope=store.scope,
        hash=saved.entry.hash,
        pointer=Pointer(op="save", name=saved.entry.name, scope=store.scope, hash=saved.entry.hash),
        redacted=masked,
    )


async def rename(call: Call, params: RenameParams) -> RenameReply:
    """`memory.rename`: a save under the new name and a forget of the old one, in one commit. Errors: NotFound."""
    call.check_writable(params)
    check_name(params.name)
    new_name(params.to)
    async with call.one_save(params):
        store, entry = exactly(await call.stores(params, params.scope), params.name)
        saved = await call.write(store, Rename(entry.name, params.to, author(params, "rename")), Saved)
    return renamed(saved.entry, store, entry.name, store)


async def move(call: Call, params: MoveParams) -> RenameReply:
    """`memory.move`: a save in the other store, then a forget in this one. Errors: NotFound, Refused."""
    call.check_writable(params)
    check_name(params.name)
    target = call.place(params).store(params.scope)
    async with call.one_save(params):
        stores = await call.stores(params)
        source, entry = exactly([store for store in stores if store is not target], params.name)
        saved = await call.library.move(source, target, entry.name, author(params, "rename"))
    return renamed(saved.entry, target, entry.name, source)


def renamed(entry: Entry, store: LiveStore, was: str, was_in: LiveStore) -> RenameReply:
    """The reply that tells where a note is now and where it was."""
    return RenameReply(
        name=entry.name,
        scope=store.scope,
        hash=entry.hash,
        was=was,
        was_scope=was_in.scope,
        pointer=Pointer(op="save", name=entry.name, scope=store.scope, hash=entry.hash),
    )


def check_name(name: str) -> None:
    """Refuse no name (field `name`)."""
    if not note.slug(name) and not name.strip():
        raise Refused("name", "name: empty; give the note's name", bound="a name or slug", got=name)


def exactly(stores: list[LiveStore], name: str) -> tuple[LiveStore, Entry]:
    """The note of that name or slug, repo first. Errors: NotFound."""
    found = lookup.named(stores, name)
    if found is None:
        raise NotFound("no note has that name or slug here; memory.list tells the names")
    return found
