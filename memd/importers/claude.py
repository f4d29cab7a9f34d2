"""Where Claude Code keeps its notes of a repository. Law: a slug is no identity, and nothing is written there.

Claude Code names a directory by the path it was started in, each odd character a dash, so that two paths can meet in
one. Whose it is its transcripts say. SPEC section 10.
"""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from heapq import nlargest
from pathlib import Path
from typing import Final, NamedTuple

from memd import paths
from memd.fs import Disk, Stamp
from memd.importers import reading

NAME: Final = "claude"
SLUG_MAX: Final = 200
"""Units of a slug; of a longer one stand the first so many, a dash and a hash."""
TRANSCRIPTS_MAX: Final = 5
TRANSCRIPT_BYTES: Final = 64 << 10
"""How many transcripts are looked at, and how much of each."""
SETTINGS_BYTES: Final = 1 << 20

_DASHED: Final = re.compile(r"[^A-Za-z0-9]")
_CWD: Final = re.compile(rb'(?<!\\)"cwd"\s*:\s*("(?:[^"\\]|\\.)*")')


class Places(NamedTuple):
    """The directories of a repository's notes, in the order that counts, and the slugs that may be another's."""

    directories: tuple[Path, ...]
    ambiguous: tuple[str, ...]


class Claude:
    """One home of Claude Code. For one thread at a time: it remembers what transcripts said."""

    def __init__(self, home: Path, disk: Disk | None = None) -> None:
        self.home = home
        self.disk = disk or Disk()
        self._named: dict[Path, tuple[tuple[tuple[str, Stamp], ...], frozenset[str]]] = {}

    @property
    def projects(self) -> Path:
        """The directory of all slugs."""
        return self.home / "projects"

    @property
    def everywhere(self) -> Path:
        """The directory of the notes that hold everywhere."""
        return self.home / "memory"

    def places(self, repo: Path, cwds: Iterable[str]) -> Places:
        """Where the notes of a repository are, seen from these directories; also directories that are not there."""
        trees = trees_of(repo, cwds)
        names = paths.names_in(self.projects)
        found: list[Path] = []
        ambiguous: list[str] = []
        for path in dict.fromkeys((repo, *trees, *starts(cwds))):
            for slug in slugs_there(path, names):
                if slug in names and self._is_ambiguous(slug, repo, trees):
                    ambiguous.append(slug)
                else:
                    found.append(self.projects / slug / "memory")
        own = self.own_directory()
        if own is not None:
            found.append(own)
        with_notes = (
            slug for slug in dict.fromkeys(ambiguous) if reading.names_in([self.projects / slug / "memory"])
        )
        return Places(tuple(dict.fromkeys(found)), tuple(with_notes))

    def held(self) -> frozenset[str]:
        """The name of every note that is anywhere in this home."""
        directories = [self.projects / slug / "memory" for slug in paths.names_in(self.projects)]
        own = self.own_directory()
        return reading.names_in([self.everywhere, *directories, *([] if own is None else [own])])

    def own_directory(self) -> Path | None:
        """The directory that Claude's user settings name for its notes, if they name one."""
        try:
            raw, _ = self.disk.read(self.home / "settings.json", SETTINGS_BYTES)
            settings = json.loads(raw)
            named = settings.get("autoMemoryDirectory") if isinstance(settings, dict) else None
            path = Path(named).expanduser() if isinstance(named, str) and "\0" not in named else None
        except (OSError, ValueError, RuntimeError):
            return None
        return path if path is not None and path.is_absolute() else None

    def _is_ambiguous(self, slug: str, repo: Path, trees: Iterable[Path]) -> bool:
        """Whether transcripts say that a directory is another repository's, or another's too."""
        named = self._named_in(self.projects / slug)
        others = [cwd for cwd in named if not is_within(repo, trees, cwd)]
        if len(others) == len(named):
            return bool(named)
        return any(slug in slugs_there(Path(cwd), (slug,)) for cwd in others)

    def _named_in(self, directory: Path) -> frozenset[str]:
        """The directories that the latest transcripts of a slug name as theirs."""
        with suppress(OSError, ValueError):
            files = [seen for seen in self.disk.scan(directory) if seen.regular and seen.name.endswith(".jsonl")]
            latest = nlargest(TRANSCRIPTS_MAX, files, key=lambda seen: (seen.stamp.mtime_ns, seen.name))
            stamps = tuple((seen.name, seen.stamp) for seen in latest)
            known = self._named.get(directory)
            if known is not None and known[0] == stamps:
                return known[1]
            named = frozenset(cwd for seen in latest for cwd in cwds_in(beginning(directory / seen.name)))
            self._named[directory] = stamps, named
            return named
        return frozenset()


def home(configured: Path | None, environment: Mapping[str, str]) -> Path:
    """Claude's home: what the config says, else `CLAUDE_CONFIG_DIR`, else `~/.claude`."""
    given = environment.get("CLAUDE_CONFIG_DIR", "")
    return configured or (Path(given) if given.startswith("/") else user_home() / ".claude")


def user_home() -> Path:
    """The person's home; a directory that is not there where the system knows none."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


def slugs(path: str) -> tuple[str, ...]:
    """The names that a path may have there: a dash for each UTF-16 unit, each byte or each character that is odd."""
    units = _DASHED.sub(lambda odd: "-" * (1 + (odd[0] > "\uffff")), path)
    by_byte = _DASHED.sub("-", os.fsencode(path).decode("latin-1"))
    return tuple(dict.fromkeys((units, by_byte, _DASHED.sub("-", path))))


def slugs_there(path: Path, names: Iterable[str]) -> Iterator[str]:
    """The slugs of a path among these names, and those it would have; a long one has any that begins as it does."""
    for slug in slugs(os.fspath(path)):
        if len(slug) <= SLUG_MAX:
            yield slug
        else:
            begins = f"{slug[:SLUG_MAX]}-"
            yield from sorted(name for name in names if name == slug or name.startswith(begins))


def trees_of(repo: Path, cwds: Iterable[str]) -> list[Path]:
    """The worktrees of a repository, by path, and the checkouts around these directories."""
    return sorted({*paths.worktrees(repo), *(paths.checkout(Path(cwd)) for cwd in cwds)})


def starts(cwds: Iterable[str]) -> Iterator[Path]:
    """Each directory as it was named, and as it is without symlinks."""
    for cwd in cwds:
        yield Path(os.path.normpath(cwd))
        yield Path(os.path.realpath(cwd))


def is_within(repo: Path, trees: Iterable[Path], cwd: str) -> bool:
    """Whether a directory that a transcript names is in the repository; one that is gone, if a worktree of it was."""
    path = Path(cwd)
    return paths.lies_in(repo, path) or any(path.is_relative_to(tree) and not os.path.lexists(tree) for tree in trees)


def beginning(path: Path) -> bytes:
    """The first bytes of a regular file; none of anything else, or of what does not read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, TRANSCRIPT_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def cwds_in(transcript: bytes) -> Iterator[str]:
    """The directories that the lines of a transcript were written in; the last line may be cut."""
    for line in transcript.split(b"\n"):
        cwd: object = None
        try:
            entry = json.loads(line)
            cwd = entry.get("cwd") if isinstance(entry, dict) else None
        except (ValueError, RecursionError):
            found = _CWD.search(line)
            with suppress(ValueError):
                cwd = None if found is None else json.loads(found[1])
        if isinstance(cwd, str) and cwd.startswith("/") and "\0" not in cwd:
            yield cwd
