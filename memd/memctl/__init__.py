"""memctl, the command line of a person. Law: it talks to the daemon through `memd_client` and touches no store.

SPEC section 14. A command is worth about two starts of a bare interpreter, so nothing here imports what the
one command that was called does not need: `front` reads the word, and only that word's file is imported.
"""

import gc
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (SPEC 14), 130 after Ctrl-C.

    `argv` is without the program; None stands for this process's own arguments, that is, for the whole program.
    """
    if argv is None:
        gc.disable()  # it costs a tenth of a run that ends before there is anything to collect
        argv = sys.argv[1:]
    try:
        if len(argv) == 3 and argv[0] == "hook":
            from memd_hooks import hook  # at every prompt of an agent: past the front door and its 15 ms

            if argv[1] in hook.AGENTS and argv[2] in hook.EVENTS:
                return hook.run(argv[1], argv[2])
        from memd.memctl.front import run  # inside, so that Ctrl-C is quiet while the imports run, too

        return run(argv)
    except KeyboardInterrupt:
        return 130
