"""[J15] Figure 1, sections 6.2.1 to 6.2.4: Figures 2 to 6, and Lemma 3.

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

from functools import partial

from heedful.papers import claims, growth
from heedful.papers.chains import STUDY, chains_panel
from heedful.papers.coactive2012 import ALPHAS, STRICT_LINES
from heedful.papers.figure import AVERAGE, Claim, Line, Measure, Panel, Size
from heedful.papers.jair2015.parts import BOTH, CONVEX, PERCEPTRON, SECOND, WHERE, both, figure
from heedful.papers.panels import BETTER, LOWER, MOVIES, NOISY, STRICT, WEB, curve, movies, web

BATCHES = (1, 10, 100)
KS = [f"k = {k}" for k in BATCHES]
EXPECTED = {
    WEB: curve("expected", "perceptron", "expected:alpha=0.5,strict=0.5"),
    MOVIES: curve("expected", "perceptron", "expected:alpha=0.5,strict=1"),
}


def batches(user: str) -> tuple[Line, ...]:
    """Return the curves of the perceptron with batches of 1, 10 and 100 rounds, taught by the simulated person
    `user`.
    """
    return tuple(curve(f"k = {k}", f"perceptron:batch={k}" if k > 1 else "perceptron", user) for k in BATCHES)


def cheaper_than_feared(panel: str) -> tuple[Claim, ...]:
    """Return the paper's claims about the perceptron with batches of k rounds in the plot with the key `panel`: regret
    grows with k, but by less than the factor sqrt k of Lemma 4.
    """
    ordered = Claim(
        f"{WHERE[panel]}: the smaller k, the faster regret converges.",
        (panel,),
        claims.falls_in_order(panel, KS[::-1]),
    )
    better = (
        Claim(
            f"{WHERE[panel]}: k = {k} costs {much}less than the factor sqrt k of Lemma 4.",
            (panel,),
            claims.within_factor(panel, f"k = {k}", "k = 1", share * k**0.5),
        )
        for k in BATCHES[1:]
        for much, share in (("", 1.0), ("substantially ", claims.HALF))
    )
    return (ordered, *better)


FIGURES = (
    figure(
        "fig1",
        "What clicks over a query chain say about its first ranking",
        (chains_panel(),),
        STUDY,
        "TREC Session 2012, and 2013 where it is, stand in for the user study of 16 students.",
    ),
    figure(
        "fig2",
        "Strictly alpha-informative feedback",
        (web(*STRICT_LINES), movies(*STRICT_LINES)),
        (
            *both(
                "regret is substantially reduced after tens or hundreds of rounds.",
                lambda panel: growth.regret_halves(panel, ALPHAS, 100),
            ),
            *both(
                "regret with alpha = 1 is lower than with alpha = 0.1.",
                partial(claims.lower, a="alpha = 1", b="alpha = 0.1"),
            ),
            *both(
                "the difference is much smaller than a factor of ten.",
                partial(claims.within_factor, a="alpha = 0.1", b="alpha = 1", factor=10.0 * claims.HALF),
            ),
            Claim(
                "The differences are less prominent in web search.",
                BOTH,
                claims.closer(WEB, MOVIES, "alpha = 0.1", "alpha = 1"),
            ),
            *both("regret approaches zero in all cases.", partial(growth.vanishing, labels=ALPHAS)),
            Claim(
                "Web: the standard errors are high at few rounds, and become lower with more.",
                (WEB,),
                growth.steadier(WEB, ALPHAS),
            ),
            *both("no curve is above the bound of Theorem 1.", partial(growth.within_bound, labels=ALPHAS)),
        ),
    ),
    figure(
        "fig3",
        "Noisy feedback",
        (
            web(
                curve("depth 10", "perceptron", NOISY),
                curve("depth 25", "perceptron", "noisy:depth=25"),
                curve("strict, alpha = 0.5", "perceptron", STRICT),
            )._replace(slack=True),
            movies(
                curve("better", "perceptron", BETTER),
                curve("best", "perceptron", "best"),
                curve("strict, alpha = 0.5", "perceptron", STRICT),
            )._replace(slack=True),
        ),
        (
            Claim("Web: regret does not converge to zero.", (WEB,), growth.stuck(WEB, ("depth 10", "depth 25"))),
            Claim(
                "Web: regret is slightly higher at the greater depth.",
                (WEB,),
                claims.lower(WEB, "depth 10", "depth 25"),
            ),
            *(
                Claim(f"Movies: {says}.", (MOVIES,), claims.falls_in_order(MOVIES, (noisy, "strict, alpha = 0.5")))
                for says, noisy in (
                    ("regret is higher than with strict feedback", "better"),
                    ("also where the best rated is the feedback", "best"),
                )
            ),
        ),
    ),
    figure(
        "fig4",
        "Batch updates, strict feedback",
        (web(*batches(STRICT)), movies(*batches(STRICT))),
        (
            *cheaper_than_feared(WEB),
            *cheaper_than_feared(MOVIES),
            *both("no curve is above the bound of Lemma 4.", partial(growth.within_bound, labels=KS)),
        ),
    ),
    figure(
        "fig5",
        "Batch updates, noisy feedback",
        (web(*batches(NOISY))._replace(slack=True), movies(*batches(BETTER))._replace(slack=True)),
        (*cheaper_than_feared(WEB), *cheaper_than_feared(MOVIES)),
    ),
    figure(
        "fig6",
        "Expected feedback against deterministic feedback",
        (
            web(curve("deterministic", "perceptron", STRICT), EXPECTED[WEB]),
            movies(curve("deterministic", "perceptron", STRICT), EXPECTED[MOVIES]),
            web(
                EXPECTED[WEB]._replace(label="exponentiated, fixed rate", learners=("exponentiated:horizon={rounds}",)),
                EXPECTED[WEB]._replace(label="convex", learners=("convex",)),
                key="others",
                title="web search, expected feedback, other learners",
            ),
        ),
        (
            *both(
                "at higher numbers of rounds there is not much difference.",
                partial(claims.alike, a="expected", b="deterministic", tolerance=claims.SIMILAR),
            ),
            *both(
                "regret converges to zero with expected feedback too.", partial(growth.vanishing, labels=("expected",))
            ),
            *both(
                "the curves are not above the bounds of Theorem 1 and Corollary 2.",
                partial(growth.within_bound, labels=("deterministic", "expected")),
            ),
            Claim(
                "Other learners are not above the bounds of Theorems 5 and 6, which hold in expectation too.",
                ("others",),
                growth.within_bound("others", ("exponentiated, fixed rate", "convex")),
            ),
        ),
        "The third panel is not the paper's: it draws the forms of Theorems 5 and 6 for expected feedback.",
    ),
)

LEMMA_3 = figure(
    "lemma3",
    "The lower bound: a stream on which every learner has REG_T = 2 / sqrt T",
    (
        Panel(
            LOWER,
            "the stream of Lemma 3",
            LOWER,
            (PERCEPTRON, CONVEX, SECOND),
            Size(300, 1),
            Size(100, 1),
            Measure("average regret of a run of T rounds", AVERAGE.of),
            "horizons",
        ),
    ),
    (
        Claim(
            "Every learner has REG_T = 2 / sqrt T, which is Theorem 1's bound for the perceptron.",
            (LOWER,),
            growth.lower_bound_met(LOWER, ("perceptron", "convex", "second-order")),
        ),
    ),
    "Not a figure of the paper: its Lemma 3, run.",
)
