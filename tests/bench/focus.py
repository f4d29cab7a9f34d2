"""The block of a prompt inside the daemon's process: at 1,000 and at 10,000 notes (SPEC 9).

    python -m tests.bench focus

A store is written and opened as the daemon does it; then each prompt, a question of some of the notes' words, is
rendered as `memory.focus` renders it, the bodies read from their files. Beside it stands the ranking alone, which is
what any block costs at the least.
"""

import random
import time
from functools import partial

from memd import bm25, tokens
from memd.focus import Shelf, lines_of, load, render
from memd.listing import Listing
from memd.note import Scope, parse
from memd.snapshots import Snapshot
from memd.store import Store

from .house import fill, ground, plot, question
from .rows import Row, median, percentile, report, row

SIZES = {1_000: 3.0, 10_000: 15.0}
"""Notes in the store, and the milliseconds a block may take there."""


def run(quick: bool = False) -> dict[str, object]:
    """The figures of every size."""
    sizes = {50: 3.0} if quick else SIZES
    return report(
        "focus", [line for notes, most in sizes.items() for line in _figures(notes, most, 20 if quick else 300)]
    )


def _figures(notes: int, most: float, rounds: int) -> list[Row]:
    chance = random.Random(notes)
    with ground() as root:
        store = Store(plot(root, "focus") / "memory")
        fill(store, chance, notes)
        opened = Store(store.directory)
        shelf = _shelf(opened)
        blocks, ranks = [], []
        read = partial(_body, opened)
        for _ in range(rounds):
            prompt = question(chance)
            start = time.perf_counter()
            render([shelf], prompt, read)
            blocks.append((time.perf_counter() - start) * 1e3)
            start = time.perf_counter()
            bm25.rank(tokens.query_terms(prompt), [shelf.index]).top(32)
            ranks.append((time.perf_counter() - start) * 1e3)
    return [
        row(f"focus.{notes}.p50", median(blocks), "ms", most=most),
        row(f"focus.{notes}.p99", percentile(blocks, 99), "ms"),
        row(f"focus.{notes}.rank.p50", median(ranks), "ms"),
    ]


def _shelf(store: Store) -> Shelf:
    committed = store.open()
    entries = {change.name: change.entry for change in committed.changes if change.entry is not None}
    index = Snapshot.EMPTY.replace(
        {change.name: change.words for change in committed.changes if change.words is not None}
    )
    lines = lines_of(committed.view.listing or Listing(), entries)
    return Shelf(scope=Scope.REPO, notes=entries, index=index, lines=lines, loaded=load(lines, lambda _name: 0))


def _body(store: Store, _scope: Scope, stem: str) -> str | None:
    read = store.read_now(stem)
    return None if read is None else parse(stem, read[0]).body
