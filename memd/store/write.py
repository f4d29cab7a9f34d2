"""A plan, carried out. Law: the order below is the promise of SPEC section 4; nothing here decides.

Objects, note files, MEMORY.md, usage.json, each staged and synced before it is renamed; the directory; the
objects a forget removes; last the journal's lines, synced. A crash between any two steps leaves what opening
heals: a file that differs from its head, or a live head with neither file nor object.
"""

from pathlib import Path
from typing import NamedTuple, Self

from memd import journal
from memd.fs import Disk, Staging, Stamp
from memd.listing import Listing
from memd.store.plan import Plan
from memd.store.state import JOURNAL, LISTING, OBJECTS, USAGE, State
from memd.usage import Usage


class InterferenceError(Exception):
    """Someone else replaced a note between the plan's look at it and its own write: plan again."""


def carry_out(plan: Plan) -> dict[str, Stamp]:
    """Write the plan, durable when this returns: the stamps of the note files it wrote.

    Everything is staged before anything is renamed, and what is staged is synced side by side, so a batch costs
    little more time than one save: that is the group commit. Errors: OSError, after which the directory must
    be read again; InterferenceError, before which nothing but objects was written.
    """
    state, disk = plan.state, plan.state.disk
    if plan.records and state.torn:
        set_torn_aside(state)
    with disk.staging() as staging:
        staged = Staged.of(plan, staging)
        staging.sync()
    stamps = put_in_place(plan, staged)
    remove_objects(plan)
    if plan.records:
        lines = b"".join(map(journal.encode, plan.records))
        state.appended(disk.append(state.directory / JOURNAL, lines), plan.records, len(lines))
    return stamps


class Staged(NamedTuple):
    """The plan's files, written under names of no note."""

    objects: dict[str, Path]
    notes: dict[str, Path]
    listing: tuple[Path, Listing] | None
    usage: tuple[Path, Usage] | None

    @classmethod
    def of(cls, plan: Plan, staging: Staging) -> Self:
        """Stage everything the plan writes."""
        directory = plan.state.directory
        if plan.objects:
            plan.state.disk.make_dirs(directory / OBJECTS)
        listing, usage = plan.new_listing(), plan.new_usage()
        return cls(
            objects={key: staging.add(directory / OBJECTS, raw) for key, raw in plan.objects.items()},
            notes={name: staging.add(directory, raw) for name, raw in plan.files.items() if raw is not None},
            listing=None if listing is None else (staging.add(directory, listing.encode()), listing),
            usage=None if usage is None else (staging.add(directory, usage.encode()), usage),
        )


def put_in_place(plan: Plan, staged: Staged) -> dict[str, Stamp]:
    """Rename what is staged and remove what goes, in the order of SPEC 4, and sync the directories.

    The text of a hand edit that is about to be replaced is durable under its object's name before it is.
    """
    state, disk, directory = plan.state, plan.state.disk, plan.state.directory
    objects = directory / OBJECTS
    for content_hash, path in staged.objects.items():
        disk.replace(path, state.object_path(content_hash))
    if staged.objects and plan.replaces_hand_edit:
        disk.sync_dir(objects)
    if plan.records and state.journal_stamp is None:
        disk.append(directory / JOURNAL, b"")
    check_untouched(plan, [*staged.notes.values()])
    for name, raw in plan.files.items():
        if raw is None:
            disk.remove(state.path(name))
        else:
            disk.replace(staged.notes[name], state.path(name))
    if staged.listing is not None:
        disk.replace(staged.listing[0], directory / LISTING)
        state.listing.wrote(staged.listing[1])
    if plan.retired_usage:
        disk.replace(directory / USAGE, numbered(disk, directory, "usage.bad"))
    if staged.usage is not None:
        disk.replace(staged.usage[0], directory / USAGE)
        state.usage.wrote(staged.usage[1])
    changed = plan.files or staged.listing or staged.usage or (plan.records and state.journal_stamp is None)
    disk.sync_dir(*([objects] if staged.objects else []), *([directory] if changed else []))
    return {name: seen.stamp for name in staged.notes if (seen := state.look(name)) is not None}


def check_untouched(plan: Plan, staged: list[Path]) -> None:
    """Look at each file that is about to go once more. Errors: InterferenceError when it is not what was read.

    A hand edit is never overwritten without its text being an object first (SPEC 4). The stamp was taken when
    the plan read the file; what is left of the race is the moment between this look and the rename.
    """
    for name in plan.files:
        seen = plan.state.look(name)
        if plan.found.get(name) != (None if seen is None else seen.stamp):
            for path in staged:
                plan.state.disk.remove(path)
            raise InterferenceError


def remove_objects(plan: Plan) -> None:
    """Unlink the objects of versions that nothing holds any more."""
    if not plan.purged:
        return
    disk = plan.state.disk
    for content_hash in plan.purged:
        disk.remove(plan.state.object_path(content_hash))
    if disk.stat(plan.state.directory / OBJECTS) is not None:
        disk.sync_dir(plan.state.directory / OBJECTS)


def set_torn_aside(state: State) -> None:
    """Move what follows the last whole record, bytes kept, to `ops.torn.<n>`, and cut the journal there."""
    disk, directory = state.disk, state.directory
    torn, _ = disk.read_from(directory / JOURNAL, state.whole)
    disk.replace(disk.stage(directory, torn), numbered(disk, directory, "ops.torn"))
    disk.sync_dir(directory)
    disk.truncate(directory / JOURNAL, state.whole)
    state.torn = 0


def numbered(disk: Disk, directory: Path, stem: str) -> Path:
    """The first of `stem.1`, `stem.2`, … that is free."""
    number = 1
    while disk.stat(directory / f"{stem}.{number}") is not None:
        number += 1
    return directory / f"{stem}.{number}"
