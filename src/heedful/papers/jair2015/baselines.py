"""[J15] sections 6.2.5 to 6.3: Figures 7 to 12, against a ranking SVM, a dueling bandit, exponentiated updates.

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

from functools import partial

from heedful.papers import claims, growth
from heedful.papers.figure import Claim
from heedful.papers.jair2015.parts import BOTH, PERCEPTRON, WHERE, both, figure, versus
from heedful.papers.panels import BETTER, MOVIES, NOISY, STRICT, WEB, curve, dueling, movies, web

SVM = curve("ranking SVM", "ranking-svm", STRICT)
EXPONENTIATED = curve("exponentiated", "exponentiated", STRICT)
HINDSIGHT = "The bandit is drawn at the best of seventeen ratios delta / gamma in hindsight, four in each decade."


def dueling_on_web(key: str) -> tuple[Claim, ...]:
    """Return the paper's claims about the dueling bandit on web search; `key`, the kind of feedback ("strict" or
    "noisy"), is also the key of the plot.
    """
    sentences = (
        ("the dueling bandit is significantly worse.", claims.lower(key, "perceptron", "dueling bandit")),
        (
            "by orders of magnitude: the perceptron gets there in a hundredth of the rounds.",
            claims.matched_early(key, "perceptron", "dueling bandit"),
        ),
        (
            "what the bandit has at the end, the perceptron has after fewer than 100 rounds.",
            claims.matched_early(key, "perceptron", "dueling bandit", share=1.0, most=99),
        ),
    )
    return tuple(Claim(f"{key} feedback: {says}", (key,), check) for says, check in sentences)


def dueling_on_movies(key: str) -> tuple[Claim, ...]:
    """Return the paper's claims about the dueling bandit on movies; `key`, the kind of feedback ("strict" or "noisy"),
    is also the key of the plot.
    """
    return tuple(
        Claim(
            f"{key} feedback: the dueling bandit is {much}worse.",
            (key,),
            claims.within_factor(key, "perceptron", "dueling bandit", share),
        )
        for much, share in (("", 1.0), ("substantially ", claims.HALF))
    )


FIGURES = (
    figure(
        "fig7",
        "Perceptron and ranking SVM, strict feedback",
        versus(PERCEPTRON, SVM, STRICT, STRICT, slow=True),
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
                "Web: the perceptron takes a fraction of the time (20 minutes against 20 hours).",
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
    figure(
        "fig8",
        "Perceptron and ranking SVM, noisy feedback",
        versus(PERCEPTRON, SVM, NOISY, BETTER, slow=True),
        both(
            "over most of the range the perceptron is significantly better.",
            partial(claims.lower_mostly, a="perceptron", b="ranking SVM"),
        ),
    ),
    figure(
        "fig9",
        "Perceptron and dueling bandit, web search",
        (
            web(PERCEPTRON, dueling(STRICT), key="strict", title="strict feedback"),
            web(PERCEPTRON._replace(user=NOISY), dueling(NOISY), key="noisy", title="noisy feedback"),
        ),
        (*dueling_on_web("strict"), *dueling_on_web("noisy")),
        HINDSIGHT,
    ),
    figure(
        "fig10",
        "Perceptron and dueling bandit, movies",
        (
            movies(PERCEPTRON, dueling(STRICT), key="strict", title="utility values"),
            movies(PERCEPTRON._replace(user=BETTER), dueling(BETTER), key="noisy", title="rounded values"),
        ),
        (*dueling_on_movies("strict"), *dueling_on_movies("noisy")),
        HINDSIGHT,
    ),
    *(
        figure(
            f"fig{number}",
            f"Exponentiated and additive updates, {words} feedback",
            versus(PERCEPTRON, EXPONENTIATED, web_user, movie_user),
            tuple(
                claim
                for panel in BOTH
                for claim in (
                    Claim(
                        f"{WHERE[panel]}: the exponentiated learner is slightly better for small numbers of rounds.",
                        (panel,),
                        claims.lower_mostly(panel, "exponentiated", "perceptron", 2, 100),
                    ),
                    Claim(
                        f"{WHERE[panel]}: at the end the two are comparable.",
                        (panel,),
                        claims.alike(panel, "exponentiated", "perceptron", claims.COMPARABLE),
                    ),
                )
            ),
        )
        for number, words, web_user, movie_user in ((11, "strict", STRICT, STRICT), (12, "noisy", NOISY, BETTER))
    ),
    figure(
        "remark6.3",
        "Exponentiated updates at a fixed rate are nearly additive",
        tuple(
            make(
                PERCEPTRON,
                curve("fixed rate", "exponentiated:horizon={rounds}", STRICT),
                EXPONENTIATED._replace(label="variable rate"),
            )
            for make in (web, movies)
        ),
        (
            *both(
                "with the fixed rate the two are nearly identical.",
                partial(claims.alike, a="fixed rate", b="perceptron", tolerance=claims.IDENTICAL),
            ),
            *both(
                "the curve is not above the bound of Theorem 5.", partial(growth.within_bound, labels=("fixed rate",))
            ),
        ),
        "Not a figure of the paper: a remark in its section 6.3.",
    ),
)
