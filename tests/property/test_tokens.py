"""Laws of the tokens, over text of many scripts."""

import string
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from memd.tokens import STOPWORDS, jaccard, may_share, query_terms, spread_keys, tokenize

ASCII = st.text(st.sampled_from("aAbtheTHE09_._./--  \n'\"\\@#"), max_size=60) | st.text(
    st.characters(max_codepoint=127), max_size=60
)
MIXED = st.text(
    st.sampled_from("aZ3_./- é\u0301\u0323\ufe0fßΐνЖжॐि数据库のテー한글ﬁＡ¹\U000e0100🚀。İſ") | st.characters(),
    max_size=40,
)

WORDS = ["Harbour", "cat's", "the", "a/b.c", "x_1", "fed", "Café", "数据库"]
FEW_WORDS = st.lists(st.sampled_from(WORDS)).map(" ".join)


def by_hand(text: str) -> list[str]:
    """The first seed's rule, character by character."""
    word = frozenset(string.ascii_lowercase + string.digits + "_")
    text = f" {text.lower()} "
    kept = "".join(
        char if char in word or (char in "./-" and text[at - 1] in word and text[at + 1] in word) else " "
        for at, char in enumerate(text[1:-1], 1)
    )
    return [token for token in kept.split() if token not in STOPWORDS]


@given(ASCII)
def test_ascii_is_the_first_seeds(text: str) -> None:
    assert tokenize(text) == by_hand(text)


@given(ASCII)
def test_both_paths_agree_on_ascii(text: str) -> None:
    assert tokenize(f"{text} ж") == [*by_hand(text), "ж"]


@given(MIXED)
def test_tokens_are_their_own_tokens(text: str) -> None:
    tokens = tokenize(text)
    assert tokenize(" ".join(tokens)) == tokens


@given(MIXED)
def test_a_text_reads_alike_in_every_normal_form(text: str) -> None:
    tokens = tokenize(text)
    assert tokenize(unicodedata.normalize("NFD", text)) == tokens
    assert tokenize(unicodedata.normalize("NFKC", text)) == tokens


@given(MIXED)
def test_no_token_is_empty_or_a_function_word_or_holds_a_separator(text: str) -> None:
    for token in tokenize(text):
        assert token
        assert token not in STOPWORDS
        assert token[0] not in "./-"
        assert token[-1] not in "./-"
        assert not set(token) & set(" *\n,:")


@given(MIXED)
def test_query_terms_are_the_tokens_once_each(text: str) -> None:
    assert [term.text for term in query_terms(text)] == list(dict.fromkeys(tokenize(text)))


@given(MIXED)
def test_a_one_character_term_finds_every_token_with_that_character(text: str) -> None:
    for token in tokenize(text):
        for key in spread_keys(token):
            (term,) = query_terms(key)
            assert term.spread
            assert term.key == key
            assert term.text in token


@given(MIXED, MIXED)
def test_jaccard_is_symmetric_and_bounded(a: str, b: str) -> None:
    assert jaccard(a, b) == jaccard(b, a)
    assert 0 <= jaccard(a, b) <= 1
    assert jaccard(a, a) == float(bool(tokenize(a)))


@given(FEW_WORDS, FEW_WORDS, st.integers(1, 4))
def test_a_text_that_shares_so_many_tokens_may_share_them(a: str, b: str, least: int) -> None:
    words = set(tokenize(a))
    if len(words & set(tokenize(b))) >= least:
        assert may_share(words, b, least)


def test_a_text_without_the_words_cannot_share_them() -> None:
    assert not may_share({"harbour", "cat", "fed"}, "The harbour master eats at noon.", 2)
