"""One event of one agent. Law: it ends with 0 whatever happens, and says what it could not do.

The first prompt of a session gets its block; a start after a compaction or a clear gets the block again, a resume
nothing. A daemon that is not there is no event. One that answers too late is said to the model, and the block comes
with the next prompt. SPEC 13.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
from collections.abc import Mapping

from memd_client import agents
from memd_client.connection import Connection
from memd_client.errors import BadPlace, ConnectionLost, MemdError, NoAnswer, Refused, Unavailable
from memd_client.session import Session
from memd_hooks import entry, envelope, marks

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

AGENTS = ("claude", "codex", "gemini", "kimi")
EVENTS = ("session-start", "prompt-submit", "session-end")
SILENCE_S = 1.0
"""Seconds without a byte after which an event is taken for whole."""
ANSWER_S = {"session-start": 10.0, "prompt-submit": 5.0, "session-end": 1.0}
"""Seconds the daemon may take: every agent waits longer than that."""
EVENT_MAX = 16 * 1024 * 1024
PROMPT_MAX = 100_000
"""Characters of a prompt that are asked about; of a longer one its end, where the question is."""

_ID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_AGAIN = ("clear", "compact")
_COMPACTING = ("PostCompact", "PreCompact", "PreCompress")
"""Events of agents whose start after a compaction is none: the next prompt brings the block."""
_SWITCH = "plan mode"
_SEARCH = {"mcp": 'memory_search(query="words")', "cli": 'memctl search "words"'}


def run(agent: str, event: str, env: Mapping[str, str] = os.environ) -> int:
    """Read the agent's event from standard input, do what it asks for and write what the agent accepts; gives 0."""
    try:
        given = _event(0)
        if given is not None:
            _Hook(agent, event, given, env).run()
    except (Unavailable, BadPlace):
        pass  # memd is absent
    except Exception as error:  # noqa: BLE001 - an agent is never failed for its memory
        sys.stderr.write(f"memctl hook: {type(error).__name__}: {error}\n")
    return 0


class _Hook:
    """What one event asks for."""

    def __init__(self, agent: str, event: str, given: dict[str, Any], env: Mapping[str, str]) -> None:
        self.agent = agent
        self.event = event
        self.given = given
        self.env = env
        self.id = session_id(str(given.get("session_id") or ""))
        cwd = given.get("cwd")
        self.cwd = cwd if isinstance(cwd, str) and os.path.isabs(cwd) else os.getcwd()
        self.is_plan = given.get("permission_mode") == "plan"

    def run(self) -> None:
        """Do it. Raises the client's errors where nobody is to be told."""
        if not self.id or self.given.get("agent_id"):  # a subagent's event is not the session's
            return
        may_start = self.event != "session-end"
        with Connection(self.env, autostart=may_start, timeout=ANSWER_S[self.event]) as connection:
            try:
                self._act(connection)
            except (NoAnswer, ConnectionLost):
                self._say_late()
            except (Unavailable, BadPlace):
                raise
            except MemdError as error:
                _write(envelope.message(self.agent, f"memd: {error.message}"))

    def _act(self, connection: Connection) -> None:
        match self.event:
            case "session-start":
                self._start(connection)
            case "prompt-submit":
                self._submit(connection)
            case _:
                self._end(connection)

    def _start(self, connection: Connection) -> None:
        if self.given.get("hook_event_name") in _COMPACTING:
            marks.put(self.id, marks.OWED, self.env)
            return
        source = self.given.get("source", self.given.get("trigger"))
        if source in _AGAIN:
            marks.put(self.id, marks.OWED, self.env)
        reply = self._started(connection, is_resumed=source not in (None, "startup", "clear"))
        agents.note(self.id, self.env)
        block = reply.get("block")
        if source in _AGAIN:
            if self.agent != "kimi":
                self._give(block)
            elif not block:
                marks.take(self.id, marks.OWED, self.env)
        self._tell_plan(connection)

    def _started(self, connection: Connection, *, is_resumed: bool) -> dict[str, Any]:
        """Start the session, with its transcript where `history.roots` allows that."""
        params: dict[str, Any] = {"session": self.id, "cwd": self.cwd, "resumed": is_resumed}
        transcript = self.given.get("transcript_path")
        if isinstance(transcript, str) and os.path.isfile(transcript):
            try:
                return connection.call("session.start", {**params, "transcript": transcript})
            except Refused as error:
                if error.data.get("field") != "transcript":
                    raise
        return connection.call("session.start", params)

    def _submit(self, connection: Connection) -> None:
        prompt = _prompt(self.given.get("prompt"))
        is_owed = marks.is_set(self.id, marks.OWED, self.env)
        marks.put(self.id, marks.OWED, self.env)
        given = {"session": self.id, "depth": 0, "resumed": False}
        session = Session(connection.call, given, lambda: self.cwd, is_host_s=True)
        reply = session.call("memory.focus", {"prompt": prompt, "dialect": self._dialect()})
        if agents.session(self.env) != self.id:
            agents.note(self.id, self.env)
        if reply["fenced"] is None:  # a blank prompt: what was owed still is
            if not is_owed:
                marks.take(self.id, marks.OWED, self.env)
        else:
            self._give(reply if is_owed or not reply["frozen"] else None)
        self._tell_plan(connection)

    def _end(self, connection: Connection) -> None:
        connection.call("session.end", {"session": self.id})
        agents.forget(self.id, self.env)
        marks.take(self.id, marks.OWED, self.env)

    def _give(self, block: dict[str, Any] | None) -> None:
        """Give the agent a block; then it is owed no more."""
        if block and block.get("fenced"):
            _write(envelope.context(self.agent, self.event, block["fenced"]))
        marks.take(self.id, marks.OWED, self.env)

    def _tell_plan(self, connection: Connection) -> None:
        """Pass the agent's plan mode on, when it changed."""
        if self.is_plan == marks.is_set(self.id, marks.PLAN, self.env):
            return
        params = {"session": self.id, "read_only": self.is_plan}
        connection.call("session.update", {**params, "switch": _SWITCH} if self.is_plan else params)
        (marks.put if self.is_plan else marks.take)(self.id, marks.PLAN, self.env)

    def _say_late(self) -> None:
        """Say that memory did not answer in time; the mark has the next prompt bring it."""
        if self.event != "prompt-submit":
            return
        marks.put(self.id, marks.OWED, self.env)
        late = (
            f"[memd did not answer within {ANSWER_S[self.event]:g} s: this prompt has no notes from earlier sessions;"
            f" the next one brings them, and {_SEARCH[self._dialect()]} finds them now]"
        )
        _write(envelope.context(self.agent, self.event, late))

    def _dialect(self) -> str:
        return "mcp" if entry.is_there(self.agent, self.cwd, self.env) else "cli"


def session_id(given: str) -> str:
    """An agent's session id as memd takes it: as it is, or made fit with a part of its hash; empty for none."""
    if not given or _ID.fullmatch(given):
        return given
    import hashlib  # 4 ms; the ids of the agents there are fit

    fit = re.sub(r"[^A-Za-z0-9._-]+", "-", given)[:100].strip("._-")
    return f"{fit}-{hashlib.sha256(given.encode(errors='replace')).hexdigest()[:12]}".lstrip("-")


def _prompt(given: object) -> str:
    """The words of a prompt, which is a text or a list of parts."""
    if isinstance(given, list):
        given = "\n".join(str(part.get("text") or "") for part in given if isinstance(part, dict))
    return given[-PROMPT_MAX:] if isinstance(given, str) else ""


def _event(descriptor: int) -> dict[str, Any] | None:
    """The event that an agent wrote; None when it wrote none."""
    raw = bytearray()
    while len(raw) < EVENT_MAX and select.select([descriptor], [], [], SILENCE_S)[0]:
        part = os.read(descriptor, 1 << 16)
        if not part:
            break
        raw += part
    try:
        event = json.loads(raw)
    except (ValueError, RecursionError):
        event = None
    if isinstance(event, dict):
        return event
    sys.stderr.write("memctl hook: standard input holds no event; an agent's hook writes one\n")
    return None


def _write(text: str) -> None:
    """Write to standard output at once; an agent that is gone is not waited for."""
    try:
        sys.stdout.flush()
        raw = text.encode(errors="replace")
        while raw:
            raw = raw[os.write(1, raw) :]
    except BrokenPipeError:
        return
