"""Preferences from choices among two things or more: a Gaussian process for each person, or one prior for all of them
that is learned from everybody. Inference is `heedful.inference`; here it is folded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heedful.core.validation import describe, is_number
from heedful.inference.gp.answer_buffer import AnswerBuffer, empty_buffer, rows_about, without
from heedful.inference.gp.ep_diagnostics import Trust
from heedful.inference.gp.hierarchical import Population, fit, with_items
from heedful.inference.gp.mixture import Mixture
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.response_noise import MOVES, Person
from heedful.inference.gp.stopping import Seen
from heedful.jit.kernel import Ints
from heedful.learners.preference.common import (
    PreferenceGPState,
    answer_noise,
    answers_of,
    append_answer,
    group_posterior,
    initial_state,
    noise_of,
    noise_prior,
    prior_covariance,
    propose,
    question,
    refine_sites,
    trust_in,
    update_state,
    user_posterior,
    with_new_items,
)
from heedful.spaces.comparison import UNSURE, ComparisonPool


class PreferenceGP(NamedTuple):
    """Preferences by a Gaussian process: Houlsby et al., NIPS 2012, for one person. Interaction: pairwise.

    f ~ N(0, K), P(a beats b) = Phi(f_a - f_b - width), equally good where they are perceived within width of each
    other; with probability lapse any answer. The best of several, and orders, are one answer whose noise is shared. EP
    in item space. Proposes the pair, or the set of a pool of such, that `rule` gives most. Each user alone: nothing is
    learned of one from another. Who cannot judge says nothing. Items may arrive later (`with_items`).
    """

    space: Any
    """the items, `Choice(n_items, equal, features)`; of no features, K = amplitude^2 I"""
    lengthscale: float = 0.0
    """in standard deviations of the features; 0: the median distance of two items"""
    amplitude: float = 1.0
    """standard deviation of utilities, in units of the noise of one choice"""
    width: float = 0.25
    lapse: float = 0.0
    """of choices between two and of "equally good"; rankings and the best of several know none"""
    rule: str = "bald"
    every: int = 1
    """after how many comparisons of a person (the best of k is k - 1, as an order of k is) all of theirs are weighed
    anew until nothing moves; in between, once"""
    learn_noise: bool = False
    """whether each person's width and lapse rate are learned (MAP), from `width` and `lapse` on"""

    @property
    def version(self) -> int:
        """The version of the fold: raised with every change of what it computes."""
        return 1

    @property
    def must_interpret(self) -> bool:
        """Whether it cannot be compiled: it calls solvers."""
        return True

    @property
    def one_width(self) -> bool:
        """Whether all people share one."""
        return False

    def init(self, rng: np.random.Generator) -> PreferenceGPState:
        return initial_state(self)

    def propose(self, state: PreferenceGPState, x: ComparisonPool, rng: np.random.Generator) -> Ints:
        return propose(self, state, x, rng)

    def update(self, state: PreferenceGPState, x: ComparisonPool, y: Ints, feedback: Any) -> PreferenceGPState:
        if isinstance(feedback, int) and feedback == UNSURE:
            return state._replace(t=state.t + 1)
        return update_state(self, state, x, y, feedback, self.every, self.learn_noise)

    def question(
        self, state: PreferenceGPState, user: int, items: Ints, size: int = 2, rng: Any = None, skip: Any = ()
    ) -> Ints:
        """What to ask a person of all pairs (sets, where size > 2) of `items` (i,): as `sets.next_set`."""
        return question(self, state, user, items, size, rng, skip)

    def posterior(self, state: PreferenceGPState, user: int = 0, items: Ints | None = None) -> Posterior:
        """What is believed of a person's utilities of these items, distinct, or of all."""
        return user_posterior(state, user, items)

    def group_posterior(self, state: PreferenceGPState, users: Ints) -> Posterior | Mixture:
        """What is believed of the mean of the utilities of these people (u,), of all items, where neither the spread of
        utilities nor what people are like is taken for known: to say how sure it is."""
        return group_posterior(self, state, users, pooled=False)

    def answers_of(self, state: PreferenceGPState, user: int = 0) -> Seen:
        """A person's answers and their sites, for `stopping`."""
        return answers_of(self, state, user)

    def noise(self, state: PreferenceGPState, user: int = 0) -> Person:
        """How a person answers: their width, lapse rate, and the probability that it is at random altogether."""
        return noise_of(self, state, user)

    def trust(self, state: PreferenceGPState, user: int = 0) -> Trust:
        """How far the posterior of a person can be trusted: with lapses, answers may have several explanations."""
        return trust_in(self, state, user)

    def with_items(self, state: PreferenceGPState, features: Any) -> PreferenceGPState:
        """The state with q more items, by their features (q x d), d = 0 where items have none: numbers n, n + 1, and so
        on. K is that of all of them; sites stay until their person's next answer. ValueError, naming what is wrong."""
        K, X = with_new_items(self, state, features)
        return state._replace(mean=np.zeros(len(K)), cov=K, X=X)

    def without_item(self, state: PreferenceGPState, item: int) -> PreferenceGPState:
        """The state without the answers in which an item was shown, as if they had never been given; the item stays."""
        said = state.said
        gone = rows_about(said, item)
        state = state._replace(said=without(said, gone))
        for user in np.unique(said.user[gone]).tolist():
            if state.said.of(user).size:
                # until it settles: after one answer more it goes on from near the end, here it may be far from it
                refine_sites(self, state, user, 200, self.learn_noise, rounds=30, moves=MOVES)
        return state


class HierarchicalGP(NamedTuple):
    """Preferences of many people: Birlutiu et al. 2010, by EP, with a prior on S (ours). Interaction: pairwise.

    f_u ~ N(m, S); m and S by EM from everybody's answers, the maximum a posteriori with an inverse-Wishart prior on S
    around K that counts as nu0 people, and kappa0 people to whom all is alike. They are learned anew, from where they
    are, when there are `every` comparisons more (the best of k is k - 1, as an order of k is) and a tenth more than
    last time; in between only the person's own utilities are. Somebody new starts from the population. Otherwise as
    `PreferenceGP`; the width is one for all.
    """

    space: Any
    lengthscale: float = 0.0
    amplitude: float = 1.0
    width: float = 0.25
    lapse: float = 0.0
    rule: str = "bald"
    every: int = 20
    nu0: float = -1.0
    """-1: as many as there are items"""
    kappa0: float = 1.0
    learn_noise: bool = False

    @property
    def version(self) -> int:
        """The version of the fold: raised with every change of what it computes."""
        return 1

    @property
    def must_interpret(self) -> bool:
        """Whether it cannot be compiled: it calls solvers."""
        return True

    @property
    def one_width(self) -> bool:
        """Whether all people share one."""
        return True

    def init(self, rng: np.random.Generator) -> PreferenceGPState:
        for name in ("nu0", "kappa0"):
            value = getattr(self, name)
            if not is_number(value, int, float) or not (0.0 <= value <= 1e50 or (name == "nu0" and value == -1.0)):
                raise ValueError(f"{name}: expected a number, 0 or more, got {describe(value)}")
        return initial_state(self)

    def propose(self, state: PreferenceGPState, x: ComparisonPool, rng: np.random.Generator) -> Ints:
        return propose(self, state, x, rng)

    def update(self, state: PreferenceGPState, x: ComparisonPool, y: Ints, feedback: Any) -> PreferenceGPState:
        if isinstance(feedback, int) and feedback == UNSURE:
            return state._replace(t=state.t + 1)
        if state.said.n + 1 < state.learned + max(self.every, state.learned // 10):
            return update_state(self, state, x, y, feedback, 1, False)
        state = append_answer(self, state, x, y, feedback)
        return self.relearn(state._replace(t=state.t + 1))

    def relearn(self, state: PreferenceGPState, steps: int = 10) -> PreferenceGPState:
        """The state with m and S, and where they are learned the width and the lapse rates, learned from all answers,
        in so many steps of EM from where they are."""
        said = state.said
        people, last, user = _people(said)
        got = fit(
            prior_covariance(self, state.X), people.size, said.rows(slice(0, said.n))._replace(user=user),
            nu0=None if self.nu0 < 0.0 else self.nu0, kappa0=self.kappa0, start=Population(state.mean, state.cov),
            sites=said.sites(slice(0, said.n)), width=said.width[last], lapse=said.lapse[last],
            noise=noise_prior(self) if self.learn_noise else None, steps=steps,
        )  # fmt: skip
        said.tau[: said.n], said.nu[: said.n] = got.people.sites.tau, got.people.sites.nu
        said.width[: said.n], said.lapse[: said.n] = got.noise.width[user], got.noise.lapse[user]
        mean, cov = got.population
        return state._replace(mean=mean, cov=cov, learned=said.n)

    def question(
        self, state: PreferenceGPState, user: int, items: Ints, size: int = 2, rng: Any = None, skip: Any = ()
    ) -> Ints:
        """What to ask a person of all pairs (sets, where size > 2) of `items` (i,): as `sets.next_set`."""
        return question(self, state, user, items, size, rng, skip)

    def posterior(self, state: PreferenceGPState, user: int = 0, items: Ints | None = None) -> Posterior:
        """What is believed of a person's utilities of these items, distinct, or of all; of somebody new, what people
        are like."""
        return user_posterior(state, user, items)

    def group_posterior(self, state: PreferenceGPState, users: Ints) -> Posterior | Mixture:
        """What is believed of the mean of the utilities of these people (u,), of all items, where neither the spread of
        utilities nor what people are like is taken for known: to say how sure it is."""
        return group_posterior(self, state, users, pooled=True)

    def answers_of(self, state: PreferenceGPState, user: int = 0) -> Seen:
        """A person's answers and their sites, for `stopping`."""
        return answers_of(self, state, user)

    def noise(self, state: PreferenceGPState, user: int = 0) -> Person:
        """How a person answers: the width, their lapse rate, and the probability that it is at random altogether."""
        return noise_of(self, state, user)

    def trust(self, state: PreferenceGPState, user: int = 0) -> Trust:
        """How far the posterior of a person can be trusted: with lapses, answers may have several explanations."""
        return trust_in(self, state, user)

    def with_items(self, state: PreferenceGPState, features: Any) -> PreferenceGPState:
        """As `PreferenceGP.with_items`. m and S of the items that were there stay; given those, the new are as the
        kernel has them."""
        K, X = with_new_items(self, state, features)
        mean, cov, n = np.zeros(len(K)), K, state.mean.size
        if state.learned:
            mean, cov = with_items(Population(state.mean, state.cov), K[:n, :n], K[:n, n:], K[n:, n:])
        return state._replace(mean=mean, cov=cov, X=X)

    def without_item(self, state: PreferenceGPState, item: int) -> PreferenceGPState:
        """The state without the answers in which an item was shown, the rest learned from nothing; the item stays."""
        return self._from_nothing(state, without(state.said, rows_about(state.said, item)))

    def _from_nothing(self, state: PreferenceGPState, said: AnswerBuffer) -> PreferenceGPState:
        width, lapse = answer_noise(self, empty_buffer(), 0)
        said.tau[:], said.nu[:], said.width[:], said.lapse[:] = 0.0, 0.0, width, lapse
        K = prior_covariance(self, state.X)
        state = PreferenceGPState(np.zeros(len(K)), K, state.X, said, 0, state.t)
        return self.relearn(state, 100) if said.n else state


def _people(said: AnswerBuffer) -> tuple[Ints, Ints, Ints]:
    """Who said something, the last row of each, and which of them said each row."""
    people, last, user = np.unique(said.user[: said.n][::-1], return_index=True, return_inverse=True)
    return people, said.n - 1 - last, user[::-1]
