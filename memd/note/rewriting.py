"""A note's bytes with one line of them changed. Law: every other byte stays. Pure. SPEC sections 7 and 10."""

import json
import re
from collections.abc import Iterator

from .json_block import json_block
from .reading import BLANK_AND_COMMENTS, CLOSING, OPENING, entry_value, extra_key
from .rendering import plain_or_quoted


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


_FIRST_MEMBER = re.compile(r'\{\s*+("(?:[^"\\]++|\\.)*+"\s*+:\s*+"(?:[^"\\]++|\\.)*+")?', re.DOTALL)


def tagged(raw: bytes, source: str) -> bytes:
    """A note's bytes with `source: <source>` as the first key of its block, every other byte as it was (SPEC 10).

    A note without a block gets one, a block of JSON its first member; a block that never closes stays as it is, and
    so does a text that has the tag. `source` is a word.
    """
    text = raw.decode(errors="surrogateescape")
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(bom)
    opening = OPENING.match(text)
    if opening is None:
        eol = _eol_of(text)
        gap = eol if text.strip() else ""
        text = f"---{eol}source: {source}{eol}---{eol}{gap}{text}"
    elif (closing := CLOSING.search(text, opening.end())) is not None:
        block = _tagged_block(text[opening.end() : closing.start()], source, _eol_of(opening[0]))
        text = text[: opening.end()] + block + text[closing.start() :]
    return (bom + text).encode(errors="surrogateescape")


def _eol_of(text: str) -> str:
    """The end of a text's first line; one that has no other is `\\n`."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def _tagged_block(block: str, source: str, eol: str) -> str:
    """The lines of a block with the tag in front; what follows keeps its place, so it keeps its indentation."""
    stripped = block.strip()
    if stripped.startswith("{") and stripped.endswith("}") and (inner := json_block(stripped)) is not None:
        tag = f'"source": "{source}"'
        first = _FIRST_MEMBER.match(stripped)
        if first is not None and first[1] and json.loads(f"{{{first[1]}}}") == {"source": source}:
            return block
        head, _, rest = block.partition("{")
        return f"{head}{{{tag}{', ' if inner.extra or rest.strip() != '}' else ''}{rest}"
    start = BLANK_AND_COMMENTS.match(block)
    skipped = start.end() if start else 0
    lines = block[skipped:]
    indent = lines[: len(lines) - len(lines.lstrip(" \t"))]
    line, _, _ = lines.partition("\n")
    if extra_key(line.strip()) == "source" and entry_value(line.strip()) == source:
        return block
    return f"{block[:skipped]}{indent}source: {source}{eol}{lines}"
