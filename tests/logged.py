"""Logs of three items, shown to people whose tastes are known, and tables of single items with propensities; and what
any evaluation of them should say.

A person looks at place i of a list with chance LOOKS[i], independently of the other places, and clicks the item there
if they like it; each person likes each item with a chance of their own, by `likes`. Every true value is a sum over all
lists and clicks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heedful import Loop
from heedful.io.bandit_log import evaluate_table
from heedful.results.evaluation import Evaluation
from loops import rows, small_loop
from written import placed

ALPHA = 0.05
ITEMS = ("i0", "i1", "i2")
LISTS = tuple(itertools.permutations(range(3)))
LOOKS = (0.9, 0.6, 0.4)
LIKED = np.array([[0.7, 0.2, 0.4], [0.1, 0.5, 0.6]])
"""The chance that somebody of either sort likes each item."""
SWAP, TEMPERATURE = 0.25, 20.0
PEOPLE, LOOKS_AT = 250, (100, 200, 300)
FIXED = f"{Path(__file__).parent / 'fixed.py'}:Fixed"
F0 = [row["f0"] for row in rows(3, 4)]
UP, DOWN = (f"{FIXED}:tilt={tilt}" for tilt in (1000, -1000))
"""Learners that always rank alike: by the first feature, and the other way round."""
RISING = tuple(int(j) for j in np.argsort(F0))
FALLING = RISING[::-1]


class Log(NamedTuple):
    """How a log is made: by which learner and settings, how many sorts of people there are (1, where pairs are
    compared: their value is a mean over people who have pairs to compare, and that depends on their tastes), and which
    chance of each of six lists is claimed, 0 if the loop itself shows them."""

    learner: str
    settings: Mapping[str, Any]
    sorts: int = 2
    claimed: float = 0.0


LOGS: Mapping[str, Log] = {
    "uniform": Log(UP, {"control": 0.0}, claimed=1.0 / 6.0),
    "posterior": Log(f"posterior:prior=1e-50,swap={SWAP}", {"control": 0.0}, sorts=1),
    "Plackett-Luce": Log(UP, {"control": 0.0, "sampled": 1.0, "temperature": TEMPERATURE}, sorts=1),
    "a learning loop": Log("posterior", {"control": 0.05, "sampled": 0.9, "temperature": TEMPERATURE}),
    "deterministic": Log(UP, {"control": 0.0}),
    "chances said too small": Log(UP, {"control": 0.0}, claimed=1.0 / 24.0),
    "chances said too large": Log(UP, {"control": 0.0}, claimed=1.0 / 2.0),
}
SOUND = ("uniform", "posterior", "Plackett-Luce", "a learning loop")


# ---------------------------------------------------------------------------- what is true


def answers(order: tuple[int, ...], sorts: int) -> dict[tuple[int, ...], float]:
    """The chance of each set of clicked places of a list, over all sorts of people."""
    found: dict[tuple[int, ...], float] = {}
    for clicks in itertools.product((0, 1), repeat=3):
        places = tuple(i for i in range(3) if clicks[i])
        found[places] = float(
            np.mean([
                math.prod(
                    LOOKS[i] * likes[j] if clicks[i] else 1.0 - LOOKS[i] * likes[j] for i, j in enumerate(order)
                )
                for likes in LIKED[:sorts]
            ])
        )  # fmt: skip
    return found


def list_value(order: tuple[int, ...], sorts: int) -> float:
    """The mean of 1 / the place of the first click, 0 without one."""
    return sum(p / (1 + places[0]) for places, p in answers(order, sorts).items() if places)


def place_value(order: tuple[int, ...], sorts: int) -> float:
    """The share of the three places that are clicked."""
    return sum(p * len(places) for places, p in answers(order, sorts).items()) / 3.0


def lists_of(name: str) -> list[tuple[tuple[int, ...], int, float, float]]:
    """(list, upper place of a pair that is shown in either order at random, its weight 1 / (2 P), the chance of all
    that) for each way in which a log comes to have such a pair."""
    found = []
    if name == "Plackett-Luce":
        weights = [(r + 1.0) ** (-1.0 / TEMPERATURE) for r in range(3)]
        chance = {
            ranks: weights[ranks[0]] / sum(weights) * weights[ranks[1]] / (sum(weights) - weights[ranks[0]])
            for ranks in LISTS
        }
        for ranks, p in chance.items():
            other = chance[(ranks[1], ranks[0], ranks[2])]
            found.append((tuple(FALLING[r] for r in ranks), 0, 0.5 * (p + other) / p, p))
    if name == "posterior":
        for start, swapped in itertools.product((0, 1), (False, True)):
            order = list(range(3))  # as the caller has them
            if swapped:
                order[start], order[start + 1] = order[start + 1], order[start]
            p = SWAP if swapped else 1.0 - SWAP
            found.append((tuple(order), start, 0.5 / p, 0.5 * p))
    return found


def pair_value(name: str, ranking: tuple[int, ...]) -> float:
    """The share of weighted pairs with one click that `ranking` has in the order of the click."""
    right = whole = 0.0
    for order, place, weight, p in lists_of(name):
        for clicked, chance in answers(order, LOGS[name].sorts).items():
            if (place in clicked) != (place + 1 in clicked):
                upper, lower = order[place], order[place + 1]
                won = (ranking.index(upper) < ranking.index(lower)) == (place in clicked)
                right, whole = right + p * chance * weight * won, whole + p * chance * weight
    return right / whole


def truths(name: str) -> dict[tuple[str, str], float]:
    """What is true of DOWN, by (measure, field of a value), as far as the log has to tell."""
    if name not in SOUND:
        return {}
    sorts = LOGS[name].sorts
    low, high = list_value(RISING, sorts), list_value(FALLING, sorts)
    found = {("list value", "value"): low}
    if name in ("uniform", "Plackett-Luce"):
        found["list value", "difference"] = low - high
    if name in ("Plackett-Luce", "a learning loop"):
        found |= {
            (measure, "value"): place_value(RISING, sorts) for measure in ("item-position value", "cascade value")
        }
    if name in ("Plackett-Luce", "posterior"):
        found["swapped pairs", "value"] = pair_value(name, RISING)
        other = FALLING if name == "Plackett-Luce" else (0, 1, 2)
        found["swapped pairs", "difference"] = found["swapped pairs", "value"] - pair_value(name, other)
    return found


# ---------------------------------------------------------------------------- logs


def live(loop: Loop, name: str, rng: np.random.Generator, begin: int, end: int, tastes: Any) -> None:
    """Show lists number `begin` to `end` to people, who answer each."""
    claimed, prior = LOGS[name].claimed, [2.0, 1.0, 0.0] if name == "posterior" else None
    for t in range(begin, end):
        who = int(rng.integers(PEOPLE))
        if claimed:
            shown = [ITEMS[j] for j in LISTS[int(rng.integers(len(LISTS)))]]
            loop.record(ITEMS, shown, id=f"d{t}", person=f"p{who}", probability=claimed)
        else:
            shown = list(loop.decide(ITEMS, id=f"d{t}", person=f"p{who}", prior=prior).shown)
        likes = LIKED[tastes[who]]
        seen = rng.random(3) < LOOKS
        clicks = [each for i, each in enumerate(shown) if seen[i] and rng.random() < likes[int(each[1])]]
        loop.feedback(f"d{t}", id=f"e{t}", clicks=clicks)


class Looked(NamedTuple):
    """What was found in one log, looked at several times."""

    missed: dict[tuple[str, str], bool]
    """for each true value that the log told at any look, whether any interval did not hold it"""
    last: Evaluation
    """the evaluation at the last look"""


def look(name: str, seed: int, folder: Path, looks: tuple[int, ...] = LOOKS_AT) -> Looked:
    """Make a log of this name in `folder`, and evaluate DOWN on it after each number of lists in `looks`."""
    rng, log, true = np.random.default_rng([seed, list(LOGS).index(name)]), LOGS[name], truths(name)
    tastes, missed, made = rng.integers(log.sorts, size=PEOPLE), dict[tuple[str, str], bool](), 0
    settings = {"k": 3, "durable": "feedback", "shrink": 0.0, "seed": seed} | log.settings
    with small_loop(folder, log.learner, n_items=3, **settings) as loop:
        for until in looks:
            live(loop, name, rng, made, until, tastes)
            made = until
            found = loop.evaluate(DOWN, alpha=ALPHA)
            for value in found.learners[1].values:
                for (measure, field), truth in true.items():
                    ends = (
                        (value.low, value.high) if field == "value" else (value.difference_low, value.difference_high)
                    )
                    if measure == value.measure and ends[0] is not None and ends[1] is not None:
                        wrong = not ends[0] <= truth <= ends[1]
                        missed[measure, field] = missed.get((measure, field), False) or wrong
    return Looked(missed, found)


# ---------------------------------------------------------------------------- tables of single items


class TableLog(NamedTuple):
    """A table of single items, drawn by `shown`, the probability of each of its actions, while `claimed` are those that
    it states; what the target would show; and what a row earns."""

    shown: tuple[float, ...]
    target: tuple[float, ...]
    rewards: tuple[Mapping[float, float], ...]
    """for each action the probability of each reward above or below 0; 0 is the rest"""
    rows: int = 600
    claimed: tuple[float, ...] = ()
    """() if it states the probabilities as they are"""
    options: Mapping[str, float] = {}
    """what the evaluation is told besides the table"""

    @property
    def truth(self) -> float:
        """the mean reward of the target"""
        return sum(p * sum(q * r for r, q in each.items()) for p, each in zip(self.target, self.rewards))

    def draw(self, rng: np.random.Generator) -> list[dict[str, object]]:
        """Return the rows of one such table; the probability of its action under the target is in "target"."""
        actions = rng.choice(len(self.shown), self.rows, p=self.shown)
        claimed, found = self.claimed or self.shown, []
        rewards = [[*each, 0.0] for each in self.rewards]
        chances = [np.cumsum([*each.values()]) for each in self.rewards]
        for a, u in zip(actions.tolist(), rng.random(self.rows).tolist()):
            reward = rewards[a][int(np.searchsorted(chances[a], u, side="right"))]
            found.append({
                "action": "xyz"[a], "probability": claimed[a], "reward": reward, "target": self.target[a],
            })  # fmt: skip
        return found


CLICKS = ({1.0: 0.05}, {1.0: 0.05}, {1.0: 0.85})
"""What three actions earn, of which the third is the best by far."""
RARE, RARER = (0.4995, 0.4995, 0.001), (0.4999, 0.4999, 0.0002)
SOMETIMES = (0.475, 0.475, 0.05)
"""A target that takes the third action far more often than the log does."""
BUYERS = ({5000.0: 0.0005, 21.0: 0.0495},) * 2
"""What two actions earn: one buyer in a hundred pays 5,000, the others pay 21."""
LOSSES = ({-5000.0: 0.0005, 21.0: 0.0495},) * 2
RATES = ({1.0: 0.1}, {1.0: 0.3})

TABLES: Mapping[str, TableLog] = {
    "rare action .001": TableLog(RARE, SOMETIMES, CLICKS),
    "rare action .001, least probability": TableLog(RARE, SOMETIMES, CLICKS, options={"least_probability": 0.001}),
    "rare action .0002": TableLog(RARER, SOMETIMES, CLICKS),
    "rare action .0002, least probability": TableLog(RARER, SOMETIMES, CLICKS, options={"least_probability": 0.0002}),
    "rare buyers": TableLog((0.5, 0.5), (1.0, 0.0), BUYERS, 1000),
    "rare buyers, least reward": TableLog((0.5, 0.5), (1.0, 0.0), BUYERS, 1000, options={"least_reward": 0.0}),
    "rare buyers, both": TableLog(
        (0.5, 0.5), (1.0, 0.0), BUYERS, 1000, options={"least_reward": 0.0, "most_reward": 5000.0}
    ),
    "rare losses": TableLog((0.5, 0.5), (1.0, 0.0), LOSSES, 1000),
    "rare losses, most reward": TableLog((0.5, 0.5), (1.0, 0.0), LOSSES, 1000, options={"most_reward": 21.0}),
    "rare losses, both": TableLog(
        (0.5, 0.5), (1.0, 0.0), LOSSES, 1000, options={"least_reward": -5000.0, "most_reward": 21.0}
    ),
    "said .5, were .8 and .2": TableLog((0.8, 0.2), (0.0, 1.0), RATES, claimed=(0.5, 0.5)),
    "said .5, were .6 and .4": TableLog((0.6, 0.4), (0.0, 1.0), RATES, 2000, claimed=(0.5, 0.5)),
    "said .5, were .8 and .2, target by half": TableLog((0.8, 0.2), (0.5, 0.5), RATES, claimed=(0.5, 0.5)),
    "said .25, were .5": TableLog((0.5, 0.5), (0.0, 1.0), RATES, claimed=(0.25, 0.25)),
    "said .8, were .5": TableLog((0.5, 0.5), (0.0, 1.0), RATES, claimed=(0.8, 0.8)),
    "said .55, were .5": TableLog((0.5, 0.5), (0.0, 1.0), RATES, 2000, claimed=(0.55, 0.55)),
    "said .55, were .5, least probability": TableLog(
        (0.5, 0.5), (0.0, 1.0), RATES, 2000, claimed=(0.55, 0.55), options={"least_probability": 0.5}
    ),
    "sound, halves": TableLog((0.5, 0.5), (0.0, 1.0), RATES),
    "sound, halves, least probability": TableLog((0.5, 0.5), (0.0, 1.0), RATES, options={"least_probability": 0.5}),
    "sound, one in ten": TableLog((0.9, 0.1), (0.0, 1.0), RATES),
}


class TableLooked(NamedTuple):
    """What an evaluation said of the target in one table."""

    refused: str
    """why the table does not determine its value; "" if it does"""
    told: tuple[bool, bool]
    """whether the interval has a lower end, and an upper one"""
    missed: tuple[bool, bool]
    """whether the truth is below the lower end, and above the upper one"""
    verdict: str
    width: float
    """how long the interval is, if it has both ends"""


def look_at_table(name: str, seed: Sequence[int]) -> TableLooked:
    """Make a table of this name and evaluate the target on it."""
    log = TABLES[name]
    value = evaluate_table(
        placed(log.draw(np.random.default_rng(seed))), targets=["target"], alpha=ALPHA, **log.options
    )
    found = value.learners[1].values[0]
    low, high = (-math.inf, math.inf) if found.low is None or found.high is None else (found.low, found.high)
    return TableLooked(
        found.refused, (math.isfinite(low), math.isfinite(high)), (low > log.truth, high < log.truth),
        found.verdict, high - low,
    )  # fmt: skip
