"""Stems, by a table of words that are forms of one, read both ways."""

import itertools

import pytest

from memd.stems import stem, stems

ALIKE = [
    ("retry", "retries", "retried", "retrying"),
    ("migration", "migrations", "migrate", "migrating"),
    ("index", "indexes", "indexed", "indexing"),
    ("заметка", "заметки", "заметками"),
    ("сервер", "сервера", "серверов"),
    ("δρόμος", "δρόμου", "δρόμοι"),
    ("naïve", "naïves"),
]
ITSELF = ["2.8.3", "utf8", "x1", "sha256", "数据", "ー", "데이터", "שלום", "_"]


@pytest.mark.parametrize("words", ALIKE, ids=[words[0] for words in ALIKE])
def test_forms_of_a_word_share_a_stem(words: tuple[str, ...]) -> None:
    assert len({stem(word) for word in words}) == 1


def test_forms_of_different_words_do_not() -> None:
    for one, other in itertools.combinations(ALIKE, 2):
        assert {stem(word) for word in one}.isdisjoint(stem(word) for word in other)


@pytest.mark.parametrize("word", ITSELF)
def test_what_is_no_word_of_a_known_script_is_its_own_stem(word: str) -> None:
    assert stem(word) == word


@pytest.mark.parametrize("words", [*ALIKE, ("retries", "2ndtries", "indexed"), ("retries", "заметками", "数据"), ()])
def test_many_at_once_have_the_stems_they_have_alone(words: tuple[str, ...]) -> None:
    assert stems(words) == [stem(word) for word in words]
