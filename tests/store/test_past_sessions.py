"""A repository's past sessions on disks as they are: odd names, odd places, files that change. SPEC section 11."""

import os
from pathlib import Path

import pytest

from memd.history import Cache, Catalog, Corpus, Sources, Whose
from memd.history.transcript import HEAD_MAX
from support.transcripts import claude


class Shore:
    """A repository, Claude Code's projects beside it, and a cache."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.repo = root / "repo"
        (self.repo / ".git").mkdir(parents=True)
        self.projects = root / "projects"
        (self.projects / "-repo").mkdir(parents=True)
        self.catalog = Catalog()
        self.corpus = self.another()

    def another(self) -> Corpus:
        """A corpus of the next daemon: it has what is cached, and no more."""
        return Corpus(Whose(self.repo, "--repo--"), self.catalog, Cache(self.root / "cache"))

    def write(self, name: str, *lines: str) -> Path:
        path = self.projects / "-repo" / name
        path.write_text("".join(lines))
        return path

    def said(self, text: str, id_: str = "u1", cwd: Path | None = None) -> str:
        return claude("user", text, cwd=cwd or self.repo, uuid_=id_)

    def found(self, query: str, corpus: Corpus | None = None, ranker: str = "plain") -> list[str]:
        corpus = corpus or self.corpus
        sources = Sources(seed=None, claude=self.projects, named=False)
        corpus.refresh(sources)
        hits = corpus.search(query, 99, ranker=ranker).hits
        assert all(corpus.read(sources, hit.url) is not None for hit in hits)
        return [hit.url for hit in hits]


@pytest.fixture
def shore(tmp_path: Path) -> Shore:
    return Shore(tmp_path)


@pytest.mark.parametrize(
    ("name", "session"),
    [
        (os.fsdecode(b"\xff.jsonl"), "%5Cxff"),
        ("a%2Fb c\n.jsonl", "a%252Fb%20c%0A"),
        ("\U0001f600\u202e.jsonl", "%F0%9F%98%80%E2%80%AE"),
        ("-.jsonl", "-"),
    ],
)
def test_a_file_of_any_name_is_found_read_and_cached(shore: Shore, name: str, session: str) -> None:
    shore.write(name, shore.said("the crane", "a/b %"))
    url = f"history://{session}/a%2Fb%20%25"
    assert shore.found("crane") == [url]
    assert shore.found("crane", shore.another()) == [url]


@pytest.mark.parametrize("cwd", ["/" + "x" * 5_000, "/x" * 5_000, "/\0", "relative", ""])
def test_a_place_that_cannot_be_looked_at_is_not_ours(shore: Shore, cwd: str) -> None:
    shore.write("odd.jsonl", claude("user", "the odd crane", cwd=cwd))
    shore.write("ours.jsonl", shore.said("the crane"))
    assert shore.found("crane") == ["history://ours/u1"]


def test_a_file_written_anew_by_another_repository_is_no_longer_ours(shore: Shore) -> None:
    other = shore.root / "other"
    (other / ".git").mkdir(parents=True)
    file = shore.write("one.jsonl", shore.said("the crane"))
    assert shore.found("crane") == ["history://one/u1"]
    file.write_text(shore.said("the crane", cwd=other))  # the same inode
    assert shore.found("crane") == []


def test_a_file_rewritten_in_its_middle_is_read_anew(shore: Shore) -> None:
    file = shore.write("one.jsonl", shore.said("the crane"), *(shore.said("word " * 99, f"u{n}") for n in range(5)))
    assert shore.found("crane") == ["history://one/u1"]
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_text(file.read_text().replace("crane", "ferry"))
    os.utime(file, ns=times)
    assert shore.found("crane") == []
    assert shore.found("ferry") == ["history://one/u1"]


def test_a_session_is_known_by_what_follows_a_line_that_is_too_long(shore: Shore) -> None:
    shore.write("one.jsonl", shore.said("x" * (10 << 20), "u0"), shore.said("the crane"))
    assert shore.found("crane") == ["history://one/u1"]


def test_no_more_of_a_file_is_looked_at_than_its_beginning(shore: Shore) -> None:
    shore.write("one.jsonl", '{"type":"note"}\n' * (HEAD_MAX // 8), shore.said("the crane"))
    assert shore.found("crane") == []


def test_a_file_without_a_place_is_looked_at_once(shore: Shore, monkeypatch: pytest.MonkeyPatch) -> None:
    file = shore.write("one.jsonl", '{"type":"summary","summary":"the crane"}\n')
    assert shore.found("crane") == []
    looked: list[Path] = []
    monkeypatch.setattr("memd.history.sources.head", looked.append)
    assert shore.found("crane") == []
    assert looked == []
    file.write_text(file.read_text() * 2)
    assert shore.found("crane") == []
    assert looked == [file]


def test_many_small_files_are_put_in_order_a_few_times(shore: Shore) -> None:
    for number in range(400):
        shore.write(f"{number}.jsonl", shore.said("the crane", f"u{number}"))
    seen: set[int] = set()

    def look() -> bool:
        seen.add(shore.corpus.progress.read)
        return False

    shore.corpus.refresh(Sources(seed=None, claude=shore.projects, named=False), look)
    assert shore.corpus.progress.read == 400
    assert 5 < len(seen) < 25  # it was 51 times: after every eighth file


def test_past_sessions_are_ranked_by_either_ranker(shore: Shore) -> None:
    shore.write("one.jsonl", shore.said("the cranes stalled"), shore.said("see parseTideTable", "u2"))
    assert shore.found("crane") == []
    assert shore.found("crane", ranker="rich") == ["history://one/u1"]
    assert shore.found("tide", ranker="rich") == ["history://one/u2"]
    assert shore.found("crane", shore.another(), ranker="rich") == ["history://one/u1"]
