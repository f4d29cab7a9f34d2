"""The words of a text. Law: ASCII text gives exactly the first seed's tokens; other scripts only add to that.

Two paths, one answer. ASCII text (nearly all of it) is one regular expression over the lower-cased text.
Other text is normalized (NFKC, case-folded) and cut at ASCII separators; a piece that came out ASCII takes
the same expression, and only what is left is walked character by character. Both take time linear in the
text, even in one made to be slow. Pure: standard library only. SPEC section 6.
"""

import itertools
import re
import unicodedata
from collections.abc import Set
from functools import lru_cache
from typing import NamedTuple

_FUNCTION_WORDS = (
    "a all an and any are as at be but by can could did do does for from had has have here how i if in is it"
    " its just more most my no not of on or our should so some that the then there they this to was we were"
    " what when which why will with would you your"
)
STOPWORDS = frozenset(_FUNCTION_WORDS.split())

_WORD = re.compile(r"[a-z0-9_]+(?:[./-][a-z0-9_]+)*")
_PIECE = re.compile(r"[a-z0-9_./\-\u0080-\U0010ffff]+")
_JOINERS = frozenset("./-")

# Normalizing sorts a run of combining marks by insertion: a long run out of order takes quadratic time. No
# writing system stacks 30 marks (UAX 15 picks the same bound for its stream-safe format).
_MAX_MARKS = 30
_MARK_RUN = re.compile(rf"[^\w\x00-\x7f]{{{_MAX_MARKS + 1},}}")

# Variation selectors pick a glyph and say nothing: 葛 with and without one is the same character.
_SELECTORS = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]+")

# The classes of a character. Any other class is the name of an alphabet, as the character database spells it.
_NONE = ""  # neither letter nor digit: ends a word
_MARK = "mark"  # continues what it follows, starts nothing
_COMMON = "common"  # digits, `_` and modifier letters belong to every alphabet
_HAN, _KANA, _HANGUL = "han", "kana", "hangul"
_UNSPACED = frozenset((_HAN, _KANA, _HANGUL))

# Written out, because names do not tell: 々 and 〇 are Han, ー is Kana.
_RANGES = (
    (0x1100, 0x11FF, _HANGUL),
    (0x3005, 0x3007, _HAN),
    (0x3021, 0x3029, _HAN),
    (0x3031, 0x3035, _KANA),
    (0x3038, 0x303B, _HAN),
    (0x3041, 0x30FF, _KANA),
    (0x3131, 0x318E, _HANGUL),
    (0x31F0, 0x31FF, _KANA),
    (0x3400, 0x4DBF, _HAN),
    (0x4E00, 0x9FFF, _HAN),
    (0xA960, 0xA97C, _HANGUL),
    (0xAC00, 0xD7FB, _HANGUL),
    (0xF900, 0xFAFF, _HAN),
    (0x1AFF0, 0x1B16F, _KANA),
    (0x20000, 0x3FFFD, _HAN),
)


class Term(NamedTuple):
    """One term of a query; `spread`: one Han, Kana or Hangul character, for every bigram that holds it."""

    text: str
    spread: bool

    @property
    def key(self) -> str:
        """What an index files the term's postings under; see `spread_keys`."""
        return self.text + _SPREAD if self.spread else self.text


_SPREAD = "*"  # no token holds it


def tokenize(text: str) -> list[str]:
    """The tokens of `text` in order, repeats kept, function words dropped (SPEC 6)."""
    if text.isascii():
        return [word for word in _WORD.findall(text.lower()) if word not in STOPWORDS]
    found: list[str] = []
    for piece in _PIECE.findall(_normal(text)):
        if piece.isascii():
            found += _WORD.findall(piece)
        else:
            found += _walk(piece)
    return [word for word in found if word not in STOPWORDS]


def query_terms(text: str) -> tuple[Term, ...]:
    """The terms of a query, each once, in the order they were first seen (SPEC 6)."""
    return tuple(map(term_of, dict.fromkeys(tokenize(text))))


def term_of(token: str) -> Term:
    """The term that a token of a query is."""
    return Term(token, _is_single(token))


def spread_keys(token: str) -> tuple[str, ...]:
    """The extra keys to file `token` under, so that a one-character term finds it: none for a word.

    A bigram `数据` gives `数*` and `据*`, a run of one character its own. `看看` gives one key: the term
    stands for the bigram, however often that holds it.
    """
    if token.isascii() or _class(token[0]) not in _UNSPACED:
        return ()
    return tuple(dict.fromkeys(unit + _SPREAD for unit in _units(token)))


def jaccard(a: str, b: str) -> float:
    """How much of their tokens two texts share, 0 to 1; 0 when neither has any (SPEC 9)."""
    left, right = set(tokenize(a)), set(tokenize(b))
    if not left or not right:
        return 0.0
    shared = len(left & right)
    return shared / (len(left) + len(right) - shared)


def may_share(words: Set[str], text: str, least: int) -> bool:
    """Whether a text can have at least so many of these tokens, told for a tenth of what taking it apart costs.

    A token of ASCII text stands in it as it is; other text is normalized first, so there only `tokenize` tells.
    """
    if not text.isascii():
        return True
    plain = text.lower()
    spare = len(words) - least
    for word in words:
        if word not in plain:
            spare -= 1
            if spare < 0:
                break  # most texts are told by three words of eight
    return spare >= 0


def _normal(text: str) -> str:
    """NFKC, case-folded, and NFKC again: folding takes letters like ΐ apart, in an order of its own."""
    plain = _SELECTORS.sub("", _MARK_RUN.sub(_trim_marks, text))
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", plain).casefold())


def _trim_marks(run: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for char in run[0]:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= _MAX_MARKS:
            kept.append(char)
    return "".join(kept)


def _walk(piece: str) -> list[str]:
    """The tokens of a piece that is not all ASCII, function words still among them."""
    found: list[str] = []
    start = end = 0  # the open word is piece[start:end]
    script = _NONE  # its script: _COMMON until its first letter, _NONE before the first word
    for at, char in enumerate(piece):
        kind = _class(char)
        if kind == _NONE:
            continue
        if kind == _MARK:
            if at == end and script != _NONE:
                end = at + 1
            continue
        joined = at == end + 1 and piece[end] in _JOINERS
        if (at == end or joined) and _same_word(script, kind, joined=joined):
            script = kind if script == _COMMON else script
        else:
            found += _tokens_of(piece[start:end], script)
            start, script = at, kind
        end = at + 1
    return found + _tokens_of(piece[start:end], script)


def _same_word(script: str, kind: str, *, joined: bool) -> bool:
    """Whether a word of this script goes on with a character of that kind."""
    if script in _UNSPACED or kind in _UNSPACED:
        return script == kind and not joined
    return script != _NONE and (script == kind or _COMMON in (script, kind))


def _tokens_of(word: str, script: str) -> list[str]:
    if script not in _UNSPACED:
        return [word] if word else []
    units = _units(word)
    return [a + b for a, b in itertools.pairwise(units)] or units


def _units(run: str) -> list[str]:
    """The characters of a run, each with the marks that follow it."""
    units: list[str] = []
    for char in run:
        if _class(char) == _MARK:
            units[-1] += char
        else:
            units.append(char)
    return units


def _is_single(token: str) -> bool:
    return not token.isascii() and _class(token[0]) in _UNSPACED and len(_units(token)) == 1


@lru_cache(maxsize=8192)
def _class(char: str) -> str:
    """What `char` is to a word: _NONE, _MARK, _COMMON or the name of its script."""
    category = unicodedata.category(char)
    if category.startswith("M"):
        return _MARK
    if char == "_":
        return _COMMON
    if not char.isalnum():
        return _NONE
    code = ord(char)
    for first, last, script in _RANGES:
        if first <= code <= last:
            return script
    if not category.startswith("L"):
        return _COMMON
    # The standard library has no script property; a letter's name begins with its script's.
    script, _, _ = unicodedata.name(char, "UNNAMED").partition(" ")
    return _COMMON if script == "MODIFIER" else script
