"""Simulated people who answer what a learner shows with something better ([J15] section 6.1).

A user is a NamedTuple with one method for each kind of object that can be shown: `rank` answers a ranking with a
ranking, `pick` an item with an item, `correct` a structured object (assignment, set) with another one; `prefer`
compares two items. Utilities, labels and ratings (m,) are those of the m candidates of the round.

[C12]: Shivaswamy & Joachims, *Online Structured Prediction via Coactive Learning*, ICML 2012; [J15]: Shivaswamy &
Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from heedful.core.space import StructuredSpace
from heedful.core.validation import check_count, check_flag, is_number
from heedful.jit.kernel import DISCOUNTS, Floats, Ints, kernel, top
from heedful.worlds.answers import (
    draw_to_front,
    gain,
    insert,
    least_gaining,
    move_to_front,
    next_above,
    nth,
    random_share,
)
from heedful.worlds.clicks import Cascade, PositionBiased

Array = npt.NDArray[np.float64]


class RankingUser(Protocol):
    """A simulated person who answers a ranking with a better one."""

    def rank(
        self, k: int, utilities: Array, labels: Array, best: float, shown: Ints, rng: np.random.Generator, /
    ) -> Ints:
        """Return the person's answer to the ranking `shown` (indices of m candidates, best first): a better order, best
        first, or the clicked candidates alone.

        `utilities`, `labels` (m,): the true utility and the relevance label of each candidate. The utility of a ranking
        is its DCG over the first `k` positions; `best` is that of the best ranking. Random answers draw from `rng`.
        """


class ItemUser(Protocol):
    """A simulated person who answers an item with a better one, and compares two items."""

    def pick(self, utilities: Array, ratings: Array, y: int, rng: np.random.Generator, /) -> int:
        """Return the index of the item that the person answers with when the item with index `y` is shown; y itself if
        none is better.

        `utilities`, `ratings` (m,): the true utility and the person's rating of each of m items. Random answers draw
        from `rng`.
        """

    def prefer(self, utilities: Array, ratings: Array, a: int, b: int, /) -> float:
        """Return by how much item `a` is better than item `b` (indices) of those with `utilities` and `ratings` (m,);
        below 0 if it is worse."""


class CorrectingUser(Protocol):
    """A simulated person who corrects an object of a structured space, such as an assignment."""

    def correct(self, space: StructuredSpace, x: Floats, w: Array, best: Ints, y: Ints, /) -> Ints:
        """Return a better object than `y` for the context `x` of `space`: y changed step by step towards `best`, the
        object of greatest utility.

        `w` (N,): the person's utility weights of N features.
        """


@kernel
def utility(values: Array, order: Ints, k: int) -> float:
    """Return the DCG@k utility of a ranking: sum_{i<=k} values[order_i] / log2(i+1), for the `values` (m,) of m
    candidates and `order`, candidate indices, best first.
    """
    u = 0.0
    for i in range(min(k, order.size)):
        u += DISCOUNTS[i] * values[order[i]]
    return u


class StrictAlpha(NamedTuple):
    """Strictly alpha-informative feedback ([J15] Eq. 5): the answer gains at least `alpha` times the regret in utility,
    and no more than needed.

    Regret is the utility of the best object minus that of the object shown; 0 < alpha <= 1.
    """

    alpha: float = 0.5

    def check(self) -> None:
        """Raise ValueError unless 0 < alpha <= 1."""
        if not is_number(self.alpha, int, float, np.integer, np.floating) or not 0.0 < self.alpha <= 1.0:
            raise ValueError(f"alpha: expected a number above 0, at most 1, got {self.alpha!r}")

    def rank(self, k: int, utilities: Array, labels: Array, best: float, shown: Ints, rng: np.random.Generator) -> Ints:
        """The k best of the first d candidates shown move to the top; d is the least number, from min(k, n) for n
        candidates shown, with which utility rises by at least alpha times the regret.

        At alpha = 1, rounding may let every d gain too little: then all candidates are sorted by utility.
        """
        n = shown.size
        size = min(k, n)
        u = utility(utilities, shown, k)
        chosen = np.empty(size + 1, np.int64)
        kept = 0
        for d in range(n):
            kept = insert(chosen, kept, size, utilities, shown[d])
            if d >= size - 1 and utility(utilities, chosen[:size], k) - u >= self.alpha * (best - u):
                return move_to_front(chosen, size, shown, utilities.size)
        return top(utilities, utilities.size)

    def pick(self, utilities: Array, ratings: Array, y: int, rng: np.random.Generator) -> int:
        """Of the items that gain at least alpha times the regret, the one of least utility answers; ties go to the
        lowest index."""
        best = utilities.max()
        if utilities[y] == best:
            return y
        return least_gaining(utilities, y, self.alpha * (best - utilities[y]))

    def prefer(self, utilities: Array, ratings: Array, a: int, b: int) -> float:
        return utilities[a] - utilities[b]  # type: ignore[no-any-return]

    def correct(self, space: StructuredSpace, x: Floats, w: Array, best: Ints, y: Ints) -> Ints:
        """`y` moves step by step (`space.step_towards`) towards `best`, until its utility has risen by alpha times the
        regret."""
        needed = self.alpha * gain(space, x, w, best, y)
        out = y.copy()
        for _ in range(best.size):
            if gain(space, x, w, out, y) >= needed:
                break
            out = space.step_towards(out, best)
        return out


class ExpectedAlpha(NamedTuple):
    """Expected alpha-informative feedback ([J15] Eq. 7, section 6.2.4): a good answer most of the time, else a random
    one.

    - `alpha`: the answer gains at least this share of the regret r on average.
    - `strict`: the good answer is that of `StrictAlpha(strict)`, which gains at least this share of r (the experiments
      have .5 for rankings, 1 for items).
    - `objects`: a random answer is one of so many random objects, drawn in every round.

    The probability p of a random answer is as large as it can be with an expected gain in utility of at least alpha r:
    p = (g - alpha r) / (g - h), with g the gain of the good answer and h the mean gain of the random ones. A random
    ranking has random candidates on top and the rest as shown.
    """

    alpha: float = 0.5
    strict: float = 0.5
    objects: int = 5

    def check(self) -> None:
        """Raise ValueError unless 0 < alpha <= strict <= 1, as otherwise no share p of random answers may gain alpha
        times the regret on average, or unless `objects` is a whole number from 1 to 1000."""
        StrictAlpha(self.alpha).check()
        if not is_number(self.strict, int, float, np.integer, np.floating) or not self.alpha <= self.strict <= 1.0:
            raise ValueError(f"strict: expected a number from alpha = {self.alpha} to 1, got {self.strict!r}")
        check_count("objects", self.objects, most=1000)

    def rank(self, k: int, utilities: Array, labels: Array, best: float, shown: Ints, rng: np.random.Generator) -> Ints:
        u = utility(utilities, shown, k)
        good = StrictAlpha(self.strict).rank(k, utilities, labels, best, shown, rng)
        size = min(k, shown.size)
        draws = np.empty((self.objects, shown.size), np.int64)
        gained = 0.0
        for i in range(self.objects):
            draws[i] = move_to_front(draw_to_front(shown, size, rng), size, shown, utilities.size)
            gained += (utility(utilities, draws[i], k) - u) / self.objects
        p = random_share(utility(utilities, good, k) - u, gained, self.alpha * (best - u))
        return draws[rng.integers(0, self.objects)].copy() if rng.random() < p else good

    def pick(self, utilities: Array, ratings: Array, y: int, rng: np.random.Generator) -> int:
        good = StrictAlpha(self.strict).pick(utilities, ratings, y, rng)
        draws = np.empty(self.objects, np.int64)
        gained = 0.0
        for i in range(self.objects):
            draws[i] = rng.integers(0, utilities.size)
            gained += (utilities[draws[i]] - utilities[y]) / self.objects
        needed = self.alpha * (utilities.max() - utilities[y])
        p = random_share(utilities[good] - utilities[y], gained, needed)
        return draws[rng.integers(0, self.objects)] if rng.random() < p else good

    def prefer(self, utilities: Array, ratings: Array, a: int, b: int) -> float:
        return utilities[a] - utilities[b]  # type: ignore[no-any-return]


class Noisy(NamedTuple):
    """Simulated feedback by relevance labels, which the true utility need not follow.

    Of the first `depth` candidates shown, the k with the highest labels are moved to the top of the ranking; ties keep
    the order shown. k is the number of positions from which utility is computed.
    """

    depth: int = 10

    def check(self) -> None:
        """Raise ValueError unless depth is a whole number above 0."""
        check_count("depth", self.depth)

    def rank(self, k: int, utilities: Array, labels: Array, best: float, shown: Ints, rng: np.random.Generator) -> Ints:
        n = min(self.depth, shown.size)
        chosen = np.empty(min(k, n) + 1, np.int64)
        size = 0
        for i in range(n):
            size = insert(chosen, size, min(k, n), labels, shown[i])
        return move_to_front(chosen, size, shown, labels.size)


class Better(NamedTuple):
    """Simulated feedback that is one step better: an item with the smallest rating above that of the item shown
    ([J15]), or, with `exact`, an item rated exactly one higher ([C12]).

    Ties are broken at random; the answer is the item shown if there is no such item.
    """

    exact: bool = False

    def check(self) -> None:
        """Raise ValueError unless `exact` is a bool."""
        check_flag("exact", self.exact)

    def pick(self, utilities: Array, ratings: Array, y: int, rng: np.random.Generator) -> int:
        target = ratings[y] + 1.0 if self.exact else next_above(ratings, ratings[y])
        ties = np.sum(ratings == target)
        return nth(ratings, target, rng.integers(0, ties)) if ties > 0 else y

    def prefer(self, utilities: Array, ratings: Array, a: int, b: int) -> float:
        return ratings[a] - ratings[b]  # type: ignore[no-any-return]


class Best(NamedTuple):
    """The best answer: an item with the highest rating ([J15] section 6.1.2); the item shown if none is rated higher.

    With `ties`, a random one of the highest rated, else the first. (The class needs a field: numba cannot compile a
    named tuple without one.)
    """

    ties: bool = True

    def check(self) -> None:
        """Raise ValueError unless `ties` is a bool."""
        check_flag("ties", self.ties)

    def pick(self, utilities: Array, ratings: Array, y: int, rng: np.random.Generator) -> int:
        target = ratings.max()
        if ratings[y] == target:
            return y
        return nth(ratings, target, rng.integers(0, np.sum(ratings == target)) if self.ties else 0)

    def prefer(self, utilities: Array, ratings: Array, a: int, b: int) -> float:
        return ratings[a] - ratings[b]  # type: ignore[no-any-return]


USERS: dict[str, type] = {
    "strict": StrictAlpha,
    "noisy": Noisy,
    "better": Better,
    "best": Best,
    "position-biased": PositionBiased,
    "cascade": Cascade,
    "expected": ExpectedAlpha,
}
"""the classes of simulated people, by the names that commands and specifications use"""


def users_that(answer: str) -> str:
    """Return the names of the simulated people that have the method `answer` ("rank", "pick" or "correct"), separated
    by commas, for error messages."""
    return ", ".join(name for name, user in USERS.items() if hasattr(user, answer))


def check_user(user: object, answer: str, meaning: str) -> None:
    """Raise ValueError unless `user` is a simulated person with the method `answer` ("rank", "pick" or "correct") and
    valid parameters.

    The message says that one who `meaning` (in words what the method does) was expected, and names those that there
    are.
    """
    if isinstance(user, type) or not hasattr(user, answer):
        raise ValueError(f"user: expected one who {meaning} ({users_that(answer)}), got {user!r}")
    if hasattr(user, "check"):
        user.check()


def rounded_ratings(utilities: Array) -> Array:
    """Return ratings (m,) made from `utilities` (m,): rounded half up and clipped to 1..5 ([J15] section 6.1.2)."""
    rounded: Array = np.clip(np.array([math.floor(u + 0.5) for u in utilities.tolist()]), 1.0, 5.0)
    return rounded
