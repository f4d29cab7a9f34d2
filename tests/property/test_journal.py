"""Laws of the journal: what is written reads back, no damage goes unseen, heads are the sum of their records."""

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.journal import (
    FORGET,
    HEAD_OPS,
    NOTHING,
    READ,
    SAVE,
    Heads,
    Planned,
    Record,
    content_hash,
    decode,
    encode,
    replay,
    seal,
)

HASHES = [content_hash(bytes([number])) for number in range(4)]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = st.none() | st.booleans() | st.integers() | TEXT
JSON = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
# A loaded machine is no reason to fail.
LAW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

FIELDS = {"op", "name", "hash", "at", "session", "by", "digest"}
RECORDS = st.builds(
    Record,
    op=st.sampled_from(["save", "edit", "adopt", "forget", "read", "starred"]) | TEXT,
    name=st.sampled_from(["a", "b", "c"]) | TEXT,
    hash=st.sampled_from(HASHES),
    at=st.integers(0, 9),
    session=st.none() | st.sampled_from(["s", "t"]) | TEXT,
    by=st.none() | TEXT,
    extra=st.dictionaries(TEXT.filter(lambda key: key not in FIELDS) | st.just("source_hash"), JSON, max_size=3),
)
JOURNALS = st.lists(RECORDS, max_size=12)


def sealed(records: list[Record]) -> list[Record]:
    out: list[Record] = []
    for record in records:
        out.append(seal(record, out[-1].digest if out else ""))
    return out


def raw_of(records: list[Record]) -> bytes:
    return b"".join(map(encode, records))


def heads_of(records: list[Record]) -> Heads:
    heads = Heads()
    for record in records:
        heads.apply(record)
    return heads


@LAW
@given(RECORDS)
def test_a_record_without_unknown_keys_is_written_as_any_other(record: Record) -> None:
    usual = msgspec.structs.replace(record, extra=NOTHING)
    as_any = msgspec.structs.replace(record, extra={})
    for prev in ("", HASHES[0]):
        assert seal(usual, prev).digest == seal(as_any, prev).digest
        assert encode(seal(usual, prev)) == encode(seal(as_any, prev))


@LAW
@given(JOURNALS)
def test_what_is_written_reads_back(records: list[Record]) -> None:
    chain = sealed(records)
    got = replay(raw_of(chain))
    assert got.records == chain
    assert (got.torn_bytes, got.broken_line) == (0, None)
    assert [decode(encode(record)[:-1]) for record in chain] == chain


@LAW
@given(st.binary(max_size=200) | st.text('{}[]",:\n\\0aé', max_size=80).map(str.encode))
def test_reading_never_fails(raw: bytes) -> None:
    got = replay(raw)
    assert got.size + got.torn_bytes == len(raw)
    assert raw[: got.size].count(b"\n") == got.lines


@LAW
@given(JOURNALS, st.binary(min_size=1, max_size=40), st.data())
def test_damage_between_records_loses_no_record(records: list[Record], junk: bytes, data: st.DataObject) -> None:
    lines = [encode(record) for record in sealed(records)]
    at = data.draw(st.integers(0, len(lines)))
    got = replay(b"".join([*lines[:at], junk, b"\n", *lines[at:]]))
    assert got.records == sealed(records)
    torn = at == len(lines)
    assert (got.torn_bytes, got.broken_line) == ((len(junk) + 1, None) if torn else (0, at + 1))


FOUR = sealed(
    [
        Record("save", "a", HASHES[0], 1, "s", None),
        Record("adopt", "é", HASHES[1], 2, None, "claude", {"source_hash": HASHES[2]}),
        Record("starred", "a", HASHES[0], 3, None, None, {"z": [1]}),
        Record("forget", "a", HASHES[0], 4, None, "hand"),
    ]
)
WHOLE = raw_of(FOUR)


def test_cut_at_every_byte_it_gives_the_whole_records_before_the_cut() -> None:
    ends = [len(raw_of(FOUR[:count])) for count in range(len(FOUR) + 1)]
    for cut in range(len(WHOLE) + 1):
        count = sum(end <= cut for end in ends) - 1
        got = replay(WHOLE[:cut])
        assert got.records == FOUR[:count]
        assert (got.torn_bytes, got.broken_line) == (cut - ends[count], None)


def test_no_flipped_byte_goes_unseen() -> None:
    for at in range(len(WHOLE)):
        for mask in (0x01, 0x20, 0x80, 0xFF):
            raw = WHOLE[:at] + bytes([WHOLE[at] ^ mask]) + WHOLE[at + 1 :]
            got = replay(raw)
            assert got.torn_bytes > 0 or got.broken_line is not None, (at, mask)


# Heads against the plainest account of what they mean.


def life_of(records: list[Record], name: str) -> list[Record]:
    """The records of a name since its last forget, or the forget alone."""
    mine = [record for record in records if record.name == name and record.op in {*HEAD_OPS, READ}]
    forgets = [at for at, record in enumerate(mine) if record.op == FORGET]
    return mine[forgets[-1] + 1 :] if forgets else mine


def begun(records: list[Record]) -> list[Record]:
    """Without the reads before the life began."""
    start = next((at for at, record in enumerate(records) if record.op != READ), len(records))
    return records[start:]


def over(records: list[Record]) -> set[str]:
    """The hashes of lives that a forget has ended, and those that forgets name."""
    found: set[str] = set()
    for at, record in enumerate(records):
        if record.op == FORGET:
            mine = life_of(records[:at], record.name)
            found |= {record.hash, *(each.hash for each in mine if each.op not in {READ, FORGET})}
    return found


def assert_sums_up(heads: Heads, records: list[Record]) -> None:
    names = {record.name for record in records if record.name in {"a", "b", "c"}}
    versions = {}
    for name in names:
        life = begun(life_of(records, name))
        writes = [record for record in life if record.op != READ]
        used = [record.at for record in life if record.op in {SAVE, READ}]
        versions[name] = list(dict.fromkeys(record.hash for record in writes))
        heads_of_name = [record for record in records if record.name == name and record.op in HEAD_OPS]
        assert heads.head(name) == (heads_of_name[-1] if heads_of_name else None)
        assert heads.is_live(name) == bool(writes)
        assert heads.is_forgotten(name) == (bool(heads_of_name) and not writes)
        assert list(heads.versions(name)) == versions[name]
        assert heads.saves(name) == sum(record.op == SAVE for record in writes)
        assert heads.reads(name) == len(life) - len(writes)
        assert heads.first_op(name) == (writes[0].op if writes else None)
        assert heads.last_used(name) == (used[-1] if used else None)
    assert {name for name in heads.live() if name in {"a", "b", "c"}} == {name for name in names if versions[name]}
    assert heads.live_count == len(list(heads.live()))
    for version in HASHES:
        assert heads.ended(version) == (version in over([each for each in records if heads.head(each.name)]))
    for session in ("s", "t"):
        mine = [record for record in records if record.session == session and record.op == SAVE]
        assert heads.session_saves(session) == sum(heads.head(record.name) is not None for record in mine)


@LAW
@given(JOURNALS, st.data())
def test_any_prefix_replays_to_the_heads_of_its_records(records: list[Record], data: st.DataObject) -> None:
    chain = sealed(records)
    raw = raw_of(chain)
    cut = data.draw(st.integers(0, len(raw)))
    heads = Heads()
    got = replay(raw[:cut], heads=heads)
    assert_sums_up(heads, chain[: got.count])


@LAW
@given(JOURNALS, JOURNALS)
def test_a_plan_is_what_its_base_will_be(before: list[Record], after: list[Record]) -> None:
    base = heads_of(before)
    plan = Planned(base)
    for record in after:
        plan.apply(record)
    assert_sums_up(plan, before + after)
    assert_sums_up(base, before)
    for record in after:
        base.apply(record)
    assert list(plan.live()) == list(base.live())
    assert (plan.live_count, plan.forgotten_count) == (base.live_count, base.forgotten_count)


NAMES = st.sampled_from(["a", "b", "c"])
SMALL = st.builds(Record, st.sampled_from(["save", "edit", "forget"]), NAMES, st.sampled_from(HASHES), st.just(1))


@LAW
@given(st.lists(SMALL, max_size=16), st.lists(SMALL, max_size=4))
def test_an_object_is_shared_when_another_live_note_has_it(before: list[Record], after: list[Record]) -> None:
    heads = Planned(heads_of(before))
    for record in after:
        heads.apply(record)
    for version in HASHES:
        holders = {name for name in heads.live() if version in heads.versions(name)}
        assert heads.held(version) == bool(holders)
        for name in ("a", "b", "c", "d"):
            assert heads.shared(version, besides=name) == bool(holders - {name})
