"""A store as a block sees it. Law: of one moment, and made again only for what changed.

Reading a whole index costs more than ranking it, so its lines are kept for as long as the listing and the notes stay.
SPEC section 9, step 5.
"""

from collections.abc import Mapping
from typing import NamedTuple
from weakref import WeakKeyDictionary

from memd.focus import Shelf, lines_of, load
from memd.listing import Listing
from memd.live.stores import LiveStore
from memd.snapshots import Snapshot
from memd.usage import Usage


class _Kept(NamedTuple):
    """What a shelf was made of, and the shelf."""

    listing: Listing | None
    snapshot: Snapshot
    usage: Usage | None
    lines: Mapping[str, str]
    shelf: Shelf


_kept: WeakKeyDictionary[LiveStore, _Kept] = WeakKeyDictionary()


def shelf_of(store: LiveStore) -> Shelf:
    """The store's notes, index and loaded lines as they are now; a later change makes another shelf."""
    view, index = store.view, store.index
    known = _kept.get(store)
    same = known is not None and known.listing is view.listing and known.snapshot is index
    if known is not None and same and known.usage is view.usage:
        return known.shelf
    entries = dict(store.entries)
    lines = known.lines if known is not None and same else lines_of(view.listing or Listing(), entries)
    loaded = load(lines, lambda name: last_used(view.usage, name))
    shelf = Shelf(scope=store.scope, notes=entries, index=index, lines=lines, loaded=loaded)
    _kept[store] = _Kept(view.listing, index, view.usage, lines, shelf)
    return shelf


def last_used(usage: Usage | None, name: str) -> int:
    """When a note was last saved or read, in unix seconds; 0 for never, or while usage.json does not read."""
    return 0 if usage is None else usage.counts(name).last
