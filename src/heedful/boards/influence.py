"""How few votes decide the first place: a number that, left out, puts another model first, as small as it is found.

Leaving out one vote of cell k moves the parameters by -H^-1 s_k to first order, where s_k is the gradient of its
log-likelihood and H the negated Hessian (Hampel, JASA 1974; Broderick, Giordano and Meager, arXiv 2011.14999). For each
number of votes the set with the greatest influence on the lead is left out, the scores are fitted again, and the set is
chosen anew from the influences there until the lead no longer falls; the least number is found by bisection. Every
answer is thus checked by a fit.

That fewer votes would not do is not proved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.boards.bradley_terry import Cells, Fit, fit_again, gradient, solve
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

CHALLENGERS = 9
"""So many models after the first are tried as its successor."""
LEVEL = 1e-6
"""Scores nearer than this, in logits, are equal: they differ by what the fit leaves."""
NEAR = 100
"""The least number is found to this fraction of it: a hundredth, so exactly up to 100 votes."""
MUCH = 1.5
"""A challenger who takes so many times the votes of another one by the first guess is not looked at."""
FAR = 1.0
"""Leaving out votes that moves a parameter by more than this, in logits, is not of first order."""


class Influence(NamedTuple):
    """The least number of `votes` found that, left out, put `second` before `first`; None if no set was found.

    `left_out` lists them by kind: (first model, second model, outcome, number of votes), the outcome being that of the
    first model, 2 won, 1 tie, 0 lost. `share` is their share of all votes. `votes` is 0 if the two are
    level: fits tell scores apart that differ by more than LEVEL.
    """

    first: int
    second: int
    votes: int | None
    share: float
    left_out: tuple[tuple[int, int, int, int], ...]


class _Board(NamedTuple):
    n: int
    cells: Cells
    found: Fit
    leader: int


def find_influence(cells: Cells, found: Fit, leader: int | None = None) -> Influence | None:
    """Return how few votes put another model first; None with one model.

    `found` is the fit of the scores of n models to `cells`, `leader` the number of the model that is first on the
    board, None for that of the fit. Without votes the scores and the coefficients of covariates are fitted again; the
    standard deviation of scores is kept, and the model of ties with its parameter.
    """
    n = found.scores.size
    if n < 2:
        return None
    order: list[int] = (-found.scores).argsort(kind="stable").tolist()
    leader = order[0] if leader is None else leader
    others = [i for i in order if i != leader]
    if found.scores[leader] - found.scores[others[0]] < LEVEL:
        return Influence(leader, others[0], 0, 0.0, ())
    board = _Board(n, cells, fit_again(n, cells, found), leader)
    best: tuple[int, Array] | None = None
    for other in others[:CHALLENGERS]:
        got = _fewest(board, other, None if best is None else int(best[1].sum()) - 1)
        best = best if got is None else (other, got)
    if best is None:
        return Influence(leader, others[0], None, 1.0, ())
    challenger, taken = best
    kinds = [
        (int(cells.first[k]), int(cells.second[k]), int(cells.outcome[k]), int(taken[k]))
        for k in np.flatnonzero(taken)[np.argsort(-taken[taken > 0], kind="stable")].tolist()
    ]
    share = float(taken.sum() / cells.weight.sum())
    return Influence(board.leader, challenger, int(taken.sum()), share, _merged(kinds))


def _merged(kinds: list[tuple[int, int, int, int]]) -> tuple[tuple[int, int, int, int], ...]:
    """Return kinds of votes with the two ways of showing a pair taken together, the winner, or the lower number,
    first."""
    counts: dict[tuple[int, int, int], int] = {}
    for a, b, outcome, number in kinds:
        if outcome == 0 or (outcome == 1 and a > b):
            a, b, outcome = b, a, 2 - outcome
        counts[a, b, outcome] = counts.get((a, b, outcome), 0) + number
    return tuple((*kind, number) for kind, number in sorted(counts.items(), key=lambda each: -each[1]))


def _refit(board: _Board, taken: Array) -> Fit:
    """Return the fit without the votes `taken` of each cell (K,), begun from that of all votes, moved to first order if
    that is not far."""
    at, n, whole, few = board.found, board.n, board.cells, np.flatnonzero(taken)
    cells = Cells(whole.first[few], whole.second[few], whole.outcome[few], taken[few], whole.z[few])
    got = at.terms(cells)
    step = -solve(at.H, gradient(n, cells, cells.weight * got.eta, cells.weight * got.tie, False))
    if np.abs(step).max() < FAR:
        at = at._replace(scores=at.scores + step[:n], gamma=at.gamma + step[n:])
    return fit_again(n, whole._replace(weight=whole.weight - taken), at)


def _lead(board: _Board, at: Fit, challenger: int) -> float:
    return float(at.scores[challenger] - at.scores[board.leader])


def _influences(board: _Board, at: Fit, challenger: int) -> Array:
    """Return by how much leaving out one vote of each cell moves the challenger's score beyond the leader's (K,)."""
    cells, n = board.cells, board.n
    got = at.terms(cells)
    e = np.zeros(at.H.shape[0])
    e[challenger], e[board.leader] = 1.0, -1.0
    u = solve(at.H, e)
    out: Array = -(u[cells.first] - u[cells.second] + cells.z @ u[n:]) * got.eta
    return out


def _greatest(gain: Array, weight: Array, count: int) -> Ints:
    """Return the cells with the greatest `gain` (K,), greatest first: as many as have `count` votes, perhaps more."""
    cost = np.where(weight > 0.0, -gain, np.inf)
    if count < cost.size:
        few = np.flatnonzero(cost <= np.partition(cost, count - 1)[count - 1])
    else:
        few = np.arange(cost.size)
    return few[cost[few].argsort(kind="stable")]


def _take(weight: Array, order: Ints, count: int) -> Array:
    """Return how many of `weight` (K,) votes of each cell are among the first `count`, if cells are emptied in this
    `order`."""
    out = np.zeros(weight.size)
    out[order] = np.clip(count - (np.cumsum(weight[order]) - weight[order]), 0.0, weight[order])
    return out


def _fewest(board: _Board, challenger: int, most: int | None) -> Array | None:
    """Return the fewest votes found that put the challenger first, of each cell (K,); None if there are none, or more
    than `most`."""
    weight = board.cells.weight
    total = int(weight.sum())
    limit = min(total - 1, most if most is not None else total)
    if limit < 1:
        return None
    gain = _influences(board, board.found, challenger)
    need = -_lead(board, board.found, challenger)
    helpful = np.flatnonzero(gain > 0.0)
    helpful = helpful[(-gain[helpful]).argsort(kind="stable")]
    sums = np.cumsum(gain[helpful] * weight[helpful])

    def passes(count: int) -> tuple[bool, Array]:
        """Try sets of `count` votes: whether one puts the challenger first, and the last one tried."""
        taken = _take(weight, _greatest(gain, weight, count), count)
        lead = -np.inf
        for _ in range(6):
            at = _refit(board, taken)
            now = _lead(board, at, challenger)
            if now > -LEVEL:
                return True, taken
            if now <= lead + 1e-12:
                break
            lead = now
            new = _take(weight, _greatest(_influences(board, at, challenger), weight, count), count)
            if (new == taken).all():
                break
            taken = new
        return False, taken

    # the first guess is linear; then the bounds are doubled and halved
    if sums.size and sums[-1] >= need:
        k = int(np.searchsorted(sums, need))
        before = float(sums[k - 1]) if k else 0.0
        guess = int(weight[helpful[:k]].sum() + np.ceil((need - before) / gain[helpful[k]]))
    else:
        guess = limit
    if most is not None and guess > MUCH * limit:
        return None
    guess = min(max(guess, 1), limit)
    low, high, best = 0, limit + 1, None
    count, step = guess, max(1, guess // 16)
    for _ in range(60):
        if high - low <= max(1, high // NEAR):
            break
        done, taken = passes(count)
        if done:
            high, best = count, taken
            count = max(low + 1, count - step)
        else:
            low = count
            count = min(high - 1, count + step)
        if low and high <= limit:
            count = (low + high) // 2
        else:
            step *= 2
        if not 0 < count < high or count <= low:
            break
    return best
