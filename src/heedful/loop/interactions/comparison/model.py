"""The model of a loop of choices: who was asked what, and the learner's posterior of each person's utilities of items.

People are numbered by their first answer in the log; those without a name are one person, "". Items are numbered by
their first appearance in the log, one number for each set of features: an item whose features change becomes another
item, with a utility correlated with the old one's. A withdrawn item is not shown any more; what was said of it still
tells about others, so it stays.

Items enter the learner's state with the next answer, all that came since the last answer together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.fold import generators
from heedful.jit.kernel import Floats, Ints
from heedful.loop.catalogue import Catalogue
from heedful.loop.interactions.forms import BETTER, CHOICE, CLICKS, NONE, by_name
from heedful.loop.interactions.numbered import Numbered, own_copy
from heedful.loop.log import Event
from heedful.loop.model import Context, Person, View
from heedful.loop.records import FeedbackRecord
from heedful.loop.settings import Manifest
from heedful.spaces.comparison import EQUAL, UNSURE, Answer, ComparisonPool

if TYPE_CHECKING:
    from heedful.inference.gp.posterior import Posterior
    from heedful.inference.gp.response_noise import UserNoise

Array = npt.NDArray[np.float64]


FORMS = by_name(CHOICE, BETTER, CLICKS, NONE)
"""The forms of feedback that it learns from."""


class ChoiceState(NamedTuple):
    """The state of all people and items in a loop of choices."""

    learned: Any
    """the learner's state, with the first `known` items"""
    things: Array
    """the d features of all n items, in the first `n` rows (at least n, d)"""
    n: int
    """the number of items"""
    known: int
    """how many of the items, the first ones, the learner's state has"""
    asked: Ints
    """the pairs of items that people were asked about, in the first `rows` rows: (user number, a, b) with item numbers
    a < b"""
    rows: int
    """the number of rows of `asked` in use"""
    users: int
    """the number of people"""

    @property
    def grows(self) -> bool:
        """True: its arrays become longer as people and items arrive."""
        return True


class ChoiceAnswer(NamedTuple):
    """A training example of a learner of choices: which items were shown, and what was answered about them."""

    items: Ints
    """the numbers of the k items shown (k,)"""
    answer: Answer
    """the position, from 0, of the best item; EQUAL or UNSURE (cannot judge); or an array of 2 to k positions, best
    first, which come before all others"""


class ChoiceModel(Numbered[ChoiceState]):
    """The model of a loop of choices: the learner's state for all people and items, and each person's number in it.

    `teach`, called for each piece of feedback in the order of the log, and `put` for each item are all that change
    it."""

    version = 1
    """the version of the fold: raised when the same log would give another state"""

    def __init__(self, learner: Any, manifest: Manifest) -> None:
        super().__init__(learner, manifest)
        things, asked = np.zeros((64, manifest.encoding.size)), np.zeros((64, 3), np.int64)
        self.shared = ChoiceState(learner.init(generators(0)[2]), things, 0, 0, asked, 0, 0)
        self._ready: tuple[ChoiceState | None, Any] = (None, None)

    # ------------------------------------------------------------------------ what is believed

    def person(self, people: Mapping[str, Person], name: str | None) -> Person | None:
        """Nobody in particular is one person, too."""
        return people.get(name or "")

    def lacks(self, shared: ChoiceState, x: Ints) -> bool:
        return bool(x.size) and int(x.max()) >= shared.n

    def ready(self, shared: ChoiceState) -> Any:
        """Return the learner's state after it has taken in all items of `shared`; callers must not write to it."""
        if shared.known == shared.n:
            return shared.learned
        kept, state = self._ready
        if kept is not shared:
            state = self._with_all_items(shared._replace(learned=own_copy(shared.learned)))
            self._ready = shared, state
        return state

    def _with_all_items(self, shared: ChoiceState) -> Any:
        """Return the learner's state after it has taken in all items of `shared`, whose arrays may be overwritten."""
        if shared.known == shared.n:
            return shared.learned
        return self.learner.with_items(shared.learned, shared.things[shared.known : shared.n].copy())

    def posterior(self, view: View[Any], numbers: Ints) -> Posterior:
        """Return the posterior of a person's utilities of the items with the numbers `numbers` (m,); for a new person
        it is the prior that follows from other people's answers."""
        found: Posterior = self.learner.posterior(self.ready(view.shared), self.user(view), numbers)
        return found

    def user(self, view: View[Any]) -> int:
        """Return the number by which the learner knows a person; for a new person the next one, which nobody has
        yet."""
        return view.shared.users if view.person is None else int(view.person.state)

    def noise(self, shared: ChoiceState, person: Person) -> UserNoise | None:
        """Return the estimate of how noisily `person` answers; None if there is none, as only some learners estimate
        it.

        `shared` is the state for all people."""
        if not hasattr(self.learner, "noise"):
            return None
        found: UserNoise | None = self.learner.noise(self.ready(shared), int(person.state))
        return found

    def chances(self, view: View[Any], numbers: Ints) -> Array | None:
        from heedful.inference.gp.subset_acquisition import best_probabilities

        found: Array = best_probabilities(self.posterior(view, numbers), np.arange(numbers.size))
        return found if np.isfinite(found).all() else None

    # ------------------------------------------------------------------------ proposing

    def pairs_asked(self, view: View[Any], numbers: Ints) -> Ints:
        """Return the q pairs among the items `numbers` (m,) that this person was asked about (q, 2), the lower item
        number first."""
        if view.person is None:
            return np.zeros((0, 2), np.int64)
        asked = view.shared.asked[: view.shared.rows]
        own = asked[asked[:, 0] == view.person.state, 1:]
        kept: Ints = own[np.isin(own, numbers).all(axis=1)]
        return kept

    def propose(self, view: View[Any], numbers: Ints, size: int, skip: Ints, rng: np.random.Generator) -> Ints:
        """Return the `size` items to ask about, out of `numbers` (m,), without the pairs in `skip` (q, 2)."""
        learner, state, user = self.learner, self.ready(view.shared), self.user(view)
        if not hasattr(learner, "question"):
            return _of_pool(learner, state, user, numbers, size, skip, rng)
        y: Ints = np.asarray(learner.question(state, user, numbers, size, rng, skip if size == 2 else ()), np.int64)
        if size > 2 and len(skip) and _all_asked(y, skip):
            two = np.asarray(learner.question(state, user, numbers, 2, rng, skip), np.int64)
            y = np.concatenate([two, y[~np.isin(y, two)]])[:size]
        return y

    # ------------------------------------------------------------------------ learning

    def teach(self, context: Context, feedback: FeedbackRecord, extra: Floats, version: int) -> bool:
        heard = to_choice_answer(context, feedback)
        if heard is None:
            return False
        shared = self._own()
        state = self._with_all_items(shared)
        name, users = context.person or "", shared.users
        person = self.people.get(name)
        if person is None:
            person, users = Person(users, 0, version), users + 1
        user = int(person.state)
        asked, rows = with_pairs(shared.asked, shared.rows, user, heard.items)
        state = self.learner.update(
            state, ComparisonPool(user, heard.items[None].copy()), heard.items.copy(), heard.answer
        )
        self.shared = shared._replace(learned=state, known=shared.n, asked=asked, rows=rows, users=users)
        said = not _unsure(heard)
        self.people[name] = person._replace(lessons=person.lessons + said)
        return said

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats) -> ChoiceAnswer | None:
        heard = to_choice_answer(context, feedback)
        return None if heard is None or _unsure(heard) else heard

    def on_item(self, event: Event, catalogue: Catalogue) -> str:
        if event.arrays is not None:
            self.put(catalogue.number(event.subject or "", event.arrays), np.frombuffer(event.arrays, "<f4"))
        return ""

    def put(self, number: int, features: Floats) -> None:
        """Add the item with this number and these d features (d,) to the model; do nothing if it has the item
        already."""
        shared = self.shared
        if number != shared.n:
            return
        things = shared.things
        if number == len(things):
            things = np.concatenate([things, np.zeros_like(things)])
        things[number] = features  # beyond what readers of these arrays look at
        self.shared = shared._replace(things=things, n=number + 1)


# ---------------------------------------------------------------------------- answers


def to_choice_answer(context: Context, feedback: FeedbackRecord) -> ChoiceAnswer | None:
    """Return the training example that `feedback` makes: the items shown, and the answer about them.

    `context` is the decision answered, with its candidates' numbers (m,). Return None if the answer is empty, or fewer
    than two items were shown. Unlike `ChoiceModel.lesson`, it also returns the answer that a person cannot judge."""
    shown, form = list(context.record.shown), FORMS.get(feedback.form)
    if form is None or len(shown) < 2:
        return None
    items: Ints = np.array(context.x[shown], np.int64)
    answer = form.answer(feedback, shown)
    if not answer.best:
        return ChoiceAnswer(items, EQUAL if answer.tied else UNSURE)
    best: tuple[Any, ...] = answer.best  # of what was shown: nothing else can be named
    places = [shown.index(j) for j in best]
    if len(places) == 1 or len(shown) == 2:
        return ChoiceAnswer(items, places[0])
    return ChoiceAnswer(items, np.array(places, np.int64))


def why_unfit(feedback: FeedbackRecord, shown: int) -> str | None:
    """Return why `feedback` does not fit a decision that showed `shown` items; None if it does."""
    form, named = feedback.form, len(feedback.chosen)
    if form == "none":
        return None
    if feedback.chain:
        return "chain: expected none in a loop of choices, got some"
    if shown < 2:
        return f"{form}: expected a decision that showed two or more, got one that showed {shown}"
    if form == "choice" and shown > 2 and feedback.values[0] >= 0.0:
        return f"choice: expected better, as {shown} were shown, got {feedback.text}"
    if form == "clicks" and named != 1:
        return f"clicks: expected one, the best of those shown, got {named}; send an order as better"
    return None


def _unsure(heard: ChoiceAnswer) -> bool:
    return isinstance(heard.answer, int) and heard.answer == UNSURE


def with_pairs(asked: Ints, rows: int, user: int, items: Ints) -> tuple[Ints, int]:
    """Return (`asked` with all pairs of `items` (k,) added that were not in it for this user, its number of rows in
    use).

    A row of `asked` is (user number, a, b) with item numbers a < b; its first `rows` rows are in use. It may be
    overwritten."""
    a, b = np.triu_indices(items.size, 1)
    pairs = np.sort(np.column_stack([items[a], items[b]]), axis=1)
    own = asked[:rows][asked[:rows, 0] == user, 1:]
    for pair in pairs:
        if (own == pair).all(axis=1).any():
            continue
        if rows == len(asked):
            asked = np.concatenate([asked, np.zeros_like(asked)])
        asked[rows] = user, *pair
        rows += 1
    return asked, rows


# ---------------------------------------------------------------------------- questions


def _all_asked(y: Ints, skip: Ints) -> bool:
    """Return whether all pairs of the items `y` are among the pairs `skip` (q, 2)."""
    known = {(int(a), int(b)) for a, b in skip}
    y = np.sort(y)
    return all((int(a), int(b)) in known for i, a in enumerate(y) for b in y[i + 1 :])


def _of_pool(
    learner: Any, state: Any, user: int, numbers: Ints, size: int, skip: Ints, rng: np.random.Generator
) -> Ints:
    """Return the `size` items about which a learner without a method `question` asks the person with the number
    `user`."""
    a, b = np.triu_indices(numbers.size, 1)
    pairs = np.column_stack([numbers[a], numbers[b]])
    if len(skip):
        most = int(numbers[-1]) + 1
        pairs = pairs[~np.isin(pairs[:, 0] * most + pairs[:, 1], skip[:, 0] * most + skip[:, 1])]
    y: Ints = np.atleast_1d(np.asarray(learner.propose(state, ComparisonPool(user, pairs), rng), np.int64))
    if size > 2:
        others = numbers[~np.isin(numbers, y)]
        mean = np.asarray(learner.posterior(state, user, others).mean)
        y = np.concatenate([y, others[(-mean).argsort(kind="stable")]])[:size]
    return y
