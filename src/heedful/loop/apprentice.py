"""How well the learner of a loop imitates the ranker that serves, and whether it may serve itself.

In a loop with the setting `apprentice` every decision shows the order of the caller's scores, or the candidates as they
come if there are none, until the loop's learner is promoted. With each decision the log keeps the rank that the learner
would have given to each item shown, before it learned from that order (`heedful.loop.decide`). From these,
`look` counts

    pairs    of the first k items of a list, those that the caller's scores tell apart: the share that the learner puts
             in the same order; of a list of one item, whether it is the learner's first
    first    whether the learner's first item is the caller's, or one with an equal score

Both are averaged over recent decisions, the newest 500 to 1,000. As the learner changes, what is estimated is the
average, over these decisions, of the agreement to be expected of the learner as it was at each. The interval holds at
any time: recent decisions begin at decision 0, 500, 1,000, ..., and the interval of the j-th beginning has the error
alpha / ((j + 1) (j + 2)), which add up to alpha.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.evaluation.confidence import Drifting
from heedful.loop.history import History
from heedful.loop.records import DecisionRecord, given_scores
from heedful.loop.serving import CALLER, first_promotion, read_promotion
from heedful.results.report import Apprentice, ImitatedShare

WINDOW = 500
"""Recent decisions begin at a multiple of this number of decisions, and are at least so many, once there are."""
ALPHA = 0.05
"""The probability, at most, with which the interval of an agreement ever misses."""


def _in_words(found: Apprentice) -> str:
    """Return `found` in a few sentences."""
    share, low, _ = found.pairs
    figures = "No list can be compared so far."
    if share is not None:
        figures = (
            f"In the last {found.decisions:,} lists compared it put {100.0 * share:.1f} % of the pairs in {CALLER} "
            f"(expected: at least {100.0 * low:.1f} %), and the same item first in "
            f"{100.0 * (found.first.share or 0.0):.0f} %."
        )
    if found.serves:
        return f"{found.learner} imitated {CALLER} until it was promoted (event {found.serves:,}). {figures}"
    if found.ready:
        return f"{found.learner} asks to be promoted: it imitates {CALLER} well enough. {figures}"
    once = f"It asks to be promoted once at least {100.0 * found.asked:g} % are expected."
    return f"{found.learner} imitates {CALLER}, which serves. {figures} {once}"


def agreement_of(record: DecisionRecord, k: int) -> tuple[float, float] | None:
    """Return how far the learner agrees with the caller's order in one decision, by its first `k` items: (the share of
    pairs that both put in the same order, 1 if both have the same first item else 0).

    None if the decision was not made to be imitated, or the caller's scores tell no two items apart."""
    if record.arm != "imitated" or not record.shown:
        return None
    ranks = np.array(record.proposal.get("ranks", ())[:k])
    if len(ranks) != min(k, len(record.shown)):
        return None
    score = np.array(given_scores(record)[:k]) if given_scores(record) else -np.arange(float(len(ranks)))
    best = float((ranks[score == score[0]] == 1).any())
    if len(ranks) == 1:
        return best, best
    above, below = np.nonzero(score[:, None] > score[None, :])
    return None if not above.size else (float((ranks[above] < ranks[below]).mean()), best)


class Tally:
    """Collects how far the learner agreed with the caller's order in single decisions, and computes intervals of the
    averages.

    Call `take` for each decision, in the order of the log, then `agreements`."""

    def __init__(self, beginning: int = 0, alpha: float = ALPHA) -> None:
        """Begin with no decision.

        Intervals miss with probability `alpha` / ((j + 1) (j + 2)) at most, where j is `beginning`: how many times
        recent decisions have begun again before; over all j this adds up to `alpha`."""
        self._sequence = Drifting(alpha / ((beginning + 1) * (beginning + 2)))
        self._state = self._sequence.init((2,))
        self.decisions = 0

    def take(self, pairs: float, first: float) -> None:
        """Add one decision: the share `pairs` of pairs in the same order, and `first`, 1 for the same first item, else
        0."""
        self._state = self._sequence.update(self._state, np.array([pairs, first]))
        self.decisions += 1

    def agreements(self) -> tuple[ImitatedShare, ImitatedShare]:
        """Return (agreement by pairs, agreement by first items) over the decisions added so far, with intervals."""
        low, high = self._sequence.interval(self._state)
        n = self.decisions
        means = (self._state.total / n).tolist() if n else [None, None]
        first, second = (ImitatedShare(*each) for each in zip(means, low.tolist(), high.tolist()))
        return first, second


def look(history: History, up_to: int | None = None) -> Apprentice | None:
    """Return how well a loop's learner imitates the caller's order, by its recent decisions; None in a loop without the
    setting `apprentice`.

    `history` is the loop's log with its model. Decisions up to event `up_to` count: None is the end of the log or,
    if a learner serves, its first promotion in effect."""
    settings, log = history.settings, history.log
    if not settings.apprentice:
        return None
    retractions = log.retractions()
    serves = first_promotion(log, retractions)
    most = (serves or 2**62) if up_to is None else up_to
    places = log.places("decision", up_to=most)
    beginning = max(len(places) // WINDOW - 1, 0)
    since = places[beginning * WINDOW] - 1 if places else 0
    tally = Tally(beginning)
    for event in log.events(since, kinds=["decision"]):
        if event.seq > most:
            break
        if event.seq in retractions:
            continue
        shares = agreement_of(history.decision(event).record, settings.k)
        if shares is not None:
            tally.take(*shares)
    pairs, first = tally.agreements()
    against: tuple[str, ...] = ()
    if pairs.low < settings.agreement and not serves:
        been = (
            "no list can be compared so far"
            if pairs.share is None
            else f"it is expected to put at least {pairs.low:.3f}"
        )
        been += "" if pairs.share is None else f" of the pairs in {CALLER}"
        against = (f"{been}, and {settings.agreement:g} is asked for",)
    promoted = log.at(serves) if serves else None
    learner = history.manifest.learner if promoted is None else read_promotion(promoted.payload).learner
    found = Apprentice(
        learner, serves, settings.agreement, pairs, first, tally.decisions, since, ALPHA, against,
        ready=not serves and not against, told="",
    )  # fmt: skip
    return found._replace(told=_in_words(found))


def evidence_of(found: Apprentice) -> dict[str, Any]:
    """Return the numbers that speak for or against letting the learner serve, {name: value}, as the event of a
    promotion stores them."""
    return {
        "method": "agreement",
        "asked": found.asked,
        "agreement": found.pairs.share,
        "low": found.pairs.low,
        "same_first": found.first.share,
        "decisions": found.decisions,
        "alpha": found.alpha,
    }
