"""Numbers of results in words, for notebooks, pages and commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.core.wording import count as count
from heedful.core.wording import percent

if TYPE_CHECKING:
    from heedful.results.report import Difference, PredictionReport, Shares


CLICK_THROUGH = "With a click"
"""What the share of lists is called in which something was clicked."""


def number(value: float | None, places: int = 2, sign: bool = False) -> str:
    """Return `value` with `places` decimals and a typographic minus; an en dash for None.

    With `sign` there is a "+" before what is above 0."""
    if value is None:
        return "–"
    text = f"{value:{'+' if sign else ''}.{places}f}"
    return text[1:] if sign and float(text) == 0.0 else text.replace("-", "−")


def sentence(text: str) -> str:
    """Return `text` with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def interval(apart: Difference, hint: str = "") -> str:
    """Return a sentence with a difference of two means and its 95 % confidence interval, both in `apart`.

    The text `hint` is inserted after the difference."""
    by, low, high = (f"{each:+.2f}".replace("-", "−") for each in (apart.by, apart.low, apart.high))
    return f"Difference: {by}{hint} (95 % confidence interval: {low} to {high})."


def shares_sentence(what: str, found: Shares, learned: str, control: str) -> str:
    """Return in words, without a full stop, a share of either kind of list, with intervals, and their difference.

    `what` is what the share is of, `learned` and `control` are the names of the two kinds."""
    told = []
    for each, name in ((found.learned, learned), (found.control, control)):
        if each.share is not None:
            between = ""
            if each.low is not None and each.high is not None:
                between = f" (from {percent(each.low)} to {percent(each.high)})"
            told.append(f"{percent(each.share)} of {each.total:,}{between} of {name}")
    line = f"{what}: {', '.join(told)}"
    if (apart := found.difference) is None:
        return line
    line += f"; the difference is {apart.by:+.3f}, from {apart.low:+.3f} to {apart.high:+.3f}, with 95 % confidence"
    return f"{line} ({count(apart.people, 'person', 'people')})"


def prediction_sentences(found: PredictionReport) -> tuple[str, ...]:
    """Return sentences on the scores in `found`: those of the predictions and of a baseline, and their difference, or
    why there is none."""
    if found.score is None or found.baseline is None:
        return (sentence(found.unsaid),)
    compared = (
        f"{_measure(found)}, over {count(found.answers, 'answer')}: predictions {number(found.score)}, "
        f"{found.compared_with} {number(found.baseline)}."
    )
    hint = f", {'below' if found.lower_is_better else 'above'} 0 is better"
    return compared, sentence(found.unsaid) if found.difference is None else interval(found.difference, hint)


def _measure(found: PredictionReport) -> str:
    """Return the name of the measure in `found`, with a capital letter."""
    return f"{found.measure[:1].upper()}{found.measure[1:]}".replace(" - ", " − ")
