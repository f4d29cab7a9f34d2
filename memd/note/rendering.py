"""A note as text. Law: every YAML reader gives back what was written. Pure. SPEC section 2."""

import json
import re

from .model import NoteType
from .names import WORD_MARKS, is_word

# Beyond what JSON escapes: what some YAML reader takes for a line end, a mark or no character at all.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_YAML_WORDS = frozenset(("y", "n", "yes", "no", "true", "false", "on", "off", "null"))
_NUMBER = re.compile(r"[0-9_]+(?:[eE][-+]?[0-9_]+)?|0[xX][0-9a-fA-F_]+|0[oObB][0-9_]+|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")
_DIGITS_FIRST = frozenset("0123456789")
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
    return escape(json.dumps(text, ensure_ascii=False))


def plain_or_quoted(text: str) -> str:
    """The text itself where every YAML reader, of 1.1 and 1.2, gives it back; else the JSON string."""
    return text if _stands_plain(text) else quote(text)


def escape(text: str) -> str:
    """JSON text with the characters escaped that some YAML reader takes for a line end or for none."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _stands_plain(text: str) -> bool:
    if not text or text.casefold() in _YAML_WORDS or text[-1] == " ":
        return False
    if text[0] in _DIGITS_FIRST:
        return not _NUMBER.fullmatch(text) and all(is_word(c) or c in WORD_MARKS for c in text)
    if not text[0].isalpha():
        return False
    return all(is_word(c) or c in _TEXT_MARKS for c in text)
