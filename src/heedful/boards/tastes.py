"""By how much votes of people who differ tell less of a board than as many independent votes.

People differ. With many of them the gradient's covariance M is estimated from the gradients of each person's votes, and
errors have the covariance H^-1 (M + 1 / s^2) H^-1 (Liang and Zeger, Biometrika 1986). Of fewer than MANY_PEOPLE, in
effect, that says too little. Then each is taken to have scores of their own, N(0, v_0) around those of all, and
coefficients of each covariate, N(0, v_k); the v are estimated by the method of moments from how much votes of one
person agree beyond the board. With the Hessians G_u of each person's votes, M is the sum of those of all votes and of
G_u V G_u', so errors are never smaller than those of independent votes. As v is known from few people only, it is
multiplied by the square of a quantile of Student's distribution over the normal one's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.boards.bradley_terry import Cells, Fit
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

MANY_PEOPLE = 500.0
"""With so many people, in effect, their gradients tell how they differ; with fewer a model of tastes does."""
USUAL = 0.25
"""The variance of tastes that is usual, as a part of that of scores."""
PRIOR_DEGREES = 1.0
"""The degrees of freedom for which that counts."""
QUANTILE, NORMAL = 0.95, 1.6448536269514722
"""The probability up to which errors of few people are matched, and the normal distribution's quantile of it."""

People = tuple[Ints, Ints, Array]
"""For p votes the number of the person, that of the cell, and how many votes, each (p,)."""


class Excess(NamedTuple):
    """By how much the covariance M of the gradient exceeds that of independent votes: the sum of scale R'R over
    `factors` (scale, R), R (rows, P) sparse; in their place if not `beyond`."""

    factors: list[tuple[float, Any]]
    beyond: bool
    clusters: int


def effective_people(people: People) -> float:
    """Return the number of people who, with equally many votes each, would be as many as these are in effect."""
    each = np.bincount(people[0], people[2])
    return float(each.sum() ** 2 / (each @ each))


def find_excess(n: int, cells: Cells, found: Fit, people: People | None) -> Excess:
    """Return what people who differ add to the covariance of the gradient of n models, fitted as `found`."""
    if people is None or (cells.outcome == 1).all():
        return Excess([], True, 0)
    who, rows = np.unique(people[0], return_inverse=True)
    if who.size < 2:
        return Excess([], True, 0)
    cell, times = people[1], people[2]
    got = found.terms(cells)
    design = _Design(n, cells, found.tied, rows, cell, who.size)
    slopes = design.people(times * got.eta[cell], times * got.tie[cell])
    if effective_people(people) >= MANY_PEOPLE:
        return Excess([(who.size / (who.size - 1.0), slopes)], False, who.size)
    # Hessians of each person's votes: columns of scores one below the other, then one for each covariate
    by = times * got.eta_eta[cell], times * got.eta_tie[cell]
    of_scores, owners = design.models(*by)
    hessians = [of_scores, *(design.people(*(each * z for each in by)) for z in cells.z[cell].T)]
    v, degrees = _tastes(design, slopes, hessians, owners, times, got.eta, got.eta_eta, found.sd)
    from scipy.special import stdtrit

    scale = v * (stdtrit(degrees, QUANTILE) / NORMAL) ** 2
    return Excess([(float(each), R) for each, R in zip(scale, hessians) if each > 0.0], True, who.size)


def taste_variance(n: int, cells: Cells, found: Fit, people: People) -> float:
    """Return the variance of people's own scores around those of n models, fitted as `found`, in logits squared."""
    who, rows = np.unique(people[0], return_inverse=True)
    cell, times = people[1], people[2]
    got = found.terms(cells)
    bare = cells._replace(z=cells.z[:, :0])
    design = _Design(n, bare, False, rows, cell, who.size)
    slopes = design.people(times * got.eta[cell], times)
    hessians, owners = design.models(times * got.eta_eta[cell], times)
    [v], _ = _tastes(design, slopes, [hessians], owners, times, got.eta, got.eta_eta, found.sd)
    return float(v)


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

    def models(self, eta: Array, tie: Array) -> tuple[Any, Ints]:
        """Return the same for each person and model that their votes are about, a row each, and the person of each row:
        votes in which the model is the second count with the opposite sign."""
        first, second = (each[self.cell] for each in (self.cells.first, self.cells.second))
        key = np.concatenate([self.rows * self.n + first, self.rows * self.n + second])
        key, at = np.unique(key, return_inverse=True)
        doubled = self._replace(cell=np.tile(self.cell, 2))
        return doubled._sum(at, key.size, *(np.concatenate([each, -each]) for each in (eta, tie))), key // self.n

    def _sum(self, at: Ints, count: int, eta: Array, tie: Array) -> Any:
        from scipy.sparse import coo_matrix, csr_matrix, hstack

        a, b, z = (each[self.cell] for each in (self.cells.first, self.cells.second, self.cells.z))
        rows, columns = np.concatenate([at, at]), np.concatenate([a, b])
        models: Any = coo_matrix((np.concatenate([eta, -eta]), (rows, columns)), (count, self.n)).tocsr()
        extra = [np.bincount(at, tie, count)] if self.tied else []
        extra += [np.bincount(at, eta * z[:, k], count) for k in range(z.shape[1])]
        return hstack([models, csr_matrix(np.column_stack(extra))], format="csr") if extra else models


def _tastes(
    design: _Design,
    slopes: Any,
    hessians: list[Any],
    owners: Ints,
    times: Array,
    slope: Array,
    curve: Array,
    sd: float,
) -> tuple[Array, Array]:
    """Return the variances v (1 + q,) of people's scores, and of their q coefficients, with their degrees of freedom
    (1 + q,).

    By the method of moments: the product of the gradients of two votes of one person has the mean curve curve' x' V x',
    so sums over pairs of votes give an equation for each v. `slopes` has the gradients of people, `hessians` their
    Hessians, the rows of the first of which belong to `owners`; `slope` and `curve` (K,) are the derivatives of one
    vote of each cell, and `sd` is that of scores. A person who gave the share pi of all votes has moved the board by as
    much, which is allowed for as if people had voted on the same pairs.
    """
    from scipy.optimize import nnls

    n, rows, cell, U = design.n, design.rows, design.cell, design.U
    parts = [slice(0, n), *(slice(k, k + 1) for k in range(n + design.tied, slopes.shape[1]))]
    length = np.column_stack([np.full(cell.size, 2.0), design.cells.z[cell] ** 2])  # of each vote's row, squared
    of_rows = [owners, *[np.arange(U)] * (len(parts) - 1)]
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
        for m, (R, owner) in enumerate(zip(hessians, of_rows)):
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
