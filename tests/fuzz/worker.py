"""One fuzzing process: `python -m tests.fuzz.worker TARGET PLANT DIRECTORY [LIBFUZZER-OPTION…]`.

`PLANT` is the number of the bug to plant, `-` for none. `DIRECTORY` gets the corpus, and beside it (`crash-…`) what
broke the law. Ends by libFuzzer's way: 0 when nothing did, 77 when something did. A bug is planted in a copy: memd
itself is never touched.
"""

import importlib
import logging
import shutil
import sys
import tempfile
import time
from pathlib import Path

from .targets import TARGETS, Plant

ROOT = Path(__file__).parents[2]
SLOW_S = 5.0
"""Processor seconds: an input that takes longer is a finding."""


def plant(bug: Plant, place: Path) -> None:
    """Put a copy of memd with a bug in it below `place`. Raises AssertionError where memd has changed under it."""
    shutil.copytree(ROOT / "memd", place / "memd", ignore=shutil.ignore_patterns("__pycache__"))
    path = place / "memd" / bug.file
    text = path.read_text()
    assert text.count(bug.sound) == 1, f"{bug.file} does not hold what the planted bug changes: {bug.sound!r}"
    path.write_text(text.replace(bug.sound, bug.broken))


def main(name: str, number: str, directory: str, options: list[str]) -> None:
    """Fuzz until an option of libFuzzer's says to stop."""
    import atheris  # an extra, and only this process needs it

    target = TARGETS[name]
    place = Path(tempfile.mkdtemp(prefix="memd-plant-", dir=directory))
    if number != "-":
        plant(target.plants[int(number)], place)
        sys.path.insert(0, str(place))
    rooms = [f"memd.{room.removesuffix('.py')}" for room in target.rooms]
    sys.path.insert(0, str(ROOT / "tests"))
    with atheris.instrument_imports(include=rooms):
        laws = importlib.import_module("tests.fuzz.laws")
    law = getattr(laws, target.law)

    executions = 0

    def check(data: bytes) -> None:
        nonlocal executions
        executions += 1
        began = time.process_time()
        try:
            law(data)
            assert time.process_time() - began < SLOW_S, f"{len(data)} bytes take too long"
        except BaseException:
            # Kept here: on a busy machine libFuzzer's own alarm may end it before it has written anything down.
            (Path(directory) / "crash-kept").write_bytes(data)
            (Path(directory) / "executions").write_text(str(executions))
            raise

    logging.disable()  # an incident is what a verb that fails is for
    atheris.Setup(["worker", *options], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
