"""The summary of an import: how many lines, or rows of a UBI log, were applied or not, and each reason once."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from heedful.cli.console import console, new_table
from heedful.core.wording import count

if TYPE_CHECKING:
    from heedful.data.row_report import Report
    from heedful.io import Outcome

_NOUNS = {
    "pairs": ("pair", "pairs"),
    "features": ("feature with a weight", "features with a weight"),
    "decisions": ("decision", "decisions"),
    "feedback": ("piece of feedback", "pieces of feedback"),
    "scores": ("score", "scores"),
}
"""What a `Report` counts that are no rows of a file, in the singular and the plural."""
STATUSES = ("applied", "duplicate", "rejected")


class Tally:
    """Counts for the summary of an import: lines by kind and status, and why lines were rejected.

    Each reason comes with the first line that has it."""

    def __init__(self) -> None:
        self.lines = 0
        self.counts = defaultdict[str, Counter[str]](Counter)
        self._reasons: dict[tuple[str, str, str], dict[str, Any]] = {}

    def add(self, outcome: Outcome, first: str) -> None:
        """Count `outcome`, what became of one line of an import.

        `first` says where the line is, as "FILE:LINE" or by the event's kind and id; it is kept for the first line of
        each reason."""
        self.lines += 1
        self.counts[outcome.kind][outcome.status] += 1
        if outcome.reason is not None:
            # Reasons that differ in what they name only are one.
            alike = re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "", _without(outcome.reason, outcome.id))
            alike = re.sub(r"\([ ,and more]*\)", "", alike)  # however many names are listed
            about = (outcome.kind, outcome.status, re.sub(r"\b(decision|feedback|item|event) \S+", r"\1", alike))
            reason = {
                "kind": outcome.kind,
                "status": outcome.status,
                "reason": outcome.reason,
                "count": 0,
                "first": first,
            }
            stored = self._reasons.setdefault(about, reason | {"line": outcome.line})
            stored["count"] += 1
            if outcome.line < stored["line"] and stored["first"].rpartition(":")[0] == first.rpartition(":")[0]:
                stored |= {"line": outcome.line, "first": first, "reason": outcome.reason}  # they come in batches

    @property
    def rejected(self) -> int:
        """the number of lines that were rejected"""
        return sum(count["rejected"] for count in self.counts.values())

    @property
    def reasons(self) -> list[dict[str, Any]]:
        """the reasons with kind and status of the lines, their `count`, and the `first` of them

        Reasons that differ only in names and numbers count as one.
        """
        return [{name: reason[name] for name in reason if name != "line"} for reason in self._reasons.values()]

    def as_json(self) -> dict[str, object]:
        """Return the counts and reasons as values for JSON."""
        counts = {kind: {status: count[status] for status in STATUSES} for kind, count in self.counts.items()}
        return {"lines": self.lines, "counts": counts, "reasons": self.reasons}


def _without(reason: str, id: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(id)}(?!\w)", "", reason) if id else reason


def show_counts(tally: Tally, title: str) -> None:
    """Print the counts of `tally` as a table with this title, and its reasons as a second one if there are any."""
    from rich.markup import escape

    table = new_table(title, ("kind", *STATUSES), right=STATUSES)
    for kind, statuses in tally.counts.items():
        table.add_row(kind, *(f"{statuses[status]:,}" for status in STATUSES))
    screen = console()
    screen.print(table)
    if tally.reasons:
        why = new_table("Why", ("lines", "first", "kind", "reason"), right=("lines",))
        for reason in tally.reasons:
            why.add_row(f"{reason['count']:,}", escape(reason["first"]), reason["kind"], escape(reason["reason"]))
        screen.print(why)


def show_report(report: Report, duplicates: int = 0) -> None:
    """Print the `report` on rows in a format of others: how many were used, and why the others were dropped.

    `duplicates` is the number of used rows that the loop has already, of a report on rows of one kind."""
    from rich.markup import escape

    screen = console()
    for what, rows in report.rows.items():
        of = count(rows, *_NOUNS.get(what, (f"row of {what}", f"rows of {what}")))
        split = f": {report.used[what] - duplicates:,} new, {duplicates:,} in the loop already" if duplicates else ""
        screen.print(f"{of}, {report.used[what]:,} used{split}")
    if report.dropped:
        table = new_table("What was not used", ("how many", "reason", "such as"), right=("how many",))
        for reason, n in report.dropped.most_common():
            table.add_row(f"{n:,}", escape(reason), escape(report.examples[reason]))
        screen.print(table)
    for what, n in report.left_out.items():
        screen.print(f"{n:,} left out of what was used: {what}")
