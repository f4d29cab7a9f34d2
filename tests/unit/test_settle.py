"""The one decision, as a table; what waits is taken in the end, whatever the clock does."""

from itertools import product

import pytest

from memd.journal import Record, content_hash
from memd.settle import (
    QUIET,
    SETTLE,
    Adopt,
    Decision,
    Edit,
    Forget,
    Keep,
    Seen,
    Wait,
    forget_at,
    guard,
    missing_since,
    quiet_at,
    settle,
)

NOW = 1000.0
OLD, NEW, EMPTY = content_hash(b"old"), content_hash(b"new"), content_hash(b"")
LIVE = Record("save", "n", OLD, 1)
GONE = Record("forget", "n", OLD, 1)
BARE = Record("edit", "n", EMPTY, 1)


def file(hash_: str, age: float, size: int = 3) -> Seen:
    return Seen(hash_, size, NOW - age)


TABLE: list[tuple[str, Record | None, Seen | None, float | None, Decision]] = [
    ("as its head", LIVE, file(OLD, 9), None, Keep()),
    ("as its head, just written", LIVE, file(OLD, 0), None, Keep()),
    ("empty as its head, just written", BARE, file(EMPTY, 0, 0), None, Keep()),
    ("new", None, file(NEW, 0.0625), None, Adopt()),
    ("new, still moving", None, file(NEW, 0.03125), None, Wait(NOW - 0.03125 + QUIET)),
    ("back", GONE, file(NEW, 1), None, Adopt()),
    ("back with the bytes it had", GONE, file(OLD, 1), None, Adopt()),
    ("back, still moving", GONE, file(OLD, 0), None, Wait(NOW + QUIET)),
    ("edited", LIVE, file(NEW, 0.0625), None, Edit()),
    ("edited, still moving", LIVE, file(NEW, 0), None, Wait(NOW + QUIET)),
    ("truncated a second ago", LIVE, file(EMPTY, 1, 0), None, Wait(NOW + 1)),
    ("meant to be empty", LIVE, file(EMPTY, SETTLE, 0), None, Edit()),
    ("created empty a second ago", None, file(EMPTY, 1, 0), None, Wait(NOW + 1)),
    ("created empty", None, file(EMPTY, SETTLE, 0), None, Adopt()),
    ("a clock a little ahead", LIVE, file(NEW, -0.5), None, Wait(NOW + 0.5 + QUIET)),
    ("a clock ahead by a settle", LIVE, file(NEW, -SETTLE), None, Wait(NOW + SETTLE + QUIET)),
    ("a clock set back an hour", LIVE, file(NEW, -3600), None, Edit()),
    ("a clock set back an hour, empty", LIVE, file(EMPTY, -3600, 0), None, Edit()),
    ("missing, just noticed", LIVE, None, None, Wait(NOW + SETTLE)),
    ("missing for a second", LIVE, None, NOW - 1, Wait(NOW + 1)),
    ("missing for good", LIVE, None, NOW - SETTLE, Forget()),
    ("missing since a day", LIVE, None, NOW - 86400, Forget()),
    ("never there", None, None, None, Keep()),
    ("forgotten and not there", GONE, None, NOW - 9, Keep()),
]


@pytest.mark.parametrize(
    ("head", "seen", "first_missing", "decision"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_decisions(head: Record | None, seen: Seen | None, first_missing: float | None, decision: Decision) -> None:
    assert settle(head, seen, first_missing, NOW) == decision


HEADS = (None, LIVE, GONE, BARE)
FILES = (
    None,
    *(Seen(hash_, size, NOW + ahead) for hash_, size in ((NEW, 3), (EMPTY, 0)) for ahead in (-9, -1, 0, 1, 9)),
)


@pytest.mark.parametrize(("head", "seen"), list(product(HEADS, FILES)))
def test_a_wait_ends_when_it_says(head: Record | None, seen: Seen | None) -> None:
    """Looked at again at `until`, nothing waits a second time; and no wait is longer than two settles."""
    first = settle(head, seen, NOW if seen is None else None, NOW)
    if not isinstance(first, Wait):
        return
    assert NOW < first.until <= NOW + 2 * SETTLE
    assert not isinstance(settle(head, seen, NOW if seen is None else None, first.until), Wait)
    assert isinstance(settle(head, seen, NOW if seen is None else None, first.until - 0.01), Wait)


def test_the_constants_can_be_set() -> None:
    assert settle(LIVE, None, NOW - 0.5, NOW, settle=0.5) == Forget()
    assert settle(LIVE, file(EMPTY, 0.5, 0), None, NOW, settle=0.5) == Edit()
    assert settle(LIVE, file(NEW, 0.5), None, NOW, quiet=1) == Wait(NOW + 0.5)


def test_the_two_times() -> None:
    assert quiet_at(3, NOW, NOW) == NOW + QUIET
    assert quiet_at(0, NOW, NOW) == NOW + SETTLE
    assert quiet_at(3, NOW + SETTLE + 1, NOW) == NOW
    assert forget_at(NOW) == NOW + SETTLE
    assert forget_at(NOW, 0.25) == NOW + 0.25


def test_missing_counts_from_the_directorys_change() -> None:
    assert missing_since(None, NOW - 60, NOW) == NOW - 60
    assert missing_since(NOW - 60, NOW - 1, NOW) == NOW - 60


def test_a_clock_set_back_delays_a_forget_by_one_settle() -> None:
    since = missing_since(NOW + 3600, NOW + 3600, NOW)
    assert since == NOW
    assert settle(LIVE, None, missing_since(since, NOW + 3600, NOW + SETTLE), NOW + SETTLE) == Forget()


@pytest.mark.parametrize(
    ("missing", "live", "directory_gone", "suspended", "held"),
    [
        (0, 0, False, False, False),
        (0, 9, False, False, False),
        (1, 1, False, False, False),
        (2, 2, False, False, False),
        (3, 3, False, False, True),
        (3, 6, False, False, True),
        (3, 7, False, False, False),
        (4, 7, False, False, True),
        (49, 100, False, False, False),
        (50, 100, False, False, True),
        # once suspended, until nothing is missing
        (1, 100, False, True, True),
        (0, 100, False, True, False),
        # the directory itself
        (1, 1, True, False, True),
        (1, 1, True, True, True),
        (0, 0, True, False, False),
        (0, 0, False, True, False),
        (0, 0, True, True, False),
    ],
)
def test_guard(missing: int, live: int, directory_gone: bool, suspended: bool, held: bool) -> None:
    assert guard(missing, live, directory_gone=directory_gone, suspended=suspended) is held
