"""What a lookup says of a file that the disk does not tell of. Law: only what is missing is told as missing.

SPEC section 12.
"""

import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from memd.errors import NotFound
from memd.live import LiveStore
from memd.note import Scope
from memd.protocol import SearchParams
from memd.store import Store
from memd.verbs import lookup
from memd.verbs.notes import near
from memd.verbs.ranking import Ranked, notices
from support.disks import FastDisk
from support.stores import Clock, save


def run(directory: Path, test: Callable[[LiveStore], Awaitable[None]]) -> None:
    """Run a test on an open store of two notes that say nearly the same."""

    async def whole() -> None:
        store = LiveStore(Scope.REPO, Store(directory, disk=FastDisk(), clock=Clock()))
        for name in ("alpha", "beta"):
            await store.write(save(name, "Words."))
        with anyio.fail_after(20):
            await test(store)

    anyio.run(whole)


def break_looks_at(sick: Path, patch: pytest.MonkeyPatch) -> None:
    """Have the disk fail wherever a path is looked at."""
    whole = os.stat

    def failing(path: str | Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if str(path) == str(sick):
            raise OSError(errno.EIO, "Input/output error")
        return whole(path, follow_symlinks=follow_symlinks)

    patch.setattr(os, "stat", failing)


@pytest.mark.parametrize("words", ["alpha", "ALPHA.md"])
def test_a_note_whose_file_the_disk_does_not_tell_of_is_not_one_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    async def test(store: LiveStore) -> None:
        break_looks_at(tmp_path / "alpha.md", monkeypatch)
        with pytest.raises(OSError, match="Input/output error"):
            lookup.find([store], words)
        with pytest.raises(OSError, match="Input/output error"):
            store.stands("alpha")
        assert lookup.find([store], "beta")[1].name == "beta"
        monkeypatch.undo()
        assert lookup.find([store], words)[1].name == "alpha"
        (tmp_path / "alpha.md").unlink()
        with pytest.raises(NotFound):
            lookup.find([store], words)
        assert not store.stands("alpha")

    run(tmp_path, test)


def test_it_keeps_no_other_from_being_found_and_fails_no_save_that_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(store: LiveStore) -> None:
        break_looks_at(tmp_path / "alpha.md", monkeypatch)
        assert [hit.entry.name for hit in Ranked([store], "words", "plain").served()] == ["beta"]
        assert list(near([store], store, store.entries["beta"])) == []

    run(tmp_path, test)


def test_a_store_that_the_disk_does_not_tell_of_is_not_one_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(store: LiveStore) -> None:
        break_looks_at(tmp_path, monkeypatch)
        with pytest.raises(OSError, match="Input/output error"):
            store.is_there()
        monkeypatch.undo()
        assert store.is_there()

    run(tmp_path, test)
    assert not LiveStore(Scope.REPO, Store(tmp_path / "alpha.md" / "below")).is_there()
    assert not LiveStore(Scope.REPO, Store(tmp_path / "nothing")).is_there()


def test_hits_that_cannot_be_looked_at_are_not_as_if_there_were_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(store: LiveStore) -> None:
        break_looks_at(tmp_path / "alpha.md", monkeypatch)
        with pytest.raises(OSError, match="Input/output error"):
            next(Ranked([store], "alpha", "plain").served(1))
        ranked = Ranked([store], "words", "plain")
        shown = [hit.entry.name for hit in ranked.served(5)]
        asked = SearchParams(cwd=str(tmp_path), query="words")
        assert (shown, ranked.total) == (["beta"], 1)
        assert list(notices(asked, 1, ranked)) == [
            "[1 note left out: the disk does not let them be looked at · memory.check for the reason]"
        ]

    run(tmp_path, test)
