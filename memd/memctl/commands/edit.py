"""Edit a note as a whole in your editor: $VISUAL, $EDITOR or vi.

Nothing is saved when the text is as it was, or empty. A text that is refused is opened again with the
reason above it; where nobody can be asked, or the note was changed meanwhile, it is kept in a file that
is named, and the note stays as it was.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path

from memd.memctl.ctl import Ctl, given
from memd.memctl.exits import NOT_FOUND, OK, REFUSED, Stop, Usage, code_of
from memd.memctl.pager import uninterrupted
from memd.memctl.terminal import BOLD, DIM
from memd_client.errors import Conflict, MemdError, Refused

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

USAGE = "NAME"
WORDS = (1, 1)

_REASON = "<!-- memctl: "
_END = " -->"


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    editor()  # one that is no command is said before anything is written
    note = ctl.note("show", words[0], **given(scope=ctl.scope))
    draft = Draft(note["name"], note["markdown"])
    reason: MemdError | None = None
    refused = ""
    while True:
        text = draft.edited(reason)
        if reason is not None and text == refused:
            return _kept(ctl, draft, reason)  # whoever closes it as it was has had enough
        if not text.strip() or text == note["markdown"]:
            draft.remove()
            ctl.tell("nothing was changed")
            return OK
        try:
            reply = _save(ctl, note, text)
        except Refused as error:
            if not ctl.has_person():
                return _kept(ctl, draft, error)
            reason, refused = error, text
        except Conflict as error:
            ctl.tell(f"{note['name']} was changed meanwhile; `memctl show {note['name']}` prints what it is now")
            return _kept(ctl, draft, error)
        except MemdError as error:
            return _kept(ctl, draft, error)
        else:
            draft.remove()
            return _saved(ctl, reply)


class Draft:
    """The text on its way through an editor: a file of its own, readable by nobody else."""

    def __init__(self, name: str, text: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="memctl-edit-"))
        self.path = self.directory / f"{name}.md"
        self.path.touch(mode=0o600)
        self.path.write_bytes(text.encode())

    def edited(self, reason: MemdError | None) -> str:
        """The text once the editor is done with it, less the reason put above it. Raises `Stop`."""
        if reason is not None:
            said = " ".join(reason.message.split()).replace("--", "- -")
            self.path.write_bytes(f"{_REASON}{said}{_END}\n".encode() + self.path.read_bytes())
        command = editor()
        try:
            process = subprocess.Popen([*command, str(self.path)])  # noqa: S603 - it is the person's
        except OSError as error:
            if reason is None:
                self.remove()
            raise Stop(NOT_FOUND, f"{command[0]}: {error.strerror}; set EDITOR{self._where(reason)}") from None
        with uninterrupted():
            code = process.wait()
        if code:
            raise Stop(REFUSED, f"{command[0]} ended with {code}; nothing was saved; the text is in {self.path}")
        try:
            text = self.path.read_bytes().decode()  # line ends as they are: what was not touched is as it was
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError):
            raise Stop(REFUSED, f"the text does not read as UTF-8; nothing was saved; it is in {self.path}") from None
        first, _, rest = text.partition("\n")
        if first.startswith(_REASON) and first.endswith(_END):
            text = rest
            self.path.write_bytes(text.encode())
        return text

    def _where(self, reason: MemdError | None) -> str:
        return "" if reason is None else f"; your text is in {self.path}"

    def remove(self) -> None:
        """Leave nothing, also of what the editor put beside it."""
        import shutil  # only an edit that went well needs it

        shutil.rmtree(self.directory, ignore_errors=True)


def editor() -> list[str]:
    """The person's editor as a command. Raises `Usage` for one that is no command line."""
    for variable in ("VISUAL", "EDITOR"):
        try:
            command = shlex.split(os.environ.get(variable, ""))
        except ValueError as error:
            raise Usage(f"{variable}: {str(error).lower()}") from None
        if command:
            return command
    return ["vi"]


def _save(ctl: Ctl, note: dict[str, Any], text: str) -> dict[str, Any]:
    fields = {"name": note["name"], "scope": note["scope"]}
    return ctl.memory("save", markdown=text, fields=fields, expect=note["hash"])


def _saved(ctl: Ctl, reply: dict[str, Any]) -> int:
    if ctl.is_json:
        ctl.out.json(reply)
        return OK
    ctl.out.line("saved ", (reply["name"], BOLD), (f" · {reply['scope']}", DIM))
    for warning in reply["warnings"]:
        ctl.warn(warning)
    return OK


def _kept(ctl: Ctl, draft: Draft, error: MemdError) -> int:
    """Say why nothing was saved, and where the text is; the exit code."""
    raise Stop(code_of(error), f"{error.message}; your text is in {draft.path}")
