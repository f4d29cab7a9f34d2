"""`memctl doctor`: whatever is wrong is named with cause and remedy, with a daemon and without. SPEC section 14."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.daemon import Daemon, running_daemon
from support.memctl_program import memctl, memctl_on_terminal
from support.waiting import until

KEY = "ghp_" + "a1B2" * 9


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with running_daemon() as daemon:
        daemon.env["NO_COLOR"] = "1"
        yield daemon


def doctor(daemon: Daemon, *more: str) -> dict[str, Any]:
    ran = memctl(daemon.env, "doctor", "--json", *more, cwd=daemon.repo)
    report: dict[str, Any] = json.loads(ran.out)
    assert report["ok"] == (not report["findings"])
    assert ran.code == (0 if report["ok"] else 1)
    assert [one["number"] for one in report["findings"]] == list(range(1, len(report["findings"]) + 1))
    assert all(one["cause"] and one["remedy"] for one in report["findings"])
    return report


def kinds(daemon: Daemon, *more: str) -> list[str]:
    return [one["kind"] for one in doctor(daemon, *more)["findings"]]


def only(daemon: Daemon, kind: str) -> dict[str, Any]:
    [one] = [one for one in doctor(daemon)["findings"] if one["kind"] == kind]
    return dict(one)


def test_a_healthy_home_is_well(daemon: Daemon) -> None:
    daemon.save("crane", "It stalls.")
    ran = memctl(daemon.env, "doctor", cwd=daemon.repo)
    assert (ran.code, ran.err) == (0, "")
    row, verdict = ran.out.splitlines()
    assert row.startswith("claude-memory: 0 found · 0 imported · ")
    assert verdict == "all is well"


def test_without_a_daemon_it_looks_at_what_needs_none(daemon: Daemon) -> None:
    daemon.kill()
    config = daemon.root / "config.toml"
    config.write_text("save_cap = \n")
    daemon.env["MEMD_CONFIG"] = str(config)
    daemon.home.chmod(0o755)
    report = doctor(daemon)
    assert [one["kind"] for one in report["findings"]] == ["permissions", "config", "daemon"]
    assert report["rows"] == {"claude-memory": {}}
    ran = memctl(daemon.env, "doctor", cwd=daemon.repo)
    assert "2. config: " in ran.out
    assert "does not parse" in ran.out
    assert "   `memctl start`" in ran.out
    assert ran.err == "`memctl doctor --fix` mends what is safe to mend\n"


def test_fix_mends_what_is_safe_and_says_what_is_left(daemon: Daemon) -> None:
    daemon.save("crane", "It stalls.")
    daemon.kill()
    daemon.home.chmod(0o755)
    (daemon.store / "crane.md").chmod(0o644)
    fixed = doctor(daemon, "--fix")
    try:
        assert [one["kind"] for one in fixed["fixed"]] == ["permissions", "daemon"]
        assert (fixed["ok"], fixed["findings"]) == (True, [])
        assert daemon.home.stat().st_mode & 0o777 == 0o700
        assert (daemon.store / "crane.md").stat().st_mode & 0o777 == 0o600
        assert doctor(daemon)["fixed"] == []
    finally:
        memctl(daemon.env, "stop")


def test_troubles_of_notes_have_their_remedies(daemon: Daemon) -> None:
    daemon.save("tide-table", "High at noon.", description="The tide table of the north harbour pier")
    daemon.save("tide-tables", "High at one.", description="The tide table of the north harbour")
    for name, text in (
        ("open", "---\nname: open\nno end\n"),
        ("leak", f"a token {KEY}\n"),
        ("fenced", "<<<yi-external 12\nnote\n"),
        ("crane.sync-conflict-20260501-101010-ABCDEFG", "a copy\n"),
    ):
        (daemon.store / f"{name}.md").write_text(text)
    (daemon.store / "link.md").symlink_to(daemon.store / "open.md")
    (daemon.store / "huge.md").write_bytes(b"x" * ((1 << 20) + 1))
    until(lambda: "fenced" in daemon.names())
    expected = {"unparsed", "secret", "fence", "symlink", "oversize", "near_duplicate", "conflict_copy"}
    assert set(kinds(daemon)) == expected
    assert only(daemon, "unparsed")["remedy"].startswith("`memctl edit open`")
    assert only(daemon, "conflict_copy")["cause"].startswith("repo/crane.sync-conflict-20260501")
    twins = only(daemon, "near_duplicate")
    assert (twins["cause"], twins["fixable"]) == (
        "repo/tide-tables: its hook nearly repeats that of tide-table",
        False,
    )
    shown = memctl(daemon.env, "doctor", cwd=daemon.repo)
    assert KEY not in shown.out
    assert "High at noon" not in shown.out
    assert set(kinds(daemon, "--scope", "global")) == set()


def test_a_broken_journal_and_a_torn_tail(daemon: Daemon) -> None:
    for name in ("crane", "tide"):
        daemon.save(name, "text")
    daemon.kill()
    journal = daemon.store / "ops.jsonl"
    first, second = journal.read_text().splitlines(keepends=True)
    journal.write_text(first.replace('"op":"save"', '"op":"edit"') + second + '{"half')
    daemon.start()
    daemon.save("weir", "text")
    found = set(kinds(daemon))
    assert {"broken_chain", "torn"} <= found


def test_a_suspended_store_is_explained(daemon: Daemon) -> None:
    for name in ("crane", "tide", "weir", "lamp"):
        daemon.save(name, "text")
    daemon.kill()
    for name in ("crane", "tide", "weir"):
        (daemon.store / f"{name}.md").unlink()
    daemon.start()
    one = only(daemon, "suspended")
    assert "3 notes are gone at once" in one["cause"]
    assert "rebuild" in one["remedy"]
    assert "--accept" in one["remedy"]


def test_a_store_whose_repository_is_gone_is_an_orphan(daemon: Daemon) -> None:
    other = daemon.root / "other"
    (other / ".git").mkdir(parents=True)
    daemon.save("theirs", "text", cwd=other)
    other.rename(daemon.root / "moved")
    one = only(daemon, "orphan")
    assert "1 note " in one["cause"]
    assert "memctl adopt --" in one["remedy"]


def test_what_the_daemon_says_of_itself_is_a_finding(daemon: Daemon) -> None:
    config = daemon.root / "config.toml"
    config.write_text("sav_cap = 3\n")
    daemon.env["MEMD_CONFIG"] = str(config)
    daemon.kill()
    daemon.start()
    one = only(daemon, "config")
    assert "save_cap" in one["cause"]


def test_claude_s_notes_are_counted_and_strangers_named(daemon: Daemon) -> None:
    projects = daemon.user / ".claude" / "projects"
    slug = str(daemon.repo).translate(str.maketrans("/._", "---"))
    notes = projects / slug / "memory"
    notes.mkdir(parents=True)
    (notes / "one.md").write_text("---\nname: one\ndescription: one\n---\nbody\n")
    report = doctor(daemon)
    assert report["rows"]["claude-memory"]["found"] == 1
    line = json.dumps({"type": "user", "cwd": "/somewhere/else", "message": {"role": "user", "content": "x"}})
    (projects / slug / "session.jsonl").write_text(line + "\n")
    assert "ambiguous" in kinds(daemon)


def test_what_stands_in_the_socket_s_place_is_named_and_no_start_offered(daemon: Daemon) -> None:
    daemon.kill()
    daemon.socket.unlink()
    daemon.socket.mkdir()
    found = only(daemon, "daemon")
    assert found["cause"] == f"no daemon answers: what is at {daemon.socket} is no socket"
    assert found["remedy"] == "move it away"


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"MEMD_SOCKET": "/tmp/" + "x" * 120}, "socket"),
        ({"MEMD_HOME": "relative/home"}, "socket"),
    ],
)
def test_places_that_are_none(tmp_path: Path, change: dict[str, str], kind: str) -> None:
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "MEMD_HOME": str(tmp_path / "home")}
    from memd_client import __file__ as client

    env |= {"PYTHONPATH": str(Path(client).parents[1]), **change}
    ran = memctl(env, "doctor", "--json", cwd=tmp_path)
    assert ran.code == 1
    assert [one["kind"] for one in json.loads(ran.out)["findings"]] == [kind]


def test_on_a_terminal_it_is_numbered_and_says_what_to_do(daemon: Daemon) -> None:
    daemon.kill()
    ran = memctl_on_terminal(daemon.env, "-C", str(daemon.repo), "doctor")
    assert ran.out.splitlines()[0].startswith("1. daemon: no daemon answers; the socket ")
    assert ran.out.splitlines()[1].startswith("   `memctl start`")


def documented(command: str) -> set[str]:
    """The fields that the README has for the `--json` of a command."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    row = re.search(rf"^\| `{command}` \| `([a-z, ]+)`:", readme, re.MULTILINE)
    assert row is not None
    return set(row[1].split(", "))


def test_json_of_a_shape_of_its_own_is_documented(daemon: Daemon) -> None:
    assert set(doctor(daemon)) == documented("doctor")
    version = json.loads(memctl(daemon.env, "version", "--json").out)
    assert set(version) == documented("version")
    with daemon.connect() as connection:
        assert set(version["daemon"]) == set(connection.hello())
    daemon.kill()
    assert json.loads(memctl(daemon.env, "version", "--json").out)["daemon"] is None
    [finding] = doctor(daemon)["findings"]
    assert list(finding) == ["number", "kind", "cause", "remedy", "fixable"]
