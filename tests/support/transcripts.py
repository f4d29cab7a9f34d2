"""Transcripts as agents write them, line by line. Law: each format as its own program spells it."""

import json
import uuid
from pathlib import Path
from typing import Any


def claude(kind: str, content: object, *, cwd: Path | str = "", uuid_: str | None = None, **more: object) -> str:
    """A line of Claude Code's: a turn of a person or an agent."""
    line = {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": str(cwd),
        "sessionId": "s",
        "version": "2.0.1",
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": uuid_ or str(uuid.uuid4()),
        "timestamp": "2026-05-01T10:00:00.000Z",
        **more,
    }
    return json.dumps(line, ensure_ascii=False) + "\n"


def header(session: str, cwd: Path | str, **more: object) -> str:
    """The first line of the first seed's."""
    return _line(kind="header", version=4, id=session, createdAt=1_700_000_000_000, cwd=str(cwd), **more)


def message(entry: str, role: str, content: object) -> str:
    """A turn of the first seed's."""
    return _line(kind="entry", type="message", id=entry, message={"role": role, "content": content})


def compaction(entry: str, summary: str) -> str:
    """A compaction of the first seed's."""
    return _line(kind="entry", type="compaction", id=entry, summary=summary)


def plain(role: str, content: object, **more: object) -> str:
    """A message of a kernel that keeps no more."""
    return _line(role=role, content=content, **more)


def _line(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"
