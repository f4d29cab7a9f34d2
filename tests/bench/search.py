"""How fast 10,000 notes are searched: memd's ranking beside SQLite FTS5 and beside reading every text again.

The three take the same notes and the same queries in the same run; `search.rich` is the ranker `rich` beside `plain`,
which all other rows are about, and `search.rich.times` how many times its processor time it takes. Every hit of
`plain` is checked against the formula of SPEC section 6, computed from the texts. A row is `name`, `value`, `unit`;
`floor`, the best of the other ways (None: there is no other); `ratio`, value to floor; `bound`, what the value must
not pass (None: only told); `ok`. Run it alone with `python -m tests.bench.search [--quick]`.
"""

import gc
import json
import math
import random
import sqlite3
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from memd import forms
from memd.bm25 import Scored, rank, rich
from memd.forms import Words
from memd.live.stores import MERGE_AT_ONCE
from memd.snapshots import Snapshot
from memd.tokens import query_terms, tokenize

Row = dict[str, object]

NOTES = 10_000
SEED = 6
TERMS = (1, 3, 12)
TOP = 5
P50_MS = 1.0
P99_MS = 5.0
BUILD_S = 1.5
SAVE_MS = 1.0
SAVE_MAX_MS = 20.0
MEMORY_MB = 30.0
MEMORY_TIMES = 2.0
RICH_TIMES = 1.5
ERROR = 1e-9

_ONSETS = ("b", "br", "c", "ch", "d", "f", "g", "k", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "tr", "v", "w")
_RIMES = ("a", "ail", "an", "ash", "e", "ell", "er", "est", "i", "ick", "ing", "o", "ock", "on", "u", "ump")
_WORDS = 20_000


def run(quick: bool = False) -> dict[str, object]:
    """The rows of this bench, ready for JSON; `quick` takes a tenth of the notes and few queries."""
    chance = random.Random(SEED)
    texts = dict(_notes(chance, NOTES // 10 if quick else NOTES))
    queries = {count: _queries(chance, count, 30 if quick else 300) for count in TERMS}
    snapshot, build_s, memory_mb, plain_mb = _index(texts)
    snapshot, saves, merges = _lived_in(chance, snapshot, texts)
    rows = [
        row("search.build", build_s, "s", bound=BUILD_S),
        row("search.memory", memory_mb, "MB", floor=plain_mb, bound=min(MEMORY_MB, MEMORY_TIMES * plain_mb)),
        row("search.save.mean", sum(saves) / len(saves), "ms", bound=SAVE_MS),
        row("search.save.max", max(saves), "ms", bound=SAVE_MAX_MS),
        row("search.merge.mean", sum(merges) / len(saves), "ms a save, beside it"),
        row("search.merge.max", max(merges, default=0.0), "ms, beside saves"),
    ]
    database = _fts5(texts)
    worst = 0.0
    for count, asked in queries.items():
        few = asked[:3] if quick else asked[:10]
        memd = _measure(lambda query: _search(snapshot, query), asked)
        fts5 = _measure(lambda query: _ask(database, query), asked)
        rich_ms = _measure(lambda query: rich(forms.query(query), [snapshot]).top(TOP), asked)
        scan = _measure(lambda query: _scan(texts, query)[:TOP], few)
        floor = min(_percentile(fts5, 50), _percentile(scan, 50))
        rows += [
            row(f"search.p50.{count}", _percentile(memd, 50), "ms", floor=floor, bound=P50_MS),
            row(f"search.p99.{count}", _percentile(memd, 99), "ms", floor=_percentile(fts5, 99), bound=P99_MS),
            row(
                f"search.rich.p50.{count}", _percentile(rich_ms, 50), "ms", floor=_percentile(memd, 50), bound=P50_MS
            ),
            row(f"search.rich.times.{count}", _times(snapshot, asked), "x plain", bound=RICH_TIMES),
            row(f"search.rich.p99.{count}", _percentile(rich_ms, 99), "ms", floor=_percentile(memd, 99)),
            row(f"search.fts5.p50.{count}", _percentile(fts5, 50), "ms"),
            row(f"search.scan.p50.{count}", _percentile(scan, 50), "ms"),
        ]
        worst = max(worst, *(_error(_search(snapshot, query), _scan(texts, query)) for query in few))
    rows.append(row("search.error", worst, "score", bound=ERROR))
    return {"name": "search", "notes": len(texts), "rows": rows, "ok": all(line["ok"] for line in rows)}


def row(name: str, value: float, unit: str, *, floor: float | None = None, bound: float | None = None) -> Row:
    """One line of the table."""
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "floor": floor,
        "ratio": value / floor if floor else None,
        "bound": bound,
        "ok": bound is None or value <= bound,
    }


# -- the notes --------------------------------------------------------------------------------------------------


def _vocabulary(chance: random.Random) -> list[str]:
    """Words, identifiers, versions and paths, the plain words most frequent."""

    def word() -> str:
        return "".join(chance.choice(_ONSETS) + chance.choice(_RIMES) for _ in range(chance.randint(1, 3)))

    shapes: Sequence[Callable[[], str]] = (
        word,
        word,
        lambda: f"{word()}_{word()}",
        lambda: f"{word()}-{word()}",
        lambda: f"src/{word()}/{word()}.py",
        lambda: f"v{chance.randint(0, 9)}.{chance.randint(0, 30)}.{chance.randint(0, 9)}",
    )
    plain = list(dict.fromkeys(word() for _ in range(3000)))
    rare = (chance.choice(shapes)() for _ in range(3 * _WORDS))
    return list(dict.fromkeys([*plain[:1000], *rare]))[:_WORDS]


def _draw(chance: random.Random, count: int) -> list[str]:
    """Words by Zipf's law: the one of rank r is drawn with weight 1/r."""
    return chance.choices(_VOCABULARY, cum_weights=_CUMULATED, k=count)


_VOCABULARY = _vocabulary(random.Random(SEED))
_CUMULATED = [math.log(rank + 1.5) - math.log(0.5) for rank in range(len(_VOCABULARY))]


def _notes(chance: random.Random, count: int) -> Iterator[tuple[str, str]]:
    for number in range(count):
        name = f"{'-'.join(chance.choices(_VOCABULARY[:1000], k=3))}-{number}"
        yield name, f"{name} {' '.join(_draw(chance, chance.randint(40, 160)))}"


def _queries(chance: random.Random, terms: int, count: int) -> list[str]:
    """Queries of so many different terms, drawn as the notes' words are: the common ones are in most of them."""
    queries: list[str] = []
    while len(queries) < count:
        words = list(dict.fromkeys(_draw(chance, 3 * terms)))[:terms]
        if len(words) == terms == len(query_terms(" ".join(words))):
            queries.append(" ".join(words))
    return queries


def _words(text: str) -> Words:
    """A note's words: of its text the first is the name, ten more the hook."""
    name, *others = text.split()
    return forms.words(name, " ".join(others[:10]), " ".join(others[10:]))


# -- the three ways ---------------------------------------------------------------------------------------------


def _search(snapshot: Snapshot, query: str) -> list[Scored]:
    return rank(query_terms(query), [snapshot]).top(TOP)


def _fts5(texts: Mapping[str, str]) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE notes USING fts5(name UNINDEXED, text)")
    database.executemany("INSERT INTO notes VALUES (?, ?)", texts.items())
    database.execute("INSERT INTO notes(notes) VALUES ('optimize')")
    return database


def _ask(database: sqlite3.Connection, query: str) -> list[tuple[str, float]]:
    match = " OR ".join(f'"{term.text}"' for term in query_terms(query))
    select = "SELECT name, bm25(notes) FROM notes WHERE notes MATCH ? ORDER BY bm25(notes) LIMIT ?"
    return database.execute(select, (match, TOP)).fetchall()


def _scan(texts: Mapping[str, str], query: str) -> list[tuple[str, float]]:
    """Every text read again; also the oracle: the formula as SPEC section 6 writes it."""
    wanted = [term.text for term in query_terms(query)]
    held: dict[str, Counter[str]] = {}
    lengths: dict[str, int] = {}
    for name, text in texts.items():
        tokens = tokenize(text)
        lengths[name] = len(tokens)
        counts = Counter(tokens)
        if any(term in counts for term in wanted):
            held[name] = counts
    mean = sum(lengths.values()) / len(texts)
    scores: dict[str, float] = dict.fromkeys(held, 0.0)
    for term in wanted:
        n = sum(term in counts for counts in held.values())
        idf = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
        for name, counts in held.items():
            tf = counts[term]
            scores[name] += idf * tf / (tf + 1.2 * (1 - 0.75 + 0.75 * lengths[name] / mean))
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))


def _error(hits: Sequence[Scored], right: Sequence[tuple[str, float]]) -> float:
    """The largest difference in a score; infinite when the notes differ or stand in another order."""
    if [hit.name for hit in hits] != [name for name, _ in right[:TOP]]:
        return math.inf
    return max((abs(hit.score - score) for hit, (_, score) in zip(hits, right, strict=False)), default=0.0)


# -- measuring --------------------------------------------------------------------------------------------------


def _index(texts: Mapping[str, str]) -> tuple[Snapshot, float, float, float]:
    """The index, the seconds it took (without tokenizing), the MB it keeps, and those `plain` alone would keep."""
    tokens = {name: _words(text) for name, text in texts.items()}
    began = time.perf_counter()
    Snapshot.EMPTY.replace(tokens)
    seconds = time.perf_counter() - began
    del tokens
    gc.collect()
    tracemalloc.start()
    snapshot = Snapshot.EMPTY.replace({name: _words(text) for name, text in texts.items()})
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return snapshot, seconds, kept / 1e6, (kept - _rich_bytes(snapshot)) / 1e6


def _rich_bytes(snapshot: Snapshot) -> int:
    """What of an index only `rich` needs, in bytes: columns, and the table of forms with those that are no words."""
    size = 0
    for part in snapshot.parts:
        one = part.segment
        columns = (one.weighed, one.sizes, one.form_starts, one.form_docs, one.form_weighed)
        size += sum(column.nbytes for column in columns) + sys.getsizeof(one.forms)
        size += sum(sys.getsizeof(form) for form in one.forms if form not in one.keys)
    return size


def _lived_in(
    chance: random.Random, snapshot: Snapshot, texts: Mapping[str, str]
) -> tuple[Snapshot, list[float], list[float]]:
    """The same notes after saves in any order; what each save cost the index in ms (without tokenizing), and each of
    the merges that no save waits for.

    There are enough of them that every kind of merge is paid for, and that searches meet all an index can
    have: several segments, notes struck out, a tail.
    """
    saves, merges = [], []
    for name in chance.choices(list(texts), k=len(texts) // 4 + 17):
        tokens = _words(texts[name])
        began = time.perf_counter()
        snapshot = snapshot.replace({name: tokens}, at_once=MERGE_AT_ONCE)
        saves.append(1000 * (time.perf_counter() - began))
        if (due := snapshot.due(MERGE_AT_ONCE)) is not None:
            began = time.perf_counter()
            snapshot = snapshot.merged(due, due.segment())
            merges.append(1000 * (time.perf_counter() - began))
    return snapshot, saves, merges


def _measure(search: Callable[[str], object], queries: Iterable[str]) -> list[float]:
    """The milliseconds of each query, sorted."""
    times = []
    for query in queries:
        began = time.perf_counter()
        search(query)
        times.append(1000 * (time.perf_counter() - began))
    return sorted(times)


def _times(snapshot: Snapshot, queries: Sequence[str]) -> float:
    """The middle processor time of `rich` to that of `plain`, asked in turn, so that load weighs on both alike."""
    plain_s, rich_s = [], []
    for query in queries:
        began = time.thread_time()
        _search(snapshot, query)
        between = time.thread_time()
        rich(forms.query(query), [snapshot]).top(TOP)
        rich_s.append(time.thread_time() - between)
        plain_s.append(between - began)
    return _percentile(sorted(rich_s), 50) / _percentile(sorted(plain_s), 50)


def _percentile(times: Sequence[float], percent: int) -> float:
    return times[min(len(times) - 1, len(times) * percent // 100)]


if __name__ == "__main__":
    json.dump(run(quick="--quick" in sys.argv[1:]), sys.stdout, indent=1)
    sys.stdout.write("\n")
