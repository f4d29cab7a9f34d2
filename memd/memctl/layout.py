"""How wide text is and what fits. Law: pure, and widths are counted in terminal cells, not characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from memd.memctl.terminal import Cell, text_of

GAP = "  "
ELLIPSIS = "…"


def cells_in(text: str) -> int:
    """How many terminal cells `text` takes, never fewer than a terminal shows: emoji sequences count in full."""
    if text.isascii():
        return len(text)
    import unicodedata

    width = 0
    for character in text:
        if unicodedata.east_asian_width(character) in "WF":
            width += 2
        elif character == "\ufe0f" or unicodedata.category(character) not in ("Mn", "Me", "Cf"):
            width += 1  # U+FE0F makes the symbol before it an emoji, one cell wider
    return width


def cut(text: str, width: int) -> str:
    """`text`, or as much of it as fits `width` cells together with the `…` that says it was cut."""
    return text if cells_in(text) <= width else _shortened(text, width)


def fitted(cells: Sequence[Cell], width: int) -> list[Cell]:
    """The cells of a line as far as they fit `width`: the one that passes it is cut, those after it go."""
    if sum(cells_in(text_of(cell)) for cell in cells) <= width:
        return list(cells)
    kept: list[Cell] = []
    for cell in cells:
        text = text_of(cell)
        size = cells_in(text)
        if size >= width:
            short = _shortened(text, width)
            return [*kept, short if isinstance(cell, str) else (short, cell[1])]
        kept.append(cell)
        width -= size
    return kept


def _shortened(text: str, width: int) -> str:
    if width < 1:
        return ""
    kept, left = "", width - 1
    for character in text:
        left -= cells_in(character)
        if left < 0:
            break
        kept += character
    return kept.rstrip() + ELLIPSIS


def aligned(rows: Iterable[Sequence[Cell]], widest: int) -> Iterator[list[Cell]]:
    """The rows with every column but the last padded to its widest text, which counts up to `widest` cells.

    A longer text than that is not padded and moves the rest of its own row only. A row of one cell is a heading.
    """
    rows = list(rows)
    widths = [
        max((size for size in map(cells_in, column) if size <= widest), default=0)
        for column in zip(*([text_of(cell) for cell in row[:-1]] for row in rows if len(row) > 1), strict=True)
    ]
    for row in rows:
        line: list[Cell] = []
        for cell, width in zip(row[:-1], widths, strict=False):
            line += [cell, " " * max(width - cells_in(text_of(cell)), 0) + GAP]
        yield [*line, row[-1]]
