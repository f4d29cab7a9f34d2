"""What a save, a forget and a counted read change. Law: everything that can refuse does so before the first change.

SPEC section 3 (overlay, compare and swap, derived names) and section 4 (order of a write).
"""

import msgspec

from memd import draft as drafting
from memd import journal, note
from memd.errors import Conflict, NotFound, Refused
from memd.store.model import Count, Counted, Entry, Forget, Forgotten, Save, Saved
from memd.store.plan import Plan


def save(plan: Plan, request: Save) -> Saved:
    """Plan one save. Errors: Refused, Unreadable, Conflict; the plan then holds a hand edit at most."""
    name, warnings = choose_name(plan, request.draft)
    before = plan.take(name)
    check_expect(request.expect, plan.head_hash(name))
    listing, usage = plan.listing, plan.usage
    old = None if before is None else current_bytes(plan, name, before)
    composed, raw = drafting.compose(request.draft, name, old)
    entry = plan.put("save", name, raw, request.author)
    plan.listing = listing.with_row(name, composed.hook)
    plan.usage = usage.saved(name, int(plan.now))
    updated = before is not None or name in plan.state.missing
    return Saved(entry, updated, (*request.draft.warnings, *warnings))


def forget(plan: Plan, request: Forget) -> Forgotten:
    """Plan one forget. Errors: NotFound, Unreadable, Refused."""
    if plan.take(request.name) is None and not plan.heads.is_live(request.name):
        raise NotFound(f"no note is named {request.name}")
    _ = plan.listing, plan.usage  # both must read, or nothing is removed
    versions = tuple(plan.heads.versions(request.name))
    removed = plan.drop(request.name, request.author)
    plan.files[request.name] = None
    texts = tuple(raw for version in removed if (raw := version_bytes(plan, version)) is not None)
    head = plan.records[-1].hash
    return Forgotten(request.name, head, len(versions), sum(map(len, texts)), texts)


def count(plan: Plan, request: Count) -> Counted:
    """Plan one counted read. Errors: NotFound when the note went meanwhile, Unreadable."""
    if not plan.heads.is_live(request.name):
        raise NotFound(f"no note is named {request.name}")
    plan.usage = plan.usage.read(request.name, int(plan.now))
    plan.record("read", request.name, request.hash, request.author)
    return Counted()


def choose_name(plan: Plan, draft: drafting.Draft) -> tuple[str, tuple[str, ...]]:
    """The file stem a draft is saved under, and what to warn of (SPEC 2, twins; SPEC 3, derived names)."""
    if draft.given is not None:
        return plan.twin(draft.given, draft.slug) or draft.slug, ()
    taken = plan.twin(draft.slug, draft.slug)
    if taken is None:
        return draft.slug, ()
    if same_hook(plan.entry(taken), draft):
        return taken, ()
    number = 2
    while True:
        name = numbered(draft.slug, number)
        other = plan.twin(name, name)
        if other is None:
            return name, (f"the name {draft.slug} is taken by {taken}; saved as {name}",)
        if same_hook(plan.entry(other), draft):
            return other, ()
        number += 1


def same_hook(entry: Entry | None, draft: drafting.Draft) -> bool:
    """Whether the note that stands says what the draft's description says."""
    return entry is not None and entry.hook == note.one_line(draft.description)


def numbered(slug: str, number: int) -> str:
    """`slug-N`, cut so that it stays a slug within its bounds (SPEC 2)."""
    suffix = f"-{number}"
    cut = slug[: note.MAX_SLUG - len(suffix)].encode()[: note.MAX_SLUG_BYTES - len(suffix)]
    return cut.decode(errors="ignore").rstrip("-") + suffix


def check_expect(expect: str | msgspec.UnsetType | None, head: str | None) -> None:
    """Compare and swap (SPEC 3). Errors: Conflict with the head's hash."""
    if expect is msgspec.UNSET:
        return
    if expect is None and head is not None:
        raise Conflict("expect is null (must not exist), but the note exists; read it first", hash=head)
    if expect == "exists" and head is None:
        raise Conflict('expect is "exists", but no note has that name; save without expect', hash=None)
    if expect not in (None, "exists") and journal.parse_hash(expect) != head:
        raise Conflict("expect is not the head; read the note again and save with its hash", hash=head)


def check_hash(expect: str | msgspec.UnsetType | None) -> None:
    """Refuse an `expect` that is no hash at all (field `expect`)."""
    if isinstance(expect, str) and expect != "exists" and journal.parse_hash(expect) is None:
        raise Refused(
            "expect",
            'expect: not null, "exists" or a hash of 64 hex digits',
            bound="sha256:<64 hex>",
            got=len(expect),
        )


def current_bytes(plan: Plan, name: str, entry: Entry) -> bytes:
    """The bytes a note's file holds as the plan leaves it."""
    planned = plan.files.get(name)
    if planned is not None:
        return planned
    return version_bytes(plan, entry.hash) or plan.state.disk.read(plan.state.path(name), note.MAX_FILE)[0]


def version_bytes(plan: Plan, content_hash: str) -> bytes | None:
    """A version's text: as planned, else from its object."""
    planned = plan.objects.get(content_hash)
    return planned if planned is not None else plan.state.read_object(content_hash)
