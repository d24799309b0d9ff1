"""`heedful demo --once`: a simulated person teaches a loop over HTTP, and the command prints what was learned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import rich.table

from heedful import Loop
from heedful.cli.console import console, new_table, notes, print_json, say
from heedful.cli.demo_loops import CARS, ORIGINS, WORDS, Person, benefit, cars, cars_loop
from heedful.client import Client
from heedful.core.wording import share
from heedful.results.report import Report
from heedful.server.main import served

LESSONS = 150
"""The number of lists that are answered. With 60, one weight sometimes gets the wrong sign, depending on the seed."""
HAND = 8
"""The number of cars in a list."""
CONTROL = 0.25
"""The share of control lists, which are not in the learned order: more than usual, so that 150 lists say something."""
MISTAKES = 1 / 6
"""The share of lists in which the person picks a random car."""
NEXT = """What to try next
  heedful demo
      teach it yourself, on a page
  heedful init things YOUR.csv
      a loop of your own things, and then heedful serve
  heedful simulate catalogue YOUR.csv --user better --learner perceptron --people 50
      many simulated people with tastes in your own things
  heedful learners
      the learners there are, and how to name your own"""


class DemoResult(NamedTuple):
    """The result of `heedful demo --once`: the hidden taste of the simulated person, and what was learned of it."""

    hidden: dict[str, float]
    """the person's true weight of each feature, scaled by `comparable`"""
    learned: dict[str, float]
    """the learned weight of each feature, scaled in the same way"""
    pairs_alike: float
    """the share of pairs of cars that the learned weights order as the person would"""
    report: Report
    """what the loop measured of itself, from its log"""
    helped: str = ""
    """whether lists in the learned order do better, in sentences"""


def run(as_json: bool) -> None:
    """Run `heedful demo --once` in a temporary folder and print the result, as JSON with `as_json`."""
    with TemporaryDirectory(prefix="heedful-demo-", ignore_cleanup_errors=True) as folder:
        result = _teach(Path(folder))
    if as_json:
        print_json(_as_json(result))
    else:
        _show(result)


def _teach(folder: Path) -> DemoResult:
    rows = cars()
    cars_loop(folder, rows, control=CONTROL)
    person, rng = Person.of(rows, seed=0), np.random.default_rng(0)
    names = list(person.worth)
    with served(folder) as address, Client(address, timeout=10.0) as client:
        loop = client.loop(CARS)
        with notes().status(f"A simulated person gives {LESSONS} lessons"):
            for i in range(1, LESSONS + 1):
                offered = [names[j] for j in rng.choice(len(names), HAND, replace=False).tolist()]
                decision = loop.decide(offered, id=f"list-{i}")
                wish = person.wish(offered) if rng.random() >= MISTAKES else offered[int(rng.integers(HAND))]
                loop.feedback(decision, id=f"lesson-{i}", better=[wish])
        weights, report = loop.weights(), loop.report()
    with Loop.open(folder / f"{CARS}.heedful") as reopened:
        helped = benefit(reopened)
    learned = {name: weights[name] for name in person.features}
    return DemoResult(comparable(person.taste), comparable(learned), person.alike(weights), report, helped)


def comparable(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights by feature that order all cars as `weights` do, scaled so that two sets of weights can be
    compared.

    They have length 1, and the weights of the three origins have mean 0: every car has exactly one origin, so adding
    the same number to all three weights changes no order.
    """
    origins = [weight for name, weight in weights.items() if name in ORIGINS]
    shift = sum(origins) / max(1, len(origins))
    return normal({name: weight - shift * (name in ORIGINS) for name, weight in weights.items()})


def normal(weights: Mapping[str, float]) -> dict[str, float]:
    """Return `weights` scaled to Euclidean length 1; a copy if all of them are 0."""
    length = math.hypot(*weights.values())
    return {name: weight / length for name, weight in weights.items()} if length > 0 else dict(weights)


# ---------------------------------------------------------------------------- in words


def phrase(feature: str, weight: float) -> str:
    """Return what a person likes who gives `feature` this `weight`, in words: "heavier" if it is above 0, else
    "lighter"."""
    return WORDS[feature][0 if weight > 0 else 1]


def _as_json(result: DemoResult) -> dict[str, object]:
    weights = [{"feature": name, "hidden": w, "learned": result.learned[name]} for name, w in result.hidden.items()]
    return {
        "lessons": LESSONS,
        "hand": HAND,
        "weights": weights,
        "pairs_alike": result.pairs_alike,
        "report": result.report,
    }


def _show(result: DemoResult) -> None:
    screen = console()
    screen.print(
        f"A simulated person with a hidden taste saw {HAND} of 406 cars, {LESSONS} times, and named each time the car "
        "that they would rather have; one time in six they named any. Each answer went to heedful's server over HTTP "
        "and was learned before the next list.\n"
    )
    screen.print(_taste(result))
    screen.print(f"{_around(result)}\n", markup=False)
    alike = (
        f"{share(result.pairs_alike)} of all pairs of cars are in the order of the hidden taste; guessing gets 50 %."
    )
    screen.print(f"{alike}\n", markup=False)
    screen.print(f"Does learning help? {result.helped}\n")
    say(NEXT)


def _taste(result: DemoResult) -> rich.table.Table:
    table = new_table("The hidden taste, and what was learned")
    for name in ("hidden taste", "learned"):
        table.add_column(name, no_wrap=True)
    around = other_way(result)
    for name, hidden in sorted(result.hidden.items(), key=lambda weight: -abs(weight[1])):
        learned = result.learned[name]
        cell = f"[red]{_cell(name, learned)} opposite[/]" if name in around else f"[green]{_cell(name, learned)}[/]"
        table.add_row(_cell(name, hidden), cell)
    return table


def other_way(result: DemoResult) -> list[str]:
    """Return the features whose learned weight has the wrong sign, the greatest hidden weight first."""
    wrong = [name for name, hidden in result.hidden.items() if hidden * result.learned[name] < 0]
    return sorted(wrong, key=lambda name: -abs(result.hidden[name]))


def _around(result: DemoResult) -> str:
    """Return a sentence that names the features learned with the wrong sign, and says how that can happen."""
    why = "Weight, horsepower and miles per gallon go together in cars, so one can stand in for another"
    wrong = [phrase(name, result.hidden[name]) for name in other_way(result)]
    if not wrong:
        return f"Nothing came out the other way round, only stronger or weaker. {why}."
    phrases = f"{', '.join(wrong[:-1])} and {wrong[-1]}" if len(wrong) > 1 else wrong[0]
    return f"The other way round came out: {phrases}. {why}; {LESSONS} lessons did not tell them apart here."


def _cell(feature: str, weight: float) -> str:
    return f"{phrase(feature, weight):<23}{'+' * max(1, round(10 * abs(weight))):<7}"
