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
    logistic,
    primitive,
    scores,
    top,
)

Array = npt.NDArray[np.float64]


class Ranking(NamedTuple):
    """Rankings of candidates x (m x N); phi(x, y) = sum_{i<=k} x_{y_i} / log2(i+1), a linear DCG@k ([J15] Eq. 21).

    x has m candidates with N features; y is an order of candidate indices, best first, and y_i its i-th. `k` (1 to
    1024) is the number of positions that count. With k = 1 an object is one item, and a proposal shows that item alone;
    otherwise a proposal is an order of all candidates. An order given as feedback has at least min(k, m) candidate
    indices without repetition, best first.
    """

    k: int = 5

    def phi(self, x: Floats, y: Ints) -> Array:
        """Return phi(x, y) (N,): the rows of `x` (m x N; m candidates, N features) in the order `y`, discounted by 1 /
        log2(i + 1) at position i, summed over the first k positions."""
        out = np.zeros(x.shape[1])
        coef = np.zeros(x.shape[0])
        add_discounts(coef, y, self.k, 1.0)
        add_rows(out, x, coef, 1.0)
        return out

    def argmax(self, w: Array, x: Floats) -> Ints:
        """Return the candidate indices by descending score w . x_j, for weights `w` (N,) and m candidates `x` (m x N)
        of N features; ties to the lowest index. With k = 1 only the first is returned."""
        m = x.shape[0]
        return top(scores(x, w), m if self.k > 1 else min(m, 1))

    def add_difference(self, out: Array, x: Floats, ybar: Ints, y: Ints, scale: float) -> None:
        """Add scale (phi(x, ybar) - phi(x, y)) to `out` (N,) in place, for two orders `ybar` and `y` of the m
        candidates `x` (m x N), N features each; it reads only rows of x whose coefficients differ, each once."""
        coef = np.zeros(x.shape[0])
        add_discounts(coef, ybar, self.k, 1.0)
        add_discounts(coef, y, self.k, -1.0)
        add_rows(out, x, coef, scale)

    def add_pair_gradient(self, out: Array, w: Array, x: Floats, ybar: Ints, y: Ints) -> None:
        """Add to `out` (N,) in place the gradient in the N weights `w` (N,) of sum log sigma(w . (x_a - x_b)) over the
        pairs of candidates "a is better than b" that correcting the order `y` to `ybar` implies; sigma is the logistic
        function.

        A candidate among the first k of ybar beats every candidate that the person looked at and did not put there, and
        any other of these k that it overtook (`add_implied_pairs`).
        """
        coef = np.zeros(x.shape[0])
        add_implied_pairs(coef, scores(x, w), ybar, y, self.k)
        add_rows(out, x, coef, 1.0)

    def add_pairs(self, out: Array, w: Array, x: Floats, better: Ints, worse: Ints, weights: Array) -> None:
        """Add to `out` (N,) in place the gradient in the N weights `w` (N,) of sum_i weights_i log sigma(w .
        (x[better_i] - x[worse_i])), for p pairs of the m candidates of `x` (m x N): indices `better` and `worse`,
        `weights`, (p,) each; sigma is the logistic function."""
        coef = np.zeros(x.shape[0])
        s = scores(x, w)
        for p in range(better.size):
            g = weights[p] * logistic(s[worse[p]] - s[better[p]])
            coef[better[p]] += g
            coef[worse[p]] -= g
        add_rows(out, x, coef, 1.0)

    def positions(self) -> int:
        """Return k, the number of positions that count."""
        return self.k

    def check(self) -> None:
        """Raise ValueError unless k is a whole number from 1 to 1024."""
        check_count("k", self.k, most=DISCOUNTS.size)

    def check_context(self, x: object, n_features: int) -> Floats:
        """Return `x` as a C-contiguous float array of m candidates, (m, n_features). Raise ValueError if it has another
        shape, no row, or a number that is not finite."""
        array = finite_array("x", x, 2, n_features)
        if array.shape[0] == 0:
            raise ValueError("x: expected at least one candidate, got an empty list (0 rows)")
        return array

    def check_object(self, name: str, x: Floats, y: object) -> Ints:
        """Return `y` as an int64 array of indices of the m candidates of `x` (m x N), best first.

        Raise ValueError, beginning with `name`, if an index is invalid or occurs twice, or if there are fewer than
        min(k, m) and k > 1.
        """
        m = x.shape[0]
        order = indices(name, y, m, "candidate indices, best first")
        if 1 < self.k and order.size < min(self.k, m):
            raise ValueError(
                f"{name}: expected at least the first {min(self.k, m)} of {m} candidates, got {order.size}"
            )
        return order


class WithBaseScore(NamedTuple):
    """A space that adds the caller's own score of each candidate to the learned score.

    `space` is the inner space. The caller's score is the last of the N features and has the weight 1 + w_N instead of
    w_N, so weights w = 0 show the caller's order and learning adjusts it. `adjusted` says if learning also changes the
    weight of the caller's score; otherwise it is always 1. phi and the objects are those of `space`; U(x, y) = (w +
    e_N) . phi(x, y), where e_N is the last unit vector, and w_N = 0 if not adjusted.
    """

    space: Any  # a Space; a RankingSpace where `positions` and `add_pairs` are called
    adjusted: bool = True

    @property
    def k(self) -> int:
        """The number of positions that count; the inner space is a ranking."""
        k: int = self.space.k
        return k

    def phi(self, x: Floats, y: Ints) -> Array:
        """Return the N features phi(x, y) (N,) of the object `y` in the context `x`, as the inner space has them; the
        last one comes from the caller's score.
        """
        phi: Array = self.space.phi(x, y)
        return phi

    def argmax(self, w: Array, x: Floats) -> Ints:
        """Return the object y of greatest (w + e_N) . phi(x, y), where e_N gives the caller's score, the last feature,
        a weight of 1 more than the N weights `w` (N,) do."""
        y: Ints = self.space.argmax(with_base_weight(w, self.adjusted), x)
        return y

    def add_difference(self, out: Array, x: Floats, ybar: Ints, y: Ints, scale: float) -> None:
        """Add scale (phi(x, ybar) - phi(x, y)) to `out` (N,), for N features, in place, the direction in which to
        update the weights; the last number stays as it is if the weight of the caller's score is not `adjusted`."""
        last = out[-1]
        self.space.add_difference(out, x, ybar, y, scale)
        if not self.adjusted:
            out[-1] = last

    def add_pair_gradient(self, out: Array, w: Array, x: Floats, ybar: Ints, y: Ints) -> None:
        """Add to `out` (N,), for N features, in place the gradient of the inner space's `add_pair_gradient`, for a
        correction of `y` to `ybar`, at w + e_N, where e_N adds 1 to the weight of the caller's score; the last number
        stays as it is if that weight is not `adjusted`."""
        last = out[-1]
        self.space.add_pair_gradient(out, with_base_weight(w, self.adjusted), x, ybar, y)
        if not self.adjusted:
            out[-1] = last

    def add_pairs(self, out: Array, w: Array, x: Floats, better: Ints, worse: Ints, weights: Array) -> None:
        """Add to `out` (N,), for N features, in place the gradient of the inner space's `add_pairs` at w + e_N, where
        e_N adds 1 to the weight of the caller's score.

        `better` and `worse` are the candidates of p pairs and `weights` what each counts, (p,). The last number of out
        stays as it is if the weight of the caller's score is not `adjusted`.
        """
        last = out[-1]
        self.space.add_pairs(out, with_base_weight(w, self.adjusted), x, better, worse, weights)
        if not self.adjusted:
            out[-1] = last

    def positions(self) -> int:
        """Return the number of positions that count; the inner space is a ranking."""
        positions: int = self.space.positions()
        return positions

    def check(self) -> None:
        """Raise ValueError if the inner space is not a valid space or has a base score already, or `adjusted` is not a
        bool."""
        if isinstance(self.space, WithBaseScore):
            raise ValueError(f"space: expected one without the caller's score, got {self.space!r}")
        check_space(self.space)
        check_flag("adjusted", self.adjusted)

    def check_context(self, x: object, n_features: int) -> Floats:
        """Return `x` as the inner space's `check_context` does, as a checked float array; the last of the `n_features`
        features is the caller's score. Raise ValueError if it is not valid.
        """
        checked: Floats = self.space.check_context(x, n_features)
        return checked

    def check_object(self, name: str, x: Floats, y: object) -> Ints:
        """Return `y` as the inner space's `check_object` does, as the int64 indices of an object of the context `x`.
        Raise ValueError, beginning with `name`, if it is not one.
        """
        checked: Ints = self.space.check_object(name, x, y)
        return checked


@kernel
def difference(space: Space, n_features: int, x: Floats, ybar: Ints, y: Ints) -> Array:
    """Return D = phi(x, ybar) - phi(x, y) (N,), the update direction of a correction of the object `y` to `ybar` in the
    context `x`, for any `space`; N is `n_features`."""
    D = np.zeros(n_features)
    space.add_difference(D, x, ybar, y, 1.0)
    return D


@kernel
def with_base_weight(w: Array, adjusted: bool) -> Array:
    """Return a copy of the N weights `w` (N,) with 1 added to the last weight, that of the caller's score; if not
    `adjusted`, the last weight becomes 1."""
    out = w.copy()
    out[-1] = 1.0 + w[-1] if adjusted else 1.0
    return out


def is_exact(space: object) -> bool:
    """Return True if the argmax of `space` is an object of greatest utility w . phi(x, y), as the theorems assume: it
    is no WithBaseScore (which maximises under other weights) and does not declare `approximate`."""
    return not (isinstance(space, WithBaseScore) or getattr(space, "approximate", False))


def check_ranking(space: Space, why: str) -> None:
    """Raise ValueError unless `space` is a valid Ranking, or a WithBaseScore with a valid Ranking inside; the message
    says `why` the caller needs one."""
    if not isinstance(space.space if isinstance(space, WithBaseScore) else space, Ranking):
        raise ValueError(f"space: expected a Ranking, {why}, got {space!r}")
    space.check()


def _add_implied_pairs_loop(coef: Array, s: Array, ybar: Ints, y: Ints, k: int) -> None:
    m = s.size
    place_of = np.full(m, m)  # the position in y; candidates that were not shown come last
    for i in range(y.size):
        place_of[y[i]] = i
    chosen = min(k, ybar.size)
    depth = min(k, y.size)
    picked = np.zeros(m, np.bool_)
    for i in range(chosen):
        picked[ybar[i]] = True
        if place_of[ybar[i]] < m:
            depth = max(depth, place_of[ybar[i]] + 1)
    for i in range(chosen):
        a = ybar[i]
        for j in range(depth):
            b = y[j]
            if not picked[b]:
                g = logistic(s[b] - s[a])
                coef[a] += g
                coef[b] -= g
        for j in range(i + 1, chosen):
            b = ybar[j]
            if place_of[a] > place_of[b]:
                g = logistic(s[b] - s[a])
                coef[a] += g
                coef[b] -= g


@primitive(_add_implied_pairs_loop)
def add_implied_pairs(coef: Array, s: Array, ybar: Ints, y: Ints, k: int) -> None:
    """Add to `coef` (m,) in place the gradient, in the scores of m candidates, of the logistic log-likelihood of a
    correction.

    `s` (m,) are the scores, `y` the order shown and `ybar` the better order. The first `k` of ybar count as chosen. The
    person is assumed to have looked at y down to the last chosen candidate, and at least at its first k. So each chosen
    candidate beats each looked-at one that was not chosen; and of two chosen ones, a beats b if a is before b in ybar
    but after it in y. Each pair adds sigma(s_b - s_a) to coef_a and takes it from coef_b; sigma is the logistic
    function.
    """
    total, value, seen, chosen = coef.tolist(), s.tolist(), y.tolist(), ybar[:k].tolist()  # lists are faster here
    place_of = {j: i for i, j in enumerate(seen)}
    depth = max([min(k, len(seen)), *(place_of[a] + 1 for a in chosen if a in place_of)])
    picked, last = set(chosen), len(seen)
    for i, a in enumerate(chosen):
        beaten = [b for b in seen[:depth] if b not in picked]
        beaten += [b for b in chosen[i + 1 :] if place_of.get(a, last) > place_of.get(b, last)]
        for b in beaten:
            g = logistic(value[b] - value[a])
            total[a] += g
            total[b] -= g
    coef[:] = total
