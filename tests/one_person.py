"""Expectation propagation for one person, over all items."""

from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.ep import EPResult, Sites, extend_to_items, infer_users
from heedful.inference.pairwise import PairRows, pair_rows

Array = npt.NDArray[np.float64]


def infer(
    K: Array,
    mean: Array,
    pairs: npt.ArrayLike | PairRows,
    counts: npt.ArrayLike | None = None,
    sites: Sites | None = None,
    **options: Any,
) -> EPResult:
    """What one person's answers say of the utilities of n items, a priori N(mean, K): `pairs`, each given `counts`
    times, or rows; EP runs over the items that were compared, with the `options` of `infer_users`."""
    rows = pairs if isinstance(pairs, PairRows) else pair_rows(pairs, counts)
    compared, positions = np.unique(rows.pairs, return_inverse=True)
    part = rows._replace(pairs=positions.reshape(-1, 2), user=np.zeros(rows.size, np.int64))
    within = K[np.ix_(compared, compared)]
    return extend_to_items(infer_users(within, mean[compared], 1, part, sites, **options), K, mean, compared)
