"""Laws of a save: one refusal or a note that reads back whole; masks are stable; edits are counted right."""

from collections.abc import Mapping

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memd import note, secrets
from memd.draft import KNOWN, compose, draft
from memd.errors import Refused

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

LINE = st.one_of(
    st.sampled_from(
        [
            "---",
            "description: d",
            "description: 'a' b",
            "description: >",
            "type: user",
            "name: n",
            "scope: global",
            "metadata:",
            "  type: project",
            "a: 1",
            "a:",
            "- item",
            "odd",
            "  indented",
            "# c",
            "",
            "x: 'open",
            '{"type": "user", "description": "d"}',
        ]
    ),
    st.text(max_size=12),
)
TEXT = st.lists(LINE, max_size=10).map("\n".join)
MARKDOWN = st.one_of(TEXT, TEXT.map(lambda text: f"---\ndescription: d\ntype: user\n{text}\n---\n\nb\n"))
FIELDS = st.dictionaries(
    st.sampled_from(["name", "description", "type", "scope", "a", "metadata", "new-key"]),
    st.one_of(st.sampled_from(["user", "repo", "global", "d", "---", "a: b"]), st.text(max_size=12)),
    max_size=4,
)


@QUICK
@given(MARKDOWN, FIELDS, st.one_of(st.none(), TEXT))
@example("b", {"type": "user", "a": "\n---\n"}, "---\nx: 'open\ny: 1\n---\n")
@example("---\n  ---\n  a\ntype: user\ndescription: d\n---\n", {}, None)
def test_a_save_is_one_refusal_or_a_note_that_reads_back(
    markdown: str, fields: Mapping[str, object], old: str | None
) -> None:
    try:
        made = draft(markdown, fields)
    except Refused:
        return
    before = None if old is None else old.encode()
    found, raw = compose(made, "stem", before)
    assert found.trouble is None
    assert (found.name, found.description, found.type) == ("stem", made.description, made.type)
    assert found.body == made.body
    assert note.render("stem", found.description, found.type, found.extra, found.body) == raw
    for entry in made.extra:
        assert entry in "\n".join(found.extra)
    keys = {note.extra_key(entry) for entry in found.extra}
    assert not keys & set(KNOWN)
    if before is not None:
        kept = {note.extra_key(entry) for entry in note.parse("stem", before).extra if not note.is_open(entry)}
        assert kept - {"scope"} <= keys | {""}


@QUICK
@given(MARKDOWN, FIELDS)
def test_saving_what_was_saved_changes_nothing(markdown: str, fields: Mapping[str, object]) -> None:
    try:
        made = draft(markdown, fields)
    except Refused:
        return
    for name in ("stem", made.slug, made.given or made.slug):
        assert compose(made, name, None)[1] == note.render(name, made.description, made.type, made.extra, made.body)
    _, raw = compose(made, made.slug, None)
    again = draft(raw.decode(), {})
    assert again.slug == made.slug
    assert compose(again, made.slug, raw)[1] == raw


TAIL = "q1W2e3R4t5Y6u7I8o9P0a1S2"
PIECES = st.sampled_from(
    [
        f"sk-{TAIL}",
        f"ghp_{TAIL}",
        "sk-1234-fix-flaky-upload",
        "AKIAABCDEFGH12345678",
        f"eyJhbGciOiJI.eyJzdWIiOiI.{TAIL}",
        "https://u:p4ss@h",
        "://",
        ":",
        "@",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "PRIVATE KEY-----",
        "A" * 30,
        "\n",
        " ",
        "-",
        "_",
        "a",
        "é",
        "[redacted]",
    ]
)
SPOTTED = st.lists(PIECES, max_size=12).map("".join)


@QUICK
@given(SPOTTED)
@example(f"-----BEGIN PRIVATE KEY-----sk-{TAIL}")
def test_a_mask_leaves_nothing_and_is_stable(text: str) -> None:
    masked = secrets.redact(text)
    assert (masked == text) == (secrets.scan(text) == [])
    assert secrets.scan(masked) == []
    assert secrets.redact(masked) == masked


@QUICK
@given(SPOTTED)
def test_runs_lie_in_the_text_in_order(text: str) -> None:
    found = secrets.scan(text)
    assert [run.start for run in found] == sorted(run.start for run in found)
    for run in found:
        assert 0 <= run.start < run.end <= len(text)
        assert run.line == text[: run.start].count("\n") + 1


def edits(one: str, other: str) -> int:
    """The textbook's recursion: slow and plain."""
    if not one or not other:
        return len(one) + len(other)
    if one[0] == other[0]:
        return edits(one[1:], other[1:])
    return 1 + min(edits(one[1:], other), edits(one, other[1:]), edits(one[1:], other[1:]))


@QUICK
@given(st.one_of(st.text("nametypscor", min_size=1, max_size=6), st.sampled_from(["nmea", "scpoe"])))
def test_a_warning_names_the_keys_within_two_edits(key: str) -> None:
    if key in KNOWN:
        return
    warnings = draft("b", {"type": "user", key: "v"}).warnings
    near = [known for known in ("name", "type", "scope") if edits(key, known) <= 2]
    named = [known for known in KNOWN if any(f"`{known}`" in warning for warning in warnings)]
    assert bool(named) == bool(near)
    assert set(named) <= set(near)
