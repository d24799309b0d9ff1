"""The learners of an experiment, which follow a loop's log without serving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heedful.loop.history import History
from heedful.loop.interactions.protocol import Interaction
from heedful.loop.model import LoopModel, Moves
from heedful.loop.serving import Running, Side
from heedful.loop.snapshots import KeptModel, stamp

StartFollowing = Callable[[History, Interaction[Any], LoopModel, int, bool], tuple[int, Moves]]
"""Loads a stored state of a model that follows: see `heedful.loop.keeper.Keeper.start_following`."""


class Follower:
    """A learner that learns from a loop's log without serving, such as the candidate of an experiment."""

    def __init__(self, interaction: Interaction[Any], start: StartFollowing, until: int = 0) -> None:
        """Begin with a model that has learned nothing; `follow` lets it learn.

        `interaction` is the loop's kind of feedback with the learner that follows. Its model begins from the state that
        `start` loads, and learns up to event `until`, or for as long as the log grows if that is 0."""
        self.interaction, self._start, self._until = interaction, start, until
        self.failed = ""
        """why the learner failed, after which it learns nothing more; "" if it did not"""
        self.learned = 0
        """how many pieces of feedback it has learned that the state from which it began did not have"""
        self._position = -1
        self.model: LoopModel = interaction.fresh()
        self._moves = Moves()
        self._side: Side | None = None

    def follow(self, history: History, head: int) -> Side:
        """Learn from what came in the log of `history` up to event `head`, and return the state to rank by.

        The first time it begins from a state that is kept, in memory or in a snapshot, if there is one."""
        end = min(head, self._until) if self._until else head
        if self._position < 0:
            self._position, self._moves = self._start(history, self.interaction, self.model, end, end == self._until)
        if end > self._position and not self.failed:
            for event, decision, feedback in history.steps([self.model], self._position, end):
                before = self._predictor(decision.person)
                try:
                    learned = history.teach(self.model, event, decision, feedback)
                except Exception as error:  # whatever a learner of somebody's own raises
                    name = type(self.interaction.learner).__name__
                    self.failed = f"{name} failed on feedback {event.id}: {type(error).__name__}: {error}"
                    break
                self.learned += 1
                moved = learned and (before is None or self._predictor(decision.person) != before)
                self._moves = Moves(self._moves.given + 1, self._moves.moved + moved)
            self._position, self._side = end, None
        if self._side is None:
            shared = self.model.publish()
            self._side = Side(self.interaction, self.model, shared, self.model.people)
        return self._side

    def _predictor(self, person: str | None) -> list[bytes] | None:
        """Return what `Interaction.predictor` returns for `person`; None if the learner fails, as this is only used to
        count what changed predictions."""
        try:
            return self.model.predictor(person)
        except Exception:  # whatever a learner of somebody's own raises; it is told where the learner ranks
            return None

    def keep(self) -> KeptModel | None:
        """Return a copy of the model as it is now, to begin from later; None if it has learned nothing, or failed."""
        if self.failed or self._position < 1:
            return None
        return KeptModel.copy_of(self.model, self._position, self._moves, stamp(self.interaction))


class Following:
    """The learners that follow a loop's log while an experiment runs: its candidate and, if it is frozen, the learner
    that serves as it was then."""

    def __init__(self, start: StartFollowing) -> None:
        """Follow nothing so far; models begin from what `start` loads."""
        self._start = start
        self._experiment = ""
        self._own: Follower | None = None
        self._candidate: Follower | None = None

    def follow(self, history: History, head: int) -> tuple[Running | None, int]:
        """Let the learners of the experiment that runs learn from what is new in the log up to event `head`; return
        (both sides as they rank now, how much a candidate learned that follows from now on).

        The first is None if no experiment runs, or if the candidate cannot be made or has failed, which is noted."""
        begun = 0
        if history.experiment is None:
            self.end()
            return None, 0
        event, record = history.experiment
        candidate = self._candidate
        if candidate is None or self._experiment != event.id:
            try:
                interaction = history.candidate(record.learner)
            except ValueError as error:
                history.note(f"experiment {event.id}: {error}: it waits")
                return None, 0
            frozen = record.frozen
            self._own = Follower(history.interaction, self._start, frozen) if frozen else None
            candidate = self._candidate = Follower(interaction, self._start, frozen)
            self._experiment = event.id
            candidate.follow(history, head)
            begun = candidate.learned
        side = candidate.follow(history, head)
        if candidate.failed:
            history.note(f"experiment {event.id}: {candidate.failed}: it waits")
            return None, begun
        return Running(event.id, record, None if self._own is None else self._own.follow(history, head), side), begun

    def keep(self) -> tuple[KeptModel, ...]:
        """Return copies of the models that follow, to begin from later."""
        kept = [each.keep() for each in (self._own, self._candidate) if each is not None]
        return tuple([each for each in kept if each is not None])

    def end(self) -> None:
        """Drop the models that follow."""
        self._own = self._candidate = None
