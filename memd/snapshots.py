"""A store's index at one moment. Law: one set of notes gives one answer, however it came about, and for ever.

A `Snapshot` is a few segments, each at least eight times as long as the next, and a short tail of notes not yet in
one. A change makes a new snapshot that shares every segment it can: new notes go to the tail, replaced ones are
struck out in a copied mask, a full tail becomes a segment, and neighbours of like size are merged. So a save costs
the note, not the store. Nor does one ever wait for a long merge: that is `due`, and can be done while others save and
search; what it made takes its parts' place when it is `merged`. Pure. SPEC section 6.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import ClassVar

import msgspec

from memd import segments
from memd.forms import Words
from memd.segments import Doc, Part, Recent, Segment, Size

_TAIL = 32  # notes; more of them and looking through the tail costs a query more than a segment would
_RATIO = 8  # a segment is at least this many times as long as the one after it


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """One store's index at one moment; it never changes, so a search needs no lock. Begin with `EMPTY`."""

    EMPTY: ClassVar["Snapshot"]

    parts: tuple[Part, ...] = ()
    tail: Mapping[str, Recent] = msgspec.field(default_factory=dict)

    def __len__(self) -> int:
        return sum([part.notes for part in self.parts]) + len(self.tail)

    @property
    def names(self) -> list[str]:
        """The names of its notes, sorted; made at each call."""
        return sorted(chain(self.tail, *(segments.living_names(part) for part in self.parts)))

    @property
    def size(self) -> Size:
        """How long its notes are together, repeats counted."""
        sizes = [part.size for part in self.parts] + [recent.size for recent in self.tail.values()]
        return Size(sum([size.words for size in sizes]), sum([size.forms for size in sizes]))

    @property
    def tokens(self) -> int:
        """How many words its notes hold, repeats counted."""
        return self.size.words

    def replace(
        self, put: Mapping[str, Words], drop: Collection[str] = (), *, at_once: int | None = None
    ) -> "Snapshot":
        """A snapshot in which the notes of `put` (name -> words) are new or changed, those of `drop` gone.

        A name that is in both is put; one to drop that is not there is passed over. A merge of more notes than
        `at_once` is left to `due`.
        """
        gone = {*put, *drop}
        parts = [segments.without(part, gone) for part in self.parts]
        tail = {name: recent for name, recent in self.tail.items() if name not in gone}
        fresh = ((name, segments.doc(words)) for name, words in put.items())
        arriving = len(tail) + len(put)
        if arriving <= _TAIL:
            tail.update((name, segments.recent(doc)) for name, doc in fresh)
            return Snapshot(tuple(_with(parts, 0, (), at_once)), tail)
        known = ((name, recent.doc) for name, recent in tail.items())
        return Snapshot(tuple(_with(parts, arriving, chain(known, fresh), at_once)))

    def due(self, at_once: int) -> "Merge | None":
        """The merge that `replace` has left undone, if there is one."""
        parts = self.parts[: _begin_of_last(self.parts, at_once)]
        first = _unsettled(parts)
        return Merge(parts[first:]) if first < len(parts) else None

    def merged(self, merge: "Merge", segment: Segment | None) -> "Snapshot":
        """The same notes, in what a `due` merge made of some of them; itself if those are not as they were."""
        made_of = [part.segment for part in merge.parts]
        for begin in range(len(self.parts) - len(made_of) + 1):
            now = self.parts[begin : begin + len(made_of)]
            if all(part.segment is one for part, one in zip(now, made_of, strict=True)):
                part = [] if segment is None else [segments.as_lives(segment, merge.parts, now)]
                return Snapshot((*self.parts[:begin], *part, *self.parts[begin + len(made_of) :]), self.tail)
        return self


Snapshot.EMPTY = Snapshot()


class Merge(msgspec.Struct, frozen=True, eq=False):
    """Neighbours to be made one; it may be done in any thread, while snapshots go on."""

    parts: tuple[Part, ...]

    def segment(self) -> Segment | None:
        """What becomes of them; None when no note lives. It takes 15 ms for 1,000 notes."""
        return segments.merge(self.parts) if any(part.notes for part in self.parts) else None


def held_forms(those: Mapping[str, object], snapshots: Iterable[Snapshot]) -> set[str]:
    """Those of these forms that some note holds; maybe more, of what is some note's word and another word's form.

    It costs least for what is hardly ever held.
    """
    wanted = those.keys()
    found: set[str] = set()
    if wanted:
        for snapshot in snapshots:
            for part in snapshot.parts:
                for keys in (part.segment.forms.keys(), part.segment.keys.keys()):
                    if not wanted.isdisjoint(keys):
                        found |= wanted & keys
            for recent in snapshot.tail.values():
                if not wanted.isdisjoint(recent.forms.keys()):
                    found |= wanted & recent.forms.keys()
    return found


def hooked(snapshot: Snapshot, keys: Set[str], least: int) -> list[str]:
    """Of the living notes, by name, all whose name and hook hold at least `least` of these keys, and a few others:
    what nearly repeats a hook is one.
    """
    found = [name for name, recent in snapshot.tail.items() if len(recent.doc.counts.keys() & keys) >= least]
    return sorted(chain(found, *(segments.hooked(part, keys, least) for part in snapshot.parts)))


def _with(
    parts: Sequence[Part], arriving: int, docs: Iterable[tuple[str, Doc]], at_once: int | None
) -> Sequence[Part]:
    """These parts and so many notes more in one, with every part merged that is too short for what comes after it,
    or is half dead; but of more notes than `at_once` none.
    """
    begin = 0 if at_once is None else _begin_of_last(parts, at_once - arriving)
    first = begin + _unsettled(parts[begin:], arriving)
    short = parts[first:]
    if not short and not arriving:
        return parts
    living = arriving + sum([part.notes for part in short])
    return [*parts[:first], *([segments.whole(segments.merge(short, docs))] if living else [])]


def _unsettled(parts: Sequence[Part], arriving: int = 0) -> int:
    """Where those parts begin that are to be one, so many notes coming after them; their number for none."""
    first = len(parts)
    after = arriving
    for at in reversed(range(len(parts))):
        part = parts[at]
        if part.notes < after * _RATIO or part.notes * 2 < len(part.segment.names):
            first = at
        after += part.notes
    return first


def _begin_of_last(parts: Sequence[Part], notes: int) -> int:
    """Where the last parts begin that have at most so many notes, dead ones among them."""
    begin = len(parts)
    while begin and (notes := notes - len(parts[begin - 1].segment.names)) >= 0:
        begin -= 1
    return begin
