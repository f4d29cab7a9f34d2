"""What a request may say, type by type. Law: whatever has such a type is right.

Parameters refuse unknown names and numbers out of range while they are decoded (-32602, SPEC section 12),
so no verb checks them again.
"""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from memd.focus import Dialect
from memd.note import NoteType, Scope

from .limits import NUMBER_MAX, REPLY_MAX, Limit, Offset, SessionId


class Params(Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """Parameters by name; a name that is not a field refuses the request."""


class PlaceParams(Params, kw_only=True, frozen=True):
    """Parameters of a verb that works on a place: an agent's `session` or a person's `cwd`, never both."""

    session: SessionId | None = None
    cwd: str | None = None

    def __post_init__(self) -> None:
        """Refuses a request that names no place, or two."""
        if (self.session is None) == (self.cwd is None):
            raise ValueError("a request names its place by exactly one of `session` and `cwd`")


class SaveParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.save`. `expect`: the hash last seen, "exists", None for "must not exist", UNSET: not given."""

    markdown: str
    fields: dict[str, object] = {}
    expect: str | UnsetType | None = UNSET


class NameParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.read` and `memory.forget`: one note, in one store or (None) in both."""

    name: str
    scope: Scope | None = None


class SearchParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.search`. `ranker` None means the configured one; `explain` asks what gave each hit its score."""

    query: str
    limit: Limit = 5
    scope: Scope | None = None
    offset: Offset = 0
    ranker: str | None = None
    explain: bool = False


class ListParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.list`. `limit` None lists all; `bodies` and `texts` ask for each note's body or whole text with it."""

    scope: Scope | None = None
    type: NoteType | None = None
    limit: Limit | None = None
    offset: Offset = 0
    bodies: bool = False
    texts: bool = False


class LogParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.log`. `since` is in unix seconds; records at that second are included. `reads` false: none of them."""

    name: str | None = None
    limit: Limit = 50
    since: float | None = None
    scope: Scope | None = None
    reads: bool = True


class ShowParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.show`. `hash` None means the current text."""

    name: str
    hash: str | None = None
    scope: Scope | None = None


class DiffParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.diff`. `from` None means the version before `to`, `to` None the current text."""

    name: str
    from_: str | None = field(name="from", default=None)
    to: str | None = None
    scope: Scope | None = None


class RestoreParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.restore`: the version of this hash becomes the note's text again."""

    name: str
    hash: str
    scope: Scope | None = None


class RenameParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.rename`: the note gets the name `to`, in the same store."""

    name: str
    to: str
    scope: Scope | None = None


class MoveParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.move`: the note goes to the store of `scope`."""

    name: str
    scope: Scope


class ImportParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.import`: copies of the notes of a directory here.

    `dry_run` only tells what would be done. A caller that shows progress asks for `limit` files at a time, in name
    order, `after` the last file of the answer before.
    """

    dir: str
    dry_run: bool = False
    limit: Limit | None = None
    after: str | None = None


class ImportKimiParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.import_kimi`: Kimi Code's notes of this repository and of everywhere, or of one `scope`.

    `dry_run` only tells what would be done.
    """

    scope: Scope | None = None
    dry_run: bool = False


class ImportClaudeParams(ImportKimiParams, kw_only=True, frozen=True):
    """`memory.import_claude`: Claude Code's notes; `dir` is a directory of them, for the repository's store."""

    dir: str | None = None


class StoreListParams(Params, kw_only=True, frozen=True):
    """`store.list`. `cwd`, an absolute path, says which store is marked `current`."""

    cwd: str | None = None


class StoreAdoptParams(PlaceParams, kw_only=True, frozen=True):
    """`store.adopt`: the notes of the store `key` come into the caller's repository store."""

    key: str
    dry_run: bool = False


class CheckParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.check`. `hints` also asks for what is not wrong and worth a look."""

    hints: bool = False


class RebuildParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.rebuild`. `dry_run` only tells what would be done."""

    dry_run: bool = False


class ReconcileParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.reconcile`. `accept` carries out the deletions that a suspended store holds back.

    `dry_run` only tells what would be done now.
    """

    accept: bool = False
    dry_run: bool = False


class SessionStartParams(Params, kw_only=True, frozen=True):
    """`session.start`. `save_cap` UNSET means the configured one, None any number."""

    session: SessionId
    cwd: str
    depth: Annotated[int, Meta(ge=0, le=NUMBER_MAX)] = 0
    resumed: bool = False
    save_cap: Annotated[int, Meta(ge=0, le=NUMBER_MAX)] | UnsetType | None = UNSET
    transcript: str | None = None


class SessionUpdateParams(Params, kw_only=True, frozen=True):
    """`session.update`: the host's plan mode, and what its host calls the way out of it."""

    session: SessionId
    read_only: bool
    switch: Annotated[str, Meta(max_length=200)] | None = None


class SessionEndParams(Params, kw_only=True, frozen=True):
    """`session.end`."""

    session: SessionId


class FocusParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.focus`. With `cwd` nothing is frozen; `abstain` false gives the plain rule.

    `ranker` None means the configured one.
    """

    prompt: str
    dialect: Dialect = Dialect.PYTHON
    abstain: bool = True
    ranker: str | None = None


class IndexParams(PlaceParams, kw_only=True, frozen=True):
    """`memory.index`."""

    max_bytes: Annotated[int, Meta(ge=0, le=REPLY_MAX // 4)] = 8_192


class HistorySearchParams(PlaceParams, kw_only=True, frozen=True):
    """`history.search`. `ranker` None means the configured one."""

    query: str
    limit: Limit = 8
    offset: Offset = 0
    ranker: str | None = None


class HistoryReadParams(PlaceParams, kw_only=True, frozen=True):
    """`history.read`: the address that a hit of `history.search` has."""

    url: str


class SubscribeParams(Params, kw_only=True, frozen=True):
    """`activity.subscribe`: whose place to hear of, a session's or a directory's; neither means all."""

    session: SessionId | None = None
    cwd: str | None = None

    def __post_init__(self) -> None:
        """Refuses a request that names two places."""
        if self.session is not None and self.cwd is not None:
            raise ValueError("a subscription names at most one of `session` and `cwd`")


class HelloParams(Params, kw_only=True, frozen=True):
    """`daemon.hello`. `client` says who calls, for the log; `protocol` is the version the caller speaks."""

    client: str | None = None
    protocol: Offset = 1
