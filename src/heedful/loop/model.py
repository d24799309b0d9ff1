"""What the models of all kinds of feedback share: the state of one person, and a decision with its arrays.

Each interaction (`heedful.loop.interactions`, one for each kind of feedback) has its own model in its module `model`.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from heedful.jit.kernel import Floats
from heedful.loop.records import DecisionRecord


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


def view_of(model: Any, name: str | None = None) -> View[Any]:
    """Return `model` as it is now for the person `name`, None for nobody in particular."""
    return View(model, model.shared, None if name is None else model.people.get(name))


class Context(NamedTuple):
    """A logged decision with its arrays: what a model needs to learn from feedback on it."""

    record: DecisionRecord
    """the decision as the log keeps it"""
    x: Floats
    """the m candidates as the learner sees them: their N features (m, N) with the caller's score in the last column or,
    in kinds that know items by number, the numbers of the items (m,)"""
    person: str | None
    """whom the decision was for; None for nobody in particular"""
