"""Import of preference data: each row becomes a decision, which showed its answers, and the feedback on it.

Ids come from the row (`id`) or from its content, so that the same rows again change nothing. A pair becomes a decision
with two answers and a `better` or a `choice`; a row with a label becomes one answer and a `thumb`.
docs/preference-data.md says what becomes what.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from heedful.data.preference_data import Row, read_labelled, read_pairs
from heedful.data.row_report import ALREADY, Report
from heedful.io.preference_export import text_column
from heedful.loop import Loop

FORGOTTEN = "forgotten in this loop"


def read_pair_lines(
    loop: Loop, files: Sequence[Path], report: Report, options: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the lines of an import that teach `loop` which of two answers is better, from `files` of pairs.

    A loop that knows its items by name alone gets an item for each text that it does not have; others get the texts
    with each decision. `options` are `text`, the column of an item that has its text, and `prompt`, the field of the
    context for the prompt. All files are read before the first line is yielded; `report` counts the rows. Raise
    ValueError if a file is malformed, or if the loop cannot learn from pairs of texts."""
    column, prompt = text_column(loop, options.get("text")), options.get("prompt", "prompt")
    by_number = loop.projection.interaction.by_number
    _check_taken(loop, "choice" if by_number else "better")
    for file in files:
        for _ in read_pairs(file, Report()):
            pass
    names = _Names(loop, column) if by_number else None
    for file in files:
        for pair in read_pairs(file, report):
            if _is_known(loop, pair.row, report, "pairs"):
                continue
            id = pair.row.id or _digest("pair", pair.row, pair.chosen, pair.rejected)
            if names is None:
                identifier = loop.manifest.encoding.identifier or "id"
                answers = {"rejected": pair.rejected, "chosen": pair.chosen}
                candidates = [{identifier: name, column: text} for name, text in answers.items()]
                yield _decision(id, pair.row, candidates, ["rejected", "chosen"][: loop.manifest.settings.k], prompt)
                yield {"kind": "feedback", "id": id, "decision": id, "better": "chosen"}
                continue
            yield from (line for text in (pair.chosen, pair.rejected) if (line := names.item(text)) is not None)
            two = [names.known[pair.chosen], names.known[pair.rejected]]
            if two[0] == two[1]:
                report.used["pairs"] -= 1
                report.drop("both answers are one item", pair.row.at)
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
    _check_taken(loop, "thumb")
    for file in files:
        for _ in read_labelled(file, Report()):
            pass
    identifier = loop.manifest.encoding.identifier or "id"
    for file in files:
        for told in read_labelled(file, report):
            if _is_known(loop, told.row, report, "labels"):
                continue
            id = told.row.id or _digest("label", told.row, told.completion, str(told.label))
            yield _decision(id, told.row, [{identifier: "completion", column: told.completion}], ["completion"], prompt)
            yield {"kind": "feedback", "id": id, "decision": id, "thumb": "up" if told.label else "down"}


def _check_taken(loop: Loop, form: str) -> None:
    """Raise ValueError if feedback of this `form` is refused by the loop."""
    projection = loop.projection
    refusal = projection.interaction.refusal(projection.model, form)
    if form not in projection.interaction.forms or refusal is not None:
        raise ValueError(f"--as: expected a loop that takes {form}, got: {refusal or 'another kind of loop'}")


def _is_known(loop: Loop, row: Row, report: Report, what: str) -> bool:
    """Return whether the row was exported from this very loop, so that it was learned already; `report` counts it."""
    if row.event is None:
        return False
    log = loop.projection.log
    found = log.find("feedback", row.event)
    reason = ""
    if found is not None:
        decided = log.at(found.target or 0)
        reason = ALREADY if decided is None or decided.id == row.decision else ""
    elif log.is_forgotten("feedback", row.event):
        reason = FORGOTTEN
    if reason:
        report.used[what] -= 1
        report.drop(reason, row.at)
    return bool(reason)


def _digest(what: str, row: Row, *texts: str) -> str:
    """Return the id of a row without one, made from its content."""
    told = [what, row.person or "", "" if row.prompt is None else row.prompt.text, *texts]
    return f"{what}-{hashlib.blake2b(msgspec.json.encode(told), digest_size=12).hexdigest()}"


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
        self.known: dict[str, str] = {}
        """the name of the item that has this text, or that is called so"""
        current = dict(loop.projection.catalogue.current)
        events = loop.projection.log.many(sorted({int(seq) for seq in current.values()}))
        for event in events:
            row = msgspec.json.decode(event.payload or "{}")
            text = row.get(column) if isinstance(row, dict) else None
            if isinstance(text, str):
                self.known.setdefault(text, event.subject or "")
        for name in current:
            self.known.setdefault(name, name)

    def item(self, text: str) -> dict[str, Any] | None:
        """Return the line that puts an item with this text on offer; None if there is one."""
        if text in self.known:
            return None
        name = self.known[text] = f"text-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
        return {"kind": "item", "id": name, "attributes": {self._identifier: name, self._column: text}}
