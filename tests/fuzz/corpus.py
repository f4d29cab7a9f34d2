"""Inputs that were worth keeping. Law: one file a target, a line an input, small enough to run in a second."""

import base64
import sys
from collections.abc import Iterable
from pathlib import Path

DIRECTORY = Path(__file__).parent / "corpus"
LONGEST = 4096
"""Bytes of an input that is kept."""


def kept(target: str) -> list[bytes]:
    """The inputs that are kept of a target, shortest first; none when there is no file."""
    path = DIRECTORY / f"{target}.b64"
    return [base64.b64decode(line) for line in path.read_text().splitlines()] if path.exists() else []


def keep(target: str, inputs: Iterable[bytes]) -> None:
    """Keep these inputs and no others."""
    DIRECTORY.mkdir(exist_ok=True)
    lines = sorted((base64.b64encode(data).decode() for data in set(inputs)), key=lambda line: (len(line), line))
    (DIRECTORY / f"{target}.b64").write_text("".join(f"{line}\n" for line in lines))


def tell(line: str) -> None:
    """Write a line of a report, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
