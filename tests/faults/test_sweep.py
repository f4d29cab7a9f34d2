"""What carries the sweeps out. Law: nothing that goes wrong in one place ends a sweep, or goes uncounted."""

import os
import shutil
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from . import sweep
from .sweep_runs import report
from .sweep_tasks import TRIES, carried_out
from .sweep_trap import is_at_work
from .sweep_world import World


def ends_at_three(number: int) -> int:
    """A task that takes its process along."""
    if number == 3:
        os._exit(9)
    return number * number


def test_a_task_that_ends_its_process_is_told_and_the_others_are_done() -> None:
    done = list(carried_out(ends_at_three, [1, 2, 3, 4, 5], 2, lambda number: -number))
    assert done == [(1, 1), (2, 4), (3, -3), (4, 16), (5, 25)]


def ends_at_first(path: str) -> str:
    """A task that something else ended, once."""
    with open(path, "ab") as stream:  # noqa: PTH123 - a name that came as text
        stream.write(b".")
    if os.stat(path).st_size < TRIES:  # noqa: PTH116 - a name that came as text
        os._exit(9)
    return path


def test_a_task_whose_process_something_ended_is_tried_again(tmp_path: Any) -> None:
    path = str(tmp_path / "tries")
    assert list(carried_out(ends_at_first, [path], 1, lambda _: "lost")) == [(path, path)]


def test_what_nobody_has_thought_of_is_bad_at_its_place_and_its_files_are_kept(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path)
    (tmp_path / "log").write_text("told\n")
    (world.home / "left").write_text("kept\n")
    bench: Any = SimpleNamespace(world=world)
    tally = sweep.Tally(sweep.Task("kills", "save", 0), bench)
    with tally.case("7h"):
        tally.add("write", "7", "half")
        int("strange")
    assert tally.bad_places == tally.places == {("save", "write", "7", "half")}
    [told] = tally.bad
    assert told in capsys.readouterr().err
    assert "BAD ValueError" in told
    assert told.endswith("again: python -m tests.faults.sweep kills --verb save --at 7h")
    kept = told.partition("files: ")[2].splitlines()[0]
    try:
        with open(f"{kept}/home/left") as left:  # noqa: PTH123 - a name that came as text
            assert left.read() == "kept\n"
    finally:
        shutil.rmtree(kept)


def test_who_waits_for_a_processor_is_at_work_and_who_waits_for_somebody_is_not() -> None:
    assert is_at_work(os.getpid())
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as waits:
        while is_at_work(waits.pid):
            pass
    assert not is_at_work(waits.pid)


def test_a_report_tells_how_to_see_it_again(tmp_path: Any) -> None:
    world = World(tmp_path)
    (tmp_path / "log").write_text("")
    told = report(world, ValueError("x"), "--verb save", "cuts")
    kept = told.partition("files: ")[2].splitlines()[0]
    shutil.rmtree(kept)
    assert told == f"BAD ValueError x\n    files: {kept}\n    again: python -m tests.faults.cuts --verb save"
