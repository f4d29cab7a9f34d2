"""Past sessions: twenty questions to a dozen invented transcripts, and how many find the right entry among three.

    python -m tests.evals.sessions

Part of `make eval`; `test_sessions.py` holds the bound. A question has `query` and `right`, the ids of the entries
that answer it. Sessions are of all three formats; `@REPO@` stands for the repository they ran in.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from memd.config import RANKERS
from memd.history import Cache, Catalog, Corpus, Named, Sources, Whose

HERE = Path(__file__).parent / "history"
LEAST = 16
"""Of the twenty questions, those whose right entry is to be among the first three."""


class Question(msgspec.Struct, frozen=True):
    """A question and the ids of the entries that answer it."""

    query: str
    right: tuple[str, ...]


class Asked(NamedTuple):
    """A question and the ids of the first three entries."""

    question: Question
    found: list[str]

    @property
    def is_right(self) -> bool:
        """Whether one of them answers it."""
        return bool({*self.found} & {*self.question.right})


def questions() -> list[Question]:
    """All of them."""
    return [msgspec.json.decode(line, type=Question) for line in (HERE / "questions.jsonl").read_bytes().splitlines()]


def asked(ranker: str) -> Iterator[Asked]:
    """Every question put to a corpus of all the sessions, by a ranker."""
    with tempfile.TemporaryDirectory() as root:
        corpus = laid_out(Path(root).resolve())
        for question in questions():
            yield Asked(question, [hit.entry for hit in corpus.search(question.query, 3, ranker=ranker).hits])


def laid_out(root: Path) -> Corpus:
    """The sessions where their programs would keep them, read."""
    repo = root / "repo"
    (repo / ".git").mkdir(parents=True)
    places = {"claude": root / "claude" / "-repo", "seed": root / "sessions" / "--repo--", "plain": root / "kernel"}
    sessions = {}
    for file in sorted((HERE / "sessions").iterdir()):
        kind, _, session = file.stem.partition("-")
        places[kind].mkdir(parents=True, exist_ok=True)
        placed = places[kind] / f"{session}.jsonl"
        placed.write_text(file.read_text().replace("@REPO@", str(repo)))
        sessions[session] = Named(
            session, str(repo), "key", child=False, transcript=placed if kind == "plain" else None
        )
    sources = Sources(
        seed=root / "sessions", claude=root / "claude", named=True, roots=(root / "kernel",), sessions=sessions
    )
    corpus = Corpus(Whose(repo, "key"), Catalog(), Cache(root / "cache"))
    corpus.refresh(sources)
    return corpus


def main() -> int:
    """Print what was missed and how many were right, by each ranker; 1 when they are too few."""
    is_enough = True
    for ranker in RANKERS:
        results = list(asked(ranker))
        for one in results:
            if not one.is_right:
                sys.stdout.write(f"missed by {ranker}: {one.question.query} · found {', '.join(one.found)}\n")
        right = sum(one.is_right for one in results)
        sys.stdout.write(
            f"past sessions by {ranker}: {right} of {len(results)} right among three (at least {LEAST})\n"
        )
        is_enough = is_enough and right >= LEAST
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
