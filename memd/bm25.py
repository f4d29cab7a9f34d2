"""The two rankings, `plain` and `rich`. Law: equal notes tie to the last bit, wherever they lie.

Every change to one note changes all scores: N, document frequencies and the mean length are summed over the living
notes of all snapshots when a query comes, as one corpus. So a score is made of what the index holds when it is asked
for: `rank` does it by `plain`, `rich` by `rich`, and `explain` tells what a score sums up. Pure: numpy and msgspec.
SPEC section 6.
"""

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np

from memd import forms, segments
from memd.forms import FIELDS, HOOK, NAME, Asked, Field, Kind, Query, Words
from memd.segments import Number, Part, Recent, Size
from memd.snapshots import Snapshot, held_forms
from memd.tokens import Term

K1 = 1.2
B = 0.75

FEW = 64
RARE = 4
"""How many notes, and one of how many, may hold a word for `rich` to ask for it beside its form."""

_Floats = np.ndarray[Any, np.dtype[np.float64]]
_Where = TypeVar("_Where")


class Scored(msgspec.Struct, frozen=True):
    """A hit: `store` is the snapshot's place in the list given to `rank`; `score` is above 0."""

    store: int
    name: str
    score: float


class _Ranker(NamedTuple):
    """One of the two formulas: which counts, which lengths."""

    is_rich: bool

    def of(self, size: Size) -> int:
        """The length that it goes by."""
        return size.forms if self.is_rich else size.words


_PLAIN, _RICH = _Ranker(is_rich=False), _Ranker(is_rich=True)


class Weighty(msgspec.Struct, frozen=True, gc=False):
    """Something asked for that counts: by `weight` as often as a note holds it, by `above` if it does at all."""

    asked: Asked
    weight: float
    above: float


class Gave(msgspec.Struct, frozen=True):
    """What a word of a query gave a note, from which of its fields; `form` is what was found, when not the word."""

    word: str
    kind: Kind | Literal["name"]
    field: Field
    score: float
    form: str | None = None


class Ranking(msgspec.Struct, frozen=True, eq=False):
    """What `rank` or `rich` found: `total` notes scored above 0."""

    total: int
    scores: _Floats  # of every note of every piece, in order; 0 for what is no hit
    pieces: Sequence[tuple[int, Sequence[str]]]  # (store, names) of a stretch of `scores`
    ends: Sequence[int]  # of each piece in `scores`
    weights: Sequence[Weighty] = ()
    mean: float = 0.0  # length of a note
    ranker: _Ranker = _PLAIN
    meant: Collection[str] = ()  # the names that a note is meant by
    most: float = 0.0  # what a note that is meant gets above what its words give

    @property
    def is_rich(self) -> bool:
        """Whether it is of `rich`."""
        return self.ranker.is_rich

    def top(self, limit: int | None = None, offset: int = 0) -> list[Scored]:
        """At most `limit` hits after the first `offset`, best first; ties by store, then by name (SPEC 6)."""
        end = self.total if limit is None else min(self.total, offset + limit)
        if end <= offset:
            return []
        if end < self.total:
            # All that tie with the last place stay in: names decide which of them has it.
            ordered = self.scores.copy()
            ordered.partition(-end)
            cutoff = ordered[-end]
            found = (self.scores >= cutoff).nonzero()[0]
        else:
            found = self.scores.nonzero()[0]
        best = sorted(
            [(-score, *self.where(at)) for score, at in zip(self.scores[found].tolist(), found.tolist(), strict=True)]
        )
        return [Scored(store, name, -score) for score, store, name in best[offset:end]]

    def where(self, at: int) -> tuple[int, str]:
        """The store and the name of the note at a place of `scores`."""
        piece = bisect_right(self.ends, at)
        store, names = self.pieces[piece]
        return store, names[at - self.ends[piece]]  # below 0: counted from the piece's end


def rank(terms: Iterable[Term], snapshots: Sequence[Snapshot]) -> Ranking:
    """The ranker `plain`: scores the notes of all snapshots, as one corpus, against the terms, each once (SPEC 6).

    The order of `snapshots` is the order of the stores in a tie.
    """
    return _rank(tuple(forms.plain(terms)), snapshots, _PLAIN)


def rich(query: Query, snapshots: Sequence[Snapshot]) -> Ranking:
    """The ranker `rich`: scores the notes of all snapshots, as one corpus, against a query of `forms.query` (SPEC 6).

    The formula. A note's score is the sum, over what the query asks for, of

        share · idf · tf / (tf + K1 · (1 − B + B · size / mean)) + above

    with `idf = ln(1 + (N − n + 0.5) / (n + 0.5))` of the n of N notes that hold it at all.

    - *What is asked for*: every form (share 1), and with a lower share each word as it stands, so that of two notes
      with a form the one with the very word is first; in a query of at most `forms.NEIGHBOURS` parts two neighbours
      written as one; and the single characters of Han, Kana and Hangul pairs. `forms` has the rules and the shares.
      What many notes hold tells little: neither a word beside its form nor a part of a longer word is asked for when
      more than `FEW` notes and one of `RARE` have it. A word that all notes have that have its form is asked for by
      its form, with both shares.
    - *tf* is how often the note holds it, a place in its name or hook counted `NAME` or `HOOK` times: they say what a
      note is for. *size* is how many forms the note has, each place counted once, and `mean` that of all notes.
    - *above* is for an identifier, a path, a version: the most that all its parts could give any note. So a note with
      it is before every note that only has its parts.
    - A note whose name is the query, its slug, or a word of it that has parts, gets above all this the most that a
      note could have.

    `explain` tells these sums for one note.
    """
    ranking = _rank(query.asked_with(held_forms(query.joined, snapshots)), snapshots, _RICH)
    places = list(_places(query.names, snapshots)) if ranking.total else []
    if not places:
        return ranking
    most = sum(held.weight + held.above for held in ranking.weights)
    scores = ranking.scores  # nobody else has it yet
    scores[places] += most
    return msgspec.structs.replace(
        ranking, scores=scores, total=int(np.count_nonzero(scores)), meant=query.names, most=most
    )


def explain(ranking: Ranking, name: str, words: Words) -> list[Gave]:
    """What gave a note its score, most first: the scores sum up to it. `words` are what the index has of the note."""
    is_rich = ranking.ranker.is_rich
    docs = [segments.doc(Words(list(keys))) for keys in (words.name, words.hook, words.body)]
    tables = [(doc.counts, segments.recent(doc).forms) for doc in docs]
    times = (NAME, HOOK, 1) if is_rich else (1, 1, 1)
    norm = _norm(ranking.ranker.of(segments.recent(segments.doc(words)).size), ranking.mean)
    found: list[Gave] = []
    for one in ranking.weights:
        asked = one.asked
        tfs = [table[asked.is_form].get(asked.key, 0) * time for table, time in zip(tables, times, strict=True)]
        tf = sum(tfs)
        if tf:
            score = tf / (norm + tf) * one.weight + one.above
            form = asked.key if asked.is_form and asked.key != asked.word else None
            found += [
                Gave(asked.word, asked.kind, field, score * part / tf, form)
                for field, part in zip(FIELDS, tfs, strict=True)
                if part
            ]
    if name in ranking.meant:
        found.append(Gave(name, "name", "name", ranking.most))
    return sorted(found, key=lambda gave: -gave.score)


def _rank(asked: Sequence[Asked], snapshots: Sequence[Snapshot], ranker: _Ranker) -> Ranking:
    notes = sum(map(len, snapshots))
    length = sum([ranker.of(snapshot.size) for snapshot in snapshots])
    if not asked or not length:
        return Ranking(0, np.zeros(0), (), ())
    found = _Found(asked, snapshots, ranker)
    held = found.held()
    return found.scored(weigh(held, notes) if ranker.is_rich else weigh_plainly(held, notes), length / notes)


def part_of(ranking: Ranking, weights: Sequence[Weighty], snapshots: Sequence[Snapshot]) -> Ranking:
    """What some of a ranking's weights give its notes: such parts add up to the ranking, but for a note meant."""
    found = _Found([weighty.asked for weighty in weights], snapshots, ranking.ranker)
    return found.scored([(weighty, at) for at, weighty in enumerate(weights)], ranking.mean)


class Held(msgspec.Struct, Generic[_Where], frozen=True, gc=False):
    """How many living notes hold something that is asked for, and where: here its place in what is asked."""

    asked: Asked
    frequency: int
    where: _Where


class _Found:
    """Where what is asked for stands: its number in each part, and how often each note of a tail holds it."""

    def __init__(self, asked: Sequence[Asked], snapshots: Sequence[Snapshot], ranker: _Ranker) -> None:
        words = {ask.key: at for at, ask in enumerate(asked) if not ask.is_form}
        those_forms = {ask.key: at for at, ask in enumerate(asked) if ask.is_form}
        self._asked = asked
        self._snapshots = snapshots
        self._ranker = ranker
        self._numbers = [
            [segments.numbers_of(part.segment, words, those_forms, asked) for part in snapshot.parts]
            for snapshot in snapshots
        ]
        self._recent = [
            [_held_by(recent, words, those_forms, ranker) for recent in snapshot.tail.values()]
            for snapshot in snapshots
        ]

    def held(self) -> list[Held[int]]:
        """What of the asked is held at all."""
        frequencies = [0] * len(self._asked)
        for snapshot, numbers in zip(self._snapshots, self._numbers, strict=True):
            for part, those in zip(snapshot.parts, numbers, strict=True):
                for at, often in zip(those, segments.living(part, list(those.values())), strict=True):
                    frequencies[at] += often
        for recent in self._recent:
            for held in recent:
                for at, _ in held:
                    frequencies[at] += 1
        return [Held(self._asked[at], often, at) for at, often in enumerate(frequencies) if often]

    def scored(self, kept: Sequence[tuple[Weighty, int]], mean: float) -> Ranking:
        """The ranking by some of it, with its weights."""
        pieces: list[tuple[int, Sequence[str]]] = []
        postings = _Postings(kept, self._ranker)
        notes: list[tuple[int, list[float]]] = []  # of the tails, with where each begins
        tails = _Tails(kept, mean, self._ranker)
        end = 0
        for store, snapshot in enumerate(self._snapshots):
            for part, numbers in zip(snapshot.parts, self._numbers[store], strict=True):
                pieces.append((store, part.segment.names))
                postings.add(part, numbers, end)
                end += len(part.segment.names)
            pieces.append((store, list(snapshot.tail)))
            if snapshot.tail:
                notes.append((end, list(map(tails.score, snapshot.tail.values(), self._recent[store]))))
                end += len(snapshot.tail)
        scores = postings.scores(mean, end)
        for begin, some in notes:
            scores[begin : begin + len(some)] = some
        ends = list(accumulate([len(names) for _, names in pieces]))
        weights = [weighty for weighty, _ in kept]
        return Ranking(int(np.count_nonzero(scores)), scores, pieces, ends, weights, mean, self._ranker)


def weigh_plainly(found: Iterable[Held[_Where]], notes: int) -> list[tuple[Weighty, _Where]]:
    """What is held, with its weight."""
    return [(Weighty(one.asked, idf(notes, one.frequency), 0.0), one.where) for one in found]


def weigh(found: Iterable[Held[_Where]], notes: int) -> list[tuple[Weighty, _Where]]:
    """What is held and worth asking for, with its weight; see `rich`."""
    of_forms = {ask.key: one.frequency for one in found if (ask := one.asked).is_form}
    most = max(FEW, notes // RARE)
    more: set[str] = set()  # the forms that every note has as the very word
    kept: list[tuple[Weighty, _Where]] = []
    for one in found:
        ask, frequency = one.asked, one.frequency
        share = ask.share
        if ask.kind == "part" and frequency > most:
            continue
        if ask.beside is not None:
            if of_forms.get(ask.beside) == frequency:
                more.add(ask.beside)
                continue
            if frequency > most:
                continue
        elif ask.key in more and ask.is_form:
            share += forms.WORD
        above = sum([idf(notes, of_forms[form]) for form in ask.above if form in of_forms]) if ask.above else 0.0
        kept.append((Weighty(ask, share * idf(notes, frequency), above), one.where))
    return kept


def _places(names: Iterable[str], snapshots: Sequence[Snapshot]) -> Iterator[int]:
    """The places, among the scores, of the living notes of these names."""
    begin = 0
    for snapshot in snapshots:
        for part in snapshot.parts:
            places = part.segment.places
            for name in names:
                if name in places and (part.alive is None or part.alive[places[name]]):
                    yield begin + places[name]
            begin += len(places)
        for at, name in enumerate(snapshot.tail):
            if name in names:
                yield begin + at
        begin += len(snapshot.tail)


def idf(notes: int, frequency: int) -> float:
    """Lucene's inverse document frequency; 0 for a term no note holds, which then is left out."""
    if frequency == 0:
        return 0.0
    return math.log(1 + (notes - frequency + 0.5) / (frequency + 0.5))


def _norm(length: int, mean: float) -> float:
    return (1 - B + B * length / mean) * K1


# The two classes compute one formula by the same operations in the same order, so that two equal notes tie to
# the last bit wherever they lie.


def _held_by(
    recent: Recent, words: Mapping[str, int], those_forms: Mapping[str, int], ranker: _Ranker
) -> list[tuple[int, int]]:
    """What a note of a tail holds of these, by what the mappings have for it, and how often; in that order."""
    counts = recent.doc.weighed if ranker.is_rich else recent.doc.counts
    held = [(words[key], counts[key]) for key in words.keys() & counts.keys()]
    if those_forms:
        counts = recent.forms
        held += [(those_forms[key], counts[key]) for key in those_forms.keys() & counts.keys()]
    held.sort()
    return held


class _Postings:
    """Scores the notes of all parts in one go: a call of numpy costs more than most postings do.

    A note's gains are added up in the query's order, as `_Tails` adds them.
    """

    def __init__(self, kept: Sequence[tuple[Weighty, int]], ranker: _Ranker) -> None:
        self._kept = kept
        self._ranker = ranker
        self._parts: list[tuple[Part, int, int]] = []  # with where its notes begin, and its postings end
        self._docs: list[segments.Ints] = []
        self._tfs: list[segments.Ints] = []
        self._weights: list[float] = []
        self._above: list[tuple[int, float]] = []  # of which of them, where there is any

    def add(self, part: Part, numbers: Mapping[int, Number], begin: int) -> None:
        """Take the postings of a part whose notes begin at this place among the scores."""
        segment = part.segment
        counts = segment.weighed if self._ranker.is_rich else segment.counts
        kept = [(weighty, numbers[at]) for weighty, at in self._kept if at in numbers]
        for weighty, number in kept:
            if weighty.above:
                self._above.append((len(self._docs), weighty.above))
            docs, tfs = segments.postings(segment, number, counts)
            self._docs.append(docs)
            self._tfs.append(tfs)
            self._weights.append(weighty.weight)
        self._parts.append((part, begin, len(self._docs)))

    def scores(self, mean: float, notes: int) -> _Floats:
        """The scores of so many notes: those of the parts, and 0 for what is in none."""
        if not self._docs:
            return np.zeros(notes)
        each = [len(docs) for docs in self._docs]
        ends = [0, *accumulate(each)]
        docs = np.concatenate(self._docs, dtype=np.intp)
        lengths = np.zeros(notes)
        first = 0
        for part, begin, last in self._parts:
            if begin:
                docs[ends[first] : ends[last]] += begin
            first = last
            segment = part.segment
            lengths[begin : begin + len(segment.names)] = segment.sizes if self._ranker.is_rich else segment.lengths
        gains = np.concatenate(self._tfs, dtype=np.float64)
        if len(docs) < notes:
            norms = (1 - B + B * lengths.take(docs, mode="clip") / mean) * K1
        else:
            norms = ((1 - B + B * lengths / mean) * K1).take(docs, mode="clip")
        norms += gains
        gains /= norms
        gains *= np.array(self._weights).repeat(np.array(each))
        for at, above in self._above:
            gains[ends[at] : ends[at + 1]] += above
        scores: _Floats = np.bincount(docs, gains, notes).astype(np.float64, copy=False)
        for part, begin, _ in self._parts:
            if part.alive is not None:
                scores[begin : begin + len(part.alive)] *= part.alive
        return scores


class _Tails:
    """Scores notes one by one, by what they hold of the weights: most hold little of it."""

    def __init__(self, kept: Sequence[tuple[Weighty, int]], mean: float, ranker: _Ranker) -> None:
        self._weights = {at: weighty for weighty, at in kept}
        self._mean = mean
        self._ranker = ranker

    def score(self, recent: Recent, held: Iterable[tuple[int, int]]) -> float:
        """The score of a note of a tail that holds this."""
        norm = _norm(self._ranker.of(recent.size), self._mean)
        score = 0.0
        for at, tf in held:
            if at in self._weights:
                weighty = self._weights[at]
                score += tf / (norm + tf) * weighty.weight + weighty.above
        return score
