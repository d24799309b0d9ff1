"""What a loop publishes: the state of its model that decisions are made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from heedful.loop.interactions.protocol import Interaction
from heedful.loop.model import LoopModel, Moves, Person, View
from heedful.loop.serving import Running


class PublishedState(NamedTuple):
    """The state of the model that readers make decisions from, as it was after the last commit; its arrays are not
    written to again.

    `version` is the sequence number of the last event that it was made of. `model` has the functions that rank,
    `shared` and `people` are the states that they rank by: of all people together, and of single people by name.
    `interaction` is the kind of feedback with the learner that serves, which `named` names. `moves` and `failed` say of
    what feedback it was made."""

    version: int
    """the sequence number of the last event that it was made of"""
    shared: Any
    """the state that all people share"""
    people: dict[str, Person]
    """the states of single people, by name; may already hold a newer one, whose `since` is above `version`"""
    interaction: Interaction[Any]
    """the kind of feedback, with the learner that served at that version; while a model is made again after a
    promotion, `History.interaction` has the next one already"""
    model: LoopModel
    """the model whose functions rank by these states"""
    named: str
    """that learner with its version, as decisions name it: "NAME@VERSION\""""
    running: Running | None = None
    """the experiment that runs, with both sides as they rank; None if there is none"""
    moves: Moves = Moves()
    """how much feedback the model is made of, and how much of it changed predictions"""
    failed: Mapping[int, str] = {}
    """feedback that the learner failed on and the model leaves out: sequence number -> what went wrong, in words"""

    def view(self, person: str | None) -> View[LoopModel]:
        """Return this state for `person`, None for nobody in particular."""
        return View(self.model, self.shared, self.model.person(self.people, person))
