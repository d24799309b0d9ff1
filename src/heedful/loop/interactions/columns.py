"""Training examples as columns of numbers, from which a compiled loop learns many of them at once.

A segment of the log keeps them next to its events (`heedful.loop.segments`). A kind of feedback says in `Columns` how
its examples become numbers and which kernel learns from them. Compiled and interpreted arithmetic agree bit for bit, so
the state is that of learning one by one.

This module imports nothing of the loop: the compiled code depends on all that it reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from heedful.jit.kernel import Floats, Ints, kernel

if TYPE_CHECKING:
    from heedful.loop.model import Context


class Ragged(NamedTuple):
    """A column of arrays of different lengths: the i-th is values[starts[i]:starts[i + 1]]."""

    values: Any
    """the elements of all arrays, one array after the other (s,)"""
    starts: Ints
    """the position in `values` at which each of the n arrays begins, and the end of the last (n + 1,)"""

    def ith(self, i: int) -> Any:
        """Return the array with the index `i`, a view."""
        return self.values[self.starts[i] : self.starts[i + 1]]


class Single(NamedTuple):
    """A column of numbers."""

    values: Any
    """the numbers (n,)"""

    def ith(self, i: int) -> Any:
        """Return the number with the index `i`."""
        return self.values[i]


class Lessons(NamedTuple):
    """n training examples as columns; each has m candidates of N features, or m numbers of items.

    The candidates of an example are rows of one array of features, since the same items occur in many examples. The
    last feature, the caller's score, differs from example to example and has a column of its own."""

    features: Floats
    """the first N - 1 features of r different candidates (r, N - 1); empty (0, 0) where items are known by number"""
    rows: Ragged
    """for each example the rows in `features` of its m candidates, or the numbers of m items (m,)"""
    scores: Ragged
    """for each example the caller's scores of its m candidates, the last feature (m,); empty if all are 0"""
    shown: Ragged
    """for each example the candidates that were shown, as indices, best first"""
    answer: Ragged
    """for each example the answer as whole numbers: candidates (indices), or grades"""
    parts: Any
    """a tuple of columns: the fields of the learner's proposals besides the list, such as the neighbours swapped, or
    more of the answers, such as ratings"""

    def x(self, i: int) -> Floats:
        """Return the N features of the m candidates of the example with the index `i` (m, N), a new array."""
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
    """One training example, in the form that goes into columns (`Lessons`)."""

    x: Any
    """the N features of the m candidates (m, N), the caller's score last; or the numbers of m items (m,)"""
    shown: Ints
    """the candidates that were shown, as indices, best first"""
    answer: Ints
    """the answer, as whole numbers: candidates (indices), or grades"""
    parts: tuple[Any, ...] = ()
    """the fields of the learner's proposal besides the list, or more of the answer: arrays or numbers"""
    person: str | None = None
    """whose it is, where `Columns.people`; None for nobody in particular"""


class Columns(NamedTuple):
    """How the training examples of one model become columns of numbers, and how compiled code learns from these."""

    stamp: str
    """a text that identifies what the columns depend on besides the log; columns with another stamp are not used"""
    size: int
    """N, the number of features of a candidate, the caller's score included; 0 where items are known by number"""
    like: tuple[Any, ...]
    """an example of `Encoded.parts`: numbers and arrays of the right types"""
    encode: Callable[[Any, Context], Encoded | None]
    """a function of a training example of the model and the decision that it is about, which returns it as numbers;
    None if the example has another form, and has to be learned by itself"""
    fits: Callable[[Lessons], bool]
    """a function that returns whether all indices in the proposals and answers are in range, so that compiled code,
    which checks no index, stays within its arrays; what is the same for all kinds of feedback is checked before"""
    learn: Any
    """the kernel: (learner, state, lessons, at, *rest) -> (state, how many examples there was anything to learn in, how
    many changed a prediction); it learns the examples with the indices `at` (k,) of `lessons`, in order"""
    rest: tuple[Any, ...] = ()
    """further arguments of the kernel"""
    people: bool = False
    """whether the kernel needs to know whose examples they are. Its further arguments are then first `who` (n,), a
    number of the person of each example, -1 for nobody in particular; `known` (p, 3), what is known of each of these
    people before, which it overwrites (`Numbered.known`); and `seqs` (k,), the sequence numbers of the feedback"""


def ragged(arrays: Sequence[Any], kind: Any) -> Ragged:
    """Return a column of `arrays`, whose elements are of the numpy type `kind`."""
    starts = np.concatenate([[0], np.cumsum([len(array) for array in arrays])]).astype(np.int64)
    return Ragged(np.concatenate(arrays).astype(kind) if arrays else np.zeros(0, kind), starts)


def own_scores(x: Any) -> Any:
    """Return the caller's scores of the m candidates `x` (m, N), as a column has them: none (0,) if all are 0."""
    last = x[:, -1] if x.ndim == 2 else x[:0]
    return last if last.any() or np.signbit(last).any() else last[:0]


def in_columns(examples: Sequence[Encoded], columns: Columns) -> Lessons:
    """Return training examples as columns; no two of them share the features of a candidate."""
    rows = [each.x for each in examples]
    features = np.zeros((0, max(columns.size - 1, 0)))
    if columns.size:
        features = np.concatenate([features, *[x[:, :-1] for x in rows]])
        ends = np.cumsum([len(x) for x in rows])
        rows = [np.arange(end - len(x), end) for x, end in zip(rows, ends.tolist())]
    parts: list[Any] = []
    for j, like in enumerate(columns.like):
        found, kind = [each.parts[j] for each in examples], np.asarray(like).dtype
        parts.append(ragged(found, kind) if isinstance(like, np.ndarray) else Single(np.array(found, kind)))
    return Lessons(
        features,
        ragged(rows, np.int64),
        ragged([own_scores(each.x) for each in examples], np.float64),
        ragged([each.shown for each in examples], np.int64),
        ragged([each.answer for each in examples], np.int64),
        tuple(parts),
    )


def lengths(column: Ragged) -> Ints:
    """Return the length of each array of a column (n,)."""
    return np.diff(column.starts)


def below(column: Ragged, most: Ints) -> bool:
    """Return whether all numbers in the i-th array of `column` are from 0 to most[i] - 1, for each of its n arrays.

    `most` has the shape (n,)."""
    values = column.values
    return bool((values >= 0).all() and (values < np.repeat(most, lengths(column))).all())


@kernel
def differ(a: Floats, b: Floats) -> bool:
    """Return whether the arrays `a` and `b` (n,) differ in any bit."""
    return bool((a.view(np.int64) != b.view(np.int64)).any())
