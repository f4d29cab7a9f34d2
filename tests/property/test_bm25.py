"""Laws of the ranking, against SPEC section 6 written down as it reads."""

import math
from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd import forms
from memd.bm25 import Scored, rank
from memd.forms import Words
from memd.snapshots import Snapshot, hooked
from memd.tokens import query_terms, tokenize

TEXTS = [
    "",
    "the of and",
    "alpha",
    "alpha beta gamma alpha scripts/forge_pr.py",
    "beta " * 40 + "alpha",
    "gamma delta 数据库 2.8.3",
    "数据 看看 看 café",
    "库 데이터베이스 delta delta",
    " ".join(f"w{number}" for number in range(60)),
]
QUERIES = ["alpha", "beta alpha", "看", "数据库 delta", "scripts/forge_pr.py w7 gamma beta 库 이터", "nowhere"]

names = st.integers(0, 150).map("n{}".format)
notes = st.dictionaries(names, st.sampled_from(TEXTS), max_size=12) | st.builds(
    lambda first, count, text: {f"n{at}": text for at in range(first, first + count)},
    st.integers(0, 150),
    st.integers(30, 90),
    st.sampled_from(TEXTS),
)
changes = st.tuples(notes, st.sets(names, max_size=60))


def exact(query: str, stores: Sequence[Mapping[str, str]]) -> list[Scored]:
    docs = [(store, name, tokenize(text)) for store, texts in enumerate(stores) for name, text in texts.items()]
    length = sum(len(tokens) for _, _, tokens in docs)
    scores = dict.fromkeys(((store, name) for store, name, _ in docs), 0.0)
    for term in query_terms(query):
        tfs = [sum(term.text in t if term.spread else term.text == t for t in tokens) for _, _, tokens in docs]
        n = sum(tf > 0 for tf in tfs)
        idf = math.log(1 + (len(docs) - n + 0.5) / (n + 0.5))
        for (store, name, tokens), tf in zip(docs, tfs, strict=True):
            if tf:
                norm = 1.2 * (1 - 0.75 + 0.75 * len(tokens) / (length / len(docs)))
                scores[store, name] += idf * tf / (tf + norm)
    return [Scored(store, name, score) for (store, name), score in scores.items() if score > 0]


def answers(snapshots: Sequence[Snapshot]) -> list[list[Scored]]:
    return [rank(query_terms(query), snapshots).top() for query in QUERIES]


def tokens_of(texts: Mapping[str, str]) -> dict[str, Words]:
    return {name: Words(tokenize(text)) for name, text in texts.items()}


def after(snapshot: Snapshot, steps: Iterable[tuple[Mapping[str, str], set[str]]]) -> Snapshot:
    for put, drop in steps:
        snapshot = snapshot.replace(tokens_of(put), drop)
    return snapshot


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), changes), max_size=8))
def test_any_history_ranks_by_the_formula(history: list[tuple[int, tuple[dict[str, str], set[str]]]]) -> None:
    snapshots = [Snapshot.EMPTY, Snapshot.EMPTY]
    stores: list[dict[str, str]] = [{}, {}]
    for store, (put, drop) in history:
        snapshots[store] = snapshots[store].replace(tokens_of(put), drop)
        stores[store] = {name: text for name, text in stores[store].items() if name not in drop} | put
    assert [snapshot.names for snapshot in snapshots] == [sorted(texts) for texts in stores]
    assert [len(snapshot) for snapshot in snapshots] == [len(texts) for texts in stores]
    for query, hits in zip(QUERIES, answers(snapshots), strict=True):
        right = {(hit.store, hit.name): hit.score for hit in exact(query, stores)}
        assert {(hit.store, hit.name): hit.score for hit in hits} == pytest.approx(right, abs=1e-9, rel=0)
        assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.store, hit.name))
        assert rank(query_terms(query), snapshots).top(5, 2) == hits[2:7]


@settings(max_examples=60, deadline=None)
@given(st.lists(changes, max_size=4), notes)
def test_add_then_remove_is_the_index_before(
    history: list[tuple[dict[str, str], set[str]]], added: dict[str, str]
) -> None:
    before = after(Snapshot.EMPTY, history)
    new = {f"new-{name}": text for name, text in added.items()}
    again = before.replace(tokens_of(new)).replace({}, new)
    assert again.names == before.names
    assert again.tokens == before.tokens
    assert answers([again]) == answers([before])


@settings(max_examples=60, deadline=None)
@given(st.lists(changes, max_size=6))
def test_how_the_notes_came_is_not_seen(history: list[tuple[dict[str, str], set[str]]]) -> None:
    texts: dict[str, str] = {}
    for put, drop in history:
        texts = {name: text for name, text in texts.items() if name not in drop} | put
    at_once = Snapshot.EMPTY.replace(tokens_of(texts))
    one_by_one = after(Snapshot.EMPTY, (({name: text}, set()) for name, text in sorted(texts.items())))
    assert answers([after(Snapshot.EMPTY, history)]) == answers([at_once]) == answers([one_by_one])


@settings(max_examples=60, deadline=None)
@given(st.lists(changes, min_size=1, max_size=6))
def test_snapshots_are_never_changed(history: list[tuple[dict[str, str], set[str]]]) -> None:
    snapshot = Snapshot.EMPTY
    seen = []
    for step in history:
        seen.append((snapshot, snapshot.names, answers([snapshot])))
        snapshot = after(snapshot, [step])
    for old, old_names, old_answers in seen:
        assert old.names == old_names
        assert answers([old]) == old_answers


@settings(max_examples=60, deadline=None)
@given(st.lists(changes, max_size=6), st.sampled_from(TEXTS), st.integers(1, 5))
def test_whose_hook_holds_enough_of_some_words_is_found_after_any_history(
    steps: list[tuple[dict[str, str], set[str]]], words: str, least: int
) -> None:
    standing: dict[str, str] = {}
    snapshot = Snapshot.EMPTY
    for put, drop in steps:
        snapshot = snapshot.replace({name: forms.words(name, text, words) for name, text in put.items()}, drop)
        standing = {name: text for name, text in standing.items() if name not in drop} | put
    keys = set(tokenize(words))
    expected = {name for name, text in standing.items() if len(keys & set(tokenize(text))) >= least}
    found = hooked(snapshot, keys, least)
    assert found == sorted(set(found))
    assert expected <= set(found) <= standing.keys()


def test_a_note_whose_body_alone_holds_the_words_of_a_hook_is_not_looked_at() -> None:
    hook = "forge harbour token runner seal"
    notes = {f"n{number}": forms.words(f"n{number}", f"other {number}", f"{hook} words") for number in range(200)}
    notes["twin"] = forms.words("twin", "forge harbour token runner seals", "no word of it")
    snapshot = Snapshot.EMPTY.replace(notes)
    assert hooked(snapshot, set(tokenize(hook)), 4) == ["twin"]
    assert hooked(snapshot, set(tokenize(hook)), 5) == []
    assert hooked(snapshot, {"forge"}, 1) == ["twin"]
    assert hooked(snapshot, {"nowhere"}, 1) == []
