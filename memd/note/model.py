"""What a note is. Law: a value has one meaning, whatever its file looked like. Pure. SPEC section 2."""

import re
from enum import StrEnum
from typing import Literal

import msgspec

MAX_FILE = 1 << 20  # bytes; a longer file is no note
MAX_HOOK = 240  # characters
MAX_BODY = 8192  # bytes of UTF-8


class NoteType(StrEnum):
    """The four kinds of fact (SPEC 2)."""

    USER = "user"
    FEEDBACK = "feedback"
    PROJECT = "project"
    REFERENCE = "reference"


class Scope(StrEnum):
    """Which store a note lives in: this repository's, or the one for everywhere (SPEC 1)."""

    REPO = "repo"
    GLOBAL = "global"


class Trouble(msgspec.Struct, frozen=True):
    """Why a note is unparsed: the 1-based line, what it is about, and a reason without note text."""

    line: int
    about: Literal["block", "quote", "utf-8"]
    reason: str


class Note(msgspec.Struct, frozen=True):
    """One fact as read from its file.

    `name` is the file's stem, `hook` one line of at most 240 characters, `body` has no blank lines at
    its ends and no final line end. `extra` holds the unknown keys' raw lines, one entry a key (or a run
    of lines that were not understood), each without its final line end. `description` is the block's
    value as given, empty when there is none; `hook` is made from it, or from the body.
    """

    name: str
    hook: str
    type: NoteType | None
    body: str
    extra: tuple[str, ...] = ()
    trouble: Trouble | None = None
    description: str = ""


class Reading(msgspec.Struct, frozen=True):
    """The parts of a note's text before they are judged; empty strings stand for what is not there."""

    name: str
    description: str
    type: str
    body: str
    extra: tuple[str, ...]
    trouble: Trouble | None
    json: bool


class Block(msgspec.Struct, frozen=True):
    """What a block's lines say; `open_line` is the 1-based line of a quote that never closes, or 0."""

    name: str = ""
    description: str = ""
    type: str = ""
    extra: tuple[str, ...] = ()
    open_line: int = 0
    json: bool = False


KEY = re.compile(r"([A-Za-z0-9_-]++):")
KNOWN = frozenset(("name", "description", "type"))
