"""The ranking of very many short texts. Law: the scores are those of `bm25`, and what is kept holds no word.

A `Shelf` is the index of one file's texts: columns of numbers, terms as sorted 64-bit hashes. It takes a part of the
memory of an index that holds its words, and can be written to disk as it is, where SPEC 11 wants no text. It is built
once and merged when more comes; texts have no names here, only their place. Pure: numpy and msgspec. SPEC sections 6
and 11.
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from memd.bm25 import K1, B, idf
from memd.tokens import Term, spread_keys

_Array = np.ndarray[Any, np.dtype[Any]]
_TERM = np.dtype("<u8")
_PLACE = np.dtype("<i4")
_COUNT = np.dtype("<u2")
_LENGTH = np.dtype("<u4")
_COUNT_MAX = 65_535
_ODD = np.uint64(0x9E3779B97F4A7C15)  # spreads one number over the other


class Shelf(msgspec.Struct, frozen=True, eq=False):
    """The index of texts 0 to n: the postings of term k are `starts[k]:starts[k + 1]` of `places` and `counts`."""

    lengths: _Array
    terms: _Array
    starts: _Array
    places: _Array
    counts: _Array
    tokens: int  # of all its texts, repeats counted

    def __len__(self) -> int:
        return len(self.lengths)


class Packed(msgspec.Struct, frozen=True, array_like=True):
    """A shelf as bytes: what a cache writes. It holds no word of any text."""

    lengths: bytes
    terms: bytes
    starts: bytes
    places: bytes
    counts: bytes


def build(texts: Iterable[Sequence[str]]) -> Shelf:
    """The shelf of these texts, each given as its tokens in order."""
    lengths: list[int] = []
    sizes: list[int] = []
    terms: list[int] = []
    counts: list[int] = []
    for tokens in texts:
        held = _counted(tokens)
        lengths.append(len(tokens))
        sizes.append(len(held))
        terms.extend(map(hashed, held))
        counts.extend(held.values())
    places = np.repeat(np.arange(len(lengths), dtype=_PLACE), np.array(sizes, dtype=np.int64))
    return _sorted(
        np.array(lengths, _LENGTH),
        np.array(terms, _TERM),
        places,
        np.minimum(np.array(counts, np.int64), _COUNT_MAX).astype(_COUNT),
    )


def merge(shelves: Sequence[Shelf]) -> Shelf:
    """One shelf of the texts of all, the first one's first."""
    if len(shelves) == 1:
        return shelves[0]
    before = np.cumsum([0, *(len(shelf) for shelf in shelves)])
    return _sorted(
        _joined([shelf.lengths for shelf in shelves], _LENGTH),
        _joined([np.repeat(shelf.terms, np.diff(shelf.starts)) for shelf in shelves], _TERM),
        _joined([shelf.places + first for shelf, first in zip(shelves, before, strict=False)], _PLACE),
        _joined([shelf.counts for shelf in shelves], _COUNT),
    )


def pack(shelf: Shelf) -> Packed:
    """The shelf as bytes, the same on every machine."""
    return Packed(
        lengths=shelf.lengths.tobytes(),
        terms=shelf.terms.tobytes(),
        starts=shelf.starts.tobytes(),
        places=shelf.places.tobytes(),
        counts=shelf.counts.tobytes(),
    )


def unpack(packed: Packed) -> Shelf:
    """The shelf that was packed. Errors: ValueError for bytes that are none."""
    lengths = np.frombuffer(packed.lengths, _LENGTH)
    shelf = Shelf(
        lengths=lengths,
        terms=np.frombuffer(packed.terms, _TERM),
        starts=np.frombuffer(packed.starts, _PLACE),
        places=np.frombuffer(packed.places, _PLACE),
        counts=np.frombuffer(packed.counts, _COUNT),
        tokens=int(lengths.sum()),
    )
    starts, places = shelf.starts, shelf.places
    whole = (
        len(starts) == len(shelf.terms) + 1
        and starts[0] == 0
        and starts[-1] == len(places) == len(shelf.counts)
        and bool((np.diff(starts) > 0).all())
        and bool((shelf.terms[1:] > shelf.terms[:-1]).all())
        and (not len(places) or (int(places.min()) >= 0 and int(places.max()) < len(shelf)))
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


def rank(terms: Iterable[Term], shelves: Sequence[Shelf], struck: Mapping[int, Collection[int]]) -> Ranking:
    """Scores the texts of all shelves as one corpus against the terms, each counted once (SPEC 6).

    `struck` names texts that are not there, by shelf and place: they count in nothing and are no hit.
    """
    wanted = np.array(list(dict.fromkeys(hashed(term.key) for term in terms)), _TERM)
    ends = np.cumsum([len(shelf) for shelf in shelves], dtype=np.int64)
    lengths = _joined([shelf.lengths for shelf in shelves], _LENGTH)
    alive = np.ones(len(lengths), bool)
    for at, places in struck.items():
        alive[ends[at] - len(shelves[at]) + np.array(list(places), np.int64)] = False
    tokens = int(lengths[alive].sum())
    if not len(wanted) or not tokens:
        return Ranking(0, np.zeros(len(lengths)), ends)
    found = [_postings(shelf, wanted, int(end) - len(shelf)) for shelf, end in zip(shelves, ends, strict=True)]
    # All postings in one go, by shelf and then in the query's order: equal texts tie to the last bit.
    texts = np.concatenate([texts for texts, _, _ in found])
    living = alive[texts]
    texts = texts[living]
    counts = np.concatenate([counts for _, counts, _ in found])[living].astype(np.float64)
    which = np.concatenate([which for _, _, which in found])[living]
    held = np.bincount(which, minlength=len(wanted))
    total = int(alive.sum())
    weights = np.array([idf(total, frequency) for frequency in held.tolist()])
    norms = (1 - B + B * lengths[texts] / (tokens / total)) * K1
    scores = np.bincount(texts, weights[which] * counts / (counts + norms), len(lengths))
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


def _counted(tokens: Sequence[str]) -> Counter[str]:
    counts = Counter(tokens)
    for token, count in list(counts.items()):
        for key in spread_keys(token):
            counts[key] += count
    return counts


def _sorted(lengths: _Array, terms: _Array, places: _Array, counts: _Array) -> Shelf:
    """A shelf of postings given in the order of their places."""
    order = np.argsort(terms, kind="stable")
    terms = terms[order]
    firsts = np.concatenate((np.ones(min(1, len(terms)), bool), terms[1:] != terms[:-1])).nonzero()[0]
    return Shelf(
        lengths=lengths,
        terms=terms[firsts],
        starts=np.append(firsts, len(terms)).astype(_PLACE),
        places=places[order],
        counts=counts[order],
        tokens=int(lengths.sum()),
    )


def _joined(columns: Sequence[_Array], kind: np.dtype[Any]) -> _Array:
    return np.concatenate(columns).astype(kind, copy=False) if columns else np.zeros(0, kind)


def _postings(shelf: Shelf, wanted: _Array, first: int) -> tuple[_Array, _Array, _Array]:
    """The texts that hold wanted terms, counted from `first`; how often; and which term, by its place in `wanted`."""
    at = np.searchsorted(shelf.terms, wanted)
    spans = [
        (which, int(shelf.starts[number]), int(shelf.starts[number + 1]))
        for which, number in enumerate(at.tolist())
        if number < len(shelf.terms) and shelf.terms[number] == wanted[which]
    ]
    if not spans:
        return _NONE, _NO_COUNT, _NONE
    return (
        np.concatenate([shelf.places[start:end] for _, start, end in spans]) + np.int64(first),
        np.concatenate([shelf.counts[start:end] for _, start, end in spans]),
        np.repeat([which for which, _, _ in spans], [end - start for _, start, end in spans]),
    )


_NONE = np.zeros(0, np.int64)
_NO_COUNT = np.zeros(0, _COUNT)

EMPTY = build(())
"""The shelf of no text."""
