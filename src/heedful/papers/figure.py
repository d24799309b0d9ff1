"""The figures of the papers as data: what is run, what is drawn, and what the paper claims.

A `Figure` has panels. A panel has lines: a learner (or several, of which the best in hindsight is drawn) and the person
who teaches it. A claim is a sentence of the paper in our words, with a function that checks it. Nothing here runs
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.notebooks import table
from heedful.experiments.run import average_regret

Array = npt.NDArray[np.float64]


class Size(NamedTuple):
    """How much is run: rounds per run, and runs per line.

    Runs on web search are permutations of the queries, runs on movies are people; their scatter gives the standard
    error. Run i of every line of a panel meets the same arrivals, so that differences are paired. For comparisons: at
    most `rounds` people, and `runs` random splits of their answers.
    """

    rounds: int
    runs: int


class Line(NamedTuple):
    """One curve: learners and a person as `heedful simulate` names them.

    `{rounds}` in a learner stands for how many are judged, `{norm}` for |w*| and `{gamma}` for 1 / (3 R |w*|), which
    Theorem 8 wants at alpha = 1.

    Of several learners, the one with the least average regret of what is judged is drawn: the best in hindsight.
    """

    label: str
    learners: tuple[str, ...]
    user: str


class Measure(NamedTuple):
    """What is drawn against t: the label of the axis, and a function of regrets (runs x T) and M (runs,)."""

    axis: str
    of: Callable[[Array, Array], Array]


class Panel(NamedTuple):
    """One plot: in which world (`panels.WORLDS`), its lines, its size in full and with --quick.

    `kind`: "curves" draws the measure against rounds, on a logarithmic scale; "growth" on a linear one; "sweep" the
    average regret after the rounds `at` against `values`, one for each line but the last, which is drawn dotted for
    comparison; "horizons" the average regret after the last round of a run of every length; "distribution" the
    distribution function of what the lines hold; "bars" the mean of it; "cells" what lines end with that are cells of a
    grid of two hyperparameters; "questions" against how many were asked; "scales" against length-scales; "toy" a
    function over a line. `slack`: where feedback is not alpha-informative, Theorem 1 is drawn with the slack
    measured. `features`: how those of graded instances are scaled; where items are rated, "once" for each only once,
    "scores" or "factors" for NDCG by what items are shown by or by what is expected of them, "seconds" for those; where
    comparisons are predicted, whose labels, "right" or "published".
    """

    key: str
    title: str
    world: str
    lines: tuple[Line, ...]
    full: Size
    quick: Size
    measure: Measure
    kind: str = "curves"
    values: tuple[float, ...] = ()
    at: tuple[int, ...] = ()
    slack: bool = False
    features: str = ""


NOTHING: Array = np.empty(0)


class LineResult(NamedTuple):
    """A line that was run: regrets (runs x T), M = R |w*| of each run (runs,), and the learner that was chosen.

    In a distribution, runs are chains, with one column per ranking shown, and M is 1 where the feedback was what was
    shown, else 0. `once`: the round after which contexts repeat, where they do; claims use the rounds before.

    `marks` and `bound`: rounds at which theory bounds what is drawn, and the bounds; `theorem`: its name, or the one
    whose hypotheses fail for the reason in `lacking`. `seconds` (runs,): processor time of each run; empty where not
    measured.
    """

    line: Line
    learner: str
    regrets: Array
    M: Array
    seconds: Array = NOTHING
    marks: Array = NOTHING
    bound: Array = NOTHING
    theorem: str = ""
    lacking: str = ""
    once: int = 0


Outcome = Mapping[str, Mapping[str, LineResult]]  # by panel, by line


class PairedTest(NamedTuple):
    """A paired t-test: mean difference, standard error, t, two-sided p, number of pairs, degrees of freedom."""

    difference: float
    stderr: float
    t: float
    p: float
    pairs: int
    freedom: float


Conclusion = Literal["holds", "does not hold", "cannot be told", "not run"]
HOLDS: Conclusion = "holds"
FAILS: Conclusion = "does not hold"
OPEN: Conclusion = "cannot be told"
NOT_RUN: Conclusion = "not run"


class Verdict(NamedTuple):
    """The conclusion about a claim, what was found, in words, and the test.

    "Cannot be told": too few runs, or too much scatter, to say that the claim holds or does not.
    """

    conclusion: Conclusion
    found: str
    paired: PairedTest | None = None


Check = Callable[[Outcome], Verdict]


class Claim(NamedTuple):
    """A sentence of the paper in our words, the panels it concerns, and the function that checks it."""

    says: str
    panels: tuple[str, ...]
    check: Check


class Figure(NamedTuple):
    """A figure of a paper. `id` is paper/figure; `note` says what replaces what the paper had."""

    id: str
    paper: str
    title: str
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]
    note: str = ""
    beside: tuple[tuple[str, str, float], ...] = ()
    """What the paper's table has for a panel and a line of it."""

    def _repr_html_(self) -> str:
        claims = [(claim.says, ", ".join(claim.panels)) for claim in self.claims]
        title = f"{self.id}: {self.title} ({self.paper})"
        return table(title, ["the paper says", "of panels"], claims, [self.note])


# ---------------------------------------------------------------------------- what is drawn of regrets


def _average(regrets: Array, M: Array) -> Array:
    return average_regret(regrets)


def _cumulative(regrets: Array, M: Array) -> Array:
    return np.cumsum(regrets, axis=-1)


def _quadratic(regrets: Array, M: Array) -> Array:
    """T CREG_T for c(theta) = (theta - M)^2: the sum of c(-r) - c(0) = r^2 + 2 M r. [J15] section 6.4"""
    return np.cumsum(regrets**2 + 2.0 * M[:, None] * regrets, axis=-1)


AVERAGE = Measure("average regret of rounds 1 to t", _average)
CUMULATIVE = Measure("cumulative regret", _cumulative)
QUADRATIC = Measure("cumulative regret of the quadratic loss", _quadratic)


def verdicts(figure: Figure, outcome: Outcome) -> list[Verdict]:
    """Verdict on each claim of a figure; a claim about a panel that was not run is not judged.

    Where contexts repeat, claims see only the rounds before: learning is easy on repeated contexts ([J15] 6.1.1).
    """
    seen = {key: {label: first(ran, ran.once) for label, ran in lines.items()} for key, lines in outcome.items()}
    found = []
    for claim in figure.claims:
        lacks = [panel for panel in claim.panels if panel not in outcome]
        found.append(Verdict(NOT_RUN, f"not run: {', '.join(lacks)}") if lacks else claim.check(seen))
    return found


def first(ran: LineResult, rounds: int) -> LineResult:
    """The first `rounds` of a line (0: all of them)."""
    if not rounds:
        return ran
    short = ran.marks <= rounds
    bound = ran.bound[short] if ran.bound.size else ran.bound
    return ran._replace(regrets=ran.regrets[:, :rounds], marks=ran.marks[short], bound=bound)


def judged_rounds(outcome: Outcome) -> str:
    """On which rounds claims are judged, in words; empty where on all."""
    for lines in outcome.values():
        for ran in lines.values():
            if ran.once:
                return (
                    f"Claims about web search are judged on rounds 1 to {ran.once:,}, once through the queries: from "
                    "then on the same queries come again."
                )
    return ""


def plain(value: Any) -> Any:
    """Named tuples, arrays and numpy numbers as JSON values; non-finite numbers become null."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value
