"""Notes that get another text, name or store. Law: bytes are kept, bounds not judged again, nothing is taken over.

SPEC section 7: restore, rename, move, import and `store.adopt`. A rename is one commit of one store. A move is
`Take` here, `Put` there, `Forget` here, each durable before the next, so that a crash leaves both and never neither.
"""

from memd import journal, note
from memd.errors import MemdError, NotFound, Refused
from memd.listing import row
from memd.store import saving
from memd.store.model import (
    Adopt,
    Adopted,
    Arrival,
    Author,
    Entry,
    Leave,
    Left,
    Put,
    Rename,
    Restore,
    Saved,
    Take,
    Taken,
)
from memd.store.plan import Plan
from memd.store.rows import OwnRow


def restore(plan: Plan, request: Restore) -> Saved:
    """Plan one restore. Errors: NotFound for a forgotten note or a version it has not, Unreadable."""
    plan.take(request.name)
    raw = plan.version(request.hash) if request.hash in plan.heads.versions(request.name) else None
    if raw is None:
        raise NotFound("the note has no version of that hash; memory.log lists them")
    return write(plan, request.name, raw, request.author, updated=True)


def rename(plan: Plan, request: Rename) -> Saved:
    """Plan one rename. Errors: NotFound, Refused (field `to`), Unreadable."""
    entry = plan.take(request.name)
    if entry is None:
        raise NotFound(f"no note is named {request.name}")
    slug = new_name(request.to)
    taken = plan.twin(request.to, slug)
    if slug == request.name or taken not in (None, request.name):
        raise Refused("to", "to: another note has that name, or this one has it already; choose a free one", got=slug)
    raw = note.renamed(text_of(plan, entry), slug)
    plan.take(slug)
    saved = write(plan, slug, raw, request.author, updated=False)
    remove(plan, request.name, request.author)
    return saved


def new_name(text: str) -> str:
    """The slug of a new name. Errors: Refused (field `to`)."""
    slug = note.slug(text)
    if slug in ("", note.RESERVED):
        raise Refused("to", "to: nothing is left of that name, or it is reserved; use letters or digits", got=slug)
    return slug


def take(plan: Plan, request: Take) -> Taken:
    """Plan the journaling of a hand edit, and give the text. Errors: NotFound, Unreadable."""
    entry = plan.take(request.name)
    if entry is None:
        raise NotFound(f"no note is named {request.name}")
    return Taken(entry, text_of(plan, entry))


def put(plan: Plan, request: Put) -> Saved:
    """Plan a text under a free name; one that is there already, from a move cut short, is as good as put.

    Errors: Refused (field `name`) when the name is taken, Unreadable.
    """
    entry = plan.take(request.name)
    if entry is not None and entry.hash == journal.content_hash(request.raw):
        return Saved(entry, updated=True, warnings=())
    if entry is not None or plan.twin(request.name, note.slug(request.name)) is not None:
        raise Refused("name", "name: a note there has that name; rename one of the two first", got=request.name)
    return write(plan, request.name, request.raw, request.author, updated=False)


def write(plan: Plan, name: str, raw: bytes, author: Author, *, updated: bool) -> Saved:
    """Plan a text as a save that is counted and listed."""
    listing, usage = plan.listing, plan.usage
    entry = plan.put("save", name, raw, author)
    plan.listing = listing.with_row(name, entry.hook)
    plan.usage = usage.saved(name, int(plan.now))
    return Saved(entry, updated, ())


def remove(plan: Plan, name: str, author: Author) -> None:
    """Plan the going of a note whose text is safe under another name."""
    listing, usage = plan.listing, plan.usage
    plan.drop(name, author)
    plan.files[name] = None
    plan.listing, plan.usage = listing.without(name), usage.without(name)


def text_of(plan: Plan, entry: Entry) -> bytes:
    """The text of a note that stands. Errors: NotFound when it went in this moment."""
    raw = plan.version(entry.hash)
    if raw is None:
        read = plan.state.try_note(entry.name)
        raw = read.raw if read is not None and read.entry.hash == entry.hash else None
    if raw is None:
        raise NotFound("the note's text is gone; memory.verify says more")
    return raw


def adopt(plan: Plan, request: Adopt) -> Adopted:
    """Plan the arrival of texts from elsewhere; each that cannot be taken is named and left out."""
    done = Adopted({}, {}, {}, {})
    lines: dict[str, str] = {}
    for arrival in request.arrivals:
        try:
            adopt_one(plan, arrival, request, done, lines)
        except MemdError as error:
            done.refused[arrival.name] = error.text
    if lines:
        plan.listing = plan.listing.with_lines(lines)
    return done


def adopt_one(plan: Plan, arrival: Arrival, request: Adopt, done: Adopted, lines: dict[str, str]) -> None:
    """Plan one arrival, and its line of MEMORY.md for when all are planned.

    Errors: Refused when something that is no note has its name, Unreadable.
    """
    arrived = journal.content_hash(arrival.raw)
    name, number = arrival.name, 2
    while (entry := plan.take(name)) is not None:
        if entry.hash == arrived:
            done.identical[arrival.name] = name
            return
        if request.updates:
            renewed = plan.put("edit", name, arrival.raw, request.author)
            if name in lines:
                plan.listing = plan.listing.with_lines({name: lines.pop(name)})
            plan.listing = plan.listing.with_own_row(name, renewed.hook, OwnRow(plan, name))
            done.updated[arrival.name] = name
            return
        name, number = saving.numbered(arrival.name, number), number + 1
    _ = plan.listing  # it must read, or nothing is taken
    entry = plan.put("adopt", name, arrival.raw, request.author)
    lines[name] = arrival.row if arrival.row is not None and name == arrival.name else row(name, entry.hook)
    done.adopted[arrival.name] = name


def leave(plan: Plan, request: Leave) -> Left:
    """Plan the going of notes that arrived elsewhere; one whose text is another by now stays."""
    listing, usage = plan.listing, plan.usage
    gone: dict[str, None] = {}
    for name, content_hash in request.notes:
        entry = plan.take(name)
        if entry is not None and entry.hash == content_hash:
            plan.drop(name, request.author)
            plan.files[name] = None
            gone[name] = None
    plan.listing, plan.usage = listing.without_all(gone), usage.without(*gone)
    return Left(len(gone), len(request.notes) - len(gone))
