"""Which version a person means. Law: the beginning of a hash is enough, and one that fits two versions is none."""

from __future__ import annotations

from memd.memctl.arguments import HASH_LENGTH, HASH_PREFIX
from memd.memctl.ctl import EVERY, Ctl
from memd.memctl.exits import NOT_FOUND, Stop, Usage


def whole(ctl: Ctl, name: str, beginning: str) -> str:
    """The hash that begins so, of the versions that the journal names. Raises `Stop` unless it is one.

    `beginning` is as `arguments.short_hash` gives it.
    """
    if len(beginning) == HASH_LENGTH:
        return HASH_PREFIX + beginning
    records = ctl.memory("log", name=name, limit=EVERY, reads=False)["records"]
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
