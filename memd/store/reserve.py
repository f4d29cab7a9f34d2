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
        """Make sure of room for `rewrite` bytes of files, where the disk has twice that; never an error."""
        wanted = max(LEAST, rewrite + SLACK)
        staged = self.path.with_name(f"{self.path.name}.tmp")
        try:
            status = self.disk.stat(self.path)
            if (status is not None and status.st_size >= wanted) or self.disk.free(self.path.parent) < 2 * wanted:
                return
            self.disk.remove(staged)
            # Written out, not set by length: a hole keeps no room.
            self.disk.append(staged, bytes(wanted))
            self.disk.replace(staged, self.path)
        except OSError:
            with suppress(OSError):
                self.disk.remove(staged)
