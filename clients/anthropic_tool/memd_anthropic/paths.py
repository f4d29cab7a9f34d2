"""The tool's paths. Law: a path names one place under /memories, or it is refused; it never names a file of a disk.

`/memories/<scope>/<name>.md` is the note of that name; any other path is *made*: a repo note that keeps it as
`path:`. SPEC 13.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import NamedTuple

ROOT = "/memories"
SCOPES = ("repo", "global")
ROOTS = frozenset({ROOT, *(f"{ROOT}/{scope}" for scope in SCOPES)})
"""The directories that are always there, and never go."""

MAX_PATH = 512
"""The longest path in bytes of UTF-8."""

MAX_SLUG = 80
MAX_SLUG_BYTES = 200

_ENCODED = re.compile("%(?:25)*(?:2e|2f|5c|00)", re.IGNORECASE)
_SUFFIX = ".md"


class PathError(ValueError):
    """A path that is refused; its text is for the model."""


class Place(NamedTuple):
    """A checked path. `name` is the note's where `scope` is one, and empty otherwise."""

    path: str
    scope: str
    name: str

    @property
    def is_made(self) -> bool:
        """Whether the note there is one that keeps its path."""
        return not self.scope

    @property
    def relative(self) -> str:
        """The path below /memories."""
        return self.path[len(ROOT) + 1 :]


def place(path: str) -> Place:
    """The place of a path as a model typed it. Raises `PathError`."""
    parts = _parts(path)
    whole = "/".join((ROOT, *parts))
    if len(whole.encode()) > MAX_PATH:
        raise PathError(f"Error: the path is {len(whole.encode())} bytes long, at most {MAX_PATH} are allowed")
    if len(parts) == 2 and parts[0] in SCOPES and parts[1].endswith(_SUFFIX) and parts[1] != _SUFFIX:
        return Place(whole, parts[0], parts[1].removesuffix(_SUFFIX))
    return Place(whole, "", "")


def made(path: str) -> str | None:
    """The path that a note claims by its `path:`, None when no note can be seen there."""
    try:
        found = place(path)
    except PathError:
        return None
    return found.path if found.is_made and found.path == path and path not in ROOTS else None


def of_note(scope: str, name: str) -> str:
    """Where a note is seen that claims no path."""
    return f"{ROOT}/{scope}/{name}{_SUFFIX}"


def names(place: Place) -> list[str]:
    """The names a note made here may get, the first that is free: the slug of its path, then one of its own."""
    slugged = slug(place.relative)
    own = f"{slugged[:40].strip('-') or 'file'}-{hashlib.sha256(place.path.encode()).hexdigest()[:8]}"
    return [own] if slugged in ("", "memory") else [slugged, own]


def slug(text: str) -> str:
    """The name that memd makes of a text (SPEC 2); "" when nothing is left."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    spaced = "".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text)
    whole = "-".join(spaced.split())
    end = min(len(whole), MAX_SLUG)
    while len(whole[:end].encode()) > MAX_SLUG_BYTES:
        end -= 1
    if end == len(whole):
        return whole
    dash = whole.rfind("-", 0, end + 1)
    return whole[: dash if dash > 0 else end]


def _parts(path: str) -> list[str]:
    """The parts below /memories; repeated slashes and one at the end say nothing."""
    _check_characters(path)
    path = unicodedata.normalize("NFC", path)
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise PathError(f"Error: Path must start with {ROOT}, got: {path}")
    parts = [part for part in path[len(ROOT) :].split("/") if part]
    for part in parts:
        plain = unicodedata.normalize("NFKC", part)
        if plain.strip() in ("", ".", "..") or part != part.strip() or "/" in plain or "\\" in plain:
            raise PathError(f"Error: Path {path} would escape {ROOT} directory, or has a part that is no name")
    return parts


def _check_characters(path: str) -> None:
    """Refuses what would not be seen as it is, or be taken for something else by whoever decodes it."""
    odd = next((c for c in path if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")), None)
    if odd is not None:
        raise PathError(
            f"Error: the path holds the character U+{ord(odd):04X}; use letters, digits, spaces, '.', '-'"
        )
    if "\\" in path or _ENCODED.search(path):
        raise PathError(f"Error: the path {path} holds a backslash or an encoded character; write it plain, with '/'")
