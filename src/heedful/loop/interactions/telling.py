"""An explanation, an evaluation or a report as lines and tables, which commands and pages print.

Numbers are formatted as text here. The command or page cuts long tables, and knows colours, widths and fonts. The file
is long because it is one list: a function for each table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from heedful.core.formatting import brief, signed
from heedful.core.times import day
from heedful.core.wording import count, percent
from heedful.loop.interactions.findings import basis
from heedful.loop.signals import duration
from heedful.results.evaluation import WEIGHT_COLUMNS
from heedful.results.sentences import number
from heedful.results.sentences import sentence as as_sentence
from heedful.results.table import Table

if TYPE_CHECKING:
    from heedful.loop.interactions.findings import Findings, Picture
    from heedful.loop.interactions.words import Words
    from heedful.results.evaluation import Evaluation, LearnerEvaluation, Value
    from heedful.results.explanation import Why
    from heedful.results.health import Health
    from heedful.results.style import Style

POSITION_BIAS = (
    "The ratio is how much people look at the lower of two positions for each time that they look at the upper one: "
    "the number of clicks at either, where the same items were shown at both in either order at random. It is 1 if the "
    "position makes no difference, and 0.2 if people look at the upper position five times as often. Its intervals "
    "hold at one look."
)
ROUNDING = 1e-12
"""A value or difference nearer to 0 is what rounding leaves of 0."""
WEIGHTS = 5
"""How many weights of a learner are shown, those of the greatest size."""


class Line(NamedTuple):
    """A paragraph of plain text (`text`)."""

    text: str


Part = Line | Table


# ---------------------------------------------------------------------------- sentences


def sentence(text: str) -> Line:
    """Return `text` as a paragraph, with a capital letter and a full stop."""
    return Line(as_sentence(text))


def there(parts: Iterable[Part]) -> list[Part]:
    """Return the lines and tables in `parts`, without tables that have no rows."""
    return [part for part in parts if isinstance(part, Line) or part.rows]


# ---------------------------------------------------------------------------- the order of a list

_ARMS = {
    "control": "it is a control, which ignores what was learned",
    "sampled": "it was drawn at random around what was learned",
    "interleaved": "two learners drafted it",
    "imported": "it was made elsewhere",
}
"""Why a list need not be in the order of its predictions, for each arm that is not the model's alone."""


def unordered(words: Words, arm: str, predicted: Sequence[float | None]) -> str:
    """Return a sentence on why the predictions for a list, in the order shown, do not fall from top to bottom; "" if
    they do, or if one is missing."""
    known = [value for value in predicted if value is not None]
    if not words.prediction or len(known) < len(predicted) or known == sorted(known, reverse=True):
        return ""
    return f"Predictions do not fall from top to bottom: {_ARMS.get(arm, words.unordered)}."


# ---------------------------------------------------------------------------- why an item had its score


HOW = {
    "control": " by the control, whatever its score",
    "sampled": " of what was drawn at random around the scores",
    "interleaved": " of a list that two learners drafted",
    "imported": " by another system, whatever its score",
}
"""How an item came to its place, for each arm that does not simply order by score."""


def why(told: Why, top: int = 0) -> list[Part]:
    """Return `told`, why an item of a decision had its score, as lines and tables.

    The table of features has at most `top` rows; 0 for all."""
    stood = "was not shown" if told.place is None else f"was shown in place {told.place:,}"
    how = "" if told.place is None else HOW.get(told.arm, "")
    head = f"{told.item} {stood}{how}"
    if told.score is not None:
        head += f"; its {told.score_is} was {brief(told.score)}"
        if told.next is not None and told.lead is not None:
            head += f", {brief(abs(told.lead))} {'above' if told.lead >= 0.0 else 'below'} that of {told.next}"
    parts = told.features[:top] if top else told.features
    cells = [
        (p.name, brief(p.value), "" if p.weight is None else brief(p.weight), signed(p.counts), _lead(p.lead))
        for p in parts
    ]
    ahead = any(p.lead is not None for p in parts)
    features = Table(
        f"What its features contribute to the {told.score_is}",
        ("feature", "value", "weight", "counts", *(["of its lead"] if ahead else [])),
        tuple(cells if ahead else [row[:-1] for row in cells]),
    )
    known = [(name.replace("_", " "), _number(n)) for name, n in (told.prediction or {}).items() if n is not None]
    rows = [
        (each.event, each.form, each.decision, f"{each.seq:,}", signed(each.by), _lead(each.lead))
        for each in told.events
    ]
    columns = ("feedback", "form", "decision", "event", f"moved the {told.score_is} by", "its lead by")
    events = Table("Which feedback moved it", columns, tuple(rows), (0, 1, 2))
    undone = []
    if told.undone_since:
        many = count(told.undone_since, "piece of feedback", "pieces of feedback")
        undone = [Line(f"Not listed: {many} that the model had learned and that were undone since.")]
    sure = [] if told.sure is None else [Line(f"It is better than {told.next} with probability {told.sure:.2f}.")]
    return there([
        Line(f"{head}."), *sure, Table("What was expected", ("what", "number"), tuple(known)),
        features, sentence(told.features_about),
        events, sentence(told.events_about), *undone,
    ])  # fmt: skip


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else brief(value)


def _lead(lead: float | None) -> str:
    return "" if lead is None else signed(lead)


# ---------------------------------------------------------------------------- an evaluation


def greatest(found: LearnerEvaluation) -> str:
    """Return the greatest weights of the learner in `found` (at most `WEIGHTS`), names with values, as one text.

    The order is by size; weights that are NaN come first."""
    weights = sorted(found.weights.items(), key=lambda each: (math.isfinite(each[1]), -abs(each[1])))[:WEIGHTS]
    return ", ".join(f"{name} {signed(weight)}" for name, weight in weights if weight)


def position_bias(found: Evaluation) -> list[Part]:
    """Return, as a table and a paragraph, how much people look at the lower of two neighbouring places of a list
    compared with the upper one.

    Return [] if the log does not allow to estimate it."""
    if found.position_bias is None:
        return []
    rows = [
        (
            f"{each.place} and {each.place + 1}",
            f"{each.ratio:.3f}",
            f"{each.low:.3f} to {each.high:.3f}",
            f"{each.clicks:,}",
        )
        for each in found.position_bias
    ]
    columns = ("positions", "ratio", f"{percent(1.0 - found.alpha, 6)} interval", "clicks")
    return [Table("Position bias", columns, tuple(rows)), Line(POSITION_BIAS)]


def evaluation(found: Evaluation) -> list[Part]:
    """Return `found`, how well learners would have predicted the answers in a log, as lines and tables."""
    parts: list[Part] = []
    sure = percent(1.0 - found.alpha, 6)
    for j, measure in enumerate(found.measures):
        values = [each.values[j] for each in found.learners]
        untold = refusals(found, j)
        if not any(value.comparisons for value in values):
            parts += untold
            continue
        rows = [
            (each.learner, *value_texts(value, measure.is_share), value.verdict)
            for each, value in zip(found.learners, values)
        ]
        columns = ("learner", "value", f"{sure} interval", "difference", "verdict")
        title = measure.name.capitalize() + ("" if measure.more_is_better else " (lower is better)")
        parts.append(Table(title, columns, tuple(rows), (0, 2, 3, 4)))
        known = next(value for value in values if value.comparisons)
        by = basis(known.comparisons, known.people, measure.counts)
        alike = abs(known.effective - known.comparisons) <= 0.5
        weighed = "" if alike else f" (effective sample size {known.effective:,.0f})"
        parts += [Line(measure.about), Line(f"{by}{weighed}.{needed(found, j)}"), *untold]
        parts += _weights(found.learners, values)
    if any(isinstance(part, Table) for part in parts):
        told = f"The first row is {found.first}; differences and verdicts compare the others with it. Each interval "
        told += f"misses the true value with probability {found.alpha:.2g} at most: however often you look while each "
        told += "answer is by a new person, at one look while the same people come back"
        parts.append(Line(f"{told}, unless its measure says otherwise."))
    return there([*parts, *position_bias(found), _learned(found)])


def _learned(found: Evaluation) -> Table:
    """Return a table of the learners in `found` that learned anything, with the number of their lessons and, if any of
    them has weights, its greatest weights."""
    columns = ("learner", "lessons", "greatest weights")
    rows = [(each.learner, f"{each.lessons:,}", greatest(each)) for each in found.learners if each.lessons]
    n = 3 if any(weights for *_, weights in rows) else 2
    return Table("What they learned", columns[:n], tuple([row[:n] for row in rows]), (0, 2))


def refusals(found: Evaluation, j: int) -> list[Line]:
    """Return lines that say why the measure with the index `j` cannot be computed for some learners: a line for each
    reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in found.learners:
        value = each.values[j]
        if value.refused:
            reasons.setdefault((value.refused, value.remedy), []).append(each.learner)
    measure = found.measures[j].name.capitalize()
    return [
        Line(f"{measure}{_of(names, found)}: the log cannot tell, because {why}. {remedy}".rstrip())
        for (why, remedy), names in reasons.items()
    ]


def needed(found: Evaluation, j: int) -> str:
    """Return a sentence, with a space before it, on how many decisions it takes to tell learners from the first by the
    measure with the index `j`; "" if there is no difference."""
    told = [
        f"{int(float(f'{n:.2g}')):,} for {each.learner}"
        for each in found.learners
        if (n := each.values[j].decisions_needed) is not None
    ]
    if not told:
        return ""
    many = " To tell the difference, if it stays as it was measured, takes about this many decisions: "
    return f"{many}{', '.join(told)} (answered so far: {found.decisions:,})."


def _of(names: Sequence[str], found: Evaluation) -> str:
    return "" if len(names) == len(found.learners) else f" of {', '.join(names)}"


def _weights(learners: Sequence[LearnerEvaluation], values: Sequence[Value]) -> list[Part]:
    """Return a table of the weights of importance-weighted `values`, a line that explains it, and a line for each
    learner whose value should not be trusted."""
    weighted = {each.learner: value for each, value in zip(learners, values) if value.mean_weight is not None}
    warnings = [Line(f"{each.learner}: {value.warning}.") for each, value in zip(learners, values) if value.warning]
    about = (
        "Answers count the more, the likelier this learner would have shown what was shown. The effective sample size "
        "is the number of answers of equal weight that would tell as much. The mean weight is 1, but for chance, if "
        "all is well: there is no value where it is above that, or far below."
    )
    table = Table.named("Weights", "learner", WEIGHT_COLUMNS, weighted)
    return [table, Line(about), *warnings] if weighted else [*warnings]


def value_texts(value: Value, share: bool) -> tuple[str, str, str]:
    """Return three texts: the value, its confidence interval, and its difference from the first learner with the
    interval of that.

    They are percentages if `share` is True."""

    def text(number: float | None, sign: bool = False) -> str:
        if number is None:
            return ""
        number = 0.0 if abs(number) < ROUNDING else number
        if share:
            return percent(number, sign=sign)
        return signed(number) if sign else brief(number)

    if value.value is None:
        return "unknown", "", ""

    def between(low: float | None, high: float | None, sign: bool = False) -> str:
        low, high = (end if end is not None and math.isfinite(end) else None for end in (low, high))
        if low is None or high is None:
            ends = (f"{text(low, sign)} or more", f"{text(high, sign)} or less")
            return "none" if low is high else ends[low is None]
        return f"{text(low, sign)} to {text(high, sign)}"

    if value.difference is None:
        return text(value.value), between(value.low, value.high), ""
    apart = between(value.difference_low, value.difference_high, True)
    return (
        text(value.value),
        between(value.low, value.high),
        f"{text(value.difference, True)} ({'no interval' if apart == 'none' else apart})",
    )


# ---------------------------------------------------------------------------- a report


def report(found: Findings) -> list[Part]:
    """Return the findings of a report, `found`, as lines and tables: a table of learned and control lists, the verdict,
    the sections.

    A picture becomes a table with a line chart for each row, unless the table of lists shows the same values."""
    parts: list[Part] = []
    if found.table is not None:
        parts.append(found.table)
    elif found.picture is not None:
        parts.append(picture_table(found.picture))
    parts.append(Line(" ".join((found.verdict.short, *found.verdict.more))))
    for section in found.sections:
        parts += [] if section.picture is None else [picture_table(section.picture)]
        parts.append(Line(" ".join((section.title, *section.sentences))))
    return parts


def picture_table(picture: Picture) -> Table:
    """Return a picture of lines over time as a table: for each line a row with its first value, last value and a line
    chart."""
    known = [[value for value in line.values if value is not None] for line in picture.lines]
    low, high = picture.axis if isinstance(picture.axis, tuple) else (0.0, max(max(values) for values in known))
    span = high - low or 1.0
    rows = [(line.label, number(values[0]), number(values[-1])) for line, values in zip(picture.lines, known)]
    trends = [tuple([None if v is None else (v - low) / span for v in line.values]) for line in picture.lines]
    return Table(picture.caption.rstrip("."), ("", "first", "last"), tuple(rows), trends=tuple(trends))


# ---------------------------------------------------------------------------- the health of feedback


def health(found: Health) -> list[Part]:
    """Return `found`, how sound the feedback of a loop is, as lines and tables."""
    alarms = [Line(f"ALARM, {each.name}: {each.said} {each.remedy}") for each in found.alarms]
    return there([*(alarms or [sound(found)]), *health_compared(found), *health_over_time(found), calibration(found)])


def sound(found: Health) -> Line:
    """Return the sentence that nothing seems to be wrong, with the numbers of decisions and feedback."""
    pieces = count(found.feedback, "piece of feedback", "pieces of feedback")
    given = f"{pieces} on {count(found.decisions, 'decision')}"
    return Line(f"Nothing is wrong with {given}, as far as can be seen.")


def health_compared(found: Health) -> list[Part]:
    """Return a table of the tests of the feedback in `found`, and lines about them."""
    rows = [
        (each.name, _percent(each.before), _percent(each.after), brief(each.evidence), "alarm" if each.alarm else "no")
        for each in found.signals
    ]
    least = brief(1.0 / found.signals[0].error_rate)
    limits = (
        f"Evidence of {least} makes an alarm. Sound feedback ever raises one with probability {found.alpha:.2g} at "
    )
    silent = [Line(f"{each.name.capitalize()}: {each.said}") for each in found.signals if each.before is None]
    compared = Table("What may have changed", ("what", "before", "since", "evidence", "alarm"), tuple(rows), (0, 4))
    return [compared, Line(f"{limits}most, whenever one looks."), *silent]


def health_over_time(found: Health) -> list[Part]:
    """Return counts of the feedback in `found` over time as a table, and lines that explain the columns."""
    return [_windows(found), *_lines(found)]


def _windows(found: Health) -> Table:
    """Return a table of shares of feedback (unanswered, late, contradictory, ...), a row for each window of time in
    `found`."""
    corrects = found.corrections is not None
    rows = [
        (
            day(each.since),
            f"{each.decisions:,}",
            _share(each.unanswered, each.settled),
            _share(each.late, each.settled - each.unanswered),
            _share(each.empty, each.feedback),
            _share(each.contradictory, each.repeated),
            _percent(each.error),
            *([_percent(each.alpha), "" if each.slack is None else brief(each.slack)] if corrects else []),
        )
        for each in found.windows
    ]
    names = ("from", "decisions", "unanswered", "late", "empty", "contradictory", "error")
    return Table("Over time", (*names, "alpha", "slack") if corrects else names, tuple(rows))


def _lines(found: Health) -> list[Line]:
    """Return lines on what the columns over time mean, how much corrections gain, and which people give the most
    feedback."""
    once, twice = duration(found.late_after), duration(2.0 * found.late_after)
    told = f"Unanswered: no feedback within {twice}, of decisions at least so old; late: later than {once}. "
    told += "Contradictory: questions that a person answered otherwise than the last time, of those answered before."
    delay = "" if found.delay is None else f" 95 % of first answers come within {duration(found.delay)}."
    lines = [Line(told + delay)]
    if found.corrections is None:
        lines.append(Line(f"Corrections: nothing can be said, because {found.uncorrected}."))
    else:
        gained = found.corrections
        lines.append(
            Line(
                f"Corrections gain {percent(gained.alpha)} of what the best list would gain (alpha), with a mean "
                f"slack of {brief(gained.slack)}; {percent(gained.worse)} are worse than what was shown. All by "
                f"the utility of the present model, which is an estimate, over {count(gained.answers, 'correction')}."
            )
        )
    largest = found.largest
    if largest.person is not None and largest.people == 1:
        lines.append(Line(f"All feedback comes from {largest.person}. {found.floods}"))
    elif largest.person is not None:
        told = f"Of {largest.people:,} people, {largest.person} gave the most feedback, {percent(largest.feedback)}"
        moved = f"; that of {largest.mover} moved the model the most, {percent(largest.movement)} of the way"
        lines.append(Line(f"{told}{moved if largest.mover is not None else ''}. {found.floods}"))
    if found.uncalibrated:
        lines.append(Line(f"Calibration: nothing can be said, because {found.uncalibrated}."))
    return lines


def calibration(found: Health) -> Table:
    """Return a table that compares predictions with the answers: for each interval of predictions, their mean and the
    mean of the answers."""
    rows = [
        (
            f"{brief(each.low)} to {brief(each.high)}", f"{each.answers:,}", brief(each.predicted), brief(each.came),
            f"{brief(each.came_low)} to {brief(each.came_high)}",
        )
        for each in found.calibration
    ]  # fmt: skip
    columns = ("predicted", "answers", "mean", "came", f"{percent(1.0 - found.alpha, 6)} interval")
    return Table("How predictions came out", columns, tuple(rows))


def _share(n: int, of: int) -> str:
    return percent(n / of) if of else ""


def _percent(value: float | None) -> str:
    return "" if value is None else percent(value)


# ---------------------------------------------------------------------------- style


def style(found: Style) -> list[Part]:
    """Return `found`, what a person's edits say about the style of texts that they want, as lines and a table.

    The first line is the prompt."""
    rows = []
    for each in found.statements:
        if each.more or each.fewer:
            told = f"denied by hand ({each.told or 'cannot be told'})" if each.denied else each.told or "cannot be told"
            counts = (f"{each.fewer:,}", f"{each.more:,}", f"{each.edits:,}", brief(each.evidence))
            rows.append((each.feature, told, *counts))
    columns = ("feature", "what the edits say", "less", "more", "of edits", "evidence")
    lines = [Line(found.prompt)] if found.prompt else []
    lines += [sentence(f"nothing can be told from edits: {found.unsaid}")] if found.unsaid else []
    said = []
    for rule in found.rules:
        what = f"{rule.deny} denied" if rule.deny else f"always: {rule.always}"
        said.append(Line(f"By hand, event {rule.event}{'' if rule.person else ', for everybody'}: {what}"))
    edits = f"{found.edits:,} {'edit' if found.edits == 1 else 'edits'}, {found.english:,} of English texts, in which "
    sure = f"words are counted. The probability that any statement is ever false is at most {found.alpha:.2g}."
    unread = f" {found.unread:,} more have no texts to compare." if found.unread else ""
    table = Table("Style", columns, tuple(rows), (0, 1))
    pooled = [Line(found.pooled)] if found.pooled else []
    return there([*lines, *pooled, table, *said, Line(f"{edits}{sure}{unread}")])
