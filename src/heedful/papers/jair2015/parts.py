"""Parts that the figures of [J15] share: the citation, curves of learners, and claims and plots about both data sets,
web search and movies.

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

from collections.abc import Callable

from heedful.papers.figure import Check, Claim, Figure, Line, Panel
from heedful.papers.panels import MOVIES, STRICT, WEB, curve, movies, slow_movies, slow_web, web

PAPER = "Shivaswamy & Joachims, Coactive Learning, Journal of Artificial Intelligence Research 53, 2015"
BOTH = (WEB, MOVIES)
WHERE = {WEB: "Web", MOVIES: "Movies"}

PERCEPTRON = curve("perceptron", "perceptron", STRICT)
CONVEX = curve("convex", "convex", STRICT)
SECOND = curve("second-order", "second-order", STRICT)


def figure(name: str, title: str, panels: tuple[Panel, ...], claims: tuple[Claim, ...], note: str = "") -> Figure:
    """Return a figure of [J15]: `name` is the part of its id after the slash, such as "fig2"; `title`, `panels`
    (plots), `claims` and `note` are the fields of `Figure`.
    """
    return Figure(f"jair2015/{name}", PAPER, title, panels, claims, note)


def both(says: str, check: Callable[[str], Check]) -> tuple[Claim, Claim]:
    """Return a claim about web search and the same claim about movies: `says` is its text, and `check` takes the key of
    a plot and returns the function that judges the claim there.
    """
    on_web, on_movies = (Claim(f"{WHERE[panel]}: {says}", (panel,), check(panel)) for panel in BOTH)
    return on_web, on_movies


def versus(a: Line, b: Line, web_user: str, movie_user: str, slow: bool = False) -> tuple[Panel, Panel]:
    """Return two plots, web search and movies, that compare the learners of the curves `a` and `b`, taught by the
    simulated people `web_user` and `movie_user`; with `slow`, in shorter runs for a slow learner.
    """
    on_web, on_movies = (tuple(x._replace(user=user) for x in (a, b)) for user in (web_user, movie_user))
    if slow:
        return slow_web(*on_web), slow_movies(*on_movies)
    return web(*on_web), movies(*on_movies)
