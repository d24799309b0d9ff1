"""Which learner serves a loop, and which candidate runs beside it, as events of the log say.

| event | what it says |
|---|---|
| `experiment` | a candidate learner follows the log; for a share of people its ranking is interleaved with the loop's |
| `stop` | the experiment is over |
| `promote` | a learner serves from here on; it has the whole log behind it, and ends the experiment |

Each counts unless a rollback leaves it out. The newest promotion in effect names the learner that serves, otherwise
the loop's manifest does.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from heedful.core.decoding import decoder
from heedful.loop.log import Event, Retractions
from heedful.loop.model import Person

if TYPE_CHECKING:
    from heedful.jit.kernel import Ints
    from heedful.loop.interactions.protocol import Interaction, LoopModel
    from heedful.loop.log import Log
    from heedful.loop.projection import Projection

KINDS = ("experiment", "stop", "promote")
"""The kinds of events that say which learner serves, or is tried."""


class ExperimentRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An experiment as its first event keeps it: a candidate (side B) against the learner that serves (side A)."""

    learner: str
    """the candidate, by name and parameters"""
    learner_version: str
    against: str
    """the learner that served when the experiment began"""
    share: float = 0.0
    """the share of people whose lists both sides draft together; 0 if the candidate only proposes"""
    frozen: int = 0
    """the version of the model that both sides stay at; 0 if both learn on"""
    alpha: float = 0.05
    """the probability with which the verdict may be wrong, however often it is looked at"""


class PromotionRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A promotion as its event keeps it."""

    learner: str
    learner_version: str
    before: str
    """the learner that served until then"""
    evidence: dict[str, Any]
    """what spoke for it: the method ("interleaving", "log") and its numbers at that time"""
    forced: tuple[str, ...] = ()
    """the reasons against it that were overruled"""
    by: str = ""
    """who promoted it, as they said"""
    reason: str = ""


read_experiment = decoder(ExperimentRecord).decode
read_promotion = decoder(PromotionRecord).decode


class Orders(NamedTuple):
    """What the log says at one point of it."""

    promoted: Event | None
    """the promotion that names the learner that serves; None if the manifest does"""
    running: Event | None
    """the experiment that runs; None if there is none"""


def orders(log: Log, retractions: Retractions, up_to: int = 2**62) -> Orders:
    """Return which learner serves and which experiment runs after event `up_to`, by the events that `retractions` leave
    in effect."""
    places = sorted(seq for kind in KINDS for seq in log.places(kind) if seq <= up_to and seq not in retractions)
    promoted = running = None
    for event in sorted(log.many(places)):
        promoted = event if event.kind == "promote" else promoted
        running = event if event.kind == "experiment" else None
    return Orders(promoted, running)


def takes_part(experiment: str, share: float, person: str | None) -> bool:
    """Return whether a person is among the `share` whose lists are interleaved in the experiment with this id. It is
    the same at every request; a request for nobody in particular takes no part."""
    if person is None or share == 0.0:
        return False
    digest = hashlib.blake2b(f"{experiment}\0{person}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") < share * 2.0**64


def draft_generator(seed: int, decision: str) -> np.random.Generator:
    """Return the generator of the coins of a decision's draft, keyed by the loop's `seed` and the decision's id."""
    key = np.frombuffer(hashlib.blake2b(f"draft\0{seed}\0{decision}".encode(), digest_size=16).digest(), "<u8")
    return np.random.Generator(np.random.Philox(key=key))


# ---------------------------------------------------------------------------- the two sides


class Side(NamedTuple):
    """A model that ranks in an experiment, as readers see it: nobody writes to `shared` any more. A person's own state
    in `people` may be that of a lesson later."""

    interaction: Interaction[Any]
    model: LoopModel
    shared: Any
    people: dict[str, Person]

    def order(self, person: str | None, x: Any) -> Ints:
        """Return the candidates `x` (m,), best first for this person."""
        own = self.interaction.person(person)
        return self.interaction.order(self.model, self.shared, None if own is None else self.people.get(own), x)


class Running(NamedTuple):
    """The experiment that runs, as readers see it."""

    id: str
    record: ExperimentRecord
    own: Side | None
    """side A; None if it is the model that serves, which learns on"""
    candidate: Side
    """side B"""


class Follower:
    """The fold of a learner that follows the log of a loop without serving."""

    def __init__(self, projection: Projection, interaction: Interaction[Any], until: int = 0) -> None:
        """Fold the whole log by the learner of `interaction`, up to event `until`, or for ever if that is 0."""
        self._projection, self.interaction, self._until = projection, interaction, until
        self.failed = ""
        """why the learner failed, and follows no further; "" if it did not"""
        self._position = 0
        self.model: LoopModel = interaction.fresh()
        self._side: Side | None = None

    def follow(self, head: int) -> Side:
        """Take in what came up to event `head`, and return the state to rank by."""
        end = min(head, self._until) if self._until else head
        if end > self._position and not self.failed:
            projection = self._projection
            for event, decision, feedback in projection.steps([self.model], self._position, end):
                try:
                    projection.teach(self.model, event, decision, feedback)
                except Exception as error:  # whatever a learner of somebody's own raises
                    name = type(self.interaction.learner).__name__
                    self.failed = f"{name} failed on feedback {event.id}: {type(error).__name__}: {error}"
                    break
            self._position, self._side = end, None
        if self._side is None:
            shared = self.interaction.publish(self.model)
            self._side = Side(self.interaction, self.model, shared, self.model.people)
        return self._side
