"""What the journal holds against what stands. Law: one comparison serves verify, which changes nothing, and rebuild.

SPEC section 7, `memory.rebuild` and `memory.verify`.
"""

from memd import journal, note
from memd.errors import Unreadable
from memd.fs import NotRegularError
from memd.store.model import Change, Finding, Rebuilt
from memd.store.plan import Plan
from memd.store.state import JOURNAL, State, read_entry


def rebuild(plan: Plan) -> Rebuilt:
    """Plan the restoring of every live note whose file is gone, the recount and the mended index."""
    state = plan.state
    findings = list(journal_findings(state))
    restored = 0
    differ: list[str] = []
    missing: dict[str, None] = {}
    for name in list(plan.heads.live()):
        head = plan.head_hash(name) or ""
        raw, stands = state.read_object(head), current(state, name)
        if raw is None:
            missing[name] = None
            findings.append(missing_object(name, head, is_head=True))
            if stands is not None and journal.content_hash(stands) == head:
                plan.objects[head] = stands
        if stands is None and raw is not None and name not in state.blocked:
            restore(plan, name, raw)
            restored += 1
        elif stands is not None and journal.content_hash(stands) != head:
            differ.append(name)
            findings.append(differs(name))
        for version in missing_versions(state, plan.heads.versions(name), head):
            missing[name] = None
            findings.append(missing_object(name, version, is_head=False))
    mend(plan)
    plan.suspended = False
    return Rebuilt(
        live=plan.heads.live_count,
        restored=restored,
        forgotten=plan.heads.forgotten_count,
        differ=tuple(differ),
        missing=tuple(missing),
        broken_line=state.broken_line,
        findings=tuple(findings),
    )


def verify(state: State) -> tuple[Finding, ...]:
    """What rebuild would name, changing nothing."""
    findings = list(journal_findings(state))
    for name in sorted(state.heads.live()):
        record = state.heads.head(name)
        head = "" if record is None else record.hash
        stands = current(state, name)
        if stands is None:
            findings.append(Finding("differs", "the journal holds it and its file is gone", name, f"{name}.md"))
        elif journal.content_hash(stands) != head:
            findings.append(differs(name))
        findings.extend(
            missing_object(name, version, is_head=version == head)
            for version in state.heads.versions(name)
            if state.read_object(version) is None
        )
    return tuple(findings)


def restore(plan: Plan, name: str, raw: bytes) -> None:
    """Write a note's file back from its object; no record, since the head already says so (SPEC 4)."""
    entry, words = read_entry(name, raw, None, 0)
    plan.files[name] = raw
    plan.found[name] = None
    plan.changes[name] = Change(name, entry, words)
    plan.state.missing.pop(name, None)


def mend(plan: Plan) -> None:
    """Recount usage from the journal and bring MEMORY.md to what stands, each where it can be read.

    A usage.json that does not parse is kept aside as `usage.bad.<n>`.
    """
    try:
        plan.usage = plan.usage.recounted(plan.heads)
    except Unreadable:
        plan.retire_usage()
        plan.usage = plan.usage.recounted(plan.heads)
    plan.mend_rows()


def current(state: State, name: str) -> bytes | None:
    """The bytes of the note's file; None when there is no note file."""
    try:
        return state.disk.read(state.path(name), note.MAX_FILE)[0]
    except (FileNotFoundError, NotRegularError, PermissionError):
        return None


def missing_versions(state: State, versions: tuple[str, ...], head: str) -> list[str]:
    """The earlier versions whose object is gone or holds something else."""
    return [version for version in versions if version != head and state.read_object(version) is None]


def journal_findings(state: State) -> tuple[Finding, ...]:
    """A broken chain and a torn tail."""
    found = []
    if state.broken_line is not None:
        reason = f"line {state.broken_line} {state.broken_reason}"
        found.append(Finding("broken_chain", reason, file=JOURNAL, line=state.broken_line))
    if state.torn:
        reason = f"the last {state.torn} bytes are no whole record; the next write sets them aside"
        found.append(Finding("torn", reason, file=JOURNAL, line=state.lines + 1))
    return tuple(found)


def differs(name: str) -> Finding:
    return Finding("differs", "its file is not its journal head; reconcile takes it in", name, f"{name}.md")


def missing_object(name: str, version: str, *, is_head: bool) -> Finding:
    which = "its current version" if is_head else "an earlier version"
    return Finding("missing_object", f"{which} ({version[:19]}…) has no whole object", name)
