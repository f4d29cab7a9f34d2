"""Sessions and the one block they get, over a whole day and the accidents in it (SPEC 8 and 9)."""

import itertools
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import memd_client
from support.daemon import Daemon
from support.waiting import until


class Kernel:
    """A session's calls, as an agent's kernel makes them."""

    def __init__(self, daemon: Daemon, session: str, cwd: Path | None = None) -> None:
        self.daemon = daemon
        self.session = session
        self.cwd = cwd or daemon.repo

    def start(self, **more: object) -> dict[str, Any]:
        """`session.start` from the kernel's directory."""
        with self.daemon.connect() as connection:
            return connection.call("session.start", {"session": self.session, "cwd": str(self.cwd)} | more)

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Any verb of the session."""
        with self.daemon.connect() as connection:
            return connection.call(method, {"session": self.session} | params)

    def save(self, name: str, body: str = "words", **fields: str) -> dict[str, Any]:
        """A save of the type project."""
        given = {"name": name, "type": "project", "description": f"About {name}"} | fields
        return self.call("memory.save", markdown=body, fields=given)

    def focus(self, prompt: str, **more: object) -> dict[str, Any]:
        """`memory.focus`."""
        return self.call("memory.focus", prompt=prompt, **more)


def held(daemon: Daemon, text: str) -> list[str]:
    """The files under the home that hold a text."""
    return [path.name for path in daemon.home.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_whole_day_of_a_kernel(daemon: Daemon) -> None:
    daemon.save("deploy-steps", "Tag first, then wait for the signing job.", description="How to deploy the harbour")
    daemon.save("wind-gauge", "The wind gauge reports knots.", description="Units of the wind gauge")
    kernel = Kernel(daemon, "day-1")
    started = kernel.start()
    assert started == {"lines": ["memory · 2 repo · 0 global · 0 unparsed"], "saves_left": 3}
    block = kernel.focus("how do I deploy the harbour service?")
    assert block["frozen"] is False
    assert "Tag first, then wait for the signing job." in block["text"]
    assert block["text"] in block["fenced"]
    saved = kernel.save("tides", "High water is at noon.")
    assert (saved["saved"], saved["saves_left"]) == (1, 2)
    assert [hit["name"] for hit in kernel.call("memory.search", query="noon")["hits"]] == ["tides"]
    daemon.kill()
    daemon.start()
    resumed = kernel.start(resumed=True)
    assert resumed["saves_left"] == 2
    assert resumed["block"]["text"] == block["text"]
    again = kernel.focus("something else entirely about wind", dialect="cli")
    assert (again["text"], again["frozen"]) == (block["text"], True)
    kernel.call("session.update", read_only=True, switch="ExitPlanMode")
    with pytest.raises(memd_client.ReadOnly) as planning:
        kernel.save("blocked")
    assert "ExitPlanMode" in planning.value.message
    for verb, params in (
        ("forget", {"name": "tides"}),
        ("rename", {"name": "tides", "to": "other"}),
        ("move", {"name": "tides", "scope": "global"}),
        ("restore", {"name": "tides", "hash": saved["hash"]}),
    ):
        with pytest.raises(memd_client.ReadOnly):
            kernel.call(f"memory.{verb}", **params)
    assert kernel.call("memory.read", name="tides")["text"] == "High water is at noon."
    daemon.kill()
    daemon.start()
    with pytest.raises(memd_client.ReadOnly):
        kernel.save("blocked")
    kernel.call("session.update", read_only=False)
    kernel.save("allowed")
    child = Kernel(daemon, "day-1.child")
    assert child.start(depth=1) == {"lines": [], "saves_left": 0}
    with pytest.raises(memd_client.NotRoot) as refused:
        child.save("never")
    expected = "memory.save: only the root session keeps memory; the parent puts what a child needs in its task"
    assert refused.value.message == expected
    second = Kernel(daemon, "day-2")
    assert second.start()["saves_left"] == 3
    assert second.focus("which units does the wind gauge use?")["frozen"] is False
    assert daemon.call("memory.stats")["repo"]["sessions"] == 2
    record = daemon.call("memory.log", name="tides")["records"][-1]
    assert (record["op"], record["session"], "by" in record) == ("save", "day-1", False)


def test_a_child_is_refused_every_memory_verb_and_costs_nothing(daemon: Daemon) -> None:
    daemon.save("note")
    child = Kernel(daemon, "child")
    child.start(depth=2)
    assert daemon.call("memory.stats")["repo"]["sessions"] == 0
    for verb, params in (
        ("save", {"markdown": "x"}),
        ("read", {"name": "note"}),
        ("search", {"query": "x"}),
        ("forget", {"name": "note"}),
        ("focus", {"prompt": "x"}),
        ("index", {}),
        ("list", {}),
        ("log", {}),
        ("show", {"name": "note"}),
        ("stats", {}),
        ("check", {}),
    ):
        with pytest.raises(memd_client.NotRoot) as refused:
            child.call(f"memory.{verb}", **params)
        assert refused.value.message.startswith(f"memory.{verb}: only the root session keeps memory")


@pytest.mark.parametrize("scope", ["repo", "mixed"])
def test_of_64_saves_at_once_exactly_three_succeed(daemon: Daemon, scope: str) -> None:
    kernel = Kernel(daemon, "busy")
    kernel.start()
    barrier = threading.Barrier(64)

    def save(number: int) -> str:
        where = "global" if scope == "mixed" and number % 2 else "repo"
        barrier.wait(20)
        try:
            kernel.save(f"n{number}", scope=where)
        except memd_client.SaveCap as error:
            return error.message
        return "saved"

    with ThreadPoolExecutor(64) as threads:
        outcomes = list(threads.map(save, range(64)))
    assert outcomes.count("saved") == 3
    assert set(outcomes) == {"saved", "memory.save: at most 3 saves per session; this is save 4"}
    assert len(daemon.names()) == 3


def test_the_cap_is_counted_in_the_journals_and_outlives_everything(daemon: Daemon) -> None:
    kernel = Kernel(daemon, "capped")
    kernel.start(save_cap=2)
    kernel.save("one")
    with pytest.raises(memd_client.Refused):
        kernel.save("bad", type="")
    kernel.call("memory.forget", name="one")
    kernel.save("two", scope="global")
    other = daemon.root / "other"
    (other / ".git").mkdir(parents=True)
    moved = Kernel(daemon, "capped", other)
    assert moved.start(resumed=True)["saves_left"] == 0
    daemon.kill()
    daemon.start()
    with pytest.raises(memd_client.SaveCap):
        moved.save("three")
    assert moved.start(save_cap=None)["saves_left"] is None
    moved.save("three")


def test_a_forgotten_note_leaves_every_block(daemon: Daemon) -> None:
    daemon.save("secret-plan", "The lighthouse password is plover.", description="Plan of the lighthouse")
    daemon.save("other-plan", "Paint the lighthouse white.", description="Paint for the lighthouse tower")
    kernels = [Kernel(daemon, f"s{number}") for number in range(3)]
    for kernel in kernels:
        kernel.start()
        assert "plover" in kernel.focus("the plan for the lighthouse, please")["text"]
    receipt = daemon.call("memory.forget", name="secret-plan")["receipt"]
    assert receipt["left"] == []
    assert held(daemon, "plover") == []
    assert held(daemon, "Plan of the lighthouse") == []
    for kernel in kernels:
        block = kernel.focus("anything")
        assert block["frozen"] is True
        assert "secret-plan" not in block["text"]
        assert "Paint the lighthouse white." in block["text"]


def test_a_note_deleted_by_hand_leaves_every_block_too(daemon: Daemon) -> None:
    daemon.save("secret-plan", "The lighthouse password is plover.", description="Plan of the lighthouse")
    kernel = Kernel(daemon, "s")
    kernel.start()
    kernel.focus("the plan for the lighthouse, please")
    (daemon.store / "secret-plan.md").unlink()
    assert daemon.call("memory.reconcile")["repo"]["forgotten"] == 1
    assert held(daemon, "plover") == []


def test_what_was_deleted_while_no_daemon_ran_leaves_blocks_at_the_next_start(daemon: Daemon) -> None:
    daemon.save("secret-plan", "The lighthouse password is plover.", description="Plan of the lighthouse")
    kernel = Kernel(daemon, "s")
    kernel.start()
    kernel.focus("the plan for the lighthouse, please")
    daemon.kill()
    (daemon.store / "secret-plan.md").unlink()
    daemon.start()
    daemon.call("memory.reconcile")
    assert held(daemon, "plover") == []
    assert "plover" not in kernel.focus("x")["text"]


def test_a_blank_prompt_spends_nothing(daemon: Daemon) -> None:
    daemon.save("note", "words of the wind")
    kernel = Kernel(daemon, "s")
    kernel.start()
    for blank in ("", "  \n\t", "\u3000"):
        reply = kernel.focus(blank)
        assert (reply["text"], reply["frozen"]) == (None, False)
    assert kernel.focus("words of the wind")["frozen"] is False


def test_row_14_greetings_earn_no_body_and_a_huge_note_starves_nobody(daemon: Daemon) -> None:
    daemon.save("anchor-winch", "Grease the anchor winch monthly.", description="Care of the anchor winch")
    daemon.save("tide-table", "The tide table is rebuilt at midnight.", description="When the tide table is rebuilt")
    (daemon.store / "huge.md").write_text("# Anchor lore\n\n" + "anchor winch lore, all of it. " * 2_700)
    daemon.call("memory.reconcile")
    for prompt in ("hi", "hello there!", "continue", "👍", "thanks, go on"):
        shown = daemon.call("memory.focus", prompt=prompt)
        assert [note["name"] for note in shown["notes"] if note["shown"] == "body"] == []
    block = daemon.call("memory.focus", prompt="how often do I grease the anchor winch?")
    bodies = {note["name"]: note["cut"] for note in block["notes"] if note["shown"] == "body"}
    assert bodies["anchor-winch"] is False
    assert bodies.get("huge", True) is True
    assert len(block["text"].encode()) < 6_000 + 2_000


def test_row_16_every_line_shown_can_be_read_and_forgotten_as_it_stands(daemon: Daemon) -> None:
    daemon.save("queue-redis", "Jobs go through Redis.", description="The job queue is Redis")
    daemon.save(
        "queue-postgres", "Jobs go through Postgres; replaces queue-redis.", description="The job queue moved"
    )
    daemon.save("queue-redis", "Elsewhere it is Redis too.", description="The global queue", scope="global")
    block = daemon.call("memory.focus", prompt="which job queue do we use, redis or postgres?")
    assert {(note["name"], note["scope"]) for note in block["notes"]} == {
        ("queue-redis", "repo"),
        ("queue-postgres", "repo"),
        ("queue-redis", "global"),
    }
    for note in block["notes"]:
        read = daemon.call("memory.read", name=note["name"], scope=note["scope"])
        assert (read["name"], read["warnings"]) == (note["name"], [])
        assert daemon.call("memory.forget", name=note["name"], scope=note["scope"])["name"] == note["name"]
    assert daemon.names() == []


def test_row_8_only_paths_that_are_gone_from_the_repository_are_marked(daemon: Daemon) -> None:
    (daemon.repo / "src").mkdir()
    (daemon.repo / "src" / "here.py").write_text("")
    gone = [f"src/gone_{number}.py" for number in range(10)]
    for number, path in enumerate(gone):
        daemon.save(
            f"planted-{number}", f"The parser of plovers lives in {path}.", description=f"Plover parser {number}"
        )
    clean = "Plovers: ~/.x, /etc/y, https://example.org/src/x, other-repo/src/z, --src/b, src/here.py, src/here.py:12"
    daemon.save("clean", clean, description="Plover paths that are none of ours")
    daemon.call("memory.forget", name="planted-0")
    text = daemon.call("memory.focus", prompt="plover plovers parser paths src", abstain=False)["text"]
    marked = [word for line in text.splitlines() for word in line.split("⚠ path gone: ")[1:]]
    assert marked
    assert all(any(mark.startswith(path) for path in gone) for mark in marked)


def test_a_store_that_does_not_load_is_named_and_the_other_serves(daemon: Daemon) -> None:
    daemon.save("note", "the wind gauge", scope="global")
    daemon.store.mkdir(parents=True)
    (daemon.store / "ops.jsonl").mkdir()
    kernel = Kernel(daemon, "s")
    lines = kernel.start()["lines"]
    assert lines[0] == "memory · 0 repo · 1 global · 0 unparsed"
    assert any("repo store" in line for line in lines)
    block = kernel.focus("what of the wind gauge?")
    assert [note["name"] for note in block["notes"]] == ["note"]
    assert "repo" in block["text"]


@pytest.mark.parametrize("bad", [b"", b'{"id": "s", "cwd"', b"\xff", b'{"id": 1}', b"\0" * 100])
def test_a_corrupt_session_file_starts_clean_and_says_so(daemon: Daemon, bad: bytes) -> None:
    kernel = Kernel(daemon, "s")
    kernel.start()
    kernel.save("x")
    daemon.kill()
    (daemon.home / "sessions" / "s.json").write_bytes(bad)
    daemon.start()
    started = kernel.start()
    assert any(line.startswith("session · ") and "set aside" in line for line in started["lines"])
    assert started["saves_left"] == 2
    assert (daemon.home / "sessions" / "s.bad.1").read_bytes() == bad


def test_a_call_in_a_session_whose_file_is_corrupt_is_told_to_start_it_anew(daemon: Daemon) -> None:
    kernel = Kernel(daemon, "s")
    kernel.start()
    daemon.kill()
    (daemon.home / "sessions" / "s.json").write_bytes(b"{")
    daemon.start()
    with pytest.raises(memd_client.Unreadable):
        kernel.save("x")
    kernel.start()
    kernel.save("x")


@pytest.mark.parametrize("session", ["", ".", "..", "a/b", "../x", "-x", "x-", "a b", "é", "a" * 129, "a\n"])
def test_an_id_that_is_none_is_refused(daemon: Daemon, session: str) -> None:
    with pytest.raises(memd_client.InvalidParams):
        Kernel(daemon, session).start()
    with pytest.raises(memd_client.InvalidParams):
        Kernel(daemon, session).call("memory.list")


@pytest.mark.parametrize("more", [{"depth": "0"}, {"depth": -1}, {"depth": 1.5}, {"save_cap": "3"}, {"resumed": 1}])
def test_parameters_of_another_type_are_refused(daemon: Daemon, more: dict[str, object]) -> None:
    with pytest.raises(memd_client.InvalidParams):
        Kernel(daemon, "s").start(**more)


def test_a_session_that_was_never_started_is_not_found(daemon: Daemon) -> None:
    for method, params in (("memory.list", {}), ("session.update", {"read_only": True})):
        with pytest.raises(memd_client.NotFound) as caught:
            Kernel(daemon, "nobody").call(method, **params)
        assert caught.value.data == {"kind": "not_found", "field": "session"}
    with pytest.raises(memd_client.NotFound) as no_note:
        daemon.call("memory.show", name="nothing")
    assert no_note.value.data == {"kind": "not_found"}


def test_a_transcript_must_lie_under_a_root_of_the_config(daemon: Daemon) -> None:
    roots = daemon.root / "transcripts"
    roots.mkdir()
    (roots / "one.jsonl").write_text("")
    (daemon.root / "outside.jsonl").write_text("")
    (roots / "link.jsonl").symlink_to(daemon.root / "outside.jsonl")
    config = daemon.root / "config.toml"
    config.write_text(f'history.roots = ["{roots}"]\n')
    daemon.env["MEMD_CONFIG"] = str(config)
    daemon.terminate()
    daemon.start()
    Kernel(daemon, "good").start(transcript=str(roots / "one.jsonl"))
    for bad in (daemon.root / "outside.jsonl", roots / "link.jsonl", roots, roots / "none.jsonl", Path("one.jsonl")):
        with pytest.raises(memd_client.Refused) as caught:
            Kernel(daemon, "bad").start(transcript=str(bad))
        assert caught.value.data["field"] == "transcript"


def test_a_session_file_holds_no_note_text_but_its_block(daemon: Daemon) -> None:
    kernel = Kernel(daemon, "s")
    kernel.start()
    kernel.save("note", "words that only the note holds")
    assert "only the note" not in (daemon.home / "sessions" / "s.json").read_text()
    assert (daemon.home / "sessions" / "s.json").stat().st_mode & 0o077 == 0
    assert kernel.call("session.end") == {"ended": True}
    assert kernel.start(resumed=True)["saves_left"] == 2


def test_a_start_and_a_cut_index_are_told_to_whoever_listens(daemon: Daemon) -> None:
    for number in range(20):
        daemon.save(f"n{number:02}")
    kernel = Kernel(daemon, "s")
    with daemon.connect() as connection, connection.activity(timeout=20) as events:
        lines = kernel.start()["lines"]
        started = next(events)
        assert (started["event"], started["session"], started["line"]) == ("session_start", "s", "\n".join(lines))
        dropped = kernel.call("memory.index", max_bytes=300)["dropped"]
        cut = next(events)
        assert (cut["event"], cut["telemetry"]) == ("memory_index_truncated", {"droppedCount": dropped})


def test_the_index_names_what_it_left_out(daemon: Daemon) -> None:
    for number in range(30):
        daemon.save(f"n{number:02}", description=f"The hook of note {number}")
    daemon.save("n01", "shadowed", scope="global", description="A global note of the same name")
    whole = daemon.call("memory.index")
    assert whole["dropped"] == 0
    assert whole["text"].count("n01") >= 1
    assert "A global note of the same name" not in whole["text"]
    cut = daemon.call("memory.index", max_bytes=600)
    assert len(cut["text"].encode()) <= 600
    assert cut["text"].endswith(f"<!-- truncated: {cut['dropped']} entries omitted -->")
    assert json.loads(json.dumps(cut))["fenced"].startswith("<<<yi-external ")


def saves_of(daemon: Daemon, session: str, *places: Path) -> int:
    """The saves that the journals hold of a session, in the global store and these places' own."""
    records = {}
    for place in places:
        for record in daemon.call("memory.log", cwd=place, limit=1000)["records"]:
            if record.get("session") == session and record["op"] == "save":
                records[record["digest"]] = record
    return len(records)


def busily(work: Callable[[int], object], count: int, beside: Callable[[], object]) -> None:
    """Do some work in threads at once while something else is done over and over."""
    done = threading.Event()

    def again() -> None:
        while not done.is_set():
            beside()

    with ThreadPoolExecutor(count + 1) as threads:
        other = threads.submit(again)
        list(threads.map(work, range(count)))
        done.set()
        other.result(20)


def test_an_end_beside_calls_gives_no_more_saves_and_no_second_block(daemon: Daemon) -> None:
    daemon.save("wind", "The wind gauge reports knots.", description="Units of the wind gauge")
    kernel = Kernel(daemon, "s")
    kernel.start()
    texts = set()

    def work(number: int) -> None:
        with suppress(memd_client.SaveCap):
            kernel.save(f"n{number}")
        texts.add(kernel.focus(f"the wind gauge, asked {number} times")["text"])

    busily(work, 12, lambda: kernel.call("session.end"))
    assert saves_of(daemon, "s", daemon.repo) == 3
    assert len(texts) == 1


def test_a_start_elsewhere_beside_saves_gives_no_more_of_them(daemon: Daemon) -> None:
    places = [daemon.repo, daemon.root / "b", daemon.root / "c"]
    for place in places[1:]:
        (place / ".git").mkdir(parents=True)
    kernels = [Kernel(daemon, "s", place) for place in places]
    for kernel in kernels:
        kernel.start()
    turn = itertools.cycle(kernels)

    def work(number: int) -> None:
        with suppress(memd_client.SaveCap):
            kernels[0].save(f"n{number}")

    busily(work, 12, lambda: next(turn).start(resumed=True))
    assert saves_of(daemon, "s", *places) == 3


def test_a_repository_that_moved_gives_no_saves_back(daemon: Daemon) -> None:
    kernel = Kernel(daemon, "s")
    kernel.start()
    for number in range(3):
        kernel.save(f"n{number}")
    moved = daemon.root / "moved"
    daemon.repo.rename(moved)
    assert Kernel(daemon, "s", moved).start(resumed=True)["saves_left"] == 0
    moved.rename(daemon.repo)


def test_an_update_beside_a_forget_puts_nothing_back(daemon: Daemon) -> None:
    def forget(_number: int) -> object:
        return daemon.call("memory.forget", name="plan")

    for number in range(8):
        daemon.save("plan", f"The lighthouse password is plover{number}.", description="Plan of the lighthouse")
        kernel = Kernel(daemon, f"s{number}")
        kernel.start()
        kernel.focus("the plan for the lighthouse, please")
        busily(forget, 1, partial(kernel.call, "session.update", read_only=False))
        assert held(daemon, f"plover{number}") == []
        assert "plover" not in kernel.focus("x")["text"]


def test_a_frozen_block_is_looked_at_again_before_it_is_shown(daemon: Daemon) -> None:
    daemon.save("plan", "The lighthouse password is plover.", description="Plan of the lighthouse")
    kernel = Kernel(daemon, "s")
    kernel.start()
    kernel.focus("the plan for the lighthouse, please")
    (daemon.store / "plan.md").unlink()
    until(lambda: "plover" not in kernel.focus("x")["text"], seconds=10)
    daemon.save("plan", "The lighthouse password is plover.", description="Plan of the lighthouse")
    other = Kernel(daemon, "t")
    other.start()
    path = daemon.home / "sessions" / "t.json"
    other.focus("the plan for the lighthouse, please")
    before = path.read_bytes()
    daemon.call("memory.forget", name="plan")
    daemon.kill()
    path.write_bytes(before)  # as a crash leaves it that comes between a forget's journal line and its purge
    daemon.start()
    assert "plover" not in other.focus("x")["text"]
    assert held(daemon, "plover") == []


def test_what_was_set_aside_goes_with_a_forget(daemon: Daemon) -> None:
    daemon.save("plan", "The lighthouse password is plover.", description="Plan of the lighthouse")
    kernel = Kernel(daemon, "s")
    kernel.start()
    kernel.focus("the plan for the lighthouse, please")
    daemon.kill()
    path = daemon.home / "sessions" / "s.json"
    path.write_bytes(path.read_bytes()[:-2])
    daemon.start()
    kernel.start()
    assert daemon.call("memory.forget", name="plan")["receipt"]["left"] == []
    assert held(daemon, "plover") == []


def test_a_block_that_a_crash_left_half_written_goes_with_a_forget_and_at_the_next_opening(daemon: Daemon) -> None:
    daemon.save("plan", "The lighthouse password is plover.", description="Plan of the lighthouse")
    kernel = Kernel(daemon, "s")
    kernel.start()
    kernel.focus("the plan for the lighthouse, please")
    path = daemon.home / "sessions" / "s.json"
    left = path.with_name(".4711-18ecd634dae6fc20-285.tmp")
    left.write_bytes(path.read_bytes())
    assert daemon.call("memory.forget", name="plan")["receipt"]["left"] == []
    assert held(daemon, "plover") == []
    daemon.kill()
    left.write_bytes(b'{"block":"plover"')
    daemon.start()
    daemon.names()
    assert held(daemon, "plover") == []


def test_a_death_between_a_forget_and_its_blocks_is_made_good_by_a_store_that_a_write_opens_too(
    daemon: Daemon,
) -> None:
    daemon.save("plan", "The lighthouse password is plover.", description="Plan of the lighthouse")
    kernel = Kernel(daemon, "s")
    kernel.start()
    kernel.focus("the plan for the lighthouse, please")
    path = daemon.home / "sessions" / "s.json"
    before = path.read_bytes()
    daemon.call("memory.forget", name="plan")
    daemon.kill()
    path.write_bytes(before)
    daemon.start()
    daemon.save("other")
    assert held(daemon, "plover") == []
