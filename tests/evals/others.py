"""What people would pick instead: FTS5, bm25s, tantivy. Law: each with its own tokens and formula, given any word.

`others` makes each over the same texts; a `Search` gives at most so many places, best first. bm25s and tantivy are an
extra (`eval`), which `make eval` installs.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memd.tokens import tokenize

Search = Callable[[str, int], Sequence[int]]


def others(texts: Sequence[str]) -> Mapping[str, Search]:
    """The other ways by name, over these texts."""
    return {
        "FTS5 porter": fts5(texts, "porter unicode61"),
        "FTS5 trigram": fts5(texts, "trigram"),
        "bm25s stem": bm25s(texts),
        "tantivy en_stem": tantivy(texts),
    }


def fts5(texts: Sequence[str], tokenizer: str) -> Search:
    """SQLite's own BM25; a query is any of its words, without the function words."""
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='{tokenizer}')")
    database.executemany("INSERT INTO texts(rowid, text) VALUES (?, ?)", enumerate(texts))

    def search(query: str, limit: int) -> Sequence[int]:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(tokenize(query)))
        if not words:
            return []
        select = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts), rowid LIMIT ?"
        return [place for (place,) in database.execute(select, (words, limit))]

    return search


def bm25s(texts: Sequence[str]) -> Search:
    """bm25s in Lucene's form with English stems and its English function words."""
    import bm25s as library
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: Sequence[str]) -> Any:
        return library.tokenize(list(texts), stopwords="en", stemmer=stemmer, show_progress=False)

    index = library.BM25(method="lucene", k1=1.2, b=0.75)
    index.index(tokens(texts), show_progress=False)

    def search(query: str, limit: int) -> Sequence[int]:
        places, scores = index.retrieve(tokens([query]), k=min(limit, len(texts)), show_progress=False)
        return [int(place) for place, score in zip(places[0], scores[0], strict=True) if score > 0]

    return search


def tantivy(texts: Sequence[str]) -> Search:
    """tantivy with its English stems."""
    import tantivy as library

    schema = library.SchemaBuilder()
    schema.add_text_field("text", tokenizer_name="en_stem")
    schema.add_integer_field("place", stored=True)
    index = library.Index(schema.build())
    writer = index.writer(heap_size=50_000_000, num_threads=1)
    for place, text in enumerate(texts):
        writer.add_document(library.Document(text=text, place=place))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(query: str, limit: int) -> Sequence[int]:
        words = " ".join("".join(char if char.isalnum() else " " for char in query).split())
        parsed, _ = index.parse_query_lenient(words, ["text"])
        return [int(searcher.doc(at)["place"][0]) for _, at in searcher.search(parsed, limit).hits]

    return search
