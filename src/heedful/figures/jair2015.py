"""[J15] Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015: Figures 1 to 18, Lemma 3, a remark of 6.3."""

from __future__ import annotations

from heedful.figures import claims, panels
from heedful.figures.chains import STUDY, chains_panel
from heedful.figures.coactive2012 import ALPHAS, STRICT_LINES
from heedful.figures.figure import AVERAGE, CUMULATIVE, QUADRATIC, Claim, Figure, Line, Measure, Panel, Size
from heedful.figures.panels import (
    BETTER,
    LOWER,
    MOVIES,
    NOISY,
    STRICT,
    WEB,
    dueling,
    movies,
    one,
    slow_movies,
    slow_web,
    web,
)

PAPER = "Shivaswamy & Joachims, Coactive Learning, Journal of Artificial Intelligence Research 53, 2015"
BOTH = (WEB, MOVIES)
WHERE = {WEB: "Web", MOVIES: "Movies"}
BATCHES = (1, 10, 100)
GAMMAS = tuple(10.0**power for power in range(-4, 5))


def _versus(a: Line, b: Line, web_user: str, movie_user: str, slow: bool = False) -> tuple[Panel, Panel]:
    """Two learners beside each other in both worlds."""
    on_web, on_movies = (tuple(x._replace(user=user) for x in (a, b)) for user in (web_user, movie_user))
    if slow:
        return slow_web(*on_web), slow_movies(*on_movies)
    return web(*on_web), movies(*on_movies)


def _batches(user: str) -> tuple[Line, ...]:
    return tuple(one(f"k = {k}", f"perceptron:batch={k}", user) for k in BATCHES)


def _faster_than_bound(panel: str) -> tuple[Claim, ...]:
    ordered = Claim(
        f"{WHERE[panel]}: the smaller k, the faster regret converges.",
        (panel,),
        claims.falls_in_order(panel, ("k = 100", "k = 10", "k = 1")),
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


def _sweep(world: str, user: str, full: Size, quick: Size) -> Panel:
    swept = tuple(one(f"gamma = {gamma:g}", f"second-order:gamma={gamma:g}", user) for gamma in GAMMAS)
    title = "web search" if world == WEB else "movie recommendation"
    base = Panel(world, title, world, (*swept, one("convex", "convex", user)), full, quick, AVERAGE, "sweep")
    return base._replace(values=GAMMAS, at=(100, 1_000, 0))


PERCEPTRON = one("perceptron", "perceptron", STRICT)
SVM = one("ranking SVM", "ranking-svm", STRICT)
EXPONENTIATED = one("exponentiated", "exponentiated", STRICT)
CONVEX = one("convex", "convex", STRICT)
SECOND = one("second-order", "second-order", STRICT)


def _convex_panels(world: str, user: str, measures: tuple[Measure, ...]) -> tuple[Panel, ...]:
    make = web if world == WEB else movies
    lines = (CONVEX._replace(user=user), SECOND._replace(user=user))
    keys = {QUADRATIC: "quadratic", CUMULATIVE: "linear"}
    return tuple(make(*lines, key=keys.get(m, world), title=m.axis, measure=m) for m in measures)


def _logarithmic(where: str) -> tuple[Claim, ...]:
    return (
        Claim(
            f"{where}: the cumulative quadratic regret of the second-order learner grows like log t.",
            ("quadratic",),
            claims.logarithmic("quadratic", "second-order", QUADRATIC),
        ),
        Claim(
            f"{where}: that of the convex perceptron grows faster.",
            ("quadratic",),
            claims.slower_than_log("quadratic", "convex", QUADRATIC),
        ),
        Claim(
            f"{where}: the second-order learner ends with less of it.",
            ("quadratic",),
            claims.lower("quadratic", "second-order", "convex", QUADRATIC),
        ),
        Claim(
            f"{where}: the cumulative regret of raw utility behaves alike.",
            ("linear",),
            claims.logarithmic("linear", "second-order", CUMULATIVE),
        ),
    )


COVERED = web(
    one("second-order", "second-order:gamma={gamma!r},radius={norm!r}", "strict:alpha=1"),
    one("convex", "convex:radius={norm!r}", "strict:alpha=1"),
    key="covered",
    title="as Theorem 8 wants it",
    measure=QUADRATIC,
)

FIGURES = (
    Figure(
        "jair2015/fig1",
        PAPER,
        "What clicks over a query chain say about its first ranking",
        (chains_panel(),),
        STUDY,
        "TREC Session 2012 stands in for the user study of 16 students.",
    ),
    Figure(
        "jair2015/fig2",
        PAPER,
        "Strictly alpha-informative feedback",
        (web(*STRICT_LINES), movies(*STRICT_LINES)),
        (
            Claim(
                "Web: regret is substantially reduced after tens or hundreds of rounds.",
                (WEB,),
                claims.reduced(WEB, ALPHAS, 100),
            ),
            Claim(
                "Movies: regret is substantially reduced after tens or hundreds of rounds.",
                (MOVIES,),
                claims.reduced(MOVIES, ALPHAS, 100),
            ),
            Claim(
                "Web: regret with alpha = 1 is lower than with alpha = 0.1.",
                (WEB,),
                claims.lower(WEB, "alpha = 1", "alpha = 0.1"),
            ),
            Claim(
                "Movies: regret with alpha = 1 is lower than with alpha = 0.1.",
                (MOVIES,),
                claims.lower(MOVIES, "alpha = 1", "alpha = 0.1"),
            ),
            Claim(
                "Web: the difference is much smaller than a factor of ten.",
                (WEB,),
                claims.within_factor(WEB, "alpha = 0.1", "alpha = 1", 10.0 * claims.HALF),
            ),
            Claim(
                "Movies: the difference is much smaller than a factor of ten.",
                (MOVIES,),
                claims.within_factor(MOVIES, "alpha = 0.1", "alpha = 1", 10.0 * claims.HALF),
            ),
            Claim(
                "The differences are less prominent in web search.",
                BOTH,
                claims.closer(WEB, MOVIES, "alpha = 0.1", "alpha = 1"),
            ),
            Claim("Web: regret approaches zero in all cases.", (WEB,), claims.vanishing(WEB, ALPHAS)),
            Claim("Movies: regret approaches zero in all cases.", (MOVIES,), claims.vanishing(MOVIES, ALPHAS)),
            Claim("Web: no curve is above the bound of Theorem 1.", (WEB,), claims.bounded(WEB, ALPHAS)),
            Claim("Movies: no curve is above the bound of Theorem 1.", (MOVIES,), claims.bounded(MOVIES, ALPHAS)),
        ),
    ),
    Figure(
        "jair2015/fig3",
        PAPER,
        "Noisy feedback",
        (
            web(
                one("depth 10", "perceptron", NOISY),
                one("depth 25", "perceptron", "noisy:depth=25"),
                one("strict, alpha = 0.5", "perceptron", STRICT),
            )._replace(slack=True),
            movies(
                one("better", "perceptron", BETTER),
                one("best", "perceptron", "best"),
                one("strict, alpha = 0.5", "perceptron", STRICT),
            )._replace(slack=True),
        ),
        (
            Claim("Web: regret does not converge to zero.", (WEB,), claims.stuck(WEB, ("depth 10", "depth 25"))),
            Claim(
                "Web: regret is slightly higher at the greater depth.",
                (WEB,),
                claims.lower(WEB, "depth 10", "depth 25"),
            ),
            Claim(
                "Movies: regret is higher than with strict feedback.",
                (MOVIES,),
                claims.falls_in_order(MOVIES, ("better", "strict, alpha = 0.5")),
            ),
            Claim(
                "Movies: also where the best rated is the feedback.",
                (MOVIES,),
                claims.falls_in_order(MOVIES, ("best", "strict, alpha = 0.5")),
            ),
        ),
    ),
    Figure(
        "jair2015/fig4",
        PAPER,
        "Batch updates, strict feedback",
        (web(*_batches(STRICT)), movies(*_batches(STRICT))),
        (
            *_faster_than_bound(WEB),
            *_faster_than_bound(MOVIES),
            Claim(
                "Web: no curve is above the bound of Lemma 4.",
                (WEB,),
                claims.bounded(WEB, [f"k = {k}" for k in BATCHES]),
            ),
            Claim(
                "Movies: no curve is above the bound of Lemma 4.",
                (MOVIES,),
                claims.bounded(MOVIES, [f"k = {k}" for k in BATCHES]),
            ),
        ),
    ),
    Figure(
        "jair2015/fig5",
        PAPER,
        "Batch updates, noisy feedback",
        (web(*_batches(NOISY)), movies(*_batches(BETTER))),
        (*_faster_than_bound(WEB), *_faster_than_bound(MOVIES)),
    ),
    Figure(
        "jair2015/fig6",
        PAPER,
        "Expected feedback against deterministic feedback",
        (
            web(
                one("deterministic", "perceptron", STRICT),
                one("expected", "perceptron", "expected:alpha=0.5,strict=0.5"),
            ),
            movies(
                one("deterministic", "perceptron", STRICT), one("expected", "perceptron", "expected:alpha=0.5,strict=1")
            ),
        ),
        (
            Claim(
                "Web: at higher numbers of rounds there is not much difference.",
                (WEB,),
                claims.alike(WEB, "expected", "deterministic", claims.SIMILAR),
            ),
            Claim(
                "Movies: at higher numbers of rounds there is not much difference.",
                (MOVIES,),
                claims.alike(MOVIES, "expected", "deterministic", claims.SIMILAR),
            ),
            Claim(
                "Web: regret converges to zero with expected feedback too.",
                (WEB,),
                claims.vanishing(WEB, ("expected",)),
            ),
            Claim(
                "Movies: regret converges to zero with expected feedback too.",
                (MOVIES,),
                claims.vanishing(MOVIES, ("expected",)),
            ),
            Claim(
                "Web: the curves are not above the bounds of Theorem 1 and Corollary 2.",
                (WEB,),
                claims.bounded(WEB, ("deterministic", "expected")),
            ),
            Claim(
                "Movies: the curves are not above the bounds of Theorem 1 and Corollary 2.",
                (MOVIES,),
                claims.bounded(MOVIES, ("deterministic", "expected")),
            ),
        ),
    ),
    Figure(
        "jair2015/fig7",
        PAPER,
        "Perceptron and ranking SVM, strict feedback",
        _versus(PERCEPTRON, SVM, STRICT, STRICT, slow=True),
        (
            Claim(
                "Web: the two are comparable.",
                (WEB,),
                claims.alike(WEB, "perceptron", "ranking SVM", claims.COMPARABLE),
            ),
            Claim(
                "Movies: the perceptron is much better.",
                (MOVIES,),
                claims.within_factor(MOVIES, "perceptron", "ranking SVM", claims.HALF),
            ),
            Claim(
                "Web: the perceptron takes a fraction of the time.",
                (WEB,),
                claims.cheaper(WEB, "perceptron", "ranking SVM"),
            ),
            Claim(
                "Movies: the perceptron takes a fraction of the time (125 s a person against 260 s).",
                (MOVIES,),
                claims.cheaper(MOVIES, "perceptron", "ranking SVM", 125 / 260),
            ),
        ),
    ),
    Figure(
        "jair2015/fig8",
        PAPER,
        "Perceptron and ranking SVM, noisy feedback",
        _versus(PERCEPTRON, SVM, NOISY, BETTER, slow=True),
        (
            Claim(
                "Web: over most of the range the perceptron is significantly better.",
                (WEB,),
                claims.lower_mostly(WEB, "perceptron", "ranking SVM"),
            ),
            Claim(
                "Movies: over most of the range the perceptron is significantly better.",
                (MOVIES,),
                claims.lower_mostly(MOVIES, "perceptron", "ranking SVM"),
            ),
        ),
    ),
    Figure(
        "jair2015/fig9",
        PAPER,
        "Perceptron and dueling bandit, web search",
        (
            web(PERCEPTRON, dueling(STRICT), key="strict", title="strict feedback"),
            web(PERCEPTRON._replace(user=NOISY), dueling(NOISY), key="noisy", title="noisy feedback"),
        ),
        tuple(
            claim
            for key in ("strict", "noisy")
            for claim in (
                Claim(
                    f"{key} feedback: the dueling bandit is significantly worse.",
                    (key,),
                    claims.lower(key, "perceptron", "dueling bandit"),
                ),
                Claim(
                    f"{key} feedback: by orders of magnitude: the perceptron gets there in a hundredth of the rounds.",
                    (key,),
                    claims.matched_early(key, "perceptron", "dueling bandit"),
                ),
            )
        ),
        "The bandit is drawn at the best of its 5 x 5 grid in hindsight.",
    ),
    Figure(
        "jair2015/fig10",
        PAPER,
        "Perceptron and dueling bandit, movies",
        (
            movies(PERCEPTRON, dueling(STRICT), key="strict", title="utility values"),
            movies(PERCEPTRON._replace(user=BETTER), dueling(BETTER), key="noisy", title="rounded values"),
        ),
        tuple(
            Claim(
                f"{key} feedback: the dueling bandit is {much}worse.",
                (key,),
                claims.within_factor(key, "perceptron", "dueling bandit", share),
            )
            for key in ("strict", "noisy")
            for much, share in (("", 1.0), ("substantially ", claims.HALF))
        ),
        "The bandit is drawn at the best of its 5 x 5 grid in hindsight.",
    ),
    *(
        Figure(
            f"jair2015/fig{number}",
            PAPER,
            f"Exponentiated and additive updates, {words} feedback",
            _versus(PERCEPTRON, EXPONENTIATED, web_user, movie_user),
            tuple(
                claim
                for panel, where in ((WEB, "Web"), (MOVIES, "Movies"))
                for claim in (
                    Claim(
                        f"{where}: the exponentiated learner is slightly better for small numbers of rounds.",
                        (panel,),
                        claims.lower_mostly(panel, "exponentiated", "perceptron", 2, 100),
                    ),
                    Claim(
                        f"{where}: at the end the two are comparable.",
                        (panel,),
                        claims.alike(panel, "exponentiated", "perceptron", claims.COMPARABLE),
                    ),
                )
            ),
        )
        for number, words, web_user, movie_user in ((11, "strict", STRICT, STRICT), (12, "noisy", NOISY, BETTER))
    ),
    Figure(
        "jair2015/remark6.3",
        PAPER,
        "Exponentiated updates at a fixed rate are nearly additive",
        tuple(
            make(
                PERCEPTRON._replace(user=user),
                one("fixed rate", "exponentiated:horizon={rounds}", user),
                EXPONENTIATED._replace(label="variable rate", user=user),
            )
            for make, user in ((web, STRICT), (movies, STRICT))
        ),
        (
            Claim(
                "Web: with the fixed rate the two are nearly identical.",
                (WEB,),
                claims.alike(WEB, "fixed rate", "perceptron", claims.IDENTICAL),
            ),
            Claim(
                "Movies: with the fixed rate the two are nearly identical.",
                (MOVIES,),
                claims.alike(MOVIES, "fixed rate", "perceptron", claims.IDENTICAL),
            ),
            Claim("Web: the curve is not above the bound of Theorem 5.", (WEB,), claims.bounded(WEB, ("fixed rate",))),
            Claim(
                "Movies: the curve is not above the bound of Theorem 5.",
                (MOVIES,),
                claims.bounded(MOVIES, ("fixed rate",)),
            ),
        ),
        "Not a figure of the paper: a remark in its section 6.3.",
    ),
    Figure(
        "jair2015/fig13",
        PAPER,
        "Convex and second-order perceptron, web search",
        (*_convex_panels(WEB, STRICT, (QUADRATIC, CUMULATIVE)), COVERED),
        (
            *_logarithmic("Web"),
            Claim(
                "Where the hypotheses of Theorem 8 hold, its bound and that of Theorem 6 do.",
                ("covered",),
                claims.bounded("covered", ("second-order", "convex"), QUADRATIC),
            ),
        ),
        "With gamma = 1 and a ball of radius 100, as in the experiments, Theorem 8 does not apply; the third panel has"
        " alpha = 1 and a gamma and a ball with which it does.",
    ),
    Figure(
        "jair2015/fig14",
        PAPER,
        "Convex and second-order perceptron, movies",
        _convex_panels(MOVIES, STRICT, (QUADRATIC, CUMULATIVE)),
        _logarithmic("Movies"),
    ),
    Figure(
        "jair2015/fig15",
        PAPER,
        "The second-order learner's gamma, web search",
        (_sweep(WEB, STRICT, panels.WEB_FULL, panels.WEB_QUICK),),
        (
            Claim(
                "A wide range of gamma is good; at either extreme performance deteriorates.",
                (WEB,),
                claims.good_values(WEB, GAMMAS),
            ),
            Claim("gamma = 1 is best.", (WEB,), claims.best_value(WEB, GAMMAS, 1.0)),
        ),
    ),
    Figure(
        "jair2015/fig16",
        PAPER,
        "The second-order learner's gamma, movies",
        (
            _sweep(MOVIES, STRICT, Size(1_500, 500), Size(1_500, 50)),
            _sweep(WEB, STRICT, panels.WEB_FULL, panels.WEB_QUICK),
        ),
        (
            Claim("gamma = 1 is best.", (MOVIES,), claims.best_value(MOVIES, GAMMAS, 1.0)),
            Claim(
                "The range of suitable gamma is much broader for web search than for movies.",
                BOTH,
                claims.broader(WEB, MOVIES, GAMMAS),
            ),
        ),
        "The panel of web search is that of Figure 15.",
    ),
    Figure(
        "jair2015/fig17",
        PAPER,
        "Convex and second-order perceptron, noisy feedback, web search",
        _convex_panels(WEB, NOISY, (AVERAGE, QUADRATIC)),
        (
            Claim(
                "The two are nearly identical.", (WEB,), claims.alike(WEB, "second-order", "convex", claims.IDENTICAL)
            ),
        ),
    ),
    Figure(
        "jair2015/fig18",
        PAPER,
        "Convex and second-order perceptron, noisy feedback, movies",
        _convex_panels(MOVIES, BETTER, (AVERAGE, QUADRATIC)),
        (
            Claim(
                "There is still some advantage to the second-order learner.",
                (MOVIES,),
                claims.lower(MOVIES, "second-order", "convex"),
            ),
            Claim("But no drastic one.", (MOVIES,), claims.within_factor(MOVIES, "convex", "second-order", 2.0)),
        ),
    ),
    Figure(
        "jair2015/lemma3",
        PAPER,
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
                claims.lower_bound_met(LOWER, ("perceptron", "convex", "second-order")),
            ),
        ),
        "Not a figure of the paper: its Lemma 3, run.",
    ),
)
