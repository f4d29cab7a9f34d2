"""What the verbs answer, for a type checker. Law: a reply is a plain dict; more fields may come with a later memd.

Import these for annotations: `from memd_client.replies import Saved`. SPEC 7.
"""

from typing import Literal, NotRequired, TypedDict

Scope = Literal["repo", "global"]
NoteType = Literal["user", "feedback", "project", "reference"]


class Pointer(TypedDict):
    """What a kernel appends to its transcript: which version of which note was written or read."""

    op: str
    name: str
    scope: Scope
    hash: str


class Telemetry(TypedDict, total=False):
    """What of an event may be sent on; never a hook."""

    scope: Scope
    slug: str
    droppedCount: int


class Event(TypedDict):
    """One event of `Connection.activity`. `line` is for people, `saved` counts the session's saves by then."""

    event: Literal[
        "memory_write",
        "memory_update",
        "memory_delete",
        "memory_edit",
        "memory_import",
        "memory_index_truncated",
        "session_start",
    ]
    line: str
    telemetry: Telemetry
    session: NotRequired[str]
    scope: NotRequired[Scope]
    saved: NotRequired[int]
    pointer: NotRequired[Pointer]


class Saved(TypedDict):
    """The reply of `memory.save`. `saved` and `saves_left` count for a session, `saves_left` None without a cap."""

    name: str
    description: str
    type: NoteType
    scope: Scope
    updated: bool
    hash: str
    warnings: list[str]
    pointer: Pointer
    saved: NotRequired[int]
    saves_left: NotRequired[int | None]


class Note(TypedDict):
    """The reply of `memory.read`; `text` is its body, `type` None when it has none of the four."""

    name: str
    description: str
    type: NoteType | None
    scope: Scope
    text: str
    hash: str
    warnings: list[str]
    pointer: Pointer
    redacted: NotRequired[bool]


class Gave(TypedDict):
    """What a `word` of a query gave a note, from which of its fields; `form` is what was found, when not the word."""

    word: str
    kind: Literal["word", "form", "part", "joined", "character", "name"]
    field: Literal["name", "hook", "body"]
    score: float
    form: NotRequired[str]


class Hit(TypedDict):
    """One note that `memory.search` found; asked for with `explain`, its `score` and what sums up to it."""

    name: str
    description: str
    scope: Scope
    redacted: NotRequired[bool]
    score: NotRequired[float]
    explain: NotRequired[list[Gave]]


class Found(TypedDict):
    """The reply of `memory.search`, best first; `total` counts all that match, `notice` says what was cut."""

    hits: list[Hit]
    total: int
    notice: NotRequired[str]


class EntryHit(TypedDict):
    """An entry of a past session: `type` is user, assistant or summary, `url` what `history.read` takes."""

    session: str
    entryId: str
    type: str
    snippet: str
    url: str
    cut: NotRequired[bool]
    redacted: NotRequired[bool]


class Entries(TypedDict):
    """The reply of `history.search`, best first; `total` counts all that match, `notice` says what was left out."""

    hits: list[EntryHit]
    total: int
    notice: NotRequired[str]


class Entry(TypedDict):
    """The reply of `history.read`: the whole text of an entry."""

    session: str
    entryId: str
    type: str
    text: str
    url: str
    redacted: NotRequired[bool]


class Receipt(TypedDict):
    """What a forget removed; `left` names files that still hold a removed text."""

    versions: int
    bytes: int
    left: list[str]


class Forgotten(TypedDict):
    """The reply of `memory.forget`."""

    name: str
    scope: Scope
    receipt: Receipt
    pointer: Pointer


class Row(TypedDict):
    """One note of `memory.list`; `last` is the unix second it was last used, None when it never was.

    `body` and `markdown` (the whole text) are there when they were asked for.
    """

    name: str
    scope: Scope
    type: NoteType | None
    description: str
    hash: str
    saves: int
    reads: int
    last: int | None
    unparsed: bool
    shadowed: bool
    body: NotRequired[str]
    markdown: NotRequired[str]
    redacted: NotRequired[bool]


class Listed(TypedDict):
    """The reply of `memory.list`; `total` counts all that fit, `notice` says what was cut."""

    notes: list[Row]
    total: int
    notice: NotRequired[str]


class Shown(TypedDict):
    """A note of a block; `score` is weighted, None for a row of a note that shares no word with the prompt."""

    name: str
    scope: Scope
    type: NoteType | None
    score: float | None
    shown: Literal["body", "row"]
    cut: bool


class Block(TypedDict):
    """The reply of `memory.focus`; `text` and `fenced` are None for a blank prompt, `frozen`: it was given before."""

    text: str | None
    fenced: str | None
    notes: list[Shown]
    total: int
    budget: int
    frozen: bool
    redacted: NotRequired[bool]


class Index(TypedDict):
    """The reply of `memory.index`; `text` and `fenced` are None without notes, `dropped` rows did not fit."""

    text: str | None
    fenced: str | None
    dropped: int
    redacted: NotRequired[bool]


class Started(TypedDict):
    """The reply of `session.start`: what to show a person, the saves left (None: any number), the block it has."""

    lines: list[str]
    saves_left: int | None
    block: NotRequired[Block]
