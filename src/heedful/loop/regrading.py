"""Looking back over the log of a grading loop: why this grade, and what would another learner have predicted?

As `heedful.loop.hindsight`, everything here folds the log again and changes nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heedful.kernel import Floats
from heedful.loop.graders import grader, is_grading
from heedful.loop.grading import GradingModel
from heedful.loop.hindsight import Explanation, Moved, Part, Replayed, learned
from heedful.loop.ledger import Ledger
from heedful.naming import learner_class

INTERCEPT, LEVEL = "always 1", "how much she asks for"
"""What besides the features makes up a score: of a learner without thresholds, and of a person."""


def explain_grade(ledger: Ledger, id: str) -> Explanation:
    """Why the first of decision `id` was given its grade. LookupError where there is no such decision."""
    known = ledger.known(id)
    if known is None:
        raise LookupError(f"decision {id} is not in the log")
    first = known.record.shown[0]
    x = ledger.requests.context(known).x[first : first + 1]
    model, moved = GradingModel(ledger.learner, ledger.settings.shrink), []
    before = _score(model, known.person, x)
    for event, decision, feedback in learned(ledger, known.version):
        ledger.teach(model, event, decision, feedback)
        after = _score(model, known.person, x)
        if after != before and not (math.isnan(after) and math.isnan(before)):
            moved.append(Moved(event.id, event.seq, feedback.form, after - before))
        before = after
    grade = int(model.grades(model.shared, _offset(model, known.person), x)[0])
    between = model.between(model.shared, grade)
    why = "this is the score of the first by the model as it was, and the grade that it lies in"
    if between is None:
        why = f"{type(ledger.learner).__name__} has no one direction: there is no score to take apart"
    if overflown := model.overflown(model.shared):
        between, why = None, overflown
    parts = sorted(_parts(ledger, model, known.person, x), key=lambda part: _most(part.counts))
    lessons = tuple(sorted(moved, key=lambda each: _most(each.by)))
    arm, name = known.record.arm, known.names[first]
    return Explanation(known.id, arm, name, None, why, before, tuple(parts), lessons, grade, between)


def _parts(ledger: Ledger, model: GradingModel, person: str | None, x: Floats) -> list[Part]:
    """What a score is the sum of; those that count nothing are left out."""
    own = _offset(model, person)
    weights, values = model.effective(model.shared, own).tolist(), [*x[0].tolist(), 1.0]
    names = [*ledger.founding.names, INTERCEPT]
    if own is not None:
        names, weights, values = [*names[:-1], LEVEL], [*weights, -model.level(own)], [*x[0].tolist(), 1.0]
    return [Part(n, w, v, 0.0, w * v) for n, w, v in zip(names, weights, values) if w * v != 0.0]


def _most(value: float) -> float:
    """Sorts the greatest first, and what is no number before all."""
    return -math.inf if math.isnan(value) else -abs(value)


def _score(model: GradingModel, person: str | None, x: Floats) -> float:
    return float(model.scores(model.shared, _offset(model, person), x)[0]) if hasattr(model.learner, "weights") else 0.0


def _offset(model: GradingModel, person: str | None) -> Any:
    return model.people.get(person) if person is not None else None


def replay_grades(ledger: Ledger, spec: str) -> Replayed:
    """How well the learner that `spec` names would have predicted the grades of the log. ValueError where it is none,
    or does not fit the loop."""
    if not is_grading(learner_class(spec)):
        raise ValueError(
            f"learner: wanted one that predicts grades, such as averaged-prank, got {spec}: this log holds "
            "grades, and nothing of what is better than what was shown"
        )
    learner = grader(spec, len(ledger.founding.names), 0.0, ledger.grades)
    if learner.space.k != ledger.grades:
        raise ValueError(f"learner: wanted n_ranks={ledger.grades}, the grades of this log, got {spec}")
    shared_only = not (hasattr(learner, "weights") and hasattr(learner, "thresholds"))  # nobody has an offset there
    model = GradingModel(learner, 0.0 if shared_only else ledger.settings.shrink)
    lessons, off, graded = 0, 0, 0
    for event, decision, feedback in ledger.lessons():
        context = ledger.requests.context(decision)
        try:
            lesson = model.lesson(context, feedback, context.x[:0])
            if lesson is not None:
                predicted = model.grades(model.shared, _offset(model, decision.person), lesson.x)
                off += int(np.abs(predicted - np.array(lesson.grades)).sum())
                graded += len(lesson.grades)
            lessons += ledger.teach(model, event, decision, feedback)
        except Exception as error:  # whatever a learner of somebody's own raises
            raise ValueError(f"learner: {spec} failed on feedback {event.id}: {error}") from error
    weights = model.effective(model.shared, None).tolist()
    shared = dict(zip(ledger.founding.names, weights))
    return Replayed(spec, lessons, shared, None, 0.0, off / graded if graded else None, graded)
