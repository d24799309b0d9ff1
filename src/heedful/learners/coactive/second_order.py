"""The second-order preference perceptron, [J15] Algorithm 6.

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.space import Space
from heedful.core.validation import check_between, check_linear, check_positive
from heedful.jit.blas import add_rank_one, solve_definite, solve_factored, symmetric_times
from heedful.jit.kernel import Floats, Ints, kernel, scores, squared_norm

Array = npt.NDArray[np.float64]


class SecondOrderState(NamedTuple):
    """The state of `SecondOrderPerceptron` for N features."""

    w: Array
    """the utility weights (N,)"""
    A_inv: Array
    """the inverse of A = epsilon I + gamma sum D D', of which only the lower triangle is used (N x N)"""
    D: Array
    """a buffer for the update direction (N,)"""
    v: Array
    """a buffer for A^-1 D (N,)"""
    t: int
    """number of rounds learned from"""


@declare(version=1, lesson_cost=1)
class SecondOrderPerceptron(NamedTuple):
    """Second-order preference perceptron: [J15] Algorithm 6. Interaction: coactive.

    Shows the object y of `space` of greatest utility w . phi(x, y), for weights w and joint features phi of
    `n_features` numbers; D = phi(x, ybar) - phi(x, y) for the feedback object ybar. Then A_t = A_{t-1} + gamma D D^T,
    A_0 = epsilon I; w = the point of the ball |w| <= radius nearest, in the norm of A_t, to w + A_t^-1 D. The state
    keeps A^-1, updated by Woodbury with denominator 1/gamma + D^T A^-1 D.

    Theorem 8 bounds the regret of a strongly convex loss (CREG); the linear loss is not one, so there is no bound on
    the regret of utilities (REG).
    """

    n_features: int
    space: Space
    gamma: float = 1.0
    epsilon: float = 1.0
    radius: float = 100.0

    def init(self, rng: np.random.Generator) -> SecondOrderState:
        check_linear(self.n_features, self.space)
        check_positive("gamma", self.gamma)
        for name, value in (("epsilon", self.epsilon), ("radius", self.radius)):
            check_between(name, value, 1e-6, 1e50)  # for less, rounding can make A^-1 useless for the projection
        n = self.n_features
        return SecondOrderState(np.zeros(n), np.eye(n) / self.epsilon, np.zeros(n), np.zeros(n), 0)

    def propose(self, state: SecondOrderState, x: Floats, rng: np.random.Generator) -> Ints:
        return self.space.argmax(state.w, x)

    def update(self, state: SecondOrderState, x: Floats, y: Ints, feedback: Ints) -> SecondOrderState:
        state.D[:] = 0.0
        self.space.add_difference(state.D, x, feedback, y, 1.0)
        return self.step(state, state.D)

    def step(self, state: SecondOrderState, D: Array) -> SecondOrderState:
        w, A_inv, v = state.w, state.A_inv, state.v
        symmetric_times(A_inv, D, v)
        along = scores(D.reshape(1, -1), v)[0]  # D^T A_{t-1}^-1 D, 0 only where D is
        if along > 0.0:
            denominator = 1.0 / self.gamma + along
            add_rank_one(A_inv, v, -1.0 / denominator)
            v *= 1.0 / (self.gamma * denominator)  # A_t^-1 D
            w[:] += v
            if squared_norm(w) > self.radius**2:
                w[:] = project_onto_ball(A_inv, w, self.radius)
        return SecondOrderState(w, A_inv, state.D, v, state.t + 1)

    def weights(self, state: SecondOrderState) -> Array:
        return state.w


@kernel
def project_onto_ball(A_inv: Array, w_bar: Array, radius: float) -> Array:
    """Return the point (N,) of the ball |w| <= `radius` that is nearest to the N weights `w_bar` (N,) in the norm of a
    matrix A; `w_bar` is longer than `radius`.

    `A_inv` is A^-1 (N x N), of which only the lower triangle is read. The point minimises (w - w_bar)^T A (w - w_bar)
    over the ball: it is w(mu) = (I + mu A^-1)^-1 w_bar for the mu > 0 with |w(mu)| = radius. 1/|w(mu)| is concave and
    increases, so Newton steps on 1/|w(mu)| - 1/radius from mu = 0 approach the root from below; they converge after 4
    to 6 steps.
    """
    n = w_bar.size
    mu = 0.0
    w = w_bar.copy()
    slope = np.empty(n)
    for _ in range(100):
        system = mu * A_inv
        for i in range(n):
            system[i, i] += 1.0
        w = solve_definite(system, w_bar)
        norm = math.sqrt(squared_norm(w))
        if norm <= radius * (1.0 + 1e-12):
            break
        symmetric_times(A_inv, w, slope)
        falling = scores(w.reshape(1, -1), solve_factored(system, slope))[0]  # -d|w|^2/dmu / 2
        mu += (norm / radius - 1.0) * norm**2 / falling
    return w * (radius / norm)
