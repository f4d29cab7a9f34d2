"""What the journal holds against what stands. Law: one comparison serves verify, which changes nothing, and rebuild.

SPEC section 7, `memory.rebuild` and `memory.verify`.
"""

from memd import journal, note
from memd.errors import Unreadable
from memd.store import rows
from memd.store.cached import reason_of
from memd.store.model import Blocked, Finding, Rebuilt
from memd.store.plan import Plan
from memd.store.reconciling import note_missing
from memd.store.state import JOURNAL, State, blocked_by


class Report:
    """What a comparison has come across so far, by name."""

    def __init__(self) -> None:
        self.restored: list[str] = []
        self.differ: list[str] = []
        self.missing: dict[str, None] = {}
        self.findings: list[Finding] = []


def rebuild(plan: Plan) -> Rebuilt:
    """Plan the restoring of every live note whose file is gone, the recount and the mended index.

    A suspended store is not suspended any more, unless there is a note that could not be restored.
    """
    report = compare(plan)
    mend(plan)
    plan.suspended = plan.suspended and bool(plan.missing)
    return Rebuilt(
        live=plan.heads.live_count,
        restored=len(report.restored),
        forgotten=plan.heads.forgotten_count,
        differ=tuple(report.differ),
        missing=tuple(report.missing),
        broken_line=plan.state.broken_line,
    )


def verify(plan: Plan) -> tuple[Finding, ...]:
    """What rebuild would name; the plan is to be thrown away."""
    return (*journal_findings(plan.state), *compare(plan).findings)


def compare(plan: Plan) -> Report:
    """Hold every live note against its head, and plan what restores a file or an object from the other."""
    report = Report()
    seen = plan.state.scan()
    plan.waiting.update(seen.keys() - plan.state.entries.keys())
    note_missing(plan, seen)
    for name in sorted(plan.heads.live()):
        compare_one(plan, name, report)
    return report


def compare_one(plan: Plan, name: str, report: Report) -> None:
    """Hold one live note against its head. What is restored is no record, since the head says it already (SPEC 4)."""
    head = plan.head_hash(name) or ""
    texts = {version: plan.version(version) for version in plan.heads.versions(name)}
    for version, text in texts.items():
        if text is None:
            report.missing[name] = None
            report.findings.append(missing_object(name, version, is_head=version == head))
    raw = texts.get(head)
    stands = plan.files.get(name) or standing(plan.state, name)
    match stands:
        case None:
            report.findings.append(
                Finding("differs", "the journal holds it and its file is gone", name, file_of(name))
            )
            if raw is not None and name in plan.missing:
                plan.found[name] = None
                plan.write(name, raw)
                plan.restores = True
                report.restored.append(name)
        case Blocked(kind=kind, reason=reason):
            report.findings.append(Finding(kind, reason, name, file_of(name)))
        case _ if journal.content_hash(stands) != head:
            report.differ.append(name)
            reason = "its file is not its journal head; reconcile takes it in"
            report.findings.append(Finding("differs", reason, name, file_of(name)))
        case _ if raw is None:
            plan.objects[head] = stands


def mend(plan: Plan) -> None:
    """Recount usage from the journal and bring MEMORY.md to what stands, each where it can be read.

    A usage.json that does not parse is kept aside as `usage.bad.<n>`.
    """
    try:
        plan.usage = plan.usage.recounted(plan.heads)
    except Unreadable:
        plan.retire_usage()
        plan.usage = plan.usage.recounted(plan.heads)
    rows.mend(plan)


def standing(state: State, name: str) -> bytes | Blocked | None:
    """The bytes of the note's file, or why what is there is no note; None when there is nothing."""
    try:
        return state.disk.read(state.path(name), note.MAX_FILE)[0]
    except FileNotFoundError:
        return None
    except OSError as error:
        seen = state.look(name)
        return seen and (blocked_by(seen) or Blocked("unreadable", reason_of(error)))


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


def missing_object(name: str, version: str, *, is_head: bool) -> Finding:
    """A version whose text no object holds."""
    which = "its current version" if is_head else "an earlier version"
    return Finding("missing_object", f"{which} ({version[:19]}…) has no whole object", name)


def file_of(name: str) -> str:
    """The name of a note's file within its store."""
    return name + note.SUFFIX
