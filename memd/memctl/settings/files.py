"""The files that a setup changes. Law: all are read and made before one is written, and an undo gives the same bytes.

An undo takes out what is memd's, and leaves what an agent has written since. What it must know for that is kept in
memd's home (`setup/<agent>.json`): which files and which objects in them were new. A copy of a file, which may hold a
person's keys, is kept only where taking out would not give its bytes again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from memd.memctl.settings import jsonc
from memd.memctl.settings.plan import Change, changes
from memd_client.where import home

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any


class LeftAlone(Exception):  # noqa: N818 - it says what happened to the file
    """A config that cannot be read: `path` and why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True)
class Edit:
    """A file's text before and after; None where there is no file."""

    path: str
    before: str | None
    after: str | None


def wanted(agent: str, env: Mapping[str, str]) -> list[Edit]:
    """What a setup would change. Raises `LeftAlone`."""
    return [edit for edit in (_made(change) for change in changes(agent, env)) if edit.before != edit.after]


def unwanted(agent: str, env: Mapping[str, str]) -> list[Edit]:
    """What an undo would change. Raises `LeftAlone`."""
    kept = _kept(agent, env)
    edits = [_undone(change, kept.get(change.path)) for change in changes(agent, env)]
    return [edit for edit in edits if edit.before != edit.after]


def carry_out(edits: list[Edit]) -> None:
    """Write the files. Raises OSError, and `LeftAlone` for one that was changed meanwhile; then none is written."""
    for edit in edits:
        if _text(edit.path) != edit.before:
            raise LeftAlone(edit.path, "it was changed meanwhile; look again")
    for edit in edits:
        if edit.after is None:
            os.unlink(edit.path)
        else:
            _write(edit.path, edit.after)


def keep(agent: str, edits: list[Edit], env: Mapping[str, str]) -> None:
    """Keep what an undo must know; what an earlier setup kept of a file stays. Raises OSError."""
    kept = _kept(agent, env)
    known = {change.path: change for change in changes(agent, env)}
    for edit in edits:
        if edit.path not in kept:
            kept[edit.path] = _to_know(known[edit.path], edit)
    os.makedirs(os.path.dirname(_record(agent, env)), mode=0o700, exist_ok=True)
    _write(_record(agent, env), json.dumps(kept, ensure_ascii=False, indent=1) + "\n")


def let_go(agent: str, env: Mapping[str, str]) -> None:
    """Keep nothing of an agent any more."""
    if os.path.exists(_record(agent, env)):
        os.unlink(_record(agent, env))


def _made(change: Change) -> Edit:
    before = _text(change.path)
    try:
        return Edit(change.path, before, change.made(before or ""))
    except ValueError as error:
        raise LeftAlone(change.path, str(error)) from None


def _to_know(change: Change, edit: Edit) -> dict[str, Any]:
    before = edit.before or "{}"
    made = [list(holder) for holder in change.holders if not before.strip() or jsonc.at(before, holder) is None]
    known = {"is_new": edit.before is None, "made": made}
    if _taken_out(change, edit.after or "", known) != edit.before:
        known |= {"before": edit.before, "after": edit.after}
    return known


def _taken_out(change: Change, text: str, known: dict[str, Any]) -> str | None:
    """A text without what is memd's; None where then nothing is left of a file that was new."""
    if "after" in known and text == known["after"]:
        before: str | None = known["before"]
        return before
    left = change.undone(text, [tuple(holder) for holder in known["made"]])
    return None if known["is_new"] and left.strip() in ("", "{}") else left


def _undone(change: Change, known: dict[str, Any] | None) -> Edit:
    now = _text(change.path)
    try:
        known = known or {"is_new": False, "made": []}
        return Edit(change.path, now, None if now is None else _taken_out(change, now, known))
    except ValueError as error:
        raise LeftAlone(change.path, str(error)) from None


def _kept(agent: str, env: Mapping[str, str]) -> dict[str, Any]:
    text = _text(_record(agent, env))
    kept: dict[str, Any] = json.loads(text) if text else {}
    return kept


def _record(agent: str, env: Mapping[str, str]) -> str:
    return os.path.join(home(env), "setup", f"{agent}.json")


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise LeftAlone(path, "it is not UTF-8") from None
    except OSError as error:
        raise LeftAlone(path, error.strerror or "it cannot be read") from None


def _write(path: str, text: str) -> None:
    """Replace a file whole, the one a link leads to; its mode stays, a new one is the person's alone."""
    path = os.path.realpath(path)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    staged = f"{path}.memd-{os.getpid()}.tmp"
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o600
    try:
        with open(staged, "w", encoding="utf-8", newline="", opener=_private) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(staged, mode)
        os.replace(staged, path)
    except BaseException:
        if os.path.exists(staged):
            os.unlink(staged)
        raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL, 0o600)
