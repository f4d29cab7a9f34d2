"""Charts of block characters, and what goes through a pager. SPEC section 14."""

import pytest

from memd.memctl.charts import bar, sparkline


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([0, 0], "··"),
        ([8], "█"),
        ([1, 0, 8], "▁·█"),
        ([1, 2, 3, 4, 5, 6, 7, 8], "▁▂▃▄▅▆▇█"),
        ([1, 1_000], "▁█"),
    ],
)
def test_a_sparkline_shows_whatever_is_not_nothing(values: list[int], drawn: str) -> None:
    assert sparkline(values) == drawn


@pytest.mark.parametrize(
    ("value", "most", "width", "drawn"),
    [(0, 0, 5, ""), (0, 9, 5, ""), (9, 9, 5, "█████"), (1, 2, 1, "▌"), (1, 1_000, 5, "▏"), (3, 4, 2, "█▌")],
)
def test_a_bar_is_as_long_as_its_share(value: int, most: int, width: int, drawn: str) -> None:
    assert bar(value, most, width) == drawn
