"""The fold: a learner and a world, round after round; interpreted, compiled, replayed, or by hand.

`play` iterates, `trace` returns the regret of every round (compiled where it can be), `replay` folds a log,
`Session` takes one answer at a time. All of them run the learner's own `propose` and `update`, written once.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from heedful.core.validation import wanted_count
from heedful.jit.kernel import kernel, shown

Array = npt.NDArray[np.float64]
Generators = tuple[np.random.Generator, np.random.Generator, np.random.Generator]
T = TypeVar("T")
X = TypeVar("X")
"""A context: what is asked."""
Y = TypeVar("Y")
"""A proposal: what is shown, with whatever else `update` needs of it."""
F = TypeVar("F")
"""Feedback: what the person answered."""
S = TypeVar("S")
"""The state of a learner."""
W = TypeVar("W")
"""The state of a world."""
Asked = TypeVar("Asked", contravariant=True)
Shown = TypeVar("Shown", contravariant=True)
Given = TypeVar("Given", contravariant=True)


class Learner(Protocol[Asked, Y, Given, S]):
    """Hyperparameters, as a NamedTuple of scalars and arrays, with three functions of a state S (the same), for
    contexts, proposals Y and feedback of these types."""

    def init(self, rng: np.random.Generator, /) -> S:
        """The state before anything was learned. ValueError where a hyperparameter makes no sense."""

    def propose(self, state: S, x: Asked, rng: np.random.Generator, /) -> Y:
        """What to show for the context x; a NamedTuple whose first field is shown, where update needs more."""

    def update(self, state: S, x: Asked, y: Y, feedback: Given, /) -> S:
        """The state after feedback on the proposal y. Owns `state` and may overwrite its arrays; copies what
        it keeps of x, y and feedback."""


class World(Protocol[X, Shown, F, W]):
    """What only a simulation knows, as a NamedTuple: the stream of contexts X, the person who answers F, the regret."""

    def init(self, rng: np.random.Generator, /) -> W:
        """The state of the world before round 0; its arrays are its own."""

    def over(self, state: W, t: int, /) -> bool:
        """Whether nothing is left to ask in round t."""

    def context(self, state: W, t: int, rng: np.random.Generator, /) -> X:
        """The context of round t = 0, 1, ..."""

    def respond(self, state: W, x: X, shown: Shown, rng: np.random.Generator, /) -> F:
        """The person's answer to what was shown."""

    def regret(self, state: W, x: X, shown: Shown, /) -> float:
        """U(x, y*) - U(x, y) for what was shown."""

    def advance(self, state: W, x: X, shown: Shown, feedback: F, /) -> W:
        """The state of the world after the round. Owns `state`, as update does."""


class Round(NamedTuple, Generic[X, Y, F]):
    """One round as a log keeps it."""

    x: X
    y: Y
    feedback: F


@kernel
def step(
    learner: Learner[X, Y, F, S],
    world: World[X, Any, F, W],
    state: S,
    truth: W,
    t: int,
    asked: np.random.Generator,
    answered: np.random.Generator,
    drawn: np.random.Generator,
) -> tuple[S, Round[X, Y, F], float]:
    """One round, up to the world's next state: the learner's next state, the round, its regret."""
    x = world.context(truth, t, asked)
    y = learner.propose(state, x, drawn)
    feedback = world.respond(truth, x, shown(y), answered)
    regret = world.regret(truth, x, shown(y))
    return learner.update(state, x, y, feedback), Round(x, y, feedback), regret


@kernel
def run(
    learner: Learner[X, Y, F, S],
    world: World[X, Any, F, W],
    state: S,
    truth: W,
    regrets: Array,
    start: int,
    asked: np.random.Generator,
    answered: np.random.Generator,
    drawn: np.random.Generator,
) -> tuple[S, W, int]:
    """Rounds start, start + 1, ... until `regrets` is full or the world is over; how many were played."""
    for i in range(regrets.size):
        if world.over(truth, start + i):
            return state, truth, i
        state, played, regrets[i] = step(learner, world, state, truth, start + i, asked, answered, drawn)
        truth = world.advance(truth, played.x, shown(played.y), played.feedback)
    return state, truth, regrets.size


def generators(seed: int) -> Generators:
    """What is asked, what is answered, what the learner draws: one seed, the same arrivals for every learner."""
    wanted_count("seed", seed, least=0, most=2**128)
    asked, answered, drawn = (np.random.default_rng(s) for s in np.random.SeedSequence(int(seed)).spawn(3))
    return asked, answered, drawn


def copied(value: T) -> T:
    """A copy that shares no array with `value`: what to keep of a state or a round that a fold goes on with."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, tuple):
        parts: Any = [copied(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(tuple(parts))
    return value


def _shapes(value: Any, grows: bool = False) -> Any:
    """What a state is made of: the name of each type, of each array what its numbers are and its shape; within what
    says that it `grows`, how many axes."""
    if isinstance(value, tuple):
        longer = grows or bool(getattr(value, "grows", False))
        return type(value).__name__, *[_shapes(part, longer) for part in value]
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.ndim if grows else value.shape
    return type(value).__name__


_hints = functools.cache(typing.get_type_hints)  # what a class declares of its fields


def coerced(value: T) -> T:
    """A named tuple with Python's numbers for numpy's, and 1 as 1.0 in every field declared float, at any depth.

    One type per field: numba types what it is given, and a numpy float32 would drag float64 arithmetic down.
    """
    if not (isinstance(value, tuple) and hasattr(value, "_fields")):
        return value
    hints = _hints(type(value))
    parts: Any = [_coerced(part, hints.get(name)) for name, part in zip(value._fields, value)]
    return type(value)(*parts)


def _coerced(part: Any, declared: Any) -> Any:
    if isinstance(part, np.integer | np.floating | np.bool_) and not isinstance(part, np.timedelta64):
        part = part.item()
    if declared is float and isinstance(part, int) and not isinstance(part, bool):
        return float(part) if abs(part) < 1e300 else part  # a door refuses it by name
    return coerced(part)


def _wanted_learner(learner: Any) -> None:
    lacks = [name for name in ("init", "propose", "update") if not hasattr(learner, name)]
    if isinstance(learner, type) or lacks:
        what = "a class" if isinstance(learner, type) else f"without {', '.join(lacks)}"
        raise ValueError(
            f"learner: wanted one with its hyperparameters, PreferencePerceptron(...), got {learner!r}, {what}"
        )


def play(
    learner: Learner[X, Y, F, S], world: World[X, Any, F, W], rounds: int, seed: int
) -> Iterator[tuple[Round[X, Y, F], S]]:
    """The rounds of a simulation, interpreted, one at a time, each with the state after it.

    The state is live: the next round goes on with its arrays. `copied(state)` keeps it as it is.
    """
    _wanted_learner(learner)
    wanted_count("rounds", rounds, least=0)
    return _played(coerced(learner), coerced(world), rounds, generators(seed))


def _played(
    learner: Learner[X, Y, F, S], world: World[X, Any, F, W], rounds: int, draws: Generators
) -> Iterator[tuple[Round[X, Y, F], S]]:
    asked, answered, drawn = draws
    state, truth = learner.init(drawn), world.init(asked)
    for t in range(rounds):
        if world.over(truth, t):
            return
        state, live, _ = step(learner, world, state, truth, t, asked, answered, drawn)
        played = copied(live)  # the world may go on with the arrays of x
        truth = world.advance(truth, live.x, shown(live.y), live.feedback)
        yield played, state


def trace(
    learner: Learner[X, Y, F, S], world: World[X, Any, F, W], rounds: int, seed: int, *, interpreted: bool = False
) -> Array:
    """The regret of every round of a simulation (rounds,), in utility; shorter where the world is over before.

    The same fold as `play`, compiled; interpreted where asked, or where the learner or world says so itself by a
    property `interpreted` (one that leans on a solver).
    """
    *_, regrets = traced(learner, world, rounds, seed, interpreted=interpreted, chunk=rounds)
    return regrets


def traced(
    learner: Learner[X, Y, F, S],
    world: World[X, Any, F, W],
    rounds: int,
    seed: int,
    *,
    interpreted: bool = False,
    chunk: int = 100_000,
) -> Iterator[Array]:
    """`trace` in pieces of `chunk` rounds: the regrets so far, after each piece. What a progress bar iterates over."""
    _wanted_learner(learner)
    wanted_count("rounds", rounds, least=0)
    learner, world = coerced(learner), coerced(world)
    asked, answered, drawn = generators(seed)
    state, truth = learner.init(drawn), world.init(asked)
    regrets = np.empty(rounds)
    loop: Any = run
    if not (interpreted or must_interpret(learner) or must_interpret(world)):
        from heedful.jit.cache import loop_for

        loop = loop_for(learner, world, state, truth, regrets, 0, asked, answered, drawn)
    done = 0
    while True:
        piece = regrets[done : done + max(chunk, 1)]
        *left, played = loop(learner, world, state, truth, piece, done, asked, answered, drawn)
        done += played
        more = played == piece.size and done < rounds
        if more:  # a compiled loop returns arrays that it only borrowed: copied while `state` and `truth` own them
            state, truth = left if loop is run else copied(tuple(left))
        yield regrets[:done]
        if not more:
            return


def must_interpret(rule: Any) -> bool:
    """Whether a learner or world says that it does not compile."""
    return bool(getattr(rule, "interpreted", False))


def replay(learner: Learner[X, Y, F, S], log: Iterable[Round[X, Y, F]], seed: int) -> S:
    """The state after the rounds of `log`, as they were shown and answered: a fold, and nothing else.

    Trusts the log: what was let in by a door, or played, is not checked again.
    """
    learner = coerced(learner)
    state = learner.init(generators(seed)[2])
    for x, y, feedback in log:
        state = learner.update(state, x, y, feedback)
    return state


class _Drawn:
    """The generator of one decision, keyed by the seed and how much was learned; made when first drawn from.

    Most learners draw nothing, and making a generator takes as long as proposing.
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
    """A learner with its state, for use by hand: propose, learn, propose better. Checks what it is given.

    >>> session = Session(PreferencePerceptron(n_features=2, space=Ranking(3)))
    >>> session.propose(x)     # x: candidates, m x 2; candidate indices, best first
    >>> session.learn([2, 0, 1])  # the order that the person would rather have seen

    What a decision draws depends on `seed` and on what was learned before it, so proposals that nobody answers
    leave no trace. `learned` counts the lessons. A session goes on from a state kept elsewhere with
    `Session(learner, seed, state=state, learned=n)`.
    """

    def __init__(
        self, learner: Learner[Any, Any, Any, S], seed: int = 0, *, state: S | None = None, learned: int = 0
    ) -> None:
        _wanted_learner(learner)
        self.learner = coerced(learner)
        self.seed = seed
        self.learned = learned
        first = self.learner.init(generators(seed)[2])
        self._state: S | None = first if state is None else copied(state)
        if type(self._state) is not type(first) or _shapes(self._state) != _shapes(first):
            raise ValueError(f"state: wanted one of this learner, {_shapes(first)}, got {_shapes(state)}")
        wanted_count("learned", learned, least=0)
        self._key = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
        self._door: Any = getattr(self.learner, "space", self.learner)
        self._open: tuple[Any, Any] | None = None

    def propose(self, x: Any) -> Any:
        """What to show for the context x. ValueError, naming what is wrong, where x is not one."""
        state = self._whole()
        x = copied(self._door.check_context(x, getattr(self.learner, "n_features", 0)))
        y = self.learner.propose(state, x, cast(np.random.Generator, _Drawn(self._key, self.learned)))
        self._open = x, y
        return copied(shown(y))

    def learn(self, feedback: Any) -> None:
        """Learn from the answer to the latest proposal.

        LookupError where nothing was proposed since the last lesson; ValueError, naming what is wrong, where the
        feedback does not fit the proposal. Then the state is unchanged, and the proposal can still be answered.
        """
        state = self._whole()
        if self._open is None:
            raise LookupError(
                "learn: wanted a proposal that is not answered yet, got none: call propose(x) first"
                if self.learned == 0
                else "learn: the latest proposal was already learned from: call propose(x) again"
            )
        x, y = self._open
        feedback = self._door.check_object("feedback", x, feedback)
        self._state = None  # until the lesson is over: an update may stop half-way
        self._state = self.learner.update(state, x, y, feedback)
        self._open = None
        self.learned += 1

    def _whole(self) -> S:
        if self._state is None:
            raise RuntimeError("session: a lesson was interrupted, so the state is lost: start a new session")
        return self._state

    @property
    def state(self) -> S:
        """A copy of the state."""
        return copied(self._whole())

    @property
    def weights(self) -> Array:
        """The utility weights in the caller's features, N."""
        linear: Any = self.learner
        return np.array(linear.weights(self._whole()))
