"""`make races` and `make cycles`: the long forms of what `tests/support/lives.py` does. Prints what it counted."""

import argparse
import sys
import time

from support.daemon import daemon_home
from support.lives import Cycles, race


def main() -> int:
    """Run one of them to its end; anything that is not as it should be is an AssertionError."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["races", "cycles"])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--racers", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begun = time.monotonic()
    with daemon_home() as daemon:
        if options.what == "races":
            rounds = options.rounds or 200
            late = sum(race(daemon, options.racers) for _ in range(rounds))
            said = f"rounds={rounds} racers={options.racers} by_hand=2 daemons_each=1 left_over=0 late={late}"
        else:
            rounds = options.rounds or 100
            cycles = Cycles(daemon, options.seed)
            for _ in range(rounds):
                cycles.turn()
            cycles.check()
            counts = " ".join(f"{name.strip('_')}={number}" for name, number in sorted(cycles.counts.items()))
            said = f"cycles={rounds} {counts} notes_kept={len(cycles.saved)} left_over=0"
    sys.stdout.write(f"{said} secs={time.monotonic() - begun:.0f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
