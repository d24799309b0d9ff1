"""What each form of feedback teaches each learner: worked by hand, and against the words in code."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from budget import examples
from heedful.core.conformance import identical
from heedful.core.fold import copy_arrays
from heedful.learners.registry import make_learner
from heedful.loop.interactions.coactive.model import Model
from heedful.loop.interactions.lists import order_shown
from heedful.loop.model import Context, View
from heedful.loop.records import DecisionRecord, FeedbackRecord
from heedful.spaces.ranking import Ranking, WithBaseScore
from loops import plain_manifest

N = 3  # two features and the caller's score
D2 = 1.0 / math.log2(3.0)  # the discount of the second position
NONE = np.zeros((0, N))
PAPERS = ["perceptron", "second-order", "exponentiated:bound=10", "convex:radius=5"]
LEARNERS = [*PAPERS, "posterior:swap=0"]


def model(spec: str, k: int = 10, shrink: float = 0.0) -> Model:
    return Model(make_learner(spec, n_features=N, space=WithBaseScore(Ranking(k))), plain_manifest(shrink=shrink))


def decided(x: Any, shown: Any, person: str | None = None, arm: Any = "learned", **proposal: Any) -> Context:
    record = DecisionRecord(shown=list(shown), arm=arm, proposal=proposal)
    return Context(record, np.array(x, float), person)


def proposed(learner: Any, shown: Any) -> dict[str, Any]:
    """What a dueling bandit keeps with a decision; the others need nothing of it."""
    if type(learner).__name__ == "DuelingBandit":
        return {"teams": [j % 2 for j in range(len(shown))], "u": [0.6, 0.8, 0.0]}
    return {}


def learn(m: Model, x: Any, shown: Any, form: str, chosen: Any = (), values: Any = (), **more: Any) -> bool:
    """One lesson on a decision that the model made; `extra` are the rows that the feedback brought."""
    extra = np.array(more.pop("extra", NONE), float).reshape(-1, N)
    proposal = more.pop("proposal", proposed(m.learner, shown))
    context = decided(x, shown, more.pop("person", None), more.pop("arm", "learned"), **proposal)
    feedback = FeedbackRecord(form, list(chosen), [float(v) for v in values], base=more.pop("base", 0))
    return m.teach(context, feedback, extra, more.pop("version", 1))


def utilities(m: Model, person: str | None, x: Any) -> Any:
    """The scores of candidates for a person, or for anybody."""
    return np.array(x, float) @ m.effective(m.view(person))


def weights(m: Model) -> list[float]:
    return [float(v) for v in m.learner.weights(m.shared)]


# ---------------------------------------------------------------------------- by hand: the perceptron, w += D

X = [[1, 0, 0], [0, 1, 0], [2, 3, 1]]


def test_clicks_come_first_by_hand() -> None:
    """Shown a b c, clicked c: ybar = c a b; D = (c + a d2 + b d3) - (a + b d2 + c d3), d3 = 1/2."""
    m = model("perceptron")
    assert learn(m, X, [0, 1, 2], "clicks", [2])
    a, b, c = (np.array(row, float) for row in X)
    assert weights(m) == pytest.approx(c + a * D2 + b / 2 - a - b * D2 - c / 2)


def test_two_candidates_of_later_queries_by_hand() -> None:
    """-1 is the first that came along, -2 the second, in whatever order they were clicked."""
    m = model("perceptron", k=2)
    assert learn(m, X[:1], [0], "clicks", [-2, -1], extra=[[1, 0, 0], [0, 1, 0]])
    assert weights(m) == pytest.approx([D2 - 1.0, 1.0, 0.0])  # e2 + e1 d2 - a


# ---------------------------------------------------------------------------- what says nothing


@pytest.mark.parametrize("spec", [*LEARNERS, "dueling-bandit"])
@pytest.mark.parametrize(
    ("form", "chosen", "values"),
    [
        ("none", [], []),
        ("clicks", [], []),
        ("choice", [], [-1]),
        ("rating", [0, 1], [3, 3]),
        ("grade", [2], [9]),
    ],
)
def test_what_says_nothing_teaches_nothing(spec: str, form: str, chosen: Any, values: Any) -> None:
    """No click is not a dislike; equal, cannot judge, ratings without a difference are no comparison."""
    m = model(spec, shrink=1.0)
    before = copy_arrays(m.shared)
    assert not learn(m, X, [0, 1, 2], form, chosen, values, person="p")
    assert identical(m.shared, before)
    assert m.people == {}


# ---------------------------------------------------------------------------- against the words, form by form


class Told:
    """The rule of each learner, (w + e_prior) . x its score, from the papers' steps; D as the spaces' definition."""

    def __init__(self, spec: str, k: int) -> None:
        self.name = spec.partition(":")[0]
        self.space = naive.Rankings(k)
        self.w, self.theta, self.A, self.t = np.zeros(N), np.zeros(N), np.eye(N), 0
        self.last = np.zeros(N)
        """the last D; of the posterior, by how much the weights moved"""
        self.posterior = naive.Posterior(N, k, base=True)

    def step(self, D: Any) -> None:
        self.t += 1
        self.last = D
        if self.name == "perceptron":
            self.w = self.w + D
        elif self.name == "exponentiated":
            self.theta = self.theta + D / (2.0 * 10.0 * math.sqrt(self.t))
            up, down = np.exp(self.theta), np.exp(-self.theta)
            self.w = (up - down) / (up + down).sum()
        elif self.name == "convex":
            w = self.w + D / math.sqrt(self.t)
            self.w = w / max(1.0, np.linalg.norm(w) / 5.0)
        else:
            self.A = self.A + np.outer(D, D)
            self.w = naive.projected(self.A, self.w + np.linalg.inv(self.A) @ D, 100.0)

    def prefer(self, X: Any, shown: list[int], best: list[int], rest: list[int], clicked: bool, weight: float) -> None:
        """The candidates `best` come before all others, of which `rest` were named or shown."""
        if self.name != "posterior":
            return self.step(self.space.phi(X, best + rest) - self.space.phi(X, shown))
        if clicked and set(best) <= set(shown):
            if (X[shown] == X[shown[0]]).all():
                return None  # nothing tells them apart
            self.posterior.clicked(X, shown, best, weight)
        else:
            if all((X[a] == X[b]).all() for a, b in self.posterior.pairs(shown, best, len(X))):
                return None
            self.posterior.corrected(X, shown, best, weight)
        return self.moved()

    def moved(self) -> None:
        self.t += 1
        before, self.w = self.w, self.posterior.m[:N] - [0.0, 0.0, 1.0]
        self.last = self.w - before

    def learn(self, x: Any, shown: list[int], form: str, named: Any, values: Any, extra: Any, base: int = 0) -> None:
        """What each form of feedback says, one form after the other."""
        X, rest, weight = x, [j for j in shown if j not in named], 1.0
        if form in ("thumb", "action") and self.name != "posterior":
            return None
        if form == "thumb":
            k = min(self.space.k, len(shown))
            z = x[named[0]] if named else self.space.phi(x, shown) / sum(1 / math.log2(i + 2) for i in range(k))
            among = x[shown].mean(0) if len(shown) > 1 else np.zeros(N)
            usual = among if self.posterior.usual is None else self.posterior.usual
            if (np.abs(z - usual) < 1e-12).all():
                return None
            self.posterior.judged(z, among, (1.0 + values[0]) / 2.0)
            return self.moved()
        if form in ("rating", "grade"):
            rated = dict(zip(named, values))
            among = [j for j in shown if j in rated] + sorted(j for j in rated if j not in shown)
            if len(set(values)) < 2:
                return None
            y = list(range(len(among)))
            return self.prefer(x[among], y, sorted(y, key=lambda i: -rated[among[i]]), [], False, 1.0)
        if form == "choice":
            winner = int(values[0])
            return self.prefer(x[shown[:2]], [0, 1], [winner], [1 - winner], False, 1.0)
        if form == "edit":
            if named[0] == base:
                return None
            both = np.array([x[base], x[named[0]] if extra is None else extra])
            return self.prefer(both, [0, 1], [1], [0], False, 1.0)
        best = list(named)
        if form == "action":
            weight = abs(values[0])
            if values[0] < 0:
                best, rest = rest, list(named)
        if not best:
            return None
        if extra is not None:
            X = np.concatenate([x, [extra]])
            best = [len(x) if j < 0 else j for j in best]
        return self.prefer(X, shown, best, rest, form == "clicks", weight)


FORMS = ("clicks", "chain", "better", "edit", "nearest", "thumb", "on an item", "action", "rating", "grade", "choice")


def answered(form: str, m: int, shown: list[int], rng: np.random.Generator) -> tuple[str, list[int], list[float], Any]:
    """A random piece of feedback of that form: (form, candidates, values, the row that came along or None)."""
    some = rng.permutation(shown)[: int(rng.integers(0 if form == "clicks" else 1, len(shown) + 1))].tolist()
    row = rng.integers(-2, 3, N).astype(float)
    if form == "chain":
        some.insert(int(rng.integers(0, len(some) + 1)), -1)
        return "clicks", some, [], row
    if form == "edit":
        return "edit", [-1], [], row
    if form == "nearest":
        return "edit", [int(rng.integers(0, m))], [], None
    if form in ("thumb", "on an item"):
        return "thumb", some[:1] if form == "on an item" else [], [float(rng.choice([-1, 1]))], None
    if form == "action":
        return "action", some[:1], [float(rng.choice([-1.0, -0.3, 0.1, 0.5, 1.0]))], None
    if form in ("rating", "grade"):
        some = rng.permutation(m)[: int(rng.integers(1, m + 1))].tolist()
        return form, some, rng.integers(0, 3, len(some)).astype(float).tolist(), None
    if form == "choice":
        return ("choice", [], [float(rng.integers(0, 2))], None) if len(shown) > 1 else ("none", [], [], None)
    return form, [] if form == "none" else some, [], None


def noise(D: Any) -> bool:
    """Whether a coordinate is 0 but for rounding."""
    return bool(np.any((np.abs(D) < 1e-12) & (D != 0.0)))


def play(spec: str, k: int, seed: int) -> None:
    """Lessons of every form, in any order, on lists with ties: after each the weights are those of the words."""
    rng = np.random.default_rng(seed)
    m, told = model(spec, k), Told(spec, k)
    for form in rng.permutation([*FORMS, "none"]).tolist():
        size = int(rng.integers(1, 7))
        x = rng.integers(-2, 3, (size, N)).astype(float)
        shown = rng.permutation(size)[: 1 if k == 1 else int(rng.integers(1, size + 1))].tolist()
        given, named, values, extra = answered(form, size, shown, rng)
        base, rows = int(rng.integers(0, size)), NONE if extra is None else extra
        learned = learn(m, x, shown, given, named, values, extra=rows, base=base)
        rounds = told.t
        if given != "none":
            told.learn(x, shown, given, named, values, extra, base)
        if told.t == rounds:
            assert not learned, (form, x, shown, given, named, values)
        elif not noise(told.last):  # what rounding moves may be called either
            assert learned == bool(np.any(told.last)), (form, x, shown, given, named, values)
        # Newton's method ends a step after it is within 1e-4 standard deviations of the mode: some 1e-8 is left.
        assert weights(m) == pytest.approx(told.w, abs=1e-6), (form, x, shown, given, named, values)


@pytest.mark.parametrize("spec", LEARNERS)
@examples(40)
@given(k=st.sampled_from([1, 2, 5]), seed=st.integers(0, 2**32 - 1))
def test_every_form_teaches_what_the_words_say(spec: str, k: int, seed: int) -> None:
    play(spec, k, seed)


# ---------------------------------------------------------------------------- arms


def test_clicks_on_a_control_teach_no_learner_of_its_own_proposals() -> None:
    """Nothing was interleaved there."""
    m = model("dueling-bandit")
    before = copy_arrays(m.shared)
    for proposal in ({}, proposed(m.learner, X)):  # whatever is known of what the learner would have shown
        assert not learn(m, X, [2, 0, 1], "clicks", [1], arm="control", proposal=proposal)
    assert identical(m.shared, before)


@pytest.mark.parametrize("arm", ["learned", "control", "imported", "sampled", "interleaved"])
def test_the_posterior_learns_from_clicks_on_every_list(arm: str) -> None:
    """Whoever made the list, and whatever the learner swapped in it: places have effects of their own."""
    told = naive.Posterior(N, 10, base=True)
    told.clicked(np.array(X, float), [0, 1, 2], [2])
    for proposal in ({}, {"start": 0, "swapped": [True], "swap": 0.25, "probability": 0.125}):
        m = model("posterior")
        assert learn(m, X, [0, 1, 2], "clicks", [2], arm=arm, proposal=proposal)
        assert m.shared.m == pytest.approx(told.m)


@pytest.mark.parametrize("arm", ["control", "imported"])
@pytest.mark.parametrize(
    ("form", "chosen", "values"),
    [("better", [1], []), ("rating", [0, 1], [1, 2]), ("choice", [], [1]), ("edit", [1], []), ("clicks", [1], [])],
)
def test_the_dueling_bandit_learns_of_its_duels_only(arm: str, form: str, chosen: Any, values: Any) -> None:
    m = model("dueling-bandit")
    assert not learn(m, X, [2, 0, 1], form, chosen, values, arm=arm, proposal={})
    assert weights(m) == [0.0] * N


def test_forms_that_say_more_than_what_is_better_are_refused_by_the_papers_learners() -> None:
    for form in ("thumb", "action"):
        assert "DuelingBandit" in str(model("dueling-bandit").refusal(form))
        for spec in PAPERS:
            assert "posterior" in str(model(spec).refusal(form))
        assert model("posterior").refusal(form) is None
    assert model("dueling-bandit").refusal("clicks") is None


# ---------------------------------------------------------------------------- a person's offset


@pytest.mark.parametrize(("shrink", "person"), [(0.0, "p"), (1.0, None)])
def test_without_shrink_or_a_name_nobody_has_an_offset(shrink: float, person: str | None) -> None:
    m = model("perceptron", shrink=shrink)
    assert learn(m, X, [0, 1, 2], "clicks", [2], person=person)
    assert m.people == {}


def test_the_offset_of_the_perceptron_by_hand() -> None:
    """k = 1, shrink 1; the person picks b over a twice. The same rule on (c x, the shared score before the lesson),
    c = n / (n + 1) with the lesson counted.

    First lesson: c = 1/2, w = 0: her D is (b - a) / 2. Shared: w = b - a = (-1, 1, 0).
    Second: c = 2/3; the shared scores are a: -1, b: 1, and how much they count is not hers to learn, so
    D = (b - a) 2/3: v = (-7/6, 7/6, 0). Then a's score is -2 - (2/3)(7/6), and b's as much above 0.
    """
    m = model("perceptron", k=1, shrink=1.0)
    x = [[1, 0, 0], [0, 1, 0]]
    learn(m, x, [0], "better", [1], person="p", version=7)
    assert m.people["p"].state.w.tolist() == [-0.5, 0.5, 0.0]
    learn(m, x, [0], "better", [1], person="p", version=9)
    assert m.people["p"].state.w == pytest.approx([-7 / 6, 7 / 6, 0.0])
    assert (m.people["p"].lessons, m.people["p"].since) == (2, 9)
    assert weights(m) == [-2.0, 2.0, 0.0]
    assert utilities(m, "p", x) == pytest.approx([-2.0 - 7 / 9, 2.0 + 7 / 9])
    assert utilities(m, None, x).tolist() == [-2.0, 2.0]


@pytest.mark.parametrize("spec", LEARNERS)
def test_what_is_shown_to_a_person_is_by_her_effective_weights(spec: str) -> None:
    """Shared and personal together are one linear score: what explains it is what ranks by it."""
    rng = np.random.default_rng(5)
    m = model(spec, k=3, shrink=2.0)
    for t in range(12):
        x = rng.standard_normal((5, N))
        shown = rng.permutation(5).tolist()
        learn(m, x, shown, "better", [shown[3]], person="pq"[t % 2], version=t)
        for person in (None, *m.people):
            own = None if person is None else m.people[person]
            y = m.propose(View(m, m.shared, own), x, rng)
            wanted = np.argsort(-utilities(m, person, x), kind="stable").tolist()
            assert order_shown(y).tolist() == m.order(View(m, m.shared, own), x).tolist() == wanted


# ---------------------------------------------------------------------------- keeping


def test_a_proposal_goes_through_json_and_back() -> None:
    """What the learner wants to know when the answer comes is what it drew, bit for bit."""
    m = model("dueling-bandit:delta=0.5")
    x = np.random.default_rng(1).standard_normal((4, N))
    for seed in range(40):
        y = m.propose(m.view(), x, np.random.default_rng(seed))
        kept = m.proposal_fields(y)
        assert set(kept) == {"teams", "u"}
        context = decided(x, y.shown.tolist(), **kept)
        lesson: Any = m.lesson(context, FeedbackRecord("clicks", [int(y.shown[0])]), NONE)
        assert identical(lesson.y, y)
    assert model("perceptron").proposal_fields(np.arange(3)) == {}


# ---------------------------------------------------------------------------- a learner that takes the clicked alone


def test_the_clicked_alone_decide_a_duel() -> None:
    """Teams 0 1 0 1; k = 10; the candidate's only entry is clicked: w += delta u. With one click on each, a tie."""
    x = np.eye(4, N)
    for clicked, won in (([1], True), ([3], True), ([0], False), ([1, 2], False), ([1, 3, 0], True)):
        m = model("dueling-bandit:delta=0.5")
        learn(m, x, [0, 1, 2, 3], "clicks", clicked)
        assert weights(m) == pytest.approx([0.3, 0.4, 0.0] if won else [0.0] * 3), clicked
