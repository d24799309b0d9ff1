"""Grades: a stream of instances with true ranks from 1 to 5, PRank against ordinal regressions.

Every entrant predicts the rank of each instance before it is told. mord's LogisticAT, which learns from all instances
at once, is fitted again whenever there are 10 % more of them, and predicts by its latest fit (rank 3 before the first,
at 100). River
has no ordinal model; its two rows are what its documentation offers for one: a linear regression whose prediction is
rounded to a rank, and a logistic regression for each threshold r, which predicts P(rank > r) (Frank & Hall): the rank
is 1 + the number of these above 1/2.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from peers.job import Clock, Entrant, Job, Memory, answer

from heedful import Session, trace
from heedful.core.fold import generators
from heedful.learners.ordinal.ordinal_logistic import OrdinalLogistic
from heedful.learners.ordinal.perceptrons import ConstantRank, PRank
from heedful.worlds.instances import InstanceStream, synthetic_ordinal

Array = Any
TITLE = "Grades"
STREAM = "50 features, 5 ranks, equally likely, noise 0.3"
RANKS, FEATURES, NOISE = 5, 50, 0.3
ROUNDS, QUICK, TUNING = 20_000, 2_000, 0.25
QUALITY = "error"


def stream(seed: int, rounds: int, data: str = "") -> InstanceStream:
    """The instances, in the order in which they come (which a run shuffles, from its seed)."""
    return synthetic_ordinal(rounds, FEATURES, RANKS, noise=NOISE, seed=seed)[0]


class Heedful:
    """A session: its checks of input are inside the clock."""

    def __init__(self, learner: Any) -> None:
        self.session = Session(learner)

    def prepare(self, x: Array) -> Any:
        return x

    def predict(self, x: Array) -> int:
        return int(self.session.propose(x))

    def learn(self, x: Array, rank: int) -> None:
        self.session.learn(rank)


class Rounded:
    """River's LinearRegression, its prediction rounded to the nearest rank. Dictionaries are made before the clock."""

    def __init__(self, rate: float) -> None:
        from river import linear_model, optim

        self.model = linear_model.LinearRegression(optimizer=optim.SGD(rate), intercept_init=3.0)

    def prepare(self, x: Array) -> Any:
        return dict(enumerate(x.tolist()))

    def predict(self, x: Any) -> int:
        return min(max(round(self.model.predict_one(x)), 1), RANKS)

    def learn(self, x: Any, rank: int) -> None:
        self.model.learn_one(x, rank)


class Thresholds(Rounded):
    """Four of River's LogisticRegression, one for each "is the rank above r"."""

    def __init__(self, rate: float) -> None:
        from river import linear_model, optim

        self.models = [linear_model.LogisticRegression(optimizer=optim.AdaGrad(rate)) for _ in range(RANKS - 1)]

    def predict(self, x: Any) -> int:
        return 1 + sum(model.predict_proba_one(x).get(True, 0.0) > 0.5 for model in self.models)

    def learn(self, x: Any, rank: int) -> None:
        for r, model in enumerate(self.models, 1):
            model.learn_one(x, rank > r)


class Refitted:
    """mord's LogisticAT on all instances so far, fitted again whenever there are 10 % more."""

    def __init__(self, rounds: int, alpha: float) -> None:
        self.alpha, self.due, self.t, self.model = alpha, 100, 0, None
        self.X, self.ranks = np.empty((rounds, FEATURES)), np.empty(rounds, np.int64)
        from mord import LogisticAT

        self.cls = LogisticAT

    def prepare(self, x: Array) -> Any:
        return x

    def predict(self, x: Array) -> int:
        return int(self.model.predict(x[None])[0]) if self.model else 3

    def learn(self, x: Array, rank: int) -> None:
        self.X[self.t], self.ranks[self.t] = x, rank
        self.t += 1
        if self.t == self.due:
            self.due = -(-11 * self.t // 10)
            self.model = self.cls(alpha=self.alpha).fit(self.X[: self.t], self.ranks[: self.t])


def rates(*given: float) -> tuple[dict[str, Any], ...]:
    """The step sizes that are tried."""
    return tuple({"rate": rate} for rate in given)


ENTRANTS = {
    "heedful, ordinal-logistic": Entrant(
        "heedful", "Session, one at a time", lambda t: Heedful(OrdinalLogistic(FEATURES, RANKS))
    ),
    "heedful, ordinal-logistic, compiled": Entrant(
        "heedful", "trace: the simulation included", lambda t: OrdinalLogistic(FEATURES, RANKS)
    ),
    "heedful, prank": Entrant("heedful", "Session, one at a time", lambda t: Heedful(PRank(FEATURES, RANKS))),
    "mord, LogisticAT refitted": Entrant(
        "mord", "whenever there are 10 % more", Refitted, tuple({"alpha": alpha} for alpha in (0.1, 1.0, 10.0))
    ),
    "River, LinearRegression rounded": Entrant(
        "river", "SGD, learn_one", lambda t, **s: Rounded(**s), rates(0.0003, 0.001, 0.003, 0.01)
    ),
    "River, LogisticRegression a threshold": Entrant(
        "river", "AdaGrad, four models, learn_one", lambda t, **s: Thresholds(**s), rates(0.03, 0.1, 0.3, 1.0)
    ),
    "a constant rank": Entrant("heedful", "constant-rank, Session", lambda t: Heedful(ConstantRank(FEATURES, RANKS))),
}
REFERENCE = "heedful, ordinal-logistic"
COLUMNS = {"error": "ranks off, all rounds", "late": "ranks off, last quarter"}


def measure(job: Job) -> dict[str, float]:
    """Mean rank loss, and processor seconds of predicting and learning."""
    world, entrant, memory, clock = stream(job.seed, job.rounds), ENTRANTS[job.entrant], Memory(), Clock()
    player = entrant.make(job.rounds, **job.setting)
    if job.entrant.endswith("compiled"):
        trace(player, world, 10, job.seed)
        with clock.on():
            loss = trace(player, world, job.rounds, job.seed)
    else:
        order, loss = world.init(generators(job.seed)[0]).order, np.empty(job.rounds)
        for t, i in enumerate(order):
            rank = int(world.ranks[i])
            ready = player.prepare(world.X[i])
            with clock.on():
                predicted = player.predict(ready)
                player.learn(ready, rank)
            loss[t] = abs(predicted - rank)
    return {
        "error": float(loss.mean()), "late": float(loss[-(loss.size // 4) :].mean()),
        "rounds": loss.size, "seconds": clock.seconds, "MB": memory.grown(),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(answer(measure))
