"""The collaborative Gaussian process of [H12]: learn each person's preferences from the answers of all people.

[H12]: Houlsby, Huszár, Ghahramani & Hernández-Lobato, *Collaborative Gaussian Processes for Preference Learning*, NIPS
2012.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.validation import check_count
from heedful.inference.collaborative.cp import fit
from heedful.inference.collaborative.cp_fit import Functions, utilities
from heedful.inference.collaborative.sparse_cells import cells
from heedful.inference.collaborative.user_weights import user_weights
from heedful.inference.gp.answer_buffer import (
    AnswerBuffer,
    append_answer,
    drop_rows,
    empty_buffer,
    order_comparisons,
    rows_about,
    tie_comparisons,
)
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.subset_acquisition import next_set, subset_scores
from heedful.inference.pairwise import PairRows
from heedful.jit.kernel import Ints
from heedful.learners.preference.common import initial_state, prior_covariance, utility_gradient, with_new_items
from heedful.spaces.comparison import UNSURE, Answer, Choice, ComparisonPool, order_of

Array = npt.NDArray[np.float64]

MOST = {"amplitude": 100.0, "width": 30.0}
"""upper bounds of these hyperparameters: far above them the messages between answers and weights oscillate and grow"""
ROUNDS = 12
"""the number of rounds of expectation propagation in which one person's weights are computed"""


@declare(grows=True)
class CollaborativeGPState(NamedTuple):
    """The state of `CollaborativeGP` for n items with d features, p people with answers and D shared utility
    functions."""

    X: Array
    """the features of the items, n x d"""
    said: AnswerBuffer
    """the answers so far, as comparisons of two items each"""
    mean: Array
    """the posterior means of the shared functions at the items, D x n"""
    cov: Array
    """the posterior covariances of the shared functions at the items, D x n x n"""
    people: Ints
    """indices of the people who have weights, ascending (p,)"""
    mw: Array
    """the posterior means of these people's weights of the functions, p x D"""
    vw: Array
    """the posterior variances of these people's weights of the functions, p x D"""
    learned: int
    """number of comparisons when the shared functions were last learned"""
    t: int
    """number of rounds learned from"""


@declare(version=1, must_interpret=True, lesson_cost=300)
class CollaborativeGP(NamedTuple):
    """Collaborative preferences: Houlsby et al., NIPS 2012, CP, for many people. Interaction: pairwise.

    The utilities of user u are f_u = sum_d w_ud f_d with shared functions f_d ~ N(0, K), d = 1..D, a kernel matrix K
    over the items, and weights w_ud ~ N(0, 1); P(a beats b) = Phi(f_ua - f_ub - width). The functions f_d are learned
    again from all answers when there are at least `every` comparisons, and a tenth, more than the last time; in
    between, only the weights of the person who answered are updated. A new person has the prior weights. An order, or
    the best of several items, counts as its comparisons of two items, with independent noise. For up to some hundred
    items: learning the functions of n items costs O(D n^3).
    """

    space: Choice
    """the items, `Choice(n_items, equal, features)`; without features, the kernel matrix K is amplitude^2 I"""
    D: int = 20
    """the number of shared functions; more than needed do no harm"""
    lengthscale: float = 0.0
    """the length scale of the kernel, in standard deviations of the features; 0: the median distance of two items"""
    amplitude: float = 1.0
    """the prior standard deviation of a function, in units of the noise of one choice"""
    width: float = 0.25
    """two items are "equally good" where their perceived utilities differ by less than this, in units of the noise of a
    choice"""
    lapse: float = 0.0
    """the probability that an answer is random"""
    rule: str = "bald"
    """the acquisition function that chooses what to ask, one of `inference.gp.acquisition.RULES`"""
    every: int = 20
    """the least number of new comparisons after which the shared functions are learned again"""

    @property
    def learn_noise(self) -> bool:
        """False: the width and the lapse rate of people are not learned, but stay as given."""
        return False

    def init(self, rng: np.random.Generator) -> CollaborativeGPState:
        check_count("D", self.D, most=1000)
        start = initial_state(self)
        for name, most in MOST.items():
            if getattr(self, name) > most:
                raise ValueError(f"{name}: expected at most {most:g}, got {getattr(self, name):g}")
        return self._prior_state(start.X, empty_buffer(), 0)

    def propose(self, state: CollaborativeGPState, x: ComparisonPool, rng: np.random.Generator) -> Ints:
        if self.rule == "random":
            best = int(rng.integers(len(x.pairs)))
        else:
            items, local = np.unique(x.pairs, return_inverse=True)
            posterior = self.posterior(state, x.user, items)
            best = int(subset_scores(posterior, self.rule, local.reshape(x.pairs.shape)).argmax())
        row: Ints = x.pairs[best].copy()
        return row

    def update(self, state: CollaborativeGPState, x: ComparisonPool, y: Ints, feedback: Answer) -> CollaborativeGPState:
        state = state._replace(t=state.t + 1)
        if isinstance(feedback, int) and feedback == UNSURE:
            return state
        order = order_of(feedback, y.size)
        answers = state.said
        for row in order_comparisons(y, order) if isinstance(order, np.ndarray) else tie_comparisons(y):  # each alone
            answers = append_answer(
                answers, x.user, row[None], not isinstance(order, np.ndarray), self._width, self.lapse
            )
        state = state._replace(said=answers)
        if answers.n >= state.learned + max(self.every, state.learned // 10):
            return self.relearn(state)
        return self._with_weights(state, x.user)

    def relearn(self, state: CollaborativeGPState) -> CollaborativeGPState:
        """Return the state with the shared functions and all people's weights learned from all answers, starting from
        the prior."""
        answers = state.said
        if not answers.n:
            return self._prior_state(state.X, answers, state.t)
        people, user = np.unique(answers.user[: answers.n], return_inverse=True)
        rows = answers.rows(slice(0, answers.n))._replace(user=user)
        model = fit(prior_covariance(self, state.X), people.size, rows, D=self.D, width=self._width, lapse=self.lapse)
        mean, cov, _ = model.functions
        return state._replace(mean=mean, cov=cov, people=people, mw=model.mw, vw=model.vw, learned=answers.n)

    def question(
        self,
        state: CollaborativeGPState,
        user: int,
        items: Ints,
        size: int = 2,
        rng: np.random.Generator | None = None,
        skip: npt.ArrayLike = (),
    ) -> Ints:
        offered = np.unique(items)
        rows = np.asarray(skip, np.int64).reshape(-1, size)
        rows = np.searchsorted(offered, rows[np.isin(rows, offered).all(axis=1)])
        return offered[next_set(self.posterior(state, user, offered), self.rule, size, skip=rows, rng=rng)]

    def posterior(self, state: CollaborativeGPState, user: int = 0, items: Ints | None = None) -> Posterior:
        """For a person without answers, the prior of their weights is used."""
        every = np.arange(state.mean.shape[1]) if items is None else np.asarray(items, np.int64)
        part = Functions(state.mean[:, every], state.cov[:, every[:, None], every], None)
        place = int(np.searchsorted(state.people, user))
        if place < state.people.size and state.people[place] == user:
            return utilities(part, state.mw[place], state.vw[place])
        return utilities(part, np.zeros(self.D), np.ones(self.D))

    def with_items(self, state: CollaborativeGPState, features: npt.ArrayLike) -> CollaborativeGPState:
        """Everything is learned again."""
        _, X = with_new_items(self, state.X, features)
        return self.relearn(state._replace(X=X))

    def utility_gradient(self, state: CollaborativeGPState, user: int, item: int) -> Array:
        return utility_gradient(self, state.X, self.posterior(state, user).mean, item)

    def without_item(self, state: CollaborativeGPState, item: int) -> CollaborativeGPState:
        """Return the state without the answers to questions that showed the item of index `item`. Functions and weights
        are learned again from the other answers; the item itself stays."""
        answers = state.said
        return self.relearn(state._replace(said=drop_rows(answers, rows_about(answers, item))))

    @property
    def _width(self) -> float:
        return float(self.width) if self.space.equal else 0.0

    def _prior_state(self, X: Array, answers: AnswerBuffer, t: int) -> CollaborativeGPState:
        """Return the state before any answer, with the d features of the n items, `X` (n x d), the empty buffer
        `answers` and the number of rounds `t`."""
        n = len(X)
        cov = np.repeat(prior_covariance(self, X)[None], self.D, axis=0)
        none = np.zeros((0, self.D))
        return CollaborativeGPState(
            X, answers, np.zeros((self.D, n)), cov, np.zeros(0, np.int64), none, none.copy(), 0, t
        )

    def _with_weights(self, state: CollaborativeGPState, user: int) -> CollaborativeGPState:
        """Return the state with the weights of the person `user` computed from their answers; the shared functions stay
        as they are."""
        indices = state.said.of(user)
        items, inverse = np.unique(state.said.pairs[indices], return_inverse=True)
        rows: PairRows = state.said.rows(indices)._replace(
            pairs=inverse.reshape(-1, 2), user=np.zeros(indices.size, np.int64)
        )
        sparse = cells(rows, 1, items.size)
        part = Functions(state.mean[:, items], state.cov[:, items[:, None], items], None)
        h = part.at(sparse.first, sparse.second)
        mw, vw = user_weights(sparse, *h, rows, self._width, self.lapse, rounds=ROUNDS)
        place = int(np.searchsorted(state.people, user))
        if place < state.people.size and state.people[place] == user:
            state.mw[place], state.vw[place] = mw[0], vw[0]
            return state
        return state._replace(
            people=np.insert(state.people, place, user),
            mw=np.insert(state.mw, place, mw[0], axis=0),
            vw=np.insert(state.vw, place, vw[0], axis=0),
        )
