"""What a hit shows of a text. SPEC section 11."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd import forms
from memd.history.snippet import SNIPPET_MAX, Snippet, snippet
from memd.tokens import query_terms

KEY = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("The Crane stalls", "crane", Snippet("The Crane stalls", cut=False, redacted=False)),
        ("a\n\n  b\tc", "b", Snippet("a b c", cut=False, redacted=False)),
        ("x" * 160, "y", Snippet("x" * 160, cut=False, redacted=False)),
        (f"key {KEY}", "key", Snippet("key [redacted]", cut=False, redacted=True)),
    ],
)
def test_a_short_text_is_shown_whole(text: str, query: str, expected: Snippet) -> None:
    assert snippet(text, tuple(forms.plain(query_terms(query)))) == expected


@pytest.mark.parametrize(
    ("text", "query", "holds"),
    [
        ("word " * 200 + "the Crane stalls " + "word " * 200, "crane stalls", "Crane stalls"),
        ("crane " + "word " * 200 + "crane tide gauge " + "word " * 50, "crane tide gauge", "crane tide gauge"),
        ("word " * 200 + "at the very end", "end", "at the very end"),
        ("字" * 300 + "数据库重跑" + "字" * 300, "数据库", "数据库"),
        ("字" * 300 + "看" + "字" * 300, "看", "看"),
        ("word " * 500, "absent", "word word"),
        ("y" * 1_000, "absent", "yyyy"),
        ("word " * 100 + KEY + " crane " + "word " * 100, "crane", "[redacted] crane"),
    ],
)
def test_a_long_text_is_cut_where_the_terms_are(text: str, query: str, holds: str) -> None:
    shown = snippet(text, tuple(forms.plain(query_terms(query))))
    assert holds in shown.text
    assert shown.cut
    assert len(shown.text) <= SNIPPET_MAX
    assert KEY not in shown.text


@pytest.mark.parametrize(
    ("text", "query", "holds"),
    [
        ("word " * 200 + "the cranes stalled" + " word" * 200, "crane stalls", "cranes stalled"),
        ("word " * 200 + "parseConfigFile" + " word" * 200, "config", "parseConfigFile"),
        ("word " * 200 + "scripts/forge_pr.py" + " word" * 200, "forge", "scripts/forge_pr.py"),
        ("word " * 200 + "the filename" + " word" * 200, "file name", "the filename"),
    ],
)
def test_it_is_cut_where_the_forms_of_words_are(text: str, query: str, holds: str) -> None:
    assert holds in snippet(text, forms.query(query).asked).text


@given(text=st.text(max_size=400), query=st.text(max_size=20))
def test_it_is_a_piece_of_the_text_within_its_bound(text: str, query: str) -> None:
    shown = snippet(text, tuple(forms.plain(query_terms(query))))
    line = " ".join(text.split())
    assert shown.text in line
    assert shown.cut == (len(line) > SNIPPET_MAX)
    assert len(shown.text) <= SNIPPET_MAX
