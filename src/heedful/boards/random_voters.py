"""Find people who vote at random, or against everybody else, with a bound on how often an honest person is named.

A person's votes are summed up as A = sum eta (y - 1/2): y is 1 for a win of the model shown first, 1/2 for a tie and 0
for a loss, and eta is its lead by the scores of the board, in logits. An honest person has tastes of their own, scores
that differ from the board's by N(0, v) for each model; `tastes` estimates v. The p-value is Chernoff's bound of P(A or
less) for such a person, so it is never too small for that reason; of all people, those are named whom the procedure of
Benjamini and Hochberg (JRSS B 1995) rejects at the given rate, and whose votes do not follow the board more than chance
does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.boards.bradley_terry import Cells, Fit
from heedful.boards.tastes import taste_variance
from heedful.boards.tie_models import TieModel, probabilities
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

RATE = 0.05
"""The share of people named who are honest, at most, on average; also P(anyone is named) if all are honest."""
LEAST_PEOPLE = 20
"""With fewer people the board is too much the work of each of them to judge them by it."""
_LEVEL = 2.33
"""Standard deviations of chance beyond which votes follow the board, or go against it."""


class RandomVoter(NamedTuple):
    """A person whose `votes` do not follow the board: of those that are no ties, the share `agreed` went to the model
    with the higher score, where `expected` would be usual.

    `against` is True if they go against the board more than chance does. `p` is P(votes like these) for an honest
    person, at most.
    """

    person: str
    votes: int
    agreed: float
    expected: float
    against: bool
    p: float


class RandomVoters(NamedTuple):
    """The result of `find_random_voters`: how many people were `tested`, those `found`, fewest agreements by chance
    first, and the false-discovery rate `rate`.
    """

    tested: int
    found: tuple[RandomVoter, ...]
    rate: float
    taste: float
    """standard deviation of people's own tastes, in logits: by how much their scores differ from the board's"""


def find_random_voters(
    cells: Cells, found: Fit, people: tuple[Ints, Ints, Array], names: tuple[str, ...]
) -> RandomVoters | None:
    """Return the people whose votes do not follow the board, or None if there are fewer than LEAST_PEOPLE.

    `cells`: kinds of votes, fitted as `found`; `people`: for p votes the number of the person, that of the cell, and
    how many votes, each (p,); `names`: names of people by number.
    """
    who, rows = np.unique(people[0], return_inverse=True)
    if who.size < LEAST_PEOPLE:
        return None
    count, cell, times = int(who.size), people[1], people[2]
    eta = found.differences(cells)
    win, equal, loss = probabilities(found.model, eta, found.tie)
    mean = 0.5 * (win - loss)
    spread = 0.25 * (win + loss) - mean * mean  # variance of y
    slope = _slope(found.model, win, loss, spread)
    y = 0.5 * cells.outcome - 0.5
    votes = np.bincount(rows, times, count)
    score: Array = np.bincount(rows, times * (eta * y)[cell], count).astype(np.float64)
    expected = np.bincount(rows, times * (eta * mean)[cell], count)
    variance = np.bincount(rows, times * (eta * eta * spread)[cell], count)
    taste = taste_variance(found.scores.size, cells, found, people)
    lever = _leverage(cells, eta * slope, rows, cell, times, count, found.scores.size)
    own = taste * lever
    far = score < expected - 2.0 * np.sqrt(variance + own)
    p = np.ones(count)
    if far.any():
        number = np.cumsum(far) - 1
        of = np.flatnonzero(far[rows])
        at = cell[of]
        p[far] = _chernoff(number[rows[of]], eta[at], (win[at], equal[at], loss[at]), times[of], score[far], own[far])
    order = p.argsort(kind="stable")
    passed = np.flatnonzero(p[order] <= RATE * np.arange(1, count + 1) / count)
    named = order[: passed[-1] + 1] if passed.size else order[:0]
    chance = np.bincount(rows, times * (eta * eta * 0.25 * (win + loss))[cell], count)
    off = score / np.sqrt(np.maximum(chance, 1e-300))
    decisive = times * (cells.outcome != 1)[cell]
    with_board = np.bincount(rows, decisive * ((eta * y) > 0.0)[cell], count)
    usual = np.bincount(rows, decisive * (np.maximum(win, loss) / np.maximum(win + loss, 1e-300))[cell], count)
    decided = np.maximum(np.bincount(rows, decisive, count), 1.0)
    told = [
        RandomVoter(
            names[who[u]],
            int(votes[u]),
            float(with_board[u] / decided[u]),
            float(usual[u] / decided[u]),
            bool(off[u] < -_LEVEL),
            float(p[u]),
        )
        for u in named.tolist()
        if off[u] < _LEVEL
    ]
    return RandomVoters(count, tuple(told), RATE, float(np.sqrt(taste)))


def _slope(model: TieModel, win: Array, loss: Array, spread: Array) -> Array:
    """Return the derivative of E y in eta."""
    if model == "odds":
        return spread
    if model == "threshold":
        return 0.5 * (win * (1.0 - win) + loss * (1.0 - loss))
    return win * loss / np.maximum(win + loss, 1e-300)


def _leverage(cells: Cells, value: Array, rows: Ints, cell: Ints, times: Array, count: int, n: int) -> Array:
    """Return |sum of value x|^2 over the votes of each person; x has 1 for the first model and -1 for the second."""
    from scipy.sparse import coo_matrix

    part = times * value[cell]
    at = np.concatenate([cells.first[cell], cells.second[cell]])
    found = coo_matrix((np.concatenate([part, -part]), (np.concatenate([rows, rows]), at)), (count, n)).tocsr()
    return np.asarray(found.multiply(found).sum(axis=1)).ravel()


def _chernoff(
    who: Ints, eta: Array, chances: tuple[Array, Array, Array], times: Array, score: Array, own: Array
) -> Array:
    """Return Chernoff's bound of P(A <= `score`) for k people, min over t >= 0 of E exp(t (score - A)); `own` (k,) is
    the variance that taste adds to A."""
    win, equal, loss = chances
    t = np.zeros(score.size)
    for _ in range(60):
        up, down = np.exp(-0.5 * t[who] * eta), np.exp(0.5 * t[who] * eta)
        total = win * up + equal + loss * down
        first = 0.5 * eta * (loss * down - win * up) / total
        second = 0.25 * eta * eta * (win * up + loss * down) / total - first * first
        slope = np.bincount(who, times * first, score.size) + t * own + score
        curve = np.bincount(who, times * second, score.size) + own
        step = slope / np.maximum(curve, 1e-12)
        new = np.clip(t - np.clip(step, -2.0, 2.0), 0.0, 200.0)
        if float(np.abs(new - t).max(initial=0.0)) < 1e-6:
            break
        t = new
    total = win * np.exp(-0.5 * t[who] * eta) + equal + loss * np.exp(0.5 * t[who] * eta)
    log = np.bincount(who, times * np.log(total), score.size) + 0.5 * t * t * own + t * score
    return np.exp(np.minimum(log, 0.0))
