"""The journal, `ops.jsonl`. Law: append order is the one order, and each record seals the one before.

A line is canonical JSON (keys by code point, no white space, non-ASCII literal, integers only) and a line
end. Its `digest` is sha256 over the previous record's whole digest text and the line's own fields without
`digest`. Reading never fails: what is no record is either the torn tail, after the last record, or a broken
line before it. SPEC 4.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

HASH_PREFIX: Final = "sha256:"
FORGET: Final = "forget"
READ: Final = "read"
SAVE: Final = "save"
HEAD_OPS: Final = frozenset({SAVE, "edit", "adopt", FORGET})
"""The operations that make a head; a read or an unknown one leaves the head as it was."""

SOURCE_HASH: Final = "source_hash"
"""What a record of a text that came from a source has: the hash of the source's own bytes (SPEC 10)."""
SOURCE_NAME: Final = "source_name"
"""What such a record has besides where the note was given another name than the source's."""

NOTHING: Final[Mapping[str, object]] = MappingProxyType({})

_HEX: Final = re.compile(r"[0-9a-f]{64}")
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NAME: Final = re.compile(r"(?!\.|memory\Z)[^/\x00]+", re.IGNORECASE)
_START: Final = b'{"at":'
_DIGEST_KEY: Final = b'"digest":"'
_DIGEST_LEN: Final = len(HASH_PREFIX) + 64


def content_hash(raw: bytes) -> str:
    """The hash that names a version: `sha256:` and 64 hex digits (SPEC 3)."""
    return HASH_PREFIX + hashlib.sha256(raw).hexdigest()


def hex_of(hash: str) -> str:  # noqa: A002 - the record's own word
    """The 64 hex digits of a hash, which are its object's file name; ValueError for what is no hash."""
    if not _HASH.fullmatch(hash):
        raise ValueError("not a sha256 hash")
    return hash[len(HASH_PREFIX) :]


def parse_hash(text: str) -> str | None:
    """`text` as `sha256:<hex>`, the prefix may be missing; None when it is no lower-case sha256 (SPEC 3)."""
    digits = text.removeprefix(HASH_PREFIX)
    return HASH_PREFIX + digits if _HEX.fullmatch(digits) else None


class Record(msgspec.Struct, frozen=True, gc=False):
    """One line of the journal; `at` is in unix seconds, `digest` is empty until the record is sealed.

    `extra` holds every key that has no field here (`source_hash`, say), as it was read.
    """

    op: str
    name: str
    hash: str
    at: int
    session: str | None = None
    by: str | None = None
    extra: Mapping[str, object] = NOTHING
    digest: str = ""

    def fields(self) -> dict[str, object]:
        """The record as the journal spells it, without `digest`: what is not known has no key."""
        out = dict(self.extra)
        out.update(at=self.at, hash=self.hash, name=self.name, op=self.op)
        if self.by is not None:
            out["by"] = self.by
        if self.session is not None:
            out["session"] = self.session
        return out


class Replay(msgspec.Struct, frozen=True):
    """What a journal holds. `lines` and `size` count what lies before the torn tail; line numbers begin at 1.

    `records` is empty when they went into heads instead; `count` counts them either way. `digest` is the last
    record's, to seal the next one with; `unchained` that of the broken line, where that is a record.
    """

    records: list[Record]
    count: int
    lines: int
    size: int
    torn_bytes: int
    broken_line: int | None
    broken_reason: str | None
    digest: str
    unchained: str | None


class _Line(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The usual record, fields in canonical order: decoded and encoded again it proves a line canonical.

    Without its digest it is what the digest seals.
    """

    at: int
    by: str | UnsetType = UNSET
    digest: str | UnsetType = UNSET
    hash: str
    name: str
    op: str
    session: str | UnsetType = UNSET
    source_hash: str | UnsetType = UNSET
    source_name: str | UnsetType = UNSET


_usual = msgspec.json.Decoder(_Line)
_again = msgspec.json.Encoder()


def canonical(fields: Mapping[str, object]) -> bytes:
    """The canonical JSON of `fields` without `digest`, no line end; ValueError when it holds a fraction."""
    plain = {key: value for key, value in fields.items() if key != "digest"}
    if not _integers_only(plain):
        raise ValueError("a record holds no fractions")
    return _dump(plain)


def seal(record: Record, prev: str) -> Record:
    """`record` with its digest; `prev` is the digest of the one before, empty for the first (SPEC 4)."""
    plain = _usual_line(record, UNSET) if record.extra is NOTHING else canonical(record.fields())
    return msgspec.structs.replace(record, digest=_digest(prev, plain))


def encode(record: Record) -> bytes:
    """The sealed record's line, with its line end."""
    if record.extra is NOTHING:
        return _usual_line(record, record.digest) + b"\n"
    return _dump({**record.fields(), "digest": record.digest}) + b"\n"


def decode(line: bytes) -> Record | None:
    """The record of one line without its line end; None when it is not canonical. The chain is not judged."""
    return _decode_usual(line) or _decode_odd(line)


def replay(raw: bytes, prev: str = "", first_line: int = 1, heads: "Heads | None" = None) -> Replay:
    """Every record of `raw` and where it breaks; never raises.

    `raw` may be the part of a journal that follows the record whose digest is `prev`; `first_line` numbers
    its first line. With `heads` the records are applied to it as they are read and not kept, which saves most
    of the memory.
    """
    records: list[Record] = []
    count = lines = size = pending = 0
    broken: tuple[int, str] | None = None
    unchained: str | None = None
    for number, (line, end) in enumerate(_lines(raw), first_line):
        record = decode(line)
        if record is None:
            pending = pending or number
            continue
        if broken is None and pending:
            broken = pending, "is not a canonical record"
        elif broken is None and not _chains(prev, line, record):
            broken, unchained = (number, "does not chain to the record before it"), record.digest
        prev, lines, size, pending = record.digest, number - first_line + 1, end, 0
        count += 1
        if heads is None:
            records.append(record)
        else:
            heads.apply(record)
    line_of, reason = broken or (None, None)
    return Replay(records, count, lines, size, len(raw) - size, line_of, reason, prev, unchained)


def records(raw: bytes) -> Iterator[Record]:
    """Every record of `raw`, in order, decoded one by one: together they take several times the bytes of their lines.

    The chain is not judged, which is most of what a replay costs.
    """
    decoded = (decode(line) for line, _ in _lines(raw))
    return (record for record in decoded if record is not None)


def last_record(tail: bytes) -> Record | None:
    """The last record, where `tail` is the end of a journal; None when it does not end in one whole record.

    None is final once `tail` is the whole file or holds a line end before its last byte; until then the line
    may only begin earlier, so ask again with a longer tail. No proper end of a record's line is a record
    itself.
    """
    if not tail.endswith(b"\n"):
        return None
    return decode(tail[tail.rfind(b"\n", 0, -1) + 1 : -1])


def is_cut_short(tail: bytes) -> bool:
    """Whether a torn tail is what a write leaves that a crash cut short: the beginning of one record and no more."""
    return tail != b"" and b"\n" not in tail and tail.startswith(_START[: len(tail)])


def _lines(raw: bytes) -> Iterator[tuple[bytes, int]]:
    """Each ended line and the offset after its line end; bytes after the last line end are no line."""
    start = 0
    while (end := raw.find(b"\n", start)) >= 0:
        yield raw[start:end], end + 1
        start = end + 1


def _usual_line(record: Record, digest: str | UnsetType) -> bytes:
    """The canonical JSON of a record without unknown keys."""
    line = _Line(
        at=record.at,
        by=UNSET if record.by is None else record.by,
        digest=digest,
        hash=record.hash,
        name=record.name,
        op=record.op,
        session=UNSET if record.session is None else record.session,
    )
    return _again.encode(line)


def _decode_usual(line: bytes) -> Record | None:
    try:
        given = _usual.decode(line)
        if given.digest is UNSET or _again.encode(given) != line:
            return None
    except (msgspec.MsgspecError, OverflowError, RecursionError):
        return None
    return Record(
        op=given.op,
        name=given.name,
        hash=given.hash,
        at=given.at,
        session=None if given.session is UNSET else given.session,
        by=None if given.by is UNSET else given.by,
        extra=_source(given),
        digest=given.digest,
    )


def _source(given: _Line) -> Mapping[str, object]:
    if given.source_hash is UNSET and given.source_name is UNSET:
        return NOTHING
    known = {SOURCE_HASH: given.source_hash, SOURCE_NAME: given.source_name}
    return {key: value for key, value in known.items() if value is not UNSET}


def _decode_odd(line: bytes) -> Record | None:
    """The slow way, for keys that `_Line` has no field for."""
    try:
        given = json.loads(line)
        if not isinstance(given, dict) or not _integers_only(given) or _dump(given) != line:
            return None
    except (ValueError, RecursionError):
        return None
    texts = [given.pop(key, None) for key in ("op", "name", "hash", "digest")]
    op, name, hash_, digest = (text if isinstance(text, str) else None for text in texts)
    at = given.pop("at", None)
    if op is None or name is None or hash_ is None or digest is None or type(at) is not int:
        return None
    # A `by` or `session` of another shape is kept among the unknown keys, so that the line still reads and
    # chains.
    who = {key: given.pop(key) for key in ("session", "by") if isinstance(given.get(key), str)}
    return Record(op=op, name=name, hash=hash_, at=at, extra=given or NOTHING, digest=digest, **who)


def _integers_only(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_integers_only, value.values()))
    if isinstance(value, list):
        return all(map(_integers_only, value))
    return not isinstance(value, float)


def _dump(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _digest(prev: str, plain: bytes) -> str:
    return content_hash(prev.encode() + plain)


def _chains(prev: str, line: bytes, record: Record) -> bool:
    """Whether the record's digest is that of `prev` and the line without its digest."""
    if record.extra is NOTHING or record.extra.keys() <= {SOURCE_HASH, SOURCE_NAME}:
        # The one unescaped `"digest":"` of a usual line is its key, and `hash` follows it: cutting it out of
        # the bytes is three times as fast as encoding the rest.
        at = line.index(_DIGEST_KEY)
        plain = line[:at] + line[at + len(_DIGEST_KEY) + _DIGEST_LEN + 2 :]
    else:
        plain = canonical(record.fields())
    return record.digest == _digest(prev, plain)


class _Life:
    """What the journal says of one name; all but `head` is of its current life, since the last forget."""

    __slots__ = ("brought", "first_op", "has_brought", "head", "last_used", "reads", "saves", "versions")

    def __init__(self, head: Record) -> None:
        # What last brought the note from a source, in this life or (not `has_brought`) in one that a forget ended.
        self.brought: Record | None = None
        self.begin(head)

    def begin(self, head: Record) -> None:
        self.head = head
        self.has_brought = False
        self.first_op = head.op
        self.versions: dict[str, None] = {}
        self.saves = 0
        self.reads = 0
        self.last_used: int | None = None

    @property
    def live(self) -> bool:
        return self.head.op != FORGET

    def copy(self) -> "_Life":
        twin = _Life(self.head)
        twin.first_op = self.first_op
        twin.versions = dict(self.versions)
        twin.saves, twin.reads, twin.last_used = self.saves, self.reads, self.last_used
        twin.brought, twin.has_brought = self.brought, self.has_brought
        return twin


class Heads:
    """What the records applied so far add up to; every question about one name or hash takes constant time.

    A record that a note cannot have (a `/` in its name, a hash that is none) is no head, whoever wrote it:
    names and hashes of heads are safe to make file names of.
    """

    def __init__(self) -> None:
        self._lives: dict[str, _Life] = {}
        # Of every hash that a note ever had, how many live notes have it among their versions.
        self._holders: dict[str, int] = {}
        self._ended: set[str] = set()
        self._sessions: dict[str, int] = {}
        self._live_count = 0
        self._forgotten_count = 0

    def apply(self, record: Record) -> None:
        """Take in the next record of the journal."""
        if record.op == READ:
            self._count_read(record)
        elif record.op in HEAD_OPS and _NAME.fullmatch(record.name) and _HASH.fullmatch(record.hash):
            self._turn(record)

    def head(self, name: str) -> Record | None:
        """The latest save, edit, adopt or forget of `name`; None when there is none."""
        life = self._find(name)
        return life.head if life else None

    def is_live(self, name: str) -> bool:
        """Whether the journal has `name` and has not forgotten it."""
        life = self._find(name)
        return life is not None and life.live

    def is_forgotten(self, name: str) -> bool:
        """Whether the head of `name` is a forget."""
        life = self._find(name)
        return life is not None and not life.live

    def live(self) -> Iterator[str]:
        """The live names, in the order in which their lives began: that of their lines, where nobody moved those."""
        return (name for name, life in self._every() if life.live)

    @property
    def live_count(self) -> int:
        """How many names are live."""
        return self._live_count

    @property
    def forgotten_count(self) -> int:
        """How many names have a forget as their head."""
        return self._forgotten_count

    def versions(self, name: str) -> tuple[str, ...]:
        """The distinct hashes of the note's current life, oldest first; none for a name that is not live."""
        life = self._find(name)
        return tuple(life.versions) if life else ()

    def saves(self, name: str) -> int:
        """The saves of the note's current life."""
        life = self._find(name)
        return life.saves if life else 0

    def reads(self, name: str) -> int:
        """The reads of the note's current life."""
        life = self._find(name)
        return life.reads if life else 0

    def last_used(self, name: str) -> int | None:
        """When the note was last saved or read in its current life, in unix seconds."""
        life = self._find(name)
        return life.last_used if life else None

    def first_op(self, name: str) -> str | None:
        """The operation that began the note's current life; None for a name that is not live."""
        life = self._find(name)
        return life.first_op if life and life.live else None

    def brought(self, name: str) -> Record | None:
        """The latest record that brought a text of the note's current life from a source (SPEC 10).

        None for a note that came from none, or is not live.
        """
        life = self._find(name)
        return life.brought if life and life.live and life.has_brought else None

    def once_brought(self, name: str) -> Record | None:
        """The latest record that brought a text of an earlier life of the name, which a forget ended; None for none,
        and for a name that was brought again since.
        """
        life = self._find(name)
        return life.brought if life and not life.has_brought else None

    def every_brought(self) -> Iterator[tuple[str, Record]]:
        """The live names that came from a source, each with its latest record that says so."""
        return ((name, life.brought) for name, life in self._every() if life.has_brought and life.brought)

    def session_saves(self, session: str) -> int:
        """How many saves the session made, of whatever note, forgotten ones too (the save cap, SPEC 8)."""
        return self._sessions.get(session, 0)

    def shared(self, hash: str, besides: str) -> bool:  # noqa: A002 - the record's own word
        """Whether a live note other than `besides` has `hash` among its versions: its object has to stay."""
        held = self._held(hash) or 0
        life = self._find(besides)
        return held - (life is not None and hash in life.versions) > 0

    def held(self, hash: str) -> bool:  # noqa: A002 - the record's own word
        """Whether any live note has `hash` among its versions."""
        return (self._held(hash) or 0) > 0

    def ended(self, hash: str) -> bool:  # noqa: A002 - the record's own word
        """Whether a note that was forgotten had `hash` among its versions."""
        return hash in self._ended

    def _count_read(self, record: Record) -> None:
        life = self._find(record.name)
        if life is not None and life.live:
            life = self._own(record)
            life.reads += 1
            life.last_used = record.at

    def _turn(self, record: Record) -> None:
        was_live, was_forgotten = self.is_live(record.name), self.is_forgotten(record.name)
        life = self._own(record)
        if record.op == FORGET:
            for version in life.versions:
                self._hold(version, -1)
            self._ended.update(life.versions, (record.hash,))
            life.begin(record)
            self._live_count -= was_live
            self._forgotten_count += not was_forgotten
            return
        if not was_live:
            life.begin(record)
            self._to_end(record.name)
            self._live_count += 1
            self._forgotten_count -= was_forgotten
        life.head = record
        if SOURCE_HASH in record.extra:
            life.brought, life.has_brought = record, True
        if record.hash not in life.versions:
            life.versions[record.hash] = None
            self._hold(record.hash, 1)
        if record.op == SAVE:
            life.saves += 1
            life.last_used = record.at
            if record.session is not None:
                self._sessions[record.session] = self.session_saves(record.session) + 1

    # What `Planned` lays over: how a name and a hash are looked up, and where a change of them goes.

    def _find(self, name: str) -> _Life | None:
        return self._lives.get(name)

    def _own(self, record: Record) -> _Life:
        life = self._lives.get(record.name)
        if life is None:
            life = self._lives[record.name] = _Life(record)
        return life

    def _to_end(self, name: str) -> None:
        self._lives[name] = self._lives.pop(name)

    def _every(self) -> Iterator[tuple[str, _Life]]:
        return iter(self._lives.items())

    def _held(self, hash: str) -> int | None:  # noqa: A002 - the record's own word
        return self._holders.get(hash)

    def _hold(self, hash: str, more: int) -> None:  # noqa: A002 - the record's own word
        self._holders[hash] = (self._held(hash) or 0) + more


class Planned(Heads):
    """Heads as they will be once the records applied here are durable: a layer over an untouched `base`.

    It copies only what its records touch. To take the plan over, apply the same records to the base; once the
    base has moved on, the layer is to be thrown away.
    """

    def __init__(self, base: Heads) -> None:
        super().__init__()
        self._base = base
        self._begun: set[str] = set()
        self._live_count = base.live_count
        self._forgotten_count = base.forgotten_count

    def session_saves(self, session: str) -> int:
        own = self._sessions.get(session)
        return self._base.session_saves(session) if own is None else own

    def ended(self, hash: str) -> bool:  # noqa: A002 - the record's own word
        return super().ended(hash) or self._base.ended(hash)

    def _find(self, name: str) -> _Life | None:
        return self._lives.get(name) or self._base._find(name)

    def _own(self, record: Record) -> _Life:
        if record.name not in self._lives:
            below = self._base._find(record.name)
            self._lives[record.name] = below.copy() if below else _Life(record)
        return self._lives[record.name]

    def _to_end(self, name: str) -> None:
        super()._to_end(name)
        self._begun.add(name)

    def _every(self) -> Iterator[tuple[str, _Life]]:
        for name, life in self._base._every():
            if name not in self._begun:
                yield name, self._lives.get(name, life)
        for name, life in self._lives.items():
            if name in self._begun or self._base._find(name) is None:
                yield name, life

    def _held(self, hash: str) -> int | None:  # noqa: A002 - the record's own word
        own = self._holders.get(hash)
        return self._base._held(hash) if own is None else own
