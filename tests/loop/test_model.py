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
STEPPING = [
    "perceptron",
    "posterior:swap=0",
    "posterior",
    "second-order",
    "exponentiated:bound=10",
    "convex:radius=5",
]


def model(spec: str, k: int = 10, shrink: float = 0.0) -> Model:
    return Model(make_learner(spec, n_features=N, space=WithBaseScore(Ranking(k))), plain_manifest(shrink=shrink))


def decided(x: Any, shown: Any, person: str | None = None, arm: Any = "learned", **proposal: Any) -> Context:
    record = DecisionRecord(shown=list(shown), arm=arm, proposal=proposal)
    return Context(record, np.array(x, float), person)


def proposed(spec: str, shown: Any) -> dict[str, Any]:
    """What the learner kept with a decision that it did not perturb, or in which nobody won."""
    if spec.startswith("posterior"):
        return {"start": -1, "swapped": [], "swap": 0.0, "probability": 1.0}
    if spec.startswith("dueling"):
        return {"teams": [j % 2 for j in range(len(shown))], "u": [0.6, 0.8, 0.0]}
    return {}


def learn(m: Model, x: Any, shown: Any, form: str, chosen: Any = (), values: Any = (), **more: Any) -> bool:
    """One lesson on a decision that the model made; `extra` are the rows that the feedback brought."""
    extra = np.array(more.pop("extra", NONE), float).reshape(-1, N)
    proposal = more.pop("proposal", proposed(type(m.learner).__name__.lower().replace("pairs", "-pairs", 1), shown))
    context = decided(x, shown, more.pop("person", None), more.pop("arm", "learned"), **proposal)
    feedback = FeedbackRecord(form, list(chosen), [float(v) for v in values], base=more.pop("base", 0))
    return m.teach(context, feedback, extra, more.pop("version", 1))


def utilities(m: Model, person: str | None, x: Any) -> Any:
    """The scores of candidates for a person, or for anybody."""
    return np.array(x, float) @ m.effective(m.view(person))


def weights(m: Model) -> list[float]:
    return [float(v) for v in m.learner.weights(m.shared.learned)]


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


@pytest.mark.parametrize("spec", [*STEPPING, "dueling-bandit"])
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
        self.w, self.theta, self.squares, self.A, self.t = np.zeros(N), np.zeros(N), np.zeros(N), np.eye(N), 0
        self.e, self.last = np.array([0.0, 0.0, 1.0]), np.zeros(N)
        self.thumbs: list[tuple[float, Any]] = []
        self.offered = np.zeros(N)

    def D(self, X: Any, y: list[int], ybar: list[int], clicked: list[int], pairs: Any) -> Any:
        if self.name == "posterior:swap=0":
            return self.gradient(X, self.space.pairs(y, clicked))
        if self.name == "posterior":
            rule = naive.Posterior(N, self.space, 0.5, 0.25, 0.3)
            rule.w = self.w + self.e
            start, swapped = pairs
            return rule.direction(X, y, start, swapped, clicked)
        return self.space.phi(X, ybar) - self.space.phi(X, y)

    def gradient(self, X: Any, pairs: Any) -> Any:
        differences = [X[a] - X[b] for a, b in pairs]
        return sum((d / (1.0 + math.exp((self.w + self.e) @ d)) for d in differences), np.zeros(N))

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
        elif self.name == "second-order":
            self.A = self.A + np.outer(D, D)
            self.w = naive.projected(self.A, self.w + np.linalg.inv(self.A) @ D, 100.0)
        else:
            self.squares = self.squares + D**2
            moved = self.squares > 0.0
            self.w = self.w + np.divide(0.5 * D, np.sqrt(self.squares), where=moved, out=np.zeros(N))

    def learn(
        self, x: Any, shown: list[int], form: str, named: Any, values: Any, extra: Any, pairs: Any, base: int = 0
    ) -> None:
        """What each form of feedback says, one form after the other."""
        X, rest, weight, face = x, [j for j in shown if j not in named], 1.0, (-1, [])
        if form == "thumb":
            k = min(self.space.k, len(shown))
            z = x[named[0]] if named else self.space.phi(x, shown) / sum(1 / math.log2(i + 2) for i in range(k))
            if not self.thumbs:
                self.offered = x[shown].mean(0) if len(shown) > 1 else np.zeros(N)
            ups, usual = [0.5, *(up for up, _ in self.thumbs)], [self.offered, *(each for _, each in self.thumbs)]
            d, s, share = z - np.mean(usual, axis=0), values[0], float(np.mean(ups))
            self.thumbs.append(((1.0 + s) / 2.0, z))
            margin = math.log(share / (1.0 - share)) + float((self.w + self.e) @ d)
            return self.step(s / (1.0 + math.exp(s * margin)) * d)
        if form in ("rating", "grade"):
            rated = dict(zip(named, values))
            among = [j for j in shown if j in rated] + sorted(j for j in rated if j not in shown)
            if len(set(values)) < 2:
                return None
            X, y = x[among], list(range(len(among)))
            ybar = sorted(y, key=lambda i: -rated[among[i]])
            return self.step(self.D(X, y, ybar, ybar, face))
        if form == "choice":
            winner = int(values[0])
            return self.step(self.D(x[shown[:2]], [0, 1], [winner, 1 - winner], [winner], face))
        if form == "edit":
            if named[0] == base:
                return None
            both = np.array([x[base], x[named[0]] if extra is None else extra])
            return self.step(self.D(both, [0, 1], [1, 0], [1], face))
        clicked = list(named)
        if form == "action":
            weight = abs(values[0])
            if values[0] < 0:
                clicked, rest = rest, list(named)
        if not clicked:
            return None
        if extra is not None:
            X = np.concatenate([x, [extra]])
            clicked = [len(x) if j < 0 else j for j in clicked]
        return self.step(weight * self.D(X, shown, clicked + rest, clicked, pairs if form == "clicks" else face))


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


def noise(*directions: Any) -> bool:
    """Whether a coordinate is 0 but for rounding: AdaGrad's first step on it is as long as any."""
    return any(bool(np.any((np.abs(D) < 1e-12) & (D != 0.0))) for D in directions)


def play(spec: str, k: int, seed: int) -> None:
    """Lessons of every form, in any order, on lists with ties: after each the weights are those of the words."""
    rng = np.random.default_rng(seed)
    m, told = model(spec, k), Told(spec, k)
    for form in rng.permutation([*FORMS, "none"]).tolist():
        size = int(rng.integers(1, 7))
        x = rng.integers(-2, 3, (size, N)).astype(float)
        shown = rng.permutation(size)[: 1 if k == 1 else int(rng.integers(1, size + 1))].tolist()
        given, named, values, extra = answered(form, size, shown, rng)
        start, pairs = -1, []
        if spec.startswith("fair") and k > 1 and len(shown) > 1:
            start = int(rng.integers(0, 2))
            pairs = (rng.random((min(len(shown), 2 * k) - start) // 2) < 0.5).tolist()
        proposal = (
            {"start": start, "swapped": pairs, "swap": 0.25, "probability": 0.5} if spec.startswith("fair") else {}
        )
        base, rows = int(rng.integers(0, size)), NONE if extra is None else extra
        learned = learn(m, x, shown, given, named, values, proposal=proposal, extra=rows, base=base)
        rounds = told.t
        if given != "none":
            told.learn(x, shown, given, named, values, extra, (start, pairs), base)
        if not noise(told.last):
            taught = told.t > rounds and bool(np.any(told.last))
            assert learned == taught, (form, x, shown, given, named, values)
        if told.name in ("posterior:swap=0", "posterior") and noise(told.last, np.sqrt(m.shared.learned.total)):
            return
        assert weights(m) == pytest.approx(told.w, abs=1e-9), (form, x, shown, given, named, values)


@pytest.mark.parametrize("spec", [s for s in STEPPING if not s.startswith("fair")])
@examples(40)
@given(k=st.sampled_from([1, 2, 5]), seed=st.integers(0, 2**32 - 1))
def test_every_form_teaches_what_the_words_say(spec: str, k: int, seed: int) -> None:
    play(spec, k, seed)


# ---------------------------------------------------------------------------- arms


@pytest.mark.parametrize("spec", ["posterior", "dueling-bandit"])
def test_clicks_on_a_control_teach_no_learner_that_perturbs(spec: str) -> None:
    """Nothing was swapped or interleaved there: position cannot be told from worth."""
    m = model(spec)
    before = copy_arrays(m.shared)
    for proposal in ({}, proposed(spec, X)):  # whatever is known of what the learner would have shown
        assert not learn(m, X, [2, 0, 1], "clicks", [1], arm="control", proposal=proposal)
    assert identical(m.shared, before)


@pytest.mark.parametrize("arm", ["control", "imported"])
@pytest.mark.parametrize(
    ("form", "chosen", "values"),
    [("better", [1], []), ("rating", [0, 1], [1, 2]), ("choice", [], [1]), ("edit", [1], []), ("clicks", [1], [])],
)
def test_the_dueling_bandit_learns_of_its_duels_only(arm: str, form: str, chosen: Any, values: Any) -> None:
    m = model("dueling-bandit")
    assert not learn(m, X, [2, 0, 1], form, chosen, values, arm=arm, proposal={})
    assert weights(m) == [0.0] * N


def test_forms_that_need_a_step_are_refused_where_there_is_none() -> None:
    for form in ("thumb", "action"):
        assert "DuelingBandit" in str(model("dueling-bandit").refusal(form))
        assert model("perceptron").refusal(form) is None
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
    assert m.people["p"].state.learned.w.tolist() == [-0.5, 0.5, 0.0]
    learn(m, x, [0], "better", [1], person="p", version=9)
    assert m.people["p"].state.learned.w == pytest.approx([-7 / 6, 7 / 6, 0.0])
    assert (m.people["p"].lessons, m.people["p"].since) == (2, 9)
    assert weights(m) == [-2.0, 2.0, 0.0]
    assert utilities(m, "p", x) == pytest.approx([-2.0 - 7 / 9, 2.0 + 7 / 9])
    assert utilities(m, None, x).tolist() == [-2.0, 2.0]


@pytest.mark.parametrize("spec", STEPPING)
def test_what_is_shown_to_a_person_is_by_her_effective_weights(spec: str) -> None:
    """Shared and personal together are one linear score: what explains it is what ranks by it."""
    rng = np.random.default_rng(5)
    m = model(spec.replace("posterior:", "posterior:swap=0"), k=3, shrink=2.0)
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


# ---------------------------------------------------------------------------- learners that take the clicked alone


@examples(60)
@given(k=st.sampled_from([1, 2, 5]), seed=st.integers(0, 2**32 - 1))
def test_every_form_teaches_fair_pairs_what_the_words_say(k: int, seed: int) -> None:
    """Clicks by the pairs that were swapped by chance; all else is said of the objects, whatever their places, and is
    taken at face value."""
    play("posterior", k, seed)


def test_fair_pairs_by_hand() -> None:
    """Shown a b, swapped with probability 1/4, whatever the learner itself swaps; b clicked alone: weight .5 / .25, and
    b beats a at face value, .3 of it. The first step of AdaGrad is the rate, whatever the gradient's size: so look at
    the gradient's squares."""
    m = model("posterior:swap=0.5", k=2)
    proposal = {"start": 0, "swapped": [True], "swap": 0.25, "probability": 0.125}
    assert learn(m, [[0, 0, 0], [1, 0, 0]], [0, 1], "clicks", [1], proposal=proposal)
    assert m.shared.learned.total.tolist() == pytest.approx([(0.5 * (2.0 + 0.3)) ** 2, 0.0, 0.0])


def test_clicks_on_a_part_of_the_list_teach_fair_pairs() -> None:
    """Three of five were shown: pairs of which one was not shown do not count, and nothing breaks."""
    m = model("posterior", k=5)
    x = np.eye(5, N)
    proposal = {"start": 0, "swapped": [False, True], "swap": 0.25, "probability": 0.1}
    assert learn(m, x, [0, 1, 2], "clicks", [1], proposal=proposal)
    assert m.shared.learned.total.tolist() == pytest.approx([(0.5 * 2.0 / 3.0) ** 2] * 2 + [0.0])
    before = copy_arrays(m.shared)
    learn(m, x, [0, 1, 2], "clicks", [2], proposal=proposal)  # its partner was not shown
    assert m.shared.learned.w.tobytes() == before.learned.w.tobytes()


def test_clicks_on_imported_lists_teach_fair_pairs_at_face_value() -> None:
    """Somebody else's order was not swapped by chance; there is nothing but its face value."""
    m, told = model("posterior"), Told("posterior", 10)
    assert learn(m, X, [0, 1, 2], "clicks", [2], arm="imported", proposal={})
    told.learn(np.array(X, float), [0, 1, 2], "clicks", [2], [], None, (-1, []))
    assert weights(m) == pytest.approx(told.w)


def test_the_clicked_alone_decide_a_duel() -> None:
    """Teams 0 1 0 1; k = 10; the candidate's only entry is clicked: w += delta u. With one click on each, a tie."""
    x = np.eye(4, N)
    for clicked, won in (([1], True), ([3], True), ([0], False), ([1, 2], False), ([1, 3, 0], True)):
        m = model("dueling-bandit:delta=0.5")
        learn(m, x, [0, 1, 2, 3], "clicks", clicked)
        assert weights(m) == pytest.approx([0.3, 0.4, 0.0] if won else [0.0] * 3), clicked
