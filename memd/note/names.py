"""The names of notes. Law: a slug is its own slug, and twins have one. Pure. SPEC section 2."""

import re
import unicodedata

MAX_SLUG = 80  # characters
MAX_SLUG_BYTES = 200
RESERVED = "memory"
SUFFIX = ".md"
WORD_MARKS = frozenset("_-")

_IS_SLUG = re.compile(r"[a-z0-9]++(?:-[a-z0-9]++)*+")
_PLAIN_RUN = re.compile(r"[a-z0-9]+")
_LONG_GAP = re.compile(r"[\x00-/:-@\[-`{-\x7f]+(?=[\x00-/:-@\[-`{-\x7f])")
_SLUG_INPUT = 2048  # characters; ordering combining marks takes the square of a run's length
_DERIVED_WORDS = 5


def is_word(character: str) -> bool:
    """Whether it is a letter, a digit or a combining mark, of any script."""
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def slug(text: str) -> str:
    """The slug of a given name or of a file's stem; "" when nothing is left. SPEC 2.

    Two names are twins when their slugs are equal; the slug of a slug is itself.
    """
    if len(text) <= MAX_SLUG and _IS_SLUG.fullmatch(text):
        return text
    if len(text) > _SLUG_INPUT:
        text = _LONG_GAP.sub("", text)[:_SLUG_INPUT]
    if text.isascii():  # the same for a fraction of the time: every search asks
        return _cut("-".join(_PLAIN_RUN.findall(text.lower())))
    text = unicodedata.normalize("NFKC", text).lower()
    # Lower-casing can leave a letter and a mark that compose (J and a caron).
    text = unicodedata.normalize("NFKC", text)
    spaced = "".join(c if is_word(c) else " " for c in text)
    return _cut("-".join(spaced.split()))


def _cut(text: str) -> str:
    """The slug within 80 characters and 200 bytes, at a `-` where there is one."""
    end = min(len(text), MAX_SLUG)
    while len(text[:end].encode()) > MAX_SLUG_BYTES:
        end -= 1
    if end == len(text):
        return text
    dash = text.rfind("-", 0, end + 1)
    return text[: dash if dash > 0 else end]


def derived_slug(description: str) -> str:
    """The slug of a description's first five words; "" when nothing is left. SPEC 2."""
    return slug(" ".join(description.split(maxsplit=_DERIVED_WORDS)[:_DERIVED_WORDS]))


def is_note_name(filename: str) -> bool:
    """Whether a file's name is a note's (SPEC 2); that it is a regular file of at most 1 MiB is not asked.

    A name that is not UTF-8 (it comes with half surrogates) is none: nothing could write it down.
    """
    stem = filename.removesuffix(SUFFIX)
    if stem == filename or not stem or stem[0] == "." or stem.casefold() == RESERVED:
        return False
    return stem.isprintable() or not any(unicodedata.category(c) in {"Cc", "Cs"} for c in stem)
