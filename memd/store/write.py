"""A plan, carried out. Law: the order below is the promise of SPEC section 4; nothing here decides.

Everything is staged, then synced, then named: objects at once, note files, MEMORY.md and usage.json by renames; the
directories are synced; the objects a forget removes go; last the journal's lines, synced. A crash between any two
steps leaves what opening heals: a file that differs from its head, or a live head with neither file nor object.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from memd import journal
from memd.fs import Disk, Replacing, Staged, Staging
from memd.store import removing, rows
from memd.store.model import Change
from memd.store.plan import Plan
from memd.store.state import NEVER, SUSPENDED, USAGE, State

Beside = Callable[[Mapping[str, Change]], None]
"""What is done with the changes of a plan, by name, while they become durable; it must not fail."""


class InterferenceError(Exception):
    """Someone else changed a file between the plan's look at it and its own write: plan again."""


def carry_out(plan: Plan, beside: Beside) -> list[Change]:
    """Write the plan, durable when this returns; its changes, each with the stamp of its file.

    `beside` is given them before they are durable, to be made use of while the disk is waited for.

    What is staged is begun to be written out at once and synced together, so a batch costs little more time than one
    save: that is the group commit. The four files of a save take 0.6 ms so and 1.1 in turn where a sync takes 0.15,
    and 0.9 and 2.1 where one commits a journal in 0.35; one of 64 saves takes 0.3 ms either way, and one alone 2.3
    and 3.0. The slower the syncs, the more is gained (`python -m tests.bench saving`: `save.syncs`, `save.batch`).
    The price: the first of 64 waits for all, some 40 ms, and one failed sync refuses all. Waiting for more gains
    nothing where few save: who comes during a commit is in the next. After a commit of more, `LiveStore` has those
    who ask again come first, since each call to the system waits for the interpreter while the loop answers: 64 got
    1.05 ms a save beside their answers, and 0.85 after them. For the same reason no other thread stages while the
    rest is planned (a save of 45 took 0.53 ms so, and 0.40 without), and it is not threads of Python that sync many
    files: `beside` has the interpreter to itself meanwhile, which made of 0.68 ms a save 0.63.

    Errors: OSError, after which the directory must be read again; InterferenceError, before which nothing was
    changed.
    """
    state, disk = plan.state, plan.state.disk
    known = plan.is_scanned()
    mark_suspended(plan)
    if plan.records and not state.lines and not state.torn:
        tell_of_lost_journal(state)
    if plan.records and state.journal_stamp is None:
        begin_journal(state)
    if plan.records and state.torn:
        set_torn_aside(state)
    if plan.frees_first:
        make_room(plan)
    with disk.staging() as staging:
        written = Written.of(plan, staging)
        staging.sync(partial(beside, plan.changes))
    removing.begin(plan)
    with disk.replacing() as replacing:
        put_in_place(plan, written, replacing)
        remove_objects(plan)
        changes = [stamped(state, change, written) for change in plan.changes.values()]
        if plan.overtaken:
            plan.scanned_ns = NEVER
        elif known:
            plan.scanned_ns = state.changed_ns()
        if plan.records:
            lines = [journal.encode(record) for record in plan.records]
            state.appended(disk.append(state.journal, b"".join(lines)), plan.records, lines)
            removing.end(state)
        take_over(plan, changes)
    return changes


def mark_suspended(plan: Plan) -> None:
    """Leave a mark in a suspended store, and take it away when it is none: a daemon that starts while half of the
    notes are back has to know that the others are waited for. On a disk that takes no mark there is none; one whose
    sync fails has not told what may be believed, as any other file (SPEC 4). Errors: OSError.
    """
    state, disk = plan.state, plan.state.disk
    if plan.suspended == state.is_marked:
        return
    mark = state.directory / SUSPENDED
    if plan.suspended:
        state.suspended = True  # whatever becomes of the mark
        with disk.staging() as staging:
            try:
                staged = staging.add(state.directory, b"")
            except OSError:
                return
            staging.sync()
        disk.replace(staged.path, mark)
    else:
        try:
            disk.remove(mark)
        except OSError:
            return
    disk.sync_dir(state.directory)
    state.is_marked = plan.suspended


def make_room(plan: Plan) -> None:
    """On a disk without room: remove what goes first, and replace one file after the other in the room it left.

    The note's file goes before its objects: from there on a crash leaves a live head with neither, the forget that
    opening finishes.
    """
    state, disk, directory = plan.state, plan.state.disk, plan.state.directory
    for name, raw in plan.files.items():
        if raw is None:
            disk.remove(state.path(name))
            plan.found[name] = None
    disk.sync_dir(directory)
    remove_objects(plan)
    for file in plan.own_files:
        changed = file.changed()
        if changed is not None:
            if not file.is_foreseen():
                raise InterferenceError
            disk.replace(disk.stage(directory, changed).path, file.cached.path)
            file.wrote(changed)


class Written(NamedTuple):
    """The plan's files, written under names of no note; `own` are MEMORY.md and usage.json, None where unchanged."""

    objects: dict[str, Staged]
    notes: dict[str, Staged]
    own: list[tuple[Staged, bytes] | None]

    @classmethod
    def of(cls, plan: Plan, staging: Staging) -> Self:
        """Stage everything the plan writes; a version that goes again is no object in between.

        An object has its own name at once, since that says what it must hold and no record names it yet: a name
        fewer to be made and removed for each save. One that is there already is replaced as any other file; and so is
        each beside a broken journal, where a sweep knows no object for the leftover of a write that was cut short.
        """
        state, directory = plan.state, plan.state.directory
        add_object = staging.add_at if state.broken_line is None else staging.add_beside
        objects = {version: raw for version, raw in plan.objects.items() if version not in plan.purged}
        if objects:
            state.disk.make_dirs(state.objects)
        return cls(
            objects={version: add_object(state.object_path(version), raw) for version, raw in objects.items()},
            notes={name: staging.add(directory, raw) for name, raw in plan.files.items() if raw is not None},
            own=[
                None if raw is None else (staging.add(directory, raw), raw)
                for raw in [file.changed() for file in plan.own_files]
            ],
        )

    def misplaced(self, state: State) -> Iterator[tuple[Path, Path]]:
        """The staged file and the place of each object that is not there yet."""
        for version, staged in self.objects.items():
            place = state.object_path(version)
            if staged.path != place:
                yield staged.path, place

    def paths(self) -> list[Path]:
        """Every staged file that no rename has put in place yet, but for the objects."""
        return [staged.path for staged in (*self.notes.values(), *(own[0] for own in self.own if own is not None))]


def put_in_place(plan: Plan, written: Written, replacing: Replacing) -> None:
    """Rename what is staged and remove what goes, in the order of SPEC 4, and sync the directories.

    A text that stands in a file that is about to go and was no object till now is durable as one before it does. One
    that a hand puts there in this very moment stays: it is taken for one that came after this.
    """
    state, disk, directory, found = plan.state, plan.state.disk, plan.state.directory, plan.found.get
    for staged, path in written.misplaced(state):
        disk.replace(staged, path)
    if written.objects and plan.keeps_old_text:
        disk.sync_dir(state.objects)
    if plan.restores:
        disk.sync_dir(directory)  # by these names the next opening knows that it was cut short
    room = state.objects if disk.stat(state.objects) is not None else directory
    if not is_foreseen(plan, written):
        withdraw(plan, written)
        raise InterferenceError
    late = [
        name
        for name, staged in written.notes.items()
        if not replacing.put(staged.path, state.path(name), found(name))
    ]
    gone = [name for name, raw in plan.files.items() if raw is None]
    if gone and written.notes:
        disk.sync_dir(directory)  # a rename's text stands under its new name for good before the old one goes
    late += [name for name in gone if not disk.take_away(state.path(name), found(name), room)]
    if late:
        plan.overtaken = True  # as if the hand had come after this: the next look takes it in
    if plan.retired_usage:
        disk.replace(directory / USAGE, numbered(disk, directory, "usage.bad"))
    for file, own in zip(plan.own_files, written.own, strict=True):
        if own is None:
            continue
        if file is plan.usage_file:
            replacing.replace(own[0].path, file.cached.path)
        elif not replacing.put(own[0].path, file.cached.path, file.found):
            plan.unmended.update(rows.changed(plan))
            continue
        file.wrote(own[1])
    changed = [directory] if plan.files or any(written.own) else []
    disk.sync_dir(*([state.objects] if written.objects else []), *changed)


def is_foreseen(plan: Plan, written: Written) -> bool:
    """Whether each file that is about to go still is what the plan was made from.

    A hand edit is never overwritten without its text being an object first (SPEC 4). The stamps were taken when
    the plan read the files. Whoever writes between this look and the rename comes after it: see `Replacing.put`.
    """
    own_files = zip(plan.own_files, written.own, strict=True)
    if any(own is not None and not file.is_foreseen() for file, own in own_files):
        return False
    seen = {name: plan.state.look(name) for name in plan.files}
    return all(plan.found.get(name) == (None if now is None else now.stamp) for name, now in seen.items())


def withdraw(plan: Plan, written: Written) -> None:
    """Remove what was written of a plan that is given up: its staged files, and objects nothing else holds."""
    state = plan.state
    for path in written.paths():
        state.disk.remove(path)
    for version in written.objects:
        if not state.heads.held(version):
            state.disk.remove(state.object_path(version))
    removing.end(state)


def remove_objects(plan: Plan) -> None:
    """Unlink the objects of versions that nothing holds any more."""
    state, disk = plan.state, plan.state.disk
    for version in plan.purged:
        disk.remove(state.object_path(version))
    if plan.purged and disk.stat(state.objects) is not None:
        disk.sync_dir(state.objects)


def begin_journal(state: State) -> None:
    """Make the journal, durable under its name, before any object: without one no leftover is known for one."""
    state.disk.append(state.journal, b"")
    state.disk.sync_dir(state.directory)


def tell_of_lost_journal(state: State) -> None:
    """Put an empty `ops.torn.<n>` beside a journal that was gone or emptied while texts were there (see `sweep`)."""
    disk, stamp = state.disk, state.journal_stamp
    if disk.stat(state.objects) is None:
        return
    found = [seen for seen in disk.scan(state.objects) if seen.regular]
    if any(stamp is None or seen.stamp.mtime_ns < stamp.mtime_ns for seen in found):
        disk.replace(disk.stage(state.directory, b"").path, numbered(disk, state.directory, "ops.torn"))
        disk.sync_dir(state.directory)


def set_torn_aside(state: State) -> None:
    """Move what follows the last whole record, bytes kept, to `ops.torn.<n>`, and cut the journal there."""
    disk, directory = state.disk, state.directory
    torn, _ = disk.read_from(state.journal, state.whole)
    disk.replace(disk.stage(directory, torn).path, numbered(disk, directory, "ops.torn"))
    disk.sync_dir(directory)
    disk.truncate(state.journal, state.whole)
    state.torn = 0


def numbered(disk: Disk, directory: Path, stem: str) -> Path:
    """The first of `stem.1`, `stem.2`, … that is free."""
    number = 1
    while disk.stat(directory / f"{stem}.{number}") is not None:
        number += 1
    return directory / f"{stem}.{number}"


def stamped(state: State, change: Change, written: Written) -> Change:
    """A change with the stamps that its note and object were written under, where the note's file still is the one
    that was staged.
    """
    staged = written.notes.get(change.name)
    if change.entry is None or staged is None:
        return change
    looked_ns = time.time_ns()
    seen = state.look(change.name)
    if seen is None or not seen.stamp.is_file_of(staged.stamp):
        return change
    made = written.objects.get(change.entry.hash)
    kept = None if made is None else made.stamp
    entry = msgspec.structs.replace(change.entry, stamp=seen.stamp, looked_ns=looked_ns, kept=kept)
    return msgspec.structs.replace(change, entry=entry)


def take_over(plan: Plan, changes: list[Change]) -> None:
    """Make the state what the plan has made of the disk. Nothing here can fail: the plan is durable."""
    state = plan.state
    for change in changes:
        if change.entry is None:
            state.drop_entry(change.name)
        else:
            state.set_entry(change.entry)
    state.missing, state.suspended = plan.missing, plan.suspended
    state.scanned_ns, state.behind = plan.scanned_ns, plan.behind
    state.unmended = plan.unmended
