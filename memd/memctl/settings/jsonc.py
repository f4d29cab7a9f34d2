"""JSON text with comments, edited in place. Law: an edit only inserts, and taking it away gives the same text again.

A text is read into spans, so that indentation, order, comments and trailing commas stay as they are. Pure.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

Path = tuple[str, ...]

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_DEEPEST = 200


class UnreadableError(ValueError):
    """The text is no JSON, not even with comments."""


@dataclass
class Node:
    """A value and where it stands: of an object its members, of an array its items, in their order."""

    start: int
    end: int
    key: str = ""
    key_start: int = 0
    kind: str = "scalar"
    inner: list[Node] = field(default_factory=list)
    value: Any = None

    def member(self, key: str) -> Node | None:
        """The member of that name; of several the last, as readers have it."""
        found = [each for each in self.inner if each.key == key] if self.kind == "object" else []
        return found[-1] if found else None


def parse(text: str) -> Node:
    """The root of a text. Raises `UnreadableError`."""
    node, position = _value(text, _skip(text, 0), 0)
    if _skip(text, position) != len(text):
        raise UnreadableError(f"line {_line(text, position)}: something follows the end")
    return node


def plain(node: Node) -> Any:
    """The value without its places."""
    if node.kind == "object":
        return {each.key: plain(each) for each in node.inner}
    return [plain(each) for each in node.inner] if node.kind == "array" else node.value


def at(text: str, path: Path) -> Node | None:
    """What stands at a path of keys; None where nothing does. Raises `UnreadableError`."""
    node: Node | None = parse(text)
    for key in path:
        node = node.member(key) if node is not None else None
    return node


def with_member(text: str, path: Path, key: str, value: object) -> str:
    """The text with a member more at the end of the object at `path`, which is made where it is not there."""
    holder = at(text, path)
    if holder is None:
        return with_member(text, path[:-1], path[-1], {key: value})
    if holder.kind != "object":
        raise UnreadableError(f"{'.'.join(path)} is no object")
    return _inserted(text, holder, value, key)


def with_item(text: str, path: Path, item: object) -> str:
    """The text with an item more at the end of the array at `path`, which is made where it is not there."""
    holder = at(text, path)
    if holder is None:
        return with_member(text, path[:-1], path[-1], [item])
    if holder.kind != "array":
        raise UnreadableError(f"{'.'.join(path)} is no list")
    return _inserted(text, holder, item, None)


def without(text: str, path: Path, node: Node) -> str:
    """The text without a member or item of what stands at `path`: what inserting it added goes, and nothing else."""
    holder = at(text, path)
    if holder is None:
        return text
    index = next((number for number, each in enumerate(holder.inner) if each.start == node.start), None)
    if index is None:
        return text
    begin = node.key_start if holder.kind == "object" else node.start
    if len(holder.inner) == 1:
        before = len(text[:begin].rstrip())
        after = _skip_blank(text, node.end)
        end = after + 1 if text[after : after + 1] == "," else node.end
        closing = _skip_blank(text, end)
        return text[:before] + (text[closing:] if closing == holder.end - 1 else text[end:])
    if index == len(holder.inner) - 1:
        before = len(text[:begin].rstrip())
        comma = _skip(text, holder.inner[index - 1].end)
        return text[:comma] + text[comma + 1 : before] + text[node.end :]
    comma = _skip(text, node.end)
    return text[:begin] + text[comma + 1 :].lstrip()


def _inserted(text: str, holder: Node, value: object, key: str | None) -> str:
    close = holder.end - 1
    last = len(text[:close].rstrip())
    body = text[holder.start : holder.end]
    breaks = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(text)
    head = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if holder.inner and "\n" not in body:
        comma = "" if text[last - 1] == "," else ","
        return f"{text[:last]}{comma} {head}{json.dumps(value, ensure_ascii=False)}{text[last:]}"
    outer = _indent(text, holder.start)
    own = _indent(text, holder.inner[0].key_start or holder.inner[0].start) if holder.inner else outer + unit
    written = json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", f"{breaks}{own}")
    added = f"{breaks}{own}{head}{written}"
    if not holder.inner:
        return f"{text[:last]}{added}{breaks}{outer}{text[close:]}"
    end = holder.inner[-1].end
    has_comma = text[_skip(text, end)] == ","
    return text[:end] + ("" if has_comma else ",") + text[end:last] + added + text[last:]


def _value(text: str, position: int, depth: int) -> tuple[Node, int]:
    if depth > _DEEPEST:
        raise UnreadableError("nested too deeply")
    mark = text[position : position + 1]
    if mark in ("{", "["):
        return _holder(text, position, depth)
    found = (_STRING if mark == '"' else _SCALAR).match(text, position)
    if found is None:
        raise UnreadableError(f"line {_line(text, position)}: no value")
    try:
        value = json.loads(found[0])
    except ValueError:
        raise UnreadableError(f"line {_line(text, position)}: no value") from None
    return Node(position, found.end(), value=value), found.end()


def _holder(text: str, start: int, depth: int) -> tuple[Node, int]:
    is_object = text[start] == "{"
    node = Node(start, start, kind="object" if is_object else "array")
    position = _skip(text, start + 1)
    while text[position : position + 1] != ("}" if is_object else "]"):
        key, key_start = "", position
        if is_object:
            found = _STRING.match(text, position)
            position = _skip(text, found.end()) if found is not None else position
            if found is None or text[position : position + 1] != ":":
                raise UnreadableError(f"line {_line(text, position)}: no key")
            key, position = json.loads(found[0]), _skip(text, position + 1)
        inner, position = _value(text, position, depth + 1)
        inner.key, inner.key_start = key, key_start
        node.inner.append(inner)
        position = _skip(text, position)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
        elif text[position : position + 1] not in ("}", "]"):
            raise UnreadableError(f"line {_line(text, position)}: a comma or the end is missing")
    node.end = position + 1
    return node, node.end


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()


def _skip_blank(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    found = re.search(r"^[ \t]+(?=\S)", text, re.MULTILINE)
    return found[0] if found is not None and len(found[0]) <= 8 else "  "
