"""Small charts of block characters. Law: pure, and every value that is not 0 shows."""

from __future__ import annotations

from collections.abc import Sequence

_STEPS = "▁▂▃▄▅▆▇█"
_PARTS = "▏▎▍▌▋▊▉█"


def sparkline(values: Sequence[int]) -> str:
    """A column for each value, the largest one full; a dot for 0."""
    most = max(values, default=0)
    return "".join(_STEPS[-(-value * len(_STEPS) // most) - 1] if value else "·" for value in values)


def bar(value: int, most: int, width: int) -> str:
    """A bar as long as `value` is of `most`, `width` cells at the longest."""
    eighths = -(-value * width * len(_PARTS) // most) if most else 0
    whole, part = divmod(eighths, len(_PARTS))
    return _PARTS[-1] * whole + (_PARTS[part - 1] if part else "")
