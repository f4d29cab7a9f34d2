"""One client of a soak: it calls, edits by hand, and keeps count of what it was promised. Law: it never guesses.

A call whose answer a kill took away is looked into before anything else is done: the note is as it was or as it was
to be, whole. A deletion whose answer was lost is waited out by `memory.reconcile`, as a person would.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import memd_client

from .soak_truth import Gate, LostError, Note, Tally, Text, Truth, saved_text

NOTES_MAX = 14
"""Notes a client keeps, about."""
PATIENCE_S = 60.0
"""Seconds until something that must come, a start on a busy machine or an edit that is seen, counts as never."""
ANSWER_S = 60.0
"""Seconds an answer may take."""

_scopes = ("repo", "repo", "repo", "global")


class Client(threading.Thread):
    """A thread with a connection of its own, which starts the daemon again when it is gone."""

    def __init__(self, number: int, env: Mapping[str, str], gate: Gate, tally: Tally, seed: int) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.number, self.env, self.gate, self.tally = number, env, gate, tally
        self.chance = random.Random(f"{seed}/{number}")
        self.connection = memd_client.Connection(env, timeout=ANSWER_S)
        self.truth = Truth()
        self.cwd = ""
        self.stores: dict[str, Path] = {}
        self.session: str | None = None
        self.words = 0
        self.names = 0
        self.sessions = 0
        self.ended = threading.Event()
        self.failure: BaseException | None = None

    def work_in(self, cwd: str, stores: dict[str, Path], truth: Truth) -> None:
        """Go on in another repository, with new notes; called while the world stands still."""
        self.cwd, self.stores, self.truth, self.session = cwd, stores, truth, None

    def run(self) -> None:
        """Work until the end or the first failure."""
        try:
            while not self.ended.is_set():
                with self.gate.working():
                    self.step()
                self.ended.wait(self.chance.uniform(0, 0.06))
        except BaseException as error:  # noqa: BLE001 - the soak tells it and ends
            self.failure = error
        finally:
            self.connection.close()

    # -- what it does ----------------------------------------------------------------------------------------

    def step(self) -> None:
        """Do one thing."""
        notes = list(self.truth.notes.values())
        if len(notes) < 4 or (len(notes) < NOTES_MAX and self.chance.random() < 0.25):
            self.chance.choice((self.save_new, self.save_new, self.save_new, self.create))()
            return
        act: Callable[[Note], None] = self.chance.choices(
            (self.update, self.read, self.search, self.forget, self.edit, self.delete, self.restore, self.focus),
            (30, 20, 15, 12, 10, 2, 4, 4),
        )[0]
        act(self.chance.choice(notes))

    def save_new(self) -> None:
        """Save a note of a new name."""
        self._save(self.new_name(), self.chance.choice(_scopes), None)

    def update(self, note: Note) -> None:
        """Save a note again."""
        self._save(note.name, note.scope, note)

    def read(self, note: Note) -> None:
        """Read a note: it has the text it has."""
        reply = self._again("memory.read", name=note.name, scope=note.scope)
        body = note.now.split(b"\n---\n\n", 1)[-1].decode().rstrip("\n")
        if reply is None or reply["text"].strip("\n") != body:
            raise LostError(f"{note.name} reads {reply}")
        self.tally.add("reads")

    def search(self, note: Note) -> None:
        """Search for a note by its word, and for a word that is gone."""
        if note.unseen:
            self.read(note)
            return
        [word, *_] = Text(note.now, acknowledged=False).words
        reply = self._again("memory.search", query=word.decode(), scope=note.scope)
        if reply is None or [hit["name"] for hit in reply["hits"]] != [note.name]:
            raise LostError(f"the only word of {note.name} finds {reply}")
        if self.truth.gone:
            gone = self.chance.choice(self.truth.gone)
            reply = self._again("memory.search", query=gone.decode())
            if reply is None or reply["total"]:
                raise LostError(f"a forgotten word finds {reply}")
        self.tally.add("searches")

    def forget(self, note: Note) -> None:
        """Forget a note."""
        if self._once("memory.forget", name=note.name, scope=note.scope) is not None:
            self.tally.add("forgets")
            self.truth.forgotten(note)
            return
        self._settle()
        if self._standing(note.name, note.scope, note.now, None) is None:
            self.truth.forgotten(note)

    def create(self) -> None:
        """Write a note by hand, and have it taken in."""
        name, scope = self.new_name(), self.chance.choice(_scopes)
        if not self.stores[scope].is_dir():
            self._save(name, scope, None)  # only memd makes a store
            return
        raw = self._by_hand(name)
        self._write(name, scope, raw)
        self._settle()
        self.truth.put(Note(name, scope, Text(raw, acknowledged=False)))
        self.tally.add("created by hand")

    def edit(self, note: Note) -> None:
        """Edit a note by hand; then read it, have it taken in, save over it, or leave it."""
        raw = self._by_hand(note.name)
        self._write(note.name, note.scope, raw)
        note.edited(raw)
        self.tally.add("edits by hand")
        match self.chance.randrange(4):
            case 0:
                self._until_read(note)
            case 1:
                self._settle()
                note.unseen = False
            case 2:
                self.update(note)

    def delete(self, note: Note) -> None:
        """Delete a note by hand, and wait until it is forgotten."""
        (self.stores[note.scope] / f"{note.name}.md").unlink()
        self._settle()
        if self._standing(note.name, note.scope, None) is None:
            self.truth.forgotten(note)
            self.tally.add("deleted by hand")

    def restore(self, note: Note) -> None:
        """Make an old text a note's text again."""
        if note.unseen or len(note.texts) == 1:
            return
        old = self.chance.choice(note.texts[:-1])
        reply = self._once("memory.restore", name=note.name, scope=note.scope, hash=old.hash)
        if reply is None and self._standing(note.name, note.scope, note.now, old.raw) != old.raw:
            return
        note.add(Text(old.raw, acknowledged=reply is not None))
        self.tally.add("acknowledged saves" if reply is not None else "unanswered")

    def focus(self, note: Note) -> None:
        """Start a session, whose block holds a note's text; later writes are the session's."""
        if note.unseen:
            return
        self.sessions += 1
        self.session = f"s{self.number}-{self.sessions}"
        self._again("session.start", place={"session": self.session, "cwd": self.cwd, "save_cap": None})
        [word, *_] = Text(note.now, acknowledged=False).words
        reply = self._again("memory.focus", place={"session": self.session}, prompt=f"tell me of {word.decode()}")
        if reply is None or word.decode() not in reply["text"]:
            raise LostError(f"the block of a prompt for {note.name} is {reply and reply['text']!r}")
        self.tally.add("sessions")

    # -- how it does it ----------------------------------------------------------------------------------------

    def _save(self, name: str, scope: str, note: Note | None) -> None:
        hook, body = f"what {name} says, {self._word()}", self._body()
        raw = saved_text(name, hook, body)
        fields = {"name": name, "description": hook, "type": "project", "scope": scope}
        reply = self._once("memory.save", place=self._place(), markdown=body, fields=fields)
        acknowledged = reply is not None
        text = Text(raw, acknowledged)
        if reply is None:
            before = None if note is None else note.now
            if self._standing(name, scope, before, raw) != raw:
                self.truth.never_was(raw)
                return
        elif reply["hash"] != text.hash:
            raise LostError(f"{name} was saved as {reply} and not as {text.hash}: {raw[:300]!r}")
        self.tally.add("acknowledged saves" if acknowledged else "unanswered")
        if note is None:
            self.truth.put(Note(name, scope, text))
        else:
            note.add(text)

    def _standing(self, name: str, scope: str, *may: bytes | None) -> bytes | None:
        """What of the texts a note may have it has, None for no note. Errors: LostError when it is another."""
        reply = self._again("memory.show", name=name, scope=scope)
        now = None if reply is None else reply["markdown"].encode()
        if now not in may:
            raise LostError(f"{name} is {now!r} and none of {may}")
        return now

    def _until_read(self, note: Note) -> None:
        """Wait until a read gives the text that a hand has written."""
        deadline = time.monotonic() + PATIENCE_S
        [word, *_] = Text(note.now, acknowledged=False).words
        while True:
            reply = self._again("memory.read", name=note.name, scope=note.scope)
            if reply is not None and word.decode() in reply["text"]:
                return
            if time.monotonic() > deadline:
                raise LostError(f"{note.name} was edited by hand and reads {reply}")

    def _settle(self) -> None:
        """Have what hands did taken in, and what was cut short ended."""
        if self._again("memory.reconcile") is None:
            raise LostError("nothing to reconcile")

    def _again(self, method: str, place: dict[str, Any] | None = None, **params: object) -> dict[str, Any] | None:
        """The answer to a call that may be repeated, None for `not_found`."""
        while True:
            try:
                reply = self._once(method, place, **params)
            except memd_client.NotFound:
                return None
            if reply is not None:
                return reply

    def _once(self, method: str, place: dict[str, Any] | None = None, **params: object) -> dict[str, Any] | None:
        """The answer to a call, None when a kill took it away: what came of it is not known."""
        deadline = time.monotonic() + PATIENCE_S
        given = {"cwd": self.cwd} if place is None else place
        while True:
            try:
                return self.connection.call(method, {**given, **params})
            except memd_client.ConnectionLost:
                self.tally.add("answers lost")
                return None
            except memd_client.NoAnswer:
                raise
            except memd_client.Unavailable:  # nothing was sent: the daemon was not up in time
                self.tally.add("late starts")
                if time.monotonic() > deadline:
                    raise

    def _place(self) -> dict[str, Any]:
        """Whose save it is: a person's, or that of the session that was started last."""
        if self.session is None or self.chance.random() < 0.5:
            return {"cwd": self.cwd}
        return {"session": self.session}

    def _word(self) -> str:
        self.words += 1
        return f"zq{self.number}n{self.words}z"

    def new_name(self) -> str:
        self.names += 1
        return f"note-{self.number}-{self.names}"

    def _body(self) -> str:
        """Words of a size that is a line mostly and some kilobytes now and then."""
        lines = 1 if self.chance.random() < 0.8 else self.chance.randrange(60)
        return "\n".join(["The tide turns at noon; mind the ropes.", *["Über 50 m Tau, naß."] * lines])

    def _by_hand(self, name: str) -> bytes:
        """A text as a person writes it."""
        word = self._word()
        return self.chance.choice(
            (
                f"Plain words, {word}.\n",
                f"# {name}\n\nSome words, {word}.\n",
                f'---\nname: {name}\ndescription: "By hand"\ntype: user\n---\n\nIn form, {word}.\n',
            )
        ).encode()

    def _write(self, name: str, scope: str, raw: bytes) -> None:
        """Write a note's file as editors do: in place, or beside it and renamed."""
        directory = self.stores[scope]
        path = directory / f"{name}.md"
        if self.chance.random() < 0.5:
            path.write_bytes(raw)
            return
        beside = directory / f".{name}.md.swp"
        beside.write_bytes(raw)
        beside.rename(path)
