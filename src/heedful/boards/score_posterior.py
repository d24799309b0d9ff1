"""Posterior of Bradley-Terry scores: how sure they are, with few votes and with many, and when people differ.

Given the standard deviation s of scores, the posterior is a Gaussian. Where votes tell a difference well (the variance
of its error is at most NARROW) it is that of the fit, with the covariance H^-1 of the negated Hessian H. Other cells of
votes are taken as they are by expectation propagation: their factors have the curvature with which a Gaussian would
have the mean and variance that it has with the votes themselves. So a model that won every vote may be far better than
the fit says, and hardly worse; the tie parameter stays that of the fit. Where it matters, s is integrated out over a
grid, with the prior that `rank` has, and the posterior is a mixture.

`tastes` says what is added where people differ. Where matrices are sparse, draws take the place of covariances: each
solves H x = noise by conjugate gradients.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.boards.bradley_terry import (
    LEAST_SD,
    MOST_SD,
    Cells,
    Fit,
    add_prior,
    assemble,
    conjugate_gradients,
    fit,
    gradient,
    log_prior,
    solve,
)
from heedful.boards.tastes import Excess, People, find_excess
from heedful.boards.tie_models import TieModel, terms
from heedful.inference.gp.hyperparameters import LOG_SD, MATTERS
from heedful.inference.gp.mixture import Mixture, mixture
from heedful.inference.gp.posterior import Posterior
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

DRAWS = 400
"""The number of draws that take the place of covariances."""
NARROW = 0.05
"""The variance of a difference, in logits squared, up to which its votes are taken by their curvature."""
MOST_SPREADS = 300
"""The greatest number of models for which the spread of scores is integrated out: more tell it well."""
FADES = 6.0
"""Spreads of scores whose density is lower by so many nats than the greatest are left out."""
MOST_STEPS, DAMPED = 60, 0.8
"""The greatest number of steps of expectation propagation, and the part of each that is taken."""
LEAST_CURVE = 1e-9
"""The least curvature of a factor."""
NARROWS = 0.2
"""The least fraction of its standard deviation to which a difference narrows in a step: less falls between points."""
_STEP = 0.35
_GRID = _STEP * np.arange(-20, 21)
_AT_ONCE = 2_000
"""The number of cells that are integrated over at a time."""


class ParameterPosterior(NamedTuple):
    """Posterior of the P parameters of a board (scores, tie parameter, coefficients), in logits, with the `mean` (P,).

    It is `gaussians`, or the mean with draws of `errors` (DRAWS, P); one of the two is None. `clusters` is the number
    of people whose differences were taken into account; 0 if each vote counts as independent.
    """

    mean: Array
    gaussians: Posterior | Mixture | None
    errors: Array | None
    clusters: int


class _Node(NamedTuple):
    """The Gaussian for one spread of scores: `mean` (P,), `cov` (P, P), and `log`, the log density of the spread.

    `few` is whether votes were too few to be taken by their curvature.
    """

    log: float
    mean: Array
    cov: Array
    few: bool


def infer_scores(n: int, cells: Cells, found: Fit, people: People | None) -> ParameterPosterior:
    """Return the distribution of the parameters of n models, fitted to these cells as `found`.

    `people` are those who gave the votes; None, and a single person, take all votes for independent ones.
    """
    excess = find_excess(n, cells, found, people)
    if not isinstance(found.H, np.ndarray):
        return ParameterPosterior(found.parameters(), None, _errors(n, cells, found, excess), excess.clusters)
    nodes = _nodes(n, cells, found)
    more: Array = sum((scale * (R.T @ R).toarray() for scale, R in excess.factors), np.zeros(found.H.shape))
    if not excess.beyond:
        more -= add_prior(found.H.copy(), -found.prior())
    parts = [Posterior(node.mean, node.cov + node.cov @ more @ node.cov) for node in nodes]
    top = max(node.log for node in nodes)
    gaussians = mixture([float(np.exp(node.log - top)) for node in nodes], parts)
    return ParameterPosterior(gaussians.mean, gaussians, None, excess.clusters)


# ---------------------------------------------------------------------------- the spread of scores


def _nodes(n: int, cells: Cells, found: Fit) -> list[_Node]:
    """Return the Gaussians for spreads of scores on a grid around that of the fit, or for this one if others say the
    same."""
    first = _gaussian(n, cells, found)
    # votes tell of as many scores as there is variance gone; what all have in common they never tell
    told = max(float(n - first.cov.diagonal()[:n].sum() / found.sd**2), 0.0)
    step = 1.0 / np.sqrt(1.0 / LOG_SD**2 + 2.0 * told)
    unsure = float(Posterior(first.mean[:n], first.cov[:n, :n]).sd().max())
    if n > MOST_SPREADS or not (first.few or 2.0 * step * unsure / found.sd > MATTERS):
        return [first]
    nodes = [first]
    for way in (step, -step):
        now, log = found, first.log
        while log > max(node.log for node in nodes) - FADES:
            sd = now.sd * float(np.exp(way))
            if not LEAST_SD <= sd <= MOST_SD:
                break
            now = fit(n, cells, found.model, sd=sd, start=now)
            nodes.append(_gaussian(n, cells, now))
            log = nodes[-1].log
    return nodes


def _gaussian(n: int, cells: Cells, at: Fit) -> _Node:
    """Return the Gaussian for the spread of the fit `at`, from expectation propagation where votes are few."""
    tied, w = at.tied, cells.weight
    theta = at.parameters()
    H, prior = at.H, at.prior()
    cov = _inverse(H)
    eta, var = _of_cells(n, cells, theta, cov, tied)
    few = np.flatnonzero(var > NARROW)
    outcome, times = cells.outcome[few], w[few]
    got = terms(at.model, eta, at.tie, cells.outcome)
    curve = np.maximum(times * got.eta_eta[few], LEAST_CURVE)
    factors = _Factors(curve, times * got.eta[few] + curve * eta[few], np.zeros(few.size))
    by_tie, none = w * got.tie_tie, np.zeros(w.size)
    for _ in range(MOST_STEPS if few.size else 0):
        got = terms(at.model, eta, at.tie, cells.outcome)
        new = _match(at.model, at.tie, outcome, times, eta[few], var[few], factors)
        moved = float((np.abs(new.curve - factors.curve) / (factors.curve + 0.01)).max())
        factors = new._replace(
            curve=factors.curve + DAMPED * (new.curve - factors.curve),
            centre=factors.centre + DAMPED * (new.centre - factors.centre),
        )
        slope, curves = w * got.eta, w * got.eta_eta
        slope[few], curves[few] = factors.centre - factors.curve * eta[few], factors.curve
        H = add_prior(assemble(n, cells, curves, none, by_tie, tied), prior)
        g = gradient(n, cells, slope, none, tied) - prior * theta
        cov = _inverse(H)
        step = cov @ g
        theta = theta + step
        eta, var = _of_cells(n, cells, theta, cov, tied)
        if moved < 0.02 and float((np.abs(step) / np.sqrt(cov.diagonal())).max()) < 0.005:
            break
    log = w * terms(at.model, eta, at.tie, cells.outcome).log
    if few.size:
        log[few] = factors.const + factors.centre * eta[few] - 0.5 * factors.curve * eta[few] ** 2
    evidence = float(log.sum() - 0.5 * prior @ theta**2) - n * np.log(at.sd)
    evidence += 0.5 * float(np.linalg.slogdet(cov)[1]) + log_prior(at.sd)
    return _Node(evidence, theta, cov, bool(few.size))


def _inverse(H: Array) -> Array:
    out = solve(H, np.eye(len(H)))
    return 0.5 * (out + out.T)


def _of_cells(n: int, cells: Cells, theta: Array, cov: Array, tied: bool) -> tuple[Array, Array]:
    """Return mean and variance of the difference of each cell (K,), covariates included."""
    a, b, z = cells.first, cells.second, cells.z
    eta = theta[a] - theta[b]
    own = cov.diagonal()
    var = own[a] + own[b] - 2.0 * cov[a, b]
    if z.shape[1]:
        tail = slice(n + tied, None)
        eta = eta + z @ theta[tail]
        across = cov[:n, tail]
        var = var + np.vecdot(z, 2.0 * (across[a] - across[b]) + z @ cov[tail, tail])
    return eta, np.maximum(var, 1e-12)


class _Factors(NamedTuple):
    """Gaussian factors exp(const + centre eta - curve eta^2 / 2) of all votes of each of k cells, each (k,)."""

    curve: Array
    centre: Array
    const: Array


def _match(
    model: TieModel, tie: float, outcome: Ints, times: Array, eta: Array, var: Array, factors: _Factors
) -> _Factors:
    """Return for each of k cells the Gaussian factor with which differences, of mean `eta` and variance `var` (k,)
    under all `factors`, have the mean and variance that they have with its votes."""
    out = _Factors(*np.empty((len(_Factors._fields), eta.size)))
    for low in range(0, eta.size, _AT_ONCE):
        at = slice(low, low + _AT_ONCE)
        m, v, sd = eta[at], var[at], np.sqrt(var[at])
        rest = np.maximum(1.0 / v - factors.curve[at], 1e-9)  # precision without the cell
        pull = m / v - factors.centre[at]
        x = m[:, None] + sd[:, None] * _GRID
        each = terms(model, x.ravel(), tie, np.repeat(outcome[at], _GRID.size)).log.reshape(x.shape)
        log = times[at, None] * each + pull[:, None] * x - 0.5 * rest[:, None] * x * x
        top = log.max(axis=1)
        p = np.exp(log - top[:, None])
        total = p.sum(axis=1)
        p /= total[:, None]
        mean = np.vecdot(p, x)
        inner = 1.0 / np.maximum(np.vecdot(p, (x - mean[:, None]) ** 2), (NARROWS * sd) ** 2)
        curve = np.maximum(inner - rest, LEAST_CURVE)
        inner, centre = rest + curve, mean * inner - pull
        out.curve[at], out.centre[at] = curve, centre
        # both integrals, that of the votes and that of the factor, over the same rest
        peak = (pull + centre) / inner
        out.const[at] = np.log(total * sd * _STEP) + top - 0.5 * (np.log(2.0 * np.pi / inner) + peak * peak * inner)
    return out


# ---------------------------------------------------------------------------- draws


def _errors(n: int, cells: Cells, found: Fit, excess: Excess) -> Array:
    """Return DRAWS draws of the errors of the parameters (DRAWS, P), by conjugate gradients."""
    got = found.terms(cells)
    # a square root of each cell's own Hessian: it draws the gradient of its votes
    root = np.sqrt(np.maximum(got.eta_eta, 0.0))
    across = got.eta_tie / np.maximum(root, 1e-12)
    rest = np.sqrt(np.maximum(got.tie_tie - across**2, 0.0))
    times = np.sqrt(cells.weight)
    rng = np.random.default_rng(0)
    out = np.empty((DRAWS, found.H.shape[0]))
    for low in range(0, DRAWS, 50):
        noise = np.zeros((found.H.shape[0], 50))
        for k in range(50 if excess.beyond else 0):
            x, y = times * rng.standard_normal((2, times.size))
            noise[:, k] = gradient(n, cells, x * root, x * across + y * rest, found.tied)
        for scale, R in excess.factors:
            noise += np.sqrt(scale) * (R.T @ rng.standard_normal((R.shape[0], 50)))
        noise += np.sqrt(found.prior())[:, None] * rng.standard_normal(noise.shape)
        out[low : low + 50] = conjugate_gradients(found.H, noise, 1e-5).T
    return out
