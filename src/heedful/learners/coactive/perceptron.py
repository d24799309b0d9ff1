"""The coactive learners of [J15] Algorithms 1 to 5: show an object, get a better one, update the weights towards it.

In every round the learner shows y, the argmax of w . phi(x, .), and gets ybar; D = phi(x, ybar) - phi(x, y) is the
update direction, so w . D <= 0. The space of objects and the update rule are independent choices (Algorithm 3): `step`
is the rule, a function of D alone, and `update` makes the step for D in place.

[C12]: Shivaswamy & Joachims, *Online Structured Prediction via Coactive Learning*, ICML 2012; [J15]: Shivaswamy &
Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.space import Space
from heedful.core.validation import check_count, check_flag, check_linear, check_positive
from heedful.jit.kernel import Floats, Ints, primitive, squared_norm

Array = npt.NDArray[np.float64]


class PerceptronState(NamedTuple):
    """The state of `PreferencePerceptron` for N features."""

    w: Array
    """the utility weights (N,)"""
    pending: Array
    """the sum of the update directions D of the unfinished batch (N,)"""
    t: int
    """number of rounds learned from"""


@declare(version=1, lesson_cost=1)
class PreferencePerceptron(NamedTuple):
    """Preference perceptron: [J15] Algorithms 1 and 2. Interaction: coactive.

    Shows the object y of `space` of greatest utility w . phi(x, y), for weights w and joint features phi of
    `n_features` numbers, and w += D after every round, from w = 0, for D = phi(x, ybar) - phi(x, y) and the feedback
    object ybar. With `batch` = k the k D's of a batch are applied together after its last round (summed from s+1; from
    s, as Algorithm 2 prints it, a round would count twice), and those of an unfinished batch not at all.

    Theorem 1, Lemma 4: after T rounds the average regret is REG_T <= mean xi / alpha + 2 R |w*| sqrt(k/T) / alpha, for
    true weights w*, |phi| <= R, and alpha-informative feedback with slacks xi: ybar gains at least alpha times the
    regret, less xi.
    """

    n_features: int
    space: Space
    batch: int = 1

    @property
    def additive(self) -> bool:
        """True if feedback on a round adds the same vector to the weights whatever they are, so that the order of
        rounds does not matter; False with batches."""
        return self.batch == 1

    def init(self, rng: np.random.Generator) -> PerceptronState:
        check_linear(self.n_features, self.space)
        check_count("batch", self.batch)
        return PerceptronState(np.zeros(self.n_features), np.zeros(self.n_features), 0)

    def propose(self, state: PerceptronState, x: Floats, rng: np.random.Generator) -> Ints:
        return self.space.argmax(state.w, x)

    def update(self, state: PerceptronState, x: Floats, y: Ints, feedback: Ints) -> PerceptronState:
        self.space.add_difference(state.w if self.batch == 1 else state.pending, x, feedback, y, 1.0)
        return self.finish_round(state)

    def step(self, state: PerceptronState, D: Array) -> PerceptronState:
        into = state.w if self.batch == 1 else state.pending
        into += D
        return self.finish_round(state)

    def finish_round(self, state: PerceptronState) -> PerceptronState:
        """Finish a round: add the update directions of a batch to the weights if the round completes it, and return the
        state with one round more.

        The update direction of the round has been added to `state.pending` before."""
        t = state.t + 1
        if self.batch > 1 and t % self.batch == 0:
            state.w[:] += state.pending
            state.pending[:] = 0.0
        return PerceptronState(state.w, state.pending, t)

    def weights(self, state: PerceptronState) -> Array:
        return state.w

    def regret_bound(self, t: Array, alpha: float, w_star: Array, R: float, S: float) -> Array:
        """Return the bound of Theorem 1 and Lemma 4 on the average regret after each of n numbers of rounds `t` (n,),
        as (n,).

        It holds for strictly `alpha`-informative feedback (each answer gains at least alpha times the regret of the
        object shown) under true utility weights `w_star` (N,), if no vector of N joint features is longer than `R`
        (Euclidean norm). `S`, the bound on the largest feature, is not used.
        """
        return 2.0 * R * float(np.linalg.norm(w_star)) * np.sqrt(self.batch / t) / alpha


def _signed_weights_loop(theta: Array, w: Array) -> None:
    most = 0.0
    for i in range(theta.size):
        most = max(most, abs(theta[i]))
    z = 0.0
    for i in range(theta.size):
        plus, minus = math.exp(theta[i] - most), math.exp(-theta[i] - most)
        w[i] = plus - minus
        z += plus + minus
    for i in range(theta.size):
        w[i] /= z


@primitive(_signed_weights_loop)
def signed_weights(theta: Array, w: Array) -> None:
    """Write into `w` the weights w_i = (e^theta_i - e^-theta_i) / sum_j (e^theta_j + e^-theta_j); `theta` and `w` are
    (N,), for N features.

    exp is that of libm, for one number at a time: numpy's rounds differently on different processors.
    """
    most = np.abs(theta).max()
    plus = np.array([math.exp(v) for v in (theta - most).tolist()])
    minus = np.array([math.exp(v) for v in (-theta - most).tolist()])
    w[:] = (plus - minus) / np.add.accumulate(plus + minus)[-1]


def _simplex_weights_loop(theta: Array, w: Array) -> None:
    most = theta[0]
    for i in range(theta.size):
        most = max(most, theta[i])
    z = 0.0
    for i in range(theta.size):
        w[i] = math.exp(theta[i] - most)
        z += w[i]
    for i in range(theta.size):
        w[i] /= z


@primitive(_simplex_weights_loop)
def simplex_weights(theta: Array, w: Array) -> None:
    """Write into `w` the softmax w_i = e^theta_i / sum_j e^theta_j; `theta` and `w` are (N,), for N features. exp is
    libm's, as in `signed_weights`, so that results are the same on all processors."""
    powers = np.array([math.exp(v) for v in (theta - theta.max()).tolist()])
    w[:] = powers / np.add.accumulate(powers)[-1]


class ExponentiatedState(NamedTuple):
    """The state of `ExponentiatedPerceptron` for N features."""

    theta: Array
    """the sum of eta_t D_t over the rounds t, learning rate times update direction (N,)"""
    w: Array
    """the utility weights that follow from `theta` (N,)"""
    t: int
    """number of rounds learned from"""


@declare(version=1, lesson_cost=1)
class ExponentiatedPerceptron(NamedTuple):
    """Exponentiated preference perceptron: [J15] Algorithm 4, signed by Eq. 22 and 23. Interaction: coactive.

    Shows the object y of `space` of greatest utility w . phi(x, y), for weights w and joint features phi of
    `n_features` numbers; for the feedback object ybar and D = phi(x, ybar) - phi(x, y), w_i *= exp(eta D_i), then
    normalised to sum 1, over doubled features phi_e = (phi, -phi) (Eq. 22 prints min where it must be max). The weight
    of phi_i is e^theta_i / Z and that of -phi_i is e^-theta_i / Z for theta = sum eta_t D_t over the rounds t and the
    normaliser Z, so theta (N,) is all there is to keep for N features. `bound` is S, an upper bound of the largest
    entry |phi|_inf. With a `horizon` of T rounds, eta = 1 / (2 S sqrt T); without one (0), the experiments' eta_t = 1 /
    (2 S sqrt t), which has no guarantee. If `signed` is False: Algorithm 4 as printed, w_i = e^theta_i / Z from 1 / N
    on, for true weights w* >= 0.

    Theorem 5, |w*|_1 = 1, fixed eta: REG_T <= mean xi / alpha + (2 ln N + 1) S / (alpha sqrt T), N doubled if signed,
    for the average regret REG_T under alpha-informative feedback with slacks xi.
    """

    n_features: int
    space: Space
    bound: float
    horizon: int = 0
    signed: bool = True

    @property
    def simulation_only(self) -> str | None:
        """A text that says why the learner is for simulations only if it is not `signed`; None if it is."""
        return None if self.signed else "every feature has the weight 1 / N before the first lesson"

    def init(self, rng: np.random.Generator) -> ExponentiatedState:
        check_linear(self.n_features, self.space)
        check_positive("bound", self.bound)
        check_count("horizon", self.horizon, least=0)
        check_flag("signed", self.signed)
        w = np.full(self.n_features, 0.0 if self.signed else 1.0 / self.n_features)
        return ExponentiatedState(np.zeros(self.n_features), w, 0)

    def propose(self, state: ExponentiatedState, x: Floats, rng: np.random.Generator) -> Ints:
        return self.space.argmax(state.w, x)

    def update(self, state: ExponentiatedState, x: Floats, y: Ints, feedback: Ints) -> ExponentiatedState:
        self.space.add_difference(state.theta, x, feedback, y, self.rate(state.t + 1))
        return self.finish_round(state)

    def step(self, state: ExponentiatedState, D: Array) -> ExponentiatedState:
        state.theta[:] += self.rate(state.t + 1) * D
        return self.finish_round(state)

    def dimension(self) -> int:
        """Return the N of Theorem 5: the number of features, doubled if the weights are signed."""
        return 2 * self.n_features if self.signed else self.n_features

    def rate(self, t: int) -> float:
        """Return the learning rate eta_t of round `t` = 1, 2, ..."""
        return 1.0 / (2.0 * self.bound * math.sqrt(float(self.horizon if self.horizon > 0 else t)))

    def finish_round(self, state: ExponentiatedState) -> ExponentiatedState:
        """Finish a round: compute the weights from theta, and return the state with one round more.

        The learning rate times the update direction of the round has been added to `state.theta` before."""
        if self.signed:
            signed_weights(state.theta, state.w)
        else:
            simplex_weights(state.theta, state.w)
        return ExponentiatedState(state.theta, state.w, state.t + 1)

    def weights(self, state: ExponentiatedState) -> Array:
        return state.w

    def regret_bound(self, t: Array, alpha: float, w_star: Array, R: float, S: float) -> Array:
        """Return the bound of Theorem 5 on the average regret after each of n numbers of rounds `t` (n,), as (n,).

        It holds for strictly `alpha`-informative feedback (each answer gains at least alpha times the regret of the
        object shown) under true utility weights `w_star` (N,), if no joint feature exceeds `S` in absolute value; `R`,
        the bound on the length of feature vectors, is not used. For the learner's `horizon` T and `bound` B, the proof
        gives (2 B sqrt(T) ln N + B t / sqrt(T)) |w*|_1 / (alpha t) at every t, with N = `dimension()` and w* = w_star.
        The result is NaN where it does not hold: without a horizon, where B is less than S, or where w* has a negative
        weight and the learner's weights are not signed.
        """
        if self.horizon == 0 or self.bound < S or not (self.signed or bool((w_star >= 0.0).all())):
            return np.full(t.shape, np.nan)
        root = math.sqrt(self.horizon)
        first = 2.0 * math.log(self.dimension()) * self.bound * root
        return float(np.abs(w_star).sum()) * (first + self.bound * t / root) / (alpha * t)


class ConvexState(NamedTuple):
    """The state of `ConvexPerceptron` for N features."""

    w: Array
    """the utility weights (N,)"""
    t: int
    """number of rounds learned from"""


@declare(version=1, lesson_cost=1)
class ConvexPerceptron(NamedTuple):
    """Convex preference perceptron: [J15] Algorithm 5. Interaction: coactive.

    Shows the object y of `space` of greatest utility w . phi(x, y), for weights w and joint features phi of
    `n_features` numbers. After round t, w = the point of the ball |w| <= `radius` nearest to w + D / sqrt t, for D =
    phi(x, ybar) - phi(x, y) and the feedback object ybar. (The factor G in the step of [C12] contradicts its own bound;
    [J15] has none.)

    Theorem 6 for the linear loss, G = 1: REG_T <= 2 mean xi+ / alpha + (D2/(2 sqrt T) + D2/T + 4 R^2/sqrt T) / alpha,
    D2 = (2 radius)^2, for the average regret REG_T, true weights |w*| <= radius, |phi| <= R, and alpha-informative
    feedback with slacks xi: ybar gains at least alpha times the regret, less xi.
    """

    n_features: int
    space: Space
    radius: float

    def init(self, rng: np.random.Generator) -> ConvexState:
        check_linear(self.n_features, self.space)
        check_positive("radius", self.radius)
        return ConvexState(np.zeros(self.n_features), 0)

    def propose(self, state: ConvexState, x: Floats, rng: np.random.Generator) -> Ints:
        return self.space.argmax(state.w, x)

    def update(self, state: ConvexState, x: Floats, y: Ints, feedback: Ints) -> ConvexState:
        self.space.add_difference(state.w, x, feedback, y, 1.0 / math.sqrt(float(state.t + 1)))
        return self.finish_round(state)

    def step(self, state: ConvexState, D: Array) -> ConvexState:
        state.w[:] += 1.0 / math.sqrt(float(state.t + 1)) * D
        return self.finish_round(state)

    def finish_round(self, state: ConvexState) -> ConvexState:
        """Finish a round: project the weights onto the ball |w| <= `radius`, and return the state with one round more.

        The scaled update direction of the round has been added to `state.w` before."""
        norm = math.sqrt(squared_norm(state.w))
        if norm > self.radius:
            state.w[:] *= self.radius / norm
        return ConvexState(state.w, state.t + 1)

    def weights(self, state: ConvexState) -> Array:
        return state.w

    def regret_bound(self, t: Array, alpha: float, w_star: Array, R: float, S: float) -> Array:
        """Return the bound of Theorem 6, for the linear loss, on the average regret after each of n numbers of rounds
        `t` (n,), as (n,).

        It holds for strictly `alpha`-informative feedback (each answer gains at least alpha times the regret of the
        object shown) under true utility weights `w_star` (N,), if no vector of N joint features is longer than `R`
        (Euclidean norm). `S`, the bound on the largest feature, is not used. The result is NaN if w_star is longer than
        the learner's `radius`.
        """
        if np.linalg.norm(w_star) > self.radius:
            return np.full(t.shape, np.nan)
        d2, root = (2.0 * self.radius) ** 2, np.sqrt(t)
        return (d2 / (2.0 * root) + d2 / t + 4.0 * R**2 / root) / alpha
