"""How much feedback changed what the model predicts, and why none did.

Feedback changes no prediction if it compares an item with nothing, as on a list of one item, or agrees with the model.
"""

from __future__ import annotations

from itertools import islice

from heedful.loop import records
from heedful.loop.history import History
from heedful.loop.interactions.protocol import why_refused

LEAST = 20
"""The least number of pieces of feedback before it is reported that none changed a prediction."""
LOOKED = 200
"""How many of the newest pieces of feedback are read to find out why."""


def describe_unmoved(history: History) -> str:
    """Return sentences saying that no feedback so far has changed a prediction of the model, why, and what feedback
    would.

    Return "" if some has, or if there are fewer than `LEAST` pieces of feedback. `history` is the loop's log with
    its model."""
    given, moved = history.moves
    if moved or given < LEAST:
        return ""
    why, how = why_unmoved(history)
    return f"{given:,} feedback moved the model 0 times: {why}. {how}"


def why_unmoved(history: History) -> tuple[str, str]:
    """Return (why no feedback changed a prediction, a sentence on what feedback would), judged by the newest feedback.

    `history` is the loop's log with its model. The first text is a clause that can follow a colon."""
    alone, said, alike, looked = 0, 0, 0, 0
    for event in islice(history.log.newest_first(history.log.last()[0] + 1, "feedback"), LOOKED):
        decided = history.log.at(event.target or 0)
        if decided is None:
            continue
        known, feedback = history.decision(decided), records.decode_feedback(event.payload)
        record, x = known.record, history.requests.context(known).x
        looked += 1
        alike += x.ndim == 2 and len(x) > 1 and bool((x == x[0]).all())
        alone += len(record.shown) < 2
        said += feedback.form != "none" and (bool(feedback.chosen) or feedback.form in ("thumb", "reward", "choice"))
    thumbs = "Thumbs, up and down, do: each is compared with those before it; so do lists of two or more."
    thumbs = thumbs if why_refused(history.interaction, history.model, "thumb") is None else ""
    words = history.interaction.words
    if looked and alone == looked and words.all_single:
        return words.all_single, thumbs or "Lists of two or more do."
    if looked and alike == looked:
        why = "the candidates of each decision have the same features, so that nothing tells them apart"
        return why, "Candidates that name items on offer, or have the columns that the loop has, do."
    if looked and said == 0:
        return "none of it says that anything was preferred", "Send what people do choose, too."
    return "what was said is what the model says already", "Something else that is preferred does."
