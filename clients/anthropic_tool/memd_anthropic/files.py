"""memd's notes as the tool's files. Law: a change names the version it was made from, and is a verb of memd's.

Knows nothing of the SDK. Whatever fails is a `FileError` whose text is for the model. SPEC 13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from memd_anthropic import notes, paths, shown
from memd_anthropic.paths import ROOT, ROOTS, SCOPES, PathError, Place
from memd_client.errors import Conflict, MemdError, NotFound, Refused, TooLarge, Unavailable

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Sends a verb and its parameters in a session, and gives the result."""

PAGE = 500
"""Notes asked for at a time."""
ENTRIES = 1000
"""Lines of a directory shown at a time."""
TRIES = 3
"""How often an edit that still applies is made anew on what somebody else wrote meanwhile."""


class FileError(Exception):
    """Why a command did nothing, in the words for the model."""


class File(NamedTuple):
    """A note: its text, the hash of that version, the path it keeps ("" for none), and where it is seen."""

    name: str
    scope: str
    hash: str
    text: str
    made: str
    path: str

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.text.encode())


class Files:
    """The commands of the tool. For any thread."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def view(self, path: str, view_range: object = None) -> str:
        """A directory two levels deep, or a file's lines. A file that is viewed counts as read."""
        place = _place(path)
        file = self._at(place)
        if file is None:
            return self._directory(place, view_range)
        lines = shown.lines_of(self._counted(file).text)
        if len(lines) > shown.MAX_LINES:
            raise FileError(f"File {place.path} exceeds maximum line limit of 999,999 lines.")
        first, last = _range(view_range, len(lines))
        return (
            f"Here's the content of {place.path} with line numbers:\n{shown.numbered(lines[first - 1 : last], first)}"
        )

    def create(self, path: str, text: str) -> str:
        """A new note; one without a block is of type project."""
        place = _place(path)
        self._refuse_taken(place, f"Error: File {place.path} already exists")
        given = self._given(place, text)
        wanted = paths.names(place) if place.is_made else [place.name]
        for name in wanted:
            try:
                saved = self._call("memory.save", markdown=text, fields={"name": name, **given}, expect=None)
            except Conflict:
                continue
            where = place.path if place.is_made else paths.of_note(saved["scope"], saved["name"])
            return _with_warnings(f"File created successfully at: {where}", saved)
        raise FileError(f"Error: File {place.path} already exists")

    def str_replace(self, path: str, old: str, new: str) -> str:
        """The one place where `old` stands gets `new`, also when somebody else changed another place meanwhile."""
        place = _place(path)
        missing = f"Error: The path {place.path} does not exist. Please provide a valid path."
        for _ in range(TRIES):
            file = self._there(place, missing)
            at = _only(file.text, old, place.path)
            try:
                saved = self._save(file, file.text[:at] + new + file.text[at + len(old) :], file.made)
            except Conflict:
                continue
            after = self._version(file, saved["hash"])
            snippet = shown.around(after, _line(file.text, at), new.count("\n") + 1)
            return _with_warnings(f"The memory file has been edited.\n{snippet}", saved)
        raise FileError(_changed(place))

    def insert(self, path: str, line: int, text: str) -> str:
        """A text after line `line`, in the very version that was looked at."""
        place = _place(path)
        file = self._there(place, f"Error: The path {place.path} does not exist")
        lines = shown.lines_of(file.text)
        least = 1 if notes.has_block(file.text) else 0
        if not least <= line <= len(lines):
            hint = (
                f" (the note's block begins at line 1, its body at line {notes.body_line(file.text)})"
                if least
                else ""
            )
            raise FileError(
                f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file:"
                f" [{least}, {len(lines)}]{hint}"
            )
        lines[line:line] = text.removesuffix("\n").split("\n")
        try:
            saved = self._save(file, "\n".join(lines) + "\n", file.made)
        except Conflict:
            raise FileError(_changed(place)) from None
        return _with_warnings(f"The file {place.path} has been edited.", saved)

    def delete(self, path: str) -> str:
        """A note, or every note made below a directory, is forgotten with all its versions."""
        place = _place(path)
        _refuse_root(place, "delete")
        file = self._at(place)
        found = [file] if file is not None else self._below(place)
        if not found:
            raise FileError(f"Error: The path {place.path} does not exist")
        gone = 0
        for each in found:
            try:
                self._call("memory.forget", name=each.name, scope=each.scope)
            except NotFound:
                continue
            gone += 1
        if not gone:
            raise FileError(f"Error: The path {place.path} does not exist")
        return f"Successfully deleted {place.path}"

    def rename(self, old: str, new: str) -> str:
        """A note, or every note made below a directory, gets another path."""
        source, target = _place(old), _place(new)
        _refuse_root(source, "rename")
        file = self._at(source)
        found = [file] if file is not None else self._below(source)
        if not found:
            raise FileError(f"Error: The path {source.path} does not exist")
        self._refuse_taken(target, f"Error: The destination {target.path} already exists")
        if target.path.startswith(f"{source.path}/"):
            raise FileError(f"Error: The destination {target.path} lies in {source.path}")
        for each in found:
            inner = "" if file is not None else each.path[len(source.path) :]
            self._carry(each, _place(target.path + inner))
        return f"Successfully renamed {source.path} to {target.path}"

    # ------------------------------------------------------------ what is there

    def _at(self, place: Place) -> File | None:
        """The note at a path; a made one is known by the path it keeps, whatever its name has become."""
        if not place.is_made:
            return self._shown(place.name, place.scope)
        if place.path in ROOTS:
            return None
        for name in paths.names(place):
            file = self._shown(name, "repo")
            if file is not None and file.made == place.path:
                return file
        return next((file for file in self._all("repo") if file.made == place.path), None)

    def _there(self, place: Place, missing: str) -> File:
        file = self._at(place)
        if file is None:
            raise FileError(missing)
        return file

    def _shown(self, name: str, scope: str) -> File | None:
        """The note of exactly that name, or whose name slugs to the same; a hook of those words is another's."""
        try:
            reply = self._call("memory.show", name=name, scope=scope)
        except NotFound:
            return None
        if reply["name"] != name and paths.slug(reply["name"]) != paths.slug(name):
            return None
        return _file(reply)

    def _version(self, file: File, version: str) -> str:
        """The text that memd made of what was saved; what was there before, should it be gone again."""
        try:
            return str(self._call("memory.show", name=file.name, scope=file.scope, hash=version)["markdown"])
        except MemdError:
            return file.text

    def _counted(self, file: File) -> File:
        """The file, read in the sense of memd's counts, which a view that fails to be counted does not need."""
        try:
            self._call("memory.read", name=file.name, scope=file.scope)
        except (MemdError, FileError):
            return file
        return file

    def _all(self, *scopes: str) -> Iterator[File]:
        """Every note, each where it is seen; of two that claim one path the first is seen there."""
        claimed: set[str] = set()
        for scope in scopes or SCOPES:
            for row in self._rows(scope):
                file = _file(row)
                if file.made in claimed:
                    file = file._replace(made="", path=paths.of_note(file.scope, file.name))
                claimed.add(file.made)
                claimed.discard("")
                yield file

    def _rows(self, scope: str) -> Iterator[dict[str, Any]]:
        offset, limit = 0, PAGE
        while True:
            try:
                reply = self._call("memory.list", scope=scope, texts=True, limit=limit, offset=offset)
            except TooLarge:
                if limit == 1:
                    raise
                limit = max(1, limit // 4)  # hand-written notes may be long
                continue
            yield from reply["notes"]
            offset += limit
            if offset >= reply["total"]:
                return

    def _below(self, place: Place) -> list[File]:
        return [file for file in self._all("repo") if file.made.startswith(f"{place.path}/")]

    def _directory(self, place: Place, view_range: object) -> str:
        files = [(file.path, file.size) for file in self._all()]
        if place.path not in ROOTS and not any(path.startswith(f"{place.path}/") for path, _ in files):
            raise FileError(f"The path {place.path} does not exist. Please provide a valid path.")
        total, entries = shown.tree(place.path, files, SCOPES if place.path == ROOT else ())
        first, last = _range(view_range, len(entries)) if len(entries) > ENTRIES else (1, len(entries))
        last = min(last, first + ENTRIES - 1)
        head = (
            f"Here're the files and directories up to 2 levels deep in {place.path},"
            " excluding hidden items and node_modules:"
        )
        lines = [head, f"{shown.size(total)}\t{place.path}", *entries[first - 1 : last]]
        if last < len(entries):
            lines.append(f"[{first}-{last} of {len(entries)} entries · view_range [{last + 1}, -1] for the next]")
        return "\n".join(lines)

    def _refuse_taken(self, place: Place, taken: str) -> None:
        """Refuses a path at which there is something, below which there is, or that lies in a file."""
        if place.path in ROOTS or (not place.is_made and self._at(place) is not None):
            raise FileError(taken)
        if not place.is_made:
            return
        for file in self._all():
            if file.path == place.path or file.path.startswith(f"{place.path}/"):
                raise FileError(taken)
            if place.path.startswith(f"{file.path}/"):
                raise FileError(f"Error: {file.path} is a file, not a directory")

    # ------------------------------------------------------------ what changes it

    def _given(self, place: Place, text: str) -> dict[str, str]:
        """What is laid over the text of a new note."""
        given = {"scope": place.scope or "repo"}
        if place.is_made or notes.value_of(text, "path"):
            given["path"] = place.path
        return given | _of_bare(text, place)

    def _save(self, file: File, text: str, path: str) -> dict[str, Any]:
        """The reply of a save of another text over exactly this version. Raises `Conflict`."""
        given = {"name": file.name, "scope": file.scope}
        if path:
            given["path"] = path
        given |= _of_bare(text, _place(path or file.path)) or _of_first_line(file.text, text)
        return self._call("memory.save", markdown=text, fields=given, expect=file.hash)

    def _carry(self, file: File, target: Place) -> None:
        """Give a note another path: the path it keeps, then its store, then its name; each step is whole."""
        scope = target.scope or "repo"
        if target.is_made or notes.value_of(file.text, "path"):
            try:
                self._save(file, file.text, target.path)
            except Conflict:
                raise FileError(_changed(_place(file.path))) from None
        if file.scope != scope:
            self._call("memory.move", name=file.name, scope=scope)
        wanted = paths.names(target) if target.is_made else [target.name]
        for name in wanted:
            if paths.slug(name) == paths.slug(file.name):
                return
            try:
                self._call("memory.rename", name=file.name, to=name, scope=scope)
            except Refused:
                continue
            return
        if not target.is_made:
            raise FileError(f"Error: The destination {target.path} already exists")

    def _call(self, verb: str, **params: object) -> dict[str, Any]:
        """The result of a verb. Raises `NotFound`, `Conflict`, `Refused`, `TooLarge`; all else as a `FileError`."""
        try:
            return self._ask(verb, params)
        except Unavailable as error:
            raise FileError(
                f"Error: memory cannot be reached ({error.kind}); view the path before a change is made again"
            ) from error


def told(error: MemdError) -> FileError:
    """An error of memd's as the tool tells it."""
    return FileError(f"Error: {error.message}")


def _file(row: dict[str, Any]) -> File:
    """A note as `memory.show` and `memory.list` give it."""
    scope, name, text = row["scope"], row["name"], row["markdown"]
    path = (paths.made(notes.value_of(text, "path")) or "") if scope == "repo" else ""
    return File(name, scope, row["hash"], text, path, path or paths.of_note(scope, name))


def _of_bare(text: str, place: Place) -> dict[str, str]:
    """What a text without a block does not say: type project, and a hook of its first words, else of its path."""
    if notes.has_block(text):
        return {}
    return {"type": "project", "description": notes.hook_of(text) or place.relative[-notes.MAX_HOOK :]}


def _of_first_line(before: str, after: str) -> dict[str, str]:
    """The hook that follows the body's first line, where it was that line and nobody gave another one."""
    hook, again = (notes.value_of(text, "description") for text in (before, after))
    said, says = (notes.hook_of(text[notes.body_start(text) :]) for text in (before, after))
    return {"description": says} if hook == again == said and says else {}


def _only(text: str, old: str, path: str) -> int:
    """Where the only `old` begins. Once in the body is enough: the hook of a bare text repeats its first line."""
    found = list(_found(text, old, notes.body_start(text)))
    if len(found) != 1:
        found = list(_found(text, old, 0))
    if not found:
        raise FileError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if len(found) > 1:
        lines = ", ".join(str(_line(text, at)) for at in found)
        raise FileError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}."
            " Please ensure it is unique"
        )
    return found[0]


def _found(text: str, old: str, start: int) -> Iterator[int]:
    at = text.find(old, start) if old else -1
    while at >= 0:
        yield at
        at = text.find(old, at + 1)


def _line(text: str, at: int) -> int:
    """The number of the line that an offset lies in."""
    return text.count("\n", 0, at) + 1


def _range(view_range: object, count: int) -> tuple[int, int]:
    """The first and the last line that are asked for, all without a range; -1 stands for the last one."""
    if view_range is None or view_range == []:
        return 1, count
    if isinstance(view_range, list) and len(view_range) == 2 and all(type(number) is int for number in view_range):
        first, last = view_range
        last = count if last == -1 else min(last, count)
        if 1 <= first <= last:
            return first, last
    raise FileError(
        f"Error: Invalid `view_range` parameter: {view_range}. It should be within the range of lines of the file:"
        f" [1, {count}]"
    )


def _place(path: str) -> Place:
    try:
        return paths.place(path)
    except PathError as error:
        raise FileError(str(error)) from None


def _refuse_root(place: Place, verb: str) -> None:
    if place.path in ROOTS:
        raise FileError(f"Error: Cannot {verb} the {place.path} directory itself")


def _changed(place: Place) -> str:
    return f"Error: {place.path} was changed by somebody else meanwhile; view it and make the change again"


def _with_warnings(answer: str, saved: dict[str, Any]) -> str:
    return "\n".join((answer, *(f"[{warning}]" for warning in saved["warnings"])))
