"""What is wrong with a store's files, named. Law: a finding changes nothing and blocks no other note.

SPEC section 7, `memory.check`: `path:line: reason`, with the file's name within its store for a path.
"""

from collections.abc import Iterator

from memd.errors import Unreadable
from memd.store.model import Entry, Finding
from memd.store.rebuilding import journal_findings
from memd.store.state import LISTING, USAGE, State
from memd.store.sweep import TORN


def check(state: State) -> tuple[Finding, ...]:
    """Every trouble of the store, by file, without reading a note again."""
    found = [*journal_findings(state), *suspended_finding(state), *set_aside(state)]
    for name in sorted(state.entries):
        found.extend(note_findings(state.entries[name]))
    found.extend(
        Finding(blocked.kind, blocked.reason, name, f"{name}.md") for name, blocked in sorted(state.blocked.items())
    )
    found.extend(listing_findings(state))
    found.extend(unreadable_findings(state))
    return tuple(found)


def note_findings(entry: Entry) -> Iterator[Finding]:
    """What `check` says of one note: unparsed, secrets by kind and line, a fence."""
    file = f"{entry.name}.md"
    if entry.trouble is not None:
        yield Finding("unparsed", entry.trouble.reason, entry.name, file, entry.trouble.line)
    for kind, line in entry.secrets:
        yield Finding("secret", f"holds something key-shaped ({kind})", entry.name, file, line)
    if entry.fence_line is not None:
        reason = "holds the fence of a recalled block; it earns no body"
        yield Finding("fence", reason, entry.name, file, entry.fence_line)


def listing_findings(state: State) -> Iterator[Finding]:
    """Notes without a line and lines without a note."""
    try:
        rows = state.listing.get().rows(state.entries)
    except Unreadable:
        return
    listed = {row.name for row in rows}
    for name in sorted(state.entries.keys() - listed):
        yield Finding("unlisted", "no line of MEMORY.md lists it; reconcile adds one", name, f"{name}.md")
    for row in rows:
        if row.name not in state.entries and row.name not in state.blocked and row.name not in state.missing:
            reason = "the note it lists is gone; reconcile drops the line"
            yield Finding("dangling", reason, row.name, LISTING, row.index + 1)


def unreadable_findings(state: State) -> Iterator[Finding]:
    """MEMORY.md or usage.json that is there and does not read."""
    for file, cached in ((LISTING, state.listing), (USAGE, state.usage)):
        try:
            cached.get()
        except Unreadable as error:
            yield Finding("unreadable", error.text, file=file)


def suspended_finding(state: State) -> Iterator[Finding]:
    """The guard of SPEC 5, while it holds."""
    if state.suspended:
        reason = f"{len(state.missing)} notes are gone at once; rebuild brings them back, reconcile --accept lets go"
        yield Finding("suspended", reason)


def set_aside(state: State) -> Iterator[Finding]:
    """Tails that were moved out of the journal."""
    for seen in state.disk.scan(state.directory):
        if TORN.fullmatch(seen.name):
            reason = f"{seen.stamp.size} bytes that were no whole record, set aside; look and delete"
            if not seen.stamp.size:
                reason = "the journal was gone or empty while texts were there; they stay until you delete this file"
            yield Finding("torn", reason, file=seen.name)
