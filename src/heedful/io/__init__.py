"""Events of a loop as JSON lines: imported (`import_lines`), exported (`export_lines`), checked without writing.

    {"kind": "item", "id": "a", ...attributes}              {"kind": "withdraw", "id": "a"}
    {"kind": "decision", "id": "d1", "candidates": ["a", "b"], "shown": ["b", "a"], ...}
    {"kind": "activate", "decision": "d1"}
    {"kind": "feedback", "id": "e1", "decision": "d1", "clicks": ["b"], ...}
    {"kind": "undo", "event": "e1"}
    {"kind": "experiment", "id": "x1", "learner": "perceptron", "against": "posterior", "share": 0.2}

docs/commands.md and docs/feedback.md name every field. What `export_lines` writes, imported into a new loop with the
same learner, encoding and settings, gives the same model, bit for bit. Importing the same lines again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from heedful.data.jsonl import Line
from heedful.io.dry_run import rehearse
from heedful.io.exports import events_of_person, export_lines
from heedful.io.imports import EventLine, Importer, Outcome
from heedful.io.line_schema import KINDS, check_line
from heedful.loop import Loop
from heedful.loop.interactions.forms import FORMS, Form, known_forms
from heedful.loop.records import AnsweredItem
from heedful.results.answers import PersonEvents

__all__ = [
    "BATCH",
    "KINDS",
    "Outcome",
    "PersonEvents",
    "check_form",
    "check_line",
    "events_of_person",
    "export_lines",
    "import_answers",
    "import_lines",
    "rehearse",
]

BATCH = 50_000
"""Lines that are imported together: in one commit for the decisions among them, and one for the feedback."""
BATCH_BYTES = 2**24
"""The bytes of such lines, about, at most: long ones take some ten times as much memory while they wait."""


def import_lines(loop: Loop, lines: Iterable[Line], *, batch: int = BATCH) -> Iterator[Outcome]:
    """Import `lines`, the events of a file of JSON lines, into `loop`; yield what became of each line.

    Lines are written in batches of at most `batch`, of long lines fewer. Outcomes are not in the order of the file.

    - Rejections: a line that is no event, or does not fit the loop, has the outcome `rejected` with a reason; the other
      lines are imported all the same, but for those that are about a decision or feedback that was rejected: they are
      not taken for being about another one that has its id.
    - Order: a batch is written in the order items, withdrawals and decisions; then lines that say that a decision made
      ahead of time was shown (`activate`); then feedback; then undos. Lines of one kind keep their order, and so do a
      decision and a change of one of its candidates.
    - Where this order could give another model than that of the file, a new batch begins: for example at feedback that
      stands after an undo. So the model is the one that results from the lines one by one.
    - A rollback, the start or end of an experiment, the promotion of another learner to serve the loop, and a
      correction of style are a batch of their own.
    - A line that names a learner of the user's own (FILE.py:Class) is rejected unless this learner was named when the
      loop was opened, so that a file cannot make other code run.
    """
    importer, forms, size = Importer(loop), known_forms(loop.projection.interaction), 0
    for line in lines:
        event = check_form(line, forms)
        if isinstance(event, Outcome):
            importer.note(event)
            yield event
            continue
        size += line.size
        if importer.waits_for(*event) or importer.size >= batch or size > BATCH_BYTES:
            yield from importer.flush()
            size = line.size
        importer.add(EventLine(line.number, *event, line.record or {}))
    yield from importer.flush()


def import_answers(loop: Loop, answers: Iterable[AnsweredItem]) -> Iterator[Outcome]:
    """Import `answers` into `loop`, many in a commit; yield what became of the decision and of the feedback that each
    of them becomes."""
    importer, left, number = Importer(loop), iter(answers), 1
    while some := list(islice(left, BATCH)):
        yield from importer.bring_answers(some, number)
        number += len(some)


def check_form(line: Line, forms: Mapping[str, Form] = FORMS) -> tuple[str, str] | Outcome:
    """Return (kind, id) of a line that has the form of an event, or an Outcome that rejects it and says why.

    No loop is needed. `forms` are the forms of feedback (clicks, grade, ...) that are allowed, by name.
    """
    if line.record is None:
        wrong = (line.error or "").split(": ", 1)[-1]  # after NAME:LINE
        return Outcome(line.number, "line", "", "rejected", wrong)
    try:
        return check_line(line.record, forms)
    except ValueError as error:
        kind, id = line.record.get("kind"), line.record.get("id", "")
        shown_kind = kind if isinstance(kind, str) and kind in KINDS else "line"
        return Outcome(line.number, shown_kind, str(id), "rejected", str(error))
