"""Spaces of structured objects: paths through a graph, and diverse subsets of candidates.

They work with every learner that does not need a ranking. The argmax over paths is exact; the one over subsets is
greedy, and the docstring of `Subset` gives the loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.validation import check_count, describe, finite_array, indices
from heedful.jit.kernel import Floats, Ints, add_rows, kernel, scores

Array = npt.NDArray[np.float64]


@declare(has_fixed_rows=True)
class Path(NamedTuple):
    """Paths through a directed acyclic graph of E edges, from its first node to its last.

    - `tails`, `heads` (E,): edge e leads from node tails[e] to node heads[e] > tails[e]; edges are sorted by tails.

    A context x (E x N) has N features for each edge. An object y is a path, as the indices of its edges, first to last,
    from the node tails[0] to the greatest head. phi(x, y) is the sum of the rows of x over the edges of y. The argmax
    is exact, in one pass over the edges; of several equally good edges into a node, the first wins. There may be
    several edges between two nodes.
    """

    tails: Ints  # E
    heads: Ints  # E

    def phi(self, x: Floats, y: Ints) -> Array:
        out = np.zeros(x.shape[1])
        coef = np.zeros(x.shape[0])
        for e in y:
            coef[e] += 1.0
        add_rows(out, x, coef, 1.0)
        return out

    def argmax(self, w: Array, x: Floats) -> Ints:
        return best_path(scores(x, w), self.tails, self.heads)

    def add_difference(self, out: Array, x: Floats, ybar: Ints, y: Ints, scale: float) -> None:
        coef = np.zeros(x.shape[0])
        for e in ybar:
            coef[e] += 1.0
        for e in y:
            coef[e] -= 1.0
        add_rows(out, x, coef, scale)

    def step_towards(self, y: Ints, best: Ints) -> Ints:
        """Return a copy of the path `y` that is one detour closer to the path `best` (both edge indices).

        Both paths are cut at the nodes that they share; the first piece in which their edges differ is replaced by that
        of `best`.
        """
        i, j = 0, 0
        while i < y.size:
            p, q = i + 1, j + 1
            while (p < y.size or q < best.size) and not (
                p < y.size and q < best.size and self.tails[y[p]] == self.tails[best[q]]
            ):  # numbers rise along a path
                if q == best.size or (p < y.size and self.tails[y[p]] < self.tails[best[q]]):
                    p += 1
                else:
                    q += 1
            if p - i != q - j or np.any(y[i:p] != best[j:q]):
                return np.concatenate((y[:i], best[j:q], y[p:]))
            i, j = p, q
        return y.copy()

    def check(self) -> None:
        """Raise ValueError, naming the field, unless tails and heads are int64 arrays (E,) of E >= 1 edges, sorted by
        tails, with each head above its tail, and some path leads from the first node to the last."""
        for name, nodes in (("tails", self.tails), ("heads", self.heads)):
            well_formed = isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype == np.int64
            if not well_formed or nodes.size == 0 or nodes.min() < 0:
                raise ValueError(f"{name}: expected the node of each edge, an int64 array (E,), got {describe(nodes)}")
        if self.tails.shape != self.heads.shape:
            raise ValueError(f"heads: expected {self.tails.size}, one an edge, got {self.heads.size}")
        if np.any(np.diff(self.tails) < 0):
            raise ValueError(
                "tails: expected the edges listed by their tails, so that they never fall, got one that does"
            )
        if np.any(self.heads <= self.tails):
            e = int(np.argmax(self.heads <= self.tails))
            raise ValueError(f"heads: expected every edge to lead upwards, got {self.tails[e]} to {self.heads[e]}")
        reached = {int(self.tails[0])}
        for tail, head in zip(self.tails.tolist(), self.heads.tolist()):
            if tail in reached:
                reached.add(head)
        if int(self.heads.max()) not in reached:
            raise ValueError(f"heads: expected a path from {self.tails[0]} to {self.heads.max()}, got none")

    def check_context(self, x: object, n_features: int) -> Floats:
        array = finite_array("x", x, 2, n_features)
        if array.shape[0] != self.tails.size:
            raise ValueError(f"x: expected {self.tails.size} rows, one an edge, got {array.shape[0]}")
        return array

    def check_object(self, name: str, x: Floats, y: object) -> Ints:
        edges = indices(name, y, self.tails.size, "the edges of a path, first to last")
        node = int(self.tails[0])
        for e in edges.tolist():
            if self.tails[e] != node:
                raise ValueError(
                    f"{name}: expected an edge that leaves node {node}, got {e}, which leaves {self.tails[e]}"
                )
            node = int(self.heads[e])
        if node != self.heads.max():
            raise ValueError(
                f"{name}: expected a path that leads to node {self.heads.max()}, got one that ends at {node}"
            )
        return edges


@kernel
def best_path(s: Array, tails: Ints, heads: Ints) -> Ints:
    """Return the edges, in order, of the path of greatest total score from the first node to the last, for E edges with
    scores `s`, from nodes `tails` to nodes `heads`, (E,) each.

    One pass: edges are sorted by tails and heads[e] > tails[e], so all edges into a node come before those out of it.
    Raise ValueError if a score is not finite or no path reaches the last node.
    """
    last = heads.max()
    best = np.full(last + 1, -np.inf)
    by = np.full(last + 1, -1)  # the last edge of the best path to each node
    best[tails[0]] = 0.0
    for e in range(s.size):
        reached = best[tails[e]] + s[e]
        if reached > best[heads[e]]:
            best[heads[e]], by[heads[e]] = reached, e
    if by[last] < 0:
        raise ValueError("path: expected finite scores and a path to the last node")
    length, node = 0, last
    while node != tails[0]:
        length += 1
        node = tails[by[node]]
    out = np.empty(length, np.int64)
    node = last
    for i in range(length - 1, -1, -1):
        out[i] = by[node]
        node = tails[by[node]]
    return out


def grid(rows: int, columns: int) -> Path:
    """Return the space of paths from corner to corner of a grid of `rows` x `columns` nodes, by steps to the right and
    down.

    Node r * columns + c is in row r, column c; its edge to the right comes before its edge down. Raise ValueError if a
    size is not positive, or for one node only.
    """
    check_count("rows", rows)
    check_count("columns", columns)
    if rows * columns < 2:
        raise ValueError("grid: expected at least two nodes, got one")
    edges = []
    for node in range(rows * columns):
        if (node + 1) % columns:
            edges.append((node, node + 1))
        if node + columns < rows * columns:
            edges.append((node, node + columns))
    tails, heads = np.array(edges, np.int64).T
    return Path(np.ascontiguousarray(tails), np.ascontiguousarray(heads))


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
