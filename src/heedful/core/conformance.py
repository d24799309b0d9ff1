"""Checks that every learner must pass, such as that a replay of its log gives the same state bit for bit.

`check_learner(learner, world)` runs the learner in the simulated world and reports each check: passed, or where it
failed. The test suite runs it for every learner of the package; `heedful check FILE.py:Class` runs it for a learner of
your own. The file is long because it is one list: each check stands on its own and is read on its own.
"""

from __future__ import annotations

import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from heedful.core.fold import (
    F,
    Learner,
    S,
    Shown,
    W,
    World,
    X,
    Y,
    coerce,
    copy_arrays,
    generators,
    must_interpret,
    play,
    replay,
    trace,
)
from heedful.core.serialization import load_state, save_state
from heedful.core.session import Session
from heedful.core.wording import count
from heedful.jit.kernel import visible

AnyLearner: TypeAlias = Learner[Any, Any, Any, Any]
AnyWorld: TypeAlias = World[Any, Any, Any, Any]
"""The checks treat learners and worlds of all kinds alike, whatever the types of their contexts and states."""

ROUNDS = 40
"""the number of rounds that most checks play"""


class CheckResult(NamedTuple):
    """The result of one check of `check_learner`."""

    promise: str
    """the property that was checked, in words"""
    kept: bool | None
    """True if the check passed, False if it failed; None if it failed from the same cause as an earlier check, which is
    to be fixed first, or found nothing to compare"""
    where: str
    """where and how it failed, which earlier check comes first, or why it tells nothing; empty if it passed"""
    evidence: str
    """what was compared; empty if it did not pass"""


class CheckOpen(Exception):
    """Raised by a check that finds nothing to compare, so that it can tell nothing; the message says why."""


class CheckFailed(Exception):
    """Raised by a check that fails; the message says in which round, and what differs."""


def identical(a: object, b: object) -> bool:
    """Return True if `a` and `b` have the same types and are equal bit for bit, in nested tuples and arrays too. NaN
    equals NaN.
    """
    if isinstance(a, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(identical(p, q) for p, q in zip(a, b))
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and bool(a == b or (a != a and b != b))


def arrays_in(value: object) -> Iterator[np.ndarray[Any, Any]]:
    """Iterate over the arrays in a value: itself, or those of nested tuples. Lists and dicts are not searched."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from arrays_in(part)


def type_signature(value: object) -> object:
    """Return the type of `value` as compiled code sees it: for tuples the types of all fields, for arrays (dtype,
    number of axes)."""
    if isinstance(value, tuple):
        return type(value), *[type_signature(part) for part in value]
    return (value.dtype, value.ndim) if isinstance(value, np.ndarray) else type(value)


def describe_types(before: object, after: object, name: str = "") -> list[str]:
    """Return in words what compiled code sees differently in `after` than in `before`, a line for each field of nested
    tuples; `name` is the field that holds them."""
    if not isinstance(before, tuple) or type(before) is not type(after) or len(before) != len(after):
        difference = f"{name or 'the state'} is {_type_in_words(after)}, and was {_type_in_words(before)}"
        return [] if type_signature(before) == type_signature(after) else [difference]
    fields = getattr(before, "_fields", None) or [f"[{i}]" for i in range(len(before))]
    differences = []
    for field, old, new in zip(fields, before, after):
        differences += describe_types(old, new, f"{name}.{field}" if name and field[0] != "[" else f"{name}{field}")
    return differences


def _type_in_words(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with {count(value.ndim, 'axis', 'axes')}"
    kind = type(value).__name__
    size = f" of {len(value)}" if type(value) is tuple else ""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}{size}"


def _check_types(learner: AnyLearner, world: AnyWorld) -> str:
    """learner and state are named tuples of numbers and arrays, one type a field"""
    learner = coerce(learner)
    first = learner.init(generators(0)[2])
    for name, value in (("the learner", learner), ("its state", first)):
        if not (isinstance(value, tuple) and hasattr(value, "_fields")):
            raise CheckFailed(f"{name} is a {type(value).__name__}, expected a NamedTuple")
    for leaf in _scalars((learner, first)):
        if not isinstance(leaf, int | float | bool | str | np.ndarray):
            raise CheckFailed(f"a field holds a {type(leaf).__name__}: {leaf!r}")
    if any(a.dtype == object for a in arrays_in((learner, first))):
        raise CheckFailed("a field holds an array of objects")
    for t, (_, state) in enumerate(play(learner, world, ROUNDS, 0)):
        if type_signature(state) != type_signature(first):
            raise CheckFailed(f"round {t}: in the state {'; '.join(describe_types(first, state))}")
    return "types of the learner, of its first state and of every later one"


def _scalars(value: object) -> Iterator[object]:
    if isinstance(value, tuple):
        for part in value:
            yield from _scalars(part)
    else:
        yield value


def _check_seed(learner: AnyLearner, world: AnyWorld) -> str:
    """the same seed gives the same rounds"""
    for t, (a, b) in enumerate(zip(play(learner, world, ROUNDS, 1), play(learner, world, ROUNDS, 1))):
        if not identical(a, b):
            raise CheckFailed(f"round {t} differs between two runs on one seed")
    return f"{ROUNDS} rounds, twice"


def _check_arrivals(learner: AnyLearner, world: AnyWorld) -> str:
    """whatever the learner draws, it meets the same arrivals as any other, as long as the same is shown"""
    context_rng, feedback_rng, _ = generators(2)
    untouched = copy_arrays(world)
    truth = untouched.init(context_rng)
    for t, (played, _) in enumerate(play(learner, world, ROUNDS, 2)):
        if untouched.over(truth, t):
            raise CheckFailed(f"round {t} was played, though the world alone was over")
        x = copy_arrays(untouched.context(truth, t, context_rng))
        if not identical(x, played.x):
            raise CheckFailed(f"round {t}: the context is not the one the world gives without the learner")
        untouched.respond(truth, x, visible(played.y), feedback_rng)
        truth = untouched.advance(truth, x, visible(played.y), played.feedback)
    return "contexts against the world's own, given what was shown"


def _check_propose(learner: AnyLearner, world: AnyWorld) -> str:
    """propose changes nothing, and proposes the same again"""
    for t, (played, state) in enumerate(play(learner, world, ROUNDS, 3)):
        before, x = copy_arrays(state), copy_arrays(played.x)
        a = coerce(learner).propose(state, x, np.random.default_rng(t))
        if not identical(state, before):
            raise CheckFailed(f"round {t}: propose changed the state")
        if not identical(x, played.x):
            raise CheckFailed(f"round {t}: propose changed the context")
        if any(np.shares_memory(p, q) for p in arrays_in(a) for q in arrays_in((state, x))):
            raise CheckFailed(f"round {t}: the proposal shares memory with the state or the context")
        if not identical(a, coerce(learner).propose(state, x, np.random.default_rng(t))):
            raise CheckFailed(f"round {t}: on the same state, context and draws, another proposal")
    return "state and context before and after, twice"


def _check_update(learner: AnyLearner, world: AnyWorld) -> str:
    """update changes only the state, and keeps no array of what it is given"""
    learner = coerce(learner)
    hyperparameters = copy_arrays(learner)
    context_rng, feedback_rng, learner_rng = generators(4)
    state, truth = learner.init(learner_rng), world.init(context_rng)
    for t in range(ROUNDS):
        if world.over(truth, t):
            break
        x = copy_arrays(world.context(truth, t, context_rng))
        y = learner.propose(state, x, learner_rng)
        arguments = x, y, world.respond(truth, x, visible(y), feedback_rng)
        before = copy_arrays(arguments)
        state = learner.update(state, *arguments)
        if not identical(arguments, before):
            raise CheckFailed(f"round {t}: update changed the context, the proposal or the feedback")
        if not identical(learner, hyperparameters):
            raise CheckFailed(f"round {t}: update changed the hyperparameters")
        if any(np.shares_memory(p, q) for p in arrays_in(state) for q in arrays_in(arguments)):
            raise CheckFailed(f"round {t}: the state keeps an array of the round instead of a copy")
        truth = world.advance(truth, x, visible(y), before[2])
    return "context, proposal, feedback and hyperparameters before and after"


def _check_replay(learner: AnyLearner, world: AnyWorld) -> str:
    """replaying the log gives the state, bit for bit"""
    log, state = [], None
    for played, live in play(learner, world, ROUNDS, 5):
        log.append(played)
        state = copy_arrays(live)
    if not identical(replay(learner, log, 5), state):
        raise CheckFailed("the state after the replay is not the state after the rounds")
    return f"{len(log)} rounds"


def _space(learner: AnyLearner) -> Any:
    """Return the object that validates a learner's contexts and feedback: its space, or the learner itself."""
    return getattr(learner, "space", learner)


def _session_world(learner: AnyLearner, world: AnyWorld, seed: int, abandon: bool) -> tuple[list[Any], Any]:
    """Return (what a `Session` shows in each round of `world`, its last state); with `abandon`, every answered proposal
    comes after two that are not answered."""
    context_rng, feedback_rng, _ = generators(seed)
    session, truth = Session(learner, seed), world.init(context_rng)
    another = getattr(_space(learner), "another_context", lambda x: x[::-1])
    shown = []
    for t in range(ROUNDS):
        if world.over(truth, t):
            break
        x = world.context(truth, t, context_rng)
        if abandon:
            session.propose(x)
            session.propose(another(x))
        y = session.propose(x)
        shown.append(y)
        feedback = world.respond(truth, x, y, feedback_rng)
        session.learn(feedback)
        truth = world.advance(truth, x, y, feedback)
    return shown, session.state


def _check_abandoned(learner: AnyLearner, world: AnyWorld) -> str:
    """proposals that nobody answers leave no trace"""
    shown, state = _session_world(learner, world, 6, True)
    shown_without, state_without = _session_world(learner, world, 6, False)
    if not identical(tuple(shown), tuple(shown_without)):
        raise CheckFailed("other objects are shown after proposals that nobody answered")
    if not identical(state, state_without):
        raise CheckFailed("the state is another after proposals that nobody answered")
    return "a session with two abandoned proposals before each answered one"


def _check_snapshot(learner: AnyLearner, world: AnyWorld) -> str:
    """a state survives a file, and a restart from it changes nothing"""
    log, states = [], []
    for played, live in play(learner, world, ROUNDS, 7):
        log.append(played)
        states.append(copy_arrays(live))
    half = len(log) // 2
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state.safetensors"
        save_state(file, learner, states[half])
        state = load_state(file, learner)
    if not identical(state, states[half]):
        raise CheckFailed("what was read is not what was written")
    for x, y, feedback in log[half + 1 :]:
        state = coerce(learner).update(state, x, y, feedback)
    if not identical(state, states[-1]):
        raise CheckFailed("going on from the file ends in another state")
    return f"written after round {half}, folded to round {len(log) - 1}"


def _check_compiled(learner: AnyLearner, world: AnyWorld) -> str:
    """compiled equals interpreted, bit for bit"""
    if must_interpret(learner):
        return "says that it does not compile"
    # Interpreted first: an index outside of an array is an error there, and compiled it may end the process.
    b = trace(learner, world, ROUNDS, 8, interpreted=True)
    a = trace(learner, world, ROUNDS, 8)
    if not identical(a, b):
        where = int(np.argmax(a != b)) if a.size == b.size else min(a.size, b.size)
        raise CheckFailed(f"round {where}: another regret compiled than interpreted")
    return f"the regret of {a.size} rounds"


def _check_validation(learner: Any, world: AnyWorld) -> str:
    """bad input is refused by name, and changes nothing"""
    context_rng, feedback_rng, _ = generators(9)
    truth = world.init(context_rng)
    x = copy_arrays(world.context(truth, 0, context_rng))
    session = Session(learner, 9)
    space = _space(learner)
    refused = 0

    def expect_error(name: str, expected: type[Exception], f: Callable[[Any], object], value: object) -> None:
        nonlocal refused
        before = session.state
        try:
            f(value)
        except expected as error:
            if name not in str(error):
                raise CheckFailed(f"{value!r}: the error does not name {name}: {error}") from None
        except Exception as error:
            raise CheckFailed(
                f"{value!r} for {name}: {type(error).__name__} instead of {expected.__name__}: {error}"
            ) from None
        else:
            raise CheckFailed(f"{name}: {value!r} was accepted")
        if not identical(before, session.state):
            raise CheckFailed(f"{name}: {value!r} was refused, and changed the state")
        refused += 1

    for field in learner._fields:
        if isinstance(getattr(learner, field), float):  # NaN is never fit
            unfit = learner._replace(**{field: np.nan})
            expect_error(field, ValueError, lambda learner: coerce(learner).init(generators(9)[2]), unfit)
    expect_error("learn", LookupError, session.learn, np.arange(2))
    for bad in getattr(space, "invalid_contexts", _invalid_candidates)(x):
        expect_error("x", ValueError, session.propose, bad)
    y = session.propose(x)
    for bad in getattr(space, "invalid_objects", _invalid_choices)(x, y):
        expect_error("feedback", ValueError, session.learn, bad)
    feedback = copy_arrays(world.respond(truth, x, y, feedback_rng))
    session.learn(feedback)
    expect_error("learn", LookupError, session.learn, feedback)
    return f"{refused} kinds of bad input"


def _invalid_candidates(x: Any) -> list[Any]:
    """Return invalid contexts made from m valid candidates `x` (m x N) of N features, each of which a session must
    reject.

    A space with other contexts has a method `invalid_contexts` in place of this.
    """
    spoiled = x.copy()
    spoiled.flat[-1] = np.nan
    return [spoiled, x[..., :-1], x[0], np.empty((0, *x.shape[1:])), "text", None, [[1.0, "a"]]]


def _invalid_choices(x: Any, y: Any) -> list[Any]:
    """Return invalid feedback made from chosen candidates `y` (indices of rows of `x`), each of which a session must
    reject.

    A space with other objects has a method `invalid_objects` in place of this.
    """
    return [np.append(y, y[0]), y + len(x), y - len(x), y[:0], y.astype(float) + 0.5, "text", None, [[0, 1]]]


def _check_permutation(learner: AnyLearner, world: AnyWorld) -> str:
    """permuting the candidates permutes the proposal, where nothing ties"""
    learner = coerce(learner)
    first = [played.x for played, _ in play(learner, world, 1, 10)]
    if any(isinstance(x, tuple) for x in first):
        return "what is on offer is known by its number: there are no candidates to permute"
    if any(x.ndim == 1 for x in first):
        return "a context is one instance: there are no candidates to permute"
    if any(x.ndim > 2 for x in first):
        return "what is shown is made of parts: there are no candidates with a score each"
    if not hasattr(learner, "weights"):
        return "has no weights, so nobody can say what ties"
    compared = 0
    for t, (played, state) in enumerate(play(learner, world, ROUNDS, 10)):
        x = played.x
        if not np.any(learner.weights(state)):
            continue
        x = np.ascontiguousarray(x[_without_ties(x @ learner.weights(state))])
        if len(x) < 2:
            continue
        order = np.random.default_rng(t).permutation(len(x))
        a = visible(learner.propose(state, x, np.random.default_rng(t)))
        b = visible(learner.propose(state, np.ascontiguousarray(x[order]), np.random.default_rng(t)))
        if not identical(a, order[b]):
            raise CheckFailed(
                f"round {t}: shown {a.tolist()}, but {order[b].tolist()} when the candidates are permuted"
            )
        compared += 1
    if not compared:
        raise CheckOpen(f"it cannot be told: in none of {ROUNDS} rounds did the weights tell two candidates apart")
    return f"{compared} rounds, without the candidates that tie with others"


def _without_ties(scores: npt.NDArray[np.float64]) -> list[int]:
    """Return, in order, the indices of one candidate of each run of candidates whose `scores` (m,) tie."""
    kept, last = list[int](), -np.inf
    for j in scores.argsort(kind="stable").tolist():
        if scores[j] - last >= 1e-9:
            kept, last = [*kept, j], scores[j]
    return sorted(kept)


CHECKS: tuple[Callable[[AnyLearner, AnyWorld], str], ...] = (
    _check_types,
    _check_propose,
    _check_update,
    _check_seed,
    _check_arrivals,
    _check_replay,
    _check_abandoned,
    _check_snapshot,
    _check_compiled,
    _check_validation,
    _check_permutation,
)


_AGAIN = (_check_replay, _check_abandoned, _check_snapshot, _check_compiled, _check_permutation)
"""the checks that compare two runs, or a run with one that continues from a saved state"""
_BRING_DOWN: dict[Callable[[AnyLearner, AnyWorld], str], tuple[Callable[[AnyLearner, AnyWorld], str], ...]] = {
    _check_types: CHECKS,
    _check_propose: (_check_seed, _check_arrivals, *_AGAIN),
    _check_update: (_check_seed, _check_arrivals, *_AGAIN, _check_validation),
    _check_seed: _AGAIN,
    _check_arrivals: _AGAIN,
    _check_replay: (_check_abandoned, _check_snapshot, _check_compiled),
}
"""for each check, the checks that fail, too, where it fails"""


def check_learner(learner: Learner[X, Y, F, S], world: World[X, Shown, F, W]) -> Iterator[CheckResult]:
    """Run all checks of `learner` in `world`, a simulation with the learner's kind of context and feedback; yield each
    result as soon as it is known.

    One cause counts as one failure: a check that fails because an earlier one did, or with the same error at the same
    place in the code, has `kept` None.
    """
    broken: list[Callable[[AnyLearner, AnyWorld], str]] = []
    raised: dict[tuple[str, str], str] = {}
    for check in CHECKS:
        name, cause, decided = _name(check), "", True
        try:
            yield CheckResult(name, True, "", check(learner, copy_arrays(world)))
            continue
        except CheckOpen as open_:
            where, decided = str(open_), False
        except CheckFailed as failed:
            where = str(failed)
        except Exception as error:
            message = str(error).splitlines()[0] if str(error) else ""
            place = _place(error, learner)
            where = f"{type(error).__name__}: {message}{place}"
            cause = raised.setdefault((type(error).__name__, place), name)
        before = [_name(other) for other in broken if check in _BRING_DOWN.get(other, ())]
        before += [cause] if cause and cause != name else []
        if before:
            yield CheckResult(name, None, f"it cannot be told before this is mended: {before[0]}", "")
        elif not decided:
            yield CheckResult(name, None, where, "")
        else:
            broken.append(check)
            yield CheckResult(name, False, where, "")


def _name(check: Callable[[AnyLearner, AnyWorld], str]) -> str:
    return (check.__doc__ or "").strip()


def _place(error: Exception, learner: Any) -> str:
    """Return ` (file, line)` of the innermost frame in the file of `learner`, else of the place that numba's message
    names last, else of the innermost frame."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    kinds = type(learner), type(getattr(learner, "rule", learner))
    files = {getattr(sys.modules.get(cls.__module__), "__file__", None) for cls in kinds}
    learner_frames = [frame for frame in frames if frame[0] in files]
    message_frames = re.findall(r'File "(.+)", line (\d+)', str(error)) if not learner_frames else []
    file, line = (learner_frames or message_frames or frames)[-1]
    return f" ({PurePath(file).name}, line {line})"
