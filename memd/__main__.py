"""`memd`: the daemon in the foreground. Law: what it does is in `daemon`, imported only to do it."""

import argparse
import os
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
    if sys.getfilesystemencoding() != "utf-8" and "utf8" not in sys._xoptions:
        _run_in_utf_8()

    # memd makes no temporary file; a library looks for a directory for them all the same, by writing into one, and
    # there may be none: a service may write to memd's home only, and a disk may be full.
    tempfile.tempdir = "/"

    from memd import daemon

    return daemon.start()


def _run_in_utf_8() -> None:
    """Begin anew, as the same process: names of files are UTF-8, whatever locale the daemon was started in."""
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - what runs already


if __name__ == "__main__":
    sys.exit(main())
