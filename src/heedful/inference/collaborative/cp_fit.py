"""Results of fitting the collaborative model CP of [H12]: posteriors of the functions that people share and of people's
weights, and predictions from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.collaborative.fitc import PairKernel
from heedful.inference.collaborative.priors import FactorPrior, ItemPrior
from heedful.inference.collaborative.sparse_cells import Cells
from heedful.inference.collaborative.vb_product import Factors
from heedful.inference.gp.ep import Likelihood
from heedful.inference.gp.posterior import Posterior, PreferenceModel
from heedful.inference.pairwise import Index
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

_AT_ONCE = 1 << 13  # choices predicted at a time


class Functions(NamedTuple):
    """Gaussian posterior over the D latent functions that all people share.

    If `kernel` is None it is over the values f_d of the n items: `mean` (D x n), `cov` (D x n x n). With the sparse
    approximation FITC it is over h_d(a, b) = f_d(a) - f_d(b) at m pseudo-inputs, each a pair of items (a, b): `mean` (D
    x m), `cov` (D x m x m).
    """

    mean: Array
    cov: Array
    kernel: PairKernel | None

    def at(self, a: Ints, b: Ints) -> tuple[Array, Array]:
        """Return posterior mean and variance, (k x D) each, of h_d(a, b) for k pairs of items `a`, `b` (k,)."""
        if self.kernel is not None:
            prior = self.kernel.over(a, b)
            v = np.einsum("ki,dij,kj->kd", prior.R, self.cov, prior.R, optimize=True)
            return prior.R @ self.mean.T, np.maximum(v + prior.independent[:, None], 0.0)
        var = np.diagonal(self.cov, axis1=1, axis2=2)
        v = (var[:, a] - self.cov[:, a, b]) + (var[:, b] - self.cov[:, b, a])
        return (self.mean[:, a] - self.mean[:, b]).T, np.maximum(v, 0.0).T


class Messages(NamedTuple):
    """The messages of expectation propagation from the factors f1 to f4 of the model CP to its variables, each a pair
    (precision, precision times mean).

    `to_w2` is the message to W from f2, and so on. There are R answers by U people, D functions and P pairs of items.
    Messages to the preferences g are (R,), to the weights W (U x D), and to the values H (D x P).
    """

    to_g1: tuple[Array, Array]
    to_g2: tuple[Array, Array]
    to_w2: tuple[Array, Array]
    to_h2: tuple[Array, Array]
    to_w3: tuple[Array, Array]
    to_h4: tuple[Array, Array]


@dataclass(frozen=True)
class CPFit(PreferenceModel):
    """A fit of the collaborative model CP of [H12] or, with features of people, CPU.

    It is the posterior `functions` of D functions that all people share, and means `mw` and variances `vw` (U x D) of
    the weights that each of U people gives them. The utilities of a person are the sum of the functions times the
    person's weights.

    `cells`: the answers as a sparse table of people by pairs of items; `items`: prior of the functions of items;
    `people`: prior of people's weights by their features, None in CP, where weights are independent N(0, 1);
    `likelihood`: of the answers; `messages`, `factors`: state of expectation propagation."""

    functions: Functions
    mw: Array
    vw: Array
    cells: Cells
    items: ItemPrior | FactorPrior
    people: FactorPrior | None
    likelihood: Likelihood
    messages: Messages
    factors: Factors
    cycles: int
    """number of cycles of this fit"""
    moved: float
    """root mean square change of the means of g in the last cycle"""

    def gap(self, user: Index, a: Index, b: Index) -> tuple[Array, Array]:
        return gap(self.functions, self.mw, self.vw, user, a, b)

    def posterior(self, user: int) -> Posterior:
        """Return the posterior over the utilities (n,) of n items for a person. Raise ValueError as `utilities`."""
        return utilities(self.functions, self.mw[user], self.vw[user])

    @property
    def log_evidence(self) -> float:
        """The approximate log marginal likelihood of all answers, in nats ([H12] section 5)."""
        from heedful.inference.collaborative.marginal_likelihood import log_evidence

        return log_evidence(self)


def gap(of: Functions, mw: Array, vw: Array, user: Index, a: Index, b: Index) -> tuple[Array, Array]:
    """Return mean and variance of g = sum_d w_ud h_d(a, b) ([H12] Eq. 7), as `PreferenceModel.gap` does; `mw`, `vw`
    (U x D) are means and variances of the weights w_ud."""
    user, a, b = np.broadcast_arrays(*(np.asarray(x, np.int64) for x in (user, a, b)))
    shape, (user, a, b) = user.shape, (x.ravel() for x in (user, a, b))
    mean, var = np.empty(a.size), np.empty(a.size)
    for lo in range(0, a.size, _AT_ONCE):
        part = slice(lo, lo + _AT_ONCE)
        m, v = of.at(a[part], b[part])
        w, s = mw[user[part]], vw[user[part]]
        mean[part] = np.einsum("kd,kd->k", w, m)
        var[part] = np.einsum("kd,kd->k", w * w, v) + np.einsum("kd,kd->k", s, m * m + v)
    return mean.reshape(shape), var.reshape(shape)


def utilities(of: Functions, mw: Array, vw: Array) -> Posterior:
    """Return the posterior over the utilities sum_d w_d f_d (n,) of n items for one person.

    `of`: posterior of the D functions f_d; `mw`, `vw` (D,): means and variances of the person's weights w_d. Raise
    ValueError if the functions were fitted with pseudo-inputs (FITC), whose values are of pairs.
    """
    if of.kernel is not None:
        raise ValueError("pseudo_pairs: expected None for utilities of items, got FITC over pairs, which has none")
    cov = np.tensordot(mw * mw + vw, of.cov, axes=1) + (of.mean.T * vw) @ of.mean
    return Posterior(mw @ of.mean, 0.5 * (cov + cov.T))
