"""A store under git, on a mount that goes, of 5,000 notes that go, and a system that gives no events (SPEC 5)."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memd_client
from support.daemon import Daemon, running_daemon
from support.waiting import until
from support.watched import AS_SAVED, EDITED, hears, journal, quick_daemon, quick_home, records, status

MANY = 5_000
PATIENCE_S = 240.0


@pytest.fixture
def quick() -> Iterator[Daemon]:
    """A daemon that believes a deletion after 0.3 s."""
    with quick_daemon() as daemon:
        yield daemon


def run(*command: str, cwd: Path | None = None) -> None:
    """A program; the test fails with what it says when it does."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    done = subprocess.run(command, cwd=cwd, env=env, check=False, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def git(store: Path, *words: str) -> None:
    """Run git in a store, as nobody in particular."""
    run("git", "-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "gc.auto=0", *words, cwd=store)


def test_a_checkout_of_another_text_is_one_edit_each_way(quick: Daemon) -> None:
    hears(quick, "versioned", "stays", "other")
    git(quick.store, "init", "--quiet", "-b", "main")
    git(quick.store, "add", "versioned.md", "stays.md", "other.md")
    git(quick.store, "commit", "--quiet", "-m", "first")
    git(quick.store, "checkout", "--quiet", "-b", "side")
    (quick.store / "versioned.md").write_text("On the side.\n")
    until(lambda: journal(quick.store, "versioned") == EDITED)
    git(quick.store, "commit", "--quiet", "-m", "second", "versioned.md")
    git(quick.store, "checkout", "--quiet", "main")
    until(lambda: journal(quick.store, "versioned") == [*EDITED, "edit hand"])
    quick.call("memory.reconcile")
    assert journal(quick.store, "versioned") == [*EDITED, "edit hand"]
    assert journal(quick.store, "stays") == journal(quick.store, "other") == AS_SAVED
    assert quick.call("memory.verify")["ok"]


def test_a_checkout_of_a_thousand_notes_is_taken_in_while_others_save(quick: Daemon) -> None:
    hears(quick, "kept")
    git(quick.store, "init", "--quiet", "-b", "main")
    git(quick.store, "add", "kept.md")
    git(quick.store, "commit", "--quiet", "-m", "first")
    elsewhere = quick.root / "clone"
    git(quick.root, "clone", "--quiet", str(quick.store), str(elsewhere))
    for number in range(1000):
        (elsewhere / f"note-{number}.md").write_text(f"# the note {number}\n")
    git(elsewhere, "add", ".")
    git(elsewhere, "commit", "--quiet", "-m", "many")
    git(elsewhere, "push", "--quiet", str(quick.store), "HEAD:side")
    git(quick.store, "checkout", "--quiet", "side")
    saved = 0
    while len(records(quick.store)) < 1001 + saved:
        quick.save(f"meanwhile-{saved}", "words")
        saved += 1
    until(lambda: len(quick.names()) == 1001 + saved)
    assert all(journal(quick.store, f"note-{number}") == ["adopt hand"] for number in (0, 1, 500, 999))
    assert quick.call("memory.verify")["ok"]


@pytest.mark.timeout(600)
def test_five_thousand_notes_that_vanish_at_once_and_come_back_were_never_forgotten() -> None:
    with running_daemon() as daemon:  # it believes a deletion after 2 s, so that all of them are at once
        vanish_and_come_back(daemon)


def vanish_and_come_back(quick: Daemon) -> None:
    """Have every note but one of a store go, and be back."""
    hears(quick, "first")
    for number in range(MANY):
        (quick.store / f"note-{number}.md").write_text(f"# the note {number}\n")
    until(lambda: len(records(quick.store)) == MANY + 1, PATIENCE_S)
    aside = quick.root / "aside"
    aside.mkdir()
    for number in range(MANY):
        (quick.store / f"note-{number}.md").rename(aside / f"note-{number}.md")
    with pytest.raises(memd_client.Suspended):
        quick.save("new", "words")
    assert quick.call("memory.search", query="note", limit=1)["total"] == MANY, "served from their objects"
    for number in range(MANY):
        (aside / f"note-{number}.md").rename(quick.store / f"note-{number}.md")
    until(lambda: quick.call("memory.reconcile")["repo"]["suspended"] is False, PATIENCE_S)
    quick.save("new", "words")
    assert sum(record["op"] == "forget" for record in records(quick.store)) == 0
    assert len(quick.names()) == MANY + 2
    assert quick.call("memory.verify")["ok"]


def test_a_store_that_is_unmounted_is_suspended_and_heard_again_once_it_is_back(quick: Daemon) -> None:
    real = quick.root / "real"
    real.mkdir()
    quick.store.mkdir(parents=True)
    run("mount", "--bind", str(real), str(quick.store))
    try:
        hears(quick, "a", "b", "c")
        run("umount", str(quick.store))
        with pytest.raises(memd_client.Suspended):
            quick.save("new", "words")
        assert list(quick.store.iterdir()) == [], "nothing is written below the mount"
        run("mount", "--bind", str(real), str(quick.store))
        until(lambda: sorted(quick.names()) == ["a", "b", "c"])
        quick.save("new", "words")
        (quick.store / "a.md").write_text("by hand\n")
        until(lambda: journal(quick.store, "a") == EDITED, 80)
        assert all(journal(quick.store, name)[0] == "save cli" for name in "abc")
        assert quick.call("memory.verify")["ok"]
    finally:
        run("umount", str(quick.store))


@pytest.mark.parametrize("limit", ["max_inotify_instances", "max_inotify_watches"])
def test_where_the_system_gives_no_more_watches_stores_are_polled(limit: str) -> None:
    with quick_home() as daemon:
        low = f"echo 1 > /proc/sys/user/{limit} && exec {sys.executable} -m memd"
        if limit == "max_inotify_instances":
            low = low.replace("echo 1", "echo 0")
        daemon.command = ["unshare", "--user", "--map-root-user", "sh", "-c", low]
        daemon.start()
        daemon.save("kept", "words")
        (daemon.store / "kept.md").write_text("by hand\n")
        until(lambda: journal(daemon.store, "kept") == EDITED)
        told = status(daemon)
        assert told["watching"] is False
        assert "fs.inotify" in told["findings"][0]["reason"]
