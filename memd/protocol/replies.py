"""What a reply and a notification hold, type by type.

Law: a field with a default is one the SPEC marks optional: it is left out of the JSON while it holds that
default; every other field is always written, null included (SPEC section 7).
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from memd.note import NoteType, Scope

FindingKind = Literal[
    "unparsed",
    "unlisted",
    "dangling",
    "symlink",
    "secret",
    "fence",
    "broken_chain",
    "torn",
    "missing_object",
    "differs",
    "oversize",
    "suspended",
    "unreadable",
]

HintKind = Literal["near_duplicate", "conflict_copy"]

EntryKind = Literal["user", "assistant", "summary"]

ActivityKind = Literal[
    "memory_write",
    "memory_update",
    "memory_delete",
    "memory_edit",
    "memory_import",
    "memory_index_truncated",
    "session_start",
]


class Reply(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The result of a call."""


class Pointer(Reply, kw_only=True, frozen=True):
    """What a kernel appends to its transcript: which version of which note an operation touched."""

    op: str
    name: str
    scope: Scope
    hash: str


class SaveReply(Reply, kw_only=True, frozen=True):
    """`memory.save`. In a session also its `saved` count and `saves_left` (None: the session has no cap)."""

    name: str
    description: str
    type: NoteType
    scope: Scope
    updated: bool
    hash: str
    warnings: tuple[str, ...]
    pointer: Pointer
    saved: int | UnsetType = UNSET
    saves_left: int | UnsetType | None = UNSET
    redacted: bool = False


class ReadReply(Reply, kw_only=True, frozen=True):
    """`memory.read`. `text` is the body; there is no `pointer` when the read could not be journaled."""

    name: str
    description: str
    type: NoteType | None
    scope: Scope
    text: str
    hash: str
    warnings: tuple[str, ...]
    pointer: Pointer | None = None
    redacted: bool = False


class Gave(Reply, kw_only=True, frozen=True):
    """What a word of the query gave a hit: `score` for what its `field` has of it; `form`: what was found for it."""

    word: str
    kind: Literal["word", "form", "part", "joined", "character", "name"]
    field: Literal["name", "hook", "body"]
    score: float
    form: str | None = None


class Hit(Reply, kw_only=True, frozen=True):
    """One note that a search found. Only where it was asked for: its `score`, and in `explain` what that sums up."""

    name: str
    description: str
    scope: Scope
    redacted: bool = False
    score: float | UnsetType = UNSET
    explain: tuple[Gave, ...] | UnsetType = UNSET


class SearchReply(Reply, kw_only=True, frozen=True):
    """`memory.search`: hits best first, `total` of all that scored, a `notice` when the list was cut."""

    hits: tuple[Hit, ...]
    total: int
    notice: str | None = None


class Receipt(Reply, kw_only=True, frozen=True):
    """What a forget removed, and the `left` files that still hold a removed text (names, never paths)."""

    versions: int
    bytes: int
    left: tuple[str, ...]


class ForgetReply(Reply, kw_only=True, frozen=True):
    """`memory.forget`."""

    name: str
    scope: Scope
    receipt: Receipt
    pointer: Pointer


class NoteRow(Reply, kw_only=True, frozen=True):
    """One note of a list. `last`: the unix second of its last use; `body`, `markdown`: only when asked for."""

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
    body: str | None = None
    markdown: str | None = None
    redacted: bool = False


class ListReply(Reply, kw_only=True, frozen=True):
    """`memory.list`: rows in store order, `total` before the cut, a `notice` when the list was cut."""

    notes: tuple[NoteRow, ...]
    total: int
    notice: str | None = None


class LogRecord(Reply, kw_only=True, frozen=True):
    """One journal record with its store's `scope`."""

    at: int
    op: str
    name: str
    hash: str
    digest: str
    scope: Scope
    session: str | None = None
    by: str | None = None
    source_hash: str | None = None


class LogReply(Reply, kw_only=True, frozen=True):
    """`memory.log`: records newest first, `total` before the cut, a `notice` when the list was cut."""

    records: tuple[LogRecord, ...]
    total: int
    notice: str | None = None


class ShowReply(Reply, kw_only=True, frozen=True):
    """`memory.show`: one version's exact text; `current` says whether it is the head's."""

    name: str
    scope: Scope
    hash: str
    markdown: str
    current: bool
    redacted: bool = False


class DiffReply(Reply, kw_only=True, frozen=True):
    """`memory.diff`: two versions by hash and their unified diff, empty when they are one."""

    name: str
    scope: Scope
    from_: str = field(name="from")
    to: str
    diff: str
    redacted: bool = False


class RestoreReply(Reply, kw_only=True, frozen=True):
    """`memory.restore`: the note as it stands again."""

    name: str
    description: str
    scope: Scope
    hash: str
    pointer: Pointer
    redacted: bool = False


class RenameReply(Reply, kw_only=True, frozen=True):
    """`memory.rename` and `memory.move`: the note under its new name or in its new store, and where it was."""

    name: str
    scope: Scope
    hash: str
    was: str
    was_scope: Scope
    pointer: Pointer


class Skipped(Reply, kw_only=True, frozen=True):
    """A file that an import left out, and why."""

    file: str
    reason: str


class ImportReply(Reply, kw_only=True, frozen=True):
    """`memory.import`: names imported and updated, files skipped; `next` is the `after` of the next call, if any."""

    imported: tuple[str, ...]
    updated: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    total: int
    next: str | None = None


class ImportProgramReply(Reply, kw_only=True, frozen=True):
    """`memory.import_claude` and `memory.import_kimi`: names imported and updated here, files skipped.

    `found` counts the notes there. `stale` names notes here that the program has nowhere any more, `conflicts` notes
    that were changed on both sides, `ambiguous` directories that may be another repository's, `unparsed` notes there
    whose block or quote never closes. `lines` tells each store's in counts.
    """

    imported: tuple[str, ...]
    updated: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    found: int
    stale: tuple[str, ...]
    conflicts: tuple[str, ...]
    ambiguous: tuple[str, ...]
    unparsed: tuple[str, ...]
    lines: tuple[str, ...]


class StoreRow(Reply, kw_only=True, frozen=True):
    """One store of the home. `key` None is the global store; `origin_exists` None: nobody has claimed it."""

    key: str | None
    scope: Scope
    notes: int
    origin_exists: bool | None
    current: bool


class StoreListReply(Reply, kw_only=True, frozen=True):
    """`store.list`: the global store, then the repositories' by key."""

    stores: tuple[StoreRow, ...]


class StoreAdoptReply(Reply, kw_only=True, frozen=True):
    """`store.adopt`: the names under which the notes arrived, and those that were here already, byte for byte.

    `origin_exists`: the repository they were taken from is still there; None when nobody has claimed their store.
    """

    adopted: tuple[str, ...]
    renamed: dict[str, str]
    identical: tuple[str, ...]
    left: int
    origin_exists: bool | None


class DiscoverReply(Reply, kw_only=True, frozen=True):
    """`rpc.discover`: an OpenRPC document."""

    openrpc: str
    info: dict[str, object]
    methods: list[dict[str, object]]
    components: dict[str, object]


class FocusNote(Reply, kw_only=True, frozen=True):
    """A note of a block; `score` is weighted, None for an unscored row."""

    name: str
    scope: Scope
    type: NoteType | None
    score: float | None
    shown: Literal["body", "row"]
    cut: bool


class FocusReply(Reply, kw_only=True, frozen=True):
    """`memory.focus`: the block, None for a blank prompt, and what it holds of how many notes."""

    text: str | None
    fenced: str | None
    notes: tuple[FocusNote, ...]
    total: int
    budget: int
    frozen: bool
    redacted: bool = False


class IndexReply(Reply, kw_only=True, frozen=True):
    """`memory.index`: the rows of both stores, None when there are no notes; `dropped` did not fit."""

    text: str | None
    fenced: str | None
    dropped: int
    redacted: bool = False


class SessionStartReply(Reply, kw_only=True, frozen=True):
    """`session.start`: what to show, the saves left (None: any number), a resumed session's block."""

    lines: tuple[str, ...]
    saves_left: int | None
    block: FocusReply | None = None


class SessionUpdateReply(Reply, kw_only=True, frozen=True):
    """`session.update`."""

    read_only: bool


class SessionEndReply(Reply, kw_only=True, frozen=True):
    """`session.end`: the state stays on disk for a resume."""

    ended: bool


class HistoryHit(Reply, kw_only=True, frozen=True):
    """An entry of a past session; `cut` and `redacted` say what the snippet leaves out of its text."""

    session: str
    entry_id: str = field(name="entryId")
    type: EntryKind
    snippet: str
    url: str
    cut: bool = False
    redacted: bool = False


class HistorySearchReply(Reply, kw_only=True, frozen=True):
    """`history.search`: a page of `total` entries, best first."""

    hits: tuple[HistoryHit, ...]
    total: int
    notice: str | None = None


class HistoryReadReply(Reply, kw_only=True, frozen=True):
    """`history.read`: the entry's whole text, key-shaped runs masked."""

    session: str
    entry_id: str = field(name="entryId")
    type: EntryKind
    text: str
    url: str
    redacted: bool = False


class StoreStats(Reply, kw_only=True, frozen=True):
    """One store's counts; the rates are per session, 0.0 while there was none."""

    sessions: int
    notes: int
    saves: int
    reads: int
    saves_per_session: float
    reads_per_session: float
    unparsed: int


class StatsReply(Reply, kw_only=True, frozen=True):
    """`memory.stats`, per scope."""

    repo: StoreStats
    global_: StoreStats = field(name="global")


class Finding(Reply, kw_only=True, frozen=True):
    """One trouble of a store. `file` is a name within the store, `line` counts from 1."""

    kind: FindingKind
    scope: Scope
    reason: str
    name: str | None = None
    file: str | None = None
    line: int | None = None


class Hint(Reply, kw_only=True, frozen=True):
    """What is not wrong and worth a look: two notes that nearly repeat each other, a sync tool's conflict copy."""

    kind: HintKind
    scope: Scope
    name: str
    reason: str


class CheckReply(Reply, kw_only=True, frozen=True):
    """`memory.check` and `memory.verify`: `ok` is true when there is no finding."""

    ok: bool
    findings: tuple[Finding, ...]
    hints: tuple[Hint, ...] = ()


class StoreRebuild(Reply, kw_only=True, frozen=True):
    """One store rebuilt: counts, the names that `differ` from their heads or are `missing` their object.

    `broken_line` is the journal's first line that does not chain, counted from 1.
    """

    live: int
    restored: int
    forgotten: int
    differ: tuple[str, ...]
    missing: tuple[str, ...]
    broken_line: int | None


class RebuildReply(Reply, kw_only=True, frozen=True):
    """`memory.rebuild`, per scope; `ok` is false on a missing object or a broken chain."""

    ok: bool
    repo: StoreRebuild
    global_: StoreRebuild = field(name="global")


class StoreReconcile(Reply, kw_only=True, frozen=True):
    """One store reconciled: how many notes were adopted, edited, forgotten; whether the guard holds it."""

    adopted: int
    edited: int
    forgotten: int
    suspended: bool


class ReconcileReply(Reply, kw_only=True, frozen=True):
    """`memory.reconcile`, per scope."""

    repo: StoreReconcile
    global_: StoreReconcile = field(name="global")


class SubscribeReply(Reply, kw_only=True, frozen=True):
    """`activity.subscribe`: from now on `activity` notifications come between the replies of this connection."""

    subscribed: bool


class Telemetry(Reply, kw_only=True, frozen=True):
    """What of an event may be sent on: which note of which store, or how many entries were left out; no hook."""

    scope: Scope | None = None
    slug: str | None = None
    dropped_count: int | None = field(name="droppedCount", default=None)


class Activity(Reply, kw_only=True, frozen=True):
    """The parameters of an `activity` notification. `line` is for people; `saved` counts the session's saves."""

    event: ActivityKind
    session: str | None = None
    scope: Scope | None = None
    line: str
    saved: int | None = None
    telemetry: Telemetry
    pointer: Pointer | None = None


class HelloReply(Reply, kw_only=True, frozen=True):
    """`daemon.hello`. `home` is the first 16 hex digits of the sha256 of the home's real path."""

    version: str
    protocol_min: int
    protocol_max: int
    capabilities: tuple[str, ...]
    pid: int
    home: str


class Health(Reply, kw_only=True, frozen=True):
    """One trouble of the daemon itself: a config that does not parse, a watcher that polls."""

    kind: str
    reason: str


class HistoryProgress(Reply, kw_only=True, frozen=True):
    """How far the transcripts of the repositories asked about are read; `skipped` counts lines passed over."""

    read: int
    transcripts: int
    skipped: int


class StatusReply(Reply, kw_only=True, frozen=True):
    """`daemon.status`. The `_s` fields are seconds: since the start, the last event and the last scan."""

    version: str
    pid: int
    uptime_s: float
    stores: int
    watching: bool
    last_event_s: float | None
    last_scan_s: float | None
    connections: int
    findings: tuple[Health, ...]
    history: HistoryProgress


class StopReply(Reply, kw_only=True, frozen=True):
    """`daemon.stop`: the daemon finishes its writes and exits."""

    stopping: bool
