"""What of a store's index a block knows. Law: a long index costs the least used lines, and says so.

Scoring covers every note all the same; only what is left unscored, and the budget, come from what was loaded.
Pure. SPEC section 9, step 5.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from memd.focus.text import size
from memd.listing import Listing, listed_by

LOAD_LINES: Final = 200
LOAD_BYTES: Final = 25_000


class Loaded(msgspec.Struct, frozen=True):
    """The notes whose lines were loaded, in index order, of `total`; `size` is their bytes with line ends.

    `bound` names the cap that left lines out, as the notice does; None when all were loaded.
    """

    names: tuple[str, ...] = ()
    total: int = 0
    size: int = 0
    bound: str | None = None


NOTHING: Final = Loaded()


def lines_of(listing: Listing, notes: Collection[str]) -> Mapping[str, str]:
    """The first line of each note, by its name, in index order and without line ends.

    It reads the whole index: a caller keeps the answer for as long as the listing and the names stay.
    """
    lines: dict[str, str] = {}
    for line in listing.text.split("\n"):
        name = listed_by(line, notes)
        if name is not None and name in notes:
            lines.setdefault(name, line.removeprefix("\ufeff").rstrip("\r"))
    return lines


def load(lines: Mapping[str, str], last_used: Callable[[str], int]) -> Loaded:
    """At most `LOAD_LINES` lines and `LOAD_BYTES` bytes of an index, the most recently used first (SPEC 9).

    `last_used` gives a note's last use in unix seconds, 0 for never; notes used alike go in index order. A line
    that does not fit is passed over, so that one huge line starves nobody.
    """
    kept: set[str] = set()
    used = 0
    over = False
    for name in sorted(lines, key=lambda name: -last_used(name)):
        if len(kept) == LOAD_LINES:
            break
        cost = size(lines[name]) + 1
        if used + cost > LOAD_BYTES:
            over = True
            continue
        kept.add(name)
        used += cost
    names = tuple(name for name in lines if name in kept)
    if len(names) == len(lines):
        return Loaded(names, len(lines), used)
    bound = f"LOAD_BYTES {LOAD_BYTES}" if over and len(names) < LOAD_LINES else f"LOAD_LINES {LOAD_LINES}"
    return Loaded(names, len(lines), used, bound)
