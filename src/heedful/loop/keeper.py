"""States of a loop's models that are kept, in memory and in snapshots, to begin from in place of the first event."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from heedful.core.fold import count_numbers, must_interpret
from heedful.loop import snapshots
from heedful.loop.batch import Kept
from heedful.loop.fold import Fold
from heedful.loop.history import History
from heedful.loop.interactions.protocol import Interaction
from heedful.loop.log import Log, Retractions
from heedful.loop.model import LoopModel, Moves
from heedful.loop.snapshots import KeptModel

MARKS, FEW_MARKS, BETWEEN = 4, 2, 250
"""How many states of the model are kept in memory for undoing, how many of a `LARGE` one, and the fewest lessons
between two of them."""
SLOW_BETWEEN, SLOW_SNAPSHOT = 50, 1_000
"""How many lessons are learned between two states kept in memory, and how many at most before a snapshot is written,
where an update takes milliseconds."""

LARGE, WORTH = 4_000_000, 200
"""From so many numbers of a model on, its snapshots wait for a lesson for each `WORTH` of them: to write 1.6 kB takes
less than a fifth of the time of a lesson. What is imported at once would spend most of the time on snapshots."""


class Mark(NamedTuple):
    """What is kept in memory of the models as they were after one event, so that learning starts again from here after
    an undo of recent feedback."""

    serving: KeptModel
    """the loop's model"""
    others: tuple[KeptModel, ...] = ()
    """the models that follow the log without serving, those of an experiment; () if none runs"""


class IncompleteModel(ValueError):
    """Raised if a snapshot is asked for while the model lacks feedback that the learner failed on.

    A start from it would neither try that again nor report it."""


class Keeper:
    """The states that are kept of one loop, and how much was learned since. The thread that writes calls it."""

    def __init__(self, log: Log) -> None:
        """Keep nothing so far; snapshots of earlier are those of the loop with this `log`."""
        self.shelf = snapshots.shelf_of(log)
        """where the snapshots are"""
        self._marks: list[Mark] = []
        self.kept = Kept()
        """training examples in memory"""
        self.since_snapshot = 0
        """how much the models have learned since the last snapshot, or since the one that they began from"""
        self._since_mark = 0
        self.elsewhere = False
        """whether the model began from a snapshot that another kind of processor had a part in"""

    def count(self, learned: int) -> None:
        """Count lessons that the model has learned."""
        self.since_snapshot += learned
        self._since_mark += learned

    def ask_for_snapshot(self) -> None:
        """Let a snapshot be due."""
        self.since_snapshot = sys.maxsize

    # ------------------------------------------------------------------------ in memory

    def mark_due(self, history: History, people: int) -> bool:
        """Return whether a state should be kept in memory of a model with states of so many `people`."""
        return self._since_mark >= (SLOW_BETWEEN if must_interpret(history.learner) else max(BETWEEN, people))

    def mark(self, history: History, fold: Fold, position: int, others: tuple[KeptModel, ...]) -> None:
        """Keep the model of `fold` as it is after event `position`, which was published, and drop the oldest if there
        are too many."""
        shared = history.published.shared  # never written to again
        serving = KeptModel(position, shared, dict(fold.model.people), fold.moves, history.stamp())
        most = MARKS if count_numbers(shared) < LARGE else FEW_MARKS
        self._marks = [*self._marks, Mark(serving, others)][-most:]
        self._since_mark = 0

    def drop_outdated(self, retractions: Retractions) -> None:
        """Drop the states in memory that hold something that `retractions` leave out."""
        self._marks = [mark for mark in self._marks if not retractions.changes(mark.serving.position)]

    def change_learner(self, history: History, others: Sequence[KeptModel]) -> None:
        """Drop the states and the training examples in memory, which are of another learner than the one that serves
        now, but for one of `others` that is of this one: a candidate that was promoted has learned all of it
        already."""
        self.kept.forget()
        self._marks = [Mark(other) for other in others if other.stamped == history.stamp()][-1:]

    # ------------------------------------------------------------------------ to begin from

    def start(self, history: History, model: LoopModel, head: int) -> tuple[int, Moves]:
        """Load the newest stored state up to event `head` that no undo has outdated into `model`, which has learned
        nothing; return (the sequence number up to which it has learned, 0 if there is no such state, how much feedback
        it is made of)."""
        if self._marks:
            return self._marks[-1].serving.load_into(model)
        self.since_snapshot = 0
        begun = snapshots.restore(self.shelf, model, history.log, head, history.stamp(), history.note)
        self.elsewhere = begun[2]
        return begun[:2]

    def load_mark(self, model: LoopModel, version: int) -> int:
        """Load the newest state in memory that is at most as new as `version` into `model`, which has learned nothing;
        return the sequence number up to which it has learned, 0 if there is no such state."""
        for mark in self._marks[::-1]:
            if mark.serving.position <= version:
                return mark.serving.load_into(model)[0]
        return 0

    def start_following(
        self, history: History, interaction: Interaction[Any], model: LoopModel, head: int, frozen: bool
    ) -> tuple[int, Moves]:
        """Do what `start` does for a `model` that is to follow the log without serving, such as the candidate of an
        experiment.

        `interaction` is the loop's kind of feedback with the learner of that model; `frozen` says whether the model
        learns nothing after `head`."""
        stamped = snapshots.stamp(interaction)
        for other in [other for mark in self._marks[::-1] for other in mark.others]:
            if other.stamped == stamped and other.position <= head:
                return other.load_into(model)
        return snapshots.restore(self.shelf, model, history.log, head, stamped, lambda _: None, True, frozen)[:2]

    # ------------------------------------------------------------------------ in snapshots

    def due(self, history: History, model: LoopModel) -> bool:
        """Return whether a snapshot of `model` should be written: as many pieces of feedback as the setting
        `snapshot_every` were learned since the last, and more of a large model."""
        if self.since_snapshot < _every(history):
            return False
        numbers = count_numbers(model.shared) + len(model.people) * count_numbers(model.nobody())
        return numbers < LARGE or self.since_snapshot >= numbers // WORTH

    def draw(
        self,
        history: History,
        fold: Fold,
        position: int,
        retractions: Retractions,
        others: Sequence[KeptModel],
    ) -> Any:
        """Return a snapshot of the model of `fold` as it is after event `position`, to be written. Raise
        IncompleteModel if it lacks feedback that `retractions` do not leave out."""
        if left := sorted(seq for seq in fold.failed if seq not in retractions):
            event = history.log.at(left[0])
            named = event.id if event is not None else left[0]
            raise IncompleteModel(f"the learner failed on feedback {named}: undo it, or mend the learner")
        serving = KeptModel(position, fold.model.shared, fold.model.people, fold.moves, history.stamp())
        return snapshots.draw(self.shelf, history.log, serving, others, self.elsewhere)

    def forget(self, history: History, person: str | None = None) -> None:
        """Remove what is kept, which may hold events that were erased from the log; if they were all of one `person`,
        training examples of others stay in memory."""
        self.shelf.clear()
        self.forget_memory(history, person)

    def forget_memory(self, history: History, person: str | None = None) -> None:
        """Drop the decisions, items, training examples and states of the model that are in memory, of the examples only
        those of one `person` if it is given."""
        self._marks = []
        if person is None:
            self.kept.forget()
        else:
            self.kept.drop(person)
        history.decisions.clear()
        history.catalogue.look_again()


def _every(history: History) -> int:
    return min(history.settings.snapshot_every, SLOW_SNAPSHOT if must_interpret(history.learner) else sys.maxsize)
