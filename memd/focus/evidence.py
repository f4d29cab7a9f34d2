"""Which notes earn a body. Law: words that any request could hold give no note a body.

`fitting` is the rule of *abstain* (SPEC section 9); everything else here serves it. Its constants were chosen on
`tests/evals` (`make eval` prints the trade-off they were chosen from), each in the middle of a plateau and not
at the best point. Pure: arithmetic on the rankings of `bm25`, no other arrays.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Final, NamedTuple

import msgspec

from memd import bm25, forms, tokens
from memd.bm25 import Ranking
from memd.focus.words import pieces, stem, weight
from memd.snapshots import Snapshot
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
    note shares with a long paste. `pasted`: how many times `least` a body must be worth where something was pasted.
    """

    least: float = 0.45
    close: float = 0.5
    hook: float = 0.5
    chance: float = 1.5
    pasted: float = 2.0


RULE: Final = Rule()
RULES: Final[Mapping[str, Rule]] = {"plain": RULE, "rich": Rule(close=0.55, pasted=3.0)}
"""The rule of each ranker."""


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
    """Words that count alike: how much each `tells`, 0 to 1; whether they stand at an end; a piece of a token."""

    tells: float
    first: bool
    last: bool
    piece: bool

    @property
    def share(self) -> float:
        """How much of a whole word each is."""
        return PIECE if self.piece else 1.0


class _Ranked(NamedTuple):
    """The words of a group, and the ranking of just these."""

    group: _Group
    words: Sequence[str]
    ranking: Ranking


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

    A note with `least` evidence (`pasted` times that where something was) gets a body if its closeness (the
    weighted score plus its hook's words) is at least `close` of the closest note's, whether that one has
    evidence or not: where a note without evidence stands far above, the match below it is chance.
    """
    if not ranking.total:
        return Fits(())
    found = tokens.tokenize(prompt)
    pasted = len(found) > TYPED
    first, last = (frozenset(end) for end in ((found[:END], found[-END:]) if pasted else (found, found)))
    parts = (
        _rich_parts(ranking, snapshots, first, last) if ranking.is_rich else _parts(prompt, snapshots, first, last)
    )
    unit = _unit(snapshots) * (1 + forms.WORD if ranking.is_rich else 1)
    asked = _Asked(parts, ranking, unit, hook_of, weigh, rule, least=rule.least * (rule.pasted if pasted else 1))
    if not pasted:
        return Fits(tuple(asked.fits(lambda _group: True)))
    # The question stands before what was pasted, or after it. Nobody can say which, so both are asked in turn.
    turns = chain.from_iterable(
        zip_longest(asked.fits(lambda group: group.last), asked.fits(lambda group: group.first))
    )
    return Fits(tuple(dict.fromkeys(fit for fit in turns if fit is not None)), pasted=True)


class _Asked(msgspec.Struct, frozen=True):
    """A prompt as `fitting` was given it, its words ranked group by group; `unit` is what one unique word gives."""

    parts: Sequence[_Ranked]
    ranking: Ranking
    unit: float
    hook_of: Callable[[int, str], str]
    weigh: Callable[[int, str], float]
    rule: Rule
    least: float

    def fits(self, is_typed: Callable[[_Group], bool]) -> list[Fit]:
        """The notes that fit when these words were typed and all others pasted, closest first."""
        typed = [part for part in self.parts if is_typed(part.group)]
        pasted = [part for part in self.parts if not is_typed(part.group)]
        dimmed = min(1.0, PASTE / max(1, sum(len(part.words) for part in pasted)))
        stands = _blend([*_shares(typed, 1.0), *_shares(pasted, dimmed)])
        if stands is None:
            return []
        of_typed, of_paste = (_blend(_telling(part, self.unit)) for part in (typed, pasted))
        forms = _forms(typed)
        standings = []
        for at, store, name in _best(stands):
            score = _at(self.ranking, at)
            if score == 0:
                continue  # only a piece of a word matched: not a scored note
            said = _said(f"{name} {self.hook_of(store, name)}", forms)
            in_paste = max(0.0, _at(of_paste, at) - self.rule.chance)
            standings.append(
                _Standing(
                    Fit(store, name, score),
                    closeness=_at(stands, at) * self.weigh(store, name) + said,
                    evidence=_at(of_typed, at) + in_paste + self.rule.hook * said,
                )
            )
        standings.sort(key=lambda standing: -standing.closeness)  # those that tie keep the order of `_best`
        close = self.rule.close * standings[0].closeness if standings else 0.0
        return [found.fit for found in standings if found.evidence >= self.least and found.closeness >= close]


def _parts(
    prompt: str, snapshots: Sequence[Snapshot], first: Collection[str], last: Collection[str]
) -> list[_Ranked]:
    """The words of the prompt by the ranker `plain`, group by group."""
    groups = _groups(tokens.query_terms(prompt), first, last)
    return [
        _Ranked(group, [term.text for term in terms], bm25.rank(terms, snapshots)) for group, terms in groups.items()
    ]


def _rich_parts(
    ranking: Ranking, snapshots: Sequence[Snapshot], first: Collection[str], last: Collection[str]
) -> list[_Ranked]:
    """What the ranker `rich` asked for, group by group: a form tells what the word does that it comes from."""
    ends = [{part for token in end for part in (token, *forms.parts_of(token))} for end in (first, last)]
    groups: dict[_Group, list[bm25.Weighty]] = {}
    for weighty in ranking.weights:
        asked = weighty.asked
        words = asked.word.split(" ")
        tells = weight(asked.word) if asked.kind in _TELLING_KINDS else 0.0
        if asked.kind == "part" and not _can_stand(asked.word):
            tells = 0.0
        at_first, at_last = (all(word in end for word in words) for end in ends)
        group = _Group(tells, at_first, at_last, piece=False)
        groups.setdefault(group, []).append(weighty)
    return [
        _Ranked(group, list(dict.fromkeys(one.asked.word for one in asked)), bm25.part_of(ranking, asked, snapshots))
        for group, asked in groups.items()
    ]


_TELLING_KINDS: Final = frozenset(("word", "form", "part"))


def _groups(terms: Sequence[Term], first: Collection[str], last: Collection[str]) -> Mapping[_Group, Sequence[Term]]:
    """The terms of the prompt, and the pieces of its longer tokens that are none themselves, in groups."""
    groups: dict[_Group, list[Term]] = {}
    parts: dict[str, tuple[bool, bool]] = {}  # a piece -> whether it stands at an end
    whole = {term.text: (term.text in first, term.text in last) for term in terms}
    for term in terms:
        ends = whole[term.text]
        groups.setdefault(_Group(weight(term.text), *ends, piece=False), []).append(term)
        for piece in pieces(term.text):
            if piece not in whole and _can_stand(piece):
                known = parts.get(piece, (False, False))
                parts[piece] = known[0] or ends[0], known[1] or ends[1]
    for piece, ends in parts.items():
        groups.setdefault(_Group(weight(piece), *ends, piece=True), []).append(Term(piece, spread=False))
    return groups


def _shares(parts: Iterable[_Ranked], factor: float) -> Iterator[tuple[float, Ranking]]:
    """The parts with how much they count for how a note stands."""
    return ((part.group.share * factor, part.ranking) for part in parts)


def _telling(parts: Iterable[_Ranked], unit: float) -> Iterator[tuple[float, Ranking]]:
    """The parts that tell something, with how much, in unique words."""
    return ((part.group.share * part.group.tells / unit, part.ranking) for part in parts if part.group.tells)


def _can_stand(piece: str) -> bool:
    """Whether a piece of a longer token says something by itself: `py` and `12` do not."""
    return len(piece) >= _LEAST_PIECE and not piece.isdigit() and piece not in tokens.STOPWORDS


def _blend(parts: Iterable[tuple[float, Ranking]]) -> Ranking | None:
    """The weighted sum of rankings over the same snapshots, since BM25 adds up over terms. None for no hit."""
    whole: Ranking | None = None
    for share, part in parts:
        if part.total:
            scores = part.scores * share if whole is None else whole.scores + part.scores * share
            whole = msgspec.structs.replace(part, scores=scores)
    return whole


def _best(ranking: Ranking) -> list[tuple[int, int, str]]:
    """The `CANDIDATES` best as (place among the scores, store, name); ties by store, then name."""
    order = ranking.scores.argsort()[::-1]
    last = ranking.scores[order[:CANDIDATES][-1]]
    # All that tie with the last stay in until their names decide: the answer must not hang on how notes came in.
    places = order[: int((ranking.scores >= last).sum())].tolist()
    found = [(at, *ranking.where(at)) for at in places if ranking.scores[at] > 0]
    found.sort(key=lambda note: (-float(ranking.scores[note[0]]), note[1], note[2]))
    return found[:CANDIDATES]


def _at(ranking: Ranking | None, at: int) -> float:
    return 0.0 if ranking is None else float(ranking.scores[at])


def _unit(snapshots: Sequence[Snapshot]) -> float:
    """What BM25 gives for a word that one note holds, once, at average length."""
    notes = sum(map(len, snapshots))
    return math.log(1 + (notes - 0.5) / 1.5) / (1 + bm25.K1)


def _forms(typed: Iterable[_Ranked]) -> Mapping[str, float]:
    """The stems of the telling words that were typed, and how much each tells."""
    forms: dict[str, float] = {}
    for part in typed:
        if part.group.tells:
            for word in part.words:
                form = stem(word)
                forms[form] = max(forms.get(form, 0.0), part.group.tells)
    return forms


def _said(text: str, forms: Mapping[str, float]) -> float:
    """How much of the prompt a name and hook say, each form counted once."""
    said = {stem(part) for token in tokens.tokenize(text) for part in (token, *pieces(token))} - _TYPE_WORDS
    return math.fsum(forms[form] for form in said if form in forms)
