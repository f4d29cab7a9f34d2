"""Which texts nearly repeat another. Law: every text is found that `tokens.jaccard` calls alike to one before it.

Comparing all with all takes a minute at 10,000 notes. Two sets that share so much of their words share one of their
rarest: only texts that meet there are compared, and each until it has met one it repeats: of as many notes with one
hook the pairs would be 50 million. Pure. SPEC section 3, the near-duplicate.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from memd.tokens import tokenize

NEAR = 0.7
"""The Jaccard index of their tokens from which two hooks are alike (SPEC 3, 9)."""


def twins(texts: Mapping[str, str], near: float = NEAR) -> Iterator[tuple[str, str]]:
    """Each text's name that is alike to one before it, after the name of one such, in the order they are given in."""
    sets = {name: frozenset(tokenize(text)) for name, text in texts.items()}
    frequency = Counter(token for tokens in sets.values() for token in tokens)
    firsts: dict[frozenset[str], str] = {}
    met: defaultdict[str, list[str]] = defaultdict(list)
    for name, tokens in sets.items():
        if not tokens:
            continue
        if (first := firsts.setdefault(tokens, name)) != name:
            yield first, name
            continue
        # Fewer than `near` of its tokens are left after these: who shares none of them is not alike.
        rarest = sorted(tokens, key=lambda token: (frequency[token], token))
        rarest = rarest[: len(tokens) - math.ceil(near * len(tokens)) + 1]
        others = (other for token in rarest for other in met[token])
        twin = next((other for other in others if _are_alike(tokens, sets[other], near)), None)
        if twin is not None:
            yield twin, name
        for token in rarest:
            met[token].append(name)


def _are_alike(one: frozenset[str], other: frozenset[str], near: float) -> bool:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) >= near
