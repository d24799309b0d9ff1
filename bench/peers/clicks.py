"""Clicks in the log of a search, where people look at place i with probability 1/i: heedful against models refitted.

The site orders 20 documents by a score of its own and shows ten; people click by the grade of what they look at. All
entrants get the same lists and clicks, and then order other queries, whose grades are known. Three truths: one that is
linear in the features; one half of whose variance is three products of two features, as no linear model has it; and the
linear one where queries are apart: all documents of a query have something in common, as laptops cost more than cables,
that is not why one of them is clicked.
heedful learns each list once. The peers are fitted again to all lists so far whenever there are 10 % more.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from peers.job import Clock, Entrant, Job, Memory, answer

from heedful import Ranking
from heedful.learners.coactive.posterior import Posterior
from heedful.spaces.ranking import WithBaseScore
from heedful.worlds.clicks import PositionBiased

Array = Any
TITLE = "Clicks"
STREAM = "20 documents a query, 20 features, ten shown in the site's order, place i looked at with probability 1/i"
FEATURES, DOCUMENTS, SHOWN, HELD, FIRST = 20, 20, 10, 500, 50
ROUNDS, QUICK, TUNING = 3_000, 500, 1.0
QUALITY, SEEDS = "lost", 6
LOOKS, TRUTHS, APART = (50, 500, 3_000), ("linear", "products", "apart"), 3.0
PERSON = PositionBiased(1.0, 0.1, clicks_only=True)


def queries(seed: int, truth: str, part: int, n: int) -> tuple[Array, Array, Array]:
    """n queries, each in the site's order: features (n, DOCUMENTS, FEATURES), grades from 0 to 4, true utilities."""
    w = np.random.default_rng([seed, TRUTHS.index(truth)]).standard_normal(FEATURES)
    rng = np.random.default_rng([seed, TRUTHS.index(truth), part])
    X = rng.standard_normal((n, DOCUMENTS, FEATURES))
    u = X @ w / np.linalg.norm(w)
    if truth == "products":
        u = (u + (X[..., 0] * X[..., 1] + X[..., 2] * X[..., 3] + X[..., 4] * X[..., 5]) / np.sqrt(3.0)) / np.sqrt(2.0)
    grades = np.clip(np.round(2.0 + 1.2 * (u + 0.5 * rng.standard_normal(u.shape))), 0.0, 4.0)
    order = np.argsort(-(0.5 * u + rng.standard_normal(u.shape)), axis=1)
    if truth == "apart":
        X += APART * rng.standard_normal((n, 1, FEATURES))
    return np.take_along_axis(X, order[..., None], 1), *(np.take_along_axis(a, order, 1) for a in (grades, u))  # type: ignore[return-value]


def ndcg(score: Array, grades: Array) -> float:
    """Mean NDCG@10 of queries (n, DOCUMENTS) in the order of the scores."""
    gains, discounts = 2.0**grades - 1.0, 1.0 / np.log2(np.arange(SHOWN) + 2.0)
    order = np.argsort(-score, axis=1, kind="stable")[:, :SHOWN]
    best = -np.sort(-gains, axis=1)[:, :SHOWN] @ discounts
    return float(np.mean(np.take_along_axis(gains, order, 1) @ discounts / best))


# ---------------------------------------------------------------------------- entrants: learn, score


class Heedful:
    """The learner of a loop into which a log is imported, a list at a time; with `products` of each two features."""

    def __init__(self, products: bool = False) -> None:
        self.i, self.j = np.triu_indices(FEATURES if products else 0)
        space = WithBaseScore(Ranking(SHOWN))
        n = FEATURES + self.i.size + 1
        self.learner = Posterior(n, space, swap=0.0, products=self.i.size)
        self.state = self.learner.init(np.random.default_rng(0))

    def features(self, X: Array) -> Array:
        """As a loop has them: the last is the caller's score, which is not given."""
        return np.concatenate([X, X[..., self.i] * X[..., self.j], np.zeros((*X.shape[:-1], 1))], axis=-1)

    def learn(self, x: Array, clicked: Array) -> None:
        self.state = self.learner.learn(self.state, self.features(x), np.arange(SHOWN), clicked, True, 1.0)

    def score(self, X: Array) -> Array:
        return self.features(X) @ self.learner.weights(self.state)


class Refitted:
    """A model of all lists so far: from FIRST on, fitted again whenever there are 10 % more, and at each look."""

    def __init__(self) -> None:
        self.lists: list[Array] = []
        self.clicks: list[Array] = []
        self.due = FIRST

    def learn(self, x: Array, clicked: Array) -> None:
        self.lists.append(x[:SHOWN])
        self.clicks.append(np.isin(np.arange(SHOWN), clicked).astype(int))
        n = len(self.lists)
        if n == self.due or n in LOOKS:
            self.due = max(self.due, -(-11 * n // 10))
            self.fit(np.concatenate(self.lists), np.concatenate(self.clicks), np.tile(np.arange(SHOWN), n))

    def fit(self, X: Array, clicks: Array, places: Array) -> None:
        raise NotImplementedError


class WithPlace(Refitted):
    """scikit-learn's logistic regression of a click on the features and the place; the features alone rank."""

    def __init__(self, C: float) -> None:
        super().__init__()
        from sklearn.linear_model import LogisticRegression

        self.model = LogisticRegression(C=C, max_iter=1000)

    def fit(self, X: Array, clicks: Array, places: Array) -> None:
        self.model.fit(np.column_stack([X, np.eye(SHOWN)[places]]), clicks)

    def score(self, X: Array) -> Array:
        return X @ self.model.coef_[0, :FEATURES]


class LambdaRank(Refitted):
    """LightGBM's lambdarank on clicks; with `position` it estimates the bias of each place, too."""

    def __init__(self, position: bool, trees: int, leaves: int) -> None:
        super().__init__()
        import lightgbm

        self.lightgbm, self.position, self.trees = lightgbm, position, trees
        self.options = {"objective": "lambdarank", "num_leaves": leaves, "num_threads": 1, "verbose": -1}

    def fit(self, X: Array, clicks: Array, places: Array) -> None:
        lists, position = np.full(len(X) // SHOWN, SHOWN), places if self.position else None
        data = self.lightgbm.Dataset(X, clicks, group=lists, position=position)
        self.model = self.lightgbm.train(self.options, data, self.trees)

    def score(self, X: Array) -> Array:
        return self.model.predict(X.reshape(-1, FEATURES), num_threads=1).reshape(X.shape[:2])


BOOSTED = tuple({"trees": trees, "leaves": leaves} for trees in (100, 300) for leaves in (4, 8))
ENTRANTS = {
    "heedful, posterior": Entrant("heedful", "each list once; its defaults", Heedful),
    "heedful, posterior, products": Entrant("heedful", "with `--products`", lambda: Heedful(True)),
    "scikit-learn, LogisticRegression": Entrant(
        "scikit-learn", "features and place; refitted", WithPlace, tuple({"C": C} for C in (0.001, 0.01, 0.1, 1.0))
    ),
    "LightGBM, lambdarank": Entrant("lightgbm", "refitted", lambda **s: LambdaRank(False, **s), BOOSTED),
    "LightGBM, lambdarank, position": Entrant(
        "lightgbm", "with `position`; refitted", lambda **s: LambdaRank(True, **s), BOOSTED
    ),
    "the site's order": Entrant("heedful", "what is learned from", lambda: None),
    "the true utilities": Entrant("heedful", "the most there is", lambda: None),
}
REFERENCE = "heedful, posterior"
COLUMNS = {f"NDCG {truth} {n}": f"{truth}, {n:,} lists" for truth in TRUTHS for n in LOOKS}


def measure(job: Job) -> dict[str, float]:
    """NDCG@10 on other queries after each look, of either truth; processor seconds of learning."""
    found: dict[str, float] = {}
    memory, clock = Memory(), Clock()
    for truth in TRUTHS:
        rng, player = np.random.default_rng([job.seed, 9]), ENTRANTS[job.entrant].make(**job.setting)
        X, grades, u = queries(job.seed, truth, 1, job.rounds)
        other, theirs, best = queries(job.seed, truth, 2, HELD)
        for t in range(job.rounds):
            clicked = PERSON.rank(SHOWN, u[t], grades[t], 0.0, np.arange(SHOWN), rng)
            if player:
                with clock.on():
                    player.learn(X[t], clicked)
            if t + 1 in LOOKS:
                order = -np.arange(DOCUMENTS)[None] * np.ones((HELD, 1)) if job.entrant.endswith("order") else best
                found[f"NDCG {truth} {t + 1}"] = ndcg(player.score(other) if player else order, theirs)
    return found | {
        "lost": 1.0 - float(np.mean(list(found.values()))),
        "rounds": len(TRUTHS) * job.rounds, "seconds": max(clock.seconds, 1e-9), "MB": memory.grown(),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(answer(measure))
