"""`make histories N=n`: chance histories of two stores, each rebuilt byte for byte. Law: a seed is a history.

    python -m tests.faults.machine_histories [--number N] [--seed FIRST] [--steps N]

Each history does some chance things of `machine.World`, dies in some of them, and is held against its dictionary. At
the end the note files, MEMORY.md and usage.json are taken away, and a rebuild from journal and objects gives them
back. Exit 1 when one does not; the seed that is printed tells it again: `--seed S --number 1`.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .machine import NAMES, SIDES, Death, World, emptied

DEATHS = 0.2
"""The part of the writes in which the process may die."""


class History:
    """One chance history."""

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World(root)

    def run(self, steps: int) -> int:
        """Let so many things happen, and rebuild what came of it; how many files were the same."""
        for _ in range(steps):
            deaths = self.world.deaths
            self.step()
            if self.world.deaths > deaths:
                self.world.check()
        self.world.check()
        files = self.world.rebuild_all()
        self.world.check()
        return files

    def step(self) -> None:
        """Let one thing happen."""
        world, chance = self.world, self.chance
        side, name = chance.choice(SIDES), chance.choice(NAMES)
        seen = chance.choice(("look", "save", "opening"))
        acts: list[tuple[int, Callable[[], None]]] = [
            (30, lambda: world.save(side, name, self.death())),
            (10, lambda: world.forget(side, name, self.death())),
            (5, lambda: world.restore(side, name, chance.randrange(9), self.death())),
            (6, lambda: world.rename(side, name, chance.choice(NAMES), self.death())),
            (6, lambda: world.move(side, name, self.death())),
            (4, lambda: world.arrive(side, name, self.death(), updates=True)),
            (4, lambda: world.arrive(side, name, self.death(), updates=False)),
            (8, lambda: world.read(side, name, self.death())),
            (2, lambda: world.rebuild(side, self.death())),
            (2, lambda: world.reconcile(side, self.death())),
            (3, lambda: world.reopen(side)),
            (8, lambda: world.write_by_hand(side, name, seen)),
            (4, lambda: world.delete_by_hand(side, name, seen)),
            (4, lambda: world.save_elsewhere(side, name)),
            (2, lambda: world.forget_elsewhere(side, name)),
            (2, lambda: world.read_elsewhere(side, name)),
        ]
        chance.choices([act for _, act in acts], [weight for weight, _ in acts])[0]()

    def death(self) -> Death | None:
        """When the process dies in this write, if it does."""
        if self.chance.random() >= DEATHS:
            return None
        half = self.chance.random() < 0.3
        return Death(self.chance.randint(1, 6 if half else 25), half)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tell histories; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.machine_histories")
    parser.add_argument("--number", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first history's")
    parser.add_argument("--steps", type=int, default=14, help="things that happen in one")
    options = parser.parse_args(arguments)
    memory = Path("/dev/shm")
    room = Path(tempfile.mkdtemp(prefix="memd-histories-", dir=memory if memory.is_dir() else None))
    begun, files, deaths = time.monotonic(), 0, 0
    try:
        for seed in range(options.seed, options.seed + options.number):
            history = History(emptied(room / "world"), seed)
            try:
                files += history.run(options.steps)
            except BaseException:
                sys.stdout.write(f"history {seed} is not as it must be\n")
                raise
            deaths += history.world.deaths
            if (seed - options.seed + 1) % 1000 == 0:
                sys.stdout.write(f"{seed - options.seed + 1} histories, {time.monotonic() - begun:.0f} s\n")
                sys.stdout.flush()
    finally:
        shutil.rmtree(room)
    sys.stdout.write(
        f"histories rebuilt byte for byte: {options.number:,} of {options.number:,} "
        f"({files:,} files; {deaths:,} deaths on the way; {time.monotonic() - begun:.0f} s)\n"
    )
    return 0 if options.number and files and (deaths or options.number < 100) else 1


if __name__ == "__main__":
    sys.exit(main())
