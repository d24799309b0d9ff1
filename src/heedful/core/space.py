"""The protocols of spaces of objects: with them any update rule works with any space ([J15] Algorithm 3).

N is the number of features.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Floats, Ints

Array = npt.NDArray[np.float64]


class Space(Protocol):
    """A space of objects: the features phi(x, y) of each object y in a context x, and the best object for weights w."""

    def phi(self, x: Floats, y: Ints, /) -> Array:
        """Return phi(x, y), (N,)."""

    def argmax(self, w: Array, x: Floats, /) -> Ints:
        """Return the object y of greatest w . phi(x, y), for w (N,)."""

    def add_difference(self, out: Array, x: Floats, ybar: Ints, y: Ints, scale: float, /) -> None:
        """Add in place: out += scale (phi(x, ybar) - phi(x, y)), out (N,)."""

    def add_pair_gradient(self, out: Array, w: Array, x: Floats, ybar: Ints, y: Ints, /) -> None:
        """Add in place: out += the gradient in w of the logistic log-likelihood of the pairs that correcting y to ybar
        implies."""

    def check(self) -> None:
        """Raise ValueError if a parameter of the space makes no sense."""

    def check_context(self, x: object, n_features: int, /) -> Floats:
        """Return x as a context with n_features features. Raise ValueError, naming what is wrong, if it is none."""

    def check_object(self, name: str, x: Floats, y: object, /) -> Ints:
        """Return y as an object of the context x. Raise ValueError, beginning with `name`, if it is none."""


class RankingSpace(Space, Protocol):
    """A space whose objects are orders of candidates, of which the first positions count."""

    def positions(self) -> int:
        """Return how many positions count."""

    def add_pairs(self, out: Array, w: Array, x: Floats, better: Ints, worse: Ints, weights: Array, /) -> None:
        """Add in place: out += the gradient in w of the weighted logistic log-likelihood of these pairs of candidates
        (p,)."""


class StructuredSpace(Space, Protocol):
    """A space in which a simulated person corrects an object step by step."""

    def step_towards(self, y: Ints, best: Ints, /) -> Ints:
        """Return the object one step from y towards `best`."""
