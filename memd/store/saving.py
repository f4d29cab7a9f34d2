"""What a save, a forget and a counted read change. Law: everything that can refuse does so before the first change.

SPEC section 3 (overlay, compare and swap, derived names) and section 4 (order of a write).
"""

import msgspec

from memd import draft as drafting
from memd import journal, note
from memd.errors import Conflict, NotFound, Refused
from memd.store.model import Count, Counted, CountSession, Forget, Forgotten, Save, Saved
from memd.store.plan import Plan
from memd.store.state import blocked_by


def save(plan: Plan, request: Save) -> Saved:
    """Plan one save. Errors: Refused, Unreadable, Conflict; the plan then holds a hand edit at most."""
    name, warnings = choose_name(plan, request.draft)
    there = plan.take(name)
    head = plan.head_hash(name)
    is_known = there is not None and there.hash == head and plan.state.holds_object(there.hash, there.kept)
    if there is not None and is_known and not request.draft.masked:
        composed, raw = drafting.compose(request.draft, name, None, there.extra)
    else:
        composed, raw = drafting.compose(request.draft, name, None if head is None else old_text(plan, name, head))
    listing, usage = plan.listing, plan.usage
    check_expect(request.expect, head)
    entry = plan.put(journal.SAVE, name, raw, request.author, parsed=composed)
    plan.listing = listing.with_row(name, composed.hook)
    plan.usage = usage.saved(name, int(plan.now))
    return Saved(entry, head is not None, (*request.draft.warnings, *warnings))


def forget(plan: Plan, request: Forget) -> Forgotten:
    """Plan one forget. Errors: NotFound, Unreadable.

    Where something that is no note stands in the note's place, that stays; the note's versions go all the same.
    """
    replaced = plan.heads.is_live(request.name) and is_blocked(plan, request.name)
    if not replaced and plan.take(request.name) is None and not plan.heads.is_live(request.name):
        raise NotFound(f"no note is named {request.name}")
    listing, usage = plan.listing, plan.usage  # both must read, or nothing is removed
    versions = plan.heads.versions(request.name)
    removed = plan.drop(request.name, request.author)
    if not replaced:
        plan.files[request.name] = None
    plan.listing, plan.usage = listing.without(request.name), usage.without(request.name)
    texts = tuple(raw for version in removed if (raw := plan.version(version)) is not None)
    return Forgotten(request.name, plan.records[-1].hash, len(versions), sum(map(len, texts)), texts)


def is_blocked(plan: Plan, name: str) -> bool:
    """Whether something that is no note stands at a note's path."""
    seen = plan.state.look(name)
    return seen is not None and blocked_by(seen) is not None


def count(plan: Plan, request: Count) -> Counted:
    """Plan one counted read. Errors: NotFound when the note went meanwhile, Unreadable."""
    if not plan.heads.is_live(request.name):
        raise NotFound(f"no note is named {request.name}")
    plan.usage = plan.usage.read(request.name, int(plan.now))
    plan.record(journal.READ, request.name, request.hash, request.author)
    return Counted()


def count_session(plan: Plan, _request: CountSession) -> Counted:
    """Plan one counted session. Errors: Unreadable."""
    plan.usage = plan.usage.session_started()
    return Counted()


def choose_name(plan: Plan, draft: drafting.Draft) -> tuple[str, tuple[str, ...]]:
    """The file stem a draft is saved under, and what to warn of (SPEC 2, twins; SPEC 3, derived names)."""
    if draft.given is not None:
        return plan.twin(draft.given, draft.slug) or draft.slug, ()
    taken = holder(plan, draft.slug)
    if taken is None:
        return draft.slug, ()
    if hook_of(plan, taken) == draft.description:
        return taken, ()
    number = 2
    while True:
        name = numbered(draft.slug, number)
        other = holder(plan, name)
        if other is None:
            return name, (f"the name {draft.slug} is taken by {taken}; saved as {name}",)
        if hook_of(plan, other) == draft.description:
            return other, ()
        number += 1


def holder(plan: Plan, slug: str) -> str | None:
    """What has a derived name: a note, or a file that no look at the directory has taken in yet."""
    there = slug not in plan.files and plan.state.look(slug) is not None
    return plan.twin(slug, slug) or (slug if there else None)


def hook_of(plan: Plan, name: str) -> str | None:
    """The hook of the note that has a name, from its file where it is not known yet; None when none is read."""
    entry = plan.entry(name)
    if entry is None and name not in plan.files:
        read = plan.state.try_note(name)
        entry = None if read is None else read.entry
    return None if entry is None else entry.hook


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


def old_text(plan: Plan, name: str, head: str) -> bytes | None:
    """The text that a save replaces, by its head; an object from now on if it was none (DESIGN, invariant 3).

    None when neither the head's object nor the file gives it; a file that changed is for `write` to find out.
    """
    raw = plan.version(head)
    if raw is None and name not in plan.files:
        read = plan.state.try_note(name)
        if read is not None and read.entry.hash == head:
            raw = plan.objects[head] = read.raw
    return raw
