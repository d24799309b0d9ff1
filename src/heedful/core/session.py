"""A learner with its state for interactive use: `Session` proposes, takes one answer, and checks all input."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from heedful.core.fold import Learner, check_is_learner, coerce, copy_arrays, generators
from heedful.core.validation import check_count
from heedful.jit.kernel import visible

Array = npt.NDArray[np.float64]
S = TypeVar("S")
"""the type of a learner's state"""


class _LazyGenerator:
    """The random generator of one proposal, fixed by `key` (from the seed) and `learned` (the number of answers learned
    from), and made at its first use.

    Most learners draw nothing, and making a generator takes as long as a proposal.
    """

    def __init__(self, key: int, learned: int) -> None:
        self._key = (key, learned)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        rng = np.random.Generator(np.random.Philox(key=np.array(self._key, np.uint64)))
        self.__dict__.update({method: getattr(rng, method) for method in dir(rng) if not method.startswith("_")})
        return getattr(rng, name)


class Session(Generic[S]):
    """A learner with its state, for interactive use: propose, learn, propose again. It checks all input.

    >>> session = Session(PreferencePerceptron(n_features=2, space=Ranking(3)))
    >>> session.propose(x)     # x: candidates, m x 2; candidate indices, best first
    >>> session.learn([2, 0, 1])  # the order that the person would rather have seen

    A proposal draws random numbers that depend only on `seed` and on the number of answers learned from (`learned`), so
    a proposal that nobody answers changes nothing. `Session(learner, seed, state=state, learned=n)` continues from the
    `state` of an earlier session after n answers. The constructor raises ValueError if a hyperparameter of the learner
    or another argument is not valid.
    """

    def __init__(
        self, learner: Learner[Any, Any, Any, S], seed: int = 0, *, state: S | None = None, learned: int = 0
    ) -> None:
        check_is_learner(learner)
        self.learner = coerce(learner)
        self.seed = seed
        self.learned = learned
        first = self.learner.init(generators(seed)[2])
        self._state: S | None = first if state is None else copy_arrays(state)
        if type(self._state) is not type(first) or _shapes(self._state) != _shapes(first):
            raise ValueError(f"state: expected one of this learner, {_shapes(first)}, got {_shapes(state)}")
        check_count("learned", learned, least=0)
        self._key = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
        self._door: Any = getattr(self.learner, "space", self.learner)
        self._open: tuple[Any, Any] | None = None

    def propose(self, x: object) -> Any:
        """Return what to show in the context `x`, in the form of the learner's space (for rankings: candidate indices,
        best first). Raise ValueError, naming what is wrong, if `x` is not valid."""
        state = self._whole()
        x = copy_arrays(self._door.check_context(x, getattr(self.learner, "n_features", 0)))
        y = self.learner.propose(state, x, cast(np.random.Generator, _LazyGenerator(self._key, self.learned)))
        self._open = x, y
        return copy_arrays(visible(y))

    def learn(self, feedback: object) -> None:
        """Update the state with the person's answer to the latest proposal (for rankings: a better order).

        Raise LookupError if there is no unanswered proposal; raise ValueError, naming what is wrong, if `feedback` does
        not fit the proposal. After either the state is unchanged, and the proposal can still be answered.
        """
        state = self._whole()
        if self._open is None:
            raise LookupError(
                "learn: expected a proposal that is not answered yet, got none: call propose(x) first"
                if self.learned == 0
                else "learn: the latest proposal was already learned from: call propose(x) again"
            )
        x, y = self._open
        feedback = self._door.check_object("feedback", x, feedback)
        self._state = None  # until the update is over: it may fail half-way
        self._state = self.learner.update(state, x, y, feedback)
        self._open = None
        self.learned += 1

    def _whole(self) -> S:
        if self._state is None:
            raise RuntimeError("session: a lesson was interrupted, so the state is lost: start a new session")
        return self._state

    @property
    def state(self) -> S:
        """A copy of the learner's state."""
        return copy_arrays(self._whole())

    @property
    def weights(self) -> Array:
        """The utility weights (N,) that a linear learner has learned, one for each of the caller's N features."""
        linear: Any = self.learner
        return np.array(linear.weights(self._whole()))


def _shapes(value: object, grows: bool = False) -> object:
    """Return type names, and the dtype and shape of each array of a state (where it `grows`, the number of axes)."""
    if isinstance(value, tuple):
        longer = grows or bool(getattr(value, "grows", False))
        return type(value).__name__, *[_shapes(part, longer) for part in value]
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.ndim if grows else value.shape
    return type(value).__name__
