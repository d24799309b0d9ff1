"""Simulated people who choose between two or more items; their utilities come from a Gaussian process.

[H12]: Houlsby, Huszár, Ghahramani & Hernández-Lobato, *Collaborative Gaussian Processes for Preference Learning*, NIPS
2012.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_between, check_count, check_flag, finite_table
from heedful.jit.kernel import Ints, kernel
from heedful.spaces.comparison import EQUAL, UNSURE, ComparisonPool
from heedful.worlds.answers import without_user

Array = npt.NDArray[np.float64]

MOST_SETS = 10**8
"""the greatest number of sets of items that a world can ask about"""


class ChooserState(NamedTuple):
    """The state of `Choosers`: which of the p questions (pairs or sets of items) each of U users has not answered yet.

    - `pairs` (U x p): row u has indices of questions, of which the first remaining[u] are not answered yet.
    - `remaining` (U,): the number of questions that each user has not answered yet.
    - `users` (U,): indices of users; the first `n` are those with questions left.
    - `n`: the number of users with questions left.
    """

    pairs: Ints
    remaining: Ints
    users: Ints
    n: int


class Choosers(NamedTuple):
    """A simulated environment of U users who are shown the k items of a question and choose the best one, by hidden
    utilities.

    - `utilities` (U x n): the utility of each of n items for each user.
    - `pairs` (p x k): the p questions that may be asked, each the indices of k items, ascending.
    - `noise`: the standard deviation of the noise on the perceived difference in utility of two items: each item is
      perceived with noise N(0, noise^2 / 2) on its utility ([H12] Eq. 1).
    - `tie`: the answer is "equally good" if the two items perceived best differ by less than this in perceived utility.
    - `unsure`: the probability that the answer is "cannot judge".
    - `lapses` (U,): the probability that an answer of each user is random.
    - `firsts` (U,): the probability that a random answer of each user is the first item; otherwise it is one of the
      others.
    - `repeats`: whether a question may be asked again; otherwise each user answers each question once, and the
      simulation ends when all are answered.

    In each round a random user is asked. Regret is the utility of the user's best item minus that of the best item
    shown. Made by `gaussian_choosers`.
    """

    utilities: Array
    pairs: Ints
    noise: float
    tie: float
    unsure: float
    lapses: Array
    firsts: Array
    repeats: bool

    def init(self, rng: np.random.Generator) -> ChooserState:
        users, p = self.utilities.shape[0], self.pairs.shape[0]
        if self.repeats:
            return ChooserState(np.zeros((1, 1), np.int64), np.full(users, p), np.arange(users), users)
        pairs = np.empty((users, p), np.int64)
        pairs[:] = np.arange(p)
        return ChooserState(pairs, np.full(users, p), np.arange(users), users)

    def over(self, state: ChooserState, t: int) -> bool:
        return state.n == 0

    def context(self, state: ChooserState, t: int, rng: np.random.Generator) -> ComparisonPool:
        user = state.users[int(rng.random() * state.n)]
        if self.repeats:
            return ComparisonPool(int(user), self.pairs)
        return ComparisonPool(int(user), self.pairs[state.pairs[user, : state.remaining[user]]])

    def respond(self, state: ChooserState, x: ComparisonPool, shown: Ints, rng: np.random.Generator) -> int:
        return answer(self, x.user, shown, rng)

    def regret(self, state: ChooserState, x: ComparisonPool, shown: Ints) -> float:
        best, better = -np.inf, -np.inf
        for j in range(self.utilities.shape[1]):
            best = max(best, self.utilities[x.user, j])
        for j in shown:
            better = max(better, self.utilities[x.user, j])
        return best - better

    def advance(self, state: ChooserState, x: ComparisonPool, shown: Ints, feedback: int) -> ChooserState:
        if self.repeats:
            return state
        user, kept = x.user, 0
        for i in range(state.remaining[user]):
            matches = 0
            for item in self.pairs[state.pairs[user, i]]:
                for shown_item in shown:
                    matches += item == shown_item
            if matches < shown.size:
                state.pairs[user, kept] = state.pairs[user, i]
                kept += 1
        state.remaining[user] = kept
        n = without_user(state.users, state.n, user) if kept == 0 else state.n
        return ChooserState(state.pairs, state.remaining, state.users, n)


@kernel
def perceived_utilities(world: Choosers, user: int, shown: Ints, rng: np.random.Generator) -> Array:
    """Return the utilities (k,) that a user of `world` perceives in this round, each the true one with noise drawn from
    `rng`.

    `user`: the index of the user; `shown` (k,): the indices of the items shown.
    """
    out = np.empty(shown.size)
    for r in range(shown.size):
        out[r] = world.utilities[user, shown[r]] + world.noise / math.sqrt(2.0) * rng.standard_normal()
    return out


@kernel
def answer(world: Choosers, user: int, shown: Ints, rng: np.random.Generator) -> int:
    """Return the answer of a user of `world` to a question: the position of the chosen item, 0 to k - 1; EQUAL (-1),
    equally good; or UNSURE (-2), cannot judge.

    `user`: the index of the user; `shown` (k,): the indices of the items shown. Noise is drawn from `rng`.
    """
    lapse, unsure, first, other = rng.random(), rng.random(), rng.random(), rng.random()
    worth = perceived_utilities(world, user, shown, rng)
    if unsure < world.unsure:
        return UNSURE
    if lapse < world.lapses[user]:
        return 0 if first < world.firsts[user] else 1 + int(other * (shown.size - 1))
    best, second = 0, -1
    for r in range(1, shown.size):
        if worth[r] > worth[best]:
            best, second = r, best
        elif second < 0 or worth[r] > worth[second]:
            second = r
    if second >= 0 and worth[best] - worth[second] < world.tie:
        return EQUAL
    return best


def gaussian_choosers(
    n_users: int = 100,
    n_items: int = 10,
    *,
    features: npt.ArrayLike | None = None,
    length: float = 1.0,
    amplitude: float = 1.0,
    shared: float = 0.0,
    noise: float = 1.0,
    tie: float = 0.0,
    unsure: float = 0.0,
    lapse: float = 0.0,
    first: float = 0.5,
    repeats: bool = True,
    shown: int = 2,
    seed: int = 0,
) -> Choosers:
    """Return a simulated environment of `n_users` users who choose between `n_items` items, with utilities from a
    Gaussian process, drawn from `seed`.

    Its covariance is amplitude^2 exp(-d^2 / (2 length^2)), where d is the distance between the N `features` (n_items x
    N) of two items; without features, items are independent. A share `shared` (0 to 1) of the variance belongs to a
    function that all users share, the rest to a function of each user's own.

    A question shows `shown` items. The perceived difference in utility of two items has noise of standard deviation
    `noise`. The answer is "equally good" if the two best differ by less than `tie`, "cannot judge" with probability
    `unsure`, and random with probability `lapse`; a random answer is the first item with probability `first`. With
    `repeats`, users may be asked the same question again. Raise ValueError, naming the argument, if one is not valid.
    """
    check_count("n_users", n_users)
    check_count("n_items", n_items, least=2)
    check_count("seed", seed, least=0)
    for name, value, least, most in (("length", length, 1e-50, 1e50), ("amplitude", amplitude, 0.0, 1e50)):
        check_between(name, value, least, most)
    check_between("noise", noise, 0.0, 1e50)
    check_between("tie", tie, 0.0, 1e50)
    for name, value in (("shared", shared), ("unsure", unsure), ("lapse", lapse), ("first", first)):
        check_between(name, value, 0.0, 1.0)
    check_flag("repeats", repeats)
    check_count("shown", shown, least=2, most=n_items)
    if (sets := math.comb(n_items, shown)) > MOST_SETS:
        raise ValueError(f"shown: expected at most {MOST_SETS} sets of items, got {sets} of {shown}")
    rng = np.random.default_rng(seed)
    individual, common = rng.standard_normal((n_users, n_items)), rng.standard_normal(n_items)
    Z = math.sqrt(1.0 - shared) * individual + math.sqrt(shared) * common
    if features is not None:
        X = finite_table("features", features).astype(np.float64)
        if X.shape[0] != n_items or X.shape[1] < 1:
            raise ValueError(f"features: expected {n_items} rows, one for each item, got shape {X.shape}")
        squares = ((X[:, None] - X) ** 2).sum(axis=2)
        values, vectors = np.linalg.eigh(np.exp(-0.5 * squares / (length * length)))
        Z = Z @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    pairs = np.array(list(combinations(range(n_items), shown)), np.int64)
    lapses, firsts = np.full(n_users, float(lapse)), np.full(n_users, float(first))
    return Choosers(amplitude * Z, pairs, float(noise), float(tie), float(unsure), lapses, firsts, repeats)
