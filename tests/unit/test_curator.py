"""What the curator shows and what is chosen, without a screen. SPEC section 14, `browse`."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.memctl.curator.state import SCOPES, Key, Line, Note, State

NAMES = ("crane", "gauge", "lamp", "tide", "weir")
KEYS = [(scope, name) for scope in SCOPES for name in NAMES]


def note(key: Key, hash_: str = "1") -> Note:
    return Note(
        scope=key[0], name=key[1], type="project", hook="a hook", hash=hash_, saves=1, reads=0, is_shadowed=False
    )


def shown(state: State) -> list[Key]:
    return [line.note.key for line in state.lines if line.note is not None]


Step = Callable[[State], State]
STEPS = st.lists(
    st.one_of(
        st.lists(st.sampled_from(KEYS), unique=True).map(
            lambda keys: lambda state: state.with_notes(note(key) for key in keys)
        ),
        st.sampled_from((None, *SCOPES)).map(lambda scope: lambda state: state.with_scope(scope)),
        st.just(State.next_scope),
        st.lists(st.sampled_from(KEYS), unique=True).map(lambda keys: lambda state: state.with_query("q", keys)),
        st.just(lambda state: state.with_query("", None)),
        st.integers(-3, 3).map(lambda by: lambda state: state.moved(by)),
        st.sampled_from(KEYS).map(lambda key: lambda state: state.choosing(key)),
    )
)


@given(steps=STEPS)
def test_the_choice_is_always_a_note_that_is_shown(steps: list[Step]) -> None:
    state = State()
    for step in steps:
        state = step(state)
        keys = shown(state)
        assert (state.chosen in keys) if keys else (state.chosen is None)
        assert (state.note is None) == (not keys)
        if keys:
            assert state.lines[state.place].note == state.note
        assert len(set(keys)) == len(keys)
        assert all(state.scope in (None, scope) for scope, _ in keys)
        assert state.found is None or set(keys) <= set(state.found)


def of(*keys: Key) -> State:
    return State().with_notes(map(note, keys))


def test_notes_are_grouped_by_scope_under_headings() -> None:
    state = of(("global", "tide"), ("repo", "crane"), ("repo", "lamp"))
    assert [(line.scope, line.count, line.note and line.note.name) for line in state.lines] == [
        ("repo", 2, None),
        ("repo", 0, "crane"),
        ("repo", 0, "lamp"),
        ("global", 1, None),
        ("global", 0, "tide"),
    ]
    assert of().lines == (Line("repo"), Line("global"))


@pytest.mark.parametrize(("gone", "next_"), [("gauge", "lamp"), ("weir", "tide"), ("crane", "gauge")])
def test_when_the_chosen_note_goes_its_neighbour_is_chosen(gone: str, next_: str) -> None:
    state = of(*(("repo", name) for name in NAMES)).choosing(("repo", gone))
    assert state.chosen == ("repo", gone)
    left = state.with_notes(note(("repo", name)) for name in NAMES if name != gone)
    assert left.chosen == ("repo", next_)


def test_a_filter_takes_the_choice_along() -> None:
    state = of(("repo", "crane"), ("global", "tide")).choosing(("global", "tide"))
    assert state.with_scope("repo").chosen == ("repo", "crane")
    assert state.with_scope("global").chosen == ("global", "tide")
    assert [state.next_scope().scope, state.next_scope().next_scope().scope] == ["repo", "global"]
    assert state.next_scope().next_scope().next_scope().scope is None


def test_what_is_found_is_shown_in_its_rank() -> None:
    state = of(*(("repo", name) for name in NAMES)).with_query("q", [("repo", "weir"), ("repo", "crane")])
    assert shown(state) == [("repo", "weir"), ("repo", "crane")]
    assert shown(state.with_query("q", [])) == []
    assert state.with_query("q", []).chosen is None
    assert len(shown(state.with_query("", None))) == 5


def test_moving_stops_at_the_ends() -> None:
    state = of(("repo", "crane"), ("global", "tide"))
    assert state.moved(-5).chosen == ("repo", "crane")
    assert state.moved(1).chosen == ("global", "tide")
    assert state.moved(99).moved(1).chosen == ("global", "tide")
    assert State().moved(1) == State()
