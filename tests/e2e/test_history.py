"""Past sessions over the socket, of every kind of transcript and every place. SPEC section 11."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memd_client
from support.daemon import Daemon, running_daemon
from support.memctl_program import memctl
from support.transcripts import claude, compaction, header, message, plain
from support.waiting import until

KEY = "ghp_" + "a1B2" * 9


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with running_daemon() as daemon:
        yield daemon


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
    return path


def claude_file(daemon: Daemon, slug: str, session: str) -> Path:
    return daemon.user / ".claude" / "projects" / slug / f"{session}.jsonl"


def seed_file(daemon: Daemon, session: str, directory: str = "--repo--") -> Path:
    return daemon.home / "sessions" / directory / f"1700000000000_{session}.jsonl"


def search(daemon: Daemon, query: str, offset: int = 0) -> dict[str, Any]:
    return daemon.call("history.search", query=query, offset=offset)


def found(daemon: Daemon, query: str) -> list[tuple[str, str]]:
    return [(hit["session"], hit["entryId"]) for hit in search(daemon, query)["hits"]]


def test_people_agents_and_summaries_are_found_and_tools_are_not(daemon: Daemon) -> None:
    write(
        claude_file(daemon, "-repo", "c-1"),
        claude("user", "why does the harbour crane stall?", cwd=daemon.repo, uuid_="u1"),
        claude(
            "assistant",
            [
                {"type": "thinking", "thinking": "the crane thought zirkonium"},
                {"type": "text", "text": "The crane stalls when the tide gauge reads zero."},
                {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "grep zirkonium crane.log"}},
            ],
            cwd=daemon.repo,
            uuid_="a1",
        ),
        claude("user", [{"type": "tool_result", "tool_use_id": "t", "content": "zirkonium"}], cwd=daemon.repo),
        claude("user", "side zirkonium", cwd=daemon.repo, isSidechain=True),
        claude("user", "meta zirkonium", cwd=daemon.repo, isMeta=True),
        claude("user", "<system-reminder>zirkonium</system-reminder>and the pulley?", cwd=daemon.repo, uuid_="u2"),
        claude("user", "Summary: the crane was mended.", cwd=daemon.repo, uuid_="k1", isCompactSummary=True),
        '{"type":"summary","summary":"Mending the lighthouse lamp","leafUuid":"a1"}\n',
        '{"type":"file-history-snapshot","messageId":"x","snapshot":{"zirkonium":1}}\n',
    )
    write(
        seed_file(daemon, "s-1"),
        header("s-1", daemon.repo),
        message("e1", "user", [{"type": "text", "text": "the ferry timetable is wrong on Sundays"}]),
        message("e2", "tool", "zirkonium"),
        compaction("e3", "We mended the ferry timetable."),
    )
    assert found(daemon, "zirkonium") == []
    page = search(daemon, "tide gauge crane")
    assert page["total"] == 3
    best = page["hits"][0]
    assert best == {
        "session": "c-1",
        "entryId": "a1",
        "type": "assistant",
        "snippet": "The crane stalls when the tide gauge reads zero.",
        "url": "history://c-1/a1",
    }
    assert search(daemon, "pulley")["hits"][0]["snippet"] == "and the pulley?"
    assert {hit["type"] for hit in search(daemon, "ferry timetable")["hits"]} == {"user", "summary"}
    assert search(daemon, "mended crane summary")["hits"][0]["type"] == "summary"
    lamp = search(daemon, "lighthouse lamp")["hits"][0]
    read = daemon.call("history.read", url=lamp["url"])
    assert (read["text"], read["type"], read["url"]) == ("Mending the lighthouse lamp", "summary", lamp["url"])


def test_only_root_sessions_of_this_repository_are_searched(daemon: Daemon) -> None:
    other = daemon.root / "other"
    (other / ".git").mkdir(parents=True)
    write(claude_file(daemon, "-met", "mine"), claude("user", "the walrus is mine", cwd=daemon.repo))
    theirs = claude_file(daemon, "-met", "theirs")
    write(theirs, claude("user", "the walrus is theirs", cwd=other, uuid_="w"))
    write(
        seed_file(daemon, "child"),
        header("child", daemon.repo, parentSessionId="root"),
        message("e", "user", "a child's walrus"),
    )
    assert [session for session, _ in found(daemon, "walrus")] == ["mine"]
    with pytest.raises(memd_client.NotFound):
        daemon.call("history.read", url="history://theirs/w")
    assert daemon.call("history.read", cwd=other, url="history://theirs/w")["text"] == "the walrus is theirs"
    with daemon.connect() as connection:
        connection.call("session.start", {"session": "c", "cwd": str(daemon.repo), "depth": 1})
        for verb, params in (("search", {"query": "walrus"}), ("read", {"url": "history://mine/x"})):
            with pytest.raises(memd_client.NotRoot):
                connection.call(f"history.{verb}", {"session": "c", **params})


def test_worktrees_subdirectories_and_checkouts_that_are_gone(daemon: Daemon) -> None:
    linked = daemon.root / "linked"
    gitdir = daemon.repo / ".git" / "worktrees" / "linked"
    gitdir.mkdir(parents=True)
    (gitdir / "commondir").write_text("../..\n")
    linked.mkdir()
    (linked / ".git").write_text(f"gitdir: {gitdir}\n")
    below = daemon.repo / "deep" / "down"
    below.mkdir(parents=True)
    inside = daemon.repo / ".worktrees" / "gone"
    outside = daemon.root / "elsewhere" / "gone"
    for session, cwd in (("tree", linked), ("sub", below), ("inside", inside), ("outside", outside)):
        write(claude_file(daemon, f"-{session}", session), claude("user", "a pelican again", cwd=cwd))
    page = search(daemon, "pelican")
    assert {hit["session"] for hit in page["hits"]} == {"tree", "sub", "inside"}
    notice = "[1 directory of sessions not searched: the checkout is gone, its repository unknown]"
    assert page["notice"] == notice
    shutil.rmtree(linked)
    page = search(daemon, "pelican")
    assert {hit["session"] for hit in page["hits"]} == {"sub", "inside"}
    assert page["notice"] == notice.replace("1 directory", "2 directories")


def test_a_session_memd_knows_keeps_its_repository_when_the_checkout_is_gone(daemon: Daemon) -> None:
    linked = daemon.root / "linked"
    gitdir = daemon.repo / ".git" / "worktrees" / "linked"
    gitdir.mkdir(parents=True)
    (gitdir / "commondir").write_text("../..\n")
    linked.mkdir()
    (linked / ".git").write_text(f"gitdir: {gitdir}\n")
    with daemon.connect() as connection:
        connection.call("session.start", {"session": "known", "cwd": str(linked)})
    shutil.rmtree(linked)
    write(claude_file(daemon, "-linked", "known"), claude("user", "a heron by the weir", cwd=linked))
    assert [session for session, _ in found(daemon, "heron")] == ["known"]


def test_a_transcript_that_a_kernel_named(daemon: Daemon) -> None:
    roots = daemon.root / "kernel"
    path = write(
        roots / "run.jsonl",
        plain("system", "the system's otter"),
        plain("user", "where does the otter sleep?", id="m1"),
        plain("assistant", [{"type": "text", "text": "Under the jetty."}]),
    )
    (daemon.home / "config.toml").parent.mkdir(parents=True, exist_ok=True)
    config = daemon.root / "config.toml"
    config.write_text(f'[history]\nroots = ["{roots}"]\n')
    daemon.env["MEMD_CONFIG"] = str(config)
    daemon.kill()
    daemon.start()
    with daemon.connect() as connection:
        connection.call("session.start", {"session": "k-1", "cwd": str(daemon.repo), "transcript": str(path)})
    assert found(daemon, "otter") == [("k-1", "m1")]
    hit = search(daemon, "jetty")["hits"][0]
    assert daemon.call("history.read", url=hit["url"])["text"] == "Under the jetty."
    config.write_text('[history]\nsources = ["claude"]\n')
    daemon.kill()
    daemon.start()
    assert found(daemon, "otter") == []


def test_a_session_that_grows_is_read_from_where_it_ended(daemon: Daemon) -> None:
    path = write(claude_file(daemon, "-repo", "live"), claude("user", "first gannet", cwd=daemon.repo, uuid_="g1"))
    assert found(daemon, "gannet") == [("live", "g1")]
    line = claude("assistant", "second gannet", cwd=daemon.repo, uuid_="g2")
    with path.open("a") as stream:
        stream.write(line[:40])
    assert found(daemon, "gannet") == [("live", "g1")]
    with path.open("a") as stream:
        stream.write(line[40:])
    assert sorted(found(daemon, "gannet")) == [("live", "g1"), ("live", "g2")]
    path.write_text(claude("user", "another gannet altogether", cwd=daemon.repo, uuid_="g9"))
    assert found(daemon, "gannet") == [("live", "g9")]
    path.unlink()
    assert found(daemon, "gannet") == []


def test_a_session_resumed_into_a_new_file_counts_once(daemon: Daemon) -> None:
    old = claude("user", "the cormorant question", cwd=daemon.repo, uuid_="q")
    first = write(claude_file(daemon, "-repo", "one"), old)
    os.utime(first, (1_700_000_000, 1_700_000_000))
    write(claude_file(daemon, "-repo", "two"), old, claude("assistant", "its cormorant answer", cwd=daemon.repo))
    page = search(daemon, "cormorant")
    assert page["total"] == 2
    assert {hit["session"] for hit in page["hits"]} == {"two"}
    assert daemon.call("history.read", url="history://one/q")["text"] == "the cormorant question"


def test_lines_that_are_none_are_passed_over_and_counted(daemon: Daemon) -> None:
    path = claude_file(daemon, "-repo", "torn")
    write(
        path,
        claude("user", "before the tern", cwd=daemon.repo),
        "not json at all\n",
        '{"type":"user","message":{"role":"user","cont\n',
        "\0\0\0\0\n",
        '{"type":"user","message":17}\n',
        "[1, 2]\n",
        "\n",
        claude("user", "x" * (10 << 20), cwd=daemon.repo),
        claude("assistant", "after the tern", cwd=daemon.repo),
        claude("assistant", "half a tern", cwd=daemon.repo)[:-20],
    )
    assert search(daemon, "tern")["total"] == 2
    with daemon.connect() as connection:
        status = connection.call("daemon.status")
    assert status["history"] == {"read": 1, "transcripts": 1, "skipped": 6}


def test_keys_are_masked_in_snippets_and_entries(daemon: Daemon) -> None:
    write(claude_file(daemon, "-repo", "keys"), claude("user", f"the puffin token is {KEY} ok", cwd=daemon.repo))
    hit = search(daemon, "puffin token")["hits"][0]
    assert (hit["snippet"], hit["redacted"]) == ("the puffin token is [redacted] ok", True)
    read = daemon.call("history.read", url=hit["url"])
    assert (read["text"], read["redacted"]) == ("the puffin token is [redacted] ok", True)


def test_pages_and_what_they_leave_out_are_said(daemon: Daemon) -> None:
    lines = [claude("user", f"avocet number {number} " + "waded on " * 40, cwd=daemon.repo) for number in range(20)]
    write(claude_file(daemon, "-repo", "many"), *lines)
    page = search(daemon, 'avocet "number"')
    assert (len(page["hits"]), page["total"]) == (8, 20)
    assert all(hit["cut"] and len(hit["snippet"]) <= 160 for hit in page["hits"])
    first, second = page["notice"].split("\n")
    query = '"avocet \\"number\\""'
    assert first == f"[8 of 20 entries · limit 8 · history.search({query}, limit=8, offset=8) for the next page]"
    assert second == f'[snippets cut at 160 characters · history.read("{page["hits"][0]["url"]}") for a whole entry]'
    seen = [hit["url"] for offset in (0, 8, 16) for hit in search(daemon, "avocet", offset=offset)["hits"]]
    assert len(set(seen)) == 20
    assert "next page" not in search(daemon, "avocet", offset=16)["notice"]


def test_what_is_cached_holds_no_word_and_serves_the_next_daemon(daemon: Daemon) -> None:
    path = write(
        claude_file(daemon, "-repo", "kept"),
        claude("user", "the oystercatcher nests on the roof", cwd=daemon.repo, uuid_="o1"),
    )
    assert found(daemon, "oystercatcher") == [("kept", "o1")]
    cached = list((daemon.home / "cache" / "history").iterdir())
    assert len(cached) == 1
    raw = cached[0].read_bytes()
    assert all(word not in raw for word in (b"oystercatcher", b"nests", b"roof"))
    assert cached[0].stat().st_mode & 0o777 == 0o600
    daemon.kill()
    cached[0].write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    daemon.start()
    assert found(daemon, "oystercatcher") == [("kept", "o1")]
    path.unlink()
    daemon.kill()
    daemon.start()
    assert found(daemon, "oystercatcher") == []
    until(lambda: not list((daemon.home / "cache" / "history").iterdir()))


@pytest.mark.parametrize(
    "url", ["", "kept/o1", "history://", "history://kept", "history:///o1", "file:///etc/passwd"]
)
def test_an_address_that_is_none_is_not_found(daemon: Daemon, url: str) -> None:
    with pytest.raises(memd_client.NotFound) as missing:
        daemon.call("history.read", url=url)
    assert "history.search gives addresses" in missing.value.message


def test_symlinks_are_not_followed(daemon: Daemon) -> None:
    real = write(daemon.root / "real.jsonl", claude("user", "a linked dunlin", cwd=daemon.repo))
    link = claude_file(daemon, "-repo", "link")
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    directory = daemon.root / "directory"
    write(directory / "x.jsonl", claude("user", "a linked dunlin", cwd=daemon.repo))
    (link.parent.parent / "-linked").symlink_to(directory)
    os.mkfifo(link.with_name("pipe.jsonl"))
    assert found(daemon, "dunlin") == []


def test_people_and_kernels_ask_the_same(daemon: Daemon) -> None:
    lines = [claude("user", f"plover number {number}", cwd=daemon.repo, uuid_=f"p{number}") for number in range(9)]
    write(claude_file(daemon, "-repo", "said"), *lines)
    page = memctl(daemon.env, "history", "search", "plover", "number", "3", cwd=daemon.repo)
    assert page.out.splitlines()[0] == "history://said/p3 · user — plover number 3"
    assert len(page.out.splitlines()) == 8
    assert page.err == "8 of 9 entries; --offset 8 for the next\n"
    rest = memctl(daemon.env, "history", "search", "plover", "--offset", "8", cwd=daemon.repo)
    assert (len(rest.out.splitlines()), rest.err) == (1, "")
    shown = memctl(daemon.env, "history", "show", "history://said/p3", cwd=daemon.repo)
    assert (shown.code, shown.out) == (0, "plover number 3\n")
    assert json.loads(memctl(daemon.env, "history", "show", "history://said/p3", "--json", cwd=daemon.repo).out) == {
        "session": "said",
        "entryId": "p3",
        "type": "user",
        "text": "plover number 3",
        "url": "history://said/p3",
    }
    none = memctl(daemon.env, "history", "search", "dodo", cwd=daemon.repo)
    assert (none.code, none.out, none.err) == (0, "", "no entry of a past session shares a word with this\n")
    assert memctl(daemon.env, "history", "show", "history://said/p99", cwd=daemon.repo).code == 3
    for wrong in ((), ("search",), ("show",), ("show", "a", "b"), ("other",)):
        assert memctl(daemon.env, "history", *wrong, cwd=daemon.repo).code == 2
    code = (
        "import asyncio, json, memory\n"
        "async def main():\n"
        "    page = await memory.history.search('plover number 3', limit=1)\n"
        "    assert page == memory.sync.compact.search('plover number 3', limit=1)\n"
        "    print((await memory.history.read(page['hits'][0]['url']))['text'])\n"
        "asyncio.run(main())\n"
    )
    kernel = subprocess.run(
        [sys.executable, "-c", code], env=daemon.env, cwd=daemon.repo, capture_output=True, text=True, check=True
    )
    assert kernel.stdout == "plover number 3\n"


def test_a_home_whose_sessions_do_not_read_is_told_to_whoever_asks_and_the_daemon_goes_on(daemon: Daemon) -> None:
    daemon.save("crane", "The crane stalls at low tide.")
    write(
        claude_file(daemon, "-repo", "c-1"), claude("user", "why does the crane stall?", cwd=daemon.repo, uuid_="u1")
    )
    sessions = daemon.home / "sessions"
    sessions.symlink_to("sessions")
    with pytest.raises(memd_client.Storage, match="symbolic links"):
        search(daemon, "crane")
    assert daemon.found("crane") == ["crane"]
    sessions.unlink()
    assert found(daemon, "crane") == [("c-1", "u1")]


def test_two_files_of_one_session_whose_entries_have_no_id_are_told_apart(daemon: Daemon) -> None:
    for slug in ("-repo", "-worktree"):
        summary = f'{{"type":"summary","summary":"The crane of {slug} was mended"}}\n'
        write(claude_file(daemon, slug, "c-1"), summary, claude("user", "hello", cwd=daemon.repo))
    hits = search(daemon, "crane")["hits"]
    read = [daemon.call("history.read", url=hit["url"])["text"] for hit in hits]
    assert len(hits) == 2
    assert read == [hit["snippet"] for hit in hits]


def test_a_directory_that_is_no_path_holds_up_nothing(daemon: Daemon) -> None:
    nowhere = "/" + "a/" * 1_000_000
    write(claude_file(daemon, "-long", "c-1"), claude("user", "the crane of nowhere", cwd=nowhere))
    write(
        claude_file(daemon, "-repo", "c-2"), claude("user", "why does the crane stall?", cwd=daemon.repo, uuid_="u1")
    )
    assert found(daemon, "crane") == [("c-2", "u1")]


def test_files_of_others_in_the_directory_of_the_cache_stay(daemon: Daemon) -> None:
    theirs = daemon.home / "cache" / "history" / "thesis.txt"
    outdated = theirs.with_name("0" * 32)
    for file in (theirs, outdated):
        write(file, "years of work\n")
    write(
        claude_file(daemon, "-repo", "c-1"), claude("user", "why does the crane stall?", cwd=daemon.repo, uuid_="u1")
    )
    assert found(daemon, "crane") == [("c-1", "u1")]
    assert not outdated.exists()
    assert theirs.read_text() == "years of work\n"


def test_transcripts_that_do_not_read_are_said(daemon: Daemon) -> None:
    write(claude_file(daemon, "-repo", "c-1"), claude("user", "the crane", cwd=daemon.repo, uuid_="u1"))
    projects = daemon.user / ".claude" / "projects"
    aside = projects.rename(daemon.user / "aside")
    projects.symlink_to("projects")
    looked = search(daemon, "crane")
    assert looked["hits"] == []
    assert looked["notice"] == "[1 of the directories and files of sessions did not read and were not searched]"
    projects.unlink()
    aside.rename(projects)
    assert found(daemon, "crane") == [("c-1", "u1")]
