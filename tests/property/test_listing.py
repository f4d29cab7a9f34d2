"""Laws of MEMORY.md: reconcile comes to rest at once, keeps foreign lines, and lists every note exactly once."""

from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd import listing as room
from memd.listing import Listing, listed_by, row


def of(text: str) -> Listing:
    """The listing of a text."""
    return Listing(text.encode())


# A loaded machine is no reason to fail.
LAW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

STEMS = ["a", "b", "a(1)", "a]b", "a](b", "a.md)b", "我-x", "see [b](b.md) x"]
HOOKS = st.text("ab ]()[—.md⚠", max_size=12) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NOTES = st.dictionaries(st.sampled_from(STEMS), HOOKS, max_size=5)
LINE = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=20),
    st.text("- [](.md)ab/", max_size=24),
    st.builds(row, st.sampled_from(STEMS), HOOKS),
    st.builds("- [{}]({}.md) - {}".format, st.sampled_from(["Label", "a", "[x]"]), st.sampled_from(STEMS), HOOKS),
    st.builds("- [{0}]({0}.md) [x]({1}.md)".format, st.sampled_from(["a/b", "Memory", ".a"]), st.sampled_from(STEMS)),
)
TEXT = st.builds(
    lambda lines, eol, bom, end: bom + eol.join(lines) + end,
    st.lists(LINE.map(lambda line: line.replace("\n", " ")), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
    st.sampled_from(["", "\n"]),
)


def foreign(text: str, notes: dict[str, str]) -> list[str]:
    """The lines that list nothing, without line ends."""
    lines = text.removeprefix("\ufeff").split("\n")
    return [line for line in (line.rstrip("\r") for line in lines) if line and listed_by(line, notes) is None]


@LAW
@given(TEXT)
def test_decoding_and_encoding_keeps_every_byte(text: str) -> None:
    assert Listing.decode(text.encode()).encode() == text.encode()


MANY = st.lists(st.tuples(st.sampled_from([*STEMS, *"cdefgh", "a-b", "b.c"]), HOOKS), max_size=24)


@pytest.mark.parametrize("few", [0, 2])
@LAW
@given(TEXT, st.booleans(), MANY, MANY)
def test_rows_put_in_together_are_those_put_in_one_by_one(
    few: int, text: str, plain: bool, first: list[tuple[str, str]], then: list[tuple[str, str]]
) -> None:
    with mock.patch.object(room, "_FEW", few):
        put_in(text, plain, first, then)


def put_in(text: str, plain: bool, first: list[tuple[str, str]], then: list[tuple[str, str]]) -> None:
    """Put rows in together, and one by one by hand."""
    together = one_by_one = of(text)
    for rows in (first, then):
        for name, hook in rows:
            if plain and "]" in name:
                continue
            together = together.with_row(name, hook)
            one_by_one = one_by_one._put(name, row(name, hook))
        assert together == one_by_one
        assert together.raw == one_by_one.raw


@LAW
@given(TEXT, NOTES)
def test_reconciled_once_is_reconciled(text: str, notes: dict[str, str]) -> None:
    once = of(text).reconciled(notes)
    assert once.reconciled(notes) == once


@LAW
@given(TEXT, NOTES)
def test_reconciled_lists_every_note_exactly_once(text: str, notes: dict[str, str]) -> None:
    rows = of(text).reconciled(notes).rows(notes)
    assert sorted(each.name for each in rows) == sorted(notes)


@LAW
@given(TEXT, NOTES)
def test_foreign_lines_stay_in_their_order(text: str, notes: dict[str, str]) -> None:
    assert foreign(of(text).reconciled(notes).text, notes) == foreign(text, notes)


@LAW
@given(TEXT, NOTES)
def test_the_lines_kept_are_lines_that_were_there(text: str, notes: dict[str, str]) -> None:
    """Reconciling cuts whole lines and appends whole rows: nothing in between is rewritten."""
    after = of(text).reconciled(notes)
    before = [line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n")]
    rows = [row(name, hook) for name, hook in notes.items()]
    for line in after.text.removeprefix("\ufeff").split("\n"):
        assert line.rstrip("\r") in before or line.rstrip("\r") in rows or line == ""


@LAW
@given(st.sampled_from(STEMS), HOOKS)
def test_a_row_lists_its_note(name: str, hook: str) -> None:
    line = row(name, hook)
    assert listed_by(line) == name
    assert "\n" not in line
    assert of(line).with_own_row(name, "x", line.__eq__).text == row(name, "x")


@LAW
@given(TEXT, st.sampled_from(STEMS), HOOKS)
def test_a_saved_note_has_a_row_and_a_forgotten_one_has_none(text: str, name: str, hook: str) -> None:
    saved = of(text).with_row(name, hook)
    assert [each.name for each in saved.rows({name})].count(name) >= 1
    left = saved.without(name)
    assert name not in [each.name for each in left.rows({name})]
    assert foreign(left.text, {name: ""}) == foreign(text, {name: ""})


@LAW
@given(TEXT, NOTES)
def test_lines_are_added_for_what_no_line_lists(text: str, notes: dict[str, str]) -> None:
    for name, hook in notes.items():
        alone = of(text).with_row(name, hook, replace=False)
        assert of(text).with_lines({name: row(name, hook)}) == alone
    together = of(text).with_lines({name: row(name, hook) for name, hook in notes.items()})
    assert all(together.lists(name) for name in notes)
    assert together.raw.startswith(of(text).raw)
