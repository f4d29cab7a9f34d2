"""The index file, `MEMORY.md`. Law: a line that lists no note is the user's and stays, byte for byte.

A listing is its text; every change gives a new one. A line lists a note when it begins `- [` and holds
`](<stem>.md)` with no `/` in the stem. Nothing here knows which words are a person's: who calls says which
rows are memd's own. SPEC 4.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from memd import errors

STALE: Final = " ⚠ stale"
"""What a row of memd's own ends with while its source is gone (SPEC 10)."""

_BOM: Final = "\ufeff".encode()
_OPEN: Final = "- ["
_LINK: Final = "]("
_END: Final = ".md)"
_DASH: Final = " — "
_LONGEST: Final = 255  # no file has a longer name: a line of a thousand links is read in no time
# What would end a line in some reader, or move a terminal's cursor: no part of a one-line hook.
_CONTROLS: Final = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029), " ")
_OWN_ROW: Final = re.compile(  # what `row` writes for most; a label that no note can have decides nothing
    rb"^- \[(?!(?i:memory)])([^]/.\n][^]/\n]{0,%d})]\(\1\.md\)[^\n]*(?:\n|\Z)" % (_LONGEST - 1), re.MULTILINE
)
_FEW: Final = 16  # rows; to look for so many one by one costs less than to read every line once
_NO_ROWS: Final[Mapping[str, str]] = MappingProxyType({})
_LEAD: Final = re.compile(r"\A\s*(?:[—–:-]\s*)?")


class Row(msgspec.Struct, frozen=True):
    """A line that lists a note; `index` counts lines from 0, `description` follows the link and a dash."""

    index: int
    name: str
    label: str
    description: str
    stale: bool


def row(name: str, hook: str) -> str:
    """The line of a note, without a line end; it ends after the link when there is no hook."""
    words = hook.translate(_CONTROLS).strip()
    link = f"{_OPEN}{name}{_LINK}{name}{_END}"
    return f"{link}{_DASH}{words}" if words else link


class Listing(msgspec.Struct, frozen=True, eq=False):
    """The whole of a MEMORY.md, line ends, BOM and all, as its bytes: a save touches one line of thousands.

    `fresh` are rows, by name, that are still to stand in `base`: a batch has all of its own put in at once, when the
    whole is first asked for.
    """

    base: bytes = b""
    fresh: Mapping[str, str] = _NO_ROWS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listing) and self.raw == other.raw

    @property
    def raw(self) -> bytes:
        """The file's bytes."""
        if self.fresh:
            raw = _with_rows(self.base, self.fresh)
            msgspec.structs.force_setattr(self, "base", raw)  # which changes no value
            msgspec.structs.force_setattr(self, "fresh", _NO_ROWS)
        return self.base

    @classmethod
    def decode(cls, raw: bytes) -> "Listing":
        """The listing of a file's bytes; Unreadable when they are not UTF-8."""
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            raise errors.Unreadable("MEMORY.md is not UTF-8; mend or move it, nothing was changed") from error
        return cls(raw)

    def encode(self) -> bytes:
        """The file's bytes."""
        return self.raw

    @property
    def text(self) -> str:
        """The file's text."""
        return self.raw.decode()

    def rows(self, notes: Collection[str] = ()) -> list[Row]:
        """Every line that lists a note, in order; one that reads two ways lists the one among `notes`."""
        listed = ((index, line, listed_by(line, notes)) for index, line in enumerate(self._lines()))
        return [_parse_row(index, line, name) for index, line, name in listed if name is not None]

    def with_row(self, name: str, hook: str, *, replace: bool = True) -> "Listing":
        """With a row for the note: its first row replaced (kept, when not `replace`), else one appended."""
        if not replace and (name in self.fresh or self.lists(name)):
            return self
        return Listing(self.base, {**self.fresh, name: row(name, hook)})

    def lists(self, name: str) -> bool:
        """Whether a line lists the note."""
        return next(self._lines_of(name), None) is not None

    def with_lines(self, lines: Mapping[str, str]) -> "Listing":
        """With the line of each note (name → line) appended as it is given, less its line end, where none lists it.

        Links are read once for all of them: looking for thousands of notes one by one takes seconds.
        """
        linked = _linked(self.raw)
        fresh = [
            line.rstrip("\r\n")
            for name, line in lines.items()
            if not _may_be_among(linked, name) or not self.lists(name)
        ]
        return self._append(fresh)

    def without(self, name: str) -> "Listing":
        """Without any row of the note."""
        raw = self.raw
        for start, end in reversed(list(self._lines_of(name))):
            raw = raw[:start] + raw[end:]
        return Listing(self._keep_bom(raw))

    def without_all(self, names: Collection[str]) -> "Listing":
        """Without any row of these notes; every line is read once."""
        kept = [line for line in self._lines() if listed_by(line, names) not in names]
        return Listing(self._keep_bom("".join(kept).encode()))

    def reconciled(self, notes: Mapping[str, str], keep: Collection[str] = ()) -> "Listing":
        """With one row for each of `notes` (name → hook), unlisted ones appended in their order (SPEC 4).

        Rows of notes that are gone or already have a row go, but for those that list a name of `keep`, whose
        file is there and is no note; every other line stays, and so does the order.
        """
        kept: list[str] = []
        seen: set[str] = set()
        for line in self._lines():
            name = listed_by(line, notes)
            if name is not None and name not in keep and (name not in notes or name in seen):
                continue
            kept.append(line)
            if name is not None:
                seen.add(name)
        missing = [row(name, hook) for name, hook in notes.items() if name not in seen]
        return Listing(self._keep_bom("".join(kept).encode()))._append(missing)

    def with_own_row(
        self, name: str, hook: str, is_own: Callable[[str], bool], *, stale: bool | None = None
    ) -> "Listing":
        """With each row of the note that is memd's own made to say `hook`, marked when `stale` (None: as it was).

        `is_own` is asked for the row's text, and for the same without its mark; a row in a person's words
        stays.
        """
        mended = self
        for start, end in reversed(list(self._lines_of(name))):
            old = _bare(self._line(start, end))
            plain = old.removesuffix(STALE)
            if is_own(old):
                marked = bool(stale)
            elif is_own(plain):
                marked = plain != old if stale is None else stale
            else:
                continue
            mended = mended._with(start, end, row(name, hook) + (STALE if marked else ""))
        return mended

    def _line(self, start: int, end: int) -> str:
        return self.raw[start:end].decode()

    def _lines(self) -> Iterator[str]:
        text = self.text
        start = 0
        while (end := text.find("\n", start) + 1) > 0:
            yield text[start:end]
            start = end
        if start < len(text):
            yield text[start:]

    def _lines_of(self, name: str) -> Iterator[tuple[int, int]]:
        """Where the lines that list `name` begin and end, found by their link: a save must not read every row."""
        link = f"{_LINK}{name}{_END}".encode()
        own = f"{_OPEN}{name}{_LINK}{name}{_END}".encode() if _can_name(name) else b"\n"  # no line begins with that
        end = 0
        while (at := self.raw.find(link, end)) >= 0:
            start = self.raw.rfind(b"\n", 0, at) + 1
            end = self.raw.find(b"\n", at) + 1 or len(self.raw)
            if self.raw.startswith(own, start) or listed_by(self._line(start, end), (name,)) == name:
                yield start, end

    def _with(self, start: int, end: int, fresh: str) -> "Listing":
        """With the line from `start` to `end` replaced; it keeps its BOM and its line end."""
        old = self.raw[start:end]
        bom = _BOM if old.startswith(_BOM) else b""
        line_end = old[len(old.rstrip(b"\r\n")) :]
        return Listing(b"".join((self.raw[:start], bom, fresh.encode(), line_end, self.raw[end:])))

    def _put(self, name: str, fresh: str) -> "Listing":
        """With the first row of the note replaced, or one appended."""
        for start, end in self._lines_of(name):
            return self._with(start, end, fresh)
        return self._append([fresh])

    def _append(self, rows: list[str]) -> "Listing":
        if not rows:
            return self
        eol = self._eol()
        gap = b"" if self.raw in (b"", _BOM) or self.raw.endswith(b"\n") else eol
        return Listing(self.raw + gap + b"".join(line.encode() + eol for line in rows))

    def _eol(self) -> bytes:
        """The line end of the last line that has one."""
        at = self.raw.rfind(b"\n")
        return b"\r\n" if self.raw[:at].endswith(b"\r") and at > 0 else b"\n"

    def _keep_bom(self, raw: bytes) -> bytes:
        return _BOM + raw if self.raw.startswith(_BOM) and not raw.startswith(_BOM) else raw


def _with_rows(raw: bytes, rows: Mapping[str, str]) -> bytes:
    """The bytes with the row of each name put in, as `Listing._put` does one after the other."""
    spans = _own_spans(raw, rows) if len(rows) > _FEW else None
    listing = Listing(raw)
    if spans is None:
        for name, fresh in rows.items():
            listing = listing._put(name, fresh)
        return listing.raw
    pieces = []
    done = 0
    for (start, end), name in sorted((span, name) for name, span in spans.items()):
        old = raw[start:end]
        pieces += [raw[done:start], rows[name].encode(), old[len(old.rstrip(b"\r\n")) :]]
        done = end
    pieces.append(raw[done:])
    return Listing(b"".join(pieces))._append([fresh for name, fresh in rows.items() if name not in spans]).raw


def _own_spans(raw: bytes, names: Collection[str]) -> Mapping[str, tuple[int, int]] | None:
    """Where the first row of each of these notes begins and ends, as far as it has one, every line read once.

    None where a name, or a line that is not as `row` writes it, may be read in several ways.
    """
    if not all(_can_name(name) and "]" not in name for name in names):
        return None
    wanted = {name.encode(): name for name in names}
    found: dict[str, tuple[int, int]] = {}
    others = []
    done = 0
    for match in _OWN_ROW.finditer(raw):
        others.append(raw[done : match.start()])
        done = match.end()
        name = wanted.get(match[1])
        if name is not None:
            found.setdefault(name, match.span())
    others.append(raw[done:])
    linked = _linked(b"\n".join(others))
    return None if any(_may_be_among(linked, name) for name in names) else found


def _linked(raw: bytes) -> set[bytes]:
    """What each link says before its first `.md)`; of one that holds another link, or no `.md)`, something else."""
    return {link.partition(_END.encode())[0] for link in raw.split(_LINK.encode())[1:]}


def _may_be_among(linked: Collection[bytes], name: str) -> bool:
    """Whether a link may be the note's: it is, or the name may be read in several ways."""
    return _LINK in name or _END in name or name.encode() in linked


def listed_by(line: str, notes: Collection[str] = ()) -> str | None:
    """The name of the note that `line` lists; None when the line is the user's.

    A stem may hold `](` and `.md)`, so that one line can be read in several ways. A label that repeats the
    stem decides, then the first link as markdown reads it, unless only a longer reading is among `notes`.
    """
    text = _bare(line)
    if not text.startswith(_OPEN):
        return None
    own = list(_own_stems(text))
    stems = own or list(_linked_stems(text))
    return next((stem for stem in stems if stem in notes), stems[0] if stems else None)


def _own_stems(text: str) -> Iterator[str]:
    """Each stem for which `text` begins `- [<stem>](<stem>.md)`."""
    for at in _places(_LINK, text, len(_OPEN), len(_OPEN) + _LONGEST):
        stem = text[len(_OPEN) : at]
        if text.startswith(stem + _END, at + len(_LINK)) and _can_name(stem):
            yield stem


def _linked_stems(text: str) -> Iterator[str]:
    """The stem of the first link that can be a note's, then the longer readings of that link."""
    for end in _places(_END, text, 0, len(text)):
        start = text.rfind(_LINK, max(0, end - _LONGEST), end) + len(_LINK)
        if start >= len(_LINK) and _can_name(text[start:end]):
            yield text[start:end]
            yield from _longer_stems(text, start)
            return


def _longer_stems(text: str, last: int) -> Iterator[str]:
    """Each stem that begins after a `](`, `last` being where the last may begin, and ends before any `.md)`."""
    for at in _places(_LINK, text, max(0, last - _LONGEST), last - len(_LINK)):
        start = at + len(_LINK)
        for end in _places(_END, text, start, start + _LONGEST):
            if _can_name(text[start:end]):
                yield text[start:end]


def _places(what: str, text: str, first: int, last: int) -> Iterator[int]:
    """Where `what` stands in `text`, from `first` to `last` at most."""
    at = text.find(what, first, last + len(what))
    while at >= 0:
        yield at
        at = text.find(what, at + 1, last + len(what))


def _can_name(stem: str) -> bool:
    """Whether a note can have this stem: a link to anything else makes no line a row (SPEC 2)."""
    return stem != "" and "/" not in stem and not stem.startswith(".") and stem.lower() != "memory"


def _parse_row(index: int, line: str, name: str) -> Row:
    text = _bare(line)
    link = f"{_LINK}{name}{_END}"
    label, _, rest = text.removeprefix(_OPEN).partition(link)
    rest = rest.rstrip()
    words = rest.removesuffix(STALE)
    return Row(index, name, label, _LEAD.sub("", words).rstrip(), words != rest)


def _bare(line: str) -> str:
    """A line without BOM and line end."""
    return line.removeprefix("\ufeff").rstrip("\r\n")
