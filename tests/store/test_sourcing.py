"""Notes of a source, as a store takes them: whose a name is, who edited last, what is written of it (SPEC 10)."""

from pathlib import Path

import pytest

from memd import note
from memd.journal import content_hash
from memd.store import Adopt, Arrival, Author, Bring, Brought, Rename, Sourced
from support.stores import Kept, check_invariants, forget, opened, records, rows, standing


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A store of one note."""
    kept = opened(tmp_path / "store")
    kept.saved("alpha", "One.", "First")
    return kept


def there(name: str, words: str, *, with_text: bool = True) -> Sourced:
    """A note of a source."""
    raw = f"# {words}\n".encode()
    tagged = note.tagged(raw, "claude")
    return Sourced(name, content_hash(raw), content_hash(tagged), tagged if with_text else None)


def bring(kept: Kept, *sources: Sourced, anew: bool = False, held: frozenset[str] | None = None) -> Brought:
    """What becomes of these notes."""
    outcome = kept.do(Bring(sources, "claude", anew, held))
    assert isinstance(outcome, Brought)
    check_invariants(kept.directory)
    return outcome


def said(kept: Kept, name: str) -> list[tuple[str, str | None, dict[str, object]]]:
    """What the journal says of a note."""
    return [(each.op, each.by, dict(each.extra)) for each in records(kept.directory) if each.name == name]


def test_a_text_is_asked_for_only_where_it_is_needed(kept: Kept) -> None:
    assert bring(kept, there("beta", "One", with_text=False)).wanted == ("beta",)
    assert bring(kept, there("beta", "One")).adopted == {"beta": "beta"}
    size = len(records(kept.directory))
    assert bring(kept, there("beta", "One", with_text=False)) == Brought.nothing()
    assert bring(kept, there("beta", "Two", with_text=False)).wanted == ("beta",)
    assert len(records(kept.directory)) == size


def test_rows_are_in_the_source_s_order_whichever_text_was_at_hand(kept: Kept) -> None:
    first = bring(kept, there("beta", "One", with_text=False), there("gamma", "Two"))
    assert (first.adopted, first.wanted) == ({}, ("beta", "gamma"))
    bring(kept, there("beta", "One"), there("gamma", "Two"))
    assert [line.split("]")[0] for line in rows(kept.directory)[1:]] == ["- [beta", "- [gamma"]
    later = bring(kept, there("beta", "One anew"), there("delta", "New", with_text=False), there("gamma", "Two anew"))
    assert (later.updated, later.wanted) == ({"beta": "beta", "gamma": "gamma"}, ("delta",))


def test_a_record_says_which_text_of_which_note_came(kept: Kept) -> None:
    bring(kept, there("alpha", "Theirs"), there("beta", "Two"))
    assert said(kept, "beta") == [("adopt", "claude", {"source_hash": content_hash(b"# Two\n")})]
    assert said(kept, "alpha-claude") == [
        ("adopt", "claude", {"source_hash": content_hash(b"# Theirs\n"), "source_name": "alpha"})
    ]
    again = opened(kept.directory)
    assert bring(again, there("alpha", "Theirs", with_text=False)) == Brought.nothing()
    assert bring(again, there("alpha", "Theirs anew")).updated == {"alpha": "alpha-claude"}
    assert again.store.verify() == ()


def test_a_crash_before_the_record_leaves_a_note_that_is_known_again(kept: Kept) -> None:
    one, two = there("beta", "One"), there("beta", "Two")
    assert one.raw is not None
    (kept.directory / "beta.md").write_bytes(one.raw)
    assert bring(kept, one) == Brought.nothing()
    assert [(op, by) for op, by, _ in said(kept, "beta")] == [("adopt", "hand"), ("edit", "claude")]
    assert two.raw is not None
    (kept.directory / "beta.md").write_bytes(two.raw)
    assert bring(kept, two) == Brought.nothing()
    assert bring(kept, there("beta", "Three")).updated == {"beta": "beta"}


@pytest.mark.parametrize(("is_edited", "outcome"), [(False, "updated"), (True, "conflicts")])
def test_a_tagged_note_that_came_by_another_way_is_the_sources(kept: Kept, is_edited: bool, outcome: str) -> None:
    tagged = note.tagged(b"# One\n", "claude")
    kept.do(Adopt((Arrival("beta", tagged),), Author(by="store"), updates=False))
    if is_edited:
        (kept.directory / "beta.md").write_bytes(tagged + b"Mine.\n")
    done = bring(kept, there("beta", "Two"))
    assert list(getattr(done, outcome)) == ["beta"]
    assert set(standing(kept.directory)) == {"alpha", "beta"}


def test_what_was_forgotten_stays_so_whoever_wrote_it(kept: Kept) -> None:
    kept.do(forget("alpha"))
    assert bring(kept, there("alpha", "Theirs")).forgotten == ("alpha",)
    assert bring(kept, there("alpha", "Theirs"), anew=True).adopted == {"alpha": "alpha"}


def test_a_note_that_went_on_elsewhere_leaves_its_name_free(kept: Kept) -> None:
    kept.do(Rename("alpha", "gamma", Author(by="rename")))
    assert bring(kept, there("alpha", "Theirs")).adopted == {"alpha": "alpha"}
    kept.do(Rename("alpha", "delta", Author(by="rename")))
    assert bring(kept, there("alpha", "Theirs")).forgotten == ("alpha",)


def test_a_note_keeps_the_name_it_got_when_the_other_becomes_free(kept: Kept) -> None:
    bring(kept, there("alpha", "Theirs"))
    kept.do(Rename("alpha", "gamma", Author(by="rename")))
    assert bring(kept, there("alpha", "Theirs anew")).updated == {"alpha": "alpha-claude"}
    assert set(standing(kept.directory)) == {"alpha-claude", "gamma"}


def test_a_note_whose_file_just_went_is_not_written_again(kept: Kept) -> None:
    bring(kept, there("beta", "One"))
    (kept.directory / "beta.md").unlink()
    assert bring(kept, there("beta", "Two")).forgotten == ("beta",)
    assert "beta" not in standing(kept.directory)
    again = bring(kept, there("beta", "Two"), anew=True)
    assert {**again.adopted, **again.updated} == {"beta": "beta"}
    assert "beta" in standing(kept.directory)


def test_only_rows_of_memds_own_are_marked(kept: Kept) -> None:
    bring(kept, there("beta", "One"), there("gamma", "Two"))
    listing = kept.directory / "MEMORY.md"
    listing.write_text(listing.read_text().replace("- [gamma](gamma.md) — Two", "- [Mine](gamma.md) - my words"))
    assert bring(kept, held=frozenset()).stale == ("beta", "gamma")
    marked = ["- [alpha](alpha.md) — First", "- [beta](beta.md) — One ⚠ stale", "- [Mine](gamma.md) - my words"]
    assert rows(kept.directory) == marked
    bring(kept, held=frozenset({"gamma"}))
    assert rows(kept.directory) == marked
    bring(kept, held=frozenset({"beta", "gamma"}))
    assert rows(kept.directory) == [marked[0], "- [beta](beta.md) — One", marked[2]]


def test_what_cannot_be_taken_is_named_and_keeps_nobody_else(kept: Kept) -> None:
    (kept.directory / "beta.md").mkdir()
    long = "x" * 250
    kept.do(Adopt((Arrival(long, b"# Here\n"),), Author(by="import"), updates=False))
    done = bring(kept, there("beta", "One"), there(long, "Two"), there("gamma", "Three"))
    assert (set(done.refused), done.adopted) == ({"beta", long}, {"gamma": "gamma"})
