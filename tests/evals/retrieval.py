"""The rankers on retrieval sets, beside what people would pick instead. Law: all in one run, on the same texts.

    python -m tests.evals.retrieval [--sets DIR] [--parts] [NAME…]

A set is a directory with `docs.jsonl` and `queries.jsonl`, as they are or gzipped; `--sets` adds those of a directory
(Cranfield, say, which has no licence to be shipped under). `functions`, the held-out set, is made of the standard
library of the Python that runs this: a function without its docstring is to be found by the docstring's first line.

A document is put into a store as a hand-written file is: a note without a block, whose first line is its hook. `as
text` it is nothing but a body. Figures are nDCG@10 / MRR. `--parts` tells what each part of `rich` does. Exits 1 when
`rich` is worse than `plain` on a set, or below what it has to reach.
"""

import argparse
import ast
import gzip
import hashlib
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar
from unittest.mock import patch

import msgspec

from memd import bm25, forms, note, segments, tokens
from memd.bm25 import Ranking
from memd.snapshots import Snapshot

from .others import Search, others

T = TypeVar("T")

SETS = Path(__file__).parent / "sets"
HELD_OUT = "functions"
DEPTH = 100
"""Hits looked at; a right one further down counts nothing."""

REACH: Mapping[str, tuple[float, float]] = {
    "cosqa_dev": (0.40, 0.0),
    "cranfield": (0.395, 0.0),
    "xquad_en": (0.969, 0.0),
    "xquad_zh": (0.0, 0.955),
    "xquad_ru": (0.0, 0.87),
}
"""What `rich` has to reach, as nDCG@10 and MRR."""


class Doc(msgspec.Struct, frozen=True):
    """A document."""

    id: str
    text: str


class Query(msgspec.Struct, frozen=True):
    """A query and the documents that answer it."""

    id: str
    text: str
    relevant: frozenset[str]


class Given(NamedTuple):
    """A set."""

    docs: Sequence[Doc]
    queries: Sequence[Query]


class Figures(NamedTuple):
    """Means over the queries of a set."""

    ndcg: float
    mrr: float

    def __str__(self) -> str:
        """A cell of the table."""
        return f"{self.ndcg:.4f}/{self.mrr:.4f}"


def main() -> int:
    """Print the tables; 1 when `rich` falls short."""
    options = _parser().parse_args()
    sets = {name: one for name, one in load(options.sets).items() if not options.names or name in options.names}
    print_line("", sets)
    rows = dict(rankings(sets))
    if options.parts:
        for name, row in without_parts(sets):
            print_line(name, {key: str(row[key]) for key in sets})
    return verdict(rows["rich"], rows["plain"])


def rankings(sets: Mapping[str, Given]) -> Iterator[tuple[str, Mapping[str, Figures]]]:
    """Each way to rank with its figures, printed as they come."""
    made = {name: others([doc.text for doc in one.docs]) for name, one in sets.items()}
    as_notes = {name: index(one.docs) for name, one in sets.items()}
    as_text = {name: index(one.docs, is_note=False) for name, one in sets.items()}
    ways: dict[str, Callable[[str], Search]] = {
        "plain, as text": lambda name: by(plain, as_text[name], sets[name].docs),
        "rich, as text": lambda name: by(rich, as_text[name], sets[name].docs),
        "plain": lambda name: by(plain, as_notes[name], sets[name].docs),
        "rich": lambda name: by(rich, as_notes[name], sets[name].docs),
    }
    for other in next(iter(made.values())):
        ways[other] = lambda name, other=other: made[name][other]  # type: ignore[misc]
    for way, search in ways.items():
        row = {name: figures(one, search(name)) for name, one in sets.items()}
        print_line(way, {key: str(value) for key, value in row.items()})
        yield way, row


def without_parts(sets: Mapping[str, Given]) -> Iterator[tuple[str, Mapping[str, Figures]]]:
    """`rich` without each of its parts."""
    for name, part in PARTS.items():
        with part():
            yield (
                f"without {name}",
                {key: figures(one, by(rich, index(one.docs), one.docs)) for key, one in sets.items()},
            )


def plain(query: str, snapshot: Snapshot) -> Ranking:
    """The ranker `plain`."""
    return bm25.rank(tokens.query_terms(query), [snapshot])


def rich(query: str, snapshot: Snapshot) -> Ranking:
    """The ranker `rich`."""
    return bm25.rich(forms.query(query), [snapshot])


def index(docs: Sequence[Doc], *, is_note: bool = True) -> Snapshot:
    """The documents as notes, or as nothing but bodies. They have no names: what a set calls them says nothing."""
    parsed = (note.parse(doc.id, doc.text.encode()) if is_note else None for doc in docs)
    words = (
        forms.words("", one.hook, one.body) if one else forms.words("", "", doc.text)
        for doc, one in zip(docs, parsed, strict=True)
    )
    return Snapshot.EMPTY.replace({f"{at:06}": one for at, one in enumerate(words)})


def by(ranker: Callable[[str, Snapshot], Ranking], snapshot: Snapshot, docs: Sequence[Doc]) -> Search:
    """A ranker as a way to search."""
    return lambda query, limit: [int(hit.name) for hit in ranker(query, snapshot).top(min(limit, len(docs)))]


def figures(one: Given, search: Search) -> Figures:
    """The figures of a set."""
    gains, firsts = [], []
    for query in one.queries:
        right = [one.docs[at].id in query.relevant for at in search(query.text, DEPTH)]
        best = sum(1 / math.log2(at + 2) for at in range(min(10, len(query.relevant))))
        gains.append(sum(1 / math.log2(at + 2) for at, is_right in enumerate(right[:10]) if is_right) / best)
        firsts.append(next((1 / (at + 1) for at, is_right in enumerate(right) if is_right), 0.0))
    return Figures(sum(gains) / len(gains), sum(firsts) / len(firsts))


def load(more: Path | None) -> dict[str, Given]:
    """The sets by name, the held-out one last."""
    places = sorted(path for root in (SETS, more) if root for path in root.iterdir() if path.is_dir())
    return {path.name: Given(read(path, "docs", Doc), read(path, "queries", Query)) for path in places} | {
        HELD_OUT: functions()
    }


def read(place: Path, name: str, kind: type[T]) -> list[T]:
    """A file of a set."""
    packed = place / f"{name}.jsonl.gz"
    raw = gzip.decompress(packed.read_bytes()) if packed.exists() else (place / f"{name}.jsonl").read_bytes()
    return [msgspec.json.decode(line, type=kind) for line in raw.splitlines() if line]


def functions() -> Given:
    """The functions of the standard library, and for a quarter of them the first line of their docstring."""
    docs: dict[str, Doc] = {}
    queries: list[Query] = []
    root = Path(os.__file__).parent
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).as_posix()
        if not place.startswith("site-packages") and "/test" not in f"/{place}":
            for line, code in _functions_of(path.read_text("utf-8", "replace")):
                if code not in docs:
                    docs[code] = Doc(str(len(docs)), code)
                    if hashlib.sha256(line.encode()).digest()[0] < 64:
                        queries.append(Query(docs[code].id, line, frozenset({docs[code].id})))
    return Given(list(docs.values()), queries)


def _functions_of(source: str) -> Iterator[tuple[str, str]]:
    """For each function with a docstring of some words its first line, and the function without it."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    lines = source.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(node.body) > 1:
            said = (ast.get_docstring(node) or "").partition("\n")[0]
            if len(said.split()) >= 4:
                begin, end = node.body[0].lineno - 1, node.body[0].end_lineno
                yield said, "\n".join(lines[node.lineno - 1 : begin] + lines[end : node.end_lineno])


@contextmanager
def changed(**values: object) -> Iterator[None]:
    """Constants of `forms`, `segments` and `bm25` with other values; a function's name stands for the function."""
    patches = [patch.object(room, name, value) for name, value in values.items() for room in _rooms(name)]
    _forget_forms()
    try:
        for one in patches:
            one.start()
        yield
    finally:
        for one in patches:
            one.stop()
        _forget_forms()


def _forget_forms() -> None:
    forms.forms.cache_clear()
    forms.asked_by.cache_clear()


def _rooms(name: str) -> list[object]:
    return [room for room in (forms, segments, bm25) if hasattr(room, name)]


PARTS: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
    "stems": lambda: changed(stem=lambda word: word, stems=list),
    "parts": lambda: changed(parts_of=lambda key: [key], humps=lambda _text: []),
    "camelCase": lambda: changed(humps=lambda _text: []),
    "the very word": lambda: changed(WORD=1e-9),
    "neighbours as one": lambda: changed(JOINED=1e-9),
    "single characters": lambda: changed(CHARACTER=1e-9),
    "weight for the hook": lambda: changed(HOOK=1),
    "leaving out the common": lambda: changed(FEW=10**9),
}
"""The parts of `rich`, each taken away."""


def verdict(rich_row: Mapping[str, Figures], plain_row: Mapping[str, Figures]) -> int:
    """What falls short, printed; the exit status."""
    short = 0
    for name, got in rich_row.items():
        ndcg, mrr = REACH.get(name, (0.0, 0.0))
        if got.ndcg < max(ndcg, plain_row[name].ndcg) or got.mrr < max(mrr, plain_row[name].mrr):
            short = 1
            sys.stdout.write(f"{name}: rich falls short: {got}\n")
    return short


def print_line(name: str, cells: Mapping[str, object]) -> None:
    """A line of the table; the names of the cells for the head."""
    shown = "".join(f"{cell if isinstance(cell, str) else key!s:>16}" for key, cell in cells.items())
    sys.stdout.write(f"{name:<30}{shown}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.evals.retrieval", description="Measure the rankers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="these sets only")
    parser.add_argument("--sets", type=Path, metavar="DIR", help="a directory of more sets")
    parser.add_argument("--parts", action="store_true", help="also rich without each of its parts")
    return parser


if __name__ == "__main__":
    sys.exit(main())
