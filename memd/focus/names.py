"""How notes are named in calls. Law: what a block shows as a name, read and forget take as it stands.

Pure. SPEC sections 7 and 9.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from memd.focus import text
from memd.note import slug


class Named(Protocol):
    """What is asked of a note."""

    @property
    def slug(self) -> str: ...


class Names:
    """The names of some stores' notes, repo before global.

    A name that cleaning would change (it holds a control, a run of `<`, a key) is shown as its slug, which calls
    take as well, unless that means another note, too.
    """

    def __init__(self, stores: Sequence[Mapping[str, Named]]) -> None:
        self._stores = stores
        self._slugs: dict[int, Mapping[str, int]] = {}

    def shown(self, store: int, name: str) -> str | None:
        """The name that a call can use as it stands; None when there is none."""
        if text.line(name) == name:
            return name
        made = slug(name)
        is_own = text.line(made) == made and self._counts(store).get(made) == 1
        return made if made and is_own else None

    def is_shadowed(self, store: int, name: str) -> bool:
        """Whether a call of that name finds a note of an earlier store."""
        made = slug(name)
        return any(
            name in notes or (made and made in self._counts(earlier))
            for earlier, notes in enumerate(self._stores[:store])
        )

    def _counts(self, store: int) -> Mapping[str, int]:
        """How many notes of the store have each slug; made once."""
        if store not in self._slugs:
            counts: dict[str, int] = {}
            for note in self._stores[store].values():
                counts[note.slug] = counts.get(note.slug, 0) + 1
            self._slugs[store] = counts
        return self._slugs[store]
