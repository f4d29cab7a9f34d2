"""The rankers over the socket: which is taken, and that what is explained is the score. SPEC sections 6, 7 and 9."""

from collections.abc import Iterator
from typing import Any

import pytest

import memd_client
from support.daemon import Daemon, daemon_home, running_daemon


@pytest.fixture(scope="module")
def notes() -> Iterator[Daemon]:
    """A daemon with the default config and three notes."""
    with running_daemon() as running:
        running.save("forge-tests", "See scripts/forge_pr.py, and renderBlock.", description="Forge tests, -k smoke")
        running.save("harbour", "It retries twice; 数据库.", description="The harbour cat is fed at noon")
        running.save("retry-policy", "Thrice.", description="How often we try again")
        yield running


def found(daemon: Daemon, query: str, ranker: str | None = None) -> list[str]:
    return [hit["name"] for hit in daemon.call("memory.search", query=query, ranker=ranker)["hits"]]


def test_rich_is_the_default_and_plain_can_be_asked_for(notes: Daemon) -> None:
    assert found(notes, "rendering it") == found(notes, "rendering it", ranker="rich") == ["forge-tests"]
    assert found(notes, "rendering it", ranker="plain") == []
    assert set(found(notes, "retried")) == {"harbour", "retry-policy"}
    assert found(notes, "renderblock", ranker="plain") == ["forge-tests"]


def test_config_chooses_the_ranker() -> None:
    with daemon_home() as daemon:
        config = daemon.user / ".config/memd/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text('search.ranker = "plain"\n')
        daemon.start()
        daemon.save("harbour", "It retries twice.", description="The cat")
        assert found(daemon, "retried") == []
        assert found(daemon, "retried", ranker="rich") == ["harbour"]
        with pytest.raises(memd_client.NotFound):
            daemon.call("memory.read", name="retried")


def test_read_opens_the_nearest_by_the_same_ranker(notes: Daemon) -> None:
    reply = notes.call("memory.read", name="rendered blocks")
    assert reply["name"] == "forge-tests"
    assert "the closest of 1 by memory.search" in reply["warnings"][0]


@pytest.mark.parametrize(
    ("method", "words"), [("memory.search", "query"), ("memory.focus", "prompt"), ("history.search", "query")]
)
def test_a_ranker_there_is_not_is_refused(notes: Daemon, method: str, words: str) -> None:
    asked: dict[str, Any] = {words: "forge", "ranker": "best"}
    with pytest.raises(memd_client.Refused, match="ranker: one of plain") as refused:
        notes.call(method, **asked)
    assert refused.value.data["field"] == "ranker"


@pytest.mark.parametrize("ranker", ["plain", "rich"])
def test_what_is_explained_sums_up_to_the_score(notes: Daemon, ranker: str) -> None:
    query = "retries of the forge_pr harbour scripts/forge_pr.py 数据"
    hits = notes.call("memory.search", query=query, explain=True, ranker=ranker)["hits"]
    assert [hit["name"] for hit in hits] == found(notes, query, ranker=ranker)
    for hit in hits:
        assert hit["score"] == pytest.approx(sum(gave["score"] for gave in hit["explain"]), abs=1e-9, rel=0)
    assert "explain" not in notes.call("memory.search", query=query, ranker=ranker)["hits"][0]


def test_what_is_explained_names_word_field_and_form(notes: Daemon) -> None:
    [hit] = notes.call("memory.search", query="rendered", explain=True)["hits"]
    [gave] = hit["explain"]
    assert gave == {"word": "rendered", "kind": "form", "field": "body", "form": "render", "score": hit["score"]}


def test_a_block_is_of_the_ranker_that_is_asked_for(notes: Daemon) -> None:
    prompt = "the harbours of kestrels"
    rich = notes.call("memory.focus", prompt=prompt, abstain=False)
    plain = notes.call("memory.focus", prompt=prompt, abstain=False, ranker="plain")
    assert (rich["notes"][0]["name"], rich["notes"][0]["shown"]) == ("harbour", "body")
    assert all(note["shown"] == "row" for note in plain["notes"])
