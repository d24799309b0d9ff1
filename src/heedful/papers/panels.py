"""The data sets and simulated environments of the papers' experiments (WORLDS), by key, with the sizes of their runs,
and plots common to [C12] and [J15].

[A18]: Dadkhahi & Negahban, *Alternating Linear Bandits for Online Matrix-Factorization Recommendation*, 2018; [C12]:
Shivaswamy & Joachims, *Online Structured Prediction via Coactive Learning*, ICML 2012; [H12]: Houlsby, Huszár,
Ghahramani & Hernández-Lobato, *Collaborative Gaussian Processes for Preference Learning*, NIPS 2012; [J15]: Shivaswamy
& Joachims, *Coactive Learning*, JAIR 53, 2015; [P01]: Crammer & Singer, *Pranking with Ranking*, NIPS 2001.
"""

from __future__ import annotations

from heedful.papers.figure import AVERAGE, Line, Measure, Panel, Size

WEB = "web"
MOVIES = "movies"
CHAINS = "chains"
LOWER = "lower"
SYNTHETIC = "synthetic-grades"
RATERS_100 = "raters-100"
RATERS_200 = "raters-200"
STREAMS = "streams"
SEPARABLE = "separable"
GAUSSIAN, UNIFORM, BERNOULLI = "ratings-gaussian", "ratings-uniform", "ratings-bernoulli"
BOOKS, MOVIES_100K, JESTER = "book-crossing", "movielens-100k", "jester"
SYNTHETIC_CHOICES, SUSHI, MOVIE_CHOICES = "choices-synthetic", "choices-sushi", "choices-movies"
ELECTION, JURA = "choices-election", "choices-jura"
TOY = "labels-on-a-line"
WORLDS = {
    WEB: "web search: queries with labelled documents, LETOR files (letor4-mq2008)",
    MOVIES: "movies: people who rated them (movielens-1m)",
    CHAINS: "query chains with clicks and judgments (trec-session)",
    LOWER: "the stream of Lemma 3, which needs no data",
    SYNTHETIC: "the synthetic grades of [P01], which need no data",
    RATERS_100: "people with at least 100 ratings of movies (movielens-1m)",
    RATERS_200: "people with at least 200 (movielens-1m)",
    STREAMS: "these three together",
    SEPARABLE: "grades that a rule separates by a margin, which need no data",
    GAUSSIAN: "ratings of Gaussian factors with noise, [A18], which need no data",
    UNIFORM: "ratings between -1/4 and 5/4, which need no data",
    BERNOULLI: "ratings of 0 and 1, which need no data",
    BOOKS: "people who rated books (book-crossing-subset)",
    MOVIES_100K: "people who rated movies (movielens-100k)",
    JESTER: "people who rated jokes (jester-1)",
    SYNTHETIC_CHOICES: "choices drawn from the model of [H12] (cgp-synthetic)",
    SUSHI: "people who put ten sushi in order (sushi)",
    MOVIE_CHOICES: "which of ten movies people rated higher (movielens-1m)",
    ELECTION: "which party had more votes, by seat (uk-election-2010)",
    JURA: "which metal there is more of, by place (jura)",
    TOY: "labels of points on a line, which need no data",
}
RATERS = {RATERS_100: 100, RATERS_200: 200}
"""for data sets of people who rated movies, by key, the least number of movies that each person has rated"""
GRADED = (SYNTHETIC, RATERS_100, RATERS_200, STREAMS, SEPARABLE)
"""keys of the data sets where grades are predicted: no simulated person corrects, so a line names none"""
RATED = (GAUSSIAN, UNIFORM, BERNOULLI, BOOKS, MOVIES_100K, JESTER)
"""keys of the data sets where items are rated: a line names no simulated person"""
CHOICES = (SYNTHETIC_CHOICES, SUSHI, MOVIE_CHOICES, ELECTION, JURA, TOY)
"""Keys of the data sets where comparisons are predicted: a line names a model of `choice_models`, and no simulated
person."""

WEB_FULL, WEB_QUICK = Size(28_224, 20), Size(784, 5)
"""Sizes of runs on web search, in full and with --quick. [J15] went once through 28,000 queries, in twenty orders;
MQ2008 has 784. Claims are judged on one pass through them; 35 more passes are drawn, as many rounds as in [J15]."""
MOVIES_FULL, MOVIES_QUICK = Size(1_500, 0), Size(1_500, 60)
"""Sizes of runs on movies, in full and with --quick: 1,500 rounds for each of 3,020 people (0 runs: all of them), half
of the data set; the ratings of the other half give movies their features."""
SLOW_WEB_FULL, SLOW_WEB_QUICK = Size(784, 20), Size(784, 5)
SLOW_MOVIES_FULL, SLOW_MOVIES_QUICK = Size(1_500, 200), Size(300, 20)
"""Sizes of runs with a ranking SVM, which took [J15] 20 hours for each permutation of the queries."""

STRICT = "strict:alpha=0.5"
NOISY = "noisy:depth=10"
BETTER = "better"


def web(
    *lines: Line,
    key: str = WEB,
    title: str = "web search",
    full: Size = WEB_FULL,
    quick: Size = WEB_QUICK,
    measure: Measure = AVERAGE,
) -> Panel:
    """Return a plot of regret on web search with these curves (`lines`), its key and title, the `full` and `quick` size
    of its runs, and the `measure` that is drawn.
    """
    return Panel(key, title, WEB, lines, full, quick, measure)


def movies(
    *lines: Line,
    key: str = MOVIES,
    title: str = "movie recommendation",
    full: Size = MOVIES_FULL,
    quick: Size = MOVIES_QUICK,
    measure: Measure = AVERAGE,
) -> Panel:
    """Return a plot of regret on movie recommendation with these curves (`lines`), its key and title, the `full` and
    `quick` size of its runs, and the `measure` that is drawn.
    """
    return Panel(key, title, MOVIES, lines, full, quick, measure)


def slow_web(*lines: Line) -> Panel:
    """Return a plot of regret on web search with these curves, with shorter runs for a slow learner."""
    return web(*lines, full=SLOW_WEB_FULL, quick=SLOW_WEB_QUICK)


def slow_movies(*lines: Line) -> Panel:
    """Return a plot of regret on movie recommendation with these curves, with shorter runs for a slow learner."""
    return movies(*lines, full=SLOW_MOVIES_FULL, quick=SLOW_MOVIES_QUICK)


def curve(label: str, learner: str, user: str) -> Line:
    """Return a curve with this `label`, of one `learner` taught by one simulated person, `user`, both by the names that
    `heedful simulate` takes.
    """
    return Line(label, (learner,), user)


def dueling(user: str) -> Line:
    """Return the curve of the dueling bandit at the ratio delta / gamma that is best in hindsight, taught by the
    simulated person `user`; from w = 0 only the ratio matters.

    The ratios are four for each decade from 0.001 to 10, seventeen in all; the 5 x 5 grid of [J15] 6.2.6 has at most
    25.
    """
    ratios = tuple(f"dueling-bandit:gamma=1,delta={10.0 ** (i / 4):.3g}" for i in range(-12, 5))
    return Line("dueling bandit", ratios, user)


def distribution(key: str, title: str, lines: tuple[Line, ...]) -> Panel:
    """Return a plot, with this `key` and `title`, of the distribution functions of gains in DCG@10 over query chains,
    with these curves (`lines`).
    """
    return Panel(
        key, title, CHAINS, lines, Size(1, 0), Size(1, 0), Measure("DCG@10 gained", AVERAGE.of), "distribution"
    )
