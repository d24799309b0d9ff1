"""The figures of the papers as data: what is run, what is drawn, and what the paper claims.

A `Figure` has panels (plots) and claims. A panel has lines (curves); a line is a learner (or several, of which the best
in hindsight is drawn) with the simulated person who teaches it. A claim is a statement of the paper with a function
that checks it against the results. The modules `run_...` run figures.

[H12]: Houlsby, Huszár, Ghahramani & Hernández-Lobato, *Collaborative Gaussian Processes for Preference Learning*, NIPS
2012; [J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015; [P01]: Crammer & Singer, *Pranking with
Ranking*, NIPS 2001.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.notebooks import table
from heedful.experiments.run import average_regret

Array = npt.NDArray[np.float64]


class Size(NamedTuple):
    """The size of the experiment behind a plot.

    A run on web search is a permutation of the queries, a run on movies a person; their scatter gives the standard
    error. Run i of every curve of a plot meets the same queries or people, so that differences are paired.
    """

    rounds: int
    """the number of rounds of each run; in the figures of [H12] the greatest number of people"""
    runs: int
    """the number of runs of each curve; 0: one for each person. In the figures of [H12] a run is a random split of the
    answers"""


class Line(NamedTuple):
    """A curve of a plot: a learner, or the best of several in hindsight, with the simulated person who teaches it.

    Placeholders in a learner's name stand for numbers of the data set: `{rounds}` for the number of rounds by which
    claims are judged, `{norm}` for |w*|, the norm of the true weights, `{gamma}` for 1 / (3 R |w*|), the gamma of
    Theorem 8 of [J15] at alpha = 1 with the bound R of the features, `{eta}` and `{etas[i]}` for the step sizes of
    Widrow-Hoff.
    """

    label: str
    """the name of the curve in the plot"""
    learners: tuple[str, ...]
    """learners, by the names that `heedful simulate` takes; of several, the best in hindsight is drawn: the one with
    the lowest average regret"""
    user: str
    """the simulated person who teaches them, as `heedful simulate` names it; where nobody is simulated, a margin or a
    stream ([P01]), or one of three quantities drawn by length-scale ([H12])"""


class Measure(NamedTuple):
    """A quantity that a plot draws, computed from regrets."""

    axis: str
    """the label of the vertical axis"""
    of: Callable[[Array, Array], Array]
    """computes the values (runs x T) from regrets (runs x T), for T rounds, and M = R |w*| of each run (runs,), with
    the bound R of the features and the true weights w*"""


Kind = Literal[
    "curves",  # the measure by round, on a logarithmic axis; below them, theoretical bounds
    "growth",  # the measure by round, on a linear axis
    "sweep",  # the average regret after the rounds `at`, by the `values` of a hyperparameter; the last line is dotted
    "horizons",  # the average regret of a whole run, by the number of its rounds
    "distribution",  # the distribution function of the values of each line
    "bars",  # the mean and standard error of the final values of each line
    "cells",  # the final values by two hyperparameters: a line for each cell of the grid
    "questions",  # the test error by the number of questions asked
    "scales",  # evidence, likelihood and error by length-scale
    "toy",  # a function of one variable, with its labels and two acquisition functions
]
"""what a panel draws, and how; the comments at the values explain them"""

Option = Literal[
    "unit",  # graded instances: each is divided by its length
    "intercept",  # graded instances: each has another feature, which is 1
    "once",  # rated items: each is shown at most once to a person
    "scores",  # rated items: regret is 1 - NDCG of the ranking by the scores that the learner decides by
    "factors",  # rated items: regret is 1 - NDCG of the ranking by predicted ratings
    "seconds",  # a line holds the processor time of each run in place of its regret or error
    "published",  # comparisons: the labels are those that were published, not the right ones
]
"""what differs from the usual run of a panel's data set; the comments at the values explain them"""


class Panel(NamedTuple):
    """A plot of a figure: its curves, the data or environment that they are run on, and what is drawn of them."""

    key: str
    """the name of the plot within its figure, by which claims refer to it"""
    title: str
    """the title above the plot"""
    world: str
    """the data set or simulated environment, one of `panels.WORLDS`"""
    lines: tuple[Line, ...]
    """the curves"""
    full: Size
    """the size of its runs"""
    quick: Size
    """the size of its runs with the option --quick"""
    measure: Measure
    """the quantity that is drawn"""
    kind: Kind = "curves"
    """how it is drawn"""
    values: tuple[float, ...] = ()
    """in a plot by hyperparameter, its value for each line but the last"""
    at_rounds: tuple[int, ...] = ()
    """in a plot by hyperparameter, the rounds after which regret is drawn (0: the last round)"""
    slack: bool = False
    """where feedback is not alpha-informative: whether the bound of Theorem 1 of [J15] is drawn, with the measured
    slack"""
    options: tuple[Option, ...] = ()
    """what differs from the usual run on this data set"""


NOTHING: Array = np.empty(0)


class LineResult(NamedTuple):
    """The results of a curve: the regrets of its runs, with the theoretical bound if there is one.

    In a plot of distributions a run is a query chain, `regrets` has a column for each ranking shown, and M is 1 where
    the feedback was the ranking shown, else 0.
    """

    line: Line
    """the curve"""
    learner: str
    """the learner that is drawn, of those of the curve"""
    regrets: Array
    """(runs x T) the regret of each of T rounds, or another measured value"""
    M: Array
    """(runs,) R |w*| of each run, with the bound R of the features and the true weights w*"""
    seconds: Array = NOTHING
    """(runs,) the processor time of each run; empty if not measured"""
    marks: Array = NOTHING
    """(n,) the rounds at which there is a theoretical bound"""
    bound: Array = NOTHING
    """(n,) the bound at these rounds; empty if the theorem's hypotheses fail"""
    theorem: str = ""
    """the theorem that gives the bound; "" for none"""
    lacking: str = ""
    """which hypotheses of the theorem fail, in words"""
    once: int = 0
    """the round after which contexts repeat, 0 if they do not; claims use the rounds up to it"""


Outcome = Mapping[str, Mapping[str, LineResult]]  # by panel, by line


class PairedTest(NamedTuple):
    """The result of a t-test of a difference of means."""

    difference: float
    """the mean difference"""
    stderr: float
    """its standard error"""
    t: float
    """the t statistic"""
    p: float
    """the two-sided p-value"""
    pairs: int
    """the number of pairs of runs"""
    freedom: float
    """the degrees of freedom"""


Conclusion = Literal["holds", "does not hold", "cannot be told", "not run"]
HOLDS: Conclusion = "holds"
FAILS: Conclusion = "does not hold"
OPEN: Conclusion = "cannot be told"
NOT_RUN: Conclusion = "not run"


class Verdict(NamedTuple):
    """The verdict on a claim: whether it holds, what was found, and by which test."""

    conclusion: Conclusion
    """whether the claim holds; "cannot be told" if there are too few runs, or too much scatter"""
    words: str
    """what was found, in words"""
    paired: PairedTest | None = None
    """the statistical test, if there is one"""


Check = Callable[[Outcome], Verdict]
"""A function that checks a claim: from the results of a figure to the verdict. Functions that make one take plots by
their key, and curves by their label."""


class Claim(NamedTuple):
    """A statement of a paper about a figure, with a function that checks it."""

    says: str
    """the statement, in our words"""
    panels: tuple[str, ...]
    """the keys of the plots that it is about"""
    check: Check
    """a function from the figure's results to a verdict on the claim"""


class Figure(NamedTuple):
    """A figure or table of a paper: its plots, and what the paper claims about them."""

    id: str
    """paper/figure, such as coactive2012/fig2"""
    paper: str
    """the citation of the paper"""
    title: str
    """the title of the figure"""
    panels: tuple[Panel, ...]
    """its plots"""
    claims: tuple[Claim, ...]
    """the paper's claims about them"""
    note: str = ""
    """which data and sizes differ from the paper's"""
    paper_numbers: tuple[tuple[str, str, float], ...] = ()
    """the numbers of the paper's table: (key of the panel, label of the line, number)"""

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
    """Return the cumulative convex regret T CREG_T after each round (runs x T), for the quadratic loss c(theta) =
    (theta - M)^2: the sum of c(-r) - c(0) = r^2 + 2 M r over the regrets r ([J15] section 6.4)."""
    return np.cumsum(regrets**2 + 2.0 * M[:, None] * regrets, axis=-1)


AVERAGE = Measure("average regret of rounds 1 to t", _average)
CUMULATIVE = Measure("cumulative regret", _cumulative)
QUADRATIC = Measure("cumulative regret of the quadratic loss", _quadratic)


def verdicts(figure: Figure, outcome: Outcome) -> list[Verdict]:
    """Return the verdict on each claim of `figure`, in order, from `outcome`, the results of its plots; NOT_RUN for a
    claim about a plot without results.

    Where contexts repeat after some round, claims are judged on the rounds before it, because repeated contexts are
    easy ([J15] 6.1.1).
    """
    judged = {
        key: {label: first(result, result.once) for label, result in lines.items()} for key, lines in outcome.items()
    }
    conclusions = []
    for claim in figure.claims:
        lacks = [panel for panel in claim.panels if panel not in outcome]
        conclusions.append(Verdict(NOT_RUN, f"not run: {', '.join(lacks)}") if lacks else claim.check(judged))
    return conclusions


def first(result: LineResult, rounds: int) -> LineResult:
    """Return the results `result` of a curve, cut to its first `rounds` rounds, with the theoretical bounds there (0:
    all rounds)."""
    if not rounds:
        return result
    short = result.marks <= rounds
    bound = result.bound[short] if result.bound.size else result.bound
    return result._replace(regrets=result.regrets[:, :rounds], marks=result.marks[short], bound=bound)


def judged_rounds(outcome: Outcome) -> str:
    """Return a sentence that says on which rounds the claims about the results `outcome` are judged; empty if on all of
    them.
    """
    for lines in outcome.values():
        for result in lines.values():
            if result.once:
                return (
                    f"Claims about web search are judged on rounds 1 to {result.once:,}, once through the queries: "
                    "from then on the same queries come again."
                )
    return ""


def plain(value: object) -> object:
    """Return `value` (named tuples, arrays, numpy numbers, lists) as JSON values; named tuples become objects, and
    numbers that are not finite None."""
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
