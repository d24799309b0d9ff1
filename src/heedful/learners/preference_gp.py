"""Preferences from choices between two things: a Gaussian process for each person, or one prior for all of them that
is learned from everybody. Inference is `heedful.preferences`; here it is folded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.doors import describe, is_number, wanted_count, wanted_positive
from heedful.kernel import Ints
from heedful.preferences.answers import Answers, answers
from heedful.preferences.ep import Sites, carried, infer_many
from heedful.preferences.hierarchical import Population, fit
from heedful.preferences.kernels import kernel_for
from heedful.preferences.posterior import Posterior
from heedful.preferences.questions import RULES, next_question
from heedful.spaces_pairs import EQUAL, SECOND, UNSURE, Pool, wanted_choice

Array = npt.NDArray[np.float64]

SETTLED = 1e-6
"""Sites that move less than this, as a share, have settled."""


class Said(NamedTuple):
    """Answers as they came, the first `n` rows of arrays: who, which pair (the winner first), whether equally good, and
    the site of each."""

    user: Ints
    pairs: Ints
    equal: npt.NDArray[np.bool_]
    tau: Array
    nu: Array
    n: int

    @property
    def grows(self) -> bool:
        """Its arrays become longer as answers arrive."""
        return True

    def rows(self, at: Any) -> Answers:
        return answers(self.pairs[at], None, self.equal[at], self.user[at])


class PreferenceGPState(NamedTuple):
    """What utilities are like before anything is known of a person, N(mean (n,), cov (n x n)); the answers; how many
    there were when mean and cov were learned; rounds learned."""

    mean: Array
    cov: Array
    said: Said
    learned: int
    t: int


def nothing_said() -> Said:
    room = 16
    return Said(
        np.zeros(room, np.int64), np.zeros((room, 2), np.int64), np.zeros(room, bool), np.zeros(room), np.zeros(room), 0
    )


def with_answer(said: Said, user: int, shown: Ints, answer: int) -> Said:
    """The answers and one more, its site still 0; owns `said`."""
    n = said.n
    if n == said.user.size:
        said = longer(said)
    said.user[n] = user
    said.pairs[n] = shown[::-1] if answer == SECOND else shown
    said.equal[n] = answer == EQUAL
    said.tau[n] = said.nu[n] = 0.0
    return said._replace(n=n + 1)


def longer(said: Said) -> Said:
    """The answers, with twice the room."""

    def twice(part: Any) -> Any:
        return np.concatenate([part, np.zeros_like(part)])

    return Said(twice(said.user), twice(said.pairs), twice(said.equal), twice(said.tau), twice(said.nu), said.n)


def without(said: Said, at: Ints) -> Said:
    """The answers but those rows."""
    kept = np.delete(np.arange(said.n), at)
    out = nothing_said()
    while out.user.size < kept.size:
        out = longer(out)
    for part, old in zip(out[:5], said[:5]):
        part[: kept.size] = old[kept]
    return out._replace(n=kept.size)


class _Options(NamedTuple):
    """The likelihood's."""

    width: float
    lapse: float


def refreshed(state: PreferenceGPState, user: int, options: _Options, sweeps: int) -> None:
    """Put the sites of a person's answers right, in place, from where they are."""
    said = state.said
    [at] = (said.user[: said.n] == user).nonzero()
    if not at.size:
        return
    items, inverse = np.unique(said.pairs[at], return_inverse=True)
    rows = said.rows(at)._replace(pairs=inverse.reshape(-1, 2), user=np.zeros(at.size, np.int64))
    cov, mean = state.cov[np.ix_(items, items)], state.mean[items]
    sites = Sites(said.tau[at], said.nu[at])
    many = infer_many(cov, mean, 1, rows, sites, **options._asdict(), tolerance=SETTLED, sweeps=sweeps)
    said.tau[at], said.nu[at] = many.sites.tau, many.sites.nu


def believed_of(state: PreferenceGPState, user: int, items: Ints) -> Posterior:
    """What is believed of a person's utilities of these items (i,), distinct: from the sites as they are."""
    said = state.said
    [at] = (said.user[: said.n] == user).nonzero()
    met, inverse = np.unique(said.pairs[at], return_inverse=True)
    a, b = inverse.reshape(-1, 2).T
    T, h = np.zeros((met.size, met.size)), np.zeros(met.size)
    for (i, j), sign in (((a, a), 1.0), ((b, b), 1.0), ((a, b), -1.0), ((b, a), -1.0)):
        np.add.at(T, (i, j), sign * said.tau[at])
    np.add.at(h, a, said.nu[at])
    np.add.at(h, b, -said.nu[at])
    K, mean = state.cov, state.mean
    r = h - T @ mean[met]
    return carried(K[np.ix_(items, items)], mean[items], K[np.ix_(items, met)], K[np.ix_(met, met)], T, r)


def asked(posterior: Posterior, items: Ints, x: Pool, rule: str, rng: np.random.Generator) -> Ints:
    """The pair (2,) of the pool that the rule gives most, the first of equals; of it, which stands left is as in the
    pool."""
    if rule == "random":
        at = int(rng.integers(len(x.pairs)))
        return np.array([x.pairs[at, 0], x.pairs[at, 1]])
    first, second, _ = next_question(posterior, rule, pairs=np.searchsorted(items, x.pairs))
    return np.array([items[first], items[second]])


def wanted_hyperparameters(learner: Any) -> None:
    """ValueError where one makes no sense."""
    wanted_choice(learner.space)
    wanted_positive("amplitude", learner.amplitude)
    for name in ("width", "lapse", "lengthscale"):
        value = getattr(learner, name)
        most = 0.99 if name == "lapse" else 1e50
        if not is_number(value, int, float) or not 0.0 <= value <= most:
            raise ValueError(f"{name}: wanted a number from 0 to {most:g}, got {describe(value)}")
    if learner.space.equal and not learner.width >= 1e-6:
        told = "where 'equally good' is on offer (Choice(n, equal=False) where it is not)"
        raise ValueError(f"width: wanted more than 0 {told}, got {learner.width:g}")
    if learner.rule not in RULES:
        raise ValueError(f"rule: wanted {', '.join(RULES)}, got {describe(learner.rule)}")
    wanted_count("every", learner.every)


def prior_covariance(learner: Any) -> Array:
    """K (n x n) of the items, by their features where they have some."""
    X = np.asarray(learner.space.features, np.float64)
    if X.size == 0:
        X = np.empty((learner.space.n_items, 0))
    return kernel_for(X, learner.lengthscale or "median", float(learner.amplitude)).over(X)


class PreferenceGP(NamedTuple):
    """Preferences by a Gaussian process: Houlsby et al., NIPS 2012, for one person. Interaction: pairwise.

    f ~ N(0, K), P(a beats b) = Phi(f_a - f_b - width), equally good where they are perceived within width of each
    other; with probability lapse any answer. EP in item space. Proposes the pair that `rule` gives most. Each user
    alone: nothing is learned of one from another. Who cannot judge says nothing.
    """

    space: Any
    """the items, `Choice(n_items, equal, features)`; of no features, K = amplitude^2 I"""
    lengthscale: float = 0.0
    """in standard deviations of the features; 0: the median distance of two items"""
    amplitude: float = 1.0
    """standard deviation of utilities, in units of the noise of one choice"""
    width: float = 0.25
    lapse: float = 0.0
    rule: str = "bald"
    every: int = 1
    """after how many answers of a person all of theirs are weighed anew until nothing moves; in between, once"""

    @property
    def interpreted(self) -> bool:
        """It leans on solvers."""
        return True

    def init(self, rng: np.random.Generator) -> PreferenceGPState:
        wanted_hyperparameters(self)
        K = prior_covariance(self)
        return PreferenceGPState(np.zeros(len(K)), K, nothing_said(), 0, 0)

    def propose(self, state: PreferenceGPState, x: Pool, rng: np.random.Generator) -> Ints:
        items = np.unique(x.pairs)
        return asked(believed_of(state, x.user, items), items, x, self.rule, rng)

    def update(self, state: PreferenceGPState, x: Pool, y: Ints, feedback: int) -> PreferenceGPState:
        return told(self, state, x, y, feedback)

    def posterior(self, state: PreferenceGPState, user: int = 0) -> Posterior:
        """What is believed of a person's utilities of all items."""
        return believed_of(state, user, np.arange(self.space.n_items))

    def without_user(self, state: PreferenceGPState, user: int) -> PreferenceGPState:
        """The state without a person: bit for bit as if they had never come, but for the rounds that there were."""
        said = state.said
        return state._replace(said=without(said, (said.user[: said.n] == user).nonzero()[0]))


def told(learner: Any, state: PreferenceGPState, x: Pool, y: Ints, feedback: int) -> PreferenceGPState:
    """The state after one answer, the person's sites put right; owns `state`."""
    state = state._replace(t=state.t + 1)
    if feedback == UNSURE:
        return state
    state = state._replace(said=with_answer(state.said, x.user, y, feedback))
    own = int(np.count_nonzero(state.said.user[: state.said.n] == x.user))
    refreshed(state, x.user, _options(learner), 200 if own % learner.every == 0 else 1)
    return state


def _options(learner: Any) -> _Options:
    return _Options(learner.width if learner.space.equal else 0.0, learner.lapse)


class HierarchicalGP(NamedTuple):
    """Preferences of many people: Birlutiu et al. 2010, by EP, with a prior on S (ours). Interaction: pairwise.

    f_u ~ N(m, S); m and S by EM from everybody's answers, the maximum a posteriori with an inverse-Wishart prior on S
    around K that counts as nu0 people, and kappa0 people to whom all is alike. They are learned anew, from where they
    are, when there are `every` answers more and a tenth more than last time; in between only the person's own
    utilities are. Somebody new starts from the population. Otherwise as `PreferenceGP`.
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

    @property
    def interpreted(self) -> bool:
        """It leans on solvers."""
        return True

    def init(self, rng: np.random.Generator) -> PreferenceGPState:
        wanted_hyperparameters(self)
        for name in ("nu0", "kappa0"):
            value = getattr(self, name)
            if not is_number(value, int, float) or not (0.0 <= value <= 1e50 or (name == "nu0" and value == -1.0)):
                raise ValueError(f"{name}: wanted a number, 0 or more, got {describe(value)}")
        K = prior_covariance(self)
        return PreferenceGPState(np.zeros(len(K)), K, nothing_said(), 0, 0)

    def propose(self, state: PreferenceGPState, x: Pool, rng: np.random.Generator) -> Ints:
        items = np.unique(x.pairs)
        return asked(believed_of(state, x.user, items), items, x, self.rule, rng)

    def update(self, state: PreferenceGPState, x: Pool, y: Ints, feedback: int) -> PreferenceGPState:
        said = state.said.n
        if feedback == UNSURE or said + 1 < state.learned + max(self.every, state.learned // 10):
            return told(self._replace(every=1), state, x, y, feedback)
        state = state._replace(said=with_answer(state.said, x.user, y, feedback), t=state.t + 1)
        return self.learned_anew(state)

    def learned_anew(self, state: PreferenceGPState, steps: int = 10) -> PreferenceGPState:
        """The state with m and S learned from all answers, in so many steps of EM from where they are."""
        said = state.said
        people, user = np.unique(said.user[: said.n], return_inverse=True)
        rows = said.rows(slice(0, said.n))._replace(user=user)
        got = fit(
            prior_covariance(self), people.size, rows, nu0=None if self.nu0 < 0.0 else self.nu0, kappa0=self.kappa0,
            start=Population(state.mean, state.cov), sites=Sites(said.tau[: said.n], said.nu[: said.n]),
            **_options(self)._asdict(), steps=steps,
        )  # fmt: skip
        said.tau[: said.n], said.nu[: said.n] = got.people.sites.tau, got.people.sites.nu
        mean, cov = got.population
        return state._replace(mean=mean, cov=cov, learned=said.n)

    def posterior(self, state: PreferenceGPState, user: int = 0) -> Posterior:
        """What is believed of a person's utilities of all items; of somebody new, what people are like."""
        return believed_of(state, user, np.arange(self.space.n_items))

    def without_user(self, state: PreferenceGPState, user: int) -> PreferenceGPState:
        """The state without a person: m, S and all sites are learned from nothing, of what the others said."""
        said = state.said
        said = without(said, (said.user[: said.n] == user).nonzero()[0])
        said.tau[:], said.nu[:] = 0.0, 0.0
        K = prior_covariance(self)
        state = PreferenceGPState(np.zeros(len(K)), K, said, 0, state.t)
        return self.learned_anew(state, 100) if said.n else state
