"""What is free goes back to the system, where the system has a call for that."""

import sys
from pathlib import Path

import pytest

from memd import heap


@pytest.fixture(autouse=True)
def _anew() -> None:
    heap._trim.cache_clear()


def resident_kb() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def test_what_lies_free_between_what_is_used_goes_back() -> None:
    pieces = [bytes(2000) for _ in range(40_000)]
    kept = pieces[::100]
    del pieces
    before = resident_kb()
    assert heap.give_back()
    assert resident_kb() < before - 40_000
    assert len(kept) == 400


def test_elsewhere_nothing_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not heap.give_back()
    heap._trim.cache_clear()


def test_another_c_library_has_no_such_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("ctypes.CDLL", lambda _name: object())
    assert not heap.give_back()
    heap._trim.cache_clear()
