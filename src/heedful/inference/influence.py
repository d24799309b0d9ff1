"""How few votes decide the first place: the least number that, left out, put another model first.

Leaving out one vote of cell k moves the parameters by -H^-1 s_k to first order, where s_k is the gradient of its
log-likelihood and H the negated Hessian (Hampel, JASA 1974; Broderick, Giordano and Meager, arXiv 2011.14999). For each
number of votes the set with the greatest influence on the lead is left out, the scores are fitted again, and the set is
chosen anew from the influences there until the lead no longer falls; the least number is found by bisection. Every
answer is thus checked by a fit.

On boards of up to EXACT models the answer is then compared with all sets that are smaller, as far as there are at most
MOST_SETS of them that could do it; `exact` says whether that was so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.bradley_terry import Cells, Fit, fit, gradient, solve
from heedful.inference.tie_models import LEAST_WIDTH, terms
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

EXACT = 10
"""The greatest number of models of a board on which smaller sets are searched."""
MOST_SETS = 1_000
"""The greatest number of sets of votes that are tried by a fit."""
MOST_LOOKS = 20_000
"""The greatest number of sets, and beginnings of sets, that are looked at."""
CHALLENGERS = 3
"""On boards of more than EXACT models, so many models after the first are tried as its successor."""
LEVEL = 1e-6
"""Scores nearer than this, in logits, are equal: they differ by what the fit leaves."""
NEAR = 100
"""The least number is found to this fraction of it: a hundredth, so exactly up to 100 votes."""
SLACK = 1.5
"""A set is tried if SLACK times its influence would do: influences of single votes change as others are left out."""
FAR = 1.0
"""Leaving out votes that moves a parameter by more than this, in logits, is not of first order."""


class Influence(NamedTuple):
    """The least number of `votes` that, left out, put `second` before `first`; None if no set was found.

    `left_out` lists them by kind: (first model, second model, outcome, number of votes), the outcome being that of the
    first model, 2 won, 1 tie, 0 lost. `share` is their share of all votes. `exact`: all smaller sets that could do it
    were tried. If the two are level, as models with equal scores are, `votes` is 0.
    """

    first: int
    second: int
    votes: int | None
    share: float
    left_out: tuple[tuple[int, int, int, int], ...]
    exact: bool


class _Board(NamedTuple):
    n: int
    cells: Cells
    found: Fit
    leader: int


def find_influence(cells: Cells, found: Fit) -> Influence | None:
    """Return how few votes put another model first; None with one model.

    `found` is the fit of the scores of n models to `cells`. The model of ties and the standard deviation of scores are
    kept; everything else is fitted again.
    """
    n = found.scores.size
    if n < 2:
        return None
    order = (-found.scores).argsort(kind="stable")
    if found.scores[order[0]] - found.scores[order[1]] < LEVEL:
        return Influence(int(order[0]), int(order[1]), 0, 0.0, (), True)
    board = _Board(n, cells, found, int(order[0]))
    others = order[1:] if n <= EXACT else order[1 : 1 + CHALLENGERS]
    best: tuple[int, int, Array] | None = None
    for challenger in others.tolist():
        most = None if best is None else best[0] - 1
        got = _fewest(board, challenger, most)
        if got is not None:
            best = (got[0], challenger, got[1])
    exact = False
    if n <= EXACT:
        smaller, exact = _search(board, best[0] if best else int(cells.weight.sum()), others)
        best = smaller or best
    total = float(cells.weight.sum())
    if best is None:
        return Influence(board.leader, int(order[1]), None, 1.0, (), exact)
    count, challenger, taken = best
    kinds = [
        (int(cells.first[k]), int(cells.second[k]), int(cells.outcome[k]), int(taken[k]))
        for k in np.flatnonzero(taken)[np.argsort(-taken[taken > 0], kind="stable")].tolist()
    ]
    return Influence(board.leader, challenger, count, count / total, _merged(kinds), exact)


def _merged(kinds: list[tuple[int, int, int, int]]) -> tuple[tuple[int, int, int, int], ...]:
    """Return kinds of votes with the two ways of showing a pair taken together: the winner, or the lower number, first.

    Votes with other covariates are the same kind.
    """
    counts: dict[tuple[int, int, int], int] = {}
    for a, b, outcome, number in kinds:
        if outcome == 0 or (outcome == 1 and a > b):
            a, b, outcome = b, a, 2 - outcome
        counts[a, b, outcome] = counts.get((a, b, outcome), 0) + number
    return tuple((*kind, number) for kind, number in sorted(counts.items(), key=lambda each: -each[1]))


def _refit(board: _Board, taken: Array, start: Fit) -> Fit:
    left = board.cells._replace(weight=board.cells.weight - taken)
    again = fit(board.n, left, board.found.model, sd=board.found.sd, start=start)
    return again


def _moved(board: _Board, taken: Array) -> Fit:
    """Return the fit of all votes, less to first order those `taken` of each cell (K,), where that moves it little.

    Every fit begins from that of all votes: without almost all of them the tie parameter can run away to where it has
    no slope, and a fit that begins there stays there.
    """
    at, n, whole, few = board.found, board.n, board.cells, np.flatnonzero(taken)
    cells = Cells(whole.first[few], whole.second[few], whole.outcome[few], taken[few], whole.z[few])
    eta = at.scores[cells.first] - at.scores[cells.second] + cells.z @ at.gamma
    got = terms(at.model, eta, at.tie, cells.outcome)
    step = -solve(at.H, gradient(n, cells, cells.weight * got.eta, cells.weight * got.tie, at.tied))
    tie = float(at.tie + step[n]) if at.tied else at.tie
    if not np.abs(step).max() < FAR or (at.model == "threshold" and tie <= LEAST_WIDTH):
        return at
    return at._replace(scores=at.scores + step[:n], tie=tie, gamma=at.gamma + step[n + at.tied :])


def _lead(board: _Board, at: Fit, challenger: int) -> float:
    return float(at.scores[challenger] - at.scores[board.leader])


def _influences(board: _Board, at: Fit, challenger: int) -> Array:
    """Return by how much leaving out one vote of each cell moves the challenger's score beyond the leader's (K,)."""
    cells, n = board.cells, board.n
    eta = at.scores[cells.first] - at.scores[cells.second] + cells.z @ at.gamma
    got = terms(at.model, eta, at.tie, cells.outcome)
    e = np.zeros(at.H.shape[0])
    e[challenger], e[board.leader] = 1.0, -1.0
    u = solve(at.H, e)
    along = u[cells.first] - u[cells.second] + cells.z @ u[n + at.tied :]
    out: Array = -along * got.eta - (u[n] * got.tie if at.tied else 0.0)
    return out


def _greatest(gain: Array, weight: Array, count: int) -> Ints:
    """Return the cells with the greatest `gain` (K,), greatest first: as many as have `count` votes, perhaps more."""
    cost = np.where(weight > 0.0, -gain, np.inf)
    if count < cost.size:
        few = np.flatnonzero(cost <= np.partition(cost, count - 1)[count - 1])
    else:
        few = np.arange(cost.size)
    return few[cost[few].argsort(kind="stable")]


def _top(weight: Array, order: Ints, count: int) -> Array:
    """Return how many votes of each cell (K,) are among the first `count`, if cells are emptied in this `order`."""
    taken = np.zeros(weight.size)
    filled = np.minimum(np.maximum(count - (np.cumsum(weight[order]) - weight[order]), 0.0), weight[order])
    taken[order] = filled
    return taken


def _fewest(board: _Board, challenger: int, most: int | None) -> tuple[int, Array] | None:
    """Return (number, votes of each cell (K,)) of the fewest votes found that put the challenger first; None if there
    are none, or more than `most`."""
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
        taken = _top(weight, _greatest(gain, weight, count), count)
        lead = -np.inf
        for _ in range(6):
            at = _refit(board, taken, _moved(board, taken))
            now = _lead(board, at, challenger)
            if now > -LEVEL:
                return True, taken
            if now <= lead + 1e-12:
                break
            lead = now
            new = _top(weight, _greatest(_influences(board, at, challenger), weight, count), count)
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
    if most is not None and guess > SLACK * limit:  # by far more than for another challenger
        return None
    guess = min(max(guess, 1), limit)
    low, high, best = 0, limit + 1, None
    count, step = guess, max(1, guess // 16)
    for _ in range(60):
        if high - low <= max(1, high // NEAR):
            break
        done, taken = passes(count)
        if done:
            high, best = count, (count, taken)
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


def _search(board: _Board, bound: int, challengers: Ints) -> tuple[tuple[int, int, Array] | None, bool]:
    """Look for fewer than `bound` votes that put another model first, among all sets whose influence comes near.

    Return ((number, challenger, votes of each cell (K,)) or None, whether all such sets were tried).
    """
    weight = board.cells.weight
    tried = looked = 0
    plans = []
    for challenger in challengers.tolist():
        gain = _influences(board, board.found, challenger)
        order = np.flatnonzero(gain > 0.0)
        order = order[(-gain[order]).argsort(kind="stable")]
        plans.append((challenger, gain, order, -_lead(board, board.found, challenger)))
    for size in range(1, bound):
        for challenger, gain, order, need in plans:
            reach = SLACK * gain[order]
            # the greatest sum of what follows, votes of a cell included as often as there are
            if reach.size == 0 or reach[0] * size < need:
                continue
            stack: list[tuple[int, int, float, tuple[tuple[int, int], ...]]] = [(0, size, need, ())]
            while stack:
                at, left, missing, chosen = stack.pop()
                looked += 1
                if looked > MOST_LOOKS:
                    return None, False
                if left == 0 or at == order.size:
                    if left:
                        continue
                    tried += 1
                    if tried > MOST_SETS:
                        return None, False
                    taken = np.zeros(weight.size)
                    for k, number in chosen:
                        taken[k] = number
                    if _lead(board, _refit(board, taken, board.found), challenger) >= 0.0:
                        return (size, challenger, taken), True
                    continue
                if reach[at] * left < missing:
                    continue
                k = int(order[at])
                for number in range(int(min(left, weight[k])) + 1):
                    more = ((k, number),) if number else ()
                    stack.append((at + 1, left - number, missing - number * reach[at], chosen + more))
    return None, True
