"""The journal against its cases, and what its records add up to."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memd import journal
from memd.journal import Heads, Planned, Record, content_hash, encode, is_cut_short, last_record, replay, seal

CASES = json.loads((Path(__file__).parents[1] / "cases" / "journal.json").read_text("utf-8"))
MADE = [case for case in CASES if "made_from" in case]
HASHES = [content_hash(bytes([number])) for number in range(8)]
KNOWN = ("op", "name", "hash", "at", "session", "by")


def labels(cases: list[dict[str, Any]]) -> list[str]:
    return [case["label"] for case in cases]


def record(op: str, name: str = "n", version: int = 0, at: int = 1, **more: Any) -> Record:
    return Record(op, name, HASHES[version], at, **more)


def made(fields: Mapping[str, Any]) -> Record:
    rest = {key: value for key, value in fields.items() if key not in KNOWN}
    return Record(**{key: fields[key] for key in KNOWN if key in fields}, extra=rest)


def sealed(*records: Record) -> list[Record]:
    out: list[Record] = []
    for each in records:
        out.append(seal(each, out[-1].digest if out else ""))
    return out


def journal_of(*records: Record) -> bytes:
    return b"".join(map(encode, sealed(*records)))


def heads_of(*records: Record) -> Heads:
    heads = Heads()
    for each in records:
        heads.apply(each)
    return heads


FIVE = (
    record("save", "a", 0, session="s"),
    record("edit", "a", 1, by="hand"),
    record("adopt", "b", 2, by="claude", extra={"source_hash": HASHES[3]}),
    record("read", "a", 1),
    record("forget", "b", 2, by="hand"),
)


@pytest.mark.parametrize("case", CASES, ids=labels(CASES))
def test_cases_replay(case: dict[str, Any]) -> None:
    got = replay(base64.b64decode(case["base64"]))
    assert (len(got.records), got.torn_bytes, got.broken_line) == (
        case["records"],
        case["torn_bytes"],
        case["broken_line"],
    )


@pytest.mark.parametrize("case", MADE, ids=labels(MADE))
def test_cases_are_written_and_read_back(case: dict[str, Any]) -> None:
    records = [made(fields) for fields in case["made_from"]]
    raw = journal_of(*records)
    assert raw.decode().splitlines(keepends=True) == case["lines"]
    assert replay(raw).records == sealed(*records)


def test_a_replay_counts_lines_and_bytes_before_the_torn_tail() -> None:
    whole = journal_of(*FIVE)
    got = replay(whole + b"\0\0\0\n\n{")
    assert (got.count, got.lines, got.size, got.torn_bytes) == (5, 5, len(whole), 6)
    assert got.digest == sealed(*FIVE)[-1].digest
    assert got.broken_reason is None


def test_broken_lines_count_as_lines() -> None:
    lines = journal_of(*FIVE).splitlines(keepends=True)
    got = replay(lines[0] + b"x\n\n" + lines[1])
    assert (got.count, got.lines, got.broken_line) == (2, 4, 2)
    assert got.broken_reason == "is not a canonical record"


def test_the_first_of_several_broken_lines_is_named() -> None:
    lines = journal_of(*FIVE).splitlines(keepends=True)
    assert replay(lines[0] + b"x\n" + lines[1] + b"y\n" + lines[2]).broken_line == 2
    assert replay(lines[1] + lines[2] + b"y\n" + lines[3]).broken_line == 1
    assert replay(b"x\n" + lines[2] + lines[4]).broken_line == 1
    assert replay(lines[0] + lines[2] + lines[4]).broken_line == 2


def test_a_line_that_does_not_chain_says_so() -> None:
    lines = journal_of(*FIVE).splitlines(keepends=True)
    assert replay(b"".join(lines[1:])).broken_reason == "does not chain to the record before it"


def test_a_journal_is_read_on_from_where_it_ended() -> None:
    lines = journal_of(*FIVE).splitlines(keepends=True)
    start = replay(b"".join(lines[:2]))
    rest = replay(b"".join(lines[2:]), prev=start.digest, first_line=start.lines + 1)
    assert start.records + rest.records == sealed(*FIVE)
    assert rest.broken_line is None
    wrong = replay(b"".join(lines[3:]), prev=start.digest, first_line=start.lines + 1)
    assert wrong.broken_line == 3


def test_records_that_go_into_heads_are_not_kept() -> None:
    heads = Heads()
    got = replay(journal_of(*FIVE), heads=heads)
    assert (got.records, got.count) == ([], 5)
    assert list(heads.live()) == ["a"]


ODD = {
    "keys out of order": b'{"digest":"d","at":1,"hash":"h","name":"n","op":"read"}',
    "a space": b'{"at": 1,"digest":"d","hash":"h","name":"n","op":"read"}',
    "escaped non-ASCII": b'{"at":1,"digest":"d","hash":"h","name":"\\u00e9","op":"read"}',
    "a key twice": b'{"at":1,"at":1,"digest":"d","hash":"h","name":"n","op":"read"}',
    "an unknown fraction": b'{"at":1,"digest":"d","hash":"h","name":"n","op":"read","z":[1.5]}',
    "an unknown exponent": b'{"at":1,"digest":"d","hash":"h","name":"n","op":"read","z":1e3}',
    "an integer with a point": b'{"at":1.0,"digest":"d","hash":"h","name":"n","op":"read"}',
    "NaN": b'{"at":1,"digest":"d","hash":"h","name":"n","op":"read","z":NaN}',
    "a lone surrogate": b'{"at":1,"digest":"d","hash":"h","name":"\\ud800","op":"read"}',
    "a lone surrogate, unknown": b'{"at":1,"digest":"d","hash":"h","name":"n","op":"read","z":"\\ud800"}',
    "not UTF-8": b'{"at":1,"digest":"d","hash":"h","name":"\xff","op":"read"}',
    "at is true": b'{"at":true,"digest":"d","hash":"h","name":"n","op":"read"}',
    "at is text": b'{"at":"1","digest":"d","hash":"h","name":"n","op":"read"}',
    "no at": b'{"digest":"d","hash":"h","name":"n","op":"read"}',
    "no digest": b'{"at":1,"hash":"h","name":"n","op":"read"}',
    "no hash": b'{"at":1,"digest":"d","name":"n","op":"read"}',
    "no name": b'{"at":1,"digest":"d","hash":"h","op":"read"}',
    "no op": b'{"at":1,"digest":"d","hash":"h","name":"n"}',
    "op is a number": b'{"at":1,"digest":"d","hash":"h","name":"n","op":1}',
    "a list": b"[1]",
    "nothing": b"",
    "a carriage return": b'{"at":1,"digest":"d","hash":"h","name":"n","op":"read"}\r',
    "nested too deeply": b'{"z":' + b"[" * 100_000,
    "too many digits": b'{"at":' + b"1" * 5000 + b"}",
}


@pytest.mark.parametrize("line", ODD.values(), ids=ODD.keys())
def test_what_is_no_record_is_set_aside(line: bytes) -> None:
    whole = journal_of(*FIVE)
    got = replay(whole + line + b"\n")
    assert (got.count, got.torn_bytes, got.broken_line) == (5, len(line) + 1, None)
    assert last_record(whole + line + b"\n") is None


UNUSUAL: dict[str, dict[str, Any]] = {
    "null who": {"session": None, "by": None},
    "who of another shape": {"session": 7, "by": ["x"]},
    "source_hash of another shape": {"source_hash": {"digest": "x"}},
    "a key before digest": {"a": {"digest": "x"}, "by": '"digest":"'},
    "a key after at": {"b": 1, "zz": [1, {"y": None}]},
    "a large integer": {"n": 10**30},
}


@pytest.mark.parametrize("more", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_unusual_fields_survive_and_chain(more: dict[str, Any]) -> None:
    fields = {"at": 1, "hash": HASHES[0], "name": "n", "op": "save", **more}
    plain = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    fields["digest"] = content_hash(plain)
    line = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    got = replay(line)
    assert (got.count, got.broken_line) == (1, None)
    assert encode(got.records[0]) == line


def test_a_digest_of_another_length_is_a_record_that_does_not_chain() -> None:
    first, second = sealed(*FIVE[:2])
    line = encode(first).replace(b'"digest":"', b'"digest":"x')
    got = replay(line + encode(second))
    assert (got.count, got.broken_line) == (2, 1)


def test_a_fraction_is_never_written() -> None:
    with pytest.raises(ValueError, match="fraction"):
        seal(record("save", extra={"z": [{"y": 0.5}]}), "")


def test_hashes() -> None:
    hash_ = content_hash(b"")
    digits = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert hash_ == f"sha256:{digits}"
    assert journal.hex_of(hash_) == digits
    assert journal.parse_hash(digits) == journal.parse_hash(hash_) == hash_


@pytest.mark.parametrize(
    "text", ["", "sha256:", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "sha256:sha256:" + "a" * 64, "a" * 64 + "\n"]
)
def test_what_is_no_hash(text: str) -> None:
    assert journal.parse_hash(text) is None
    with pytest.raises(ValueError, match="not a sha256"):
        journal.hex_of(text)


def test_hex_of_needs_the_prefix() -> None:
    with pytest.raises(ValueError, match="not a sha256"):
        journal.hex_of("a" * 64)


def test_the_last_record_is_found_in_any_long_enough_tail() -> None:
    """A tail that begins inside the last line gives None, one that begins at it or before gives the record."""
    rest, last = encode(sealed(*FIVE)[0]), sealed(*FIVE)[1]
    line = encode(last)
    whole = rest + line
    for start in range(len(whole)):
        assert last_record(whole[start:]) == (last if start <= len(rest) else None)
    assert last_record(b"") is None
    assert last_record(whole[:-1]) is None
    assert last_record(whole[:-1] + b" ") is None
    assert last_record(whole + b"\n") is None


def test_a_value_that_looks_like_a_record_is_none() -> None:
    inner = encode(sealed(FIVE[0])[0]).decode().strip()
    line = encode(seal(record("save", by=f"x{inner}", extra={"z": f"{inner}"}), ""))
    assert [start for start in range(len(line)) if last_record(line[start:])] == [0]


# What records add up to.


def test_a_life_from_save_to_forget() -> None:
    heads = heads_of(
        record("save", version=0, at=1, session="s"),
        record("read", version=0, at=2),
        record("edit", version=1, at=3),
        record("save", version=0, at=4, by="restore"),
        record("read", version=0, at=5),
    )
    assert heads.versions("n") == (HASHES[0], HASHES[1])
    assert (heads.saves("n"), heads.reads("n"), heads.first_op("n"), heads.last_used("n")) == (2, 2, "save", 5)
    head = heads.head("n")
    assert head is not None
    assert (head.op, head.at) == ("save", 4)
    assert (heads.live_count, heads.forgotten_count) == (1, 0)
    heads.apply(record("forget", version=0, at=6))
    heads.apply(record("read", version=0, at=7))  # of someone who was faster: it counts for nothing
    head = heads.head("n")
    assert head is not None
    assert head.op == "forget"
    assert (heads.saves("n"), heads.reads("n"), heads.first_op("n"), heads.last_used("n")) == (0, 0, None, None)
    assert (heads.versions("n"), heads.is_live("n"), heads.is_forgotten("n")) == ((), False, True)
    assert (heads.live_count, heads.forgotten_count) == (0, 1)
    assert heads.session_saves("s") == 1


def test_a_new_life_begins_anew() -> None:
    heads = heads_of(
        record("save", version=0), record("forget"), record("adopt", version=1, at=9), record("forget", "other")
    )
    assert heads.versions("n") == (HASHES[1],)
    assert (heads.saves("n"), heads.first_op("n"), heads.last_used("n")) == (0, "adopt", None)
    assert (heads.live_count, heads.forgotten_count) == (1, 1)
    assert not heads.is_forgotten("n")


def test_nothing_is_known_of_a_name_that_was_never_recorded() -> None:
    heads = heads_of(record("read"), record("starred", version=1))
    assert heads.head("n") is None
    assert (heads.is_live("n"), heads.is_forgotten("n"), heads.versions("n")) == (False, False, ())
    assert (heads.saves("n"), heads.reads("n"), heads.first_op("n"), heads.last_used("n")) == (0, 0, None, None)
    assert not heads.held(HASHES[0])
    assert not heads.ended(HASHES[0])
    assert not heads.ended(HASHES[1])


def test_reads_and_unknown_operations_leave_the_head() -> None:
    heads = heads_of(record("save"), record("starred", version=1), record("read", version=2))
    head = heads.head("n")
    assert head is not None
    assert head.op == "save"
    assert heads.versions("n") == (HASHES[0],)


def test_a_second_forget_is_counted_once() -> None:
    heads = heads_of(record("save"), record("forget"), record("forget"))
    assert (heads.live_count, heads.forgotten_count) == (0, 1)


def test_live_names_keep_the_order_of_their_first_record() -> None:
    heads = heads_of(record("save", "c"), record("save", "a"), record("save", "b"), record("forget", "a"))
    assert list(heads.live()) == ["c", "b"]


def test_a_name_that_begins_again_comes_last() -> None:
    heads = heads_of(record("save", "a"), record("save", "b"), record("forget", "a"), record("save", "a"))
    assert list(heads.live()) == ["b", "a"]
    plan = Planned(heads)
    for each in (record("save", "c"), record("save", "b"), record("forget", "b"), record("adopt", "b")):
        plan.apply(each)
    assert list(plan.live()) == ["a", "c", "b"]
    assert list(heads.live()) == ["b", "a"]


def test_versions_of_a_life_that_is_over_are_known_for_such() -> None:
    heads = heads_of(record("save", "a", 0), record("edit", "a", 1), record("read", "a", 2), record("save", "b", 3))
    assert [heads.ended(version) for version in HASHES[:4]] == [False] * 4
    plan = Planned(heads)
    plan.apply(record("forget", "a", 1))
    assert [plan.ended(version) for version in HASHES[:4]] == [True, True, False, False]
    assert not heads.ended(HASHES[0])
    heads.apply(record("forget", "c", 4))
    assert heads.ended(HASHES[4]), "a forget names what goes, whatever is known of the note"


def test_only_the_beginning_of_one_record_was_cut_short() -> None:
    line = encode(seal(record("save"), ""))
    assert all(is_cut_short(line[:cut]) for cut in range(1, len(line)))
    assert [
        is_cut_short(tail) for tail in (b"", line, b"\n", bytes(9), b'{"by":', b"\xef\xbb\xbf{", line + b"{")
    ] == [False] * 7


def test_an_object_is_shared_while_another_live_note_has_it() -> None:
    heads = heads_of(record("save", "a", 0), record("save", "a", 1), record("adopt", "b", 0))
    assert heads.shared(HASHES[0], besides="a")
    assert heads.shared(HASHES[0], besides="b")
    assert not heads.shared(HASHES[1], besides="a")
    assert heads.shared(HASHES[1], besides="b")
    assert heads.held(HASHES[0])
    heads.apply(record("forget", "b"))
    assert not heads.shared(HASHES[0], besides="a")
    assert heads.shared(HASHES[0], besides="b")
    heads.apply(record("forget", "a"))
    assert not heads.held(HASHES[0])
    assert not heads.shared(HASHES[0], besides="b")
    assert heads.ended(HASHES[0])


def test_a_hash_and_a_name_that_nobody_knows() -> None:
    heads = heads_of(record("save", "a", 0))
    assert (heads.held(HASHES[7]), heads.ended(HASHES[7]), heads.shared(HASHES[7], besides="a")) == (False,) * 3
    assert heads.shared(HASHES[0], besides="nobody")


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".hidden", "a\0b", "Memory"])
def test_a_name_that_no_note_can_have_is_no_head(name: str) -> None:
    heads = heads_of(record("save", name))
    assert heads.head(name) is None
    assert list(heads.live()) == []


def test_a_hash_that_is_none_is_no_head() -> None:
    heads = heads_of(Record("save", "n", "sha256:../../x", 1))
    assert heads.head("n") is None


def test_a_plan_leaves_its_base_alone() -> None:
    base = heads_of(record("save", "a", 0, session="s"), record("save", "b", 1), record("save", "c", 2))
    plan = Planned(base)
    for each in (
        record("forget", "b", 1),
        record("save", "a", 3, session="s"),
        record("read", "c", 2),
        record("adopt", "d", 1),
    ):
        plan.apply(each)
    assert list(plan.live()) == ["a", "c", "d"]
    assert (plan.live_count, plan.forgotten_count, plan.session_saves("s")) == (3, 1, 2)
    assert plan.versions("a") == (HASHES[0], HASHES[3])
    assert plan.held(HASHES[3])
    assert plan.shared(HASHES[3], besides="d")
    assert plan.shared(HASHES[1], besides="b")
    assert plan.reads("c") == 1
    assert list(base.live()) == ["a", "b", "c"]
    assert (base.live_count, base.forgotten_count, base.session_saves("s")) == (3, 0, 1)
    assert base.versions("a") == (HASHES[0],)
    assert base.head("d") is None
    assert (base.reads("c"), base.ended(HASHES[3]), base.shared(HASHES[1], besides="b")) == (0, False, False)


def test_a_plan_goes_on_with_the_lives_of_its_base() -> None:
    base = heads_of(
        record("adopt", "a", 0),
        record("save", "a", 1, at=5),
        record("read", "a", 1, at=6),
        record("save", "gone"),
        record("forget", "gone"),
    )
    plan = Planned(base)
    plan.apply(record("edit", "a", 0, at=7))
    plan.apply(record("edit", "a", 1, at=8))
    assert (plan.first_op("a"), plan.saves("a"), plan.reads("a"), plan.last_used("a")) == ("adopt", 1, 1, 6)
    assert (plan.live_count, plan.forgotten_count) == (1, 1)
    plan.apply(record("save", "a", 2, at=9))
    plan.apply(record("save", "gone", 3))
    plan.apply(record("save", "a", 2, at=9))
    assert (plan.saves("a"), plan.last_used("a")) == (3, 9)
    assert (plan.live_count, plan.forgotten_count, plan.first_op("gone")) == (2, 0, "save")
    assert plan.versions("a") == (HASHES[0], HASHES[1], HASHES[2])
    plan.apply(record("forget", "a", 2))
    assert not plan.held(HASHES[1])
    assert base.held(HASHES[1])


def test_what_came_from_a_source_is_known_through_every_life() -> None:
    came = record("adopt", by="claude", extra={"source_hash": HASHES[7]})
    base = heads_of(came)
    for heads in (base, Planned(base)):
        assert heads.brought("n") == came
        assert heads.once_brought("n") is None
        assert list(heads.every_brought()) == [("n", came)]
        heads.apply(record("edit", version=1, by="hand"))
        assert heads.brought("n") == came
    for heads in (Planned(base), base):
        heads.apply(record("forget"))
        assert heads.brought("n") is None
        assert heads.once_brought("n") == came
        assert list(heads.every_brought()) == []
        heads.apply(record("save", version=2))
        assert heads.brought("n") is None
        assert heads.once_brought("n") == came
        heads.apply(came)
        assert heads.brought("n") == came
        assert heads.once_brought("n") is None
    assert heads_of(record("save")).once_brought("n") is None


def test_a_line_with_the_name_it_had_at_its_source_is_canonical_and_chains() -> None:
    extra = {"source_hash": HASHES[7], "source_name": "m"}
    raw = journal_of(record("adopt", by="claude", extra=extra), record("save", version=1))
    found = replay(raw)
    assert (found.broken_line, found.torn_bytes) == (None, 0)
    assert found.records[0].extra == extra
    assert replay(raw.replace(b'"source_name":"m"', b'"source_name":"o"')).broken_line == 1
