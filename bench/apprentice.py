"""How often the interval of an apprentice's agreement ever misses, and after how many decisions it asks to be promoted.

`python bench/apprentice.py` writes bench/results/apprentice.json. Two parts:

* Coverage: 1,000 runs of 3,000 decisions, alpha = .05, looked at after each, with recent decisions that begin as in
  `heedful.loop.apprentice`. A decision's agreement is the share of 1 or of 10 pairs, each in the caller's order with a
  probability that rises, falls, stays, jumps down, or depends on the agreement so far. A run misses if the average of
  these probabilities over recent decisions is ever outside the interval. Next to it, in 50 runs, the same for
  `Betting`, which is for a fixed mean.
* Learning: a loop's model, `posterior` or `perceptron`, imitates a ranker that scores 10 candidates of 8 features by
  w . x plus noise, of which 5 are shown; 20 runs each. After how many of the first 1,000 decisions its agreement is
  found to be at least 0.8, and what it is over the last 500 of 1,500.

`--quick` takes a tenth of the runs and writes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful.evaluation.confidence import Betting, Drifting
from heedful.learners.registry import make_learner
from heedful.loop.apprentice import ALPHA, WINDOW, Tally, agreement_of
from heedful.loop.interactions.coactive.model import Model
from heedful.loop.model import Context
from heedful.loop.records import DecisionRecord
from heedful.spaces.ranking import Ranking, WithBaseScore

DECISIONS = 3_000
EXPECTED: dict[str, Callable[[float, Any], Any]] = {
    "rises from .5 to .95": lambda t, mean: 0.5 + 0.45 * t,
    "falls from .95 to .5": lambda t, mean: 0.95 - 0.45 * t,
    "stays at .8": lambda t, mean: 0.8 + 0.0 * mean,
    "stays at .99": lambda t, mean: 0.99 + 0.0 * mean,
    "jumps from .9 to .3": lambda t, mean: (0.9 if t < 0.5 else 0.3) + 0.0 * mean,
    "against the mean so far": lambda t, mean: np.where(mean > 0.7, 0.4, 0.95),
}
"""How the probability of agreement changes with time t, from 0 to 1, and the mean so far (runs,)."""


def coverage(how: str, pairs: int, runs: int, fixed: bool = False) -> float:
    """The share of runs in which the interval ever misses; with `fixed`, of a sequence for a fixed mean."""
    rng, missed = np.random.default_rng([len(how), pairs]), np.zeros(runs, bool)
    total = np.zeros(runs)
    windows: dict[int, list[Any]] = {}  # beginning -> [sequence, its state, sum of what is expected, decisions]
    for n in range(1, DECISIONS + 1):
        if (n - 1) % WINDOW == 0:
            j = (n - 1) // WINDOW
            alpha = ALPHA / ((j + 1) * (j + 2))
            sequence = Betting(alpha, 201) if fixed else Drifting(alpha)
            windows[j] = [sequence, sequence.init((runs,)), np.zeros(runs), 0]
        mu = EXPECTED[how]((n - 1) / DECISIONS, total / max(n - 1, 1)) + np.zeros(runs)
        x = rng.binomial(pairs, mu) / pairs
        total += x
        for window in windows.values():
            window[1], window[2], window[3] = window[0].update(window[1], x), window[2] + mu, window[3] + 1
        looked = max(n // WINDOW - 1, 0)
        windows.pop(looked - 1, None)
        sequence, state, expected, size = windows[looked]
        low, high = sequence.interval(state)
        missed |= (expected / size < low) | (expected / size > high)
    return float(missed.mean())


def learning(learner: str, noise: float, run: int) -> tuple[int | None, float]:
    """(decisions until it may be promoted, agreement over the last 500)."""
    rng = np.random.default_rng([run, round(100 * noise)])
    w = rng.standard_normal(8)
    model = Model(make_learner(learner, n_features=9, space=WithBaseScore(Ranking(10))), blind=True)
    shares, asked, tally = list[float](), None, Tally()
    for n in range(1, 1501):
        x = np.column_stack([rng.standard_normal((10, 8)), np.zeros(10)])
        score = x[:, :8] @ w + noise * np.linalg.norm(w) * rng.standard_normal(10)
        shown = np.argsort(-score)[:5]
        drawn = rng.permutation(10)
        ranks = np.empty(10, np.int64)
        ranks[drawn[model.order(model.view(), x[drawn])]] = 1 + np.arange(10)
        said = {"ranks": ranks[shown].tolist(), "scores": score[shown].tolist()}
        decision = DecisionRecord(shown=tuple(shown.tolist()), arm="imitated", proposal=said)
        found = agreement_of(decision, 10)
        if found is not None:
            shares.append(found[0])
            tally.take(*found)
        if asked is None and n <= 2 * WINDOW and tally.agreements()[0].low >= 0.8:
            asked = n
        model.imitate(Context(decision, x, None))
    return asked, float(np.mean(shares[-500:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs; nothing is written")
    quick = parser.parse_args().quick
    runs, found = 100 if quick else 1_000, dict[str, Any]()
    table = Table("expected agreement", "pairs", "ever missed", "by a sequence for a fixed mean")
    for how in EXPECTED:
        for pairs in (1, 10):
            of = coverage(how, pairs, runs), coverage(how, pairs, runs // 20, fixed=True)
            found[f"{how}, {pairs} pairs"] = {"missed": of[0], "missed by Betting": of[1]}
            table.add_row(how, str(pairs), f"{of[0]:.3f}", f"{of[1]:.2f}")
    Console().print(table)
    table = Table("learner", "noise", "decisions until it asks", "runs that do", "agreement at the end")
    for learner in ("posterior", "perceptron"):
        for noise in (0.0, 0.25, 0.5):
            each = [learning(learner, noise, run) for run in range(2 if quick else 20)]
            asked = [n for n, _ in each if n is not None]
            median = int(np.median(asked)) if asked else None
            at_end = round(float(np.mean([share for _, share in each])), 3)
            found[f"{learner}, noise {noise}"] = {"asked": median, "runs": len(asked), "agreement": at_end}
            table.add_row(learner, str(noise), str(median), f"{len(asked)} of {len(each)}", str(at_end))
    Console().print(table)
    if not quick:
        record("apprentice", found)


if __name__ == "__main__":
    main()
