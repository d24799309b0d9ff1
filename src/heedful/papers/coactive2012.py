"""[C12] Shivaswamy & Joachims, *Online Structured Prediction via Coactive Learning*, ICML 2012: Figures 1 to 5."""

from __future__ import annotations

from heedful.papers import claims, growth
from heedful.papers.chains import STUDY, chains_panel
from heedful.papers.figure import Claim, Figure
from heedful.papers.panels import MOVIES, NOISY, WEB, curve, movies, slow_movies, slow_web, web

PAPER = "Shivaswamy & Joachims, Online Structured Prediction via Coactive Learning, ICML 2012"

ALPHAS = ("alpha = 0.1", "alpha = 0.5", "alpha = 1")
STRICT_LINES = tuple(curve(f"alpha = {alpha}", "perceptron", f"strict:alpha={alpha}") for alpha in ("0.1", "0.5", "1"))

FIGURES = (
    Figure(
        "coactive2012/fig1",
        PAPER,
        "What clicks over a query chain say about its first ranking",
        (chains_panel(),),
        STUDY,
        "TREC Session 2012, and 2013 where it is, stand in for the user study of 16 students.",
    ),
    Figure(
        "coactive2012/fig2",
        PAPER,
        "Strictly alpha-informative feedback, web search",
        (web(STRICT_LINES[0], STRICT_LINES[2]),),
        (
            Claim(
                "Regret with alpha = 1 is lower than with alpha = 0.1.",
                (WEB,),
                claims.lower(WEB, "alpha = 1", "alpha = 0.1"),
            ),
            Claim(
                "The difference is much smaller than a factor of ten.",
                (WEB,),
                claims.within_factor(WEB, "alpha = 0.1", "alpha = 1", 10.0 * claims.HALF),
            ),
            Claim("Regret approaches zero.", (WEB,), growth.vanishing(WEB, ("alpha = 0.1", "alpha = 1"))),
        ),
    ),
    Figure(
        "coactive2012/fig3",
        PAPER,
        "Noisy feedback, web search: perceptron and ranking SVM",
        (slow_web(curve("perceptron", "perceptron", NOISY), curve("ranking SVM", "ranking-svm", NOISY)),),
        (
            Claim("Regret converges to a value that is not zero.", (WEB,), growth.stuck(WEB, ("perceptron",))),
            Claim(
                "Over most of the range the perceptron is significantly better than the SVM.",
                (WEB,),
                claims.lower_mostly(WEB, "perceptron", "ranking SVM"),
            ),
            Claim(
                "The perceptron costs a fraction of the time: 30 minutes against 20 hours.",
                (WEB,),
                claims.cheaper(WEB, "perceptron", "ranking SVM"),
            ),
        ),
    ),
    Figure(
        "coactive2012/fig4",
        PAPER,
        "Strictly alpha-informative feedback, movies",
        (movies(*STRICT_LINES),),
        (
            Claim("In all cases average regret falls towards zero.", (MOVIES,), growth.vanishing(MOVIES, ALPHAS)),
            Claim(
                "With a moderate alpha, regret is substantially reduced after tens of rounds.",
                (MOVIES,),
                growth.regret_halves(MOVIES, ("alpha = 0.5",), 50),
            ),
            Claim("The higher alpha, the faster regret falls.", (MOVIES,), claims.falls_in_order(MOVIES, ALPHAS)),
            Claim(
                "Much faster: alpha = 1 has less than half the regret of alpha = 0.1.",
                (MOVIES,),
                claims.within_factor(MOVIES, "alpha = 1", "alpha = 0.1", claims.HALF),
            ),
        ),
    ),
    Figure(
        "coactive2012/fig5",
        PAPER,
        "Noisy feedback, movies: perceptron and ranking SVM",
        (
            slow_movies(
                curve("perceptron", "perceptron", "better:exact=true"),
                curve("ranking SVM", "ranking-svm", "better:exact=true"),
            ),
        ),
        (
            Claim(
                "The regret of the perceptron is significantly lower than that of the SVM.",
                (MOVIES,),
                claims.lower_mostly(MOVIES, "perceptron", "ranking SVM"),
            ),
            Claim(
                "It takes a small fraction of the computational cost.",
                (MOVIES,),
                claims.cheaper(MOVIES, "perceptron", "ranking SVM"),
            ),
        ),
    ),
)
