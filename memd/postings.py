"""The ranking of very many short texts. Law: the scores are those of `bm25`, and what is kept holds no word.

A `Shelf` is the index of one file's texts: columns of numbers, terms as sorted 64-bit hashes. It takes a part of the
memory of an index that holds its words, and can be written to disk as it is, where SPEC 11 wants no text. It is built
once and merged when more comes; texts have no names here, only their place, and one field. One shelf serves both
rankers: a form has no postings, it is told which terms have it. Pure: numpy and msgspec. SPEC sections 6 and 11.
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from memd import bm25, forms
from memd.bm25 import K1, B, Held
from memd.forms import Asked, Words
from memd.tokens import spread_keys

_Array = np.ndarray[Any, np.dtype[Any]]
_TERM = np.dtype("<u8")
_PLACE = np.dtype("<i4")
_COUNT = np.dtype("<u2")
_LENGTH = np.dtype("<u4")
_COUNT_MAX = 65_535
_TIMES = np.dtype("u1")
_TIMES_MAX = 255
_ODD = np.uint64(0x9E3779B97F4A7C15)  # spreads one number over the other


class Shelf(msgspec.Struct, frozen=True, eq=False):
    """The index of texts 0 to n: the postings of term k are `starts[k]:starts[k + 1]` of `places` and `counts`.

    A term is a word, a hump or a spread key. `forms`, sorted, are those that term `owners` has, so many `times`; a
    term that is its own and only form is left out of them.
    """

    lengths: _Array  # in words
    sizes: _Array  # in forms
    terms: _Array
    starts: _Array
    places: _Array
    counts: _Array
    forms: _Array
    owners: _Array
    times: _Array

    def __len__(self) -> int:
        return len(self.lengths)


class Packed(msgspec.Struct, frozen=True, array_like=True):
    """A shelf as bytes: what a cache writes. It holds no word of any text."""

    lengths: bytes
    sizes: bytes
    terms: bytes
    starts: bytes
    places: bytes
    counts: bytes
    forms: bytes
    owners: bytes
    times: bytes


def build(texts: Iterable[Words]) -> Shelf:
    """The shelf of these texts, each given as its words and humps in order."""
    numbers = _Numbers()
    lengths: list[int] = []
    distinct: list[int] = []
    keys: list[int] = []
    counts: list[int] = []
    for text in texts:
        held = _counted(text)
        lengths.append(len(text.tokens))
        distinct.append(len(held))
        keys.extend(map(numbers.__getitem__, held))
        counts.extend(held.values())
    places = np.repeat(np.arange(len(lengths), dtype=_PLACE), np.array(distinct, dtype=np.int64))
    terms = np.array(list(map(hashed, numbers)), _TERM)
    numbered, often = np.array(keys, np.int64), np.array(counts, np.int64)
    fanout = np.array([len(forms.forms(key)) for key in numbers], np.int64)
    pairs = [
        (hashed(form), term, min(times, _TIMES_MAX))
        for key, term in zip(numbers, terms.tolist(), strict=True)
        if (found := forms.forms(key)) != (key,)
        for form, times in Counter(found).items()
    ]
    return _sorted(
        np.array(lengths, _LENGTH),
        np.bincount(places, often * fanout[numbered], len(lengths)).astype(_LENGTH),
        terms[numbered],
        places,
        np.minimum(often, _COUNT_MAX).astype(_COUNT),
        _Pairs(
            np.array([form for form, _, _ in pairs], _TERM),
            np.array([term for _, term, _ in pairs], _TERM),
            np.array([times for _, _, times in pairs], _TIMES),
        ),
    )


def merge(shelves: Sequence[Shelf]) -> Shelf:
    """One shelf of the texts of all, the first one's first."""
    if len(shelves) == 1:
        return shelves[0]
    before = np.cumsum([0, *(len(shelf) for shelf in shelves)])
    return _sorted(
        _joined([shelf.lengths for shelf in shelves], _LENGTH),
        _joined([shelf.sizes for shelf in shelves], _LENGTH),
        _joined([np.repeat(shelf.terms, np.diff(shelf.starts)) for shelf in shelves], _TERM),
        _joined([shelf.places + first for shelf, first in zip(shelves, before, strict=False)], _PLACE),
        _joined([shelf.counts for shelf in shelves], _COUNT),
        _Pairs(
            _joined([shelf.forms for shelf in shelves], _TERM),
            _joined([shelf.terms[shelf.owners] for shelf in shelves], _TERM),
            _joined([shelf.times for shelf in shelves], _TIMES),
        ),
    )


def pack(shelf: Shelf) -> Packed:
    """The shelf as bytes, the same on every machine."""
    return Packed(*(getattr(shelf, name).tobytes() for name in Packed.__struct_fields__))


def unpack(packed: Packed) -> Shelf:
    """The shelf that was packed. Errors: ValueError for bytes that are none."""
    shelf = Shelf(
        lengths=np.frombuffer(packed.lengths, _LENGTH),
        sizes=np.frombuffer(packed.sizes, _LENGTH),
        terms=np.frombuffer(packed.terms, _TERM),
        starts=np.frombuffer(packed.starts, _PLACE),
        places=np.frombuffer(packed.places, _PLACE),
        counts=np.frombuffer(packed.counts, _COUNT),
        forms=np.frombuffer(packed.forms, _TERM),
        owners=np.frombuffer(packed.owners, _PLACE),
        times=np.frombuffer(packed.times, _TIMES),
    )
    starts = shelf.starts
    whole = (
        len(shelf.sizes) == len(shelf)
        and len(starts) == len(shelf.terms) + 1
        and starts[0] == 0
        and starts[-1] == len(shelf.places) == len(shelf.counts)
        and bool((np.diff(starts) > 0).all())
        and bool((shelf.terms[1:] > shelf.terms[:-1]).all())
        and _are_places(shelf.places, len(shelf))
        and len(shelf.forms) == len(shelf.owners) == len(shelf.times)
        and bool((shelf.forms[1:] >= shelf.forms[:-1]).all())
        and _are_places(shelf.owners, len(shelf.terms))
    )
    if not whole:
        raise ValueError("not the bytes of a shelf")
    return shelf


class Ranking(msgspec.Struct, frozen=True, eq=False):
    """What `rank` found: `total` texts scored above 0."""

    total: int
    scores: _Array  # of every text of every shelf, in order
    ends: _Array  # of each shelf in `scores`

    def top(self, limit: int, offset: int = 0) -> list[tuple[int, int, float]]:
        """At most `limit` hits after the first `offset`, best first, as shelf, place and score; ties in order."""
        end = min(self.total, offset + limit)
        if end <= offset:
            return []
        found = self.scores.nonzero()[0]
        if end < self.total:
            scores = self.scores[found]
            found = found[scores >= np.partition(scores, -end)[-end]]
        best = found[np.argsort(-self.scores[found], kind="stable")][offset:end]
        shelves = np.searchsorted(self.ends, best, "right")
        firsts = np.concatenate(([0], self.ends))[shelves]
        return list(zip(shelves.tolist(), (best - firsts).tolist(), self.scores[best].tolist(), strict=True))


def rank(
    asked: Iterable[Asked], shelves: Sequence[Shelf], struck: Mapping[int, Collection[int]], *, is_rich: bool = False
) -> Ranking:
    """Scores the texts of all shelves as one corpus against what is asked of them, by `plain` or `rich` (SPEC 6).

    `asked` comes from `forms.plain` or `forms.query`. `struck` names texts that are not there, by shelf and place:
    they count in nothing and are no hit.
    """
    asked = list(asked)
    ends = np.cumsum([len(shelf) for shelf in shelves], dtype=np.int64)
    lengths = _joined([shelf.sizes if is_rich else shelf.lengths for shelf in shelves], _LENGTH)
    alive = np.ones(len(lengths), bool)
    for at, places in struck.items():
        alive[ends[at] - len(shelves[at]) + np.array(list(places), np.int64)] = False
    whole = int(lengths[alive].sum())
    if not asked or not whole:
        return Ranking(0, np.zeros(len(lengths)), ends)
    total = int(alive.sum())
    weigh = bm25.weigh if is_rich else bm25.weigh_plainly
    kept = weigh(list(_held(asked, shelves, alive, ends)), total)
    if not kept:
        return Ranking(0, np.zeros(len(lengths)), ends)
    # All postings in one go, in the query's order: equal texts tie to the last bit.
    texts = np.concatenate([texts for _, (texts, _) in kept])
    counts = np.concatenate([counts for _, (_, counts) in kept])
    each = [len(texts) for _, (texts, _) in kept]
    weights = np.repeat([weighty.weight for weighty, _ in kept], each)
    above = np.repeat([weighty.above for weighty, _ in kept], each)
    norms = (1 - B + B * lengths[texts] / (whole / total)) * K1
    scores = np.bincount(texts, weights * counts / (counts + norms) + above, len(lengths))
    return Ranking(int(np.count_nonzero(scores)), scores, ends)


def repeated(shelves: Sequence[Sequence[tuple["array[int]", "array[int]"]]]) -> dict[int, frozenset[int]]:
    """The places, by shelf, of texts that stand before in the same order: equal in both of their 64-bit numbers.

    A shelf is given as the columns of its members, in the order of their places.
    """
    sizes = [sum(len(first) for first, _ in members) for members in shelves]
    pairs = [pair for members in shelves for pair in members]
    both = _joined([np.array(first, _TERM) * _ODD + np.array(second, _TERM) for first, second in pairs], _TERM)
    _, firsts = np.unique(both, return_index=True)
    again = np.ones(len(both), bool)
    again[firsts] = False
    found: dict[int, frozenset[int]] = {}
    start = 0
    for at, size in enumerate(sizes):
        places = again[start : start + size].nonzero()[0].tolist()
        if places:
            found[at] = frozenset(places)
        start += size
    return found


@lru_cache(maxsize=1 << 15)
def hashed(key: str) -> int:
    """The 64 bits a term is filed under: two terms share them once in four billion vocabularies."""
    return int.from_bytes(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class _Numbers(dict[str, int]):
    """Numbers keys from 0 in the order they are first asked for."""

    def __missing__(self, key: str) -> int:
        number = self[key] = len(self)
        return number


def _counted(text: Words) -> Counter[str]:
    counts = Counter(text.tokens)
    counts.update(text.humps)
    for token, count in list(counts.items()):
        for key in spread_keys(token):
            counts[key] += count
    return counts


class _Pairs(NamedTuple):
    """Forms, the terms that have them, and how many times, in any order; a pair may be there again."""

    forms: _Array
    terms: _Array
    times: _Array


def _sorted(lengths: _Array, sizes: _Array, terms: _Array, places: _Array, counts: _Array, pairs: _Pairs) -> Shelf:
    """A shelf of postings given in the order of their places."""
    order = np.argsort(terms, kind="stable")
    terms = terms[order]
    firsts = _firsts(terms).nonzero()[0]
    distinct = terms[firsts]
    by_form = np.lexsort((pairs.terms, pairs.forms))
    of_forms, owning = pairs.forms[by_form], pairs.terms[by_form]
    fresh = _firsts(of_forms) | _firsts(owning)
    return Shelf(
        lengths=lengths,
        sizes=sizes,
        terms=distinct,
        starts=np.append(firsts, len(terms)).astype(_PLACE),
        places=places[order],
        counts=counts[order],
        forms=of_forms[fresh],
        owners=np.searchsorted(distinct, owning[fresh]).astype(_PLACE),
        times=pairs.times[by_form][fresh],
    )


def _firsts(column: _Array) -> _Array:
    """Where a number stands that is not the one before it."""
    return np.concatenate((np.ones(min(1, len(column)), bool), column[1:] != column[:-1]))


def _are_places(column: _Array, end: int) -> bool:
    return not len(column) or (int(column.min()) >= 0 and int(column.max()) < end)


def _joined(columns: Sequence[_Array], kind: np.dtype[Any]) -> _Array:
    return np.concatenate(columns).astype(kind, copy=False) if columns else np.zeros(0, kind)


class _Spans:
    """The postings of one thing that is asked for, collected shelf by shelf."""

    def __init__(self) -> None:
        self.texts: list[_Array] = []
        self.counts: list[_Array] = []

    def add(self, shelf: Shelf, first: int, owners: Sequence[tuple[int, int]]) -> None:
        """Take in what a shelf holds of some of its terms, each counted so many times."""
        spans = [(slice(*shelf.starts[term : term + 2].tolist()), times) for term, times in owners]
        if len(spans) == 1:
            ((span, times),) = spans
            self.texts.append(shelf.places[span] + np.int64(first))
            self.counts.append(shelf.counts[span].astype(np.float64) * times)
            return
        places = np.concatenate([shelf.places[span] for span, _ in spans])
        counts = np.concatenate([shelf.counts[span].astype(np.float64) * times for span, times in spans])
        summed = np.bincount(places, counts)
        held = summed.nonzero()[0]
        self.texts.append(held + np.int64(first))
        self.counts.append(summed[held])


def _held(
    asked: Sequence[Asked], shelves: Sequence[Shelf], alive: _Array, ends: _Array
) -> Iterator[Held[tuple[_Array, _Array]]]:
    """What of the asked some living text holds, and its postings in all shelves."""
    keys = np.array([hashed(ask.key) for ask in asked], _TERM)
    is_form = np.array([ask.is_form for ask in asked], bool)
    # A word that is its own and only form stands for that form.
    is_term = np.array([not ask.is_form or ask.is_own for ask in asked], bool)
    spans = [_Spans() for _ in asked]
    for shelf, end in zip(shelves, ends.tolist(), strict=True):
        for which, owners in _owners(shelf, keys, is_form, is_term):
            spans[which].add(shelf, end - len(shelf), owners)
    for ask, span in zip(asked, spans, strict=True):
        if not span.texts:
            continue
        texts = np.concatenate(span.texts)
        living = alive[texts]
        if living.any():
            texts = texts[living]
            yield Held(ask, len(texts), (texts, np.concatenate(span.counts)[living]))


def _owners(
    shelf: Shelf, keys: _Array, is_form: _Array, is_term: _Array
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """The terms of a shelf that hold each of some keys, by its place, and how many times."""
    terms = np.searchsorted(shelf.terms, keys)
    itself = is_term & (shelf.terms.take(terms, mode="clip") == keys) if len(shelf.terms) else is_term & False
    begins = np.searchsorted(shelf.forms, keys)
    ends = np.where(is_form, np.searchsorted(shelf.forms, keys, "right"), begins)
    for which in (itself | (ends > begins)).nonzero()[0].tolist():
        span = slice(int(begins[which]), int(ends[which]))
        owners = list(zip(shelf.owners[span].tolist(), shelf.times[span].tolist(), strict=True))
        yield which, [(int(terms[which]), 1), *owners] if itself[which] else owners


EMPTY = build(())
"""The shelf of no text."""
