"""A measured figure as one row of the table. Law: what a row is bound by is in the row.

A row has `name`, `value` and `unit`; `floor`, what the value is held against (None: nothing); `ratio`, value to
floor; `bound` and `bounds`, which says what the bound holds: `value` and `ratio` are not to pass it, `least` is a
ratio that must reach it; `ok`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

Row = dict[str, object]

HEADINGS: Final = ("name", "value", "unit", "floor", "ratio", "bound", "ok")


def row(
    name: str,
    value: float,
    unit: str,
    *,
    floor: float | None = None,
    most: float | None = None,
    most_times: float | None = None,
    least_times: float | None = None,
) -> Row:
    """A row; at most one of `most` (of the value), `most_times` and `least_times` (of the ratio) is given."""
    ratio = value / floor if floor else None
    within = [
        most is None or value <= most,
        most_times is None or (ratio is not None and ratio <= most_times),
        least_times is None or (ratio is not None and ratio >= least_times),
    ]
    bounds = {"value": most, "ratio": most_times, "least": least_times}
    kind = next((kind for kind, bound in bounds.items() if bound is not None), None)
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "floor": floor,
        "ratio": ratio,
        "bound": None if kind is None else bounds[kind],
        "bounds": kind,
        "ok": all(within),
    }


def report(name: str, rows: Sequence[Row], **more: object) -> dict[str, object]:
    """What a bench's `run` gives."""
    return {"name": name, **more, "rows": list(rows), "ok": all(line["ok"] for line in rows)}


def percentile(values: Iterable[float], percent: int) -> float:
    """The value that `percent` of the values do not pass."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def median(values: Iterable[float]) -> float:
    """The value in the middle."""
    return percentile(values, 50)


def table(rows: Iterable[Mapping[str, object]]) -> str:
    """Rows as aligned lines, the headings first."""
    cells = [HEADINGS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "".join(_line(line, widths) for line in cells)


def _cells(line: Mapping[str, object]) -> tuple[str, ...]:
    unit, bound, kind = line["unit"], line["bound"], line.get("bounds", "value")
    sign = "≥" if kind == "least" else "≤"
    limit = f"{sign} {_number(bound)} {unit if kind == 'value' else '×'}" if bound is not None else ""
    ratio = "" if line["ratio"] is None else f"{_number(line['ratio'])} ×"
    verdict = "" if bound is None else "ok" if line["ok"] else "NO"
    return str(line["name"]), _number(line["value"]), str(unit), _number(line["floor"]), ratio, limit, verdict


def _number(value: object) -> str:
    """Four digits are as many as are measured."""
    if not isinstance(value, float | int):
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, value, *rest = (
        cell.ljust(width) if index in (0, 2) else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((name, value, *rest)).rstrip() + "\n"
