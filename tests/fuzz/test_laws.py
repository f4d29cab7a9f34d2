"""The laws that hold for any bytes, on what was worth keeping and on a few examples; `make fuzz` is the long form."""

from collections.abc import Callable

import pytest

from . import corpus, examples, laws, scaling
from .targets import TARGETS
from .worker import ROOT


def law(name: str) -> Callable[[bytes], None]:
    check: Callable[[bytes], None] = getattr(laws, TARGETS[name].law)
    return check


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_kept_and_what_it_began_with_break_no_law(name: str) -> None:
    inputs = [*TARGETS[name].seeds, *TARGETS[name].words, *corpus.kept(name)]
    assert len(corpus.kept(name)) > 3
    for data in inputs:
        law(name)(data)


@pytest.mark.parametrize("name", TARGETS)
def test_examples_break_no_law(name: str) -> None:
    examples.run(name, 300)


@pytest.mark.parametrize("name", TARGETS)
def test_every_bug_to_plant_has_its_place(name: str) -> None:
    for bug in TARGETS[name].plants:
        assert (ROOT / "memd" / bug.file).read_text().count(bug.sound) == 1
        assert bug.broken not in (ROOT / "memd" / bug.file).read_text() or bug.broken in bug.sound


@pytest.mark.parametrize("tail", [b"", b"!"])
def test_a_note_of_line_ends_alone_takes_no_longer_than_another(tail: bytes) -> None:
    factors = (scaling.grown(law("note"), b"", b"\r", tail) for _ in range(scaling.TRIES))
    assert any(factor <= scaling.FACTOR for factor in factors)


def test_the_corpus_is_small() -> None:
    files = list(corpus.DIRECTORY.iterdir())
    assert {path.stem for path in files} <= TARGETS.keys()
    assert sum(path.stat().st_size for path in files) < 200_000
