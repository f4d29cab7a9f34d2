"""A daemon whose watcher is planted: deaf, without events, or with a clock that somebody moves (SPEC section 5)."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.daemon import Daemon, daemon_home
from support.waiting import until
from support.watched import EDITED, journal, quick_home, records, status

CHANGES = 765

DEAF = """
class RustNotify:
    def __init__(self, *_): ...
    def watch(self, _debounce, _step, _timeout, stop):
        stop.wait()
        return "stop"
watcher.RustNotify = RustNotify
daemon.run.__kwdefaults__["look_s"] = 0.5
"""
NO_MORE_LISTENERS = """
def refuse(*_):
    raise watcher.WatchfilesRustInternalError("Too many open files (os error 24)")
watcher.RustNotify = refuse
watcher.POLL_S = 0.05
"""
NO_EVENTS = """
watcher.file_system = lambda *_: "nfs4"
watcher.POLL_S = 0.05
"""
CLOCK = """
import pathlib, time
ahead = pathlib.Path({clock!r})
real = time.time
time.time = lambda: real() + float(ahead.read_text())
"""
START = """
from memd import daemon, watcher
from memd.__main__ import main
{planted}
raise SystemExit(main())
"""


@contextmanager
def planted(after: str = "", *, clock: bool = False) -> Iterator[Daemon]:
    """A daemon in which something else stands in a room's place; with `clock`, one whose clock is moved."""
    with (daemon_home if after == DEAF else quick_home)() as daemon:
        (daemon.root / "clock").write_text("0")
        before = CLOCK.format(clock=str(daemon.root / "clock")) if clock else ""
        daemon.command = [sys.executable, "-c", before + START.format(planted=after)]
        daemon.start()
        yield daemon


def move_clock(daemon: Daemon, seconds: float) -> None:
    """Set the daemon's clock so many seconds off, at once."""
    staged = daemon.root / "clock.new"
    staged.write_text(str(seconds))
    staged.rename(daemon.root / "clock")


def test_every_change_that_nobody_heard_is_found_by_the_rescan() -> None:
    with planted(after=DEAF) as daemon:
        daemon.save("kept", "words")
        for number in range(500):
            (daemon.store / f"note-{number}.md").write_text(f"# the note {number}\n")
        until(lambda: len(records(daemon.store)) == 501, seconds=50)
        assert status(daemon)["last_event_s"] is None
        changed: dict[str, list[str]] = {}
        for number in range(CHANGES):
            if number < 400:
                (daemon.store / f"note-{number}.md").write_text(f"# the note {number}, edited\n")
                changed[f"note-{number}"] = ["adopt hand", "edit hand"]
            elif number < 500:
                (daemon.store / f"note-{number}.md").unlink()
                changed[f"note-{number}"] = ["adopt hand", "forget hand"]
            else:
                (daemon.store / f"new-{number}.md").write_text(f"# the new note {number}\n")
                changed[f"new-{number}"] = ["adopt hand"]
        assert len(changed) == CHANGES
        until(lambda: len(records(daemon.store)) == 501 + CHANGES, seconds=50)
        told: dict[str, list[str]] = {}
        for record in records(daemon.store):
            told.setdefault(record["name"], []).append(f"{record['op']} {record['by']}")
        assert {name: told[name] for name in changed} == changed
        assert status(daemon)["last_event_s"] is None
        assert status(daemon)["last_scan_s"] is not None
        assert daemon.call("memory.verify")["ok"]


@pytest.mark.parametrize(("after", "why"), [(NO_MORE_LISTENERS, "limit"), (NO_EVENTS, "nfs4")])
def test_where_there_are_no_events_stores_are_polled_and_status_says_so(after: str, why: str) -> None:
    with planted(after=after) as daemon:
        daemon.save("kept", "words")
        (daemon.store / "kept.md").write_text("by hand\n")
        until(lambda: journal(daemon.store, "kept") == EDITED)
        (daemon.store / "kept.md").unlink()
        until(lambda: journal(daemon.store, "kept") == [*EDITED, "forget hand"])
        told = status(daemon)
        assert told["watching"] is False
        assert [finding["kind"] for finding in told["findings"]] == ["watching"]
        assert why in told["findings"][0]["reason"]
        assert str(daemon.root) not in str(told["findings"])


@pytest.mark.parametrize("seconds", [-7200.0, -1.0, 7200.0])
def test_a_clock_that_somebody_moves_keeps_nothing_from_being_taken(seconds: float) -> None:
    with planted(clock=True) as daemon:
        for name in ("edited", "gone", "kept"):
            daemon.save(name, "words")
        move_clock(daemon, seconds)
        (daemon.store / "edited.md").write_text("by hand\n")
        until(lambda: journal(daemon.store, "edited") == EDITED)
        (daemon.store / "gone.md").unlink()
        until(lambda: journal(daemon.store, "gone") == ["save cli", "forget hand"])
        move_clock(daemon, 0)
        (daemon.store / "kept.md").write_text("by hand\n")
        until(lambda: journal(daemon.store, "kept") == EDITED)
        daemon.call("memory.reconcile")
        assert journal(daemon.store, "kept") == EDITED
        assert daemon.call("memory.verify")["ok"]
