"""Acquisition functions for best-of-k questions, where k > 2 items are shown and the best is named: which k to show.

There is no closed form beyond two items. Utilities are drawn; given them, the probability that an item is called the
best is a quadrature over the noise of its perception, exact to .001. All sets are scored with the same draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count
from heedful.inference.gp.acquisition import acquisition_score, check_rule, item_sets, next_question
from heedful.inference.gp.posterior import Posterior
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

DRAWS = 256
BEST_DRAWS = 4000
LOOKED_AT = 20
"""The number of items tried as the next one of a set: those whose pairs with its items have the highest scores."""

_BLOCK = 1 << 18

_nodes, _weights = np.polynomial.hermite_e.hermegauss(12)
NODES: Array = _nodes * math.sqrt(0.5)
WEIGHTS: Array = _weights / _weights.sum()


def best_probabilities(posterior: Posterior, items: npt.ArrayLike) -> Array:
    """Return the probability (k,) under `posterior` that each of k items is called the best of them, noise included;
    the sum is 1.

    `items`: their numbers. For two items it is exact (`Posterior.beats`); for more it is from draws, with a standard
    error below .005.
    """
    chosen = np.asarray(items, np.int64)
    if chosen.size == 2:
        first = float(posterior.beats(chosen[0], chosen[1]))
        return np.array([first, 1.0 - first])
    f = posterior.of_items(chosen).draws(BEST_DRAWS)
    return _best_given_utilities(f[:, None, :]).mean(axis=0)[0]  # type: ignore[no-any-return]


def subset_scores(posterior: Posterior, rule: str, sets: Ints, *, draws: int = DRAWS) -> Array:
    """Return the scores (p,) under `posterior` of p questions, each a set of k items in `sets` (p x k).

    `rule` "bald" is the mutual information of answer and utilities, "mes" the entropy of the answer, both in bits;
    "eubo" is the expected utility of the best item. Scores of pairs are exact; others are from `draws` draws.
    """
    if sets.shape[1] == 2:
        a, b = sets.T
        return acquisition_score(rule, posterior.mean[a], posterior.mean[b], posterior.gap(a, b)[1])
    compared, local = np.unique(sets, return_inverse=True)
    f = posterior.of_items(compared).draws(draws)
    local = local.reshape(sets.shape)
    out = np.empty(len(sets))
    for lo in range(0, len(sets), max(1, _BLOCK // (draws * sets.shape[1]))):
        part = slice(lo, lo + max(1, _BLOCK // (draws * sets.shape[1])))
        of_part = f[:, local[part]]  # draws x p x k
        if rule == "eubo":
            out[part] = of_part.max(axis=2).mean(axis=0)
            continue
        p = _best_given_utilities(of_part)
        out[part] = _bits(p.mean(axis=0)) - (_bits(p).mean(axis=0) if rule == "bald" else 0.0)
    return out


def next_set(
    posterior: Posterior,
    rule: str = "bald",
    size: int = 2,
    *,
    skip: npt.ArrayLike = (),
    rng: np.random.Generator | None = None,
) -> Ints:
    """Choose the `size` items to show together in the next question; return their numbers, rising.

    For two items, it is the pair with the highest score under `posterior` and `rule` ("bald", "mes", "eubo", "random").
    For more, this pair is extended one item at a time by the item that gives the highest score. "random" draws
    uniformly with `rng`. `skip` (q x size): q sets that are never returned; if this search leads only to such sets, the
    first set in order that is not in `skip` is returned. Raise ValueError, naming the argument, if one is invalid or no
    set is left.
    """
    check_rule(rule, rng)
    check_count("size", size, least=2)
    n = posterior.mean.size
    if n < size:
        raise ValueError(f"posterior: expected at least {size} items, got {n}")
    skipped = item_sets("skip", skip, size, n)
    if size == 2:
        first, second, _ = next_question(posterior, rule, skip=skipped, rng=rng)
        return np.array([first, second])
    used = {tuple(row) for row in skipped.tolist()}
    if len(used) == math.comb(n, size):
        raise ValueError(f"skip: expected a set left to ask, got all {len(used)}")
    if rng is not None and rule == "random":
        while True:
            candidate = np.sort(rng.choice(n, size, replace=False))
            if tuple(candidate.tolist()) not in used:
                return candidate
    chosen = next(_greedy_sets(posterior, rule, size, used), None)
    if chosen is None:  # all sets grown from pairs are ruled out: take any that is left
        chosen = np.array(next(one for one in combinations(range(n), size) if one not in used))
    return np.sort(chosen)


def _greedy_sets(posterior: Posterior, rule: str, size: int, used: set[tuple[int, ...]]) -> Iterator[Ints]:
    """Yield sets of `size` items not in `used`, each grown greedily from a pair, the pairs in order of their scores."""
    n = posterior.mean.size
    pairs: list[tuple[int, int]] = []
    while len(pairs) < n * (n - 1) // 2:
        a, b, _ = next_question(posterior, rule, skip=pairs)
        pairs.append((a, b))
        chosen = np.array([a, b])
        while chosen.size:
            rest = np.setdiff1d(np.arange(n), chosen)
            last = chosen.size == size - 1
            if last:
                rest = np.array(
                    [i for i in rest.tolist() if tuple(sorted([*chosen.tolist(), i])) not in used], np.int64
                )
                if not rest.size:
                    break
            close = np.zeros(rest.size)
            for i in chosen.tolist():
                close += acquisition_score(
                    rule, posterior.mean[rest], posterior.mean[i], posterior.gap(rest, np.full(rest.size, i))[1]
                )
            closest = np.sort(rest[np.argsort(-close, kind="stable")[:LOOKED_AT]])
            sets = np.column_stack([np.repeat(chosen[None], closest.size, axis=0), closest])
            chosen = sets[int(subset_scores(posterior, rule, sets).argmax())]
            if last:
                yield chosen
                break


def _best_given_utilities(f: Array) -> Array:
    """Return P(item is called the best of its set) for utilities f (.. x k) perceived with noise of variance 1/2."""
    from scipy.special import ndtr

    k = f.shape[-1]
    out = np.zeros_like(f)
    for r in range(k):
        for z, w in zip(NODES, WEIGHTS):
            beaten = np.full(f.shape[:-1], w)
            for j in range(k):
                if j != r:
                    beaten *= ndtr((f[..., r] - f[..., j] + z) / math.sqrt(0.5))
            out[..., r] += beaten
    return out / out.sum(axis=-1, keepdims=True)  # type: ignore[no-any-return]


def _bits(p: Array) -> Array:
    """Return the entropy in bits of distributions over k outcomes, `p` (.. x k)."""
    positive = np.maximum(p, np.finfo(np.float64).tiny)
    return -(p * np.log2(positive)).sum(axis=-1)  # type: ignore[no-any-return]
