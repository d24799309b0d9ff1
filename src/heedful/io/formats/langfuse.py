"""Import of Langfuse's scores: what people said of the outputs of an application becomes feedback on decisions.

The id of a score is that of the feedback, so that a score counts once. The decision is the one with the id of its
observation or its trace; in a loop of texts that has none, one is made that showed the output. A score of an
observation whose output differs from what the decision of its trace showed gets a decision of its own.
docs/langfuse.md says what becomes what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from pathlib import Path
from typing import Any, TypeAlias

from heedful.core.validation import describe
from heedful.data.files import number_in
from heedful.data.langfuse import Output, Score, as_text, parse_output, parse_score
from heedful.data.repeats import Answer, Identity, newest_answers
from heedful.data.row_report import FORGOTTEN, REPEATED, Report
from heedful.data.table import read_records
from heedful.io.formats import Format, is_yes
from heedful.io.texts import TextReader, described, text_column
from heedful.loop import Loop

OPTIONS = {
    "evaluations": "yes: also scores that a model gave (source EVAL)",
    "traces": "a file with the outputs of traces or observations",
    "score:NAME": "what the values of this score mean: 1..5, 0.5, good:up,bad:down or none",
    "text": "the column of an item that has its text",
}
"""The options of the format, with what each says."""

Find: TypeAlias = Callable[[Score], Output | None]
"""Returns the output that a score is about; None if it is not known."""
Meaning: TypeAlias = Callable[[Score], dict[str, Any] | str]
"""Returns the form of the feedback that a score gives, or why there is none."""

EVALUATION = "given by a model: --evaluations takes it"
NO_RANGE = "a number without a meaning: --score NAME=1..5 is a range, --score NAME=0.5 the least that is good"
NO_CATEGORY = "a category without a meaning: --score NAME=good:up,bad:down"
OTHER_CATEGORY = "a category that --score does not name"
OUTSIDE = "outside of its range"
TEXT = "a comment"
NO_VALUE = "without a value"
LEFT_OUT = "left out by --score"
NO_DECISION = "its decision is not in this loop: in a loop of texts, --traces FILE makes one of the output"
NO_OUTPUT = "neither its decision nor its output is there"
EMPTY_OUTPUT = "its output has no text"
EQUAL = "the correction is the output"


def read_score_lines(
    loop: Loop, files: Sequence[Path], report: Report, options: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the lines of an import of the scores in `files`; with the option `traces`, of decisions, too.

    All files are read before the first line is yielded; `report` counts the scores. Raise ValueError if a file is
    malformed or an option makes no sense."""
    outputs: Find | None = None
    meaning = Meanings(options)  # before any file is read
    if "traces" in options:
        outputs = _by_id(starmap(parse_output, read_records(options["traces"])))

    def read_scores() -> Iterator[Score]:
        return starmap(parse_score, chain.from_iterable(map(read_records, files)))

    newest = newest_answers(map(_answer, read_scores()))[0].tolist()

    def scores() -> Iterator[Score]:
        for score, counts in zip(read_scores(), newest):
            if counts:
                yield score
            else:
                report.rows["scores"] += 1
                report.drop(REPEATED.format(by="id"), f"score {score.id}")

    yield from score_lines(loop, scores(), report, meaning, outputs, options.get("text"))


def _answer(score: Score) -> Answer:
    return Answer(Identity("id", True, None, None, None), score.id, None, score.version, None, None, None)


def score_lines(
    loop: Loop,
    scores: Iterable[Score],
    report: Report,
    meaning: Meanings,
    outputs: Find | None = None,
    text: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the lines of an import of `scores`: feedback and, where `outputs` finds what a score is about, decisions.

    `meaning` says what a value means. `text` is the column of an item that has its text (None: the only one).
    `report` counts the scores, and why others are left out. A score whose decision is not there comes last, as one
    behind it may bring the decision: so it does not matter in which order, nor how often, they are imported."""
    column = None
    if outputs is not None and not loop.projection.interaction.by_number:
        column = text_column(loop, text)
    decisions = _Decisions(loop, outputs, column)
    waiting: list[tuple[Score, dict[str, Any]]] = []
    for score in scores:
        report.rows["scores"] += 1
        form = meaning(score)
        if isinstance(form, str):
            report.drop(form, f"score {score.id}")
        elif isinstance(lines := _lines(loop, score, form, decisions), str):
            waiting.append((score, form))
        else:
            report.used["scores"] += 1
            yield from lines
    for score, form in waiting:
        if isinstance(lines := _lines(loop, score, form, decisions), str):
            report.drop(lines, f"score {score.id}")
        else:
            report.used["scores"] += 1
            yield from lines


def _lines(loop: Loop, score: Score, form: dict[str, Any], decisions: _Decisions) -> list[dict[str, Any]] | str:
    """Return the lines of `score`: feedback of this `form`, after its decision if it is new; or why there is none."""
    id, lines = decisions.find(score), []
    if id is None:
        line = _decision(loop, score, decisions.outputs, decisions.column)
        if isinstance(line, str):
            return line
        id, text = line["id"], line["candidates"][0][decisions.column]
        lines = [line]
    else:
        text = decisions.shown(id)
    if text is not None and form.get("edit") == text:
        return EQUAL
    if lines:
        decisions.made[id] = text
    if "rating" in form:
        decision = loop.projection.find_decision(id)
        shown = "output" if decision is None else decision.names[decision.record.shown[0]]
        form = {"rating": {shown: form["rating"]}}
    when = {} if score.time is None else {"time": score.time}
    return [*lines, {"kind": "feedback", "id": score.id, "decision": id, **when, **form}]


class _Decisions:
    """Finds the decisions that scores are about: in the loop, or among those that the same import makes."""

    def __init__(self, loop: Loop, outputs: Find | None, column: str | None) -> None:
        """Find them in `loop`; `column` is that of an item's text, None if no decision can be made."""
        self._log, self._projection = loop.projection.log, loop.projection
        self._reader = TextReader(loop, column or "")
        self.outputs, self.column = outputs, column
        self.made: dict[str, str] = {}
        """the texts that decisions of this import showed, by their ids"""

    def find(self, score: Score) -> str | None:
        """Return the id of the decision that `score` is about; None if one has to be made of its output."""
        feedback = self._log.find("feedback", score.id)
        answered = None if feedback is None else self._log.at(feedback.target or 0)
        if answered is not None and answered.id in score.places:
            return answered.id  # the score was imported before
        places = (
            place for place in score.places if place in self.made or self._log.find("decision", place) is not None
        )
        id = next(places, None)
        if id is None or id == score.observation or score.observation is None or self.outputs is None:
            return id
        output = None if self.column is None else self.outputs(score)
        return id if output is None or output.text in ("", self.shown(id)) else None

    def shown(self, id: str) -> str | None:
        """Return the text that the decision `id` showed first."""
        if id in self.made:
            return self.made[id]
        decision = self._projection.find_decision(id)
        if decision is None or not decision.record.shown:
            return None
        return self._reader.text(decision, decision.record.shown[0])


def _decision(loop: Loop, score: Score, outputs: Find | None, column: str | None) -> dict[str, Any] | str:
    """Return the line of the decision that showed the output that a score is about, or why there is none."""
    log = loop.projection.log
    if any(log.is_forgotten("decision", id) for id in score.places):
        return FORGOTTEN
    if outputs is None or column is None:
        return NO_DECISION
    output = outputs(score)
    if output is None:
        return NO_OUTPUT
    if not output.text.strip():
        return EMPTY_OUTPUT
    id = score.places[0]
    candidates = described(loop, column, {"output": output.text})
    line: dict[str, Any] = {"kind": "decision", "id": id, "candidates": candidates, "shown": ["output"]}
    context: dict[str, Any] = {"prompt": output.prompt} if output.prompt else {}
    context |= {} if output.messages is None else {"messages": output.messages}
    fields = {"context": context or None, "person": output.person, "time": output.time}
    return line | {name: value for name, value in fields.items() if value is not None}


def find_output(score: Score, outputs: Iterable[Output]) -> Output | None:
    """Return which of `outputs` a score is about: that of its observation, otherwise that of its trace.

    A trace has the output of its root; if the root has none, of the last observation that has one."""
    candidates = [output for output in outputs if output.trace == score.trace or output.id in score.places]
    if score.observation is not None:
        return next((output for output in candidates if output.id == score.observation), None)
    roots = [output for output in candidates if output.is_root and output.text]
    return (
        roots[0]
        if roots
        else max((output for output in candidates if output.text), key=lambda e: e.time or "", default=None)
    )


def _by_id(outputs: Iterable[Output]) -> Find:
    by_trace: dict[str, list[Output]] = {}
    by_id: dict[str, Output] = {}
    for output in outputs:
        by_trace.setdefault(output.trace, []).append(output)
        by_id[output.id] = output

    def find(score: Score) -> Output | None:
        if score.observation is not None:
            return by_id.get(score.observation)
        return find_output(score, by_trace.get(score.trace or "", []))

    return find


class Meanings:
    """What the values of scores mean as feedback, as the options `evaluations` and `score:NAME` say."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Read the options. Raise ValueError, naming the option, for one that makes no sense."""
        self._evaluations = is_yes(options, "evaluations", False)
        self._named = {
            name.partition(":")[2]: _meaning(name.partition(":")[2], how)
            for name, how in options.items()
            if name.startswith("score:")
        }

    def __call__(self, score: Score) -> dict[str, Any] | str:
        """Return the form of feedback that `score` gives, such as {"thumb": "up"}, or why it gives none."""
        if score.source == "EVAL" and not self._evaluations:
            return EVALUATION
        if score.kind not in ("trace", "observation"):
            return f"attached to a whole {score.kind}"
        if score.value is None:
            return NO_VALUE
        if score.name in self._named and score.type != "CORRECTION":
            return self._named[score.name](score)
        if isinstance(score.value, bool):
            return {"thumb": "up" if score.value else "down"}
        if score.type == "CORRECTION":
            corrected = as_text(score.value)
            return {"edit": corrected} if corrected.strip() else NO_VALUE
        return {"NUMERIC": NO_RANGE, "CATEGORICAL": NO_CATEGORY}.get(score.type, TEXT)


def _meaning(name: str, how: str) -> Meaning:
    """Return what `how`, an option for the scores called `name`, says. Raise ValueError if it makes no sense."""
    low, dots, high = how.partition("..")
    wrong = ValueError(
        f"--score: expected {name}=1..5 (a range), {name}=0.5 (the least that is good), {name}=good:up,bad:down or "
        f"{name}=none, got {describe(how)}"
    )
    if how == "none":
        return lambda score: LEFT_OUT
    if dots:
        least, most = number_in(low), number_in(high)
        if least is None or most is None or not least < most:
            raise wrong
        ends = least, most
        return lambda score: _rating(score, *ends)
    if (threshold := number_in(how)) is not None:
        if threshold != threshold:
            raise wrong
        return lambda score: _thumb(score, threshold)
    values: dict[str, dict[str, Any]] = {}
    for part in how.split(","):
        category, colon, meaning = part.rpartition(":")
        number = number_in(meaning)
        if not colon or not category or (meaning not in ("up", "down") and (number is None or number != number)):
            raise wrong
        values[category.strip()] = {"thumb": meaning} if number is None else {"rating": number}
    return lambda score: values.get(_category(score.value), OTHER_CATEGORY)


def _category(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _rating(score: Score, low: float, high: float) -> dict[str, Any] | str:
    if isinstance(score.value, str | None):
        return OTHER_CATEGORY
    return {"rating": float(score.value)} if low <= float(score.value) <= high else OUTSIDE


def _thumb(score: Score, threshold: float) -> dict[str, Any] | str:
    if isinstance(score.value, str | None):
        return OTHER_CATEGORY
    return {"thumb": "up" if float(score.value) >= threshold else "down"}


LANGFUSE = Format("langfuse", "scores of Langfuse", read=read_score_lines, options=OPTIONS)
