"""How the tool shows what there is. Law: the words and the columns that the tool's documentation gives.

Line numbers are six wide, from 1, a tab after them; sizes are short, a tab after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MAX_LINES = 999_999
AROUND = 2
"""Lines shown before and after a change."""


def lines_of(text: str) -> list[str]:
    """A text's lines; the end of its last line begins no other one."""
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def numbered(lines: Sequence[str], first: int) -> str:
    """Lines with their numbers, `first` on."""
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def around(text: str, number: int, height: int) -> str:
    """The lines around `height` lines that begin with line `number`."""
    lines = lines_of(text)
    start = max(0, min(number, len(lines)) - 1 - AROUND)
    return numbered(lines[start : number - 1 + height + AROUND], start + 1)


def size(count: int) -> str:
    """A number of bytes as people read it: `512B`, `1.5K`."""
    number = float(count)
    for unit in "BKM":
        if number < 1024:
            return f"{number:.1f}".removesuffix(".0") + unit
        number /= 1024
    return f"{number:.1f}".removesuffix(".0") + "G"


def tree(directory: str, files: Iterable[tuple[str, int]], always: Iterable[str] = ()) -> tuple[int, list[str]]:
    """The bytes of a directory, and a line for each directory and file up to two levels deep in it.

    `files` are paths and their bytes, `always` directories in it that are shown when empty, too. What is hidden is
    counted nowhere.
    """
    sizes = {f"{name}/": 0 for name in always}
    total = 0
    for path, count in files:
        if not path.startswith(f"{directory}/"):
            continue
        parts = path[len(directory) + 1 :].split("/")
        if any(part.startswith(".") or part == "node_modules" for part in parts):
            continue
        total += count
        for depth in range(1, min(len(parts), 3)):
            inner = "/".join(parts[:depth]) + "/"
            sizes[inner] = sizes.get(inner, 0) + count
        if len(parts) <= 2:
            sizes["/".join(parts)] = count
    return total, [f"{size(count)}\t{directory}/{name}" for name, count in sorted(sizes.items())]
