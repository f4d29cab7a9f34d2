"""What the doctor finds. Law: each finding says what is wrong, why that is so, and what mends it.

A finding that the doctor may mend by itself has `mend`: it is safe, since it loses nothing and can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """Something wrong: its kind, the cause in one line, the remedy, and how the doctor mends it where it may."""

    kind: str
    cause: str
    remedy: str
    mend: Callable[[], object] | None = None


@dataclass(frozen=True)
class Row:
    """Something that is told whether it is wrong or not."""

    name: str
    says: str
    counts: dict[str, int]
