"""Import of preference data: each row becomes a decision, which showed its answers, and the feedback on it.

Ids come from the row or from its content and its number among equal rows of the file, so that the same file again
changes nothing. A pair becomes a decision
with two answers and a `better` or a `choice`; a row with a label becomes one answer and a `thumb`.
docs/preference-data.md says what becomes what.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from heedful.data.preference_data import Row, read_labelled, read_pairs
from heedful.data.repeats import has_clock, newest_answers
from heedful.data.row_report import ALREADY, REPEATED, Report
from heedful.io.preference_export import text_column
from heedful.loop import Loop
from heedful.loop.interactions.protocol import why_refused

FORGOTTEN = "forgotten in this loop"


def read_pair_lines(
    loop: Loop, files: Sequence[Path], report: Report, options: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the lines of an import that teach `loop` which of two answers is better, from `files` of pairs.

    A loop that knows its items by name alone gets an item for each text that it does not have; others get the texts
    with each decision. `options` are `text`, the column of an item that has its text, `prompt`, the field of the
    context for the prompt, and `aside`, that which says which rows do not count. All files are read before the first
    line is yielded; `report` counts the rows. Raise ValueError if a file is malformed, or if the loop cannot learn from
    pairs of texts."""
    column, prompt = text_column(loop, options.get("text")), options.get("prompt", "prompt")
    by_number = loop.projection.interaction.by_number
    aside = [options["aside"]] if "aside" in options else None
    _check_taken(loop, "choice" if by_number else "better")
    counting = _Answers(loop, "pair", (pair.row for file in files for pair in read_pairs(file, Report(), aside)))
    names = _Names(loop, column) if by_number else None
    for file in files:
        counting.begin()
        for pair in read_pairs(file, report, aside):
            if (id := counting.id_of(pair.row, report, pair.chosen, pair.rejected)) is None:
                continue
            if names is None:
                identifier = loop.manifest.encoding.identifier or "id"
                answers = {"rejected": pair.rejected, "chosen": pair.chosen}
                candidates = [{identifier: name, column: text} for name, text in answers.items()]
                yield _decision(id, pair.row, candidates, ["rejected", "chosen"][: loop.manifest.settings.k], prompt)
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
            yield _decision(id, pair.row, shown, shown, prompt)
            yield {"kind": "feedback", "id": id, "decision": id, "choice": "second" if turned else "first"}


def read_thumb_lines(
    loop: Loop, files: Sequence[Path], report: Report, options: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the lines of an import that teach `loop` which answers are good, from `files` of (prompt, completion,
    label).

    The other arguments and the errors are those of `read_pair_lines`."""
    column, prompt = text_column(loop, options.get("text")), options.get("prompt", "prompt")
    aside = [options["aside"]] if "aside" in options else None
    _check_taken(loop, "thumb")
    counting = _Answers(loop, "label", (label.row for file in files for label in read_labelled(file, Report(), aside)))
    identifier = loop.manifest.encoding.identifier or "id"
    for file in files:
        counting.begin()
        for label in read_labelled(file, report, aside):
            if (id := counting.id_of(label.row, report, label.completion, str(label.label))) is None:
                continue
            yield _decision(
                id, label.row, [{identifier: "completion", column: label.completion}], ["completion"], prompt
            )
            yield {"kind": "feedback", "id": id, "decision": id, "thumb": "up" if label.label else "down"}


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


def _decision(id: str, row: Row, candidates: Sequence[object], shown: Sequence[str], prompt: str) -> dict[str, Any]:
    line: dict[str, Any] = {"kind": "decision", "id": id, "candidates": list(candidates), "shown": list(shown)}
    if row.person is not None:
        line["person"] = row.person
    if row.prompt is not None:
        line["context"] = {prompt: row.prompt.text}
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
