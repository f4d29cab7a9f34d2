"""`make eval`: the plain rule and the chosen one, what the choice traded, and how it does on stores not seen.

    python -m tests.evals

Exits 1 when the chosen rule is not within its bounds on the given set: hit@3 not below the plain rule's, at most
1.0 wrong bodies a prompt, a body on at most 2 of 12 negatives. Takes about half a minute.
"""

import math
import random
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from statistics import mean

import msgspec

from memd import tokens
from memd.focus.evidence import RULE, RULES, Rule

from .figures import HEAD, Figures, Results, figures, results
from .places import GIVEN, INVENTED, Case, Place, cases, places

LEAST = (0.0, 0.15, 0.25, 0.35, 0.4, 0.45, 0.5, 0.6, 0.8, 1.0)
CLOSE = (0.4, 0.45, 0.5, 0.55, 0.6)
HOOK = (0.0, 0.5, 1.0)
LONG = 20_000  # characters of the paste before a question
SHORT = 40  # tokens; a longer prompt is no question


class Bench:
    """Both sets, and the results of any rule on them."""

    def __init__(self) -> None:
        self.given = cases(GIVEN)
        self.invented = cases(INVENTED)
        self.places: dict[str, Place] = {**places(GIVEN), **places(INVENTED)}
        self.all = [*self.given, *self.invented]

    def run(self, rule: Rule | None, some: Sequence[Case] | None = None, ranker: str = "plain") -> Results:
        """The bodies a rule gives by one of the rankers; None is the plain rule."""
        some = self.all if some is None else some
        return results(some, lambda case: self.places[case.store].bodied(case.prompt, rule, ranker))

    def of(self, store: str) -> list[Case]:
        """The cases of one store."""
        return [case for case in self.all if case.store == store]


def say(line: str = "") -> None:
    """One line of the tables."""
    sys.stdout.write(f"{line}\n")


def main() -> int:
    """Print the tables; 1 when a bound does not hold."""
    bench = Bench()
    plain, chosen = bench.run(None), bench.run(RULE)
    both(bench, plain, chosen)
    missed(bench.given, plain, chosen)
    curve(bench)
    parts(bench)
    left_out(bench)
    after_a_paste(bench)
    by_rich(bench)
    return verdict(figures(bench.given, plain), figures(bench.given, chosen))


def both(bench: Bench, plain: Results, chosen: Results) -> None:
    """The two rules, store by store."""
    say(f"{'plain rule':<28}{HEAD}")
    for name, some in groups(bench):
        say(f"{name:<28}{figures(some, plain)}")
    say(f"\n{'chosen rule':<28}{HEAD}")
    for name, some in groups(bench):
        say(f"{name:<28}{figures(some, chosen)}")


def by_rich(bench: Bench) -> None:
    """The same by the ranker `rich`: both rules store by store, and the trade-off on what is not held out."""
    for title, rule in (("plain rule, by rich", None), ("chosen rule, by rich", RULES["rich"])):
        got = bench.run(rule, ranker="rich")
        say(f"\n{title:<28}{HEAD}")
        for name, some in groups(bench):
            say(f"{name:<28}{figures(some, got)}")
    say("\ntrade-off by rich: given, then kestrel and shupu: hits, wrong bodies, negatives with a body")
    known = [*bench.given, *bench.of("kestrel"), *bench.of("shupu")]
    for least, close in product((0.35, 0.4, 0.45, 0.5, 0.55), (0.5, 0.55, 0.6, 0.65)):
        rule = msgspec.structs.replace(RULES["rich"], least=least, close=close)
        got = bench.run(rule, known, "rich")
        told = [figures(some, got) for some in (bench.given, known[len(bench.given) :])]
        mark = "*" if rule == RULES["rich"] else " "
        say(f"{least:>6} {close:>5}{mark}" + "".join(f"{one.hits:>8} {one.wrong:>3} {one.bodied:>2}" for one in told))


def groups(bench: Bench) -> Iterator[tuple[str, list[Case]]]:
    """The given set's stores and the whole of it, then ours."""
    for label, some in (("given", bench.given), ("invented", bench.invented)):
        for store in dict.fromkeys(case.store for case in some):
            yield f"{label}: {store}", bench.of(store)
        yield f"{label}: all", some


def missed(given: Sequence[Case], plain: Results, chosen: Results) -> None:
    """Which cases of the given set differ."""

    def without(got: Results) -> set[str]:
        return {case.id for case in given if case.relevant and not set(case.relevant) & set(got[case.id])}

    bodied = [case.id for case in given if not case.relevant and chosen[case.id]]
    lost, won = sorted(without(chosen) - without(plain)), sorted(without(plain) - without(chosen))
    say(f"\ngiven set: lost {' '.join(lost) or 'none'}; won {' '.join(won) or 'none'}; bodied {' '.join(bodied)}")


def curve(bench: Bench) -> None:
    """The whole trade-off on the given set: evidence down, closeness across; * is the point chosen."""
    say("\ntrade-off on the given set: hits/36, wrong bodies a prompt, negatives of 12 with a body")
    say("least \\ close" + "".join(f"{close:>17}" for close in CLOSE))
    for least in LEAST:
        cells = []
        for close in CLOSE:
            rule = msgspec.structs.replace(RULE, least=least, close=close)
            got = figures(bench.given, bench.run(rule, bench.given))
            mark = "*" if rule == RULE else " "
            cells.append(f"{got.hits:>6} {got.wrong_rate:>5.2f} {got.bodied:>3}{mark}")
        say(f"{least:>13}" + " ".join(cells))


def parts(bench: Bench) -> None:
    """The rule without one of its parts, on each set."""
    say(f"\n{'without a part':<28}{HEAD}")
    without = {
        "whole": RULE,
        "no bound on evidence": msgspec.structs.replace(RULE, least=0.0),
        "no bound on closeness": msgspec.structs.replace(RULE, close=0.0),
        "no more for the hook": msgspec.structs.replace(RULE, hook=0.0),
        "no allowance for chance": msgspec.structs.replace(RULE, chance=0.0),
    }
    for name, rule in without.items():
        got = bench.run(rule)
        for label, some in (("given", bench.given), ("invented", bench.invented)):
            say(f"{name + ', ' + label:<28.28}{figures(some, got)}")


def left_out(bench: Bench) -> None:
    """Each store with constants chosen on the other five: within the bounds, most hits, the middle of those."""
    say(f"\n{'one store left out':<28}{HEAD}   plain hits   least close hook chosen on the rest")
    grid = [Rule(least, close, hook) for least, close, hook in product(LEAST[1:], CLOSE, HOOK)]
    ran = [(rule, bench.run(rule)) for rule in grid]
    plain = bench.run(None)
    total, total_plain = Figures(), Figures()
    for store in bench.places:
        rest = [case for case in bench.all if case.store != store]
        rule, got = middle([(rule, got) for rule, got in ran if figures(rest, got).is_within_bounds] or ran, rest)
        mine, its = figures(bench.of(store), got), figures(bench.of(store), plain)
        total, total_plain = total.plus(mine), total_plain.plus(its)
        say(f"{store:<28}{mine} {its.hits:>12} {rule.least:>7} {rule.close:>5} {rule.hook:>4}")
    say(f"{'all':<28}{total} {total_plain.hits:>12}")


def middle(ran: Sequence[tuple[Rule, Results]], some: Sequence[Case]) -> tuple[Rule, Results]:
    """Of the rules with most hits the one in the middle of them."""
    most = max(figures(some, got).hits for _, got in ran)
    best = [(rule, got) for rule, got in ran if figures(some, got).hits == most]
    centre = [mean(values) for values in zip(*(coordinates(rule) for rule, _ in best), strict=True)]

    def distance(rule: Rule) -> float:
        return math.dist(coordinates(rule), centre)

    return min(best, key=lambda pair: distance(pair[0]))


def coordinates(rule: Rule) -> tuple[float, ...]:
    """Its constants, each in steps of its grid."""
    return rule.least / 0.1, rule.close / 0.05, rule.hook / 0.5


def after_a_paste(bench: Bench) -> None:
    """Short questions put after 20,000 characters of a log, and of other stores' notes."""
    say(f"\n{'after 20,000 characters':<28}{HEAD}")
    short = [case for case in bench.all if len(tokens.tokenize(case.prompt)) <= SHORT]
    pastes = {store: {"a log": log(), "prose": prose(bench, store)} for store in bench.places}
    for label, some in (("given", bench.given), ("invented", bench.invented)):
        asked = [case for case in some if case in short]
        say(f"{label + ', alone':<28}{figures(asked, bench.run(RULE, asked))}")
        for kind in ("a log", "prose"):
            for name, rule in (("", RULE), (", plain rule", None)):
                long = [
                    msgspec.structs.replace(case, prompt=f"{pastes[case.store][kind]}\n\n{case.prompt}")
                    for case in asked
                ]
                say(f"{label + ', ' + kind + name:<28}{figures(long, bench.run(rule, long))}")


def log() -> str:
    """A log of a service nobody has."""
    dice = random.Random(7)
    parts = ("auth", "cart", "mail", "search", "sync", "push", "queue", "render", "cache", "gateway", "invoice")
    lines: list[str] = []
    while sum(len(line) for line in lines) < LONG:
        day, hour, minute = dice.randint(1, 28), dice.randint(0, 23), dice.randint(0, 59)
        lines.append(
            f"2031-04-{day:02} {hour:02}:{minute:02}:11.{dice.randint(0, 999):03} INFO [{dice.choice(parts)}]"
            f" request {dice.getrandbits(24):06x} finished in {dice.randint(1, 900)} ms,"
            f" {dice.randint(0, 500)} rows, status={dice.choice([200, 201, 404, 500])}"
        )
    return "\n".join(lines)[:LONG]


def prose(bench: Bench, store: str) -> str:
    """The notes of the other stores."""
    bodies = [body for name, place in bench.places.items() if name != store for body in place.bodies.values()]
    random.Random(7).shuffle(bodies)
    return "\n\n".join(bodies)[:LONG]


def verdict(plain: Figures, chosen: Figures) -> int:
    """The bounds, and whether they hold."""
    holds = chosen.hits >= plain.hits and chosen.is_within_bounds
    say(
        f"\ngiven set: hit@3 {chosen.hits}/{chosen.positives} (at least {plain.hits}), wrong {chosen.wrong_rate:.2f}"
        f" a prompt (at most 1.0), negatives with a body {chosen.bodied}/{chosen.negatives} (at most 2):"
        f" {'within the bounds' if holds else 'NOT WITHIN THE BOUNDS'}"
    )
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
