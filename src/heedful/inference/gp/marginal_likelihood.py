"""Chooses the kernel of the items, that is how much features explain, by the marginal likelihood of the answers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.hyperparameters import MarginalLikelihood
from heedful.inference.gp.kernels import kernel_for
from heedful.inference.gp.response_noise import PRIOR
from heedful.inference.gp.subsample import sample_items, sample_people
from heedful.inference.pairwise import PairRows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

SHARES, LENGTHS = (0.5, 0.8, 0.95), (0.5, 1.0, 2.0)
"""The shares of variance that features may explain, besides 0, and the length-scales in median distances that are
tried."""

TRIED = 5_000
"""The greatest number of rows, of several people, by which the kernel is chosen."""


class Kernel(NamedTuple):
    """The share of the variance of utilities that features explain, and their length-scale in median distances; both 0
    without features.
    """

    explained: float = 0.0
    lengthscale: float = 0.0


def covariance(X: Array, kernel: Kernel) -> Array:
    """Return the correlations K (n x n) of items with features X (n x d): an RBF for the explained share, and for the
    rest the identity.
    """
    n = len(X)
    if X.shape[1] == 0 or kernel.explained == 0.0:
        return np.eye(n)
    rbf = kernel_for(X, "median", 1.0)
    rbf = rbf._replace(lengthscale=rbf.lengthscale * kernel.lengthscale)
    return kernel.explained * rbf.over(X) + (1.0 - kernel.explained) * np.eye(n)


def choose_kernel(X: Array, met: Ints, users: int, rows: PairRows) -> Kernel:
    """Choose the kernel with the highest marginal likelihood for items with features X (n x d).

    `rows`: answers of `users` people over the items `met` (q,). Of many rows a sample decides: some people with all
    their answers or, of one person, some items with all answers among them.
    """
    if not X.shape[1]:
        return Kernel()
    rows, users = sample_people(rows, users, TRIED) if users > 1 else (sample_items(rows), 1)
    few, at = np.unique(rows.pairs, return_inverse=True)
    rows, among = rows._replace(pairs=at.reshape(-1, 2)), np.ix_(met[few], met[few])
    plain = MarginalLikelihood(np.eye(few.size), users, rows, PRIOR)
    x = plain.likeliest(plain.start)
    best, most = Kernel(), plain.at(x)[0]
    for explained in SHARES:
        for lengthscale in LENGTHS:
            kernel = Kernel(explained, lengthscale)
            problem = MarginalLikelihood(covariance(X, kernel)[among], users, rows, PRIOR)
            problem.sites = plain.sites
            value = problem.at(x)[0]
            if value > most:
                best, most = kernel, value
    return best
