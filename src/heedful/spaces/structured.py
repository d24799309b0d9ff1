"""The space of diverse subsets of candidates, for every learner that does not need a ranking."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.validation import check_count, finite_array, indices
from heedful.jit.kernel import Floats, Ints, add_rows, kernel, scores

Array = npt.NDArray[np.float64]


@declare(approximate=True)
class Subset(NamedTuple):
    """Diverse subsets of `k` out of m candidates: the more of a feature a set has, the less another candidate with this
    feature adds.

    A context x (m x N) has N features for each candidate, none negative. An object y is min(k, m) candidate indices, in
    any order. phi(x, y)_j = sqrt(sum over i in y of x_ij): the saturated coverage of Lin & Bilmes (ACL 2011) as a
    feature map. Raman, Shivaswamy & Joachims (KDD 2012) learn such sets coactively.

    The argmax is greedy: k times it takes the candidate that adds most, ties to the lowest index. For weights w >= 0
    the set has at least 1 - (1 - 1/k)^k, more than 63 %, of the greatest utility w . phi(x, .) (Nemhauser, Wolsey &
    Fisher 1978). Where some w_j < 0 there is no such guarantee, and the learners here do not keep w >= 0.

    So the regret bound of [J15] Theorem 1 changes. Let D_t = phi(x_t, ybar_t) - phi(x_t, y_t) be the difference between
    the feedback ybar_t and the set y_t shown in round t. Since y_t need not be the argmax, w_t . D_t may be above 0.
    After T rounds |w_{T+1}|^2 <= 4 R^2 T + 2 sum_t max(0, w_t . D_t) for |phi| <= R, and Theorem 1 holds with the root
    of this bound in place of 2 R sqrt(T). So regret falls to the loss of the greedy argmax, not to 0.
    """

    k: int = 5

    def phi(self, x: Floats, y: Ints) -> Array:
        out = np.zeros(x.shape[1])
        coef = np.zeros(x.shape[0])
        for j in y:
            coef[j] = 1.0
        add_rows(out, x, coef, 1.0)
        return np.sqrt(out)

    def argmax(self, w: Array, x: Floats) -> Ints:
        return greedy(w, x, min(self.k, x.shape[0]))

    def add_difference(self, out: Array, x: Floats, ybar: Ints, y: Ints, scale: float) -> None:
        out += scale * (self.phi(x, ybar) - self.phi(x, y))

    def step_towards(self, y: Ints, best: Ints) -> Ints:
        """Return a copy of the set `y` in which the last member that is not in `best` is replaced by the first member
        of `best` that y lacks; equal to y if there is none."""
        out = y.copy()
        for b in best:
            if not np.any(y == b):
                for i in range(y.size - 1, -1, -1):
                    if not np.any(best == y[i]):
                        out[i] = b
                        break
                break
        return out

    def check(self) -> None:
        check_count("k", self.k)

    def check_context(self, x: object, n_features: int) -> Floats:
        array = finite_array("x", x, 2, n_features)
        if array.shape[0] == 0:
            raise ValueError("x: expected at least one candidate, got an empty list (0 rows)")
        if array.min(initial=0.0) < 0.0:
            raise ValueError(f"x: expected how much each candidate covers, 0 or more, got {array.min():g}")
        return array

    def check_object(self, name: str, x: Floats, y: object) -> Ints:
        chosen = indices(name, y, x.shape[0], "candidate indices, in any order")
        size = min(self.k, x.shape[0])
        if chosen.size != size:
            raise ValueError(f"{name}: expected {size} of {x.shape[0]} candidates, got {chosen.size}")
        return chosen


@kernel
def greedy(w: Array, x: Floats, size: int) -> Ints:
    """Return the indices of `size` of m candidates, chosen greedily: each time the one that increases w . sqrt(sum of
    the rows chosen so far) most, ties to the lowest index.

    `w` (N,): a weight for each feature; `x` (m x N): the N features, none negative, of each candidate.
    """
    out = np.empty(size, np.int64)
    chosen = np.zeros(x.shape[0], np.bool_)
    total = np.zeros(x.shape[1])
    for i in range(size):
        values = scores(np.sqrt(total + x), w)
        best = -1
        for j in range(values.size):
            if not chosen[j] and (best < 0 or values[j] > values[best]):
                best = j
        out[i] = best
        chosen[best] = True
        total += x[best]
    return out
