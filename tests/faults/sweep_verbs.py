"""What is done while it breaks. Law: each verb says beforehand what must be there afterwards, apart from any store.

A verb prepares a home through a daemon, and by hand; then it acts, once. Every text holds a word of its own, so that
a copy of it is found wherever it is.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import memd_client

from .sweep_world import World

TOGETHER: Final = ("one", "two", "three", "four")
"""What several clients save at once."""
SMALL: Final = ("alpha", "beta", "gamma")
"""What a small home has in the repository's store."""
Notes = dict[tuple[str, str], bytes]
"""The bytes of every note file, by scope and name."""

OWN_LINE: Final = "A line of the person's own."
FILLER: Final = "What is written here stands for a fact of some length, so that half of it is not all of it. " * 3


@dataclass(frozen=True)
class Verb:
    """One verb on one home.

    `prepare` and `by_hand` make the home, `act` is the one call that breaks, `expect` judges the notes before and
    after it was left in peace. `gone` are words that are nowhere once it is done. `again`: twice done is once done,
    and is done again after a crash. `keeps_objects`: no object may go, whatever happens. `clients`: what each
    of several clients is told of. `mends`: without it no save is taken.
    """

    name: str
    prepare: Callable[["Hand"], None]
    act: Callable[["Hand"], Any]
    expect: Callable[[Notes, Notes], bool]
    by_hand: Callable[[World], None] = lambda _world: None
    gone: tuple[str, ...] = ()
    again: bool = False
    keeps_objects: bool = False
    clients: tuple[str, ...] = ()
    mends: bool = False


class Hand:
    """A client at work in one world."""

    def __init__(self, world: World, connection: memd_client.Connection) -> None:
        self.world = world
        self.connection = connection

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """One call from the repository. Errors: memd_client's."""
        return self.connection.call(method, {"cwd": str(self.world.repo), **params})

    def save(self, name: str, version: int = 1, scope: str = "repo") -> dict[str, Any]:
        """Save one version of a note."""
        fields = {"name": name, "type": "project", "scope": scope, "description": f"About {name}, at {version}"}
        return self.call("memory.save", markdown=body(name, version), fields=fields)


def word(name: str, version: int) -> str:
    """A word that only this version of this note holds."""
    return f"mark{name.replace('-', '')}v{version}x"


def body(name: str, version: int) -> str:
    """The body of one version."""
    return f"{word(name, version)}\n\n{FILLER}"


def by_a_hand(name: str, version: int) -> bytes:
    """What a person writes as a note file."""
    return f"# {name} by hand, {version}\n\n{body(name, version)}\n".encode()


def numbered(count: int, stem: str = "note") -> list[str]:
    """Names of so many notes."""
    return [f"{stem}-{number}" for number in range(count)]


# -- the homes ---------------------------------------------------------------------------------------------------


def small(hand: Hand) -> None:
    """Three notes here, one of them of three versions, and one everywhere."""
    for version in (1, 2, 3):
        hand.save("alpha", version)
    hand.save("beta")
    hand.save("gamma")
    hand.save("delta", scope="global")
    own_line(hand.world)


def many(count: int, hand: Hand) -> None:
    """So many notes here."""
    for name in numbered(count):
        hand.save(name)
    hand.save("delta", scope="global")
    own_line(hand.world)


def own_line(world: World) -> None:
    """A person's line in MEMORY.md."""
    with (world.stores["repo"] / "MEMORY.md").open("a") as listing:
        listing.write(f"\n{OWN_LINE}\n")


def edited(count: int, world: World) -> None:
    """As many notes edited as made, and two removed, with nobody looking."""
    store = world.stores["repo"]
    for name in numbered(count):
        (store / f"{name}.md").write_bytes(by_a_hand(name, 2))
    for name in numbered(count, "hand"):
        (store / f"{name}.md").write_bytes(by_a_hand(name, 1))
    for name in ("gone-0", "gone-1"):
        (store / f"{name}.md").unlink()


def to_edit(count: int, hand: Hand) -> None:
    """The notes that `edited` takes."""
    many(count, hand)
    for name in ("gone-0", "gone-1"):
        hand.save(name)


def lost(world: World) -> None:
    """Every note file of the repository's store removed."""
    for path in world.stores["repo"].glob("*.md"):
        if path.name != "MEMORY.md":
            path.unlink()


def to_import(count: int, world: World) -> None:
    """A directory of notes, one of which the store has with another text."""
    for name in (*numbered(count, "there"), "beta"):
        (world.notes / f"{name}.md").write_bytes(by_a_hand(name, 7))
    (world.notes / "MEMORY.md").write_text("- [there-0](there-0.md) — a row of its own\n")


def broken(world: World) -> None:
    """A journal whose second line is not its record any more; the version it named has an object all the same."""
    journal = world.stores["repo"] / "ops.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"hash":"sha256:', b'"hush":"sha256:')
    journal.write_bytes(b"".join(lines))


# -- the verbs ---------------------------------------------------------------------------------------------------


def holds(notes: Notes, scope: str, name: str, version: int, *, of: str | None = None) -> bool:
    """Whether a note stands with the text of this version, of its own or of another note."""
    return word(of or name, version).encode() in notes.get((scope, name), b"")


def restore_first(hand: Hand) -> dict[str, Any]:
    """Restore the first version of alpha, whose hash the log tells."""
    records = hand.call("memory.log", name="alpha", limit=100)["records"]
    return hand.call("memory.restore", name="alpha", hash=records[-1]["hash"])


def read(hand: Hand) -> dict[str, Any]:
    """Read alpha; a read that could not be counted was not acknowledged as one."""
    reply = hand.call("memory.read", name="alpha")
    if word("alpha", 3) not in reply["text"]:
        raise AssertionError("another text was read")
    return reply


def together(hand: Hand, names: Sequence[str], do: Callable[[Hand, str], object]) -> dict[str, Any]:
    """The same by a client for each name, at once: they share commits. Errors: the first that one of them met."""

    def one(name: str) -> BaseException | None:
        try:
            with hand.world.connect() as connection:
                do(Hand(hand.world, connection), name)
        except memd_client.MemdError as error:
            return error
        hand.world.told.add(("repo", name))
        return None

    with ThreadPoolExecutor(len(names)) as clients:
        refused = [error for error in clients.map(one, names) if error is not None]
    if refused:
        raise refused[0]
    return {}


def save_together(hand: Hand) -> dict[str, Any]:
    """A save by each of several clients."""
    return together(hand, TOGETHER, lambda each, name: each.save(name))


def forget_together(hand: Hand) -> dict[str, Any]:
    """A forget by each of several clients, of all that there is here: what a crash leaves is more than half gone."""
    return together(hand, SMALL, lambda each, name: each.call("memory.forget", name=name))


def verbs(count: int) -> list[Verb]:
    """Every verb that writes; those that take many notes take `count`."""
    return [
        Verb(
            "first-save", lambda _hand: None, lambda hand: hand.save("new"),
            lambda before, after: not before and holds(after, "repo", "new", 1), again=True,
        ),
        Verb(
            "save", small, lambda hand: hand.save("new"),
            lambda before, after: (
                after.keys() - before.keys() == {("repo", "new")} and holds(after, "repo", "new", 1)
            ),
            again=True,
        ),
        Verb(
            "update", small, lambda hand: hand.save("alpha", 4),
            lambda before, after: after.keys() == before.keys() and holds(after, "repo", "alpha", 4), again=True,
        ),
        Verb(
            "forget", small, lambda hand: hand.call("memory.forget", name="alpha"),
            lambda before, after: before.keys() - after.keys() == {("repo", "alpha")},
            gone=tuple(word("alpha", version) for version in (1, 2, 3)),
        ),
        Verb("read", small, read, lambda before, after: before == after),
        Verb(
            "reconcile", partial(to_edit, count), lambda hand: hand.call("memory.reconcile"),
            lambda before, after: before == after, by_hand=partial(edited, count), again=True,
            gone=(word("gone-0", 1), word("gone-1", 1)),
        ),
        Verb(
            "import", small, lambda hand: hand.call("memory.import", dir=str(hand.world.notes)),
            lambda before, after: len(after) == len(before) + count and holds(after, "repo", "beta", 7),
            by_hand=partial(to_import, count), again=True,
        ),
        Verb(
            "rebuild", partial(many, count), lambda hand: hand.call("memory.rebuild"),
            lambda before, after: len(after) == len(before) + count and holds(after, "repo", "note-0", 1),
            by_hand=lost, again=True, mends=True,
        ),
        Verb(
            "restore", small, restore_first,
            lambda before, after: after.keys() == before.keys() and holds(after, "repo", "alpha", 1),
        ),
        Verb(
            "rename", small, lambda hand: hand.call("memory.rename", name="alpha", to="omega"),
            lambda _, after: ("repo", "alpha") not in after and holds(after, "repo", "omega", 3, of="alpha"),
            gone=(word("alpha", 1), word("alpha", 2)),
        ),
        Verb(
            "move", small, lambda hand: hand.call("memory.move", name="alpha", scope="global"),
            lambda _, after: ("repo", "alpha") not in after and holds(after, "global", "alpha", 3),
            gone=(word("alpha", 1), word("alpha", 2)),
        ),
        Verb(
            "clients", small, save_together,
            lambda before, after: (
                after.keys() - before.keys() == {("repo", name) for name in TOGETHER}
                and all(holds(after, "repo", name, 1) for name in TOGETHER)
            ),
            again=True, clients=TOGETHER,
        ),
        Verb(
            "forgets", small, forget_together,
            lambda before, after: before.keys() - after.keys() == {("repo", name) for name in SMALL},
            gone=tuple(word(name, 1) for name in SMALL), clients=SMALL,
        ),
        Verb(
            "on-broken", small, lambda hand: hand.save("new"),
            lambda _, after: holds(after, "repo", "new", 1), by_hand=broken, again=True, keeps_objects=True,
        ),
    ]  # fmt: skip


def standing(stores: Mapping[str, Path]) -> Notes:
    """Every note file as it stands."""
    return {
        (scope, path.stem): path.read_bytes()
        for scope, store in stores.items()
        for path in sorted(store.glob("*.md"))
        if path.name != "MEMORY.md"
    }
