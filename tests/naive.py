"""The papers' pseudo-code, line by line: what every learner and every simulated person is held against.

[J15] is Shivaswamy & Joachims, Coactive Learning, 2015; [C12] their paper of 2012. Nothing of ours is imported, and
nothing is fast: loops, lists, matrix inverses, all permutations. Where the print is wrong, the line says so.
"""

import math
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
from scipy.special import expit

# ---------------------------------------------------------------------------- spaces of objects


class Rankings:
    """[J15] Eq. 21: w.phi(q, y) = sum over i = 1..k of w.x_{y_i} / log2(i + 1). Length one is an item."""

    def __init__(self, k):
        self.k = k

    def phi(self, x, y):
        total = np.zeros(x.shape[1])
        for i in range(1, min(self.k, len(y)) + 1):
            total = total + np.asarray(x[y[i - 1]], float) / math.log2(i + 1)
        return total

    def argmax(self, w, x):
        """Section 6.1.1: sort the documents by w.x_i; ties to the lowest index, for Python's sort is stable."""
        scores = [sum(float(a) * float(b) for a, b in zip(w, row)) for row in x]
        order = sorted(range(len(x)), key=lambda j: -scores[j])
        return order if self.k > 1 else order[:1]

    def objects(self, x):
        return [list(y) for y in permutations(range(len(x)), min(self.k, len(x)))]

    def pairs(self, y, ybar):
        """Ours: (a, b) for every "a before b" that correcting y to ybar implies.

        The chosen, the first k of ybar, beat whatever y showed down to the deepest of them (or its first k) and was
        passed over; of two chosen, the one that moved ahead of the other beats it. What was not shown came last.
        """
        y, chosen = list(y), list(ybar)[: self.k]
        place = {a: y.index(a) if a in y else math.inf for a in chosen}
        depth = max([min(self.k, len(y))] + [place[a] + 1 for a in chosen if a in y])
        passed_over = [b for b in y[:depth] if b not in chosen]
        pairs = [(a, b) for a in chosen for b in passed_over]
        for i, a in enumerate(chosen):
            pairs += [(a, b) for b in chosen[i + 1 :] if place[a] > place[b]]
        return pairs

    def pair_differences(self, x, y, ybar):
        return [np.asarray(x[a], float) - np.asarray(x[b], float) for a, b in self.pairs(y, ybar)]


class Assignments:
    """People to slots: phi(x, y) = sum over slots s of x[y_s, s]; the argmax by trying every assignment."""

    def __init__(self, slots):
        self.slots = slots

    def phi(self, x, y):
        return sum((np.asarray(x[y[s], s], float) for s in range(self.slots)), np.zeros(x.shape[2]))

    def objects(self, x):
        return [list(y) for y in permutations(range(len(x)), self.slots)]

    def argmax(self, w, x):
        return max(self.objects(x), key=lambda y: float(np.dot(w, self.phi(x, y))))

    def pair_differences(self, x, y, ybar):
        return [self.phi(x, ybar) - self.phi(x, y)]


# ---------------------------------------------------------------------------- learners


class PreferencePerceptron:
    """[J15] Algorithm 1."""

    def __init__(self, N, space):
        self.space = space
        self.w = np.zeros(N)  # Initialize w_1 <- 0

    def propose(self, x):
        return self.space.argmax(self.w, x)  # Present y_t <- argmax w_t.phi(x_t, y)

    def D(self, x, y, ybar):
        return self.space.phi(x, ybar) - self.space.phi(x, y)

    def update(self, x, y, ybar):
        self.w = self.w + self.D(x, y, ybar)


class BatchPreferencePerceptron(PreferencePerceptron):
    """[J15] Algorithm 2; the sum runs from s + 1, not from s as printed."""

    def __init__(self, N, space, k):
        super().__init__(N, space)
        self.k, self.t, self.s = k, 0, 0
        self.rounds = [None]  # rounds[j] is round j = 1, 2, ...

    def update(self, x, y, ybar):
        self.t += 1
        self.rounds.append((x.copy(), list(y), list(ybar)))
        if self.t == self.s + self.k:
            for j in range(self.s + 1, self.t + 1):
                self.w = self.w + self.D(*self.rounds[j])
            self.s = self.t


class ExponentiatedPreferencePerceptron(PreferencePerceptron):
    """[J15] Algorithm 4 on the doubled features of Eq. 23, phi_e = (phi, -phi); eta_t = 1 / (2 S sqrt t) if T is 0."""

    def __init__(self, N, space, S, T):
        super().__init__(N, space)
        self.S, self.T, self.t = S, T, 0
        self.w_e = np.full(2 * N, 1.0 / (2 * N))  # w_1^i <- 1 / N, N doubled

    def phi_e(self, x, y):
        return np.concatenate([self.space.phi(x, y), -self.space.phi(x, y)])

    def update(self, x, y, ybar):
        self.t += 1
        eta = 1.0 / (2.0 * self.S * math.sqrt(self.T if self.T > 0 else self.t))
        self.w_e = self.w_e * np.exp(-eta * (self.phi_e(x, y) - self.phi_e(x, ybar)))
        self.w_e = self.w_e / self.w_e.sum()  # Z_t is such that the weights add to one
        self.w = self.w_e[: self.w.size] - self.w_e[self.w.size :]  # w_e.phi_e = w.phi


class UnsignedExponentiatedPreferencePerceptron(PreferencePerceptron):
    """[J15] Algorithm 4 as printed, for w* >= 0; eta_t = 1 / (2 S sqrt t) if T is 0."""

    def __init__(self, N, space, S, T):
        super().__init__(N, space)
        self.S, self.T, self.t = S, T, 0
        self.w = np.full(N, 1.0 / N)  # w_1^i <- 1 / N

    def update(self, x, y, ybar):
        self.t += 1
        eta = 1.0 / (2.0 * self.S * math.sqrt(self.T if self.T > 0 else self.t))
        self.w = self.w * np.exp(eta * self.D(x, y, ybar))
        self.w = self.w / self.w.sum()  # Z_t is such that the weights add to one


class ConvexPreferencePerceptron(PreferencePerceptron):
    """[J15] Algorithm 5; B is the ball |w| <= radius."""

    def __init__(self, N, space, radius):
        super().__init__(N, space)
        self.radius, self.t = radius, 0

    def update(self, x, y, ybar):
        self.t += 1
        w_bar = self.w + 1.0 / math.sqrt(self.t) * self.D(x, y, ybar)
        length = float(np.linalg.norm(w_bar))
        self.w = w_bar if length <= self.radius else w_bar / length * self.radius


class SecondOrderPreferencePerceptron(PreferencePerceptron):
    """[J15] Algorithm 6, with A itself; the projection by the eigenvectors of A and bisection."""

    def __init__(self, N, space, gamma, epsilon, radius):
        super().__init__(N, space)
        self.A, self.gamma, self.radius = epsilon * np.eye(N), gamma, radius

    def update(self, x, y, ybar):
        D = self.D(x, y, ybar)
        self.A = self.A + self.gamma * np.outer(D, D)
        self.w = projected(self.A, self.w + np.linalg.inv(self.A) @ D, self.radius)


def projected(A, w_bar, radius):
    """argmin over |w| <= radius of (w_bar - w)^T A (w_bar - w): the w with (A + mu I) w = A w_bar and |w| = radius."""
    if np.linalg.norm(w_bar) <= radius:
        return w_bar
    a, Q = np.linalg.eigh(A)
    along = Q.T @ w_bar
    low, high = 0.0, float(a.max() * np.linalg.norm(w_bar) / radius)  # at high, every part is shrunk enough
    for _ in range(200):
        mu = (low + high) / 2.0
        if np.linalg.norm(a / (a + mu) * along) > radius:
            low = mu
        else:
            high = mu
    return Q @ (a / (a + high) * along)


class PerturbedPreferencePerceptron(PreferencePerceptron):
    """3PR (Raman, Joachims, Shivaswamy & Schnabel, ICML 2013), with the pairs of FairPairs (Radlinski & Joachims 2006).

    From `start` (a coin: the first or the second position) neighbours are pairs; each is swapped with probability p.
    Of a pair whose lower document was clicked, and the upper was not, ybar has the lower one first.
    """

    def __init__(self, N, space, p, depth):
        super().__init__(N, space)
        self.p, self.depth = p, depth  # only the first `depth` positions are perturbed

    def propose(self, x, coin):
        y = self.space.argmax(self.w, x)
        start = 1 if coin() < 0.5 else 0
        swapped = []
        for i in range(start, min(self.depth, len(y)) - 1, 2):
            swapped.append(coin() < self.p)
            if swapped[-1]:
                y[i], y[i + 1] = y[i + 1], y[i]
        return y, start, swapped

    def fair_pairs(self, y, start, clicks):
        """(winner, loser, whether the winner stood below) of each pair of which one was clicked and the other not."""
        pairs = []
        for i in range(start, min(self.depth, len(y)) - 1, 2):
            if (y[i] in clicks) != (y[i + 1] in clicks):
                below = y[i + 1] in clicks
                pairs.append((y[i + 1], y[i], True) if below else (y[i], y[i + 1], False))
        return pairs

    def y_bar(self, y, start, clicks):
        y_bar = list(y)
        for winner, loser, below in self.fair_pairs(y, start, clicks):
            if below:
                i, j = y_bar.index(loser), y_bar.index(winner)
                y_bar[i], y_bar[j] = winner, loser
        return y_bar


class Posterior:
    """Ours: w ~ Normal(m, L^-1), D = N + 23. The observations z, y of an answer move m to the mode of the posterior and
    add p (1 - p) z z' there to L.

    An item at place i of its list: [x - mean, e_i, e_i if something above was clicked, 1 (this list), 1 (clicks), 0]. A
    pair: x_a - x_b. A thumb: [z - usual, ..., 1]."""

    PLACES = 10

    def __init__(self, N, k, base=False, products=0):
        self.N, self.k, self.lists, self.rows, self.products = N, k, 0, 0, products
        self.spread, self.squares, self.sizes = np.ones(N), np.zeros(N), np.zeros(N)
        self.share = self.shares(N, products, 0.5)
        self.unit = sum(self.share) / self.share  # prior precision, at first that of N features with the spread 1
        self.ahead = np.zeros(N)  # its prior mean
        if base:
            self.unit[-1] = self.ahead[-1] = 1.0
        others = [4.0] * self.PLACES + [1.0] * self.PLACES + [1.0, 1 / 4, 1 / 4]
        self.L = np.diag([*self.unit, *others])
        self.m = np.array([*self.ahead, *([0.0] * 23)])
        self.usual, self.thumbs = None, 0

    def shares(self, N, products, part):
        """Of the prior variance: the products, which stand before the last feature, together this part of the others: a
        tenth, in lists a half, where the others begin with a fifth."""
        return np.array([part * (N - products) / products if N - 1 - products <= j < N - 1 else 1.0 for j in range(N)])

    def observe(self, Z, y, weight=1.0):
        def loss(w):
            return (w - self.m) @ self.L @ (w - self.m) / 2 + weight * (np.logaddexp(0.0, Z @ w) - y * (Z @ w)).sum()

        w, step = self.m, np.ones(1)
        while np.abs(step).max() > 1e-9:
            p = expit(Z @ w)
            H = self.L + weight * Z.T @ np.diag(p * (1.0 - p)) @ Z
            step = np.linalg.solve(H, weight * Z.T @ (y - p) - self.L @ (w - self.m))
            while loss(w + step) > loss(w) + 1e-12:
                step = step / 2
            w = w + step
        self.m, self.L = w, H

    def follow(self, x, fitted=True):
        """The prior of weight j is that of a feature with the spread there has been within lists, its mean square being
        two rows more; its scale is 1, or in lists .2, and more if the weights say so, .2 being three weights more."""
        self.share = self.shares(self.N, self.products, 0.5 if fitted else 0.1)
        self.lists, self.rows = self.lists + 1, self.rows + len(x)
        away = x - x.mean(axis=0)
        away[np.abs(away) <= 1e-12 * np.abs(x.mean(axis=0))] = 0.0  # rounding
        self.squares = self.squares + (away**2).sum(axis=0)
        self.sizes = self.sizes + (x**2).sum(axis=0)
        if self.lists in [2**i for i in range(11)]:
            h, P = self.L @ self.m, np.linalg.inv(self.L)
            new_spread = (self.squares + 2 * self.sizes / self.rows) / (self.rows + 2)
            those = [j for j in range(self.N) if self.squares[j] > 0 and self.ahead[j] == 0]
            differing, scale = sum(self.share[those]), 1.0
            if fitted:
                size = sum(self.m[j] ** 2 * new_spread[j] / self.share[j] * differing for j in those)
                scale = (size + 3 * 0.2) / (sum(1 - P[j, j] * self.unit[j] for j in those) + 3)
                scale = min(max(scale, 0.2), 20.0)
            for j in range(self.N):
                new = new_spread[j]
                if self.squares[j] > 0:
                    unit = new * (1 if self.ahead[j] else differing / self.share[j] / scale)
                    self.L[j, j] += unit - self.unit[j]
                    h[j] += self.ahead[j] * (unit / new**0.5 - self.unit[j] / self.spread[j] ** 0.5)
                    self.spread[j], self.unit[j] = new, unit
            self.m = np.linalg.solve(self.L, h)

    def clicked(self, x, shown, clicks, weight=1.0):
        self.follow(x[shown])
        above, Z = False, np.zeros((len(shown[:30]), self.N + 23))
        for i, j in enumerate(shown[:30]):
            z = Z[i]
            z[: self.N] = x[j] - x[shown].mean(axis=0)
            place = self.N + min(i, self.PLACES - 1)
            z[place], z[place + self.PLACES], z[-3], z[-2] = 1.0, float(above), 1.0, 1.0
            above = above or j in clicks
        self.observe(Z, np.array([float(j in clicks) for j in shown[:30]]), weight)
        P = np.linalg.inv(self.L)
        P[-3, :] = P[:, -3] = 0.0
        P[-3, -3] = 1.0
        self.m[-3] = 0.0
        self.L = np.linalg.inv(P)

    def pairs(self, shown, chosen, m):
        """(better, worse): each chosen one, and each looked at and not chosen, or chosen and overtaken."""
        deepest = max([shown.index(j) + 1 for j in chosen if j in shown], default=0)
        chosen = chosen[:30]
        looked_at = shown[: min(max(self.k, deepest), 30)]
        place = {j: i for i, j in enumerate(shown)}
        for i, a in enumerate(chosen):
            overtaken = [b for b in chosen[i + 1 :] if place.get(a, m) > place.get(b, m)]
            yield from ((a, b) for b in [b for b in looked_at if b not in chosen] + overtaken)

    def corrected(self, x, shown, chosen, weight=1.0):
        self.follow(x[[*shown, *(j for j in chosen if j not in shown)]])
        pairs = list(self.pairs(shown, chosen, len(x)))
        if pairs:
            Z = np.array([[*(x[a] - x[b]), *([0.0] * 23)] for a, b in pairs])
            self.observe(Z, np.ones(len(pairs)), weight)

    def judged(self, z, among, up, alone=False):
        usual = among if self.usual is None else self.usual
        self.follow(np.array([z, usual]), fitted=not alone)
        self.observe(np.array([[*(z - usual), *([0.0] * 22), 1.0]]), np.array([up]))
        self.thumbs += 1
        step = (z - usual) / (self.thumbs + 1)
        self.usual = usual + step
        if not alone:
            return
        S = np.eye(self.N + 23)  # the intercept is that of what is usual: e + step . w
        S[-1, : self.N] = -step
        self.L = S.T @ self.L @ S
        self.m[-1] += step @ self.m[: self.N]


def team_draft(A, B, coin):
    """Team-draft interleaving (Radlinski, Kurup & Joachims, 2008): whoever has fewer drafts, a coin where level."""
    drafted, teams = [], []
    while any(j not in drafted for j in A) or any(j not in drafted for j in B):
        level = teams.count(0) == teams.count(1)
        turn = int(coin()) if level else int(teams.count(1) < teams.count(0))
        left = [j for j in (A, B)[turn] if j not in drafted]
        if not left:  # nobody left to draft: the other team does
            turn = 1 - turn
            left = [j for j in (A, B)[turn] if j not in drafted]
        drafted.append(left[0])
        teams.append(turn)
    return drafted, teams


class DuelingBandit:
    """Dueling bandit gradient descent as in [J15] 6.2.6: a step of length delta along u where w + gamma u wins."""

    def __init__(self, N, space, gamma, delta):
        self.space, self.gamma, self.delta = space, gamma, delta
        self.w = np.zeros(N)

    def propose(self, x, rng):
        u = rng.standard_normal(self.w.size)
        u = u / np.linalg.norm(u)
        first, second = self.space.argmax(self.w, x), self.space.argmax(self.w + self.gamma * u, x)
        if self.space.k == 1:  # "Two movies were obtained based on w and w1", and both are shown, be they the same
            turn = int(rng.random() < 0.5)
            return [(first, second)[turn][0], (second, first)[turn][0]], [turn, 1 - turn], u
        return *team_draft(first, second, lambda: rng.random() < 0.5), u

    def update(self, shown, teams, u, ybar):
        """Clicks: the first k of ybar. Of two items the one that came back wins; both, or one entry alone, is a tie."""
        clicks = list(ybar)[: max(self.space.k, 2)]
        of = [team for j in clicks for i, team in zip(shown, teams) if i == j]
        alone = len(shown) == 1  # both chose it: no comparison
        if of.count(1) > of.count(0) and not alone:
            self.w = self.w + self.delta * u


# ---------------------------------------------------------------------------- people, [J15] section 6.1


def utility(u, order, k):
    total = 0.0
    for i, j in enumerate(order[:k], 1):
        total += u[j] * (1.0 / math.log2(i + 1))
    return total


def on_top(best, shown):
    return best + [j for j in shown if j not in best]


def strict_alpha_ranking(k, u, shown, alpha):
    """Down the list until the k best so far, put on top, satisfy Eq. 5; y* where rounding refuses all."""
    y_star = sorted(range(len(u)), key=lambda j: -u[j])
    r = utility(u, y_star, k) - utility(u, shown, k)
    for d in range(min(k, len(shown)), len(shown) + 1):
        y_bar = on_top(sorted(shown[:d], key=lambda j: -u[j])[:k], shown)
        if utility(u, y_bar, k) - utility(u, shown, k) >= alpha * r:
            return y_bar
    return y_star


def noisy_ranking(k, labels, shown, depth):
    """The k of highest label among the first `depth` shown."""
    return on_top(sorted(shown[:depth], key=lambda j: -labels[j])[:k], shown)


def position_biased_clicks(attraction, shown, eta, coin):
    """Position i = 1, 2, ... is looked at with probability (1/i)^eta; what is seen is clicked by its attraction."""
    return [j for i, j in enumerate(shown, 1) if coin() < (1.0 / i) ** eta * attraction[j]]


def cascade_clicks(attraction, shown, stop, coin):
    """Top to bottom; clicked by its attraction; after a click the end with probability stop."""
    clicks = []
    for j in shown:
        if coin() < attraction[j]:
            clicks.append(j)
            if coin() < stop:
                break
    return clicks


def strict_alpha_item(u, y, alpha):
    """y if it is the best left; else the item of lowest utility that satisfies Eq. 5."""
    enough = [j for j in range(len(u)) if u[j] - u[y] >= alpha * (max(u) - u[y])]
    return y if u[y] == max(u) else min(enough, key=lambda j: u[j])


def better_items(ratings, y, exact=False):
    """All that may come back: of the smallest rating strictly above y's; [C12]: exactly one above; or y itself."""
    above = ratings[y] + 1 if exact else min([r for r in ratings if r > ratings[y]], default=None)
    return [j for j, r in enumerate(ratings) if r == above] or [y]


def best_items(ratings, y):
    """All that may come back: y if none is rated higher, else the highest rated."""
    return [y] if ratings[y] == max(ratings) else [j for j, r in enumerate(ratings) if r == max(ratings)]


def strict_alpha_assignment(u, y_star, y, alpha):
    """Slot after slot as in y*, the person who held another slot swapping, until Eq. 5 holds. u: people x slots."""

    def U(z):
        return sum(u[person][s] for s, person in enumerate(z))

    y_bar = list(y)
    for s, person in enumerate(y_star):
        if U(y_bar) - U(y) >= alpha * (U(y_star) - U(y)):
            break
        if person in y_bar:
            y_bar[y_bar.index(person)] = y_bar[s]
        y_bar[s] = person
    return y_bar


class ItemPool:
    """6.1.2: what was shown and what came back leave the pool; regret against the best item left."""

    def __init__(self, u):
        self.u, self.left = list(u), list(range(len(u)))

    def regret(self, shown):
        return max(self.u[j] for j in self.left) - sum(self.u[self.left[i]] for i in shown) / len(shown)

    def leave(self, shown, y_bar):
        self.left = [j for i, j in enumerate(self.left) if i not in (*shown, *y_bar)]


# ---------------------------------------------------------------------------- query chains, [J15] section 3.2


def chain_feedback(rankings, clicks):
    """Prepend to the ranking of the first query of the chain all results clicked throughout the whole chain."""
    y = next(list(ranking) for ranking in rankings if len(ranking) > 0)
    clicked = []
    for of_query in clicks:
        for j in of_query:
            if j not in clicked:
                clicked.append(j)
    return clicked + [j for j in y if j not in clicked]


def dcg_at_10(r, y):
    total = 0.0
    for i in range(1, min(10, len(y)) + 1):
        total += r[y[i - 1]] / math.log2(i + 1)
    return total


# ---------------------------------------------------------------------------- betting, Waudby-Smith & Ramdas 2024


def capital(x, m, c=0.5):
    """The logs of the hedged capital of bets against the mean of the values x being m, after each of them."""
    n, mean, squares = 1, 0.5, 0.25
    higher = lower = 0.0
    logs = []
    for value in x:
        bet = (mean - m) / (squares / n + (mean - m) ** 2)
        higher += math.log1p(min(max(bet, 0.0), c / m) * (value - m))
        lower += math.log1p(-min(max(-bet, 0.0), c / (1 - m)) * (value - m))
        logs.append(np.logaddexp(higher, lower) - math.log(2.0))
        n, old = n + 1, mean
        mean += (value - mean) / n
        squares += (value - old) * (value - mean)
    return logs


# ---------------------------------------------------------------------------- expected feedback, [J15] 6.2.4


def most_random_mass(sure, random_gains, needed):
    """Uniform mass over the random objects, the rest on the strict answer: as much as keeps Eq. 7, by bisection."""

    def enough(p):
        return (1 - p) * sure + p * sum(random_gains) / len(random_gains) >= needed

    if enough(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(100):
        mid = (low + high) / 2
        low, high = (mid, high) if enough(mid) else (low, mid)
    return low


# ---------------------------------------------------------------------------- movies, [J15] 6.1.2; Zhou et al. 2008


def ridge(rows, targets, penalty):
    """(sum q q^T + penalty I)^-1 sum q r."""
    k = len(rows[0])
    A, b = penalty * np.eye(k), np.zeros(k)
    for q, r in zip(rows, targets):
        A, b = A + np.outer(q, q), b + np.array(q) * r
    return np.linalg.inv(A) @ b


def alternating_least_squares(ratings, Q, regularisation, sweeps, penalty):
    """ratings: {(user, movie): r}, Q: {movie: q}. Users by ridge on their movies, then movies on their users."""
    for _ in range(sweeps):
        P = {}
        for u in {u for u, _ in ratings}:
            mine = [(Q[j], r) for (v, j), r in ratings.items() if v == u]
            P[u] = ridge(*zip(*mine), regularisation * PENALTIES[penalty](len(mine)))
        Q = {}
        for j in {j for _, j in ratings}:
            mine = [(P[u], r) for (u, i), r in ratings.items() if i == j]
            Q[j] = ridge(*zip(*mine), regularisation * PENALTIES[penalty](len(mine)))
    return P, Q


PENALTIES = {"plain": lambda n: 1, "weighted": lambda n: n}
"""How often |p|^2 is counted for a row of n ratings: once in Bell & Koren, for each of its ratings in Zhou et al."""


def factor_loss(ratings, P, Q, regularisation, penalty):
    loss = 0.0
    for (u, j), r in ratings.items():
        loss += (r - sum(a * b for a, b in zip(P[u], Q[j]))) ** 2
    for rows, place in ((P, 0), (Q, 1)):
        for row in {key[place] for key in ratings}:
            times = PENALTIES[penalty](sum(key[place] == row for key in ratings))
            loss += regularisation * times * sum(a * a for a in rows[row])
    return loss


# ---------------------------------------------------------------------------- Ranking SVM, [J15] 6.2.5; Algorithm 3


class RankingSVM(PreferencePerceptron):
    """ "We retrained the SVM whenever 10% more examples were added to the training set. The first training was after
    the first iteration [...] and the C value was fixed at 100 until there were 50 pairs of examples [...] After there
    were more than 50 pairs in the training set, the C value was obtained via five-fold cross-validation." Rounds in
    which nothing was corrected give no pair; until the first training, anything is shown."""

    def __init__(self, N, space, squared, grid):
        super().__init__(N, space)
        self.squared, self.grid = squared, grid
        self.pairs, self.trained, self.C = [], 0, None

    def update(self, x, y, ybar):
        D = self.D(x, y, ybar)
        if any(D != 0):
            self.pairs.append(D)
            if due(len(self.pairs), self.trained):
                self.trained = len(self.pairs)
                self.C = 100.0 if self.trained <= 50 else cross_validated(self.pairs, self.grid, self.squared)
                self.w = support_vectors(self.pairs, self.C, self.squared)


def due(n, trained):
    """Whether n examples are 10 % more than at the last training."""
    return Fraction(n) >= Fraction(11, 10) * trained


def cross_validated(pairs, grid, squared):
    right = dict.fromkeys(grid, 0)
    for C in grid:
        for fold in range(5):
            train = [D for i, D in enumerate(pairs) if i % 5 != fold]
            test = [D for i, D in enumerate(pairs) if i % 5 == fold]
            w = support_vectors(train, C, squared)
            right[C] += sum(1 for D in test if w @ D > 0)
    return min(C for C in grid if right[C] == max(right.values()))


def support_vectors(pairs, C, squared):
    """min |w|^2/2 + C sum max(0, 1 - w.D)^p by its dual (Hsieh et al., 2008), one multiplier after the other:
    0 <= a_i <= C for the hinge loss, 0 <= a_i with 1/(2C) on the diagonal for its square; w = sum a_i D_i."""
    a, w = np.zeros(len(pairs)), np.zeros(pairs[0].size)
    extra, most = (1.0 / (2.0 * C), math.inf) if squared else (0.0, C)
    for _ in range(3000):
        moved = 0.0
        for i, D in enumerate(pairs):
            old = a[i]
            a[i] = min(max(old - (w @ D - 1.0 + extra * old) / (D @ D + extra), 0.0), most)
            w = w + (a[i] - old) * D
            moved = max(moved, abs(a[i] - old) * math.sqrt(D @ D))
        if moved < 1e-5 * (1.0 + math.sqrt(w @ w)):
            break
    return w


def svm_objective(w, pairs, C, squared):
    losses = [max(0.0, 1.0 - w @ D) for D in pairs]
    return w @ w / 2.0 + C * sum(loss**2 if squared else loss for loss in losses)


class GenericCoactive(PreferencePerceptron):
    """[J15] Algorithm 3: `rule` performs an update on w_t, using the gradient of w_t.(phi(x, ybar) - phi(x, y))."""

    def __init__(self, N, space, rule):
        super().__init__(N, space)
        self.rule, self.gradients = rule, []

    def update(self, x, y, ybar):
        self.gradients.append(self.D(x, y, ybar))
        self.w = self.rule(self.w, self.gradients)  # all gradients so far


def adagrad(rate):
    """Duchi, Hazan & Singer 2011, diagonal: w_i += rate g_i / sqrt(sum of g_i^2 so far)."""

    def rule(w, gradients):
        w = w.copy()
        for i in range(w.size):
            length = math.sqrt(sum(g[i] ** 2 for g in gradients))
            if length > 0:
                w[i] += rate * gradients[-1][i] / length
        return w

    return rule


def passive_aggressive(C):
    """Crammer et al. 2006, PA-I: w += min(C, hinge / |g|^2) g."""

    def rule(w, gradients):
        g = gradients[-1]
        return w + min(C, max(0.0, 1.0 - w @ g) / (g @ g)) * g if g @ g > 0 else w

    return rule


# ---------------------------------------------------------------------------- how good feedback is, [J15] section 3


def sign_test_p(better, worse):
    """Two-sided binomial: the probability of all splits at most as likely as this one, were either side as likely."""
    n = better + worse
    likely = [Fraction(math.comb(n, i), 2**n) for i in range(n + 1)]
    return float(sum(p for p in likely if p <= likely[better]))


# ---------------------------------------------------------------------------- sets


class Subsets:
    """phi(x, y)_j = sqrt(sum over y of x_ij); what is shown is greedy."""

    def __init__(self, k):
        self.k = k

    def phi(self, x, y):
        total = np.zeros(x.shape[1])
        for j in y:
            total = total + np.asarray(x[j], float)
        return np.sqrt(total)

    def argmax(self, w, x):
        """Greedy: whoever adds most, ties to the lowest index. Not always the argmax."""
        y = []
        for _ in range(min(self.k, len(x))):
            left = [j for j in range(len(x)) if j not in y]
            y.append(max(left, key=lambda j: round(float(np.dot(w, self.phi(x, [*y, j]))), 9)))
        return y

    def objects(self, x):
        return [list(y) for y in combinations(range(len(x)), min(self.k, len(x)))]

    def pair_differences(self, x, y, ybar):
        return [self.phi(x, ybar) - self.phi(x, y)]


def strict_alpha_set(space, w, x, y_star, y, alpha):
    """One at a time the first of y* that is missing, for the last that is not in y*, until Eq. 5 holds."""

    def U(z):
        return float(np.dot(w, space.phi(x, z)))

    y_bar = list(y)
    while U(y_bar) - U(y) < alpha * (U(y_star) - U(y)) - 1e-12:
        missing = [j for j in y_star if j not in y_bar]
        wrong = [i for i, j in enumerate(y_bar) if j not in y_star]
        y_bar[wrong[-1]] = missing[0]
    return y_bar


# ---------------------------------------------------------------------------- ranks, [P01]


class PRank:
    """[P01] Figure 2, in any numbers: whole ones stay exact."""

    def __init__(self, n, k):
        self.k = k
        self.w = [0] * n  # Initialize: w^1 = 0
        self.b = dict.fromkeys(range(1, k), 0)  # b_1^1, ..., b_{k-1}^1 = 0
        self.b[k] = math.inf  # b_k^1 = infinity
        self.tau = {}  # of the latest round

    def score(self, x):
        return sum(wi * xi for wi, xi in zip(self.w, x))

    def predict(self, x):
        return min(r for r in range(1, self.k + 1) if self.score(x) - self.b[r] < 0)

    def update(self, x, y):
        self.tau = dict.fromkeys(range(1, self.k), 0)
        if self.predict(x) != y:
            y_ = {}
            for r in range(1, self.k):  # 1.
                y_[r] = -1 if y <= r else 1
            for r in range(1, self.k):  # 2.
                self.tau[r] = y_[r] if (self.score(x) - self.b[r]) * y_[r] <= 0 else 0
            self.w = [wi + sum(self.tau.values()) * xi for wi, xi in zip(self.w, x)]  # 3.
            for r in range(1, self.k):
                self.b[r] = self.b[r] - self.tau[r]


class KernelPRank(PRank):
    """The same where w is never written down: w . x = sum over the rounds s of (sum tau^s) K(x^s, x)."""

    def __init__(self, K, k):
        super().__init__(0, k)
        self.K, self.seen = K, []

    def score(self, x):
        return sum(a * self.K(z, x) for a, z in self.seen)

    def update(self, x, y):
        super().update(x, y)
        if any(self.tau.values()):
            self.seen.append((sum(self.tau.values()), list(x)))


class OrdinalLogistic(Posterior):
    """Ours: (w, b) ~ Normal(m, L^-1); each grade y of x says for each r whether it is above: w . x - b_r, 1[y > r].

    Around the first instance: w . x_1 - b_r ~ Normal(log((k - r) / r), 100). An offset: v . x - a, of one person."""

    def __init__(self, N, k, prior=4.0, products=0):
        self.N, self.k, self.prior, self.rows, self.share = N, k, prior, 0, self.shares(N, products, 0.1)
        self.unit, self.squares, self.mean = sum(self.share) / self.share / prior, np.zeros(N), None

    def rows_of(self, x):
        return np.array([[*x, *(-float(r == other) for other in range(1, self.k))] for r in range(1, self.k)])

    def update(self, x, y):
        x = np.array(x, float)
        if self.mean is None:
            self.mean, Z = x, self.rows_of(x)
            usual = np.array([np.log((self.k - r) / r) for r in range(1, self.k)])
            self.L = np.diag([*self.unit, *([0.0] * (self.k - 1))]) + Z.T @ Z / 100
            self.m = np.linalg.solve(self.L, Z.T @ usual / 100)
        self.rows, self.squares = self.rows + 1, self.squares + (x - self.mean) ** 2
        if self.rows in [2**i for i in range(11)]:
            h, differing = self.L @ self.m, self.share[self.squares > 0].sum()
            for j in np.flatnonzero(self.squares > 0):
                unit = differing / self.share[j] / self.prior * self.squares[j] / self.rows
                self.L[j, j] += unit - self.unit[j]
                self.unit[j] = unit
            self.m = np.linalg.solve(self.L, h)
        self.observe(self.rows_of(x), np.array([float(y > r) for r in range(1, self.k)]))
        self.mean = self.mean + (x - self.mean) / self.rows

    def stranger(self, shrink):
        """One person's v, and how much more they give for what is usual."""
        self.a = 0.0
        self.own, self.own_variance = np.zeros(self.N + 1), np.array([*(1 / (self.prior * self.unit)), 4.0]) / shrink

    def own_update(self, x, y):
        """As if its weights were independent of each other, which the precision is taken for afterwards."""
        b = np.sort(self.m[self.N :])
        z, above = np.array([*(x - self.mean), 1.0]), np.array([float(y > r) for r in range(1, self.k)])
        s = self.m[: self.N] @ x - b
        self.own[-1] = self.own[: self.N] @ self.mean - self.a

        def slope(u):
            return (above - expit(s + z @ u)).sum() * z - (u - self.own) / self.own_variance

        u, step = self.own, np.ones(1)
        while np.abs(step).max() > 1e-10:
            p = expit(s + z @ u)
            H = np.diag(1 / self.own_variance) + (p * (1 - p)).sum() * np.outer(z, z)
            step = np.linalg.solve(H, slope(u))
            while slope(u + step) @ step < -1e-12:  # beyond the mode in this direction
                step = step / 2
            u = u + step
        p = expit(s + z @ u)
        H = np.diag(1 / self.own_variance) + (p * (1 - p)).sum() * np.outer(z, z)
        self.own, self.own_variance = u, np.diag(np.linalg.inv(H))
        self.a = u[: self.N] @ self.mean - u[-1]


class MulticlassPerceptron:
    """[P01] "Models": one direction a rank; the right one moves to x, the one shown away from it."""

    def __init__(self, n, k):
        self.w = {r: [0] * n for r in range(1, k + 1)}

    def predict(self, x):
        scores = {r: sum(a * b for a, b in zip(w, x)) for r, w in self.w.items()}
        return min(r for r in scores if scores[r] == max(scores.values()))

    def update(self, x, y):
        shown = self.predict(x)
        if shown != y:
            self.w[y] = [a + b for a, b in zip(self.w[y], x)]
            self.w[shown] = [a - b for a, b in zip(self.w[shown], x)]


class WidrowHoff:
    """[P01] "Models": online regression on the rank, the gradient of (y - w . x)^2 / 2."""

    def __init__(self, n, k, eta):
        self.w, self.k, self.eta = [0] * n, k, eta

    def predict(self, x):
        s = sum(a * b for a, b in zip(self.w, x))
        return min(max(math.floor(s + Fraction(1, 2)), 1), self.k)

    def update(self, x, y):
        s = sum(a * b for a, b in zip(self.w, x))
        self.w = [a + self.eta * (y - s) * b for a, b in zip(self.w, x)]


class ConstantRank:
    """The rank, of the least there are, with the least loss on all that came before; the middle one before that."""

    def __init__(self, k):
        self.k, self.seen = k, []

    def predict(self, x):
        if not self.seen:
            return (self.k + 1) // 2
        return min(range(1, self.k + 1), key=lambda r: sum(abs(r - y) for y in self.seen))

    def update(self, x, y):
        self.seen.append(y)


# ---------------------------------------------------------------------------- ratings


class AlternatingLinearBandits:
    """[A18] Algorithm 1 with its histories kept: X, y of every user, Z, y of every item; B's first rows are given.

    The readings: line 16 writes the row of the present round, too, and the optimistic vector of line 11; lambda_1 and
    lambda_2 are one. Ties of line 11 go to the first item. An item or user is whatever comes; `B` has a row for each
    item that may. The paper's horizon, user sequence and Y belong to who calls.
    """

    def __init__(self, B, penalty, sigma, delta, s):
        self.B = [np.array(row, float) for row in B]  # line 3
        self.penalty, self.sigma, self.delta, self.s = penalty, sigma, delta, s
        self.users, self.items, self.y = [], [], []  # i_l, j_l, y_l
        self.X, self.Z = [], []  # rows B_{j_l} and A_{i_l}
        self.A = {}

    def estimate(self, i):
        """Lines 5 to 8: mu, V, c."""
        k = len(self.B[0])
        past = [t for t in range(len(self.y)) if self.users[t] == i]  # line 5: l < t
        X = np.array([self.X[t] for t in past]).reshape(-1, k)
        y = np.array([self.y[t] for t in past])
        V = X.T @ X + self.penalty * np.eye(k)  # line 7
        mu = np.linalg.inv(V) @ X.T @ y  # line 6
        root = np.linalg.det(V) ** 0.5 * np.linalg.det(self.penalty * np.eye(k)) ** -0.5
        c = self.sigma * math.sqrt(2 * math.log(root / self.delta)) + self.penalty**0.5 * self.s  # line 8
        return mu, V, c

    def scores(self, i, offered):
        """Eq. 6: what the best q of the ellipsoid gives each item on offer."""
        mu, V, c = self.estimate(i)
        inverse = np.linalg.inv(V)
        return [float(mu @ self.B[j] + c * math.sqrt(self.B[j] @ inverse @ self.B[j])) for j in offered]

    def play(self, i, offered):
        """Lines 9 to 12: the item shown."""
        scores = self.scores(i, offered)
        return list(offered)[scores.index(max(scores))]

    def observe(self, i, j, rating):
        """Lines 11 and 13 to 18: A_i is the q of Eq. 7, then B_j is fitted; the histories are written anew."""
        mu, V, c = self.estimate(i)
        inverse = np.linalg.inv(V)
        norm = math.sqrt(self.B[j] @ inverse @ self.B[j])
        self.A[i] = mu + c * inverse @ self.B[j] / norm if norm > 0 else mu
        self.users.append(i)
        self.items.append(j)
        self.y.append(rating)
        self.X.append(None)
        self.Z.append(None)
        for t in range(len(self.y)):  # line 16
            if self.users[t] == i:
                self.Z[t] = self.A[i]
        self.fit(j)

    def fit(self, j):
        """Lines 15, 17 and 18."""
        k = len(self.B[0])
        past = [t for t in range(len(self.y)) if self.items[t] == j]  # line 15: l <= t
        Z = np.array([self.Z[t] for t in past]).reshape(-1, k)
        y = np.array([self.y[t] for t in past])
        self.B[j] = np.linalg.inv(Z.T @ Z + self.penalty * np.eye(k)) @ Z.T @ y  # line 17
        for t in past:  # line 18
            self.X[t] = self.B[j]


class RarelySwitchingBandits(AlternatingLinearBandits):
    """[A18] with the rarely switching OFUL of Abbasi-Yadkori et al. 2011, section 5.1: theta = A_i is found anew only
    once det V > (1 + C) det V_tau, V_tau being what it was found with; else argmax <theta, B_j> is shown. From tau on V
    grows by the rows that were played, as they were then.
    """

    def __init__(self, B, penalty, sigma, delta, s, C):
        super().__init__(B, penalty, sigma, delta, s)
        self.C = C
        self.V, self.V_tau = {}, {}

    def switches(self, i):
        return i not in self.V or np.linalg.det(self.V[i]) > (1 + self.C) * np.linalg.det(self.V_tau[i])

    def scores(self, i, offered):
        if self.switches(i):
            return super().scores(i, offered)
        return [float(self.A[i] @ self.B[j]) for j in offered]

    def observe(self, i, j, rating):
        played = self.B[j].copy()
        if self.switches(i):
            self.V_tau[i] = self.estimate(i)[1]
            self.V[i] = self.V_tau[i].copy()
            super().observe(i, j, rating)
        else:
            self.users.append(i)
            self.items.append(j)
            self.y.append(rating)
            self.X.append(None)
            self.Z.append(self.A[i])
            self.fit(j)
        self.V[i] = self.V[i] + np.outer(played, played)


# ---------------------------------------------------------------------------- lists drawn at random


def plackett_luce(ranks, m, temperature):
    """The probability of the list `ranks` of the ranks 0 .. m - 1, as a product over its places."""
    weights, p = {r: (r + 1.0) ** (-1.0 / temperature) for r in range(m)}, 1.0
    for rank in ranks:
        p *= weights[rank] / sum(weights.values())
        del weights[rank]
    return p
