"""Findings as lines. Law: each is one line `path:line: reason`, where path is the scope and the file in its store."""

from __future__ import annotations

from memd.memctl.ctl import Ctl
from memd.memctl.exits import FINDING, OK

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any


def report(ctl: Ctl, reply: dict[str, Any]) -> int:
    """Write the findings of `memory.check` or `memory.verify`; gives 1 if there is one (SPEC 14)."""
    findings = [one for one in reply["findings"] if ctl.scope in (None, one["scope"])]
    if ctl.is_json:
        ctl.out.json({**reply, "ok": not findings, "findings": findings})
    else:
        for finding in findings:
            ctl.out.line(f"{_place(finding)}: {finding['reason']}")
        if not findings:
            ctl.tell("no findings")
    return FINDING if findings else OK


def _place(finding: dict[str, Any]) -> str:
    """`scope/file:line`; line 1 where the trouble is the file's, no file where it is the store's."""
    file = finding.get("file")
    path = finding["scope"] if file is None else f"{finding['scope']}/{file}"
    return f"{path}:{finding.get('line', 1)}"
