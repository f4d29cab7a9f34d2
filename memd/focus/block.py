"""The one block a session gets. Law: same notes, same prompt, same bytes; never over its budget; every cut named.

`render` goes through SPEC section 9 in its order: score, weigh, choose bodies, then rows, fit the budget, name
the cuts. It asks its caller for the few texts it shows and touches nothing itself. Pure.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Literal, Protocol

import msgspec

from memd import bm25, forms, listing, secrets, tokens
from memd.bm25 import Ranking
from memd.focus import evidence, text
from memd.focus.gone import gone_paths
from memd.focus.loading import NOTHING, Loaded
from memd.focus.names import Names
from memd.focus.text import Dialect, size
from memd.note import NoteType, Scope
from memd.snapshots import Snapshot

BODIES: Final = 3
BODY_BYTES: Final = 1_200
FOCUS_ROWS: Final = 8
BUDGET_LEAST: Final = 2 * BODY_BYTES
BUDGET_MOST: Final = 6_000
FRAME_BYTES: Final = 2_000
"""Header and notices together."""
ALIKE: Final = 0.7
"""Token Jaccard of two hooks from which on the lower-ranked note only restates the other."""

_WEIGHTS: Final[Mapping[NoteType | None, float]] = {
    NoteType.FEEDBACK: 1.5,
    NoteType.PROJECT: 1.4,
    NoteType.USER: 1.25,
    NoteType.REFERENCE: 1.0,
    None: 1.1,
}
_HEAVIEST: Final = max(_WEIGHTS.values())
_FIRST_PAGE: Final = 32  # hits looked at first; each further page is four times as long
_NEAR: Final = 24  # higher-ranked notes whose hooks a body of abstain's choice is compared with
_PROMPT_MOST: Final = 1 << 17  # characters; of a longer prompt both ends
_HEADING_BYTES: Final = BUDGET_LEAST - BODY_BYTES - 8  # so that one body always fits
_ROW_BYTES: Final = 1_500  # longer than any row memd makes
_MARK_BYTES: Final = 600  # of all paths marked on a line

Shape = Literal["body", "row"]
Reader = Callable[[Scope, str], str | None]
"""Gives a note's body by scope and file stem; None when the note is gone."""


class Card(Protocol):
    """What a block needs of each note without reading it; `fence_line` is set when its text holds a fence."""

    @property
    def name(self) -> str: ...
    @property
    def slug(self) -> str: ...
    @property
    def hook(self) -> str: ...
    @property
    def type(self) -> NoteType | None: ...
    @property
    def fence_line(self) -> int | None: ...


class Shelf(msgspec.Struct, frozen=True):
    """One store as a block sees it, repo before global. `failed`: why it did not load, its notes then missing.

    `notes` and `index` are of one moment; `lines` are `loading.lines_of` its MEMORY.md, `loaded` what
    `loading.load` took of them.
    """

    scope: Scope
    notes: Mapping[str, Card] = {}
    index: Snapshot = Snapshot.EMPTY
    lines: Mapping[str, str] = {}
    loaded: Loaded = NOTHING
    failed: str | None = None


class Shown(msgspec.Struct, frozen=True):
    """A note in a block: its name as shown and usable, its weighted score (None: unscored), its file stem."""

    name: str
    scope: Scope
    type: NoteType | None
    score: float | None
    shown: Shape
    cut: bool
    stem: str


class Part(msgspec.Struct, frozen=True):
    """Some lines of a block, and the note they are of; `stem` None: memd's own words."""

    text: str
    scope: Scope | None = None
    stem: str | None = None


class Block(msgspec.Struct, frozen=True):
    """A rendered block. `total` counts a store that failed as one note; `redacted`: a key-shaped run was masked."""

    parts: tuple[Part, ...]
    notes: tuple[Shown, ...]
    total: int
    budget: int
    redacted: bool

    @property
    def text(self) -> str:
        """The block, sanitized and unfenced, without a line end at its end."""
        return "\n".join(part.text for part in self.parts)

    @property
    def fenced(self) -> str:
        """The same between its fence lines."""
        return text.fenced(self.text)

    def without(self, scope: Scope, stem: str) -> "Block":
        """The block less the part of a note that was forgotten since; itself when it has none (SPEC 8)."""
        parts = tuple(part for part in self.parts if (part.scope, part.stem) != (scope, stem))
        if len(parts) == len(self.parts):
            return self
        notes = tuple(note for note in self.notes if (note.scope, note.stem) != (scope, stem))
        return msgspec.structs.replace(self, parts=parts, notes=notes)


def render(
    shelves: Sequence[Shelf],
    prompt: str,
    read: Reader,
    *,
    dialect: Dialect = Dialect.PYTHON,
    abstain: bool = True,
    roots: Collection[str] = (),
    exists: Callable[[str], bool] = lambda _path: True,
    rule: evidence.Rule | None = None,
    ranker: str = "plain",
) -> Block | None:
    """The block of a prompt over the stores, None for a blank prompt (SPEC 9).

    `read` is asked for the bodies of the notes that are shown, at most some twenty. `roots` are the names in the
    repository's root and `exists` says whether a path relative to it is there (see `gone`). `abstain=False`
    gives the plain rule. `ranker` is `plain` or `rich` (SPEC 6), and `rule` its rule unless another is given.
    """
    if _is_blank(prompt):
        return None
    prompt = _ends(prompt)
    return _Rendering(shelves, read, dialect, lambda words: gone_paths(words, roots, exists)).block(
        prompt, ranker, (rule or evidence.RULES[ranker]) if abstain else None
    )


def is_conflict_copy(name: str) -> bool:
    """Whether a stem is one that a sync tool gives to the loser of a conflict: such a note earns no body (SPEC 5)."""
    return _CONFLICT.search(name) is not None


_CONFLICT: Final = re.compile(
    r"\.sync-conflict-\d{8}|\bconflicted copy\b|\bconflict copy\b|\(sfconflict |_conflict-\d{8}-\d{6}",
    re.IGNORECASE,
)


class _Hit(msgspec.Struct, frozen=True):
    """A scored note, its score weighted."""

    store: int
    name: str
    score: float


class _Item(msgspec.Struct, frozen=True):
    """A note as the block has it: its lines, and what it costs of the budget."""

    note: Shown
    lines: str
    notice: str | None = None

    @property
    def cost(self) -> int:
        """Its bytes, with line ends and the empty line before a body."""
        return size(self.lines) + (2 if self.note.shown == "body" else 1)


class _Ranked:
    """The scored notes in the order of their weighted scores, found only as far as they are asked for.

    Ties keep store order, then name order. The ranking gives its best without weights; what has a weighted
    score above anything that its next page could have is in its place for good.
    """

    def __init__(self, ranking: Ranking, shelves: Sequence[Shelf]) -> None:
        self._ranking = ranking
        self._shelves = shelves
        self._found: list[_Hit] = []
        self._limit = 0

    def __iter__(self) -> Iterator[_Hit]:
        at = 0
        while True:
            while at < len(self._found):
                yield self._found[at]
                at += 1
            if self._limit >= self._ranking.total:
                return
            self._extend()

    def weigh(self, store: int, name: str) -> float:
        """The weight of a note's type."""
        return _WEIGHTS[self._shelves[store].notes[name].type]

    def _extend(self) -> None:
        self._limit = max(_FIRST_PAGE, self._limit * 4)
        page = self._ranking.top(self._limit)
        hits = [_Hit(hit.store, hit.name, hit.score * self.weigh(hit.store, hit.name)) for hit in page]
        hits.sort(key=lambda hit: (-hit.score, hit.store, hit.name))
        if self._limit < self._ranking.total:
            unsure = page[-1].score * _HEAVIEST
            hits = [hit for hit in hits if hit.score > unsure]
        self._found = hits


class _Hooks:
    """The tokens of notes' hooks, each made once."""

    def __init__(self, shelves: Sequence[Shelf]) -> None:
        self._shelves = shelves
        self._made: dict[tuple[int, str], frozenset[str]] = {}

    def alike(self, one: _Hit, other: _Hit) -> bool:
        """Whether two notes' hooks restate each other (SPEC 9, step 2); as `tokens.jaccard` has it."""
        left, right = self._tokens(one), self._tokens(other)
        shared = len(left & right)
        return shared > 0 and shared / (len(left) + len(right) - shared) >= ALIKE

    def _tokens(self, hit: _Hit) -> frozenset[str]:
        key = (hit.store, hit.name)
        if key not in self._made:
            self._made[key] = frozenset(tokens.tokenize(self._shelves[hit.store].notes[hit.name].hook))
        return self._made[key]


class _Rendering:
    """One call of `render`: what it was given, and the notes that turned out to be gone."""

    def __init__(
        self, shelves: Sequence[Shelf], read: Reader, dialect: Dialect, gone: Callable[[str], list[str]]
    ) -> None:
        self.shelves = shelves
        self.dialect = dialect
        self._read = read
        self._gone_paths = gone
        self._texts: dict[tuple[int, str], str | None] = {}
        self._names = Names([shelf.notes for shelf in shelves])
        self.redacted = False

    def block(self, prompt: str, ranker: str, rule: evidence.Rule | None) -> Block:
        """The block; `rule` None: the plain one."""
        snapshots = [shelf.index for shelf in self.shelves]
        ranking = (
            bm25.rich(forms.query(prompt), snapshots)
            if ranker == "rich"
            else bm25.rank(tokens.query_terms(prompt), snapshots)
        )
        ranked = _Ranked(ranking, self.shelves)
        chosen = self._plain_choice(ranked) if rule is None else self._fitting(prompt, ranking, ranked, rule)
        bodies = [self._body(hit) for hit in chosen]
        rows = [self._row(store, name, score) for store, name, score in self._left_over(ranked, chosen)]
        budget = min(max(sum(shelf.loaded.size for shelf in self.shelves), BUDGET_LEAST), BUDGET_MOST)
        found = bool(bodies)
        _fit(bodies, rows, budget)
        total = sum(max(len(shelf.notes), shelf.failed is not None) for shelf in self.shelves)
        total -= sum(known is None for known in self._texts.values())
        notices = self._notices(len(bodies) + len(rows), total, budget)
        if not ranking.total and any(shelf.notes for shelf in self.shelves):
            notices.insert(0, text.unmatched_notice(self.dialect))
        elif ranking.total and not found and rule is not None:
            notices.insert(0, text.unfit_notice(self.dialect))
        return Block(
            parts=tuple(self._parts(bodies, rows, notices, empty=total == 0)),
            notes=tuple(item.note for item in (*bodies, *rows)),
            total=total,
            budget=budget,
            redacted=self.redacted,
        )

    # -- choosing ------------------------------------------------------------------------------------------

    def _plain_choice(self, ranked: _Ranked) -> list[_Hit]:
        """The first three that may have a body and restate no note above them."""
        hooks = _Hooks(self.shelves)
        chosen: list[_Hit] = []
        above: list[_Hit] = []
        for hit in ranked:
            # The nearest above first: notes that restate each other stand together.
            if not any(hooks.alike(hit, other) for other in reversed(above)) and self._may_have_body(hit):
                chosen.append(hit)
                if len(chosen) == BODIES:
                    break
            above.append(hit)
        return chosen

    def _fitting(self, prompt: str, ranking: Ranking, ranked: _Ranked, rule: evidence.Rule) -> list[_Hit]:
        """The three that fit best, restate no note above them and may have a body.

        In the order of their scores; closest first where the scores count what was pasted.
        """
        hooks = _Hooks(self.shelves)
        fits = evidence.fitting(
            prompt,
            ranking,
            [shelf.index for shelf in self.shelves],
            lambda store, name: self.shelves[store].notes[name].hook,
            ranked.weigh,
            rule,
        )
        hits = [_Hit(fit.store, fit.name, fit.score * ranked.weigh(fit.store, fit.name)) for fit in fits.notes]
        above = [*islice(ranked, _NEAR), *hits]
        chosen: list[_Hit] = []
        for hit in hits:
            if any(other.score > hit.score and hooks.alike(hit, other) for other in above):
                continue
            if any(hooks.alike(hit, other) for other in chosen) or not self._may_have_body(hit):
                continue
            chosen.append(hit)
            if len(chosen) == BODIES:
                break
        return chosen if fits.pasted else sorted(chosen, key=lambda hit: (-hit.score, hit.store, hit.name))

    def _may_have_body(self, hit: _Hit) -> bool:
        card = self.shelves[hit.store].notes[hit.name]
        if card.fence_line is not None or is_conflict_copy(hit.name):
            return False
        return self._is_shown(hit.store, hit.name)

    def _left_over(self, ranked: _Ranked, chosen: Collection[_Hit]) -> Iterable[tuple[int, str, float | None]]:
        """The notes that get a row: the scored ones left, then the unscored ones that were loaded."""
        bodies = {(hit.store, hit.name) for hit in chosen}
        scored = ((hit.store, hit.name, hit.score) for hit in ranked)
        return islice(
            (
                (store, name, score)
                for store, name, score in self._in_order(scored)
                if (store, name) not in bodies and self._is_shown(store, name)
            ),
            FOCUS_ROWS,
        )

    def _in_order(self, scored: Iterable[tuple[int, str, float]]) -> Iterator[tuple[int, str, float | None]]:
        seen = set()
        for store, name, score in scored:
            seen.add((store, name))
            yield store, name, score
        for store, shelf in enumerate(self.shelves):
            for name in shelf.loaded.names:
                if name in shelf.notes and (store, name) not in seen:
                    yield store, name, None

    def _is_shown(self, store: int, name: str) -> bool:
        """Whether a note can be shown: it is there, and has a name that a call can use."""
        return self._names.shown(store, name) is not None and self._text(store, name) is not None

    def _text(self, store: int, name: str) -> str | None:
        key = (store, name)
        if key not in self._texts:
            self._texts[key] = self._read(self.shelves[store].scope, name)
        return self._texts[key]

    # -- lines ---------------------------------------------------------------------------------------------

    def _body(self, hit: _Hit) -> _Item:
        shelf = self.shelves[hit.store]
        card = shelf.notes[hit.name]
        shown = self._names.shown(hit.store, hit.name) or hit.name
        raw = self._text(hit.store, hit.name) or ""
        whole = text.body(raw)
        self._note_masks(raw, card.hook)
        kept = text.cut(whole, BODY_BYTES)
        kind = card.type.value if card.type else "untyped"
        marks = self._marks(card, raw)
        head = f"### {shown} · {shelf.scope.value} · {kind}"
        words = text.line(card.hook)
        hook = _shortened(f" — {words}" if words else "", _HEADING_BYTES - size(head) - size(marks))
        note = Shown(shown, shelf.scope, card.type, hit.score, "body", kept != whole, hit.name)
        lines = f"{head}{hook}{marks}\n{kept}" if kept else f"{head}{hook}{marks}"
        notice = None
        if note.cut:
            shadowed = self._names.is_shadowed(hit.store, hit.name)
            notice = text.body_notice(self.dialect, BODY_BYTES, size(whole), shown, shadowed=shadowed)
        return _Item(note, lines, notice)

    def _row(self, store: int, name: str, score: float | None) -> _Item:
        shelf = self.shelves[store]
        card = shelf.notes[name]
        shown = self._names.shown(store, name) or name
        line = shelf.lines.get(name) if shown == name else None
        if line is None:
            line = listing.row(shown, card.hook)
        self._note_masks(line)
        marks = self._marks(card, self._text(store, name) or "")
        end = f"{' · global' if shelf.scope is Scope.GLOBAL else ''}{marks}"
        row = _shortened(text.line(line), _ROW_BYTES - size(end)) + end
        return _Item(Shown(shown, shelf.scope, card.type, score, "row", cut=False, stem=name), row)

    def _marks(self, card: Card, raw: str) -> str:
        marks = ""
        for path in self._gone_paths(f"{card.hook}\n{raw}"):
            mark = text.gone_mark(path)
            if size(marks) + size(mark) <= _MARK_BYTES:
                marks += mark
        return marks

    def _note_masks(self, *words: str) -> None:
        self.redacted = self.redacted or any(secrets.scan(word) for word in words)

    # -- putting together ------------------------------------------------------------------------------------

    def _notices(self, shown: int, total: int, budget: int) -> list[str]:
        notices = []
        if shown < total:
            notices.append(text.cut_notice(self.dialect, shown, total, budget, FOCUS_ROWS))
        for shelf in self.shelves:
            loaded = shelf.loaded
            if loaded.bound is not None:
                notices.append(text.load_notice(self.dialect, len(loaded.names), loaded.total, loaded.bound))
            if shelf.failed is not None:
                notices.append(text.failed_notice(shelf.scope, shelf.failed))
        return notices

    def _parts(
        self, bodies: Sequence[_Item], rows: Sequence[_Item], notices: Sequence[str], *, empty: bool
    ) -> Iterator[Part]:
        header = text.header(self.dialect)
        yield Part(header)
        if empty:
            yield Part("\n" + text.NO_NOTES)
        frame = size(header) + sum(size(notice) + 1 for notice in notices)
        frame += sum(size(body.notice) + 1 for body in bodies if body.notice)
        for body in bodies:
            notice = body.notice
            if notice is not None and frame > FRAME_BYTES:
                notice = _NAMELESS.sub("", notice)
            lines = body.lines if notice is None else f"{body.lines}\n{notice}"
            yield Part(f"\n{lines}", body.note.scope, body.note.stem)
        if rows:
            yield Part("")
        for row in rows:
            yield Part(row.lines, row.note.scope, row.note.stem)
        if notices:
            yield Part("")
        for notice in notices:
            yield Part(notice)


_NAMELESS: Final = re.compile(r" · the rest: .*(?=\]\Z)")


def _fit(bodies: list[_Item], rows: list[_Item], budget: int) -> None:
    """Drops rows from the end, then bodies from the end, until all of them are within the budget (SPEC 9, step 4)."""
    empty_line = 1  # between bodies and rows
    used = sum(item.cost for item in (*bodies, *rows)) + empty_line
    while used > budget and rows:
        used -= rows.pop().cost
    while used > budget and bodies:
        used -= bodies.pop().cost


def _shortened(words: str, most: int) -> str:
    """The words within `most` bytes, a cut shown by an ellipsis."""
    if size(words) <= most:
        return words
    return text.cut(words, max(0, most - size("…"))) + "…"


def _ends(prompt: str) -> str:
    """The prompt, or both ends of one that is longer than any person types: its middle is a paste."""
    if len(prompt) <= _PROMPT_MOST:
        return prompt
    half = _PROMPT_MOST // 2
    return f"{prompt[:half]} {prompt[-half:]}"


def _is_blank(prompt: str) -> bool:
    """Whether nothing in the prompt can be seen."""
    return not any(not char.isspace() and unicodedata.category(char) not in {"Cc", "Cf"} for char in prompt)
