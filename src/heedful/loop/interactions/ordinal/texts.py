"""Reports of a loop of grades, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.core.wording import count, percent
from heedful.loop.interactions.findings import (
    MISTAKES,
    Findings,
    Verdict,
    clusters,
    excluded_sentence,
    lists_sentence,
    prediction_picture,
)
from heedful.loop.interactions.words import Words
from heedful.results.sentences import prediction_sentences

if TYPE_CHECKING:
    from heedful.results.report import PredictionReport, Report


WORDS = Words(
    loop="a loop of grades",
    takes="grades",
    learns="this loop learns grades, whole numbers from 1 to {grades}",
    instead={"rating": "where stars are such numbers, send them as grade"},
    command="heedful simulate ordinal ratings.csv --target rating",
    answer="grade",
    question="How relevant is each of these, from 1 to {grades}?",
    badge="grades 1–{grades}",
    prediction="grade",
    widget="scale",
    score="how high what was preferred stood (1: first, 0.5: second)",
    arms=("learned order", "your order (control)"),
    imported="noted without a prediction, or imported: grades of those teach, and are not compared",
    contradiction="would predict a grade two or more away",
    introduction="It predicts a grade from 1 to {grades} for each, by {learner}, and learns from grades.",
    context_alone="a context alone is no feature",
    no_control="what is shown first is what was predicted to be good, so where not all is shown, how good predictions "
    "of the rest are cannot be said",
)

ERROR = "Mean error is that of |predicted - given|, each before it was learned from, over the grades of what was shown."


def findings(report: Report, found: PredictionReport) -> Findings:
    """Return a `report` in words and pictures: how far predicted grades were from those given, compared with a
    baseline.

    `found` is the part of the report on predictions. The baseline predicts the median of all grades given before."""
    return Findings(
        _verdict(found),
        picture=prediction_picture(found),
        excluded=excluded_sentence(report, WORDS),
        notes=(
            lists_sentence(report),
            "Each grade is compared with what was predicted when its list was shown, before it was known. People who "
            "see a prediction may be drawn towards it: grades given on the page may be nearer than others.",
            "The median grade so far is the median of all grades that came before; at first the middle of the scale.",
            *clusters(found.difference, "Grades"),
        ),
    )


def _verdict(found: PredictionReport) -> Verdict:
    """Return the verdict on whether predictions are better than always predicting the median grade."""
    told = prediction_sentences(found)
    if found.score is None:
        return Verdict("open", "Too early to say.", (*told, "It takes grades given on the page."))
    told += (f"Exactly right: {percent(found.details['exact'], 2)} of {count(found.answers, 'grade')}.",)
    apart = found.difference
    if apart is None:
        return Verdict("open", "Too early to say.", told)
    if apart.high < 0.0:
        return Verdict("good", "Yes: it predicts better than always the median grade.", told)
    if apart.low > 0.0:
        return Verdict("bad", "No: always predicting the median grade would be nearer.", (*told, MISTAKES))
    return Verdict("open", "No difference can be shown yet.", (*told, "More grades make the interval narrower."))
