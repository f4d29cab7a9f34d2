"""Run inputs through a law: `python -m tests.fuzz.replay [--telling] TARGET FILE`, FILE a JSON list of hex strings.

With `--telling` it prints those that take a step from one line of the rooms to another that none before took.
"""

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from .corpus import tell
from .targets import TARGETS
from .worker import ROOT

Step = tuple[str, int, int]


def main(name: str, file: Path, *, telling: bool) -> None:
    """Run every input."""
    sys.path.insert(0, str(ROOT / "tests"))
    from . import laws

    check: Callable[[bytes], None] = getattr(laws, TARGETS[name].law)
    logging.disable()  # an incident is what a verb that fails is for
    rooms = {str(ROOT / "memd" / room) for room in TARGETS[name].rooms}
    taken: set[Step] = set()
    for data in map(bytes.fromhex, json.loads(file.read_text())):
        if not telling:
            check(data)
            continue
        new = steps(check, data, rooms) - taken
        if new:
            taken |= new
            tell(data.hex())


def steps(check: Callable[[bytes], None], data: bytes, rooms: set[str]) -> set[Step]:
    """The steps from line to line within files of `rooms` that a check of `data` takes."""
    taken: set[Step] = set()

    def called(frame: FrameType, _event: str, _argument: Any) -> Any:
        file = frame.f_code.co_filename
        if file not in rooms:
            return None
        before = 0

        def stepped(frame: FrameType, event: str, _argument: Any) -> Any:
            nonlocal before
            if event == "line":
                taken.add((file, before, frame.f_lineno))
                before = frame.f_lineno
            return stepped

        return stepped

    sys.settrace(called)
    try:
        check(data)
    finally:
        sys.settrace(None)
    return taken


if __name__ == "__main__":
    main(sys.argv[-2], Path(sys.argv[-1]), telling="--telling" in sys.argv)
