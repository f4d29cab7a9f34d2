"""Note text to Note and back. Law: reading never fails, and rendering what canonical text gave is that text.

Pure: bytes and strings in, structs and bytes out. SPEC section 2.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from enum import StrEnum
from typing import Literal

import msgspec

MAX_FILE = 1 << 20  # bytes; a longer file is no note
MAX_HOOK = 240  # characters
MAX_BODY = 8192  # bytes of UTF-8
MAX_SLUG = 80  # characters
MAX_SLUG_BYTES = 200
RESERVED = "memory"
SUFFIX = ".md"


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


# ---------------------------------------------------------------- reading

# Possessive quantifiers throughout: no text makes any of these look at a character more than twice.
_LINE_END = re.compile(r"(?<!\r)\r++(?:\n|\Z)")
_LINES = re.compile(r"[\r\n]+")
_OPENING = re.compile(r"[^\S\n]*+---[^\S\n]*+(?:\n|\Z)")
_CLOSING = re.compile(r"^---[^\S\n]*+$\n?", re.MULTILINE)
_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)*+")
_BLANK_AND_COMMENTS = re.compile(r"(?:[^\S\n]*+(?:#[^\n]*+)?+(?:\n|\Z))*+")
_ENTRY = re.compile(
    r"(?:([A-Za-z0-9_-]++):)?+"  # a key, or none: a line that is not understood
    r"([^\n]*+)"
    r"((?:\n(?:[ \t#][^\n]*+|[^\S\n]*+(?![^\n])))*+)"  # the blank, comment or indented lines after it
    r"\n?+"
)
_KEY = re.compile(r"([A-Za-z0-9_-]++):")
_FIRST_LINE = re.compile(r"[#\s]*+([^\n]*+)")

_KNOWN = frozenset(("name", "description", "type"))


def parse(stem: str, raw: bytes) -> Note:
    """The note of a file's bytes under its stem. Never fails: see `Note.trouble`. SPEC 2."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        bad = Trouble(
            raw.count(b"\n", 0, error.start) + 1,
            "utf-8",
            f"not UTF-8: byte 0x{raw[error.start]:02x}",
        )
        reading = read(raw.decode(errors="replace"))
        if reading.trouble is None or bad.line < reading.trouble.line:
            reading = msgspec.structs.replace(reading, trouble=bad)
    else:
        reading = read(text)
    if reading.trouble is not None:
        hook = first_line(reading.body)[:MAX_HOOK]
        return Note(stem, hook, None, reading.body, reading.extra, reading.trouble)
    hook = one_line(reading.description) or first_line(reading.body)
    return Note(
        stem,
        hook[:MAX_HOOK],
        _TYPES.get(reading.type),
        reading.body,
        reading.extra,
        None,
        reading.description,
    )


_TYPES: dict[str, NoteType] = {kind.value: kind for kind in NoteType}


def read(text: str) -> Reading:
    """The parts of a note's text, BOM and CRLF taken off. Never fails. SPEC 2."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = _LINE_END.sub("\n", text)
    opening = _OPENING.match(text)
    if opening is None:
        return Reading("", "", "", _trim(text, 0), (), None, json=False)
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        trouble = Trouble(1, "block", "the block that opens here never closes")
        return Reading("", "", "", _trim(text, opening.end()), (), trouble, json=False)
    block = _block(text[opening.end() : closing.start()].removesuffix("\n"))
    spoilt = Trouble(block.open_line, "quote", "a quote that opens here never closes")
    return Reading(
        block.name,
        block.description,
        block.type,
        _trim(text, closing.end()),
        block.extra,
        spoilt if block.open_line else None,
        block.json,
    )


def one_line(text: str) -> str:
    """The text as one line: its lines stripped and joined by single spaces. U+2028 and its like stay."""
    if "\n" not in text and "\r" not in text:
        return text.strip()
    return " ".join(part for part in (line.strip() for line in _LINES.split(text)) if part)


def first_line(body: str) -> str:
    """The first line of a body that says something, leading `#` and space stripped; "" when none does."""
    found = _FIRST_LINE.match(body)
    return one_line(found[1]) if found else ""


def extra_key(entry: str) -> str:
    """The key of one entry of `Note.extra`; "" for lines that were not understood."""
    found = _KEY.match(entry)
    return found[1] if found else ""


def is_open(entry: str) -> bool:
    """Whether one entry of `Note.extra` holds a quote that never closes (and would spoil any block)."""
    found = _ENTRY.match(entry)
    if found is None or not found[1] or found[2].strip()[:1] not in _QUOTES:
        return False
    return _value(found[2], found[3]) is None


def entry_value(entry: str) -> str:
    """The value of one entry of `Note.extra` as text; "" when there is none or its quote never closes."""
    found = _ENTRY.match(entry)
    return (_value(found[2], found[3]) or "").strip() if found else ""


def _trim(text: str, start: int) -> str:
    """The text from `start` without blank lines at its ends; the spaces of the lines between stay."""
    leading = _BLANK_LINES.match(text, start)
    text = text[leading.end() if leading else start :]
    end = text.find("\n", len(text.rstrip()))
    if end >= 0:
        return text[:end]
    return text if text.strip() else ""


def _block(text: str) -> Block:
    stripped = text.strip()
    if stripped.startswith("{") and stripped.endswith("}"):
        block = _json_block(stripped)
        if block is not None:
            return block
    start = _BLANK_AND_COMMENTS.match(text)
    skipped = start.end() if start else 0
    first = 2 + text.count("\n", 0, skipped)
    lines = text[skipped:]
    if lines[:1] in {" ", "\t"}:
        lines = _dedent(lines)
    return _lines_block(lines, first)


def _dedent(text: str) -> str:
    """The text with the first line's indentation taken off the lines from the start that have it.

    A block indented as a whole is one for every YAML reader; and lines without a key above them must not
    become the continuation of another key when the note is rewritten.
    """
    indent = text[: len(text) - len(text.lstrip(" \t"))]
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if line.startswith(indent):
            rest = line.removeprefix(indent)
            # Bare, that line would close the block.
            lines[index] = "'---'" if rest.rstrip() == "---" else rest
        elif line.strip():
            break
    return "\n".join(lines)


def _lines_block(text: str, first_line_number: int) -> Block:
    known = dict.fromkeys(_KNOWN, "")
    nested = ""
    extra: list[list[str]] = []
    takes_items = False  # the last entry is an unknown key without a value: `- item` lines are its own
    line = first_line_number
    open_line = 0
    for key, first, rest in _ENTRY.findall(text):
        if not (key or first or rest):
            continue  # the empty match at the end
        if key in _KNOWN:
            value = _value(first, rest)
            known[key] = value or ""
            takes_items = False
        else:
            raw = f"{key}:{first}{rest}" if key else first + rest
            value = ""
            if key:
                bare = first.strip()
                if bare[:1] in _QUOTES:
                    value = _value(first, rest)
                elif key == "metadata":
                    nested = _nested_type(bare, rest)
                takes_items = not bare and not rest.strip()
                extra.append([raw])
            elif takes_items and (first == "-" or first.startswith("- ")):
                extra[-1].append(raw)
            else:
                takes_items = False
                extra.append([raw])
        if value is None and not open_line:
            open_line = line
        line += 1 + rest.count("\n")
    return Block(
        known["name"].strip(),
        known["description"],
        known["type"].strip() or nested,
        tuple("\n".join(parts) for parts in extra),
        open_line,
    )


# ---------------------------------------------------------------- values

_QUOTES = frozenset("\"'")
_NULLS = frozenset(("~", "null", "Null", "NULL"))
_SCALAR_HEADER = re.compile(r"[|>](?:[+-]?[1-9]?|[1-9][+-])(?:[ \t]+#.*)?\Z")
_DOUBLE = re.compile(r'"((?:[^"\\]++|\\.)*+)"\s*+', re.DOTALL)
_SINGLE = re.compile(r"'((?:[^']++|'')*+)'\s*+")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[\"\\/bfnrt ])"
)
_ESCAPES = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    " ": " ",
}


def _value(first: str, rest: str) -> str | None:
    """A key's value as text: `first` is what its line holds, `rest` the lines after. None: an open quote."""
    head = first.strip()
    if head[:1] in {"|", ">"} and _SCALAR_HEADER.match(head):
        return _scalar_block(rest.split("\n")[1:], folded=head[0] == ">")
    if not head:
        lines = [line for line in rest.split("\n") if line.strip() and line[0] != "#"]
        if not lines:
            return ""
        head = lines[0].strip()
        rest = "\n" + "\n".join(lines[1:])
    quote = head[0]
    if quote not in _QUOTES:
        text = _fold(head, rest, comments=False) if rest else head
        return "" if text in _NULLS else text
    text = _fold(head, rest, comments=True) if rest else head
    pattern = _DOUBLE if quote == '"' else _SINGLE
    closed = pattern.match(text)
    if closed is None:
        return None
    if closed.end() < len(text):
        return _fold(head, rest, comments=False)  # it closes before its end: a plain string
    inner = closed[1]
    if quote == "'":
        return inner.replace("''", "'")
    return _ESCAPE.sub(_unescape, inner) if "\\" in inner else inner


def _unescape(found: re.Match[str]) -> str:
    escape = found[0]
    kind = escape[1]
    if kind not in "uUx":
        return _ESCAPES[kind]
    if len(escape) == len(r"\ud83d\ude00"):
        pair = int(escape[2:6], 16), int(escape[8:], 16)
        return chr(0x10000 + ((pair[0] & 0x3FF) << 10) + (pair[1] & 0x3FF))
    digits = escape[2:]
    code = int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return "\ufffd"  # half a pair is no character, and no UTF-8
    return chr(code)


def _fold(head: str, rest: str, *, comments: bool) -> str:
    """The value's lines as YAML folds them: joined by a space, a blank line by a line end.

    In a plain value a comment line ends nothing and says nothing; in a quoted one (`comments`) an
    indented `#` is text, and a backslash before the line end joins without a space.
    """
    parts = [head]
    glue = "" if comments and _continues(head) else " "
    for line in rest.split("\n")[1:]:
        text = line.strip()
        if line[:1] == "#" or (text[:1] == "#" and not comments):
            continue
        if not text:
            glue = "\n"
            continue
        if not glue:
            parts[-1] = parts[-1][:-1]
        parts += [glue, text]
        glue = "" if comments and _continues(text) else " "
    return "".join(parts)


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _scalar_block(lines: list[str], *, folded: bool) -> str:
    """The text of a `|` or `>` block. Line ends at its own end are trimmed: no value here keeps them."""
    lines = [line for line in lines if line[:1] != "#"]
    indent = next((len(s) - len(s.lstrip(" \t")) for s in lines if s.strip()), 0)
    texts = [line[indent:] if line[:indent].isspace() else line.lstrip() for line in lines]
    if not folded:
        return "\n".join(texts).strip("\n")
    parts: list[str] = []
    glue = ""
    for text in texts:
        if not text.strip():
            glue = "\n" if parts else ""
            continue
        if text[0] in " \t":
            glue = "\n" if parts else ""
        parts += [glue, text]
        glue = " "
    return "".join(parts)


# A flow map's tokens: space, quoted text, an indicator, plain text, a stray quote.
_FLOW = re.compile(
    r"\s++|\"(?:[^\"\\]++|\\.)*+\"|'(?:[^']++|'')*+'|[\[\]{},:]|[^\[\]{},:\"'\s][^\[\]{},:]*+|[\"']",
    re.DOTALL,
)


def _nested_type(head: str, rest: str) -> str:
    """The `type` of a `metadata` value, an indented map or a flow map; "" when it has none."""
    if head.startswith("{"):
        return _flow_type(_fold(head, rest, comments=False))
    indent = None
    found = ""
    for line in rest.split("\n")[1:]:
        text = line.lstrip(" \t")
        if not text or text[0] == "#":
            continue
        if indent is None:
            if not head and text[0] == "{":
                return _flow_type(_fold("", rest, comments=False).strip())
            indent = len(line) - len(text)
        if len(line) - len(text) == indent and text.startswith("type:"):
            found = (_value(text[len("type:") :], "") or "").strip()
    return found


def _flow_type(text: str) -> str:
    depth = 0
    key: str | None = None
    parts: list[str] = []
    found = ""
    for piece in _FLOW.findall(text):
        if piece in {"{", "["}:
            depth += 1
            if depth == 1:
                continue
        elif piece in {"}", "]"}:
            depth -= 1
        if (depth == 1 and piece == ",") or depth == 0:
            if key == "type":
                found = (_value("".join(parts), "") or "").strip()
            key, parts = None, []
            if depth == 0:
                break
        elif depth == 1 and piece == ":" and key is None:
            key, parts = (_value("".join(parts), "") or "").strip(), []
        else:
            parts.append(piece)
    return found


# ---------------------------------------------------------------- JSON blocks


class _Object(dict[str, object]):
    """A JSON object that remembers every member, repeated ones too."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _no_constant(_name: str) -> object:
    raise ValueError("NaN and Infinity are not JSON")


def _json_block(text: str) -> Block | None:
    """The block that is one JSON object, or None when it is not."""
    try:
        found = json.loads(text, object_pairs_hook=_Object, parse_constant=_no_constant)
        if not isinstance(found, _Object):
            return None
        return _object_block(found)
    except (ValueError, RecursionError):
        return None


def _object_block(members: _Object) -> Block:
    extra: list[str] = []
    for key, value in members.pairs:
        if key in _KNOWN:
            continue
        spelled = key if _KEY.fullmatch(f"{key}:") else quote(_whole(key))
        extra.append(f"{spelled}: {_json_text(value)}")
    kind = _scalar(members.get("type")).strip()
    metadata = members.get("metadata")
    if not kind and isinstance(metadata, dict):
        kind = _scalar(metadata.get("type")).strip()
    return Block(
        _scalar(members.get("name")).strip(),
        _scalar(members.get("description")),
        kind,
        tuple(extra),
        json=True,
    )


def _scalar(value: object) -> str:
    if value is None:
        return ""
    return _whole(value) if isinstance(value, str) else _json_text(value)


def _whole(text: str) -> str:
    """The text with halves of surrogate pairs, which no file can hold, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _json_text(value: object) -> str:
    return _escape(_whole(json.dumps(value, ensure_ascii=False, allow_nan=False)))


# ---------------------------------------------------------------- rendering

# Beyond what JSON escapes: what some YAML reader takes for a line end, a mark or no character at all.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_YAML_WORDS = frozenset(("y", "n", "yes", "no", "true", "false", "on", "off", "null"))
_NUMBER = re.compile(r"[0-9_]+(?:[eE][-+]?[0-9_]+)?|0[xX][0-9a-fA-F_]+|0[oObB][0-9_]+|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")
_DIGITS_FIRST = frozenset("0123456789")
_WORD_MARKS = frozenset("_-")
_TEXT_MARKS = frozenset("_- ./+@(),")


def render(
    name: str,
    description: str,
    kind: NoteType | None,
    extra: tuple[str, ...],
    body: str,
) -> bytes:
    """The canonical form (SPEC 2). `body` comes trimmed, `extra` as `Note.extra` has it."""
    lines = ["---", f"name: {plain_or_quoted(name)}", f"description: {quote(description)}"]
    if kind is not None:
        lines.append(f"type: {kind.value}")
    lines += extra
    lines.append("---\n")
    if body:
        lines.append(f"{body}\n")
    return "\n".join(lines).encode()


def quote(text: str) -> str:
    """The text as a JSON string every YAML reader reads alike, on one line."""
    return _escape(json.dumps(text, ensure_ascii=False))


def plain_or_quoted(text: str) -> str:
    """The text itself where every YAML reader, of 1.1 and 1.2, gives it back; else the JSON string."""
    return text if _stands_plain(text) else quote(text)


def _escape(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _stands_plain(text: str) -> bool:
    if not text or text.casefold() in _YAML_WORDS or text[-1] == " ":
        return False
    if text[0] in _DIGITS_FIRST:
        return not _NUMBER.fullmatch(text) and all(_is_word(c) or c in _WORD_MARKS for c in text)
    if not text[0].isalpha():
        return False
    return all(_is_word(c) or c in _TEXT_MARKS for c in text)


def _is_word(character: str) -> bool:
    """Whether it is a letter, a digit or a combining mark, of any script."""
    return character.isalnum() or unicodedata.category(character)[0] == "M"


# ---------------------------------------------------------------- names

_IS_SLUG = re.compile(r"[a-z0-9]++(?:-[a-z0-9]++)*+")
_LONG_GAP = re.compile(r"[\x00-/:-@\[-`{-\x7f]+(?=[\x00-/:-@\[-`{-\x7f])")
_SLUG_INPUT = 2048  # characters; ordering combining marks takes the square of a run's length
_DERIVED_WORDS = 5


def renamed(raw: bytes, name: str) -> bytes:
    """A note's bytes with its `name` line saying `name`, and nothing else changed (SPEC 7, `memory.rename`).

    As they are where there is no such line to change: no block, one that never closes, a block of JSON, bytes
    that are not UTF-8. The file's stem is the name in any case.
    """
    try:
        lines = raw.decode().split("\n")
    except UnicodeDecodeError:
        return raw
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == "---"), 0)
    if lines[0].removeprefix("\ufeff").strip() != "---" or not end:
        return raw
    block = _with_name(lines[1:end], f"name: {plain_or_quoted(name)}")
    return "\n".join([lines[0], *block, *lines[end:]]).encode()


def _with_name(block: list[str], name_line: str) -> Iterator[str]:
    """A block's lines, each `name` key's value replaced; the indented lines of the old value go with it."""
    inside = False
    for line in block:
        if line.startswith("name:"):
            inside = True
            yield name_line + "\r" * line.endswith("\r")
        elif line[:1] in (" ", "\t") and line.strip():
            if not inside:
                yield line
        else:
            inside = inside and line[:1] in ("", "\r", "#")
            yield line


def slug(text: str) -> str:
    """The slug of a given name or of a file's stem; "" when nothing is left. SPEC 2.

    Two names are twins when their slugs are equal; the slug of a slug is itself.
    """
    if len(text) <= MAX_SLUG and _IS_SLUG.fullmatch(text):
        return text
    text = _LONG_GAP.sub("", text)[:_SLUG_INPUT]
    text = unicodedata.normalize("NFKC", text).lower()
    # Lower-casing can leave a letter and a mark that compose (J and a caron).
    text = unicodedata.normalize("NFKC", text)
    spaced = "".join(c if _is_word(c) else " " for c in text)
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


_FIRST_MEMBER = re.compile(r'\{\s*+("(?:[^"\\]++|\\.)*+"\s*+:\s*+"(?:[^"\\]++|\\.)*+")?', re.DOTALL)
_FIRST_LINE_END = re.compile(r"\r*+\n")


def tagged(raw: bytes, source: str) -> bytes:
    """A note's bytes with `source: <source>` as the first key of its block, every other byte as it was (SPEC 10).

    A note without a block gets one, a block of JSON its first member; a block that never closes stays as it is, and
    so does a text that has the tag. `source` is a word.
    """
    text = raw.decode(errors="surrogateescape")
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(bom)
    opening = _OPENING.match(text)
    if opening is None:
        eol = _eol_of(text)
        gap = eol if text.strip() else ""
        text = f"---{eol}source: {source}{eol}---{eol}{gap}{text}"
    elif (closing := _CLOSING.search(text, opening.end())) is not None:
        block = _tagged_block(text[opening.end() : closing.start()], source, _eol_of(opening[0]))
        text = text[: opening.end()] + block + text[closing.start() :]
    return (bom + text).encode(errors="surrogateescape")


def _eol_of(text: str) -> str:
    """The end of a text's first line; one that has no other is `\\n`."""
    found = _FIRST_LINE_END.search(text)
    return "\r\n" if found is not None and found[0] != "\n" else "\n"


def _tagged_block(block: str, source: str, eol: str) -> str:
    """The lines of a block with the tag in front; what follows keeps its place, so it keeps its indentation."""
    stripped = block.strip()
    if stripped.startswith("{") and stripped.endswith("}") and (inner := _json_block(stripped)) is not None:
        tag = f'"source": "{source}"'
        first = _FIRST_MEMBER.match(stripped)
        if first is not None and first[1] and json.loads(f"{{{first[1]}}}") == {"source": source}:
            return block
        head, _, rest = block.partition("{")
        return f"{head}{{{tag}{', ' if inner.extra or rest.strip() != '}' else ''}{rest}"
    start = _BLANK_AND_COMMENTS.match(block)
    skipped = start.end() if start else 0
    lines = block[skipped:]
    indent = lines[: len(lines) - len(lines.lstrip(" \t"))]
    line, _, _ = lines.partition("\n")
    if extra_key(line.strip()) == "source" and entry_value(line.strip()) == source:
        return block
    return f"{block[:skipped]}{indent}source: {source}{eol}{lines}"


def is_note_name(filename: str) -> bool:
    """Whether a file's name is a note's (SPEC 2); that it is a regular file of at most 1 MiB is not asked.

    A name that is not UTF-8 (it comes with half surrogates) is none: nothing could write it down.
    """
    stem = filename.removesuffix(SUFFIX)
    if stem == filename or not stem or stem[0] == "." or stem.casefold() == RESERVED:
        return False
    return stem.isprintable() or not any(unicodedata.category(c) in {"Cc", "Cs"} for c in stem)
