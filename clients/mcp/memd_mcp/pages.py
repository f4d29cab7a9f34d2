"""How much comes at once. Law: nothing is longer than `MOST`, and what was left out is named with the call for it."""

from __future__ import annotations

import json
from typing import Any

MOST = 100_000
"""Characters of a result, as JSON. SPEC 13."""
_ROOM = 2_000
"""Characters left for a notice."""


def text_page(reply: dict[str, Any], tool: str, arguments: dict[str, Any], offset: int) -> dict[str, Any]:
    """A reply whose `text` begins at character `offset` and is cut where the page is full."""
    whole = reply["text"]
    page = {**reply, "text": whole[offset:]}
    over = _size(page) - (MOST - _ROOM)
    if over <= 0:
        return page
    text = page["text"]
    low, high = 0, len(text)
    while low < high:  # escapes make a character as long as six: the longest text that fits is found by halving
        middle = (low + high + 1) // 2
        if _size({**page, "text": text[:middle]}) <= MOST - _ROOM:
            low = middle
        else:
            high = middle - 1
    reached = offset + low
    call = named(tool, {**arguments, "offset": reached})
    return {**page, "text": text[:low], "notice": f"[{reached} of {len(whole)} characters · {call} for the rest]"}


def rows_page(
    reply: dict[str, Any], rows: str, tool: str, arguments: dict[str, Any], offset: int, what: str
) -> dict[str, Any]:
    """A reply of rows, as many as fit; where more follow, the notice names the call for them."""
    kept = list(reply[rows])
    left = MOST - _ROOM - _size({**reply, rows: []})
    for count, row in enumerate(kept):
        left -= _size(row) + 2
        if left < 0:
            del kept[count:]
            break
    reached = offset + len(kept)
    page = {**reply, rows: kept}
    if len(kept) == len(reply[rows]):
        return page
    call = named(tool, {**arguments, "offset": reached})
    return {**page, "notice": f"[{len(kept)} of {reply['total']} {what} · {call} for the next page]"}


def named(tool: str, arguments: dict[str, Any]) -> str:
    """A call as an agent makes it."""
    given = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return f"{tool}({given})"


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False))
