"""The figures of [A18] as data: their plots and the paper's claims about them.

[A18]: Dadkhahi & Negahban, *Alternating Linear Bandits for Online Matrix-Factorization Recommendation*, 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heedful.papers import claims
from heedful.papers.alternating2018.tuning import (
    ALB,
    GRIDS,
    NMF,
    PTS,
    PUBLISHED,
    SPECS,
    TUNED,
    tuned_spec,
)
from heedful.papers.comparisons import (
    NDCG,
    ahead,
    below_all,
    best_cell,
    higher,
    little_gained,
    lowest_cell,
    parameters,
    quicker,
    smaller_gaps,
    steadier_over,
)
from heedful.papers.figure import CUMULATIVE, Check, Claim, Figure, Kind, Line, Measure, Option, Panel, Size
from heedful.papers.panels import BERNOULLI, BOOKS, GAUSSIAN, JESTER, MOVIES_100K, UNIFORM

PAPER = "Dadkhahi & Negahban, Alternating Linear Bandits for Online Matrix-Factorization Recommendation, 2018"
MADE = (GAUSSIAN, UNIFORM, BERNOULLI)
REAL = (BOOKS, MOVIES_100K, JESTER)
NAMES = {
    GAUSSIAN: "Gaussian",
    UNIFORM: "Uniform",
    BERNOULLI: "Bernoulli",
    BOOKS: "Book-Crossing",
    MOVIES_100K: "MovieLens",
    JESTER: "Jester",
}
FULL, QUICK = Size(25_000, 5), Size(2_500, 3)
GRID_FULL, GRID_QUICK = Size(25_000, 2), Size(1_000, 1)

THEIRS = "ALB, lambda and sigma of the paper"
ROWS = tuple(
    Line(f"{name} (ours)", (spec,), "")
    for name, spec in (
        ("BMF", "bmf"),
        ("pair mean, else item mean", "pair-mean"),
        ("item mean", "item-mean"),
        ("user greedy", "user-greedy"),
        ("random", "random-item"),
    )
)
"""lines of every figure but the grids: the learners with their default hyperparameters, to compare with"""

END = Measure("cumulative regret at the end", CUMULATIVE.of)
SECONDS = Measure("seconds a run", lambda regrets, M: regrets)

DATA = (
    "Jester has 100 jokes here, 150 in the paper; Book-Crossing is of a subset, 1,830 people and 1,991 books with "
    "9,320 ratings."
)
CHOSEN = (
    "Hyperparameters: the best cell of a grid on other seeds (alternating2018/grid); BMF and the simple rows have "
    "their defaults. Regret is expected regret."
)


def _lines(world: str, options: Sequence[Option] = ()) -> tuple[Line, ...]:
    penalty, sigma = PUBLISHED[world]
    alb, pts, half, nmf = (Line(method, (tuned_spec(world, method, "once" in options),), "") for method in SPECS)
    return alb, Line(THEIRS, (f"alb:penalty={penalty:g},sigma={sigma:g}",), ""), pts, nmf, half, *ROWS


def _panel(world: str, measure: Measure, *options: Option, kind: Kind = "growth") -> Panel:
    return Panel(world, NAMES[world], world, _lines(world, options), FULL, QUICK, measure, kind, options=options)


# ---------------------------------------------------------------------------- claims


def _in_order(panels: Sequence[Panel], better: Callable[[str, str, str], Check]) -> list[Claim]:
    """Return the claims, for each plot in `panels`, that ALB beats PTS and NMF-Bandit, and that PTS beats
    NMF-Bandit."""
    return [
        Claim(f"{panel.title}: {a} outperforms {b}.", (panel.key,), better(panel.key, a, b))
        for panel in panels
        for a, b in ((ALB, PTS), (ALB, NMF), (PTS, NMF))
    ]


# ---------------------------------------------------------------------------- the figures


SYNTHETIC = tuple(_panel(world, CUMULATIVE) for world in MADE)
FILES = tuple(_panel(world, CUMULATIVE) for world in REAL)
FILES_ONCE = tuple(_panel(world, CUMULATIVE, "once") for world in REAL)
RANKED = tuple(_panel(world, NDCG, "scores") for world in REAL)
RANKED_FACTORS = tuple(_panel(world, NDCG, "factors") for world in REAL)
RANKED_ONCE = tuple(_panel(world, NDCG, "scores", "once") for world in REAL)


def _of_ndcg(panels: Sequence[Panel]) -> tuple[Claim, ...]:
    steadily = [
        Claim(
            f"{NAMES[world]}: ALB is steadily ahead by at least 0.03.",
            (world,),
            ahead(world, ALB, (PTS, NMF), 0.03),
        )
        for world in (MOVIES_100K, JESTER)
    ]
    gaps = smaller_gaps(BOOKS, (MOVIES_100K, JESTER), (ALB, PTS, NMF))
    return (*_in_order(panels, higher), *steadily, Claim("The gaps are smaller on Book-Crossing.", REAL, gaps))


def _ranks(method: str, ranks: Sequence[int], kind: Kind, world: str = MOVIES_100K, key: str = "") -> Panel:
    lines = tuple(Line(f"k = {k}", (f"{tuned_spec(world, method)},n_factors={k}",), "") for k in ranks)
    measure = END if kind == "bars" else CUMULATIVE
    return Panel(key or method, f"{method}, {NAMES[world]}", world, (*lines, *ROWS), FULL, QUICK, measure, kind)


K = tuple(f"k = {k}" for k in (3, 5, 7))
FIG4 = tuple(_ranks(method, (3, 5, 7), "growth") for method in (PTS, NMF, ALB))
RANKS = (1, 2, 3, 5, 7, 10)
RANK = tuple(
    _ranks(method, RANKS, "bars", world, f"{method}, {NAMES[world]}")
    for world in (MOVIES_100K, GAUSSIAN)
    for method in (ALB, PTS, NMF)
)


def _grid(world: str, once: bool, method: str) -> Panel:
    title = f"{method}, {NAMES[world]}{', each item once' if once else ''}"
    lines = tuple(Line(parameters(spec), (spec,), "") for spec in GRIDS[method])
    return Panel(title, title, world, lines, GRID_FULL, GRID_QUICK, END, "cells", options=("once",) if once else ())


GRID = tuple(_grid(world, once, method) for world, once in TUNED for method in SPECS)
TIMED = tuple(
    _panel(world, SECONDS, "seconds", kind="bars")._replace(
        lines=tuple(line for line in _lines(world) if line.label != THEIRS)
    )
    for world in (GAUSSIAN, MOVIES_100K, JESTER)
)

STEPS = (0.1, 0.5, 2.0, 10.0)
EVERY = "in every round"


def _switching(world: str, *options: Option) -> Panel:
    base = tuned_spec(world, ALB)
    lines = (Line(EVERY, (base,), ""), *(Line(f"C = {C:g}", (f"{base},switching={C:g}",), "") for C in STEPS))
    key = ", ".join((NAMES[world], *options))
    panel = Panel(key, key, world, (*lines, *ROWS), FULL, QUICK, CUMULATIVE, "growth", options=options)
    return panel._replace(measure=SECONDS, kind="bars") if "seconds" in options else panel


SWITCHED = (
    *(_switching(world) for world in (GAUSSIAN, MOVIES_100K, JESTER)),
    *(_switching(world, "seconds") for world in (GAUSSIAN, MOVIES_100K, JESTER)),
)

FIGURES = (
    Figure(
        "alternating2018/fig1",
        PAPER,
        "Cumulative regret on three synthetic data sets",
        SYNTHETIC,
        tuple(_in_order(SYNTHETIC, claims.lower)),
        CHOSEN,
    ),
    Figure(
        "alternating2018/fig2",
        PAPER,
        "Cumulative regret on Book-Crossing, MovieLens and Jester",
        FILES,
        tuple(_in_order(FILES, claims.lower)),
        f"{DATA} An item may be shown again. {CHOSEN}",
    ),
    Figure(
        "alternating2018/fig2-once",
        PAPER,
        "The same, each item at most once for each person",
        FILES_ONCE,
        tuple(_in_order(FILES_ONCE, claims.lower)),
        f"{DATA} The paper shows items again; here not. {CHOSEN}",
    ),
    Figure(
        "alternating2018/fig3",
        PAPER,
        "Average cumulative NDCG@5, ranked by the scores that decide",
        RANKED,
        _of_ndcg(RANKED),
        f"{DATA} Of all items that the person rated; in --json the loss 1 - NDCG. {CHOSEN}",
    ),
    Figure(
        "alternating2018/fig3-factors",
        PAPER,
        "The same, ranked by A_i . B_j",
        RANKED_FACTORS,
        _of_ndcg(RANKED_FACTORS),
        f"{DATA} BMF and the simple rows are ranked by their scores, as before. {CHOSEN}",
    ),
    Figure(
        "alternating2018/fig3-once",
        PAPER,
        "Average cumulative NDCG@5 of what is left, each item at most once for each person",
        RANKED_ONCE,
        _of_ndcg(RANKED_ONCE),
        f"{DATA} Ranked by the scores that decide. {CHOSEN}",
    ),
    Figure(
        "alternating2018/fig4",
        PAPER,
        "Cumulative regret on MovieLens by the factorization rank",
        FIG4,
        (
            Claim("PTS improves as k is reduced.", (PTS,), claims.falls_in_order(PTS, K[::-1])),
            Claim("NMF-Bandit improves as k is increased.", (NMF,), claims.falls_in_order(NMF, K)),
            Claim("ALB changes least with k.", (ALB, PTS, NMF), steadier_over((ALB, PTS, NMF), (K, K, K))),
            *(
                Claim(f"ALB outperforms {other}, whichever k is taken.", (ALB, other), below_all((ALB, K), (other, K)))
                for other in (PTS, NMF)
            ),
        ),
        f"Tuned at k = 5. {CHOSEN}",
    ),
    Figure(
        "alternating2018/rank",
        PAPER,
        "Cumulative regret at the end by the rank, from 1 to 10",
        RANK,
        tuple(
            Claim(
                f"{panel.title}: tuning the rank improves little on k = 5 (at most 10 %).",
                (panel.key,),
                little_gained(panel.key, [f"k = {k}" for k in RANKS], "k = 5", 0.1),
            )
            for panel in RANK
        ),
        f"The Gaussian set has rank 5. Tuned at k = 5. {CHOSEN}",
    ),
    Figure(
        "alternating2018/grid",
        PAPER,
        "The grid search over two hyperparameters for each method and data set",
        GRID,
        (
            *(
                Claim(
                    "{}: lambda = {:g}, sigma = {:g} is best.".format(panel.title, *PUBLISHED[panel.world]),
                    (panel.key,),
                    best_cell(panel.key, "alb:penalty={:g},sigma={:g}".format(*PUBLISHED[panel.world])),
                )
                for panel in GRID
                if panel.title.startswith(ALB) and not panel.options
            ),
            *(
                Claim(
                    f"{panel.title}: the other figures have the cell that ends lowest here (ours).",
                    (panel.key,),
                    lowest_cell(panel.key, tuned_spec(panel.world, method, "once" in panel.options), GRID_FULL.runs),
                )
                for panel, method in zip(GRID, list(SPECS) * len(TUNED))
            ),
        ),
        f"{DATA} Two seeds that no other figure uses. The paper tells what ALB was tuned to, not what the others were.",
    ),
    Figure(
        "alternating2018/times",
        PAPER,
        "Footnote 1: the time that a run takes",
        TIMED,
        (
            *(
                Claim(
                    f"{panel.title}: ALB takes about as long as PTS.",
                    (panel.key,),
                    claims.alike(panel.key, ALB, PTS, 0.25),
                )
                for panel in TIMED
            ),
            *(
                Claim(
                    f"{panel.title}: {a} is at least three times as fast as NMF-Bandit.",
                    (panel.key,),
                    quicker(panel.key, a, NMF, 1.0 / 3.0),
                )
                for panel in TIMED
                for a in (ALB, PTS)
            ),
        ),
        "Processor time of one thread, compiled, at the hyperparameters of the other figures, one run after the other.",
    ),
    Figure(
        "alternating2018/switching",
        PAPER,
        "Rarely switching OFUL in ALB: what it costs in regret, and saves in time",
        SWITCHED,
        (
            *(
                Claim(
                    f"{panel.title}: C = 0.5 takes at most half the time.",
                    (panel.key,),
                    quicker(panel.key, "C = 0.5", EVERY, 0.5),
                )
                for panel in SWITCHED
                if panel.options
            ),
            *(
                Claim(
                    f"{panel.title}: C = 0.5 costs at most 10 % more regret (ours).",
                    (panel.key,),
                    claims.within_factor(panel.key, "C = 0.5", EVERY, 1.1),
                )
                for panel in SWITCHED
                if not panel.options
            ),
        ),
        "The paper's future work, from which it expects much less computation. ALB is as tuned for the other figures.",
    ),
)
