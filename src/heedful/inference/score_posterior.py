"""Posterior of Bradley-Terry scores: how sure they are, with few votes and with many, and when people differ.

Given the standard deviation s of scores, the posterior is a Gaussian. Where votes tell a difference well (the variance
of its error is at most NARROW) it is that of the fit, with the covariance H^-1 of the negated Hessian H. Other cells of
votes are taken as they are by expectation propagation: their factors have the curvature with which a Gaussian would
have the mean and variance that it has with the votes themselves. So a model that won every vote may be far better than
the fit says, and hardly worse; the tie parameter stays that of the fit. Where it matters, s is integrated out over a
grid, with the prior that `rank` has, and the posterior is a mixture.

People differ. With many of them the gradient's covariance M is estimated from the gradients of each person's votes, and
errors have the covariance H^-1 (M + 1 / s^2) H^-1 (Liang and Zeger, Biometrika 1986). Of fewer than MANY_PEOPLE, in
effect, that says too little. Then each is taken to have scores of their own, N(0, v_0) around those of all, and
coefficients of each covariate, N(0, v_k); the v are estimated by the method of moments from how much votes of one
person agree beyond the board. With the Hessians G_u of each person's votes, M is the sum of those of all votes and of
G_u V G_u', so errors are never smaller than those of independent votes. As v is known from few people only, it is
multiplied by the square of a quantile of Student's distribution over the normal one's.

Where matrices are sparse, draws take the place of covariances: each solves H x = noise by conjugate gradients.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.bradley_terry import (
    LEAST_SD,
    MOST_SD,
    Cells,
    Fit,
    add_prior,
    add_tail,
    assemble,
    conjugate_gradients,
    fit,
    gradient,
    log_prior,
    solve,
)
from heedful.inference.gp.hyperparameters import LOG_SD, MATTERS
from heedful.inference.gp.mixture import Mixture, mixture
from heedful.inference.gp.posterior import Posterior
from heedful.inference.tie_models import TieModel, terms
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

DRAWS = 400
"""The number of draws that take the place of covariances."""
NARROW = 0.05
"""The variance of a difference, in logits squared, up to which its votes are taken by their curvature."""
MANY_PEOPLE = 500.0
"""With so many people, in effect, their gradients tell how they differ; with fewer a model of tastes does."""
USUAL = 0.25
"""The variance of tastes that is usual, as a part of that of scores."""
PRIOR_DEGREES = 1.0
"""The degrees of freedom for which that counts."""
MOST_SPREADS = 300
"""The greatest number of models for which the spread of scores is integrated out: more tell it well."""
FADES = 6.0
"""Spreads of scores whose density is lower by so many nats than the greatest are left out."""
QUANTILE, NORMAL = 0.95, 1.6448536269514722
"""The probability up to which errors of few people are matched, and the normal distribution's quantile of it."""
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

People = tuple[Ints, Ints, Array]
"""For p votes the number of the person, that of the cell, and how many votes, each (p,)."""


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


class _Excess(NamedTuple):
    """By how much the covariance M of the gradient exceeds that of independent votes: the sum of scale R'R over
    `factors` (scale, R), R (rows, P) sparse; in their place if not `beyond`."""

    factors: list[tuple[float, Any]]
    beyond: bool
    clusters: int


def infer_scores(n: int, cells: Cells, found: Fit, people: People | None, seed: int = 0) -> ParameterPosterior:
    """Return the distribution of the parameters of n models, fitted to these cells as `found`.

    `people` are those who gave the votes; None, and a single person, take all votes for independent ones.
    """
    excess = _excess(n, cells, found, people)
    if not isinstance(found.H, np.ndarray):
        return ParameterPosterior(_parameters(found), None, _errors(n, cells, found, excess, seed), excess.clusters)
    nodes = _nodes(n, cells, found)
    more: Array = sum((scale * (R.T @ R).toarray() for scale, R in excess.factors), np.zeros(found.H.shape))
    if not excess.beyond:
        more -= add_prior(found.H.copy(), n, -1.0 / found.sd**2)
    parts = [Posterior(node.mean, node.cov + node.cov @ more @ node.cov) for node in nodes]
    top = max(node.log for node in nodes)
    gaussians = mixture([float(np.exp(node.log - top)) for node in nodes], parts)
    return ParameterPosterior(gaussians.mean, gaussians, None, excess.clusters)


def _parameters(at: Fit) -> Array:
    return np.concatenate([at.scores, [at.tie] if at.tied else [], at.gamma])


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
    theta = _parameters(at)
    H, precision = at.H, 1.0 / at.sd**2
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
        H = add_prior(assemble(n, cells, curves, none, by_tie, tied), n, precision)
        if at.gamma.size:
            H = add_tail(H, n + tied)
        g = gradient(n, cells, slope, none, tied)
        g[:n] -= precision * theta[:n]
        cov = _inverse(H)
        step = cov @ g
        theta = theta + step
        eta, var = _of_cells(n, cells, theta, cov, tied)
        if moved < 0.02 and float((np.abs(step) / np.sqrt(cov.diagonal())).max()) < 0.005:
            break
    log = w * terms(at.model, eta, at.tie, cells.outcome).log
    if few.size:
        log[few] = factors.const + factors.centre * eta[few] - 0.5 * factors.curve * eta[few] ** 2
    scores = theta[:n]
    evidence = float(log.sum() - 0.5 * precision * scores @ scores) - n * np.log(at.sd)
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
    """Return for each of k cells the Gaussian factor with which differences have the mean and variance that they have
    with its votes.

    `eta`, `var` (k,) are the mean and variance of differences under all `factors`, of which the cell's own is taken
    out.
    """
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


# ---------------------------------------------------------------------------- people


def effective_people(people: People) -> float:
    """Return the number of people who, with equally many votes each, would be as many as these are in effect."""
    each = np.bincount(people[0], people[2])
    return float(each.sum() ** 2 / (each @ each))


def _excess(n: int, cells: Cells, found: Fit, people: People | None) -> _Excess:
    if people is None or (cells.outcome == 1).all():
        return _Excess([], True, 0)
    who, rows = np.unique(people[0], return_inverse=True)
    if who.size < 2:
        return _Excess([], True, 0)
    cell, times = people[1], people[2]
    eta = found.scores[cells.first] - found.scores[cells.second] + cells.z @ found.gamma
    got = terms(found.model, eta, found.tie, cells.outcome)
    design = _Design(n, cells, found.tied, rows, cell, who.size)
    slopes = design.people(times * got.eta[cell], times * got.tie[cell])
    if effective_people(people) >= MANY_PEOPLE:
        return _Excess([(who.size / (who.size - 1.0), slopes)], False, who.size)
    # Hessians of each person's votes: columns of scores one below the other, then one for each covariate
    by = times * got.eta_eta[cell], times * got.eta_tie[cell]
    hessians = [design.models(*by), *(design.people(*(each * z for each in by)) for z in cells.z[cell].T)]
    v, degrees = _tastes(design, slopes, hessians, times, got.eta, got.eta_eta, found.sd)
    from scipy.special import stdtrit

    scale = v * (stdtrit(degrees, QUANTILE) / NORMAL) ** 2
    return _Excess([(float(each), R) for each, R in zip(scale, hessians) if each > 0.0], True, who.size)


class _Design(NamedTuple):
    """The design of p votes of U people: `rows` (p,) numbers the person of each, `cell` (p,) the cell."""

    n: int
    cells: Cells
    tied: bool
    rows: Ints
    cell: Ints
    U: int

    def people(self, eta: Array, tie: Array) -> Any:
        """Return the sum of x eta + e tie over the votes of each person, sparse (U, P), as in `gradient`."""
        return self._sum(self.rows, self.U, eta, tie)

    def models(self, eta: Array, tie: Array) -> Any:
        """Return the same for each person and model that their votes are about, a row each: votes in which the model
        is the second count with the opposite sign."""
        first, second = (each[self.cell] for each in (self.cells.first, self.cells.second))
        key = np.concatenate([self.rows * self.n + first, self.rows * self.n + second])
        _, at = np.unique(key, return_inverse=True)
        doubled = self._replace(cell=np.tile(self.cell, 2))
        return doubled._sum(at, int(at.max()) + 1, *(np.concatenate([each, -each]) for each in (eta, tie)))

    def owners(self) -> Ints:
        """Return the person of each row of `models`."""
        first, second = (each[self.cell] for each in (self.cells.first, self.cells.second))
        return np.unique(np.concatenate([self.rows * self.n + first, self.rows * self.n + second])) // self.n

    def _sum(self, at: Ints, count: int, eta: Array, tie: Array) -> Any:
        from scipy.sparse import coo_matrix, csr_matrix, hstack

        a, b, z = (each[self.cell] for each in (self.cells.first, self.cells.second, self.cells.z))
        rows, columns = np.concatenate([at, at]), np.concatenate([a, b])
        models: Any = coo_matrix((np.concatenate([eta, -eta]), (rows, columns)), (count, self.n)).tocsr()
        extra = [np.bincount(at, tie, count)] if self.tied else []
        extra += [np.bincount(at, eta * z[:, k], count) for k in range(z.shape[1])]
        return hstack([models, csr_matrix(np.column_stack(extra))], format="csr") if extra else models


def _tastes(
    design: _Design, slopes: Any, hessians: list[Any], times: Array, slope: Array, curve: Array, sd: float
) -> tuple[Array, Array]:
    """Return the variances v (1 + q,) of people's scores, and of their q coefficients, with their degrees of freedom
    (1 + q,).

    By the method of moments: the product of the gradients of two votes of one person has the mean curve curve' x' V x',
    so sums over pairs of votes give an equation for each v. `slopes` has the gradients of people, `hessians` their
    Hessians; `slope` and `curve` (K,) are the derivatives of one vote of each cell, and `sd` is that of scores. A
    person who gave the share pi of all votes has moved the board by as much, which is allowed for as if people had
    voted on the same pairs.
    """
    from scipy.optimize import nnls

    n, rows, cell, U = design.n, design.rows, design.cell, design.U
    parts = [slice(0, n), *(slice(k, k + 1) for k in range(n + design.tied, slopes.shape[1]))]
    length = np.column_stack([np.full(cell.size, 2.0), design.cells.z[cell] ** 2])  # of each vote's row, squared
    owners = [design.owners(), *[np.arange(U)] * (len(parts) - 1)]
    share = np.bincount(rows, times, U) / times.sum()
    # a person of whom much is known counts no more than their own taste tells
    weight = 1.0 / (1.0 + USUAL * sd * sd * np.bincount(rows, times * curve[cell], U) * 2.0 / n) ** 2
    alone = times * slope[cell] ** 2
    both = times * curve[cell] ** 2
    spread = share @ share
    seen, mean = np.zeros(len(parts)), np.zeros((len(parts), len(parts)))
    for k, part in enumerate(parts):
        each = np.asarray(slopes[:, part].power(2).sum(axis=1)).ravel()
        seen[k] = weight @ (each - (1.0 - share) * np.bincount(rows, alone * length[:, k], U))
        for m, (R, owner) in enumerate(zip(hessians, owners)):
            each = np.bincount(owner, np.asarray(R[:, part].power(2).sum(axis=1)).ravel(), U)
            each -= np.bincount(rows, both * length[:, k] * length[:, m], U)
            mean[k, m] = weight * (1.0 - 2.0 * share + spread) @ each
    unit = np.maximum(mean.diagonal(), 1e-12)
    v = np.asarray(nnls(mean / unit[:, None], seen / unit)[0], np.float64)
    degrees = _degrees(share, weight * share * share) * np.array([n - 1, *[1] * (len(parts) - 1)])
    usual = USUAL * sd * sd * np.array([1.0, *[0.0] * (len(parts) - 1)])
    return (degrees * v + PRIOR_DEGREES * usual) / (degrees + PRIOR_DEGREES), degrees + PRIOR_DEGREES


def _degrees(share: Array, weight: Array) -> float:
    """Return the degrees of freedom of sum weight (d - mean)^2 over people, the mean being weighted by `share`: of the
    quadratic form d'Ad by Satterthwaite, tr(A)^2 / tr(A^2)."""
    total, square = float(weight.sum()), float(share @ share)
    across, own = float(share @ weight), float(weight @ weight)
    trace = total - 2.0 * across + total * square
    diagonal = total * share * share - 2.0 * share * weight
    rest = 2.0 * square * own + 2.0 * across**2 + (total * square) ** 2 - 4.0 * total * square * across
    return trace**2 / max(own + 2.0 * float(weight @ diagonal) + rest, 1e-300)


# ---------------------------------------------------------------------------- draws


def _errors(n: int, cells: Cells, found: Fit, excess: _Excess, seed: int) -> Array:
    """Return DRAWS draws of the errors of the parameters (DRAWS, P), by conjugate gradients."""
    eta = found.scores[cells.first] - found.scores[cells.second] + cells.z @ found.gamma
    got = terms(found.model, eta, found.tie, cells.outcome)
    # a square root of each cell's own Hessian: it draws the gradient of its votes
    root = np.sqrt(np.maximum(got.eta_eta, 0.0))
    across = got.eta_tie / np.maximum(root, 1e-12)
    rest = np.sqrt(np.maximum(got.tie_tie - across**2, 0.0))
    times = np.sqrt(cells.weight)
    rng = np.random.default_rng(seed)
    out = np.empty((DRAWS, found.H.shape[0]))
    for low in range(0, DRAWS, 50):
        noise = np.zeros((found.H.shape[0], 50))
        for k in range(50 if excess.beyond else 0):
            x, y = times * rng.standard_normal((2, times.size))
            noise[:, k] = gradient(n, cells, x * root, x * across + y * rest, found.tied)
        for scale, R in excess.factors:
            noise += np.sqrt(scale) * (R.T @ rng.standard_normal((R.shape[0], 50)))
        noise[:n] += rng.standard_normal((n, 50)) / found.sd
        out[low : low + 50] = conjugate_gradients(found.H, noise, 1e-5).T
    return out
