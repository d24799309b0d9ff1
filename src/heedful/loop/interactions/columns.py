"""Training examples as columns of numbers, from which a compiled loop learns many of them at once.

A segment of the log keeps them next to its events (`heedful.loop.segments`). A kind of feedback says in `Columns` how
its examples become numbers and which kernel learns from them. Compiled and interpreted arithmetic agree bit for bit, so
the state is that of learning one by one.

This module imports nothing of the loop: the compiled code depends on all that it reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from heedful.jit.kernel import Floats, Ints, kernel


class Ragged(NamedTuple):
    """A column of arrays of different lengths: the i-th is values[starts[i]:starts[i + 1]]."""

    values: Any
    """all arrays, one after the other (s,)"""
    starts: Ints
    """where each begins, and the end of the last (n + 1,)"""

    def ith(self, i: int) -> Any:
        """Return the i-th array, a view."""
        return self.values[self.starts[i] : self.starts[i + 1]]


class Single(NamedTuple):
    """A column of numbers."""

    values: Any
    """the numbers (n,)"""

    def ith(self, i: int) -> Any:
        """Return the i-th number."""
        return self.values[i]


class Lessons(NamedTuple):
    """n training examples as columns.

    The candidates of an example are rows of one array of features, since the same items come again and again; the last
    feature of each, the caller's score, comes from another column."""

    features: Floats
    """features (r, N - 1) of r different candidates"""
    rows: Ragged
    """for each example the rows in `features` of its m candidates (m,)"""
    scores: Ragged
    """for each example the last feature of its m candidates (m,), empty if all are 0"""
    shown: Ragged
    """for each example the candidates that were shown, as indices, best first"""
    answer: Ragged
    """for each example what was answered, as whole numbers: candidates, or grades"""
    parts: Any
    """a tuple of columns, the other fields of the learner's proposals"""

    def x(self, i: int) -> Floats:
        """Return the N features of the m candidates of example i (m, N)."""
        rows, last = self.rows.ith(i), self.scores.ith(i)
        m, n = rows.size, self.features.shape[1]
        out = np.empty((m, n + 1))
        for j in range(m):
            row = self.features[rows[j]]
            for c in range(n):
                out[j, c] = row[c]
            out[j, n] = last[j] if last.size else 0.0
        return out


class Encoded(NamedTuple):
    """One training example, as it goes into columns."""

    x: Floats
    """the N features of its m candidates (m, N), the caller's score last"""
    shown: Ints
    """the candidates that were shown"""
    answer: Ints
    """what was answered"""
    parts: tuple[Any, ...] = ()
    """the other fields of the learner's proposal, arrays or numbers"""


class Columns(NamedTuple):
    """How the training examples of one model become columns, and how they are learned from."""

    stamp: str
    """what the columns depend on besides the log; columns with another stamp are not used"""
    size: int
    """N, the number of features of a candidate, the caller's score included"""
    like: tuple[Any, ...]
    """an example of `Encoded.parts`: numbers and arrays of the right types"""
    encode: Callable[[Any], Encoded | None]
    """returns a training example of the model as numbers; None if it has another form, and is learned by itself"""
    fits: Callable[[Lessons], bool]
    """whether what the columns say of proposals and answers makes sense, so that compiled code, which checks no index,
    stays within its arrays; what is the same for all kinds is checked before"""
    learn: Any
    """the kernel: (learner, state, lessons, at, *rest) -> (state, how many changed what is predicted); it learns the
    examples at the indices `at` (k,) of `Lessons`, in order"""
    rest: tuple[Any, ...] = ()
    """its other arguments"""


def lengths(column: Ragged) -> Ints:
    """Return the length of each array of a column (n,)."""
    return np.diff(column.starts)


def below(column: Ragged, most: Ints) -> bool:
    """Return whether all numbers of the i-th array of a column are from 0 to most[i] - 1, for `most` (n,)."""
    values = column.values
    return bool((values >= 0).all() and (values < np.repeat(most, lengths(column))).all())


@kernel
def differ(a: Floats, b: Floats) -> bool:
    """Return whether two arrays (n,) differ in any bit."""
    return bool((a.view(np.int64) != b.view(np.int64)).any())
