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
        self.history: list[tuple[int, int, float, float]] = []  # with what each counts for
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

    def gaussian(self, seen: list[tuple[Any, float, float]]) -> tuple[Any, Any]:
        """mu and Lambda of a row, from the rows of the other side, the ratings, and what they count for."""
        Lambda = np.eye(self.k) / self.spread**2
        zeta = np.zeros(self.k)
        for row, rating, weight in seen:
            Lambda = Lambda + weight * np.outer(row, row) / self.sigma**2
            zeta = zeta + weight * row * rating / self.sigma**2
        return np.linalg.solve(Lambda, zeta), Lambda

    def of_user(self, d: int, user: int) -> tuple[Any, Any]:
        return self.gaussian([(self.v(d, j), r, w) for i, j, r, w in self.history if i == user])

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

    def update(self, user: int, item: int, rating: float, weight: float = 1.0) -> None:
        t, D = len(self.history), self.D
        for d in range(D):
            mu, Lambda = self.of_user(d, user)
            v = self.v(d, item)
            var = self.sigma**2 / weight + v @ np.linalg.solve(Lambda, v)
            self.weights[d] *= math.exp(-((rating - mu @ v) ** 2) / (2 * var)) / math.sqrt(2 * math.pi * var)
        self.weights = [w / sum(self.weights) for w in self.weights]
        self.history.append((user, item, rating, weight))
        if 1.0 / sum(w * w for w in self.weights) < self.resample * D:
            self.survive(uniform(self.seed, t, 1))
        for d in range(D):
            z = np.array(normals(self.seed, 2**40 + t * D + d, 2 * self.k))
            mu, Lambda = self.of_user(d, user)
            self.U[d][user] = self.draw(mu, Lambda, z[: self.k])
            mu, Lambda = self.gaussian([(self.U[d][i], r, w) for i, j, r, w in self.history if j == item])
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


class Given:
    """All ratings, each with the weight it had and the round it came in; what is left of it after more rounds."""

    def __init__(self, gamma: float) -> None:
        self.gamma, self.now = gamma, 0
        self.all: list[tuple[int, int, float, float, int]] = []

    def left(self, then: int, now: int | None = None) -> float:
        return float(self.gamma ** ((self.now if now is None else now) - then))

    def pairs(self) -> dict[tuple[int, int], tuple[float, float]]:
        """Of each pair the count and the mean, by what is left of the weights."""
        out: dict[tuple[int, int], tuple[float, float]] = {}
        for i, j in {(i, j) for i, j, *_ in self.all}:
            own = [(r, w * self.left(t)) for a, b, r, w, t in self.all if (a, b) == (i, j)]
            count = sum(w for _, w in own)
            out[i, j] = count, sum(w * r for r, w in own) / count
        return out

    def whole(self) -> tuple[float, float]:
        """The mean of all ratings and their variance, 1 where there is none."""
        if not self.all:
            return 0.0, 1.0
        total = sum(w * self.left(t) for *_, w, t in self.all)
        middle = sum(w * self.left(t) * r for _, _, r, w, t in self.all) / total
        var = sum(w * self.left(t) * (r - middle) ** 2 for _, _, r, w, t in self.all) / total
        return middle, var if var > 0 else 1.0

    def again(self) -> tuple[float, float, float]:
        """What ratings of known pairs missed the mean before them by, squared, in units of one rating's noise; how many
        these are; how many ratings there are."""
        squares = again = 0.0
        for k, (i, j, r, w, t) in enumerate(self.all):
            before = [(y, v * self.left(s, t)) for a, b, y, v, s in self.all[:k] if (a, b) == (i, j)]
            if before:
                c = sum(v for _, v in before)
                e = r - sum(v * y for y, v in before) / c
                squares += self.left(t) * e * e * c * w / (c + w)
                again += self.left(t)
        return squares, again, sum(self.left(t) for *_, t in self.all)


class BMFModel:
    """One model of BMF: q for the rows of all users and items, and the variances; everything from what was given."""

    def __init__(self, seed: int, K: int, given: Given, features: dict[int, Any], n_features: int, most: int) -> None:
        self.seed, self.K, self.given, self.most, self.score = seed, K, given, most, 0.0
        self.features, self.n_features, self.item_bias = features, n_features, 1.0
        self.users: dict[int, tuple[Any, Any]] = {}  # mean and covariance of [bias, factors]
        self.items: dict[int, tuple[Any, Any]] = {}
        self.missed: dict[int, tuple[float, float, float]] = {}  # of a user: pairs, squares off, sum of 1 / count
        self.pairs_of_item: dict[int, int] = {}
        self.learn_variances()

    def origin(self) -> float:
        return self.given.all[0][2]

    def first(self, item: int) -> Any:
        """The mean that the prior of an item has: its bias, and factors that do not vanish."""
        bias = self.covariates(item) @ self.coefficients
        return np.array([bias, *(0.3 * z for z in normals(self.seed, item, self.K - 1))])

    def covariates(self, item: int) -> Any:
        return np.array([1.0, *self.features.get(item, np.zeros(self.n_features))])

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

    def gaussian(self, seen: list[tuple[Any, Any, float, float]], mean: Any, cov: Any) -> tuple[Any, Any]:
        """q of a row from its mean and covariance before, (mean, covariance) of each row of the other side, and the
        pair's (count, mean)."""
        precision = np.linalg.inv(cov)
        h = precision @ mean
        for z, C, count, rating in seen:
            weight = 1.0 / (self.pair + self.noise / count)
            x = np.array([1.0, *z[1:]])
            second = np.outer(x, x)
            second[1:, 1:] += C[1:, 1:]
            with_bias = x * z[0]
            with_bias[1:] += C[0, 1:]
            precision = precision + weight * second
            h = h + weight * (x * (rating - self.origin()) - with_bias)
        cov = np.linalg.inv(precision)
        return cov @ h, cov

    def learn_item(self, item: int, newest: int | None = None) -> None:
        """From all its pairs, or from what q was and that with the user `newest`."""
        seen = {i: (*self.user(i), *r) for (i, j), r in self.given.pairs().items() if j == item}
        if newest is None:
            prior = self.first(item), np.diag([self.item_bias, *[1 - 0.3**2] * (self.K - 1)])
            self.items[item], self.pairs_of_item[item] = self.gaussian(list(seen.values()), *prior), len(seen)
        else:
            self.items[item] = self.gaussian([seen[newest]], *self.items[item])
            self.pairs_of_item[item] += 1

    def learn_user(self, user: int, newest: int | None = None) -> None:
        """The same, for a user and the item `newest`."""
        mine = {j: r for (i, j), r in self.given.pairs().items() if i == user and newest in (None, j)}
        before, (n, off, inverse) = (np.zeros(self.K), np.diag(self.taste)), (0.0, 0.0, 0.0)
        if newest is not None:
            before, (n, off, inverse) = self.users[user], self.missed[user]
        self.users[user] = self.gaussian([(*self.item(j), *r) for j, r in mine.items()], *before)
        for j, (count, rating) in mine.items():
            m, var = self.believed(user, j)
            part = min(count**2, 1.0)
            n += part
            off += part * ((rating - self.origin() - m) ** 2 + var)
            inverse += part / count
        self.missed[user] = n, off, inverse

    def is_due(self, pairs: float, count: int) -> bool:
        """Whether a row of so many pairs is made of all of them at this count: about `most` are read each time."""
        return count % (int(pairs) // self.most + 1) == 0

    def learn_variances(self) -> None:
        middle, whole = self.given.whole()
        if self.given.all:
            middle -= self.origin()
        squares, again, _ = self.given.again()
        self.noise = (squares + 0.1 * whole) / (again + 1)
        n, off, inverse = (sum(m[f] for m in self.missed.values()) for f in range(3))
        self.pair = max((off - self.noise * inverse + 5 * 0.4 * whole) / (n + 5), 1e-6 * whole)
        # Ridge regression of the mean biases: least squares with rows added, five of the middle, some of 0 a feature.
        X = np.array([self.covariates(j) for j in self.items]).reshape(-1, 1 + self.n_features)
        zeros = self.n_features * self.item_bias / (0.2 * whole)
        more = np.diag([math.sqrt(5.0), *[math.sqrt(zeros)] * self.n_features])
        biases = [m[0] for m, _ in self.items.values()]
        goal = np.array([*biases, math.sqrt(5.0) * middle, *[0.0] * self.n_features])
        self.coefficients = np.linalg.lstsq(np.vstack([X, more]), goal, rcond=None)[0]
        second = sum((m[0] - self.first(j)[0]) ** 2 + S[0, 0] for j, (m, S) in self.items.items())
        self.item_bias = max((second + 5 * 0.2 * whole) / (len(biases) + 5), 1e-6 * whole)
        self.taste = np.zeros(self.K)
        for a in range(self.K):
            second = sum(m[a] ** 2 + S[a, a] for m, S in self.users.values())
            guess = (0.2 if a == 0 else 0.1) * whole
            self.taste[a] = max((second + 5 * guess) / (len(self.users) + 5), 1e-6 * whole)

    def foretold(self, user: int, item: int, weight: float) -> tuple[float, float]:
        m, var = self.believed(user, item)
        count, rating = self.given.pairs().get((user, item), (0.0, 0.0))
        if not count:
            return m, var + self.pair + self.noise / weight
        gain = self.pair / (self.pair + self.noise / count)
        return (
            m + gain * (rating - self.origin() - m),
            (1 - gain) ** 2 * var + self.pair * (1 - gain) + self.noise / weight,
        )


class BMF:
    """Both models, and what is shown."""

    def __init__(
        self,
        seed: int,
        k: int,
        width: float,
        growth: float,
        sampled: bool,
        automatic: bool,
        gamma: float,
        n_features: int = 0,
        features: dict[int, Any] | None = None,
        most: int = 256,
    ) -> None:
        self.width, self.growth, self.sampled, self.automatic, self.t = width, growth, sampled, automatic, 0
        self.given = Given(gamma)
        about = features or {}
        self.plain, self.factored = (BMFModel(seed, K, self.given, about, n_features, most) for K in (1, 1 + k))
        self.n_users = self.n_items = self.room_users = self.room_items = 64

    def propose(self, user: int, items: list[int], size: int, rng: Any) -> list[int]:
        model = self.factored if not self.automatic or self.factored.score > self.plain.score else self.plain
        pairs, (_, again, ratings) = self.given.pairs(), self.given.again()
        again /= max(ratings, 1.0)
        count = sum(c for (i, _), (c, _) in pairs.items() if i == user)
        width = self.width + self.growth * math.log(1 + again * count)
        w, S = (part.copy() for part in model.user(user))
        if self.sampled:
            w = w + width * np.linalg.cholesky(S) @ rng.standard_normal(model.K)
            S = np.zeros_like(S)
        origin = model.origin() if self.given.all else 0.0
        scores, sds = [], []
        for item in items:
            m, var = model.believed(user, item, w, S)
            if (user, item) in pairs:
                c, rating = pairs[user, item]
                gain = model.pair / (model.pair + model.noise / c)
                m += gain * (rating - origin - m)
                var = (1 - gain) ** 2 * var + model.pair * (1 - gain)
            else:
                var += again * model.pair
            scores.append(m + origin)
            sds.append(math.sqrt(var))
        if width > 0:
            z = rng.standard_normal(len(items)) if self.sampled else np.ones(len(items))
            ratings = {r for _, _, r, *_ in self.given.all}
            top = max(ratings) if len(ratings) > 1 else math.inf
            scores = [min(m + width * e * sd, top - 0.01 * sd) for m, e, sd in zip(scores, z, sds)]
        return best_of(scores, items, size)

    def update(self, user: int, offered: list[int], rated: list[tuple[int, float, float]]) -> None:
        # Whose turn it is depends on how much room there is, which doubles.
        if user >= self.room_users:
            self.room_users = max(user + 1, 2 * self.room_users)
        if max(offered) >= self.room_items:
            self.room_items = max(max(offered) + 1, 2 * self.room_items)
        self.given.now = self.t
        for item, rating, weight in rated:
            models = [self.factored, self.plain] if self.automatic else [self.factored]
            if self.given.all and self.automatic:
                for model in models:
                    m, var = model.foretold(user, item, weight)
                    y = rating - model.origin()
                    model.score = 0.999 * model.score - 0.5 * (math.log(2 * math.pi * var) + (y - m) ** 2 / var)
            fading = self.given.gamma < 1
            again = fading or (user, item) in self.given.pairs()
            self.given.all.append((user, item, rating, weight, self.t))
            if user >= self.n_users:  # the counts have a room of their own, which grows with what is rated
                self.n_users = 2 * (user + 1)
            if item >= self.n_items:
                self.n_items = 2 * (item + 1)
            for model in models:
                n, m = model.missed.get(user, (0.0,))[0], model.pairs_of_item.get(item, 0)
                model.learn_item(item, None if again or model.is_due(m, m) else user)
                model.learn_user(user, None if again or model.is_due(n, int(n)) else item)
                cycle, turn = divmod(self.t, min(self.n_users, self.room_users))
                if turn in model.users and (fading or model.is_due(model.missed[turn][0], cycle)):
                    model.learn_user(turn)
                cycle, turn = divmod(self.t, min(self.n_items, self.room_items))
                if turn in model.items and (fading or model.is_due(model.pairs_of_item[turn], cycle)):
                    model.learn_item(turn)
                model.learn_variances()
        self.t += 1
