"""The config file. Law: it never keeps the daemon from starting, and one that does not read imports nothing.

A file with a mistake in it is not half used: defaults stand, automatic imports are off, and a finding says what and
where. A key that nobody knows only warns. Findings name keys, never values or paths. SPEC 15.
"""

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

RANKERS: Final = ("plain", "rich")
SOURCES: Final = ("sessions", "claude", "transcripts")
"""The readers of past sessions: the home's own, Claude Code's, the files named at a session's start (SPEC 11)."""
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
MAX_FILE: Final = 1 << 16
"""A longer file, in bytes, is no config."""
MAX_DOTS: Final = 200
"""Dots in a line: reading a dotted key takes the square of its parts, and the daemon waits for it."""

_SHOWN: Final = 20  # a file of unknown keys is named, not listed whole
_REASON: Final = 200  # characters of a parser's words
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_T = TypeVar("_T")


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Every key's value. `sound` is False when the file did not read: then no other value is the file's.

    A reload that is not sound keeps the config there was. `claude_home` is None for Claude's own default.
    """

    claude_import: bool = True
    claude_home: Path | None = None
    kimi_import: bool = False
    search_ranker: str = "rich"
    history_roots: tuple[Path, ...] = ()
    history_sources: tuple[str, ...] = SOURCES
    save_cap: int = 3
    settle_ms: int = 2000
    lock_timeout_s: float = 10.0
    log_level: str = "info"
    findings: tuple[str, ...] = ()
    sound: bool = True


class _WrongError(ValueError):
    """A value its key cannot have; the text says what it can have."""


def load(path: Path) -> Config:
    """The config that a file gives, or defaults without a finding when there is none. Never raises (SPEC 15)."""
    try:
        raw = _read(path)
        return parse(raw) if raw is not None else Config()
    except OSError as error:
        return _unsound(f"does not read: {error.strerror}")


def parse(raw: bytes) -> Config:
    """The config of a file's bytes. Never raises."""
    deep = next((number for number, line in enumerate(raw.split(b"\n"), 1) if line.count(b".") > MAX_DOTS), None)
    if deep is not None:
        return _unsound(f"does not parse: more than {MAX_DOTS} dots in a line (at line {deep})")
    try:
        table = tomllib.loads(raw.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return _unsound(f"is not UTF-8 (at line {line})")
    except ValueError as error:
        return _unsound(f"does not parse: {_short(str(error))}")
    except RecursionError:
        return _unsound("does not parse: nested too deeply")
    return _judge(dict(_flat(table)))


def _read(path: Path) -> bytes | None:
    """The file's bytes, None when there is none. Errors: OSError, also for what is no regular file or too long."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(None, "not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            raw = stream.read(MAX_FILE + 1)
    finally:
        os.close(descriptor)
    if len(raw) > MAX_FILE:
        raise OSError(None, f"longer than {MAX_FILE} bytes")
    return raw


def _judge(given: Mapping[str, object]) -> Config:
    values: dict[str, object] = {}
    wrong: list[str] = []
    unknown: list[str] = []
    for key, value in given.items():
        if key in _TABLES:
            wrong.append(f"config: {key} must be a table")
        elif key not in _KEYS:
            unknown.append(key)
        else:
            try:
                values[key.replace(".", "_")] = _KEYS[key](value)
            except _WrongError as error:
                wrong.append(f"config: {key} must be {error}")
    warnings = tuple(_warnings(unknown))
    if wrong:
        return _unsound(*wrong, *warnings)
    return msgspec.structs.replace(Config(findings=warnings), **values)


def _unsound(*findings: str) -> Config:
    said = tuple(text if text.startswith("config: ") else f"config: {text}" for text in findings)
    return Config(claude_import=False, kimi_import=False, sound=False, findings=said)


def _short(text: str) -> str:
    """A parser's words, which may repeat a key however long, with what they end in: where it is."""
    return text if len(text) <= _REASON else f"{text[: _REASON // 2]} … {text[-_REASON // 2 :]}"


def _flat(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Each key with the names of its tables before it; a table under a known key is that key's wrong value."""
    for name, value in table.items():
        key = prefix + name
        if isinstance(value, dict) and key not in _KEYS and (value or key in _TABLES):
            yield from _flat(value, f"{key}.")
        else:
            yield key, value


def _warnings(unknown: Sequence[str]) -> Iterator[str]:
    for key in unknown[:_SHOWN]:
        shown = key if _PLAIN_KEY.fullmatch(key) else ascii(key[:80])
        yield f"config: unknown key {shown}; the nearest known one is {_nearest(key[:80])}"
    if len(unknown) > _SHOWN:
        yield f"config: {len(unknown) - _SHOWN} more unknown keys"


def _nearest(key: str) -> str:
    return max(_KEYS, key=lambda known: difflib.SequenceMatcher(None, known, key.lower()).ratio())


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _WrongError("true or false")
    return value


def _whole(least: int, most: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise _WrongError(f"a whole number from {least} to {most}")
        return value

    return check


def _number(least: float, most: float) -> Callable[[object], float]:
    def check(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            raise _WrongError(f"a number from {least:g} to {most:g}")
        return float(value)

    return check


def _choice(*options: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or value not in options:
            raise _WrongError(f"one of {', '.join(options)}")
        return value

    return check


def _directory(value: object) -> Path:
    """An absolute path, `~` allowed; nothing says that it exists."""
    try:
        if isinstance(value, str) and "\0" not in value and (path := Path(value).expanduser()).is_absolute():
            return path
    except RuntimeError:  # no home directory is known for the ~
        pass
    raise _WrongError("an absolute path, or one that begins with ~/")


def _each(check: Callable[[object], _T]) -> Callable[[object], tuple[_T, ...]]:
    def check_all(value: object) -> tuple[_T, ...]:
        if not isinstance(value, list):
            raise _WrongError("a list")
        try:
            return tuple(map(check, value))
        except _WrongError as error:
            raise _WrongError(f"a list, each {error}") from None

    return check_all


_KEYS: Final[Mapping[str, Callable[[object], object]]] = {
    "claude.import": _flag,
    "claude.home": _directory,
    "kimi.import": _flag,
    "search.ranker": _choice(*RANKERS),
    "history.roots": _each(_directory),
    "history.sources": _each(_choice(*SOURCES)),
    "save_cap": _whole(0, 1_000_000),
    "settle_ms": _whole(0, 60_000),
    "lock_timeout_s": _number(0, 3600),
    "log_level": _choice(*LOG_LEVELS),
}
_TABLES: Final = frozenset(key.partition(".")[0] for key in _KEYS if "." in key)

KEYS: Final = tuple(_KEYS)
"""Every key there is, with its table's name before it."""
