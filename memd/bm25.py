"""The rankings. Law: one set of notes gives one answer, however it came about, and for ever.

A `Snapshot` is one store's index: a few segments of array postings (documents and counts of a word), each at
least eight times as long as the next, and a short tail of notes not yet in one. A change makes a new snapshot
that shares every segment it can: new notes go to the tail, replaced ones are struck out in a copied mask, a
full tail becomes a segment, and neighbours of like size are merged. So a save costs the note, not the store.

Postings hold counts and lengths, never scores, because one more note changes every score: N, document
frequencies and the mean length are summed over the living notes of all snapshots when a query comes, as one
corpus. One index serves both rankers: `rank` is `plain` and `rich` is `rich`. The postings of forms are made
from those of the words, and only where a form has several. Pure: numpy and msgspec. SPEC section 6.
"""

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate, chain, compress
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np

from memd import forms
from memd.forms import FIELDS, HOOK, NAME, Asked, Field, Kind, Query, Words
from memd.tokens import Term, spread_keys

K1 = 1.2
B = 0.75

FEW = 64
RARE = 4
"""How many notes, and one of how many, may hold a word for `rich` to ask for it beside its form."""

_TAIL = 32  # notes; more of them and looking through the tail costs a query more than a segment would
_RATIO = 8  # a segment is at least this many times as long as the one after it

_Floats = np.ndarray[Any, np.dtype[np.float64]]
_Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
_Where = TypeVar("_Where")
_Mask = np.ndarray[Any, np.dtype[np.bool_]]


class Scored(msgspec.Struct, frozen=True):
    """A hit: `store` is the snapshot's place in the list given to `rank`; `score` is above 0."""

    store: int
    name: str
    score: float


class Size(NamedTuple):
    """How long a text is: in words, for `plain`, and in forms, for `rich`."""

    words: int = 0
    forms: int = 0

    def plus(self, other: "Size") -> "Size":
        """Of both together."""
        return Size(self.words + other.words, self.forms + other.forms)

    def of(self, ranker: "_Ranker") -> int:
        """The length that a ranker goes by."""
        return self.forms if ranker.is_rich else self.words


class _Doc(msgspec.Struct, frozen=True):
    """One note: how often it holds each key (words, humps, spread keys), as it is and with its fields weighed."""

    counts: Mapping[str, int]
    weighed: Mapping[str, int]  # in the order of `counts`
    length: int


class _Recent(msgspec.Struct, frozen=True):
    """A note of the tail, with its forms."""

    doc: _Doc
    forms: Mapping[str, int]  # weighed
    size: Size


class _Segment(msgspec.Struct, frozen=True, eq=False):
    """Postings of many notes: those of key number k are `starts[k]:starts[k + 1]` of `docs`, `counts` and `weighed`.

    A form of several keys has its own in `form_docs` and `form_weighed`, under its number in `forms`; a form of one
    key has that key's, and its number is `~k`; one that is its only key has no number.
    """

    names: tuple[str, ...]
    places: Mapping[str, int]  # name -> its document, the place in `names`, `lengths` and `sizes`
    lengths: _Ints  # in words
    sizes: _Ints  # in forms
    keys: Mapping[str, int]
    starts: _Ints
    docs: _Ints
    counts: _Ints
    weighed: _Ints
    forms: Mapping[str, int]
    form_starts: _Ints
    form_docs: _Ints
    form_weighed: _Ints


class _Part(msgspec.Struct, frozen=True, eq=False):
    """A segment as one snapshot sees it: `alive` masks the notes since struck out, None while all live.

    `living` keeps how many living notes hold what was asked for, under its number (see `_number_of_form`): to count
    them again takes as long as to score them.
    """

    segment: _Segment
    alive: _Mask | None
    notes: int  # that live
    size: Size  # of the notes that live
    living: dict[int, int] = msgspec.field(default_factory=dict)


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """One store's index at one moment; it never changes, so a search needs no lock. Begin with `EMPTY`."""

    EMPTY: ClassVar["Snapshot"]

    parts: tuple[_Part, ...] = ()
    tail: Mapping[str, _Recent] = msgspec.field(default_factory=dict)

    def __len__(self) -> int:
        return sum(part.notes for part in self.parts) + len(self.tail)

    @property
    def names(self) -> list[str]:
        """The names of its notes, sorted; made at each call."""
        return sorted(chain(self.tail, *(_living_names(part) for part in self.parts)))

    @property
    def size(self) -> Size:
        """How long its notes are together, repeats counted."""
        sizes = chain((part.size for part in self.parts), (recent.size for recent in self.tail.values()))
        return Size(*map(sum, zip(Size(), *sizes, strict=True)))

    @property
    def tokens(self) -> int:
        """How many words its notes hold, repeats counted."""
        return self.size.words

    def replace(self, put: Mapping[str, Words], drop: Collection[str] = ()) -> "Snapshot":
        """A snapshot in which the notes of `put` (name -> words) are new or changed, those of `drop` gone.

        A name that is in both is put; one to drop that is not there is passed over.
        """
        gone = {*put, *drop}
        parts = [_without(part, gone) for part in self.parts]
        tail = {name: recent for name, recent in self.tail.items() if name not in gone}
        fresh = ((name, _doc(words)) for name, words in put.items())
        if len(tail) + len(put) <= _TAIL:
            tail.update((name, _recent(doc)) for name, doc in fresh)
        else:
            known = ((name, recent.doc) for name, recent in tail.items())
            parts.append(_whole(_build(chain(known, fresh))))
            tail = {}
        return Snapshot(tuple(_settled(parts)), tail)


Snapshot.EMPTY = Snapshot()


class _Ranker(NamedTuple):
    """One of the two formulas: which counts, which lengths."""

    is_rich: bool


_PLAIN, _RICH = _Ranker(is_rich=False), _Ranker(is_rich=True)


class Weighty(NamedTuple):
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
      with a form the one with the very word is first; two neighbours written as one; and the single characters of
      Han, Kana and Hangul pairs. `forms` has the rules and the shares. What many notes hold tells little: neither a
      word beside its form nor a part of a longer word is asked for when more than `FEW` notes and one of `RARE` have
      it. A word that all notes have that have its form is asked for by its form, with both shares.
    - *tf* is how often the note holds it, a place in its name or hook counted `NAME` or `HOOK` times: they say what a
      note is for. *size* is how many forms the note has, each place counted once, and `mean` that of all notes.
    - *above* is for an identifier, a path, a version: the most that all its parts could give any note. So a note with
      it is before every note that only has its parts.
    - A note whose name is the query, its slug, or a word of it that has parts, gets above all this the most that a
      note could have.

    `explain` tells these sums for one note.
    """
    ranking = _rank(query.asked, snapshots, _RICH)
    most = sum(held.weight + held.above for held in ranking.weights)
    places = list(_places(query.names, snapshots)) if ranking.total else []
    if not places:
        return ranking
    scores = ranking.scores  # nobody else has it yet
    scores[places] += most
    return msgspec.structs.replace(
        ranking, scores=scores, total=int(np.count_nonzero(scores)), meant=query.names, most=most
    )


def explain(ranking: Ranking, name: str, words: Words) -> list[Gave]:
    """What gave a note its score, most first: the scores sum up to it. `words` are what the index has of the note."""
    is_rich = ranking.ranker.is_rich
    docs = [_doc(Words(list(keys))) for keys in (words.name, words.hook, words.body)]
    tables = [(doc.counts, _forms_of(doc.counts)) for doc in docs]
    times = (NAME, HOOK, 1) if is_rich else (1, 1, 1)
    norm = _norm(_recent(_doc(words)).size.of(ranking.ranker), ranking.mean)
    found: list[Gave] = []
    for asked, weight, above in ranking.weights:
        tfs = [table[asked.is_form].get(asked.key, 0) * time for table, time in zip(tables, times, strict=True)]
        tf = sum(tfs)
        if tf:
            score = tf / (norm + tf) * weight + above
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
    length = sum(snapshot.size.of(ranker) for snapshot in snapshots)
    if not asked or not length:
        return Ranking(0, np.zeros(0), (), ())
    found = _held(asked, snapshots)
    return _scored(
        weigh(found, notes) if ranker.is_rich else weigh_plainly(found, notes), snapshots, length / notes, ranker
    )


def part_of(ranking: Ranking, weights: Sequence[Weighty], snapshots: Sequence[Snapshot]) -> Ranking:
    """What some of a ranking's weights give its notes: such parts add up to the ranking, but for a note meant."""
    held = _held([weighty.asked for weighty in weights], snapshots)
    numbers = {(one.asked.is_form, one.asked.key): one.where for one in held}
    kept = [(weighty, numbers[weighty.asked.is_form, weighty.asked.key]) for weighty in weights]
    return _scored(kept, snapshots, ranking.mean, ranking.ranker)


def _scored(
    kept: Sequence[tuple[Weighty, Sequence["_Number"]]], snapshots: Sequence[Snapshot], mean: float, ranker: _Ranker
) -> Ranking:
    weights = [weighty for weighty, _ in kept]
    pieces: list[tuple[int, Sequence[str]]] = []
    scores: list[_Floats] = []
    parts = zip(*(numbers for _, numbers in kept), strict=True)
    tail = _Tail(weights, mean, ranker)
    for store, snapshot in enumerate(snapshots):
        for part in snapshot.parts:
            pieces.append((store, part.segment.names))
            scores.append(_score_part(part, next(parts, ()), weights, mean, ranker))
        pieces.append((store, list(snapshot.tail)))
        scores.append(np.array([tail.score(recent) for recent in snapshot.tail.values()], np.float64))
    all_scores = np.concatenate(scores)
    ends = list(accumulate(len(names) for _, names in pieces))
    return Ranking(int(np.count_nonzero(all_scores)), all_scores, pieces, ends, weights, mean, ranker)


_Pair = tuple[_Ints, _Ints]  # documents, and how often each holds it


_Number = int | None  # of a key in a segment, `~k` of a form of several keys, None of what it has not


class Held(NamedTuple, Generic[_Where]):
    """How many living notes hold something that is asked for, and where: here its number in each part."""

    asked: Asked
    frequency: int
    where: _Where


def _held(asked: Sequence[Asked], snapshots: Sequence[Snapshot]) -> list[Held[Sequence[_Number]]]:
    """What of the asked is held at all."""
    parts = [part for snapshot in snapshots for part in snapshot.parts]
    words, found_forms = _held_lately(asked, snapshots)
    found: list[Held[Sequence[_Number]]] = []
    for ask in asked:
        key, is_form = ask.key, ask.is_form
        frequency = (found_forms if is_form else words).get(key, 0)
        numbers: list[_Number] = []
        for part in parts:
            number = _number_of_form(part.segment, key) if is_form else part.segment.keys.get(key)
            numbers.append(number)
            if number is not None:
                frequency += part.living.get(number) or _living(part, number)
        if frequency:
            found.append(Held(ask, frequency, numbers))
    return found


def _held_lately(asked: Iterable[Asked], snapshots: Iterable[Snapshot]) -> tuple[dict[str, int], dict[str, int]]:
    """How many notes of the tails hold each of the words and of the forms that are asked for."""
    words: dict[str, int] = {}
    found_forms: dict[str, int] = {}
    wanted = {ask.key for ask in asked if not ask.is_form}
    wanted_forms = {ask.key for ask in asked if ask.is_form}
    for snapshot in snapshots:
        for recent in snapshot.tail.values():
            for key in recent.doc.counts.keys() & wanted:
                words[key] = words.get(key, 0) + 1
            for key in recent.forms.keys() & wanted_forms:
                found_forms[key] = found_forms.get(key, 0) + 1
    return words, found_forms


def _living(part: _Part, number: int) -> int:
    """How many of the living notes of a part hold the key or the form of this number."""
    docs = _pair(part.segment, number, part.segment.counts)[0]
    living = len(docs) if part.alive is None else int(np.count_nonzero(part.alive.take(docs)))
    part.living[number] = living
    return living


def weigh_plainly(found: Iterable[Held[_Where]], notes: int) -> list[tuple[Weighty, _Where]]:
    """What is held, with its weight."""
    return [(Weighty(ask, idf(notes, frequency), 0.0), where) for ask, frequency, where in found]


def weigh(found: Iterable[Held[_Where]], notes: int) -> list[tuple[Weighty, _Where]]:
    """What is held and worth asking for, with its weight; see `rich`."""
    of_forms = {ask.key: frequency for ask, frequency, _ in found if ask.is_form}
    most = max(FEW, notes // RARE)
    more: set[str] = set()  # the forms that every note has as the very word
    kept: list[tuple[Weighty, _Where]] = []
    for ask, frequency, where in found:
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
        above = sum([idf(notes, of_forms[form]) for form in ask.above if form in of_forms])
        kept.append((Weighty(ask, share * idf(notes, frequency), above), where))
    return kept


def _places(names: Iterable[str], snapshots: Sequence[Snapshot]) -> Iterator[int]:
    """The places, among the scores, of the living notes of these names."""
    begin = 0
    for snapshot in snapshots:
        for part in snapshot.parts:
            found = (part.segment.places[name] for name in names if name in part.segment.places)
            yield from (begin + at for at in found if part.alive is None or part.alive[at])
            begin += len(part.segment.names)
        yield from (begin + at for at, name in enumerate(snapshot.tail) if name in names)
        begin += len(snapshot.tail)


def holding(snapshot: Snapshot, keys: Set[str], least: int) -> list[str]:
    """The living notes, by name, that hold at least `least` of these keys: what nearly repeats a text is one."""
    found = [name for name, recent in snapshot.tail.items() if len(recent.doc.counts.keys() & keys) >= least]
    for part in snapshot.parts:
        segment = part.segment
        numbers = [segment.keys[key] for key in keys if key in segment.keys]
        postings = [_pair(segment, number, segment.counts)[0] for number in numbers]
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


def _number_of_form(segment: _Segment, form: str) -> int | None:
    """The number of the key that alone has this form, or `~k` for the form of several keys that has number k."""
    number = segment.forms.get(form)
    if number is not None:
        return ~number
    number = segment.keys.get(form)
    return number if number is not None and forms.forms(form) == (form,) else None


def _pair(segment: _Segment, number: int, counts: _Ints) -> _Pair:
    """The documents, dead ones too, of the key or form of this number, and how often each has it."""
    if number >= 0:
        begin, end = segment.starts.item(number), segment.starts.item(number + 1)
        return segment.docs[begin:end], counts[begin:end]
    begin, end = segment.form_starts.item(~number), segment.form_starts.item(~number + 1)
    return segment.form_docs[begin:end], segment.form_weighed[begin:end]


def _norm(length: int, mean: float) -> float:
    return (1 - B + B * length / mean) * K1


# The next two compute one formula by the same operations in the same order, so that two equal notes tie to
# the last bit wherever they lie.


def _score_part(
    part: _Part, numbers: Sequence[_Number], weights: Sequence[Weighty], mean: float, ranker: _Ranker
) -> _Floats:
    segment = part.segment
    counts = segment.weighed if ranker.is_rich else segment.counts
    held = [
        (_pair(segment, number, counts), weighty)
        for number, weighty in zip(numbers, weights, strict=True)
        if number is not None
    ]
    if not held:
        return np.zeros(len(segment.names))
    # All postings in one go: a call of numpy costs more than most postings do. A document's terms are added up in
    # the query's order, as `_Tail` adds them.
    docs = np.concatenate([docs for (docs, _), _ in held], dtype=np.intp)
    gains = np.concatenate([tf for (_, tf), _ in held], dtype=np.float64)
    lengths = segment.sizes if ranker.is_rich else segment.lengths
    if len(docs) < len(lengths):
        norms = (1 - B + B * lengths.take(docs) / mean) * K1
    else:
        norms = ((1 - B + B * lengths / mean) * K1).take(docs)
    norms += gains
    gains /= norms
    end = 0
    for (these, _), (_, weight, above) in held:
        span = slice(end, end := end + len(these))
        gains[span] *= weight
        if above:
            gains[span] += above
    scores: _Floats = np.bincount(docs, gains, len(segment.names)).astype(np.float64, copy=False)
    return scores if part.alive is None else scores * part.alive


class _Tail:
    """Scores notes one by one, by what of the weights they hold: most notes hold little of it."""

    def __init__(self, weights: Sequence[Weighty], mean: float, ranker: _Ranker) -> None:
        self._weights = weights
        self._mean = mean
        self._ranker = ranker
        self._words = {one.asked.key: at for at, one in enumerate(weights) if not one.asked.is_form}
        self._forms = {one.asked.key: at for at, one in enumerate(weights) if one.asked.is_form}

    def score(self, recent: _Recent) -> float:
        """The score of a note of a tail."""
        words = recent.doc.weighed if self._ranker.is_rich else recent.doc.counts
        held = [(self._words[key], words[key]) for key in words.keys() & self._words.keys()]
        held += [(self._forms[key], recent.forms[key]) for key in recent.forms.keys() & self._forms.keys()]
        held.sort()  # in the query's order
        norm = _norm(recent.size.of(self._ranker), self._mean)
        score = 0.0
        for at, tf in held:
            _, weight, above = self._weights[at]
            score += tf / (norm + tf) * weight + above
        return score


def _doc(words: Words) -> _Doc:
    counts = Counter(words.tokens)
    counts.update(words.humps)
    weighed = dict(counts)
    for key in words.name:
        weighed[key] += NAME - 1
    for key in words.hook:
        weighed[key] += HOOK - 1
    for token, count in list(counts.items()):
        if not token.isascii():  # asked here, since nearly every token is
            for key in spread_keys(token):
                counts[key] += count
                weighed[key] = weighed.get(key, 0) + weighed[token]
    return _Doc(dict(counts), weighed, len(words.tokens))


def _recent(doc: _Doc) -> _Recent:
    size = sum(count * len(forms.forms(key)) for key, count in doc.counts.items())
    return _Recent(doc, _forms_of(doc.weighed), Size(doc.length, size))


def _forms_of(counts: Mapping[str, int]) -> Mapping[str, int]:
    """How often each form is held by what holds these keys so often."""
    found: dict[str, int] = {}
    for key, count in counts.items():
        for form in forms.forms(key):
            found[form] = found.get(form, 0) + count
    return found


class _Columns(NamedTuple):
    """Postings in any order: the number of the key, the document, and how often, as it is and weighed."""

    keys: _Ints
    owners: _Ints
    counts: _Ints
    weighed: _Ints


def _build(docs: Iterable[tuple[str, _Doc]]) -> _Segment:
    """One segment of these notes, read one by one: a whole store's counts as dicts would take 80 MB."""
    numbers = _Numbers()
    names: list[str] = []
    lengths, sizes, keys, counts, weighed = array("q"), array("q"), array("i"), array("i"), array("i")
    for name, doc in docs:
        names.append(name)
        lengths.append(doc.length)
        sizes.append(len(doc.counts))
        keys.extend(map(numbers.__getitem__, doc.counts))
        counts.extend(doc.counts.values())
        weighed.extend(doc.weighed.values())
    owners = np.repeat(np.arange(len(names), dtype=np.int32), np.array(sizes))
    columns = _Columns(np.array(keys), owners, np.array(counts), np.array(weighed))
    return _pack(tuple(names), np.array(lengths), numbers, columns)


def _merge(parts: Sequence[_Part]) -> _Segment:
    """One segment of the living notes of these parts."""
    numbers = _Numbers()
    names: list[str] = []
    lengths: list[_Ints] = []
    columns: list[_Columns] = []
    for part in parts:
        segment = part.segment
        alive = np.ones(len(segment.names), np.bool_) if part.alive is None else part.alive
        kept = alive[segment.docs]
        keys = np.repeat(np.arange(len(segment.keys), dtype=np.int32), np.diff(segment.starts))[kept]
        used = np.bincount(keys, minlength=len(segment.keys)) > 0
        renumber = np.zeros(len(segment.keys), np.int32)
        renumber[used] = np.fromiter(map(numbers.__getitem__, compress(segment.keys, used.tolist())), np.int32)
        replace = np.cumsum(alive, dtype=np.int32) - 1 + len(names)
        owners = replace[segment.docs[kept]]
        columns.append(_Columns(renumber[keys], owners, segment.counts[kept], segment.weighed[kept]))
        names += _living_names(part)
        lengths.append(segment.lengths[alive])
    whole = _Columns(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    return _pack(tuple(names), np.concatenate(lengths), numbers, whole)


class _Numbers(dict[str, int]):
    """Numbers keys from 0 in the order they are first asked for."""

    def __missing__(self, key: str) -> int:
        number = self[key] = len(self)
        return number


def _pack(names: tuple[str, ...], lengths: _Ints, numbers: _Numbers, columns: _Columns) -> _Segment:
    """A segment of postings given in any order of keys."""
    order = np.argsort(columns.keys, kind="stable")
    starts = np.zeros(len(numbers) + 1, np.int32)
    np.cumsum(np.bincount(columns.keys, minlength=len(numbers)), out=starts[1:])
    docs, weighed = columns.owners[order], columns.weighed[order]
    of_forms, fanout = _numbered_forms(numbers)
    form_starts, form_docs, form_weighed = _form_postings(of_forms, starts, docs, weighed, len(names))
    return _Segment(
        names=names,
        places={name: place for place, name in enumerate(names)},
        lengths=_small(lengths),
        sizes=_small(np.bincount(columns.owners, columns.counts * fanout[columns.keys], len(names)).astype(np.int64)),
        keys=dict(numbers),
        starts=_sealed(starts),
        docs=_small(docs),
        counts=_small(columns.counts[order]),
        weighed=_small(weighed),
        forms=of_forms.numbers,
        form_starts=_sealed(form_starts),
        form_docs=_small(form_docs),
        form_weighed=_small(form_weighed),
    )


class _Forms(NamedTuple):
    """The forms of some keys: their numbers (see `_Segment`); beside each number from 0 a key that has the form."""

    numbers: Mapping[str, int]
    rows: _Ints
    owners: _Ints


def _numbered_forms(keys: Iterable[str]) -> tuple[_Forms, _Ints]:
    """The forms of keys numbered in their order, and how many each key has."""
    words = list(keys)
    numbers = _Numbers()
    flat, fanout = array("i"), array("i")
    for key in words:
        found = forms.forms(key)
        fanout.append(len(found))
        flat.extend(map(numbers.__getitem__, found))
    forms_of, fans = np.array(flat), np.array(fanout)
    owners = np.repeat(np.arange(len(words), dtype=np.int32), fans)
    several = np.bincount(forms_of, minlength=len(numbers)) > 1
    rows = np.cumsum(several, dtype=np.int32) - 1
    sole = np.zeros(len(numbers), np.int32)
    sole[forms_of] = owners
    named: dict[str, int] = {}
    for (form, _), is_several, row, owner in zip(
        numbers.items(), several.tolist(), rows.tolist(), sole.tolist(), strict=True
    ):
        if is_several:
            named[form] = row
        elif words[owner] != form:
            named[form] = ~owner
    kept = several[forms_of]
    return _Forms(named, rows[forms_of[kept]], owners[kept]), fans


def _form_postings(
    found: _Forms, starts: _Ints, docs: _Ints, weighed: _Ints, notes: int
) -> tuple[_Ints, _Ints, _Ints]:
    """The starts, documents and weighed counts of the forms that several keys have: those of the keys, summed up."""
    rows = int(found.rows.max(initial=-1)) + 1
    form_starts = np.zeros(rows + 1, np.int32)
    if not rows:
        return form_starts, docs[:0], weighed[:0]
    # Form by form, so that what is sorted below is a row of sorted stretches.
    order = np.argsort(found.rows, kind="stable")
    owners = found.owners[order]
    begins = starts[owners]
    spans = starts[owners + 1] - begins
    # For each posting of each key its place, so that all are had at once.
    at = np.arange(int(spans.sum())) + np.repeat(begins - (np.cumsum(spans) - spans), spans)
    places = np.repeat(found.rows[order].astype(np.int64) * notes, spans) + docs[at]
    order = np.argsort(places, kind="stable")
    places = places[order]
    first = np.flatnonzero(np.diff(places, prepend=-1))
    places = places[first]
    np.cumsum(np.bincount(places // notes, minlength=rows), out=form_starts[1:])
    return form_starts, places % notes, np.add.reduceat(weighed[at[order]].astype(np.int64), first)


def _small(values: _Ints) -> _Ints:
    """The same numbers in the fewest bytes."""
    largest = int(values.max(initial=0))
    return _sealed(values.astype(np.min_scalar_type(largest)))


def _sealed(values: _Ints) -> _Ints:
    values.flags.writeable = False
    return values


def _whole(segment: _Segment) -> _Part:
    return _Part(segment, None, len(segment.names), Size(int(segment.lengths.sum()), int(segment.sizes.sum())))


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
    left = Size(
        part.size.words - int(segment.lengths[dying].sum()), part.size.forms - int(segment.sizes[dying].sum())
    )
    return _Part(segment, alive, part.notes - len(dying), left)


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
