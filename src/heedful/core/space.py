"""Protocols of spaces: which objects a learner may propose, their features, and the best object for given weights.

An update rule is written against `Space`, so that it works with rankings, assignments, subsets and others alike ([J15]
Algorithm 3). Letters: x is a context (such as the features of m candidates, m x N), y an object (such as an order of
candidates), N the number of features, phi(x, y) the joint features of both, w the weights, w . phi(x, y) the utility.

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Floats, Ints

Array = npt.NDArray[np.float64]


class Space(Protocol):
    """A space of objects y that a learner may propose in a context x, with joint features phi(x, y) of N numbers."""

    def phi(self, x: Floats, y: Ints, /) -> Array:
        """Return the joint features phi(x, y) (N,) of the object `y` in the context `x`."""

    def argmax(self, w: Array, x: Floats, /) -> Ints:
        """Return the object y of greatest utility w . phi(x, y) in the context `x`, for weights `w` (N,)."""

    def add_difference(self, out: Array, x: Floats, ybar: Ints, y: Ints, scale: float, /) -> None:
        """Add scale (phi(x, ybar) - phi(x, y)) to `out` (N,) in place: the difference in features between the objects
        `ybar` and `y` of the context `x`."""

    def check(self) -> None:
        """Raise ValueError, naming the parameter, if a parameter of the space is not valid."""

    def check_context(self, x: object, n_features: int, /) -> Floats:
        """Return `x`, the caller's input, as an array of floats that is a context with `n_features` features (most
        spaces: m x N). Raise ValueError, naming what is wrong, if it is not valid."""

    def check_object(self, name: str, x: Floats, y: object, /) -> Ints:
        """Return `y`, the caller's input, as the indices of an object of the context `x`. Raise ValueError, beginning
        with `name` (such as "feedback"), if it is not valid."""


class RankingSpace(Space, Protocol):
    """A space whose objects are orders of candidates, best first; features depend on the first positions only."""

    def positions(self) -> int:
        """Return k, the number of positions from the top that phi(x, y) depends on."""


class StructuredSpace(Space, Protocol):
    """A space in which a simulated person can correct an object a little at a time, in small steps."""

    def step_towards(self, y: Ints, best: Ints, /) -> Ints:
        """Return a new object that is one small change of `y` closer to `best`; equal to `y` where they are the same
        object."""
