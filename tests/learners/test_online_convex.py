"""[J15] Algorithm 3: any update rule, any space. Against its pseudo-code, and against the learners it makes again."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from streams import follow

import naive
from heedful.core.conformance import check_learner, identical
from heedful.core.fold import must_interpret, trace
from heedful.jit.kernel import Floats, scores, squared_norm
from heedful.learners.coactive.online_convex import AdaGrad, OnlineConvex, is_rule
from heedful.learners.coactive.perceptron import ConvexPerceptron, PreferencePerceptron
from heedful.learners.registry import learner_class, make_learner
from heedful.spaces.assignment import Assignment
from heedful.spaces.ranking import Ranking
from heedful.worlds.queries import synthetic_queries
from heedful.worlds.users import Noisy

N = 4


class State(NamedTuple):
    """The weights, and how many steps."""

    w: Floats
    t: int


class Gradient(NamedTuple):
    """w += rate D."""

    rate: float = 1.0

    def init(self, n: int) -> State:
        return State(np.zeros(n), 0)

    def step(self, state: State, D: Floats) -> State:
        state.w[:] += self.rate * D
        return State(state.w, state.t + 1)


class Zinkevich(NamedTuple):
    """The rule of Algorithm 5."""

    radius: float

    def init(self, n: int) -> State:
        return State(np.zeros(n), 0)

    def step(self, state: State, D: Floats) -> State:
        t = state.t + 1
        state.w[:] += 1.0 / np.sqrt(float(t)) * D
        norm = np.sqrt(squared_norm(state.w))
        if norm > self.radius:
            state.w[:] *= self.radius / norm
        return State(state.w, t)


class PassiveAggressive(NamedTuple):
    """PA-I."""

    C: float

    def init(self, n: int) -> State:
        return State(np.zeros(n), 0)

    def step(self, state: State, D: Floats) -> State:
        size = squared_norm(D)
        if size > 0.0:
            short = 1.0 - scores(D.reshape(1, -1), state.w)[0]
            state.w[:] += min(self.C, max(short, 0.0) / size) * D
        return State(state.w, state.t + 1)


class Elsewhere(NamedTuple):
    """The same in Python's lists, which do not compile."""

    rate: float = 1.0

    @property
    def must_interpret(self) -> bool:
        return True

    def init(self, n: int) -> State:
        return State(np.zeros(n), 0)

    def step(self, state: State, D: Floats) -> State:
        return State(np.array([w + self.rate * d for w, d in zip(state.w.tolist(), D.tolist())]), state.t + 1)


@pytest.mark.parametrize("space", [Ranking(5), Ranking(1), Assignment(2)], ids=repr)
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("rule", "plain"),
    [
        (AdaGrad(0.5), naive.adagrad(0.5)),
        (PassiveAggressive(0.3), naive.passive_aggressive(0.3)),
        (Gradient(1.0), lambda w, gradients: w + gradients[-1]),
    ],
    ids=["AdaGrad", "passive-aggressive", "gradient"],
)
def test_pseudo_code(space: Any, exact: bool, rule: Any, plain: Any) -> None:
    """Round for round; proposals too, where the arithmetic is exact."""
    objects = naive.Assignments(2) if isinstance(space, Assignment) else naive.Rankings(space.k)
    exact = exact and isinstance(rule, Gradient) and space == Ranking(1)
    follow(OnlineConvex(N, space, rule), naive.GenericCoactive(N, objects, plain), 3, exact=exact)


@pytest.mark.slow
@pytest.mark.parametrize("interpreted", [True, False])
def test_the_papers_learners_are_rules_too(interpreted: bool) -> None:
    """Algorithms 1 and 5 again, regret for regret; the space and the rule are independent choices."""
    world, _ = synthetic_queries(40, 8, N, noise=1.0, user=Noisy(5))
    for rule, learner in (
        (Gradient(), PreferencePerceptron(N, Ranking(5))),
        (Zinkevich(0.7), ConvexPerceptron(N, Ranking(5), radius=0.7)),
    ):
        ours = trace(OnlineConvex(N, Ranking(5), rule), world, 80, 2, interpreted=interpreted)
        assert ours == pytest.approx(trace(learner, world, 80, 2, interpreted=interpreted), abs=1e-12)


@pytest.mark.slow
def test_a_rule_that_does_not_compile_says_so_and_runs_interpreted() -> None:
    world, _ = synthetic_queries(40, 8, N, noise=1.0, user=Noisy(5))
    slow, fast = OnlineConvex(N, Ranking(5), Elsewhere()), OnlineConvex(N, Ranking(5), Gradient())
    assert must_interpret(slow)
    assert not must_interpret(fast)
    assert identical(trace(slow, world, 60, 3), trace(fast, world, 60, 3))


@pytest.mark.slow
@pytest.mark.parametrize("rule", [Zinkevich(0.5), PassiveAggressive(1.0), Elsewhere()], ids=repr)
def test_what_a_rule_becomes_keeps_every_promise(rule: Any) -> None:
    world, _ = synthetic_queries(40, 8, N, noise=1.0, user=Noisy(5))
    assert [f for f in check_learner(OnlineConvex(N, Ranking(5), rule), world) if not f.kept] == []


def test_adagrad_by_hand() -> None:
    """rate 2: the first step is 2 sign(D); then 2 D_i / sqrt(sum of squares): 2 . 4 / 5 on top of 2."""
    rule = AdaGrad(2.0)
    state = rule.step(rule.init(2), np.array([3.0, 0.0]))
    assert state.w == pytest.approx([2.0, 0.0])
    state = rule.step(state, np.array([4.0, -1.0]))
    assert state.w == pytest.approx([2.0 + 8.0 / 5.0, -2.0])


# ---------------------------------------------------------------------------- by name

OWN = '''
from typing import NamedTuple
import numpy as np

class State(NamedTuple):
    w: np.ndarray

class Step(NamedTuple):
    """A step along D."""
    rate: float = 1.0
    def init(self, n):
        return State(np.zeros(n))
    def step(self, state, D):
        state.w[:] += self.rate * D
        return state
'''


@pytest.mark.slow
def test_a_rule_in_a_file_is_a_learner_by_name(tmp_path: Path) -> None:
    """FILE.py:Class[:A=1] wherever a learner is named; with every parameter of the rule, and no other."""
    file = tmp_path / "rules_of_mine.py"
    file.write_text(OWN)
    learner = make_learner(f"{file}:Step:rate=0.5", n_features=N, space=Ranking(5), radius=1.0)
    assert type(learner) is OnlineConvex
    assert learner.rule.rate == 0.5
    assert learner_class(f"{file}:Step") is OnlineConvex
    world, _ = synthetic_queries(40, 8, N, noise=1.0, user=Noisy(5))
    wanted = trace(OnlineConvex(N, Ranking(5), Gradient(0.5)), world, 60, 4)
    assert identical(trace(learner, world, 60, 4), wanted)
    with pytest.raises(ValueError, match="expected rate, got 'eta'"):
        make_learner(f"{file}:Step:eta=1", n_features=N, space=Ranking(5))
    assert make_learner("online-convex", n_features=N, space=Ranking(5)) == OnlineConvex(N, Ranking(5), AdaGrad())


def test_what_is_a_rule() -> None:
    assert is_rule(Gradient)
    assert not any(map(is_rule, (PreferencePerceptron, OnlineConvex, State, dict, Gradient())))


class NoWeights(NamedTuple):
    size: int = 3

    def init(self, n: int) -> Any:
        return np.zeros(n)

    def step(self, state: Any, D: Floats) -> Any:
        return state


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (Gradient, "rule: expected a NamedTuple with init"),
        (7, "rule: expected a NamedTuple with init"),
        (NoWeights(), "rule: expected a state with weights w of shape"),
        (AdaGrad(-1.0), "rate: expected"),
    ],
)
def test_what_is_no_rule_is_refused(rule: Any, told: str) -> None:
    with pytest.raises(ValueError, match=f"^{told}"):
        OnlineConvex(N, Ranking(5), rule).init(np.random.default_rng(0))
