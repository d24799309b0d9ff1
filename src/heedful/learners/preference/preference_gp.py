"""Gaussian process preference learning from choices between two or more items.

`PreferenceGP` learns about each person alone; `HierarchicalGP` also learns a common prior from all people. The
inference is in `heedful.inference.gp`; the classes here make learners of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.validation import describe, is_number
from heedful.inference.gp.answer_buffer import AnswerBuffer, drop_rows, empty_buffer, rows_about
from heedful.inference.gp.hierarchical import Population, add_items, fit
from heedful.inference.gp.mixture import Mixture
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.response_noise import MOVES, UserNoise
from heedful.jit.kernel import Ints
from heedful.learners.preference.common import (
    PreferenceGPState,
    answer_noise,
    group_posterior,
    initial_state,
    noise_of,
    noise_prior,
    prior_covariance,
    propose,
    question,
    refine_sites,
    update_state,
    user_posterior,
    utility_gradient,
    with_answer,
    with_new_items,
)
from heedful.spaces.comparison import UNSURE, Answer, Choice, ComparisonPool

Array = npt.NDArray[np.float64]


@declare(version=1, must_interpret=True, lesson_cost=40)
class PreferenceGP(NamedTuple):
    """Preferences by a Gaussian process: Houlsby et al., NIPS 2012, for one person. Interaction: pairwise.

    The utilities f of a person have the prior N(0, K), K the kernel matrix of the items, and P(a beats b) = Phi(f_a -
    f_b - width); two items are "equally good" where their perceived utilities differ by less than the width; with
    probability `lapse` the answer is random. The best of several items, or an order of them, is one answer in which
    each item is perceived once. The posterior is found by expectation propagation (EP) on the items' utilities.
    Proposes the pair, or the set, of the pool with the highest value of `rule`. Nothing is learned about one person
    from another's answers. An answer "cannot judge" changes nothing. Items may arrive later (`with_items`).
    """

    space: Choice
    """the items, `Choice(n_items, equal, features)`; without features, the kernel matrix K is amplitude^2 I"""
    lengthscale: float = 0.0
    """the length scale of the kernel, in standard deviations of the features; 0: the median distance of two items"""
    amplitude: float = 1.0
    """the prior standard deviation of utilities, in units of the noise of one choice"""
    width: float = 0.25
    """two items are "equally good" where their perceived utilities differ by less than this, in units of the noise of a
    choice"""
    lapse: float = 0.0
    """the probability that an answer is random, for choices between two items and "equally good"; orders, and the best
    of several, are never random"""
    rule: str = "bald"
    """the acquisition function that chooses what to ask, one of `inference.gp.acquisition.RULES`"""
    every: int = 1
    """Expectation propagation (EP) runs until it converges after every so many comparisons of a person, and makes one
    sweep in between; an order of k items, or the best of k, counts as k - 1 comparisons."""
    learn_noise: bool = False
    """True to learn each person's width and lapse rate (maximum a posteriori), starting from `width` and `lapse`"""

    @property
    def one_width(self) -> bool:
        """False: each person has a tie width of their own (how small a perceived difference must be to be called
        equally good).
        """
        return False

    def init(self, rng: np.random.Generator) -> PreferenceGPState:
        return initial_state(self)

    def propose(self, state: PreferenceGPState, x: ComparisonPool, rng: np.random.Generator) -> Ints:
        return propose(self, state, x, rng)

    def update(self, state: PreferenceGPState, x: ComparisonPool, y: Ints, feedback: Answer) -> PreferenceGPState:
        if isinstance(feedback, int) and feedback == UNSURE:
            return state._replace(t=state.t + 1)
        return update_state(self, state, x, y, feedback, self.every, self.learn_noise)

    def question(
        self,
        state: PreferenceGPState,
        user: int,
        items: Ints,
        size: int = 2,
        rng: np.random.Generator | None = None,
        skip: npt.ArrayLike = (),
    ) -> Ints:
        """Return the indices of the `size` items out of `items` (i,) to show to the person `user` next.

        It is the set with the highest value of the acquisition function `rule`, a pair extended one item at a time,
        that is not among the rows of item indices in `skip` (q x size), the q sets asked before. `rng` is for the rule
        "random". Raise ValueError if nothing is left to ask.
        """
        return question(self, state, user, items, size, rng, skip)

    def posterior(self, state: PreferenceGPState, user: int = 0, items: Ints | None = None) -> Posterior:
        """Return the posterior of the utilities that the person `user` has for `items` (distinct indices), or for all
        items if None."""
        return user_posterior(state, user, items)

    def group_posterior(self, state: PreferenceGPState, users: Ints) -> Posterior | Mixture:
        """Return the posterior of the mean utility of each item over the people `users` (u,).

        It does not take the kernel, the noise and the population as known, so its variances also show how uncertain
        these are.
        """
        return group_posterior(self, state, users, pooled=False)

    def noise(self, state: PreferenceGPState, user: int = 0) -> UserNoise:
        """Return how noisily the person `user` answers: their tie width (how small a perceived difference must be to be
        called equally good), lapse rate (the probability of a random answer), and the probability that all their
        answers are random.
        """
        return noise_of(self, state, user)

    def with_items(self, state: PreferenceGPState, features: npt.ArrayLike) -> PreferenceGPState:
        """Return the state with q more items, given by their `features` (q x d); d = 0 where items have none.

        After n items their indices are n, n + 1, ... The kernel matrix is computed for all items; a person's posterior
        adapts to it with that person's next answer. Raise ValueError, naming what is wrong, if the features do not fit.
        """
        K, X = with_new_items(self, state.X, features)
        return state._replace(mean=np.zeros(len(K)), cov=K, X=X)

    def utility_gradient(self, state: PreferenceGPState, user: int, item: int) -> Array:
        """Return the gradient (d,) of the posterior mean utility that the person `user` has for the item of index
        `item`, with respect to the item's d features."""
        return utility_gradient(self, state.X, self.posterior(state, user).mean, item)

    def without_item(self, state: PreferenceGPState, item: int) -> PreferenceGPState:
        """Return the state without the answers to questions that showed the item of index `item`, as if they had never
        been given; the item itself stays."""
        answers = state.said
        removed = rows_about(answers, item)
        state = state._replace(said=drop_rows(answers, removed))
        for user in np.unique(answers.user[removed]).tolist():
            if state.said.of(user).size:
                # until it converges: after a new answer EP starts close to its solution, here it may start far from it
                refine_sites(self, state, user, 200, self.learn_noise, rounds=30, moves=MOVES)
        return state


@declare(version=1, must_interpret=True, lesson_cost=40)
class HierarchicalGP(NamedTuple):
    """Preferences of many people: Birlutiu et al. 2010, by EP, with a prior on S (ours). Interaction: pairwise.

    The utilities of user u are f_u ~ N(m, S). The mean m and the covariance S of the population are maximum a
    posteriori estimates by EM from all people's answers. The prior of S is inverse-Wishart around the kernel matrix K
    of the items and counts as `nu0` people; the prior of m counts as `kappa0` people to whom all items are equally
    good. m and S are learned again, from their present values, when there are at least `every` comparisons, and a
    tenth, more than the last time (an order of k items, or the best of k, counts as k - 1); in between, only the
    posterior of the person who answered is updated. A new person's prior is the population. All people share one width.
    Otherwise as `PreferenceGP`.
    """

    space: Choice
    """the items, `Choice(n_items, equal, features)`"""
    lengthscale: float = 0.0
    """the length scale of the kernel; `lengthscale`, `amplitude`, `width`, `lapse` and `rule` are as in
    `PreferenceGP`"""
    amplitude: float = 1.0
    width: float = 0.25
    lapse: float = 0.0
    rule: str = "bald"
    every: int = 20
    """the least number of new comparisons after which the population's m and S are learned again"""
    nu0: float = -1.0
    """the number of people that the prior of the covariance S counts as; -1: the number of items"""
    kappa0: float = 1.0
    """the number of people that the prior of the mean m counts as"""
    learn_noise: bool = False
    """True to learn the width and each person's lapse rate together with m and S"""

    @property
    def one_width(self) -> bool:
        return True

    def init(self, rng: np.random.Generator) -> PreferenceGPState:
        for name in ("nu0", "kappa0"):
            value = getattr(self, name)
            if not is_number(value, int, float) or not (0.0 <= value <= 1e50 or (name == "nu0" and value == -1.0)):
                raise ValueError(f"{name}: expected a number, 0 or more, got {describe(value)}")
        return initial_state(self)

    def propose(self, state: PreferenceGPState, x: ComparisonPool, rng: np.random.Generator) -> Ints:
        return propose(self, state, x, rng)

    def update(self, state: PreferenceGPState, x: ComparisonPool, y: Ints, feedback: Answer) -> PreferenceGPState:
        if isinstance(feedback, int) and feedback == UNSURE:
            return state._replace(t=state.t + 1)
        if state.said.n + 1 < state.learned + max(self.every, state.learned // 10):
            return update_state(self, state, x, y, feedback, 1, False)
        state = with_answer(self, state, x, y, feedback)
        return self.relearn(state._replace(t=state.t + 1))

    def relearn(self, state: PreferenceGPState, steps: int = 10) -> PreferenceGPState:
        """Return the state with the population's mean and covariance (with `learn_noise`, also the width and the lapse
        rates) learned from all answers, in `steps` steps of EM from their present values."""
        answers = state.said
        people, last, user = _people(answers)
        model = fit(
            prior_covariance(self, state.X), people.size, answers.rows(slice(0, answers.n))._replace(user=user),
            nu0=None if self.nu0 < 0.0 else self.nu0, kappa0=self.kappa0, start=Population(state.mean, state.cov),
            sites=answers.sites(slice(0, answers.n)), width=answers.width[last], lapse=answers.lapse[last],
            noise=noise_prior(self) if self.learn_noise else None, steps=steps,
        )  # fmt: skip
        answers.tau[: answers.n], answers.nu[: answers.n] = model.people.sites.tau, model.people.sites.nu
        answers.width[: answers.n], answers.lapse[: answers.n] = model.noise.width[user], model.noise.lapse[user]
        mean, cov = model.population
        return state._replace(mean=mean, cov=cov, learned=answers.n)

    def question(
        self,
        state: PreferenceGPState,
        user: int,
        items: Ints,
        size: int = 2,
        rng: np.random.Generator | None = None,
        skip: npt.ArrayLike = (),
    ) -> Ints:
        return question(self, state, user, items, size, rng, skip)

    def posterior(self, state: PreferenceGPState, user: int = 0, items: Ints | None = None) -> Posterior:
        """For a person without answers it is the population's distribution."""
        return user_posterior(state, user, items)

    def group_posterior(self, state: PreferenceGPState, users: Ints) -> Posterior | Mixture:
        """The answers of all people count."""
        return group_posterior(self, state, users, pooled=True)

    def noise(self, state: PreferenceGPState, user: int = 0) -> UserNoise:
        return noise_of(self, state, user)

    def with_items(self, state: PreferenceGPState, features: npt.ArrayLike) -> PreferenceGPState:
        """The population's mean and covariance stay as they are for the earlier items, and are extended to the new
        items by the kernel."""
        K, X = with_new_items(self, state.X, features)
        mean, cov, n = np.zeros(len(K)), K, state.mean.size
        if state.learned:
            mean, cov = add_items(Population(state.mean, state.cov), K[:n, :n], K[:n, n:], K[n:, n:])
        return state._replace(mean=mean, cov=cov, X=X)

    def utility_gradient(self, state: PreferenceGPState, user: int, item: int) -> Array:
        return utility_gradient(self, state.X, self.posterior(state, user).mean, item)

    def without_item(self, state: PreferenceGPState, item: int) -> PreferenceGPState:
        """Return the state without the answers to questions that showed the item of index `item`, with all else learned
        again from the prior; the item itself stays."""
        return self._from_prior(state, drop_rows(state.said, rows_about(state.said, item)))

    def _from_prior(self, state: PreferenceGPState, answers: AnswerBuffer) -> PreferenceGPState:
        width, lapse = answer_noise(self, empty_buffer(), 0)
        answers.tau[:], answers.nu[:], answers.width[:], answers.lapse[:] = 0.0, 0.0, width, lapse
        K = prior_covariance(self, state.X)
        state = PreferenceGPState(np.zeros(len(K)), K, state.X, answers, 0, state.t)
        return self.relearn(state, 100) if answers.n else state


def _people(answers: AnswerBuffer) -> tuple[Ints, Ints, Ints]:
    """Return (the people with answers (p,), the last row of `answers` of each of them (p,), for each row of `answers`
    the position of its person among them (n,))."""
    people, last, user = np.unique(answers.user[: answers.n][::-1], return_index=True, return_inverse=True)
    return people, answers.n - 1 - last, user[::-1]
