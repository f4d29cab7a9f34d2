"""The ranking. Law: one set of notes gives one answer, however it came about, and for ever.

A `Snapshot` is one store's index: a few segments of array postings (documents and counts of a term), each at
least eight times as long as the next, and a short tail of notes not yet in one. A change makes a new snapshot
that shares every segment it can: new notes go to the tail, replaced ones are struck out in a copied mask, a
full tail becomes a segment, and neighbours of like size are merged. So a save costs the note, not the store.

Postings hold counts and lengths, never scores, because one more note changes every score: N, document
frequencies and the mean length are summed over the living notes of all snapshots when a query comes, as one
corpus. Pure: numpy and msgspec. SPEC section 6.
"""

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from itertools import accumulate, chain, compress
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from memd.tokens import Term, spread_keys

K1 = 1.2
B = 0.75

_TAIL = 32  # notes; more of them and looking through the tail costs a query more than a segment would
_RATIO = 8  # a segment is at least this many times as long as the one after it

_Floats = np.ndarray[Any, np.dtype[np.float64]]
_Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
_Mask = np.ndarray[Any, np.dtype[np.bool_]]


class Scored(msgspec.Struct, frozen=True):
    """A hit: `store` is the snapshot's place in the list given to `rank`; `score` is above 0."""

    store: int
    name: str
    score: float


class _Doc(msgspec.Struct, frozen=True):
    """One note: how often it holds each key (tokens and spread keys), and its length in tokens."""

    counts: Mapping[str, int]
    length: int


class _Segment(msgspec.Struct, frozen=True, eq=False):
    """Postings of many notes: those of key number k are `starts[k]:starts[k + 1]` of `docs` and `counts`."""

    names: tuple[str, ...]
    places: Mapping[str, int]  # name -> its document, the place in `names` and `lengths`
    lengths: _Ints
    keys: Mapping[str, int]
    starts: _Ints
    docs: _Ints
    counts: _Ints


class _Part(msgspec.Struct, frozen=True, eq=False):
    """A segment as one snapshot sees it: `alive` masks the notes since struck out, None while all live."""

    segment: _Segment
    alive: _Mask | None
    notes: int  # that live
    tokens: int  # of the notes that live


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """One store's index at one moment; it never changes, so a search needs no lock. Begin with `EMPTY`."""

    EMPTY: ClassVar["Snapshot"]

    parts: tuple[_Part, ...] = ()
    tail: Mapping[str, _Doc] = msgspec.field(default_factory=dict)

    def __len__(self) -> int:
        return sum(part.notes for part in self.parts) + len(self.tail)

    @property
    def names(self) -> list[str]:
        """The names of its notes, sorted; made at each call."""
        return sorted(chain(self.tail, *(_living_names(part) for part in self.parts)))

    @property
    def tokens(self) -> int:
        """How many tokens its notes hold, repeats counted."""
        return sum(part.tokens for part in self.parts) + sum(doc.length for doc in self.tail.values())

    def replace(self, put: Mapping[str, Sequence[str]], drop: Collection[str] = ()) -> "Snapshot":
        """A snapshot in which the notes of `put` (name -> tokens) are new or changed, those of `drop` gone.

        A name that is in both is put; one to drop that is not there is passed over.
        """
        gone = {*put, *drop}
        parts = [_without(part, gone) for part in self.parts]
        tail = {name: doc for name, doc in self.tail.items() if name not in gone}
        fresh = ((name, _doc(tokens)) for name, tokens in put.items())
        if len(tail) + len(put) <= _TAIL:
            tail.update(fresh)
        else:
            parts.append(_whole(_build(chain(tail.items(), fresh))))
            tail = {}
        return Snapshot(tuple(_settled(parts)), tail)


Snapshot.EMPTY = Snapshot()


class Ranking(msgspec.Struct, frozen=True, eq=False):
    """What `rank` found: `total` notes scored above 0."""

    total: int
    scores: _Floats  # of every note of every piece, in order; 0 for what is no hit
    pieces: Sequence[tuple[int, Sequence[str]]]  # (store, names) of a stretch of `scores`
    ends: Sequence[int]  # of each piece in `scores`

    def top(self, limit: int | None = None, offset: int = 0) -> list[Scored]:
        """At most `limit` hits after the first `offset`, best first; ties by store, then by name (SPEC 6)."""
        end = self.total if limit is None else min(self.total, offset + limit)
        if end <= offset:
            return []
        if end < self.total:
            # All that tie with the last place stay in: names decide which of them has it.
            cutoff = np.partition(self.scores, -end)[-end]
            found = (self.scores >= cutoff).nonzero()[0]
        else:
            found = self.scores.nonzero()[0]
        pieces = np.searchsorted(self.ends, found, "right").tolist()
        places = zip(self.scores[found].tolist(), found.tolist(), pieces, strict=True)
        best = sorted((-score, *self._where(at, piece)) for score, at, piece in places)
        return [Scored(store, name, -score) for score, store, name in best[offset:end]]

    def _where(self, at: int, piece: int) -> tuple[int, str]:
        """The store and the name of the note at a place of `scores`."""
        store, names = self.pieces[piece]
        return store, names[at - self.ends[piece]]  # below 0: counted from the piece's end


def rank(terms: Iterable[Term], snapshots: Sequence[Snapshot]) -> Ranking:
    """Scores the notes of all snapshots, as one corpus, against the terms, each counted once (SPEC 6).

    The order of `snapshots` is the order of the stores in a tie.
    """
    keys = list(dict.fromkeys(term.key for term in terms))
    notes = sum(map(len, snapshots))
    tokens = sum(snapshot.tokens for snapshot in snapshots)
    if not keys or not tokens:
        return Ranking(0, np.zeros(0), (), ())
    # Each key is looked up once in each part, to be counted and then to be scored.
    found = [[_held(part, keys) for part in snapshot.parts] for snapshot in snapshots]
    frequencies = [sum(held.frequencies[at] for helds in found for held in helds) for at in range(len(keys))]
    for snapshot in snapshots:
        for doc in snapshot.tail.values():
            for at, key in enumerate(keys):
                frequencies[at] += key in doc.counts
    weights = [idf(notes, frequency) for frequency in frequencies]
    query = [(key, weight) for key, weight in zip(keys, weights, strict=True) if weight > 0]
    mean = tokens / notes
    pieces: list[tuple[int, Sequence[str]]] = []
    scores: list[_Floats] = []
    for store, (snapshot, helds) in enumerate(zip(snapshots, found, strict=True)):
        for part, held in zip(snapshot.parts, helds, strict=True):
            pieces.append((store, part.segment.names))
            scores.append(_score_part(part, held, weights, mean))
        if snapshot.tail:
            pieces.append((store, list(snapshot.tail)))
            scores.append(np.array([_score_doc(doc, query, mean) for doc in snapshot.tail.values()], np.float64))
    all_scores = np.concatenate(scores)
    ends = list(accumulate(len(names) for _, names in pieces))
    return Ranking(int(np.count_nonzero(all_scores)), all_scores, pieces, ends)


def holding(snapshot: Snapshot, keys: Set[str], least: int) -> list[str]:
    """The living notes, by name, that hold at least `least` of these keys: what nearly repeats a text is one."""
    found = [name for name, doc in snapshot.tail.items() if len(doc.counts.keys() & keys) >= least]
    for part in snapshot.parts:
        postings = [_postings(part.segment, key)[0] for key in keys if key in part.segment.keys]
        if len(postings) < least or not postings:
            continue
        held = np.bincount(np.concatenate(postings), minlength=len(part.segment.names)) >= least
        if part.alive is not None:
            held &= part.alive
        found += [part.segment.names[at] for at in held.nonzero()[0].tolist()]
    return sorted(found)


def idf(notes: int, frequency: int) -> float:
    """Lucene's inverse document frequency; 0 for a term no note holds, which then is left out."""
    if frequency == 0:
        return 0.0
    return math.log(1 + (notes - frequency + 0.5) / (frequency + 0.5))


class _Held(NamedTuple):
    """What a part holds of each of some keys: the postings, and how many living notes they are of."""

    postings: list[tuple[_Ints, _Ints]]
    frequencies: list[int]


def _held(part: _Part, keys: Iterable[str]) -> _Held:
    postings = [_postings(part.segment, key) for key in keys]
    alive = part.alive
    if alive is None:
        return _Held(postings, [len(docs) for docs, _ in postings])
    return _Held(postings, [int(np.count_nonzero(alive[docs])) for docs, _ in postings])


def _postings(segment: _Segment, key: str) -> tuple[_Ints, _Ints]:
    """The documents that hold the key, dead ones too, and how often each does."""
    number = segment.keys.get(key)
    if number is None:
        return segment.docs[:0], segment.counts[:0]
    span = slice(segment.starts[number], segment.starts[number + 1])
    return segment.docs[span], segment.counts[span]


# The next two compute one formula by the same operations in the same order, so that two equal notes tie to
# the last bit wherever they lie.


def _score_part(part: _Part, held: _Held, weights: Sequence[float], mean: float) -> _Floats:
    segment = part.segment
    sizes = [len(docs) for docs, _ in held.postings]
    if not any(sizes):
        return np.zeros(len(segment.names))
    # All postings in one go: a call of numpy costs more than most postings do. A document's terms are added up in
    # the query's order, as `_score_doc` adds them.
    docs = np.concatenate([docs for docs, _ in held.postings])
    tf = np.concatenate([counts for _, counts in held.postings]).astype(np.float64)
    weight = np.array(weights).repeat(sizes)
    norms = (1 - B + B * segment.lengths[docs] / mean) * K1
    scores: _Floats = np.bincount(docs, weight * tf / (tf + norms), len(segment.names)).astype(np.float64, copy=False)
    return scores if part.alive is None else scores * part.alive


def _score_doc(doc: _Doc, query: Iterable[tuple[str, float]], mean: float) -> float:
    score = 0.0
    norm = (1 - B + B * doc.length / mean) * K1
    for key, weight in query:
        tf = doc.counts.get(key)
        if tf:
            score += weight * tf / (tf + norm)
    return score


def _doc(tokens: Sequence[str]) -> _Doc:
    counts = Counter(tokens)
    for token, count in list(counts.items()):
        if not token.isascii():  # asked here, since nearly every token is
            for key in spread_keys(token):
                counts[key] += count
    return _Doc(dict(counts), len(tokens))


def _build(docs: Iterable[tuple[str, _Doc]]) -> _Segment:
    """One segment of these notes, read one by one: a whole store's counts as dicts would take 80 MB."""
    numbers = _Numbers()
    names: list[str] = []
    lengths, sizes, keys, counts = array("q"), array("q"), array("i"), array("q")
    for name, doc in docs:
        names.append(name)
        lengths.append(doc.length)
        sizes.append(len(doc.counts))
        keys.extend(map(numbers.__getitem__, doc.counts))
        counts.extend(doc.counts.values())
    owners = np.repeat(np.arange(len(names), dtype=np.int32), np.array(sizes))
    return _pack(tuple(names), np.array(lengths), numbers, np.array(keys), owners, np.array(counts))


def _merge(parts: Sequence[_Part]) -> _Segment:
    """One segment of the living notes of these parts."""
    numbers = _Numbers()
    names: list[str] = []
    lengths: list[_Ints] = []
    postings: list[tuple[_Ints, _Ints, _Ints]] = []
    for part in parts:
        segment = part.segment
        alive = np.ones(len(segment.names), np.bool_) if part.alive is None else part.alive
        kept = alive[segment.docs]
        keys = np.repeat(np.arange(len(segment.keys)), np.diff(segment.starts))[kept]
        used = np.bincount(keys, minlength=len(segment.keys)) > 0
        renumber = np.zeros(len(segment.keys), np.int32)
        renumber[used] = np.fromiter(map(numbers.__getitem__, compress(segment.keys, used.tolist())), np.int32)
        replace = np.cumsum(alive) - 1 + len(names)
        postings.append((renumber[keys], replace[segment.docs[kept]], segment.counts[kept]))
        names += _living_names(part)
        lengths.append(segment.lengths[alive])
    keys, owners, counts = (np.concatenate(column) for column in zip(*postings, strict=True))
    return _pack(tuple(names), np.concatenate(lengths), numbers, keys, owners, counts)


class _Numbers(dict[str, int]):
    """Numbers keys from 0 in the order they are first asked for."""

    def __missing__(self, key: str) -> int:
        number = self[key] = len(self)
        return number


def _pack(
    names: tuple[str, ...], lengths: _Ints, numbers: _Numbers, keys: _Ints, owners: _Ints, counts: _Ints
) -> _Segment:
    """A segment of postings given in any order of keys, as three columns."""
    order = np.argsort(keys, kind="stable")
    starts = np.zeros(len(numbers) + 1, np.int32)
    np.cumsum(np.bincount(keys, minlength=len(numbers)), out=starts[1:])
    return _Segment(
        names=names,
        places={name: place for place, name in enumerate(names)},
        lengths=_small(lengths),
        keys=dict(numbers),
        starts=_sealed(starts),
        docs=_sealed(owners[order].astype(np.int32)),
        counts=_small(counts[order]),
    )


def _small(values: _Ints) -> _Ints:
    """The same numbers in the fewest bytes."""
    largest = int(values.max(initial=0))
    return _sealed(values.astype(np.min_scalar_type(largest)))


def _sealed(values: _Ints) -> _Ints:
    values.flags.writeable = False
    return values


def _whole(segment: _Segment) -> _Part:
    return _Part(segment, None, len(segment.names), int(segment.lengths.sum()))


def _living_names(part: _Part) -> Iterable[str]:
    names = part.segment.names
    return names if part.alive is None else compress(names, part.alive.tolist())


def _without(part: _Part, gone: Collection[str]) -> _Part:
    """The part less the notes of these names, if it has any of them alive."""
    segment = part.segment
    places = [segment.places[name] for name in gone if name in segment.places]
    alive = np.ones(len(segment.names), np.bool_) if part.alive is None else part.alive.copy()
    dying = [place for place in places if alive[place]]
    if not dying:
        return part
    alive[dying] = False
    alive.flags.writeable = False
    tokens = int(segment.lengths[dying].sum())
    return _Part(segment, alive, part.notes - len(dying), part.tokens - tokens)


def _settled(parts: Sequence[_Part]) -> Sequence[_Part]:
    """The same notes, with every part merged that became too short for the one after it, or is half dead."""
    first = len(parts)
    after = 0
    for at in reversed(range(len(parts))):
        part = parts[at]
        if part.notes < after * _RATIO or part.notes * 2 < len(part.segment.names):
            first = at
        after += part.notes
    if first == len(parts):
        return parts
    merged = [_whole(_merge(parts[first:]))] if any(part.notes for part in parts[first:]) else []
    return [*parts[:first], *merged]
