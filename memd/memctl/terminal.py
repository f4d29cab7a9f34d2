"""What is written. Law: no control or bidi-override character of a note reaches a terminal; a pipe gets the text.

Every byte memctl writes goes through a `Stream`. Colour is given on a terminal only and never with `NO_COLOR`
(SPEC section 14). A cell of a line is text, or a pair of text and style, so that a note's own words can
never carry a style.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from typing import TextIO

Cell = str | tuple[str, str]

BOLD = "1"
DIM = "2"
RED = "31"
GREEN = "32"
YELLOW = "33"
CYAN = "36"

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_STRIPPED = dict.fromkeys((*_CONTROLS, *_BIDI))
_IN_LINE: dict[int, str | None] = {**_STRIPPED, 0x09: " ", 0x0A: " ", 0x0D: " "}
_IN_TEXT: dict[int, str | None] = {**_STRIPPED, 0x09: "\t", 0x0A: "\n"}
_IN_JSON = {point: f"\\u{point:04x}" for point in _STRIPPED if point != 0x0A}


def safe_line(text: str) -> str:
    """A text as one line that a terminal may get: no control and no bidi-override character in it."""
    return text.translate(_IN_LINE)


def safe_text(text: str) -> str:
    """A text of several lines that a terminal may get."""
    return text.translate(_IN_TEXT)


def text_of(cell: Cell) -> str:
    """The text of a cell."""
    return cell if isinstance(cell, str) else cell[0]


class ReaderGone(Exception):  # noqa: N818 - `memctl list | head` is no error
    """Nobody reads the output any more."""


class CannotWrite(Exception):  # noqa: N818 - it is named as what it says
    """The output cannot be written: a full disk, a closed descriptor."""


class Stream:
    """Standard output: buffered until `flush`. With `pages`, what a terminal cannot hold goes through a pager."""

    def __init__(self, file: TextIO | None, env: Mapping[str, str]) -> None:
        self.pages = False
        self._held = b""
        self._env = env
        self._file = file
        self.is_terminal = file is not None and file.isatty()
        self._has_colour = self.is_terminal and not env.get("NO_COLOR") and env.get("TERM") != "dumb"
        self._width = _width_of(file, env) if file is not None and self.is_terminal else None

    def line(self, *cells: Cell) -> None:
        """Write one line."""
        shown = map(self._shown, cells) if self.is_terminal else map(text_of, cells)
        self._write("".join(shown) + "\n")

    def table(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Write rows of columns: aligned and cut to the width on a terminal, split by tabs in a pipe."""
        if self._width is None:
            for row in rows:
                self.line("\t".join(map(text_of, row)))
            return
        from memd.memctl.layout import aligned, fitted  # a pipe does without

        safe = ([_safe(cell) for cell in row] for row in rows)
        for row in aligned(safe, widest=self._width * 2 // 5):
            self.line(*fitted(row, self._width))

    def text(self, text: str, style: str = "") -> None:
        """Write a note's text: exactly in a pipe; on a terminal what is safe of it, its last line ended."""
        if self.is_terminal and text:
            text = self._styled(text.translate(_IN_TEXT).removesuffix("\n"), style) + "\n"
        self._write(text)

    def json(self, value: object) -> None:
        """Write a value as JSON: one line in a pipe, indented on a terminal."""
        import json

        text = json.dumps(value, ensure_ascii=False, indent=2 if self.is_terminal else None)
        self._write((text.translate(_IN_JSON) if self.is_terminal else text) + "\n")

    def ask(self, question: str) -> None:
        """Write a question whose answer is to follow on the same line."""
        self._write(self._shown(question))
        self.flush()

    def flush(self) -> None:
        """Hand on everything written so far. Raises `ReaderGone` or `CannotWrite`."""
        self._put(b"", flush=True)

    def drop(self) -> None:
        """Throw away what could not be written, so that the interpreter does not try it again at its end."""
        if self._file is None:
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._file.fileno())
        os.close(nowhere)

    def _shown(self, cell: Cell) -> str:
        """The cell as a terminal gets it."""
        safe = _safe(cell)
        return safe if isinstance(safe, str) else self._styled(*safe)

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if style and text and self._has_colour else text

    def _write(self, text: str) -> None:
        # A pipe gets UTF-8 whatever the locale says, a terminal what it can show.
        encoding = self._file.encoding if self._file is not None and self.is_terminal else "utf-8"
        self._put(text.encode(encoding, "replace"))

    def _put(self, data: bytes, *, flush: bool = False) -> None:
        if self._file is None:
            if data:
                raise CannotWrite("it is closed")
            return
        if self.pages and self._width is not None:
            self._held += data
            if not flush:
                return
            from memd.memctl.pager import paged  # a pipe does without

            data, self._held = self._held, b""
            if paged(data, self._file.fileno(), self._width, self._env):
                return
        try:
            self._file.buffer.write(data)
            if flush:
                self._file.buffer.flush()
        except BrokenPipeError:
            raise ReaderGone from None
        except OSError as error:
            raise CannotWrite(error.strerror) from None


class ErrorStream(Stream):
    """Standard error: written at once, after what standard output holds. Nobody is told when it cannot be."""

    def __init__(self, file: TextIO | None, env: Mapping[str, str], out: Stream) -> None:
        super().__init__(file, env)
        self._out = out
        self._status_cells = 0

    def status(self, text: str) -> None:
        """Put `text` where the status before it stands, on a terminal; the empty one leaves nothing there."""
        if self._width is None:
            return
        from memd.memctl.layout import cells_in, cut  # only a long command has a status

        shown = cut(self._shown(text), self._width - 1)
        cells = cells_in(shown)
        blank = " " * (self._status_cells - cells)
        self._write(f"\r{shown}{blank}" if shown else f"\r{blank}\r")
        self._status_cells = cells

    def _put(self, data: bytes, *, flush: bool = False) -> None:
        self._out.flush()
        try:
            super()._put(data, flush=True)
        except (ReaderGone, CannotWrite):
            self.drop()


def _safe(cell: Cell) -> Cell:
    """The cell without what a terminal would obey."""
    return cell.translate(_IN_LINE) if isinstance(cell, str) else (cell[0].translate(_IN_LINE), cell[1])


def _width_of(file: TextIO, env: Mapping[str, str]) -> int:
    """Cells in the terminal's line; `COLUMNS` goes before what the terminal says."""
    given = env.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(file.fileno()).columns or 80
    except OSError:
        return 80
