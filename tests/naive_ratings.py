"""The learners of ratings written to be read: all that was ever rated is kept, and gone through from the beginning.

Nothing of ours is imported, and nothing here is quick. What a learner draws in an update belongs to keys, so that both
draw the same: `normals(seed, key, n)` and `uniform(seed, a, b)`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Rating = tuple[int, int, float]  # user, item, rating
MOST = 2**64 - 1


def mixed(z: int) -> int:
    """SplitMix64's finaliser (Steele, Lea & Flood, 2014)."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MOST
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MOST
    return z ^ (z >> 31)


def uniform(seed: int, a: int, b: int) -> float:
    z = (seed + a * 0x9E3779B97F4A7C15 + b * 0xD1B54A32D192ED03) & MOST
    for _ in range(2):
        z = mixed((z + 0x9E3779B97F4A7C15) & MOST)
    return ((z >> 11) + 0.5) / 2**53


def normals(seed: int, key: int, n: int) -> list[float]:
    """Box & Muller's cosine of two uniform numbers each."""
    state, out = (seed * 0x9E3779B97F4A7C15 + key * 0xD1B54A32D192ED03) & MOST, []
    for _ in range(n):
        pair = []
        for _ in range(2):
            state = (state + 0x9E3779B97F4A7C15) & MOST
            pair.append(((mixed(state) >> 11) + 0.5) / 2**53)
        out.append(math.sqrt(-2.0 * math.log(pair[0])) * math.cos(2.0 * math.pi * pair[1]))
    return out


def best_of(scores: list[float], items: list[int], size: int) -> list[int]:
    """The items of the highest scores, best first; of equals the one that comes first."""
    order = sorted(range(len(items)), key=lambda j: (-scores[j], j))
    return [items[j] for j in order[:size]]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# ---------------------------------------------------------------------------- simple rules


def item_mean_scores(history: list[Rating], user: int, items: list[int], prior: float) -> list[float]:
    everything = [r for _, _, r in history]
    middle = mean(everything) if everything else 0.0
    out = []
    for item in items:
        got = [r for _, j, r in history if j == item]
        out.append((sum(got) + prior * middle) / (len(got) + prior) if len(got) + prior > 0 else middle)
    return out


def user_greedy_scores(history: list[Rating], user: int, items: list[int]) -> list[float]:
    everything = [r for _, _, r in history]
    middle = mean(everything) if everything else 0.0
    out = []
    for item in items:
        own = [r for i, j, r in history if (i, j) == (user, item)]
        out.append(mean(own) if own else middle)
    return out


def pair_mean_scores(history: list[Rating], user: int, items: list[int], prior: float) -> list[float]:
    out = item_mean_scores(history, user, items, prior)
    for place, item in enumerate(items):
        own = [r for i, j, r in history if (i, j) == (user, item)]
        if own:
            out[place] = mean(own)
    return out


# ---------------------------------------------------------------------------- particle Thompson sampling


class PTS:
    """Kawale et al. 2015, Algorithm 1 without the update of the variances; the predictive variance as it must be."""

    def __init__(self, seed: int, k: int, D: int, sigma: float, spread: float, resample: float) -> None:
        self.seed, self.k, self.D, self.sigma, self.spread, self.resample = seed, k, D, sigma, spread, resample
        self.history: list[Rating] = []
        self.U: list[dict[int, Any]] = [{} for _ in range(D)]
        self.V: list[dict[int, Any]] = [{} for _ in range(D)]
        self.weights = [1.0 / D] * D
        self.make_room(64)

    def make_room(self, items: int) -> None:
        """First factors for all items below `items`: before they are rated, for particles are copied whole."""
        for d in range(self.D):
            for item in range(len(self.V[d]), items):
                self.V[d][item] = self.spread * np.array(normals(self.seed, item * self.D + d, self.k))

    def v(self, d: int, item: int) -> Any:
        return self.V[d][item]

    def gaussian(self, seen: list[tuple[Any, float]]) -> tuple[Any, Any]:
        """mu and Lambda of a row, from the rows of the other side and the ratings."""
        Lambda = np.eye(self.k) / self.spread**2
        zeta = np.zeros(self.k)
        for row, rating in seen:
            Lambda = Lambda + np.outer(row, row) / self.sigma**2
            zeta = zeta + row * rating / self.sigma**2
        return np.linalg.solve(Lambda, zeta), Lambda

    def of_user(self, d: int, user: int) -> tuple[Any, Any]:
        return self.gaussian([(self.v(d, j), r) for i, j, r in self.history if i == user])

    def draw(self, mu: Any, Lambda: Any, z: Any) -> Any:
        return mu + np.linalg.solve(np.linalg.cholesky(Lambda).T, z)

    def propose(self, user: int, items: list[int], size: int, rng: Any) -> list[int]:
        left, d = rng.random(), 0
        while d < self.D - 1 and left >= self.weights[d]:
            left -= self.weights[d]
            d += 1
        mu, Lambda = self.of_user(d, user)
        u = self.draw(mu, Lambda, rng.standard_normal(self.k))
        return best_of([float(u @ self.v(d, j)) for j in items], items, size)

    def update(self, user: int, item: int, rating: float) -> None:
        t, D = len(self.history), self.D
        for d in range(D):
            mu, Lambda = self.of_user(d, user)
            v = self.v(d, item)
            var = self.sigma**2 + v @ np.linalg.solve(Lambda, v)
            self.weights[d] *= math.exp(-((rating - mu @ v) ** 2) / (2 * var)) / math.sqrt(2 * math.pi * var)
        self.weights = [w / sum(self.weights) for w in self.weights]
        self.history.append((user, item, rating))
        if 1.0 / sum(w * w for w in self.weights) < self.resample * D:
            self.survive(uniform(self.seed, t, 1))
        for d in range(D):
            z = np.array(normals(self.seed, 2**40 + t * D + d, 2 * self.k))
            mu, Lambda = self.of_user(d, user)
            self.U[d][user] = self.draw(mu, Lambda, z[: self.k])
            mu, Lambda = self.gaussian([(self.U[d][i], r) for i, j, r in self.history if j == item])
            self.V[d][item] = self.draw(mu, Lambda, z[self.k :])

    def survive(self, start: float) -> None:
        ends = np.cumsum(self.weights)
        times = [0] * self.D
        for i in range(self.D):
            times[min(int(np.searchsorted(ends, (start + i) / self.D, side="right")), self.D - 1)] += 1
        self.weights = [1.0 / self.D] * self.D
        again = [d for d in range(self.D) for _ in range(times[d] - 1)]
        for place in [d for d in range(self.D) if times[d] == 0]:
            d = again.pop(0)
            self.V[place] = {item: v.copy() for item, v in self.V[d].items()}
            self.U[place] = {user: u.copy() for user, u in self.U[d].items()}


# ---------------------------------------------------------------------------- NMF-Bandit


class NMFBandit:
    """Sen et al. 2017: explore with probability min(1, theta n m' / t), else the factorisation's best."""

    def __init__(self, seed: int, k: int, theta: float, explored: int, every: int, sweeps: int) -> None:
        self.seed, self.k, self.theta, self.explored = seed, k, theta, explored
        self.every, self.sweeps, self.t = every, sweeps, 0
        self.history: list[Rating] = []
        self.U: dict[int, list[float]] = {}
        self.V: dict[int, list[float]] = {}

    def u(self, user: int) -> list[float]:
        return self.U.setdefault(user, [uniform(self.seed, user, 2 * a) for a in range(self.k)])

    def v(self, item: int) -> list[float]:
        return self.V.setdefault(item, [uniform(self.seed, item, 2 * a + 1) for a in range(self.k)])

    def propose(self, user: int, items: list[int], size: int, rng: Any) -> list[int]:
        users = len({i for i, _, _ in self.history})
        if rng.random() < min(1.0, self.theta * max(users, 1) * self.explored / (self.t + 1)):
            own = rng.random() < 0.5
            chance = list(rng.random(len(items)))
            if own:
                first = best_of([uniform(self.seed, -1 - user, j) for j in items], items, self.explored)
                chance = [c + 1.0 if j in first else c for c, j in zip(chance, items)]
            return best_of(chance, items, size)
        return best_of([sum(a * b for a, b in zip(self.u(user), self.v(j))) for j in items], items, size)

    def update(self, user: int, rated: list[tuple[int, float]]) -> None:
        self.history += [(user, item, rating) for item, rating in rated]
        self.t += 1
        if self.t % self.every == 0:
            low = min(r for _, _, r in self.history)
            X = {}
            for i, j, _ in self.history:
                X[i, j] = mean([r for a, b, r in self.history if (a, b) == (i, j)]) - low
            for i, j in X:
                self.u(i), self.v(j)
            for _ in range(self.sweeps):
                self.U |= self.multiplied({(i, j): x for (i, j), x in X.items()}, self.U, self.V)
                self.V |= self.multiplied({(j, i): x for (i, j), x in X.items()}, self.V, self.U)

    def multiplied(
        self, X: dict[tuple[int, int], float], F: dict[int, list[float]], G: dict[int, list[float]]
    ) -> dict[int, list[float]]:
        """F * (X G) / ((F G') G), rated pairs only (Lee & Seung 2001, masked)."""
        out = {}
        for i in {i for i, _ in X}:
            others = [j for a, j in X if a == i]
            new = []
            for a in range(self.k):
                above = sum(X[i, j] * G[j][a] for j in others)
                below = sum(sum(f * g for f, g in zip(F[i], G[j])) * G[j][a] for j in others)
                new.append(max(F[i][a] * above / below if below > 0 else F[i][a], 1e-9))
            out[i] = new
        return out


# ---------------------------------------------------------------------------- Bayesian matrix factors


class BMFModel:
    """One model of BMF: q for the rows of all users and items, and the variances; everything from the history."""

    def __init__(self, seed: int, K: int) -> None:
        self.seed, self.K, self.score = seed, K, 0.0
        self.users: dict[int, tuple[Any, Any]] = {}  # mean and covariance of [bias, factors]
        self.items: dict[int, tuple[Any, Any]] = {}
        self.missed: dict[int, tuple[int, float, float]] = {}  # of a user: pairs, squares off, sum of 1 / count
        self.history: list[Rating] = []
        self.learn_variances()

    def pairs(self) -> dict[tuple[int, int], list[float]]:
        out: dict[tuple[int, int], list[float]] = {}
        for i, j, r in self.history:
            out.setdefault((i, j), []).append(r)
        return out

    def first(self, item: int) -> Any:
        """The mean that the prior of an item has: its bias, and factors that do not vanish."""
        return np.array([self.middle, *(0.3 * z for z in normals(self.seed, item, self.K - 1))])

    def item(self, item: int) -> tuple[Any, Any]:
        if item in self.items:
            return self.items[item]
        return self.first(item), np.diag([self.item_bias, *[1 - 0.3**2] * (self.K - 1)])

    def user(self, user: int) -> tuple[Any, Any]:
        return self.users.get(user, (np.zeros(self.K), np.diag(self.taste)))

    def believed(self, user: int, item: int, w: Any = None, S: Any = None) -> tuple[float, float]:
        """Mean and variance of b_i + b_j + u . v under q."""
        if w is None:
            w, S = self.user(user)
        z, C = self.item(item)
        x, y = np.array([1.0, *z[1:]]), np.array([1.0, *w[1:]])
        var = x @ S @ x + y @ C @ y + np.trace(S[1:, 1:] @ C[1:, 1:])
        return float(w @ x + z[0]), float(var)

    def gaussian(self, seen: list[tuple[Any, Any, list[float]]], prior_mean: Any, prior_var: Any) -> tuple[Any, Any]:
        """q of a row from (mean, covariance, ratings) of each row of the other side."""
        precision, h = np.diag(1.0 / prior_var), prior_mean / prior_var
        for z, C, ratings in seen:
            weight = 1.0 / (self.pair + self.noise / len(ratings))
            x = np.array([1.0, *z[1:]])
            second = np.outer(x, x)
            second[1:, 1:] += C[1:, 1:]
            with_bias = x * z[0]
            with_bias[1:] += C[0, 1:]
            precision = precision + weight * second
            h = h + weight * (x * (mean(ratings) - self.history[0][2]) - with_bias)
        cov = np.linalg.inv(precision)
        return cov @ h, cov

    def learn_item(self, item: int) -> None:
        seen = [(*self.user(i), r) for (i, j), r in self.pairs().items() if j == item]
        prior = np.array([self.item_bias, *[1 - 0.3**2] * (self.K - 1)])
        self.items[item] = self.gaussian(seen, self.first(item), prior)

    def learn_user(self, user: int) -> None:
        mine = {j: r for (i, j), r in self.pairs().items() if i == user}
        self.users[user] = self.gaussian([(*self.item(j), r) for j, r in mine.items()], np.zeros(self.K), self.taste)
        off = 0.0
        for j, ratings in mine.items():
            m, var = self.believed(user, j)
            off += (mean(ratings) - self.history[0][2] - m) ** 2 + var
        self.missed[user] = len(mine), off, sum(1.0 / len(r) for r in mine.values())

    def learn_variances(self) -> None:
        ratings = [r for _, _, r in self.history]
        whole = float(np.var(ratings)) if ratings and np.var(ratings) > 0 else 1.0
        middle = mean(ratings) - ratings[0] if ratings else 0.0
        within = [r for r in self.pairs().values() if len(r) > 1]
        squares = sum(float(np.var(r)) * len(r) for r in within)
        self.again = sum(len(r) - 1 for r in within)
        self.noise = (squares + 0.1 * whole) / (self.again + 1)
        n, off, inverse = (sum(m[f] for m in self.missed.values()) for f in range(3))
        self.pair = max((off - self.noise * inverse + 5 * 0.4 * whole) / (n + 5), 1e-6 * whole)
        biases = [m[0] for m, _ in self.items.values()]
        self.middle = (sum(biases) + 5 * middle) / (len(biases) + 5)
        second = sum((m[0] - self.middle) ** 2 + S[0, 0] for m, S in self.items.values())
        self.item_bias = max((second + 5 * 0.2 * whole) / (len(biases) + 5), 1e-6 * whole)
        self.taste = np.zeros(self.K)
        for a in range(self.K):
            second = sum(m[a] ** 2 + S[a, a] for m, S in self.users.values())
            guess = (0.2 if a == 0 else 0.1) * whole
            self.taste[a] = max((second + 5 * guess) / (len(self.users) + 5), 1e-6 * whole)

    def foretold(self, user: int, item: int) -> tuple[float, float]:
        m, var = self.believed(user, item)
        ratings = self.pairs().get((user, item))
        if not ratings:
            return m, var + self.pair + self.noise
        gain = self.pair / (self.pair + self.noise / len(ratings))
        return (
            m + gain * (mean(ratings) - self.history[0][2] - m),
            (1 - gain) ** 2 * var + self.pair * (1 - gain) + self.noise,
        )


class BMF:
    """Both models, and what is shown."""

    def __init__(self, seed: int, k: int, width: float, factor_width: float, sampled: bool, automatic: bool) -> None:
        self.width, self.factor_width, self.sampled, self.automatic, self.t = width, factor_width, sampled, automatic, 0
        self.plain, self.factored = BMFModel(seed, 1), BMFModel(seed, 1 + k)
        self.history: list[Rating] = []
        for model in (self.plain, self.factored):
            model.history = self.history
        self.n_users = self.n_items = self.room_users = self.room_items = 64

    def propose(self, user: int, items: list[int], size: int, rng: Any) -> list[int]:
        model = self.factored if not self.automatic or self.factored.score > self.plain.score else self.plain
        wide = model is self.factored and sum(model.taste[1:]) > model.pair
        width = self.factor_width if wide else self.width
        w, S = (part.copy() for part in model.user(user))
        if self.sampled:
            w = w + width * np.linalg.cholesky(S) @ rng.standard_normal(model.K)
            S = np.zeros_like(S)
        again = model.again / max(len(self.history), 1)
        pairs, scores, sds = model.pairs(), [], []
        for item in items:
            m, var = model.believed(user, item, w, S)
            ratings = pairs.get((user, item))
            if ratings:
                gain = model.pair / (model.pair + model.noise / len(ratings))
                m += gain * (mean(ratings) - self.history[0][2] - m)
                var = (1 - gain) ** 2 * var + model.pair * (1 - gain)
            else:
                var += again * model.pair
            scores.append(m + (self.history[0][2] if self.history else 0.0))
            sds.append(math.sqrt(var))
        if width > 0:
            z = rng.standard_normal(len(items)) if self.sampled else np.ones(len(items))
            top = max([r for _, _, r in self.history], default=0.0)
            scores = [min(m + width * e * sd, top - 0.01 * sd) for m, e, sd in zip(scores, z, sds)]
        return best_of(scores, items, size)

    def update(self, user: int, offered: list[int], rated: list[tuple[int, float]]) -> None:
        # Whose turn it is depends on how much room there is, which doubles.
        if user >= self.room_users:
            self.room_users = max(user + 1, 2 * self.room_users)
        if max(offered) >= self.room_items:
            self.room_items = max(max(offered) + 1, 2 * self.room_items)
        for item, rating in rated:
            models = [self.factored, self.plain] if self.automatic else [self.factored]
            if self.history and self.automatic:
                for model in models:
                    m, var = model.foretold(user, item)
                    y = rating - self.history[0][2]
                    model.score = 0.999 * model.score - 0.5 * (math.log(2 * math.pi * var) + (y - m) ** 2 / var)
            self.history.append((user, item, rating))
            if user >= self.n_users:  # the counts have a room of their own, which grows with what is rated
                self.n_users = 2 * (user + 1)
            if item >= self.n_items:
                self.n_items = 2 * (item + 1)
            for model in models:
                model.learn_item(item)
                model.learn_user(user)
                turn = self.t % min(self.n_users, self.room_users)
                if turn in model.users:
                    model.learn_user(turn)
                turn = self.t % min(self.n_items, self.room_items)
                if turn in model.items:
                    model.learn_item(turn)
                model.learn_variances()
        self.t += 1
