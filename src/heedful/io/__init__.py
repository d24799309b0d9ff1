"""Events as JSON lines: into a loop, out of one (`export_lines`), and checked against one without writing anything.

    {"kind": "item", "id": "a", ...attributes}              {"kind": "withdraw", "id": "a"}
    {"kind": "decision", "id": "d1", "candidates": ["a", "b"], "shown": ["b", "a"], ...}
    {"kind": "activate", "decision": "d1"}
    {"kind": "feedback", "id": "e1", "decision": "d1", "clicks": ["b"], ...}
    {"kind": "undo", "event": "e1"}

docs/commands.md names every field. What `export_lines` writes, brought into a new loop with the same learner,
encoding and settings, gives the same model, bit for bit. Bringing the same lines a second time changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from heedful.data.jsonl import Line
from heedful.io.dry_run import rehearse
from heedful.io.exports import export_lines
from heedful.io.imports import EventLine, Importer, Outcome
from heedful.io.line_schema import KINDS, check_line
from heedful.loop import Loop
from heedful.loop.interactions.forms import FORMS, Form, known_forms

__all__ = ["BATCH", "KINDS", "Outcome", "check_form", "check_line", "export_lines", "import_lines", "rehearse"]

BATCH = 1000
"""Lines that are taken together: one commit for the decisions among them, one for the feedback."""


def import_lines(loop: Loop, lines: Iterable[Line], *, batch: int = BATCH) -> Iterator[Outcome]:
    """Bring lines into a loop; what became of each, a batch at a time, in no order within it.

    One that is no event, or does not fit the loop, is `rejected` with the reason, and the others go on. Lines of one
    kind are taken in their order. Within a batch those that only add come first, which changes nothing of the model:
    feedback is about a decision as it was, and what was undone is not in the model wherever that stands.
    """
    importer, forms = Importer(loop), known_forms(loop.projection.interaction)
    for line in lines:
        told = check_form(line, forms)
        if isinstance(told, Outcome):
            yield told
            continue
        if importer.waits_for(*told) or importer.size >= batch:
            yield from importer.flush()
        importer.add(EventLine(line.number, *told, line.record or {}))
    yield from importer.flush()


def check_form(line: Line, forms: Mapping[str, Form] = FORMS) -> tuple[str, str] | Outcome:
    """Return (kind, id) of a line, or the outcome that rejects it for its form; `forms` are the known forms of
    feedback."""
    if line.record is None:
        wrong = (line.error or "").split(": ", 1)[-1]  # after NAME:LINE
        return Outcome(line.number, "line", "", "rejected", wrong)
    try:
        return check_line(line.record, forms)
    except ValueError as error:
        kind, id = line.record.get("kind"), line.record.get("id", "")
        known = kind if isinstance(kind, str) and kind in KINDS else "line"
        return Outcome(line.number, known, str(id), "rejected", str(error))
