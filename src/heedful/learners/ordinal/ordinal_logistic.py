"""Ordinal logistic regression, one instance after the other: ours, for grades."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.validation import check_count, check_positive
from heedful.jit.kernel import Floats, dot
from heedful.learners.logistic import PosteriorState, first_state, follow_usual, observe, prior_shares, renew_prior
from heedful.learners.ordinal.perceptrons import rank_at
from heedful.spaces.ordinal import Ranks

Array = npt.NDArray[np.float64]

MOST_GRADES = 100
"""The greatest number of grades: an instance costs its cube."""
_VARIANCE = 100.0  # of each threshold: with less, nine grades in a few hundred instances are held together


class Offset(NamedTuple):
    """What one person's scores add to those of all people: v . x - a for an instance x (N,) of N features."""

    v: Array
    """the person's own weights (N,)"""
    a: float
    """by how much the person's grades are lower"""
    variances: Array
    """the posterior variances of v and of v . usual - a (N + 1,); 0 before the person's first grade"""


@declare(version=1, lesson_cost=20)
class OrdinalLogistic(NamedTuple):
    """Ordinal logistic regression: ours, one Gaussian over weights and thresholds. Interaction: ordinal.

    The grade of an instance x (`n_features` = N) is above r, of `n_ranks` = k grades, with probability sigma(w . (x -
    usual) - b_r), where usual is the mean of the instances so far ("all thresholds", Rennie & Srebro 2005). w and b
    have a Gaussian posterior (`heedful.learners.logistic`): of A features that differ, each weight has the prior
    variance `prior` / A in units of 1 / the spread of its feature; a threshold has the prior mean log(r / (k - r)) and
    the variance 100. `products` features, those before the last one, are products of two others; together they have a
    tenth of the prior variance of the others. Predicts 1 + the number of thresholds, put in order, that the score
    reaches. Costs (N + k)^2 k + k^3 an instance; beyond 300 features only variances are kept, at a cost of (N + k) k +
    k^3.
    """

    n_features: int
    n_ranks: int
    prior: float = 4.0
    products: int = 0

    @property
    def space(self) -> Ranks:
        return Ranks(self.n_ranks)

    def init(self, rng: np.random.Generator) -> PosteriorState:
        n, k = self.n_features, self.n_ranks
        check_count("n_features", n)
        check_count("n_ranks", k, least=2, most=MOST_GRADES)
        check_positive("prior", self.prior)
        check_count("products", self.products, least=0, most=n - 1)
        r = np.arange(1.0, k)
        intercepts = np.log((k - r) / r)
        shares = prior_shares(n, self.products, False)
        precision = np.sum(shares) / self.prior / shares
        variances = self.prior * shares / np.sum(shares)
        return first_state(np.zeros(n), precision, variances, intercepts, np.full(k - 1, _VARIANCE))

    def propose(self, state: PosteriorState, x: Floats, rng: np.random.Generator) -> int:
        return rank_at(dot(x, self.weights(state)), self.thresholds(state))

    def update(self, state: PosteriorState, x: Floats, y: int, feedback: int) -> PosteriorState:
        n, r = self.n_features, self.n_ranks - 1
        if state.t == 0:
            state.usual[:] = x
        Z, above = np.zeros((r, n + r)), np.zeros(r)
        for j in range(r):
            Z[j, :n] = x - state.usual
            Z[j, n + j] = 1.0
            above[j] = 1.0 if feedback > j + 1 else 0.0
        rows = renew_prior(
            state, Z[:1, :n].copy(), np.zeros(n), self.prior, prior_shares(n, self.products, False), False
        )
        observe(state.m, state.P, Z, np.arange(r), np.full(r, -1), above, 1.0)
        follow_usual(state, Z[0] / (state.t + 1.0), n)
        return PosteriorState(
            state.m, state.P, state.prior, state.precision, state.base, state.spread, state.squares, state.sizes,
            state.usual, state.judged + 1, rows, state.t + 1,
        )  # fmt: skip

    def weights(self, state: PosteriorState) -> Array:
        """Return the weights w (N,) of N features."""
        return state.m[: self.n_features]

    def thresholds(self, state: PosteriorState) -> Array:
        """Return the thresholds (k-1,) of k grades, ascending: the values of w . x at which the predicted grade
        changes."""
        return np.sort(dot(state.usual, self.weights(state)) - state.m[self.n_features :])

    def stranger(self) -> Offset:
        """Return the offset of a person who has graded nothing."""
        return Offset(np.zeros(self.n_features), 0.0, np.zeros(self.n_features + 1))

    def learn_offset(self, state: PosteriorState, own: Offset, x: Floats, grade: int, shrink: float) -> Offset:
        """Return a person's offset `own` after learning that they gave the instance `x` (N,) this `grade`.

        Beside the scores of all people, which are taken as they are in `state`, an offset has independent weights: v
        with the prior variances that the shared weights have for `prior` = 1, divided by `shrink`, and v . usual - a
        with 4 / `shrink`."""
        n, r, before = self.n_features, self.n_ranks - 1, own.variances
        if before[-1] == 0.0:
            before = np.append(1.0 / (self.prior * state.precision), 4.0) / shrink
        Z = np.empty((r, n + 2))
        Z[:, :n], Z[:, n] = x - state.usual, 1.0
        Z[:, -1] = dot(x, self.weights(state)) - self.thresholds(state)  # its weight is 1, and known
        m, P = np.concatenate([own.v, [dot(own.v, state.usual) - own.a, 1.0]]), np.append(before, 0.0)[None]
        above = (np.arange(1, r + 1) < grade).astype(np.float64)
        observe(m, P, Z, np.arange(r), np.full(r, -1), above, 1.0)
        v = m[:n].copy()
        return Offset(v, float(dot(v, state.usual) - m[n]), P[0, :-1].copy())
