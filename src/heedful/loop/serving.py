"""Which learner serves a loop, and which candidate learner is tried next to it, as events of the log say.

| event | what it says |
|---|---|
| `experiment` | a candidate learns from the log too; for a share of people its ranking is interleaved with the loop's |
| `stop` | the experiment is over |
| `promote` | a learner serves from here on; it has learned from the whole log, and ends the experiment |

An event counts unless a rollback leaves it out. The newest promotion in effect names the learner that serves; if there
is none, the loop's manifest does.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import msgspec
import numpy as np

from heedful.core.decoding import decoder
from heedful.jit.kernel import Floats, Ints
from heedful.loop.interactions.protocol import Interaction
from heedful.loop.log import Event, Log, Retractions
from heedful.loop.model import LoopModel, Person, View

KINDS = ("experiment", "stop", "promote")
"""The kinds of events that say which learner serves, or is tried."""
NOT_INTERLEAVED = "{loop} shows no rankings, and nothing else can be interleaved"
"""Why there are no experiments in a loop, in words; `loop` describes a loop of its kind."""


class ExperimentRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An experiment as its first event keeps it: a candidate learner (side B) against the learner that serves (side A).

    `learner` (with `learner_version` of its code) is the candidate, `against` the learner that serves, by name and
    parameters. `share` is the share of people whose lists the two make together, picking items in turns (team-draft
    interleaving). `frozen` is the version of the log after which both stop learning; at 0 both go on. `alpha` is the
    probability, at most, of a wrong verdict."""

    learner: str
    """the candidate, by name and parameters"""
    learner_version: str
    """the version of the candidate's code"""
    against: str
    """the learner that served when the experiment began"""
    share: float = 0.0
    """the share of people, 0 to 1, whose lists both sides draft together (interleaving); 0 if the candidate's lists are
    only logged"""
    frozen: int = 0
    """the version (sequence number) after which neither side learns on in the experiment; 0 if both learn on"""
    alpha: float = 0.05
    """the probability with which the verdict may be wrong, at most, however often it is looked at"""


class PromotionRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A promotion as its event keeps it: the learner that serves from then on, in place of the one before, with the
    evidence.

    `evidence` is {name: value} of what spoke for it, `forced` are the reasons against it that were overruled, and `by`
    and `reason` who did it and why, in their words."""

    learner: str
    """the learner that serves from then on, by name and parameters"""
    learner_version: str
    """the version of its code"""
    before: str
    """the learner that served until then, by name and parameters"""
    evidence: dict[str, Any]
    """what spoke for it: the method ("interleaving" of lists shown to people, or "log" for predictions of logged
    answers) and its numbers at that time"""
    forced: tuple[str, ...] = ()
    """the reasons against it that were overruled, a sentence each"""
    by: str = ""
    """who promoted it, as they said"""
    reason: str = ""
    """why, in the words of that person"""


read_experiment = decoder(ExperimentRecord).decode
read_promotion = decoder(PromotionRecord).decode


class Orders(NamedTuple):
    """Which learner serves and which is tried, at one point of the log: the event of the newest promotion in effect
    (`promoted`; None if the learner that the loop was created with serves) and that of the experiment that runs
    (`running`, or None)."""

    promoted: Event | None
    """the event of the promotion that names the learner that serves; None if the manifest does"""
    running: Event | None
    """the event of the experiment that runs; None if there is none"""


def orders(log: Log, retractions: Retractions, up_to: int = 2**62) -> Orders:
    """Return which learner serves a loop and which experiment runs, by the events up to sequence number `up_to` of its
    `log`.

    Events in `retractions`, which were rolled back, do not count."""
    places = [seq for seq in log.places(*KINDS, up_to=up_to) if seq not in retractions]
    promoted = running = None
    for event in sorted(log.many(places)):
        if event.kind == "promote":
            promoted = event
        running = event if event.kind == "experiment" else None
    return Orders(promoted, running)


def takes_part(experiment: str, share: float, person: str | None) -> bool:
    """Return whether `person` is among the `share` (0 to 1) of people whose lists are interleaved in this `experiment`.

    It is drawn by a hash of the experiment's id and the person's name, so it is the same at every request. A request
    for nobody in particular (None) takes no part."""
    if person is None or share == 0.0:
        return False
    digest = hashlib.blake2b(f"{experiment}\0{person}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") < share * 2.0**64


def draft_generator(seed: int, decision: str) -> np.random.Generator:
    """Return the random generator that tosses the coins of an interleaved list, keyed by the loop's `seed` and the
    decision's id."""
    key = np.frombuffer(hashlib.blake2b(f"draft\0{seed}\0{decision}".encode(), digest_size=16).digest(), "<u8")
    return np.random.Generator(np.random.Philox(key=key))


# ---------------------------------------------------------------------------- the two sides


class Side(NamedTuple):
    """One of the two learners of an experiment, with the state by which it ranks: `shared` by all people, and of single
    `people` by name.

    Nobody writes to `shared` any more; a state in `people` may be one piece of feedback newer. `interaction` is the
    kind of feedback with this learner, `model` has the functions that rank."""

    interaction: Interaction[Any]
    """the kind of feedback, with the learner of this side"""
    model: LoopModel
    """the model, whose functions rank"""
    shared: Any
    """the state that all people share"""
    people: dict[str, Person]
    """the states of single people, by name"""

    def order(self, person: str | None, x: Floats | Ints) -> Ints:
        """Return the indices (m,) of the candidates `x`, best first for `person`, None for nobody in particular.

        `x` are the N features (m, N) of m candidates or, in kinds that know items by number, the numbers of the items
        (m,).
        """
        return self.interaction.order(View(self.model, self.shared, self.model.person(self.people, person)), x)


class Running(NamedTuple):
    """The experiment that runs: its id, its settings (`record`), and its two learners as they rank now.

    `candidate` is side B; `own` is side A, the learner that serves, None if that is the loop's own model, which learns
    on."""

    id: str
    """the id of the experiment"""
    record: ExperimentRecord
    """its settings"""
    own: Side | None
    """side A, the learner that serves; None if that is the loop's own model, which learns on"""
    candidate: Side
    """side B, the candidate learner"""
