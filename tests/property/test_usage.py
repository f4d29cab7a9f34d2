"""Laws of usage.json: its bytes are those of its counts, however it came about, and unknown keys stay."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.usage import Counts, Usage

# A loaded machine is no reason to fail.
LAW = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = st.sampled_from(["a", "b", 'a"', "a\\", "我-x", 'a": {', "\n    ", "notes", *"0123"])
COUNTS = st.builds(Counts, *[st.integers(0, 1 << 40)] * 3)
UNKNOWN = st.sampled_from([{}, {"v": {"a": {"saves": 1}}}, {"a": {"b": {}}}])
NOTES = st.dictionaries(NAMES, COUNTS, max_size=4)
STEPS = st.lists(st.tuples(st.sampled_from(["saved", "saved", "read", "without", "session"]), NAMES), max_size=3)
ROUNDS = st.lists(STEPS, max_size=4)


def stepped(usage: Usage, step: str, name: str) -> Usage:
    """The usage after one thing more."""
    if step == "saved":
        return usage.saved(name, 7)
    if step == "read":
        return usage.read(name, 8)
    if step == "session":
        return usage.session_started()
    return usage.without(name)


@LAW
@given(NOTES, UNKNOWN, ROUNDS)
def test_the_bytes_are_those_of_the_counts_whatever_was_encoded_before(
    notes: dict[str, Counts], extra: dict[str, object], rounds: list[list[tuple[str, str]]]
) -> None:
    usage = Usage(3, notes, extra)
    for steps in rounds:
        for step, name in steps:
            usage = stepped(usage, step, name)
        anew = Usage(usage.sessions, usage.notes, usage.extra)
        assert usage.encode() == anew.encode()
        assert usage == anew == Usage.decode(usage.encode())


@LAW
@given(NOTES, NAMES)
def test_what_an_entry_has_besides_stays_through_every_count(notes: dict[str, Counts], name: str) -> None:
    usage = Usage(3, {**notes, "a": Counts(1, 1, 1)}, extras={"a": {"pinned": True}})
    usage.encode()
    counted = usage.saved(name, 9).read("a", 10)
    assert Usage.decode(counted.encode()) == counted
    assert counted.extras == {"a": {"pinned": True}}
