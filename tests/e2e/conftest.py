"""The daemon every test of this directory gets."""

from collections.abc import Iterator

import pytest
from support.daemon import Daemon, running_daemon


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A real daemon on a home of its own."""
    with running_daemon() as running:
        yield running
