"""The bound of past sessions: the right entry among the first three for sixteen of twenty questions."""

from pathlib import Path

import pytest

from memd.config import RANKERS

from .sessions import LEAST, asked, laid_out, questions


@pytest.mark.parametrize("ranker", RANKERS)
def test_sixteen_of_twenty_questions_find_the_right_entry(tmp_path: Path, ranker: str) -> None:
    results = list(asked(ranker))
    assert len(results) == 20
    assert sum(one.is_right for one in results) >= LEAST
    corpus = laid_out(tmp_path)
    assert corpus.progress.read == 12
    assert corpus.progress.skipped == 0


def test_every_right_answer_is_an_entry(tmp_path: Path) -> None:
    corpus = laid_out(tmp_path)
    everything = {hit.entry for one in questions() for hit in corpus.search(one.query, 999).hits}
    assert {entry for one in questions() for entry in one.right} <= everything
