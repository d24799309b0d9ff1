"""Export of preference data: which of two answers to a prompt is better (`write_pairs`), and thumbs (`write_thumbs`).

A row comes from one piece of feedback that counts: what was undone or rolled back is left out, and what was forgotten
is not in the log. Its `event` is the id of that feedback. docs/preference-data.md says what becomes what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from heedful.core.validation import describe
from heedful.data.row_report import Report
from heedful.loop import Loop, records
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord

NO_TEXT = "the text of an answer is not in the log"
NO_TEXTS = "this loop keeps no texts"
NO_PROMPT = "the decision has no prompt"
EQUAL = "both answers are equal"
EMPTY = "an answer is empty"
UNDECIDED = "neither answer is better"
UNDONE = "undone or rolled back"
STRANGER = "about an item that was not on offer"
LIST_THUMB = "a thumb on a list of several answers"
NO_PAIR = "compares no two answers"
NO_THUMB = "no thumb"
PROMPTS = ("messages", "prompt")
"""The fields of a context in which a prompt is looked for first: a list of messages, a text."""


class Texts(NamedTuple):
    """The texts of a loop: in which column of its items, and in which field of a context, a text is."""

    column: str
    """the column of an item that has its text"""
    prompt: str | None
    """the field of a context that has the prompt; None: it is looked for"""


class _Answered(NamedTuple):
    """A piece of feedback that counts, with its decision: `event` and `record` are the feedback's."""

    event: Event
    record: FeedbackRecord
    decision: LoggedDecision


def text_column(loop: Loop, option: str | None = None) -> str:
    """Return the column of the items of `loop` that has their texts: `option`, the one column of texts, or "text".

    Raise ValueError, naming the option, if the loop has other columns, and several of texts or none."""
    columns = loop.manifest.encoding.columns
    if option is not None:
        return option
    texts = [column.name for column in columns if column.kind in ("text", "prose")]
    if len(texts) == 1:
        return texts[0]
    if not texts and (not columns or any(column.name == "text" for column in columns)):
        return "text"
    kind = f"those of {', '.join(map(repr, texts))}" if texts else "a loop without texts"
    raise ValueError(f"text: expected the column of an item that has its text, as --option text=COLUMN, got {kind}")


def write_pairs(loop: Loop, report: Report, options: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield ("pair", {"prompt", "chosen", "rejected", "id", "event", "decision"}) for each comparison of two answers.

    An edited text is chosen and the draft rejected; a choice is between the first two that were shown; of a better
    order, the first is chosen over each other answer that was shown. `options` are `text`, `prompt` and
    `without-prompt`. `report` counts feedback, and why no row came of it. Raise ValueError for options that make no
    sense in this loop."""
    texts, without = _texts(loop, options)
    reader = TextReader(loop)
    for answer in _answered(loop, report):
        pairs = _pairs(answer, reader, texts)
        if isinstance(pairs, str):
            report.drop(pairs, f"feedback {answer.event.id}")
            continue
        rows, wrong = [], ""
        for chosen, rejected in pairs:
            reason = _why_not(loop, chosen, rejected)
            wrong = wrong or reason
            if not reason:
                rows.append({"chosen": chosen, "rejected": rejected})
        prompt = _prompt(answer.decision, texts)
        if not rows or (prompt is None and not without):
            report.drop(NO_PROMPT if rows else wrong, f"feedback {answer.event.id}")
            continue
        report.used["feedback"] += 1
        if len(rows) < len(pairs):
            report.left_out[f"pairs of a longer order: {wrong}"] += len(pairs) - len(rows)
        for i, row in enumerate(rows):
            yield "pair", _row(answer, prompt, row, i)


def write_thumbs(loop: Loop, report: Report, options: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield ("thumb", {"prompt", "completion", "label", "id", "event", "decision"}) for each thumb on one answer.

    The label is true for a thumb up. `options` and `report` are as in `write_pairs`."""
    texts, without = _texts(loop, options)
    reader = TextReader(loop)
    for answer in _answered(loop, report):
        record, decision = answer.record, answer.decision
        chosen = list(record.chosen) or list(decision.record.shown)
        wrong, completion, prompt = "", None, _prompt(decision, texts)
        if record.form != "thumb":
            wrong = STRANGER if record.form == "unknown" else NO_THUMB
        elif len(chosen) != 1:
            wrong = LIST_THUMB
        else:
            completion = reader.text(decision, chosen[0], texts.column)
            if completion is None:
                wrong = _no_text(loop)
            elif not completion.strip():
                wrong = EMPTY
            elif prompt is None and not without:
                wrong = NO_PROMPT
        if wrong:
            report.drop(wrong, f"feedback {answer.event.id}")
            continue
        report.used["feedback"] += 1
        yield "thumb", _row(answer, prompt, {"completion": completion, "label": record.values[0] > 0.0}, 0)


def _texts(loop: Loop, options: Mapping[str, str]) -> tuple[Texts, bool]:
    without = options.get("without-prompt", "no")
    if without not in ("yes", "no"):
        raise ValueError(f"without-prompt: expected yes or no, got {describe(without)}")
    return Texts(text_column(loop, options.get("text")), options.get("prompt")), without == "yes"


def _answered(loop: Loop, report: Report) -> Iterator[_Answered]:
    """Yield the feedback of `loop` that still counts, in order; `report` counts all of it."""
    projection = loop.projection
    projection.catch_up()
    head, _ = projection.log.last()
    retracted = projection.log.retractions()
    decision: LoggedDecision | None = None
    for event, decided in projection.log.lessons():
        if event.seq > head:
            return
        report.rows["feedback"] += 1
        if event.seq in retracted:
            report.drop(UNDONE, f"feedback {event.id}")
            continue
        if decision is None or decision.seq != decided.seq:
            decision = projection.decision(decided)
        yield _Answered(event, records.decode_feedback(event.payload), decision)


def _pairs(answer: _Answered, reader: TextReader, texts: Texts) -> list[tuple[str | None, str | None]] | str:
    """Return the pairs (better text, worse text) that an answer states, None for one not kept; or why there is none."""
    record, decision = answer.record, answer.decision
    shown = decision.record.shown
    if record.form == "edit":
        chosen = record.text if record.text is not None else (record.given or {}).get(texts.column)
        chosen = chosen if isinstance(chosen, str) else None
        return [(chosen, reader.text(decision, record.base, texts.column))]
    if record.form == "choice":
        winner = int(record.values[0])
        if winner < 0:
            return UNDECIDED
        best, others = shown[winner], [shown[1 - winner]]
    elif record.form == "better" and record.chosen:
        best = record.chosen[0]
        others = [j for j in [*record.chosen[1:], *(j for j in shown if j not in record.chosen)] if j != best]
        if not others:
            return NO_PAIR
    else:
        return STRANGER if record.form == "unknown" else NO_PAIR
    winner_text = reader.text(decision, best, texts.column)
    return [(winner_text, reader.text(decision, j, texts.column)) for j in others]


def _no_text(loop: Loop) -> str:
    """Return why the log of `loop` lacks a text."""
    return NO_TEXT if loop.manifest.settings.store_text else NO_TEXTS


def _why_not(loop: Loop, chosen: str | None, rejected: str | None) -> str:
    """Return why two texts in the log of `loop` make no row; "" if they make one."""
    if chosen is None or rejected is None:
        return _no_text(loop)
    if not chosen.strip() or not rejected.strip():
        return EMPTY
    return EQUAL if chosen == rejected else ""


def _row(answer: _Answered, prompt: Any, fields: Mapping[str, Any], i: int) -> dict[str, Any]:
    """Return row `i`, from 0, of an answer: the prompt (if messages, answers are messages too), `fields`, ids."""
    if isinstance(prompt, list):
        fields = {
            name: [{"role": "assistant", "content": value}] if isinstance(value, str) else value
            for name, value in fields.items()
        }
    prompted: dict[str, Any] = {} if prompt is None else {"prompt": prompt}
    id = answer.event.id if i == 0 else f"{answer.event.id}/{i + 1}"
    return {**prompted, **fields, "id": id, "event": answer.event.id, "decision": answer.decision.id}


def _prompt(decision: LoggedDecision, texts: Texts) -> str | list[Any] | None:
    """Return the prompt in the context of a decision, a text or a list of messages; None if there is none."""
    context = decision.record.context or {}
    if texts.prompt is not None:
        return _as_prompt(context.get(texts.prompt))
    for name in PROMPTS:
        if (prompt := _as_prompt(context.get(name))) is not None:
            return prompt
    alone = [value for value in context.values() if isinstance(value, str)]
    return _as_prompt(alone[0]) if len(alone) == 1 else None


def _as_prompt(value: object) -> str | list[Any] | None:
    if isinstance(value, str):
        return value if value.strip() else None
    messages = (
        isinstance(value, list)
        and value
        and all(isinstance(message, Mapping) and "role" in message for message in value)
    )
    return value if messages and isinstance(value, list) else None


class TextReader:
    """Looks up the texts of candidates, where the log has kept them: in the decision, or in the item."""

    def __init__(self, loop: Loop) -> None:
        self._log = loop.projection.log
        self._items: dict[int, Mapping[str, Any]] = {}

    def text(self, decision: LoggedDecision, candidate: int, column: str) -> str | None:
        """Return the text of the candidate with this index; None if the log has none."""
        rows: Sequence[Mapping[str, Any]] = decision.record.attributes
        if rows:
            row = rows[candidate]
        elif decision.record.items:
            row = self._item(decision.record.items[candidate])
        else:
            return None
        value = row.get(column)
        return value if isinstance(value, str) else None

    def _item(self, version: int) -> Mapping[str, Any]:
        item = self._items.get(version)
        if item is None:
            event = self._log.at(version)
            content = None if event is None else msgspec.json.decode(event.payload)
            item = self._items[version] = content if isinstance(content, Mapping) else {}
        return item
