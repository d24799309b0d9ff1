"""Models of votes with ties: the probability that the first model wins, ties or loses, by the difference of scores.

All have one parameter for ties, t, next to the difference eta in logits, and are the Bradley-Terry model without ties:

- threshold (Rao and Kupper, JASA 1967): two answers tie if they seem closer than t; P(win) = s(eta - t), P(loss) =
  s(-eta - t), with the logistic function s;
- odds (Davidson, JASA 1970): P(win) : P(tie) : P(loss) = exp(eta / 2) : exp(t) : exp(-eta / 2);
- constant: a vote is a tie with probability s(t), whoever meets;
- half: a tie is half a win for both; it has no probability of ties, and t stays 0.

In the first, eta is the logit of a win if a choice has to be made; in the next two, that of a win among the votes that
are no ties.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]
TieModel = Literal["threshold", "odds", "constant", "half"]

TIE_MODELS: tuple[TieModel, ...] = ("threshold", "odds", "constant")
"""The models between which likelihood decides."""
LEAST_WIDTH = 1e-6
"""The least threshold of `threshold`, in logits."""
_AT_ONCE = 16_384
"""The number of votes whose derivatives are computed at a time, so that what comes up on the way stays in the cache."""


class Terms(NamedTuple):
    """Log-likelihood of K votes and its derivatives with respect to the difference eta and the tie parameter t, each
    (K,).

    `log` log P(outcome); `eta`, `tie` its first derivatives; `eta_eta`, `eta_tie`, `tie_tie` its second derivatives,
    negated.
    """

    log: Array
    eta: Array
    tie: Array
    eta_eta: Array
    eta_tie: Array
    tie_tie: Array


def initial_tie(model: TieModel, share: float) -> float:
    """Return the tie parameter under which two equal models tie with probability `share`, between 0 and 1."""
    if model == "threshold":
        return float(np.log((1.0 + share) / (1.0 - share)))
    if model == "odds":
        return float(np.log(2.0 * share / (1.0 - share)))
    return float(np.log(share / (1.0 - share))) if model == "constant" else 0.0


def terms(model: TieModel, eta: Array, tie: float, outcome: Ints) -> Terms:
    """Return the log-likelihood of votes and its derivatives.

    `eta` (K,): differences in logits of the two models; `tie`: the parameter of ties; `outcome` (K,): 2 if the first
    won, 1 for a tie, 0 if the second won.
    """
    out = Terms(*np.empty((len(Terms._fields), eta.size)))
    for low in range(0, eta.size, _AT_ONCE):
        part = slice(low, low + _AT_ONCE)
        for whole, values in zip(out, _terms(model, eta[part], tie, outcome[part])):
            whole[part] = values
    return out


def _terms(model: TieModel, eta: Array, tie: float, outcome: Ints) -> Terms:
    tied = outcome == 1
    sign = outcome - 1.0
    none = np.zeros(eta.size)
    if model == "half":
        p, rest, log = _logistic(eta)
        lost = 1.0 - 0.5 * outcome
        return Terms(log - lost * eta, rest - lost, none, p * rest, none, none)
    if model == "constant":
        share, other, log_share = (float(each[0]) for each in _logistic(np.array([tie])))
        p, rest, log = _logistic(sign * eta)
        log = log_share + np.where(tied, 0.0, log - tie)
        return Terms(log, sign * rest, tied - share, np.where(tied, 0.0, p * rest), none, none + share * other)
    if model == "odds":
        high = np.maximum(0.5 * np.abs(eta), tie)
        win, equal, loss = np.exp(0.5 * eta - high), np.exp(tie - high), np.exp(-0.5 * eta - high)
        total = win + equal + loss
        win, equal, loss = win / total, equal / total, loss / total
        mean = 0.5 * (win - loss)
        log = 0.5 * sign * eta + tie * tied - high - np.log(total)
        curve = 0.25 * (win + loss) - mean * mean
        return Terms(log, 0.5 * sign - mean, tied - equal, curve, -mean * equal, equal * (1.0 - equal))
    p, rest, log = _logistic(sign * eta - tie)  # p: P(outcome) where it is no tie
    curve = p * rest
    got = Terms(log, sign * rest, -rest, curve, -sign * curve, curve.copy())
    at = np.flatnonzero(tied)
    not_up, up, log_not_up = _logistic(tie - eta[at])  # up: P(win)
    not_down, down, log_not_down = _logistic(tie + eta[at])  # down: P(loss)
    up_curve, down_curve = up * not_up, down * not_down
    wide = min(max(2.0 * tie, 2.0 * LEAST_WIDTH), 700.0)
    got.log[at] = log_not_up + log_not_down + np.log(-np.expm1(-wide))
    got.eta[at] = down - up
    got.tie[at] = down + up + 2.0 / np.expm1(wide)
    got.eta_eta[at] = down_curve + up_curve
    got.eta_tie[at] = down_curve - up_curve
    got.tie_tie[at] = down_curve + up_curve + 4.0 * np.exp(-wide) / np.expm1(-wide) ** 2
    return got


def probabilities(model: TieModel, eta: Array, tie: float) -> tuple[Array, Array, Array]:
    """Return P(the first wins), P(tie), P(the second wins), each in the shape of `eta`; of "half", P(tie) is 0."""
    flat = eta.ravel()
    if model == "half":
        win, loss, _ = _logistic(eta)
        return win, np.zeros(eta.shape), loss
    win, equal, loss = (
        np.exp(terms(model, flat, tie, np.full(flat.size, k)).log).reshape(eta.shape) for k in (2, 1, 0)
    )
    return win, equal, loss


def _logistic(x: Array) -> tuple[Array, Array, Array]:
    """Return the logistic function s(x), 1 - s(x), and log s(x)."""
    small = np.exp(-np.abs(x))
    total = 1.0 + small
    high, low = 1.0 / total, small / total
    up = x > 0.0
    return np.where(up, high, low), np.where(up, low, high), np.minimum(x, 0.0) - np.log(total)
