"""Postings of many notes. Law: they hold counts and lengths, never scores, because one more note changes every score.

A `Segment` never changes. It is built of notes, or merged of what lives in others, and a `Part` is one as a
snapshot sees it. One segment serves both rankers: the postings of forms are made from those of the words, and only
where a form has several. Pure: numpy and msgspec. SPEC section 6.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from itertools import chain, compress, count
from operator import ne
from typing import Any, NamedTuple

import msgspec
import numpy as np

from memd import forms
from memd.forms import HOOK, NAME, Asked, Words
from memd.tokens import spread_keys

Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
_Mask = np.ndarray[Any, np.dtype[np.bool_]]

Number = int
"""What a segment knows something by: the number of a key, or `~k` for the form of several keys that is number k."""


class Size(NamedTuple):
    """How long a text is: in words, for `plain`, and in forms, for `rich`."""

    words: int = 0
    forms: int = 0


class Doc(msgspec.Struct, frozen=True):
    """One note: how often it holds each key (words, humps, spread keys), as it is and with its fields weighed."""

    counts: Mapping[str, int]
    weighed: Mapping[str, int]  # in the order of `counts`
    length: int


class Recent(msgspec.Struct, frozen=True):
    """A note of the tail, with its forms."""

    doc: Doc
    forms: Mapping[str, int]  # weighed
    size: Size


class Segment(msgspec.Struct, frozen=True, eq=False):
    """Postings of many notes: those of key number k are `starts[k]:starts[k + 1]` of `docs`, `counts` and `weighed`.

    A form of several keys has its own in `form_docs` and `form_weighed`, under its number in `forms`; a form of one
    key has that key's, and its number is `~k`; one that is its only key has no number.
    """

    names: tuple[str, ...]
    places: Mapping[str, int]  # name -> its document, the place in `names`, `lengths` and `sizes`
    lengths: Ints  # in words
    sizes: Ints  # in forms
    keys: Mapping[str, int]
    starts: Ints
    docs: Ints
    counts: Ints
    weighed: Ints
    forms: Mapping[str, int]
    form_starts: Ints
    form_docs: Ints
    form_weighed: Ints


class Part(msgspec.Struct, frozen=True, eq=False):
    """A segment as one snapshot sees it: `alive` masks the notes since struck out, None while all live.

    `counted` keeps how many living notes hold what was asked for, at its number: to count them again takes as long as
    to score them.
    """

    segment: Segment
    alive: _Mask | None
    notes: int  # that live
    size: Size  # of the notes that live
    counted: list[Ints] = msgspec.field(default_factory=list)  # empty until a search comes


def doc(words: Words) -> Doc:
    """What a note holds."""
    counts = Counter(words.tokens)
    counts.update(words.humps)
    weighed = dict(counts)
    for key in words.name:
        weighed[key] += NAME - 1
    for key in words.hook:
        weighed[key] += HOOK - 1
    if not "".join(counts).isascii():  # asked of all at once, since nearly every token is
        for token, often in list(counts.items()):
            for key in spread_keys(token):
                counts[key] += often
                weighed[key] = weighed.get(key, 0) + weighed[token]
    return Doc(dict(counts), weighed, len(words.tokens))


def recent(doc: Doc) -> Recent:
    """A note as a tail holds it."""
    size = 0
    found: dict[str, int] = {}
    for those, often, weighed in zip(
        map(forms.forms, doc.counts), doc.counts.values(), doc.weighed.values(), strict=True
    ):
        size += often * len(those)
        for form in those:
            found[form] = found.get(form, 0) + weighed
    return Recent(doc, found, Size(doc.length, size))


# -- what a part holds -------------------------------------------------------------------------------------------


def whole(segment: Segment) -> Part:
    """A segment of which every note lives."""
    return Part(segment, None, len(segment.names), Size(int(segment.lengths.sum()), int(segment.sizes.sum())))


def living_names(part: Part) -> Iterable[str]:
    """The names of the notes that live, in the order of their documents."""
    names = part.segment.names
    return names if part.alive is None else compress(names, part.alive.tolist())


def without(part: Part, gone: Collection[str]) -> Part:
    """The part less the notes of these names, if it has any of them alive."""
    segment = part.segment
    places = [segment.places[name] for name in gone if name in segment.places]
    return _less(part, [place for place in places if part.alive is None or part.alive[place]]) if places else part


def _less(part: Part, dying: Sequence[int]) -> Part:
    """The part less these documents, which live in it."""
    if not dying:
        return part
    segment = part.segment
    alive = _mask(part).copy()
    alive[dying] = False
    alive.flags.writeable = False
    left = Size(
        part.size.words - int(segment.lengths[dying].sum()), part.size.forms - int(segment.sizes[dying].sum())
    )
    return Part(segment, alive, part.notes - len(dying), left)


def as_lives(segment: Segment, then: Sequence[Part], now: Sequence[Part]) -> Part:
    """What was merged of parts as they were `then`, less the notes that they have lost by `now`."""
    alive = [
        _mask(later) if earlier.alive is None else _mask(later)[earlier.alive]
        for earlier, later in zip(then, now, strict=True)
    ]
    return _less(whole(segment), np.flatnonzero(~np.concatenate(alive)).tolist())


def _mask(part: Part) -> _Mask:
    return np.ones(len(part.segment.names), np.bool_) if part.alive is None else part.alive


def numbers_of(
    segment: Segment, keys: Mapping[str, int], those_forms: Mapping[str, int], asked: Sequence[Asked]
) -> dict[int, Number]:
    """What of these keys and forms a segment holds: the number of each under its place in what is asked."""
    found: dict[int, Number] = {}
    known, forms_known = segment.keys, segment.forms
    for key, at in keys.items():
        number = known.get(key)
        if number is not None:
            found[at] = number
    for form, at in those_forms.items():
        number = forms_known.get(form)
        if number is not None:
            found[at] = ~number
        elif (number := known.get(form)) is not None and asked[at].is_own:
            found[at] = number
    return found


def living(part: Part, numbers: Sequence[Number]) -> list[int]:
    """How many of the living notes of a part hold the key or the form of each of these numbers."""
    segment = part.segment
    if not part.counted:
        part.counted.append(_counted(part))
    counted = part.counted[0]
    held: list[int] = counted.take(numbers, mode="wrap").tolist()
    if part.alive is None:
        return held
    for at, number in enumerate(numbers):
        if held[at] < 0:
            docs, _ = postings(segment, number, segment.counts)
            counted[number] = held[at] = int(np.count_nonzero(part.alive.take(docs)))
    return held


def _counted(part: Part) -> Ints:
    """By number how many of its notes hold something: all, or -1 for what is to be counted when some are dead."""
    segment = part.segment
    if part.alive is None:
        return np.concatenate((np.diff(segment.starts), np.diff(segment.form_starts)[::-1]))
    return np.full(len(segment.starts) + len(segment.form_starts) - 2, -1, np.int32)


def postings(segment: Segment, number: Number, counts: Ints) -> tuple[Ints, Ints]:
    """The documents, dead ones too, of the key or form of this number, and how often each has it.

    `counts` is the segment's column to take for a key: as it is, or weighed. Those of a form are weighed.
    """
    if number >= 0:
        begin, end = segment.starts.item(number), segment.starts.item(number + 1)
        return segment.docs[begin:end], counts[begin:end]
    begin, end = segment.form_starts.item(~number), segment.form_starts.item(~number + 1)
    return segment.form_docs[begin:end], segment.form_weighed[begin:end]


def holding(part: Part, keys: Set[str], least: int) -> list[str]:
    """The living notes, by name, that hold at least `least` of these keys."""
    segment = part.segment
    numbers = [segment.keys[key] for key in keys if key in segment.keys]
    found = [postings(segment, number, segment.counts)[0] for number in numbers]
    if len(found) < least or not found:
        return []
    held = np.bincount(np.concatenate(found), minlength=len(segment.names)) >= least
    if part.alive is not None:
        held &= part.alive
    return [segment.names[at] for at in held.nonzero()[0].tolist()]


# -- how one is made ---------------------------------------------------------------------------------------------


class _Columns(NamedTuple):
    """Postings in any order: the number of the key, the document, and how often, as it is and weighed."""

    keys: Ints
    owners: Ints
    counts: Ints
    weighed: Ints


def _numbering() -> defaultdict[str, int]:
    """Numbers keys from 0 in the order they are first asked for: a hundred thousand of them in a save's merge."""
    return defaultdict(count().__next__)


def build(docs: Iterable[tuple[str, Doc]]) -> Segment:
    """One segment of these notes, read one by one: a whole store's counts as dicts would take 80 MB."""
    numbers = _numbering()
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


def merge(parts: Sequence[Part]) -> Segment:
    """One segment of the living notes of these parts."""
    numbers = _numbering()
    names: list[str] = []
    lengths: list[Ints] = []
    columns: list[_Columns] = []
    for part in parts:
        segment = part.segment
        alive = _mask(part)
        kept = alive[segment.docs]
        keys = np.repeat(np.arange(len(segment.keys), dtype=np.int32), np.diff(segment.starts))[kept]
        used = np.bincount(keys, minlength=len(segment.keys)) > 0
        renumber = np.zeros(len(segment.keys), np.int32)
        renumber[used] = np.fromiter(map(numbers.__getitem__, compress(segment.keys, used.tolist())), np.int32)
        replace = np.cumsum(alive, dtype=np.int32) - 1 + len(names)
        owners = replace[segment.docs[kept]]
        columns.append(_Columns(renumber[keys], owners, segment.counts[kept], segment.weighed[kept]))
        names += living_names(part)
        lengths.append(segment.lengths[alive])
    all_columns = _Columns(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    return _pack(tuple(names), np.concatenate(lengths), numbers, all_columns)


def _pack(names: tuple[str, ...], lengths: Ints, numbers: Mapping[str, int], columns: _Columns) -> Segment:
    """A segment of postings given in any order of keys."""
    order = np.argsort(columns.keys, kind="stable")
    starts = np.zeros(len(numbers) + 1, np.int32)
    np.cumsum(np.bincount(columns.keys, minlength=len(numbers)), out=starts[1:])
    docs, weighed = columns.owners[order], columns.weighed[order]
    of_forms, fanout = _numbered_forms(numbers)
    form_starts, form_docs, form_weighed = _form_postings(of_forms, starts, docs, weighed, len(names))
    return Segment(
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
    """The forms of some keys: their numbers (see `Segment`); beside each number from 0 a key that has the form."""

    numbers: Mapping[str, int]
    rows: Ints
    owners: Ints


def _numbered_forms(keys: Iterable[str]) -> tuple[_Forms, Ints]:
    """The forms of keys numbered in their order, and how many each key has."""
    words = list(keys)
    those = list(map(forms.forms, words))
    fans = np.fromiter(map(len, those), np.int32, len(words))
    numbers = _numbering()
    forms_of = np.fromiter(map(numbers.__getitem__, chain.from_iterable(those)), np.int32)
    owners = np.repeat(np.arange(len(words), dtype=np.int32), fans)
    several = np.bincount(forms_of, minlength=len(numbers)) > 1
    rows = np.cumsum(several, dtype=np.int32) - 1
    sole = np.zeros(len(numbers), np.int32)
    sole[forms_of] = owners
    # One that is the only form of a key, and no other word's, has the number of that key.
    is_other = np.fromiter(map(ne, numbers, map(words.__getitem__, sole.tolist())), np.bool_, len(numbers))
    named = several | is_other
    own = np.where(several, rows, ~sole)[named]
    kept = several[forms_of]
    found = dict(zip(compress(numbers, named.tolist()), own.tolist(), strict=True))
    return _Forms(found, rows[forms_of[kept]], owners[kept]), fans


def _form_postings(found: _Forms, starts: Ints, docs: Ints, weighed: Ints, notes: int) -> tuple[Ints, Ints, Ints]:
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


def _small(values: Ints) -> Ints:
    """The same numbers in the fewest bytes."""
    largest = int(values.max(initial=0))
    return _sealed(values.astype(np.min_scalar_type(largest)))


def _sealed(values: Ints) -> Ints:
    values.flags.writeable = False
    return values
