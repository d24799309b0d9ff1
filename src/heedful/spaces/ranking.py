"""The spaces of rankings and assignments for coactive learners, each with phi(x, y) and its argmax.

A space is a NamedTuple with the methods of `heedful.core.space.Space`. Any update rule works with any space
([J15] Algorithm 3). `WithBaseScore` wraps a space for callers who have a score for each candidate already: with w = 0
it shows their order.

An object here is a choice among parts, the rows of x: U(x, y) = sum_p c_p(y) w . x_p for coefficients c(y) that
depend on the object. So a space needs the scores of the parts to find its argmax, and the net coefficients of the
parts to update the weights; it reads a row once for each.
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

    `k` (1 to 1024) is how many positions count. With k = 1 an object is one item, and a proposal shows that item alone;
    otherwise a proposal is an order of all candidates. An order given as feedback has at least min(k, m) candidate
    indices without repetition, best first.
    """

    k: int = 5

    def phi(self, x: Floats, y: Ints) -> Array:
        """Return phi(x, y), (N,)."""
        out = np.zeros(x.shape[1])
        coef = np.zeros(x.shape[0])
        add_discounts(coef, y, self.k, 1.0)
        add_rows(out, x, coef, 1.0)
        return out

    def argmax(self, w: Array, x: Floats) -> Ints:
        """Return the candidates by descending w . x_j, ties to the lowest index; only the first where k = 1."""
        m = x.shape[0]
        return top(scores(x, w), m if self.k > 1 else min(m, 1))

    def add_difference(self, out: Array, x: Floats, ybar: Ints, y: Ints, scale: float) -> None:
        """Add in place: out += scale (phi(x, ybar) - phi(x, y)); reads each row whose net coefficient is not 0 once."""
        coef = np.zeros(x.shape[0])
        add_discounts(coef, ybar, self.k, 1.0)
        add_discounts(coef, y, self.k, -1.0)
        add_rows(out, x, coef, scale)

    def add_pair_gradient(self, out: Array, w: Array, x: Floats, ybar: Ints, y: Ints) -> None:
        """Add in place: out += the gradient in w of sum log sigma(w . (x_a - x_b)) over the pairs `a before b` that
        ybar implies."""
        coef = np.zeros(x.shape[0])
        add_implied_pairs(coef, scores(x, w), ybar, y, self.k)
        add_rows(out, x, coef, 1.0)

    def add_pairs(self, out: Array, w: Array, x: Floats, better: Ints, worse: Ints, weights: Array) -> None:
        """Add in place: out += the gradient in w of sum_p weights_p log sigma(w . (x_{better_p} - x_{worse_p})), for
        pairs (p,)."""
        coef = np.zeros(x.shape[0])
        s = scores(x, w)
        for p in range(better.size):
            g = weights[p] * logistic(s[worse[p]] - s[better[p]])
            coef[better[p]] += g
            coef[worse[p]] -= g
        add_rows(out, x, coef, 1.0)

    def positions(self) -> int:
        """Return k: how many positions count."""
        return self.k

    def check(self) -> None:
        """Raise ValueError unless k is a whole number from 1 to 1024."""
        check_count("k", self.k, most=DISCOUNTS.size)

    def check_context(self, x: object, n_features: int) -> Floats:
        """Return x as a C-contiguous float array (m x N). Raise ValueError if it is not one, is empty, or is not
        finite."""
        array = finite_array("x", x, 2, n_features)
        if array.shape[0] == 0:
            raise ValueError("x: expected at least one candidate, got an empty list (0 rows)")
        return array

    def check_object(self, name: str, x: Floats, y: object) -> Ints:
        """Return y as an order of candidates of x. Raise ValueError if it is not one."""
        m = x.shape[0]
        order = indices(name, y, m, "candidate indices, best first")
        if 1 < self.k and order.size < min(self.k, m):
            raise ValueError(
                f"{name}: expected at least the first {min(self.k, m)} of {m} candidates, got {order.size}"
            )
        return order


class Assignment(NamedTuple):
    """Assignments of people to slots: x (m x slots x N) describes each of m people in each slot, m >= slots.

    An object y (slots,) has a different person for every slot; phi(x, y) = sum_s x[y_s, s]. The argmax is exact: the
    assignment problem, solved by shortest augmenting paths.
    """

    slots: int

    def phi(self, x: Floats, y: Ints) -> Array:
        """Return phi(x, y), (N,)."""
        out = np.zeros(x.shape[2])
        self.add_objects(out, x, y, y, 1.0, 0.0)
        return out

    def argmax(self, w: Array, x: Floats) -> Ints:
        """Return the assignment of greatest w . phi(x, y)."""
        m, slots, n = x.shape
        return best_assignment(scores(x.reshape(m * slots, n), w).reshape(m, slots))

    def add_difference(self, out: Array, x: Floats, ybar: Ints, y: Ints, scale: float) -> None:
        """Add in place: out += scale (phi(x, ybar) - phi(x, y))."""
        self.add_objects(out, x, ybar, y, scale, -scale)

    def step_towards(self, y: Ints, best: Ints) -> Ints:
        """Return y with the first slot that differs filled as in `best`; where that person had another slot, the two
        people change places."""
        out = y.copy()
        for s in range(y.size):
            if y[s] != best[s]:
                for i in range(y.size):
                    if y[i] == best[s]:
                        out[i] = y[s]
                out[s] = best[s]
                break
        return out

    def add_pair_gradient(self, out: Array, w: Array, x: Floats, ybar: Ints, y: Ints) -> None:
        """Add in place: out += the gradient in w of log sigma(w . (phi(x, ybar) - phi(x, y))): two objects, one
        pair."""
        m, slots, n = x.shape
        s = scores(x.reshape(m * slots, n), w)
        gap = 0.0
        for slot in range(slots):
            gap += s[ybar[slot] * slots + slot] - s[y[slot] * slots + slot]
        self.add_difference(out, x, ybar, y, logistic(-gap))

    def add_objects(self, out: Array, x: Floats, a: Ints, b: Ints, of_a: float, of_b: float) -> None:
        """Add in place: out += of_a phi(x, a) + of_b phi(x, b)."""
        m, slots, n = x.shape
        coef = np.zeros(m * slots)
        for slot in range(slots):
            coef[a[slot] * slots + slot] += of_a
            coef[b[slot] * slots + slot] += of_b
        add_rows(out, x.reshape(m * slots, n), coef, 1.0)

    def check(self) -> None:
        """Raise ValueError if the number of slots is not positive."""
        check_count("slots", self.slots)

    def check_context(self, x: object, n_features: int) -> Floats:
        """Return x as a C-contiguous float array (m x slots x N). Raise ValueError if it is not one, or has too few
        people."""
        array = finite_array("x", x, 3, n_features)
        if array.shape[1] != self.slots or array.shape[0] < self.slots:
            raise ValueError(
                f"x: expected shape (m, {self.slots}, {n_features}) with m >= {self.slots}, got {array.shape}"
            )
        return array

    def check_object(self, name: str, x: Floats, y: object) -> Ints:
        """Return y as one person for every slot. Raise ValueError if it is not."""
        people = indices(name, y, x.shape[0], "a person for every slot")
        if people.size != self.slots:
            raise ValueError(f"{name}: expected {self.slots} people, one a slot, got {people.size}")
        return people


class WithBaseScore(NamedTuple):
    """A space around `space` that adds the caller's own score of each candidate to the learned one.

    The caller's score is the last feature and has the weight 1 + w_N instead of w_N, so w = 0 shows the caller's order
    and learning adjusts it. `adjusted` says whether learning also changes the weight of the caller's score; otherwise
    it is always 1. phi and the objects are those of `space`; U(x, y) = (w + e_N) . phi(x, y), with w_N = 0 if it is not
    adjusted.
    """

    space: Any  # a Space; a RankingSpace where `positions` and `add_pairs` are called
    adjusted: bool = True

    @property
    def k(self) -> int:
        """How many positions count, of an inner space that ranks."""
        k: int = self.space.k
        return k

    def phi(self, x: Floats, y: Ints) -> Array:
        """Return phi(x, y) of the inner space, (N,)."""
        phi: Array = self.space.phi(x, y)
        return phi

    def argmax(self, w: Array, x: Floats) -> Ints:
        """Return the object of greatest (w + e_N) . phi(x, y)."""
        y: Ints = self.space.argmax(with_base_weight(w, self.adjusted), x)
        return y

    def add_difference(self, out: Array, x: Floats, ybar: Ints, y: Ints, scale: float) -> None:
        """Add in place: out += scale (phi(x, ybar) - phi(x, y)), the direction in which to update w."""
        last = out[-1]
        self.space.add_difference(out, x, ybar, y, scale)
        if not self.adjusted:
            out[-1] = last

    def add_pair_gradient(self, out: Array, w: Array, x: Floats, ybar: Ints, y: Ints) -> None:
        """Add in place: out += the gradient of the inner space at w + e_N, which is the gradient in w."""
        last = out[-1]
        self.space.add_pair_gradient(out, with_base_weight(w, self.adjusted), x, ybar, y)
        if not self.adjusted:
            out[-1] = last

    def add_pairs(self, out: Array, w: Array, x: Floats, better: Ints, worse: Ints, weights: Array) -> None:
        """Add in place: out += the gradient of the inner space at w + e_N, for these pairs (p,)."""
        last = out[-1]
        self.space.add_pairs(out, with_base_weight(w, self.adjusted), x, better, worse, weights)
        if not self.adjusted:
            out[-1] = last

    def positions(self) -> int:
        """Return how many positions count, of an inner space that ranks."""
        positions: int = self.space.positions()
        return positions

    def check(self) -> None:
        """Raise ValueError if the inner space is no space, is not valid, or has a base score already."""
        if isinstance(self.space, WithBaseScore):
            raise ValueError(f"space: expected one without the caller's score, got {self.space!r}")
        check_space(self.space)
        check_flag("adjusted", self.adjusted)

    def check_context(self, x: object, n_features: int) -> Floats:
        """Return x as the inner space checks it; the caller's score is the last of the n_features."""
        checked: Floats = self.space.check_context(x, n_features)
        return checked

    def check_object(self, name: str, x: Floats, y: object) -> Ints:
        """Return y as an object of the inner space."""
        checked: Ints = self.space.check_object(name, x, y)
        return checked


@kernel
def difference(space: Space, n_features: int, x: Floats, ybar: Ints, y: Ints) -> Array:
    """Return D = phi(x, ybar) - phi(x, y), (N,): the update direction of a correction of y to ybar, in any space."""
    D = np.zeros(n_features)
    space.add_difference(D, x, ybar, y, 1.0)
    return D


@kernel
def with_base_weight(w: Array, adjusted: bool) -> Array:
    """Return a copy of w (N,) with 1 added to the last weight, that of the base score; where not `adjusted`, set to
    1."""
    out = w.copy()
    out[-1] = 1.0 + w[-1] if adjusted else 1.0
    return out


def is_exact(space: object) -> bool:
    """Return whether a space shows the exact argmax of w . phi(x, .), as theorems assume: not one with a base score,
    and not one that is `approximate`."""
    return not (isinstance(space, WithBaseScore) or getattr(space, "approximate", False))


def check_ranking(space: Space, why: str) -> None:
    """Raise ValueError unless space is a valid Ranking, or a WithBaseScore around one; `why` completes the message."""
    if not isinstance(space.space if isinstance(space, WithBaseScore) else space, Ranking):
        raise ValueError(f"space: expected a Ranking, {why}, got {space!r}")
    space.check()


@kernel
def best_assignment(benefit: Array) -> Ints:
    """Return the assignment of greatest total benefit, for benefit (people x slots): the person of each slot (slots,).

    The Hungarian method with potentials: slot after slot, the shortest augmenting path by reduced costs; O(m s^2).
    Raise ValueError if a benefit is not finite or there are fewer people than slots.
    """
    m, slots = benefit.shape
    u, v = np.zeros(slots + 1), np.zeros(m + 1)  # potentials; slot 0 and person 0 are dummies
    holder = np.zeros(m + 1, np.int64)  # the slot each person holds, 0 for none
    way = np.zeros(m + 1, np.int64)
    for slot in range(1, slots + 1):
        holder[0] = slot
        j = 0
        least = np.full(m + 1, np.inf)
        used = np.zeros(m + 1, np.bool_)
        while True:
            used[j] = True
            i, delta, nearest = holder[j], np.inf, 0
            for p in range(1, m + 1):
                if not used[p]:
                    reduced = -benefit[p - 1, i - 1] - u[i] - v[p]
                    if reduced < least[p]:
                        least[p], way[p] = reduced, j
                    if least[p] < delta:
                        delta, nearest = least[p], p
            if nearest == 0:  # no person can be reached
                raise ValueError("assignment: expected finite benefits and at least as many people as slots")
            for p in range(m + 1):
                if used[p]:
                    u[holder[p]] += delta
                    v[p] -= delta
                else:
                    least[p] -= delta
            j = nearest
            if holder[j] == 0:
                break
        while j != 0:
            holder[j] = holder[way[j]]
            j = way[j]
    out = np.empty(slots, np.int64)
    for p in range(1, m + 1):
        if holder[p] > 0:
            out[holder[p] - 1] = p - 1
    return out


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
    """Add to coef (m,) the logistic weights of the pairs that correcting y to ybar implies, for scores s (m,).

    The chosen are the first k of ybar. The person has looked at y down to the last of them, and at least at its first
    k. So each chosen candidate beats each that was passed over on the way; and among the chosen, a beats b where a is
    before b in ybar but after it in y.
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
