"""Search. Law: what is returned is there now: a hit whose file is gone is no hit, and its edit is seen first.

SPEC sections 6 and 7, `memory.search`. Searching counts nothing.
"""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import structs

from memd import bm25, forms, note, tokens
from memd.bm25 import Ranking
from memd.config import RANKERS
from memd.errors import NotFound, Refused
from memd.live import LiveStore
from memd.protocol import Gave, Hit, SearchParams, SearchReply
from memd.store import Entry
from memd.verbs.call import Call, shown, shown_hook

_quote = json.JSONEncoder(ensure_ascii=False).encode


class Found(NamedTuple):
    """A hit: where it is, what it is, and what it scored."""

    store: LiveStore
    entry: Entry
    score: float


class Ranked:
    """The ranking of several stores' notes as one corpus, by one of the rankers."""

    def __init__(self, stores: Sequence[LiveStore], query: str, ranker: str) -> None:
        self.stores = stores
        snapshots = [store.index for store in stores]
        self.ranking: Ranking = (
            bm25.rich(forms.query(query), snapshots)
            if ranker == "rich"
            else bm25.rank(tokens.query_terms(query), snapshots)
        )
        self.gone = 0
        self.unseen = 0
        self.edited: set[LiveStore] = set()

    @property
    def total(self) -> int:
        """How many notes scored, less those found gone so far, and those that could not be looked at."""
        return self.ranking.total - self.gone - self.unseen

    def served(self, limit: int | None = None, offset: int = 0) -> Iterator[Found]:
        """The hits, best first, each looked at on disk before it goes out.

        Errors: OSError when the disk does not say whether any of them is there: that is not as if there were none.
        """
        failure: OSError | None = None
        seen = 0
        while limit is None or limit > 0:
            page = self.ranking.top(limit, offset)
            offset += len(page)
            for hit in page:
                store = self.stores[hit.store]
                try:
                    entry = self._look(store, hit.name)
                except OSError as error:  # the one keeps no other from being found
                    failure = error
                    self.unseen += 1
                    continue
                if entry is None:
                    self.gone += 1
                    continue
                seen += 1
                yield Found(store, entry, hit.score)
                limit = None if limit is None else limit - 1
            if limit is None or not page:
                break
        if failure is not None and not seen:
            raise failure

    def _look(self, store: LiveStore, name: str) -> Entry | None:
        entry = store.entries.get(name)
        if entry is None:
            return None
        stamp = store.stamp(name)
        if stamp is None:
            return entry if store.view.suspended else None
        if stamp != entry.stamp:
            self.edited.add(store)
        return entry


async def search(call: Call, params: SearchParams) -> SearchReply:
    """`memory.search`: hits best first, how many there are, and how to get the rest."""
    ranker = chosen(call, params.ranker)
    stores = await call.stores(params, params.scope)
    ranked = Ranked(stores, params.query, ranker)
    found = list(ranked.served(params.limit, params.offset))
    if ranked.edited:
        for store in ranked.edited:
            await store.try_reconcile()
        ranked = Ranked(stores, params.query, ranker)
        found = list(ranked.served(params.limit, params.offset))
    hits = [as_hit(store, entry) for store, entry, _ in found]
    if params.explain:
        hits = [await explained(hit, ranked.ranking, one) for hit, one in zip(hits, found, strict=True)]
    return SearchReply(
        hits=tuple(hits), total=ranked.total, notice="\n".join(notices(params, len(hits), ranked)) or None
    )


async def explained(hit: Hit, ranking: Ranking, found: Found) -> Hit:
    """A hit with its score and what that sums up, as its text tells; of a note that went meanwhile with nothing."""
    try:
        raw, entry = await found.store.current(found.entry)
    except NotFound:
        return structs.replace(hit, score=found.score, explain=())
    parsed = note.parse(entry.name, raw)
    gave = bm25.explain(ranking, entry.name, forms.words(entry.name, parsed.hook, parsed.body))
    told = (Gave(word=one.word, kind=one.kind, field=one.field, score=one.score, form=one.form) for one in gave)
    return structs.replace(hit, score=found.score, explain=tuple(told))


def chosen(call: Call, ranker: str | None) -> str:
    """The ranker a caller asks for, else the configured one. Errors: Refused (field `ranker`) when there is none."""
    if ranker is not None and ranker not in RANKERS:
        choices = ", ".join(RANKERS)
        raise Refused("ranker", f"ranker: one of {choices}; leave it out for the configured one", bound=choices)
    return ranker or call.library.config.search_ranker


def as_hit(store: LiveStore, entry: Entry) -> Hit:
    """A note as a hit shows it."""
    hook, masked = shown_hook(entry)
    return Hit(name=entry.name, description=hook, scope=store.scope, redacted=masked)


def notices(params: SearchParams, count: int, ranked: Ranked) -> Iterator[str]:
    """How to get the rest of a cut list, and what the disk kept from it."""
    total = ranked.total
    if params.offset + count < total:
        words = quoted(params.query)
        yield f"[{count} of {total} notes · limit {params.limit} · memory.search({words}, limit={total}) for all]"
    if ranked.unseen:
        notes = "1 note" if ranked.unseen == 1 else f"{ranked.unseen} notes"
        yield f"[{notes} left out: the disk does not let them be looked at · memory.check for the reason]"


def quoted(query: str) -> str:
    """A query as a notice holds it, JSON-quoted and masked."""
    return _quote(shown(query)[0])
