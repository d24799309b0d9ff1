"""Preference data: pairs of answers of which one is better (`preference-data`), and answers with a label (`unpaired`).

Out of a loop a row comes from one piece of feedback that counts: what was undone or rolled back is left out, and what
was forgotten is not in the log. Its `event` is the id of that feedback. Into a loop each row becomes a decision, which
showed its answers, and the feedback on it: a pair a `better` or a `choice`, a label a `thumb`. Ids come from the row or
from its content and its number among equal rows of the file, so that the same file again changes nothing.
docs/preference-data.md says what becomes what. The file is long because both formats are read and written.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from heedful.data.preference_data import EMPTY, EQUAL, Row, read_labelled, read_pairs
from heedful.data.repeats import has_clock, newest_answers
from heedful.data.row_report import ALREADY, FORGOTTEN, REPEATED, UNDONE, Report
from heedful.evaluation.answers import Answer
from heedful.io.formats import Format, Options, is_yes
from heedful.io.texts import TextReader, described, text_column
from heedful.loop import Loop, records
from heedful.loop.interactions.forms import read_answer
from heedful.loop.interactions.protocol import why_refused
from heedful.loop.log import Event
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord

NO_TEXT = "the text of an answer is not in the log"
NO_TEXTS = "this loop keeps no texts"
NO_PROMPT = "the decision has no prompt"
UNDECIDED = "neither answer is better"
STRANGER = "about an item that was not on offer"
LIST_THUMB = "a thumb on a list of several answers"
NO_PAIR = "compares no two answers"
NO_THUMB = "no thumb"
PROMPTS = ("messages", "prompt")
"""The fields of a context in which a prompt is looked for first: a list of messages, a text."""


class _Answered(NamedTuple):
    """A piece of feedback that counts, with its decision: `event` and `record` are the feedback's."""

    event: Event
    record: FeedbackRecord
    decision: LoggedDecision


_Made: TypeAlias = Mapping[str, Any] | str
"""The fields of a row that an answer gives, or why it gives none."""


# ---------------------------------------------------------------------------- writing


def write_pairs(loop: Loop, report: Report, options: Options) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield ("pair", {"prompt", "chosen", "rejected", "id", "event", "decision"}) for each comparison of two answers.

    An edited text is chosen and the draft rejected; a choice is between the first two that were shown; of a better
    order, the first is chosen over each other answer that was shown. `options` are `text`, `prompt` and
    `without-prompt`. `report` counts feedback, and why no row came of it. Raise ValueError for options that make no
    sense in this loop."""
    return _write(loop, report, options, "pair", _pairs)


def write_thumbs(loop: Loop, report: Report, options: Options) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield ("thumb", {"prompt", "completion", "label", "id", "event", "decision"}) for each thumb on one answer.

    The label is true for a thumb up. `options` and `report` are as in `write_pairs`."""
    return _write(loop, report, options, "thumb", _thumbs)


def _write(
    loop: Loop, report: Report, options: Options, what: str, made: Callable[[_Answered, _Texts], Sequence[_Made]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    without = is_yes(options, "without-prompt", False)
    texts = _Texts(loop, text_column(loop, options.get("text")))
    for answered in _answered(loop, report):
        parts = made(answered, texts)
        rows = [part for part in parts if not isinstance(part, str)]
        wrong = next((part for part in parts if isinstance(part, str)), "")
        prompt = _prompt(answered.decision, options.get("prompt"))
        if not rows or (prompt is None and not without):
            report.drop(NO_PROMPT if rows else wrong, f"feedback {answered.event.id}")
            continue
        report.used["feedback"] += 1
        if wrong:
            report.left_out[f"pairs of a longer order: {wrong}"] += len(parts) - len(rows)
        for i, row in enumerate(rows):
            yield what, _row(answered, prompt, row, i)


class _Texts(TextReader):
    """The texts of the answers in a loop, with the forms of its feedback."""

    def __init__(self, loop: Loop, column: str) -> None:
        super().__init__(loop, column)
        self.forms = loop.projection.interaction.forms
        self._missing = NO_TEXT if loop.manifest.settings.store_text else NO_TEXTS

    def why_none(self, *texts: str | None) -> str:
        """Return why one of these texts makes no row; "" if all may be in one."""
        if any(text is None for text in texts):
            return self._missing
        return "" if all(text and text.strip() for text in texts) else EMPTY


def _pairs(answered: _Answered, texts: _Texts) -> list[_Made]:
    """Return a row for each pair of texts, the better and the worse, that an answer states."""
    _, record, decision = answered
    if record.form == "edit":  # the text that was written, even if a candidate near to it was taken
        edited = record.text if record.text is not None else (record.given or {}).get(texts.column)
        pairs = [(edited if isinstance(edited, str) else None, texts.text(decision, record.base))]
    else:
        compared = _compared(record, decision, texts)
        if isinstance(compared, str):
            return [compared]
        pairs = [(texts.text(decision, better), texts.text(decision, worse)) for better, worse in compared]
    return [
        texts.why_none(chosen, rejected) or (EQUAL if chosen == rejected else {"chosen": chosen, "rejected": rejected})
        for chosen, rejected in pairs
    ]


def _compared(record: FeedbackRecord, decision: LoggedDecision, texts: _Texts) -> list[tuple[int, int]] | str:
    """Return (better, worse) of candidates, as far as the answer says what is best, or why there is none."""
    shown = decision.record.shown
    said = read_answer(texts.forms, record, shown)
    if record.form == "unknown":
        return STRANGER
    if said.tied or said == Answer():
        return UNDECIDED
    if said.picked or not said.stated or not said.best:
        return NO_PAIR  # a pick depends on where things stood
    best: Any = said.best  # an answer in the log has no names
    rest = [*best[1:], *(j for j in shown if j not in best)]
    return list(said.pairs) or [(best[0], worse) for worse in rest] or NO_PAIR


def _thumbs(answered: _Answered, texts: _Texts) -> list[_Made]:
    """Return the row of a thumb on one answer."""
    _, record, decision = answered
    verdict = read_answer(texts.forms, record, decision.record.shown).verdict
    if verdict is None:
        return [STRANGER if record.form == "unknown" else NO_THUMB]
    items = verdict[0] or decision.record.shown
    if len(items) != 1:
        return [LIST_THUMB]
    completion = texts.text(decision, items[0])
    return [texts.why_none(completion) or {"completion": completion, "label": verdict[1] > 0.0}]


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


def _prompt(decision: LoggedDecision, field: str | None) -> str | list[Any] | None:
    """Return the prompt in the context of a decision, a text or a list of messages; None if there is none.

    `field` is that of the context that has it; None: it is looked for."""
    context = decision.record.context or {}
    if field is not None:
        return _as_prompt(context.get(field))
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


# ---------------------------------------------------------------------------- reading


def read_pair_lines(loop: Loop, files: Sequence[Path], report: Report, options: Options) -> Iterator[dict[str, Any]]:
    """Yield the lines of an import that teach `loop` which of two answers is better, from `files` of pairs.

    A loop that knows its items by name alone gets an item for each text that it does not have; others get the texts
    with each decision. `options` are `text`, the column of an item that has its text, `prompt`, the field of the
    context for the prompt, and `aside`, that which says which rows do not count. All files are read before the first
    line is yielded; `report` counts the rows. Raise ValueError if a file is malformed, or if the loop cannot learn from
    pairs of texts."""
    column, by_number = text_column(loop, options.get("text")), loop.projection.interaction.by_number
    _check_taken(loop, "choice" if by_number else "better")
    names = _Names(loop, column) if by_number else None
    for id, pair in _counted(loop, files, report, options, read_pairs, "pair"):
        if names is None:
            answers = {"rejected": pair.rejected, "chosen": pair.chosen}
            shown = ["rejected", "chosen"][: loop.manifest.settings.k]
            yield _decision(id, pair.row, described(loop, column, answers), shown, options)
            yield {"kind": "feedback", "id": id, "decision": id, "better": "chosen"}
            continue
        yield from (line for text in (pair.chosen, pair.rejected) if (line := names.item(text)) is not None)
        two = [names.by_text[pair.chosen], names.by_text[pair.rejected]]
        if two[0] == two[1]:
            report.used["pairs"] -= 1
            report.drop("both answers are one item", pair.row.place)
            continue
        turned = hashlib.blake2b(id.encode(), digest_size=1).digest()[0] % 2  # who stood first is not known
        shown = two[::-1] if turned else two
        yield _decision(id, pair.row, shown, shown, options)
        yield {"kind": "feedback", "id": id, "decision": id, "choice": "second" if turned else "first"}


def read_thumb_lines(loop: Loop, files: Sequence[Path], report: Report, options: Options) -> Iterator[dict[str, Any]]:
    """Yield the lines of an import that teach `loop` which answers are good, from `files` of (prompt, completion,
    label).

    The other arguments and the errors are those of `read_pair_lines`."""
    column = text_column(loop, options.get("text"))
    _check_taken(loop, "thumb")
    for id, label in _counted(loop, files, report, options, read_labelled, "label"):
        answers = described(loop, column, {"completion": label.completion})
        yield _decision(id, label.row, answers, ["completion"], options)
        yield {"kind": "feedback", "id": id, "decision": id, "thumb": "up" if label.label else "down"}


def _counted(
    loop: Loop, files: Sequence[Path], report: Report, options: Options, read: Callable[..., Iterator[Any]], what: str
) -> Iterator[tuple[str, Any]]:
    """Yield (id, row) of each row of `files` that counts, as `read` reads them; `what` they are begins new ids.

    All files are read before the first row is yielded."""
    aside = [options["aside"]] if "aside" in options else None
    answers = _Answers(loop, what, (each.row for file in files for each in read(file, Report(), aside)))
    for file in files:
        answers.begin()
        for each in read(file, report, aside):
            if (id := answers.id_of(each.row, report, *map(str, each[1:]))) is not None:
                yield id, each


def _check_taken(loop: Loop, form: str) -> None:
    """Raise ValueError if feedback of this `form` is refused by the loop."""
    projection = loop.projection
    if (refusal := why_refused(projection.interaction, projection.model, form)) is not None:
        raise ValueError(f"--as: expected a loop that takes {form}, got: {refusal}")


class _Answers:
    """Tells which rows of files count, and the id of each, which is the same whenever the row is imported."""

    def __init__(self, loop: Loop, what: str, rows: Iterable[Row]) -> None:
        """Look at all `rows` in order; `what` they are ("pair", "label") begins the ids of those that have none."""
        self._loop, self._what = loop, what
        self._counted = zip(*(flags.tolist() for flags in newest_answers(row.answer for row in rows)))
        self._begun = set[str]()  # ids of several rows that were met
        self._often = Counter[str]()  # equal rows of a file so far

    def begin(self) -> None:
        """Begin with the rows of the next file: equal rows are counted in each file by itself."""
        self._often.clear()

    def id_of(self, row: Row, report: Report, *texts: str) -> str | None:
        """Return the id of the next row, which names these `texts`; None, with a reason in `report`, if uncounted."""
        counts, by_id, several = next(self._counted)
        reason = _why_skipped(self._loop, row) if counts else REPEATED.format(by=row.answer.by)
        if reason:
            report.used[f"{self._what}s"] -= 1
            report.drop(reason, row.place)
            return None
        answer, person = row.answer, row.answer.person or ""
        first = answer.id is not None and answer.id not in self._begun
        if answer.id is not None:
            self._begun.add(answer.id)
            if not several or (first and self._loop.projection.log.find("feedback", answer.id) is not None):
                return answer.id  # where it was imported before it stood in several rows, it keeps the name
        content = [answer.subject] if by_id else ["" if row.prompt is None else row.prompt.text, *texts]
        when = [str(answer.time)] if person and has_clock(answer.time) else []
        digest = hashlib.blake2b(msgspec.json.encode([self._what, person, *content, *when]), digest_size=12).hexdigest()
        name = f"{self._what if answer.id is None else answer.id[:150]}-{digest}"
        self._often[name] += 1
        # A person says the same of the same once; nobody knows whose the others are, so each is an answer of its own.
        return name if person or self._often[name] == 1 else f"{name}-{self._often[name]}"


def _why_skipped(loop: Loop, row: Row) -> str:
    """Return why the row need not be learned, because this very loop wrote it; "" if it did not."""
    if row.event is None:
        return ""
    log = loop.projection.log
    feedback = log.find("feedback", row.event)
    if feedback is not None:
        decided = log.at(feedback.target or 0)
        return ALREADY if decided is None or decided.id == row.decision else ""
    return FORGOTTEN if log.is_forgotten("feedback", row.event) else ""


def _decision(
    id: str, row: Row, candidates: Sequence[object], shown: Sequence[str], options: Options
) -> dict[str, Any]:
    line: dict[str, Any] = {"kind": "decision", "id": id, "candidates": list(candidates), "shown": list(shown)}
    if row.person is not None:
        line["person"] = row.person
    if row.prompt is not None:
        line["context"] = {options.get("prompt", "prompt"): row.prompt.text}
        if row.prompt.messages is not None:
            line["context"]["messages"] = row.prompt.messages
    return line


class _Names:
    """The names of a loop's items by their texts; texts that no item has get one."""

    def __init__(self, loop: Loop, column: str) -> None:
        self._column = column
        self._identifier = loop.manifest.encoding.identifier or "id"
        self.by_text: dict[str, str] = {}
        """the name of the item that has this text, or that is called so"""
        current = dict(loop.projection.catalogue.current)
        events = loop.projection.log.many(sorted({int(seq) for seq in current.values()}))
        for event in events:
            row = msgspec.json.decode(event.payload or "{}")
            text = row.get(column) if isinstance(row, dict) else None
            if isinstance(text, str):
                self.by_text.setdefault(text, event.subject or "")
        for name in current:
            self.by_text.setdefault(name, name)

    def item(self, text: str) -> dict[str, Any] | None:
        """Return the line that puts an item with this text on offer; None if there is one."""
        if text in self.by_text:
            return None
        name = self.by_text[text] = f"text-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
        return {"kind": "item", "id": name, "attributes": {self._identifier: name, self._column: text}}


# ---------------------------------------------------------------------------- the formats

_OPTIONS = {
    "text": "the column of an item that has its text",
    "prompt": "the field of a decision's context that has the prompt",
    "aside": "the column that says which rows do not count; none: all do",
    "without-prompt": "yes: also rows of decisions without a prompt",
}
PAIRS = Format(
    "preference-data",
    "prompt, chosen, rejected: which of two answers is better",
    write_pairs,
    read_pair_lines,
    _OPTIONS,
)
UNPAIRED = Format(
    "unpaired", "prompt, completion, label: a thumb on one answer", write_thumbs, read_thumb_lines, _OPTIONS
)
