"""The tool's classes, blocking and awaited. Law: this module alone knows the SDK, and does no more than hand over.

SPEC 13.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from memd_anthropic.files import FileError, Files, told
from memd_client.errors import MemdError
from memd_client.pool import Pool
from memd_client.session import NOT_GIVEN, NotGiven, Session, here

OnEntry = Callable[[dict[str, Any]], object]
"""Takes an entry for the host's transcript."""


class _Commands:
    """The commands as the SDK gives them, any of whose parameters a model may have left out."""

    def __init__(
        self,
        session: str | None,
        cwd: str | os.PathLike[str] | None,
        save_cap: int | NotGiven | None,
        on_entry: OnEntry | None,
        env: Mapping[str, str],
    ) -> None:
        directory = here() if cwd is None else str(Path(here(), cwd))
        given: dict[str, Any] = {"session": session or f"tool-{os.getpid()}-{os.urandom(6).hex()}"}
        if session is None and isinstance(save_cap, NotGiven):
            save_cap = None
        if not isinstance(save_cap, NotGiven):
            given["save_cap"] = save_cap
        self.pool = Pool(env)
        self.session = Session(
            self.pool.call, given, lambda: directory, is_host_s=session is not None, on_entry=on_entry
        )
        self._files = Files(self._ask)
        weakref.finalize(self, self.pool.close)

    def run(self, command: object) -> str:
        """The answer to a command. Raises `ToolError`, whose text is the tool's."""
        try:
            return self._answer(command)
        except FileError as error:
            raise ToolError(str(error)) from error
        except MemdError as error:
            raise ToolError(str(told(error))) from error

    def _answer(self, command: object) -> str:
        match command:
            case BetaMemoryTool20250818ViewCommand():
                return self._files.view(_text(command, "path"), command.view_range)
            case BetaMemoryTool20250818CreateCommand():
                return self._files.create(_text(command, "path"), _text(command, "file_text"))
            case BetaMemoryTool20250818StrReplaceCommand():
                new = _text(command, "new_str", "")
                return self._files.str_replace(_text(command, "path"), _text(command, "old_str"), new)
            case BetaMemoryTool20250818InsertCommand():
                line = getattr(command, "insert_line", None)
                if type(line) is not int:
                    raise FileError("Error: the parameter `insert_line` is missing, or no whole number")
                return self._files.insert(_text(command, "path"), line, _text(command, "insert_text"))
            case BetaMemoryTool20250818DeleteCommand():
                return self._files.delete(_text(command, "path"))
            case BetaMemoryTool20250818RenameCommand():
                return self._files.rename(_text(command, "old_path"), _text(command, "new_path"))
        raise FileError(f"Error: no such command: {getattr(command, 'command', None)!r:.80}")

    def _ask(self, verb: str, params: dict[str, Any]) -> dict[str, Any]:
        reply = self.session.call(verb, params)
        self.session.hand_on(reply)
        return reply


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool over memd, for `client.beta.messages.tool_runner(tools=[MemoryTool()])`.

    The notes are those of `cwd`'s repository (where the process is, without one) and the global ones. It has a
    session of its own, with no cap on saves; `session` names one of the host's instead, whose cap holds, and
    `save_cap` sets one. `on_entry` is given each pointer as in `memory.start`. SPEC 13.
    """

    def __init__(
        self,
        session: str | None = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        save_cap: int | NotGiven | None = NOT_GIVEN,
        on_entry: OnEntry | None = None,
        env: Mapping[str, str] = os.environ,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = _Commands(session, cwd, save_cap, on_entry, env)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A directory two levels deep, or a note's numbered lines."""
        return self._commands.run(command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """A new note."""
        return self._commands.run(command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """A note with one place changed."""
        return self._commands.run(command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """A note with lines put in."""
        return self._commands.run(command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Forget a note, or those of a directory."""
        return self._commands.run(command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Another path for a note, or for those of a directory."""
        return self._commands.run(command)

    def close(self) -> None:
        """Close the connections. May be repeated; a later command opens anew."""
        self._commands.pool.close()


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """`MemoryTool` for `AsyncAnthropic`; no command blocks the event loop."""

    def __init__(
        self,
        session: str | None = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        save_cap: int | NotGiven | None = NOT_GIVEN,
        on_entry: OnEntry | None = None,
        env: Mapping[str, str] = os.environ,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = _Commands(session, cwd, save_cap, on_entry, env)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A directory two levels deep, or a note's numbered lines."""
        return await self._run(command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """A new note."""
        return await self._run(command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """A note with one place changed."""
        return await self._run(command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """A note with lines put in."""
        return await self._run(command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Forget a note, or those of a directory."""
        return await self._run(command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Another path for a note, or for those of a directory."""
        return await self._run(command)

    def close(self) -> None:
        """Close the connections. May be repeated; a later command opens anew."""
        self._commands.pool.close()

    async def _run(self, command: object) -> str:
        return await anyio.to_thread.run_sync(self._commands.run, command)


def _text(command: object, name: str, default: str | None = None) -> str:
    value = getattr(command, name, default)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise FileError(f"Error: the parameter `{name}` is missing, or no text")
    return value
