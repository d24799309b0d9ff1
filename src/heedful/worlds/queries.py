"""A stream of queries with their documents, in random order: simulated web search ([J15] section 6.1.1).

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_between, check_count, describe, finite_array, finite_table, numbers
from heedful.jit.kernel import DISCOUNTS, Floats, Ints, scores, top
from heedful.spaces.ranking import Ranking
from heedful.worlds.users import RankingUser, check_user, utility

Array = npt.NDArray[np.float64]


class StreamState(NamedTuple):
    """The state of a simulated stream of Q contexts.

    - `order` (Q,): the indices of the contexts, in the order in which they come.
    - `t`: the round, from 0; `InstanceStream` counts from 0 again after each pass.
    """

    order: Ints
    t: int


class QueryStream(NamedTuple):
    """A simulated environment of web search: Q queries come in random order; the learner ranks the documents of a
    query, and a person answers with a better ranking.

    - `X` (rows x N): the N features of the documents of all queries, one query after the other.
    - `labels` (rows,): the relevance label of each document.
    - `utilities` (rows,): the true utility w* . x of each document, for the person's weights w*.
    - `best` (Q,): the utility U(y*) of the best ranking of each query.
    - `offsets` (Q + 1,): query q has the rows offsets[q]:offsets[q + 1].
    - `k`: the utility of a ranking is that of its first k positions.
    - `user`: the simulated person.

    Regret is `best` minus the utility of the ranking shown. After the last query the first comes again. Made by
    `query_stream`.
    """

    X: Floats
    labels: Array
    utilities: Array
    best: Array
    offsets: Ints
    k: int
    user: RankingUser

    def init(self, rng: np.random.Generator) -> StreamState:
        return StreamState(rng.permutation(self.offsets.size - 1), 0)

    def over(self, state: StreamState, t: int) -> bool:
        return False

    def context(self, state: StreamState, t: int, rng: np.random.Generator) -> Floats:
        q = state.order[t % state.order.size]
        return self.X[self.offsets[q] : self.offsets[q + 1]]

    def respond(self, state: StreamState, x: Floats, shown: Ints, rng: np.random.Generator) -> Ints:
        q = state.order[state.t % state.order.size]
        lo, hi = self.offsets[q], self.offsets[q + 1]
        feedback: Ints = self.user.rank(self.k, self.utilities[lo:hi], self.labels[lo:hi], self.best[q], shown, rng)
        return feedback

    def regret(self, state: StreamState, x: Floats, shown: Ints) -> float:
        q = state.order[state.t % state.order.size]
        u = utility(self.utilities[self.offsets[q] : self.offsets[q + 1]], shown, self.k)
        return self.best[q] - u  # type: ignore[no-any-return]

    def advance(self, state: StreamState, x: Floats, shown: Ints, feedback: Ints) -> StreamState:
        return StreamState(state.order, state.t + 1)


def query_stream(
    X: Floats, labels: npt.ArrayLike, offsets: Ints, w_star: Array, user: RankingUser, *, k: int = 5, shuffle: int = 0
) -> QueryStream:
    """Return a simulated environment of Q queries whose documents are ranked for the person `user` with utility weights
    `w_star` (N,) of N features.

    `X` (rows x N) has the features and `labels` (rows,) the relevance labels of all documents; query q has the rows
    offsets[q]:offsets[q + 1], for `offsets` (Q + 1,); `k` positions of a ranking count. The documents of each query are
    shuffled, by the seed `shuffle`: data files are often sorted by label, and in the first round, with w = 0, all
    documents tie, so a learner would show them in the order of the file. Raise ValueError, naming the argument, if the
    data do not fit together.
    """
    Ranking(k).check()
    if k < 2:
        raise ValueError(f"k: expected a ranking of at least 2 positions, got {k}; items are for `item_pool`")
    check_user(user, "rank", "ranks documents")
    X = finite_table("X", X)
    weights = finite_array("w_star", w_star, 1, X.shape[1])
    grades = finite_array("labels", labels, 1, X.shape[0]).astype(np.float64)
    edges = numbers("offsets", offsets, "whole numbers")
    if edges.ndim != 1 or edges.dtype.kind not in "iu" or edges.size < 2:
        raise ValueError(f"offsets: expected where each query begins, and the end, got {describe(offsets)}")
    offsets = edges.astype(np.int64)
    if offsets[0] != 0 or offsets[-1] != X.shape[0] or np.any(np.diff(offsets) < 1):
        raise ValueError(
            f"offsets: expected them to rise from 0 to {X.shape[0]}, the rows of X, got {describe(offsets.tolist())}"
        )
    check_count("shuffle", shuffle, least=0, most=2**128)
    rng = np.random.default_rng(shuffle)
    order = np.concatenate([lo + rng.permutation(hi - lo) for lo, hi in pairwise(offsets)])
    X, grades = X[order], grades[order]
    utilities = scores(X, weights)
    best = np.array(
        [utility(u, top(u, u.size), k) for u in np.split(utilities, offsets[1:-1])],
    )
    return QueryStream(X, grades, utilities, best, offsets, int(k), user)


def feature_bounds(X: Floats, offsets: Ints, space: Ranking) -> tuple[float, float]:
    """Return upper bounds (R, S) over all rankings y of all queries x: R of the Euclidean norm of phi(x, y), the
    feature vector of a ranking in `space`, S of its largest absolute entry.

    `X` (rows x N) has the N features of the documents of all queries; query q has the rows offsets[q]:offsets[q + 1].
    The bounds follow from the triangle inequality, with the largest rows (for S the largest entries) at the greatest
    discounts.
    """
    R = S = 0.0
    norms = np.linalg.norm(X.astype(np.float64), axis=1)
    for lo, hi in pairwise(offsets):
        discounts = DISCOUNTS[: min(space.k, hi - lo)]
        R = max(R, float(np.sort(norms[lo:hi])[::-1][: discounts.size] @ discounts))
        S = max(S, float((discounts @ -np.sort(-np.abs(X[lo:hi]), axis=0)[: discounts.size]).max()))
    return R, S


def synthetic_queries(
    n_queries: int,
    n_docs: int,
    n_features: int,
    *,
    noise: float,
    user: RankingUser,
    seed: int = 0,
    k: int = 5,
    dtype: str = "float64",
) -> tuple[QueryStream, Array]:
    """Return (a simulated stream of random queries with a linear utility, its weights w* (N,), |w*| = 1), drawn from
    `seed`.

    There are `n_queries` queries of `n_docs` documents with N = `n_features` standard normal features. A document of
    utility u has the label round(2 + 1.2 (u + noise N(0, 1))), clipped to 0..4. `user` is the simulated person who
    answers rankings, `k` the number of positions that count, `dtype` the type of the features, "float64" or "float32".
    Raise ValueError, naming the argument, if one is not valid.
    """
    for name, value in (("n_queries", n_queries), ("n_docs", n_docs), ("n_features", n_features)):
        check_count(name, value)
    check_between("noise", noise, 0.0, 1e50)
    check_count("seed", seed, least=0, most=2**128)
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype: expected float64 or float32, got {dtype!r}")
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_queries * n_docs, n_features), dtype=np.dtype(dtype).type)
    w_star = rng.standard_normal(n_features)
    w_star /= np.linalg.norm(w_star)
    u = scores(X, w_star)
    labels = np.clip(np.round(2.0 + 1.2 * (u + noise * rng.standard_normal(u.size))), 0.0, 4.0)
    offsets = np.arange(0, u.size + 1, n_docs)
    return query_stream(X, labels, offsets, w_star, user, k=k, shuffle=seed), w_star
