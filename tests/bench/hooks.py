"""What a hook costs an agent: each prompt waits for a whole process of `memctl hook`. Law: nothing late is left out.

The daemon runs and its store is warm. First the first prompts of sessions, which get a block, then later ones, which
get nothing. Beside the times stands how many answers were late, that is, were said to be late in place of a block,
and how many said neither (row 20 of the field's cases: such a one would be silent amnesia). A bare interpreter is the
floor. `python -m tests.bench hooks` runs it alone.
"""

import json
import random
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import NamedTuple

from .house import PLACE, House, file_system, ground, plot, question, run_program
from .rows import Row, median, percentile, report, row

P50_MS = 150.0
P99_MS = 300.0

_BARE = [sys.executable, "-c", "pass"]


class Size(NamedTuple):
    """How much is measured: notes in the store, and prompts of each kind."""

    notes: int
    prompts: int


FULL = Size(notes=1000, prompts=200)
QUICK = Size(notes=50, prompts=4)


class Answered(NamedTuple):
    """A hook's run in milliseconds, and what it wrote."""

    ms: float
    text: str


def run(quick: bool = False, place: Path = PLACE) -> dict[str, object]:
    """The rows of this bench, ready for JSON, measured in a directory of `place`."""
    with ground(place) as root:
        return measure(root, QUICK if quick else FULL)


def measure(root: Path, size: Size) -> dict[str, object]:
    """The rows, measured in `root`."""
    house = House(plot(root, "served"))
    house.fill(size.notes)
    chance = random.Random(20)
    with house.served():
        prompt(house, "warm", question(chance))
        bare = median(1000 * run_program(_BARE, house.env) for _ in range(min(size.prompts, 40)))
        first = [prompt(house, f"s{number}", question(chance)) for number in range(size.prompts)]
        later = [prompt(house, f"s{number}", question(chance)) for number in range(size.prompts)]
    rows = [*told("first", first, bare), *told("later", later, bare), *amnesia(first)]
    return report("hooks", rows, notes=size.notes, prompts=size.prompts, file_system=file_system(root))


def told(kind: str, answers: list[Answered], bare: float) -> list[Row]:
    """The times of one kind of prompt."""
    times = [answer.ms for answer in answers]
    return [
        row(f"hook.{kind}.p50", median(times), "ms", floor=bare, most=P50_MS),
        row(f"hook.{kind}.p99", percentile(times, 99), "ms", floor=bare, most=P99_MS),
    ]


def amnesia(answers: list[Answered]) -> list[Row]:
    """How many first prompts were told that memory is late, and how many were told nothing at all."""
    late = sum("memd did not answer within" in answer.text for answer in answers)
    silent = sum(not answer.text for answer in answers)
    return [row("hook.late", late, "of first"), row("hook.silent", silent, "of first", most=0)]


def prompt(house: House, session: str, text: str) -> Answered:
    """One prompt of a session, as an agent hands it to its hook."""
    memctl = str(Path(sysconfig.get_path("scripts")) / "memctl")
    event = {"session_id": session, "cwd": str(house.repo), "hook_event_name": "UserPromptSubmit", "prompt": text}
    began = time.perf_counter()
    done = subprocess.run(
        [memctl, "hook", "claude", "prompt-submit"],
        input=json.dumps(event).encode(),
        capture_output=True,
        env=house.env,
        check=True,
    )
    return Answered(1000 * (time.perf_counter() - began), done.stdout.decode())
