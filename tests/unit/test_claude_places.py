"""Where Claude Code keeps its notes: slugs, transcripts, settings, and files read once (SPEC 10)."""

import json
from pathlib import Path

import pytest

from memd import paths
from memd.importers import claude
from memd.importers.claude import Claude
from memd.importers.reading import Reader
from support.disks import FastDisk

SLUGS = [
    ("/home/me/repo", ["-home-me-repo"]),
    ("/a_b.c d", ["-a-b-c-d"]),
    ("/é", ["--", "---"]),
    ("/数据", ["---", "-------"]),
    ("/🚀", ["---", "-----", "--"]),
]


@pytest.mark.parametrize(("path", "expected"), SLUGS)
def test_a_path_has_a_dash_for_each_unit_byte_or_character(path: str, expected: list[str]) -> None:
    assert list(claude.slugs(path)) == expected


def test_a_long_path_is_known_by_its_first_units() -> None:
    path = Path("/" + "a" * 250)
    cut = "-" + "a" * 199
    names = [f"{cut}-x1", f"{cut}b-x1", f"{cut}-y2", "-" + "a" * 250, cut]
    assert list(claude.slugs_there(path, names)) == [f"{cut}-x1", f"{cut}-y2", "-" + "a" * 250]
    assert list(claude.slugs_there(Path("/" + "a" * 199), names)) == [cut]


def lines(*entries: object) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


CWDS = [
    (b"", []),
    (lines({"cwd": "/a"}, {"type": "user"}, {"cwd": "/b"}), ["/a", "/b"]),
    (lines({"cwd": "relative"}, {"cwd": 7}, {"cwd": "/nul\0"}, ["/x"]), []),
    (lines({"message": {"content": '"cwd":"/inside"'}}), []),
    (b"not json\n" + lines({"cwd": "/a"}), ["/a"]),
    (lines({"cwd": "/cut", "message": "x" * 100})[:60], ["/cut"]),
    (lines({"message": 'the "cwd":"/quoted" of', "cwd": "/after"})[:50], []),
    (b'{"a":' * 100_000, []),
]


@pytest.mark.parametrize(("raw", "expected"), CWDS)
def test_a_transcript_names_where_it_was_written(raw: bytes, expected: list[str]) -> None:
    assert list(claude.cwds_in(raw)) == expected


def test_five_transcripts_are_read_and_64_kib_of_each(tmp_path: Path) -> None:
    repo, slug = tmp_path / "repo", claude.slugs(str(tmp_path / "repo"))[0]
    (repo / ".git").mkdir(parents=True)
    memory = tmp_path / "home" / "projects" / slug / "memory"
    memory.mkdir(parents=True)
    (memory / "tea.md").write_text("# Tea\n")
    late = memory.parent / "late.jsonl"
    late.write_bytes(lines({"x": "y" * claude.TRANSCRIPT_BYTES}, {"cwd": "/elsewhere"}))
    where = Claude(tmp_path / "home")
    assert where.places(repo, ()).ambiguous == ()
    late.write_bytes(lines({"cwd": "/elsewhere"}))
    assert where.places(repo, ()).ambiguous == (slug,)
    assert memory not in where.places(repo, ()).directories
    late.unlink()
    (memory.parent / "link.jsonl").symlink_to(tmp_path / "nowhere")
    assert memory in where.places(repo, ()).directories


def test_a_worktree_that_is_gone_was_the_repositorys(tmp_path: Path) -> None:
    repo, tree = tmp_path / "repo", tmp_path / "tree"
    (repo / ".git" / "worktrees" / "tree").mkdir(parents=True)
    slug = claude.slugs(str(tree))[0]
    memory = tmp_path / "home" / "projects" / slug / "memory"
    memory.mkdir(parents=True)
    (memory / "tea.md").write_text("# Tea\n")
    (memory.parent / "one.jsonl").write_bytes(lines({"cwd": str(tree / "src")}))
    where = Claude(tmp_path / "home")
    assert where.places(repo, ()).directories == tuple(
        tmp_path / "home" / "projects" / name / "memory" for name in claude.slugs(str(repo))
    )
    (repo / ".git" / "worktrees" / "tree" / "gitdir").write_text(f"{tree}/.git\n")
    assert memory in where.places(repo, ()).directories
    tree.mkdir()  # somebody else's by now
    assert where.places(repo, ()).ambiguous == (slug,)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('{"autoMemoryDirectory": "/somewhere/else"}', Path("/somewhere/else")),
        ('{"autoMemoryDirectory": "~/mine"}', Path.home() / "mine"),
        ('{"autoMemoryDirectory": "relative"}', None),
        ('{"autoMemoryDirectory": 7}', None),
        ('{"other": 1}', None),
        ("[]", None),
        ("{", None),
    ],
)
def test_the_user_settings_may_name_a_directory(tmp_path: Path, settings: str, expected: Path | None) -> None:
    (tmp_path / "settings.json").write_text(settings)
    assert Claude(tmp_path).own_directory() == expected


@pytest.mark.parametrize(
    ("configured", "environment", "expected"),
    [
        (None, {}, Path.home() / ".claude"),
        (None, {"CLAUDE_CONFIG_DIR": "/there"}, Path("/there")),
        (None, {"CLAUDE_CONFIG_DIR": "relative"}, Path.home() / ".claude"),
        (Path("/told"), {"CLAUDE_CONFIG_DIR": "/there"}, Path("/told")),
    ],
)
def test_claudes_home(configured: Path | None, environment: dict[str, str], expected: Path) -> None:
    assert claude.home(configured, environment) == expected


class CountingDisk(FastDisk):
    """A disk that keeps the names of the files it opened."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def step(self, call: str, path: Path) -> None:
        """Keep a read."""
        super().step(call, path)
        if call == "read":
            self.reads.append(path.name)


def test_a_file_is_read_once_for_each_time_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memd.fs.YOUNG_NS", -3600 * 10**9)  # every stamp is old enough to be trusted
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n")
    disk = CountingDisk()
    reader = Reader("claude", disk)
    first = reader.read([tmp_path])
    assert sorted(disk.reads) == ["a.md", "b.md"]
    again = reader.read([tmp_path])
    assert len(disk.reads) == 2
    assert again.print == first.print
    assert again.found["a"].raw is None
    (tmp_path / "a.md").write_text("# another\n")
    assert reader.read([tmp_path]).print != first.print
    assert disk.reads[2:] == ["a.md"]


def test_a_directory_that_does_not_read_is_not_an_empty_one(tmp_path: Path) -> None:
    assert Reader("claude").read([tmp_path / "nowhere"]).found == {}

    class Closed(FastDisk):
        def step(self, call: str, path: Path) -> None:
            if call == "scan":
                raise PermissionError(13, "Permission denied")

    with pytest.raises(PermissionError):
        Reader("claude", Closed()).read([tmp_path])


def test_the_worktrees_that_a_repository_names(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    admin = repo / ".git" / "worktrees"
    for name, named in (("b", "/gone/b/.git\n"), ("a", "../../../../a/.git\n"), ("empty", ""), ("odd", "\n")):
        (admin / name).mkdir(parents=True)
        (admin / name / "gitdir").write_text(named)
    assert paths.worktrees(repo) == sorted([Path("/gone/b"), tmp_path / "a"])
    assert paths.worktrees(tmp_path) == []


def test_what_lies_in_a_repository(tmp_path: Path) -> None:
    repo, plain = tmp_path / "repo", tmp_path / "plain"
    (repo / ".git").mkdir(parents=True)
    (repo / "vendor" / "other" / ".git").mkdir(parents=True)
    (plain / "below").mkdir(parents=True)
    assert paths.lies_in(repo, repo / "gone" / "for" / "long")
    assert not paths.lies_in(repo, repo / "vendor" / "other")
    assert paths.lies_in(plain, plain / "below")
    assert not paths.lies_in(plain, tmp_path)
    assert not paths.lies_in(plain, repo)
