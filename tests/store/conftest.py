"""Where the sweeps of this directory put their stores."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory in memory, where the machine has one: a sweep is about order and makes thousands of small files."""
    if not MEMORY.is_dir():
        yield tmp_path_factory.mktemp("memory")
        return
    directory = Path(tempfile.mkdtemp(prefix="memd-tests-", dir=MEMORY))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def room(memory: Path) -> Iterator[Path]:
    """An empty directory in memory for one test."""
    directory = Path(tempfile.mkdtemp(dir=memory))
    yield directory
    shutil.rmtree(directory)
