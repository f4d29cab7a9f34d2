"""A store in trouble under a running daemon: nothing is lost, nothing is made up, and the rest goes on (SPEC 4)."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import memd_client
from support.daemon import Daemon, daemon_home
from support.waiting import until

HOLD = """
import fcntl, sys
with open(sys.argv[1], "a") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""
BOUND_BY_MODES = """
import ctypes, os, sys
if os.geteuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        if libc.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP: gone with the next program
            sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.executable, [sys.executable, "-m", "memd"])
"""
"""Runs the daemon bound by file modes, as root is not otherwise."""


@pytest.fixture
def unprivileged() -> Iterator[Daemon]:
    """A daemon, not started, that file modes bind."""
    with daemon_home() as daemon:
        daemon.command = [sys.executable, "-c", BOUND_BY_MODES]
        yield daemon


@pytest.mark.parametrize("bad", [b"", b"\0" * 64, b"{", b"[]", b'{"sessions": -1, "notes": {}}', b"\xff\xfe"])
def test_a_corrupt_usage_file_is_never_read_as_empty(daemon: Daemon, bad: bytes) -> None:
    daemon.save("note", "words")
    usage = daemon.store / "usage.json"
    usage.write_bytes(bad)
    with pytest.raises(memd_client.Unreadable) as caught:
        daemon.save("other", "words")
    assert "rebuild" in caught.value.message
    with pytest.raises(memd_client.Unreadable):
        daemon.call("memory.forget", name="note")
    reply = daemon.call("memory.read", name="note")
    assert reply["text"] == "words"
    assert len(reply["warnings"]) == 1
    assert "pointer" not in reply
    assert daemon.names() == ["note"]
    assert usage.read_bytes() == bad
    assert [finding["kind"] for finding in daemon.call("memory.check")["findings"]] == ["unreadable"]
    assert daemon.call("memory.rebuild")["ok"]
    assert (daemon.store / "usage.bad.1").read_bytes() == bad
    assert json.loads(usage.read_text())["notes"]["note"]["saves"] == 1
    daemon.save("other", "words")


def test_an_index_that_is_not_utf8_is_left_alone(daemon: Daemon) -> None:
    daemon.save("note", "words")
    index = daemon.store / "MEMORY.md"
    index.write_bytes(b"- my own \xff words\n")
    with pytest.raises(memd_client.Unreadable):
        daemon.save("other", "words")
    assert daemon.found("words") == ["note"]
    assert daemon.call("memory.read", name="note")["text"] == "words"
    assert index.read_bytes() == b"- my own \xff words\n"
    index.write_text("- my own words\n")
    daemon.save("other", "words")
    assert index.read_text().splitlines()[0] == "- my own words"


def test_a_flipped_journal_is_named_by_its_line_and_goes_on(daemon: Daemon) -> None:
    for number in range(4):
        daemon.save(f"n{number}", "words")
    journal = daemon.store / "ops.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"name":"n1"', b'"name":"nX"')
    daemon.kill()
    journal.write_bytes(b"".join(lines))
    daemon.start()
    verify = daemon.call("memory.verify")
    assert ("broken_chain", 2) in {(finding["kind"], finding.get("line")) for finding in verify["findings"]}
    assert daemon.call("memory.rebuild")["ok"] is False
    assert daemon.call("memory.rebuild")["repo"]["broken_line"] == 2
    daemon.save("after", "words")
    assert len(daemon.found("words")) >= 4


@pytest.mark.parametrize("what", ["journal", "note", "index"])
def test_a_directory_or_a_fifo_where_a_file_belongs_hangs_nothing(daemon: Daemon, what: str) -> None:
    daemon.save("note", "words")
    name = {"journal": "ops.jsonl", "note": "trap.md", "index": "MEMORY.md"}[what]
    path = daemon.store / name
    fifo = daemon.store / ".fifo"
    os.mkfifo(fifo)
    fifo.replace(path)  # at once: a missing MEMORY.md is made anew by whoever looks
    with pytest.raises(memd_client.MemdError) as caught:
        daemon.save("trap", "words")
    assert caught.value.data["kind"] in ("unreadable", "refused")
    daemon.save("elsewhere", "words", scope="global")
    assert "elsewhere" in daemon.names(cwd=daemon.user)


def test_a_read_only_home_serves_and_acknowledges_nothing(unprivileged: Daemon) -> None:
    daemon = unprivileged
    daemon.start()
    daemon.save("note", "words")
    for directory in (daemon.store / "objects", daemon.store):
        directory.chmod(0o500)
    try:
        with pytest.raises(memd_client.Storage) as caught:
            daemon.save("other", "words")
        assert "acknowledged" in caught.value.message
        assert str(daemon.home) not in caught.value.message
        daemon.terminate()
        daemon.start()
        assert daemon.found("words") == ["note"]
        assert daemon.call("memory.read", name="note")["text"] == "words"
        with pytest.raises(memd_client.Storage):
            daemon.save("other", "words")
    finally:
        for directory in (daemon.store, daemon.store / "objects"):
            directory.chmod(0o700)
    daemon.save("other", "words")
    assert daemon.names() == ["note", "other"]


def configure(daemon: Daemon, text: str) -> None:
    """Start the daemon again with this config."""
    config = daemon.root / "config.toml"
    config.write_text(text)
    daemon.env["MEMD_CONFIG"] = str(config)
    daemon.terminate()
    daemon.start()


@contextmanager
def lock_held(store: Path) -> Iterator[None]:
    """Another process holds the store's lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store / ".lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.stdin.close()
        holder.wait(20)


def test_a_lock_that_somebody_holds_is_busy_and_searches_go_on(daemon: Daemon) -> None:
    daemon.save("note", "words")
    configure(daemon, "lock_timeout_s = 0.2\n")
    daemon.names()
    with lock_held(daemon.store):
        with pytest.raises(memd_client.Busy):
            daemon.save("other", "words")
        assert daemon.found("words") == ["note"]
        daemon.save("global", "words", scope="global")
    daemon.save("other", "words")


def test_a_read_does_not_wait_for_the_lock_as_long_as_a_save(daemon: Daemon) -> None:
    daemon.save("note", "words")
    # Longer than the client waits for an answer: only a read that gives up by itself gets one.
    configure(daemon, "lock_timeout_s = 60\n")
    daemon.names()
    with ThreadPoolExecutor(1) as saver, lock_held(daemon.store):
        saving = saver.submit(daemon.save, "other", "words")
        for _ in range(2):
            reply = daemon.call("memory.read", name="note")
            assert (reply["text"], len(reply["warnings"]), "pointer" in reply) == ("words", 1, False)
        assert not saving.done()
    assert saving.result()["name"] == "other"


def test_readers_do_not_wait_for_a_lock_that_somebody_holds(daemon: Daemon) -> None:
    daemon.save("note", "words")
    # Longer than the client waits for an answer: a reader that waits for the lock gets none.
    configure(daemon, "lock_timeout_s = 60\n")
    with lock_held(daemon.store):
        assert daemon.found("words") == ["note"]
        (daemon.store / "by-hand.md").write_text("# words, by hand\n")
        assert daemon.found("words")
        (daemon.store / "note.md").write_text("# words, changed by hand\n")
        assert daemon.call("memory.read", name="note")["text"] == "# words, changed by hand"
        assert "note" in daemon.names()
        assert len(daemon.call("memory.log")["records"]) == 1
    until(lambda: daemon.found("words") == ["by-hand", "note"])


def test_a_file_that_was_not_quiet_yet_is_found_by_a_later_search(daemon: Daemon) -> None:
    daemon.save("note", "words")
    (daemon.store / "by-hand.md").write_text("# words, by hand\n")
    daemon.found("words")
    until(lambda: daemon.found("words") == ["by-hand", "note"], seconds=5)
    (daemon.store / "by-hand.md").write_text("# other things, by hand\n")
    daemon.found("words")
    until(lambda: daemon.found("words") == ["note"], seconds=5)


def test_a_twin_written_by_hand_a_moment_ago_is_updated(daemon: Daemon) -> None:
    daemon.save("seed")
    (daemon.store / "hand_two.md").write_text("# by hand\n")
    reply = daemon.save("hand-two", "saved")
    assert reply["name"] == "hand_two"
    assert sorted(path.stem for path in daemon.store.glob("*.md")) == ["MEMORY", "hand_two", "seed"]
    ops = [(record["op"], record["by"]) for record in daemon.call("memory.log", name="hand_two")["records"]]
    assert ops == [("save", "cli"), ("adopt", "hand")]


@pytest.mark.parametrize("what", ["symlink", "directory", "fifo", "huge"])
def test_a_note_that_something_else_has_replaced_can_be_forgotten(daemon: Daemon, what: str) -> None:
    daemon.save("note", "The only words of the note.")
    path = daemon.store / "note.md"
    path.unlink()
    if what == "symlink":
        path.symlink_to(daemon.root / "elsewhere")
    elif what == "directory":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(b"x" * (1 << 20) + b"y")
    daemon.call("memory.reconcile")
    assert daemon.call("memory.forget", name="note")["receipt"]["versions"] == 1
    assert os.path.lexists(path)
    texts = [file for file in daemon.home.rglob("*") if file.is_file() and b"only words" in file.read_bytes()]
    assert texts == []
    with pytest.raises(memd_client.NotFound):
        daemon.call("memory.forget", name="note")


def test_the_whole_store_taken_away_is_not_made_again(daemon: Daemon) -> None:
    for number in range(3):
        daemon.save(f"n{number}", "words")
    away = daemon.root / "away"
    shutil.move(daemon.store, away)
    with pytest.raises(memd_client.Suspended):
        daemon.save("new", "words")
    assert daemon.found("words") == []
    assert daemon.call("memory.reconcile")["repo"]["suspended"] is True
    assert not daemon.store.exists()
    shutil.move(away, daemon.store)
    assert sorted(daemon.found("words")) == ["n0", "n1", "n2"]
    daemon.save("new", "words")
    assert daemon.call("memory.verify")["ok"]


def test_a_store_of_another_program_of_its_kind_is_followed(daemon: Daemon) -> None:
    daemon.save("ours", "words")
    done = subprocess.run(
        [sys.executable, "-c", FOREIGN, str(daemon.store)], env=daemon.env, check=True, capture_output=True, text=True
    )
    assert done.stdout == "True\n"
    assert sorted(daemon.found("words")) == ["ours", "theirs"]
    daemon.save("ours", "more words")
    assert daemon.call("memory.verify") == {"ok": True, "findings": []}


FOREIGN = """
import sys
from pathlib import Path
from memd.draft import draft
from memd.store import Author, Save, Saved, Store
store = Store(Path(sys.argv[1]))
store.open()
text = draft("their words", {"name": "theirs", "type": "user", "description": "d"})
print(isinstance(store.commit([Save(text, Author())]).outcomes[0], Saved))
"""


def test_a_socket_path_that_is_too_long_is_a_clear_error() -> None:
    root = Path(tempfile.mkdtemp(prefix="memd-e2e-", dir="/tmp"))
    home = root / ("long" * 30)
    env = {"HOME": str(root), "MEMD_HOME": str(home), "PATH": os.environ["PATH"]}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "memd"], env=env, cwd="/", capture_output=True, text=True, timeout=20, check=False
        )
        assert done.returncode == 2
        for word in ("MEMD_SOCKET", str(home / "run" / "memd.sock"), str(len(str(home / "run" / "memd.sock")))):
            assert word in done.stderr
        assert not home.exists()
        with pytest.raises(memd_client.SocketPathTooLong):
            memd_client.connect(env=env)
    finally:
        shutil.rmtree(root)


def test_a_config_that_does_not_parse_starts_with_defaults_and_says_so(daemon: Daemon) -> None:
    configure(daemon, "save_cap = \n")
    assert [finding["kind"] for finding in daemon_status(daemon)["findings"]] == ["config"]
    daemon.save("note", "words")


def daemon_status(daemon: Daemon) -> dict[str, Any]:
    """`daemon.status`, which names no place."""
    with daemon.connect() as connection:
        return connection.call("daemon.status")


def test_connections_are_counted_and_let_go(daemon: Daemon) -> None:
    def open_now() -> object:
        return daemon_status(daemon)["connections"]

    with daemon.connect() as first, daemon.connect() as second:
        first.call("daemon.hello")
        second.call("daemon.hello")
        until(lambda: open_now() == 3)
    until(lambda: open_now() == 1)
