"""[P01] Crammer & Singer, *Pranking with Ranking*, NIPS 2001: Figure 4, batch learning, the lemma, the theorem."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from heedful.papers import claims, growth
from heedful.papers.figure import (
    AVERAGE,
    CUMULATIVE,
    Claim,
    Figure,
    Line,
    Measure,
    Option,
    Outcome,
    Panel,
    Size,
    Verdict,
)
from heedful.papers.panels import RATERS_100, RATERS_200, SEPARABLE, STREAMS, SYNTHETIC
from heedful.papers.run_ordinal import STEPS
from heedful.papers.statistics import fact, percentage

PAPER = "Crammer & Singer, Pranking with Ranking, NIPS 2001"
STANDS_IN = (
    "MovieLens 1M stands in for EachMovie, which was withdrawn. Features: the ratings of all the other people of the "
    "panel, (rating - 3) / 4, 0 where there is none."
)
SCALED = (
    "PRank's thresholds move by 1, so its result depends on the length of x. Here every instance has length 1, as they "
    "are and with an intercept, a feature that is 1, for those without thresholds."
)
RULE = "Widrow-Hoff's eta is 1 / R^2 by rule, R the length of the longest instance; next to it the best of five."

LOSS = Measure("average rank loss of rounds 1 to t", AVERAGE.of)
TOTAL = Measure("cumulative rank loss", CUMULATIVE.of)
GAP = Measure("least gap between neighbouring thresholds", lambda regrets, M: regrets)
# What batch learners hold is rank loss and accuracy, a column each.
TEST_LOSS = Measure("rank loss on what was not learned from", lambda held, M: held[:, :1])
TEST_ACCURACY = Measure("share of grades predicted right", lambda held, M: held[:, 1:2])

PRANK, MCP, WH, BEST = "PRank", "multiclass perceptron", "Widrow-Hoff", "Widrow-Hoff, best eta in hindsight"
ONCE, TEN_TIMES, SVM, SVR = "PRank, one pass", "PRank, ten passes", "multiclass SVM", "SVR"
WHERE = {SYNTHETIC: "Synthetic", RATERS_100: "100 ratings", RATERS_200: "200 ratings"}

LINES = (
    Line(PRANK, ("prank",), ""),
    Line(MCP, ("multiclass",), ""),
    Line(WH, ("widrow-hoff:eta={eta:.3g}",), ""),
    Line(BEST, tuple(f"widrow-hoff:eta={{etas[{i}]:.3g}}" for i in range(len(STEPS))), ""),
    Line("ordinal logistic (ours)", ("ordinal-logistic",), ""),
    Line("constant (ours)", ("constant-rank",), ""),
)
BATCH_LINES = (
    Line(ONCE, ("prank",), ""),
    Line(TEN_TIMES, ("prank passes=10",), ""),
    Line("ordinal logistic, one pass (ours)", ("ordinal-logistic",), ""),
    Line(SVM, ("svm",), ""),
    Line(SVR, ("svr",), ""),
    Line("constant (ours)", ("constant-rank",), ""),
)
MARGINS = {"margin 0.01": "0.01", "margin 0.03": "0.03", "margin 0.08": "0.08"}


def _online(world: str, *options: Option) -> Panel:
    if world == SYNTHETIC:
        return Panel(world, "synthetic stream", world, LINES, Size(7_000, 100), Size(7_000, 20), LOSS)
    T = 100 if world == RATERS_100 else 200
    key = ", ".join((world, *options))
    title = f"people with at least {T} ratings" + (f" ({', '.join(options)})" if options else "")
    return Panel(key, title, world, LINES, Size(T, 500), Size(T, 60), LOSS, options=options)


def _batch(world: str, measure: Measure) -> Panel:
    T = 100 if world == RATERS_100 else 200
    key = f"{world}-accuracy" if measure is TEST_ACCURACY else world
    return Panel(key, f"at least {T} ratings", world, BATCH_LINES, Size(T, 500), Size(T, 20), measure, "bars")


def _outperforms(panels: Sequence[Panel]) -> tuple[Claim, ...]:
    rivals = {
        MCP: "the multiclass perceptron",
        WH: "Widrow-Hoff",
        BEST: "Widrow-Hoff, also with the step that was best in hindsight",
    }
    return tuple(
        Claim(f"{_where(panel)}: PRank outperforms {words}.", (panel.key,), claims.lower(panel.key, PRANK, rival))
        for panel in panels
        for rival, words in rivals.items()
    )


def _where(panel: Panel) -> str:
    return ", ".join((WHERE[panel.world], *panel.options))


def thresholds_in_order(panel: str, labels: Sequence[str]) -> Callable[[Outcome], Verdict]:
    """Check that, in the plot `panel`, the thresholds of the curves `labels` are in order after every round; the values
    of these curves are the least gap between neighbouring thresholds."""

    def check(outcome: Outcome) -> Verdict:
        words, holds = [], True
        for label in labels:
            gaps = outcome[panel][label].regrets
            holds = holds and bool(gaps.min() >= 0.0)
            equal = float(np.mean(gaps == 0.0))
            words.append(
                f"{label}: least gap {gaps.min():g} over {gaps.size:,} rounds, two equal after {percentage(equal)}"
            )
        return Verdict(fact(holds), "; ".join(words))

    return check


LEMMA_LINES = (
    Line("synthetic stream", ("prank",), SYNTHETIC),
    Line("at least 100 ratings", ("prank",), RATERS_100),
    Line("at least 200 ratings", ("prank",), RATERS_200),
)

ONLINE = tuple(_online(world) for world in (SYNTHETIC, RATERS_100, RATERS_200))
ONLINE_UNIT = (
    *(_online(world, "unit") for world in (RATERS_100, RATERS_200)),
    *(_online(world, "unit", "intercept") for world in (RATERS_100, RATERS_200)),
)

FIGURES = (
    Figure(
        "pranking2001/fig4",
        PAPER,
        "Time-averaged rank loss: PRank, a multiclass perceptron, Widrow-Hoff",
        ONLINE,
        _outperforms(ONLINE),
        f"{STANDS_IN} {RULE}",
    ),
    Figure(
        "pranking2001/fig4-unit",
        PAPER,
        "The same with instances of length 1",
        ONLINE_UNIT,
        _outperforms(ONLINE_UNIT),
        f"{STANDS_IN} {SCALED} {RULE}",
    ),
    Figure(
        "pranking2001/batch",
        PAPER,
        "Batch learning: PRank against a multiclass SVM and support vector regression",
        tuple(_batch(world, m) for world in (RATERS_100, RATERS_200) for m in (TEST_LOSS, TEST_ACCURACY)),
        tuple(
            Claim(f"{WHERE[world]}: {ours} outperforms {the}.", (world,), claims.lower(world, ours, rival, TEST_LOSS))
            for world in (RATERS_100, RATERS_200)
            for rival, the in ((SVM, "the multiclass SVM"), (SVR, "SVR"))
            for ours in (ONCE, TEN_TIMES)
        ),
        f"{STANDS_IN} Learned from 80 % of a person's 100 or 200 movies; C by cross-validation.",
    ),
    Figure(
        "pranking2001/lemma",
        PAPER,
        "Order preservation: the least gap between neighbouring thresholds",
        (Panel("gaps", "PRank", STREAMS, LEMMA_LINES, Size(7_000, 20), Size(2_000, 5), GAP),),
        (
            Claim(
                "The thresholds stay in order.",
                ("gaps",),
                thresholds_in_order("gaps", tuple(line.label for line in LEMMA_LINES)),
            ),
        ),
        STANDS_IN,
    ),
    Figure(
        "pranking2001/bound",
        PAPER,
        "The mistake bound (k - 1)(R^2 + 1) / gamma^2",
        (
            Panel(
                "separable",
                "streams that a rule separates by a margin, and the synthetic one",
                SEPARABLE,
                (
                    *(Line(label, ("prank",), margin) for label, margin in MARGINS.items()),
                    Line("noisy (synthetic)", ("prank",), "0"),
                ),
                Size(10_000, 20),
                Size(3_000, 5),
                TOTAL,
            ),
        ),
        (
            Claim(
                "Where a rule separates by gamma, the loss is at most (k - 1)(R^2 + 1) / gamma^2.",
                ("separable",),
                growth.within_bound("separable", tuple(MARGINS), TOTAL),
            ),
        ),
        "No bound is drawn for the noisy stream: no rule ranks all of it right.",
    ),
)
