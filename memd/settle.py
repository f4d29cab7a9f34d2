"""The one decision about a difference between disk and journal. Law: it is taken only once nothing moves.

Events and the clock feed it; nothing else decides whether a difference is taken, waits, is a forget, or
suspends the store. Every time is wall clock in seconds, since it is compared with what the file system wrote.
SPEC 5.
"""

from typing import Final, Protocol

import msgspec

QUIET: Final = 0.05
"""Seconds without a change after which a file counts as written."""
SETTLE: Final = 2.0
"""Seconds after which an empty file is meant to be empty and a missing one to be gone."""


class Head(Protocol):
    """What the decision needs of a head record."""

    @property
    def op(self) -> str: ...
    @property
    def hash(self) -> str: ...


class Seen(msgspec.Struct, frozen=True):
    """A file as a scan saw it; `changed` is its ctime."""

    hash: str
    size: int
    changed: float


class Keep(msgspec.Struct, frozen=True):
    """Disk and journal agree."""


class Wait(msgspec.Struct, frozen=True):
    """Nothing can be said yet: look again at `until`."""

    until: float


class Adopt(msgspec.Struct, frozen=True):
    """A file the journal does not have, or has forgotten."""


class Edit(msgspec.Struct, frozen=True):
    """A live note with other bytes than its head's."""


class Forget(msgspec.Struct, frozen=True):
    """A live note whose file is gone for good."""


Decision = Keep | Wait | Adopt | Edit | Forget


def settle(
    head: Head | None,
    seen: Seen | None,
    first_missing: float | None,
    now: float,
    *,
    quiet: float = QUIET,
    settle: float = SETTLE,
) -> Decision:
    """What is to be done about one name; `seen` is None for a file missing since `first_missing`, if known.

    A file is taken once it was left alone for `quiet`, an empty one for `settle`; a missing one is forgotten
    once it was missing for `settle`.
    """
    live = head is not None and head.op != "forget"
    if seen is None:
        if not live:
            return Keep()
        until = forget_at(now if first_missing is None else first_missing, settle)
        return Forget() if until <= now else Wait(until)
    if head is not None and live and head.hash == seen.hash:
        return Keep()
    until = quiet_at(seen.size, seen.changed, now, settle, quiet=quiet)
    if until > now:
        return Wait(until)
    return Edit() if live else Adopt()


def quiet_at(size: int, changed: float, now: float, settle: float = SETTLE, *, quiet: float = QUIET) -> float:
    """When a file of `size` bytes, `changed` last then, may be read and taken; not after `now` when it may already.

    A change time further ahead than `settle` says nothing: the clock was set back, or another machine stamped
    the file. Waiting for it could take years, and taking the file loses nothing.
    """
    return now if changed - now > settle else changed + (quiet if size else settle)


def forget_at(since: float, settle: float = SETTLE) -> float:
    """When a note whose file is missing `since` then may be forgotten."""
    return since + settle


def missing_since(known: float | None, directory_changed: float, now: float) -> float:
    """Since when a name is missing, for the caller to keep until its file is back.

    At first it is the directory's change time, so that a deletion made while nobody looked counts from when
    it was made. It is never later than now, so that a clock that is set back delays a forget by no more than
    one `settle`.
    """
    return min(directory_changed if known is None else known, now)


def guard(missing: int, live: int, *, directory_gone: bool, suspended: bool) -> bool:
    """Whether the store is suspended, `missing` of its `live` notes being found gone by one reconcile.

    It is when three or more and at least half are gone, or the whole directory. It stays so until nothing is
    missing: a sync tool brings files back one at a time, and half of them back is no reason to forget the
    rest.
    """
    if live == 0:
        return False
    if directory_gone:
        return True
    if suspended:
        return missing > 0
    return missing >= 3 and 2 * missing >= live
