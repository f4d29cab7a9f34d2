"""What people met with other tools, each tried on a running daemon. The numbers are those of the field report."""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest
import yaml

import memd_client
from memd import daemon as daemons
from memd.config import Config
from memd.lifetime import lifetime
from memd.server import listen
from support.claude_home import a_note, a_repo, counts, notes_of, start, transcript, worktree
from support.daemon import Daemon, daemon_home
from support.waiting import until

LINUX = sys.platform == "linux"
CLEAN = Path(__file__).parents[1] / "data" / "clean_notes.jsonl"

# Row 13: what is written, what is asked.
SEARCHES = [
    ("面关的配置在这里", "面关"),
    ("每天重跑gen-itgc后再看报表", "gen-itgc"),
    ("금요일에는 배포를 하지 않는다", "배포"),
    ("금요일에는 배포를 하지 않는다", "배포를"),
    ("全角 ＡＰＩ 也要找到", "API"),
    ("le café ferme à midi", "cafe\u0301"),
    ("le cafe\u0301 ferme à midi", "café"),
    ("pinned at 2.8.3 for now", "2.8.3"),
    ("call snake_case helpers", "snake_case"),
    (r"the log is in C:\work\logs\today.txt", r"C:\work\logs\today.txt"),
]

# Row 9: what breaks a YAML reader, in a title.
TITLES = [f"{sign} at the start" for sign in ":#[]{}&*!>'\"%@`|,?"] + [
    "- leading dash",
    "ends with a colon:",
    "key: value, twice: over",
    "a #comment that is none",
    "[WIP] {draft} & more * !tag > |",
    "quote \" and ' both",
    "back\\slash \\n",
    "true",
    "null",
    "2024-01-01",
    "0x1f",
    "1:30",
]


def files_holding(directory: Path, text: bytes) -> list[str]:
    """The names of the files below a directory that hold a text."""
    return [path.name for path in directory.rglob("*") if path.is_file() and text in path.read_bytes()]


def test_row_1_every_checkout_of_a_repository_has_one_store_that_outlives_it(daemon: Daemon) -> None:
    repo, below = daemon.repo, daemon.repo / "src"
    below.mkdir()
    tree = worktree(repo, daemon.root / "tree")
    for name, cwd in (("main", repo), ("below", below), ("tree", tree)):
        daemon.save(f"from-{name}", "words", cwd=cwd)
    bare = daemon.root / "bare.git"
    for directory in ("objects", "refs", "worktrees/side"):
        (bare / directory).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    side = daemon.root / "side"
    side.mkdir()
    (side / ".git").write_text(f"gitdir: {bare}/worktrees/side\n")
    (bare / "worktrees" / "side" / "gitdir").write_text(f"{side}/.git\n")
    (bare / "worktrees" / "side" / "commondir").write_text("../..\n")
    daemon.save("from-side", "words", cwd=side)
    (notes_of(daemon, tree) / "stray.md").write_text(a_note("Claude's, in the worktree"))
    (notes_of(daemon, side) / "stray-of-bare.md").write_text(a_note("Claude's, in the other worktree"))
    start(daemon, repo)
    start(daemon, bare)
    shutil.rmtree(tree)
    shutil.rmtree(repo / ".git" / "worktrees")
    shutil.rmtree(side)
    assert daemon.names() == ["from-below", "from-main", "from-tree", "stray"]
    assert daemon.names(cwd=bare) == ["from-side", "stray-of-bare"]
    start(daemon, repo)
    assert sorted(daemon.found("words")) == ["from-below", "from-main", "from-tree"]
    assert "stale" not in (daemon.store / "MEMORY.md").read_text()


def test_row_2_two_paths_that_meet_in_one_slug_are_reported_and_never_mixed(daemon: Daemon) -> None:
    mine, theirs = a_repo(daemon, "a_b"), a_repo(daemon, "a-b")
    memory = notes_of(daemon, mine)
    assert memory == notes_of(daemon, theirs)
    (memory / "tea.md").write_text(a_note("Tea at four"))
    transcript(daemon, theirs, theirs)
    assert counts(start(daemon, mine)) == [
        "0 notes in ~/.claude/projects/…/memory · 0 imported · 0 updated · 0 stale · 1 ambiguous"
    ]
    reply = daemon.call("memory.import_claude", cwd=mine)
    assert (reply["imported"], reply["ambiguous"]) == ([], [memory.parent.name])
    assert daemon.call("memory.import_claude", cwd=theirs)["imported"] == ["tea"]
    transcript(daemon, mine, mine, "two")
    for repo in (mine, theirs):
        assert daemon.call("memory.import_claude", cwd=repo)["ambiguous"] == [memory.parent.name]
    assert daemon.names(cwd=mine) == []
    assert daemon.names(cwd=theirs) == ["tea"]
    assert daemon.call("memory.import_claude", cwd=mine, dir=str(memory))["imported"] == ["tea"]
    for one, other in (("数据", "资料"), ("c.d", "c d")):
        repos = a_repo(daemon, one), a_repo(daemon, other)
        (notes_of(daemon, repos[0]) / "cup.md").write_text(a_note("Cups are blue"))
        transcript(daemon, repos[0], repos[0])
        assert start(daemon, repos[1])[1].endswith("1 ambiguous")
        assert daemon.names(cwd=repos[1]) == []
        start(daemon, repos[0])
        assert daemon.names(cwd=repos[0]) == ["cup"]


def test_row_5_many_writers_and_a_hand_between_them(daemon: Daemon) -> None:
    daemon.save("edited-by-hand", "as saved")

    def one_client(client: int) -> None:
        with daemon.connect() as connection:
            for number in range(50):
                fields = {"name": f"c{client}-n{number}", "type": "project", "description": f"of {client}, {number}"}
                connection.call("memory.save", {"cwd": str(daemon.repo), "markdown": "x", "fields": fields})
                if client == 0 and number % 10 == 0:
                    (daemon.store / "edited-by-hand.md").write_text(f"# by hand, {number}\n")

    with ThreadPoolExecutor(32) as clients:
        list(clients.map(one_client, range(32)))
    expected = {f"c{client}-n{number}" for client in range(32) for number in range(50)} | {"edited-by-hand"}
    until(lambda: daemon.call("memory.reconcile")["repo"]["edited"] == 0)
    assert set(daemon.names()) == expected
    rows = (daemon.store / "MEMORY.md").read_text().splitlines()
    assert {row.partition("](")[0].removeprefix("- [") for row in rows} == expected
    assert len(rows) == len(expected)
    assert daemon.call("memory.verify")["ok"]
    stale = daemon.call("memory.log", name="edited-by-hand", limit=100)["records"][-1]["hash"]
    with pytest.raises(memd_client.Conflict):
        daemon.call(
            "memory.save",
            markdown="over the hand",
            fields={"name": "edited-by-hand", "type": "project", "description": "stale"},
            expect=stale,
        )
    assert (daemon.store / "edited-by-hand.md").read_text() == "# by hand, 40\n"


def test_row_6_garbage_after_the_last_record(daemon: Daemon) -> None:
    daemon.save("kept", "words")
    journal = daemon.store / "ops.jsonl"
    for number, garbage in enumerate((b"garbage", b"\0" * 100 + b"\n", b'{"at":17800', b"x\ny\n"), 1):
        with journal.open("ab") as file:
            file.write(garbage)
        daemon.save(f"after-{number}", "words")
        assert (daemon.store / f"ops.torn.{number}").read_bytes() == garbage
    assert len(daemon.found("words")) == 5
    kinds = [finding["kind"] for finding in daemon.call("memory.check")["findings"]]
    assert kinds == ["torn"] * 4
    assert daemon.call("memory.verify")["ok"]


@pytest.mark.parametrize("title", TITLES)
def test_row_9_any_title_survives_exactly_for_every_yaml_reader(titled: Daemon, title: str) -> None:
    reply = titled.call("memory.save", markdown="body", fields={"name": title, "description": title, "type": "user"})
    assert reply["description"] == title
    shown = titled.call("memory.show", name=reply["name"])["markdown"]
    block = yaml.safe_load(shown.split("---\n")[1])
    assert block == {"name": reply["name"], "description": title, "type": "user"}
    again = titled.call("memory.read", name=reply["name"])
    assert (again["description"], again["text"]) == (title, "body")
    titled.call("memory.forget", name=reply["name"])


def test_row_12_a_removed_file_is_not_found_in_the_same_second(daemon: Daemon) -> None:
    for number in range(20):
        daemon.save(f"n{number}", "quartz")
    for number in range(0, 20, 5):
        (daemon.store / f"n{number}.md").unlink()
        assert f"n{number}" not in daemon.found("quartz")
        with pytest.raises(memd_client.NotFound):
            daemon.call("memory.show", name=f"n{number}")
    assert len(daemon.found("quartz")) == 16


@pytest.mark.parametrize(("written", "asked"), SEARCHES)
def test_row_13_words_of_every_script_are_found_first(worded: Daemon, written: str, asked: str) -> None:
    reply = worded.call(
        "memory.save", markdown=written, fields={"name": "the-one", "type": "user", "description": "x"}
    )
    assert worded.found(asked)[:1] == [reply["name"]]
    worded.call("memory.forget", name=reply["name"])


def test_row_15_memds_own_block_is_no_fact(daemon: Daemon) -> None:
    opening = '<<<yi-external 0123456789abcdef source="memory" trust="untrusted">>>'
    block = f"{opening}\nnotes\n<<<end-yi-external 0123456789abcdef>>>\n"
    with pytest.raises(memd_client.Refused) as caught:
        daemon.save("block", block)
    assert caught.value.data["field"] == "text"
    assert "recalled" in caught.value.message
    daemon.save("fine", "words")
    (daemon.store / "by-hand.md").write_text(block)
    daemon.call("memory.reconcile")
    assert daemon.names() == ["by-hand", "fine"]
    findings = daemon.call("memory.check")["findings"]
    assert [(finding["kind"], finding["name"], finding["line"]) for finding in findings] == [("fence", "by-hand", 1)]


def test_row_17_forgetting_one_of_two_notes_with_the_same_bytes(daemon: Daemon) -> None:
    daemon.save("seed", "so that the store is there")
    shared = b"# Both\n\nThe same words in two files.\n"
    for name in ("first", "second"):
        (daemon.store / f"{name}.md").write_bytes(shared)
    daemon.call("memory.reconcile")
    daemon.save("first", "What only the first ever said.")
    receipt = daemon.call("memory.forget", name="first")["receipt"]
    assert receipt["left"] == []
    assert files_holding(daemon.home, b"What only the first ever said.") == []
    assert (daemon.store / "second.md").read_bytes() == shared
    assert daemon.call("memory.read", name="second")["text"] == shared.decode().strip()
    assert daemon.call("memory.verify") == {"ok": True, "findings": []}
    daemon.call("memory.forget", name="second")
    assert files_holding(daemon.home, b"The same words in two files.") == []


def test_row_17_the_receipt_names_an_editors_copy(daemon: Daemon) -> None:
    daemon.save("note", "The words that an editor has open.\nAnd a second line.")
    (daemon.store / ".note.md.swp").write_bytes(b"b0VIM\0And a second line.\0The words that an editor has open.\0")
    assert daemon.call("memory.forget", name="note")["receipt"]["left"] == [".note.md.swp"]


def test_row_17_the_receipt_names_a_copy_of_a_note_without_a_body(daemon: Daemon) -> None:
    reply = daemon.save("note", description="A hook that says it all, and nothing after it")
    (daemon.store / "note.md~").write_text(daemon.call("memory.show", name="note")["markdown"])
    assert daemon.call("memory.forget", name=reply["name"])["receipt"]["left"] == ["note.md~"]


def test_row_18_clean_technical_notes_are_saved(daemon: Daemon) -> None:
    notes = [json.loads(line) for line in CLEAN.read_text().splitlines()]
    assert len(notes) == 200
    refused = []
    for number, note in enumerate(notes):
        try:
            daemon.call("memory.save", markdown=note["markdown"], fields={"name": f"clean-{number}"})
        except memd_client.Refused as error:
            refused.append((number, error.data["field"]))
    assert len(refused) / len(notes) < 0.005, refused


def test_row_18_a_finding_blocks_no_other_note(daemon: Daemon) -> None:
    daemon.save("fine", "words")
    (daemon.store / "secret.md").write_text("ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2 words\n")
    (daemon.store / "binary.md").write_bytes(b"\xff\xfe\x00 words\n")
    (daemon.store / "nul.md").write_bytes(b"\0" * 4096)
    daemon.call("memory.reconcile")
    assert sorted(daemon.found("words")) == ["binary", "fine", "secret"]
    assert daemon.names() == ["binary", "fine", "nul", "secret"]
    daemon.save("another", "words")


def test_row_19_a_daemon_that_lost_its_lock_runs_on_no_more() -> None:
    with daemon_home() as owner:
        path = owner.socket

        async def serve() -> None:
            with lifetime(owner.home) as lease, listen(path) as listener, anyio.fail_after(20):
                (owner.home / ".daemon.lock").unlink()
                with lifetime(owner.home) as another:  # as a second daemon would have it now
                    assert another.is_held()
                    assert not lease.is_held()
                    await daemons.run(owner.home, Config(), listener, heeds_signals=False, look_s=0.01, lease=lease)

        anyio.run(serve)
        assert not path.exists()


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"XDG_RUNTIME_DIR": ""},
        {"XDG_RUNTIME_DIR": "run/user"},
        {"XDG_RUNTIME_DIR": "{root}/mine"},
        {"XDG_RUNTIME_DIR": "{root}/mine/"},
        {"XDG_RUNTIME_DIR": "{root}/loose"},
        {"MEMD_SOCKET": "{root}/here.sock"},
        {"MEMD_SOCKET": "~/there.sock"},
        {"MEMD_HOME": "{root}/home"},
        {"MEMD_HOME": "{root}/home", "XDG_RUNTIME_DIR": "{root}/mine"},
        {"XDG_DATA_HOME": "relative"},
    ],
)
def test_row_19_the_client_looks_where_the_daemon_listens(env: dict[str, str]) -> None:
    with daemon_home() as daemon:
        del daemon.env["MEMD_HOME"]
        (daemon.root / "mine").mkdir(mode=0o700)
        (daemon.root / "loose").mkdir()
        (daemon.root / "loose").chmod(0o755)
        daemon.env |= {name: value.format(root=daemon.root) for name, value in env.items()}
        daemon.start()  # which waits until a client finds it
        assert f" at {daemon.socket}\n" in daemon.log


def test_row_19_a_path_too_long_for_a_socket_is_said_by_both_and_nothing_is_made() -> None:
    with daemon_home() as daemon:
        daemon.env["MEMD_HOME"] = str(daemon.root / ("h" * 110))
        path = f"{daemon.env['MEMD_HOME']}/run/memd.sock"
        with pytest.raises(memd_client.SocketPathTooLong) as caught:
            memd_client.connect(daemon.env)
        done = subprocess.run(daemon.command, env=daemon.env, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 2
        for said in (caught.value.message, done.stderr):
            assert all(word in said for word in (path, str(len(path)), "107" if LINUX else "103", "MEMD_SOCKET"))
        assert not (daemon.root / ("h" * 110)).exists()
        daemon.env["MEMD_SOCKET"] = str(daemon.root / "short.sock")
        daemon.start()
        assert daemon.names() == []
