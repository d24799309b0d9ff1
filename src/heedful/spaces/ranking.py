"""Spaces of rankings for coactive learners (learners that get a better object as feedback), with their features
phi(x, y) and the argmax of w . phi(x, y).

A space is a NamedTuple with the methods of `heedful.core.space.Space`. Any update rule works with any space ([J15]
Algorithm 3). `WithBaseScore` wraps a space for callers who have a score for each candidate already: with weights w = 0
it shows the candidates by that score.

An object y here is a choice among the rows x_p of a context x (such as candidates), with utility U(x, y) = sum_p c_p(y)
w . x_p for coefficients c(y) that depend on the object. So a space needs the scores w . x_p to find its argmax, and the
differences of coefficients between two objects to update w; it reads each row once for either.

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.space import Space
from heedful.core.validation import check_count, check_flag, check_space, finite_array, indices
from heedful.jit.kernel import (
    DISCOUNTS,
    Floats,
    Ints,
    add_discounts,
    add_rows,
    kernel,
    scores,
    top,
)

Array = npt.NDArray[np.float64]


class Ranking(NamedTuple):
    """Rankings of m candidates: an object is an order of them, and only its first `k` positions have an effect on
    utility.

    A context x (m x N) has N features for each candidate; an object y is an order of candidate indices, best first, and
    y_i its i-th. phi(x, y) = sum_{i<=k} x_{y_i} / log2(i+1), a linear DCG@k ([J15] Eq. 21); `k` is from 1 to 1024. With
    k = 1 an object is one item, and a proposal shows that item alone; otherwise a proposal is an order of all
    candidates. An order given as feedback has at least min(k, m) candidate indices without repetition, best first.
    """

    k: int = 5

    def phi(self, x: Floats, y: Ints) -> Array:
        out = np.zeros(x.shape[1])
        coef = np.zeros(x.shape[0])
        add_discounts(coef, y, self.k, 1.0)
        add_rows(out, x, coef, 1.0)
        return out

    def argmax(self, w: Array, x: Floats) -> Ints:
        """With k = 1 only the first candidate is returned; ties go to the lowest index."""
        m = x.shape[0]
        return top(scores(x, w), m if self.k > 1 else min(m, 1))

    def add_difference(self, out: Array, x: Floats, ybar: Ints, y: Ints, scale: float) -> None:
        """Only rows of `x` whose coefficients differ between the two are read, each once."""
        coef = np.zeros(x.shape[0])
        add_discounts(coef, ybar, self.k, 1.0)
        add_discounts(coef, y, self.k, -1.0)
        add_rows(out, x, coef, scale)

    def positions(self) -> int:
        return self.k

    def check(self) -> None:
        check_count("k", self.k, most=DISCOUNTS.size)

    def check_context(self, x: object, n_features: int) -> Floats:
        array = finite_array("x", x, 2, n_features)
        if array.shape[0] == 0:
            raise ValueError("x: expected at least one candidate, got an empty list (0 rows)")
        return array

    def check_object(self, name: str, x: Floats, y: object) -> Ints:
        m = x.shape[0]
        order = indices(name, y, m, "candidate indices, best first")
        if 1 < self.k and order.size < min(self.k, m):
            raise ValueError(
                f"{name}: expected at least the first {min(self.k, m)} of {m} candidates, got {order.size}"
            )
        return order


class WithBaseScore(NamedTuple):
    """A space whose utility adds the caller's own score of each candidate to the learned score.

    - `space`: the space that is wrapped, such as a `Ranking`; it has no base score itself.
    - `adjusted`: whether learning also changes the weight of the caller's score; otherwise that weight is always 1.

    The caller's score is the last of the N features and has the weight 1 + w_N instead of w_N. So with weights w = 0
    the caller's order is shown, and learning adjusts it. phi and the objects are those of `space`; U(x, y) = (w + e_N)
    . phi(x, y), where e_N is the last unit vector, and w_N = 0 if not adjusted.
    """

    space: Any  # a Space; a RankingSpace where `positions` is called
    adjusted: bool = True

    @property
    def k(self) -> int:
        """The `k` of the wrapped `space`, a ranking: only the first k positions have an effect on utility."""
        k: int = self.space.k
        return k

    def phi(self, x: Floats, y: Ints) -> Array:
        phi: Array = self.space.phi(x, y)
        return phi

    def argmax(self, w: Array, x: Floats) -> Ints:
        y: Ints = self.space.argmax(with_base_weight(w, self.adjusted), x)
        return y

    def add_difference(self, out: Array, x: Floats, ybar: Ints, y: Ints, scale: float) -> None:
        last = out[-1]
        self.space.add_difference(out, x, ybar, y, scale)
        if not self.adjusted:
            out[-1] = last

    def positions(self) -> int:
        positions: int = self.space.positions()
        return positions

    def check(self) -> None:
        if isinstance(self.space, WithBaseScore):
            raise ValueError(f"space: expected one without the caller's score, got {self.space!r}")
        check_space(self.space)
        check_flag("adjusted", self.adjusted)

    def check_context(self, x: object, n_features: int) -> Floats:
        checked: Floats = self.space.check_context(x, n_features)
        return checked

    def check_object(self, name: str, x: Floats, y: object) -> Ints:
        checked: Ints = self.space.check_object(name, x, y)
        return checked


@kernel
def difference(space: Space, n_features: int, x: Floats, ybar: Ints, y: Ints) -> Array:
    """Return D = phi(x, ybar) - phi(x, y) (N,), the direction in which weights are updated when the object `y` of the
    context `x` is corrected to `ybar`, for any `space`; N is `n_features`."""
    D = np.zeros(n_features)
    space.add_difference(D, x, ybar, y, 1.0)
    return D


@kernel
def with_base_weight(w: Array, adjusted: bool) -> Array:
    """Return a copy of the weights `w` (N,) in which the caller's score has its full weight.

    The last entry is the weight of the caller's score: 1 is added to it or, if not `adjusted`, it becomes 1.
    """
    out = w.copy()
    out[-1] = 1.0 + w[-1] if adjusted else 1.0
    return out


def is_exact(space: object) -> bool:
    """Return True if the argmax of `space` is an object of greatest utility w . phi(x, y), as the regret bounds assume.

    It is False for a WithBaseScore, which maximises under other weights than w, and for a space with a true attribute
    `approximate`.
    """
    return not (isinstance(space, WithBaseScore) or getattr(space, "approximate", False))


def check_ranking(space: Space, why: str) -> None:
    """Raise ValueError unless `space` is a valid Ranking, or a WithBaseScore with a valid Ranking inside; the message
    says `why` the caller needs one."""
    if not isinstance(space.space if isinstance(space, WithBaseScore) else space, Ranking):
        raise ValueError(f"space: expected a Ranking, {why}, got {space!r}")
    space.check()
