"""What a forget left behind. Law: it looks everywhere memd has files and deletes nothing.

SPEC section 7, `memory.forget`: the names of files in the stores, session files and caches that still hold a removed
version's text, an editor's swap file say. Notes, objects and journals are memd's own and accounted for.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from memd import note, paths
from memd.fs import Disk, NotRegularError

SCAN_MAX = 8 << 20
"""Bytes of a file that the scan reads; a longer one is no editor's copy of a note."""
LEAST = 16
"""Characters a removed text's lines must add up to before finding each of them apart proves a copy."""

_OWN = re.compile(r"(?:MEMORY\.md|usage\.json|ops\.jsonl|ops\.torn\.\d+|\.lock|\.origin|\.reserve)")


def scan(home: Path, texts: Sequence[bytes]) -> tuple[str, ...]:
    """The names, in order, of files under `home` that hold one of the removed texts."""
    if not texts:
        return ()
    wanted = [traces(text) for text in texts]
    disk = Disk()
    left = {file.name for file in candidates(home, disk) if holds_any(disk, file, wanted)}
    return tuple(sorted(left))


def candidates(home: Path, disk: Disk) -> Iterator[Path]:
    """The files that are not memd's own account of its notes."""
    stores = [paths.global_store(home), *paths.projects(home).glob("*/memory")]
    for store in stores:
        for file in files(store, disk):
            if not _OWN.fullmatch(file.name) and not note.is_note_name(file.name):
                yield file
    for directory in ("sessions", "cache"):
        yield from files(home / directory, disk)


def files(directory: Path, disk: Disk) -> Iterator[Path]:
    """The regular files of a directory; none when it is not there."""
    try:
        seen = disk.scan(directory)
    except OSError:
        return
    for entry in seen:
        if entry.regular:
            yield directory / entry.name


def traces(text: bytes) -> list[bytes]:
    """What a copy of a text holds, whatever the format around it: its body's lines, in any order, or its hook."""
    parsed = note.parse("note", text)
    lines = (parsed.body or parsed.hook).splitlines()
    return [stripped.encode() for line in lines if (stripped := line.strip())]


def holds_any(disk: Disk, file: Path, wanted: Sequence[list[bytes]]) -> bool:
    """Whether a file holds every line of one of the texts."""
    try:
        raw, _ = disk.read(file, SCAN_MAX)
    except (OSError, NotRegularError):
        return False
    return any(sum(map(len, lines)) >= LEAST and all(line in raw for line in lines) for lines in wanted)
