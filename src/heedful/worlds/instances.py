"""A stream of instances with their true ranks (grades), for ordinal learners ([P01] section 5).

[P01]: Crammer & Singer, *Pranking with Ranking*, NIPS 2001.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_between, check_count, check_flag, describe, finite_table, numbers
from heedful.jit.kernel import Floats, Ints, fetch_row, scores
from heedful.spaces.ordinal import Ranks
from heedful.worlds.queries import StreamState

Array = npt.NDArray[np.float64]

THRESHOLDS = (-1.0, -0.1, 0.25, 1.0)
"""the thresholds b_1 to b_4 between the five ranks of the synthetic stream of [P01]"""

_AHEAD = 8  # how many rounds before its use a row is fetched from memory


class InstanceStream(NamedTuple):
    """A simulated environment that presents T instances, one in each round, whose true ranks (grades) a learner has to
    predict.

    - `X` (T x N): the N features of each instance.
    - `ranks` (T,): the true rank of each instance, from 1 on.
    - `fixed`: whether every run has the instances in the order of X; otherwise each has a random order.

    After the last instance the first comes again. A context is an instance x (N,), a proposal the predicted rank,
    feedback the true rank. Regret is the rank loss |predicted - true|. Made by `instance_stream`.
    """

    X: Floats
    ranks: Ints
    fixed: bool = False

    def init(self, rng: np.random.Generator) -> StreamState:
        return StreamState(np.arange(self.ranks.size) if self.fixed else rng.permutation(self.ranks.size), 0)

    def over(self, state: StreamState, t: int) -> bool:
        return False

    def context(self, state: StreamState, t: int, rng: np.random.Generator) -> Floats:
        ahead = state.t + _AHEAD
        if ahead < state.order.size:  # fetching a random row from memory takes as long as learning from it
            fetch_row(self.X, state.order[ahead])
        return self.X[state.order[state.t]]  # type: ignore[no-any-return]

    def respond(self, state: StreamState, x: Floats, shown: int, rng: np.random.Generator) -> int:
        return int(self.ranks[state.order[state.t]])

    def regret(self, state: StreamState, x: Floats, shown: int) -> float:
        return float(abs(shown - self.ranks[state.order[state.t]]))

    def advance(self, state: StreamState, x: Floats, shown: int, feedback: int) -> StreamState:
        t = state.t + 1  # within this pass: the division of a modulo would take as long as the sum
        return StreamState(state.order, t if t < state.order.size else 0)


def instance_stream(X: npt.ArrayLike, ranks: npt.ArrayLike, *, n_ranks: int, fixed: bool = False) -> InstanceStream:
    """Return the world of T instances with features `X` (T x N, float32 or float64) and true `ranks` (T,), whole
    numbers from 1 to `n_ranks`.

    Each run has them in an order of its own, drawn from its seed; with `fixed`, all runs have them in the order given,
    so that memory is read in sequence. Raise ValueError, naming the argument, if the data do not fit together.
    """
    Ranks(n_ranks).check()
    features = finite_table("X", X)
    if features.shape[0] < 1 or features.shape[1] < 1:
        raise ValueError(f"X: expected at least one instance with at least one feature, got shape {features.shape}")
    expected = f"a whole number from 1 to {n_ranks} for each of the {features.shape[0]} instances"
    grades = numbers("ranks", ranks, expected)
    if grades.shape != features.shape[:1] or grades.dtype.kind == "b":
        raise ValueError(f"ranks: expected {expected}, got {describe(grades)}")
    wrong = np.flatnonzero(~((grades >= 1) & (grades <= n_ranks) & (grades % 1 == 0)))
    if wrong.size:
        raise ValueError(f"ranks: expected {expected}, got {grades[wrong[0]]} at [{wrong[0]}]")
    check_flag("fixed", fixed)
    # a copy, so later changes of the caller's array do not reach a run
    return InstanceStream(features.copy(), grades.astype(np.int64), fixed)


def polynomial(X: npt.ArrayLike) -> Array:
    """Return the polynomial features of degree 2 of `X` (T x n), as an array (T x (n + 1)(n + 2) / 2).

    (1, sqrt 2 x_i, x_i^2, sqrt 2 x_i x_j for i < j): the inner product of two rows is the kernel (x . z + 1)^2, so a
    linear learner on them is that learner with the kernel, at a fixed cost a round.
    """
    x = finite_table("X", X).astype(np.float64)
    i, j = np.triu_indices(x.shape[1], 1)
    root = math.sqrt(2.0)
    return np.hstack([np.ones((x.shape[0], 1)), root * x, x**2, root * x[:, i] * x[:, j]])


def synthetic_instances(n: int, seed: int = 0) -> InstanceStream:
    """Return the synthetic stream of [P01]: `n` instances with 6 features and ranks from 1 to 5, drawn from `seed`.

    x is uniform on the unit square; the rank is the greatest r with 10 (x_1 - .5)(x_2 - .5) + N(0, .125^2) > b_r, where
    b = (-infinity, -1, -.1, .25, 1); the features are the `polynomial` ones of x, of degree 2.
    """
    check_count("n", n)
    check_count("seed", seed, least=0, most=2**128)
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2))
    value = 10.0 * (x[:, 0] - 0.5) * (x[:, 1] - 0.5) + 0.125 * rng.standard_normal(n)
    ranks = 1 + np.searchsorted(THRESHOLDS, value, side="left")  # how many lie strictly below
    return instance_stream(polynomial(x), ranks, n_ranks=5)


def synthetic_ordinal(
    n: int, n_features: int = 50, n_ranks: int = 5, *, noise: float = 0.3, seed: int = 0, dtype: str = "float64"
) -> tuple[InstanceStream, Array, Array]:
    """Return (a linear stream of `n` instances, its direction w* (N,), |w*| = 1, its thresholds b* (n_ranks - 1,)),
    drawn from `seed`; N is `n_features`.

    x is N(0, I), and its rank is 1 + the number of thresholds that w* . x + `noise` N(0, 1) reaches. The thresholds
    make all ranks equally likely. `dtype` is that of the features, "float64" or "float32". Raise ValueError, naming the
    argument, if one is not valid.
    """
    check_count("n", n)
    check_count("n_features", n_features)
    Ranks(n_ranks).check()
    check_between("noise", noise, 0.0, 1e50)
    check_count("seed", seed, least=0, most=2**128)
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype: expected float64 or float32, got {dtype!r}")
    from scipy.special import ndtri

    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features)).astype(dtype, copy=False)
    w_star = rng.standard_normal(n_features)
    w_star /= np.linalg.norm(w_star)
    value = scores(X, w_star) + noise * rng.standard_normal(n)
    b_star: Array = math.sqrt(1.0 + noise**2) * ndtri(np.arange(1, n_ranks) / n_ranks)
    return instance_stream(X, 1 + np.searchsorted(b_star, value, side="right"), n_ranks=n_ranks), w_star, b_star
