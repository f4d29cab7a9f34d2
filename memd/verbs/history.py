"""Past sessions. Law: what is found here is of the caller's own repository, and no key is in it.

SPEC section 11, `history.search` and `history.read`. Root sessions only.
"""

from collections.abc import Iterator

from memd.errors import NotFound
from memd.history import SNIPPET_MAX, Hit, address
from memd.live import Answer
from memd.protocol import HistoryHit, HistoryReadParams, HistoryReadReply, HistorySearchParams, HistorySearchReply
from memd.verbs.call import Call, shown
from memd.verbs.ranking import chosen, quoted


async def search(call: Call, params: HistorySearchParams) -> HistorySearchReply:
    """`history.search`: entries best first, how many there are, and how to get the rest."""
    ranker = chosen(call, params.ranker)
    store = call.place(params).repo
    answer = await call.library.history.search(store, params.query, params.limit, params.offset, ranker)
    return HistorySearchReply(
        hits=tuple(map(as_hit, answer.page.hits)),
        total=answer.page.total,
        notice="\n".join(notices(params, answer)) or None,
    )


async def read(call: Call, params: HistoryReadParams) -> HistoryReadReply:
    """`history.read`: an entry's whole text. Errors: NotFound, also for what another repository holds."""
    found = await call.library.history.read(call.place(params).repo, params.url)
    if found is None:
        raise NotFound("no entry of that address in this repository's sessions; history.search gives addresses")
    session, entry = found
    text, masked = shown(entry.text)
    return HistoryReadReply(
        session=session,
        entry_id=entry.id,
        type=entry.kind,
        text=text,
        url=address(session, entry.id),
        redacted=masked,
    )


def as_hit(hit: Hit) -> HistoryHit:
    """An entry as a hit shows it."""
    return HistoryHit(
        session=hit.session,
        entry_id=hit.entry,
        type=hit.kind,
        snippet=hit.snippet.text,
        url=hit.url,
        cut=hit.snippet.cut,
        redacted=hit.snippet.redacted,
    )


def notices(params: HistorySearchParams, answer: Answer) -> Iterator[str]:
    """What a page leaves out: entries, parts of texts, directories nobody knows, what is not read yet."""
    page, progress = answer
    reached = params.offset + len(page.hits)
    if reached < page.total:
        call = f"history.search({quoted(params.query)}, limit={params.limit}, offset={reached})"
        yield f"[{len(page.hits)} of {page.total} entries · limit {params.limit} · {call} for the next page]"
    cut = next((hit for hit in page.hits if hit.snippet.cut), None)
    if cut is not None:
        yield f'[snippets cut at {SNIPPET_MAX} characters · history.read("{cut.url}") for a whole entry]'
    if page.lost:
        directories = "1 directory" if page.lost == 1 else f"{page.lost} directories"
        yield f"[{directories} of sessions not searched: the checkout is gone, its repository unknown]"
    if page.unread:
        yield f"[{page.unread} of the directories and files of sessions did not read and were not searched]"
    if progress.read < progress.transcripts:
        yield f"[{progress.read} of {progress.transcripts} transcripts read so far · ask again for the rest]"
