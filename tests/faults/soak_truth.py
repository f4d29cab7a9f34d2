"""What a soak's clients were promised, kept outside the home. Law: a text is known by a word that no other text has.

Every text is made here, byte for byte as SPEC section 2 has it, so that what stands in a file or an object is held
against bytes that memd did not give. A note has one writer; the gate stops all of them between two calls.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

WORD = re.compile(rb"zq\d+n\d+z")
"""What every word looks like."""


class LostError(AssertionError):
    """A promise was not kept."""


class Text(NamedTuple):
    """One text of a note; `acknowledged`: a client was told that it is saved."""

    raw: bytes
    acknowledged: bool

    @property
    def hash(self) -> str:
        """The hash that names it."""
        return "sha256:" + hashlib.sha256(self.raw).hexdigest()

    @property
    def words(self) -> set[bytes]:
        """The words in it."""
        return set(WORD.findall(self.raw))


def saved_text(name: str, hook: str, body: str) -> bytes:
    """The bytes of a save: canonical form."""
    quoted = json.dumps(hook, ensure_ascii=False)
    return f"---\nname: {name}\ndescription: {quoted}\ntype: project\n---\n\n{body}\n".encode()


class Note:
    """A note that stands: its texts of this life, oldest first; the last is the file's.

    `unseen`: a hand has just written that last one, and nobody was told yet that it is taken in. `loose`: texts that
    a hand wrote over before anybody was told: versions, or not.
    """

    def __init__(self, name: str, scope: str, first: Text) -> None:
        self.name, self.scope = name, scope
        self.texts = [first]
        self.loose: list[Text] = []
        self.unseen = False

    @property
    def now(self) -> bytes:
        """The bytes its file holds."""
        return self.texts[-1].raw

    def add(self, text: Text) -> None:
        """It has another text; what a hand wrote before is a version by now."""
        self.texts.append(text)
        self.unseen = False

    def edited(self, raw: bytes) -> None:
        """A hand has written another text over what it has."""
        if self.unseen:
            self.loose.append(self.texts.pop())
        self.add(Text(raw, acknowledged=False))
        self.unseen = True


class Gate:
    """Lets calls through until somebody wants the world to stand still."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._working = 0
        self._closed = False

    @contextmanager
    def working(self) -> Iterator[None]:
        """While this lasts the world does not stand still."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._working += 1
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    @contextmanager
    def still(self) -> Iterator[None]:
        """While this lasts nobody works."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._working)
        try:
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()


class Tally:
    """What has happened, counted by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}

    def add(self, what: str, number: int = 1) -> None:
        """Count it."""
        with self._lock:
            self._counts[what] = self._counts.get(what, 0) + number

    def of(self, what: str) -> int:
        """How often it happened."""
        with self._lock:
            return self._counts.get(what, 0)

    def line(self) -> str:
        """All of it, in the order in which it first happened."""
        with self._lock:
            return ", ".join(f"{what} {count:,}" for what, count in self._counts.items())


class Truth:
    """A client's notes in one repository and the global store, and its words that must be nowhere."""

    def __init__(self) -> None:
        self.notes: dict[str, Note] = {}
        self.gone: list[bytes] = []
        self.forgotten_saves = 0

    def put(self, note: Note) -> None:
        """The note stands."""
        self.notes[note.name] = note

    def forgotten(self, note: Note) -> None:
        """The note is gone, with every text of its life."""
        del self.notes[note.name]
        for text in (*note.texts, *note.loose):
            self.gone += text.words
            self.forgotten_saves += text.acknowledged

    def never_was(self, raw: bytes) -> None:
        """A save was not acknowledged and did not happen."""
        self.gone += WORD.findall(raw)


def check_store(directory: Path, notes: Iterable[Note]) -> int:
    """Hold a store's files against the notes it must have and no other; how many acknowledged saves were found.

    Errors: LostError, for a text that is not there, another one in its place, or a note nobody made.
    """
    wanted = {note.name: note for note in notes}
    stands = {path.stem: path.read_bytes() for path in directory.glob("*.md") if path.name != "MEMORY.md"}
    if stands.keys() != wanted.keys():
        raise LostError(
            f"{directory}: lost {wanted.keys() - stands.keys()}, nobody's {stands.keys() - wanted.keys()}"
        )
    found = 0
    for name, note in wanted.items():
        if stands[name] != note.now:
            raise LostError(f"{directory}/{name}.md holds {stands[name][:300]!r} and not {note.now[:300]!r}")
        for text in note.texts:
            path = directory / "objects" / text.hash.removeprefix("sha256:")
            if not path.is_file() or path.read_bytes() != text.raw:
                raise LostError(f"{name}: no object holds {text.raw[:300]!r}, acknowledged: {text.acknowledged}")
            found += text.acknowledged
    return found


def check_gone(root: Path, gone: set[bytes]) -> None:
    """Look into every file below a directory for words that must be nowhere. Errors: LostError."""
    for path in sorted(root.rglob("*")):
        try:
            left = gone & set(WORD.findall(path.read_bytes())) if path.is_file() else None
        except FileNotFoundError:
            continue
        if left:
            raise LostError(f"{path} still holds {sorted(left)[:5]}")
