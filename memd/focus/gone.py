"""Paths that a note names and the repository has not. Law: what might be anything else is not marked.

A path is marked when its first part stands in the repository's root and it does not stand there itself, in any
way it can be read: with the words after it (`docs/my notes.md`), without a line number, without the full stop.
What begins with `/`, `~`, `-`, `..` or a scheme, and what holds a wildcard or a gap to fill in, is no path of
this repository. Pure: the caller says what the root holds and what exists. SPEC section 9, "Truth".
"""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final

_LONGEST_TEXT: Final = 1 << 16  # characters of a note that are looked through
_LONGEST_PATH: Final = 255  # characters of a path
_MOST: Final = 12  # paths marked of one note
_WORDS_AFTER: Final = 4  # a path may hold spaces

# A run of what paths are written of; everything else ends it. Letters and digits of every script belong.
_RUN: Final = re.compile(r"[\w./@+~%#:=&!^-]+")
_UNSURE_BEFORE: Final = frozenset("$*?\\)]}>|…")
_UNSURE_AFTER: Final = re.compile(r"[$*\\(\[{<|…]|\?\S")
_TAIL: Final = ".,:;!#=&^"
_SUFFIX: Final = re.compile(r"[:#].*", re.DOTALL)
_TO_ASCII: Final = re.compile(r"(?<=[^\x00-\x7f])(?=[\x00-\x7f])")
_OTHER_SCRIPT: Final = re.compile(r"[^\x00-\x7f]")
_WORD_AFTER: Final = re.compile(r"[ \t]+[^\s`\"]+|[^\s\w`\"/]\S*")


def gone_paths(text: str, roots: Collection[str], exists: Callable[[str], bool]) -> list[str]:
    """The paths that the text names and that are gone, each once, in order; at most 12 of a text.

    `roots` are the names in the repository's root; `exists` is asked for paths relative to it, with `/`.
    """
    gone: dict[str, None] = {}
    for spellings in named_paths(text, roots):
        if spellings[0] not in gone and not any(exists(spelling) for spelling in spellings):
            gone[spellings[0]] = None
            if len(gone) == _MOST:
                break
    return list(gone)


def named_paths(text: str, roots: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Each path of the repository that the text may name: how it is shown, then the other ways to read it."""
    text = text[:_LONGEST_TEXT]
    if "/" not in text or not roots:
        return
    for run in _RUN.finditer(text):
        if "/" not in run[0]:
            continue
        start, end = run.span()
        if (start and text[start - 1] in _UNSURE_BEFORE) or _UNSURE_AFTER.match(text, end):
            continue
        at = _path_start(run[0], roots)
        if at is None:
            continue
        spellings = _spellings(text, start + at, end)
        if spellings and _is_inside(spellings[0]):
            yield spellings


def _path_start(run: str, roots: Collection[str]) -> int | None:
    """Where in the run a path begins whose first part is in the root; None when none does.

    Chinese and Japanese put no space before a path: it may begin where the script changes.
    """
    for at in (0, *(change.start() for change in _TO_ASCII.finditer(run))):
        first, slash, _ = run[at:].removeprefix("./").partition("/")
        if slash and first in roots:
            return at
    return None


def _spellings(text: str, start: int, end: int) -> tuple[str, ...]:
    """The ways to read what stands there, the likeliest first."""
    run = text[start:end]
    bare = _SUFFIX.sub("", run).rstrip(_TAIL)
    other = _OTHER_SCRIPT.search(bare)
    if other and not set("./_-") & set(bare[other.start() :]):
        # `src/main.py文件`: what follows the script's change is the sentence, unless it goes on like a path.
        bare = bare[: other.start()]
    found = [bare, _SUFFIX.sub("", run), run.rstrip(_TAIL), run]
    stop = end
    for _ in range(_WORDS_AFTER):
        more = _WORD_AFTER.match(text, stop)
        if more is None:
            break
        stop = more.end()
        longer = text[start:stop]
        found += [longer, longer.rstrip(_TAIL + ")]}'")]
    return tuple(dict.fromkeys(path for path in map(_plain, found) if path))


def _plain(path: str) -> str:
    """The path relative to the root, without `./` before it and `/` after it."""
    return path.removeprefix("./").rstrip("/")


def _is_inside(path: str) -> bool:
    """Whether it can be a path below the root: two parts or more, none of them empty or made of dots."""
    parts = path.split("/")
    return len(parts) > 1 and len(path) <= _LONGEST_PATH and all(part.strip(".") for part in parts)
