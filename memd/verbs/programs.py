"""Import of another program's notes by hand. Law: a person's verbs; nothing but the notes of that program comes.

SPEC section 10: `memory.import_claude`, `memory.import_kimi`. What comes by itself is `live/imports.py`.
"""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from memd.errors import Refused
from memd.live.imports import Program, Report, lines_of
from memd.note import Scope
from memd.protocol import ImportClaudeParams, ImportKimiParams, ImportProgramReply, Skipped
from memd.verbs.call import Call, printable


async def import_claude(call: Call, params: ImportClaudeParams) -> ImportProgramReply:
    """`memory.import_claude`: Claude Code's notes of this repository and of everywhere, or of a directory of them.

    Errors: Refused (fields session, cwd, dir, scope), and whatever a store refuses.
    """
    if params.dir is not None and params.scope is Scope.GLOBAL:
        raise Refused("scope", "scope: dir is imported into the repo store; leave scope out", bound="repo")
    directory = None if params.dir is None else Path(params.dir)
    return await bring(call, "claude", params, directory)


async def import_kimi(call: Call, params: ImportKimiParams) -> ImportProgramReply:
    """`memory.import_kimi`: Kimi Code's notes of this repository's worktrees and of everywhere. Errors: as above."""
    return await bring(call, "kimi", params, None)


async def bring(call: Call, program: Program, params: ImportKimiParams, directory: Path | None) -> ImportProgramReply:
    """What an import by hand did, or would do, to the stores that are meant."""
    call.person_only(params)
    scope = params.scope if directory is None else Scope.REPO
    reports: list[Report] = []
    lines: list[str] = []
    for store in await call.stores(params, scope):
        report = await call.library.imports.by_hand(
            program, store, params.cwd or "", directory, dry_run=params.dry_run
        )
        reports.append(report)
        lines += lines_of(store, report)
    return ImportProgramReply(
        imported=names(report.imported for report in reports),
        updated=names(report.updated for report in reports),
        skipped=tuple(
            Skipped(file=printable(left.file), reason=left.reason) for each in reports for left in each.left
        ),
        found=sum(report.found for report in reports),
        stale=names(report.stale for report in reports),
        conflicts=names(report.conflicts for report in reports),
        ambiguous=names(report.ambiguous for report in reports),
        unparsed=names(report.unparsed for report in reports),
        lines=tuple(lines),
    )


def names(of_each: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The names of every store, one after the other."""
    return tuple(chain.from_iterable(of_each))
