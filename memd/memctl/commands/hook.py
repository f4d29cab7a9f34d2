"""What an agent's hooks call: it reads the agent's event from standard input and writes what that agent accepts.

session-start begins the session that has the agent's own id, and gives its block again after a compaction or a clear;
prompt-submit gives the block of notes that the first prompt earns; session-end ends it. Nothing is written, and the
exit status is 0, when there is no daemon and none starts. `memctl setup` writes the hooks.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import FINDING, Stop
from memd_hooks.hook import AGENTS, EVENTS
from memd_hooks.hook import run as run_hook

USAGE = "claude|codex|gemini|kimi session-start|prompt-submit|session-end"
WORDS = (0, None)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code: never 2, which agents take for a veto."""
    match words:
        case [agent, event] if agent in AGENTS and event in EVENTS:
            return run_hook(agent, event)
    raise Stop(FINDING, f"hook needs an agent ({', '.join(AGENTS)}) and an event ({', '.join(EVENTS)})")
