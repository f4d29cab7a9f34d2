"""Note text to Note. Law: reading never fails, and what is not understood is kept. Pure. SPEC section 2."""

import re

import msgspec

from .json_block import json_block
from .model import KEY, KNOWN, MAX_HOOK, Block, Note, NoteType, Reading, Trouble
from .values import QUOTES, nested_type, value_of

# Possessive quantifiers throughout: no text makes any of these look at a character more than twice.
_LINE_END = re.compile(r"(?<!\r)\r++(?:\n|\Z)")
_LINES = re.compile(r"[\r\n]+")
OPENING = re.compile(r"[^\S\n]*+---[^\S\n]*+(?:\n|\Z)")
CLOSING = re.compile(r"^---[^\S\n]*+$\n?", re.MULTILINE)
_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)*+")
BLANK_AND_COMMENTS = re.compile(r"(?:[^\S\n]*+(?:#[^\n]*+)?+(?:\n|\Z))*+")
_ENTRY = re.compile(
    r"(?:([A-Za-z0-9_-]++):)?+"  # a key, or none: a line that is not understood
    r"([^\n]*+)"
    r"((?:\n(?:[ \t#][^\n]*+|[^\S\n]*+(?![^\n])))*+)"  # the blank, comment or indented lines after it
    r"\n?+"
)
# A block as memd writes it, without unknown keys and with nothing to be unescaped: nearly every note's.
_PLAIN = re.compile(
    r"---\nname: (?![Nn][Uu][Ll][Ll]\n)([A-Za-z][A-Za-z0-9_.-]*+)\n"
    r'description: "([^"\\\x00-\x1f\x7f-\x9f\u2028\u2029]*+)"\n'
    r"type: (?!null\n)([a-z]++)\n---\n"
)
_FIRST_LINE = re.compile(r"[#\s]*+([^\n]*+)")


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
    plain = _PLAIN.match(text)
    if plain is not None:  # what is below finds the same, in three times the time
        return Reading(plain[1], plain[2], plain[3], _trim(text, plain.end()), (), None, json=False)
    opening = OPENING.match(text)
    if opening is None:
        return Reading("", "", "", _trim(text, 0), (), None, json=False)
    closing = CLOSING.search(text, opening.end())
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
    found = KEY.match(entry)
    return found[1] if found else ""


def is_open(entry: str) -> bool:
    """Whether one entry of `Note.extra` holds a quote that never closes (and would spoil any block)."""
    found = _ENTRY.match(entry)
    if found is None or not found[1] or found[2].strip()[:1] not in QUOTES:
        return False
    return value_of(found[2], found[3]) is None


def entry_value(entry: str) -> str:
    """The value of one entry of `Note.extra` as text; "" when there is none or its quote never closes."""
    found = _ENTRY.match(entry)
    return (value_of(found[2], found[3]) or "").strip() if found else ""


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
        block = json_block(stripped)
        if block is not None:
            return block
    start = BLANK_AND_COMMENTS.match(text)
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
    known = dict.fromkeys(KNOWN, "")
    nested = ""
    extra: list[list[str]] = []
    takes_items = False  # the last entry is an unknown key without a value: `- item` lines are its own
    line = first_line_number
    open_line = 0
    for key, first, rest in _ENTRY.findall(text):
        if not (key or first or rest):
            continue  # the empty match at the end
        if key in KNOWN:
            value = value_of(first, rest)
            known[key] = value or ""
            takes_items = False
        else:
            raw = f"{key}:{first}{rest}" if key else first + rest
            value = ""
            if key:
                bare = first.strip()
                if bare[:1] in QUOTES:
                    value = value_of(first, rest)
                elif key == "metadata":
                    nested = nested_type(bare, rest)
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
