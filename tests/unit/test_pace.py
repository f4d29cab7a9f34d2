"""How much of something long is committed at once (SPEC 5: nobody else waits for long)."""

import pytest

from memd.live import pace
from memd.store import SLICES


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be moved by a test."""
    now = [0.0]
    monkeypatch.setattr("memd.live.pace.time.monotonic", lambda: now[0])
    return now


def sizes(clock: list[float], count: int, seconds_each: float) -> list[int]:
    """How large the slices of so many things are, each of which takes so long."""
    taken = []
    things = list(range(count))
    came: list[int] = []
    for some, is_last in pace.in_slices(things):
        clock[0] += len(some) * seconds_each
        taken.append(len(some))
        came += some
        assert is_last is (len(came) == count)
    assert came == things
    return taken


def test_slices_are_as_large_as_the_machine_is_quick(clock: list[float]) -> None:
    assert sizes(clock, 1000, 0.0) == [16, 32, 64, 128, 256, 256, 248]
    assert set(sizes(clock, 200, 0.01)[:-1]) == {SLICES[0]}


def test_there_is_no_slice_of_nothing(clock: list[float]) -> None:
    assert sizes(clock, 0, 0.0) == []


def test_very_much_takes_no_more_than_so_many_slices(clock: list[float]) -> None:
    assert len(sizes(clock, 10_000, 1.0)) < 80
