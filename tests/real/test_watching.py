"""A store under git, on a mount that goes, of 5,000 notes that go, and a system that gives no events (SPEC 5)."""

from collections.abc import Iterator

import pytest

from support.daemon import Daemon
from support.watched import quick_daemon

MANY = 5_000


@pytest.fixture
def quick() -> Iterator[Daemon]:
    """A daemon that believes a deletion after 0.3 s."""
    with quick_daemon() as daemon:
        yield daemon
