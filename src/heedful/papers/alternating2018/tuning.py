"""Hyperparameters of the learners of [A18]: the grids that were searched, the values chosen from them, and those of the
paper.

[A18]: Dadkhahi & Negahban, *Alternating Linear Bandits for Online Matrix-Factorization Recommendation*, 2018.
"""

from __future__ import annotations

from itertools import product

from heedful.papers.panels import BERNOULLI, BOOKS, GAUSSIAN, JESTER, MOVIES_100K, UNIFORM

ALB, PTS, NMF = "ALB", "PTS", "NMF-Bandit"
HALF = "PTS, fewer resamplings (ours)"
"""PTS that resamples its particles only if the effective number is below half of them; the paper does at every step."""
PUBLISHED = {
    GAUSSIAN: (0.01, 0.5),
    UNIFORM: (0.001, 0.5),
    BERNOULLI: (1.0, 0.4),
    BOOKS: (0.1, 0.1),
    MOVIES_100K: (1.0, 0.4),
    JESTER: (1.0, 0.9),
}
"""For each data set the ridge penalty lambda and the standard deviation sigma of the noise that the paper chose for
ALB; it does not give the hyperparameters of the other methods."""
GRIDS = {
    ALB: tuple(
        f"alb:penalty={penalty:g},sigma={sigma:g}"
        for penalty, sigma in product((1e-4, 0.001, 0.01, 0.1, 1, 10, 100), (0.004, 0.02, 0.1, 0.4, 0.5, 0.9, 2, 5, 20))
    ),
    PTS: tuple(
        f"pts:n_particles={particles},sigma={sigma:g}"
        for particles, sigma in product((3, 10, 30), (0.02, 0.1, 0.25, 0.5, 1, 2, 4, 8))
    ),
    HALF: tuple(
        f"pts:resample=0.5,n_particles={particles},sigma={sigma:g}"
        for particles, sigma in product((3, 10, 30), (0.02, 0.1, 0.25, 0.5, 1, 2, 4, 8))
    ),
    NMF: tuple(
        f"nmf-bandit:theta={theta:g},explored={size}" for theta, size in product((0.001, 0.01, 0.1, 1), (1, 5, 20, 50))
    ),
}
TUNED = {
    (GAUSSIAN, False): (
        "penalty=0.0001,sigma=0.4",
        "n_particles=10,sigma=1",
        "resample=0.5,n_particles=30,sigma=0.5",
        "theta=0.1,explored=20",
    ),
    (UNIFORM, False): (
        "penalty=0.01,sigma=0.5",
        "n_particles=30,sigma=0.02",
        "resample=0.5,n_particles=3,sigma=0.1",
        "theta=0.001,explored=50",
    ),
    (BERNOULLI, False): (
        "penalty=10,sigma=5",
        "n_particles=30,sigma=0.02",
        "resample=0.5,n_particles=10,sigma=0.02",
        "theta=0.001,explored=50",
    ),
    (BOOKS, False): (
        "penalty=0.0001,sigma=0.02",
        "n_particles=3,sigma=1",
        "resample=0.5,n_particles=3,sigma=2",
        "theta=1,explored=1",
    ),
    (MOVIES_100K, False): (
        "penalty=0.1,sigma=0.004",
        "n_particles=10,sigma=0.25",
        "resample=0.5,n_particles=10,sigma=0.25",
        "theta=0.01,explored=5",
    ),
    (JESTER, False): (
        "penalty=1,sigma=0.9",
        "n_particles=3,sigma=0.25",
        "resample=0.5,n_particles=3,sigma=1",
        "theta=0.001,explored=5",
    ),
    (BOOKS, True): (
        "penalty=10,sigma=2",
        "n_particles=30,sigma=4",
        "resample=0.5,n_particles=30,sigma=1",
        "theta=0.1,explored=1",
    ),
    (MOVIES_100K, True): (
        "penalty=10,sigma=0.1",
        "n_particles=10,sigma=2",
        "resample=0.5,n_particles=10,sigma=2",
        "theta=0.001,explored=20",
    ),
    (JESTER, True): (
        "penalty=10,sigma=20",
        "n_particles=10,sigma=2",
        "resample=0.5,n_particles=3,sigma=4",
        "theta=0.001,explored=20",
    ),
}
"""The best cells of the grids for ALB, PTS, PTS with fewer resamplings and NMF-Bandit, as `heedful figure
alternating2018/grid` finds them: by world, and by whether an item is shown at most once to a person."""
SPECS = {ALB: "alb", PTS: "pts", HALF: "pts", NMF: "nmf-bandit"}
"""the name of the learner of each method"""


def tuned_spec(world: str, method: str, once: bool = False) -> str:
    """Return the learner for a `method`, such as "ALB", as text NAME:FIELD=VALUE,..., with the hyperparameters that the
    grid search chose for the data set with the key `world`.

    With `once`, those for the figures in which an item is shown at most once to a person.
    """
    return f"{SPECS[method]}:{TUNED[world, once][list(SPECS).index(method)]}"
