"""Every near pair, and no other: as comparing all with all. SPEC section 3."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from memd.alike import NEAR, pairs
from memd.tokens import jaccard

WORDS = st.sampled_from(["harbour", "crane", "tide", "gauge", "forge", "数据", "v2.8.3", "the", "lamp", "weir"])
TEXTS = st.lists(st.lists(WORDS, max_size=10).map(" ".join), max_size=8)


@given(texts=TEXTS, near=st.sampled_from([0.3, NEAR, 1.0]))
def test_the_pairs_are_those_of_the_measure(texts: list[str], near: float) -> None:
    named = {f"{at}": text for at, text in enumerate(texts)}
    expected = {(a, b) for a, b in combinations(named, 2) if jaccard(named[a], named[b]) >= near}
    found = list(pairs(named, near))
    assert {tuple(sorted(pair, key=int)) for pair in found} == expected
    assert len(found) == len(set(found))
