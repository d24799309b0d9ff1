"""Choice of the kernel of items, that is of how much their features explain, by the marginal likelihood
of the answers.
"""

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
"""The candidates: the fraction of the variance of utilities that features explain (besides 0), and the length-scale in
multiples of the median distance.
"""

TRIED = 5_000
"""The greatest number of comparisons from which the kernel is chosen, with several people."""


class Kernel(NamedTuple):
    """The covariance chosen for the utilities of items: `explained` is the fraction of their variance that features
    explain, `lengthscale` that of the features as a multiple of the median distance of items; both 0 if features are
    not used.
    """

    explained: float = 0.0
    lengthscale: float = 0.0


def covariance(X: Array, kernel: Kernel) -> Array:
    """Return the correlation matrix K (n x n) of the utilities of n items with d features X (n x d).

    It is `explained` times an RBF kernel, plus the rest times the identity.
    """
    n = len(X)
    if X.shape[1] == 0 or kernel.explained == 0.0:
        return np.eye(n)
    rbf = kernel_for(X, "median", 1.0)
    rbf = rbf._replace(lengthscale=rbf.lengthscale * kernel.lengthscale)
    return kernel.explained * rbf.over(X) + (1.0 - kernel.explained) * np.eye(n)


def choose_kernel(X: Array, items: Ints, users: int, rows: PairRows) -> Kernel:
    """Choose, among the candidates, the kernel of n items that gives the answers the highest marginal likelihood.

    `X` (n x d): d features of the items; `rows`: comparisons by `users` people of the q items with numbers `items`
    (q,), renumbered 0 to q - 1. Of many comparisons a subsample is used: some people with all their answers, or of one
    person some items with all answers among them.
    """
    if not X.shape[1]:
        return Kernel()
    rows, users = sample_people(rows, users, TRIED) if users > 1 else (sample_items(rows), 1)
    compared, positions = np.unique(rows.pairs, return_inverse=True)
    rows, block = rows._replace(pairs=positions.reshape(-1, 2)), np.ix_(items[compared], items[compared])
    plain = MarginalLikelihood(np.eye(compared.size), users, rows, PRIOR)
    x = plain.likeliest(plain.start)
    best, most = Kernel(), plain.at(x)[0]
    for explained in SHARES:
        for lengthscale in LENGTHS:
            kernel = Kernel(explained, lengthscale)
            problem = MarginalLikelihood(covariance(X, kernel)[block], users, rows, PRIOR)
            problem.sites = plain.sites
            value = problem.at(x)[0]
            if value > most:
                best, most = kernel, value
    return best
