"""What a power cut may leave of a run. Law: whatever the rules of a file system allow counts, however unlikely.

A trace becomes operations on names and on bytes, each durable once a sync covers it; till then it may be there or
not, and a write may be there by half, or as zeros. `strict`: the sync of a file makes its bytes durable and no name,
the sync of a directory its own names alone, and what was not synced survives in any mixture. `ext4`: names become
durable in their order, any sync commits every name before it, and bytes that were not synced may be missing.
"""

import itertools
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from .sweep_judge import BadError
from .sweep_trap import Answer, Op

MODELS: Final = ("strict", "ext4")
_HOWS: Final = ("whole", "none", "half", "zeros")
"""What may be left of a step that no sync covers; of a name the first two."""
_EXCHANGE: Final = 2
_NOTHING: Final = frozenset({"flock", "bind", "chmod", "fchmod"})


class Step(NamedTuple):
    """`link`, `unlink`, `rename`, `swap`, `mkdir` change names; `write`, `cut` bytes; then `sync`, `syncdir`, `told`.

    `path` and `to` are names, `inode` the file that is meant, `offset` and `data` the bytes.
    """

    kind: str
    path: str = ""
    to: str = ""
    inode: int = 0
    offset: int = 0
    data: bytes = b""

    @property
    def is_name(self) -> bool:
        """Whether it changes a directory."""
        return self.kind in ("link", "unlink", "rename", "swap", "mkdir")

    @property
    def is_bytes(self) -> bool:
        """Whether it changes a file's bytes."""
        return self.kind in ("write", "cut")


Tree = dict[str, bytes]
"""The files of a home by their paths; a directory is a path that ends in a slash."""


class Files:
    """Names and the bytes behind them, as a run leaves them."""

    def __init__(self, tree: Tree) -> None:
        self.names: dict[str, int] = {}
        self.directories = {path for path in tree if path.endswith("/")}
        self.bytes: dict[int, bytes] = {}
        for path, data in tree.items():
            if not path.endswith("/"):
                self.names[path] = len(self.bytes) + 1
                self.bytes[self.names[path]] = data

    def copy(self) -> "Files":
        """Another that starts as this one is."""
        other = Files({})
        other.names, other.directories, other.bytes = self.names.copy(), self.directories.copy(), self.bytes.copy()
        return other

    def new(self) -> int:
        """The number of a file that is being made."""
        return max(self.bytes, default=0) + 1

    def do(self, step: Step, how: str = "whole") -> None:
        """Carry a step out; of a write by `half` or as `zeros`."""
        match step.kind:
            case "link":
                self.names[step.path] = step.inode
                self.bytes.setdefault(step.inode, b"")
            case "unlink":
                self.names.pop(step.path, None)
            case "rename":
                if self.names.get(step.path) == step.inode:
                    del self.names[step.path]
                self.names[step.to] = step.inode
                self.bytes.setdefault(step.inode, b"")
            case "swap":  # both names are told of in one step: what is left of either is what it was given
                other = self.names.get(step.to)
                self.names[step.to] = step.inode
                self.bytes.setdefault(step.inode, b"")
                if other is not None:
                    self.names[step.path] = other
            case "mkdir":
                self.directories.add(step.path)
            case "write":
                data = {"whole": step.data, "half": step.data[: len(step.data) // 2], "zeros": bytes(len(step.data))}[
                    how
                ]
                old = self.bytes.get(step.inode, b"").ljust(step.offset, b"\0")
                self.bytes[step.inode] = old[: step.offset] + data + old[step.offset + len(data) :]
            case "cut":
                self.bytes[step.inode] = self.bytes.get(step.inode, b"")[: step.offset].ljust(step.offset, b"\0")
            case _:
                pass

    def tree(self) -> Tree:
        """The files by their paths; what is in a directory that is not there is not there either."""
        found: Tree = dict.fromkeys(self.directories, b"")
        for path, inode in self.names.items():
            if all(f"{parent}/" in self.directories for parent in parents(path)):
                found[path] = self.bytes[inode]
        return {path: data for path, data in found.items() if all(f"{up}/" in found for up in parents(path))}


def parents(path: str) -> Iterator[str]:
    """Every directory above a path within the home."""
    parts = path.rstrip("/").split("/")[:-1]
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def parent(path: str) -> str:
    """The directory that a name is in."""
    return path.rstrip("/").rpartition("/")[0]


def tree_of(home: Path) -> Tree:
    """The files of a home; sockets are left out."""
    tree: Tree = {}
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if path.is_dir():
            tree[f"{name}/"] = b""
        elif path.is_file():
            tree[name] = path.read_bytes()
    return tree


def steps_of(log: Sequence[Op | Answer], tree: Tree) -> list[Step]:
    """A trace as steps. Errors: BadError for a call that the model does not know."""
    files = Files(tree)
    steps: list[Step] = []
    for entry in log:
        for step in [Step("told", data=entry.line)] if isinstance(entry, Answer) else as_steps(entry, files):
            files.do(step)
            steps.append(step)
    return steps


def as_steps(op: Op, files: Files) -> Iterator[Step]:
    """What one call does to these files. Errors: BadError for a call that the model does not know."""
    if op.path.startswith("run/") or op.kind in _NOTHING:
        return
    inode = files.names.get(op.path, 0)
    match op.kind:
        case "openat" | "open":
            yield from opened(op, files, inode)
        case "write" | "pwrite64":
            offset = len(files.bytes[inode]) if op.offset is None else op.offset
            yield Step("write", op.path, inode=inode, offset=offset, data=op.data)
        case "ftruncate":
            yield Step("cut", op.path, inode=inode, offset=op.offset or 0)
        case "fsync" | "fdatasync":
            yield Step("sync", op.path, inode=inode) if inode else Step("syncdir", op.path)
        case "mkdir" | "mkdirat":
            yield Step("mkdir", f"{op.path}/")
        case "rename" | "renameat" | "renameat2" | "unlink" | "unlinkat":
            if inode:  # else it failed
                swaps = op.kind == "renameat2" and op.flags & _EXCHANGE
                yield Step("swap" if swaps else op.kind[:6], op.path, op.to, inode)
        case _:
            raise BadError("strange", f"the model does not know {op.kind}")


def opened(op: Op, files: Files, inode: int) -> Iterator[Step]:
    """What an open does: makes a file, cuts one, or nothing."""
    if op.flags & os.O_CREAT and not inode and f"{op.path}/" not in files.directories:
        yield Step("link", op.path, inode=files.new())
    elif op.flags & os.O_TRUNC and files.bytes.get(inode):
        yield Step("cut", op.path, inode=inode)


def covers(model: str, sync: Step, step: Step) -> bool:
    """Whether a sync makes an earlier step durable."""
    if step.is_bytes:
        return sync.kind == "sync" and sync.inode == step.inode
    if model == "ext4":
        return step.is_name
    return sync.kind == "syncdir" and sync.path == parent(step.path)


class State(NamedTuple):
    """What a cut may leave: the files, and how many lines the client had been told by then.

    `name` is where the cut was and what came of each pending step, by its first letter: the same in every run.
    """

    name: str
    told: int
    tree: Tree


def states(
    model: str, steps: Sequence[Step], tree: Tree, budget: int, *, at: str | None = None, seed: int = 1
) -> Iterator[State]:
    """The legal states of a cut after each step: all where there are at most `budget`, else as many, the extreme ones
    first and then at random. Or the one state of that name.
    """
    wanted, _, letters = (at or "").partition("-")
    base = Files(tree)
    pending: list[Step] = []
    told = 0
    chance = random.Random(seed)
    if at is None or wanted == "0":
        yield State("0-", 0, base.tree())
    for point, step in enumerate(steps, 1):
        if step.kind == "told":
            told += 1
        elif step.kind in ("sync", "syncdir"):
            for durable in [each for each in pending if covers(model, step, each)]:
                base.do(durable)
            pending = [each for each in pending if not covers(model, step, each)]
        else:
            pending.append(step)
        if at is not None and str(point) != wanted:
            continue
        for chosen in [named(letters)] if at is not None else mixtures(model, pending, budget, chance):
            files = base.copy()
            for each, how in zip(pending, chosen, strict=True):
                if how != "none":
                    files.do(each, how)
            yield State(f"{point}-{''.join(how[0] for how in chosen)}", told, files.tree())


def named(letters: str) -> tuple[str, ...]:
    """The mixture of a name."""
    return tuple(next(how for how in _HOWS if how.startswith(letter)) for letter in letters)


def mixtures(model: str, pending: Sequence[Step], budget: int, chance: random.Random) -> Iterator[tuple[str, ...]]:
    """Which of the pending steps survive, and how."""
    kinds = {
        "write": _HOWS if model == "strict" else _HOWS[:3],
        "cut": ("whole", "none"),
    }
    choices = [kinds.get(step.kind, ("whole", "none")) for step in pending]
    names = [index for index, step in enumerate(pending) if step.is_name]
    size = 1
    for each in choices:
        size *= len(each)
    if size <= budget:
        found: Iterator[tuple[str, ...]] = itertools.product(*choices)
    else:
        found = itertools.chain(extremes(choices), at_random(choices, budget - 2 - 2 * len(choices), chance))
    seen = set()
    for chosen in found:
        mixture = in_order(chosen, names) if model == "ext4" else chosen
        if mixture not in seen:
            seen.add(mixture)
            yield mixture


def extremes(choices: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """All, nothing, each alone, each missing."""
    yield ("whole",) * len(choices)
    yield ("none",) * len(choices)
    for index in range(len(choices)):
        yield tuple("whole" if index == each else "none" for each in range(len(choices)))
        yield tuple("none" if index == each else "whole" for each in range(len(choices)))


def at_random(choices: Sequence[tuple[str, ...]], count: int, chance: random.Random) -> Iterator[tuple[str, ...]]:
    """So many mixtures."""
    for _ in range(max(0, count)):
        yield tuple(chance.choice(each) for each in choices)


def in_order(chosen: tuple[str, ...], names: Sequence[int]) -> tuple[str, ...]:
    """The same with the names a prefix of theirs: as many as were chosen."""
    kept = set(names[: sum(chosen[index] != "none" for index in names)])
    return tuple(
        ("whole" if index in kept else "none") if index in names else how for index, how in enumerate(chosen)
    )
