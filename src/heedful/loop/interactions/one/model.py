"""The model of a loop that shows one item: how good each would be for this request, and how sure that is.

    m_j = w . x_j + c v . x_j + b    x_j: features of candidate j and the request; v for this person, as in rankings
    sigma(m_j)                       the expected reward, as a share of the range of rewards

w, v and b are learned as in a loop of rankings: an answer that judges the item shown (a thumb, a click or none, a
reward) is an observation with probability sigma(m), one that says which of two is better one of the difference of two
m. The item is drawn (`Draw`), as what is never shown cannot be learned about."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.evaluation.answers import judged
from heedful.jit.kernel import Floats, Ints, scores
from heedful.loop.interactions.coactive.model import Lesson, Model, Thumb
from heedful.loop.interactions.forms import (
    ACTION,
    BETTER,
    CHOICE,
    CLICKS,
    EDIT,
    NONE,
    REWARD,
    THUMB,
    by_name,
    read_answer,
)
from heedful.loop.model import Context, View
from heedful.loop.records import FeedbackRecord
from heedful.loop.settings import Manifest

Array = npt.NDArray[np.float64]


class OneModel(Model):
    """The state of a loop that shows one item: the learner's state for all people, and each person's own weights."""

    version = 1
    """the version of the fold: raised when the same log would give another state"""

    forms = by_name(CLICKS, THUMB, REWARD, BETTER, EDIT, ACTION, CHOICE, NONE)

    def __init__(self, learner: Any, manifest: Manifest) -> None:
        super().__init__(learner, manifest)
        self.low, self.high = manifest.settings.rewards or (0.0, 1.0)

    @property
    def draws(self) -> bool:
        """whether the learner's own lists have a random part: what is drawn here (`Draw`) does not go by them"""
        return not self.tells and super().draws

    def margins(self, view: View[Any], x: Floats) -> Array:
        """Return the log-odds m of a thumb up for each of m candidates `x` (m, N), with N features each (m,); nan if
        the learner cannot tell."""
        if not self.tells:
            return np.full(len(x), np.nan)
        return np.asarray(scores(x, self.effective(view)), np.float64) + self.level(view)

    def level(self, view: View[Any]) -> float:
        """Return b, the log-odds of a thumb up for an item whose features are all 0."""
        learner, state = (self.learner, view.shared) if view.person is None else (self._own, view.person.state)
        return float(learner.log_odds(state))

    def approvals(self, view: View[Any], x: Floats) -> Array:
        """Return the probability of a thumb up for each of m candidates `x` (m, N), with N features each (m,)."""
        return sigmoid(self.margins(view, x))

    def utilities(self, x: Floats, margins: Array) -> Array:
        """Return by what the candidates `x` (m, N) with these `margins` (..., m) are chosen (..., m)."""
        return margins

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats) -> Lesson | Thumb | None:
        answer = read_answer(self.forms, feedback, context.record.shown)
        found = judged(context.record.shown, answer, self.low, self.high) if self.learns_all else None
        if found is None or answer.verdict is not None:
            lesson = super().lesson(context, feedback, extra)
            return lesson._replace(alone=True) if isinstance(lesson, Thumb) else lesson
        j, reward = found
        return Thumb(np.array(context.x[j], np.float64), np.zeros(context.x.shape[1]), self.share(reward), True)

    def share(self, reward: float) -> float:
        """Return a `reward` as a share of the range of rewards, from 0 to 1."""
        return (reward - self.low) / (self.high - self.low)


DRAWS = 1000
"""The number of draws from the posterior from which the probability of each candidate follows."""
MOST_DRAWN = 100
"""The number of candidates, the best, that can be the best in a draw: the cost of draws goes with its square."""
FLOOR = 0.002
"""The share of decisions in which any candidate is as probable, so that none has the probability 0."""


class Drawn(NamedTuple):
    """A proposal of items of which the first was drawn."""

    shown: Ints
    """the indices of the candidates, the drawn one first, the others by utility"""


class Draw:
    """The draw of one decision (Thompson sampling): a candidate is as probable as it is the best under weights drawn
    from the posterior, with a share of its standard deviations.

    The same `DRAWS` draws serve every decision, so that the probability of what was shown is known."""

    def __init__(self, model: OneModel, view: View[Any], x: Floats, spread: float) -> None:
        """Draw for the m candidates `x` (m, N), with `spread` posterior standard deviations."""
        self._model, self._x = model, x
        self._view, self._spread = view, spread
        self._margins = model.margins(view, x)
        self._ranking = np.argsort(-model.utilities(x, self._margins), kind="stable")

    @cached_property
    def chances(self) -> Array:
        """the probability of each candidate (m,)"""
        m, best = len(self._x), self._ranking[:MOST_DRAWN]
        wins = np.zeros(m)
        if self._spread == 0.0:
            wins[best[0]] = 1.0
            return wins
        x = self._x[best]
        drawn = drawn_margins(self._margins[best], self._model.covariance(self._view, x, 1.0), self._spread)
        first = np.argmax(self._model.utilities(x, drawn), axis=1)
        wins[best] = np.bincount(first, minlength=best.size) / DRAWS
        return (1.0 - FLOOR) * wins + FLOOR / m

    def order(self, view: View[Any], x: Floats) -> Ints:
        return self._ranking

    def propose(self, view: View[Any], x: Floats, rng: np.random.Generator) -> Drawn:
        first = min(int(np.searchsorted(np.cumsum(self.chances), rng.random(), "right")), len(x) - 1)
        return Drawn(np.concatenate([[first], self._ranking[self._ranking != first]]))

    def proposal_fields(self, y: Drawn) -> dict[str, Any]:
        return {}

    def chance(self, ranking: Ints, shown: Ints) -> float:
        """Return the probability of a proposal that begins with `shown`, given the `ranking` of the m candidates by
        utility (m,)."""
        follow = ranking[ranking != shown[0]][: shown.size - 1]
        return float(self.chances[shown[0]]) if np.array_equal(follow, shown[1:]) else 0.0


def drawn_margins(margins: Array, covariance: Array, spread: float) -> Array:
    """Return `DRAWS` draws of the margins of m candidates (DRAWS, m): normal with the mean `margins` (m,), and `spread`
    times the standard deviations of `covariance` (m, m)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    found: Array = margins + spread * (_normals(margins.size) @ root.T)
    return found


@cache
def _normals(m: int) -> Array:
    """Return `DRAWS` draws of m independent standard normal numbers (DRAWS, m)."""
    return np.random.default_rng(0).standard_normal((DRAWS, m))


def sigmoid(m: Array) -> Array:
    """Return 1 / (1 + e^-m) of each number in `m`, without overflow."""
    small = np.exp(-np.abs(m))
    return np.where(m >= 0.0, 1.0, small) / (1.0 + small)
