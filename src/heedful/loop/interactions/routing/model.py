"""The model of a loop of routes: how likely a thumb up is for the answer of each model, less what the answer costs.

    m_j = w . x_j + c v . x_j + b    x_j: the prompt's features times the model's; v for this person, as in rankings
    u_j = sigma(m_j) - charge_j      sigma(m_j): probability of a thumb up; charge_j: cost weight times cost of model j

w, v and b are learned as in a loop of rankings: a thumb is an observation with probability sigma(m) of being up, a
choice between two answers one of the difference of two m. A model whose utility is less than the greatest by g is
chosen with probability 1 / (m + gamma g), for m candidates, gamma = 10 sqrt(n + 1) / temperature and n pieces of
feedback (inverse gap weighting: Abe & Long 1999; Foster & Rakhlin, ICML 2020); the best has the rest. Costs are
features of a model that learning does not see, so the weights do not depend on the cost weight, which may differ from
request to request."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Floats, Ints, scores
from heedful.loop.interactions.coactive.model import Lesson, Model, Thumb
from heedful.loop.interactions.forms import BETTER, CHOICE, NONE, by_name
from heedful.loop.interactions.routing.forms import AnswerEdit, GradedThumb
from heedful.loop.interactions.routing.table import find_costs
from heedful.loop.model import Context, View
from heedful.loop.records import FeedbackRecord
from heedful.loop.settings import Manifest

Array = npt.NDArray[np.float64]


class RouteModel(Model):
    """The state of a loop of routes: the learner's state for all people, and each person's own weights."""

    version = 2
    """the version of the fold: raised when the same log would give another state"""

    forms = by_name(GradedThumb(), AnswerEdit(), CHOICE, BETTER, NONE)

    def __init__(self, learner: Any, manifest: Manifest) -> None:
        super().__init__(learner, manifest)
        self.costs = find_costs(manifest)

    def effective(self, view: View[Any]) -> Array:
        w = super().effective(view)
        w[-1] = 0.0
        return w

    def margins(self, view: View[Any], x: Floats) -> Array:
        """Return the log-odds m of a thumb up for each of m candidates `x` (m, N), with N features each (m,)."""
        return np.asarray(scores(x, self.effective(view)), np.float64) + self.level(view)

    def level(self, view: View[Any]) -> float:
        """Return b, the log-odds of a thumb up for an answer whose features are all 0."""
        learner, state = (self.learner, view.shared) if view.person is None else (self._own, view.person.state)
        return float(learner.log_odds(state))

    def approvals(self, view: View[Any], x: Floats) -> Array:
        """Return the probability of a thumb up for each of m candidates `x` (m, N), with N features each (m,)."""
        return sigmoid(self.margins(view, x))

    def utilities(self, view: View[Any], x: Floats) -> Array:
        """Return the probability of a thumb up less the charge for the cost, for each of m candidates `x` (m, N), with
        N features each (m,)."""
        return self.approvals(view, x) - self.costs.charge(x)

    draws = False
    """whether the learner's own lists have a random part: what is drawn here (`Drawing`) does not go by them"""

    def order(self, view: View[Any], x: Floats) -> Ints:
        return np.argsort(-self.utilities(view, x), kind="stable")

    def propose(self, view: View[Any], x: Floats, rng: np.random.Generator) -> Ints:
        return self.order(view, x)

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats) -> Lesson | Thumb | None:
        x = np.array(context.x, np.float64)
        x[:, self.costs.columns] = 0.0
        return super().lesson(context._replace(x=x), feedback, extra)


STEEPNESS = 10.0
"""How quickly models are tried less often that seem worse: gamma / sqrt(n + 1) at temperature 1."""


class Drawn(NamedTuple):
    """A proposal of models of which the first was drawn."""

    shown: Ints
    """the indices of the candidates, the drawn one first, the others by utility"""
    gamma: float
    """the gamma of the draw: the greater, the less often models are chosen that seem worse"""


class Drawing:
    """Proposals of a model of routes: the first is drawn by inverse gap weighting, the others follow by utility."""

    def __init__(self, model: RouteModel, temperature: float) -> None:
        self._model, self._temperature = model, temperature

    def _gamma(self, shared: Any) -> float:
        return STEEPNESS * math.sqrt(getattr(shared, "t", 0) + 1.0) / self._temperature

    def chances(self, view: View[Any], x: Floats) -> Array:
        u = self._model.utilities(view, x)
        best = int(u.argmax())
        found: Array = 1.0 / (u.size + self._gamma(view.shared) * (u[best] - u))
        found[best] += 1.0 - found.sum()
        return found

    def order(self, view: View[Any], x: Floats) -> Ints:
        return self._model.order(view, x)

    def propose(self, view: View[Any], x: Floats, rng: np.random.Generator) -> Drawn:
        drawn = int(np.searchsorted(np.cumsum(self.chances(view, x)), rng.random(), "right"))
        order = self.order(view, x)
        first = min(drawn, len(x) - 1)
        return Drawn(np.concatenate([[first], order[order != first]]), self._gamma(view.shared))

    def proposal_fields(self, y: Drawn) -> dict[str, Any]:
        return {"gamma": y.gamma}

    def chance_of(self, view: View[Any], x: Floats) -> Callable[[Ints, Ints], float]:
        """Return a function of (the m candidates by utility, those shown) that gives the probability of a proposal that
        shows just these, in this order; `x` (m, N) are the candidates."""

        def chance(ranking: Ints, shown: Ints) -> float:
            follow = ranking[ranking != shown[0]][: shown.size - 1]
            return float(self.chances(view, x)[shown[0]]) if np.array_equal(follow, shown[1:]) else 0.0

        return chance


def sigmoid(m: Array) -> Array:
    """Return 1 / (1 + e^-m) of each number in `m` (m,), without overflow."""
    small = np.exp(-np.abs(m))
    return np.where(m >= 0.0, 1.0, small) / (1.0 + small)
