"""A list that one reply cannot hold, in pages. Law: every note once, in the list's order; no pages without need.

A reply holds at most 8 MiB (SPEC 12). The whole list is asked for first; once that was too large, pages are, half as
long each time that one is too large as well. `whole` is how to ask; who awaits its answers does the same by `Pages`.
"""

from __future__ import annotations

from .errors import TooLarge

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from collections.abc import Callable

    from .replies import Listed, Row

LONGEST = 4096
"""Notes of the first page."""


class Pages:
    """A list on its way: whether there is `more`, and what to ask for next; `limit` None for all there is."""

    def __init__(self) -> None:
        self.more = True
        self.limit: int | None = None
        self.offset = 0
        self.listed: Listed = {"notes": [], "total": 0}
        self._rows: dict[tuple[str, str], Row] = {}

    def take(self, reply: Listed) -> None:
        """Add what was asked for. A note that moved into the next page meanwhile is no second one."""
        if self.limit is None:
            self.listed, self.more = reply, False
            return
        self._rows.update(((row["scope"], row["name"]), row) for row in reply["notes"])
        self.listed = {"notes": list(self._rows.values()), "total": len(self._rows)}
        self.offset += self.limit
        self.more = self.offset < reply["total"]

    def halve(self, error: TooLarge) -> None:
        """Ask for less next. Raises the error again when one note is too large."""
        if self.limit == 1:
            raise error
        self.limit = LONGEST if self.limit is None else self.limit // 2


def whole(ask: Callable[[int | None, int], Listed]) -> Listed:
    """The whole list, by what answers a limit and an offset. Raises TooLarge for a note too large alone."""
    pages = Pages()
    while pages.more:
        try:
            pages.take(ask(pages.limit, pages.offset))
        except TooLarge as error:
            pages.halve(error)
    return pages.listed
