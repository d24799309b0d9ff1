"""The model of a loop of routes: how likely a thumb up is for the answer of each model, less what the answer costs.

    m_j = w . x_j + c v . x_j + b    x_j: the prompt's features times the model's; v for this person, as in rankings
    u_j = sigma(m_j) - charge_j      sigma(m_j): probability of a thumb up; charge_j: cost weight times cost of model j

It is a loop that shows one item, with a price. Costs are features of a model that learning does not see, so the weights
do not depend on the cost weight, which may differ from request to request."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Floats, Ints
from heedful.learners.coactive.posterior import MODEST
from heedful.loop.interactions.coactive.model import Lesson, Thumb
from heedful.loop.interactions.forms import BETTER, CHOICE, CLICKS, NONE, REWARD, by_name
from heedful.loop.interactions.one.model import OneModel, drawn_margins, sigmoid
from heedful.loop.interactions.routing.forms import AnswerEdit, GradedThumb
from heedful.loop.interactions.routing.table import find_costs
from heedful.loop.model import Context, View
from heedful.loop.records import FeedbackRecord
from heedful.loop.settings import Manifest

Array = npt.NDArray[np.float64]


class RouteModel(OneModel):
    """The state of a loop of routes: the learner's state for all people, and each person's own weights."""

    version = 2
    """the version of the fold: raised when the same log would give another state"""

    forms = by_name(GradedThumb(), REWARD, AnswerEdit(), CHOICE, BETTER, CLICKS, NONE)

    def __init__(self, learner: Any, manifest: Manifest) -> None:
        super().__init__(learner, manifest)
        self.costs = find_costs(manifest)

    def effective(self, view: View[Any]) -> Array:
        w = super().effective(view)
        w[-1] = 0.0
        return w

    def covariance(self, view: View[Any], x: Floats, level: float) -> Array:
        return super().covariance(view, self._without_costs(x), level)

    def better(self, view: View[Any], x: Floats) -> list[float] | None:
        found, margins = [], self.margins(view, x)
        for j in range(len(x) - 1):
            two = slice(j, j + 2)
            drawn = drawn_margins(margins[two], self.covariance(view, x[two], 1.0), MODEST)
            ahead, behind = self.utilities(x[two], drawn).T
            found.append(float(np.mean(ahead > behind) + 0.5 * np.mean(ahead == behind)))
        return found

    def _without_costs(self, x: Floats) -> Array:
        """Return the candidates `x` (m, N) as the learner sees them."""
        found = np.array(x, np.float64)
        found[:, self.costs.columns] = 0.0
        return found

    def utilities(self, x: Floats, margins: Array) -> Array:
        """Return the probabilities of a thumb up less the charges for the cost, for m candidates `x` (m, N) with these
        `margins` (..., m)."""
        found: Array = sigmoid(margins) - self.costs.charge(x)
        return found

    def order(self, view: View[Any], x: Floats) -> Ints:
        return np.argsort(-self.utilities(x, self.margins(view, x)), kind="stable")

    def propose(self, view: View[Any], x: Floats, rng: np.random.Generator) -> Ints:
        return self.order(view, x)

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats) -> Lesson | Thumb | None:
        return super().lesson(context._replace(x=self._without_costs(context.x)), feedback, extra)
