"""A store of the first seed's own host, as it was left. Law: it opens for ever, and nothing is rewritten unasked.

`store-v1` was written by hand from SPEC 2 and 4, not by memd: no `.origin`, records that say `by` only of a deletion
by hand, notes in shapes that people and other programs write. Never regenerate it.
"""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from memd.note import NoteType
from memd.store import Count, Forgotten, Rebuild, Rebuilt, Reconcile, Reconciled
from support.disks import tree
from support.stores import ME, Kept, forget, holding, opened

GOLDEN = Path(__file__).parent / "store-v1"


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A copy of the store, open."""
    shutil.copytree(GOLDEN, tmp_path / "store")
    return opened(tmp_path / "store")


def test_it_opens_verifies_and_is_not_touched(kept: Kept) -> None:
    assert kept.store.verify() == ()
    assert [(finding.kind, finding.file, finding.line) for finding in kept.store.check()] == [
        ("unparsed", "half.md", 1)
    ]
    assert kept.do(Reconcile()) == Reconciled()
    assert kept.do(Reconcile(accept=True)) == Reconciled()
    assert tree(kept.directory) == tree(GOLDEN)


def test_its_notes_read_as_they_were_meant(kept: Kept) -> None:
    assert {name: (entry.hook, entry.type) for name, entry in kept.entries.items()} == {
        "Feedback_Tmp": ("Review comments go into the commit message", NoteType.FEEDBACK),
        "buildhost-tmp-is-ram": ("Buildhost /tmp is RAM; never scratch there", NoteType.FEEDBACK),
        "half": ("name: half", None),
        "ports": ("Ports of the dev machines", None),
        "twin-a": ("The same words in two files.", None),
        "twin-b": ("The same words in two files.", None),
        "我喜欢-pnpm": ("我喜欢 pnpm；不要用 npm", NoteType.USER),
    }


def test_an_owner_is_the_only_thing_that_opening_adds(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "store")
    opened(tmp_path / "store", origin=Path("/some/where"))
    assert tree(tmp_path / "store") - tree(GOLDEN) == {(".origin", b"/some/where\n")}
    assert tree(GOLDEN) <= tree(tmp_path / "store")


def test_it_is_continued_in_place(kept: Kept) -> None:
    before = tree(kept.directory)
    kept.saved("feedback-tmp", "Now saved by memd.", "Review comments go into the commit message")
    kept.do(Count("ports", kept.entries["ports"].hash, ME))
    kept.do(forget("twin-a"))
    after = tree(kept.directory)
    gone = {name for name, _ in before - after}
    assert gone == {"Feedback_Tmp.md", "MEMORY.md", "ops.jsonl", "twin-a.md", "usage.json"}
    was, now = (GOLDEN / "ops.jsonl").read_bytes(), (kept.directory / "ops.jsonl").read_bytes()
    assert now.startswith(was)
    digest = json.loads(was.splitlines()[-1])["digest"]
    for line in now.removeprefix(was).splitlines():
        record = json.loads(line)
        sealed = record.pop("digest")
        plain = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        assert sealed == "sha256:" + hashlib.sha256((digest + plain).encode()).hexdigest()
        digest = sealed
    assert [json.loads(line)["op"] for line in now.removeprefix(was).splitlines()] == ["save", "read", "forget"]
    note = kept.file("Feedback_Tmp").read_text()
    assert "\nowner: 'the team'\nowner: \"again\"\n" in note, "unknown keys stay, one given twice too"
    rows = (kept.directory / "MEMORY.md").read_text()
    assert rows == (GOLDEN / "MEMORY.md").read_text().replace(
        "- [twin-a](twin-a.md) — The same words in two files.\n", ""
    )
    counts = json.loads((kept.directory / "usage.json").read_text())
    assert counts["sessions"] == 41
    assert counts["notes"]["Feedback_Tmp"]["saves"] == 7
    assert kept.store.verify() == ()


def test_the_twin_of_a_forgotten_note_is_whole(kept: Kept) -> None:
    forgotten = kept.do(forget("twin-a"))
    assert isinstance(forgotten, Forgotten)
    assert forgotten.texts == ()
    assert kept.store.verify() == ()
    kept.do(forget("twin-b"))
    assert holding(kept.directory, b"same words") == []


def test_every_note_comes_back_from_it(kept: Kept) -> None:
    for path in kept.directory.glob("*.md"):
        path.unlink()
    assert kept.do(Reconcile()) == Reconciled(suspended=True)
    rebuilt = kept.do(Rebuild())
    assert rebuilt == Rebuilt(live=7, restored=7, forgotten=2, differ=(), missing=(), broken_line=None)
    notes = {(name, raw) for name, raw in tree(GOLDEN) if name.endswith(".md") and name != "MEMORY.md"}
    assert notes <= tree(kept.directory)
    assert kept.store.verify() == ()
