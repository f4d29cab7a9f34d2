"""A plan, carried out. Law: the order below is the promise of SPEC section 4; nothing here decides.

Objects, note files, MEMORY.md, usage.json, each staged and synced before it is renamed; the directory; the
objects a forget removes; last the journal's lines, synced. A crash between any two steps leaves what opening
heals: a file that differs from its head, or a live head with neither file nor object.
"""

from pathlib import Path

from memd import journal
from memd.fs import Disk, Stamp
from memd.store.plan import Plan
from memd.store.state import JOURNAL, LISTING, OBJECTS, USAGE, State


class InterferenceError(Exception):
    """Someone else replaced a note between the plan's look at it and its own write: plan again."""


def carry_out(plan: Plan) -> dict[str, Stamp]:
    """Write the plan, durable when this returns: the stamps of the note files it wrote.

    Errors: OSError, after which the directory must be read again; InterferenceError, before which nothing but
    objects was written.
    """
    state, disk = plan.state, plan.state.disk
    store_objects(disk, state.directory / OBJECTS, plan.objects)
    if plan.records and state.torn:
        set_torn_aside(state)
    stamps = replace_files(plan)
    remove_objects(plan)
    if plan.records:
        lines = b"".join(map(journal.encode, plan.records))
        state.appended(disk.append(state.directory / JOURNAL, lines), plan.records, len(lines))
    return stamps


def store_objects(disk: Disk, directory: Path, objects: dict[str, bytes]) -> None:
    """Make each version's text an object, durable under its final name."""
    if not objects:
        return
    disk.make_dirs(directory)
    for content_hash, raw in objects.items():
        disk.replace(disk.stage(directory, raw), directory / journal.hex_of(content_hash))
    disk.sync_dir(directory)


def replace_files(plan: Plan) -> dict[str, Stamp]:
    """Stage what is to be written, then rename and remove it all, then sync the directory once."""
    state, disk, directory = plan.state, plan.state.disk, plan.state.directory
    listing, usage = plan.new_listing(), plan.new_usage()
    staged = {name: disk.stage(directory, raw) for name, raw in plan.files.items() if raw is not None}
    staged_listing = None if listing is None else disk.stage(directory, listing.encode())
    staged_usage = None if usage is None else disk.stage(directory, usage.encode())
    new_journal = bool(plan.records) and state.journal_stamp is None
    if new_journal:
        disk.append(directory / JOURNAL, b"")
    if not (plan.files or staged_listing or staged_usage or new_journal):
        return {}
    check_untouched(plan, list(staged.values()))
    for name, raw in plan.files.items():
        if raw is None:
            disk.remove(state.path(name))
        else:
            disk.replace(staged[name], state.path(name))
    if staged_listing is not None:
        disk.replace(staged_listing, directory / LISTING)
    if plan.retired_usage:
        disk.replace(directory / USAGE, numbered(disk, directory, "usage.bad"))
    if staged_usage is not None:
        disk.replace(staged_usage, directory / USAGE)
    disk.sync_dir(directory)
    if listing is not None:
        state.listing.wrote(listing)
    if usage is not None:
        state.usage.wrote(usage)
    return {name: seen.stamp for name in staged if (seen := state.look(name)) is not None}


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
