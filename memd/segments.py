"""Postings of many notes. Law: they hold counts and lengths, never scores, because one more note changes every score.

A `Segment` never changes. It is built of notes, or merged of what lives in others, and a `Part` is one as a
snapshot sees it. One segment serves both rankers: the postings of forms are made from those of the words, and only
where a form has several. Pure: numpy and msgspec. SPEC section 6.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate, chain, compress, count
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
    counts: dict[str, int] = Counter(words.tokens)
    for key in words.humps:
        counts[key] += 1
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
    return Doc(counts, weighed, len(words.tokens))


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


def hooked(part: Part, keys: Set[str], least: int) -> Iterator[str]:
    """Of the living notes, by name, all whose name and hook hold at least `least` of these keys, and a few others.

    Who holds so many misses but a few, and so has two of the rarest, or one where one is enough: only those are
    looked up, whatever the store has of the others.
    """
    segment = part.segment
    numbers = [number for number in map(segment.keys.get, keys) if number is not None]
    if len(numbers) < least:
        return
    spans = [(segment.starts.item(number), segment.starts.item(number + 1)) for number in numbers]
    spans.sort(key=_length)
    once: set[int] = set()
    found: set[int] = set()
    for begin, end in spans[: len(spans) - least + min(least, 2)]:
        in_head = segment.weighed[begin:end] > segment.counts[begin:end]
        having = segment.docs[begin:end][in_head].tolist()
        found.update(having if least == 1 else once.intersection(having))
        once.update(having)
    for at in found:
        if part.alive is None or part.alive[at]:
            yield segment.names[at]


def _length(span: tuple[int, int]) -> int:
    return span[1] - span[0]


# -- how one is made ---------------------------------------------------------------------------------------------


class _Columns(NamedTuple):
    """Postings in any order: the number of the key, the document, and how often, as it is and weighed."""

    keys: Ints
    owners: Ints
    counts: Ints
    weighed: Ints

    def after(self, notes: int) -> "_Columns":
        """The same where so many notes come before those of it."""
        return self._replace(owners=self.owners + notes) if notes else self


class _Rows(NamedTuple):
    """Notes on their way into a segment, numbered from 0: their names, how long they are, their postings."""

    names: Sequence[str]
    lengths: Ints
    columns: _Columns


def _numbering() -> defaultdict[str, int]:
    """Numbers keys from 0 in the order they are first asked for: a hundred thousand of them in a save's merge."""
    return defaultdict(count().__next__)


def merge(parts: Sequence[Part], docs: Iterable[tuple[str, Doc]] = ()) -> Segment:
    """One segment of the living notes of these parts, and of notes that are in none."""
    numbers = _numbering()
    rows = [*(_living_rows(part, numbers) for part in parts), _fresh_rows(docs, numbers)]
    begins = accumulate([len(each.names) for each in rows[:-1]], initial=0)
    columns = [each.columns.after(notes) for each, notes in zip(rows, begins, strict=True)]
    return _pack(
        tuple(chain.from_iterable(each.names for each in rows)),
        np.concatenate([each.lengths for each in rows]),
        numbers,
        _Columns(*map(_joined, zip(*columns, strict=True))),
    )


def _joined(columns: Sequence[Ints]) -> Ints:
    """These columns as one; a lone one is not copied, since it may be a whole store's."""
    filled = [column for column in columns if len(column)]
    return filled[0] if len(filled) == 1 else np.concatenate(columns)


def _fresh_rows(docs: Iterable[tuple[str, Doc]], numbers: Mapping[str, int]) -> _Rows:
    """Notes, read one by one: a whole store's counts as dicts would take 80 MB."""
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
    return _Rows(names, np.array(lengths), _Columns(np.array(keys), owners, np.array(counts), np.array(weighed)))


def _living_rows(part: Part, numbers: Mapping[str, int]) -> _Rows:
    """The notes of a part that live."""
    segment = part.segment
    alive = _mask(part)
    kept = alive[segment.docs]
    keys = np.repeat(np.arange(len(segment.keys), dtype=np.int32), np.diff(segment.starts))[kept]
    used = np.bincount(keys, minlength=len(segment.keys)) > 0
    renumber = np.zeros(len(segment.keys), np.int32)
    renumber[used] = np.fromiter(map(numbers.__getitem__, compress(segment.keys, used.tolist())), np.int32)
    replace = np.cumsum(alive, dtype=np.int32) - 1
    columns = _Columns(renumber[keys], replace[segment.docs[kept]], segment.counts[kept], segment.weighed[kept])
    return _Rows([*living_names(part)], segment.lengths[alive], columns)


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


def _numbered_forms(keys: Mapping[str, int]) -> tuple[_Forms, Ints]:
    """The forms of keys numbered in their order, and how many each key has.

    A key that is its own form, and has no other, needs no number, nor any work unless another key has that form.
    """
    those = list(map(forms.forms, keys))
    is_other = list(map(ne, those, zip(keys)))
    others = list(compress(keys.values(), is_other))
    fans = np.ones(len(those), np.int32)
    fans[others] = [len(those[at]) for at in others]
    numbers = _numbering()
    forms_of = list(map(numbers.__getitem__, chain.from_iterable(map(those.__getitem__, others))))
    owners = np.repeat(np.array(others, np.int32), fans[others]).tolist()
    for form in numbers.keys() & keys.keys():
        if not is_other[keys[form]]:
            forms_of.append(numbers[form])
            owners.append(keys[form])
    of, by = np.array(forms_of, np.int32), np.array(owners, np.int32)
    several = np.bincount(of, minlength=len(numbers)) > 1
    rows = np.cumsum(several, dtype=np.int32) - 1
    sole = np.zeros(len(numbers), np.int32)
    sole[of] = by
    found = dict(zip(numbers, np.where(several, rows, ~sole).tolist(), strict=True))
    kept = several[of]
    return _Forms(found, rows[of[kept]], by[kept]), fans


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
