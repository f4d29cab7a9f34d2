"""From the words a caller has to the note it means. Law: exact before near, repo before global, and never a guess.

A disk that does not say whether a note's file is there is an error, not a note that is gone: every lookup lets
OSError through, which the caller is told as `storage`.

SPEC section 7, `memory.read`: a file name or slug in each store, then an index line's label or description, or a
note's hook, whatever their case. The fuzzy step is `read`'s own.
"""

from collections.abc import Iterator, Sequence

from memd import note
from memd.errors import NotFound
from memd.live import LiveStore
from memd.store import Entry


def named(stores: Sequence[LiveStore], name: str) -> tuple[LiveStore, Entry] | None:
    """The note of that file name, or whose name slugs to the same."""
    for store in stores:
        for stem in stems(store, name):
            entry = store.entries[stem]
            if store.serves(entry):
                return store, entry
    return None


def stems(store: LiveStore, name: str) -> Iterator[str]:
    """The stems of the store that a name can mean: itself, its slug, one that slugs to the same."""
    plain = name.removesuffix(note.SUFFIX)
    slug = note.slug(plain)
    for candidate in dict.fromkeys((name, plain, slug)):
        if candidate in store.entries:
            yield candidate
    if slug:
        yield from sorted(stem for stem, entry in store.entries.items() if stem != slug and entry.slug == slug)


def called(stores: Sequence[LiveStore], words: str) -> tuple[LiveStore, Entry] | None:
    """The note that MEMORY.md labels or describes so, or whose hook it is."""
    wanted = words.strip().casefold()
    for store in stores:
        for stem in calls(store, wanted):
            entry = store.entries.get(stem)
            if entry is not None and store.serves(entry):
                return store, entry
    return None


def calls(store: LiveStore, wanted: str) -> Iterator[str]:
    """The stems whose label, description or hook is `wanted`, case folded; none for no words."""
    if not wanted:
        return
    listing = store.view.listing
    for row in listing.rows(store.entries) if listing is not None else ():
        if wanted in (row.label.casefold(), row.description.casefold()):
            yield row.name
    for entry in store.entries.values():
        if entry.hook.casefold() == wanted:
            yield entry.name


def find(stores: Sequence[LiveStore], name: str) -> tuple[LiveStore, Entry]:
    """The note a caller means, never fuzzily. Errors: NotFound."""
    found = named(stores, name) or called(stores, name)
    if found is None:
        raise NotFound("no note has that name, slug, label or hook; memory.search finds the nearest")
    return found


def kept(stores: Sequence[LiveStore], name: str) -> tuple[LiveStore, str] | None:
    """The store and stem of a note that the journals hold though its file is no note any more: a symlink, say."""
    plain = name.removesuffix(note.SUFFIX)
    for store in stores:
        for stem in (name, plain, note.slug(plain)):
            if store.keeps(stem) and store.stands(stem) and stem not in store.entries:
                return store, stem
    return None
