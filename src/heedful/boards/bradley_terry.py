"""Bradley-Terry scores of many models from many votes: the most probable ones.

Votes are counted by cell (first model, second model, outcome), so a million votes about 100 models are some 30,000
cells. The scores lambda maximise sum log P(outcome | lambda_a - lambda_b + z' gamma, t) - |lambda|^2 / (2 s^2) -
|gamma|^2 / (2 c^2), where t is the tie parameter (`tie_models`), z are covariates, and the standard deviation s of
scores is the most probable one under the prior that `rank` has too, found by EM; c is TYPICAL_SD, so that coefficients
stay finite where every vote goes to the longer answer. How sure scores are is the work of `score_posterior`.

Ties alone do not tell how wide "equal" is: their likelihood grows for ever with t. Then t is the one with which equal
models tie with probability (p + 1/2) / (p + 1), for p votes (Jeffreys' prior of a share).

Up to MOST_DENSE models matrices are dense; beyond, they are sparse.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.boards.tie_models import LEAST_WIDTH, Terms, TieModel, initial_tie, terms
from heedful.inference.gp.hyperparameters import LOG_SD, MEDIAN
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

MOST_DENSE = 2_000
"""The greatest number of models for which covariances are computed; beyond, draws take their place."""
TYPICAL_SD = MEDIAN * math.sqrt(8.0 / math.pi)
"""Median of the log-normal prior of s, in logits: that of utilities, of which a unit is as many logits where matches
are nearly equal. The logarithm of s has the standard deviation LOG_SD a priori. Coefficients of covariates have this
standard deviation."""
LEAST_SD, MOST_SD = 0.02, 200.0
"""The bounds of the standard deviation s of scores, in logits."""
LAST_STEP = 1e-7
"""A fit ends with a step of Newton's that is smaller than this in all parameters; what is left is about its square."""


class Cells(NamedTuple):
    """K kinds of votes: `first` and `second` are numbers of models, `outcome` 2, 1 or 0 (the first won, tie, lost),
    `weight` how many votes, and `z` (K, q) covariates.
    """

    first: Ints
    second: Ints
    outcome: Ints
    weight: Array
    z: Array


class Fit(NamedTuple):
    """Fitted scores of n models: `scores` (n,) in logits, the parameter `tie`, the coefficients `gamma` (q,), the
    standard deviation `sd` of scores, the log-likelihood `log`, and the negated Hessian `H` with the prior.

    Parameters are in the order scores, tie, gamma; `H` has no row for `tie` if the model of ties has none.
    """

    model: TieModel
    scores: Array
    tie: float
    gamma: Array
    sd: float
    log: float
    H: Any
    """(n + t + q) x (n + t + q), dense or sparse; t is 1 with a tie parameter and 0 without"""
    tied: bool
    """whether there is a tie parameter"""

    def parameters(self) -> Array:
        """Return scores, tie and gamma in one array (P,)."""
        return np.concatenate([self.scores, [self.tie] if self.tied else [], self.gamma])

    def prior(self) -> Array:
        """Return the precision of each parameter a priori (P,); 0 for that of ties."""
        of_scores = np.full(self.scores.size, self.sd**-2)
        return np.concatenate([of_scores, np.zeros(int(self.tied)), np.full(self.gamma.size, TYPICAL_SD**-2)])

    def differences(self, cells: Cells) -> Array:
        """Return by how much the first of the two models is ahead in each of the K cells (K,), covariates included."""
        return self.scores[cells.first] - self.scores[cells.second] + cells.z @ self.gamma

    def terms(self, cells: Cells) -> Terms:
        """Return the log-likelihood of a vote of each of the K cells, with its derivatives."""
        return terms(self.model, self.differences(cells), self.tie, cells.outcome)


def count_cells(n: int, first: Ints, second: Ints, outcome: Ints, times: Ints) -> tuple[Cells, Ints]:
    """Return the cells of p votes about n models, without covariates, and the number of the cell of each vote (p,)."""
    key = (first * n + second) * 3 + outcome
    if 3 * n * n <= max(4 * key.size, 1 << 20):
        weight = np.bincount(key, times, 3 * n * n)
        at = np.flatnonzero(weight)
        number = np.zeros(3 * n * n, np.int64)
        number[at] = np.arange(at.size)
        which, weight = number[key], weight[at]
    else:
        at, which = np.unique(key, return_inverse=True)
        weight = np.bincount(which, times, at.size)
    pair = at // 3
    return Cells(pair // n, pair % n, at % 3, weight.astype(np.float64), np.empty((at.size, 0))), which


def fit(n: int, cells: Cells, model: TieModel, *, sd: float | None = None, start: Fit | None = None) -> Fit:
    """Fit the scores of n models to votes. With `sd` the standard deviation of scores is this, not an estimate.

    `start` is a fit to begin from, of the same model and number of covariates. Of ties alone the tie parameter is not
    estimated.
    """
    ties = cells.outcome == 1
    tied = model != "half" and bool(ties.any()) and not ties.all()
    model = model if ties.any() else "half"
    q = cells.z.shape[1]
    votes = float(cells.weight.sum())
    if start is None:
        share = min(max(float(cells.weight[ties].sum()) / votes, 1e-4), 0.99)
        start = Fit(model, np.zeros(n), initial_tie(model, share), np.zeros(q), sd or TYPICAL_SD, 0.0, None, tied)
    now = start._replace(model=model, tied=tied, sd=sd or start.sd)
    if ties.all():
        now = now._replace(tie=initial_tie(model, (votes + 0.5) / (votes + 1.0)))
    if sd is not None:
        return _newton(n, cells, now)
    for _ in range(60):
        now = _newton(n, cells, now)
        change = now.sd
        now = now._replace(sd=_likeliest_sd(n, _squares(n, now)))
        if abs(now.sd / change - 1.0) < 1e-3:
            break
    return _newton(n, cells, now)


def fit_again(n: int, cells: Cells, start: Fit) -> Fit:
    """Fit scores and the coefficients of covariates to other votes, from the fit `start`, whose standard deviation of
    scores, and model of ties with its parameter, are kept. H has no row for that."""
    return _newton(n, cells, start._replace(tied=False))


def _squares(n: int, now: Fit) -> float:
    """Return the sum of the squared scores, expected under their posterior given the fit."""
    # beyond 300 models little is lost by the reciprocals where every model met many others
    variances = np.linalg.inv(now.H).diagonal() if n <= min(300, MOST_DENSE) else 1.0 / now.H.diagonal()
    return float(now.scores @ now.scores + variances[:n].sum())


def log_prior(sd: float) -> float:
    """Return the log density of log s at s = `sd`, up to a constant."""
    return -0.5 * (math.log(sd / TYPICAL_SD) / LOG_SD) ** 2


def _likeliest_sd(n: int, squares: float) -> float:
    """Return the s at which the density of n scores with this sum of squares, times the prior, is greatest."""
    # the derivative by log s falls from plus to minus infinity
    low, high = math.log(LEAST_SD), math.log(MOST_SD)
    for _ in range(50):
        at = 0.5 * (low + high)
        if squares * math.exp(-2.0 * at) - n - (at - math.log(TYPICAL_SD)) / LOG_SD**2 > 0.0:
            low = at
        else:
            high = at
    return math.exp(0.5 * (low + high))


def _newton(n: int, cells: Cells, now: Fit) -> Fit:
    """Return the fit for the standard deviation of scores in `now`, by Newton's steps, halved where they overshoot."""
    tied = now.tied
    prior = now.prior()

    def objective(at: Fit) -> tuple[float, float, Terms]:
        got = at.terms(cells)
        log = float(cells.weight @ got.log)
        return log - 0.5 * float(prior @ at.parameters() ** 2), log, got

    def hessian(got: Terms) -> Any:
        w = cells.weight
        return add_prior(assemble(n, cells, w * got.eta_eta, w * got.eta_tie, w * got.tie_tie, tied), prior)

    value, log, got = objective(now)
    for _ in range(100):
        H = hessian(got)
        g = gradient(n, cells, cells.weight * got.eta, cells.weight * got.tie, tied) - prior * now.parameters()
        step = solve(H, g)
        size = float(np.abs(step).max(initial=0.0))
        scale = 1.0
        for _ in range(40):
            tie = now.tie + scale * step[n] if tied else now.tie
            new = now._replace(
                scores=now.scores + scale * step[:n], tie=float(tie), gamma=now.gamma + scale * step[n + tied :]
            )
            if now.model != "threshold" or not tied or tie > LEAST_WIDTH:
                if size < LAST_STEP:  # so small a step is the last: H and the likelihood are the same after it
                    return new._replace(H=H, log=log)
                better, likely, ahead = objective(new)
                if better >= value - 1e-9 * (1.0 + abs(value)):
                    break
            scale *= 0.5
        else:
            return now._replace(H=H, log=log)
        now, value, log, got = new, better, likely, ahead
        if scale * size < LAST_STEP:
            break
    return now._replace(H=hessian(got), log=log)


# ---------------------------------------------------------------------------- matrices


def assemble(n: int, cells: Cells, ee: Array, et: Array, tt: Array, tied: bool) -> Any:
    """Return the sum over cells of x x' ee + (x e' + e x') et + e e' tt, where x is the cell's row of the design and e
    the unit vector of the tie parameter.

    `ee`, `et`, `tt` (K,). The matrix is dense up to MOST_DENSE models, else sparse (CSR).
    """
    a, b, z = cells.first, cells.second, cells.z
    q = z.shape[1]
    size = n + tied + q
    border = np.zeros((size, tied + q))
    if tied:
        border[:n, 0] = np.bincount(a, et, n) - np.bincount(b, et, n)
        border[n, 0] = tt.sum()
        border[n + 1 :, 0] = z.T @ et
    for j in range(q):
        part = ee * z[:, j]
        border[:n, tied + j] = np.bincount(a, part, n) - np.bincount(b, part, n)
        if tied:
            border[n, tied + j] = et @ z[:, j]
        border[n + tied :, tied + j] = part @ z
    own = np.bincount(a, ee, n) + np.bincount(b, ee, n)
    if n <= MOST_DENSE:
        across = np.bincount(a * n + b, ee, n * n).reshape(n, n)
        out = np.zeros((size, size))
        out[:n, :n] = -(across + across.T)
        out[np.arange(n), np.arange(n)] += own
        out[:, n:] = border
        out[n:, :n] = border[:n].T
        return out
    from scipy.sparse import bmat, coo_matrix, diags

    across = coo_matrix((ee, (a, b)), (n, n)).tocsr()
    inner = diags(own) - across - across.T
    if not tied and not q:
        return inner.tocsr()
    return bmat([[inner, border[:n]], [border[:n].T, border[n:]]], format="csr")


def add_prior(H: Any, prior: Array) -> Any:
    """Return H + diag(`prior`), in place if H is dense."""
    if isinstance(H, np.ndarray):
        H[np.diag_indices_from(H)] += prior
        return H
    from scipy.sparse import diags

    return (H + diags(prior)).tocsr()


def gradient(n: int, cells: Cells, eta: Array, tie: Array, tied: bool) -> Array:
    """Return the sum over cells of x eta + e tie, as in `assemble`."""
    parts = [np.bincount(cells.first, eta, n) - np.bincount(cells.second, eta, n)]
    if tied:
        parts.append(np.array([tie.sum()]))
    return np.concatenate([*parts, cells.z.T @ eta])


def solve(H: Any, B: Array) -> Array:
    """Return H^-1 B for a dense or sparse positive definite H; B is a vector or a matrix."""
    if isinstance(H, np.ndarray):
        from scipy.linalg import cho_factor, cho_solve

        try:
            return cho_solve(cho_factor(H, check_finite=False), B, check_finite=False)  # type: ignore[no-any-return]
        except np.linalg.LinAlgError:
            return np.linalg.lstsq(H, B, rcond=None)[0].astype(np.float64)
    return conjugate_gradients(H, B)


def conjugate_gradients(H: Any, B: Array, tolerance: float = 1e-8) -> Array:
    """Solve H x = b for all columns b of B at once, with the diagonal of H as preconditioner."""
    b = B.reshape(len(B), -1)
    scale = 1.0 / np.maximum(H.diagonal(), 1e-300)[:, None]
    x = np.zeros_like(b)
    r = b.copy()
    z = scale * r
    p, rz = z.copy(), (r * z).sum(axis=0)
    goal = tolerance * tolerance * np.maximum(rz, 1e-300)
    for _ in range(2_000):
        if (rz <= goal).all():
            break
        Hp = H @ p
        step = rz / np.maximum((p * Hp).sum(axis=0), 1e-300)
        x += step * p
        r -= step * Hp
        z = scale * r
        rz, last = (r * z).sum(axis=0), rz
        p = z + (rz / np.maximum(last, 1e-300)) * p
    return x.reshape(B.shape)
