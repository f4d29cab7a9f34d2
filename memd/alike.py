"""Which texts nearly repeat each other. Law: every pair is found that `tokens.jaccard` calls alike, and no other.

Comparing all with all takes a minute at 10,000 notes. Two sets that share so much of their words share one of their
rarest: only texts that meet there are compared. Pure. SPEC section 3, the near-duplicate.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from memd.tokens import tokenize

NEAR = 0.7
"""The Jaccard index of their tokens from which two hooks are alike (SPEC 3, 9)."""


def pairs(texts: Mapping[str, str], near: float = NEAR) -> Iterator[tuple[str, str]]:
    """The names of each two texts that are alike, in the order the texts are given in."""
    sets = {name: frozenset(tokenize(text)) for name, text in texts.items()}
    frequency = Counter(token for tokens in sets.values() for token in tokens)
    met: defaultdict[str, list[str]] = defaultdict(list)
    for name, tokens in sets.items():
        # Fewer than `near` of its tokens are left after these: who shares none of them is not alike.
        rarest = sorted(tokens, key=lambda token: (frequency[token], token))
        rarest = rarest[: len(tokens) - math.ceil(near * len(tokens)) + 1]
        others = dict.fromkeys(other for token in rarest for other in met[token])
        for other in others:
            shared = len(tokens & sets[other])
            if shared / (len(tokens) + len(sets[other]) - shared) >= near:
                yield other, name
        for token in rarest:
            met[token].append(name)
