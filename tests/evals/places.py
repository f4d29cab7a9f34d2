"""The invented places: stores read from their files, as the focus room sees them, and the cases put to them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from memd import forms, note
from memd.focus import Block, Shelf, lines_of, load, render
from memd.focus.evidence import RULE, Rule
from memd.forms import Words
from memd.listing import Listing
from memd.note import NoteType, Scope
from memd.snapshots import Snapshot

HERE = Path(__file__).parent
GIVEN = HERE / "focus"
INVENTED = HERE / "invented"
GLOBAL = GIVEN / "stores" / "global"


class Case(msgspec.Struct, frozen=True):
    """A prompt and the names of the notes that it should, or may, bring back whole."""

    id: str
    store: str
    prompt: str
    relevant: tuple[str, ...]
    acceptable: tuple[str, ...]
    kind: str


class Card(msgspec.Struct, frozen=True):
    """A note as a store's entry has it."""

    name: str
    slug: str
    hook: str
    type: NoteType | None
    fence_line: int | None = None


class Place(NamedTuple):
    """Two stores, and the bodies of their notes."""

    shelves: tuple[Shelf, Shelf]
    bodies: Mapping[tuple[Scope, str], str]

    def block(
        self,
        prompt: str,
        rule: Rule | None = RULE,
        read: Callable[[str], str] = lambda body: body,
        ranker: str = "plain",
    ) -> Block | None:
        """The block of a prompt; `rule` None gives the plain one."""
        return render(
            self.shelves,
            prompt,
            lambda scope, name: read(self.bodies[scope, name]),
            abstain=rule is not None,
            rule=rule,
            ranker=ranker,
        )

    def bodied(self, prompt: str, rule: Rule | None = RULE, ranker: str = "plain") -> list[str]:
        """The names of the notes whose bodies a prompt earns, in order."""
        block = self.block(prompt, rule, ranker=ranker)
        return [note.name for note in block.notes if note.shown == "body"] if block else []


def cases(root: Path) -> list[Case]:
    """The cases of a set, in order."""
    lines = (root / "cases.jsonl").read_text("utf-8").splitlines()
    return [msgspec.json.decode(line, type=Case) for line in lines if line]


def places(root: Path) -> dict[str, Place]:
    """The places of a set by their repository store's name; all have the same global store."""
    stores = sorted(path for path in (root / "stores").iterdir() if path != GLOBAL)
    return {path.name: place(path, GLOBAL) for path in stores}


def place(repo: Path, everywhere: Path | None = None) -> Place:
    """The place of one repository's store."""
    bodies: dict[tuple[Scope, str], str] = {}
    return Place((_shelf(Scope.REPO, repo, bodies), _shelf(Scope.GLOBAL, everywhere, bodies)), bodies)


def _shelf(scope: Scope, directory: Path | None, bodies: dict[tuple[Scope, str], str]) -> Shelf:
    if directory is None:
        return Shelf(scope)
    cards: dict[str, Card] = {}
    words: dict[str, Words] = {}
    for path in sorted(directory.glob("*.md")):
        if not note.is_note_name(path.name):
            continue
        parsed = note.parse(path.stem, path.read_bytes())
        cards[path.stem] = Card(path.stem, note.slug(path.stem), parsed.hook, parsed.type)
        words[path.stem] = forms.words(path.stem, parsed.hook, parsed.body)
        bodies[scope, path.stem] = parsed.body
    listing = Listing.decode((directory / "MEMORY.md").read_bytes())
    # As reconcile does, so that the index lists every note.
    listing = listing.reconciled({name: card.hook for name, card in cards.items()})
    lines = lines_of(listing, cards)
    return Shelf(scope, cards, Snapshot.EMPTY.replace(words), lines, load(lines, lambda _name: 0))
