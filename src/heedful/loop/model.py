"""The base of the models of all kinds of feedback, the state of one person, and a decision with its arrays.

Each interaction (`heedful.loop.interactions`, one for each kind of feedback) has its own model in its module `model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from heedful.core.fold import copy_arrays
from heedful.jit.kernel import Floats
from heedful.loop.catalogue import Catalogue
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import DecisionRecord, FeedbackRecord

if TYPE_CHECKING:
    from heedful.loop.settings import Manifest

Answered = tuple[Event, LoggedDecision, FeedbackRecord]
"""A piece of feedback: its event, the decision that it answers, its decoded record."""


class Person(NamedTuple):
    """The state that is learned for one person in addition to the state that all people share."""

    state: Any
    """what is learned for this person alone, such as weights of their own, a shift of the score, or, in kinds that keep
    all people in shared arrays, the person's index there"""
    lessons: int
    """how many lessons (training steps from feedback) of this person it is made of"""
    since: int
    """the version of the shared state (a sequence number in the log) that this state needs: readers wait until a shared
    state of at least that version is published"""


class Moves(NamedTuple):
    """Counts of feedback: `given` pieces that a model was made of, of which `moved` changed what it predicts."""

    given: int = 0
    """pieces of feedback that the model was made of"""
    moved: int = 0
    """how many of them changed a prediction"""


M_co = TypeVar("M_co", covariant=True)


class View(NamedTuple, Generic[M_co]):
    """A model as it is for one person: what decisions, predictions and judgements are made from."""

    model: M_co
    """the model (`LoopModel`), which has the functions that rank and predict"""
    shared: Any
    """the state that all people share: the model's own, or a copy that was published to readers"""
    person: Person | None = None
    """what was learned for the person alone; None if nothing was, or for nobody in particular"""


class Context(NamedTuple):
    """A logged decision with its arrays: what a model needs to learn from feedback on it."""

    record: DecisionRecord
    """the decision as the log keeps it"""
    x: Floats
    """the m candidates as the learner sees them: their N features (m, N) with the caller's score in the last column or,
    in kinds that know items by number, the numbers of the items (m,)"""
    person: str | None
    """whom the decision was for; None for nobody in particular"""


class LoopModel:
    """The state of a loop, made by learning from its log event by event: the learner's state for all people, and each
    person's own.

    The base of the model of each kind of feedback, which has to define `lesson`, `teach` and `effective`.
    `teach` and `on_item` are all that change it."""

    version: int
    """the version of the code that turns feedback into the learner's training examples, declared by the class and
    raised with every change of that code"""
    learner: Any
    """the learner, with the functions `init`, `propose` and `update` of its state"""
    shared: Any
    """the learner's state that all people share"""
    people: dict[str, Person]
    """each person's own state, by the person's name"""

    def __init__(self, learner: Any, manifest: Manifest) -> None:
        """Make a model that has learned nothing, of `learner`, which fits a loop with this `manifest`."""
        self.learner, self.people = learner, {}

    # ------------------------------------------------------------------------ learning

    def refusal(self, form: str) -> str | None:
        """Return why the learner cannot use feedback of the form with the name `form` ("clicks"), one that the kind of
        feedback takes; None if it can."""
        return None

    def lesson(self, context: Context, feedback: FeedbackRecord, extra: Floats) -> Any:
        """Return the training example that the learner makes of a piece of feedback; None if there is nothing to learn
        in it.

        Its type depends on the kind of feedback: for grades, features with their grades. Nothing is learned here.

        - `context`: the decision that the feedback answers, with its m candidates as an array
        - `feedback`: the decoded record of the feedback in the log
        - `extra` (e, N): the N features of e objects that the feedback names and that were not among the candidates,
          such as an edited text"""
        raise NotImplementedError

    def teach(self, context: Context, feedback: FeedbackRecord, extra: Floats, version: int) -> bool:
        """Learn from one piece of feedback, in place; return whether there was anything to learn.

        The arguments are those of `lesson`, and `version`: the sequence number of the feedback in the log, which is the
        model's version afterwards."""
        raise NotImplementedError

    def teaches(self, lesson: Any) -> bool:
        """Return whether there is anything to learn in `lesson`, a training example that `lesson` made.

        To agree with what is predicted is something to learn, to compare nothing is not."""
        return True

    def on_item(self, event: Event, catalogue: Catalogue) -> str:
        """Take in, in place, that an item was put on offer, changed or withdrawn by `event`.

        `catalogue` holds the items of the loop. Return "", or the reason as text if the learner failed. Only kinds
        whose learners know items by number do anything here."""
        return ""

    # ------------------------------------------------------------------------ keeping

    def replace(self, shared: Any) -> None:
        """Put `shared`, whose arrays the model may overwrite, in place of the state that all people share."""
        self.shared = shared

    def nobody(self) -> Any:
        """Return an example of the state that is kept for each person, as a template for reading such states from a
        file."""
        return self.shared

    def publish(self) -> Any:
        """Return a copy of the state for all people, for the threads that make decisions.

        Its arrays are never written to again, so they may be read while the model goes on learning."""
        return copy_arrays(self.shared)

    def predictor(self, name: str | None) -> list[bytes] | None:
        """Return the arrays from which predictions for the person `name` are computed, as bytes; None if every piece of
        feedback changes them.

        A caller compares them before and after learning, to count the feedback that changed no prediction."""
        return None

    # ------------------------------------------------------------------------ reading

    def person(self, people: Mapping[str, Person], name: str | None) -> Person | None:
        """Return what was learned for the person `name` alone, out of `people`; None if nothing was, or if `name` is
        None, for nobody in particular."""
        return None if name is None else people.get(name)

    def view(self, name: str | None = None) -> View[Any]:
        """Return this model as it is now for the person `name`, None for nobody in particular."""
        return View(self, self.shared, self.person(self.people, name))

    def effective(self, view: View[Any]) -> Any:
        """Return the weight of each of the N features for a person (N,); empty (0,) for a model without such
        weights."""
        raise NotImplementedError

    def weight_spreads(self, view: View[Any]) -> Any:
        """Return the standard deviation of each weight that `effective` returns (N,); None if the learner cannot
        tell."""
        return None

    def lacks(self, shared: Any, x: Any) -> bool:
        """Return whether the published state `shared` is older than some of the m candidates `x`, so that it has to be
        published again.

        `x` are N features each (m, N) or item numbers (m,). Only kinds that know items by number can lack one."""
        return False

    def describe_overflow(self, shared: Any) -> str:
        """Return a sentence on why the state `shared` for all people cannot predict any more, and what to do; "" if it
        can.

        The usual reason is that numbers in it are not finite or too large."""
        return ""

    def adds_up(self, view: View[Any]) -> bool:
        """Return whether learning from a piece of feedback changes the scores for a person by the same amount, whatever
        else was learned.

        If so, a score is a sum over pieces of feedback, and what each of them added is also what leaving it out would
        take away."""
        return False
