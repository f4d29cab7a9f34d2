"""usage.json: what reads, what survives a rewrite, and how it follows the journal."""

import json

import msgspec
import pytest

from memd.errors import Unreadable
from memd.journal import Heads, Record, content_hash
from memd.usage import NEVER, Counts, Usage

HASH = content_hash(b"")
FILE = b"""\
{
  "sessions": 4,
  "notes": {
    "z": {
      "saves": 1,
      "reads": 2,
      "last": 1780000000
    },
    "\xe6\x88\x91-a": {
      "saves": 0,
      "reads": 7,
      "last": 5
    }
  }
}
"""
USAGE = Usage(4, {"z": Counts(1, 2, 1780000000), "我-a": Counts(0, 7, 5)})


def heads_of(*steps: tuple[str, str, int]) -> Heads:
    heads = Heads()
    for op, name, at in steps:
        heads.apply(Record(op, name, HASH, at))
    return heads


def test_the_file() -> None:
    assert Usage.decode(FILE) == USAGE
    assert USAGE.encode() == FILE


def test_an_empty_one_is_written_whole() -> None:
    assert json.loads(Usage.empty().encode()) == {"sessions": 0, "notes": {}}
    assert Usage.decode(Usage.empty().encode()) == Usage.empty()


def test_what_was_written_before_is_no_part_of_what_is_written_next() -> None:
    first = Usage.empty()
    first.encode()
    second = first.saved("a", 5)
    assert Usage.decode(second.encode()) == second == Usage(0, {"a": Counts(1, 0, 5)})
    both = second.saved("b", 6).read("a", 7)
    assert Usage.decode(both.encode()) == both == Usage(0, {"a": Counts(1, 1, 7), "b": Counts(1, 0, 6)})
    assert list(Usage.decode(both.saved("d", 8).saved("c", 9).encode()).notes) == ["a", "b", "d", "c"]
    assert Usage.decode(both.without("a").encode()) == Usage(0, {"b": Counts(1, 0, 6)})


def test_any_json_of_the_shape_reads() -> None:
    raw = b'{"notes":{"a":{"last":1,"reads":2,"saves":3}},"sessions":0}'
    assert Usage.decode(raw) == Usage(0, {"a": Counts(3, 2, 1)})


CORRUPT = {
    "nothing": b"",
    "blank": b" \n",
    "NUL": b"\0" * 64,
    "half": FILE[:40],
    "two": FILE + FILE,
    "not UTF-8": FILE.replace(b"\xe6", b"\xff"),
    "a list": b"[]",
    "null": b"null",
    "an empty object": b"{}",
    "no sessions": b'{"notes":{}}',
    "no notes": b'{"sessions":1}',
    "notes is a list": b'{"sessions":1,"notes":[]}',
    "an entry is a number": b'{"sessions":1,"notes":{"a":1}}',
    "an entry without last": b'{"sessions":1,"notes":{"a":{"saves":1,"reads":1}}}',
    "a count is text": b'{"sessions":1,"notes":{"a":{"saves":"1","reads":1,"last":1}}}',
    "a count is true": b'{"sessions":1,"notes":{"a":{"saves":true,"reads":1,"last":1}}}',
    "a count is null": b'{"sessions":null,"notes":{}}',
    "a count is a fraction": b'{"sessions":1.5,"notes":{}}',
    "a count below 0": b'{"sessions":1,"notes":{"a":{"saves":-1,"reads":1,"last":1}}}',
    "sessions below 0": b'{"sessions":-1,"notes":{}}',
    "nested too deeply": b'{"sessions":1,"notes":{},"x":' + b"[" * 100_000,
    "nested too deeply, closed": b'{"sessions":1,"notes":{},"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("raw", CORRUPT.values(), ids=CORRUPT.keys())
def test_what_is_corrupt_is_refused(raw: bytes) -> None:
    with pytest.raises(Unreadable, match=r"usage\.json"):
        Usage.decode(raw)


def test_unknown_keys_survive_a_rewrite() -> None:
    raw = (
        b'{"v":{"x":[1.5,null]},"sessions":1,"notes":'
        b'{"a":{"saves":1,"reads":0,"last":1,"pinned":true},"b":{"saves":1,"reads":0,"last":1}}}'
    )
    usage = Usage.decode(raw).saved("a", 9).session_started()
    out = json.loads(usage.encode())
    assert out["v"] == {"x": [1.5, None]}
    assert out["sessions"] == 2
    assert out["notes"]["a"] == {"saves": 2, "reads": 0, "last": 9, "pinned": True}
    assert Usage.decode(usage.encode()) == usage
    assert usage != msgspec.structs.replace(usage, extras={})
    assert usage != msgspec.structs.replace(usage, extra={})
    gone = usage.without("a")
    assert json.loads(gone.encode())["notes"] == {"b": {"saves": 1, "reads": 0, "last": 1}}
    assert "pinned" not in gone.saved("a", 10).encode().decode()


def test_counting() -> None:
    usage = Usage.empty().saved("a", 5).read("a", 6).read("b", 7).session_started()
    assert usage == Usage(1, {"a": Counts(1, 1, 6), "b": Counts(0, 1, 7)})
    assert usage.counts("a") == Counts(1, 1, 6)
    assert usage.counts("c") == NEVER == Counts(saves=0, reads=0, last=0)
    assert usage.without("a") == Usage(1, {"b": Counts(0, 1, 7)})
    assert usage.without("c") is usage


def test_the_order_of_notes_is_kept() -> None:
    usage = USAGE.saved("b", 1).saved("z", 2)
    assert list(usage.notes) == ["z", "我-a", "b"]
    assert list(Usage.decode(usage.encode()).notes) == ["z", "我-a", "b"]


def test_a_count_ahead_of_the_journal_is_lowered() -> None:
    heads = heads_of(("save", "a", 1), ("read", "a", 2), ("save", "b", 3))
    usage = Usage(2, {"a": Counts(2, 5, 9), "b": Counts(1, 0, 3)})
    assert usage.lowered(heads) == Usage(2, {"a": Counts(1, 1, 9), "b": Counts(1, 0, 3)})


def test_a_count_behind_the_journal_stays() -> None:
    usage = Usage(0, {"a": Counts(0, 0, 1)})
    assert usage.lowered(heads_of(("save", "a", 1))) is usage


@pytest.mark.parametrize(
    "steps", [[("adopt", "a", 1)], [("save", "a", 1), ("forget", "a", 1), ("adopt", "a", 1)], []]
)
def test_a_note_that_may_be_older_than_its_journal_keeps_its_counts(steps: list[tuple[str, str, int]]) -> None:
    usage = Usage(0, {"a": Counts(9, 9, 9)})
    assert usage.lowered(heads_of(*steps)) is usage


def test_an_entry_of_a_forgotten_note_goes() -> None:
    heads = heads_of(("save", "a", 1), ("forget", "a", 1))
    assert Usage(3, {"a": Counts(1, 0, 1)}).lowered(heads) == Usage(3)


def test_recounted_from_the_journal() -> None:
    heads = heads_of(
        ("save", "a", 1),
        ("read", "a", 2),
        ("adopt", "b", 3),
        ("save", "c", 4),
        ("forget", "c", 5),
        ("read", "d", 6),
        ("save", "e", 7),
        ("adopt", "f", 8),
        ("read", "f", 9),
    )
    before = Usage(
        7, {"z": Counts(1, 1, 1), "b": Counts(5, 5, 5)}, extra={"v": 1}, extras={"a": {"x": 1}, "z": {"y": 2}}
    )
    counted = {"a": Counts(1, 1, 2), "e": Counts(1, 0, 7), "f": Counts(0, 1, 9)}
    assert before.recounted(heads) == Usage(7, counted, extra={"v": 1}, extras={"a": {"x": 1}})
