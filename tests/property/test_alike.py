"""Every text that nearly repeats one before it, and no other: as comparing all with all. SPEC section 3."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from memd.alike import NEAR, twins
from memd.tokens import jaccard

WORDS = st.sampled_from(["harbour", "crane", "tide", "gauge", "forge", "数据", "v2.8.3", "the", "lamp", "weir"])
TEXTS = st.lists(st.lists(WORDS, max_size=10).map(" ".join), max_size=8)


@given(texts=TEXTS, near=st.sampled_from([0.3, NEAR, 1.0]))
def test_the_twins_are_those_of_the_measure(texts: list[str], near: float) -> None:
    named = {f"{at}": text for at, text in enumerate(texts)}
    pairs = [(a, b) for a, b in combinations(named, 2) if jaccard(named[a], named[b]) >= near]
    found = list(twins(named, near))
    assert set(found) <= set(pairs)
    assert [name for _, name in found] == sorted({name for _, name in pairs}, key=int)


def test_as_many_notes_of_one_hook_are_each_told_once() -> None:
    hooks = {f"{at}": "the crane stalls at low tide" for at in range(5_000)}
    assert list(twins(hooks)) == [("0", f"{at}") for at in range(1, 5_000)]  # the pairs were 12 million
