"""What became of many lines, and of the rows of a UBI log: counted, with every reason once."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from heedful.cli.console import console, new_table

if TYPE_CHECKING:
    from heedful.data.ubi import Report
    from heedful.io import Outcome

STATUSES = ("applied", "duplicate", "rejected")


class Tally:
    """The counts of an import: lines by kind and status, and every reason with the first line that gave it."""

    def __init__(self) -> None:
        self.lines = 0
        self.counts: dict[str, Counter[str]] = {}
        self._reasons: dict[tuple[str, str, str], dict[str, Any]] = {}

    def add(self, outcome: Outcome, first: str) -> None:
        """Count one; `first` says where it is."""
        self.lines += 1
        self.counts.setdefault(outcome.kind, Counter())[outcome.status] += 1
        if outcome.reason is not None:
            # Reasons that differ in what they name only are one.
            alike = re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "", _without(outcome.reason, outcome.id))
            about = (outcome.kind, outcome.status, re.sub(r"\b(decision|feedback|item|event) \S+", r"\1", alike))
            told = {
                "kind": outcome.kind,
                "status": outcome.status,
                "reason": outcome.reason,
                "count": 0,
                "first": first,
            }
            known = self._reasons.setdefault(about, told | {"line": outcome.line})
            known["count"] += 1
            if outcome.line < known["line"] and known["first"].rpartition(":")[0] == first.rpartition(":")[0]:
                known |= {"line": outcome.line, "first": first, "reason": outcome.reason}  # they come in batches

    @property
    def rejected(self) -> int:
        return sum(count["rejected"] for count in self.counts.values())

    @property
    def reasons(self) -> list[dict[str, Any]]:
        return [{name: told[name] for name in told if name != "line"} for told in self._reasons.values()]

    def as_json(self) -> dict[str, object]:
        counts = {kind: {status: count[status] for status in STATUSES} for kind, count in self.counts.items()}
        return {"lines": self.lines, "counts": counts, "reasons": self.reasons}


def _without(reason: str, id: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(id)}(?!\w)", "", reason) if id else reason


def show_counts(tally: Tally, title: str) -> None:
    from rich.markup import escape

    table = new_table(title)
    for column in ("kind", *STATUSES):
        table.add_column(column, justify="left" if column == "kind" else "right")
    for kind, count in tally.counts.items():
        table.add_row(kind, *(f"{count[status]:,}" for status in STATUSES))
    screen = console()
    screen.print(table)
    if tally.reasons:
        why = new_table("Why")
        for column in ("lines", "first", "kind", "reason"):
            why.add_column(column, justify="right" if column == "lines" else "left", overflow="fold")
        for told in tally.reasons:
            why.add_row(f"{told['count']:,}", escape(told["first"]), told["kind"], escape(told["reason"]))
        screen.print(why)


def report_json(report: Report) -> dict[str, object]:
    return {
        "rows": dict(report.rows),
        "used": dict(report.used),
        "dropped": dict(report.dropped),
        "examples": dict(report.examples),
        "left_out": dict(report.left_out),
    }


def show_report(report: Report) -> None:
    from rich.markup import escape

    screen = console()
    for what, rows in report.rows.items():
        screen.print(f"{rows:,} rows of {what}, {report.used[what]:,} used")
    if report.dropped:
        table = new_table("Rows that were dropped")
        for column in ("rows", "reason", "such as"):
            table.add_column(column, justify="right" if column == "rows" else "left", overflow="fold")
        for reason, count in report.dropped.most_common():
            table.add_row(f"{count:,}", escape(reason), escape(report.examples[reason]))
        screen.print(table)
    for what, count in report.left_out.items():
        screen.print(f"{count:,} left out of rows that were used: {what}")
