"""How programs write a file that a person saves. Law: each is the order of system calls such a program makes.

A pattern is given the note's path and the text it is to hold in the end.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

Pattern = Callable[[Path, str], None]

OLD = (1_600_000_000, 1_600_000_000)
"""Times that a tool which keeps them gives a file."""


def in_place(path: Path, text: str) -> None:
    """A plain program: emptied and written."""
    path.write_text(text)


def appended(path: Path, text: str) -> None:
    """A shell's `>>`, the text being what is there and more."""
    there = path.read_text()
    assert text.startswith(there)
    with path.open("a") as file:
        file.write(text.removeprefix(there))


def vscode(path: Path, text: str) -> None:
    """VS Code: opened as it is, cut to nothing, written, synced."""
    with path.open("r+") as file:
        file.truncate(0)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def vim_renaming(path: Path, text: str) -> None:
    """vim, `backupcopy=no`: a probe file, the old file renamed aside, the new one written, the old one removed."""
    swap = path.with_name(f".{path.name}.swp")
    swap.write_bytes(b"b0VIM 9.0")
    probe = path.with_name("4913")
    probe.touch()
    probe.unlink()
    backup = path.with_name(f"{path.name}~")
    path.rename(backup)
    path.write_text(text)
    path.chmod(0o600)
    backup.unlink()
    swap.unlink()


def vim_copying(path: Path, text: str) -> None:
    """vim, `backupcopy=yes`: a copy aside, the file itself emptied and written, the copy removed."""
    backup = path.with_name(f"{path.name}~")
    shutil.copyfile(path, backup)
    path.write_text(text)
    backup.unlink()


def emacs(path: Path, text: str) -> None:
    """emacs: a lock that is a dangling symlink, an autosave file, the old file renamed to the backup, which stays."""
    lock = path.with_name(f".#{path.name}")
    lock.symlink_to("someone@host.1234:1")
    autosave = path.with_name(f"#{path.name}#")
    autosave.write_text(text[: len(text) // 2])
    path.rename(path.with_name(f"{path.name}~"))
    path.write_text(text)
    autosave.unlink()
    lock.unlink()


def gedit(path: Path, text: str) -> None:
    """GLib: a hidden file beside it, a hard link of the old one as backup, renamed over."""
    staged = path.with_name(".goutputstream-A1B2C3")
    staged.write_text(text)
    backup = path.with_name(f"{path.name}~")
    backup.unlink(missing_ok=True)
    backup.hardlink_to(path)
    staged.rename(path)


def sed(path: Path, text: str) -> None:
    """`sed -i`: a file of another name beside it, renamed over."""
    staged = path.with_name("sedqX3kTz")
    staged.write_text(text)
    staged.rename(path)


def rsync(path: Path, text: str) -> None:
    """rsync -t: a hidden file with a random end and the other side's old times, renamed over."""
    staged = path.with_name(f".{path.name}.Xk2bQz")
    staged.write_text(text)
    os.utime(staged, OLD)
    staged.rename(path)


def syncthing(path: Path, text: str) -> None:
    """Syncthing: its temporary name, the other side's times, renamed over."""
    staged = path.with_name(f".syncthing.{path.name}.tmp")
    staged.write_text(text)
    os.utime(staged, OLD)
    staged.rename(path)


def checkout(path: Path, text: str) -> None:
    """git checkout: the file unlinked and made anew."""
    path.unlink()
    path.write_text(text)


def backup_and_create(path: Path, text: str) -> None:
    """A cautious program: the old file moved out of the directory, the new one made in pieces."""
    aside = path.parent.parent / f"{path.name}.bak"
    path.rename(aside)
    with path.open("w") as file:
        for piece in (text[:7], text[7:]):
            file.write(piece)
            file.flush()
    aside.unlink()


PATTERNS: list[Pattern] = [
    in_place,
    appended,
    vscode,
    vim_renaming,
    vim_copying,
    emacs,
    gedit,
    sed,
    rsync,
    syncthing,
    checkout,
    backup_and_create,
]
