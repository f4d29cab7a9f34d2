"""The stores of the directory: files, journals, what is alike, whose they are. Law: no note's text is shown.

SPEC sections 2, 4, 5, 7 and 10.
"""

from __future__ import annotations

from collections.abc import Iterator

from memd.memctl.ctl import Ctl
from memd.memctl.ward.finding import Finding, Row
from memd_client.errors import MemdError

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

_REMEDIES = {
    "unparsed": "`memctl edit {name}` and close the block or the quote; until then its first line is its hook",
    "unlisted": "`memctl reconcile` adds its line to MEMORY.md",
    "dangling": "`memctl reconcile` drops the line from MEMORY.md",
    "symlink": "put a file in its place, or move it out of the store; memd never follows it",
    "secret": "`memctl edit {name}` and take it out, then `memctl forget` the note if it must leave no version",
    "fence": "`memctl edit {name}` and take the recalled block out; until then the note earns no body",
    "broken_chain": "look at that line of ops.jsonl; `memctl rebuild` restores what the journal still says",
    "torn": "look at the file, keep what you need, delete it",
    "missing_object": "save the note again, or restore the file from a backup",
    "differs": "`memctl reconcile` takes the file in",
    "oversize": "cut it to 1 MiB; a larger file is no note",
    "suspended": "`memctl rebuild` brings the notes back, `memctl reconcile --accept` lets them go",
    "unreadable": "mend the file; `memctl rebuild` sets a usage.json that does not parse aside and recounts",
}
_HINTS = {
    "near_duplicate": "`memctl show` both, keep one, `memctl forget` the other",
    "conflict_copy": "`memctl show {name}`, take over what is missing in the note it was copied from, then forget it",
}
_SAFE = frozenset({"unlisted", "dangling"})


def look(ctl: Ctl) -> Iterator[Finding]:
    """What is wrong with the stores of the directory, and what is worth a look."""
    reply = _asked(ctl, "check", hints=True)
    seen = set()
    for one in (*reply["findings"], *_asked(ctl, "verify")["findings"]):
        key = (one["kind"], one["scope"], one.get("file"), one.get("line"))
        if key not in seen and ctl.scope in (None, one["scope"]):
            seen.add(key)
            yield _finding(ctl, one)
    for one in reply.get("hints", ()):
        if ctl.scope in (None, one["scope"]):
            cause = f"{one['scope']}/{one['name']}: {one['reason']}"
            yield Finding(one["kind"], cause, _HINTS[one["kind"]].format(name=one["name"]))
    yield from _orphans(ctl)


def _asked(ctl: Ctl, verb: str, **params: object) -> dict[str, Any]:
    """The reply of `memory.<verb>` to a person, also where an agent types."""
    return ctl.call(f"memory.{verb}", {"cwd": ctl.cwd(), **params})


def _finding(ctl: Ctl, one: dict[str, Any]) -> Finding:
    file, line = one.get("file"), one.get("line")
    place = one["scope"] + (f"/{file}" if file else "") + (f":{line}" if line else "")
    remedy = _REMEDIES.get(one["kind"], "`memctl check` says more").format(name=one.get("name", "NAME"))
    mend = (lambda: _asked(ctl, "reconcile")) if one["kind"] in _SAFE else None
    return Finding(one["kind"], f"{place}: {one['reason']}", remedy, mend)


def _orphans(ctl: Ctl) -> Iterator[Finding]:
    for store in ctl.call("store.list", {"cwd": ctl.cwd()})["stores"]:
        if store["origin_exists"] is False and store["notes"]:
            notes = f"{store['notes']} note" + "s" * (store["notes"] != 1)
            cause = f"the store {store['key']} holds {notes} of a repository that is not where it was"
            yield Finding("orphan", cause, f"in the repository it became: `memctl adopt {store['key']}`")


def claude(ctl: Ctl) -> tuple[Row, list[Finding]]:
    """The row of Claude Code's notes, and what is wrong with them."""
    try:
        reply = _asked(ctl, "import_claude", dry_run=True)
    except MemdError as error:
        row = Row("claude-memory", "not looked at", {})
        return row, [Finding("claude-memory", error.message, "`memctl import-claude --dry-run` says more")]
    counts = {
        "found": reply["found"],
        "imported": reply["found"] - len(reply["imported"]),
        "to_import": len(reply["imported"]),
        "to_update": len(reply["updated"]),
        "stale": len(reply["stale"]),
        "conflicts": len(reply["conflicts"]),
        "ambiguous": len(reply["ambiguous"]),
    }
    findings = [
        Finding(
            "conflict", f"{name} was changed here and in Claude Code's notes", f"`memctl edit {name}` and settle it"
        )
        for name in reply["conflicts"]
    ]
    findings += [
        Finding(
            "ambiguous",
            f"Claude Code's directory {name} may be another repository's",
            "look into it; `memctl import-claude --dir` takes it if it is this one's",
        )
        for name in reply["ambiguous"]
    ]
    return Row(
        "claude-memory", " · ".join(f"{count} {what.replace('_', ' ')}" for what, count in counts.items()), counts
    ), findings
