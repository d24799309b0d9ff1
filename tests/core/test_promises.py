"""Each promise is broken by a learner made to break it, and by nothing else: no check that cannot fail."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pytest

from heedful.core import conformance
from heedful.core.conformance import check_learner
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.spaces.ordinal import Ranks
from heedful.spaces.ranking import Ranking
from heedful.worlds.instances import synthetic_ordinal
from heedful.worlds.queries import synthetic_queries
from heedful.worlds.users import Noisy

N = 4
WORLD = synthetic_queries(40, 8, N, noise=1.0, user=Noisy(5))[0]
CALLS = [0]  # what a careless learner keeps outside its state


class State(NamedTuple):
    w: Any
    t: Any


class Sound(NamedTuple):
    """A perceptron in ten lines: what the others spoil."""

    n_features: int
    space: Any

    def init(self, rng: Any) -> Any:
        return State(np.zeros(self.n_features), 0)

    def propose(self, state: Any, x: Any, rng: Any) -> Any:
        return self.space.argmax(state.w, x)

    def update(self, state: Any, x: Any, y: Any, feedback: Any) -> Any:
        self.space.add_difference(state.w, x, feedback, y, 1.0)
        return State(state.w, state.t + 1)

    def weights(self, state: Any) -> Any:
        return state.w


def changing_types(self: Any, state: Any, x: Any, y: Any, feedback: Any) -> Any:
    self.space.add_difference(state.w, x, feedback, y, 1.0)
    return State(state.w, state.t + 0.5)


def remembering_calls(self: Any, state: Any, x: Any, rng: Any) -> Any:
    CALLS[0] += 1
    return np.roll(self.space.argmax(state.w, x), CALLS[0])


def writing_in_propose(self: Any, state: Any, x: Any, rng: Any) -> Any:
    state.w[0] += 1.0
    return self.space.argmax(state.w, x)


def writing_the_context(self: Any, state: Any, x: Any, y: Any, feedback: Any) -> Any:
    self.space.add_difference(state.w, x, feedback, y, 1.0)
    x[0, 0] = 0.0
    return State(state.w, state.t + 1)


def keeping_the_context(self: Any, state: Any, x: Any, y: Any, feedback: Any) -> Any:
    return State(x[0], state.t + 1)


def drawing_in_update(self: Any, state: Any, x: Any, y: Any, feedback: Any) -> Any:
    return State(state.w + np.random.standard_normal(self.n_features), state.t + 1)  # noqa: NPY002


def refusing_nothing(self: Any, x: Any, n_features: Any) -> Any:
    return np.atleast_2d(np.asarray(x, dtype=float))


def dividing(self: Any, state: Any, x: Any, y: Any, feedback: Any) -> Any:
    return State(state.w, 1 // (state.t - state.t))


def emptying_the_context(self: Any, state: Any, x: Any, rng: Any) -> Any:
    x[:] = 0.0
    return np.arange(len(x))


def worst_first_at_even(self: Any, state: Any, x: Any, rng: Any) -> Any:
    order = self.space.argmax(state.w, x)
    order[[0, 1]] = order[[1, 0]] if order[0] < order[1] else order[[0, 1]]  # depends on how candidates are numbered
    return order


class Credulous(NamedTuple):
    """A space whose doors stand open."""

    k: int = 5
    phi = Ranking.phi
    argmax = Ranking.argmax
    add_difference = Ranking.add_difference
    check = Ranking.check
    check_context = refusing_nothing

    def check_object(self, name: str, x: Any, y: Any) -> Any:
        return np.asarray(y)


def spoiled(**methods: Any) -> Any:
    """`Sound` with some methods replaced."""
    body = {
        name: value
        for name, value in vars(Sound).items()
        if callable(value) and name in ("init", "propose", "update", "weights")
    }
    return type("Spoiled", (NamedTuple_of_two,), {**body, **methods})(N, Ranking(5))


class NamedTuple_of_two(NamedTuple):
    n_features: int
    space: Any


def broken(learner: Any) -> set[str]:
    return {f.promise.split(",")[0] for f in check_learner(learner, WORLD) if f.kept is False}


@pytest.mark.slow
def test_a_sound_learner_keeps_every_promise() -> None:
    assert broken(Sound(N, Ranking(5))) == set()


INTERPRETED = {"must_interpret": property(lambda self: True)}


@pytest.mark.parametrize(
    ("methods", "promise"),
    [
        ({"update": changing_types}, "learner and state are named tuples of numbers and arrays"),
        ({"init": lambda self, rng: [np.zeros(N), 0]}, "learner and state are named tuples of numbers and arrays"),
        ({"update": dividing}, "learner and state are named tuples of numbers and arrays"),
        ({"propose": remembering_calls}, "propose changes nothing"),
        ({"propose": writing_in_propose}, "propose changes nothing"),
        ({"propose": emptying_the_context}, "whatever the learner draws"),
        ({"update": writing_the_context}, "update changes only the state"),
        ({"update": keeping_the_context}, "update changes only the state"),
        ({"update": drawing_in_update}, "the same seed gives the same rounds"),
        ({"propose": worst_first_at_even}, "permuting the candidates permutes the proposal"),
    ],
)
def test_one_cause_breaks_one_promise(methods: dict[str, Any], promise: str) -> None:
    """The one that names it; what fails because of it is said to be open, and by what, and is not counted."""
    findings = list(check_learner(spoiled(**methods, **INTERPRETED), WORLD))
    [found] = [f for f in findings if f.kept is False]
    assert found.promise.split(",")[0] == promise
    for later in (f for f in findings if f.kept is None):
        assert (later.where, later.evidence) == (f"it cannot be told before this is mended: {found.promise}", "")
        assert findings.index(later) > findings.index(found)


def test_two_causes_break_two_promises() -> None:
    learner = spoiled(update=keeping_the_context, **INTERPRETED)._replace(space=Credulous(5))
    assert broken(learner) == {"update changes only the state"}  # whose space is not tried before that is mended
    learner = spoiled(propose=writing_in_propose, **INTERPRETED)._replace(space=Credulous(5))
    assert broken(learner) == {"propose changes nothing", "bad input is refused by name"}


def test_open_doors_are_found() -> None:
    learner = spoiled(**INTERPRETED)._replace(space=Credulous(5))
    assert broken(learner) == {"bad input is refused by name"}


class Graded(NamedTuple):
    """A learner of grades in ten lines: the smallest correction that the last one asked for."""

    n_features: int
    space: Any

    def init(self, rng: Any) -> Any:
        return State(np.zeros(self.n_features), 0)

    def propose(self, state: Any, x: Any, rng: Any) -> Any:
        return min(max(round(3.0 + float(np.sum(state.w * x))), 1), 5)

    def update(self, state: Any, x: Any, y: Any, feedback: Any) -> Any:
        return State(state.w + 0.1 * (feedback - y) * x, state.t + 1)

    must_interpret = INTERPRETED["must_interpret"]


def one_more_each_time(self: Any, state: Any, x: Any, rng: Any) -> int:
    CALLS[0] += 1
    return 1 + CALLS[0] % 5


def ungraded(self: Any, name: str, x: Any, y: Any) -> int:
    return (
        int(y)
        if isinstance(y, int | float | np.integer) and y == y and abs(y) < 100
        else Ranks(5).check_object(name, x, y)
    )


@pytest.mark.parametrize(
    ("on", "methods", "promise"),
    [
        (Graded, {}, None),
        (Graded, {"propose": one_more_each_time}, "propose changes nothing"),
        (
            Graded,
            {"update": lambda self, state, x, y, feedback: State(x, state.t + 1)},
            "update changes only the state",
        ),
        (Ranks, {"check_object": ungraded}, "bad input is refused by name"),
        (Ranks, {"check_context": lambda self, x, n: np.asarray(x, float).ravel()[:n]}, "bad input is refused by name"),
    ],
)
def test_learners_of_grades(on: Any, methods: dict[str, Any], promise: str | None) -> None:
    """A sound one keeps every promise; what is spoiled, in it or in its space, is found."""
    changed = type(on.__name__, (on,), methods)
    learner = changed(N, Ranks(5)) if on is Graded else Graded(N, changed(5))
    findings = list(check_learner(learner, synthetic_ordinal(40, N)[0]))
    where = [f for f in findings if not f.kept and f.promise.startswith(promise or "")]
    assert bool(where) == bool(promise), findings
    assert [f.evidence for f in findings if "permuting" in f.promise] == [
        "a context is one instance: there are no candidates to permute"
    ]


def test_where_an_error_came_from_is_the_learner_s_own_line() -> None:
    """Also where it was raised further in; of a learner of the package the innermost line; of numba what it names."""

    def failing(self: Any, state: Any, x: Any, rng: Any) -> Any:
        return self.space.argmax(state.w[:-1], x)

    line = failing.__code__.co_firstlineno + 1
    found = {f.promise: f.where for f in check_learner(spoiled(propose=failing, **INTERPRETED), WORLD)}
    first = "learner and state are named tuples of numbers and arrays, one type a field"
    assert found[first].endswith(f" (test_promises.py, line {line})")
    built_in = PreferencePerceptron(N + 1, Ranking(5))
    where = next(f.where for f in check_learner(built_in, WORLD) if not f.kept)
    assert re.search(r" \(\w+\.py, line \d+\)$", where)
    assert "test_checks" not in where


@pytest.mark.slow
def test_compiled_unlike_interpreted_is_found(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that only one executor can see through: a global that numba froze when it compiled."""
    file = tmp_path / "frozen_rule.py"
    file.write_text(
        "from typing import Any, NamedTuple\n"
        "import numpy as np\n"
        "BOX = (1.0,)\n"
        "class S(NamedTuple):\n    w: Any\n"
        "class Frozen(NamedTuple):\n"
        "    n_features: int\n    space: Any\n"
        "    def init(self, rng): return S(np.zeros(self.n_features))\n"
        "    def propose(self, state, x, rng): return self.space.argmax(state.w, x)\n"
        "    def update(self, state, x, y, feedback):\n"
        "        self.space.add_difference(state.w, x, feedback, y, BOX[0])\n"
        "        return state\n"
        "    def weights(self, state): return state.w\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import frozen_rule  # type: ignore[import-not-found]

    from heedful.core.fold import trace

    learner = frozen_rule.Frozen(N, Ranking(5))
    assert broken(learner) == set()
    trace(learner, WORLD, 3, 0)
    frozen_rule.BOX = (-1.0,)
    assert broken(learner) == {"compiled equals interpreted"}


class Parts(NamedTuple):
    w: Any
    t: Any


def test_what_became_of_the_types_of_a_state_is_told_by_field_in_words() -> None:
    first = Parts(np.zeros(3), 0)
    assert conformance.describe_types(first, Parts(np.ones(3), 1)) == []
    now = Parts(np.zeros((3, 1), np.int64), 0.5)
    assert conformance.describe_types(first, now) == [
        "w is an array of int64 with 2 axes, and was an array of float64 with 1 axis",
        "t is a float, and was an int",
    ]
    inner = Parts(first, 0)
    assert conformance.describe_types(inner, Parts(Parts(np.zeros(3), 0.5), 0)) == ["w.t is a float, and was an int"]
    assert conformance.describe_types(inner, Parts(3.0, 0)) == ["w is a float, and was a Parts"]
    assert conformance.describe_types((1, 2), (1, "a")) == ["[1] is a str, and was an int"]
    assert conformance.describe_types((1, 2), (1,)) == ["the state is a tuple of 1, and was a tuple of 2"]
