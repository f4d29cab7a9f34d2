"""What a client asks under load. Law: every verb there is, and with each ask the errors that it asks for.

An error that was not asked for is a fault, whatever it is. A verb that nobody wrote a line for here is asked with
what its parameters' names say, so that a new one is under load from its first day.
"""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from memd.verbs import VERBS

NAMES = tuple(f"note-{number}" for number in range(30))
TEXTS = tuple(
    f"Run the forge with -j{number}: the quartz of bench {number % 5} is slow. " * 8 for number in range(12)
)
"""Few enough that the versions a store knows stop growing, so that memory has no reason to."""
WORDS = ("quartz", "forge bench", "slow -j3", "nothing at all", "面关", "")
PROMPTS = ("why is the forge slow on the quartz bench", "hi", " ")
STOPS = frozenset({"daemon.stop"})
"""What would end the load."""


class Ask(NamedTuple):
    """A call, and the kinds of error that may answer it."""

    method: str
    params: dict[str, Any]
    may: frozenset[str] = frozenset()


class Place(NamedTuple):
    """Where a client asks: a repository, a directory to import from, a session of its own, a store's key."""

    repo: Path
    notes: Path
    session: str
    key: str


Make = Callable[[random.Random, Place], Ask]


def ask(chance: random.Random, place: Place) -> Ask:
    """The next thing that a client asks."""
    [make] = chance.choices(_MAKERS, _WEIGHTS)
    return make(chance, place)


def methods() -> set[str]:
    """Every verb that is asked."""
    return set(VERBS) - STOPS


def _cwd(place: Place, **params: Any) -> dict[str, Any]:
    return {"cwd": str(place.repo), **params}


def _save(chance: random.Random, place: Place) -> Ask:
    scope = chance.choice(("repo", "repo", "global"))
    fields = {"name": chance.choice(NAMES), "type": "project", "description": "About the forge", "scope": scope}
    params = _cwd(place, markdown=chance.choice(TEXTS), fields=fields)
    if chance.random() < 0.1:
        return Ask("memory.save", {**params, "expect": "sha256:" + "0" * 64}, frozenset({"conflict"}))
    if chance.random() < 0.1:
        return Ask("memory.save", {**params, "fields": {**fields, "type": "rumour"}}, frozenset({"refused"}))
    return Ask("memory.save", params)


def _save_in_session(chance: random.Random, place: Place) -> Ask:
    fields = {"name": chance.choice(NAMES), "type": "user", "description": "About the forge"}
    params = {"session": place.session, "markdown": chance.choice(TEXTS), "fields": fields}
    return Ask("memory.save", params, frozenset({"save_cap", "read_only", "not_found"}))


def _named(method: str, **more: Any) -> Make:
    def make(chance: random.Random, place: Place) -> Ask:
        given = {name: value(chance) if callable(value) else value for name, value in more.items()}
        return Ask(method, _cwd(place, name=chance.choice(NAMES), **given), frozenset({"not_found"}))

    return make


def _rename(chance: random.Random, place: Place) -> Ask:
    first, second = chance.sample(NAMES, 2)
    return Ask("memory.rename", _cwd(place, name=first, to=second), frozenset({"not_found", "refused", "conflict"}))


def _move(chance: random.Random, place: Place) -> Ask:
    params = _cwd(place, name=chance.choice(NAMES), scope=chance.choice(("repo", "global")))
    return Ask("memory.move", params, frozenset({"not_found", "refused", "conflict"}))


def _plain(method: str, may: tuple[str, ...] = (), **params: Any) -> Make:
    def make(chance: random.Random, place: Place) -> Ask:
        return Ask(
            method, _cwd(place, **{name: _value(value, chance) for name, value in params.items()}), frozenset(may)
        )

    return make


def _value(value: Any, chance: random.Random) -> Any:
    return chance.choice(value) if isinstance(value, tuple) else value


def _placeless(method: str) -> Make:
    return lambda _chance, _place: Ask(method, {})


def _start(chance: random.Random, place: Place) -> Ask:
    params = {"session": place.session, "cwd": str(place.repo), "resumed": chance.random() < 0.5}
    return Ask("session.start", params)


def _update(chance: random.Random, place: Place) -> Ask:
    params = {"session": place.session, "read_only": chance.random() < 0.3}
    return Ask("session.update", params, frozenset({"not_found"}))


def _end(_chance: random.Random, place: Place) -> Ask:
    return Ask("session.end", {"session": place.session}, frozenset({"not_found"}))


def _focus_in_session(chance: random.Random, place: Place) -> Ask:
    params = {"session": place.session, "prompt": chance.choice(PROMPTS)}
    return Ask("memory.focus", params, frozenset({"not_found"}))


def _import(chance: random.Random, place: Place) -> Ask:
    return Ask("memory.import", _cwd(place, dir=str(place.notes), dry_run=chance.random() < 0.5))


def _adopt(_chance: random.Random, place: Place) -> Ask:
    return Ask("store.adopt", _cwd(place, key=place.key, dry_run=True), frozenset({"not_found", "refused"}))


_BY_NAME: Mapping[str, Any] = {
    "name": NAMES[0],
    "query": WORDS[0],
    "prompt": PROMPTS[0],
    "markdown": TEXTS[0],
    "scope": "repo",
    "read_only": False,
}


def _unwritten(method: str) -> Make:
    """A verb without a line of its own: the parameters it needs, by their names; it may refuse what they say."""
    verb = VERBS[method]
    needed = {field.encode_name for field in msgspec.structs.fields(verb.params) if field.required}

    def make(_chance: random.Random, place: Place) -> Ask:
        params = {name: _BY_NAME.get(name, "x") for name in needed - {"session", "cwd"}}
        return Ask(method, _cwd(place, **params) if verb.place else params, frozenset({"not_found", "refused"}))

    return make


_HASH = "sha256:" + "0" * 64
_TABLE: list[tuple[float, str, Make]] = [
    (20, "memory.save", _save),
    (3, "memory.save", _save_in_session),
    (12, "memory.read", _named("memory.read")),
    (20, "memory.search", _plain("memory.search", query=WORDS, limit=(1, 5, 100))),
    (4, "memory.forget", _named("memory.forget")),
    (4, "memory.list", _plain("memory.list", bodies=(False, True), texts=(False, True))),
    (3, "memory.log", _plain("memory.log", limit=(1, 50))),
    (8, "memory.show", _named("memory.show")),
    (2, "memory.stats", _plain("memory.stats")),
    (1, "memory.check", _plain("memory.check")),
    (1, "memory.verify", _plain("memory.verify")),
    (3, "memory.diff", _named("memory.diff")),
    (2, "memory.restore", _named("memory.restore", hash=_HASH)),
    (1, "memory.rename", _rename),
    (1, "memory.move", _move),
    (0.5, "memory.import", _import),
    (1, "store.list", _placeless("store.list")),
    (0.5, "store.adopt", _adopt),
    (0.5, "memory.rebuild", _plain("memory.rebuild", dry_run=(False, True))),
    (1, "memory.reconcile", _plain("memory.reconcile", dry_run=(False, True))),
    (3, "memory.focus", _plain("memory.focus", prompt=PROMPTS, dialect=("python", "cli", "mcp"))),
    (2, "memory.focus", _focus_in_session),
    (3, "memory.index", _plain("memory.index", max_bytes=(512, 8192))),
    (2, "session.start", _start),
    (1, "session.update", _update),
    (1, "session.end", _end),
    (1, "activity.subscribe", _plain("activity.subscribe")),
    (1, "daemon.hello", _placeless("daemon.hello")),
    (1, "daemon.status", _placeless("daemon.status")),
    (0.5, "rpc.discover", _placeless("rpc.discover")),
]
_WRITTEN = {name for _, name, _ in _TABLE}
_TABLE += [(0.5, name, _unwritten(name)) for name in sorted(methods() - _WRITTEN)]
_WEIGHTS = [weight for weight, _, _ in _TABLE]
_MAKERS = [make for _, _, make in _TABLE]
