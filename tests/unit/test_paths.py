"""Which path a repository is known by, and under which key. The layouts are git's own, made by hand."""

import hashlib
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from memd import errors, paths
from memd.errors import Refused

CASES = json.loads((Path(__file__).parents[1] / "cases" / "keys.json").read_text("utf-8"))


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A directory whose own path is real and lies in no repository."""
    return Path(os.path.realpath(tmp_path))


def git_dir(at: Path) -> Path:
    """What git looks for in a git directory."""
    for part in ("objects", "refs", "hooks"):
        (at / part).mkdir(parents=True)
    (at / "HEAD").write_text("ref: refs/heads/main\n")
    return at


def repository(at: Path) -> Path:
    git_dir(at / ".git")
    return at


def worktree(common: Path, at: Path) -> Path:
    """A linked worktree: a `.git` file to an entry below the common directory, which names that in `commondir`."""
    entry = common / "worktrees" / at.name
    entry.mkdir(parents=True)
    (entry / "HEAD").write_text("ref: refs/heads/side\n")
    (entry / "commondir").write_text("../..\n")
    (entry / "gitdir").write_text(f"{at}/.git\n")
    at.mkdir(parents=True)
    (at / ".git").write_text(f"gitdir: {entry}\n")
    return at


def submodule(parent: Path, name: str) -> Path:
    git_dir(parent / ".git" / "modules" / name)
    at = parent / name
    at.mkdir()
    (at / ".git").write_text(f"gitdir: ../.git/modules/{name}\n")
    return at


def below(directory: Path, *parts: str) -> Path:
    inner = directory.joinpath(*parts)
    inner.mkdir(parents=True)
    return inner


def test_outside_a_repository_it_is_the_real_path(top: Path) -> None:
    plain = below(top, "a", "b")
    assert paths.canonical_repo(plain) == plain
    (top / "link").symlink_to(plain)
    assert paths.canonical_repo(top / "link") == plain
    assert paths.canonical_repo(Path("/")) == Path("/")


def test_a_checkout_and_what_lies_in_it(top: Path) -> None:
    repo = repository(top / "my проект")
    assert paths.canonical_repo(repo) == repo
    assert paths.canonical_repo(below(repo, "src", "deep")) == repo
    assert paths.canonical_repo(repo / ".git" / "hooks") == repo
    assert paths.canonical_repo(repo / ".git") == repo


def test_a_git_directory_counts_whatever_it_holds(top: Path) -> None:
    below(top, "repo", ".git")
    assert paths.canonical_repo(below(top, "repo", "src")) == top / "repo"


def test_a_symlink_to_a_checkout_or_into_one(top: Path) -> None:
    repo = repository(top / "repo")
    src = below(repo, "src")
    (top / "link").symlink_to(src)
    assert paths.canonical_repo(top / "link") == repo
    assert paths.canonical_repo(top / "link" / "..") == repo


def test_linked_worktrees_share_their_repository(top: Path) -> None:
    repo = repository(top / "repo")
    side = worktree(repo / ".git", top / "elsewhere" / "side")
    assert paths.canonical_repo(side) == repo
    assert paths.canonical_repo(below(side, "src")) == repo
    assert paths.canonical_repo(repo / ".git" / "worktrees" / "side") == repo


def test_a_worktree_inside_its_own_repository(top: Path) -> None:
    repo = repository(top / "repo")
    assert paths.canonical_repo(worktree(repo / ".git", repo / "trees" / "side")) == repo


def test_relative_paths_in_the_files_count_from_where_they_stand(top: Path) -> None:
    repo = repository(top / "repo")
    side = worktree(repo / ".git", top / "side")
    (side / ".git").write_text("gitdir: ../repo/.git/worktrees/side\n")
    assert paths.canonical_repo(side) == repo
    (side / ".git").write_bytes(b"gitdir: ../repo/.git/worktrees/side")
    assert paths.canonical_repo(side) == repo
    (side / ".git").write_bytes(b"gitdir: ../repo/.git/worktrees/side\r\n")
    assert paths.canonical_repo(side) == repo


def test_an_absolute_commondir(top: Path) -> None:
    repo = repository(top / "repo")
    side = worktree(repo / ".git", top / "side")
    (repo / ".git" / "worktrees" / "side" / "commondir").write_text(f"{repo}/.git\n")
    assert paths.canonical_repo(side) == repo


def test_a_bare_repository_and_its_worktrees(top: Path) -> None:
    bare = git_dir(top / "rep.git")
    assert paths.canonical_repo(bare) == bare
    assert paths.canonical_repo(bare / "hooks") == bare
    assert paths.canonical_repo(worktree(bare, top / "one")) == bare
    assert paths.canonical_repo(worktree(bare, bare / "two")) == bare


def test_a_bare_repository_beside_its_worktrees(top: Path) -> None:
    """The layout of a hidden bare directory and a `.git` file that names it."""
    bare = git_dir(top / "proj" / ".bare")
    (top / "proj" / ".git").write_text("gitdir: ./.bare\n")
    assert paths.canonical_repo(top / "proj") == bare
    assert paths.canonical_repo(worktree(bare, top / "proj" / "main")) == bare


def test_submodules_stay_apart(top: Path) -> None:
    repo = repository(top / "repo")
    one, two = submodule(repo, "one"), submodule(repo, "two")
    assert paths.canonical_repo(one) == repo / ".git" / "modules" / "one"
    assert paths.canonical_repo(below(two, "src")) == repo / ".git" / "modules" / "two"
    side = worktree(repo / ".git" / "modules" / "one", top / "side")
    assert paths.canonical_repo(side) == repo / ".git" / "modules" / "one"


def test_a_repository_inside_another_stays_apart(top: Path) -> None:
    repo = repository(top / "repo")
    inner = repository(repo / "vendor" / "inner")
    assert paths.canonical_repo(inner) == inner


def test_a_git_directory_kept_elsewhere(top: Path) -> None:
    apart = git_dir(top / "store" / "x.git")
    below(top, "tree")
    (top / "tree" / ".git").write_text(f"gitdir: {apart}\n")
    assert paths.canonical_repo(top / "tree") == apart
    (top / "linked").mkdir()
    (top / "linked" / ".git").symlink_to(apart)
    assert paths.canonical_repo(top / "linked") == apart


def test_a_git_directory_that_names_another_as_common(top: Path) -> None:
    repo, view = repository(top / "repo"), repository(top / "view")
    (view / ".git" / "commondir").write_text("../../repo/.git\n")
    assert paths.canonical_repo(below(view, "src")) == repo


def test_git_environment_is_ignored(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo, other = repository(top / "repo"), repository(top / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(top))
    assert paths.canonical_repo(repo) == repo


def write(raw: bytes) -> Callable[[Path], None]:
    def make(git: Path) -> None:
        git.write_bytes(raw)

    return make


BROKEN: dict[str, Callable[[Path], None]] = {
    "empty": write(b""),
    "garbage": write(b"\0\xff\xfe" * 20),
    "another word": write(b"commondir: ..\n"),
    "no word": write(b"../repo/.git\n"),
    "names nothing": write(b"gitdir: \n"),
    "names what is gone": write(b"gitdir: /nowhere/at/all\n"),
    "names itself": write(b"gitdir: .git\n"),
    "names a file": write(b"gitdir: ../file\n"),
    "a NUL in the path": write(b"gitdir: ../re\0po/.git\n"),
    "a path too long": write(b"gitdir: " + b"a/" * 3000 + b"\n"),
    "huge": write(b"gitdir: ../repo/.git" + b"\n" * 1_000_000),
    "a FIFO": os.mkfifo,
    "a loop": lambda git: git.symlink_to(git),
    "a dangling link": lambda git: git.symlink_to(git.parent / "nothing"),
    "a device": lambda git: git.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("make", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_git_file_is_a_repository_where_it_stands(top: Path, make: Callable[[Path], None]) -> None:
    repository(top / "repo")
    (top / "file").write_bytes(b"")
    broken = below(top, "broken")
    make(broken / ".git")
    assert paths.canonical_repo(below(broken, "src")) == broken


def test_a_git_file_that_nobody_can_read_now_is_not_a_broken_one(top: Path) -> None:
    side = worktree(repository(top / "repo") / ".git", top / "side")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open("/", os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            paths.canonical_repo(side)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert paths.canonical_repo(side) == top / "repo"


@pytest.mark.parametrize("make", BROKEN.values(), ids=BROKEN.keys())
def test_so_is_one_whose_commondir_is_broken(top: Path, make: Callable[[Path], None]) -> None:
    side = worktree(repository(top / "repo") / ".git", top / "side")
    (top / "repo" / ".git" / "worktrees" / "file").write_bytes(b"")
    commondir = top / "repo" / ".git" / "worktrees" / "side" / "commondir"
    commondir.unlink()
    make(commondir)
    assert paths.canonical_repo(below(side, "src")) == side


def test_two_git_files_that_name_each_other(top: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        below(top, one)
        (top / one / ".git").write_text(f"gitdir: ../{other}/.git\n")
    assert paths.canonical_repo(top / "a") == top / "a"


@pytest.mark.parametrize("part", ["objects", "refs", "HEAD"])
def test_a_directory_that_only_looks_bare(top: Path, part: str) -> None:
    plain = git_dir(top / "plain")
    (plain / part).rename(top / "gone")
    assert paths.canonical_repo(plain / "hooks") == plain / "hooks"
    (plain / part).symlink_to(plain / "nothing")
    assert (paths.canonical_repo(plain / "hooks") == plain) == (part == "HEAD")


def test_a_path_that_is_gone_is_judged_by_what_is_above(top: Path) -> None:
    repo = repository(top / "repo")
    assert paths.canonical_repo(repo / "gone" / "deep") == repo
    assert paths.canonical_repo(top / "gone") == top / "gone"


def test_a_loop_of_symlinks_does_not_hang(top: Path) -> None:
    (top / "loop").symlink_to(top / "loop")
    assert paths.canonical_repo(top / "loop" / "x").parts[: len(top.parts)] == top.parts


# Keys


@pytest.mark.parametrize("case", CASES, ids=[case["path"] for case in CASES])
def test_cases(case: dict[str, str]) -> None:
    assert paths.key(Path(case["path"])) == case["key"]
    assert paths.key_when_taken(Path(case["path"])) == case["key_when_taken"]


@pytest.mark.parametrize("letter", ["x", "й", "語", "🚀", "\udcff"])
@pytest.mark.parametrize("spare", [0, 1, 2, 3, 4])
def test_a_long_key_is_cut_at_a_character(letter: str, spare: int) -> None:
    repo = Path("/" + "y" * spare + letter * 250)
    key = paths.key(repo)
    plain, suffix = key[:-9], key[-9:]
    size = len(letter.encode("utf-8", "surrogateescape"))
    assert plain == "--" + "y" * spare + letter * ((196 - spare) // size) + "--"
    assert len(plain.encode("utf-8", "surrogateescape")) > 200 - size
    assert suffix == "-" + hashlib.sha256(os.fsencode(repo)).hexdigest()[:8]
    assert paths.key_when_taken(repo) == key
    assert paths.key(Path(f"{repo}z")) != key


def test_the_longest_key_that_is_not_cut() -> None:
    assert paths.key(Path("/" + "x" * 196)) == "--" + "x" * 196 + "--"
    assert paths.key(Path("/" + "x" * 197)).startswith("--" + "x" * 196 + "---")


def test_stores_lie_below_the_home(top: Path) -> None:
    assert paths.global_store(top) == top / "memory"
    assert paths.projects(top) == top / "projects"
    assert paths.repo_store(top, "--x--") == top / "projects" / "--x--" / "memory"
    assert paths.origin_file(top / "s") == top / "s" / ".origin"


def put_origin(home: Path, key: str, raw: bytes) -> None:
    store = paths.repo_store(home, key)
    store.mkdir(parents=True, exist_ok=True)
    paths.origin_file(store).write_bytes(raw)


def test_a_key_belongs_to_the_path_that_has_it(top: Path) -> None:
    mine, other = Path("/a/b-c"), Path("/a-b/c")
    assert paths.key_in(top, mine) == paths.key_in(top, other) == "--a-b-c--"
    put_origin(top, "--a-b-c--", paths.origin_text(mine))
    assert paths.key_in(top, mine) == "--a-b-c--"
    assert paths.key_in(top, other) == paths.key_when_taken(other)


def test_a_path_keeps_its_store_when_its_plain_key_is_free_again(top: Path) -> None:
    repo = Path("/a-b/c")
    put_origin(top, paths.key_when_taken(repo), paths.origin_text(repo))
    assert paths.key_in(top, repo) == paths.key_when_taken(repo)
    assert paths.key_in(top, Path("/a/b-c")) == "--a-b-c--"
    put_origin(top, "--a-b-c--", paths.origin_text(repo))
    assert paths.key_in(top, repo) == "--a-b-c--"


@pytest.mark.parametrize("raw", [b"", b"\n"])
def test_an_empty_origin_is_nobodys(top: Path, raw: bytes) -> None:
    put_origin(top, "--a-b-c--", raw)
    assert paths.key_in(top, Path("/a/b-c")) == "--a-b-c--"


def test_an_origin_is_compared_whole(top: Path) -> None:
    repo = Path("/a/b-c")
    put_origin(top, "--a-b-c--", b"/a/b-c")
    assert paths.key_in(top, repo) == "--a-b-c--"
    put_origin(top, "--a-b-c--", b"/a/b-")
    assert paths.key_in(top, repo) == paths.key_when_taken(repo)


def test_an_origin_that_does_not_read_is_anothers(top: Path) -> None:
    repo = Path("/a/b-c")
    store = paths.repo_store(top, paths.key(repo))
    store.mkdir(parents=True)
    os.mkfifo(paths.origin_file(store))
    assert paths.key_in(top, repo) == paths.key_when_taken(repo)


def test_an_origin_that_leads_nowhere_is_anothers(top: Path) -> None:
    repo = Path("/a/b-c")
    store = paths.repo_store(top, paths.key(repo))
    store.mkdir(parents=True)
    paths.origin_file(store).symlink_to("nowhere")
    assert paths.key_in(top, repo) == paths.key_when_taken(repo)


@pytest.mark.parametrize("taken", [False, True])
def test_an_origin_the_disk_does_not_tell_begins_no_second_store(top: Path, taken: bool) -> None:
    repo = Path("/a/b-c")
    put_origin(top, "--a-b-c--", paths.origin_text(Path("/a-b/c") if taken else repo))
    put_origin(top, paths.key_when_taken(repo), paths.origin_text(repo))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(errors.Storage, match=r"\.origin: Too many open files"):
            paths.key_in(top, repo)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert paths.key_in(top, repo) == (paths.key_when_taken(repo) if taken else "--a-b-c--")


def test_a_path_with_odd_bytes_has_an_origin(top: Path) -> None:
    repo = Path(os.fsdecode(b"/a\xff\nb"))
    assert paths.origin_text(repo) == b"/a\xff\nb\n"
    put_origin(top, paths.key(repo), paths.origin_text(repo))
    assert paths.key_in(top, repo) == paths.key(repo)


# The place a request names


def test_a_place(top: Path) -> None:
    assert paths.place(str(top)) == top
    assert paths.place("/") == Path("/")


@pytest.mark.parametrize(
    "cwd", ["", ".", "relative", "~", "~/x", "/nowhere/at/all", "/\0", "/\ud800", "/" + "x" * 5000]
)
def test_a_place_that_is_refused(cwd: str) -> None:
    with pytest.raises(Refused, match="cwd: ") as raised:
        paths.place(cwd)
    assert raised.value.field == "cwd"
    assert len(cwd) < 3 or cwd not in raised.value.text


def test_a_file_is_no_place(top: Path) -> None:
    (top / "file").write_bytes(b"")
    with pytest.raises(Refused):
        paths.place(str(top / "file"))


def test_home_socket_and_config_are_the_clients(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMD_HOME", str(top))
    monkeypatch.setenv("MEMD_SOCKET", str(top / "s"))
    monkeypatch.setenv("MEMD_CONFIG", str(top / "c.toml"))
    assert (paths.home(), paths.socket_path(), paths.config_path()) == (top, top / "s", top / "c.toml")


def test_whose_a_store_is(top: Path) -> None:
    store = paths.repo_store(top, "k")
    assert paths.origin_of(store) is None
    for raw, repo in (
        (b"/a/b\n", Path("/a/b")),
        (b"/a/b", Path("/a/b")),
        (b"/a\xff\n\n", Path(os.fsdecode(b"/a\xff\n"))),
        (b"", None),
        (b"\n", None),
        (b"/" * 9000, None),
    ):
        put_origin(top, "k", raw)
        assert paths.origin_of(store) == repo


@pytest.mark.parametrize("text", ["--a--", "----", "-", "x" * 209, "..."])
def test_a_key(text: str) -> None:
    assert paths.is_key(text)


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "/", "a\0", "x" * 210, "語" * 70])
def test_no_key(text: str) -> None:
    assert not paths.is_key(text)


# What a remembered place was decided by


def evidence(cwd: Path) -> object:
    return paths.evidence(paths.ways(str(cwd), paths.canonical_repo(cwd)))


def test_the_ways_end_at_the_repository(top: Path) -> None:
    repo = repository(top / "repo")
    src = below(repo, "src", "deep")
    assert paths.ways(str(src), repo) == tuple(map(str, (src, src, repo / "src", repo)))
    plain = below(top, "plain")
    assert paths.ways(str(plain), plain) == (str(plain), str(plain))


def test_the_ways_of_a_worktree_hold_its_git_file(top: Path) -> None:
    repo = repository(top / "repo")
    side = worktree(repo / ".git", top / "side")
    ways = paths.ways(str(side), repo)
    assert ways[:3] == (str(side), str(side / ".git"), str(side))
    assert ways[-1] == "/"


def test_evidence_stays_while_nothing_changes(top: Path) -> None:
    side = worktree(repository(top / "repo") / ".git", top / "side")
    assert evidence(side) == evidence(side) is not None


def test_evidence_changes_with_what_decides(top: Path) -> None:
    repo, other = repository(top / "repo"), repository(top / "other")
    inner = below(repo, "vendor", "inner")
    link = top / "link"
    link.symlink_to(inner)
    side = worktree(repo / ".git", top / "side")

    def turn() -> None:
        link.unlink()
        link.symlink_to(other)

    changes: list[tuple[Path, Callable[[], object]]] = [
        (inner, (inner / ".git").mkdir),
        (link, turn),
        (side, lambda: (side / ".git").write_text("gitdir: ../other/.git\n")),
        (repo, lambda: (repo / ".git").rename(top / "away")),
    ]
    for cwd, change in changes:
        ways = paths.ways(str(cwd), paths.canonical_repo(cwd))
        for way in ways:  # whatever the clock's grain, a change now is seen
            if Path(way).is_relative_to(top):
                os.utime(way, (1, 1))
        before = paths.evidence(ways)
        change()
        assert paths.evidence(ways) != before


def test_there_is_no_evidence_of_what_is_gone(top: Path) -> None:
    plain = below(top, "plain")
    ways = paths.ways(str(plain), plain)
    plain.rmdir()
    assert paths.evidence(ways) is None
