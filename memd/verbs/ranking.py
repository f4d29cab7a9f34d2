"""Search. Law: what is returned is there now: a hit whose file is gone is no hit, and its edit is seen first.

SPEC sections 6 and 7, `memory.search`. Searching counts nothing.
"""

import json
from collections.abc import Iterator, Sequence

from memd import bm25, tokens
from memd.errors import Refused
from memd.live import LiveStore
from memd.protocol import Hit, SearchParams, SearchReply
from memd.store import Entry
from memd.verbs.call import Call, shown, shown_hook

_quote = json.JSONEncoder(ensure_ascii=False).encode

RANKERS = ("plain",)
"""The rankers there are; config `search.ranker` and a verb's `ranker` choose among them."""


class Ranked:
    """The ranking of several stores' notes as one corpus."""

    def __init__(self, stores: Sequence[LiveStore], query: str) -> None:
        self.stores = stores
        self.ranking = bm25.rank(tokens.query_terms(query), [store.index for store in stores])
        self.gone = 0
        self.edited: set[LiveStore] = set()

    @property
    def total(self) -> int:
        """How many notes scored, less those found gone so far."""
        return self.ranking.total - self.gone

    def served(self, limit: int | None = None, offset: int = 0) -> Iterator[tuple[LiveStore, Entry]]:
        """The hits, best first, each looked at on disk before it goes out."""
        while limit is None or limit > 0:
            page = self.ranking.top(limit, offset)
            offset += len(page)
            for hit in page:
                found = self._look(self.stores[hit.store], hit.name)
                if found is None:
                    self.gone += 1
                    continue
                yield found
                limit = None if limit is None else limit - 1
            if limit is None or not page:
                return

    def _look(self, store: LiveStore, name: str) -> tuple[LiveStore, Entry] | None:
        entry = store.entries.get(name)
        if entry is None:
            return None
        stamp = store.stamp(name)
        if stamp is None:
            return (store, entry) if store.view.suspended else None
        if stamp != entry.stamp:
            self.edited.add(store)
        return store, entry


async def search(call: Call, params: SearchParams) -> SearchReply:
    """`memory.search`: hits best first, how many there are, and how to get the rest."""
    check_ranker(params.ranker)
    stores = await call.stores(params, params.scope)
    ranked = Ranked(stores, params.query)
    found = list(ranked.served(params.limit, params.offset))
    if ranked.edited:
        for store in ranked.edited:
            await store.try_reconcile()
        ranked = Ranked(stores, params.query)
        found = list(ranked.served(params.limit, params.offset))
    hits = tuple(as_hit(store, entry) for store, entry in found)
    return SearchReply(hits=hits, total=ranked.total, notice=notice(params, len(hits), ranked.total))


def check_ranker(ranker: str | None) -> None:
    """Refuse a ranker there is not (field `ranker`)."""
    if ranker is not None and ranker not in RANKERS:
        choices = ", ".join(RANKERS)
        raise Refused("ranker", f"ranker: one of {choices}; leave it out for the configured one", bound=choices)


def as_hit(store: LiveStore, entry: Entry) -> Hit:
    """A note as a hit shows it."""
    hook, masked = shown_hook(entry)
    return Hit(name=entry.name, description=hook, scope=store.scope, redacted=masked)


def notice(params: SearchParams, count: int, total: int) -> str | None:
    """How to get the rest of a cut list; None when nothing was cut."""
    if params.offset + count >= total:
        return None
    words = quoted(params.query)
    return f"[{count} of {total} notes · limit {params.limit} · memory.search({words}, limit={total}) for all]"


def quoted(query: str) -> str:
    """A query as a notice holds it, JSON-quoted and masked."""
    return _quote(shown(query)[0])
