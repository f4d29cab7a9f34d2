"""`memd`: the daemon in the foreground. Law: what it does is in `daemon`, imported only to do it."""

import argparse
import sys
import tempfile
from collections.abc import Sequence

import memd


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the daemon until it is stopped; the exit status, as `daemon.start` has it. SPEC section 15."""
    parser = argparse.ArgumentParser(
        prog="memd",
        description="The daemon that keeps the notes of coding agents. It runs in the foreground, for one home.",
        epilog="MEMD_HOME, MEMD_SOCKET and MEMD_CONFIG say where; SIGTERM and memctl stop end it.",
    )
    parser.add_argument("--version", action="version", version=f"memd {memd.__version__}")
    parser.parse_args(arguments)

    # memd makes no temporary file; a library looks for a directory for them all the same, by writing into one, and
    # there may be none: a service may write to memd's home only, and a disk may be full.
    tempfile.tempdir = "/"

    from memd import daemon

    return daemon.start()


if __name__ == "__main__":
    sys.exit(main())
