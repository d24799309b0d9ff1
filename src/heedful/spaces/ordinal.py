"""The space of ordinal grades: ranks 1 < 2 < ... < k on a scale."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heedful.core.validation import check_count, describe, finite_array, is_number
from heedful.jit.kernel import Floats

MOST_RANKS = 1000


class Ranks(NamedTuple):
    """The space of `k` ordinal grades (ranks) 1 < 2 < ... < k of an instance with N features.

    A context is the instance x (N,), a proposal the predicted rank, feedback the true rank.
    """

    k: int

    def check(self) -> None:
        """Raise ValueError if k is not a whole number from 2 to 1000."""
        check_count("n_ranks", self.k, least=2, most=MOST_RANKS)

    def check_context(self, x: object, n_features: int) -> Floats:
        return finite_array("x", x, 1, n_features)

    def check_object(self, name: str, x: Floats, y: object) -> int:
        number: object = y
        if isinstance(y, np.generic | np.ndarray) and y.ndim == 0 and y.dtype.kind in "iuf" and not hasattr(y, "mask"):
            number = y.item()
        if not is_number(number, int, float) or not 1 <= number <= self.k or number != number // 1:
            raise ValueError(f"{name}: expected a grade, a whole number from 1 to {self.k}, got {describe(y)}")
        return int(number)

    def invalid_contexts(self, x: Floats) -> list[object]:
        """Return contexts made from the valid instance `x` (N,), each of which `check_context` must reject; for
        `heedful.core.conformance`."""
        spoiled = x.copy()
        spoiled[-1] = np.nan
        return [spoiled, x[:-1], x[:0], x[None], np.append(x, 0.0), x.astype(str), "text", None, 1.0]

    def invalid_objects(self, x: Floats, y: int) -> list[object]:
        """Return ranks made from the valid rank `y`, each of which `check_object` must reject; for
        `heedful.core.conformance`."""
        return [0, self.k + 1, -y, y + 0.5, 10**400, np.nan, -np.inf, True, str(y), [y], np.array([y]), 1j, None]
