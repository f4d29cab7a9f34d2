"""The stem of a word. Law: the script of its letters chooses the stemmer; one of no script it knows is its own.

A stem is no word, only a string that the forms of a word share: `retries` and `retry` give `retri`, `заметками` and
`заметка` give `заметк`. Snowball's stemmers, by its own binding; this room alone imports it. They are made when they
are first asked for. Of the languages that share the Latin letters English is taken: it is what code and most notes
are written in, and its rules leave other languages' words alone but for a few endings. Pure. SPEC section 6.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import Stemmer

_SCRIPTS: Final = (
    ("\u00c0", "\u024f", "english"),
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
"""The first and the last letter of each script, and the language whose stemmer it has."""


def stem(word: str) -> str:
    """The stem of a token of `tokens.tokenize`, or of a part of one; a word with digits or signs is its own."""
    if word.isascii():
        return _stemmer("english")(word) if word.isalpha() else word
    for first, last, language in _SCRIPTS:
        if first <= word[0] <= last:
            return _stemmer(language)(word)
    # A Latin word may have its first letter that is not ASCII anywhere.
    return _stemmer("english")(word) if word[0].isascii() and word.isalpha() else word


def stems(words: Sequence[str]) -> list[str]:
    """The stems of these words in their order; sooner than one by one."""
    together = "".join(words)
    if not together.isascii():
        return list(map(stem, words))
    stem_words: Callable[[Sequence[str]], list[str]] = _snowball("english").stemWords
    if together.isalpha():
        return stem_words(words)
    return [found if word.isalpha() else word for word, found in zip(words, stem_words(words), strict=True)]


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    stem_word: Callable[[str], str] = _snowball(language).stemWord
    return stem_word


@cache
def _snowball(language: str) -> Stemmer.Stemmer:
    # Its cache would keep 10,000 words for each language; whoever asks for a word often keeps what it got.
    return Stemmer.Stemmer(language, 0)
