"""The ranking against the cases, and what a snapshot shares with the one before."""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memd.bm25 import Ranking, rank
from memd.forms import Words
from memd.snapshots import Snapshot
from memd.tokens import query_terms, tokenize

CASES = json.loads((Path(__file__).parents[1] / "cases" / "bm25.json").read_text("utf-8"))
QUERIES = [(case["texts"], query) for case in CASES for query in case["queries"]]


def index(texts: Mapping[str, str]) -> Snapshot:
    return Snapshot.EMPTY.replace({name: Words(tokenize(text)) for name, text in texts.items()})


def search(query: str, *snapshots: Snapshot) -> Ranking:
    return rank(query_terms(query), snapshots)


def names(ranking: Ranking) -> list[str]:
    return [hit.name for hit in ranking.top()]


def numbered(count: int, text: str = "filler") -> dict[str, str]:
    return {f"n{number:04}": text for number in range(count)}


@pytest.mark.parametrize("spare", [0, 40, 400], ids=["tail", "segment", "segments"])
@pytest.mark.parametrize(("texts", "case"), QUERIES, ids=[query["query"] for _, query in QUERIES])
def test_cases(texts: list[str], case: dict[str, Any], spare: int) -> None:
    """Whether the notes lie in the tail or in segments with many dead ones is not seen."""
    snapshot = index(numbered(spare)).replace({str(at): Words(tokenize(text)) for at, text in enumerate(texts)})
    ranking = search(case["query"], snapshot.replace({}, numbered(spare)))
    hits = [(int(hit.name), hit.score) for hit in ranking.top()]
    assert [at for at, _ in hits] == [at for at, _ in case["hits"]]
    assert [score for _, score in hits] == pytest.approx([score for _, score in case["hits"]], abs=1e-9, rel=0)
    assert ranking.total == len(hits)


@pytest.mark.parametrize("spare", [0, 400], ids=["tail", "segment"])
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("面关", "桌面关闭后不要重启"),
        ("gen-itgc", "重跑gen-itgc后再提交"),
        ("重跑gen-itgc后", "重跑gen-itgc后再提交"),
        ("배포를", "금요일에는 배포를 하지 않는다"),
        ("배포", "금요일에는 배포를 하지 않는다"),
        ("API", "调用ＡＰＩ之前先登录"),
        ("ＡＰＩ", "call the API with a token"),
        ("café", "the cafe\u0301 in Lyon takes no cards"),
        ("cafe\u0301", "the café in Lyon takes no cards"),
        ("2.8.3", "pinned to 2.8.3 since 2.9 breaks"),
        ("snake_case", "columns are snake_case"),
        ("C:\\Users\\dev\\build.cmd", "run C:\\Users\\dev\\build.cmd first"),
        ("猫", "黑猫在箱子里"),
        ("用", "用"),
        ("か\u309a", "か\u309aき"),
    ],
)
def test_what_other_tools_missed_is_found_and_ranked_first(query: str, text: str, spare: int) -> None:
    others = {
        "build": "run the users build first with dev tools, api v2.8 and snake or case",
        "cafe": "cafe without an accent",
        "han": "桌子和关系，重新跑步，之后",
        "hangul": "배를 타고 포구로",
        "kana": "かき",
    }
    snapshot = index(numbered(spare) | others | {"right": text})
    assert search(query, snapshot).top(1)[0].name == "right"


def test_two_snapshots_are_one_corpus() -> None:
    repo, everywhere = index({"a": "alpha beta", "b": "beta"}), index({"c": "alpha alpha gamma", "d": "delta"})
    both = index({"a": "alpha beta", "b": "beta", "c": "alpha alpha gamma", "d": "delta"})
    apart, together = search("alpha beta", repo, everywhere), search("alpha beta", both)
    assert [(hit.name, hit.score) for hit in apart.top()] == [(hit.name, hit.score) for hit in together.top()]
    assert {hit.name: hit.store for hit in apart.top()} == {"a": 0, "b": 0, "c": 1}


@pytest.mark.parametrize("spare", [0, 100], ids=["tail", "segment"])
def test_ties_keep_store_order_then_name_order(spare: int) -> None:
    repo = index(numbered(spare)).replace({name: Words(["same"]) for name in ("b", "Z", "é", "a")})
    everywhere = index({"a": "same", "0": "same"})
    hits = search("same", repo, everywhere).top()
    assert [(hit.store, hit.name) for hit in hits] == [(0, "Z"), (0, "a"), (0, "b"), (0, "é"), (1, "0"), (1, "a")]


def test_a_tie_does_not_see_where_a_note_lies() -> None:
    """The tail is scored by Python, segments by numpy; one odd bit would order notes by their age."""
    text = "same words again same odd number of them here scripts/a.py"
    snapshot = index(numbered(100, text))
    for name in ("n0050", "n0007", "m"):
        snapshot = snapshot.replace({name: Words(tokenize(text))})
    hits = search("odd scripts/a.py same number again words", snapshot).top()
    assert len({hit.score for hit in hits}) == 1
    assert [hit.name for hit in hits] == ["m", *numbered(100)]


def test_pages_are_the_whole_list_cut() -> None:
    snapshot = index({f"n{at}": "alpha " * (at % 5 + 1) + "beta" for at in range(50)} | {"off": "gamma"})
    ranking = search("alpha", snapshot)
    every = ranking.top()
    assert ranking.total == len(every) == 50
    assert [ranking.top(7, offset) for offset in range(0, 49, 7)] == [every[at : at + 7] for at in range(0, 49, 7)]
    assert ranking.top(100) == every
    assert ranking.top(None, 48) == every[48:]
    assert ranking.top(5, 50) == ranking.top(0) == []


@pytest.mark.parametrize("query", ["", "the of", "missing"])
def test_nothing_to_find(query: str) -> None:
    for snapshots in ([], [Snapshot.EMPTY], [index({"a": ""})], [index({"a": "word"}), Snapshot.EMPTY]):
        ranking = search(query, *snapshots)
        assert ranking.total == 0
        assert ranking.top() == ranking.top(5) == []


def test_a_query_term_counts_once() -> None:
    snapshot = index({"a": "alpha beta", "b": "gamma"})
    terms = query_terms("alpha")
    assert rank([*terms, *terms], [snapshot]).top() == rank(terms, [snapshot]).top()


def test_empty_notes_count_as_notes() -> None:
    few, many = index({"a": "alpha"}), index({"a": "alpha"} | numbered(50, "of the"))
    assert len(many) == 51
    assert search("alpha", many).top()[0].score != search("alpha", few).top()[0].score


@pytest.mark.parametrize("size", [3, 100], ids=["tail", "segment"])
def test_a_replaced_note_is_found_by_its_new_words_only(size: int) -> None:
    snapshot = index(numbered(size, "old words"))
    after = snapshot.replace({"n0001": Words(["new"])})
    assert names(search("new", after)) == ["n0001"]
    assert "n0001" not in names(search("old", after))
    assert search("old", after).total == size - 1
    assert len(after) == size
    assert after.tokens == 2 * size - 1
    assert after.names == list(numbered(size))


@pytest.mark.parametrize("size", [3, 100], ids=["tail", "segment"])
def test_a_dropped_note_is_gone_and_an_unknown_one_is_passed_over(size: int) -> None:
    after = index(numbered(size, "words")).replace({}, {"n0001", "never"})
    assert len(after) == size - 1
    assert after.tokens == size - 1
    assert "n0001" not in after.names
    assert "n0001" not in names(search("words", after))
    assert after.replace({}, ["n0001"]).names == after.names
    assert len(after.replace({}, numbered(size))) == 0


def test_a_name_both_put_and_dropped_is_put() -> None:
    assert index({"a": "old"}).replace({"a": Words(["new"])}, ["a"]).names == ["a"]


def test_a_snapshot_keeps_its_answers() -> None:
    before = index(numbered(200, "words"))
    answers = search("words", before).top()
    before.replace({"n0000": Words(["words", "more"])}, ["n0001"])
    before.replace({f"m{at}": Words(["words"]) for at in range(300)})
    assert search("words", before).top() == answers
    with pytest.raises(ValueError, match="read-only"):
        before.parts[0].segment.counts[0] = 5


def test_a_save_shares_the_postings() -> None:
    before = index(numbered(1000, "words"))
    after = before
    for at in range(20):
        after = after.replace({f"n{at:04}": Words(["new"])})
    assert after.parts[0].segment is before.parts[0].segment
    assert len(after.tail) == 20


def test_a_segment_more_than_half_dead_is_written_again() -> None:
    before = index(numbered(1000, "words"))
    half, less = before.replace({}, numbered(500)), before.replace({}, numbered(501))
    assert half.parts[0].segment is before.parts[0].segment
    assert list(less.parts[0].segment.names) == less.names
    assert less.replace({}, less.names).parts == ()


def test_segments_stay_few_and_mostly_alive() -> None:
    snapshot = index(numbered(2000, "words"))
    for at in range(3000):
        snapshot = snapshot.replace({f"n{at % 700:04}": Words(["words", str(at)])})
        sizes = [part.notes for part in snapshot.parts]
        assert all(longer >= 8 * shorter for longer, shorter in itertools.pairwise(sizes))
        assert all(2 * part.notes >= len(part.segment.names) for part in snapshot.parts)
        assert len(snapshot.tail) <= 32
    assert len(snapshot) == 2000
    assert search("words", snapshot).total == 2000
    assert names(search("2999", snapshot)) == ["n0199"]
    assert names(search("2299", snapshot)) == []
