"""A home with everything that memd's format has. Law: it opens for ever, and nothing is rewritten unasked.

`home-v1` was written from SPEC 1, 2 and 4, not by memd: two paths of one key, a restore, a rename, imports of every
kind with the hash of their source, names in other scripts and with a space, an operation and keys that nobody knows,
a `by` of another shape, counts with keys of a host's own, a second life, and what was set aside beside it all. Never
regenerate it; what a later format adds gets a directory of its own.
"""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from memd import paths
from memd.note import NoteType
from memd.store import Count, Rebuild, Rebuilt, Reconcile, Reconciled, Restore
from support.disks import tree
from support.stores import ME, Kept, forget, opened, standing

GOLDEN = Path(__file__).parent / "home-v1"
FIRST, SECOND = Path("/srv/a/b-c"), Path("/srv/a-b/c")
STORE = paths.repo_store(GOLDEN, paths.key_when_taken(SECOND))


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A copy of the second store, open, as the place it belongs to."""
    shutil.copytree(STORE, tmp_path / "store")
    return opened(tmp_path / "store", origin=SECOND)


def test_two_paths_of_one_key_have_the_stores_they_had() -> None:
    assert paths.repo_store(GOLDEN, paths.key_in(GOLDEN, FIRST)).is_dir()
    assert paths.repo_store(GOLDEN, paths.key_in(GOLDEN, SECOND)) == STORE
    assert STORE.parent.name == "--srv-a-b-c---654c8e65"


def test_it_opens_verifies_and_is_not_touched(kept: Kept) -> None:
    assert kept.store.verify() == ()
    assert [(finding.kind, finding.file) for finding in kept.store.check()] == [("torn", "ops.torn.1")]
    assert kept.do(Reconcile(accept=True)) == Reconciled()
    assert tree(kept.directory) == tree(STORE)
    again = opened(kept.directory, origin=SECOND)
    assert again.store.verify() == ()
    assert tree(kept.directory) == tree(STORE)


def test_the_first_of_the_key_too(tmp_path: Path) -> None:
    first = paths.repo_store(GOLDEN, paths.key_in(GOLDEN, FIRST))
    shutil.copytree(first, tmp_path / "store")
    kept = opened(tmp_path / "store", origin=FIRST)
    assert kept.store.verify() == kept.store.check() == ()
    assert tree(kept.directory) == tree(first)


def test_its_notes_read_as_they_were_meant(kept: Kept) -> None:
    assert {name: (entry.hook, entry.type) for name, entry in kept.entries.items()} == {
        "Imported Note": ("Imported, with CRLF and a BOM", NoteType.USER),
        "außenhafen": ("Der Hafen heißt Außenhafen", NoteType.REFERENCE),
        "ferry-2": ("The ferry leaves at 7", NoteType.PROJECT),
        "gone": ("A second life", NoteType.PROJECT),
        "kimi-note": ("source kept as it is", None),
        "quay": ("The quay wall is measured in metres", NoteType.REFERENCE),
        "release": ("Releases go out on Tuesdays", NoteType.PROJECT),
        "灯台": ("灯台 notes", None),
    }


def test_its_records_are_all_there_as_they_were_written(kept: Kept) -> None:
    records = list(kept.store.records())
    assert [record.op for record in records].count("starred") == 1
    [starred] = [record for record in records if record.op == "starred"]
    assert starred.extra == {"colour": "blue", "lines": [1, 2, {"to": 3}]}
    [other] = [record for record in records if isinstance(record.extra.get("by"), dict)]
    assert (other.name, other.by) == ("gone", None)
    assert [record.extra["source_hash"] for record in records if record.by == "claude"] != []
    assert {record.by for record in records} == {
        "cli", "restore", "rename", "import", "claude", "kimi", "hand", "store", "recovery", None,
    }  # fmt: skip


def test_it_is_continued_in_place_byte_for_byte(kept: Kept) -> None:
    second = kept.store.texts("release")[1]
    kept.do(Restore("release", second, ME))
    kept.do(Count("灯台", kept.entries["灯台"].hash, ME))
    kept.do(forget("ferry-2"))
    was, now = (STORE / "ops.jsonl").read_bytes(), (kept.directory / "ops.jsonl").read_bytes()
    assert now.startswith(was)
    digest = json.loads(was.splitlines()[-1])["digest"]
    for line in now.removeprefix(was).splitlines():
        record = json.loads(line)
        sealed = record.pop("digest")
        plain = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        assert sealed == "sha256:" + hashlib.sha256((digest + plain).encode()).hexdigest()
        digest = sealed
    assert [json.loads(line)["op"] for line in now.removeprefix(was).splitlines()] == ["save", "read", "forget"]
    untouched = {path for path, _ in tree(STORE) & tree(kept.directory)}
    assert {"ops.torn.1", "usage.bad.1", ".origin", "Imported Note.md", "außenhafen.md", "quay.md"} <= untouched
    assert (kept.directory / "MEMORY.md").read_text() == (STORE / "MEMORY.md").read_text().replace(
        "- [ferry-2](ferry-2.md) — The ferry leaves at 7\n", ""
    ).replace("Releases go out on Tuesdays", "Releases go out on Thursdays")
    counts = json.loads((kept.directory / "usage.json").read_text())
    assert (counts["sessions"], counts["host"]) == (7, {"name": "yi"})
    assert counts["notes"]["release"] == {
        "saves": 4,
        "reads": 1,
        "last": counts["notes"]["release"]["last"],
        "pinned": True,
    }
    assert kept.store.verify() == ()


def test_every_note_comes_back_from_it(kept: Kept) -> None:
    for name in standing(STORE):
        kept.file(name).unlink()
    rebuilt = kept.do(Rebuild())
    assert rebuilt == Rebuilt(live=8, restored=8, forgotten=1, differ=(), missing=(), broken_line=None)
    assert standing(kept.directory) == standing(STORE)
    assert kept.store.verify() == ()
