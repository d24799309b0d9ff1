"""Run a learner in a simulated environment ("world") round by round, or compute a learner's state from a log of rounds,
as a fold of `update` over the rounds.

A round is a context, the learner's proposal and the person's feedback on it. `play` iterates over the rounds of a
simulation, `trace` returns the regret of every round (compiled where possible), and `replay` computes the state from a
log. All of them call the learner's own `propose` and `update`, as `heedful.core.session.Session` does, which takes one
answer at a time.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count
from heedful.jit.kernel import kernel, visible

Array = npt.NDArray[np.float64]
Generators = tuple[np.random.Generator, np.random.Generator, np.random.Generator]
T = TypeVar("T")
X = TypeVar("X")
"""the type of a context: what the learner is asked about, such as a query's candidates"""
Y = TypeVar("Y")
"""the type of a proposal: what the learner shows, with anything else that its `update` needs"""
F = TypeVar("F")
"""the type of feedback: what the person answered to a proposal"""
S = TypeVar("S")
"""the type of a learner's state"""
Shown: TypeAlias = Any
"""What the person sees of a proposal of type Y: its first field where Y is a NamedTuple, else all of it. Python's types
cannot express this."""
W = TypeVar("W")
"""the type of a simulated world's state"""
X_contra = TypeVar("X_contra", contravariant=True)
Y_contra = TypeVar("Y_contra", contravariant=True)
F_contra = TypeVar("F_contra", contravariant=True)


class Learner(Protocol[X_contra, Y, F_contra, S]):
    """A learning rule: a NamedTuple of hyperparameters with three functions of a state, which is an argument and a
    result.

    Types: contexts X, proposals Y, feedback F, state S, a NamedTuple of scalars and arrays. Each learner says which
    types these are.
    """

    def init(self, rng: np.random.Generator, /) -> S:
        """Return the state before the first round; `rng` is for learners that start at random. Raise ValueError if a
        hyperparameter is not valid."""

    def propose(self, state: S, x: X_contra, rng: np.random.Generator, /) -> Y:
        """Return the proposal for the context `x`, drawing from `rng` where the learner randomises. Changes neither
        `state` nor `x`.

        Where `update` needs more than what was shown, the proposal is a NamedTuple whose first field is what was shown.
        """

    def update(self, state: S, x: X_contra, y: Y, feedback: F_contra, /) -> S:
        """Return the state after `feedback` on the proposal `y` in the context `x`.

        It may overwrite the arrays of `state`, which the caller must no longer use; it copies what it keeps of the
        other arguments.
        """


class World(Protocol[X, Y_contra, F, W]):
    """A simulated environment: a NamedTuple that yields contexts, answers with feedback and knows the regret.

    Types: contexts X, what is shown to the person Y_contra, feedback F, the world's own state W, which only the
    simulation sees.
    """

    def init(self, rng: np.random.Generator, /) -> W:
        """Return the state of the simulated environment before round 0, drawn from `rng`; its arrays are shared with no
        other state.
        """

    def over(self, state: W, t: int, /) -> bool:
        """Return True if the simulation ends before round `t` (0, 1, ...), for example because its data are used up."""

    def context(self, state: W, t: int, rng: np.random.Generator, /) -> X:
        """Return the context of round `t` (0, 1, ...), drawn from `rng`."""

    def respond(self, state: W, x: X, shown: Y_contra, rng: np.random.Generator, /) -> F:
        """Return the simulated person's answer to what was `shown` in the context `x`, drawn from `rng`."""

    def regret(self, state: W, x: X, shown: Y_contra, /) -> float:
        """Return U(x, y*) - U(x, y) in units of utility: how much better the best object y* is than y, which was
        `shown`, in the context `x`."""

    def advance(self, state: W, x: X, shown: Y_contra, feedback: F, /) -> W:
        """Return the state of the simulated environment after a round with the context `x`, what was `shown` and the
        answer `feedback`. It may overwrite the arrays of `state`.
        """


class Round(NamedTuple, Generic[X, Y, F]):
    """A round of a log: what the learner was asked, what it proposed and what the person answered."""

    x: X
    """the context, such as the features of the candidates"""
    y: Y
    """the learner's proposal"""
    feedback: F
    """the person's answer to the proposal"""


@kernel
def step(
    learner: Learner[X, Y, F, S],
    world: World[X, Shown, F, W],
    state: S,
    truth: W,
    t: int,
    context_rng: np.random.Generator,
    feedback_rng: np.random.Generator,
    learner_rng: np.random.Generator,
) -> tuple[S, Round[X, Y, F], float]:
    """Play round `t` of a simulation and return (the learner's next state, the round, its regret); the environment's
    state is not advanced.

    `state` is the state of the learner and `truth` that of the simulated environment `world`. Contexts, answers and
    proposals draw from `context_rng`, `feedback_rng` and `learner_rng`.
    """
    x = world.context(truth, t, context_rng)
    y = learner.propose(state, x, learner_rng)
    feedback = world.respond(truth, x, visible(y), feedback_rng)
    regret = world.regret(truth, x, visible(y))
    return learner.update(state, x, y, feedback), Round(x, y, feedback), regret


@kernel
def run(
    learner: Learner[X, Y, F, S],
    world: World[X, Shown, F, W],
    state: S,
    truth: W,
    regrets: Array,
    start: int,
    context_rng: np.random.Generator,
    feedback_rng: np.random.Generator,
    learner_rng: np.random.Generator,
) -> tuple[S, W, int]:
    """Play rounds start, start + 1, ... of a simulation and write their regrets into `regrets` (n,), from regrets[0]
    on, until it is full or the simulation is over.

    Return (the learner's state, the environment's state, the number of rounds played). `state` is the state of the
    learner and `truth` that of the simulated environment `world`; contexts, answers and proposals draw from
    `context_rng`, `feedback_rng` and `learner_rng`.
    """
    for i in range(regrets.size):
        if world.over(truth, start + i):
            return state, truth, i
        state, played, regrets[i] = step(
            learner, world, state, truth, start + i, context_rng, feedback_rng, learner_rng
        )
        truth = world.advance(truth, played.x, visible(played.y), played.feedback)
    return state, truth, regrets.size


def generators(seed: int) -> Generators:
    """Return three independent random generators made from one `seed`: for contexts, for feedback and for the learner.

    What the learner draws does not change the other two, so on one seed every learner meets the same contexts. Raise
    ValueError if the seed is not a whole number from 0 to 2^128.
    """
    check_count("seed", seed, least=0, most=2**128)
    context_rng, feedback_rng, learner_rng = (
        np.random.default_rng(s) for s in np.random.SeedSequence(int(seed)).spawn(3)
    )
    return context_rng, feedback_rng, learner_rng


def copy_arrays(value: T) -> T:
    """Return a copy of `value` (an array, or nested tuples such as a state or a round) that shares no array with it.

    `update` overwrites the arrays of a state, so copy a state that you want to keep.
    """
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, tuple):
        parts: Any = [copy_arrays(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(tuple(parts))
    return value


def count_numbers(value: object) -> int:
    """Return how many numbers `value` (an array, or nested tuples such as a state) holds."""
    if isinstance(value, tuple):
        return sum(count_numbers(part) for part in value)
    return value.size if isinstance(value, np.ndarray) else 1


_hints = functools.cache(typing.get_type_hints)  # the types that a class declares for its fields


def coerce(value: T) -> T:
    """Return the named tuple `value` with Python's numbers in place of numpy's, and a float in every field declared
    float, also in nested named tuples. Other values are returned as they are.

    So each field has one type: numba infers types from values, and a numpy float32 would make float64 arithmetic less
    precise.
    """
    if not (isinstance(value, tuple) and hasattr(value, "_fields")):
        return value
    hints = _hints(type(value))
    parts: Any = [_coerce_field(part, hints.get(name)) for name, part in zip(value._fields, value)]
    return type(value)(*parts)


def _coerce_field(part: object, declared: object) -> object:
    if isinstance(part, np.integer | np.floating | np.bool_) and not isinstance(part, np.timedelta64):
        part = part.item()
    if declared is float and isinstance(part, int) and not isinstance(part, bool):
        return float(part) if abs(part) < 1e300 else part  # `init` rejects it, naming the field
    return coerce(part)


def check_is_learner(learner: object) -> None:
    """Raise ValueError unless `learner` is an instance with the methods of a `Learner`."""
    lacks = [name for name in ("init", "propose", "update") if not hasattr(learner, name)]
    if isinstance(learner, type) or lacks:
        kind = "a class" if isinstance(learner, type) else f"without {', '.join(lacks)}"
        raise ValueError(
            f"learner: expected one with its hyperparameters, PreferencePerceptron(...), got {learner!r}, {kind}"
        )


def play(
    learner: Learner[X, Y, F, S], world: World[X, Shown, F, W], rounds: int, seed: int
) -> Iterator[tuple[Round[X, Y, F], S]]:
    """Play up to `rounds` rounds of `learner` in the simulated `world`, interpreted, and yield (round, the learner's
    state after it).

    It ends earlier where the world does. The next round overwrites the arrays of the state: keep `copy_arrays(state)`.
    Raise ValueError if the learner, its hyperparameters, `rounds` or `seed` is not valid.
    """
    check_is_learner(learner)
    check_count("rounds", rounds, least=0)
    return _rounds(coerce(learner), coerce(world), rounds, generators(seed))


def _rounds(
    learner: Learner[X, Y, F, S], world: World[X, Shown, F, W], rounds: int, draws: Generators
) -> Iterator[tuple[Round[X, Y, F], S]]:
    context_rng, feedback_rng, learner_rng = draws
    state, truth = learner.init(learner_rng), world.init(context_rng)
    for t in range(rounds):
        if world.over(truth, t):
            return
        state, live, _ = step(learner, world, state, truth, t, context_rng, feedback_rng, learner_rng)
        played = copy_arrays(live)  # the world may overwrite the arrays of x
        truth = world.advance(truth, live.x, visible(live.y), live.feedback)
        yield played, state


def trace(
    learner: Learner[X, Y, F, S], world: World[X, Shown, F, W], rounds: int, seed: int, *, interpreted: bool = False
) -> Array:
    """Return the regret of every round of `learner` in the simulated `world`, in units of utility: (rounds,), or
    shorter where the world ends earlier. All random numbers come from `seed`.

    It computes what `play` does, but compiled by numba, unless `interpreted` is True or the learner or the world has a
    true attribute `must_interpret`, for example because it calls a solver.
    """
    *_, regrets = trace_in_chunks(learner, world, rounds, seed, interpreted=interpreted, chunk=rounds)
    return regrets


def trace_in_chunks(
    learner: Learner[X, Y, F, S],
    world: World[X, Shown, F, W],
    rounds: int,
    seed: int,
    *,
    interpreted: bool = False,
    chunk: int = 100_000,
    loop: Callable[..., Any] | None = None,
) -> Iterator[Array]:
    """Run the simulation of `trace` (same arguments), and yield the regrets of all rounds so far after every `chunk`
    rounds, for progress bars. All arrays that it yields are views of one buffer.

    `loop`, if given, is called in place of `run` or that compiled, and returns what these do."""
    check_is_learner(learner)
    check_count("rounds", rounds, least=0)
    learner, world = coerce(learner), coerce(world)
    context_rng, feedback_rng, learner_rng = generators(seed)
    state, truth = learner.init(learner_rng), world.init(context_rng)
    regrets = np.empty(rounds)
    compiled = loop is None and not (interpreted or must_interpret(learner) or must_interpret(world))
    if compiled:
        from heedful.jit.cache import loop_for

        loop = loop_for(learner, world, state, truth, regrets, 0, context_rng, feedback_rng, learner_rng)
    elif loop is None:
        loop = run
    done = 0
    while True:
        piece = regrets[done : done + max(chunk, 1)]
        after: Any = loop(learner, world, state, truth, piece, done, context_rng, feedback_rng, learner_rng)
        *states, played = after
        done += played
        more = played == piece.size and done < rounds
        if more:  # a compiled loop returns arrays that `state` and `truth` own: copy them while these are alive
            state, truth = copy_arrays(tuple(states)) if compiled else states
        yield regrets[:done]
        if not more:
            return


def must_interpret(rule: object) -> bool:
    """Return True if `rule`, a learner or a simulated environment, says by an attribute `must_interpret` that numba
    cannot compile it.
    """
    return bool(getattr(rule, "must_interpret", False))


def replay(learner: Learner[X, Y, F, S], log: Iterable[Round[X, Y, F]], seed: int) -> S:
    """Return the state of `learner` after `update` with each round of `log`, in order, from its first state for `seed`.

    The rounds are not checked: they come from `play`, or `Session` has checked them.
    """
    learner = coerce(learner)
    state = learner.init(generators(seed)[2])
    for x, y, feedback in log:
        state = learner.update(state, x, y, feedback)
    return state
