"""Claims about models of choices: cells of a table beside the paper's, and who has the lower error of the same runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from heedful.experiment import standard_error
from heedful.figures.figure import Check, Outcome, Ran, Verdict
from heedful.figures.statistics import SIGNIFICANT, paired, significantly_lower, told

Array = npt.NDArray[np.float64]

NEAR = 0.02
"""How far above the paper's number an error may be to count as reproduced."""


def ends(ran: Ran) -> Array:
    """What every run ends with (runs,)."""
    return ran.regrets[:, -1]


def with_error(values: Array) -> str:
    """A mean with its standard error, where there is one."""
    if values.size < 2:
        return f"{values.mean():.3f}"
    return f"{values.mean():.3f} ± {float(standard_error(values)):.3f}"


def near(panel: str, label: str, paper: float) -> Check:
    """The mean at the end is at most NEAR above the paper's."""

    def check(outcome: Outcome) -> Verdict:
        values = ends(outcome[panel][label])
        above = float(values.mean()) - paper
        words = f"{with_error(values)}, {values.size} splits: {above:+.3f}, wanted at most {NEAR:+.2f}"
        return Verdict(above <= NEAR, words)

    return check


def below(panel: str, ours: Sequence[str], others: Sequence[str]) -> Check:
    """Each of these lines ends significantly lower than each of the others."""

    def check(outcome: Outcome) -> Verdict:
        tests = {(a, b): paired(ends(outcome[panel][a]), ends(outcome[panel][b])) for a in ours for b in others}
        worst = max(tests, key=lambda pair: tests[pair].t if np.isfinite(tests[pair].t) else tests[pair].difference)
        listed = ", ".join(f"{label} {ends(outcome[panel][label]).mean():.3f}" for label in (*ours, *others))
        words = f"{listed}; the least, {worst[0]} and {worst[1]}: {told(tests[worst])}"
        return Verdict(all(map(significantly_lower, tests.values())), words, tests[worst])

    return check


def as_good(panel: str, a: str, b: str) -> Check:
    """Line a does not end significantly higher than line b."""

    def check(outcome: Outcome) -> Verdict:
        u, v = (ends(outcome[panel][label]) for label in (a, b))
        found = paired(u, v)
        higher = found.difference > 0.0 and found.p < SIGNIFICANT
        return Verdict(not higher, f"{a} {u.mean():.3f}, {b} {v.mean():.3f}: {told(found)}", found)

    return check


def one_as_good(panel: str, some: Sequence[str], b: str) -> Check:
    """One of these lines, the lowest, does not end significantly higher than line b."""

    def check(outcome: Outcome) -> Verdict:
        least = min(some, key=lambda label: float(ends(outcome[panel][label]).mean()))
        return as_good(panel, least, b)(outcome)

    return check


def all_faster(panel: str, ours: Sequence[str], others: Sequence[str]) -> Check:
    """Each of these lines takes less time than each of the others."""

    def check(outcome: Outcome) -> Verdict:
        took = {label: float(ends(outcome[panel][label]).mean()) for label in (*ours, *others)}
        slowest, quickest = max(took[label] for label in ours), min(took[label] for label in others)
        return Verdict(slowest < quickest, ", ".join(f"{label} {seconds:.3g} s" for label, seconds in took.items()))

    return check


def wins(panels: Sequence[str], models: Sequence[str], a: str, b: str, most: int = -1, least: int = 0) -> Check:
    """Asking by rule a ends significantly lower than by rule b in at least so many of the panels and models, and the
    other way round in at most so many."""

    def check(outcome: Outcome) -> Verdict:
        lower: list[str] = []
        higher: list[str] = []
        for panel in panels:
            for model in models:
                found = paired(*(ends(outcome[panel][f"{model}-{rule}"]) for rule in (a, b)))
                if found.p < SIGNIFICANT and found.difference:
                    (lower if found.difference < 0.0 else higher).append(f"{model} {panel}")
        words = f"of {len(panels) * len(models)}, {a} is significantly lower in {len(lower)}"
        words += f" ({', '.join(lower)})" if lower else ""
        words += f", {b} in {len(higher)}" + (f" ({', '.join(higher)})" if higher else "")
        return Verdict(len(lower) >= least and (most < 0 or len(higher) <= most), words)

    return check


def throughout(panel: str, a: str, b: str) -> Check:
    """Line a is lower than line b at first and after every question."""

    def check(outcome: Outcome) -> Verdict:
        apart = (outcome[panel][a].regrets - outcome[panel][b].regrets).mean(axis=0)
        words = f"{a} less {b}, from {apart.min():+.3f} to {apart.max():+.3f}"
        return Verdict(bool(apart.max() < 0.0), words)

    return check


def near_the_best(panel: str, guide: str, error: str, others: float = 1.0, room: float = 0.01) -> Check:
    """At the scale with the highest mean of `guide`, the error is at most `room` above that at `others`."""

    def check(outcome: Outcome) -> Verdict:
        ran = outcome[panel][guide]
        best = int(ran.regrets.mean(axis=0).argmax())
        errors = outcome[panel][error].regrets
        at = int(np.abs(ran.marks - others).argmin()) if ran.marks.size else 0
        found = paired(errors[:, best], errors[:, at])
        scale = float(ran.marks[best]) if ran.marks.size else float("nan")
        words = f"highest at {scale:.2g} times, error {errors[:, best].mean():.3f}"
        words += f"; at {others:g}, {errors[:, at].mean():.3f}: {told(found)}"
        return Verdict(found.difference <= room, words, found)

    return check


def asks_apart(panel: str, a: str, b: str, spread: str) -> Check:
    """Where line a is highest, the line of the standard deviation is higher than where line b is highest."""

    def check(outcome: Outcome) -> Verdict:
        lines = outcome[panel]
        grid, sd = lines[spread].marks, lines[spread].regrets[0]
        at = [int(lines[label].regrets[0].argmax()) for label in (a, b)]
        where = [
            f"{label} asks at {grid[i]:.2f}, standard deviation {sd[i]:.2f}" if grid.size else label
            for label, i in zip((a, b), at)
        ]
        return Verdict(bool(sd[at[0]] > sd[at[1]]), "; ".join(where))

    return check
