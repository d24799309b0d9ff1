"""A learner's fold over the feedback of a loop, lesson by lesson."""

from __future__ import annotations

from collections.abc import Mapping

from heedful.loop.history import History
from heedful.loop.log import Event
from heedful.loop.model import Moves
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord


class Fold:
    """A model, what it was made of, and what the learner failed on."""

    def __init__(self, history: History, failed: Mapping[int, str] | None = None) -> None:
        """Begin with a model of the learner that serves, which has learned nothing. Feedback in `failed`, by sequence
        number, is left out."""
        self.model = history.fresh()
        """the model, which learns in place"""
        self.moves = Moves()
        """how much feedback it is made of, and how much of it changed predictions"""
        self.learned = 0
        """how many lessons it has learned, those of a stored state that it began from not counted"""
        self.failed: Mapping[int, str] = {} if failed is None else failed
        """feedback that the learner failed on and the model leaves out: sequence number -> what went wrong, in words"""
        self.broken = False
        """whether the learner failed on something: it may have stopped half-way, so the model has to be made again"""

    def learn(self, history: History, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """Learn from one piece of feedback in `history`; return whether there was anything to learn in it.

        If the learner fails, that is noted and False is returned. The feedback is then in `failed`, and the fold is
        `broken`."""
        if event.seq in self.failed:
            return False
        model = self.model
        before = model.predictor(decision.person)
        try:
            learned = history.teach(model, event, decision, feedback)
        except Exception as error:  # whatever a learner of somebody's own raises
            name = type(history.learner).__name__
            told = f"{name} failed on it and learned nothing: {type(error).__name__}: {error}"
            self.failed, self.broken = {**self.failed, event.seq: told}, True
            history.note(f"feedback {event.id}: {told}; mend the learner and open the loop again, or undo it")
            return False
        moved = learned if before is None else model.predictor(decision.person) != before
        self.count(1, moved, learned)
        return learned

    def count(self, given: int, moved: int, learned: int) -> None:
        """Count `given` pieces of feedback, of which the model learned from `learned`, and `moved` changed what it
        predicts."""
        self.moves = Moves(self.moves.given + given, self.moves.moved + moved)
        self.learned += learned
