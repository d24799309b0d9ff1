"""Explanations of decisions: what put the first item there, and which feedback moved that. One procedure serves all
kinds of feedback.

What an explanation is made of is computed by the loop's interaction (`Interaction.explain`), which reads the log
through `LoggedPast`. The model of the decision is made again from the log; nothing is changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from heedful.loop import records
from heedful.loop.history import History
from heedful.loop.log import Event
from heedful.loop.model import Context
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord
from heedful.results.explanation import Explanation, Moved


def explain(history: History, id: str) -> Explanation:
    """Return why the first item of the decision `id` stood first, in the loop whose log and model are `history`.

    Raise LookupError if there is no such decision, or if it showed nothing that was on offer."""
    id = records.check_id("decision", id)
    known = history.find_decision(id)
    if known is None:
        raise LookupError(f"decision {id} is not in the log")
    if not known.record.shown:
        raise LookupError(f"decision {id} showed nothing that was on offer: there is nothing to explain")
    past = LoggedPast(history, known.version)
    found: Explanation = past.interaction.explain(known, history.requests.context(known), past)
    return found


class LoggedPast:
    """The log up to the version of the model that made a decision, and that model made again: what an interaction reads
    to explain the decision."""

    def __init__(self, history: History, version: int) -> None:
        """Read the log of `history` up to `version`, with the learner that served then."""
        self._history, self._version = history, version
        self.interaction = history.interaction_at(version)
        """the kind of feedback of this loop, with that learner"""
        self._serves = self.interaction is history.interaction

    @cached_property
    def failed(self) -> frozenset[int]:
        """the sequence numbers of the feedback that the learner failed on, which is left out"""
        if self._serves:
            return frozenset(self._history.failed)
        failed, count = set[int](), -1
        while len(failed) > count:  # it may have stopped half-way: once more, without that piece of feedback
            model, count = self.interaction.fresh(), len(failed)
            for event, decision, feedback in self._history.steps([model], 0, self._version):
                try:
                    if event.seq not in failed:
                        self._history.teach(model, event, decision, feedback)
                except Exception:  # whatever a learner of somebody's own raises
                    failed.add(event.seq)
                    break
        return frozenset(failed)

    def model(self) -> Any:
        """Return the model of that version, made from the newest stored state before it and the feedback after that.

        If another learner serves by now, it is made from the beginning of the log."""
        history, model = self._history, self.interaction.fresh()
        start = history.before(model, self._version) if self._serves else 0
        for event, decision, feedback in history.steps([model], start, self._version):
            if event.seq not in self.failed:
                history.teach(model, event, decision, feedback)
        return model

    def follow(self, margin: Callable[[Any], float]) -> tuple[Any, list[Moved]]:
        """Return (model, moves): the model of that version, and how much each piece of feedback moved `margin`, the
        largest move in size first.

        `margin` is a function from a model to a number; it is called before and after every piece of feedback, from an
        empty model on."""
        history, moved = self._history, list[Moved]()
        model = self.interaction.fresh()
        before = margin(model)
        for event, decision, feedback in history.steps([model], 0, self._version):
            if event.seq in self.failed or not history.teach(model, event, decision, feedback):
                continue
            after = margin(model)
            if after != before and not (math.isnan(after) and math.isnan(before)):
                moved.append(Moved(event.id, event.seq, feedback.form, after - before))
            before = after
        return model, sorted(moved, key=lambda each: by_size(each.by))

    def feedback(self) -> Iterator[tuple[Event, LoggedDecision, FeedbackRecord]]:
        """Yield (event, decision, record) of the feedback that the model of that version was made of, in order.

        Feedback that the learner failed on is left out."""
        for event, decision, feedback in self._history.lessons(up_to=self._version):
            if event.seq not in self.failed:
                yield event, decision, feedback

    def context(self, decision: LoggedDecision) -> Context:
        """Return the decision with its arrays, as they were when it was made."""
        return self._history.requests.context(decision)


def by_size(value: float) -> float:
    """Return a sort key that puts numbers in order of decreasing absolute value, nan before all.

    What differs beyond nine digits or the twelfth decimal is alike: processors round differently."""
    return -math.inf if math.isnan(value) else -float(f"{abs(round(value, 12)):.9g}")
