"""Where a repository's memory is. Law: git is never run, nothing is written, and no `.git` file can hang or fail it.

The worktrees and subdirectories of one repository have one canonical path, which names one store; what git would
call broken is a repository of its own, where its `.git` stands. Home, socket and config come from `memd_client`,
so that daemon and client cannot disagree. SPEC 1.
"""

import errno
import hashlib
import os
import stat
from itertools import accumulate
from pathlib import Path
from typing import Final

import memd_client
from memd import errors

KEY_BYTES: Final = 200
"""The longest plain key, in bytes of its file name."""

_NO_SUCH_FILE: Final = frozenset({errno.ENOENT, errno.ELOOP, errno.ENXIO})  # symlinks to nothing, a socket
_TELLS_NOTHING: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE})
"""What reading fails with where another moment may tell: a guess would answer from a store that is another's."""
_SMALL: Final = 8192  # a path has at most 4,096 bytes: a longer `.git` or `.origin` file is something else
_FLATTENED: Final = str.maketrans(dict.fromkeys("/\\:", "-"))


def home() -> Path:
    """The home of this process. Errors: `memd_client.BadPlace`."""
    return Path(memd_client.home())


def socket_path() -> Path:
    """The daemon's socket. Errors: `memd_client.BadPlace`, `memd_client.SocketPathTooLong`."""
    return Path(memd_client.socket_path())


def config_path() -> Path:
    """The config file. Errors: `memd_client.BadPlace`."""
    return Path(memd_client.config_path())


def log_path() -> Path:
    """The log of a daemon that a client started. Errors: `memd_client.BadPlace`."""
    return Path(memd_client.log_path())


def global_store(home: Path) -> Path:
    """The directory of the notes that hold everywhere."""
    return home / "memory"


def projects(home: Path) -> Path:
    """The directory of all repository stores, each below its key."""
    return home / "projects"


def repo_store(home: Path, key: str) -> Path:
    """The directory of one repository's notes."""
    return projects(home) / key / "memory"


def origin_file(store: Path) -> Path:
    """The file that says whose store it is."""
    return store / ".origin"


def origin_text(repo: Path) -> bytes:
    """What the store of this canonical path holds as its `.origin`."""
    return os.fsencode(repo) + b"\n"


def checkout(cwd: Path) -> Path:
    """The root of the checkout around `cwd`, a linked worktree's own; the real path of `cwd` where there is none."""
    here = _real(cwd)
    return next((directory for directory in (here, *here.parents) if os.path.lexists(directory / ".git")), here)


def worktrees(repo: Path) -> list[Path]:
    """The linked worktrees that a repository's git directory names, by path, whether they are there or not."""
    common = repo if _is_bare(repo) else repo / ".git"
    found = set()
    for name in names_in(common / "worktrees"):
        named = (_read_small(common / "worktrees" / name / "gitdir") or b"").rstrip(b"\r\n")
        if named:
            found.add(_real((common / "worktrees" / name / os.fsdecode(named)).parent))
    return sorted(found)


def lies_in(repo: Path, path: Path) -> bool:
    """Whether a path, which may be gone, is in the repository of this canonical path, or below it and in no other."""
    here = canonical_repo(path)
    return here == repo or (here.is_relative_to(repo) and _common_dir(here) is None)


def names_in(directory: Path) -> frozenset[str]:
    """The names that stand in a directory; none where it does not read."""
    try:
        return frozenset(os.listdir(directory))
    except OSError:
        return frozenset()


def stands_in(root: Path, path: str) -> bool:
    """Whether something stands at a path relative to `root`; a path that cannot be looked at counts as there."""
    try:
        os.lstat(root / path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def origin_of(store: Path) -> Path | None:
    """The canonical path a store belongs to; None when nobody has claimed it, or what says so does not read."""
    raw = _read_small(origin_file(store))
    named = (raw or b"").removesuffix(b"\n")
    return Path(os.fsdecode(named)) if named else None


def place(cwd: str) -> Path:
    """The directory that a request names. Errors: Refused (field `cwd`), without the path (SPEC 7)."""
    path = Path(cwd)
    if not path.is_absolute():
        raise errors.Refused("cwd", "cwd: not an absolute path", bound="an absolute path")
    status = _stat(path)
    if status is None or not stat.S_ISDIR(status.st_mode):
        raise errors.Refused(
            "cwd",
            "cwd: no such directory on this machine; a kernel elsewhere or in a container needs its own memd",
            bound="a directory that exists here",
        )
    return path


def canonical_repo(cwd: Path) -> Path:
    """The path that the whole repository around `cwd` is known by; the real path of `cwd` where there is none.

    It is the parent of git's common directory when that is a `.git`, else the common directory itself: a bare
    repository, a submodule. A path that is gone is judged by the directories above it. Errors: OSError, only when the
    system has nothing left to read a `.git` file with, or its disk fails.
    """
    here = _real(cwd)
    # Every request comes through here: path objects are made only where there is something to look at.
    directory = os.fspath(here).rstrip("/")
    while True:
        if _is_plain_checkout(directory):
            return Path(directory or "/")
        if os.path.lexists(f"{directory}/.git") or os.path.lexists(f"{directory}/HEAD"):
            common = _common_dir(Path(directory or "/"))
            if common is not None:
                return common.parent if common.name == ".git" else common
        if not directory:
            return here
        directory = directory.rpartition("/")[0]


def key(repo: Path) -> str:
    """The key of a canonical path: `--` around the path, each `/`, `\\` and `:` in it as `-`.

    One that would pass `KEY_BYTES` is cut at a character and ends in the path's hash.
    """
    plain = _plain(repo)
    return plain if _size(plain) <= KEY_BYTES else key_when_taken(repo)


def ways(cwd: str, repo: Path) -> tuple[str, ...]:
    """The paths that `canonical_repo` was decided by: `cwd`, and the real directories up to `repo` or the root."""
    found = [cwd]
    directory = os.path.realpath(cwd).rstrip("/")
    while True:
        if os.path.isfile(f"{directory}/.git"):
            found.append(f"{directory}/.git")
        found.append(directory or "/")
        if not directory or directory == str(repo):
            return tuple(found)
        directory = directory.rpartition("/")[0]


def evidence(ways: tuple[str, ...]) -> list[tuple[int, int, int]] | None:
    """What stands at these paths: while it is the same, so is what was decided by it. None when one is gone.

    A `.git` that comes or goes changes its directory's time, a symlink that turns elsewhere what stands at `cwd`.
    """
    try:
        return [(status.st_dev, status.st_ino, status.st_mtime_ns) for status in map(os.stat, ways)]
    except (OSError, ValueError):
        return None


def is_key(text: str) -> bool:
    """Whether a text can be the key of a store: one name of a directory, and no way out of it."""
    return text not in ("", ".", "..") and "/" not in text and "\0" not in text and _size(text) <= KEY_BYTES + 9


def key_when_taken(repo: Path) -> str:
    """The key of a path whose plain key another path holds: it ends in 8 hex digits of the path's sha256."""
    return f"{_cut(_plain(repo))}-{hashlib.sha256(os.fsencode(repo)).hexdigest()[:8]}"


def key_in(home: Path, repo: Path) -> str:
    """The key under which this home has, or is to have, the store of a canonical path.

    The plain one, unless that store's `.origin` names another path or is no such file: stores are never mixed. A
    store without an `.origin`, or with an empty one, belongs to whoever opens it first; but a path that already
    has a store of its own keeps it, also when the one that had taken its plain key is gone. Errors: Storage when
    the disk does not tell: a guess would begin a second store for a path that has one.
    """
    plain, own = key(repo), key_when_taken(repo)
    whose = _origin(home, plain)
    if whose == os.fsencode(repo):
        return plain
    if _origin(home, own) == os.fsencode(repo):
        return own
    return plain if whose == b"" else own


def _origin(home: Path, key: str) -> bytes | None:
    """The path that a store's `.origin` names, empty when it names none, None when it is another's or no such file.

    Errors: Storage.
    """
    file = origin_file(repo_store(home, key))
    try:
        raw = _small_file(file) if _stands(file) else b""
    except PermissionError:
        return None
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            return None
        reason = error.strerror or "the disk failed"
        raise errors.Storage(f".origin: {reason}: nothing was changed; mend the disk and try again") from error
    return None if raw is None else raw.removesuffix(b"\n")


def _stands(path: Path) -> bool:
    """Whether anything is at a path, a symlink to nothing too. Errors: OSError when the disk does not tell."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _plain(repo: Path) -> str:
    path = os.fspath(repo).removeprefix("/")  # a Path has no slash at its end
    return f"--{path.translate(_FLATTENED)}--"


def _cut(plain: str) -> str:
    """A plain key made to fit `KEY_BYTES` with its last `--`."""
    if _size(plain) <= KEY_BYTES:
        return plain
    fits = sum(size <= KEY_BYTES - 2 for size in accumulate(map(_size, plain)))
    return plain[:fits] + "--"


def _size(text: str) -> int:
    return len(os.fsencode(text))


def _common_dir(directory: Path) -> Path | None:
    """Git's common directory, as far as `directory` itself tells; None when the search goes on above it."""
    git = directory / ".git"
    if not os.path.lexists(git):
        return directory if _is_bare(directory) else None
    gitdir = git if _is_dir(git) else _pointed_to(git, b"gitdir:")
    if gitdir is None:
        return git
    if not os.path.lexists(gitdir / "commondir"):
        return _real(gitdir)
    return _pointed_to(gitdir / "commondir") or git


def _is_plain_checkout(directory: str) -> bool:
    """Whether git's common directory is a directory `.git` right here: what `_common_dir` finds, but faster."""
    try:
        mode = os.lstat(f"{directory}/.git").st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(mode) and not os.path.lexists(f"{directory}/.git/commondir")


def _is_bare(directory: Path) -> bool:
    return _is_dir(directory / "objects") and _is_dir(directory / "refs") and os.path.lexists(directory / "HEAD")


def _pointed_to(file: Path, keyword: bytes = b"") -> Path | None:
    """The real path of the directory that a small file names, relative to its own; None when it names none."""
    raw = _read_small(file)
    if raw is None or not raw.startswith(keyword):
        return None
    named = raw.removeprefix(keyword).removeprefix(b" ").rstrip(b"\r\n")
    if not named:
        return None
    target = _real(file.parent / os.fsdecode(named))
    return target if _is_dir(target) else None


def _read_small(file: Path) -> bytes | None:
    """The bytes of a small regular file; None for anything else, and for what does not read. Errors: OSError."""
    try:
        return _small_file(file)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _TELLS_NOTHING:
            raise
        return None


def _small_file(file: Path) -> bytes | None:
    """The bytes of a small regular file, None for what is no such file, without ever waiting for a FIFO's writer.

    Errors: OSError.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        raw = os.read(descriptor, _SMALL + 1) if regular else None
    finally:
        os.close(descriptor)
    return raw if raw is not None and len(raw) <= _SMALL else None


def _is_dir(path: Path) -> bool:
    status = _stat(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


def _real(path: Path) -> Path:
    # Path.resolve raises on a loop of symlinks, realpath leaves it as it is.
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path
