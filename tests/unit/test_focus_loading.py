"""What of an index is loaded: the caps, the most recently used first, shown in index order."""

from memd.focus import lines_of, load
from memd.listing import Listing


def named(count: int, size: int = 20) -> dict[str, str]:
    return {f"n{at:03}": "x" * (size - 1) for at in range(count)}


def test_all_of_a_short_index() -> None:
    loaded = load(named(200), lambda _name: 0)
    assert (len(loaded.names), loaded.total, loaded.size, loaded.bound) == (200, 200, 4000, None)


def test_the_most_recently_used_in_index_order() -> None:
    used = {"n250": 3, "n100": 2, "n000": 1}
    loaded = load(named(300), lambda name: used.get(name, 0))
    assert loaded.names == tuple([f"n{at:03}" for at in range(199)] + ["n250"])
    assert loaded.bound == "LOAD_LINES 200"
    assert loaded.total == 300


def test_bytes() -> None:
    loaded = load(named(100, 500), lambda _name: 0)
    assert (len(loaded.names), loaded.size, loaded.bound) == (50, 25_000, "LOAD_BYTES 25000")


def test_one_huge_line_starves_nobody() -> None:
    loaded = load({"huge": "x" * 30_000, **named(30)}, lambda name: int(name == "huge"))
    assert loaded.names == tuple(named(30))
    assert loaded.bound == "LOAD_BYTES 25000"


def test_bytes_are_counted_and_not_characters() -> None:
    assert load({"n": "宽"}, lambda _name: 0).size == 4


def test_lines_are_the_first_of_each_note_that_is_there() -> None:
    text = "\ufeff- [a](a.md) — one\r\n# Heading\n- [gone](gone.md)\n- [b](b.md) two\n- [again](a.md)\nfree text\n"
    assert lines_of(Listing(text.encode()), {"a", "b", "c"}) == {"a": "- [a](a.md) — one", "b": "- [b](b.md) two"}
