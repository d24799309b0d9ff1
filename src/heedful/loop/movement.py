"""Whether what is said moves the model: a lesson that compares an item with nothing, or says what the model says, is
learned and changes no prediction."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from heedful.loop import wire
from heedful.loop.grading import GradingModel
from heedful.loop.interaction import AnyModel
from heedful.loop.model import Model
from heedful.snapshot import arrays_of

if TYPE_CHECKING:
    from heedful.loop.ledger import Ledger

LEAST = 20
"""Feedback from which on it is said that nothing moved."""
LOOKED = 200
"""Feedback that is looked at to say why: the newest."""


class Moves(NamedTuple):
    """The feedback that a model is made of."""

    given: int = 0
    moved: int = 0
    """after how many of them it predicted otherwise"""


def predictor(model: AnyModel, person: str | None) -> list[bytes] | None:
    """What a model's predictions for a person come from, to be compared with later; None where every lesson moves it,
    as in loops of ratings and choices."""
    own = model.people.get(person) if person is not None else None
    if isinstance(model, Model):  # of a person without an offset so far as of one that is 0
        parts: list[Any] = [model.learner.weights(model.shared)]
        if own is not None and (offset := model.learner.weights(own.state)[:-1]).any():
            parts += [offset, own.lessons]  # it counts for more, the more lessons there were
    elif isinstance(model, GradingModel):
        learner = model.learner
        if hasattr(learner, "weights") and hasattr(learner, "thresholds"):
            parts = [learner.weights(model.shared), learner.thresholds(model.shared)]
        else:
            parts = [part for name, part in arrays_of(model.shared).items() if part.ndim]
        parts += list(model.nobody() if own is None else own.state) if model.shrink > 0.0 else []
    else:
        return None
    return [np.asarray(part).tobytes() for part in parts]


def unmoved(ledger: Ledger, least: int = LEAST) -> str:
    """That no feedback moved the model so far, why, and what would; "" where some did, or there are fewer than `least`
    of them."""
    given, moved = ledger.moves
    if moved or given < least:
        return ""
    why, how = why_unmoved(ledger)
    return f"{given:,} feedback moved the model 0 times: {why}. {how}"


def why_unmoved(ledger: Ledger) -> tuple[str, str]:
    """(why nothing moved, what would), by the newest feedback."""
    alone, said, aside, looked = 0, 0, 0, 0
    for event in islice(ledger.log.newest_first(ledger.log.last()[0] + 1, "feedback"), LOOKED):
        decided = ledger.log.at(event.target or 0)
        if decided is None:
            continue
        record, feedback = ledger.decision(decided).record, wire.decode_feedback(event.payload)
        looked += 1
        alone += len(record.shown) < 2
        said += feedback.form != "none" and (bool(feedback.chosen) or feedback.form in ("thumb", "choice"))
        aside += record.arm == "control"
    thumbs = "A thumb, up or down, does: it is about one item alone"
    thumbs = f"{thumbs}; so do lists of two or more." if ledger.model.refusal("thumb") is None else ""
    if looked and alone == looked and isinstance(ledger.model, Model):
        told = "each list showed a single item, and a click or an action on the only one compares it with nothing"
        return told, thumbs or "Lists of two or more do."
    if looked and said == 0:
        return "none of it says that anything was preferred", "Send what people do choose, too."
    if looked and aside == looked and isinstance(ledger.model, Model):
        told = "all of it is about lists that were left in your own order, in which nothing was swapped"
        return told, "Feedback on learned lists does."
    return "what was said is what the model says already", "Something else that is preferred does."
