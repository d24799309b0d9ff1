"""The model of a coactive loop: a learner that adds to the caller's score, and an offset of its weights for each
person.

    score_j = p_j + w . (x_j, p_j)      for all people; x_j are the features of candidate j, p_j is the caller's score
            + c v . x_j                 for this person, c = n / (n + shrink) after n pieces of their feedback

Before any feedback the caller's order is shown. The offset v is learned with the same update rule from the person's own
feedback, with the score for all people in place of the caller's; it is shrunk towards 0 and counts for little until
there is much feedback.

What feedback says (`Form.answer`) becomes one training example (`lesson`): a better list, or a verdict on one. A
learner that tells clicks from better lists and learns from verdicts has methods `learn` and `judge` (`Posterior`); the
others, the papers' learners, learn from better lists alone, by their `update`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.fold import copy_arrays, generators
from heedful.evaluation.expected import corrected
from heedful.jit.kernel import DISCOUNTS, Floats, Ints, scores
from heedful.learners.coactive.posterior import MODEST, preferred
from heedful.loop.interactions.forms import (
    ACTION,
    BETTER,
    CHOICE,
    CLICKS,
    EDIT,
    GRADE,
    NONE,
    RATING,
    THUMB,
    by_name,
    read_answer,
)
from heedful.loop.model import Context, LoopModel, Person, View
from heedful.loop.records import DecisionRecord, FeedbackRecord
from heedful.loop.settings import Manifest
from heedful.spaces.ranking import difference

Array = npt.NDArray[np.float64]


class Lesson(NamedTuple):
    """A training example of a coactive learner: what was shown, and what feedback says is better."""

    x: Floats
    """the N features of the m candidates (m, N)"""
    y: Any
    """what was shown, as indices of candidates, best first; for a learner without `learn` its proposal"""
    feedback: Ints
    """the better order, or its beginning, as indices of candidates"""
    clicked: bool
    """whether `feedback` was picked out of what was shown, in no order"""
    weight: float
    """how much it counts: 1, or the size of an action's weight"""


class Thumb(NamedTuple):
    """A training example that approves or disapproves of a whole list or item."""

    z: Array
    """the N features of what was judged (N,)"""
    among: Array
    """the mean features (N,) of the items shown, with which the first thumb is compared, 0 where one was shown"""
    up: float
    """1 for a thumb up, 0 for a thumb down; between them for a thumb that is partly one and partly the other"""
    alone: bool = False
    """whether it was shown by itself, as one of a few"""


class Model(LoopModel):
    """The state of a loop of corrected rankings: the learner's state for all people, and each person's own weights.

    Only `teach` changes it; it is called for the feedback in the log, in order."""

    version = 2
    """the version of the fold: raised when the same log would give another state"""

    forms = by_name(CLICKS, BETTER, EDIT, THUMB, ACTION, RATING, GRADE, CHOICE, NONE)
    """the forms of feedback that it reads"""

    def __init__(self, learner: Any, manifest: Manifest) -> None:
        super().__init__(learner, manifest)
        shrink = self.shrink = manifest.settings.shrink
        # For a person the shared score is the prior, and how much that counts is not theirs to learn.
        self._own = learner._replace(space=learner.space._replace(adjusted=False)) if shrink > 0.0 else learner
        self.shared = self._first()
        probe = self.probe = learner.propose(self.shared, np.zeros((2, learner.n_features)), generators(0)[2])
        self.learns_all, self.tells = hasattr(learner, "learn"), tells(learner)
        self._proposal: type | None = type(probe) if isinstance(probe, tuple) else None
        fields: dict[str, Any] = probe._asdict() if isinstance(probe, tuple) else {}  # type: ignore[attr-defined]
        self._named, self._templates = list(fields)[1:], list(fields.values())[1:]
        self._partial = bool(getattr(learner, "partial", False))

    def _first(self) -> Any:
        return self.learner.init(generators(0)[2])

    # ------------------------------------------------------------------------ proposing

    @property
    def draws(self) -> bool:
        """True if the learner shows lists with a random part."""
        return self._proposal is not None

    def propose(self, view: View[Any], x: Floats, rng: np.random.Generator) -> Any:
        if view.person is None:
            return self.learner.propose(view.shared, x, rng)
        return self._own.propose(view.person.state, self._personal(view.shared, view.person, x), rng)

    def order(self, view: View[Any], x: Floats) -> Ints:
        if view.person is None:
            return _order(self.learner, view.shared, x)
        return _order(self._own, view.person.state, self._personal(view.shared, view.person, x))

    def effective(self, view: View[Any]) -> Array:
        w = np.array(self.learner.weights(view.shared), np.float64)
        w[-1] += 1.0
        if view.person is not None:
            v = np.array(self._own.weights(view.person.state), np.float64)
            w[:-1] += self._share(view.person) * v[:-1]
        return w

    def above_usual(self, view: View[Any], x: Floats) -> float:
        """Return by how much the list of all of `x` (k, N), or the only item, is worth more than what was judged by
        thumbs so far; 0 for what rounding leaves."""
        z = x[0] if len(x) == 1 else self._whole(x, np.arange(len(x)))
        terms = self.effective(view) * (z - getattr(view.shared, "usual", 0.0))
        return 0.0 if abs(terms.sum()) <= 1e-12 * np.abs(terms).sum() else float(terms.sum())

    def covariance(self, view: View[Any], x: Floats, level: float) -> Array:
        """Return the posterior covariance (m, m) of the scores of m rows of features `x` (m, N); with `level` 1 that of
        the log-odds of a thumb up, with 0 (for differences of features) without the level of all."""
        found: Array = self.learner.covariance(view.shared, x, level)
        if view.person is not None:
            own = self._personal(view.shared, view.person, x)
            found = found + self._own.covariance(view.person.state, own, level)
        return found

    def better(self, view: View[Any], x: Floats) -> list[float] | None:
        """Return how probable it is that each of m items `x` (m, N) is better than the next, of N features (m - 1);
        None if the learner cannot tell."""
        if not self.tells:
            return None
        found, w = [], self.effective(view)
        for gap in x[:-1] - x[1:]:
            variance = float(self.covariance(view, gap[None, :], 0.0)[0, 0])
            spread = MODEST * math.sqrt(max(variance, 0.0))  # rounding may leave less than 0
            lead = float(gap @ w)
            if spread > 0.0:
                found.append(0.5 * math.erfc(-lead / spread / math.sqrt(2.0)))  # the normal distribution function
            else:
                found.append(0.5 if lead == 0.0 else float(lead > 0.0))
        return found

    def weight_spreads(self, view: View[Any]) -> Array | None:
        """Return the standard deviation of each of the N weights that `effective` returns (N,); None if the learner
        cannot tell."""
        if not self.tells:
            return None
        found: Array = self.learner.spreads(view.shared)
        if view.person is not None:
            own = self._own.spreads(view.person.state)
            own[-1] = 0.0  # how much the shared score counts is not theirs to learn
            found = np.hypot(found, self._share(view.person) * own)
        return np.asarray(MODEST * found)

    def predictor(self, name: str | None) -> list[bytes] | None:
        own = self.view(name).person
        parts: list[Any] = [self.learner.weights(self.shared)]
        if own is not None and (offset := self._own.weights(own.state)[:-1]).any():
            parts += [offset, own.lessons]  # it counts for more, the more lessons there were
        return [np.asarray(part).tobytes() for part in parts]

    def adds_up(self, view: View[Any]) -> bool:
        """A perceptron's step adds up, but for a person with weights of their own, which count the more, the more
        feedback the person gave."""
        return bool(getattr(self.learner, "additive", False)) and view.person is None

    def _share(self, person: Person) -> float:
        return person.lessons / (person.lessons + self.shrink)

    def _personal(self, shared: Any, person: Person, x: Floats) -> Floats:
        """Return the m candidates (m, N) as the person's own learner sees them: features times c, and last the score by
        the weights for all people.

        c in [0, 1) is how much the weights of this `person` count. `x` (m, N) are the N features of the candidates,
        `shared` is the learner's state for all people."""
        own = x * self._share(person)
        own[:, -1] = scores(x, self.effective(View(self, shared)))
        return own

    # ------------------------------------------------------------------------ learning

    def refusal(self, form: str) -> str | None:
        if self.learns_all or form in ("clicks", "better", "none"):
            return None
        name = type(self.learner).__name__
        if self._proposal is not None:
            return (
                f"{form}: expected clicks, better or none: {name} learns from what was chosen of its own proposal alone"
            )
        if form in ("thumb", "reward", "action"):
            return f"{form}: {name} learns from what is better alone; posterior, the default learner, takes any answer"
        return None

    def teach(self, context: Context, feedback: FeedbackRecord, extra: Floats, version: int) -> bool:
        lesson = None if self.refusal(feedback.form) is not None else self.lesson(context, feedback, extra)
        if lesson is None or (self.learns_all and not self.teaches(lesson)):
            return False
        person: Person | None = None
        if self.shrink > 0.0 and context.person is not None:
            before = self.people.get(context.person) or Person(self._own.init(generators(0)[2]), 0, version)
            # A state of its own: a decision made at this moment may be reading the old one.
            person = Person(copy_arrays(before.state), before.lessons + 1, version)
            seen = partial(self._personal, self.shared, person)
            person = person._replace(state=_learn(self._own, person.state, lesson, seen))
        taught = self.teaches(lesson)
        self.shared = _learn(self.learner, self.shared, lesson)
        if person is not None and context.person is not None:
            self.people[context.person] = person
        return taught

    def teaches(self, lesson: Lesson | Thumb) -> bool:
        if isinstance(lesson, Thumb):
            usual = lesson.among if self.shared.judged == 0 else self.shared.usual
            return bool((lesson.z != usual).any())
        if self.learns_all:
            x, shown, chosen = lesson.x, lesson.y, lesson.feedback
            if lesson.clicked:
                return bool((x[shown] != x[shown[:1]]).any())
            better, worse = preferred(len(x), shown, chosen, min(self.learner.space.k, shown.size))
            return bool((x[better] != x[worse]).any())
        if self._proposal is None:
            learner = self.learner
            return bool(difference(learner.space, learner.n_features, lesson.x, lesson.feedback, lesson.y).any())
        return len({*np.atleast_1d(lesson.y[0]).tolist(), *lesson.feedback.tolist()}) > 1

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats) -> Lesson | Thumb | None:
        record, x, _ = context
        m, shown, answer = len(x), record.shown, read_answer(self.forms, feedback, record.shown)
        if extra.shape[0]:
            x = np.concatenate([x, extra])
        if answer.verdict is not None:
            items, sign = answer.verdict
            z = x[items[0]] if len(items) == 1 else self._whole(x, np.array(items or shown, np.int64))
            seen = x[list(shown)].mean(axis=0, dtype=np.float64)
            among = seen if len(shown) > 1 else np.zeros(x.shape[1])
            return Thumb(np.array(z, np.float64), among, (1.0 + sign) / 2.0)
        if answer.values or answer.pairs:  # of these alone; what else was shown, nobody looked at for this
            named = answer.values or {j for pair in answer.pairs for j in pair}
            before, after = corrected([j for j in shown if j in named], answer)
            first = len({better for better, _ in answer.pairs}) or len(after)
            place = {j: i for i, j in enumerate(before)}
            order = np.array([place[j] for j in after], np.int64)
            if answer.values and len(set(answer.values.values())) < 2:
                return None
            x = x[[j if j >= 0 else m - 1 - j for j in before]]
            return Lesson(x, np.arange(order.size), order[:first] if self._partial else order, False, 1.0)
        weight = max(map(abs, answer.weights.values()), default=1.0)
        best: Any = answer.best
        if best is None and answer.weights:  # it speaks against them: everything else that was shown is better
            best = [j for j in shown if j not in answer.weights]
        if not best or weight == 0.0:
            return None
        y: Any = np.array(shown, np.int64)
        if self._proposal is not None and not self.learns_all:
            y = self._rebuild_proposal(record, y)
        if y is None:
            return None
        ahead = set(best)
        chosen = best if self._partial else [*best, *(j for j in shown if j not in ahead)]
        places = np.array([j if j >= 0 else m - 1 - j for j in chosen], np.int64)
        # What was found later, in another list, is better than what was shown.
        return Lesson(x, y, places, answer.picked and set(best) <= set(shown), weight)

    def _whole(self, x: Floats, displayed: Ints) -> Array:
        """Return the N features phi of a whole list (N,): the mean of its items' features, weighted by 1 / log2(1 +
        position).

        `x` (m, N) are the features of the m candidates, `displayed` the indices of those shown; only the first k
        positions count."""
        k = min(self.learner.space.k, displayed.size)
        return np.asarray(self.learner.space.phi(x, displayed) / DISCOUNTS[:k].sum(), np.float64)

    def _rebuild_proposal(self, record: DecisionRecord, displayed: Ints) -> Any:
        """Return the learner's proposal of a logged decision, made from what `record` keeps of it.

        Return None if the record keeps no parts of a proposal, or those of another learner. `displayed` are the indices
        of the candidates shown."""
        if self._proposal is None or record.arm != "learned" or list(record.proposal) != self._named:
            return None
        return self._proposal(displayed, *map(_like, self._templates, record.proposal.values()))

    # ------------------------------------------------------------------------ keeping

    def proposal_fields(self, y: Any) -> dict[str, Any]:
        carried: list[tuple[str, Any]] = list(y._asdict().items())[1:] if hasattr(y, "_asdict") else []
        return {name: _json(part) for name, part in carried}


def tells(learner: Any) -> bool:
    """Return whether `learner` tells how sure it is, and how probable a thumb up."""
    return hasattr(learner, "covariance")


def _order(learner: Any, state: Any, x: Floats) -> Ints:
    order: Ints = learner.space.argmax(learner.weights(state), x)
    return order


def _learn(learner: Any, state: Any, lesson: Lesson | Thumb, seen: Callable[[Floats], Floats] = lambda x: x) -> Any:
    """Return the state after `learner` has learned from the training example `lesson`, starting from `state`.

    `seen` is a linear function of features (m, N) that gives them as the learner sees them."""
    if isinstance(lesson, Thumb):
        z, among = seen(np.array([lesson.z, lesson.among]))
        return learner.judge(state, z, among, lesson.up, lesson.alone)
    x = seen(lesson.x)
    if hasattr(learner, "learn"):
        return learner.learn(state, x, lesson.y, lesson.feedback, lesson.clicked, lesson.weight)
    return learner.update(state, x, lesson.y, lesson.feedback)


def _json(part: object) -> Any:
    return part.tolist() if isinstance(part, _NUMPY) else part


_NUMPY = np.ndarray, np.generic


def _like(template: Any, value: Any) -> Any:
    return np.array(value, template.dtype) if isinstance(template, np.ndarray) else type(template)(value)
