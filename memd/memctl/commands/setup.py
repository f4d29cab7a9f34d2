"""Have an agent use memd: hooks, the MCP entry and the tools' permission, written into the agent's own config.

The change is shown as a diff, and you are asked; --print only shows it, --yes answers, --undo takes it away again.
What is there stays as it is, comments too. A config that does not parse is left alone.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import FINDING, OK, REFUSED, STORAGE, Stop, Usage
from memd.memctl.settings import files
from memd.memctl.settings.plan import AGENTS

USAGE = "claude|codex|gemini|kimi|cursor [--print | --yes] [--undo]"
WORDS = (1, 1)

_AFTER = {
    "codex": "Codex runs new hooks once you trust them: say /hooks there",
    "cursor": "Cursor has no hooks for prompts: its agent asks memory by itself",
}


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--print", action="store_true", help="only show what would be changed")
    parser.add_argument("--yes", action="store_true", help="change it without asking")
    parser.add_argument("--undo", action="store_true", help="take it away again: the same bytes as before")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 1 when the person says no."""
    agent = words[0]
    if agent not in AGENTS:
        raise Usage(f"there is no setup for {agent}; there is for {', '.join(AGENTS)}")
    if not (options.print or options.yes or ctl.has_person()):
        raise Usage("setup asks before it changes a config, and there is no terminal to ask on; --yes answers")
    try:
        return _run(ctl, options, agent)
    except files.LeftAlone as error:
        raise Stop(REFUSED, f"{error}; nothing was changed") from None
    except OSError as error:
        raise Stop(STORAGE, f"{error.filename}: {error.strerror}; what was changed: --undo") from None


def _run(ctl: Ctl, options: Namespace, agent: str) -> int:
    edits = (files.unwanted if options.undo else files.wanted)(agent, os.environ)
    if not edits:
        ctl.tell(f"{agent}: nothing of memd's is there" if options.undo else f"{agent}: all of it is there already")
        return OK
    for edit in edits:
        for line in _diff(edit):
            (ctl.out if options.print else ctl.err).line(line)
    if options.print:
        return OK
    if not options.yes and not ctl.confirm("Take it away?" if options.undo else "Change it?"):
        ctl.tell("nothing was changed")
        return FINDING
    if not options.undo:
        files.keep(agent, edits, os.environ)
    files.carry_out(edits)
    if options.undo:
        files.let_go(agent, os.environ)
    for edit in edits:
        ctl.out.line(f"{'removed' if edit.after is None else 'wrote'} {edit.path}")
    if not options.undo:
        ctl.tell(_AFTER.get(agent, f"start {agent} anew, and it remembers"))
    return OK


def _diff(edit: files.Edit) -> list[str]:
    """The change of one file, line by line."""
    import difflib

    before, after = ((text or "").splitlines() for text in (edit.before, edit.after))
    return list(difflib.unified_diff(before, after, edit.path, edit.path, n=2, lineterm=""))
