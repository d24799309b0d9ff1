"""Mean-field inference of a matrix factorisation: a Gaussian posterior for the bias and the factors of each user and
item.

The model of a rating of item j by user i:

    rating = origin + b_i + b_j + u_i . v_j + g_ij + noise

`origin` is a constant, b_i and b_j are biases, u_i and v_j are factors, and g_ij is a pair term, which is the same in
all ratings of this pair of user and item. The row of user i is [b_i, u_i], the row of item j is [b_j, v_j]. The
posterior of a row is computed from the posteriors of the rows of the other side (items for a user, users for an item),
and from the number and the sum of the ratings of each pair. The prior mean of the bias of an item is a linear function
of its covariates, 1 and the item's features, whose coefficients are learned ([AC09] has this for biases and factors).
The file is long because three steps are written twice: as loops to be compiled, and with numpy, bit for bit the same.

[AC09]: Agarwal & Chen, *Regression-based Latent Factor Models*, KDD 2009.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Ints, fetch_row, kernel, no_refcount, noinline, primitive
from heedful.learners.ratings.interaction_matrix import InteractionMatrix
from heedful.learners.ratings.ridge import cholesky, gram, invert_triangle, normals_of, solve_cholesky

Array = npt.NDArray[np.float64]

PULL = 0.3
"""The prior mean of an item's factors is this times standard normal numbers. With a prior mean of 0, all factors would
stay 0."""


class GaussianRows(NamedTuple):
    """The Gaussian posteriors of n users, or of n items, each with a row of K numbers [bias, factors]."""

    mean: Array
    """the posterior means, n x K"""
    cov: Array
    """the posterior covariances, n x K x K"""
    adds: Array
    """The statistics of each row that the variances of the model are learned from, n x (K + 4); 0 for a row without
    ratings. In order: the K second moments of the numbers; for an item its mean bias, for a user the number of pairs; 1
    if the row has ratings; for an item the number of its pairs, for a user the expected squared errors of the mean
    ratings of their pairs, summed; and, for a user only, the sum of 1 / count (the number of ratings of a pair)."""
    sums: Array
    """the sums over the rows of the statistics in `adds` (K + 4,)"""
    covariates: Array
    """what the prior mean of each row's bias depends on, n x P: 1 and the features of an item; P = 0 for users"""
    gram: Array
    """the sum of x x' over the rows with ratings, with x their covariates, P x P"""
    moments: Array
    """the sum of x times the mean bias over the rows with ratings (P,)"""
    coefficients: Array
    """the prior mean of a row's bias is x . coefficients (P,)"""
    gram_by_pair: Array
    """the same as `gram`, with each row counted as often as it has pairs, P x P"""
    moments_by_pair: Array
    """the same as `moments`, with each row counted as often as it has pairs (P,)"""


class Room(NamedTuple):
    """Arrays to work in: kernels that allocate none need not count references, which would take half of their time."""

    A: Array
    """K x K, for the precision matrix of a row"""
    L: Array
    """K x K"""
    inverse: Array
    """K x K"""
    h: Array
    """(K,)"""
    precision: Array
    """(K,)"""
    pull: Array
    """(K,)"""
    first: Array
    """(K - 1,)"""
    items: Ints
    """(n,), for the items of a user's pairs"""
    mean: Array
    """(n,)"""
    var: Array
    """(n,)"""
    gram: Array
    """P x P, for the ridge regression of biases on covariates"""


@kernel
def room_for(K: int, P: int, n: int) -> Room:
    """Return arrays to work in for rows of `K` numbers, `P` covariates and `n` pairs."""
    return Room(
        np.empty((K, K)), np.empty((K, K)), np.empty((K, K)), np.empty(K), np.empty(K), np.empty(K), np.empty(K - 1),
        np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty((P, P)),
    )  # fmt: skip


# ---------------------------------------------------------------------------- a row from its pairs


def _row_sums_loop(
    places: Ints,
    pairs: InteractionMatrix,
    other: Ints,
    Z: Array,
    C: Array,
    noise: float,
    pair: float,
    origin: float,
    A: Array,
    h: Array,
) -> None:
    K = h.size
    A[:] = 0.0
    h[:] = 0.0
    for p in places:  # in memory they lie anywhere: asked for one after the other, each would be waited for
        fetch_row(Z, other[p])
        fetch_row(C, other[p])
        fetch_row(pairs.count, p)
        fetch_row(pairs.total, p)
    for p in places:
        c = pairs.count[p]
        if c > 0.0:
            weight = 1.0 / (pair + noise / c)
            z, S = Z[other[p]], C[other[p]]
            e = pairs.total[p] / c - origin - z[0]
            h[0] += weight * e
            A[0, 0] += weight
            for a in range(1, K):
                h[a] += weight * (e * z[a] - S[0, a])
                A[a, 0] += weight * z[a]
                for b in range(1, a + 1):
                    A[a, b] += weight * (z[a] * z[b] + S[a, b])


@noinline
@no_refcount
@primitive(_row_sums_loop)
def row_sums(
    places: Ints,
    pairs: InteractionMatrix,
    other: Ints,
    Z: Array,
    C: Array,
    noise: float,
    pair: float,
    origin: float,
    A: Array,
    h: Array,
) -> None:
    """Sum the sufficient statistics of the row [bias, factors] of one user (or item) over its rated pairs, in place.

    The model is rating = origin + own bias + other bias + own factors . other factors + pair term + noise, where "own"
    is the user (or item) itself and "other" the item (or user) of the pair. With x = (1, other factors) (K,), b the
    other bias, and y the mean rating of a pair less `origin`, the sums over pairs are A = sum w E[x x'] and h = sum w
    E[x (y - b)], with expectations over the other row. The weight is w = 1 / (`pair` + `noise` / number of ratings),
    where `pair` is the variance of the pair term and `noise` that of the noise of a single rating.

    `places` (n,) are the positions in `pairs` of the n pairs; `other` (P,) has the index of the other row for each of
    all P pairs; `Z` (m x K) and `C` (m x K x K) are the posterior means and covariances of the m other rows. A is
    written to `A` (K x K, lower triangle), h to `h` (K,).
    """
    places = places[pairs.count[places] > 0.0]
    if places.size == 0:
        A[:] = 0.0
        h[:] = 0.0
        return
    c, o = pairs.count[places], other[places]
    weight = 1.0 / (pair + noise / c)
    x, S = Z[o], C[o]
    e = pairs.total[places] / c - origin - x[:, 0]
    x[:, 0] = 1.0
    with_bias = S[:, 0].copy()
    with_bias[:, 0] = 0.0
    S[:, 0] = S[:, :, 0] = 0.0
    # `accumulate` adds one after the other, as the loop does
    h[:] = 0.0 + np.add.accumulate(weight[:, None] * (e[:, None] * x - with_bias))[-1]
    A[:] = 0.0 + np.add.accumulate(weight[:, None, None] * (x[:, :, None] * x[:, None] + S))[-1]


@kernel
def expected_bias(rows: GaussianRows, row: int, coefficients: Array) -> float:
    """Return the prior mean of the bias of row number `row`, by its covariates and the `coefficients` (P,)."""
    mean = 0.0
    for a in range(coefficients.size):
        mean += rows.covariates[row, a] * coefficients[a]
    return float(mean)


def expected_biases(rows: GaussianRows, items: Ints, coefficients: Array) -> Array:
    """Return `expected_bias` of each of the n rows with the numbers `items` (n,), bit for bit."""
    out = np.zeros(items.size)
    for a in range(coefficients.size):
        out += rows.covariates[items, a] * coefficients[a]
    return out


def _predictive_moments_loop(
    rows: GaussianRows, items: Ints, w: Array, S: Array, coefficients: Array, prior: float, mean: Array, var: Array
) -> None:
    K, z, s = w.size, rows.mean, rows.cov  # whole arrays: a view of a row would be counted up and down for each item
    for i in range(items.size):
        j = items[i]
        rated = rows.adds[j, K + 1] > 0.0
        m = w[0] + (z[j, 0] if rated else expected_bias(rows, j, coefficients))
        for a in range(1, K):
            m += w[a] * z[j, a]
        mean[i] = m
        if var.size:
            q = S[0, 0] + (s[j, 0, 0] if rated else prior)
            for a in range(1, K):
                q += 2.0 * (z[j, a] * S[a, 0] + w[a] * s[j, a, 0])
                for b in range(1, a):
                    q += 2.0 * ((z[j, a] * z[j, b] + s[j, a, b]) * S[a, b] + w[a] * w[b] * s[j, a, b])
                q += (z[j, a] * z[j, a] + s[j, a, a]) * S[a, a] + w[a] * w[a] * s[j, a, a]
            var[i] = q


@noinline
@no_refcount
@primitive(_predictive_moments_loop)
def predictive_moments(
    rows: GaussianRows, items: Ints, w: Array, S: Array, coefficients: Array, prior: float, mean: Array, var: Array
) -> None:
    """Write the predictive mean and variance of one user's ratings of n items into `mean` and `var` (n,).

    Means are relative to the origin of the model (see `row_sums`). Variances leave out the pair term and the noise;
    none are computed if `var` is (0,). The user's row [bias, factors] of K numbers has the mean `w` (K,) and the
    covariance `S` (K x K). `items` (n,) are indices into `rows`, the posteriors of the items. The bias of an item
    without ratings has the mean x . `coefficients` (P,), with x its covariates, and the variance `prior`.
    """
    K = w.size
    z, s = rows.mean[items], rows.cov[items]
    rated = rows.adds[items, K + 1] > 0.0
    m = w[0] + np.where(rated, z[:, 0], expected_biases(rows, items, coefficients))
    for a in range(1, K):
        m += w[a] * z[:, a]
    mean[:] = m
    if var.size:
        q = S[0, 0] + np.where(rated, s[:, 0, 0], prior)
        if K > 1:
            left, right = (indices[1:] for indices in np.tril_indices(K))
            own, y = z.copy(), w.copy()
            own[:, 0] = y[0] = 1.0
            inner = np.where(right > 0, s[:, left, right], 0.0)
            terms = np.where(left == right, 1.0, 2.0) * (
                (own[:, left] * own[:, right] + inner) * S[left, right] + y[left] * y[right] * s[:, left, right]
            )
            q = np.add.accumulate(np.column_stack((q, terms)), axis=1)[:, -1]
        var[:] = q


def _with_rows_loop(rows: GaussianRows, n: int, seed: int) -> GaussianRows:
    had, K = rows.mean.shape
    if had >= n:
        return rows
    more, P = max(n, 2 * had), rows.covariates.shape[1]
    mean, cov, adds = np.zeros((more, K)), np.zeros((more, K, K)), np.zeros((more, K + 4))
    covariates, first = np.zeros((more, P)), np.empty(K - 1)
    for j in range(had):  # not slices: compiled, an assignment of one to another takes a second to compile
        for a in range(P):
            covariates[j, a] = rows.covariates[j, a]
        for a in range(K):
            mean[j, a] = rows.mean[j, a]
            for b in range(K):
                cov[j, a, b] = rows.cov[j, a, b]
        for a in range(K + 4):
            adds[j, a] = rows.adds[j, a]
    for j in range(had, more):
        if P > 0:
            covariates[j, 0] = 1.0
        if seed >= 0:
            normals_of(seed, j, first)
            for a in range(1, K):
                mean[j, a] = PULL * first[a - 1]
                cov[j, a, a] = 1.0 - PULL * PULL
    return GaussianRows(
        mean, cov, adds, rows.sums, covariates, rows.gram, rows.moments, rows.coefficients, rows.gram_by_pair,
        rows.moments_by_pair,
    )  # fmt: skip


@noinline
@primitive(_with_rows_loop)
def with_rows(rows: GaussianRows, n: int, seed: int) -> GaussianRows:
    """Return posteriors with at least `n` rows of users or items: `rows` itself if it has that many, else a longer
    copy.

    For items, the mean factors of a new row are standard normal numbers that depend only on `seed` (0 or more) and the
    index of the row, times 0.3, with variance 0.91; its bias has mean and variance 0, its features are 0. For users,
    `seed` is -1, and new rows have mean and covariance 0.
    """
    had, K = rows.mean.shape
    if had >= n:
        return rows
    more = max(n, 2 * had)
    mean, cov, adds = np.zeros((more, K)), np.zeros((more, K, K)), np.zeros((more, K + 4))
    covariates = np.zeros((more, rows.covariates.shape[1]))
    mean[:had], cov[:had], adds[:had], covariates[:had] = rows.mean, rows.cov, rows.adds, rows.covariates
    covariates[had:, :1] = 1.0
    if seed >= 0 and K > 1:
        first = np.empty(K - 1)
        for j in range(had, more):
            normals_of(seed, j, first)
            mean[j, 1:] = PULL * first
        factors = np.arange(1, K)
        cov[had:, factors, factors] = 1.0 - PULL * PULL
    return GaussianRows(
        mean, cov, adds, rows.sums, covariates, rows.gram, rows.moments, rows.coefficients, rows.gram_by_pair,
        rows.moments_by_pair,
    )  # fmt: skip


@noinline
@no_refcount
@kernel
def update_sums(rows: GaussianRows, row: int, rated: float, first: float, second: float, third: float) -> None:
    """Compute the statistics of row number `row` in `rows.adds` again, and add the change to `rows.sums` and the sums
    of products of covariates, in place.

    They are described in `GaussianRows`. `rated` is 1 if the row has ratings, else 0, which makes all its statistics 0.
    `first`, `second` and `third` are, of an item, its mean bias, the number of its pairs and 0; of a user, the number
    of their pairs, and the sums over these of expected squared errors and of 1 / number of ratings.
    """
    K = rows.mean.shape[1]
    adds, sums, x = rows.adds[row], rows.sums, rows.covariates[row]
    if rated <= 0.0:
        first = second = third = 0.0
    more, moved = rated - adds[K + 1], first - adds[K]
    pairs, moved_by_pair = second - adds[K + 2], second * first - adds[K + 2] * adds[K]
    for a in range(x.size):
        rows.moments[a] += moved * x[a]
        rows.moments_by_pair[a] += moved_by_pair * x[a]
        if pairs != 0.0:
            for b in range(a + 1):
                rows.gram[a, b] += more * (x[a] * x[b])
                rows.gram_by_pair[a, b] += pairs * (x[a] * x[b])
    for a in range(K + 4):
        sums[a] -= adds[a]
        adds[a] = 0.0
    if rated > 0.0:
        for a in range(K):
            adds[a] = rows.mean[row, a] * rows.mean[row, a] + rows.cov[row, a, a]
        adds[K], adds[K + 1], adds[K + 2], adds[K + 3] = first, rated, second, third
    for a in range(K + 4):
        sums[a] += adds[a]


def set_features(rows: GaussianRows, row: int, features: Array) -> None:
    """Write the `features` (P - 1,) of row number `row` into its covariates, and the change into the sums of products
    of covariates, in place."""
    K = rows.mean.shape[1]
    x, (bias, rated, pairs) = rows.covariates[row], rows.adds[row, K : K + 3]
    before = x.copy()
    x[1:] = features
    rows.moments[:] += bias * (x - before)
    rows.moments_by_pair[:] += pairs * bias * (x - before)
    if rated > 0.0:
        change = np.tril(np.outer(x, x) - np.outer(before, before))
        rows.gram[:] += change
        rows.gram_by_pair[:] += pairs * change


@noinline
@no_refcount
@kernel
def add_posterior(rows: GaussianRows, row: int, room: Room) -> None:
    """Add what row number `row` is known to be, its precision matrix and this times its mean, to the sums A and h in
    `room`, in place, and set the prior in `room` to nothing: what was learned before is the prior then."""
    A, h, L, inverse = room.A, room.h, room.L, room.inverse
    K = h.size
    for a in range(K):
        room.precision[a] = room.pull[a] = 0.0
        for b in range(K):
            L[a, b] = rows.cov[row, a, b]
            inverse[a, b] = 0.0
    cholesky(L)
    invert_triangle(L, inverse)
    gram(inverse, L)
    for a in range(K):
        for b in range(K):
            h[a] += L[a, b] * rows.mean[row, b]
        for b in range(a + 1):
            A[a, b] += L[a, b]


@noinline
@no_refcount
@kernel
def row_posterior(rows: GaussianRows, row: int, room: Room) -> None:
    """Write the Gaussian posterior of row number `row`, K numbers [bias, factors], into `rows`, in place.

    Its precision matrix is P = A + diag(precision), its mean P^-1 (h + pull), with the results A and h of `row_sums`,
    the prior precisions of the K numbers, and these times the prior means as `pull`: all in `room`, and overwritten.
    """
    A, h, L = room.A, room.h, room.L
    K = h.size
    for a in range(K):
        A[a, a] += room.precision[a]
        h[a] += room.pull[a]
        for b in range(K):
            L[a, b] = 0.0
    cholesky(A)
    solve_cholesky(A, h)
    invert_triangle(A, L)
    for a in range(K):
        rows.mean[row, a] = h[a]
    gram(L, rows.cov[row])
