"""The collaborative models of [H12]: CP, and CPU, which also uses features of people. Inference combines expectation
propagation (EP) with variational Bayes, in the space of items.

    g_u(i, j) = sum_d w_ud h_d(i, j),  h_d(i, j) = f_d(i) - f_d(j),  f_d ~ GP(0, K),  w_.d ~ N(0, K_users) or N(0, I)

g_u(i, j) is by how much person u prefers item i to j; f_d, d = 1..D, are functions that all people share, and w_ud the
weights of u. The joint distribution has four factors: (f1) Phi of the answers, (f2) g = W H, (f3) the prior of W, (f4)
the prior of H. The approximation is one Gaussian, independent over all g, w and h: the product of one message from each
factor, Eq. 12 and 13. EP refines f1, f3 and f4; variational Bayes refines f2 against the messages of the others. The
prior of H over pairs is refined with a matrix over the items, so nothing costs more than items^3, and the cost is
linear in the number of answers and of people.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count
from heedful.inference.collaborative.cp_fit import CPFit, Functions, Messages
from heedful.inference.collaborative.fitc import PairKernel, pseudo_pairs_of
from heedful.inference.collaborative.priors import FactorPrior, ItemPrior
from heedful.inference.collaborative.sparse_cells import Cells, cells
from heedful.inference.collaborative.vb_product import Factors, initial_factors, sweep
from heedful.inference.gp.ep import Likelihood, likelihood_of, moments
from heedful.inference.gp.sites import matched_sites, root
from heedful.inference.pairwise import PairRows

Array = npt.NDArray[np.float64]

SHRINK = 0.98
"""Damping of messages: they move the whole way to new ones in the first cycle, and the fraction SHRINK^k in cycle k +
1.
"""

FIRST, PASSES = 50, 2
"""Numbers of passes of variational Bayes: in the first cycle, and in each later one. With few passes in the first
cycle, the singular vectors from which they start still show in the variances, and questions are asked that teach
little.
"""


def fit(
    K: Array,
    users: int,
    rows: PairRows,
    *,
    D: int = 20,
    user_cov: FactorPrior | None = None,
    pseudo_pairs: int | None = None,
    seed: int = 0,
    width: npt.ArrayLike = 0.0,
    lapse: npt.ArrayLike = 0.0,
    cycles: int = 200,
    tolerance: float = 2e-3,
) -> CPFit:
    """Fit the collaborative model CP of [H12], or CPU with `user_cov`, to the answers `rows` of `users` people about n
    items.

    `K` (n x n): covariance of each shared function over the items. `D`: number of shared functions; superfluous ones
    shrink to 0. `user_cov`: covariance of people's weights from their features (CPU); None for CP. `pseudo_pairs`:
    number of pairs used as pseudo-inputs of a sparse approximation (FITC), drawn with `seed`, as in the paper's
    experiments; None is exact and better. `width`, `lapse`: as in `infer_users`. Iteration ends when the means of the
    preferences g (of a person for one item over another) move by less than `tolerance` (root mean square), or after
    `cycles`. A cycle costs R D^2 + D n^3 for R rows. Raise ValueError, naming the argument, if arguments do not fit
    together.
    """
    check_count("D", D)
    check_count("users", users)
    if user_cov is not None and len(user_cov.independent) != users:
        raise ValueError(f"user_cov: expected features of {users} people, got {len(user_cov.independent)}")
    of = cells(rows, users, len(K))
    kernel: PairKernel | None = None
    items: ItemPrior | FactorPrior
    if pseudo_pairs is None:
        items = ItemPrior(root(K), of.first, of.second)
    else:
        kernel = pseudo_pairs_of(K, of.first, of.second, pseudo_pairs, seed)
        items = kernel.over(of.first, of.second)
    likelihood = likelihood_of(rows, np.broadcast_to(width, (users,)), np.broadcast_to(lapse, (users,)))
    fresh = _fresh(of, items, user_cov, D)
    messages, factors, done, moved = _cycle(of, likelihood, items, user_cov, fresh, cycles, tolerance)
    mean, cov, _ = (items.utilities if isinstance(items, ItemPrior) else items.inner)(*messages.to_h2)
    functions = Functions(mean, cov, kernel)
    return CPFit(functions, factors.mw, factors.vw, of, items, user_cov, likelihood, messages, factors, done, moved)


def _cycle(
    of: Cells,
    likelihood: Likelihood,
    items: ItemPrior | FactorPrior,
    people: FactorPrior | None,
    messages: Messages,
    cycles: int,
    tolerance: float,
) -> tuple[Messages, Factors, int, float]:
    (t1, n1), (t2, n2), (t2w, n2w), (t2h, n2h), (t3, n3), (t4, n4) = messages
    factors: Factors | None = None
    share, moved, done, believed = 1.0, np.inf, 0, (n1 + n2) / (t1 + t2)
    while factors is None or (done < cycles and moved >= tolerance):
        # f1, EP: the likelihood of each answer under the message of the product
        v = 1.0 / t2
        _, slope, bend = moments(likelihood, of.sign * v * n2, v)
        t1, n1 = _damp(t1, n1, *matched_sites(v * n2, v, of.sign * slope, bend), share)
        # f2, variational Bayes
        sums = of.site_sums(t1, n1)
        passes = PASSES
        if factors is None:
            factors, passes = initial_factors(sums, t3, t4), FIRST
        for _ in range(passes):
            factors = sweep(factors, sums, (t3, n3), (t4, n4))
        mw, vw, mh, vh = factors
        m, v = factors.at(of)
        t2, n2 = _damp(t2, n2, 1.0 / v - t1, m / v - n1, share)
        t2w, n2w = _damp(t2w, n2w, 1.0 / vw - t3, mw / vw - n3, share)
        t2h, n2h = _damp(t2h, n2h, 1.0 / vh - t4, mh / vh - n4, share)
        # f4 and f3, EP: the priors under the messages of the product
        m, v = items.marginals(t2h, n2h)
        t4, n4 = _damp(t4, n4, 1.0 / v - t2h, m / v - n2h, share)
        if people is not None:
            m, v = people.marginals(t2w.T, n2w.T)
            t3, n3 = _damp(t3, n3, 1.0 / v.T - t2w, (m / v).T - n2w, share)
        last, believed = believed, (n1 + n2) / (t1 + t2)
        moved = float(np.sqrt(np.mean(np.square(believed - last)))) if believed.size else 0.0
        share *= SHRINK
        done += 1
    return Messages((t1, n1), (t2, n2), (t2w, n2w), (t2h, n2h), (t3, n3), (t4, n4)), factors, done, moved


def _damp(t: Array, n: Array, to_t: Array, to_n: Array, share: float) -> tuple[Array, Array]:
    """Return a Gaussian message moved by `share` towards another, unchanged where the new precision is not positive."""
    step = np.where(to_t > 0.0, share, 0.0)
    return t + step * (to_t - t), n + step * (to_n - n)


def _fresh(of: Cells, items: ItemPrior | FactorPrior, people: FactorPrior | None, D: int) -> Messages:
    """Return the messages before any answer, those of the priors."""
    R, U, P = of.user.size, of.U, of.P
    vh, vw = items.variance(), np.ones(U) if people is None else people.variance()
    zeros = np.zeros(R)
    return Messages(
        to_g1=(zeros, zeros),
        to_g2=(1.0 / (D * vw[of.user] * vh[of.pair]), zeros),
        to_w2=(np.zeros((U, D)), np.zeros((U, D))),
        to_h2=(np.zeros((D, P)), np.zeros((D, P))),
        to_w3=(np.repeat(1.0 / vw[:, None], D, axis=1), np.zeros((U, D))),
        to_h4=(np.repeat(1.0 / vh[None], D, axis=0), np.zeros((D, P))),
    )
