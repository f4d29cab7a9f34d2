"""What each agent accepts from a hook. Law: at most `MOST` characters, and a fence that was opened is closed."""

from __future__ import annotations

import json

MOST = 8_000
"""Characters a hook may write. SPEC 13."""

_SUBMIT = {"claude": "UserPromptSubmit", "codex": "UserPromptSubmit", "gemini": "BeforeAgent"}
_CLOSING = "\n<<<end-yi-external "


def context(agent: str, event: str, text: str) -> str:
    """What gives the model `text` at `event`, cut where it is too long; empty where the agent has no way for it."""
    if agent == "kimi":
        return "" if event == "session-start" else cut(text, MOST - 1) + "\n"
    name = "SessionStart" if event == "session-start" else _SUBMIT[agent]
    room = MOST
    while True:
        said = {"hookSpecificOutput": {"hookEventName": name, "additionalContext": cut(text, room)}}
        written = json.dumps(said, ensure_ascii=False) + "\n"
        if len(written) <= MOST:
            return written
        room -= len(written) - MOST


def message(agent: str, text: str) -> str:
    """What shows the person `text`; empty where the agent has no way for it."""
    if agent == "kimi":
        return ""
    return json.dumps({"systemMessage": text[: MOST // 2]}, ensure_ascii=False) + "\n"


def cut(fenced: str, most: int) -> str:
    """A fenced text of at most `most` characters: its first lines, what was cut said, and fenced again."""
    if len(fenced) <= most:
        return fenced
    import hashlib  # 4 ms, wanted by the longest blocks only

    opening, _, rest = fenced.partition("\n")
    body = rest.rpartition(_CLOSING)[0]
    if not body:
        return fenced[:most]
    said = f"\n[… cut at {MOST} characters; search for the rest]"
    over = len(fenced) + len(said) - most
    body = body[: max(0, len(body) - over)].rpartition("\n")[0] + said
    old = opening.split()[1]
    mark = hashlib.sha256(body.encode()).hexdigest()[:16]
    return f"{opening.replace(old, mark)}\n{body}{_CLOSING}{mark}>>>"
