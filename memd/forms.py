"""The forms of words, for the ranker `rich`. Law: each comes from a plain token or a camelCase word, by rule alone.

A token of `tokens.tokenize` is a *word*. Its *forms* are the stems of its parts, or its own stem when it has none:
`scripts/forge_pr.py` has script, forg, pr and py, `retries` has retri, a pair of Han characters itself. A camelCase
word loses its case as a token, so it is kept as a *hump* beside it, which has forms and is no word. What a query asks
for, and how much each counts, is `query`; what that makes of a note's score is told at `bm25.rich`. Pure. SPEC 6.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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

NEIGHBOURS: Final = 10
"""Parts of a query at most whose neighbours are tried as one word: a longer one has other words for it as well, and
its many pairs would be looked for in vain."""

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
    at most. `beside` is the one form that is asked for with it. `word` is what it comes from, as it was written. A
    form `is_own` when it is the only form of the word that is spelled as it is.
    """

    word: str
    kind: Kind
    key: str
    share: float = 1.0
    is_form: bool = False
    is_own: bool = False
    above: tuple[str, ...] = ()
    beside: str | None = None


class Query(msgspec.Struct, frozen=True):
    """What is asked for, no key twice: what was said, then `joined`, forms of two neighbours written as one word.

    Those are kept apart, since few of them are in any note. A note of one of these `names` is the one that is meant.
    """

    said: tuple[Asked, ...]
    names: tuple[str, ...] = ()
    joined: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)

    @property
    def asked(self) -> tuple[Asked, ...]:
        """All of it, in order."""
        return self.asked_with(self.joined)

    def asked_with(self, held: Collection[str]) -> tuple[Asked, ...]:
        """What was said, and those of the joined that are `held`."""
        if not held:
            return self.said
        joined = [
            form_asked(f"{one} {other}", "joined", key, JOINED)
            for key, (one, other) in self.joined.items()
            if key in held
        ]
        return (*self.said, *joined)


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
    words: dict[str, Asked] = {}
    those_forms: dict[str, Asked] = {}
    parts: list[str] = []  # of all words in order, for their neighbours
    wholes: list[str] = []  # those that have parts
    for word in tokens.tokenize(text):
        if word.isalnum():
            parts.append(word)
        else:
            pieces = parts_of(word)
            parts += pieces
            if len(pieces) > 1:
                wholes.append(word)
        itself, its_forms = asked_by(word)
        words[itself.key] = itself
        for one in its_forms:
            if one.kind == "form" or one.key not in those_forms:  # it counts for more than one of a longer word
                those_forms[one.key] = one
    for hump in humps(text):
        for one in _parts(parts_of(hump)):
            those_forms.setdefault(one.key, one)
    if not text.isascii():
        for one in tuple(words.values()):
            for key in tokens.spread_keys(one.word):
                words.setdefault(key, Asked(key.removesuffix(_SPREAD), "character", key, CHARACTER))
    together = joined(parts) if len(parts) <= NEIGHBOURS else {}
    if not together.keys().isdisjoint(those_forms):
        together = {key: pair for key, pair in together.items() if key not in those_forms}
    stripped = text.strip()
    slug = note.slug(stripped)
    names = dict.fromkeys((stripped, slug, slug.replace("-", "_"), *wholes))
    names.pop("", None)
    return Query((*words.values(), *those_forms.values()), tuple(names), together)


@lru_cache(maxsize=4096)
def asked_by(word: str) -> tuple[Asked, Sequence[Asked]]:
    """What a word of a query asks for: itself, and its forms. One with parts counts most where code joined them."""
    parts = parts_of(word)
    if len(parts) > 1:
        if _IDENTIFIER.search(word):
            return Asked(word, "word", word, EXACT, above=forms(word)), _parts(parts)
        return Asked(word, "word", word, WORD), _parts(parts)
    if not word.isascii() and (term := tokens.term_of(word)).spread:
        # One character stands for every pair that holds it, and has no other form.
        return Asked(word, "word", term.key, 1.0 + WORD), ()
    (form,) = forms(word)
    beside = form if parts[0] == word else stem(word)
    return Asked(word, "word", word, WORD, beside=beside), (form_asked(parts[0], "form", form),)


def _parts(parts: Iterable[str]) -> Sequence[Asked]:
    """What the parts of a longer word ask for."""
    return [form_asked(part, "part", stem(part)) for part in parts if is_word(part)]


def form_asked(word: str, kind: Kind, form: str, share: float = 1.0) -> Asked:
    """What asks for a form."""
    return Asked(word, kind, form, share, is_form=True, is_own=forms(form) == (form,))


def joined(parts: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Neighbours written as one word, `file name` as `filename`: its form, and the first two that have it."""
    pairs = list(pairwise(parts))
    if not "".join(parts).isascii():
        pairs = [(one, other) for one, other in pairs if one.isascii() and other.isascii()]
    keys = stems(list(map("".join, pairs)))
    found = dict(zip(keys, pairs, strict=True))
    if len(found) < len(keys):
        found = {}
        for key, pair in zip(keys, pairs, strict=True):
            found.setdefault(key, pair)
    return found


def plain(terms: Iterable[Term]) -> Iterable[Asked]:
    """What these terms ask for by the ranker `plain`: themselves."""
    return {term.key: Asked(term.text, "word", term.key) for term in terms}.values()
