"""Thumbs where most are down, or most are up: judged by the hidden utility of the order that is learned from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from heedful.learners.registry import make_learner
from heedful.loop.interactions.coactive.model import Model
from heedful.loop.model import Context
from heedful.loop.records import DecisionRecord, FeedbackRecord
from heedful.spaces.ranking import Ranking, WithBaseScore
from loops import plain_manifest

FEATURES, CANDIDATES, SHOWN = 6, 12, 5
NONE = np.zeros((0, FEATURES + 1))
DISCOUNTS = 1.0 / np.log2(np.arange(2.0, SHOWN + 2.0))
ROUNDS = 200


class World(NamedTuple):
    """A hidden taste for features that are never negative, as counts and shares of words are."""

    w: Any
    level: float
    """the utility at which half of the thumbs are up"""

    def query(self, rng: np.random.Generator) -> Any:
        x = rng.exponential(size=(CANDIDATES, FEATURES + 1))
        x[:, -1] = 0.0  # the caller gives no score
        return x

    def utility(self, x: Any, order: Any) -> float:
        return float(DISCOUNTS[: len(order)] @ (x[order, :-1] @ self.w) / DISCOUNTS[: len(order)].sum())


def world(seed: int, up: float, alone: bool) -> World:
    """A taste, and the level at which lists (or single items) in the order in which they come are liked this often."""
    rng = np.random.default_rng([seed, 0])
    made = World(rng.standard_normal(FEATURES), 0.0)
    seen = [made.utility(made.query(rng), np.arange(1 if alone else SHOWN)) for _ in range(500)]
    return made._replace(level=float(np.quantile(seen, 1.0 - up)))


def gain(seed: int, spec: str, up: float, alone: bool, people: int = 0) -> tuple[float, float]:
    """(By how much what was learned has more utility than the order in which candidates come; the share of thumbs up
    that order gets.) Half of the thumbs say what they say by chance."""
    told, rng = world(seed, up, alone), np.random.default_rng([seed, 1])
    m = Model(
        make_learner(spec, n_features=FEATURES + 1, space=WithBaseScore(Ranking(SHOWN))),
        plain_manifest(shrink=5.0 * (people > 0)),
    )
    size = 1 if alone else SHOWN
    for i in range(ROUNDS):
        x, person = told.query(rng), f"p{i % people}" if people else None
        order = m.order(m.view(person), x)[:SHOWN]
        by_chance, liked = rng.random() < 0.5, told.utility(x, order[:size]) > told.level
        sign = 1.0 if (rng.random() < up if by_chance else liked) else -1.0
        record = DecisionRecord(shown=tuple(order.tolist()))
        m.teach(
            Context(record, x, person),
            FeedbackRecord("thumb", order[:1].tolist() if alone else [], [sign]),
            NONE,
            i + 1,
        )
    fresh = [told.query(rng) for _ in range(100)]
    person = "p0" if people else None
    learned = [m.order(m.view(person), x)[:size] for x in fresh]
    ups = np.mean([told.utility(x, np.arange(size)) > told.level for x in fresh])
    more = np.mean([told.utility(x, order) - told.utility(x, np.arange(size)) for x, order in zip(fresh, learned)])
    return float(more), float(ups)


@pytest.mark.parametrize("alone", [False, True], ids=["a list", "its first item"])
@pytest.mark.parametrize("up", [0.16, 0.84])
def test_learning_from_thumbs_ends_above_no_learning(up: float, alone: bool) -> None:
    """Four tastes: not one is learned upside down."""
    found = np.array([gain(seed, "posterior", up, alone) for seed in range(4)])
    assert found[:, 1].mean() == pytest.approx(up, abs=0.05)
    assert (found[:, 0] > 0.0).all(), found[:, 0]


def test_somebody_who_only_gives_thumbs_down_turns_nothing_around() -> None:
    """What a person says of everything says nothing of what they prefer: the order stays that of all people."""
    m = Model(
        make_learner("posterior", n_features=FEATURES + 1, space=WithBaseScore(Ranking(SHOWN))),
        plain_manifest(shrink=2.0),
    )
    rng, told = np.random.default_rng(5), world(5, 0.5, False)
    for i in range(200):
        x, person = told.query(rng), "grumbler" if i % 4 == 0 else None
        order = rng.permutation(CANDIDATES)[:SHOWN]
        sign = -1.0 if person or told.utility(x, order) < told.level else 1.0
        record = DecisionRecord(shown=tuple(order.tolist()))
        m.teach(Context(record, x, person), FeedbackRecord("thumb", [], [sign]), NONE, i + 1)
    more = {}
    for person in (None, "grumbler"):
        fresh = [told.query(np.random.default_rng([5, i])) for i in range(100)]
        orders = [m.order(m.view(person), x)[:SHOWN] for x in fresh]
        more[person] = np.mean([told.utility(x, o) - told.utility(x, np.arange(SHOWN)) for x, o in zip(fresh, orders)])
    assert more["grumbler"] > 0.7 * more[None] > 0.0, more
