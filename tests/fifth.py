"""Best-worst scaling, a kind of feedback of its own: of four that are shown, the best and the worst.

Interaction, form of feedback and learner in one file, brought in by `fifth.py:BestWorst`; nothing of heedful's is
changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from heedful.core.fold import copy_arrays, generators
from heedful.core.validation import check_count, check_positive, finite_array, indices
from heedful.evaluation.answers import Answer, likeliest_chosen
from heedful.evaluation.expected import Expected, best_expected
from heedful.learners.registry import make_learner
from heedful.loop.interactions.forms import ITEM, NONE, AnsweredDecision, Form, by_name
from heedful.loop.interactions.protocol import Compare, Interaction, Proposal, Question, Step
from heedful.loop.interactions.words import Words
from heedful.loop.model import Context, LoopModel, View
from heedful.loop.packing import LoggedDecision
from heedful.loop.prediction_report import ScoredAnswer, Wording, prediction_report
from heedful.loop.records import Feedback, FeedbackRecord, distinct
from heedful.results.evaluation import Measure
from heedful.results.report import PredictionReport

SHOWN = 4
"""Items in a question."""
WORDING = Wording(
    "share of answers in which the likeliest was the best",
    False,
    "a guess",
    "no best was named so far",
    "too few people have answered: it takes two at least",
    "it was as often right as a guess in every answer: chance cannot be told",
)


# ---------------------------------------------------------------------------- the form of feedback


class Extremes(Form):
    """{"best": "a", "worst": "c"}"""

    name, hint, example = "best", "the best of what was shown, and beside it the worst", "a"
    schema = ITEM
    more_fields = {"worst": ITEM}  # noqa: RUF012

    def parse(self, value: Any, given: Mapping[str, Any]) -> Feedback:
        """Two different items."""
        if given.get("worst") is None:
            raise ValueError("worst: expected the worst of what was shown, beside the best, got none")
        return Feedback("best", distinct("best, worst", [value, given["worst"]]))

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        """Both by name."""
        best, worst = record.chosen
        return {"best": decided.names[best], "worst": decided.names[worst]}

    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        """The best, before all others."""
        best = record.chosen[0]
        return Answer(best=(best,), pairs=tuple([(best, j) for j in shown if j != best]))


# ---------------------------------------------------------------------------- the fold


class Shown(NamedTuple):
    """A few of the candidates x (m x N), in their places; the answer to them is (2,), the best and the worst."""

    def check(self) -> None:
        """Nothing can be wrong."""

    def check_context(self, x: Any, n_features: int) -> Any:
        """x as m x N. ValueError where it is not, or there are not two."""
        array = finite_array("x", x, 2, n_features)
        if len(array) < 2:
            raise ValueError(f"x: expected two candidates or more, got {len(array)}")
        return array

    def check_object(self, name: str, x: Any, y: Any) -> Any:
        """y as two candidates. ValueError where it is not."""
        pair = indices(name, y, len(x), "the best and the worst")
        if pair.size != 2:
            raise ValueError(f"{name}: expected two, the best and the worst, got {pair.size}")
        return pair


class State(NamedTuple):
    """w (N,), the sum of squared gradients (N,), answers learned."""

    w: Any
    total: Any
    t: int


def gains(w: Any, x: Any) -> tuple[Any, Any]:
    """(P(best = i, worst = j), k x k, of items x (k x N) whose utilities are x @ w; the gradient's part of every pair).

    The maximum-difference model of Marley and Louviere (2005): proportional to exp(u_i - u_j), i other than j."""
    u = x @ w
    gap = u[:, None] - u[None, :]
    np.fill_diagonal(gap, -np.inf)
    p = np.exp(gap - gap.max())
    p /= p.sum()
    return p, (p.sum(axis=1) - p.sum(axis=0)) @ x


def likely(w: Any, x: Any) -> tuple[float, ...]:
    """P(item i of x (k x N) is called the best)."""
    return tuple(gains(w, x)[0].sum(axis=1).tolist()) if len(x) > 1 else (1.0,) * len(x)


class Folding(LoopModel):
    """The state of a loop: of its learner, the same for all people."""

    version = 1

    def __init__(self, learner: Any, manifest: Any) -> None:
        super().__init__(learner, manifest)
        self.shared = learner.init(generators(0)[2])

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Any) -> tuple[Any, Any] | None:
        """(those shown, the best and the worst); None where it says nothing."""
        if feedback.form != "best":
            return None
        return np.array(context.record.shown, np.int64), np.array(feedback.chosen, np.int64)

    def teach(self, context: Context, feedback: FeedbackRecord, extra: Any, version: int) -> bool:
        lesson = self.lesson(context, feedback, extra)
        if lesson is None:
            return False
        self.shared = self.learner.update(copy_arrays(self.shared), context.x, *lesson)
        return True

    def effective(self, view: View[Any]) -> Any:
        return view.shared.w

    def proposal_fields(self, y: Any) -> dict[str, Any]:
        return {}


# ---------------------------------------------------------------------------- the interaction


class Claimed(NamedTuple):
    """What is added to the report of predictions."""

    claimed: float | None
    """how often it was called the best; None without any answer"""


class BestWorstScaling(Interaction[Folding]):
    """Of four that are shown, the best and the worst."""

    name = "best-worst"
    words = Words(
        loop="a loop of extremes",
        learns="this loop learns extremes",
        learner="of the best and the worst",
        answer="best",
        question="Which of these is the best, which the worst?",
        badge="best-worst",
        prediction="chance",
        score="how often what was likeliest was called the best",
        incomparable="the best of four says nothing of how good the four were",
    )
    forms = by_name(Extremes(), NONE)
    model_type = Folding
    details = Claimed

    def example(self, model: Folding, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """The first and the last."""
        return "says which is the best and which the worst", {"best": shown[0], "worst": shown[-1]}

    # ------------------------------------------------------------------------ deciding

    def order(self, view: View[Folding], x: Any) -> Any:
        return np.argsort(-(x @ view.shared.w), kind="stable")

    def eligible(self, view: View[Folding], asked: Question) -> None:
        if len(asked.request.x) < 2 and asked.request.strangers is None:
            raise ValueError(f"candidates: expected two or more, got {len(asked.request.x)}")

    def propose(self, view: View[Folding], asked: Question, eligible: Any, rng: Any) -> Proposal:
        """The best so far and others by chance, or chance alone, in places that are drawn."""
        x, strangers = asked.request.x, asked.request.strangers
        m = len(x)
        k = min(asked.request.show or SHOWN, m)
        best = int(np.argmax(x @ view.shared.w)) if m else -1
        drawn = rng.permutation(m)
        if not asked.control:
            drawn = rng.permutation(np.array([best, *[j for j in drawn.tolist() if j != best][: k - 1]])[:k])
        shown = drawn[:k].astype(np.int64)
        control = self.manifest.settings.control
        chance = 1.0 / math.perm(m, k)
        ours = (
            float(best in shown) * m / max(k, 1) * chance
        )  # as many lists have the best in them as have any other item
        unknown = () if strangers is None else strangers.to_record(strangers.places(m, k, own=True))
        probability = control * chance + (1.0 - control) * ours or None
        return Proposal(shown, probability, predicted=likely(view.shared.w, x[shown]), unknown=unknown)

    # ------------------------------------------------------------------------ taking feedback

    def why_unfit(self, feedback: FeedbackRecord, shown: Sequence[int]) -> str | None:
        """Both were shown."""
        if feedback.form == "best" and (len(feedback.chosen) != 2 or not set(feedback.chosen) <= set(shown)):
            return "best: expected two of what was shown, the best and the worst"
        return None

    # ------------------------------------------------------------------------ looking back

    def measures(self) -> Sequence[tuple[Measure, Compare]]:
        """Of the others, those that are liked less than the best, and half of those that are liked as much."""
        about = "Expected is the share of the others that were liked less than the best."
        expected = Measure("expected", about, "no best was named so far", "More answers.")
        return ((expected, lambda said: best_expected(said.shown, said.answer, said.models)),)

    # ------------------------------------------------------------------------ reporting

    def tally(self) -> BestTally:
        return BestTally()

    def expected(self, view: View[Folding], step: Step) -> Expected:
        """How much each item is liked."""
        return Expected(utilities=lambda items: step.rows(items) @ view.shared.w)

    def score(self, decision: LoggedDecision, answers: Sequence[FeedbackRecord]) -> float | None:
        """Whether what was likeliest was called the best by the first answer that says so."""
        record = decision.record
        scores = (likeliest_chosen(record.shown, record.predicted, self.answer(decision, each)) for each in answers)
        return next((float(score > 0.0) for score in scores if score is not None), None)

    @staticmethod
    def trial(spec: str) -> tuple[Any, Any]:
        """A person of known tastes, for `heedful check`."""
        return make_learner(spec, n_features=4, space=None), People(np.array([1.0, -2.0, 0.5, 0.0]))


class BestWorst(NamedTuple):
    """Best-worst scaling, by steps up the likelihood of the maximum-difference model, AdaGrad steps of `rate`.

    w += rate g / sqrt(sum of g^2), g = (x_best - x_worst) - E[x_i - x_j] under the model.
    """

    n_features: int
    rate: float = 0.3

    interaction = BestWorstScaling

    @property
    def version(self) -> int:
        """Of what it folds."""
        return 1

    @property
    def must_interpret(self) -> bool:
        """It does not compile."""
        return True

    @property
    def space(self) -> Shown:
        """Of what is shown and answered."""
        return Shown()

    def init(self, rng: Any) -> State:
        check_count("n_features", self.n_features)
        check_positive("rate", self.rate)
        return State(np.zeros(self.n_features), np.zeros(self.n_features), 0)

    def propose(self, state: State, x: Any, rng: Any) -> Any:
        """The four of greatest utility, (4,)."""
        return np.argsort(-(x @ state.w), kind="stable")[:SHOWN]

    def update(self, state: State, x: Any, y: Any, feedback: Any) -> State:
        """The state after (best, worst) was said of those shown, y."""
        _, expected = gains(state.w, np.asarray(x, np.float64)[y])
        g = x[feedback[0]] - x[feedback[1]] - expected
        total = state.total + g * g
        return State(state.w + self.rate * g / np.sqrt(total + 1e-20), total, state.t + 1)

    def weights(self, state: State) -> Any:
        """(N,)."""
        return state.w


# ---------------------------------------------------------------------------- what is reported


class BestTally:
    """How often the likeliest was called the best."""

    def __init__(self) -> None:
        self._scored: list[ScoredAnswer] = []
        self._claimed: list[float] = []

    def take(self, decision: LoggedDecision, given: Any) -> None:
        """Whether what was likeliest was called the best, next to a guess."""
        record = decision.record
        who = decision.seq if decision.person is None else decision.person
        for event, answer in given:
            right = likeliest_chosen(record.shown, record.predicted, answer)
            if right is not None:
                self._scored.append(ScoredAnswer(event.seq, 0, event.time, who, right, 1.0 / len(record.predicted)))
                self._claimed.append(record.predicted[record.shown.index(answer.best[0])])

    def report(self) -> PredictionReport:
        """With the mean probability that was claimed for what was called the best."""
        claimed = float(np.mean(self._claimed)) if self._claimed else None
        return prediction_report(self._scored, WORDING, 1.0, {"claimed": claimed})


# ---------------------------------------------------------------------------- a world to be tried in


class People(NamedTuple):
    """Lists of m items, drawn anew each round, and a person whose utilities are x @ w_star; regret is what the best of
    those shown is worse than the best of all."""

    w_star: Any
    m: int = 8

    def init(self, rng: Any) -> int:
        return 0

    def over(self, state: int, t: int) -> bool:
        return False

    def context(self, state: int, t: int, rng: Any) -> Any:
        return rng.standard_normal((self.m, self.w_star.size))

    def respond(self, state: int, x: Any, shown: Any, rng: Any) -> Any:
        p, _ = gains(self.w_star, x[shown])
        best, worst = divmod(int(rng.choice(p.size, p=p.ravel())), len(shown))
        return np.array([shown[best], shown[worst]])

    def regret(self, state: int, x: Any, shown: Any) -> float:
        u = x @ self.w_star
        return float(u.max() - u[shown].max())

    def advance(self, state: int, x: Any, shown: Any, feedback: Any) -> int:
        return state + 1
