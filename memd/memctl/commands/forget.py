"""Delete a note: its file, its row in the index, and every version of it. There is no way back.

It shows what goes and asks; --yes answers the question, and is needed where nobody can be asked.
The receipt says what was removed and names the files that still hold a removed text, such as an
editor's swap file: memd deletes none that is not its own.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import EVERY, Ctl, given
from memd.memctl.exits import FINDING, OK, REFUSED, Stop, Usage
from memd.memctl.terminal import BOLD, DIM, YELLOW
from memd_client.errors import NotFound

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import Any

USAGE = "NAME [--yes]"
WORDS = (1, 1)


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 1 when the person says no."""
    if not options.yes and not ctl.has_person():
        raise Usage("forget asks before it deletes, and there is no terminal to ask on; --yes answers")
    note = _find(ctl, words[0])
    ctl.err.line((note["name"], BOLD), (f" · {note['scope']}", DIM), f" — {note['description']}")
    ctl.err.line(f"with {_counted(note['versions'], 'version')}, for good")
    if not options.yes and not _agreed(ctl, note):
        return FINDING
    reply = ctl.memory("forget", name=note["name"], scope=note["scope"])
    if ctl.is_json:
        ctl.out.json(reply)
    else:
        _receipt(ctl, reply)
    return OK


def _agreed(ctl: Ctl, note: dict[str, Any]) -> bool:
    """Whether the person says yes to this very text. Raises `Stop` when it was changed meanwhile."""
    if not ctl.confirm("Forget it?"):
        ctl.tell("nothing was forgotten")
        return False
    now = ctl.memory("show", name=note["name"], scope=note["scope"])
    if now["hash"] != note["hash"]:
        raise Stop(REFUSED, f"{note['name']} was changed meanwhile; nothing was forgotten")
    return True


def _find(ctl: Ctl, name: str) -> dict[str, Any]:
    """The note that `memory.forget` would delete: `name, scope, hash, description, versions`. Raises `NotFound`."""
    try:
        shown = ctl.memory("show", **given(name=name, scope=ctl.scope))
    except NotFound as error:
        error.add_note(ctl.search_hint(name))
        raise
    name, scope = shown["name"], shown["scope"]
    rows = ctl.memory("list", scope=scope)["notes"]
    hook = next((row["description"] for row in rows if row["name"] == name), "")
    return {**shown, "description": hook, "versions": _versions(ctl, name, scope)}


def _versions(ctl: Ctl, name: str, scope: str) -> int:
    """How many texts the journal has for the note since it was last forgotten."""
    hashes = set()
    for record in ctl.memory("log", name=name, limit=EVERY, reads=False)["records"]:
        if (record["name"], record["scope"]) != (name, scope):
            continue
        if record["op"] == "forget":
            break
        hashes.add(record["hash"])
    return len(hashes)


def _receipt(ctl: Ctl, reply: dict[str, Any]) -> None:
    receipt = reply["receipt"]
    removed = f"{_counted(receipt['versions'], 'version')}, {_counted(receipt['bytes'], 'byte')}"
    left = f"{_counted(len(receipt['left']), 'file')} left with its text:" if receipt["left"] else "no copy left"
    ctl.out.line("forgot ", (reply["name"], BOLD), (f" · {reply['scope']}", DIM), f" — {removed}; {left}")
    for file in receipt["left"]:
        ctl.out.line((file, YELLOW))


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + "s" * (number != 1)
