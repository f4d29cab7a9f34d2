"""Texts from elsewhere: what lists them in MEMORY.md, and what becomes of each (SPEC section 7)."""

from pathlib import Path

import pytest

from memd.store import Adopt, Adopted, Arrival, Author
from support.stores import Kept, check_invariants, opened

BY_IMPORT = Author(by="import")


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A store of one note."""
    kept = opened(tmp_path / "store")
    kept.saved("alpha", "One.", "First")
    return kept


def adopt(kept: Kept, *arrivals: Arrival, updates: bool = True) -> Adopted:
    """What becomes of these arrivals."""
    outcome = kept.do(Adopt(arrivals, BY_IMPORT, updates))
    assert isinstance(outcome, Adopted)
    check_invariants(kept.directory)
    return outcome


def lines(kept: Kept) -> list[str]:
    """The lines of MEMORY.md."""
    return (kept.directory / "MEMORY.md").read_text().splitlines()


def test_a_line_comes_along_unless_the_note_is_listed_here(kept: Kept) -> None:
    listing = kept.directory / "MEMORY.md"
    listing.write_text(listing.read_text() + "- [Mine](gamma.md) - soon\n")
    adopt(
        kept,
        Arrival("beta", b"# Second\n", "- [Theirs](beta.md) - theirs"),
        Arrival("gamma", b"# Third\n", "- [Theirs](gamma.md) - theirs"),
        Arrival("delta", b"# Fourth\n"),
    )
    assert lines(kept) == [
        "- [alpha](alpha.md) — First",
        "- [Mine](gamma.md) - soon",
        "- [Theirs](beta.md) - theirs",
        "- [delta](delta.md) — Fourth",
    ]


def test_a_line_does_not_come_along_under_another_name(kept: Kept) -> None:
    arrived = Arrival("alpha", b"# Another\n", "- [Theirs](alpha.md) - theirs")
    assert adopt(kept, arrived, updates=False).adopted == {"alpha": "alpha-2"}
    assert lines(kept) == ["- [alpha](alpha.md) — First", "- [alpha-2](alpha-2.md) — Another"]


def test_a_note_that_arrives_twice_is_listed_as_it_is_in_the_end(kept: Kept) -> None:
    done = adopt(kept, Arrival("beta", b"# Then\n"), Arrival("beta", b"# Now\n"))
    assert (done.adopted, done.updated) == ({"beta": "beta"}, {"beta": "beta"})
    assert lines(kept) == ["- [alpha](alpha.md) — First", "- [beta](beta.md) — Now"]
    assert kept.ops("beta") == ["adopt/import", "edit/import"]


def test_nothing_arrives_while_the_index_does_not_read(kept: Kept) -> None:
    (kept.directory / "MEMORY.md").write_bytes(b"\xff")
    arrivals = (Arrival("beta", b"# Second\n"), Arrival("gamma", b"# Third\n"))
    done = kept.do(Adopt(arrivals, BY_IMPORT, updates=True))
    assert isinstance(done, Adopted)
    assert done.refused.keys() == {"beta", "gamma"}
    assert kept.entries.keys() == {"alpha"}
    assert not kept.file("beta").exists()
