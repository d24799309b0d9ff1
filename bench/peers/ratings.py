"""Ratings from nothing: a random user comes, one of 200 items is shown, a noisy rating comes back.

The expected ratings are a hidden matrix of rank 5. heedful's learners explore by themselves; the peers predict, and
what they predict is shown but for a share `explore` of the rounds, in which a random item is. A model that is not
learned one rating at a time is fitted again every 500 rounds. Random items stand before the first fit.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from peers.job import Clock, Entrant, Job, Memory, answer

from heedful import Session, trace
from heedful.core.fold import generators
from heedful.learners.ratings.alb import ALB
from heedful.learners.ratings.bmf import BMF
from heedful.learners.ratings.pts import PTS
from heedful.worlds.ratings import LowRank, gaussian_ratings

Array = Any
TITLE = "Ratings"
STREAM = "200 users, 200 items, rank 5, Gaussian, noise 0.5"
USERS, ITEMS, FACTORS, EVERY = 200, 200, 5, 500
ROUNDS, QUICK, TUNING = 10_000, 1_000, 1.0
QUALITY = "regret"
OWN = 20_117
"""the seed of the models, which is that of no stream: a factor drawn like the hidden ones would know them"""


def stream(seed: int, rounds: int, data: str = "") -> LowRank:
    """The hidden matrix, with users who come at random."""
    return gaussian_ratings(USERS, ITEMS, FACTORS, noise=0.5, seed=seed)


class Heedful:
    """A session: its checks of input are inside the clock."""

    def __init__(self, learner: Any) -> None:
        self.session, self.items = Session(learner), np.arange(ITEMS)

    def choose(self, user: int) -> int:
        return int(self.session.propose((user, self.items))[0])

    def learn(self, user: int, item: int, rating: float) -> None:
        self.session.learn(([item], [rating]))


class Exploring:
    """A model that predicts, and a random item in a share of the rounds."""

    def __init__(self, explore: float) -> None:
        self.explore, self.rng, self.t = explore, np.random.default_rng(OWN), 0

    def choose(self, user: int) -> int:
        if not self.ready() or self.rng.random() < self.explore:
            return int(self.rng.integers(ITEMS))
        return int(np.argmax(self.predict(user)))

    def ready(self) -> bool:
        return True

    def predict(self, user: int) -> Array:
        raise NotImplementedError


class NumpyFactors(Exploring):
    """The simplest factors: one gradient step a rating, in numpy."""

    def __init__(self, explore: float, rate: float) -> None:
        super().__init__(explore)
        self.rate = rate
        self.A, self.B = 0.3 * self.rng.standard_normal((2, USERS, FACTORS))

    def predict(self, user: int) -> Array:
        return self.B @ self.A[user]

    def learn(self, user: int, item: int, rating: float) -> None:
        a, b = self.A[user].copy(), self.B[item]
        error = rating - a @ b
        self.A[user] += self.rate * (error * b - 0.02 * a)
        self.B[item] += self.rate * (error * a - 0.02 * b)


class NumpyMeans(Exploring):
    """The mean of the user's own ratings of an item where there are any, else of all ratings of the item."""

    def __init__(self, explore: float) -> None:
        super().__init__(explore)
        self.n, self.sum = np.zeros((USERS, ITEMS)), np.zeros((USERS, ITEMS))
        self.items, self.total = np.zeros(ITEMS), np.zeros(ITEMS)

    def predict(self, user: int) -> Array:
        mean = self.total / np.maximum(self.items, 1.0)
        return np.where(self.n[user] > 0, self.sum[user] / np.maximum(self.n[user], 1.0), mean)

    def learn(self, user: int, item: int, rating: float) -> None:
        self.n[user, item] += 1.0
        self.sum[user, item] += rating
        self.items[item] += 1.0
        self.total[item] += rating


class River(Exploring):
    """River's BiasedMF, one rating at a time."""

    def __init__(self, explore: float, rate: float) -> None:
        super().__init__(explore)
        from river import optim, reco

        start = optim.initializers.Normal(mu=0.0, sigma=0.3, seed=OWN)
        self.model = reco.BiasedMF(
            n_factors=FACTORS, bias_optimizer=optim.SGD(rate), latent_optimizer=optim.SGD(rate), l2_bias=0.02,
            l2_latent=0.02, latent_initializer=start, seed=OWN,
        )  # fmt: skip

    def predict(self, user: int) -> Array:
        return [self.model.predict_one(user=user, item=j) for j in range(ITEMS)]

    def learn(self, user: int, item: int, rating: float) -> None:
        self.model.learn_one(user=user, item=item, y=rating)


class Refitted(Exploring):
    """What the models that are fitted to all ratings share."""

    def __init__(self, explore: float) -> None:
        super().__init__(explore)
        self.ratings: list[tuple[int, int, float]] = []
        self.scores: Array = None

    def ready(self) -> bool:
        return self.scores is not None

    def predict(self, user: int) -> Array:
        return self.scores[user]

    def learn(self, user: int, item: int, rating: float) -> None:
        self.ratings.append((user, item, rating))
        if len(self.ratings) % EVERY == 0:
            self.scores = self.fit()

    def fit(self) -> Array:
        raise NotImplementedError


class Surprise(Refitted):
    """Surprise's SVD with biases, its regularisation as it comes."""

    def __init__(self, explore: float, epochs: int) -> None:
        super().__init__(explore)
        from surprise import SVD, Dataset, Reader

        self.svd = lambda: SVD(n_factors=FACTORS, n_epochs=epochs, random_state=OWN)
        self.data = Dataset(Reader(rating_scale=(-100, 100)))

    def fit(self) -> Array:
        train = self.data.construct_trainset([(*each, None) for each in self.ratings])
        found = self.svd().fit(train)
        scores = np.full((USERS, ITEMS), train.global_mean)
        users = np.array([train.to_raw_uid(i) for i in range(train.n_users)])
        items = np.array([train.to_raw_iid(j) for j in range(train.n_items)])
        scores[users] += found.bu[:, None]
        scores[:, items] += found.bi
        scores[np.ix_(users, items)] += found.pu @ found.qi.T
        return scores


class Implicit(Refitted):
    """implicit's ALS: a rating is its confidence, one below 0 says that the user disliked the item, as it documents."""

    def __init__(self, explore: float, regularization: float) -> None:
        super().__init__(explore)
        from implicit.als import AlternatingLeastSquares
        from scipy.sparse import coo_matrix

        self.matrix = coo_matrix
        self.als = lambda: AlternatingLeastSquares(
            factors=FACTORS, regularization=regularization, num_threads=1, random_state=OWN
        )

    def fit(self) -> Array:
        users, items, values = zip(*self.ratings)
        found = self.als()
        found.fit(self.matrix((values, (users, items)), shape=(USERS, ITEMS)).tocsr(), show_progress=False)
        return found.user_factors @ found.item_factors.T


def grid(**lists: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    """All combinations, with the shares of random items that are tried."""
    found: list[dict[str, Any]] = [{"explore": share} for share in (0.02, 0.1)]
    for name, values in lists.items():
        found = [{**each, name: value} for each in found for value in values]
    return tuple(found)


TUNED = ALB(n_factors=FACTORS, penalty=0.01, sigma=0.5)
ENTRANTS = {
    "heedful, bmf": Entrant("heedful", "Session, one rating at a time; its defaults", lambda: Heedful(BMF())),
    "heedful, bmf, compiled": Entrant("heedful", "trace: the simulation included", BMF),
    "heedful, alb, compiled": Entrant("heedful", "trace; lambda and sigma of the paper", lambda: TUNED),
    "heedful, pts, compiled": Entrant("heedful", "trace; its defaults", PTS),
    "numpy, means": Entrant("numpy", "own mean of the item, else all people's", NumpyMeans, grid()),
    "numpy, factors": Entrant("numpy", "a gradient step a rating", NumpyFactors, grid(rate=(0.03, 0.1, 0.2))),
    "River, BiasedMF": Entrant(
        "river", "SGD, learn_one; 200 predict_one a round", River, grid(rate=(0.003, 0.01, 0.03))
    ),
    "Surprise, SVD refitted": Entrant("scikit-surprise", f"every {EVERY} rounds", Surprise, grid(epochs=(20, 100))),
    "implicit, ALS refitted": Entrant(
        "implicit", f"every {EVERY} rounds; ratings as confidences", Implicit, grid(regularization=(0.01, 1.0))
    ),
}
REFERENCE = "heedful, bmf"
COLUMNS = {"regret": "regret, all rounds", "late": "regret, last quarter"}


def measure(job: Job) -> dict[str, float]:
    """Regret of the items shown, and processor seconds of choosing and learning."""
    world, entrant, memory, clock = stream(job.seed, job.rounds), ENTRANTS[job.entrant], Memory(), Clock()
    player = entrant.make(**job.setting)
    if job.entrant.endswith("compiled"):
        trace(player, world, 10, job.seed)
        with clock.on():
            regrets = trace(player, world, job.rounds, job.seed)
    else:
        asked, answered, _ = generators(job.seed)
        truth, regrets = world.init(asked), np.empty(job.rounds)
        for t in range(job.rounds):
            x = world.context(truth, t, asked)
            with clock.on():
                item = player.choose(x.user)
            shown = np.array([item])
            rating = float(world.respond(truth, x, shown, answered).ratings[0])
            regrets[t] = world.regret(truth, x, shown)
            with clock.on():
                player.learn(x.user, item, rating)
    return {
        "regret": float(regrets.mean()), "late": float(regrets[-(regrets.size // 4) :].mean()),
        "rounds": regrets.size, "seconds": clock.seconds, "MB": memory.grown(),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(answer(measure))
