"""Tokens against the cases and the texts people were failed by."""

import json
import time
from pathlib import Path

import pytest

from memd.tokens import STOPWORDS, Term, jaccard, query_terms, spread_keys, tokenize

CASES = Path(__file__).parents[1] / "cases"


@pytest.mark.parametrize(
    "case", json.loads((CASES / "tokens.json").read_text("utf-8")), ids=lambda case: case["text"]
)
def test_cases(case: dict[str, object]) -> None:
    assert tokenize(str(case["text"])) == case["tokens"]


def test_function_words_are_those_of_the_cases() -> None:
    assert frozenset((CASES / "stopwords.txt").read_text("utf-8").split()) == STOPWORDS
    assert len(STOPWORDS) == 61


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("面关", ["面关"]),
        ("重跑gen-itgc后", ["重跑", "gen-itgc", "后"]),
        ("배포를", ["배포", "포를"]),
        ("ＡＰＩ", ["api"]),
        ("cafe\u0301", ["café"]),
        ("2.8.3", ["2.8.3"]),
        ("snake_case", ["snake_case"]),
        ("C:\\Users\\Дмитрий\\notes.md", ["c", "users", "дмитрий", "notes.md"]),
    ],
)
def test_texts_that_other_tools_missed(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("вер-2.0", ["вер-2.0"]),  # a digit joins in any script
        ("abc-3-где", ["abc-3", "где"]),  # but does not lead from one to another
        ("3где", ["3где"]),
        ("3abcгде", ["3abc", "где"]),
        ("𗀀𗀁", ["𗀀𗀁"]),  # letters without a name in the character database
        ("数据-库", ["数据", "库"]),  # nothing joins runs of bigrams
        ("第3-4章", ["第", "3-4", "章"]),
        ("用_x", ["用", "_x"]),
        ("x用", ["x", "用"]),
        ("时々", ["时々"]),
        ("〇一", ["〇一"]),
        ("サーバー", ["サー", "ーバ", "バー"]),
        ("データ・ベース", ["デー", "ータ", "ベー", "ース"]),
        ("葛\U000e0100城", ["葛城"]),  # a variation selector is no part of the word
        ("か\u309aき", ["か\u309aき"]),  # a mark stays with its character
        ("か\u309a", ["か\u309a"]),
        (" \u0301x", ["x"]),  # a mark alone starts nothing
        ("a.\u0301b", ["b"]),
        ("aé\u0323.x", ["aẹ\u0301.x"]),
        ("м'яч мʼяч", ["м", "яч", "мʼяч"]),
        ("\u03aa\u0301", ["\u0390"]),  # folded and composed like the small letter
        ("Ünïted-Ⅳ", ["ünïted-iv"]),
        ("10²", ["102"]),
        ("۳۴", ["۳۴"]),
        ("foo…bar。baz", ["foo", "bar", "baz"]),
        ("\ud800x", ["x"]),
        ("ºª", ["oa"]),
    ],
)
def test_scripts_and_joiners(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


def test_query_terms_are_unique_in_first_seen_order() -> None:
    assert query_terms("the Build, docs build 用 数据 用 é") == (
        Term("build", spread=False),
        Term("docs", spread=False),
        Term("用", spread=True),
        Term("数据", spread=False),
        Term("é", spread=False),
    )


@pytest.mark.parametrize(
    ("token", "keys"),
    [
        ("数据", ("数*", "据*")),
        ("用", ("用*",)),
        ("看看", ("看*",)),
        ("か\u309aき", ("か\u309a*", "き*")),
        ("build", ()),
        ("я", ()),
    ],
)
def test_spread_keys(token: str, keys: tuple[str, ...]) -> None:
    assert spread_keys(token) == keys


def test_a_one_character_term_is_found_under_the_keys_of_what_holds_it() -> None:
    (term,) = query_terms("か\u309a")
    assert term.key in spread_keys("か\u309aき")
    assert term.key in spread_keys("か\u309a")
    assert term.key not in spread_keys("かき")
    assert Term("build", spread=False).key == "build"


@pytest.mark.parametrize(
    ("a", "b", "share"),
    [
        ("never scratch in /tmp", "Scratch never in /tmp", 1.0),
        ("one two three", "one two four", 0.5),
        ("one one two", "two one", 1.0),
        ("alpha", "beta", 0.0),
        ("the of", "the of", 0.0),
        ("", "word", 0.0),
    ],
)
def test_jaccard(a: str, b: str, share: float) -> None:
    assert jaccard(a, b) == share


# Each takes a quadratic tokenizer from half a minute to hours.
@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0301\u0316" * 200_000,
        ("a" + "\u0301\u0316" * 15) * 10_000,
        ("." + "\u0301" * 30) * 10_000,
        "a-" * 200_000,
        "-" * 400_000,
        "вет-" * 100_000,
        "数" * 200_000,
        "\u2028" * 200_000,
        "\u0344" * 100_000,
    ],
    ids=[
        "marks",
        "marks-in-words",
        "loose-marks",
        "joins",
        "joiners",
        "cyrillic",
        "han",
        "separators",
        "split-marks",
    ],
)
def test_no_text_is_slow(text: str) -> None:
    began = time.process_time()
    tokenize(text)
    assert time.process_time() - began < 3
