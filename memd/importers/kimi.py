"""Where Kimi Code keeps its notes of a repository. Law: no part of the way to them may be a symlink.

They lie in the tree itself, so that they come with a clone and may be anyone's words. SPEC section 10.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from memd.importers.claude import trees_of

NAME: Final = "kimi"
PARTS: Final = (".kimi-code", "memory")


def places(repo: Path, cwds: Iterable[str]) -> tuple[Path, ...]:
    """Where the notes of a repository are, the main checkout's first; only directories that can be read safely."""
    return tuple(filter(is_plain, (top.joinpath(*PARTS) for top in dict.fromkeys((repo, *trees_of(repo, cwds))))))


def everywhere(home: Path) -> tuple[Path, ...]:
    """Where the notes that hold everywhere are, in the person's home."""
    return tuple(filter(is_plain, (home.joinpath(*PARTS),)))


def is_plain(directory: Path) -> bool:
    """Whether a directory is there, and neither it nor the one above it is a symlink."""
    try:
        return all(stat.S_ISDIR(os.lstat(path).st_mode) for path in (directory.parent, directory))
    except (OSError, ValueError):
        return False
