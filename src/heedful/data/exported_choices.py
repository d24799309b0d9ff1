"""Reader of the choices in what a loop exported, its events as JSON lines.

Whose answers they are and what was shown stands in the lines of decisions, the answer in that of the feedback; what was
undone or rolled back does not count. docs/commands.md has the fields of all lines.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from heedful.core.retractions import find_retractions
from heedful.core.validation import describe
from heedful.core.wording import count
from heedful.data.comparisons import Comparison, ComparisonTable, comparison_of, tabulate
from heedful.data.files import cut_list
from heedful.data.jsonl import read_lines

KINDS = ("item", "withdraw", "decision", "activate", "feedback", "undo", "rollback", "experiment", "promote", "style")
"""The kinds of lines with which an export may begin."""


class ExportedChoices(NamedTuple):
    """The comparisons in an export, and in words what else it has."""

    choices: ComparisonTable
    summary: str


def exported_choices(path: Path) -> ExportedChoices | None:
    """Return the comparisons in a file that a loop exported; None if it is another file.

    `choice` and `better` compare what was shown, and so does one click in a loop that takes choices. Raise ValueError,
    with the line, if the file is damaged, and if it has no comparison."""
    first = next(iter(read_lines(path)), None)
    if first is None or first.record is None or first.record.get("kind") not in KINDS:
        return None
    if not {"id", "decision", "event"} & first.record.keys():
        return None
    offered, answers, others = dict[str, None](), dict[int, Comparison[str]](), Counter[str]()
    clicked = dict[int, Comparison[str]]()
    shown, seqs = dict[str, tuple[str, tuple[str, ...]]](), dict[tuple[str, str], int]()
    undos, rollbacks, chosen = list[tuple[int, int]](), list[tuple[int, int]](), False
    for line in read_lines(path):
        if line.record is None:
            raise ValueError(line.error)
        record, seq, where = line.record, line.number, f"{path.name}:{line.number}"
        kind, id = str(record.get("kind")), str(record.get("id"))
        seqs[kind, id] = seq
        try:
            if kind == "item":
                offered[id] = None
            elif kind == "withdraw":
                offered.pop(id, None)
            elif kind == "decision":
                person = record.get("person")
                shown[id] = "" if person is None else str(person), tuple(map(str, record["shown"]))
            elif kind == "undo":
                undos.append((seq, seqs.get(("feedback", str(record["event"])), 0)))
            elif kind == "rollback":
                to = record.get("to")
                rollbacks.append((seq, 0 if to is None else seqs[to["kind"], str(to["id"])]))
            elif kind == "feedback":
                chosen = chosen or "choice" in record
                for form, comparison in _compared(record, *shown[str(record["decision"])]):
                    (clicked if form == "clicks" else answers)[seq] = comparison
                if seq not in answers and seq not in clicked:
                    others[next((name for name in record if name not in _NOT_FORMS), "nothing")] += 1
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ValueError):
                raise ValueError(f"{where}: {error}") from None
            forms = describe(error.args[0]) if isinstance(error, KeyError) else "another"
            raise ValueError(f"{where}: {kind}: expected a line that a loop exported, got {forms}") from None
    if chosen:
        answers |= clicked
    elif clicked:
        others["clicks"] += len(clicked)
    retracted = find_retractions(undos, rollbacks)
    counts = {seq: comparison for seq, comparison in answers.items() if seq not in retracted}
    if not any(comparison.judged for comparison in counts.values()):
        forms = cut_list(sorted(others)) or "none"
        raise ValueError(f"{path.name}: choice: expected an export with answers about two items, got {forms}")
    notes = (
        [f"{count(len(answers) - len(counts), 'answer')} undone or rolled back"] if len(counts) < len(answers) else []
    )
    notes += [f"{count(n, 'answer')} left out: {form} compares nothing" for form, n in sorted(others.items())]
    return ExportedChoices(tabulate(counts.values(), offered), "; ".join(["the events of a loop", *notes]))


_NOT_FORMS = ("kind", "id", "decision", "time")


def _compared(record: dict[str, Any], person: str, shown: tuple[str, ...]) -> Iterator[tuple[str, Comparison[str]]]:
    """Yield (form, comparison) of a piece of feedback on what a `person` was `shown`, if it compares anything."""
    clicks: list[Any] = record.get("clicks") or []
    if "choice" in record:
        yield "choice", comparison_of(person, shown, str(record["choice"]))
    elif isinstance(order := record.get("better"), list | str):
        order = [order] if isinstance(order, str) else list(map(str, order))
        rest = tuple([name for name in shown if name not in order])
        tiers = tuple([(name,) for name in order]) + ((rest,) if rest else ())
        if len(tiers) > 1:
            yield "better", Comparison(person, tiers, 1, shown[0] if len(shown) == 2 else None)
    elif len(clicks) == 1 and clicks[0] in shown and len(shown) > 1:
        yield "clicks", comparison_of(person, shown, str(clicks[0]))
