"""Widths in cells, and what is cut so that a line fits."""

import pytest

from memd.memctl.layout import aligned, cells_in, cut, fitted
from memd.memctl.terminal import BOLD


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("", 0),
        ("plain", 5),
        ("naïve", 5),
        ("cafe\u0301", 4),
        ("我喜欢 pnpm", 11),
        ("ＡＰＩ", 6),
        ("배포", 4),
        ("🙂", 2),
        ("❤\ufe0f", 2),
        ("a\u200db", 2),
        ("…", 1),
    ],
)
def test_width_is_in_cells(text: str, cells: int) -> None:
    assert cells_in(text) == cells


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("fits", 4, "fits"),
        ("too long", 5, "too…"),
        ("too long", 1, "…"),
        ("too long", 0, ""),
        ("too long", -3, ""),
        ("我喜欢", 6, "我喜欢"),
        ("我喜欢", 5, "我喜…"),
        ("我喜欢", 4, "我…"),
        ("", 0, ""),
    ],
)
def test_what_is_cut_says_so_and_fits(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown
    assert cells_in(shown) <= max(width, 0)


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (12, [("name", BOLD), "  ", "a hook"]),
        (11, [("name", BOLD), "  ", "a ho…"]),
        (7, [("name", BOLD), "  ", "…"]),
        (6, [("name", BOLD), "…"]),
        (4, [("nam…", BOLD)]),
        (1, [("…", BOLD)]),
    ],
)
def test_a_line_is_cut_at_its_end_and_styles_stay(width: int, shown: list[object]) -> None:
    assert fitted([("name", BOLD), "  ", "a hook"], width) == shown


def test_empty_cells_at_the_end_cost_nothing() -> None:
    assert fitted(["name", "", ""], 4) == ["name", "", ""]


def test_columns_are_padded_to_their_widest() -> None:
    rows = aligned([["a", ("我", BOLD), "x"], ["bcd", "e", "yy"], ["", "", ""]], widest=10)
    lines = ["".join(cell if isinstance(cell, str) else cell[0] for cell in row) for row in rows]
    assert lines == ["a    我  x", "bcd  e   yy", "         "]


def test_one_long_cell_does_not_move_the_other_rows() -> None:
    rows = aligned([["a" * 9, "x"], ["bb", "y"]], widest=4)
    assert ["".join(map(str, row)) for row in rows] == ["aaaaaaaaa  x", "bb  y"]


def test_no_rows_are_no_lines() -> None:
    assert list(aligned([], widest=4)) == []
