"""Free memory goes back to the system, and threads share what there is, where the system has calls for that."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from memd import heap


@pytest.fixture(autouse=True)
def _anew() -> None:
    heap._library.cache_clear()


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


CROWD = """
import ctypes, sys, threading
from memd import heap
assert heap.keep_small()
barrier = threading.Barrier(8)
def work():
    barrier.wait()
    kept = [bytes(2000) for _ in range(500)]
    barrier.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
ctypes.CDLL(None).malloc_stats()
"""


def test_a_crowd_of_threads_shares_two_arenas() -> None:
    done = subprocess.run([sys.executable, "-c", CROWD], capture_output=True, text=True, timeout=60, check=True)
    assert re.findall(r"^Arena (\d+):", done.stderr, re.MULTILINE) == ["0", "1"]


def test_elsewhere_nothing_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not heap.give_back()
    assert not heap.keep_small()
    heap._library.cache_clear()


def test_another_c_library_has_no_such_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("ctypes.CDLL", lambda _name: object())
    assert not heap.give_back()
    assert not heap.keep_small()
    heap._library.cache_clear()
