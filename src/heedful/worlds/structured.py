"""Simulated streams of contexts for structured objects (assignments, sets), and a person who corrects the objects
shown.

One class, `StructuredStream`, serves all of them: the space says what a context looks like, which object is best, and
what one step of a correction is.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.space import StructuredSpace
from heedful.core.validation import check_count
from heedful.jit.kernel import Floats, Ints
from heedful.spaces.assignment import Assignment
from heedful.spaces.structured import Subset
from heedful.worlds.answers import gain
from heedful.worlds.queries import StreamState
from heedful.worlds.users import CorrectingUser, check_user

Array = npt.NDArray[np.float64]

MOST_SETS = 20_000
"""the greatest number of sets that are tried to find the best one of a context"""


class StructuredStream(NamedTuple):
    """A simulated environment of T contexts in random order: the learner shows an assignment or a set, and a person
    corrects it.

    - `X`: the features of all contexts: T x the shape of one context, whose last axis is the N features.
    - `w_star` (N,): the person's true utility weights.
    - `best` (T x the length of an object): the object of greatest utility of each context.
    - `space`: the space of the objects, `Assignment` or `Subset`.
    - `user`: the simulated person, who changes an object step by step towards the best one.

    Regret is the utility of the best object minus that of the one shown. After the last context the first comes again.
    """

    X: Floats
    w_star: Array
    best: Ints
    space: StructuredSpace
    user: CorrectingUser

    def init(self, rng: np.random.Generator) -> StreamState:
        return StreamState(rng.permutation(self.X.shape[0]), 0)

    def over(self, state: StreamState, t: int) -> bool:
        return False

    def context(self, state: StreamState, t: int, rng: np.random.Generator) -> Floats:
        x: Floats = self.X[state.order[t % state.order.size]]
        return x

    def respond(self, state: StreamState, x: Floats, shown: Ints, rng: np.random.Generator) -> Ints:
        best = self.best[state.order[state.t % state.order.size]]
        corrected: Ints = self.user.correct(self.space, x, self.w_star, best, shown)
        return corrected

    def regret(self, state: StreamState, x: Floats, shown: Ints) -> float:
        best = self.best[state.order[state.t % state.order.size]]
        return gain(self.space, x, self.w_star, best, shown)

    def advance(self, state: StreamState, x: Floats, shown: Ints, feedback: Ints) -> StreamState:
        return StreamState(state.order, state.t + 1)


def synthetic_assignments(
    rounds: int, people: int, slots: int, n_features: int, user: CorrectingUser, seed: int = 0
) -> tuple[StructuredStream, Array]:
    """Return (a simulated stream of `rounds` contexts for assignments of `people` to `slots`, its true utility weights
    w* (N,), |w*| = 1).

    A context (people x slots x N) has N = `n_features` standard normal features, drawn from `seed`. `user` is the
    simulated person who corrects assignments. Raise ValueError, naming the argument, if one is not valid or there are
    fewer people than slots.
    """
    check_count("slots", slots)
    check_count("people", people, least=slots)
    rng, space = _generator(rounds, n_features, user, seed), Assignment(slots)
    X = rng.standard_normal((rounds, people, slots, n_features))
    w_star = rng.standard_normal(n_features)
    w_star /= np.linalg.norm(w_star)
    best = np.array([space.argmax(w_star, x) for x in X])
    return StructuredStream(X, w_star, best, space, user), w_star


def synthetic_subsets(
    rounds: int, candidates: int, k: int, n_features: int, user: CorrectingUser, seed: int = 0
) -> tuple[StructuredStream, Array]:
    """Return (a simulated stream of `rounds` contexts for sets of `k` out of `candidates` candidates, its true utility
    weights w* >= 0 (N,), |w*| = 1).

    A context (candidates x N) has N = `n_features` features drawn from `seed`: a candidate has each feature with
    probability .3, with a value uniform on [0, 1], otherwise 0. The best set is found by trying all sets, not greedily.
    `user` is the simulated person who corrects sets. Raise ValueError, naming the argument, if there are fewer
    candidates than k or more than MOST_SETS sets.
    """
    check_count("k", k)
    check_count("candidates", candidates, least=k)
    if comb(candidates, k) > MOST_SETS:
        raise ValueError(f"k: expected at most {MOST_SETS} sets to try, got {comb(candidates, k)}")
    rng = _generator(rounds, n_features, user, seed)
    X = rng.random((rounds, candidates, n_features)) * (rng.random((rounds, candidates, n_features)) < 0.3)
    w_star = np.abs(rng.standard_normal(n_features))
    w_star /= np.linalg.norm(w_star)
    sets = np.array([*combinations(range(candidates), k)], np.int64)  # sets x k
    covered = [np.sqrt(x[sets].sum(axis=1)) @ w_star for x in X]
    best = sets[[int(u.argmax()) for u in covered]]
    return StructuredStream(X, w_star, np.ascontiguousarray(best), Subset(k), user), w_star


def _generator(rounds: int, n_features: int, user: CorrectingUser, seed: int) -> np.random.Generator:
    """Return the random generator of a stream; raise ValueError, naming the argument, if one is not valid."""
    for name, value in (("rounds", rounds), ("n_features", n_features)):
        check_count(name, value)
    check_count("seed", seed, least=0, most=2**128)
    check_user(user, "correct", "corrects assignments and sets")
    return np.random.default_rng(seed)
