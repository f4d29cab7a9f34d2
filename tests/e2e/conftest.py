"""The daemon every test of this directory gets."""

from collections.abc import Iterator

import pytest

from support.daemon import Daemon, running_daemon


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A real daemon on a home of its own."""
    with running_daemon() as running:
        yield running


@pytest.fixture(scope="module")
def titled() -> Iterator[Daemon]:
    """One daemon for a table of titles, each saved and forgotten."""
    with running_daemon() as running:
        yield running


@pytest.fixture(scope="module")
def worded() -> Iterator[Daemon]:
    """One daemon for a table of searches, among notes that should not win."""
    with running_daemon() as running:
        running.save("decoy-path", "the log is in C:\\other\\logs\\yesterday.txt, and snake or case")
        running.save("decoy-version", "pinned at 2.8.4, not at 2.7")
        running.save("decoy-words", "面 关 配 coffee tea, no deploy, api-less")
        yield running
