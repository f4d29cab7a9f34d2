"""Shelves of postings rank as `bm25` does, however they were built, merged or packed. SPEC sections 6 and 11."""

from array import array
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd import bm25, forms, postings
from memd.forms import Asked, Words
from memd.postings import EMPTY, Packed, Shelf
from memd.snapshots import Snapshot
from memd.tokens import query_terms, tokenize

WORDS = st.sampled_from(
    [
        *("harbour", "harbours", "crane", "tide", "tides", "gauge", "tidegauge", "数据库", "重跑", "看", "café"),
        *("v2.8.3", "snake_case", "snakeCase", "cases/cases.py", "the", "заметками", "заметка"),
    ]
)
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)
GROUPS = st.lists(st.lists(TEXTS, max_size=6), min_size=1, max_size=4)


def short(raw: bytes) -> bytes:
    return raw[:-1]


def shorter(raw: bytes) -> bytes:
    return raw[:-8]


def emptied(_raw: bytes) -> bytes:
    return b""


def longer(raw: bytes) -> bytes:
    return raw + b"\xff" * 8


def shelves_of(groups: list[list[str]]) -> list[Shelf]:
    return [postings.build(map(words, group)) for group in groups]


def words(text: str) -> Words:
    return Words(tokenize(text), forms.humps(text))


def plain(query: str) -> list[Asked]:
    return list(forms.plain(query_terms(query)))


@given(groups=GROUPS, query=TEXTS, struck=st.sets(st.integers(0, 5)), is_rich=st.booleans())
def test_scores_are_those_of_the_notes(
    groups: list[list[str]], query: str, struck: set[int], *, is_rich: bool
) -> None:
    gone = {at: {place for place in struck if place < len(group)} for at, group in enumerate(groups)}
    snapshots = [
        Snapshot.EMPTY.replace(
            {f"{place:03}": words(text) for place, text in enumerate(group) if place not in gone[at]}
        )
        for at, group in enumerate(groups)
    ]
    asked = list(forms.query(query).asked) if is_rich else plain(query)
    scored = bm25.rich(forms.query(query), snapshots) if is_rich else bm25.rank(query_terms(query), snapshots)
    expected = [(hit.store, int(hit.name), hit.score) for hit in scored.top()]
    ranking = postings.rank(asked, shelves_of(groups), gone, is_rich=is_rich)
    found = ranking.top(len(expected) + 1)
    assert ranking.total == len(expected)
    assert {hit[:2]: pytest.approx(hit[2]) for hit in expected} == {hit[:2]: hit[2] for hit in found}
    assert [score for _, _, score in found] == sorted((score for _, _, score in found), reverse=True)


@given(groups=GROUPS, query=TEXTS, limit=st.integers(1, 4), offset=st.integers(0, 4))
def test_pages_are_parts_of_the_whole(groups: list[list[str]], query: str, limit: int, offset: int) -> None:
    ranking = postings.rank(plain(query), shelves_of(groups), {})
    assert ranking.top(limit, offset) == ranking.top(ranking.total + 1)[offset : offset + limit]


@given(groups=GROUPS, query=TEXTS)
def test_merged_is_built_at_once_and_packed_is_unpacked(groups: list[list[str]], query: str) -> None:
    whole = postings.build(words(text) for group in groups for text in group)
    merged = postings.merge(shelves_of(groups))
    assert postings.pack(merged) == postings.pack(whole)
    again = postings.unpack(postings.pack(whole))
    assert postings.pack(again) == postings.pack(whole)
    for asked, is_rich in ((plain(query), False), (forms.query(query).asked, True)):
        expected = postings.rank(asked, [whole], {}, is_rich=is_rich).top(99)
        assert postings.rank(asked, [again], {}, is_rich=is_rich).top(99) == expected


def test_no_text_is_no_hit() -> None:
    assert postings.rank(plain("crane"), [], {}).top(5) == []
    assert postings.rank(plain("crane"), [EMPTY], {}).top(5) == []
    assert postings.rank((), shelves_of([["crane"]]), {}).top(5) == []


def test_a_packed_shelf_holds_no_word() -> None:
    packed = postings.pack(postings.build([words("the oystercatchers nestled")]))
    raw = b"".join(getattr(packed, name) for name in Packed.__struct_fields__)
    assert b"oyster" not in raw
    assert b"nestl" not in raw


@pytest.mark.parametrize(
    ("column", "damage"),
    [
        *((column, damage) for column in Packed.__struct_fields__ for damage in (short, shorter, emptied)),
        *((column, longer) for column in Packed.__struct_fields__ if column != "lengths"),
    ],
)
def test_bytes_that_are_no_shelf_are_refused(column: str, damage: Callable[[bytes], bytes]) -> None:
    packed = postings.pack(postings.build([words("cranes tides cranes"), words("tides gauged")]))
    columns = {name: getattr(packed, name) for name in Packed.__struct_fields__}
    with pytest.raises(ValueError):  # noqa: PT011 - numpy's own words for some of them
        postings.unpack(Packed(**{**columns, column: damage(columns[column])}))


@given(first=st.lists(st.integers(0, 3), max_size=8), second=st.lists(st.integers(0, 3), max_size=8))
def test_what_stood_before_is_found(first: list[int], second: list[int]) -> None:
    def columns(numbers: list[int]) -> tuple["array[int]", "array[int]"]:
        return array("Q", numbers), array("Q", [number * 7 for number in numbers])

    found = postings.repeated([[columns(first)], [columns(second)]])
    seen: set[int] = set()
    expected: dict[int, set[int]] = {}
    for at, numbers in enumerate((first, second)):
        for place, number in enumerate(numbers):
            if number in seen:
                expected.setdefault(at, set()).add(place)
            seen.add(number)
    assert found == expected
