"""Which notes earn a body. Law: words that any request could hold give no note a body.

`fitting` is the rule of *abstain* (SPEC section 9); everything else here serves it. Its constants were chosen on
`tests/evals` (`make eval` prints the trade-off they were chosen from), each in the middle of a plateau and not
at the best point. Pure: arithmetic on the rankings of `bm25`, no other arrays.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Final, NamedTuple

import msgspec

from memd import bm25, tokens
from memd.bm25 import Ranking, Snapshot
from memd.focus.words import pieces, stem, weight
from memd.tokens import Term

CANDIDATES: Final = 24
"""Notes looked at: the best by their words."""
TYPED: Final = 96
"""Words; a longer prompt holds something that was pasted."""
END: Final = 24
"""Words at one end of such a prompt that count as typed."""
PASTE: Final = 16
"""Distinct words: however many were pasted, all of them weigh no more than this many."""
PIECE: Final = 0.5
"""What a piece of a path or URL counts, beside the whole."""

_TYPE_WORDS: Final = frozenset(("feedback", "project", "reference", "user"))
_LEAST_PIECE: Final = 3  # characters


class Rule(msgspec.Struct, frozen=True):
    """The constants of `fitting` that the evaluation sweeps.

    `least`: the unique words a body must be worth. `close`: the part of the closest note's closeness it must
    have. `hook`: what a telling word counts more when name or hook has it. `chance`: the unique words that any
    note shares with a long paste.
    """

    least: float = 0.45
    close: float = 0.5
    hook: float = 0.5
    chance: float = 1.5


RULE: Final = Rule()


class Fit(msgspec.Struct, frozen=True):
    """A note that fits: its store's place, its name, its score by the plain ranking (unweighted)."""

    store: int
    name: str
    score: float


class Fits(msgspec.Struct, frozen=True):
    """The notes that fit, closest first; `pasted`: the prompt holds a paste, which their scores count."""

    notes: tuple[Fit, ...]
    pasted: bool = False


class _Group(NamedTuple):
    """Words that count alike: how much each `tells`, 0 to 1; pasted, or typed; a piece of a longer token."""

    tells: float
    pasted: bool
    piece: bool

    @property
    def share(self) -> float:
        """How much of a whole word each is."""
        return PIECE if self.piece else 1.0


_Words = Mapping[_Group, Sequence[Term]]


class _Standing(msgspec.Struct, frozen=True):
    """How a candidate stands: `closeness` orders and compares, `evidence` is in unique words."""

    fit: Fit
    closeness: float
    evidence: float


def fitting(
    prompt: str,
    ranking: Ranking,
    snapshots: Sequence[Snapshot],
    hook_of: Callable[[int, str], str],
    weigh: Callable[[int, str], float],
    rule: Rule = RULE,
) -> Fits:
    """The notes that fit the prompt closely enough for a body.

    `ranking` is the plain ranking of the prompt over `snapshots`; `hook_of` and `weigh` give a note's hook and
    its type's weight by (store, name).

    The plain ranking always has a best note, and for "can you help me fix this" it has one, too. So the rule
    asks of each note for *evidence*, and the unit is one unique word: a word of weight 1 (`words.weight`) that
    only this note holds, once, at average length. That is BM25 over the telling words, divided by what such a
    word gives, so one bound serves a store of ten notes and one of ten thousand:

    - a word's rarity in the store comes from the ranking itself, its rarity in ordinary language from the
      lists: a store is small, so that in it "great" is as rare as "pgbouncer", and the store alone cannot know;
    - a telling word in the name or hook counts `hook` more, in any of its forms: the hook says what a note is
      for, and its writer and the asker inflect as they like;
    - a path or URL also stands for its pieces, half: stack traces name what a note calls by a shorter name;
    - what a person typed stands before a paste or after it: in a prompt of more than `TYPED` words the first and
      the last `END` are asked in turn. Everything else weighs no more than `PASTE` words, and the first `chance`
      unique words in it count nothing: every log shares a few words with some note.

    A note with `least` evidence (twice that where something was pasted) gets a body if its closeness (the
    weighted score plus its hook's words) is at least `close` of the closest note's, whether that one has
    evidence or not: where a note without evidence stands far above, the match below it is chance.
    """
    if not ranking.total:
        return Fits(())
    asked = _Asked(prompt, ranking, snapshots, hook_of, weigh, rule)
    found = tokens.tokenize(prompt)
    if len(found) <= TYPED:
        return Fits(tuple(asked.fits(frozenset(found), pasted=False)))
    # The question stands before what was pasted, or after it. Nobody can say which, so both are asked in turn.
    last, first = (asked.fits(frozenset(end), pasted=True) for end in (found[-END:], found[:END]))
    turns = chain.from_iterable(zip_longest(last, first))
    return Fits(tuple(dict.fromkeys(fit for fit in turns if fit is not None)), pasted=True)


class _Asked(msgspec.Struct, frozen=True):
    """A prompt as `fitting` was given it."""

    prompt: str
    ranking: Ranking
    snapshots: Sequence[Snapshot]
    hook_of: Callable[[int, str], str]
    weigh: Callable[[int, str], float]
    rule: Rule

    def fits(self, typed: Collection[str], *, pasted: bool) -> list[Fit]:
        """The notes that fit when these words were typed and all others pasted, closest first."""
        words = _words(self.prompt, typed)
        parts = [
            (group, ranked) for group, terms in words.items() if (ranked := bm25.rank(terms, self.snapshots)).total
        ]
        dimmed = min(1.0, PASTE / max(1, sum(len(terms) for group, terms in words.items() if group.pasted)))
        stands = _blend((group.share * (dimmed if group.pasted else 1.0), ranked) for group, ranked in parts)
        if stands is None:
            return []
        unit = _unit(self.snapshots)
        of_typed = _blend((group.share * group.tells / unit, ranked) for group, ranked in parts if not group.pasted)
        of_paste = _blend((group.share * group.tells / unit, ranked) for group, ranked in parts if group.pasted)
        forms = _forms(words)
        standings = []
        for at, store, name in _best(stands):
            score = _at(self.ranking, at)
            if score == 0:
                continue  # only a piece of a word matched: not a scored note
            said = _said(f"{name} {self.hook_of(store, name)}", forms)
            standings.append(
                _Standing(
                    Fit(store, name, score),
                    closeness=_at(stands, at) * self.weigh(store, name) + said,
                    evidence=_at(of_typed, at)
                    + max(0.0, _at(of_paste, at) - self.rule.chance)
                    + self.rule.hook * said,
                )
            )
        standings.sort(key=lambda standing: -standing.closeness)  # those that tie keep the order of `_best`
        least = self.rule.least * (2 if pasted else 1)
        close = self.rule.close * standings[0].closeness if standings else 0.0
        return [found.fit for found in standings if found.evidence >= least and found.closeness >= close]


def _words(prompt: str, typed: Collection[str]) -> _Words:
    """The terms of the prompt, and the pieces of its longer tokens that are none themselves, in groups."""
    groups: dict[_Group, list[Term]] = {}
    terms = tokens.query_terms(prompt)
    whole = {term.text for term in terms}
    parts: dict[str, bool] = {}  # a piece -> whether it comes from pasted words alone
    for term in terms:
        pasted = term.text not in typed
        groups.setdefault(_Group(weight(term.text), pasted, piece=False), []).append(term)
        for piece in pieces(term.text):
            if piece not in whole and _can_stand(piece):
                parts[piece] = parts.get(piece, True) and pasted
    for piece, pasted in parts.items():
        groups.setdefault(_Group(weight(piece), pasted, piece=True), []).append(Term(piece, spread=False))
    return groups


def _can_stand(piece: str) -> bool:
    """Whether a piece of a longer token says something by itself: `py` and `12` do not."""
    return len(piece) >= _LEAST_PIECE and not piece.isdigit() and piece not in tokens.STOPWORDS


def _blend(parts: Iterable[tuple[float, Ranking]]) -> Ranking | None:
    """The weighted sum of rankings over the same snapshots, since BM25 adds up over terms. None of no part."""
    whole: Ranking | None = None
    for share, part in parts:
        scores = part.scores * share if whole is None else whole.scores + part.scores * share
        whole = msgspec.structs.replace(part, scores=scores)
    return whole


def _best(ranking: Ranking) -> list[tuple[int, int, str]]:
    """The `CANDIDATES` best as (place among the scores, store, name); ties by store, then name."""
    order = ranking.scores.argsort()[::-1]
    last = ranking.scores[order[:CANDIDATES][-1]]
    # All that tie with the last stay in until their names decide: the answer must not hang on how notes came in.
    places = order[: int((ranking.scores >= last).sum())].tolist()
    found = [(at, *_note_at(ranking, at)) for at in places if ranking.scores[at] > 0]
    found.sort(key=lambda note: (-float(ranking.scores[note[0]]), note[1], note[2]))
    return found[:CANDIDATES]


def _at(ranking: Ranking | None, at: int) -> float:
    return 0.0 if ranking is None else float(ranking.scores[at])


def _note_at(ranking: Ranking, at: int) -> tuple[int, str]:
    """The store and the name of one of the ranking's scores."""
    piece = bisect_right(ranking.ends, at)
    store, names = ranking.pieces[piece]
    return store, names[at - ranking.ends[piece]]


def _unit(snapshots: Sequence[Snapshot]) -> float:
    """What BM25 gives for a word that one note holds, once, at average length."""
    notes = sum(map(len, snapshots))
    return math.log(1 + (notes - 0.5) / 1.5) / (1 + bm25.K1)


def _forms(words: _Words) -> Mapping[str, float]:
    """The stems of the telling words that were typed, and how much each tells."""
    forms: dict[str, float] = {}
    for group, terms in words.items():
        if group.tells and not group.pasted:
            for term in terms:
                form = stem(term.text)
                forms[form] = max(forms.get(form, 0.0), group.tells)
    return forms


def _said(text: str, forms: Mapping[str, float]) -> float:
    """How much of the prompt a name and hook say, each form counted once."""
    said = {stem(part) for token in tokens.tokenize(text) for part in (token, *pieces(token))} - _TYPE_WORDS
    return math.fsum(forms[form] for form in said if form in forms)
