"""What every learner promises, as a list; usable on other people's learners.

`promises(learner, world)` plays the learner in the world and says of each promise whether it is kept, and where
it breaks. The test suite runs them over every learner; `heedful check FILE.py:Class` over one's own.
"""

from __future__ import annotations

import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from heedful.core.fold import Session, coerced, copied, generators, must_interpret, play, replay, trace
from heedful.core.serialization import load_state, save_state
from heedful.jit.kernel import shown

ROUNDS = 40


class Finding(NamedTuple):
    """What came of one promise."""

    promise: str
    kept: bool | None
    """False where it is broken; None where it failed too, but by a cause that a promise before it tells of: mend that
    first, and it may be kept"""
    where: str
    """where it breaks, or which promise tells of the cause; empty where it is kept"""
    evidence: str
    """what was looked at; empty where it is not kept"""


class Broken(Exception):
    """A promise is broken; the message says where."""


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal bit for bit, at any depth, in the same types."""
    if isinstance(a, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(same(p, q) for p, q in zip(a, b))
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and bool(a == b or (a != a and b != b))


def arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Every array in a value, at any depth."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from arrays(part)


def kind(value: Any) -> Any:
    """The type of a value as compiled code sees it: of tuples field by field, of arrays the dtype and the axes."""
    if isinstance(value, tuple):
        return type(value), *[kind(part) for part in value]
    return (value.dtype, value.ndim) if isinstance(value, np.ndarray) else type(value)


def _plain(learner: Any, world: Any) -> str:
    """learner and state are named tuples of numbers and arrays, one type a field"""
    learner = coerced(learner)
    first = learner.init(generators(0)[2])
    for name, value in (("the learner", learner), ("its state", first)):
        if not (isinstance(value, tuple) and hasattr(value, "_fields")):
            raise Broken(f"{name} is a {type(value).__name__}, wanted a NamedTuple")
    for leaf in _scalars((learner, first)):
        if not isinstance(leaf, int | float | bool | str | np.ndarray):
            raise Broken(f"a field holds a {type(leaf).__name__}: {leaf!r}")
    if any(a.dtype == object for a in arrays((learner, first))):
        raise Broken("a field holds an array of objects")
    for t, (_, state) in enumerate(play(learner, world, ROUNDS, 0)):
        if kind(state) != kind(first):
            raise Broken(f"round {t}: the state's types became {kind(state)}, they were {kind(first)}")
    return "types of the learner, of its first state and of every later one"


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _scalars(part)
    else:
        yield value


def _same_seed(learner: Any, world: Any) -> str:
    """the same seed gives the same rounds"""
    for t, (a, b) in enumerate(zip(play(learner, world, ROUNDS, 1), play(learner, world, ROUNDS, 1))):
        if not same(a, b):
            raise Broken(f"round {t} differs between two runs on one seed")
    return f"{ROUNDS} rounds, twice"


def _arrivals(learner: Any, world: Any) -> str:
    """whatever the learner draws, it meets the same arrivals as any other, as long as the same is shown"""
    asked, answered, _ = generators(2)
    untouched = copied(world)
    truth = untouched.init(asked)
    for t, (played, _) in enumerate(play(learner, world, ROUNDS, 2)):
        if untouched.over(truth, t):
            raise Broken(f"round {t} was played, though the world alone was over")
        x = copied(untouched.context(truth, t, asked))
        if not same(x, played.x):
            raise Broken(f"round {t}: the context is not the one the world gives without the learner")
        untouched.respond(truth, x, shown(played.y), answered)
        truth = untouched.advance(truth, x, shown(played.y), played.feedback)
    return "contexts against the world's own, given what was shown"


def _propose_is_pure(learner: Any, world: Any) -> str:
    """propose changes nothing, and proposes the same again"""
    for t, (played, state) in enumerate(play(learner, world, ROUNDS, 3)):
        before, x = copied(state), copied(played.x)
        a = coerced(learner).propose(state, x, np.random.default_rng(t))
        if not same(state, before):
            raise Broken(f"round {t}: propose changed the state")
        if not same(x, played.x):
            raise Broken(f"round {t}: propose changed the context")
        if any(np.shares_memory(p, q) for p in arrays(a) for q in arrays((state, x))):
            raise Broken(f"round {t}: the proposal shares memory with the state or the context")
        if not same(a, coerced(learner).propose(state, x, np.random.default_rng(t))):
            raise Broken(f"round {t}: on the same state, context and draws, another proposal")
    return "state and context before and after, twice"


def _update_is_local(learner: Any, world: Any) -> str:
    """update changes only the state, and keeps no array of what it is given"""
    learner = coerced(learner)
    hyperparameters = copied(learner)
    asked, answered, drawn = generators(4)
    state, truth = learner.init(drawn), world.init(asked)
    for t in range(ROUNDS):
        if world.over(truth, t):
            break
        x = copied(world.context(truth, t, asked))
        y = learner.propose(state, x, drawn)
        given = x, y, world.respond(truth, x, shown(y), answered)
        before = copied(given)
        state = learner.update(state, *given)
        if not same(given, before):
            raise Broken(f"round {t}: update changed the context, the proposal or the feedback")
        if not same(learner, hyperparameters):
            raise Broken(f"round {t}: update changed the hyperparameters")
        if any(np.shares_memory(p, q) for p in arrays(state) for q in arrays(given)):
            raise Broken(f"round {t}: the state keeps an array of the round instead of a copy")
        truth = world.advance(truth, x, shown(y), before[2])
    return "context, proposal, feedback and hyperparameters before and after"


def _replay_is_the_fold(learner: Any, world: Any) -> str:
    """replaying the log gives the state, bit for bit"""
    log, state = [], None
    for played, live in play(learner, world, ROUNDS, 5):
        log.append(played)
        state = copied(live)
    if not same(replay(learner, log, 5), state):
        raise Broken("the state after the replay is not the state after the rounds")
    return f"{len(log)} rounds"


def _space(learner: Any) -> Any:
    """What knows the contexts and objects of a learner: its space, or the learner itself."""
    return getattr(learner, "space", learner)


def _session_world(learner: Any, world: Any, seed: int, abandon: bool) -> tuple[list[Any], Any]:
    """Rounds of a session in the world: (what was shown, the last state); with proposals nobody answers, or not."""
    asked, answered, _ = generators(seed)
    session, truth = Session(learner, seed), world.init(asked)
    another = getattr(_space(learner), "another_context", lambda x: x[::-1])
    seen = []
    for t in range(ROUNDS):
        if world.over(truth, t):
            break
        x = world.context(truth, t, asked)
        if abandon:
            session.propose(x)
            session.propose(another(x))
        y = session.propose(x)
        seen.append(y)
        feedback = world.respond(truth, x, y, answered)
        session.learn(feedback)
        truth = world.advance(truth, x, y, feedback)
    return seen, session.state


def _abandoned(learner: Any, world: Any) -> str:
    """proposals that nobody answers leave no trace"""
    if not same(tuple(_session_world(learner, world, 6, True)[0]), tuple(_session_world(learner, world, 6, False)[0])):
        raise Broken("other objects are shown after proposals that nobody answered")
    if not same(_session_world(learner, world, 6, True)[1], _session_world(learner, world, 6, False)[1]):
        raise Broken("the state is another after proposals that nobody answered")
    return "a session with two abandoned proposals before each answered one"


def _survives(learner: Any, world: Any) -> str:
    """a state survives a file, and a restart from it changes nothing"""
    log, states = [], []
    for played, live in play(learner, world, ROUNDS, 7):
        log.append(played)
        states.append(copied(live))
    half = len(log) // 2
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state.safetensors"
        save_state(file, learner, states[half])
        state = load_state(file, learner)
    if not same(state, states[half]):
        raise Broken("what was read is not what was written")
    for x, y, feedback in log[half + 1 :]:
        state = coerced(learner).update(state, x, y, feedback)
    if not same(state, states[-1]):
        raise Broken("going on from the file ends in another state")
    return f"written after round {half}, folded to round {len(log) - 1}"


def _compiled(learner: Any, world: Any) -> str:
    """compiled equals interpreted, bit for bit"""
    if must_interpret(learner):
        return "says that it does not compile"
    # Interpreted first: an index outside of an array is an error there, and compiled it may end the process.
    b = trace(learner, world, ROUNDS, 8, interpreted=True)
    a = trace(learner, world, ROUNDS, 8)
    if not same(a, b):
        where = int(np.argmax(a != b)) if a.size == b.size else min(a.size, b.size)
        raise Broken(f"round {where}: another regret compiled than interpreted")
    return f"the regret of {a.size} rounds"


def _doors(learner: Any, world: Any) -> str:
    """bad input is refused by name, and changes nothing"""
    asked, answered, _ = generators(9)
    truth = world.init(asked)
    x = copied(world.context(truth, 0, asked))
    session = Session(learner, 9)
    space = _space(learner)
    tried = 0

    def refused(name: str, wanted: type[Exception], f: Callable[[Any], Any], value: Any) -> None:
        nonlocal tried
        before = session.state
        try:
            f(value)
        except wanted as error:
            if name not in str(error):
                raise Broken(f"{value!r}: the error does not name {name}: {error}") from None
        except Exception as error:
            raise Broken(
                f"{value!r} for {name}: {type(error).__name__} instead of {wanted.__name__}: {error}"
            ) from None
        else:
            raise Broken(f"{name}: {value!r} was accepted")
        if not same(before, session.state):
            raise Broken(f"{name}: {value!r} was refused, and changed the state")
        tried += 1

    refused("learn", LookupError, session.learn, np.arange(2))
    for bad in getattr(space, "spoiled_contexts", _spoiled_candidates)(x):
        refused("x", ValueError, session.propose, bad)
    y = session.propose(x)
    for bad in getattr(space, "spoiled_objects", _spoiled_choices)(x, y):
        refused("feedback", ValueError, session.learn, bad)
    feedback = copied(world.respond(truth, x, y, answered))
    session.learn(feedback)
    refused("learn", LookupError, session.learn, feedback)
    return f"{tried} kinds of bad input"


def _spoiled_candidates(x: Any) -> list[Any]:
    """Contexts made of candidates x that no door may let in; a space of other contexts has `spoiled_contexts`."""
    spoiled = x.copy()
    spoiled.flat[-1] = np.nan
    return [spoiled, x[..., :-1], x[0], np.empty((0, *x.shape[1:])), "text", None, [[1.0, "a"]]]


def _spoiled_choices(x: Any, y: Any) -> list[Any]:
    """Feedback made of chosen candidates y that no door may let in; a space of others has `spoiled_objects`."""
    return [np.append(y, y[0]), y + len(x), y - len(x), y[:0], y.astype(float) + 0.5, "text", None, [[0, 1]]]


def _permutes(learner: Any, world: Any) -> str:
    """permuting the candidates permutes the proposal, where nothing ties"""
    learner = coerced(learner)
    first = [played.x for played, _ in play(learner, world, 1, 10)]
    if any(isinstance(x, tuple) for x in first):
        return "what is on offer is known by its number: there are no candidates to permute"
    if any(x.ndim == 1 for x in first):
        return "a context is one instance: there are no candidates to permute"
    if not hasattr(learner, "weights"):
        return "has no weights, so nobody can say what ties"
    if getattr(getattr(learner, "space", None), "fixed_rows", False):
        return "the rows of its contexts have places of their own"
    compared = 0
    for t, (played, state) in enumerate(play(learner, world, ROUNDS, 10)):
        x = played.x
        if x.ndim != 2 or not np.any(learner.weights(state)):
            continue
        scores = np.sort(x @ learner.weights(state))
        if np.any(np.diff(scores) < 1e-9):
            continue
        order = np.random.default_rng(t).permutation(len(x))
        a = shown(learner.propose(state, x, np.random.default_rng(t)))
        b = shown(learner.propose(state, np.ascontiguousarray(x[order]), np.random.default_rng(t)))
        if not same(a, order[b]):
            raise Broken(f"round {t}: shown {a.tolist()}, but {order[b].tolist()} when the candidates are permuted")
        compared += 1
    return f"{compared} rounds without ties"


PROMISES: tuple[Callable[[Any, Any], str], ...] = (
    _plain,
    _propose_is_pure,
    _update_is_local,
    _same_seed,
    _arrivals,
    _replay_is_the_fold,
    _abandoned,
    _survives,
    _compiled,
    _doors,
    _permutes,
)


_AGAIN = (_replay_is_the_fold, _abandoned, _survives, _compiled, _permutes)
"""What compares two runs, or a run with what was kept of it."""
_BRING_DOWN: dict[Callable[[Any, Any], str], tuple[Callable[[Any, Any], str], ...]] = {
    _plain: PROMISES,
    _propose_is_pure: (_same_seed, _arrivals, *_AGAIN),
    _update_is_local: (_same_seed, _arrivals, *_AGAIN, _doors),
    _same_seed: _AGAIN,
    _arrivals: _AGAIN,
    _replay_is_the_fold: (_abandoned, _survives, _compiled),
}
"""What else fails where one of these is broken, whether it is sound or not."""


def promises(learner: Any, world: Any) -> Iterator[Finding]:
    """Each promise in turn, for a learner in a world that belongs to it. One cause is one broken promise: what fails
    after it because of it, or with the same error at the same place, is not counted once more."""
    broken: list[Callable[[Any, Any], str]] = []
    raised: dict[tuple[str, str], str] = {}
    for check in PROMISES:
        name, cause = _name(check), ""
        try:
            yield Finding(name, True, "", check(learner, copied(world)))
            continue
        except Broken as failed:
            where = str(failed)
        except Exception as error:
            told = str(error).splitlines()[0] if str(error) else ""
            place = _place(error, learner)
            where = f"{type(error).__name__}: {told}{place}"
            cause = raised.setdefault((type(error).__name__, place), name)
        before = [_name(other) for other in broken if check in _BRING_DOWN.get(other, ())]
        before += [cause] if cause and cause != name else []
        if before:
            yield Finding(name, None, f"it cannot be told before this is mended: {before[0]}", "")
        else:
            broken.append(check)
            yield Finding(name, False, where, "")


def _name(check: Callable[[Any, Any], str]) -> str:
    return (check.__doc__ or "").strip()


def _place(error: Exception, learner: Any) -> str:
    """` (file, line)` of the innermost frame of the learner's own file that an error passed, else of the innermost of
    all; of an error of numba, which has no frame there, the place that it names last."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    kinds = type(learner), type(getattr(learner, "rule", learner))
    files = {getattr(sys.modules.get(cls.__module__), "__file__", None) for cls in kinds}
    own = [frame for frame in frames if frame[0] in files]
    named = re.findall(r'File "(.+)", line (\d+)', str(error)) if not own else []
    file, line = (own or named or frames)[-1]
    return f" ({PurePath(file).name}, line {line})"
