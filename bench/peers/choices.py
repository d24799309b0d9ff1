"""Choices between two of 20 items, drawn by the Bradley-Terry model: P(i over j) = 1 / (1 + exp(u_j - u_i)).

That is the model of the peers; heedful's has normal noise. Pairs are drawn at random. The log loss is the exact one
over all pairs: - sum p log q, in nats, with p the true probability and q the predicted one. heedful's `estimate` (what
`heedful rank` does) finds the scale of the utilities by itself; the peers' strength of the prior is taken from a grid.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from peers.job import Clock, Entrant, Job, Memory, answer

from heedful import Session
from heedful.data.comparisons import Comparison, tabulate
from heedful.inference.estimation import estimate
from heedful.learners.preference.preference_gp import PreferenceGP
from heedful.spaces.comparison import Choice

Array = Any
TITLE = "Choices"
STREAM = "20 items, utilities of standard deviation 1.5, one person"
ITEMS, SPREAD, SIZES = 20, 1.5, (30, 100, 300, 1000)
ROUNDS, QUICK, TUNING = 3, 1, 1.0
"""Studies in a run."""
QUALITY = "loss"
LEFT, RIGHT = np.triu_indices(ITEMS, 1)
Fit = Callable[[Array], Callable[[Array, Array], Array]]
"""(better, worse) rows of items, n x 2, to the function of two arrays of items that gives P(the first is chosen)"""


def stream(seed: int, study: int) -> tuple[Array, Array]:
    """True utilities (ITEMS,), and 1,000 choices as (better, worse)."""
    rng = np.random.default_rng([seed, study])
    u = SPREAD * rng.standard_normal(ITEMS)
    pairs = np.array([rng.choice(ITEMS, 2, replace=False) for _ in range(max(SIZES))])
    wins = rng.random(len(pairs)) < logistic(u[pairs[:, 0]] - u[pairs[:, 1]])
    return u, np.where(wins[:, None], pairs, pairs[:, ::-1])


def logistic(z: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-z))


def loss(u: Array, predicted: Array) -> float:
    """Nats a choice, over all pairs."""
    p, q = logistic(u[LEFT] - u[RIGHT]), np.clip(predicted, 1e-12, 1 - 1e-12)
    return float(-(p * np.log(q) + (1 - p) * np.log(1 - q)).mean())


def bradley_terry(u: Array) -> Callable[[Array, Array], Array]:
    return lambda a, b: logistic(u[a] - u[b])


def heedful_rank() -> Fit:
    names = [str(i) for i in range(ITEMS)]

    def fit(choices: Array) -> Any:
        told = [Comparison("", ((names[a],), (names[b],))) for a, b in choices.tolist()]
        return estimate(tabulate(told, names)).posterior.beats

    return fit


def heedful_gp(amplitude: float) -> Fit:
    def fit(choices: Array) -> Any:
        session = Session(PreferenceGP(Choice(ITEMS, equal=False), amplitude=amplitude, width=0.0))
        for pair in choices:
            session.propose((0, pair[None]))
            session.learn(0)
        return session.learner.posterior(session.state).beats

    return fit


def choix_map(alpha: float) -> Fit:
    import choix

    return lambda choices: bradley_terry(choix.opt_pairwise(ITEMS, choices.tolist(), alpha=alpha))


def choix_ilsr(alpha: float) -> Fit:
    import choix

    return lambda choices: bradley_terry(choix.ilsr_pairwise(ITEMS, choices.tolist(), alpha=alpha))


def choix_ep(alpha: float) -> Fit:
    """Its posterior is used: the logistic function of a normal variable, by MacKay's approximation."""
    import choix

    def fit(choices: Array) -> Any:
        mean, cov = choix.ep_pairwise(ITEMS, choices.tolist(), alpha=alpha, model="logit")

        def beats(a: Array, b: Array) -> Array:
            v = cov[a, a] + cov[b, b] - 2.0 * cov[a, b]
            return logistic((mean[a] - mean[b]) / np.sqrt(1.0 + np.pi * v / 8.0))

        return beats

    return fit


def regression(C: float) -> Fit:
    from sklearn.linear_model import LogisticRegression

    def fit(choices: Array) -> Any:
        X, n = np.zeros((len(choices), ITEMS)), np.arange(len(choices))
        X[n, choices[:, 0]], X[n, choices[:, 1]] = 1.0, -1.0
        sign = np.where(n % 2, -1.0, 1.0)  # it wants two classes
        return bradley_terry(LogisticRegression(C=C, fit_intercept=False).fit(X * sign[:, None], sign).coef_[0])

    return fit


def settings(name: str, *values: float) -> tuple[dict[str, Any], ...]:
    return tuple({name: value} for value in values)


ALPHAS = settings("alpha", 0.03, 0.1, 0.3, 1.0, 3.0)
ENTRANTS = {
    "heedful, estimate": Entrant("heedful", "what `heedful rank` does", heedful_rank),
    "heedful, gp": Entrant(
        "heedful", "Session, all answers one after another", heedful_gp, settings("amplitude", 0.5, 1.0, 2.0)
    ),
    "choix, opt_pairwise": Entrant("choix", "Newton-CG, MAP", choix_map, ALPHAS),
    "choix, ilsr_pairwise": Entrant(
        "choix", "spectral", choix_ilsr, settings("alpha", 0.003, 0.01, 0.03, 0.1, 0.3)
    ),
    "choix, ep_pairwise": Entrant("choix", "expectation propagation, logit", choix_ep, ALPHAS),
    "scikit-learn, LogisticRegression": Entrant(
        "scikit-learn", "Bradley-Terry: columns of +1 and -1", regression, settings("C", 0.3, 1.0, 3.0, 10.0)
    ),
    "the true probabilities": Entrant("heedful", "the least there is", lambda: None),
}  # fmt: skip
REFERENCE = "heedful, estimate"
COLUMNS = {f"loss {n}": f"log loss, {n:,} choices" for n in SIZES} | {
    f"ms {n}": f"ms a fit, {n:,}" for n in (100, 1000)
}


def measure(job: Job) -> dict[str, float]:
    """Log loss after each number of choices, and milliseconds of processor time of a fit; means of the studies."""
    memory, fit = Memory(), ENTRANTS[job.entrant].make(**job.setting)
    found: dict[str, list[float]] = {f"{what} {n}": [] for n in SIZES for what in ("loss", "ms")}
    if fit:
        fit(stream(job.seed, 10**6)[1][:50])  # what is made once
    for study in range(job.rounds):
        u, choices = stream(job.seed, study)
        for n in SIZES:
            clock = Clock()
            with clock.on():
                beats = fit(choices[:n]) if fit else bradley_terry(u)
            found[f"loss {n}"].append(loss(u, beats(LEFT, RIGHT)))
            found[f"ms {n}"].append(1e3 * clock.seconds)
    means = {name: float(np.mean(values)) for name, values in found.items()}
    fits = job.rounds * len(SIZES)
    return means | {
        "loss": float(np.mean([means[f"loss {n}"] for n in SIZES])),
        "rounds": fits, "seconds": sum(map(sum, (found[f"ms {n}"] for n in SIZES))) / 1e3, "MB": memory.grown(),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(answer(measure))
