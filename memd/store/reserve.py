"""Room kept for forgetting. Law: it is given up only for a forget, and made again by the next write that finds room.

SPEC section 4: `forget` works on a full disk, since a file that can be given up is large enough for a rewrite of
MEMORY.md and usage.json.
"""

from contextlib import suppress
from pathlib import Path

from memd.fs import Disk

LEAST = 256 * 1024
"""Bytes of a reserve, at the least."""
SLACK = 64 * 1024
"""Bytes beside the rewritten files: a journal line, an object of a hand edit, directory blocks."""


class Reserve:
    """The file `.reserve` of a home."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self.path = path
        self.disk = disk

    def give_up(self) -> bool:
        """Free the room; False when there was none to free."""
        try:
            return self.disk.remove(self.path)
        except OSError:
            return False

    def renew(self, rewrite: int) -> None:
        """Make sure of room for `rewrite` bytes of files, where the disk has it; never an error."""
        wanted = max(LEAST, rewrite + SLACK)
        with suppress(OSError):
            status = self.disk.stat(self.path)
            if status is None or status.st_size < wanted:
                # Written out, not set by length: a hole keeps no room.
                self.disk.replace(self.disk.stage(self.path.parent, bytes(wanted)).path, self.path)
