"""Whatever the umask is: every directory that memd makes is 0700, every file 0600 (SPEC 1)."""

import stat
import sys
from pathlib import Path

import pytest

from support.daemon import Daemon, daemon_home
from support.waiting import until

UNDER_A_UMASK = """
import os, sys
os.umask(int(sys.argv[1], 8))
os.execv(sys.executable, [sys.executable, "-m", "memd"])
"""


def modes(home: Path) -> dict[str, int]:
    """The permission bits of everything below a home, by its path in it."""
    return {str(path.relative_to(home)): stat.S_IMODE(path.lstat().st_mode) for path in [home, *home.rglob("*")]}


def use_all_of_it(daemon: Daemon) -> None:
    """Have memd make every kind of file that it makes."""
    daemon.call("session.start", session="s-1")
    with daemon.connect() as connection:
        connection.call("memory.focus", {"session": "s-1", "prompt": "the words"})
    daemon.save("first", "words")
    daemon.save("first", "more words")
    daemon.save("everywhere", "words", scope="global")
    daemon.call("memory.read", name="first")
    daemon.call("memory.rename", name="first", to="second")
    daemon.call("memory.move", name="second", scope="global")
    daemon.save("third", "words")
    notes = daemon.root / "notes"
    notes.mkdir(mode=0o755)
    (notes / "imported.md").write_text("# Imported\n")
    (notes / "imported.md").chmod(0o666)
    daemon.call("memory.import", dir=str(notes))
    with (daemon.store / "ops.jsonl").open("ab") as journal:
        journal.write(b"torn")
    daemon.save("fourth", "words")
    (daemon.store / "usage.json").write_bytes(b"{")
    daemon.call("memory.rebuild")
    daemon.call("memory.forget", name="fourth")


@pytest.mark.parametrize("umask", ["000", "022", "077", "277"])
def test_what_memd_makes_is_ours_alone(umask: str) -> None:
    with daemon_home() as daemon:
        daemon.command = [sys.executable, "-c", UNDER_A_UMASK, umask]
        daemon.start()
        use_all_of_it(daemon)
        found = modes(daemon.home)
        names = {Path(path).name for path in found}
        assert names >= {"memd.sock", ".daemon.lock", ".reserve", "ops.jsonl", "usage.json", ".lock", ".origin"}
        assert names >= {"MEMORY.md", "third.md", "imported.md", "objects", "s-1.json", "ops.torn.1", "usage.bad.1"}
        for path, mode in found.items():
            assert mode == (0o700 if (daemon.home / path).is_dir() else 0o600), path


def test_what_a_hand_left_open_is_closed_again_by_the_next_save() -> None:
    with daemon_home() as daemon:
        daemon.start()
        daemon.save("note", "words")
        for path in (daemon.store / "note.md", daemon.store / "MEMORY.md", daemon.store / "usage.json"):
            path.chmod(0o644)
        daemon.save("note", "more words", description="Another hook, so that the index has another row")
        assert {mode for path, mode in modes(daemon.home).items() if path.endswith((".md", ".json"))} == {0o600}


def test_a_file_that_a_hand_edits_is_kept_as_a_closed_object() -> None:
    with daemon_home() as daemon:
        daemon.start()
        daemon.save("note", "words")
        by_hand = daemon.store / "by-hand.md"
        by_hand.write_text("# by hand\n")
        by_hand.chmod(0o644)
        until(lambda: "by-hand" in daemon.names())
        until(lambda: daemon.call("memory.reconcile")["repo"]["adopted"] == 0)
        objects = [mode for path, mode in modes(daemon.home).items() if "/objects/" in path]
        assert objects == [0o600, 0o600]
