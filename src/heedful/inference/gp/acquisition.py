"""Acquisition functions for pairwise comparisons, [H12] section 4: which pair of items to ask about next.

    bald    mutual information of the answer and the utilities, in bits: for learning a whole ranking
    mes     entropy of the answer, in bits: for comparison only, since it prefers questions that are mere coin tosses
    eubo    expected utility of the better item of the two: for finding the best item
    random  any pair, drawn uniformly

The search over all n (n - 1) / 2 pairs is exact: it goes through them in blocks that fit the cache, and skips only
pairs that a bound rules out. Of equal scores the first pair wins, in the order (0, 1), (0, 2), ... The caller decides
which item of the pair is shown on the left.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, describe, numbers
from heedful.inference.gp.posterior import LowRankPosterior, Posterior
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

RULES = ("bald", "mes", "eubo", "random")

C = math.sqrt(math.pi * math.log(2.0) / 2.0)
"""[H12] section 4.1: h[Phi(f)], in bits, is close to exp(-f^2 / (2 C^2))."""

_BLOCK = 1 << 15  # number of pairs scored at a time: a few arrays of this size fit the cache
_SLACK = 1e-9  # slack of bounds, for rounding


class Question(NamedTuple):
    """A pair of items to ask about, by number, and its acquisition score: bits (bald, mes), a utility (eubo) or 0
    (random).
    """

    first: int
    second: int
    score: float


# ---------------------------------------------------------------------------- what a question is worth


def mes(mean: npt.ArrayLike, var: npt.ArrayLike) -> Array:
    """Return the score of maximum entropy sampling: the entropy of the answer in bits.

    `mean`, `var`: of the difference of utilities f_a - f_b, elementwise. The score is h[Phi(mean / sqrt(var + 1))], the
    first term of [H12] Eq. 11, with h the entropy of a coin in bits.
    """
    from scipy.special import ndtr

    m, v = np.asarray(mean, np.float64), np.asarray(var, np.float64)
    q = ndtr(-np.abs(m) / np.sqrt(v + 1.0))
    q = np.maximum(q, np.finfo(np.float64).tiny)  # 0 log 0 = 0
    h = -(q * np.log(q) + (1.0 - q) * np.log1p(-q)) / math.log(2.0)
    return h  # type: ignore[no-any-return]


def bald(mean: npt.ArrayLike, var: npt.ArrayLike) -> Array:
    """Return the mutual information of the answer and the utilities in bits, [H12] Eq. 11; at least 0.

    `mean`, `var`: of the difference of utilities f_a - f_b, elementwise. The score is h[Phi(mean / sqrt(var + 1))] - C
    / sqrt(var + C^2) exp(-mean^2 / (2 (var + C^2))), with h the entropy of a coin in bits. The second term is the
    paper's closed form of an integral, accurate to .003 bit, so the difference can be slightly negative: then 0 is
    returned.
    """
    m, v = np.asarray(mean, np.float64), np.asarray(var, np.float64)
    wide = v + C * C
    gain = mes(m, v) - C / np.sqrt(wide) * np.exp(-0.5 * m * m / wide)
    return np.maximum(gain, 0.0)


def eubo(first: npt.ArrayLike, second: npt.ArrayLike, var: npt.ArrayLike) -> Array:
    """Return the expected utility of the better of two items, E max(f_a, f_b), elementwise.

    `first`, `second`: means of f_a and f_b; `var`: variance of f_a - f_b; numbers or arrays of one shape. With s =
    sqrt(var) and z = |first - second| / s, it is max(first, second) + s (phi(z) - z Phi(-z)), phi and Phi being the
    normal density and distribution function. The noise of a choice plays no part, only which utility is higher.
    """
    from scipy.special import ndtr

    a, b, v = (np.asarray(x, np.float64) for x in (first, second, var))
    gap, s = np.abs(a - b), np.sqrt(v)
    z = gap / np.maximum(s, 1e-150)
    z = np.minimum(z, 40.0)  # beyond it, the second term is 0 in any case, and z^2 stays finite
    more = s * (np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) - z * ndtr(-z))
    return np.maximum(a, b) + np.maximum(more, 0.0)  # type: ignore[no-any-return]


def acquisition_score(rule: str, first: npt.ArrayLike, second: npt.ArrayLike, var: npt.ArrayLike) -> Array:
    """Return the scores of pairs of items (a, b), elementwise, under a `rule`: "bald", "mes" (in bits) or "eubo" (a
    utility).

    `first`, `second`: means of the utilities f_a and f_b; `var`: variance of f_a - f_b.
    """
    if rule == "eubo":
        return eubo(first, second, var)
    gap = np.subtract(first, second)
    return bald(gap, var) if rule == "bald" else mes(gap, var)


# ---------------------------------------------------------------------------- the next question


def next_question(
    posterior: Posterior | LowRankPosterior,
    rule: str = "bald",
    *,
    skip: npt.ArrayLike = (),
    rng: np.random.Generator | None = None,
) -> Question:
    """Return the pair with the highest acquisition score, under a posterior over the utilities of n items.

    `rule`: "bald", "mes", "eubo" or "random"; "random" draws a pair uniformly with `rng`, which the other rules ignore.
    `skip`: q pairs of item numbers (q x 2) that are never returned, in either order. Raise ValueError, naming the
    argument, for an unknown rule, malformed pairs or a missing `rng`, and if no pair is left.
    """
    n = posterior.mean.size
    check_rule(rule, rng)
    check_count("items", n, least=2)
    left_out = np.unique(item_sets("skip", skip, 2, n), axis=0)
    if n * (n - 1) // 2 == len(left_out):
        raise ValueError(f"skip: expected a pair left to ask, got all {len(left_out)}")
    if rng is not None and rule == "random":
        return Question(*random_pair(n, left_out, rng), 0.0)
    return _of_all(posterior, rule, left_out)


def _of_all(posterior: Posterior | LowRankPosterior, rule: str, skip: Ints) -> Question:
    mean, var = posterior.mean, posterior.var
    n = mean.size
    rows = min(n - 1, max(1, _BLOCK // n))
    below = np.tril_indices(rows, -1)
    best, least, best_moments = Question(-1, -1, -np.inf), _threshold(posterior, rule, skip), (-1.0, -2.0)
    for lo in range(0, n - 1, rows):
        hi = min(lo + rows, n - 1)
        v = posterior.block(lo, hi)  # row r, column c: the pair (lo + r, lo + 1 + c), which is one where c >= r
        other = var[lo + 1 :] - v
        v = np.maximum(np.add(np.subtract(var[lo:hi, None], v, out=v), other, out=v), 0.0, out=v)
        if hi - lo < rows:
            below = np.tril_indices(hi - lo, -1)
        v[below] = -1.0
        skipped = skip[(skip[:, 0] >= lo) & (skip[:, 0] < hi)]
        v[skipped[:, 0] - lo, skipped[:, 1] - lo - 1] = -1.0
        places = _places_to_score(rule, mean[lo:hi, None], mean[lo + 1 :], v, least, best_moments)
        if not places.size:
            continue
        r, c = np.divmod(places, n - 1 - lo)
        spread = v.ravel()[places]
        scores = acquisition_score(rule, mean[lo + r], mean[lo + 1 + c], spread)
        k = int(scores.argmax())
        if scores[k] > best.score:
            best = Question(lo + int(r[k]), lo + 1 + int(c[k]), float(scores[k]))
            best_moments = float(abs(mean[best.first] - mean[best.second])), float(spread[k])
            least = max(least, best.score)
    return best


def _threshold(posterior: Posterior | LowRankPosterior, rule: str, skip: Ints) -> float:
    """Return a lower bound of the best score: that of the pairs of the item with the highest mean or variance."""
    mean, var = posterior.mean, posterior.var
    i = int(mean.argmax() if rule == "eubo" else var.argmax())
    v = np.maximum(var[i] + var - 2.0 * posterior.row(i), 0.0)
    scores = acquisition_score(rule, mean[i], mean, v)
    scores[i] = -np.inf
    scores[skip[skip[:, 0] == i, 1]] = scores[skip[skip[:, 1] == i, 0]] = -np.inf
    return float(scores.max())


def _places_to_score(
    rule: str, first: Array, second: Array, v: Array, least: float, best_moments: tuple[float, float]
) -> Ints:
    """Return the flat indices into `v` (r x c) of the pairs whose score may reach `least`, without doubles of the best.

    `v` has the variances of f_a - f_b, negative where there is no pair. Bounds: for eubo psi(z) = phi(z) - z Phi(-z) is
    log-concave, so psi(z) psi(-z) <= psi(0)^2, and the score less first, times the score less second, is at most v / (2
    pi). bald rises with the variance and is largest for equal means, where it is 1 - C / sqrt(v + C^2). mes has no
    bound here."""
    if rule == "eubo" and np.isfinite(least):
        far = np.maximum(least - first, 0.0) * ((2.0 * math.pi - _SLACK) * np.maximum(least - second, 0.0))
        worthwhile = v >= far - _SLACK
    elif rule == "bald":
        worthwhile = v >= C * C * (1.0 / np.square(1.0 - max(least - _SLACK, 0.0)) - 1.0) - _SLACK
    else:
        worthwhile = v >= 0.0
    if rule != "mes":
        worthwhile &= v >= 0.0
    same = v == best_moments[1]
    if same.any():
        worthwhile &= ~same | (np.abs(first - second) != best_moments[0])
    return np.flatnonzero(worthwhile)


def random_pair(n: int, skip: Ints, rng: np.random.Generator) -> tuple[int, int]:
    """Return a pair of the n items (lower number first), drawn uniformly with `rng` among all pairs that are not in
    `skip`.

    `skip` (q x 2) has q pairs, the lower item first, each pair once. The draw takes one random number, the index of a
    pair in the order (0, 1), (0, 2), ... of those that are left.
    """
    before = np.concatenate(([0], np.cumsum(np.arange(n - 1, 0, -1))))  # pairs whose first item is lower
    k = int(rng.integers(before[-1] - len(skip)))
    for skipped in np.sort(before[skip[:, 0]] + skip[:, 1] - skip[:, 0] - 1).tolist():
        if skipped > k:
            break
        k += 1
    a = int(np.searchsorted(before, k, side="right")) - 1
    return a, a + 1 + k - int(before[a])


def expected_change(gap: npt.ArrayLike, var: npt.ArrayLike) -> tuple[Array, Array]:
    """Return two factors (alpha, beta), elementwise, by which one observed choice changes a Gaussian over utilities.

    `gap`, `var`: mean and variance of the utility difference f_winner - f_loser before the choice, numbers or arrays of
    one shape. With c (n,) the covariances of the n utilities with this difference, the choice adds alpha c to the mean
    and subtracts beta c c' from the covariance.
    """
    from scipy.special import log_ndtr

    s2 = 1.0 + np.asarray(var, np.float64)
    z = np.asarray(gap, np.float64) / np.sqrt(s2)
    ratio = np.exp(-0.5 * z * z - log_ndtr(z)) / math.sqrt(2.0 * math.pi)  # phi(z) / Phi(z)
    return ratio / np.sqrt(s2), ratio * (z + ratio) / s2


def check_rule(rule: str, rng: np.random.Generator | None) -> None:
    """Raise ValueError unless `rule` is "bald", "mes", "eubo" or "random" and, for "random", `rng` is a numpy
    Generator.
    """
    if rule not in RULES:
        raise ValueError(f"rule: expected one of {', '.join(RULES)}, got {describe(rule)}")
    if rule == "random" and not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng: expected a numpy.random.Generator for random questions, got {describe(rng)}")


def item_sets(name: str, value: object, size: int, n: int) -> Ints:
    """Return `value` as q sets of `size` different items below n (q x size), the numbers of each rising; raise
    ValueError, naming `name`, if it is none."""
    expected = f"sets of {size} different items, each 0 to {n - 1}"
    array = numbers(name, value, expected)
    if array.size == 0:
        return np.empty((0, size), np.int64)
    if array.ndim != 2 or array.shape[1] != size or array.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected {expected}, got {describe(array)}")
    sets = np.sort(array, axis=1).astype(np.int64)
    wrong = np.flatnonzero((sets[:, 0] < 0) | (sets[:, -1] >= n) | (sets[:, 1:] == sets[:, :-1]).any(axis=1))
    if wrong.size:
        raise ValueError(f"{name}: expected {expected}, got {array[wrong[0]].tolist()} at [{wrong[0]}]")
    return sets
