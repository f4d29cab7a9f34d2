"""A throwaway home for the client's tests. Law: short enough for a socket, and nothing of the machine leaks in."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import memd_client


@contextmanager
def client_home() -> Iterator[dict[str, str]]:
    """An environment whose `MEMD_HOME` is a new directory under /tmp, which goes at the end."""
    place = tempfile.mkdtemp(prefix="memd-", dir="/tmp")
    try:
        yield {
            "HOME": f"{place}/user",
            "MEMD_HOME": f"{place}/home",
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(memd_client.__file__).parents[1]),
        }
    finally:
        shutil.rmtree(place)
