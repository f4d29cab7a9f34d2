"""Laws of the ranker `rich`, against its formula written down as `bm25.rich` tells it."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd import forms
from memd.bm25 import FEW, K1, RARE, B, Scored, explain, rich
from memd.forms import HOOK, NAME, WORD, Asked, Words
from memd.snapshots import Snapshot
from memd.tokens import spread_keys, tokenize

TEXTS = [
    ("", ""),
    ("the of and", ""),
    ("Retries", "it retries, it retried"),
    ("alpha beta", "gamma alpha scripts/forge_pr.py"),
    ("", "beta " * 40 + "forge-pr renderBlock"),
    ("render the block", "数据库 2.8.3 filenames"),
    ("数据 看看 看 café", "fooBar foo_bar foobar file names"),
    ("库 데이터베이스", "заметка заметками delta delta"),
    ("", " ".join(f"w{number} word{number}s" for number in range(60))),
]
QUERIES = [
    "retry",
    "retries beta alpha",
    "看",
    "数据库 delta",
    "scripts/forge_pr.py w7 gamma 이터",
    "render block file name",
    "fooBar заметки",
    "n3",
    "nowhere",
]

names = st.integers(0, 150).map("n{}".format)
notes = st.dictionaries(names, st.sampled_from(TEXTS), max_size=12) | st.builds(
    lambda first, count, text: {f"n{at}": text for at in range(first, first + count)},
    st.integers(0, 150),
    st.integers(30, 90),
    st.sampled_from(TEXTS),
)
changes = st.tuples(notes, st.sets(names, max_size=60))
Notes = Mapping[str, tuple[str, str]]


def words_of(texts: Notes) -> dict[str, Words]:
    return {name: forms.words(name, *text) for name, text in texts.items()}


def times(words: Words, is_form: bool) -> dict[str, int]:
    """How often a note holds each key or form, its fields weighed."""
    found: dict[str, int] = {}
    for field, weight in ((words.name, NAME), (words.hook, HOOK), (words.body, 1)):
        for key in field:
            for one in forms.forms(key) if is_form else (key, *spread_keys(key)):
                found[one] = found.get(one, 0) + weight
    return found


def exact(query: str, stores: Sequence[Notes]) -> list[Scored]:
    asked = forms.query(query)
    docs = {(store, name): words for store, texts in enumerate(stores) for name, words in words_of(texts).items()}
    held = {at: (times(words, False), times(words, True)) for at, words in docs.items()}
    sizes = {at: sum(len(forms.forms(key)) for key in (*words.tokens, *words.humps)) for at, words in docs.items()}

    def frequency(key: str, is_form: bool) -> int:
        return sum(key in tables[is_form] for tables in held.values())

    def idf(key: str, is_form: bool) -> float:
        n = frequency(key, is_form)
        return math.log(1 + (len(docs) - n + 0.5) / (n + 0.5)) if n else 0.0

    top = 0.0
    scores = dict.fromkeys(docs, 0.0)
    for one, share in worth_asking(asked.asked, frequency, len(docs)):
        above = sum(idf(form, True) for form in one.above)
        top += share * idf(one.key, one.is_form) + above
        for at, tables in held.items():
            tf = tables[one.is_form].get(one.key, 0)
            if tf:
                norm = K1 * (1 - B + B * sizes[at] / (sum(sizes.values()) / len(docs)))
                scores[at] += share * idf(one.key, one.is_form) * tf / (tf + norm) + above
    for store, name in docs:
        if name in asked.names and top:
            scores[store, name] += top
    return [Scored(store, name, score) for (store, name), score in scores.items() if score > 0]


def worth_asking(
    asked: Iterable[Asked], frequency: Callable[[str, bool], int], count: int
) -> Iterator[tuple[Asked, float]]:
    """What some note holds and is asked for, with its share."""
    most = max(FEW, count // RARE)
    as_one = {
        one.beside
        for one in asked
        if one.beside and 0 < frequency(one.key, one.is_form) == frequency(one.beside, True)
    }
    for one in asked:
        n = frequency(one.key, one.is_form)
        common = n > most and (one.beside is not None or one.kind == "part")
        if n and not common and one.beside not in as_one:
            yield one, one.share + (WORD if one.is_form and one.key in as_one else 0)


def answers(snapshots: Sequence[Snapshot]) -> list[list[Scored]]:
    return [rich(forms.query(query), snapshots).top() for query in QUERIES]


def after(snapshot: Snapshot, steps: Iterable[tuple[Notes, set[str]]]) -> Snapshot:
    for put, drop in steps:
        snapshot = snapshot.replace(words_of(put), drop)
    return snapshot


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), changes), max_size=6))
def test_any_history_ranks_by_the_formula(history: list[tuple[int, tuple[Notes, set[str]]]]) -> None:
    snapshots = [Snapshot.EMPTY, Snapshot.EMPTY]
    stores: list[dict[str, tuple[str, str]]] = [{}, {}]
    for store, (put, drop) in history:
        snapshots[store] = after(snapshots[store], [(put, drop)])
        stores[store] = {name: text for name, text in stores[store].items() if name not in drop} | dict(put)
    for query, hits in zip(QUERIES, answers(snapshots), strict=True):
        right = {(hit.store, hit.name): hit.score for hit in exact(query, stores)}
        assert {(hit.store, hit.name): hit.score for hit in hits} == pytest.approx(right, abs=1e-9, rel=0)
        assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.store, hit.name))


@settings(max_examples=30, deadline=None)
@given(st.lists(changes, max_size=5))
def test_how_the_notes_came_is_not_seen(history: list[tuple[Notes, set[str]]]) -> None:
    texts: dict[str, tuple[str, str]] = {}
    for put, drop in history:
        texts = {name: text for name, text in texts.items() if name not in drop} | dict(put)
    at_once = Snapshot.EMPTY.replace(words_of(texts))
    one_by_one = after(Snapshot.EMPTY, (({name: text}, set()) for name, text in sorted(texts.items())))
    assert answers([after(Snapshot.EMPTY, history)]) == answers([at_once]) == answers([one_by_one])


@settings(max_examples=30, deadline=None)
@given(st.lists(changes, max_size=4), st.text(alphabet="ab_./-AB看 ", max_size=30), st.sampled_from(QUERIES))
def test_what_is_explained_sums_up_to_the_score(history: list[tuple[Notes, set[str]]], body: str, query: str) -> None:
    mine = {"mine": ("", f"{body} {query}")}
    snapshot = after(Snapshot.EMPTY, [*history, (mine, set())])
    ranking = rich(forms.query(f"{query} {body}"), [snapshot])
    score = next((hit.score for hit in ranking.top() if hit.name == "mine"), 0.0)
    gave = explain(ranking, "mine", words_of(mine)["mine"])
    assert sum(one.score for one in gave) == pytest.approx(score, abs=1e-9, rel=0)


@given(st.text(max_size=200))
def test_no_text_is_without_forms_or_humps_that_parse(text: str) -> None:
    for key in (*tokenize(text), *forms.humps(text)):
        found = forms.forms(key)
        assert all(found)
        assert len(found) <= len(forms.parts_of(key))
    assert len({(one.is_form, one.key) for one in forms.query(text).asked}) == len(forms.query(text).asked)
