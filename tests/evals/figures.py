"""What a set of results is worth. Law: one definition, for every table and every bound."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .places import Case


class Figures(NamedTuple):
    """Counts over some cases; see the README for what they mean."""

    positives: int = 0
    hits: int = 0
    first: int = 0
    wrong: int = 0
    negatives: int = 0
    bodied: int = 0

    def __str__(self) -> str:
        """One line of a table, under `HEAD`."""
        shares = (
            f"{self.hits / self.positives:.3f}" if self.positives else "-",
            f"{self.first / self.positives:.3f}" if self.positives else "-",
            f"{self.wrong_rate:.3f}",
        )
        return (
            f"{self.positives:>9} {self.hits:>5} {shares[0]:>6} {shares[1]:>6} {shares[2]:>6}"
            f" {self.negatives:>9} {self.bodied:>6}"
        )

    @property
    def wrong_rate(self) -> float:
        """Wrong bodies a positive."""
        return self.wrong / self.positives if self.positives else 0.0

    @property
    def is_within_bounds(self) -> bool:
        """At most one wrong body a positive, and a body on at most one negative of six."""
        return self.wrong <= self.positives and 6 * self.bodied <= self.negatives

    def plus(self, other: "Figures") -> "Figures":
        """Of both sets of cases together."""
        return Figures(*(mine + its for mine, its in zip(self, other, strict=True)))


HEAD = "positives  hits  hit@3    R@1  wrong negatives bodied"

Results = Mapping[str, Sequence[str]]


def figures(cases: Sequence[Case], results: Results) -> Figures:
    """The figures of the bodies shown, by case id and in order."""
    total = Figures()
    for case in cases:
        names = results[case.id]
        total = total.plus(_of_positive(case, names) if case.relevant else Figures(negatives=1, bodied=bool(names)))
    return total


def _of_positive(case: Case, names: Sequence[str]) -> Figures:
    fine = {*case.relevant, *case.acceptable}
    return Figures(
        positives=1,
        hits=any(name in case.relevant for name in names),
        first=bool(names) and names[0] in case.relevant,
        wrong=sum(name not in fine for name in names),
    )


def results(cases: Sequence[Case], answer: Callable[[Case], Sequence[str]]) -> Results:
    """The answer to each case by its id."""
    return {case.id: answer(case) for case in cases}
