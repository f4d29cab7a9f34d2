"""What a hit shows of a text. Law: its own case, no key in it, never longer than its bound. Pure. SPEC 11."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from memd import secrets
from memd.tokens import Term, tokenize

SNIPPET_MAX = 160
"""Characters of a snippet."""

_PIECE = re.compile(r"\S{1,24}")  # a word, or part of one where a script puts no spaces
_LEAD = 24  # characters shown before the first word that was asked for


class Snippet(NamedTuple):
    """What is shown of a text, whether it is less than all of it, and whether a key-shaped run was masked in it."""

    text: str
    cut: bool
    redacted: bool


def snippet(text: str, terms: Sequence[Term]) -> Snippet:
    """The stretch of a text that holds most of the terms, the first of several; white space as one space each."""
    masked = secrets.redact(text)
    line = " ".join(masked.split())
    if len(line) <= SNIPPET_MAX:
        return Snippet(line, cut=False, redacted=masked != text)
    start = max(0, min(_best(line, terms), len(line) - SNIPPET_MAX))
    if start:
        start = line.find(" ", start, start + _LEAD) + 1 or start
    return Snippet(line[start : start + SNIPPET_MAX].strip(), cut=True, redacted=masked != text)


def _best(line: str, terms: Sequence[Term]) -> int:
    """Where the window begins that holds the most of the terms."""
    hits = [(piece.start(), piece.end(), held) for piece in _PIECE.finditer(line) if (held := _held(piece[0], terms))]
    best, most = 0, 0
    for number, (start, _, _) in enumerate(hits):
        seen: set[Term] = set()
        for _, end, held in hits[number:]:
            if end - start > SNIPPET_MAX - _LEAD:
                break
            seen |= held
        if len(seen) > most:
            best, most = start, len(seen)
            if most == len(terms):
                break
    return best - _LEAD


def _held(word: str, terms: Sequence[Term]) -> set[Term]:
    """The terms that a word of the text holds."""
    tokens = tokenize(word)
    return {
        term for term in terms if any(term.text in token if term.spread else term.text == token for token in tokens)
    }
