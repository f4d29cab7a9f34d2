"""Which store a directory means: every kind of repository, and directories that are none (SPEC 1; field row 3)."""

import shutil
from pathlib import Path

import pytest

import memd_client
from support.daemon import Daemon


def git_file(directory: Path, gitdir: Path) -> None:
    """A checkout whose `.git` is a file that names its gitdir, as a worktree's and a submodule's are."""
    directory.mkdir(parents=True)
    (directory / ".git").write_text(f"gitdir: {gitdir}\n")


def worktree(main: Path, directory: Path, *, common: str = "../..") -> None:
    """A linked worktree of the repository whose git directory is `main`."""
    gitdir = main / "worktrees" / directory.name
    gitdir.mkdir(parents=True)
    (gitdir / "commondir").write_text(f"{common}\n")
    git_file(directory, gitdir)


def submodule(parent: Path, name: str) -> Path:
    """A submodule's checkout below its parent."""
    gitdir = parent / ".git" / "modules" / name
    gitdir.mkdir(parents=True)
    git_file(parent / name, gitdir)
    return parent / name


def bare(directory: Path) -> Path:
    """A bare repository."""
    for part in ("objects", "refs", "worktrees"):
        (directory / part).mkdir(parents=True)
    (directory / "HEAD").write_text("ref: refs/heads/main\n")
    return directory


def test_a_subdirectory_and_a_worktree_share_the_repositorys_store(daemon: Daemon) -> None:
    inside = daemon.repo / "src" / "deep"
    inside.mkdir(parents=True)
    linked = daemon.root / "linked"
    worktree(daemon.repo / ".git", linked)
    daemon.save("from-main")
    daemon.save("from-inside", cwd=inside)
    daemon.save("from-linked", cwd=linked)
    expected = ["from-inside", "from-linked", "from-main"]
    assert daemon.names() == daemon.names(cwd=inside) == daemon.names(cwd=linked) == expected
    shutil.rmtree(linked)
    assert daemon.names() == expected


def test_a_submodule_a_nested_repository_and_bare_ones_stay_apart(daemon: Daemon) -> None:
    nested = daemon.repo / "vendor" / "own"
    (nested / ".git").mkdir(parents=True)
    module = submodule(daemon.repo, "module")
    forge = bare(daemon.root / "forge.git")
    from_bare = daemon.root / "checkout"
    worktree(forge, from_bare)
    for name, place in (("outer", daemon.repo), ("nested", nested), ("module", module), ("bare", from_bare)):
        daemon.save(name, f"words of {name}", cwd=place)
    assert daemon.names() == ["outer"]
    assert daemon.names(cwd=nested) == ["nested"]
    assert daemon.names(cwd=module) == ["module"]
    assert daemon.names(cwd=from_bare) == daemon.names(cwd=forge) == ["bare"]
    assert daemon.found("words", cwd=module) == ["module"]


@pytest.mark.parametrize("name", ["with space", "проект", "日本語", "a\\b:c", "-dash", "quote'\"$(x)"])
def test_any_directory_has_a_store_of_its_own(daemon: Daemon, name: str) -> None:
    place = daemon.root / name
    place.mkdir()
    daemon.save("here", cwd=place)
    assert daemon.names(cwd=place) == ["here"]
    assert daemon.names() == []


def test_the_root_and_the_home_directory_are_places(daemon: Daemon) -> None:
    daemon.save("home", cwd=daemon.user)
    daemon.save("root", cwd=Path("/"))
    assert daemon.names(cwd=daemon.user) == ["home"]
    assert (daemon.home / "projects" / "----" / "memory" / "root.md").exists()


def test_two_paths_that_meet_in_one_key_are_never_mixed(daemon: Daemon) -> None:
    first, second = daemon.root / "a" / "b-c", daemon.root / "a-b" / "c"
    for place in (first, second):
        place.mkdir(parents=True)
        daemon.save("mine", f"of {place.name}", cwd=place)
    assert daemon.call("memory.read", cwd=first, name="mine")["text"] == "of b-c"
    assert daemon.call("memory.read", cwd=second, name="mine")["text"] == "of c"
    daemon.kill()
    daemon.start()
    assert daemon.call("memory.read", cwd=second, name="mine")["text"] == "of c"


@pytest.mark.parametrize("cwd", ["relative", "", "/nowhere/at/all", "/dev/null", "/\0"])
def test_a_directory_that_is_not_here_is_refused_without_a_path(daemon: Daemon, cwd: str) -> None:
    with daemon.connect() as connection, pytest.raises(memd_client.Refused) as caught:
        connection.call("memory.list", {"cwd": cwd})
    assert caught.value.data["field"] == "cwd"
    assert "nowhere" not in caught.value.message


def test_a_directory_that_goes_while_it_is_used_is_refused(daemon: Daemon) -> None:
    place = daemon.root / "brief"
    place.mkdir()
    daemon.save("here", cwd=place)
    place.rmdir()
    with pytest.raises(memd_client.Refused):
        daemon.names(cwd=place)


def test_reading_makes_no_store(daemon: Daemon) -> None:
    assert daemon.names() == []
    assert daemon.found("anything") == []
    daemon.call("memory.check")
    daemon.call("memory.reconcile")
    daemon.call("memory.rebuild")
    assert not (daemon.home / "projects").exists()
    assert not daemon.global_store.exists()


def test_a_store_behind_a_symlink_works_and_a_symlinked_note_is_left_alone(daemon: Daemon) -> None:
    elsewhere = daemon.root / "elsewhere"
    elsewhere.mkdir()
    daemon.store.parent.mkdir(parents=True)
    daemon.store.symlink_to(elsewhere)
    outside = daemon.root / "outside.md"
    outside.write_text("not a note of this store\n")
    (elsewhere / "linked.md").symlink_to(outside)
    daemon.save("real", "words")
    assert (elsewhere / "real.md").exists()
    assert daemon.names() == ["real"]
    with pytest.raises(memd_client.Refused) as caught:
        daemon.save("linked", "over it")
    assert caught.value.data["field"] == "name"
    assert (elsewhere / "linked.md").is_symlink()
    assert outside.read_text() == "not a note of this store\n"


def test_a_place_that_is_remembered_is_found_anew_when_it_changed(daemon: Daemon) -> None:
    inner = daemon.repo / "inner"
    inner.mkdir()
    daemon.save("outer")
    assert daemon.names(cwd=inner) == ["outer"]
    (inner / ".git").mkdir()
    assert daemon.names(cwd=inner) == []
    daemon.save("inner", cwd=inner)
    assert daemon.names(cwd=inner) == ["inner"]
    (inner / ".git").rmdir()
    assert daemon.names(cwd=inner) == ["outer"]


def test_a_symlink_that_turns_elsewhere_is_another_place(daemon: Daemon) -> None:
    other = daemon.root / "other"
    (other / ".git").mkdir(parents=True)
    link = daemon.root / "link"
    link.symlink_to(daemon.repo)
    daemon.save("first", cwd=link)
    daemon.save("second", cwd=other)
    assert daemon.names(cwd=link) == ["first"]
    link.unlink()
    link.symlink_to(other)
    assert daemon.names(cwd=link) == ["second"]


def test_a_checkout_that_points_elsewhere_is_another_place(daemon: Daemon) -> None:
    forge = bare(daemon.root / "forge.git")
    linked = daemon.root / "linked"
    worktree(daemon.repo / ".git", linked)
    daemon.save("of-the-repo")
    daemon.save("of-the-forge", cwd=forge)
    assert daemon.names(cwd=linked) == ["of-the-repo"]
    shutil.rmtree(linked)
    worktree(forge, linked)
    assert daemon.names(cwd=linked) == ["of-the-forge"]
