"""Explain why an item of a decision had its score: what its features contribute, and which feedback moved the score
most.

One procedure for all kinds of feedback: scores and contributions are computed by the interaction (`item_scores`,
`contributions`). Here the model of the decision is made again from the log and, where that is affordable, also without
each piece of feedback in turn. Nothing is changed. The file is long because the influence of feedback is measured in
two ways, and the answer is described field by field."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from heapq import merge
from typing import Any, NamedTuple

from heedful.core.fold import copy_arrays, count_numbers
from heedful.core.validation import check_between, check_count
from heedful.loop import records
from heedful.loop.history import History
from heedful.loop.interactions.protocol import Step
from heedful.loop.log import Event
from heedful.loop.model import View
from heedful.loop.packing import LoggedDecision
from heedful.results.explanation import Contribution, Contributions, EventMethod, Influence, Why

BUDGET = 100_000.0
"""The default of how much leaving feedback out one by one may cost, in updates of a small perceptron; an update takes
about 20 microseconds.
"""
UNDECLARED = 100.0
"""How many updates of a perceptron an update by a learner is taken to cost, if it does not declare its
`lesson_cost`."""
NUMBERS = 10_000.0
"""How many numbers, in the features of a decision and the state of the model together, double the cost of an update."""
BYTES = 256_000_000
"""The most bytes of memory that the features of their decisions may take meanwhile."""


def why(history: History, id: str, item: str | None = None, top: int = 10, budget: float = BUDGET) -> Why:
    """Return why the candidate `item` of the decision `id`, by default the first that it showed, had its score, with
    the `top` pieces of feedback that moved it most.

    `history` is the loop's log with its model. The influence of a piece of feedback is the score minus that of a
    model made without it, if making all these models costs no more than `budget`, in updates of a small perceptron.
    Otherwise it is by how much the score moved when the feedback was learned. The cost is counted beforehand, from the
    log and the learner's `lesson_cost`, so the same log always gives the same answer. Raise ValueError, naming the
    field, on bad input, and LookupError if there is no such decision, it was forgotten, it showed nothing, or the item
    was not a candidate."""
    id, item = records.check_id("decision", id), item if item is None else records.check_id("item", item)
    check_count("top", top, least=0)
    check_between("budget", budget, 0.0, math.inf)
    known = find_decision(history, id)
    if item is None:
        if not known.record.shown:
            raise LookupError(f"decision {id} showed nothing that was on offer: there is nothing to explain")
        item = known.names[known.record.shown[0]]
    if item in {name for _, name in known.record.unknown}:
        raise LookupError(f"item {item} was not on offer when decision {id} was made: nothing had been learned of it")
    if item not in known.names:
        raise LookupError(f"item {item} is not among the candidates of decision {id}")
    return _Inquiry(history, known, known.names.index(item)).answer(top, float(min(budget, 1e300)))


def find_decision(history: History, id: str) -> LoggedDecision:
    """Return the decision with this id. Raise LookupError, with the reason, if it is not in the log or was
    forgotten."""
    known = history.find_decision(id)
    if known is None:
        gone = history.log.is_forgotten("decision", id)
        raise LookupError(f"decision {id} was forgotten" if gone else f"decision {id} is not in the log")
    return known


class _Past:
    """The log up to the version of the model that made a decision, and that model made again."""

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


_NOTHING = Contribution("", 0.0, 0.0, 0.0)


class _Scores(NamedTuple):
    """The score of an item (`own`), and that minus the score of the item it is compared with (`lead`); nan where the
    model gives none."""

    own: float
    """the score of the item"""
    lead: float
    """that minus the score of the other"""


class _Inquiry:
    """Answers why one candidate of a decision had its score; the candidate is the one with index `place`."""

    def __init__(self, history: History, decision: LoggedDecision, place: int) -> None:
        self._past = _Past(history, decision.version)
        self._history, self._interaction, self._decision = history, self._past.interaction, decision
        self._place, self._x = place, history.requests.context(decision).x
        self._retractions = history.log.retractions()
        self._model = self._past.model()
        self._left = 0.0
        self._other = self._compared_with()

    def answer(self, top: int, budget: float) -> Why:
        """Return why the candidate had its score; the arguments are those of the function `why`."""
        decision, interaction = self._decision, self._interaction
        shown = decision.record.shown
        now, view = self._scores(self._model), self._view(self._model)
        parts = interaction.contributions(view, self._x, self._place)
        sure = None if self._other is None else interaction.sure(view, self._x[[self._place, self._other]])
        given, undone = self._count()
        found: list[Influence] | None = None
        by: EventMethod = "none"
        if math.isnan(now.own) and interaction.item_scores(view, self._x, [self._place]) is None:
            told, found = f"{type(self._interaction.learner).__name__} gives items no score", []
        elif (steps := self._affordable(budget)) is not None:
            found = self._leave_one_out(steps, now, budget)
            by, told = "leave-one-out", _exactly(given)
        if found is None:
            found, adds_up = self._moves(), self._model.adds_up(self._view(self._model))
            by, told = ("additive", ADDITIVE) if adds_up else ("movement", _to_first_order(given, budget))
        found = sorted(found, key=lambda each: (_by_size(each.by), _by_size(each.lead or 0.0), each.seq))
        scored = by != "none"
        return Why(
            decision.id,
            decision.names[self._place],
            decision.record.arm,
            shown.index(self._place) + 1 if self._place in shown else None,
            decision.version,
            now.own if scored else None,
            parts.score_is,
            None if self._other is None else decision.names[self._other],
            now.lead if scored and self._other is not None else None,
            None if sure is None else sure[0],
            interaction.explained(view, self._x, self._place),
            parts.method,
            parts.about,
            self._with_leads(parts),
            by,
            told,
            tuple(found[:top]),
            given,
            undone,
        )

    def _with_leads(self, parts: Contributions) -> tuple[Contribution, ...]:
        """Return the contributions to the score with those to the lead, which are differences of two of them."""
        if self._other is None or parts.method != "exact":
            return parts.parts
        other = self._interaction.contributions(self._view(self._model), self._x, self._other)
        behind = {part.name: part for part in other.parts}
        own = [part._replace(lead=part.counts - behind.pop(part.name, _NOTHING).counts) for part in parts.parts]
        return *own, *(part._replace(value=0.0, counts=0.0, lead=-part.counts) for part in behind.values())

    # ------------------------------------------------------------------------ scores

    def _view(self, model: Any) -> View[Any]:
        view: View[Any] = model.view(self._decision.person)
        return view

    def _scores(self, model: Any) -> _Scores:
        places = [self._place] if self._other is None else [self._place, self._other]
        found = self._interaction.item_scores(self._view(model), self._x, places)
        if found is None:
            return _Scores(math.nan, math.nan)
        own = float(found[0])
        return _Scores(own, math.nan if self._other is None else own - float(found[1]))

    def _compared_with(self) -> int | None:
        """Return the index of the candidate that the item's lead is over, as `Why.next` says; None if there is none."""
        shown = self._decision.record.shown
        if self._place not in shown:
            return shown[-1] if shown else None
        at = shown.index(self._place)
        if at + 1 < len(shown):
            return shown[at + 1]
        seen = set(shown)
        rest = [j for j in range(len(self._decision.names)) if j not in seen]
        found = self._interaction.item_scores(self._view(self._model), self._x, rest) if rest else None
        return None if found is None else rest[int(found.argmax())]

    # ------------------------------------------------------------------------ the log before the decision

    def _steps(self) -> Iterator[Step | Event]:
        """Yield what the model of the decision was made of, in order: feedback and, where the model depends on items,
        their events."""
        history, version = self._history, self._decision.version
        lessons: Iterator[Step | Event] = (
            history.step(*lesson) for lesson in history.lessons(up_to=version) if lesson[0].seq not in self._past.failed
        )
        return merge(lessons, history.item_events(0, version), key=_seq)

    def _affordable(self, budget: float) -> list[Step | Event] | None:
        """Return all that `_steps` yields; None if leaving out each piece of feedback in turn costs more than `budget`,
        or takes too much memory."""
        steps, left_out, cost, size = list[Step | Event](), 0, 0.0, 0
        for step in self._steps():
            cost += left_out * self._cost(step)
            if isinstance(step, Step):
                left_out += step.event.seq not in self._retractions
                size += step.context.x.nbytes + step.extra.nbytes
            if cost > budget or size > BYTES:
                return None
            steps.append(step)
        return steps

    @cached_property
    def _update_cost(self) -> tuple[float, int]:
        """(the cost of an update by the learner if everything is small, how many numbers the model's state has)"""
        cost = float(getattr(self._interaction.learner, "lesson_cost", UNDECLARED))
        return cost, count_numbers(self._model.shared)

    def _cost(self, step: Step | Event) -> float:
        """Return what learning `step` costs, in updates of a small perceptron; for the event of an item it is 1."""
        if isinstance(step, Event):
            return 1.0
        cost, numbers = self._update_cost
        return cost * (1.0 + (numbers + step.context.x.size + step.extra.size) / NUMBERS)

    def _count(self) -> tuple[int, int]:
        """Return (how many pieces of feedback the model was made of that still count, how many were undone or rolled
        back since)."""
        version, log = self._decision.version, self._history.log
        then = log.retractions(version)
        learned = [seq for seq in log.places("feedback") if seq <= version and seq not in then]
        learned = [seq for seq in learned if seq not in self._past.failed]
        undone = sum(seq in self._retractions for seq in learned)
        return len(learned) - undone, undone

    def _take(self, model: Any, step: Step | Event) -> None:
        """Let `model` learn one step, in place: a piece of feedback with its decision, or the event of an item."""
        if isinstance(step, Step):
            model.teach(step.context, step.feedback, step.extra, step.event.seq)
        else:
            model.on_item(step, self._history.catalogue)

    def _copy(self, model: Any) -> Any:
        """Return a new model with a copy of the state of `model`, which can learn without changing it."""
        other: Any = self._interaction.fresh()
        other.shared, other.people = copy_arrays(model.shared), dict(model.people)
        return other

    # ------------------------------------------------------------------------ what moved it

    def _leave_one_out(self, steps: Sequence[Step | Event], now: _Scores, budget: float) -> list[Influence] | None:
        """Return for each piece of feedback its influence: the score `now` minus the score of a model made without
        it."""
        found, before, self._left = list[Influence](), self._interaction.fresh(), 2.0 * budget
        for i, step in enumerate(steps):
            if isinstance(step, Step) and step.event.seq not in self._retractions:
                folded = self._fold(before, steps[i + 1 :])
                if folded is None:
                    return None
                found += self._influence(step, self._scores(folded), now)
            self._take(before, step)
        return found

    def _fold(self, model: Any, steps: Sequence[Step | Event]) -> Any:
        """Return a copy of `model` that has learned `steps`; feedback that the learner fails on is left out, as in a
        loop. Return None once all folds together cost too much."""
        failed = set[int]()
        while True:
            folded = self._copy(model)
            for step in steps:
                if _seq(step) in failed:
                    continue
                self._left -= self._cost(step)
                if self._left < 0.0:
                    return None
                try:
                    self._take(folded, step)
                except Exception:  # whatever a learner of somebody's own raises; it may have stopped half-way
                    failed.add(_seq(step))
                    break
            else:
                return folded

    def _moves(self) -> list[Influence]:
        """Return how much each piece of feedback moved the score when it was learned."""
        found, model = list[Influence](), self._interaction.fresh()
        before = self._scores(model)
        for step in self._steps():
            if isinstance(step, Event):
                self._take(model, step)
                before = self._scores(model)
                continue
            self._take(model, step)
            after = self._scores(model)
            if step.event.seq not in self._retractions:
                found += self._influence(step, before, after)
            before = after
        return found

    def _influence(self, step: Step, without: _Scores, with_: _Scores) -> list[Influence]:
        """Return [the influence of a piece of feedback], by the scores `without` it and `with_` it; [] if it moved
        nothing."""
        by, lead = with_.own - without.own, with_.lead - without.lead
        if by == 0.0 and (self._other is None or lead == 0.0):
            return []
        if math.isnan(with_.own) and math.isnan(without.own):
            return []
        event = step.event
        told = None if self._other is None else lead
        return [Influence(event.id, event.seq, step.feedback.form, step.decision.id, by, told)]


def _seq(step: Step | Event) -> int:
    return step.event.seq if isinstance(step, Step) else step.seq


# ---------------------------------------------------------------------------- methods in words

ADDITIVE = (
    "exact, given what was shown: each piece of feedback adds the same to the weights whatever the others are, so what "
    "it added to the score is what leaving it out would take away"
)


def _exactly(given: int) -> str:
    """Return a sentence on the leave-one-out method, for `given` pieces of feedback."""
    if not given:
        return "nothing was learned before this decision that is in effect now"
    told = "the one piece of feedback" if given == 1 else f"each of {given:,} pieces of feedback"
    return f"exact, given what was shown: {told} before the decision was left out of the fold in turn"


def _to_first_order(given: int, budget: float) -> str:
    """Return a sentence saying that leaving out `given` pieces of feedback one by one costs more than `budget`, and
    what is measured instead."""
    return (
        "first order: by how much the score moved when each piece of feedback was learned, and not what leaving it out "
        f"would change, as {given:,} folds exceed the budget of {budget:,.12g} updates of a perceptron and {BYTES:,} "
        "bytes"
    )


def _by_size(value: float) -> float:
    """Return a sort key that puts numbers in order of decreasing absolute value, nan before all.

    What differs beyond nine digits or the twelfth decimal is alike: processors round differently."""
    return -math.inf if math.isnan(value) else -float(f"{abs(round(value, 12)):.9g}")
