"""Log marginal likelihood of a fitted collaborative model (CP): the integral of the product of all messages, [H12]
section 5.

log P(answers) = sum_a log Z_a - I_g - I_w - I_h. Z_a is the integral of factor a over the messages of the other factors
(for the product factor f2, the variational bound), and I_x is the log integral of the messages that variable x
receives; the factors f1 to f4 and the variables g, w, h are those of `heedful.inference.collaborative.cp`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.inference.collaborative.cp_fit import CPFit
from heedful.inference.gp.ep import moments
from heedful.inference.gp.sites import log_scales

Array = npt.NDArray[np.float64]


def log_evidence(fit: CPFit) -> float:
    """Return the log marginal likelihood of all answers, in nats, of a fitted model; it is as accurate as the fit has
    converged.
    """
    of, q = fit.cells, fit.factors
    (t1, n1), (t2, n2), (t2w, n2w), (t2h, n2h), (t3, n3), (t4, n4) = fit.messages
    # f1: the answers under the messages of f2, less the integral I_g of both messages
    v = 1.0 / t2
    log_z, _, _ = moments(fit.likelihood, of.sign * v * n2, v)
    total = float(of.times @ log_scales(log_z, v * n2, v, t1, n1))
    # f2: the bound
    m, spread = q.at(of)
    total += float(of.times @ (n1 * m - 0.5 * t1 * (m * m + spread)))
    total -= _divergence(q.mw, q.vw, t3, n3) + _divergence(q.mh, q.vh, t4, n4)
    # f4 and f3
    none = np.zeros(1)
    total += float(fit.items.tilted(t2h, n2h)[2].sum() + log_scales(none, n4 / t4, 1.0 / t4, t2h, n2h).sum())
    if fit.people is not None:
        total += float(fit.people.tilted(t2w.T, n2w.T)[2].sum() + log_scales(none, n3 / t3, 1.0 / t3, t2w, n2w).sum())
    return total


def _divergence(m: Array, v: Array, t: Array, n: Array) -> float:
    """Return the summed Kullback-Leibler divergence of N(m, v) from N(n / t, 1 / t), all arrays of one shape."""
    apart = m - n / t
    return 0.5 * float((t * (v + apart * apart) - 1.0 - np.log(v * t)).sum())
