"""The counters, `usage.json`. Law: what does not parse is never read as empty, and unknown keys survive.

Usage is a value: each change gives a new one. It only ever repeats what the journal can tell again, but for
the count of sessions and the counts of notes that are older than their journal. SPEC 4.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple, Protocol

import msgspec

from memd import errors

NOTHING: Final[Mapping[str, object]] = MappingProxyType({})

_Count = Annotated[int, msgspec.Meta(ge=0)]


class Tally(Protocol):
    """What the journal can say about the use of a note in its current life."""

    def live(self) -> Iterable[str]: ...
    def is_live(self, name: str) -> bool: ...
    def is_forgotten(self, name: str) -> bool: ...
    def saves(self, name: str) -> int: ...
    def reads(self, name: str) -> int: ...
    def first_op(self, name: str) -> str | None: ...
    def last_used(self, name: str) -> int | None: ...


class Counts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often a note was saved and read, and when last, in unix seconds."""

    saves: _Count
    reads: _Count
    last: int


NEVER: Final = Counts(0, 0, 0)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The file's usual shape."""

    sessions: _Count
    notes: dict[str, Counts]


_usual = msgspec.json.Decoder(_File)

_SPLICED = 8  # entries; looking for more of them in the bytes costs as much as formatting all anew
_LAST = b"\n    }\n  }\n}\n"  # what the bytes end in: of the last entry, the entries, the whole


class _Form(NamedTuple):
    """Bytes as `encode` gave them, and the notes that were counted since, the one counted first in front."""

    raw: bytes
    counted: tuple[str, ...] = ()

    def and_counted(self, name: str) -> "_Form | None":
        """The same bytes with one note more; None when that makes too many."""
        counted = self.counted if name in self.counted else (*self.counted, name)
        return _Form(self.raw, counted) if len(counted) <= _SPLICED else None


class Usage(msgspec.Struct, frozen=True):
    """The sessions counted in a store and the counts of its notes; `extra` and `extras` hold unknown keys.

    `form` is no part of the value: bytes of which few entries are to be changed, since a save counts one note of
    thousands.
    """

    sessions: int = 0
    notes: Mapping[str, Counts] = MappingProxyType({})
    extra: Mapping[str, object] = NOTHING
    extras: Mapping[str, Mapping[str, object]] = MappingProxyType({})
    form: _Form | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Usage) and self._value() == other._value()

    @classmethod
    def empty(cls) -> "Usage":
        """The usage of a store that has no file of it yet."""
        return cls()

    @classmethod
    def decode(cls, raw: bytes) -> "Usage":
        """The usage of a file's bytes; Unreadable when they are not JSON of its shape, or none at all."""
        try:
            usual = _usual.decode(raw)
        except msgspec.ValidationError:
            return _decode_odd(raw)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise _unreadable() from error
        return cls(usual.sessions, usual.notes)

    def counts(self, name: str) -> Counts:
        """The counts of a note, zero when it was never used."""
        return self.notes.get(name, NEVER)

    def session_started(self) -> "Usage":
        """With one session more."""
        return msgspec.structs.replace(self, sessions=self.sessions + 1, form=None)

    def saved(self, name: str, at: int) -> "Usage":
        """With one save more of the note, at `at` unix seconds."""
        old = self.counts(name)
        return self._put(name, Counts(old.saves + 1, old.reads, at))

    def read(self, name: str, at: int) -> "Usage":
        """With one read more of the note, at `at` unix seconds."""
        old = self.counts(name)
        return self._put(name, Counts(old.saves, old.reads + 1, at))

    def without(self, *names: str) -> "Usage":
        """Without the entries of these notes."""
        gone = self.notes.keys() & names
        return self._keep({name: count for name, count in self.notes.items() if name not in gone}) if gone else self

    def lowered(self, journal: Tally) -> "Usage":
        """With no count that a crash left ahead of the journal, and no entry of a forgotten note (SPEC 4).

        A note whose life begins with an adopt may be older than its journal: its counts stay.
        """
        notes = {
            name: _lower(counts, journal.saves(name), journal.reads(name)) if _began_here(journal, name) else counts
            for name, counts in self.notes.items()
            if not journal.is_forgotten(name)
        }
        return self if notes == self.notes else self._keep(notes)

    def recounted(self, journal: Tally) -> "Usage":
        """As the journal alone tells it; the sessions, which it does not tell, are kept."""
        counted = ((name, journal.saves(name), journal.reads(name)) for name in journal.live())
        return self._keep(
            {
                name: Counts(saves, reads, journal.last_used(name) or 0)
                for name, saves, reads in counted
                if saves or reads
            }
        )

    def encode(self) -> bytes:
        """The file's bytes: JSON with an indent of two, non-ASCII as it is, a last line end, in order."""
        raw = self._spliced() or self._formatted()
        msgspec.structs.force_setattr(self, "form", _Form(raw))  # what it encodes to changes no value
        return raw

    def _value(self) -> tuple[object, ...]:
        return self.sessions, self.notes, self.extra, self.extras

    def _spliced(self) -> bytes | None:
        """The bytes of `form` with the entries put in that changed; None when it has no place for them.

        Among unknown keys another object may hold a key that looks like an entry's.
        """
        if self.form is None or self.extra or self.extras or not self.form.raw.endswith(_LAST):
            return None
        raw = self.form.raw
        for name in self.form.counted:
            raw = _with_entry(raw, name, self.notes[name])
        return raw

    def _formatted(self) -> bytes:
        notes: dict[str, object] = dict(self.notes)
        for name, extra in self.extras.items():
            notes[name] = {**msgspec.structs.asdict(self.notes[name]), **extra}
        whole = {"sessions": self.sessions, "notes": notes, **self.extra}
        return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"

    def _put(self, name: str, counts: Counts) -> "Usage":
        form = None if self.form is None else self.form.and_counted(name)
        return msgspec.structs.replace(self, notes={**self.notes, name: counts}, form=form)

    def _keep(self, notes: Mapping[str, Counts]) -> "Usage":
        extras = {name: extra for name, extra in self.extras.items() if name in notes}
        return msgspec.structs.replace(self, notes=notes, extras=extras, form=None)


def _with_entry(raw: bytes, name: str, counts: Counts) -> bytes:
    """Formatted bytes with a note's entry replaced, or added as the last of at least one."""
    key = b"\n    %b: {" % msgspec.json.encode(name)
    entry = b'%b\n      "saves": %d,\n      "reads": %d,\n      "last": %d\n    }' % (
        key,
        counts.saves,
        counts.reads,
        counts.last,
    )
    start = raw.find(key)
    if start < 0:
        end = len(raw) - len(_LAST) + len(b"\n    }")
        return b"".join((raw[:end], b",", entry, raw[end:]))
    return b"".join((raw[:start], entry, raw[raw.index(b"}", start) + 1 :]))


def _decode_odd(raw: bytes) -> Usage:
    """The slow way, for a file with unknown keys."""
    try:
        whole = msgspec.json.decode(raw, type=dict[str, object])
        entries = msgspec.convert(whole.get("notes"), type=dict[str, dict[str, object]])
        known = {
            "sessions": whole.get("sessions"),
            "notes": {name: _known(entry) for name, entry in entries.items()},
        }
        usual = msgspec.convert(known, type=_File)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _unreadable() from error
    extras = {name: extra for name, entry in entries.items() if (extra := _unknown(entry, Counts))}
    return Usage(usual.sessions, usual.notes, _unknown(whole, _File), extras)


def _known(entry: Mapping[str, object]) -> dict[str, object]:
    return {key: entry[key] for key in Counts.__struct_fields__ if key in entry}


def _unknown(entry: Mapping[str, object], shape: type[msgspec.Struct]) -> dict[str, object]:
    return {key: value for key, value in entry.items() if key not in shape.__struct_fields__}


def _unreadable() -> errors.Unreadable:
    return errors.Unreadable("usage.json does not parse; memory.rebuild recounts it from the journal")


def _began_here(journal: Tally, name: str) -> bool:
    return journal.is_live(name) and journal.first_op(name) != "adopt"


def _lower(counts: Counts, saves: int, reads: int) -> Counts:
    return Counts(min(counts.saves, saves), min(counts.reads, reads), counts.last)
