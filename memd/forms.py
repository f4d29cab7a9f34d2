"""The forms of words, for the ranker `rich`. Law: each comes from a plain token or a camelCase word, by rule alone.

A token of `tokens.tokenize` is a *word*. Its *forms* are the stems of its parts, or its own stem when it has none:
`scripts/forge_pr.py` has script, forg, pr and py, `retries` has retri, a pair of Han characters itself. A camelCase
word loses its case as a token, so it is kept as a *hump* beside it, which has forms and is no word. What a query asks
for, and how much each counts, is `query`; what that makes of a note's score is told at `bm25.rich`. Pure. SPEC 6.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Final, Literal

import msgspec

from memd import note, tokens
from memd.stems import stem, stems
from memd.tokens import Term

NAME: Final = 2
HOOK: Final = 2
"""How many times a word in a note's name or hook counts; one in its body counts once."""

WORD: Final = 0.3
EXACT: Final = 1.0
JOINED: Final = 0.5
CHARACTER: Final = 0.1
"""What is asked for beside forms, which count 1: a word as it stands, one that has parts, two words written as one, a
Han, Kana or Hangul character of a pair."""

Field = Literal["name", "hook", "body"]
FIELDS: Final[tuple[Field, ...]] = ("name", "hook", "body")
Kind = Literal["word", "form", "part", "joined", "character"]

_HUMP: Final = "\x1f"  # no token holds it
_SPREAD: Final = "*"  # ends the keys of `tokens.spread_keys`
_PARTS: Final = re.compile(r"[._/-]+")
_IDENTIFIER: Final = re.compile(r"[^\W\d][_./]|[_./][^\W\d]|\d")  # what prose joins, it joins with a hyphen
_PIECES: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
# Possessive, and begun at a run's first character only, so that a run is walked once however it ends.
_CAMEL: Final = re.compile(r"(?<![A-Za-z0-9])(?:[A-Z]*+[a-z0-9]++[A-Z]|[A-Z]{2,}+[a-z]{2})[A-Za-z0-9]*+")


class Words(msgspec.Struct, frozen=True):
    """A text's words and humps in order. Those before `ends[0]` are the name's, before `ends[1]` the hook's."""

    tokens: Sequence[str]
    humps: Sequence[str] = ()
    ends: tuple[int, int] = (0, 0)
    hump_ends: tuple[int, int] = (0, 0)

    def shared(self, known: dict[str, str]) -> "Words":
        """The same with each word that is `known` already in the place of its like, and the others known."""
        alike = [known.setdefault(word, word) for word in self.tokens]
        return msgspec.structs.replace(
            self, tokens=alike, humps=[known.setdefault(hump, hump) for hump in self.humps]
        )

    @property
    def name(self) -> Iterator[str]:
        """The words and humps of the name."""
        return chain(self.tokens[: self.ends[0]], self.humps[: self.hump_ends[0]])

    @property
    def hook(self) -> Iterator[str]:
        """The words and humps of the hook."""
        return chain(self.tokens[self.ends[0] : self.ends[1]], self.humps[self.hump_ends[0] : self.hump_ends[1]])

    @property
    def body(self) -> Iterator[str]:
        """The words and humps of the body."""
        return chain(self.tokens[self.ends[1] :], self.humps[self.hump_ends[1] :])


class Asked(msgspec.Struct, frozen=True, gc=False):
    """One thing that a query asks of every note, found under `key` among the words, or the forms when it is one.

    `share` is how much it counts. A note that has it also gets the `above` of it: as much as these forms could give
    at most. `beside` is the one form that is asked for with it. `word` is what it comes from, as it was written.
    """

    word: str
    kind: Kind
    key: str
    share: float = 1.0
    is_form: bool = False
    above: tuple[str, ...] = ()
    beside: str | None = None


class Query(msgspec.Struct, frozen=True):
    """What is asked for, in order, no key twice; a note of one of these `names` is the one that is meant."""

    asked: tuple[Asked, ...]
    names: tuple[str, ...] = ()


def words(name: str, hook: str, body: str) -> Words:
    """The words of a note."""
    named, hooked = tokens.tokenize(name), tokens.tokenize(hook)
    name_humps, hook_humps = humps(name), humps(hook)
    return Words(
        tokens=[*named, *hooked, *tokens.tokenize(body)],
        humps=[*name_humps, *hook_humps, *humps(body)],
        ends=(len(named), len(named) + len(hooked)),
        hump_ends=(len(name_humps), len(name_humps) + len(hook_humps)),
    )


def humps(text: str) -> list[str]:
    """The camelCase words of a text, each as one key for its pieces."""
    if text.islower():  # as queries are
        return []
    return [_HUMP.join(piece.lower() for piece in _PIECES.findall(word)) for word in _CAMEL.findall(text)]


@lru_cache(maxsize=32768)
def forms(key: str) -> tuple[str, ...]:
    """The forms of a word or a hump, repeats kept; of a spread key none."""
    if key.isalnum():  # nearly every word is
        return (stem(key),)
    if key[-1] == _SPREAD:
        return ()
    parts = parts_of(key)
    return tuple(map(stem, parts)) if len(parts) < 2 else tuple(stem(part) for part in parts if is_word(part))


def parts_of(key: str) -> Sequence[str]:
    """The parts of a word or hump, function words among them; a word without any is its own."""
    if key.isalnum():
        return (key,)
    if _HUMP in key:
        return key.split(_HUMP)
    return [part for part in _PARTS.split(key) if part] or [key]


def is_word(part: str) -> bool:
    """Whether a part is none of the function words, which are asked of no note."""
    return part not in tokens.STOPWORDS


def query(text: str) -> Query:
    """What a query asks for by the ranker `rich`."""
    stripped = text.strip()
    slug = note.slug(stripped)
    asked = asked_of(text)
    joined = (
        one.word for one in asked if one.kind == "word" and not one.word.isalnum() and len(parts_of(one.word)) > 1
    )
    names = (stripped, slug, slug.replace("-", "_"), *joined)
    return Query(tuple(asked), tuple(dict.fromkeys(name for name in names if name)))


def asked_of(text: str) -> list[Asked]:
    """What a text asks for, each key once."""
    tokenized = tokens.tokenize(text)
    asked: dict[str, Asked] = {}
    found: dict[str, Asked] = {}
    parts: list[str] = []  # of all tokens, for their neighbours
    for token in tokenized:
        if token.isalnum():
            parts.append(token)
            if token not in asked:
                _add_word(asked, found, token, token)
        else:
            pieces = parts_of(token)
            parts += pieces
            if token not in asked:
                if len(pieces) == 1:
                    _add_word(asked, found, token, pieces[0])
                else:
                    _add_whole(asked, found, token, pieces)
    for hump in humps(text):
        _add_parts(found, parts_of(hump))
    # Neighbours written as one word, `file name` as `filename`.
    neighbours = [(one, other) for one, other in pairwise(parts) if one.isascii() and other.isascii()]
    for (one, other), key in zip(neighbours, stems([one + other for one, other in neighbours]), strict=True):
        if key not in found:
            found[key] = Asked(f"{one} {other}", "joined", key, JOINED, is_form=True)
    if not text.isascii():
        for word in tuple(asked.values()):
            for key in tokens.spread_keys(word.word):
                asked.setdefault(key, Asked(key.removesuffix(_SPREAD), "character", key, CHARACTER))
    return [*asked.values(), *found.values()]


def _add_word(asked: dict[str, Asked], found: dict[str, Asked], token: str, part: str) -> None:
    """Ask for a word of one part, and for its form, which counts for more than one of a longer word."""
    if not token.isascii() and (term := tokens.term_of(token)).spread:
        # One character stands for every pair that holds it, and has no other form.
        asked[term.key] = Asked(token, "word", term.key, 1.0 + WORD)
        return
    form = forms(token)[0]  # kept, as the form of many notes' word
    asked[token] = Asked(token, "word", token, WORD, beside=form if part == token else stem(token))
    found[form] = Asked(part, "form", form, is_form=True)


def _add_whole(asked: dict[str, Asked], found: dict[str, Asked], token: str, parts: Sequence[str]) -> None:
    """Ask for a word that has parts, which counts for the most where code joined them, and for their forms."""
    is_identifier = _IDENTIFIER.search(token)
    asked[token] = (
        Asked(token, "word", token, EXACT, above=forms(token)) if is_identifier else Asked(token, "word", token, WORD)
    )
    _add_parts(found, parts)


def _add_parts(found: dict[str, Asked], parts: Iterable[str]) -> None:
    """Ask for the forms of these parts of a longer word."""
    for part in filter(is_word, parts):
        found.setdefault(form := stem(part), Asked(part, "part", form, is_form=True))


def plain(terms: Iterable[Term]) -> Iterable[Asked]:
    """What these terms ask for by the ranker `plain`: themselves."""
    return {term.key: Asked(term.text, "word", term.key) for term in terms}.values()
