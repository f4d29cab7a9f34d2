"""What the tool must know of a note's text. Law: it finds the block, and a key in it; memd reads the rest.

SPEC 2, read as leniently as memd reads it.
"""

from __future__ import annotations

import json
import re

MAX_HOOK = 240

_LINE_END = re.compile(r"\r\n|\r|\n")


def has_block(text: str) -> bool:
    """Whether a note's block opens; a text without one says nothing of itself."""
    return _lines(text)[0].strip() == "---"


def body_line(text: str) -> int:
    """The number, from 1, of the line on which the body may begin: the one after the block; 1 without a block."""
    lines = _lines(text)
    if lines[0].strip() != "---":
        return 1
    end = next((number for number, line in enumerate(lines[1:], 2) if line.rstrip() == "---"), 0)
    return end + 1


def body_start(text: str) -> int:
    """The offset of the line on which the body may begin."""
    start = 0
    for _ in range(body_line(text) - 1):
        end = _LINE_END.search(text, start)
        start = len(text) if end is None else end.end()
    return start


def value_of(text: str, key: str) -> str:
    """The value of one of the block's keys that stands on one line, the last of several; "" when there is none."""
    found = ""
    for line in _lines(text)[1 : max(1, body_line(text) - 2)]:
        if line.startswith(f"{key}:"):
            found = _value(line[len(key) + 1 :].strip(" \t"))
    return found


def hook_of(text: str) -> str:
    """The first line that says something, as the hook of a text that has none; "" when no line does."""
    for line in _lines(text):
        said = " ".join(line.lstrip("# \t").split())
        if said:
            return said[:MAX_HOOK].rstrip()
    return ""


def _value(raw: str) -> str:
    if raw.startswith('"'):
        try:
            value = json.loads(raw)
        except ValueError:
            return raw
        return value if isinstance(value, str) else raw
    if len(raw) > 1 and raw[0] == raw[-1] == "'":
        return raw[1:-1].replace("''", "'")
    return raw


def _lines(text: str) -> list[str]:
    return _LINE_END.split(text.removeprefix("\ufeff"))
