"""Print one note's exact text: the current one, or the version of a hash.

NAME is a note's name, as `list` and `search` print it. `memctl log NAME` prints the hashes; the
beginning of one is enough.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.arguments import HASH_LENGTH, HASH_PREFIX, short_hash
from memd.memctl.ctl import EVERY, Ctl, given
from memd.memctl.exits import NOT_FOUND, OK, Stop, Usage
from memd_client.errors import NotFound

USAGE = "NAME [--hash HASH]"
WORDS = (1, 1)


def options(parser: ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--hash", type=short_hash, help="this version of the note")


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    [name] = words
    version = None if options.hash is None else _whole(ctl, name, options.hash)
    try:
        reply = ctl.memory("show", **given(name=name, hash=version, scope=ctl.scope))
    except NotFound as error:
        error.add_note(ctl.search_hint(name))
        raise
    if ctl.is_json:
        ctl.out.json(reply)
    else:
        ctl.out.text(reply["markdown"])
    return OK


def _whole(ctl: Ctl, name: str, beginning: str) -> str:
    """The hash that begins so, of the versions that the journal names. Raises `Stop` unless it is one."""
    if len(beginning) == HASH_LENGTH:
        return HASH_PREFIX + beginning
    records = ctl.memory("log", name=name, limit=EVERY)["records"]
    hashes = {
        record["hash"]
        for record in records
        if record["hash"].startswith(HASH_PREFIX + beginning) and ctl.scope in (None, record["scope"])
    }
    if not hashes:
        raise Stop(NOT_FOUND, f"no version of {name} has a hash that begins with {beginning}")
    if len(hashes) > 1:
        raise Usage(f"{len(hashes)} versions of {name} have a hash that begins with {beginning}")
    return str(hashes.pop())
