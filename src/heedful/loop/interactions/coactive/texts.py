"""What a loop of rankings says of an explanation, a replay and a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.loop.interactions.telling import Line, Part, features_table, lessons_table, signed, there

if TYPE_CHECKING:
    from heedful.loop.explain import Explanation

UNKNOWN = "it takes answers to orders that no learner chose: of the control, imported ones, or swapped neighbours"
"""Why agreement is."""


def explanation(told: Explanation) -> list[Part]:
    """Which features put the first before the second, and which feedback moved it."""
    other = "an item of average features" if told.second is None else told.second
    return scored(told, f"{told.first} before {other}, by {signed(told.margin)}", "it", "tells the two apart")


def scored(told: Explanation, head: str, what: str, moved: str) -> list[Part]:
    """What a score is made of, below a first line; the model had no part in `what`, or nothing that was learned
    `moved`."""
    parts: list[Part] = [Line(head)]
    if told.arm != "learned":
        why = "your order, for comparison" if told.arm == "control" else "somebody else's order"
        parts.append(Line(f"This decision showed {why}: the model had no part in {what}."))
    parts += [features_table(told), lessons_table(told)]
    parts += [] if told.lessons else [Line(f"Nothing was learned before it that {moved}.")]
    return there(parts)
