"""Whether feedback changes predictions. A lesson that compares an item with nothing, or agrees with the model, changes
none."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from heedful.loop import records
from heedful.loop.interactions.protocol import Newest

if TYPE_CHECKING:
    from heedful.loop.projection import Projection

LEAST = 20
"""The number of pieces of feedback from which on it is reported that none changed a prediction."""
LOOKED = 200
"""How many of the newest pieces of feedback are looked at to find out why."""


class Moves(NamedTuple):
    """Two counts: the feedback that a model is made of, and how much of it changed predictions."""

    given: int = 0
    moved: int = 0
    """how much of it changed a prediction"""


def describe_unmoved(projection: Projection, least: int = LEAST) -> str:
    """Return a text that no feedback moved the model so far, why, and what would.

    Return "" if some did, or if there are fewer than `least` pieces of feedback."""
    given, moved = projection.moves
    if moved or given < least:
        return ""
    why, how = why_unmoved(projection)
    return f"{given:,} feedback moved the model 0 times: {why}. {how}"


def why_unmoved(projection: Projection) -> tuple[str, str]:
    """Return (why nothing moved the model, what would), by the newest feedback."""
    alone, said, aside, looked = 0, 0, 0, 0
    for event in islice(projection.log.newest_first(projection.log.last()[0] + 1, "feedback"), LOOKED):
        decided = projection.log.at(event.target or 0)
        if decided is None:
            continue
        record, feedback = projection.decision(decided).record, records.decode_feedback(event.payload)
        looked += 1
        alone += len(record.shown) < 2
        said += feedback.form != "none" and (bool(feedback.chosen) or feedback.form in ("thumb", "choice"))
        aside += record.arm in ("control", "sampled")
    thumbs = "A thumb, up or down, does: it is about one item alone"
    thumbs = f"{thumbs}; so do lists of two or more." if projection.model.refusal("thumb") is None else ""
    if why := projection.interaction.why_unmoved(Newest(looked, alone, said, aside), thumbs):
        return why
    if looked and said == 0:
        return "none of it says that anything was preferred", "Send what people do choose, too."
    return "what was said is what the model says already", "Something else that is preferred does."
