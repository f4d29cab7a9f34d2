"""The bounds of abstain, held on the given set; and that the tables count what they say."""

from memd.focus.evidence import RULES

from .figures import Figures, figures, results
from .places import GIVEN, INVENTED, Case, cases, places


def test_the_chosen_rule_is_within_its_bounds_on_the_given_set() -> None:
    stores = places(GIVEN)
    plain = figures(cases(GIVEN), results(cases(GIVEN), lambda case: stores[case.store].bodied(case.prompt, None)))
    chosen = figures(cases(GIVEN), results(cases(GIVEN), lambda case: stores[case.store].bodied(case.prompt)))
    assert (plain.positives, plain.negatives) == (36, 12)
    assert (plain.hits, plain.wrong, plain.bodied) == (27, 72, 10)
    assert chosen.hits >= plain.hits
    assert chosen.wrong <= 36
    assert chosen.bodied <= 2


def test_by_rich_it_is_no_worse_on_any_and_better_on_two() -> None:
    stores = places(GIVEN)
    some = cases(GIVEN)
    plain = figures(some, results(some, lambda case: stores[case.store].bodied(case.prompt)))
    rich = figures(some, results(some, lambda case: stores[case.store].bodied(case.prompt, RULES["rich"], "rich")))
    assert rich.hits > plain.hits
    assert rich.wrong < plain.wrong
    assert rich.bodied <= plain.bodied


def test_by_rich_it_holds_on_our_own_stores_too() -> None:
    stores = places(INVENTED)
    some = cases(INVENTED)
    plain = figures(some, results(some, lambda case: stores[case.store].bodied(case.prompt)))
    rich = figures(some, results(some, lambda case: stores[case.store].bodied(case.prompt, RULES["rich"], "rich")))
    assert rich.hits > plain.hits
    assert rich.wrong_rate <= 0.7
    assert rich.bodied <= 5


def test_it_holds_on_our_own_stores_within_what_one_more_store_can_tell() -> None:
    stores = places(INVENTED)
    plain = figures(
        cases(INVENTED), results(cases(INVENTED), lambda case: stores[case.store].bodied(case.prompt, None))
    )
    chosen = figures(cases(INVENTED), results(cases(INVENTED), lambda case: stores[case.store].bodied(case.prompt)))
    assert chosen.hits >= plain.hits - 1
    assert chosen.wrong_rate <= 0.7
    assert chosen.bodied <= 4


def test_every_label_names_a_note() -> None:
    for root in (GIVEN, INVENTED):
        stores = places(root)
        for case in cases(root):
            names = {name for shelf in stores[case.store].shelves for name in shelf.notes}
            assert {*case.relevant, *case.acceptable} <= names, case.id


def test_what_the_figures_count() -> None:
    some = [
        Case("a", "s", "x", ("right",), ("fine",), ""),
        Case("b", "s", "x", ("right",), (), ""),
        Case("c", "s", "x", (), (), "negative"),
        Case("d", "s", "x", (), (), "negative"),
    ]
    got = {"a": ["fine", "right", "wrong"], "b": ["wrong", "wrong too"], "c": [], "d": ["wrong", "wrong too"]}
    assert figures(some, got) == Figures(positives=2, hits=1, first=0, wrong=3, negatives=2, bodied=1)
    assert figures(some, {**got, "a": ["right"]}).first == 1
    assert not figures(some, got).is_within_bounds
