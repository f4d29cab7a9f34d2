"""One transcript as far as it was read. Law: what is kept of it is where things are and how often, never a word.

An entry is found again by the place of its line in the file, and shown by reading that line anew. A file that grew is
read from where it ended; one that was cut, replaced or rewritten is read from its start. SPEC section 11.
"""

import hashlib
import os
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from memd import forms, postings
from memd.forms import Words
from memd.fs import Disk, Stamp
from memd.history import formats
from memd.history.formats import Header, Kind, Said
from memd.history.lines import LINE_MAX, Span, read_lines
from memd.postings import Packed, Shelf
from memd.tokens import tokenize

SLICE = 512
"""Entries indexed before what was found is handed over: nothing waits longer for a large file."""
HEAD_MAX = 1 << 18
"""Bytes at a file's start in which its session is named, lines that are too long not counted."""
PASSED_MAX = 64 << 20
"""Bytes of such lines after which no more is looked for."""
PIECE = 1 << 15
"""Characters cut into tokens at a time: a daemon answers others between two pieces."""

_TAIL = 256
_KINDS: tuple[Kind, ...] = ("user", "assistant", "summary")


class Columns(msgspec.Struct, frozen=True, eq=False):
    """What is known of each entry, by place: hashes of its id and its text, where its line lies, who said it."""

    ids: "array[int]"
    marks: "array[int]"
    starts: "array[int]"
    ends: "array[int]"
    kinds: "array[int]"

    @classmethod
    def empty(cls) -> "Columns":
        """The columns of no entry."""
        return cls(array("Q"), array("Q"), array("Q"), array("Q"), array("B"))

    def __len__(self) -> int:
        return len(self.kinds)


class Transcript(msgspec.Struct, frozen=True, eq=False):
    """A file as far as it was read, up to `offset`; `tail` is the hash of the bytes before that.

    `skipped` counts lines that are torn, too long, no JSON or of no known kind.
    """

    path: Path
    stamp: Stamp | None = None
    offset: int = 0
    tail: bytes = b""
    header: Header = Header(None, None, child=False)
    skipped: int = 0
    columns: Columns = msgspec.field(default_factory=Columns.empty)
    shelf: Shelf = postings.EMPTY

    @property
    def session(self) -> str:
        """The id of its session: what it says itself, else its file's stem."""
        return self.header.session or stem(self.path)


class Entry(NamedTuple):
    """An entry read anew: its id, who said it and its words."""

    id: str
    kind: Kind
    text: str


def stem(path: Path) -> str:
    """A file's stem as a session is called by it; what is no UTF-8 in it is written as escapes."""
    return os.fsencode(path.stem).decode("utf-8", "backslashreplace")


def head(path: Path) -> Header | None:
    """What the lines at a file's start say of its session, as far as they say anything; None when it does not open.

    Never raises.
    """
    found = Header(None, None, child=False)
    passed = 0
    try:
        with Disk().opened(path) as stream:
            for span in read_lines(stream, 0, PASSED_MAX):
                if span.raw is None:
                    passed += span.end - span.start
                    continue
                line = formats.parse(span.raw)
                if line.header is not None:
                    found = joined(found, line.header)
                if found.cwd is not None or span.end - passed > HEAD_MAX:
                    break
    except OSError:
        return None
    return found


def joined(known: Header, more: Header) -> Header:
    """What two lines say of one session; the first to say a thing counts."""
    return Header(known.session or more.session, known.cwd or more.cwd, child=known.child or more.child)


def read_on(known: Transcript, stop: Callable[[], bool] = lambda: False) -> Iterator[Transcript]:
    """The transcript as it grows while it is read, slice by slice; the last is what the file holds now.

    Nothing is given when there is nothing new. `stop` ends it early. Errors: OSError.
    """
    with Disk().opened(known.path) as stream:
        stamp = Stamp.of(os.fstat(stream.fileno()))
        if stamp == known.stamp:
            return
        if not continues(known, stamp, stream):
            known = Transcript(known.path)
        slice_ = _Slice(known, stream)
        for span in read_lines(stream, known.offset):
            if stop():
                return
            if not slice_.take(span):
                break
            if len(slice_) >= max(SLICE, len(known.columns)):  # as much again: merging stays linear in the file
                yield (known := slice_.closed(None))
                slice_ = _Slice(known, stream)
        yield slice_.closed(stamp)


def continues(known: Transcript, stamp: Stamp, stream: BinaryIO) -> bool:
    """Whether what was read of a file still stands at its start."""
    if known.offset == 0:
        return False
    if known.stamp is not None and (known.stamp.inode != stamp.inode or known.stamp.size == stamp.size):
        return False  # another file, or this one written anew, as long as it was
    return stamp.size >= known.offset and tail_of(stream, known.offset) == known.tail


def tail_of(stream: BinaryIO, offset: int) -> bytes:
    """The hash of the bytes right before `offset`; the stream stays where it is."""
    start = max(0, offset - _TAIL)
    return hashlib.blake2b(os.pread(stream.fileno(), offset - start, start), digest_size=16).digest()


def entry_at(transcript: Transcript, place: int) -> Entry | None:
    """An entry's words, read from its line; None when the file does not hold them any more. Errors: OSError."""
    columns = transcript.columns
    start, end = columns.starts[place], columns.ends[place]
    with Disk().opened(transcript.path) as stream:
        stream.seek(start)
        said = formats.parse(stream.read(min(end - start, LINE_MAX + 1))).said
    if said is None or marked(said.text) != columns.marks[place]:
        return None
    return Entry(said.id or unnamed(start, said.text), said.kind, said.text)


def unnamed(start: int, text: str) -> str:
    """The id of an entry whose line has none: its place and its text's mark, since a session may have two files."""
    return f"at-{start}-{marked(text) >> 32:08x}"


def marked(text: str) -> int:
    """The 64 bits by which a text is known again."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def words(text: str) -> Words:
    """The words and humps of a text, cut piece by piece: one long text holds up nobody."""
    found: list[str] = []
    humps: list[str] = []
    for piece in _pieces(text):
        found += tokenize(piece)
        humps += forms.humps(piece)
    return Words(found, humps)


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = min(len(text), start + PIECE)
        if end < len(text):
            space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = space if space > start else end
        yield text[start:end]
        start = end


class _Slice:
    """Some entries on their way from a file into its transcript."""

    def __init__(self, known: Transcript, stream: BinaryIO) -> None:
        self.known = known
        self.stream = stream
        self.offset = known.offset
        self.header = known.header
        self.skipped = known.skipped
        self.columns = Columns.empty()
        self.texts: list[Words] = []

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, span: Span) -> bool:
        """Take in a line; False for one that is not whole yet, which is where the next reading begins."""
        line = formats.parse(span.raw) if span.raw is not None else formats.UNKNOWN
        # No beginning of an object is one: a line without its end that parses is whole.
        if not span.whole and not line.known:
            return False
        self.offset = span.end
        if not line.known:
            self.skipped += 1
        if line.header is not None:
            self.header = joined(self.header, line.header)
        if line.said is not None:
            self._add(span, line.said)
        return True

    def _add(self, span: Span, said: Said) -> None:
        columns = self.columns
        columns.ids.append(postings.hashed(said.id or unnamed(span.start, said.text)))
        columns.marks.append(marked(said.text))
        columns.starts.append(span.start)
        columns.ends.append(span.end)
        columns.kinds.append(_KINDS.index(said.kind))
        self.texts.append(words(said.text))

    def closed(self, stamp: Stamp | None) -> Transcript:
        """The transcript with what was taken in; `stamp` is the file's once its end was reached."""
        known = self.known
        grown = Transcript(
            path=known.path,
            stamp=stamp,
            offset=self.offset,
            tail=tail_of(self.stream, self.offset),
            header=self.header,
            skipped=self.skipped,
            columns=known.columns,
            shelf=known.shelf,
        )
        if not self.texts:
            return grown
        return msgspec.structs.replace(
            grown,
            columns=Columns(
                *(getattr(known.columns, name) + getattr(self.columns, name) for name in Columns.__struct_fields__)
            ),
            shelf=postings.merge([known.shelf, postings.build(self.texts)]),
        )


class Frozen(msgspec.Struct, frozen=True, array_like=True):
    """A transcript as the cache writes it: places, hashes and counts."""

    path: bytes
    stamp: Stamp | None
    offset: int
    tail: bytes
    session: str | None
    cwd: str | None
    child: bool
    skipped: int
    columns: tuple[bytes, ...]
    shelf: Packed


def freeze(transcript: Transcript) -> Frozen:
    """What is written of a transcript."""
    header = transcript.header
    return Frozen(
        path=os.fsencode(transcript.path),
        stamp=transcript.stamp,
        offset=transcript.offset,
        tail=transcript.tail,
        session=header.session,
        cwd=header.cwd,
        child=header.child,
        skipped=transcript.skipped,
        columns=tuple(getattr(transcript.columns, name).tobytes() for name in Columns.__struct_fields__),
        shelf=postings.pack(transcript.shelf),
    )


def thaw(frozen: Frozen) -> Transcript:
    """The transcript that was written. Errors: ValueError for one that does not fit together."""
    columns = Columns.empty()
    for name, raw in zip(Columns.__struct_fields__, frozen.columns, strict=True):
        getattr(columns, name).frombytes(raw)
    shelf = postings.unpack(frozen.shelf)
    if any(len(getattr(columns, name)) != len(shelf) for name in Columns.__struct_fields__):
        raise ValueError("not the columns of one transcript")
    return Transcript(
        path=Path(os.fsdecode(frozen.path)),
        stamp=frozen.stamp,
        offset=frozen.offset,
        tail=frozen.tail,
        header=Header(frozen.session, frozen.cwd, child=frozen.child),
        skipped=frozen.skipped,
        columns=columns,
        shelf=shelf,
    )
