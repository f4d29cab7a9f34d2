"""A block that is one JSON object. Law: every member is kept, repeated ones too. Pure. SPEC section 2."""

import json

from .model import KEY, KNOWN, Block
from .rendering import escape, quote


class _Object(dict[str, object]):
    """A JSON object that remembers every member, repeated ones too."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _no_constant(_name: str) -> object:
    raise ValueError("NaN and Infinity are not JSON")


def json_block(text: str) -> Block | None:
    """The block of a text that begins with a brace, or None when it is not one JSON object."""
    try:
        found: _Object = json.loads(text, object_pairs_hook=_Object, parse_constant=_no_constant)
        return _object_block(found)
    except (ValueError, RecursionError):
        return None


def _object_block(members: _Object) -> Block:
    extra: list[str] = []
    for key, value in members.pairs:
        if key in KNOWN:
            continue
        spelled = key if KEY.fullmatch(f"{key}:") else quote(_whole(key))
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
    return escape(_whole(json.dumps(value, ensure_ascii=False, allow_nan=False)))
