"""[J15] section 6.4, convex losses: Figures 13 to 18.

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

from heedful.papers import claims, growth, sweeps
from heedful.papers.figure import AVERAGE, CUMULATIVE, QUADRATIC, Claim, Measure, Panel, Size
from heedful.papers.jair2015.parts import BOTH, CONVEX, SECOND, WHERE, figure
from heedful.papers.panels import BETTER, MOVIES, NOISY, STRICT, WEB, WEB_FULL, WEB_QUICK, curve, movies, web

GAMMAS = tuple(10.0**power for power in range(-4, 5))

COVERED = web(
    curve("second-order", "second-order:gamma={gamma!r},radius={norm!r}", "strict:alpha=1"),
    curve("convex", "convex:radius={norm!r}", "strict:alpha=1"),
    key="covered",
    title="as Theorem 8 wants it",
    measure=QUADRATIC,
)


def side_by_side(world: str, user: str, measures: tuple[Measure, ...], slack: bool = False) -> tuple[Panel, ...]:
    """Return plots that compare the convex and the second-order perceptron on the data set with the key `world`, taught
    by the simulated person `user`: one for each of `measures`.

    With `slack`, theoretical bounds include the slack that was measured in feedback that is not alpha-informative.
    """
    make = web if world == WEB else movies
    lines = (CONVEX._replace(user=user), SECOND._replace(user=user))
    keys = {QUADRATIC: "quadratic", CUMULATIVE: "linear"}
    return tuple(make(*lines, key=keys.get(m, world), title=m.axis, measure=m)._replace(slack=slack) for m in measures)


def logarithmic(where: str) -> tuple[Claim, ...]:
    """Return the paper's claims about the regret of the convex and the second-order perceptron without noise in the
    feedback, such as growth like log t, for web search or for movies (`where`, in words)."""
    sentences = (
        (
            "the cumulative quadratic regret of the second-order learner grows like log t.",
            growth.logarithmic("quadratic", "second-order", QUADRATIC),
        ),
        ("that of the convex perceptron grows faster.", growth.faster_than_log("quadratic", "convex", QUADRATIC)),
        (
            "the second-order learner ends with less of it.",
            claims.lower("quadratic", "second-order", "convex", QUADRATIC),
        ),
        (
            "without noise it is substantially superior.",
            claims.within_factor("quadratic", "second-order", "convex", claims.HALF, QUADRATIC),
        ),
    )
    return (
        *(Claim(f"{where}: {says}", ("quadratic",), check) for says, check in sentences),
        Claim(
            f"{where}: the cumulative regret of raw utility behaves alike.",
            ("linear",),
            growth.logarithmic("linear", "second-order", CUMULATIVE),
        ),
    )


def sweep(world: str, full: Size, quick: Size) -> Panel:
    """Return the plot of the average regret by gamma of the second-order perceptron, next to the convex perceptron, on
    the data set with the key `world`; `full` and `quick` are the sizes of its runs, usual and with --quick.
    """
    swept = tuple(curve(f"gamma = {gamma:g}", f"second-order:gamma={gamma:g}", STRICT) for gamma in GAMMAS)
    title = "web search" if world == WEB else "movie recommendation"
    base = Panel(world, title, world, (*swept, CONVEX), full, quick, AVERAGE, "sweep")
    return base._replace(values=GAMMAS, at_rounds=(100, 0) if world == WEB else (100, 1_000, 0))


FIGURES = (
    figure(
        "fig13",
        "Convex and second-order perceptron, web search",
        (*side_by_side(WEB, STRICT, (QUADRATIC, CUMULATIVE)), COVERED),
        (
            *logarithmic(WHERE[WEB]),
            Claim(
                "Where the hypotheses of Theorem 8 hold, its bound and that of Theorem 6 do.",
                ("covered",),
                growth.within_bound("covered", ("second-order", "convex"), QUADRATIC),
            ),
        ),
        "With gamma = 1 and a ball of radius 100, as in the experiments, Theorem 8 does not apply; the third panel has"
        " alpha = 1 and a gamma and a ball with which it does.",
    ),
    figure(
        "fig14",
        "Convex and second-order perceptron, movies",
        side_by_side(MOVIES, STRICT, (QUADRATIC, CUMULATIVE)),
        logarithmic(WHERE[MOVIES]),
    ),
    figure(
        "fig15",
        "The second-order learner's gamma, web search",
        (sweep(WEB, WEB_FULL, WEB_QUICK),),
        (
            Claim(
                "A wide range of gamma is good; at either extreme performance deteriorates.",
                (WEB,),
                sweeps.good_values(WEB, GAMMAS),
            ),
            Claim("gamma = 1 is best.", (WEB,), sweeps.best_value(WEB, GAMMAS, 1.0)),
        ),
    ),
    figure(
        "fig16",
        "The second-order learner's gamma, movies",
        (sweep(MOVIES, Size(1_500, 500), Size(1_500, 50)), sweep(WEB, WEB_FULL, WEB_QUICK)),
        (
            Claim("gamma = 1 is best.", (MOVIES,), sweeps.best_value(MOVIES, GAMMAS, 1.0)),
            Claim(
                "The range of suitable gamma is much broader for web search than for movies.",
                BOTH,
                sweeps.broader(WEB, MOVIES, GAMMAS),
            ),
        ),
        "The panel of web search is that of Figure 15.",
    ),
    figure(
        "fig17",
        "Convex and second-order perceptron, noisy feedback, web search",
        side_by_side(WEB, NOISY, (AVERAGE, QUADRATIC), slack=True),
        (
            Claim(
                "The two are nearly identical.", (WEB,), claims.alike(WEB, "second-order", "convex", claims.IDENTICAL)
            ),
        ),
    ),
    figure(
        "fig18",
        "Convex and second-order perceptron, noisy feedback, movies",
        side_by_side(MOVIES, BETTER, (AVERAGE, QUADRATIC), slack=True),
        (
            Claim(
                "There is still some advantage to the second-order learner.",
                (MOVIES,),
                claims.lower(MOVIES, "second-order", "convex"),
            ),
            Claim("But no drastic one.", (MOVIES,), claims.within_factor(MOVIES, "convex", "second-order", 2.0)),
        ),
    ),
)
