"""Training examples as columns of numbers, from which a compiled loop learns many of them at once.

A kind of feedback says in `Columns` how its examples become numbers and which kernel learns from them. Compiled and
interpreted arithmetic agree bit for bit, so the state is that of learning one by one.

This module imports nothing of the loop: the compiled code depends on all that it reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from heedful.jit.kernel import Floats, Ints, kernel

if TYPE_CHECKING:
    from heedful.loop.model import Answered, Context


class Ragged(NamedTuple):
    """A column of arrays of different lengths: the i-th is values[starts[i]:starts[i + 1]]."""

    values: Any
    """the elements of all arrays, one array after the other (s,) or (s, N)"""
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
    """n training examples as columns."""

    x: Ragged
    """for each example the N features of its m candidates (m, N), the caller's score last; or the numbers of m items
    (m,)"""
    shown: Ragged
    """for each example the candidates that were shown, as indices, best first"""
    answer: Ragged
    """for each example the answer as whole numbers: candidates (indices), or grades"""
    parts: Any
    """a tuple of columns: the fields of the learner's proposals besides the list, such as the neighbours swapped, or
    more of the answers, such as ratings"""


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

    size: int
    """N, the number of features of a candidate, the caller's score included; 0 where items are known by number"""
    like: tuple[Any, ...]
    """an example of `Encoded.parts`: numbers and arrays of the right types"""
    encode: Callable[[Any, Context], Encoded | None]
    """a function of a training example of the model and the decision that it is about, which returns it as numbers;
    None if the example has another form, and has to be learned by itself. It or `LoopModel.teaches` raises an error if
    an index is out of range, since compiled code checks none"""
    learn: Any
    """the kernel: (learner, state, lessons, at, *rest) -> (state, how many examples there was anything to learn in, how
    many changed a prediction); it learns the examples with the indices `at` (k,) of `lessons`, in order"""
    rest: tuple[Any, ...] = ()
    """further arguments of the kernel"""
    people: bool = False
    """whether the kernel needs to know whose examples they are. Its further arguments are then first `who` (n,), a
    number of the person of each example, -1 for nobody in particular; `known` (p, 3), what is known of each of these
    people before, which it overwrites (`Numbered.known`); and `seqs` (k,), the sequence numbers of the feedback"""
    together: Callable[[Sequence[Answered], Callable[[Ints], Ints]], Lessons | None] | None = None
    """a function of n pieces of feedback and of `Catalogue.items_at`, which returns the n training examples that
    `encode` makes of them one by one; None if some are not of a form that it knows, or teach nothing. None if there is
    none"""


def in_columns(examples: Sequence[Encoded], columns: Columns) -> Lessons:
    """Return training examples as columns."""
    nothing = np.zeros(0, np.int64)
    parts: list[Any] = []
    for j, like in enumerate(columns.like):
        values = [each.parts[j] for each in examples]
        alike = np.asarray(like)
        parts.append(_ragged(values, alike) if isinstance(like, np.ndarray) else Single(np.array(values, alike.dtype)))
    return Lessons(
        _ragged([each.x for each in examples], np.zeros((0, columns.size)) if columns.size else nothing),
        _ragged([each.shown for each in examples], nothing),
        _ragged([each.answer for each in examples], nothing),
        tuple(parts),
    )


def _ragged(arrays: Sequence[Any], like: Any) -> Ragged:
    """Return a column of `arrays`, whose elements are of the type and shape of those of `like`."""
    starts = np.concatenate([[0], np.cumsum([len(array) for array in arrays])]).astype(np.int64)
    return Ragged(np.concatenate([like[:0], *arrays]).astype(like.dtype, copy=False), starts)


@kernel
def differ(a: Floats, b: Floats) -> bool:
    """Return whether the arrays `a` and `b` (n,) differ in any bit."""
    return bool((a.view(np.int64) != b.view(np.int64)).any())
