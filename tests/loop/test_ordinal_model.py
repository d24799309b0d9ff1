"""The fold of a grading loop: what is predicted, what grades teach, what is a person's own; by hand, against [P01]."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from budget import examples
from heedful.core.conformance import identical
from heedful.learners.ordinal.ordinal_logistic import Offset, OrdinalLogistic
from heedful.learners.registry import learner_class
from heedful.loop.interactions.ordinal.learners import grader, is_grading, spec_with_grades
from heedful.loop.interactions.ordinal.model import GradingModel
from heedful.loop.model import Context, View
from heedful.loop.records import DecisionRecord, FeedbackRecord
from loops import plain_manifest, specs

N = 3  # two features and the caller's score
K = 5
NONE = np.zeros((0, N))
DIRECTED = ["prank:n_ranks=5", "ordinal-logistic:n_ranks=5"]


def model(spec: str, shrink: float = 0.0) -> GradingModel:
    return GradingModel(grader(spec, N, shrink), plain_manifest(shrink=shrink))


def learn(m: GradingModel, x: Any, grades: dict[int, float], shown: Any = None, **more: Any) -> bool:
    """One piece of feedback: grades by candidate."""
    record = DecisionRecord(shown=tuple(range(len(x))) if shown is None else tuple(shown))
    context = Context(record, np.array(x, float), more.get("person"))
    feedback = FeedbackRecord("grade", list(grades), [float(g) for g in grades.values()])
    return m.teach(context, feedback, NONE, more.get("version", 1))


def predicted(m: GradingModel, x: Any, person: str | None = None) -> list[int]:
    own = None if person is None else m.people.get(person)
    return m.grades(View(m, m.shared, own), np.array(x, float)).tolist()  # type: ignore[no-any-return]


def order(m: GradingModel, x: Any, person: str | None = None) -> list[int]:
    own = None if person is None else m.people.get(person)
    return m.order(View(m, m.shared, own), np.array(x, float)).tolist()  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------- what all share


def test_prank_by_hand() -> None:
    """k = 3. w = 0, b = (0, 0): every grade is 3. The grade 1 of x = (1, 0, 0): y_r = -1, -1, both margins 0: w = -2x,
    b = (1, 1). Then x scores -2 < 1: grade 1; -x scores 2 >= 1: grade 3. The grade 2 of -x: y_r = 1, -1; 2 - 1 > 0 is
    right for b_1 and wrong for b_2: w = -2x + x = -x, b = (1, 2). -x scores 1: 1 >= 1 and below 2, grade 2."""
    m = model("prank:n_ranks=3")
    x = [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]
    assert predicted(m, x) == [3, 3]
    assert learn(m, x, {0: 1})
    assert (m.shared.w.tolist(), m.shared.b.tolist()) == ([-2.0, 0.0, 0.0], [1.0, 1.0])
    assert predicted(m, x) == [1, 3]
    assert order(m, x) == [1, 0]
    assert learn(m, x, {1: 2})
    assert (m.shared.w.tolist(), m.shared.b.tolist()) == ([-1.0, 0.0, 0.0], [1.0, 2.0])
    assert predicted(m, x) == [1, 2]
    assert m.between(m.shared, 1) == (None, 1.0)
    assert m.between(m.shared, 2) == (1.0, 2.0)
    assert m.between(m.shared, 3) == (2.0, None)


ORACLES: dict[str, Any] = {
    "prank:n_ranks=5": lambda: naive.PRank(N, K),
    "multiclass:n_ranks=5": lambda: naive.MulticlassPerceptron(N + 1, K),
    "constant-rank:n_ranks=5": lambda: naive.ConstantRank(K),
}


@pytest.mark.slow
@pytest.mark.parametrize("spec", sorted(ORACLES))
@examples(60)
@given(
    rounds=st.lists(
        st.tuples(
            st.lists(st.lists(st.integers(-2, 2), min_size=N, max_size=N), min_size=1, max_size=4),
            st.lists(st.integers(1, K), min_size=4, max_size=4),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_the_model_predicts_as_the_papers_learner_round_for_round(spec: str, rounds: Any) -> None:
    """On whole numbers, so with ties; what has no thresholds sees a feature more, which is 1."""
    m, told = model(spec), ORACLES[spec]()
    for x, grades in rounds:
        seen = [[*row, *([1] if not spec.startswith("prank") else [])] for row in x]
        wanted = [told.predict(row) for row in seen]
        assert predicted(m, x) == wanted
        priors = [row[-1] for row in x]
        score = told.score if spec.startswith("prank") else lambda row: 0
        assert order(m, x) == sorted(range(len(x)), key=lambda j: (-wanted[j], -score(seen[j]), -priors[j], j))
        assert learn(m, x, dict(enumerate(grades[: len(x)])))
        for row, grade in zip(seen, grades):
            told.update(row, grade)


@pytest.mark.parametrize("n", [1, 2, 7, 9, 130])
def test_many_directions_predict_as_the_learner_does_row_by_row(n: int) -> None:
    """Ties and what is no number included: they are the lowest grade's."""
    rng = np.random.default_rng(n)
    m = GradingModel(grader("multiclass:n_ranks=40", n, 0.0), plain_manifest())
    own = np.random.default_rng(0)
    for spread in (0, 1, 3, 1000):
        m.shared.W[:] = rng.integers(-spread, spread + 1, m.shared.W.shape)
        if spread == 1000:
            m.shared.W[:] += rng.standard_normal(m.shared.W.shape)
        x = rng.integers(-1, 2, (60, n)).astype(float) if spread < 1000 else rng.standard_normal((60, n))
        rows = np.column_stack([x, np.ones(60)])
        wanted = [m.learner.propose(m.shared, row, own) for row in rows]
        assert m.grades(m.view(), x).tolist() == wanted
        assert len(set(wanted)) > 1 or spread == 0
    m.shared.W[3, -1] = np.nan
    assert m.grades(m.view(), x).tolist() == [m.learner.propose(m.shared, row, own) for row in rows]
    assert m.grades(m.view(), x[:0]).tolist() == []


@pytest.mark.parametrize(("weight", "gone"), [(9e99, False), (-2e100, True), (np.inf, True), (np.nan, True)])
def test_overflown_weights_are_said(weight: float, gone: bool) -> None:
    m = model("widrow-hoff:n_ranks=5,eta=0.5")
    assert m.describe_overflow(m.shared) == ""
    m.shared.w[1] = weight
    told = m.describe_overflow(m.shared)
    assert bool(told) == gone
    assert not gone or "because eta=0.5 is too large for these features" in told


def test_what_has_no_weights_or_no_eta_is_not_said_to_have_too_large_a_one() -> None:
    for spec in specs("ordinal"):
        m = model(spec)
        assert m.describe_overflow(m.shared) == ""
    m = model("prank:n_ranks=5")
    m.shared.w[0] = np.inf
    assert "eta" not in m.describe_overflow(m.shared)
    assert "with another learner" in m.describe_overflow(m.shared)


@pytest.mark.parametrize("spec", specs("ordinal"))
def test_with_no_lesson_the_callers_order_is_shown(spec: str) -> None:
    """All stand alike: by the caller's score, and where that ties as they were listed."""
    m = model(spec)
    assert order(m, [[1, 2, 0.0], [3, 1, 2.0], [0, 0, -1.0], [2, 2, 2.0]]) == [1, 3, 0, 2]
    assert len(set(predicted(m, np.eye(4, N)))) == 1


def test_ranks_are_the_least_above_the_score() -> None:
    """b_r <= s is passed, s < b_r is not; equal thresholds are passed together."""
    m = model("prank:n_ranks=4")
    m.shared.w[0], m.shared.b[:] = 1.0, [0.0, 2.0, 2.0]
    assert predicted(m, [[s, 0.0, 0.0] for s in (-1.0, 0.0, 0.5, 2.0, 3.0)]) == [1, 2, 2, 4, 4]


# ---------------------------------------------------------------------------- a person's own


def test_a_grade_teaches_a_persons_own_on_the_shared_scores_and_then_all() -> None:
    m, learner, rng = model("ordinal-logistic:n_ranks=5", shrink=2.0), OrdinalLogistic(N, K), np.random.default_rng(3)
    shared, own = learner.init(rng), {"p": learner.stranger(), "q": learner.stranger()}
    for t in range(30):
        x, grade, person = rng.standard_normal(N), int(rng.integers(1, K + 1)), ("p", "q", None)[t % 3]
        if person is not None:
            own[person] = learner.learn_offset(shared, own[person], x, grade, 2.0)
        shared = learner.update(shared, x, 0, grade)
        learn(m, [x], {0: grade}, person=person, version=t + 1)
    assert identical(m.shared, shared)
    assert {name: (p.lessons, p.since) for name, p in m.people.items()} == {"p": (10, 28), "q": (10, 29)}
    for name, told in own.items():
        view = m.view(name)
        assert identical(m.people[name].state, told)
        assert m.effective(view) == pytest.approx(learner.weights(shared) + told.v)
        assert m.scores(view, x[None])[0] == pytest.approx((learner.weights(shared) + told.v) @ x - told.a)


def test_what_one_person_asks_for_is_theirs() -> None:
    """p gives what others give, and two less: p is predicted lower than others, and what is better stays better."""
    m, rng = model("ordinal-logistic:n_ranks=5", shrink=1.0), np.random.default_rng(5)
    for t in range(200):
        x = rng.standard_normal(N)
        grade = 3 + int(x[0] > -0.5) + int(x[0] > 0.5)
        learn(m, [x], {0: grade - 2 * (t % 2)}, person=("q", "p")[t % 2])
    x = [[-1.5, 0.0, 0.0], [0.0, 0.0, 0.0], [1.5, 0.0, 0.0]]
    hers, theirs = predicted(m, x, "p"), predicted(m, x, "q")
    assert hers == [1, 2, 3]
    assert all(low < high for low, high in zip(hers, theirs))
    assert theirs == sorted(theirs)


# ---------------------------------------------------------------------------- the doors


def test_a_learner_says_what_it_is_taught() -> None:
    assert is_grading(learner_class("widrow-hoff"))
    assert not is_grading(learner_class("posterior"))


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("prank", "learner: expected n_ranks, how many grades there are, got prank; write prank:n_ranks=5"),
        ("widrow-hoff:eta=0.1", "write widrow-hoff:eta=0.1,n_ranks=5"),
        ("prank:n_ranks=five", "prank: n_ranks: expected a whole number, got 'five'"),
        ("prank:n_ranks=1", "n_ranks: expected a whole number, 2 to 1000, got 1"),
        ("prank:n_ranks=5,n_ranks=6", "prank: n_ranks: expected one value, got two"),
        ("widrow-hoff:n_ranks=5,rate=3", "widrow-hoff: expected"),
        ("widrow-hoff:n_ranks=5,eta=-1", "eta"),
    ],
)
def test_learners_that_make_no_sense_are_refused_by_name(spec: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        grader(spec, N, 0.0)


@pytest.mark.parametrize("spec", [s for s in specs("ordinal") if not s.startswith("ordinal-logistic")])
def test_offsets_take_a_learner_that_has_some(spec: str) -> None:
    with pytest.raises(ValueError, match=r"shrink: expected 0 for .* such as ordinal-logistic, got 2"):
        grader(spec, N, 2.0)
    assert grader(spec, N, 0.0).n_features == N + (spec not in DIRECTED)
    assert grader("ordinal-logistic:n_ranks=5", N, 2.0).n_features == N


def test_parameters_in_any_order() -> None:
    assert grader("widrow-hoff:n_ranks=4,eta=0.5", N, 0.0) == grader("widrow-hoff: eta=0.5 , n_ranks=4", N, 0.0)
    assert grader("prank", N, 0.0, 7) == grader("prank:n_ranks=7", N, 0.0)
    assert spec_with_grades("prank", 5) == "prank:n_ranks=5"
    assert spec_with_grades("widrow-hoff:eta=0.5", 5) == "widrow-hoff:eta=0.5,n_ranks=5"
    with pytest.raises(ValueError, match="does not say n_ranks"):
        spec_with_grades("prank:n_ranks=4", 5)


def test_nobody_has_an_empty_offset() -> None:
    assert identical(model("ordinal-logistic:n_ranks=5", 2.0).nobody(), Offset(np.zeros(N), 0.0, np.zeros(N + 1)))
    assert model("prank:n_ranks=5").nobody() is None
