"""Serve an agent that speaks MCP over standard input and output: its config names this command.

Seven tools (memory_save, memory_read, memory_search, memory_list, memory_forget, memory_focus, history_search), a
resource for each note, the prompts remember and recall. Calls are made in the session that the agent's hook began,
or that MEMD_SESSION names. `memctl setup` writes the entry. It needs the extra: pip install 'memd[mcp]'.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK, Stop
from memd.memctl.exits import USAGE as WRONG

USAGE = ""
WORDS = (0, 0)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    if ctl.directory is not None:
        import os

        os.chdir(ctl.cwd())
    try:
        from memd_mcp import server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise Stop(WRONG, "mcp needs the MCP SDK; install it with: pip install 'memd[mcp]'") from None
    server.serve()
    return OK
