"""What a hit shows of a text. Law: its own case, no key in it, never longer than its bound. Pure. SPEC 11."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from memd import forms, secrets
from memd.forms import Asked
from memd.tokens import spread_keys, tokenize

SNIPPET_MAX = 160
"""Characters of a snippet."""

_PIECE = re.compile(r"\S{1,24}")  # a word, or part of one where a script puts no spaces
_LEAD = 24  # characters shown before the first word that was asked for


class Snippet(NamedTuple):
    """What is shown of a text, whether it is less than all of it, and whether a key-shaped run was masked in it."""

    text: str
    cut: bool
    redacted: bool


def snippet(text: str, asked: Sequence[Asked]) -> Snippet:
    """The first stretch of a text that holds most of what was asked for; white space as one space each."""
    masked = secrets.redact(text)
    line = " ".join(masked.split())
    if len(line) <= SNIPPET_MAX:
        return Snippet(line, cut=False, redacted=masked != text)
    start = max(0, min(_best(line, asked), len(line) - SNIPPET_MAX))
    if start:
        start = line.find(" ", start, start + _LEAD) + 1 or start
    return Snippet(line[start : start + SNIPPET_MAX].strip(), cut=True, redacted=masked != text)


def _best(line: str, asked: Sequence[Asked]) -> int:
    """Where the window begins that holds the most of what was asked for."""
    hits = [(piece.start(), piece.end(), held) for piece in _PIECE.finditer(line) if (held := _held(piece[0], asked))]
    best, most = 0, 0
    for number, (start, _, _) in enumerate(hits):
        seen: set[int] = set()
        for _, end, held in hits[number:]:
            if end - start > SNIPPET_MAX - _LEAD:
                break
            seen |= held
        if len(seen) > most:
            best, most = start, len(seen)
            if most == len(asked):
                break
    return best - _LEAD


def _held(word: str, asked: Sequence[Asked]) -> set[int]:
    """What a word of the text holds of the asked, by its place."""
    found = tokenize(word)
    keys = {*found, *forms.humps(word)}
    for token in found:
        keys.update(spread_keys(token))
    of_forms = {form for key in keys for form in forms.forms(key)}
    return {at for at, ask in enumerate(asked) if ask.key in (of_forms if ask.is_form else keys)}
