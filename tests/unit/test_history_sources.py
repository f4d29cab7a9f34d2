"""Where transcripts are found. Law: what could not be read is counted, and looked for again. SPEC section 11."""

import errno
import os
from pathlib import Path

import pytest

from memd.fs import Disk, Seen
from memd.history import Catalog, Sources
from support.transcripts import claude


def test_a_directory_that_could_not_be_listed_once_is_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "projects" / "-repo"
    directory.mkdir(parents=True)
    file = directory / "c-1.jsonl"
    file.write_text(claude("user", "the crane", cwd=tmp_path))
    os.utime(directory, (1, 1))  # long ago: its listing holds until the next change
    catalog, sources = Catalog(), Sources(seed=None, claude=directory.parent, named=False)
    whole = Disk.scan

    def failing(disk: Disk, where: Path) -> list[Seen]:
        if where == directory:
            raise OSError(errno.EMFILE, "Too many open files")
        return whole(disk, where)

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "scan", failing)
        assert (catalog.files(sources), catalog.unread) == ([], 1)
    assert [found.path for found in catalog.files(sources)] == [file]
    assert catalog.unread == 0
