"""Hypothesis over a target's law: `python -m tests.fuzz.examples TARGET N`. Law: built of what the room knows.

A fuzzer grows bytes from what it saw them do; these are built of a target's words and of pieces of its seeds, so that
whole ones and damaged ones are about as frequent. Of the envelope they are also whole JSON documents.
"""

import json
import logging
import sys
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from .corpus import tell
from .targets import TARGETS
from .worker import ROOT

_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.integers().map(lambda n: n * 10**20)
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=8,
)


def built(name: str) -> st.SearchStrategy[bytes]:
    """Bytes for a target's law."""
    target = TARGETS[name]
    seeds = st.sampled_from(target.seeds)
    ends = st.tuples(st.integers(0, 300), st.integers(0, 300))
    pieces = st.builds(lambda seed, cut: seed[min(cut) : max(cut)], seeds, ends)
    part = st.one_of(st.sampled_from(target.words), pieces, pieces, seeds, st.binary(max_size=6))
    joined = st.lists(part, max_size=12).map(b"".join)
    return st.one_of(joined, _lines()) if name == "envelope" else joined


def _lines() -> st.SearchStrategy[bytes]:
    """Request lines: whole JSON, most of it nearly right."""
    from . import laws

    methods = st.sampled_from([*laws.METHODS, "no.such"])
    names = st.sampled_from(["value", "limit", "kind", "cwd", "session", "name", "query", "markdown", "x"])
    request = st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.one_of(st.just("2.0"), st.just("2.0"), _VALUES),
            "id": _VALUES,
            "method": st.one_of(methods, methods, _VALUES),
            "params": st.one_of(st.dictionaries(names, _VALUES, max_size=3), _VALUES),
        },
    )
    message = st.one_of(request, st.lists(st.one_of(request, _VALUES), max_size=5))
    return st.builds(
        lambda value, ascii_only: json.dumps(value, ensure_ascii=ascii_only).encode(errors="surrogatepass"),
        message,
        st.booleans(),
    )


def run(name: str, examples: int) -> None:
    """Try a law on so many examples. Raises what the law raises, on the simplest input that Hypothesis finds."""
    sys.path[:0] = [place for place in (str(ROOT / "tests"),) if place not in sys.path]
    from . import laws

    check: Callable[[bytes], None] = getattr(laws, TARGETS[name].law)
    quiet = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    quiet(given(built(name))(check))()


if __name__ == "__main__":
    logging.disable()  # an incident is what a verb that fails is for
    run(sys.argv[1], int(sys.argv[2]))
    tell(f"{sys.argv[1]}: {sys.argv[2]} examples of Hypothesis")
