"""The model of a coactive loop: a learner that adds to the caller's score, and an offset of its weights for each
person.

    score_j = p_j + w . (x_j, p_j)      for all people; x_j are the features of candidate j, p_j is the caller's score
            + c v . x_j                 for this person, c = n / (n + shrink) after n pieces of their feedback

Before any feedback the caller's order is shown. The offset v is learned with the same update rule from the person's own
feedback, with the score for all people in place of the caller's; it is shrunk towards 0 and counts for little until
there is much feedback.

What feedback says (`Form.answer`) becomes one training example (`lesson`). A thumb judges what was shown without saying
what would be better, so a learner's `update` cannot use it: the weights take a step of logistic regression instead. In
it a thumb is compared with what is usual in the loop (`Usual`): with the share of thumbs that were up, and with the
features of what was judged before. Where most are down, it is not all that was shown that loses by it, but what gets
still fewer.

The file is long because it makes an example of all that an answer can say."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.fold import copy_arrays, generators
from heedful.evaluation.expected import corrected
from heedful.jit.kernel import DISCOUNTS, Floats, Ints, logistic, scores, top
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
from heedful.loop.interactions.neighbours import drafted_pairs
from heedful.loop.model import Context, LoopModel, Person, View
from heedful.loop.records import DecisionRecord, FeedbackRecord, given_scores
from heedful.loop.settings import Manifest
from heedful.spaces.ranking import difference, with_base_weight

Array = npt.NDArray[np.float64]


class Lesson(NamedTuple):
    """A training example of a coactive learner: what was shown, and what feedback says is better."""

    x: Floats
    """the N features of the m candidates (m, N)"""
    y: Any
    """the learner's proposal of what was shown"""
    feedback: Ints
    """the better order, or its beginning, as indices of candidates"""
    weight: float
    """the factor of the learner's step: 1, or the size of an action's weight"""


class DraftedList(NamedTuple):
    """The list that two learners drafted in turns (team draft); a learner learns only from pairs of neighbours in
    it."""

    pairs: Ints
    """candidates (p, 2), as indices, of the p pairs of neighbours whose order a coin decided, the upper one first"""


class Thumb(NamedTuple):
    """A training example that approves or disapproves of a whole list or item."""

    z: Array
    """the N features of what was shown (N,)"""
    sign: float
    """+1 for a thumb up, -1 for a thumb down; between them for a thumb that is partly one and partly the other"""
    among: Array | None
    """the mean features (N,) of the items shown, with which the first thumb is compared, 0 where one was shown; None if
    no thumb is compared with others, because w . z is to be the log-odds of a thumb up"""


class Usual(NamedTuple):
    """What is usual among the thumbs so far, of all people or of one person, over N features.

    It begins with a thumb that is half up and half down, for the mean of the items in the first list that is judged. If
    that shows one item, it is for one whose features are all 0: of numbers, these are the means of their columns."""

    n: float
    """number of thumbs, the first half one included"""
    up: float
    """how many of them were up; a half thumb counts 1/2"""
    z: Array
    """the mean features of what they judged (N,)"""

    def log_odds(self) -> float:
        """Return the log-odds of a thumb up, by the share that was up so far."""
        return math.log(self.up / (self.n - self.up))

    def begun(self, thumb: Thumb) -> Usual:
        """Return what a `thumb` is compared with: this, or the items shown with it if it is the first."""
        return self._replace(z=thumb.among) if self.n == 1.0 and thumb.among is not None else self

    def after(self, thumb: Thumb) -> Usual:
        """Return what is usual after one more `thumb`."""
        n = self.n + 1.0
        return Usual(n, self.up + (1.0 + thumb.sign) / 2.0, self.z + (thumb.z - self.z) / n)


class State(NamedTuple):
    """What is learned for all people, or for one person."""

    learned: Any
    """the learner's own state"""
    usual: Usual
    """what thumbs are compared with"""

    @property
    def t(self) -> int:
        """number of rounds that the learner learned from"""
        return int(self.learned.t)


class Model(LoopModel):
    """The state of a loop of corrected rankings: the learner's state for all people, and each person's own weights.

    Only `teach` and `imitate` change it; they are called for the events of the log, in order."""

    version = 2
    """the version of the fold: raised when the same log would give another state"""

    forms = by_name(CLICKS, BETTER, EDIT, THUMB, ACTION, RATING, GRADE, CHOICE, NONE)
    """the forms of feedback that it reads"""

    def __init__(self, learner: Any, manifest: Manifest) -> None:
        super().__init__(learner, manifest)
        shrink = self.shrink = manifest.settings.shrink
        self.blind = manifest.settings.apprentice
        # For a person the shared score is the prior, and how much that counts is not theirs to learn.
        self._own = learner._replace(space=learner.space._replace(adjusted=False)) if shrink > 0.0 else learner
        self.shared = self._first()
        n = learner.n_features
        probe = self.probe = learner.propose(self.shared.learned, np.zeros((2, n)), generators(0)[2])
        self._proposal: type | None = type(probe) if isinstance(probe, tuple) else None
        fields: dict[str, Any] = probe._asdict() if isinstance(probe, tuple) else {}  # type: ignore[attr-defined]
        self._named, self._templates = list(fields)[1:], list(fields.values())[1:]
        self._partial = bool(getattr(learner, "partial", False))

    def _first(self) -> State:
        return State(self.learner.init(generators(0)[2]), Usual(1.0, 0.5, np.zeros(self.learner.n_features)))

    # ------------------------------------------------------------------------ proposing

    @property
    def draws(self) -> bool:
        """True if the learner shows lists with a random part."""
        return self._proposal is not None

    def propose(self, view: View[Any], x: Floats, rng: np.random.Generator) -> Any:
        if view.person is None:
            return self.learner.propose(view.shared.learned, x, rng)
        return self._own.propose(view.person.state.learned, self._personal(view.shared, view.person, x), rng)

    def order(self, view: View[Any], x: Floats) -> Ints:
        if view.person is None:
            return _order(self.learner, view.shared.learned, x)
        return _order(self._own, view.person.state.learned, self._personal(view.shared, view.person, x))

    def effective(self, view: View[Any]) -> Array:
        w = np.array(self.learner.weights(view.shared.learned), np.float64)
        w[-1] += 0.0 if self.blind else 1.0
        if view.person is not None:
            v = np.array(self._own.weights(view.person.state.learned), np.float64)
            w[:-1] += self._share(view.person) * v[:-1]
        return w

    def above_usual(self, view: View[Any], x: Floats) -> float:
        """Return by how much the list of all of `x` (k, N), or the only item, is worth more than what was judged by
        thumbs so far; 0 for what rounding leaves."""
        z = x[0] if len(x) == 1 else self._whole(x, np.arange(len(x)))
        terms = self.effective(view) * (z - view.shared.usual.z)
        return 0.0 if abs(terms.sum()) <= 1e-12 * np.abs(terms).sum() else float(terms.sum())

    def predictor(self, name: str | None) -> list[bytes] | None:
        own = self.view(name).person
        parts: list[Any] = [self.learner.weights(self.shared.learned)]
        if own is not None and (offset := self._own.weights(own.state.learned)[:-1]).any():
            parts += [offset, own.lessons]  # it counts for more, the more lessons there were
        return [np.asarray(part).tobytes() for part in parts]

    def adds_up(self, view: View[Any], feedback: FeedbackRecord) -> bool:
        """A perceptron's step adds up. Exceptions are thumbs, which make a logistic step; a person with weights of
        their own, which count the more, the more feedback the person gave; and a learner that imitates an order."""
        additive = bool(getattr(self.learner, "additive", False)) and not self.blind
        return additive and feedback.form != "thumb" and view.person is None

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
        if form in ("clicks", "better", "none"):
            return None
        name = type(self.learner).__name__
        if self._proposal is not None and not hasattr(self.learner, "plain"):
            return (
                f"{form}: expected clicks, better or none: {name} learns from what was chosen of its own proposal alone"
            )
        if form in ("thumb", "action") and not hasattr(self.learner, "step"):
            return f"{form}: {name} has no step along a direction, which a {form} needs"
        return None

    def teach(self, context: Context, feedback: FeedbackRecord, extra: Floats, version: int) -> bool:
        lesson = None if self.refusal(feedback.form) is not None else self.lesson(context, feedback, extra)
        if lesson is None:
            return False
        person: Person | None = None
        if self.shrink > 0.0 and context.person is not None:
            before = self.people.get(context.person) or Person(self._first(), 0, version)
            # A state of its own: a decision made at this moment may be reading the old one.
            person = Person(copy_arrays(before.state), before.lessons + 1, version)
            seen = partial(self._personal, self.shared, person)
            person = person._replace(state=_learn(self._own, person.state, lesson, seen))
        weights = self.learner.weights(self.shared.learned).copy() if hasattr(self.learner, "step") else None
        self.shared = _learn(self.learner, self.shared, lesson)
        if person is not None and context.person is not None:
            self.people[context.person] = person
        if weights is None:
            return self.teaches(lesson)
        after = self.learner.weights(self.shared.learned)  # most lessons move them, and need not be looked at again
        with np.errstate(invalid="ignore"):  # weights that overflowed
            moved = np.abs(after - weights).sum() > 1e-12 * np.abs(after).sum()  # more than a projection's rounding
        return bool(moved) or self.teaches(lesson)

    def teaches(self, lesson: Lesson | Thumb) -> bool:
        """Of a learner without `step` it is known only that a single item is compared with nothing."""
        learner, state = self.learner, self.shared
        if isinstance(lesson, Thumb):
            return bool((lesson.z != state.usual.begun(lesson).z).any())
        if isinstance(lesson.y, DraftedList):
            return bool(learner.draft_direction(state.learned, lesson.x, lesson.y.pairs, lesson.feedback).any())
        if not hasattr(learner, "step"):
            shown = np.atleast_1d(lesson.y if self._proposal is None else lesson.y[0])
            return len({*shown.tolist(), *lesson.feedback.tolist()}) > 1
        return bool(direction_of(learner, state.learned, lesson.x, lesson.y, lesson.feedback).any())

    def imitate(self, context: Context) -> bool:
        record, x, _ = context
        shown, told = list(record.shown), given_scores(record)
        if len(x) < 2 or (told and not record.prior):
            return False
        seen = set(shown)
        back = np.array([*(j for j in range(len(x) - 1, -1, -1) if j not in seen), *shown[::-1]], np.int64)
        y = back[top(scores(x[back], self.effective(self.view())), len(x))]
        plain = self._plain(None, y)
        if plain is None:
            return False
        if told:
            at, score = {j: i for i, j in enumerate(y.tolist())}, dict(zip(shown, told))
            shown.sort(key=lambda j: (-score[j], at[j]))
        better = np.array([*shown, *(j for j in y.tolist() if j not in seen)], np.int64)
        self.shared = self.shared._replace(learned=self.learner.update(self.shared.learned, x, plain, better))
        return True

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats) -> Lesson | Thumb | None:
        record, x, _ = context
        m, shown, answer = len(x), record.shown, read_answer(self.forms, feedback, record.shown)
        if extra.shape[0]:
            x = np.concatenate([x, extra])
        if answer.verdict is not None:
            items, sign = answer.verdict
            z = x[items[0]] if len(items) == 1 else self._whole(x, np.array(items or shown, np.int64))
            seen = x[list(shown)].mean(axis=0, dtype=np.float64)
            return Thumb(np.array(z, np.float64), sign, seen if len(shown) > 1 else np.zeros(x.shape[1]))
        if answer.values or answer.pairs:  # of these alone; what else was shown, nobody looked at for this
            named = answer.values or {j for pair in answer.pairs for j in pair}
            before, after = corrected([j for j in shown if j in named], answer)
            first = len({better for better, _ in answer.pairs}) or len(after)
            place = {j: i for i, j in enumerate(before)}
            order = np.array([place[j] for j in after], np.int64)
            if answer.values and len(set(answer.values.values())) < 2:
                return None
            y = self._plain(None, np.arange(order.size))
            x = x[[j if j >= 0 else m - 1 - j for j in before]]
            return None if y is None else Lesson(x, y, order[:first] if self._partial else order, 1.0)
        weight = max(map(abs, answer.weights.values()), default=1.0)
        best: Any = answer.best
        if best is None and answer.weights:  # it speaks against them: everything else that was shown is better
            best = [j for j in shown if j not in answer.weights]
        if not best or weight == 0.0:
            return None
        displayed = np.array(shown, np.int64)
        y = self._as_proposed(record, displayed) if answer.picked else self._plain(record, displayed)
        if y is None:
            return None
        ahead = set(best)
        chosen = best if self._partial else [*best, *(j for j in shown if j not in ahead)]
        return Lesson(x, y, np.array([j if j >= 0 else m - 1 - j for j in chosen], np.int64), weight)

    def _whole(self, x: Floats, displayed: Ints) -> Array:
        """Return the N features phi of a whole list (N,): the mean of its items' features, weighted by 1 / log2(1 +
        position).

        `x` (m, N) are the features of the m candidates, `displayed` the indices of those shown; only the first k
        positions count."""
        k = min(self.learner.space.k, displayed.size)
        return np.asarray(self.learner.space.phi(x, displayed) / DISCOUNTS[:k].sum(), np.float64)

    def _as_proposed(self, record: DecisionRecord, displayed: Ints) -> Any:
        """Return the learner's proposal in the logged decision `record`, with its random parts, as `update` needs it
        for clicks.

        `displayed` are the indices of the candidates shown. If the learner did not make the list, return a proposal
        without random parts, or None if nothing can be learned from clicks on it."""
        if self._proposal is None:
            return displayed
        made = self._rebuild_proposal(record, displayed)
        if made is not None:
            return made
        if record.arm == "interleaved" and hasattr(self.learner, "draft_direction"):
            pairs = drafted_pairs(record)
            return DraftedList(pairs) if len(pairs) else None
        # Nothing was swapped there: which of two neighbours is better cannot be told from where they stood.
        return (
            None if record.arm in ("control", "sampled", "interleaved", "imitated") else self._plain(record, displayed)
        )

    def _rebuild_proposal(self, record: DecisionRecord, displayed: Ints) -> Any:
        """Return the learner's proposal of a logged decision, made from what `record` keeps of it.

        Return None if the record keeps no parts of a proposal, or those of another learner. `displayed` are the indices
        of the candidates shown."""
        if self._proposal is None or record.arm != "learned" or list(record.proposal) != self._named:
            return None
        y = self._proposal(displayed, *map(_like, self._templates, record.proposal.values()))
        seen: Callable[[Any, int], Any] | None = getattr(self.learner, "truncate", None)
        return seen(y, displayed.size) if seen is not None else y

    def _plain(self, record: DecisionRecord | None, displayed: Ints) -> Any:
        """Return a proposal that shows the candidates `displayed` (indices) without random parts; None if the learner
        cannot have such a proposal."""
        if self._proposal is None:
            return displayed
        plain: Callable[[Ints], Any] | None = getattr(self.learner, "plain", None)
        if plain is not None:
            return plain(displayed)
        return None if record is None else self._rebuild_proposal(record, displayed)

    # ------------------------------------------------------------------------ keeping

    def proposal_fields(self, y: Any) -> dict[str, Any]:
        carried: list[tuple[str, Any]] = list(y._asdict().items())[1:] if hasattr(y, "_asdict") else []
        return {name: _json(part) for name, part in carried}


def can_imitate(learner: Any) -> bool:
    """Return whether `learner` can learn from any list that another order is better, not only from lists that it drew
    itself."""
    if hasattr(learner, "plain"):
        return True
    probe = learner.propose(learner.init(generators(0)[2]), np.zeros((2, learner.n_features)), generators(0)[2])
    return not isinstance(probe, tuple)


def _order(learner: Any, state: Any, x: Floats) -> Ints:
    order: Ints = learner.space.argmax(learner.weights(state), x)
    return order


def _learn(learner: Any, state: State, lesson: Lesson | Thumb, seen: Callable[[Floats], Floats] = lambda x: x) -> State:
    """Return the state after `learner` has learned from the training example `lesson`, starting from `state`.

    `seen` is a linear function of features (m, N) that gives them as the learner sees them."""
    if isinstance(lesson, Thumb):
        return _learn_thumb(learner, state, lesson, seen)
    learned, x = state.learned, seen(lesson.x)
    if isinstance(lesson.y, DraftedList):
        learned = learner.step(learned, learner.draft_direction(learned, x, lesson.y.pairs, lesson.feedback))
    elif lesson.weight == 1.0:
        learned = learner.update(learned, x, lesson.y, lesson.feedback)
    else:
        learned = learner.step(learned, lesson.weight * direction_of(learner, learned, x, lesson.y, lesson.feedback))
    return state._replace(learned=learned)


def _learn_thumb(learner: Any, state: State, thumb: Thumb, seen: Callable[[Floats], Floats]) -> State:
    """Return the state after a logistic step for a `thumb`; the arguments are those of `_learn`.

    At log-odds m the probability of a thumb up is sigma(m): m is what is usual, plus the score of the difference d from
    the features that are. The step is along d; a thumb that is partly up makes that of both, each with its share."""
    usual = state.usual.begun(thumb)
    d = seen((thumb.z - usual.z)[None, :])[0]
    w = with_base_weight(learner.weights(state.learned), learner.space.adjusted)
    m = usual.log_odds() + float(scores(d[None, :], w)[0])
    up = (1.0 + thumb.sign) / 2.0
    D = (up * logistic(-m) - (1.0 - up) * logistic(m)) * d
    if not learner.space.adjusted:
        D[-1] = 0.0
    return State(learner.step(state.learned, D), usual if thumb.among is None else usual.after(thumb))


def direction_of(learner: Any, state: Any, x: Floats, y: Any, feedback: Ints) -> Array:
    """Return the direction D (N,) in feature space along which `learner`, in this `state`, steps for one piece of
    feedback.

    It is that of the learner's method `direction`, if it has one, else phi(x, feedback) - phi(x, y), where phi(x, y)
    are the N features of an object y. `x` (m, N) are the m candidates, `y` is what was shown, `feedback` the better
    object."""
    own: Callable[..., Array] | None = getattr(learner, "direction", None)
    if own is not None:
        return own(state, x, y, feedback)
    return difference(learner.space, learner.n_features, x, feedback, y)


def _json(part: object) -> Any:
    return part.tolist() if isinstance(part, _NUMPY) else part


_NUMPY = np.ndarray, np.generic


def _like(template: Any, value: Any) -> Any:
    return np.array(value, template.dtype) if isinstance(template, np.ndarray) else type(template)(value)
