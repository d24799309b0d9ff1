"""Shared parts of the Gaussian process learners of preferences: state, choice of the next question, update after an
answer.

The posterior of a person's utilities is found by expectation propagation (EP), which approximates the likelihood of
each answer by a Gaussian factor, its site.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.validation import check_between, check_count, check_flag, describe, finite_array, numbers
from heedful.inference.estimation import infer_utilities
from heedful.inference.gp.acquisition import RULES, next_question
from heedful.inference.gp.answer_buffer import (
    AnswerBuffer,
    append_answer,
    empty_buffer,
    item_posterior,
    low_rank_posterior,
    order_comparisons,
    tie_comparisons,
)
from heedful.inference.gp.ep import infer_users
from heedful.inference.gp.kernels import MOST, check_amplitude, kernel_for
from heedful.inference.gp.mixture import Mixture
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.response_noise import (
    NoisePrior,
    ResponseNoise,
    UserNoise,
    improve_noise,
    random_probabilities,
)
from heedful.inference.gp.subset_acquisition import next_set, subset_scores
from heedful.jit.kernel import Ints
from heedful.spaces.comparison import MOST_ITEMS, Answer, Choice, ComparisonPool, check_choice, order_of

Array = npt.NDArray[np.float64]

SETTLED = 1e-6
"""expectation propagation (EP) has converged when the Gaussian factor (site) of every answer changes by less than this
share"""

NARROW = 1e-6
"""The least width, in units of the noise of a choice, and also as a share of the amplitude.

An answer "equally good" says that two perceived utilities differ by less than a width; with a narrower one, rounding
would swallow the difference of two variances.
"""

SINGULAR = 1e-9
"""Directions of a kernel matrix with a smaller eigenvalue, as a share of the largest, are left out of its inverse."""

ROUNDS = 2
"""how often a person's sites and noise parameters are updated in turn after an answer"""


class Hyperparameters(Protocol):
    """Protocol: the hyperparameters that the learners `PreferenceGP`, `HierarchicalGP` and `CollaborativeGP` have in
    common.
    """

    @property
    def space(self) -> Choice: ...
    @property
    def lengthscale(self) -> float: ...
    @property
    def amplitude(self) -> float: ...
    @property
    def width(self) -> float: ...
    @property
    def lapse(self) -> float: ...
    @property
    def rule(self) -> str: ...
    @property
    def every(self) -> int: ...
    @property
    def learn_noise(self) -> bool: ...


class GPHyperparameters(Hyperparameters, Protocol):
    """Protocol: the hyperparameters that `PreferenceGP` and `HierarchicalGP` have in common: those of
    `Hyperparameters`, and `one_width`, True if all people have the same tie width."""

    @property
    def one_width(self) -> bool: ...


@declare(grows=True)
class PreferenceGPState(NamedTuple):
    """The state of `PreferenceGP` and `HierarchicalGP` for n items with d features: the prior of a person's utilities,
    and all answers."""

    mean: Array
    """the prior mean of a person's utilities (n,)"""
    cov: Array
    """the prior covariance of a person's utilities, n x n"""
    X: Array
    """the features of the items, n x d"""
    said: AnswerBuffer
    """the answers so far, as comparisons of two items each, with their sites of expectation propagation (EP)"""
    learned: int
    """number of comparisons when `mean` and `cov` were last learned; 0 if never, when they are the prior's"""
    t: int
    """number of rounds learned from"""

    def own(self) -> PreferenceGPState:
        """Return a copy of the state that `update` may overwrite. It shares mean, cov and X, which `update` replaces
        but never writes to."""
        return self._replace(said=self.said.own())


def initial_state(learner: Hyperparameters) -> PreferenceGPState:
    """Return the state of `learner` before the first answer. Raise ValueError, naming the field, if a hyperparameter is
    not valid."""
    check_choice(learner.space)
    check_amplitude(learner.amplitude)
    for name, most in (("width", MOST), ("lapse", 0.99), ("lengthscale", 1e50)):
        check_between(name, getattr(learner, name), 0.0, most)
    least = NARROW * max(1.0, float(learner.amplitude))
    if learner.space.equal and not learner.width >= least:
        condition = "where 'equally good' is on offer (Choice(n, equal=False) where it is not)"
        raise ValueError(f"width: expected {least:g} or more {condition}, got {learner.width:g}")
    if learner.rule not in RULES:
        raise ValueError(f"rule: expected {', '.join(RULES)}, got {describe(learner.rule)}")
    check_count("every", learner.every)
    check_flag("learn_noise", learner.learn_noise)
    n, X = learner.space.n_items, np.asarray(learner.space.features, np.float64)
    X = X.copy() if X.ndim == 2 and len(X) == n else np.empty((n, 0))
    return PreferenceGPState(np.zeros(n), prior_covariance(learner, X), X, empty_buffer(), 0, 0)


def prior_covariance(learner: Hyperparameters, X: Array) -> Array:
    """Return the kernel matrix K (n x n), the prior covariance of the utilities of n items with features `X` (n x d); d
    = 0 where items have none."""
    return kernel_for(X, learner.lengthscale or "median", float(learner.amplitude)).over(X)


def noise_prior(learner: Hyperparameters) -> NoisePrior:
    """Return the prior of how noisily people answer: of their lapse rate and, where "equally good" is a possible
    answer, of their tie width around that of `learner`."""
    return NoisePrior(width=float(learner.width)) if learner.space.equal else NoisePrior()


def answer_noise(learner: GPHyperparameters, answers: AnswerBuffer, user: int) -> tuple[float, float]:
    """Return the tie width and the lapse rate assumed of the person `user`: as last learned from their answers in
    `answers`; for a new person the values that `learner` starts from."""
    rows = answers.of(user)
    if rows.size:
        return float(answers.width[rows[-1]]), float(answers.lapse[rows[-1]])
    lapse = noise_prior(learner).lapse if learner.learn_noise and learner.lapse == 0.0 else learner.lapse
    if learner.one_width and answers.n:
        return float(answers.width[answers.n - 1]), float(lapse)
    return float(learner.width) if learner.space.equal else 0.0, float(lapse)


def with_answer(
    learner: GPHyperparameters, state: PreferenceGPState, x: ComparisonPool, y: Ints, feedback: Answer
) -> PreferenceGPState:
    """Return the state with one more answer, `feedback` on the items with the indices `y` (k,), which were shown from
    the pool of candidates `x`.

    The new sites, the answer's Gaussian factors in expectation propagation (EP), are still 0. It may overwrite the
    arrays of `state`.
    """
    answers = state.said
    width, lapse = answer_noise(learner, answers, x.user)
    order = order_of(feedback, y.size)
    rows = order_comparisons(y, order) if isinstance(order, np.ndarray) else tie_comparisons(y)
    return state._replace(said=append_answer(answers, x.user, rows, not isinstance(order, np.ndarray), width, lapse))


def refine_sites(
    learner: GPHyperparameters,
    state: PreferenceGPState,
    user: int,
    sweeps: int,
    learn_noise: bool,
    *,
    rounds: int = ROUNDS,
    moves: float = 1e-2,
) -> None:
    """Update the sites of all answers of the person `user` by expectation propagation (EP), in place, starting from
    their present values.

    With `learn_noise`, the person's tie width and lapse rate are updated too, in turn with the sites: `rounds` times,
    or until they move by less than `moves`. At the end EP makes at most `sweeps` sweeps over the answers.
    """
    answers = state.said
    indices = answers.of(user)
    items, inverse = np.unique(answers.pairs[indices], return_inverse=True)
    rows = answers.rows(indices)._replace(pairs=inverse.reshape(-1, 2), user=np.zeros(indices.size, np.int64))
    cov, mean = state.cov[np.ix_(items, items)], state.mean[items]
    noise, sites = (
        ResponseNoise(answers.width[indices[-1:]], answers.lapse[indices[-1:]], np.zeros(1)),
        answers.sites(indices),
    )
    for _ in range(rounds if learn_noise else 0):
        many = infer_users(cov, mean, 1, rows, sites, width=noise.width, lapse=noise.lapse, tolerance=SETTLED, sweeps=5)
        sites = many.sites
        noise, moved = improve_noise(rows, many.cavities, noise, noise_prior(learner))
        if moved < moves:
            break
    sites = infer_users(
        cov, mean, 1, rows, sites, width=noise.width, lapse=noise.lapse, tolerance=SETTLED, sweeps=sweeps
    ).sites
    answers.tau[indices], answers.nu[indices], answers.width[indices], answers.lapse[indices] = (
        sites.tau,
        sites.nu,
        noise.width,
        noise.lapse,
    )


def update_state(
    learner: GPHyperparameters,
    state: PreferenceGPState,
    x: ComparisonPool,
    y: Ints,
    feedback: Answer,
    every: int,
    learn_noise: bool,
) -> PreferenceGPState:
    """Return the state after one answer, `feedback` on the items with the indices `y` (k,), which were shown from the
    pool of candidates `x`.

    The sites of the person's answers are updated by expectation propagation (EP): until they converge after every
    `every` comparisons of the person, in one sweep otherwise. With `learn_noise`, the person's tie width and lapse rate
    are learned whenever EP runs until it converges. It may overwrite the arrays of `state`.
    """
    before = state.said.of(x.user).size
    state = with_answer(learner, state, x, y, feedback)
    due = state.said.of(x.user).size // every > before // every
    refine_sites(learner, state, x.user, 200 if due else 1, due and learn_noise)
    return state._replace(t=state.t + 1)


def propose(learner: GPHyperparameters, state: PreferenceGPState, x: ComparisonPool, rng: np.random.Generator) -> Ints:
    """Return the next question: the row of `x.pairs` (p x k; p candidate sets of k item indices) with the highest value
    of the learner's acquisition function, as (k,).

    Of equal values the first row wins. For the rule "random" it is a row drawn with `rng`.
    """
    best = int(rng.integers(len(x.pairs))) if learner.rule == "random" else 0
    if learner.rule != "random" and len(x.pairs) > 1:
        items, local = np.unique(x.pairs, return_inverse=True)
        posterior = item_posterior(state.cov, state.mean, state.said, x.user, items)
        best = int(subset_scores(posterior, learner.rule, local.reshape(x.pairs.shape)).argmax())
    row: Ints = x.pairs[best].copy()
    return row


def user_posterior(state: PreferenceGPState, user: int, items: Ints | None) -> Posterior:
    """Return the posterior of the utilities that the person `user` has for `items` (distinct indices), or for all items
    if None."""
    every = np.arange(state.mean.size) if items is None else np.asarray(items, np.int64)
    return item_posterior(state.cov, state.mean, state.said, user, every)


def question(
    learner: GPHyperparameters,
    state: PreferenceGPState,
    user: int,
    items: Ints,
    size: int,
    rng: np.random.Generator | None,
    skip: npt.ArrayLike,
) -> Ints:
    """Return the question as `PreferenceGP.question` does."""
    offered = np.unique(items)
    rows = np.asarray(skip, np.int64).reshape(-1, size)
    rows = np.searchsorted(offered, rows[np.isin(rows, offered).all(axis=1)])
    if size == 2:
        part = low_rank_posterior(state.cov, state.mean, state.said, user, offered)
        return offered[list(next_question(part, learner.rule, skip=rows, rng=rng)[:2])]
    posterior = item_posterior(state.cov, state.mean, state.said, user, offered)
    return offered[next_set(posterior, learner.rule, size, skip=rows, rng=rng)]


def group_posterior(
    learner: GPHyperparameters, state: PreferenceGPState, users: Ints, pooled: bool
) -> Posterior | Mixture:
    """Return the posterior of the mean utility of each item over the people with the indices `users` (u,).

    The answers of people who are not in `users` are used as well, with one exception: for a single person and `pooled`
    False, only that person's.
    """
    answers = state.said
    indices = np.arange(answers.n) if pooled or users.size > 1 else answers.of(int(users[0]))
    every = np.union1d(answers.user[indices], users)
    rows = answers.rows(indices)
    if not rows.size:
        return Posterior(state.mean, state.cov)
    belief = infer_utilities(state.X, every.size, rows._replace(user=np.searchsorted(every, rows.user)))
    whose = np.searchsorted(every, users)
    return belief.of(int(whose[0])) if whose.size == 1 else belief.average(whose)


def noise_of(learner: GPHyperparameters, state: PreferenceGPState, user: int) -> UserNoise:
    """Return how noisily the person `user` answers, as `PreferenceGP.noise` does."""
    indices, prior = state.said.of(user), noise_prior(learner)
    width, lapse = answer_noise(learner, state.said, user)
    rows = state.said.rows(indices)
    items, inverse = np.unique(rows.pairs, return_inverse=True)
    rows = rows._replace(pairs=inverse.reshape(-1, 2), user=np.zeros(indices.size, np.int64))
    cov, mean = state.cov[np.ix_(items, items)], state.mean[items]
    many = infer_users(cov, mean, 1, rows, state.said.sites(indices), width=width, lapse=lapse, tolerance=SETTLED)
    noise = ResponseNoise(np.array([width]), np.array([lapse]), np.zeros(1))
    return UserNoise(width, lapse, float(random_probabilities(rows, many.log_evidence, noise, prior)[0]))


def utility_gradient(learner: Hyperparameters, X: Array, mean: Array, item: int) -> Array:
    """Return the gradient (d,) of the posterior mean utility of the item of index `item`, with respect to its d
    features.

    `X` (n x d) are the features of all n items and `mean` (n,) their posterior means. A new item with features x is
    expected to have the utility k(x, X) K^-1 mean, for the kernel k and the kernel matrix K of these items; this is the
    gradient of that at x = X[item]. It is 0 for a feature that is the same for all items.
    """
    kernel = kernel_for(X, learner.lengthscale or "median", float(learner.amplitude))
    K = kernel.over(X)
    values, vectors = np.linalg.eigh(K)
    kept = values > SINGULAR * values[-1]
    alpha = vectors[:, kept] @ ((vectors[:, kept].T @ mean) / values[kept])
    unit = kernel.scale * kernel.lengthscale
    differences = (X - X[item]) / unit / unit
    return np.asarray((K[item] * alpha) @ differences, np.float64)


def with_new_items(learner: Hyperparameters, X: Array, features: npt.ArrayLike) -> tuple[Array, Array]:
    """Return (the kernel matrix, the features) of all items: the n items with d features `X` (n x d), then q new ones,
    with `features` (q x d).

    Raise ValueError, naming what is wrong, if the new features do not fit or there are more than MOST_ITEMS items.
    """
    n, d = X.shape
    more = numbers("features", features, "2-dimensional numbers, a row for each item")
    if more.ndim == 2 and n == 0:
        d = more.shape[1]
    if more.ndim != 2 or more.shape[1] != d:
        raise ValueError(f"features: expected rows of {d}, one for each item, got {describe(features)}")
    if d:
        more = finite_array("features", more, 2, d)
    if n + len(more) > MOST_ITEMS:
        raise ValueError(f"features: expected at most {MOST_ITEMS} items altogether, got {n + len(more)}")
    X = np.concatenate([X.reshape(n, d), more.astype(np.float64)])
    return prior_covariance(learner, X), X
