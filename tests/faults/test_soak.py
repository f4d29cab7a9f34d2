"""The soak, for a moment, and that what it holds promises against does tell. Law: a look that cannot fail is none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .soak import Soak
from .soak_truth import LostError, Note, Text, Truth, check_gone, check_store, saved_text


def test_a_moment_of_it(capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("s")
    soak = Soak(root, clients=3, seed=1)
    try:
        soak.run(4)
    finally:
        soak.stop()
    told = capsys.readouterr().out
    assert "acknowledged saves lost 0 of " in told
    assert soak.tally.of("kills") > 0
    assert soak.tally.of("acknowledged saves") > 0
    assert soak.lives


@pytest.fixture
def store(tmp_path: Path) -> tuple[Path, Note]:
    """A store as it must be, and the one note that was promised."""
    first, now = saved_text("cat", "one zq1n1z", "First."), saved_text("cat", "two zq1n2z", "Now.")
    note = Note("cat", "repo", Text(first, acknowledged=True))
    note.add(Text(now, acknowledged=True))
    (tmp_path / "objects").mkdir()
    (tmp_path / "cat.md").write_bytes(now)
    (tmp_path / "MEMORY.md").write_text("- [cat](cat.md) — two zq1n2z\n")
    for text in note.texts:
        (tmp_path / "objects" / text.hash.removeprefix("sha256:")).write_bytes(text.raw)
    return tmp_path, note


def test_what_was_promised_is_found(store: tuple[Path, Note]) -> None:
    assert check_store(store[0], [store[1]]) == 2


@pytest.mark.parametrize(
    "harm",
    [
        lambda path, _: (path / "cat.md").unlink(),
        lambda path, note: (path / "cat.md").write_bytes(note.now[:-5]),
        lambda path, note: (path / "cat.md").write_bytes(note.texts[0].raw),
        lambda path, note: (path / "dog.md").write_bytes(note.now),
        lambda path, note: (path / "objects" / note.texts[0].hash.removeprefix("sha256:")).unlink(),
        lambda path, note: (path / "objects" / note.texts[0].hash.removeprefix("sha256:")).write_bytes(note.now),
    ],
    ids=["gone", "torn", "older", "nobody's", "no object", "another object"],
)
def test_what_was_not_kept_is_told(store: tuple[Path, Note], harm: Callable[[Path, Note], object]) -> None:
    harm(*store)
    with pytest.raises(LostError):
        check_store(store[0], [store[1]])


def test_a_word_that_is_left_is_told(store: tuple[Path, Note]) -> None:
    truth = Truth()
    truth.put(store[1])
    check_gone(store[0], {b"zq1n3z"})
    truth.forgotten(store[1])
    assert truth.forgotten_saves == 2
    for word in truth.gone:
        with pytest.raises(LostError):
            check_gone(store[0], {word})
