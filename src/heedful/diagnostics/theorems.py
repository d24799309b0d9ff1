"""Regret bounds of [J15], evaluated after each round, with the hypotheses of each theorem and whether they hold."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from heedful.diagnostics.feedback import ROUNDING
from heedful.learners.coactive.perceptron import ConvexPerceptron, ExponentiatedPerceptron, PreferencePerceptron
from heedful.learners.coactive.second_order import SecondOrderPerceptron
from heedful.spaces.ranking import is_exact

Array = npt.NDArray[np.float64]
_WithTheorem: TypeAlias = PreferencePerceptron | ExponentiatedPerceptron | ConvexPerceptron | SecondOrderPerceptron


class Facts(NamedTuple):
    """What a regret bound of [J15] needs besides the learner, for T rounds: the true weights, bounds of the features,
    and the slacks of the feedback. phi(x, y) are the features of the object y in the context x.
    """

    w_star: Array
    """(N,) true weights w* of the utility, for N features"""
    R: float
    """upper bound of |phi(x, y)|, the Euclidean norm of features, over all objects"""
    S: float
    """upper bound of |phi(x, y)|_inf over all objects"""
    alpha: float
    """the fraction of the regret that the feedback of every round gains, up to the slack of the round"""
    slack: Array
    """(T,) slacks xi_t of the rounds for this alpha; zeros for strictly alpha-informative feedback"""
    expected: bool = False
    """whether slacks and regrets are expectations over the answers that the person might give (Eq. 7)"""
    margins: Array = np.empty(0)
    """(T,) -w_t . D_t of the rounds, with w_t the learner's weights and D_t = phi(x_t, ybar_t) - phi(x_t, y_t) the
    features of the feedback minus those of the object shown; empty if not known. Only Theorem 8 uses them
    """


class Hypothesis(NamedTuple):
    """A hypothesis of a theorem, and whether it holds."""

    says: str
    """the hypothesis in words"""
    holds: bool
    """whether it holds for the learner and the data at hand"""


class Bound(NamedTuple):
    """The upper bound of a theorem on the average regret, or on a convex loss of it, after each of T rounds."""

    theorem: str
    """the theorem by name, such as "Theorem 1" or "Theorem 5", with its corollary if one is meant"""
    measure: str
    """what is bounded: "REG", the average regret, or "CREG", the average of the loss (theta - M)^2 of theta, minus the
    regret, where M = R |w*| (`Facts`)"""
    hypotheses: tuple[Hypothesis, ...]
    """the hypotheses of the theorem, and whether each holds"""
    values: Array
    """(T,) the bound after t = 1..T rounds; NaN unless all hypotheses hold"""

    @property
    def holds(self) -> bool:
        """True if all hypotheses of the theorem hold."""
        return all(hypothesis.holds for hypothesis in self.hypotheses)

    @property
    def lacking(self) -> tuple[str, ...]:
        """The hypotheses of the theorem that do not hold, in words."""
        return tuple(hypothesis.says for hypothesis in self.hypotheses if not hypothesis.holds)


def bounds(learner: object, facts: Facts) -> tuple[Bound, ...]:
    """Return the bounds of all theorems of [J15] about `learner`, each evaluated after every round that `facts` has
    slacks of; () if there is no theorem about it.
    """
    if isinstance(learner, PreferencePerceptron):
        return (perceptron_bound(learner, facts),)
    if isinstance(learner, ExponentiatedPerceptron):
        return (exponentiated_bound(learner, facts),)
    if isinstance(learner, ConvexPerceptron):
        return convex_bound(learner, facts, "REG"), convex_bound(learner, facts, "CREG")
    if isinstance(learner, SecondOrderPerceptron):
        return (second_order_bound(learner, facts),)
    return ()


def perceptron_bound(learner: PreferencePerceptron, facts: Facts) -> Bound:
    """Evaluate the bound of the preference perceptron: Theorem 1, Corollary 2 (expected feedback), Lemma 4 (batches).

        mean xi / alpha + 2 R |w*| sqrt(k / t) / alpha,   k rounds in a batch, after t rounds

    The slacks xi, alpha, w* and the bound R of |phi| are those of `facts`. With xi inserted from Eq. 6, alpha cancels,
    and the bound says: mean gain <= 2 R |w*| sqrt(k / t). So, whatever the feedback, the bound is smallest at alpha = 1
    (each alpha has its own slacks).
    """
    facts = _divisible(facts)
    theorem = ("Corollary 2" if facts.expected else "Theorem 1") if learner.batch == 1 else "Lemma 4"
    constant = 2.0 * facts.R * _norm(facts.w_star) * math.sqrt(learner.batch)
    values = _mean(facts.slack) / facts.alpha + constant / (facts.alpha * np.sqrt(_rounds(facts)))
    return _bound(_theorem_name(theorem, learner.batch > 1 and facts.expected), "REG", _general(learner, facts), values)


def exponentiated_bound(learner: ExponentiatedPerceptron, facts: Facts) -> Bound:
    """Evaluate Theorem 5, the bound of the exponentiated preference perceptron, after each round t.

        mean xi / alpha + |w*|_1 (2 S ln N sqrt(T) / t + S / sqrt(T)) / alpha,   at t = T: (2 ln N + 1) S / sqrt(T)

    The slacks xi, alpha and w* are those of `facts`. N is the number of features, T the learner's horizon, S its
    `bound`. The theorem needs w* >= 0. A signed learner has each feature twice, with either sign (Eq. 22), so this
    holds for it, and N is doubled; for any other learner it is a hypothesis. If |w*|_1 is not 1, it scales the
    utilities, and with them the terms without slack. (The paper prints min for max in Eq. 22; S / 2, which is false
    where S bounds phi and not D, the difference of two phi; and log m for log N.)
    """
    facts = _divisible(facts)
    hypotheses = (
        *_general(learner, facts),
        Hypothesis("the rate is fixed for a horizon (the variable rate has no guarantee)", learner.horizon > 0),
        Hypothesis("the learner's bound is at least S, so that |phi(x, y)|_inf <= bound", learner.bound >= facts.S),
        *([] if learner.signed else [Hypothesis("no weight of w* is negative", bool((facts.w_star >= 0.0).all()))]),
    )
    t, root = _rounds(facts), math.sqrt(max(learner.horizon, 1))
    rest = 2.0 * math.log(learner.dimension()) * learner.bound * root + learner.bound * t / root
    l1 = float(np.abs(facts.w_star).sum())
    values = _mean(facts.slack) / facts.alpha + l1 * rest / (facts.alpha * t)
    return _bound(_theorem_name("Theorem 5", facts.expected), "REG", hypotheses, values)


def convex_bound(learner: ConvexPerceptron, facts: Facts, measure: str) -> Bound:
    """Evaluate Theorem 6, the bound of the convex preference perceptron on `measure` ("REG" or "CREG") after each
    round t.

        2 G mean xi+ / alpha + G / alpha (D2 / (2 sqrt t) + D2 / t + 4 R^2 / sqrt t),   D2 = (2 radius)^2

    xi+ is max(0, xi) of the slacks xi; these, alpha, w* and the bound R of |phi| are those of `facts`, radius is the
    learner's. (The paper prints |B|, the diameter, in place of its square D2.) G bounds the slope of the loss:

    - REG, whose loss is linear: G = 1.
    - CREG: G = 6 M, with M = R |w*|. The loss is (theta - M)^2 for theta from -2M to M, where theta is minus the
      regret, which lies in [-2M, 0]. Continued with slope -6M on the left and 0 on the right, it is a loss as the
      theorem requires.
    """
    facts = _divisible(facts)
    G = 1.0 if measure == "REG" else 6.0 * facts.R * _norm(facts.w_star)
    t, d2 = _rounds(facts), (2.0 * learner.radius) ** 2
    root = np.sqrt(t)
    first = 2.0 * _mean(np.maximum(facts.slack, 0.0))
    values = G / facts.alpha * (first + d2 / (2.0 * root) + d2 / t + 4.0 * facts.R**2 / root)
    hypotheses = (*_general(learner, facts), _in_the_ball(learner, facts))
    return _bound(_theorem_name("Theorem 6", facts.expected), measure, hypotheses, values)


def second_order_bound(learner: SecondOrderPerceptron, facts: Facts) -> Bound:
    """Evaluate Theorem 8, the bound of the second-order perceptron after each round t, for the quadratic loss (theta -
    M)^2.

        G gamma mean(xi+^2) / (2 alpha^2) + 2 G mean xi+ / alpha + G eps D2 / (t alpha)
        + G N / (2 t gamma alpha) ln(4 R^2 t gamma / eps + 1),   D2 = (2 radius)^2, M = R |w*|, lambda = 2

    xi+ is max(0, xi) of the slacks xi; these, alpha, w* and the bound R of |phi| are those of `facts`; gamma, eps,
    radius and the number N of features are the learner's. (The paper prints it without the G of the first term, lost in
    Eq. 19, and with the diameter |B| in place of D2.)

    The proof needs two properties of the loss c:

    - Its slope is in [-G, 0] at the points -max(gain, alpha regret) / alpha. These reach down to -2M / alpha, so G = 2M
      (1 + 2 / alpha), which is 6M at alpha = 1.
    - c(-w_t . D_t / alpha) <= c(0), with the learner's weights w_t and D_t the features of the feedback minus those of
      the object shown. A parabola about M satisfies this up to 2M.

    With expected feedback the slope is taken on both sides of M, where the loss is not monotone, so the bound
    does not hold for it.
    """
    facts = _divisible(facts)
    alpha, gamma, eps = facts.alpha, learner.gamma, learner.epsilon
    M = facts.R * _norm(facts.w_star)
    G = 2.0 * M * (1.0 + 2.0 / alpha)
    has_margins = facts.margins.size == facts.slack.size
    within = learner.radius * facts.R <= alpha * M or (has_margins and bool((facts.margins <= 2.0 * alpha * M).all()))
    hypotheses = (
        *_general(learner, facts),
        _in_the_ball(learner, facts),
        Hypothesis(
            f"gamma is at most lambda / G = {2.0 / G if G else math.inf:.3g}", gamma * G <= 2.0 * (1.0 + ROUNDING)
        ),
        Hypothesis("-w_t . D_t is at most 2 alpha M in every round" + ("" if has_margins else " (not known)"), within),
        Hypothesis("each answer is alpha-informative, not only their mean", not facts.expected),
    )
    t, d2 = _rounds(facts), (2.0 * learner.radius) ** 2
    clipped = np.maximum(facts.slack, 0.0)
    noise = gamma * _mean(clipped**2) / (2.0 * alpha**2) + 2.0 * _mean(clipped) / alpha
    logs = np.log(4.0 * facts.R**2 * t * gamma / eps + 1.0)
    values = G * (noise + eps * d2 / (t * alpha) + learner.n_features * logs / (2.0 * t * gamma * alpha))
    return _bound(_theorem_name("Theorem 8", facts.expected), "CREG", hypotheses, values)


def lower_bound(horizon: int) -> float:
    """Return the lower bound of Lemma 3, 2 / sqrt(T): the average regret of every learner after T = `horizon` rounds of
    the world `heedful.worlds.unlearnable`.
    """
    return 2.0 / math.sqrt(horizon)


def _divisible(facts: Facts) -> Facts:
    """Return the facts with alpha replaced by NaN if it is not above 0, since bounds divide by it; a hypothesis then
    fails.
    """
    return facts if facts.alpha > 0.0 else facts._replace(alpha=math.nan)


def _general(learner: _WithTheorem, facts: Facts) -> tuple[Hypothesis, ...]:
    """Return the hypotheses that all theorems share, and whether they hold."""
    return (
        Hypothesis("alpha is above 0 and at most 1", 0.0 < facts.alpha <= 1.0),
        Hypothesis("R and S are known", math.isfinite(facts.R) and math.isfinite(facts.S)),
        Hypothesis("what is shown is the exact argmax of w . phi(x, .)", is_exact(learner.space)),
    )


def _in_the_ball(learner: ConvexPerceptron | SecondOrderPerceptron, facts: Facts) -> Hypothesis:
    inside = _norm(facts.w_star) <= learner.radius
    return Hypothesis(f"w* is in the ball: |w*| = {_norm(facts.w_star):.3g}, radius {learner.radius:.3g}", inside)


def _bound(theorem: str, measure: str, hypotheses: tuple[Hypothesis, ...], values: Array) -> Bound:
    holds = all(hypothesis.holds for hypothesis in hypotheses)
    return Bound(theorem, measure, hypotheses, values if holds else np.full(values.shape, np.nan))


def _theorem_name(theorem: str, expected: bool) -> str:
    return f"{theorem}, in expectation" if expected else theorem


def _rounds(facts: Facts) -> Array:
    return np.arange(1.0, facts.slack.size + 1.0)


def _mean(values: Array) -> Array:
    """Return the running means of T values (T,): of the first t, for t = 1..T."""
    average: Array = np.cumsum(values) / np.arange(1, values.size + 1)
    return average


def _norm(w: Array) -> float:
    return float(np.linalg.norm(w))
